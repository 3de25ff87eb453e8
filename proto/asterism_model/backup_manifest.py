"""Layout and manifests of a backup, shared by the client and storaged.

    ADDRESS/backup.json             manifest: every file with its size and sha256; written last
    ADDRESS/catalog.pb              SpaceRecord: schema, manifest, loads with chunks, next edge ids
    ADDRESS/parts/p00003/part.json  marks a complete partition: its image's digest, its files
    ADDRESS/parts/p00003/image/*    the partition image, as storaged keeps it
    ADDRESS/parts/p00003/blocks.bin the loaded blocks of the partition, see docs/storage.md

ADDRESS is the address of an `asterism_io.remote_storage.RemoteFolder`.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from asterism_io.remote_storage import StoredFile, check_file_name
from asterism_model.schema import MAX_PARTS
from asterism_proto.errors import Corrupt, InvalidRequest

FORMAT = 1
MANIFEST_FILE, CATALOG_FILE = "backup.json", "catalog.pb"
MAX_FILES = 1_000_000
"""Most files of one backup."""
MAX_FILE_BYTES = 1 << 50
_MAX_NUMBER = (1 << 63) - 1
_MAX_TEXT = 1024


def part_folder(part: int) -> str:
    """Return the folder of a partition, relative to the address of the backup."""
    return f"parts/p{part:05d}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartManifest:
    """Manifest of one complete partition of a backup."""

    part: int
    watermark: int
    """Commit watermark: the backup has the partition's blocks up to this commit."""
    image: str
    """Digest of the partition image."""
    files: tuple[StoredFile, ...]

    def to_bytes(self) -> bytes:
        """Return the content of ``part.json``."""
        return _encode_json(_fields(self))

    @classmethod
    def from_bytes(cls, content: bytes) -> PartManifest:
        """Parse the result of `to_bytes`; raise Corrupt if it is malformed."""
        data = _decode_json(content, "part.json")
        try:
            record = cls(
                part=_int_field(data, "part", MAX_PARTS - 1),
                watermark=_int_field(data, "cut", _MAX_NUMBER),
                image=_str_field(data, "image"),
                files=_file_list(data),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise Corrupt(
                f"part.json: not a record of a partition ({error!r}); the backup is damaged"
            ) from error
        for file in record.files:
            if not file.path.startswith(part_folder(record.part) + "/"):
                raise Corrupt(
                    f"part.json of partition {record.part}: {file.path!r} is not in "
                    f"{part_folder(record.part)}; the backup is damaged"
                )
        return record


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupManifest:
    """Manifest of a complete backup."""

    space: str
    version: int
    digest: str
    """Digest of the version's manifest."""
    watermark: int
    """Commit watermark of the backup."""
    parts: int
    created_ms: int
    files: tuple[StoredFile, ...]

    def to_bytes(self) -> bytes:
        """Return the content of ``backup.json``."""
        return _encode_json({"format": FORMAT, **_fields(self)})

    @classmethod
    def from_bytes(cls, content: bytes) -> BackupManifest:
        """Parse the result of `to_bytes`.

        Raises
        ------
        Corrupt
            If the content is malformed.
        InvalidRequest
            If another release wrote it in a format that this one does not read.
        """
        data = _decode_json(content, MANIFEST_FILE)
        if data.get("format") != FORMAT:
            raise InvalidRequest(
                f"{MANIFEST_FILE}: format {data.get('format')!r}: expected {FORMAT}; restore "
                "with the release that wrote the backup"
            )
        try:
            return cls(
                space=_str_field(data, "space"),
                version=_int_field(data, "version", _MAX_NUMBER),
                digest=_str_field(data, "digest"),
                watermark=_int_field(data, "cut", _MAX_NUMBER),
                parts=_int_field(data, "parts", MAX_PARTS),
                created_ms=_int_field(data, "created_ms", _MAX_NUMBER),
                files=_file_list(data),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise Corrupt(
                f"{MANIFEST_FILE}: not a record of a backup ({error!r}); the backup is damaged"
            ) from error

    def find_file(self, path: str) -> StoredFile:
        """Return the entry of a file; raise Corrupt if the manifest does not list it."""
        entry = next((file for file in self.files if file.path == path), None)
        if entry is None:
            raise Corrupt(f"{MANIFEST_FILE}: file {path} is not listed; the backup is damaged")
        return entry

    def files_of_part(self, part: int) -> list[StoredFile]:
        """Return the files of one partition."""
        return [file for file in self.files if file.path.startswith(part_folder(part) + "/")]


def _encode_json(data: dict[str, Any]) -> bytes:
    return json.dumps(data, sort_keys=True, indent=1).encode()


def _decode_json(content: bytes, file_name: str) -> dict[str, Any]:
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise Corrupt(f"{file_name}: not JSON ({error}); the backup is damaged") from error
    if not isinstance(data, dict):
        raise Corrupt(f"{file_name}: expected an object, found {type(data).__name__}")
    return data


def _fields(record: PartManifest | BackupManifest) -> dict[str, Any]:
    """Return a record's fields by their names in the file: the watermark is called ``cut``."""
    fields = asdict(record)
    fields["cut"] = fields.pop("watermark")
    return fields


def _int_field(data: dict[str, Any], name: str, limit: int) -> int:
    value = data[name]
    if type(value) is not int or not 0 <= value <= limit:
        raise ValueError(f"{name}={str(value)[:40]}: expected an integer of 0 to {limit}")
    return value


def _str_field(data: dict[str, Any], name: str) -> str:
    value = data[name]
    if not isinstance(value, str) or len(value) > _MAX_TEXT:
        raise ValueError(
            f"{name}={str(value)[:40]!r}: expected a text of at most {_MAX_TEXT} characters"
        )
    return value


def _file_list(data: dict[str, Any]) -> tuple[StoredFile, ...]:
    entries = data["files"]
    if not isinstance(entries, list) or len(entries) > MAX_FILES:
        raise ValueError(f"files: expected a list of at most {MAX_FILES}")
    files = tuple(
        StoredFile(
            path=_str_field(f, "path"),
            bytes=_int_field(f, "bytes", MAX_FILE_BYTES),
            sha256=_str_field(f, "sha256"),
        )
        for f in entries
    )
    for file in files:
        check_file_name(file.path)
    if len({file.path for file in files}) != len(files):
        raise ValueError("files: expected each name once")
    return files
