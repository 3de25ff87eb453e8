"""Remote folders at addresses of fsspec, for backups and exported tables.

The client and storaged keep backups in them, storaged exports tables to them. Addresses may
contain secrets (``ftp://me:secret@host``, ``?sig=...``). Messages, logs and lists of jobs show
them only after `redact`."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import ssl
import stat
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

from asterism_io.certificate_files import check_authorities
from asterism_io.durable_files import make_folder, sync_folder
from asterism_proto.errors import AsterismError, Corrupt, InvalidRequest, NotFound, Unavailable

T = TypeVar("T")

PIECE_BYTES = 1 << 20
"""Bytes that are read, hashed and written at a time."""
MAX_NAME_CHARS = 512
"""Maximum characters of a file's name below an address."""

_BLOCK_BYTES = 8 << 20
"""Bytes of one request to an object store; a few requests are in memory at a time."""
_MAX_BLOCKS = 9_000
"""Maximum blocks of one file; S3 accepts 10 000 parts of an upload."""
_BUCKET_PROTOCOLS = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az"})
"""Protocols without folders. Their top level is a bucket, which is never created here."""

_SSH_PROTOCOLS = frozenset({"sftp", "ssh"})
_EXTRAS = {"s3": "s3", "s3a": "s3", "sftp": "sftp", "ssh": "sftp"}
"""Extras of `asterism-graph` that install the packages of a protocol."""
_CONNECT_TIMEOUT_S = 20.0
"""Seconds that each step of an SSH connection may take.

The system itself gives up after minutes, or never."""
REMOTE_TIMEOUT_S = 30.0
"""Seconds that a remote host may take to accept a connection or to transfer a byte."""
_OPERATION_TIMEOUTS = 4
"""Timeouts after which one operation on a file is abandoned.

The package of the protocol may retry between them."""
MAX_READ_BYTES = 256 << 20
"""Maximum bytes of a file that is read into memory completely."""

_UNKNOWN_AUTHORITY = frozenset({2, 7, 18, 19, 20, 21})
"""Codes of OpenSSL for a certificate that no trusted authority signed (``X509_V_ERR_...``)."""
_USER_PATTERN = re.compile(r"(://)(?:[^/\s@]+|[^\s@:]*:[^\s@]*)@")
_SECRET_PATTERN = re.compile(
    r"([?&;][^=\s&;]*(?:key|secret|token|password|sig|signature|credential)[^=\s&;]*=)[^\s&;'\"]+",
    re.IGNORECASE,
)


