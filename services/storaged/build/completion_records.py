"""Completion records: finished partitions, for later attempts and later builds."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asterism_io.durable_files import make_folder, write_durably
from storaged.build.build_task import PartResult
from storaged.store.checksums import MANIFEST

_DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletedPart:
    """A finished partition."""

    output: Path
    """Folder of the build."""
    part: int
    input: str
    """Digest of the input: `BuildTask.digest`."""
    result: PartResult
    units: Mapping[str, Mapping[str, Any]]
    """Result of `PartUnitCache.records`."""
    manifest: Mapping[str, Any]
    """Manifest of its image; not in the completion file."""

    @classmethod
    def read(cls, output: Path, part: int) -> CompletedPart | None:
        """Return the completion record of a partition.

        Returns None if the partition is not finished, or if the record does not match the image.
        """
        try:
            record = json.loads(_path(output, part).read_text())
            manifest = (part_folder(output, part) / MANIFEST).read_bytes()
            content = record["content"]
            result = PartResult.from_dict(content["result"])
            if (
                record["sha256"] != _digest(content)
                or hashlib.sha256(manifest).hexdigest() != result.digest
            ):
                return None
            return cls(
                output=output,
                part=part,
                input=content["input"],
                result=result,
                units=content["units"],
                manifest=json.loads(manifest),
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None


def write_completion(
    output: Path,
    part: int,
    *,
    task: str,
    result: PartResult,
    units: Mapping[str, Mapping[str, Any]],
) -> None:
    """Record durably that a partition is finished; its image must already be durable."""
    content = {"input": task, "result": result.to_dict(), "units": dict(units)}
    path = _path(output, part)
    make_folder(path.parent)
    write_durably(path, json.dumps({"content": content, "sha256": _digest(content)}).encode())


def remove_completion(output: Path, part: int) -> None:
    """Remove the record of a partition, so that it is built again."""
    _path(output, part).unlink(missing_ok=True)


def remove_completions(output: Path) -> None:
    """Remove the records of all partitions, so that they are built again."""
    shutil.rmtree(output / _DONE, ignore_errors=True)


def part_folder(output: Path, part: int) -> Path:
    """Return the folder of a partition's image."""
    return output / "parts" / f"p{part:05d}"


def _path(output: Path, part: int) -> Path:
    return output / _DONE / f"p{part:05d}.json"


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
