"""Places: folders at addresses, as fsspec names them. The client and storaged keep backups there, storaged exports tables to them.

What an address may carry of secrets (``ftp://me:secret@host``, ``?sig=...``) is told to nobody: `redacted` is what messages,
logs and lists of jobs show.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from asterism_proto.errors import AsterismError, Corrupt, InvalidRequest, NotFound, Unavailable

PIECE_BYTES = 1 << 20
"""Bytes that are read, hashed and written at a time."""

_BLOCK_BYTES = 8 << 20
"""Of one request to an object store; a few of them are held."""
_MOST_BLOCKS = 9_000
"""Of one file: S3 takes 10 000 parts of an upload."""
_BUCKETS = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az"})
"""Protocols without folders. To make one there is to make a bucket, which is not for us to do."""

_OVER_SSH = frozenset({"sftp", "ssh"})
_CONNECT_S = 20.0
"""How long each step of a connection by SSH may take; the system itself gives up after minutes, or never."""
_STALL_S = 60.0
"""How long a machine may say nothing while a file goes to or from it by SFTP."""

_USER = re.compile(r"(://)(?:[^/\s@]+|[^\s@:]*:[^\s@]*)@")
_SECRET = re.compile(r"([?&;][^=\s&;]*(?:key|secret|token|password|sig|signature|credential)[^=\s&;]*=)[^\s&;'\"]+", re.IGNORECASE)


def redacted(text: str) -> str:
    """``text`` with the secrets of every address in it as ``***``."""
    return _SECRET.sub(r"\1***", _USER.sub(r"\1***@", text))


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """One file at a place."""

    path: str
    """Below the address."""
    bytes: int
    sha256: str


class Place:
    """A folder at an address; needs fsspec, and what the address's protocol needs (``s3://``: `asterism[s3]`).

    Parameters
    ----------
    address : str
        As ``"file:///srv/backup"`` or ``"s3://bucket/backup"``. Credentials and endpoints of object stores are those of this
        process's environment.
    what : str
        What is kept there, in messages: a backup, or an export.

    Raises
    ------
    InvalidRequest
        Where the protocol is not known here, or takes no user and password.
    Unavailable
        Where a protocol connects at once, and can not.
    """

    def __init__(self, address: str, *, what: str = "backup") -> None:
        self.shown = redacted(address)
        self._what = what
        try:
            import fsspec
            from fsspec.implementations.local import LocalFileSystem

            over_ssh = address.partition("://")[0] in _OVER_SSH
            self._fs, root = fsspec.core.url_to_fs(address, **_within(_CONNECT_S) if over_ssh else {})
            if over_ssh:
                self._fs.ftp.get_channel().settimeout(_STALL_S)
        except ImportError as error:
            raise InvalidRequest(f"{self.shown}: a package that this address needs is not installed here ({error})") from error
        except (ValueError, TypeError, KeyError) as error:
            raise InvalidRequest(f"{self.shown}: no address of a folder ({redacted(str(error))})") from error
        except Exception as error:  # some protocols connect at once
            raise Unavailable(f"{self.shown}: can not be reached ({type(error).__name__}: {redacted(str(error))})") from error
        self._root = str(root).rstrip("/")
        self._local = isinstance(self._fs, LocalFileSystem)
        user = _USER.search(address)
        if user is not None and not self._local and user.group()[3:-1] in self._root:  # taken for a part of a bucket's name
            raise InvalidRequest(f"{self.shown}: this protocol takes no user and password; give them to storageds and clients in their environment")

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

    @contextmanager
    def open(self, path: str, *, expected: int = 0) -> Iterator[BinaryIO]:
        """A new file, there under its name once the block ends well, and durable then; ``expected`` bytes are a guess at its size."""
        target = f"{self._root}/{path}"
        with self._ours(path):
            if self._local:
                yield from _local(Path(target))
            else:
                yield from self._remote(target, max(_BLOCK_BYTES, -(-expected // _MOST_BLOCKS)))

    def _remote(self, target: str, block: int) -> Iterator[BinaryIO]:
        bucket = bool(_BUCKETS.intersection([self._fs.protocol] if isinstance(self._fs.protocol, str) else self._fs.protocol))
        # A bucket shows an object once it is whole; elsewhere it gets its name then.
        making = target if bucket else f"{target}.making"
        if not bucket:
            self._fs.makedirs(target.rpartition("/")[0], exist_ok=True)
        file: Any = self._fs.open(making, "wb", block_size=block)
        try:
            yield cast(BinaryIO, file)
        except BaseException:
            # To close it would be to publish half of it.
            with suppress(Exception):
                file.discard()
            with suppress(Exception):
                if bucket:
                    file.closed = True
                else:
                    file.close()
                    self._fs.rm_file(making)
            raise
        file.close()
        if not bucket:
            with suppress(FileNotFoundError):
                self._fs.rm_file(target)
            self._fs.mv(making, target)

    def remove(self, path: str) -> None:
        """Remove a file, if it is there."""
        with suppress(NotFound), self._ours(path):
            self._fs.rm_file(f"{self._root}/{path}")

    def put(self, path: str, content: bytes) -> File:
        """Write a small file."""
        return self.write(path, [content])

    def write(self, path: str, pieces: Iterable[bytes], *, expected: int = 0) -> File:
        """Write a file of pieces; nobody ever sees half of it."""
        digest, size = hashlib.sha256(), 0
        with self.open(path, expected=expected) as file:
            for piece in pieces:
                file.write(piece)
                digest.update(piece)
                size += len(piece)
        return File(path=path, bytes=size, sha256=digest.hexdigest())

    def pieces(self, file: File) -> Iterator[bytes]:
        """A file's bytes; Corrupt, with its name, once they turn out not to be those that were written."""
        digest, size = hashlib.sha256(), 0
        try:
            with self._ours(file.path), self._fs.open(f"{self._root}/{file.path}", "rb", block_size=_BLOCK_BYTES) as opened:
                while piece := opened.read(PIECE_BYTES):
                    digest.update(piece)
                    size += len(piece)
                    yield piece
        except NotFound as error:
            raise Corrupt(f"{self.shown}/{file.path}: missing; the {self._what} is damaged") from error
        if (size, digest.hexdigest()) != (file.bytes, file.sha256):
            raise Corrupt(f"{self.shown}/{file.path}: {size} bytes that are not the {file.bytes} that were written; the {self._what} is damaged")

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
            raise NotFound(f"{self.shown}/{path}: there is no such file, or no such bucket or folder to write it to") from error
        except Exception as error:  # every protocol has errors of its own
            full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
            why = "the disk is full; free space and do it again" if full else f"{type(error).__name__}: {redacted(str(error))}"
            raise Unavailable(f"{self.shown}/{path}: {why}") from error


def _within(seconds: float) -> dict[str, float]:
    """What paramiko takes for the steps of a connection."""
    return dict.fromkeys(("timeout", "banner_timeout", "auth_timeout", "channel_timeout"), seconds)


def _local(path: Path) -> Iterator[BinaryIO]:
    path.parent.mkdir(parents=True, exist_ok=True)
    making = path.with_name(path.name + ".making")
    try:
        with making.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        making.unlink(missing_ok=True)
        raise
    making.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