def redact(text: str) -> str:
    """Return ``text`` with the secrets of every address in it replaced by ``***``."""
    return _SECRET_PATTERN.sub(r"\1***", _USER_PATTERN.sub(r"\1***@", text))


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A file in a remote folder."""

    path: str
    """Path below the address."""
    bytes: int
    sha256: str


class RemoteFolder:
    """A folder at an address.

    Needs fsspec and the package of the address's protocol (``s3://``: ``asterism-graph[s3]``).

    Parameters
    ----------
    address : str
        Such as ``"file:///srv/backup"`` or ``"s3://bucket/backup"``. Credentials and endpoints of
        object stores are taken from this process's environment.
    content_name : str
        Name of the content in messages: a backup, or an export.
    display_address : str, optional
        Address in messages, without secrets; by default ``address``, redacted.
    confined : bool, default False
        Refuse files that lead out of the folder: names that are not below it, symbolic links, and
        local files that are not regular.
    timeout_s : float, default 30
        Seconds that a remote host may be silent. Each operation on a file ends within four times
        as long.
    s3_ca : str, optional
        PEM file of the authorities of an object store's certificate. Empty: what botocore finds in
        the environment (``AWS_CA_BUNDLE``), or the authorities that come with it.

    Raises
    ------
    InvalidRequest
        If the file ``s3_ca`` cannot be used, the protocol is unknown, a package is missing, or the
        protocol takes no user and password.
    Unavailable
        If a protocol that connects at once cannot connect.
    """

    def __init__(
        self,
        address: str,
        *,
        content_name: str = "backup",
        display_address: str | None = None,
        confined: bool = False,
        timeout_s: float = REMOTE_TIMEOUT_S,
        s3_ca: str = "",
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
                    address,
                    **_timeout_arguments(protocol, timeout_s),
                    **_authority_arguments(protocol, s3_ca),
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
        except InvalidRequest:
            raise
        except (ValueError, TypeError, KeyError) as error:
            raise InvalidRequest(
                f"{self.display_address}: expected the address of a folder ({redact(str(error))})"
            ) from error
        except Exception as error:  # some protocols connect at once
            raise Unavailable(
                f"{self.display_address}: cannot be reached ({type(error).__name__}: "
                f"{redact(str(error))})"
            ) from error
        self._root = str(root).rstrip("/")
        self._is_local = isinstance(self._fs, LocalFileSystem)
        protocols = self._fs.protocol
        self._is_bucket = bool(
            _BUCKET_PROTOCOLS.intersection([protocols] if isinstance(protocols, str) else protocols)
        )
        if self._is_local and confined:
            self._root = os.path.realpath(self._root or "/").rstrip("/")
        user = _USER_PATTERN.search(address)
        if (
            user is not None and not self._is_local and user.group()[3:-1] in self._root
        ):  # the credentials were taken for a piece of the bucket's name
            raise InvalidRequest(
                f"{self.display_address}: this protocol takes no user and password; give "
                "them to storageds and clients in their environment"
            )

    def read(self, path: str, *, limit: int = MAX_READ_BYTES) -> bytes:
        """Read a small file completely.

        Parameters
        ----------
        path : str
            Path below the address.
        limit : int
            Maximum bytes of the file.

        Returns
        -------
        bytes

        Raises
        ------
        NotFound
            If the file does not exist.
        Corrupt
            If it has more than ``limit`` bytes.
        """
        target = self._target(path, reading=True)
        size = self.size(path)
        if size is not None and size > limit:
            raise Corrupt(
                f"{self.display_address}/{path}: expected at most {limit} bytes, found {size}"
            )
        with self._translate_errors(path):
            content: bytes = self._call(lambda: self._fs.cat_file(target))
        return content

    def size(self, path: str) -> int | None:
        """Return the size of a file in bytes; None if it does not exist."""
        try:
            target = self._target(path, reading=True)
            with self._translate_errors(path):
                return int(self._call(lambda: self._fs.info(target))["size"])
        except NotFound:
            return None

    @contextmanager
    def open(self, path: str, *, expected: int = 0) -> Iterator[BinaryIO]:
        """Open a new file for writing; it appears under its name once the block succeeds.

        The file is durable then. ``expected`` is an estimate of its size in bytes."""
        target = self._target(path)
        with self._translate_errors(path):
            if self._is_local:
                yield from _write_local(Path(target))
            else:
                yield from self._write_remote(
                    target, max(_BLOCK_BYTES, -(-expected // _MAX_BLOCKS))
                )

    def _write_remote(self, target: str, block: int) -> Iterator[BinaryIO]:
        # A bucket shows an object only once it is complete. Elsewhere, the file is renamed when
        # complete.
        temporary = target if self._is_bucket else f"{target}.making"
        if not self._is_bucket:
            self._call(lambda: self._fs.makedirs(target.rpartition("/")[0], exist_ok=True))
        file: Any = self._call(lambda: self._fs.open(temporary, "wb", block_size=block))
        try:
            yield cast(BinaryIO, _TimedWriter(file, self._operation_limit_s))
        except BaseException as error:
            # Closing the file would publish an incomplete one. After a timeout, do not wait for the
            # host again.
            if not isinstance(error, TimeoutError):
                with suppress(Exception):
                    self._call(lambda: self._discard(file, None if self._is_bucket else temporary))
            if self._is_bucket:
                file.closed = True
            raise
        self._call(file.close)
        if not self._is_bucket:
            with suppress(FileNotFoundError):
                self._call(lambda: self._fs.rm_file(target))
            self._call(lambda: self._fs.mv(temporary, target))

    def _discard(self, file: Any, temporary: str | None) -> None:
        """Discard an incomplete file."""
        with suppress(Exception):
            file.discard()
        if temporary is not None:
            file.close()
            self._fs.rm_file(temporary)

    def remove(self, path: str) -> None:
        """Remove a file, if it exists."""
        target = self._target(path)
        with suppress(NotFound), self._translate_errors(path):
            self._call(lambda: self._fs.rm_file(target))

    def put(self, path: str, content: bytes) -> StoredFile:
        """Write a small file."""
        return self.write(path, [content])

    def write(self, path: str, pieces: Iterable[bytes], *, expected: int = 0) -> StoredFile:
        """Write a file from pieces; an incomplete file is never visible under its name."""
        digest, size = hashlib.sha256(), 0
        with self.open(path, expected=expected) as file:
            for piece in pieces:
                file.write(piece)
                digest.update(piece)
                size += len(piece)
        return StoredFile(path=path, bytes=size, sha256=digest.hexdigest())

    def read_pieces(self, file: StoredFile) -> Iterator[bytes]:
        """Yield the bytes of a file, and verify its size and digest.

        Raises
        ------
        Corrupt
            If the file is missing, or its bytes are not those that were written.
        """
        digest, size = hashlib.sha256(), 0
        try:
            target = self._target(file.path, reading=True)
            with self._translate_errors(file.path):
                for piece in self._iter_bytes(target, file.bytes):
                    digest.update(piece)
                    size += len(piece)
                    yield piece
        except NotFound as error:
            raise Corrupt(
                f"{self.display_address}/{file.path}: missing; the {self._content_name} is damaged"
            ) from error
        if (size, digest.hexdigest()) != (file.bytes, file.sha256):
            raise Corrupt(
                f"{self.display_address}/{file.path}: expected the {file.bytes} bytes that were "
                f"written, found {size} bytes that differ; the {self._content_name} is damaged"
            )

    def _iter_bytes(self, target: str, size: int) -> Iterator[bytes]:
        """Yield the bytes of a file; at most a piece more than its expected size."""
        content = self._read_small_object(target, size)
        if content is not None:
            yield content
            return
        stream = self._call(lambda: self._fs.open(target, "rb", block_size=_BLOCK_BYTES))
        try:
            received = 0
            while received <= size and (piece := self._call(lambda: stream.read(PIECE_BYTES))):
                received += len(piece)
                yield piece
        finally:
            with suppress(TimeoutError):
                self._call(stream.close)

    def _read_small_object(self, target: str, size: int) -> bytes | None:
        """Return an object's bytes from a single request, at most one more than expected.

        Opening a file takes a request of its own, which doubles the time of a small file. Returns
        None if the file is large or empty, is not in a bucket, or is shorter than its range.
        """
        if not self._is_bucket or not 0 < size <= _BLOCK_BYTES:
            return None
        try:
            return bytes(self._call(lambda: self._fs.cat_file(target, start=0, end=size + 1)))
        except (FileNotFoundError, TimeoutError):
            raise
        except (OSError, ValueError):  # opening the file gives the reason
            return None

    def read_file(self, file: StoredFile) -> bytes:
        """Return the verified bytes of a small file; Corrupt above `MAX_READ_BYTES`."""
        if file.bytes > MAX_READ_BYTES:
            raise Corrupt(
                f"{self.display_address}/{file.path}: expected at most {MAX_READ_BYTES} bytes, "
                f"the record says {file.bytes}"
            )
        return b"".join(self.read_pieces(file))

    def _target(self, path: str, *, reading: bool = False) -> str:
        """Return the path of a file; Corrupt if it leads out of a confined folder."""
        target = f"{self._root}/{path}"
        if not self._is_confined:
            return target
        check_file_name(path)
        if self._is_local:
            folder = os.path.dirname(target)
            if os.path.realpath(folder) != folder or os.path.islink(target):
                raise Corrupt(
                    f"{self.display_address}/{path}: expected a regular file, found a symbolic "
                    f"link; the {self._content_name} is damaged"
                )
            if reading and os.path.exists(target) and not stat.S_ISREG(os.stat(target).st_mode):
                raise Corrupt(
                    f"{self.display_address}/{path}: expected a regular file; the "
                    f"{self._content_name} is damaged"
                )
        return target

    def _call(self, operation: Callable[[], T]) -> T:
        """Run one operation of the file system; TimeoutError if a remote one takes too long."""
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
                f"{self.display_address}/{path}: no such file, or the bucket or folder for it "
                "does not exist"
            ) from error
        except TimeoutError as error:
            raise Unavailable(f"{self.display_address}/{path}: {error or 'timed out'}") from error
        except Exception as error:  # every protocol has errors of its own
            disk_full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
            reason = (
                "the disk is full; free space and try again"
                if disk_full
                else _certificate_fault(error) or f"{type(error).__name__}: {redact(str(error))}"
            )
            raise Unavailable(f"{self.display_address}/{path}: {reason}") from error


def check_file_name(path: str) -> None:
    """Check that a file name from a record lies below its folder.

    Raises
    ------
    Corrupt
        For an absolute path, ``.``, ``..``, an empty segment, a backslash or a control
        character.
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
    """A file open for writing; each operation has a time limit."""

    def __init__(self, file: Any, limit_s: float) -> None:
        self._file, self._limit_s = file, limit_s

    def write(self, data: Any) -> int:
        """Write all of ``data``."""
        _run_with_timeout(self._limit_s, lambda: self._file.write(data))
        return memoryview(data).nbytes

    def flush(self) -> None:
        """No-op: closing the file makes it durable."""


