"""Places: folders at addresses, as fsspec names them. The client and storaged keep backups there,
storaged exports tables to them.

What an address may carry of secrets (``ftp://me:secret@host``, ``?sig=...``) is told to nobody:
`redact` is what messages, logs and lists of jobs show."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

from asterism_io.durable_files import make_folder, sync_folder
from asterism_proto.errors import AsterismError, Corrupt, InvalidRequest, NotFound, Unavailable

T = TypeVar("T")

PIECE_BYTES = 1 << 20
"""Bytes that are read, hashed and written at a time."""
MAX_NAME_CHARS = 512
"""Characters of a file's name below an address."""

_BLOCK_BYTES = 8 << 20
"""Of one request to an object store; a few of them are held."""
_MAX_BLOCKS = 9_000
"""Of one file: S3 takes 10 000 parts of an upload."""
_BUCKET_PROTOCOLS = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az"})
"""Protocols without folders. To make one there is to make a bucket, which is not for us to do."""

_SSH_PROTOCOLS = frozenset({"sftp", "ssh"})
_EXTRAS = {"s3": "s3", "s3a": "s3", "sftp": "sftp", "ssh": "sftp"}
"""Extras of `asterism-graph` that install the packages of a protocol."""
_CONNECT_TIMEOUT_S = 20.0
"""How long each step of a connection by SSH may take; the system itself gives up after minutes, or
never.
"""
REMOTE_TIMEOUT_S = 30.0
"""Seconds that an object store or a host may take to accept a connection, or to send or take any
byte.
"""
_OPERATION_TIMEOUTS = 4
"""Silences of that length, with the retries of the protocol's package between them, after which one
operation on a file is given up.
"""
MAX_READ_BYTES = 256 << 20
"""Bytes of a file that is read into memory as a whole."""

_USER_PATTERN = re.compile(r"(://)(?:[^/\s@]+|[^\s@:]*:[^\s@]*)@")
_SECRET_PATTERN = re.compile(
    r"([?&;][^=\s&;]*(?:key|secret|token|password|sig|signature|credential)[^=\s&;]*=)[^\s&;'\"]+",
    re.IGNORECASE,
)


def redact(text: str) -> str:
    """``text`` with the secrets of every address in it as ``***``."""
    return _SECRET_PATTERN.sub(r"\1***", _USER_PATTERN.sub(r"\1***@", text))


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """One file at a place."""

    path: str
    """Below the address."""
    bytes: int
    sha256: str


