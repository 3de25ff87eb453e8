"""The beginning and the end of an export: a place of its own while it is unfinished, a manifest over its files, then the name."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from asterism.export.run import Run
from asterism_proto.durable import make_folder
from asterism_proto.errors import Conflict, NotFound
from asterism_proto.places import Place, redacted

MANIFEST = "manifest.json"
_STATE = "state.json"
_BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where an export goes: a folder, or an address as fsspec has it."""

    path: Path | None
    address: str

    @classmethod
    def of(cls, out: str | Path) -> Target:
        """What ``out`` names; ``file://`` is a folder."""
        text = str(out)
        if text.startswith("file://"):
            return cls(path=Path(text.removeprefix("file://")), address="")
        return cls(path=None, address=text.rstrip("/")) if "://" in text else cls(path=Path(out), address="")

    @property
    def shown(self) -> str:
        """For people."""
        return redacted(self.address) if self.path is None else str(self.path)

    def named(self, name: str) -> str | Path:
        """Where a file of it is."""
        return self.path / name if self.path is not None else f"{self.address}/{name}"

    def manifest(self) -> dict[str, Any] | None:
        """The manifest of the finished export that is there; None where there is none."""
        try:
            raw = (self.path / MANIFEST).read_bytes() if self.path is not None else Place(self.address, what="export").read(MANIFEST)
            found: Any = json.loads(raw)
        except (OSError, ValueError, NotFound):
            return None
        return found if isinstance(found, dict) else None

    @property
    def taken(self) -> bool:
        """Whether something is there."""
        if self.path is None:
            return self.manifest() is not None
        return self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir()))

    def beside(self, scratch: str | Path | None) -> Path:
        """The folder of its own that an unfinished export has: the same one each time."""
        if self.path is not None and scratch is None:
            return self.path.with_name(f"{self.path.name}.partial")
        where = self.address or str(self.path.absolute() if self.path is not None else "")
        folder = Path(tempfile.gettempdir()) if scratch is None else Path(scratch)
        return (folder / f"asterism-export-{hashlib.sha256(where.encode()).hexdigest()[:16]}").absolute()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfinished:
    """The folder of an export that is under way."""

    folder: Path
    state: Mapping[str, Any]
    """What it exports, as it began: what was asked for, and what was found out for all of it."""
    resumed: bool
    published: bool
    """Whether the export stands already: what is left is to remove the folder."""

    @property
    def scratch(self) -> Path:
        """For what is not part of the export."""
        return self.folder / "scratch"

    @property
    def out(self) -> Path:
        """For its files, where they do not go to an address."""
        return self.folder / "files"

    def begin(self, state: Mapping[str, Any]) -> Unfinished:
        """Note what is exported, in an empty folder."""
        self.scratch.mkdir(parents=True)
        self.out.mkdir()
        making = self.folder / f"{_STATE}.making"
        making.write_text(json.dumps({**state, "boot": _boot()}))
        making.rename(self.folder / _STATE)
        return replace(self, state=state)


@contextmanager
def unfinished(target: Target, asked: Mapping[str, Any], *, overwrite: bool, resume: bool, scratch: str | Path | None) -> Iterator[Unfinished]:
    """The folder of an export until it is published: one that was cut off, or a new one. Removed when the block fails, unless ``resume``.

    Raises
    ------
    Conflict
        Where the target is taken, or an unfinished export to it is, by one that is under way, or one of something else.
    """
    folder = target.beside(scratch)
    lock = _locked(folder, target)
    try:
        state = _state(folder)
        if state is not None and resume:
            wrong = sorted(key for key in asked if asked[key] != state.get(key))
            if wrong:
                told = ", ".join(f"{key} {state.get(key)!r}, not {asked[key]!r}" for key in wrong)
                raise Conflict(f"{folder}: the unfinished export to {target.shown} is of {told}; ask for the same, or do not resume")
        place = Unfinished(folder=folder, state=state or {}, resumed=state is not None, published=False)
        if resume and not place.out.is_dir() and _matches(asked, target.manifest()) and (state is not None or not overwrite):
            yield replace(place, published=True)
            return
        if target.taken and not overwrite:
            raise Conflict(f"{target.shown} is there already; choose another place, or say overwrite")
        if state is not None and not resume and not overwrite:
            raise Conflict(f"{folder}: an export to {target.shown} was cut off; say resume to go on with it, or overwrite to begin anew")
        if state is None or not resume or state.get("boot") != _boot():
            # What a machine that went down had not written yet is not known: only what this boot wrote is gone on with.
            place = replace(place, state={}, resumed=False)
            _empty(folder)
        try:
            yield place
        except BaseException:
            if not resume:
                shutil.rmtree(folder, ignore_errors=True)
            raise
    finally:
        with suppress(OSError):
            folder.rmdir()  # what is empty is of no use to anybody
        os.close(lock)


def _locked(folder: Path, target: Target) -> int:
    """The folder, there and this process's alone until the descriptor is closed."""
    while True:
        make_folder(folder)
        lock = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if folder.exists() and os.fstat(lock).st_ino == folder.stat().st_ino:
                return lock
        except BlockingIOError as error:
            os.close(lock)
            raise Conflict(f"{folder}: an export to {target.shown} is under way in another process; wait for it") from error
        os.close(lock)  # another export was done with it just then


def _matches(asked: Mapping[str, Any], manifest: Mapping[str, Any] | None) -> bool:
    return manifest is not None and manifest.get("asked") == asked


def _state(folder: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads((folder / _STATE).read_text())
    except (FileNotFoundError, ValueError):
        return None
    return found


def _boot() -> str:
    return _BOOT.read_text().strip() if _BOOT.exists() else ""


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def replace_at(run: Run, target: Target) -> None:
    """Remove the export that an address holds, if any: its manifest first, so that nobody takes what is left for an export."""
    if target.path is not None:
        return
    place = Place(target.address, what="export")
    old = run.step("replaced", lambda: {"old": sorted((target.manifest() or {"files": []})["files"])})["old"]

    def remove() -> None:
        for path in (MANIFEST, *old):
            place.remove(path)

    if old:
        run.step("removed", remove)


def publish(place: Unfinished, target: Target) -> None:
    """Give the finished export its name; what was there before goes once it has it. Done again, it goes on."""
    if target.path is not None and place.out.is_dir():
        _sync_all(place.out)
        make_folder(target.path.parent)
        old = place.folder / "replaced"
        if target.path.is_dir() and not any(target.path.iterdir()):
            target.path.rmdir()
        elif target.path.exists():
            _moved(target.path, old)
        _moved(place.out, target.path)
        _sync(target.path.parent)
    shutil.rmtree(place.folder)


def _moved(source: Path, target: Path) -> None:
    """Rename, or where the two are on different disks, copy beside the target first."""
    try:
        source.rename(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        making = target.with_name(f"{target.name}.making")
        shutil.rmtree(making, ignore_errors=True)
        shutil.copytree(source, making)
        _sync_all(making)
        making.rename(target)
        shutil.rmtree(source)


def _sync_all(folder: Path) -> None:
    for path in folder.rglob("*"):
        _sync(path)
    _sync(folder)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