def _run_with_timeout(seconds: float, operation: Callable[[], T]) -> T:
    """Run an operation in a thread, which is abandoned when the time is over.

    A call that waits for a silent host cannot be interrupted."""
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
        raise TimeoutError(f"no reply within {seconds:g} s")
    return results[0]


def _timeout_arguments(protocol: str, seconds: float) -> dict[str, Any]:
    """Return the file system arguments that limit connecting and waiting for a protocol."""
    if protocol in _SSH_PROTOCOLS:  # for paramiko
        return dict.fromkeys(
            ("timeout", "banner_timeout", "auth_timeout", "channel_timeout"),
            min(_CONNECT_TIMEOUT_S, seconds),
        )
    if protocol in ("s3", "s3a"):  # for botocore
        return {
            "config_kwargs": {
                "connect_timeout": min(_CONNECT_TIMEOUT_S, seconds),
                "read_timeout": seconds,
            }
        }
    return {}


def _authority_arguments(protocol: str, s3_ca: str) -> dict[str, Any]:
    """Return the file system arguments that name the authorities of an object store."""
    if protocol not in ("s3", "s3a") or not s3_ca:
        return {}
    check_authorities(s3_ca, "s3_ca")
    return {"client_kwargs": {"verify": s3_ca}}


def _certificate_fault(error: BaseException) -> str:
    """Return why the certificate of a host is not accepted, and the remedy; empty if it is.

    The error of the handshake is the first in a chain of those of several packages."""
    cause: BaseException | None = error
    while cause is not None and not hasattr(cause, "verify_code"):
        cause = cause.__cause__ or cause.__context__
    if not isinstance(cause, ssl.SSLCertVerificationError):
        return ""
    remedy = (
        "set s3_ca of the storageds, or AWS_CA_BUNDLE in the environment, to a PEM file of the "
        "authorities that signed it"
        if cause.verify_code in _UNKNOWN_AUTHORITY
        else "check the names and dates in the certificate of the object store"
    )
    return f"certificate verify failed: {cause.verify_message}; {remedy}"


def _open_no_follow(path: str, flags: int) -> int:
    """Open a file for writing without following symbolic links."""
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
    """Return an address with its protocol; a local path becomes an absolute file address.

    A leading ``~`` is the home folder.

    Raises
    ------
    InvalidRequest
        If ``address`` names neither a folder nor an address.
    """
    text = os.fspath(address) if isinstance(address, str | os.PathLike) else None
    if not isinstance(text, str) or not text or "\0" in text:
        raise InvalidRequest(
            f"address={address!r:.200}: expected a folder or an address; '.' is the current folder"
        )
    if "://" in text:
        return text.rstrip("/")
    # Not `as_uri`: fsspec does not decode percent-escapes.
    return f"file://{Path(os.path.expanduser(text)).absolute()}"