class RemoteFolder:
    """A folder at an address; needs fsspec, and what the address's protocol needs (``s3://``:
    ``asterism-graph[s3]``).

    Parameters
    ----------
    address : str
        As ``"file:///srv/backup"`` or ``"s3://bucket/backup"``. Credentials and endpoints of object
        stores are those of this process's environment.
    content_name : str
        What is kept there, in messages: a backup, or an export.
    display_address : str, optional
        The address in messages, without secrets; None: ``address``.
    confined : bool
        Refuse files that lead out of the folder: names that are not below it, symbolic links, and
        anything local that is no regular file.
    timeout_s : float
        Seconds that a remote host may be silent; each operation on a file ends within four times as
        long.

    Raises
    ------
    InvalidRequest
        Where the protocol is not known here, or takes no user and password.
    Unavailable
        Where a protocol connects at once, and can not.
    """

    def __init__(
        self,
        address: str,
        *,
        content_name: str = "backup",
        display_address: str | None = None,
        confined: bool = False,
        timeout_s: float = REMOTE_TIMEOUT_S,
    ) -> None:
        self.display_address = redact(address) if display_address is None else display_address
        self._content_name = content_name
        self._is_confined = confined
        self._operation_limit_s = _OPERATION_TIMEOUTS * timeout_s
        protocol = address.partition("://")[0]
        try:
            import fsspec
            from fsspec.implementations.local import LocalFileSystem

            def connect() -> Any:
                system, root = fsspec.core.url_to_fs(
                    address, **_timeout_arguments(protocol, timeout_s)
                )
                if protocol in _SSH_PROTOCOLS:
                    system.ftp.get_channel().settimeout(timeout_s)
                return system, root

            self._fs, root = (
                _run_with_timeout(self._operation_limit_s, connect)
                if protocol in _SSH_PROTOCOLS
                else connect()
            )
        except ImportError as error:
            extra = _EXTRAS.get(protocol) or ("server" if error.name == "fsspec" else None)
            remedy = f"; pip install 'asterism-graph[{extra}]'" if extra else ""
            raise InvalidRequest(
                f"{self.display_address}: a package that this address needs is not installed "
                f"here{remedy} ({error})"
            ) from error
        except (ValueError, TypeError, KeyError) as error:
            raise InvalidRequest(
                f"{self.display_address}: no address of a folder ({redact(str(error))})"
            ) from error
        except Exception as error:  # some protocols connect at once
            raise Unavailable(
                f"{self.display_address}: can not be reached ({type(error).__name__}: "
                f"{redact(str(error))})"
            ) from error
        self._root = str(root).rstrip("/")
        self._is_local = isinstance(self._fs, LocalFileSystem)
        if self._is_local and confined:
            self._root = os.path.realpath(self._root or "/").rstrip("/")
        user = _USER_PATTERN.search(address)
        if (
            user is not None and not self._is_local and user.group()[3:-1] in self._root
        ):  # taken for a part of a bucket's name
            raise InvalidRequest(
                f"{self.display_address}: this protocol takes no user and password; give "
                "them to storageds and clients in their environment"
            )

    def read(self, path: str, *, limit: int = MAX_READ_BYTES) -> bytes:
        """Read a small file as a whole.

        Raises
        ------
        NotFound
            Where there is none.
        Corrupt
            Where it has more than ``limit`` bytes.
        """
        target = self._target(path, reading=True)
        size = self.size(path)
        if size is not None and size > limit:
            raise Corrupt(f"{self.display_address}/{path}: {size} bytes; expected at most {limit}")
        with self._translate_errors(path):
            content: bytes = self._call(lambda: self._fs.cat_file(target))
        return content

    def size(self, path: str) -> int | None:
        """A file's bytes; None where there is none."""
        try:
            target = self._target(path, reading=True)
            with self._translate_errors(path):
                return int(self._call(lambda: self._fs.info(target))["size"])
        except NotFound:
            return None

    @contextmanager
    def open(self, path: str, *, expected: int = 0) -> Iterator[BinaryIO]:
        """A new file, there under its name once the block ends well, and durable then; ``expected``
        bytes are a guess at its size.
        """
        target = self._target(path)
        with self._translate_errors(path):
            if self._is_local:
                yield from _write_local(Path(target))
            else:
                yield from self._write_remote(
                    target, max(_BLOCK_BYTES, -(-expected // _MAX_BLOCKS))
                )

    def _write_remote(self, target: str, block: int) -> Iterator[BinaryIO]:
        bucket = bool(
            _BUCKET_PROTOCOLS.intersection(
                [self._fs.protocol] if isinstance(self._fs.protocol, str) else self._fs.protocol
            )
        )
        # A bucket shows an object once it is whole; elsewhere it gets its name then.
        temporary = target if bucket else f"{target}.making"
        if not bucket:
            self._call(lambda: self._fs.makedirs(target.rpartition("/")[0], exist_ok=True))
        file: Any = self._call(lambda: self._fs.open(temporary, "wb", block_size=block))
        try:
            yield cast(BinaryIO, _TimedWriter(file, self._operation_limit_s))
        except BaseException as error:
            # To close it would be to publish half of it. A host that is silent is not waited for
            # once more.
            if not isinstance(error, TimeoutError):
                with suppress(Exception):
                    self._call(lambda: self._discard(file, None if bucket else temporary))
            if bucket:
                file.closed = True
            raise
        self._call(file.close)
        if not bucket:
            with suppress(FileNotFoundError):
                self._call(lambda: self._fs.rm_file(target))
            self._call(lambda: self._fs.mv(temporary, target))

    def _discard(self, file: Any, temporary: str | None) -> None:
        """Discard a file that was not written to its end."""
        with suppress(Exception):
            file.discard()
        if temporary is not None:
            file.close()
            self._fs.rm_file(temporary)

    def remove(self, path: str) -> None:
        """Remove a file, if it is there."""
        target = self._target(path)
        with suppress(NotFound), self._translate_errors(path):
            self._call(lambda: self._fs.rm_file(target))

    def put(self, path: str, content: bytes) -> StoredFile:
        """Write a small file."""
        return self.write(path, [content])

    def write(self, path: str, pieces: Iterable[bytes], *, expected: int = 0) -> StoredFile:
        """Write a file of pieces; nobody ever sees half of it."""
        digest, size = hashlib.sha256(), 0
        with self.open(path, expected=expected) as file:
            for piece in pieces:
                file.write(piece)
                digest.update(piece)
                size += len(piece)
        return StoredFile(path=path, bytes=size, sha256=digest.hexdigest())

    def read_pieces(self, file: StoredFile) -> Iterator[bytes]:
        """A file's bytes; Corrupt, with its name, once they turn out not to be those that were
        written.
        """
        digest, size = hashlib.sha256(), 0
        try:
            target = self._target(file.path, reading=True)
            with self._translate_errors(file.path):
                stream = self._call(lambda: self._fs.open(target, "rb", block_size=_BLOCK_BYTES))
                try:
                    while size <= file.bytes and (
                        piece := self._call(lambda: stream.read(PIECE_BYTES))
                    ):
                        digest.update(piece)
                        size += len(piece)
                        yield piece
                finally:
                    with suppress(TimeoutError):
                        self._call(stream.close)
        except NotFound as error:
            raise Corrupt(
                f"{self.display_address}/{file.path}: missing; the {self._content_name} is damaged"
            ) from error
        if (size, digest.hexdigest()) != (file.bytes, file.sha256):
            raise Corrupt(
                f"{self.display_address}/{file.path}: {size} bytes that are not the "
                f"{file.bytes} that were written; the {self._content_name} is damaged"
            )

    def read_file(self, file: StoredFile) -> bytes:
        """A small file's bytes, checked; Corrupt where there are more than `MAX_READ_BYTES`."""
        if file.bytes > MAX_READ_BYTES:
            raise Corrupt(
                f"{self.display_address}/{file.path}: {file.bytes} bytes by its record; "
                f"expected at most {MAX_READ_BYTES}"
            )
        return b"".join(self.read_pieces(file))

    def _target(self, path: str, *, reading: bool = False) -> str:
        """Return the path of a file in its file system; Corrupt where it leads out of a confined
        folder.
        """
        target = f"{self._root}/{path}"
        if not self._is_confined:
            return target
        check_file_name(path)
        if self._is_local:
            folder = os.path.dirname(target)
            if os.path.realpath(folder) != folder or os.path.islink(target):
                raise Corrupt(
                    f"{self.display_address}/{path}: a symbolic link; expected a file of its "
                    f"own; the {self._content_name} is damaged"
                )
            if reading and os.path.exists(target) and not stat.S_ISREG(os.stat(target).st_mode):
                raise Corrupt(
                    f"{self.display_address}/{path}: expected a regular file; the "
                    f"{self._content_name} is damaged"
                )
        return target

    def _call(self, operation: Callable[[], T]) -> T:
        """Run one operation of the file system; TimeoutError where a remote one takes too long."""
        return (
            operation() if self._is_local else _run_with_timeout(self._operation_limit_s, operation)
        )

    @contextmanager
    def _translate_errors(self, path: str) -> Iterator[None]:
        try:
            yield
        except AsterismError:
            raise
        except FileNotFoundError as error:
            raise NotFound(
                f"{self.display_address}/{path}: there is no such file, or no such bucket or "
                "folder to write it to"
            ) from error
        except TimeoutError as error:
            raise Unavailable(f"{self.display_address}/{path}: {error or 'timed out'}") from error
        except Exception as error:  # every protocol has errors of its own
            disk_full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
            reason = (
                "the disk is full; free space and do it again"
                if disk_full
                else f"{type(error).__name__}: {redact(str(error))}"
            )
            raise Unavailable(f"{self.display_address}/{path}: {reason}") from error


def check_file_name(path: str) -> None:
    """Check that a name of a record is one of a file below its folder.

    Raises
    ------
    Corrupt
        For an absolute path, ``.``, ``..``, an empty segment, a backslash or a control character.
    """
    segments = path.split("/")
    if (
        len(path) > MAX_NAME_CHARS
        or not path.isprintable()
        or "\\" in path
        or any(segment in ("", ".", "..") for segment in segments)
    ):
        raise Corrupt(
            f"file {path[:MAX_NAME_CHARS]!r}: expected a relative name that is below the "
            "folder of its record"
        )


class _TimedWriter:
    """A file that is written, each operation within a time limit."""

    def __init__(self, file: Any, limit_s: float) -> None:
        self._file, self._limit_s = file, limit_s

    def write(self, data: Any) -> int:
        """Write all of ``data``."""
        _run_with_timeout(self._limit_s, lambda: self._file.write(data))
        return memoryview(data).nbytes

    def flush(self) -> None:
        """Nothing to do: the end of the file makes it durable."""


def _run_with_timeout(seconds: float, operation: Callable[[], T]) -> T:
    """Run an operation in a thread, which is abandoned once the time is over: nothing ends a call
    that waits for a silent host.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(operation())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="remote-file", daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise TimeoutError(f"no answer within {seconds:g} s")
    return results[0]


def _timeout_arguments(protocol: str, seconds: float) -> dict[str, Any]:
    """Return the arguments of a protocol's file system that bound connecting and waiting."""
    if protocol in _SSH_PROTOCOLS:  # of paramiko
        return dict.fromkeys(
            ("timeout", "banner_timeout", "auth_timeout", "channel_timeout"),
            min(_CONNECT_TIMEOUT_S, seconds),
        )
    if protocol in ("s3", "s3a"):  # of botocore
        return {
            "config_kwargs": {
                "connect_timeout": min(_CONNECT_TIMEOUT_S, seconds),
                "read_timeout": seconds,
            }
        }
    return {}


def _open_no_follow(path: str, flags: int) -> int:
    """Open a file that is written, but none that a symbolic link leads to."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def _write_local(path: Path) -> Iterator[BinaryIO]:
    make_folder(path.parent)
    temporary = path.with_name(path.name + ".making")
    try:
        with open(temporary, "wb", opener=_open_no_follow) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    temporary.rename(path)
    sync_folder(path.parent)


def absolute_address(address: str | Path) -> str:
    """An address with its protocol: a path is a folder of this machine's, as an absolute one."""
    text = str(address)
    # Not `as_uri`: fsspec takes what is behind the protocol as it is written.
    return text.rstrip("/") if "://" in text else f"file://{Path(text).expanduser().absolute()}"
