"""Backups: where their files lie, what their record says, and how an address is opened. The client and storaged share it.

    ADDRESS/backup.json                        the record: every file with its size and sha256; written last
    ADDRESS/catalog.pb                         SpaceRecord: schema, manifest, loads with chunks, next edge ids
    ADDRESS/parts/p00003/part.json             the part is complete: its image's digest, its files
    ADDRESS/parts/p00003/image/*               the part's image, as a storaged has it
    ADDRESS/parts/p00003/blocks.bin            what was loaded of it, see docs/storage.md

An address is a folder as fsspec names it. What it may carry of secrets (``s3://key:secret@bucket``) is told to nobody:
`redacted` is what messages, logs and lists of jobs show.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from asterism_proto.errors import AsterismError, Corrupt, InvalidRequest, NotFound, Unavailable

FORMAT = 1
RECORD, CATALOG = "backup.json", "catalog.pb"
PIECE_BYTES = 1 << 20
"""Bytes that are read, hashed and written at a time."""

_USER = re.compile(r"(://)[^/\s@]+@")
_SECRET = re.compile(r"([?&;][^=\s&;]*(?:key|secret|token|password|sig|signature|credential)[^=\s&;]*=)[^\s&;'\"]+", re.IGNORECASE)


def redacted(text: str) -> str:
    """``text`` with the secrets of every address in it as ``***``."""
    return _SECRET.sub(r"\1***", _USER.sub(r"\1***@", text))


def part_folder(part: int) -> str:
    """The folder of a part, below the address."""
    return f"parts/p{part:05d}"


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """One file of a backup."""

    path: str
    """Below the address."""
    bytes: int
    sha256: str


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


class Place:
    """A folder at an address; needs fsspec, and what the address's protocol needs.

    Parameters
    ----------
    address : str
        As ``"file:///srv/backup"`` or ``"s3://bucket/backup"``.

    Raises
    ------
    InvalidRequest
        Where the protocol is not known here.
    """

    def __init__(self, address: str) -> None:
        self.shown = redacted(address)
        try:
            import fsspec
            from fsspec.implementations.local import LocalFileSystem

            self._fs, root = fsspec.core.url_to_fs(address)
        except ImportError as error:
            raise InvalidRequest(f"{self.shown}: a package that this address needs is not installed here ({error})") from error
        except Exception as error:
            raise InvalidRequest(f"{self.shown}: no address of a folder ({redacted(str(error))})") from error
        self._root = str(root).rstrip("/")
        self._local = isinstance(self._fs, LocalFileSystem)

    def read(self, path: str) -> bytes:
        """The whole of a small file; NotFound where there is none."""
        with self._ours(path):
            content: bytes = self._fs.cat_file(f"{self._root}/{path}")
        return content

    def size(self, path: str) -> int | None:
        """A file's bytes; None where there is none."""
        try:
            with self._ours(path):
                return int(self._fs.info(f"{self._root}/{path}")["size"])
        except NotFound:
            return None

    def put(self, path: str, content: bytes) -> File:
        """Write a small file such that nobody ever sees half of it."""
        target = f"{self._root}/{path}"
        with self._ours(path):
            if self._local:
                self._fs.makedirs(target.rpartition("/")[0], exist_ok=True)
                making = Path(target + ".making")
                with making.open("wb") as file:
                    _settle(file, content)
                making.rename(target)
                _sync_folder(Path(target).parent)
            else:
                self._fs.pipe_file(target, content)
        return File(path=path, bytes=len(content), sha256=hashlib.sha256(content).hexdigest())

    def write(self, path: str, pieces: Iterable[bytes]) -> File:
        """Write a large file; it counts once a record names it."""
        target, digest, size = f"{self._root}/{path}", hashlib.sha256(), 0
        with self._ours(path):
            if self._local:
                self._fs.makedirs(target.rpartition("/")[0], exist_ok=True)
            file: BinaryIO
            with open(target, "wb") if self._local else self._fs.open(target, "wb") as file:
                for piece in pieces:
                    file.write(piece)
                    digest.update(piece)
                    size += len(piece)
                if self._local:
                    _settle(file, b"")
        return File(path=path, bytes=size, sha256=digest.hexdigest())

    def pieces(self, file: File) -> Iterator[bytes]:
        """A file's bytes; Corrupt, with its name, once they turn out not to be those that were written."""
        digest, size = hashlib.sha256(), 0
        try:
            with self._ours(file.path), self._fs.open(f"{self._root}/{file.path}", "rb") as opened:
                while piece := opened.read(PIECE_BYTES):
                    digest.update(piece)
                    size += len(piece)
                    yield piece
        except NotFound as error:
            raise Corrupt(f"{self.shown}/{file.path}: missing; the backup is damaged") from error
        if (size, digest.hexdigest()) != (file.bytes, file.sha256):
            raise Corrupt(f"{self.shown}/{file.path}: {size} bytes that are not the {file.bytes} that were written; the backup is damaged")

    def whole(self, file: File) -> bytes:
        """A small file's bytes, checked."""
        return b"".join(self.pieces(file))

    @contextmanager
    def _ours(self, path: str) -> Iterator[None]:
        try:
            yield
        except AsterismError:
            raise
        except FileNotFoundError as error:
            raise NotFound(f"{self.shown}/{path}: there is no such file") from error
        except Exception as error:  # every protocol has errors of its own
            raise Unavailable(f"{self.shown}/{path}: {type(error).__name__}: {redacted(str(error))}") from error


def _settle(file: BinaryIO, content: bytes) -> None:
    file.write(content)
    file.flush()
    os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
