"""The end of an export: a manifest over its files, everything durable, then the name."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from asterism.export.run import Meter, Run
from asterism_proto.errors import Conflict


@contextmanager
def unfinished(out: Path, *, overwrite: bool) -> Iterator[Path]:
    """A new folder beside ``out`` that gets its name when the block ends, and is removed when it fails.

    Raises
    ------
    Conflict
        Where ``out`` is there and not empty, unless ``overwrite``.
    """
    if not overwrite and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise Conflict(f"{out} is there already; choose another folder, or say overwrite")
    partial = _beside(out)
    try:
        partial.mkdir(parents=True)
        yield partial
        _publish(partial, out)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def write_manifest(run: Run, content: Mapping[str, Any]) -> None:
    """Write ``manifest.json``: ``content``, and the size and digest of every file; then all of it is durable."""
    files: dict[str, Any] = {}
    paths = sorted(path for path in run.out.rglob("*") if path.is_file())
    meter = Meter(run, "digests", len(paths))
    for path in paths:
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            os.fsync(file.fileno())
        files[str(path.relative_to(run.out))] = {"bytes": path.stat().st_size, "sha256": digest}
        meter.add(1)
    with open(run.out / "manifest.json", "w") as file:
        json.dump({**content, "files": files}, file, indent=2)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    for folder in (*(path for path in run.out.rglob("*") if path.is_dir()), run.out):
        _sync(folder)


def _beside(out: Path) -> Path:
    return out.with_name(f"{out.name}.partial-{uuid.uuid4().hex[:8]}")


def _publish(partial: Path, out: Path) -> None:
    """Give the finished folder its name; what was there before goes once it has it."""
    old = _beside(out)
    if out.is_dir() and not any(out.iterdir()):
        out.rmdir()
    elif out.exists():
        out.rename(old)
    partial.rename(out)
    _sync(out.parent)
    if old.is_dir():
        shutil.rmtree(old)
    else:
        old.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
