"""Backups: where their files lie and what their record says. The client and storaged share it.

    ADDRESS/backup.json                        the record: every file with its size and sha256; written last
    ADDRESS/catalog.pb                         SpaceRecord: schema, manifest, loads with chunks, next edge ids
    ADDRESS/parts/p00003/part.json             the part is complete: its image's digest, its files
    ADDRESS/parts/p00003/image/*               the part's image, as a storaged has it
    ADDRESS/parts/p00003/blocks.bin            what was loaded of it, see docs/storage.md

An address is that of a `asterism_proto.places.Place`.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from asterism_proto.errors import Corrupt, InvalidRequest
from asterism_proto.places import File

FORMAT = 1
RECORD, CATALOG = "backup.json", "catalog.pb"


def part_folder(part: int) -> str:
    """The folder of a part, below the address."""
    return f"parts/p{part:05d}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartRecord:
    """A part that is complete."""

    part: int
    cut: int
    """The commit up to which its blocks are there."""
    image: str
    """The digest of its image."""
    files: tuple[File, ...]

    def to_bytes(self) -> bytes:
        """As it lies at the address."""
        return _json(asdict(self))

    @classmethod
    def of(cls, content: bytes) -> PartRecord:
        """What `to_bytes` gave; Corrupt where it is not that."""
        data = _read(content, "part.json")
        try:
            return cls(part=int(data["part"]), cut=int(data["cut"]), image=str(data["image"]), files=_files(data))
        except (KeyError, TypeError, ValueError) as error:
            raise Corrupt(f"part.json: it is no record of a part ({error!r})") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A whole backup."""

    space: str
    version: int
    digest: str
    """Of the version's manifest."""
    cut: int
    parts: int
    created_ms: int
    files: tuple[File, ...]

    def to_bytes(self) -> bytes:
        """As it lies at the address."""
        return _json({"format": FORMAT, **asdict(self)})

    @classmethod
    def of(cls, content: bytes) -> Record:
        """What `to_bytes` gave; Corrupt where it is not that, InvalidRequest where another release wrote it."""
        data = _read(content, RECORD)
        if data.get("format") != FORMAT:
            raise InvalidRequest(f"{RECORD}: format {data.get('format')!r}; this release reads {FORMAT}")
        try:
            numbers = {name: int(data[name]) for name in ("version", "cut", "parts", "created_ms")}
            return cls(space=str(data["space"]), digest=str(data["digest"]), files=_files(data), **numbers)
        except (KeyError, TypeError, ValueError) as error:
            raise Corrupt(f"{RECORD}: it is no record of a backup ({error!r})") from error

    def file(self, path: str) -> File:
        """One file's entry; Corrupt where it has none."""
        found = next((file for file in self.files if file.path == path), None)
        if found is None:
            raise Corrupt(f"{RECORD} names no file {path}")
        return found

    def of_part(self, part: int) -> list[File]:
        """The files of one part."""
        return [file for file in self.files if file.path.startswith(part_folder(part) + "/")]


def _json(data: dict[str, Any]) -> bytes:
    return json.dumps(data, sort_keys=True, indent=1).encode()


def _read(content: bytes, what: str) -> dict[str, Any]:
    try:
        data = json.loads(content)
    except ValueError as error:
        raise Corrupt(f"{what}: it is not JSON ({error}); the backup is damaged") from error
    if not isinstance(data, dict):
        raise Corrupt(f"{what}: expected an object, found {type(data).__name__}")
    return data


def _files(data: dict[str, Any]) -> tuple[File, ...]:
    files = tuple(File(path=str(f["path"]), bytes=int(f["bytes"]), sha256=str(f["sha256"])) for f in data["files"])
    for file in files:
        if file.path.startswith("/") or ".." in file.path.split("/"):
            raise Corrupt(f"the record names {file.path!r}, which is not below the backup's own folder")
    return files
