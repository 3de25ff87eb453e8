"""Credentials of a client: where its API key or token comes from, and how a request carries it."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Self

from asterism.transport.tls import REMEDIES
from asterism_io.loopback import is_loopback_host
from asterism_io.tls_options import TlsOptions
from asterism_proto.errors import AUTHORIZATION_KEY, InvalidRequest, Unauthenticated

ENVIRONMENT = {"key": "ASTERISM_API_KEY", "file": "ASTERISM_API_KEY_FILE"}
"""Environment variables that hold a key or token, or name a file with one."""
MAX_LENGTH = 7_000
"""Maximum characters of a key or token: gRPC refuses headers of more than 8 KiB."""

Credential = str | Callable[[], str] | None
"""An API key or token, or a function that returns it; None: the environment."""
_NOT_IN_HEADER = re.compile(r"[^!-~]")
"""Characters that no key or token has: spaces, control characters, and all beyond ASCII."""


class CredentialFile:
    """Function that returns the key in a file; a changed file is read again.

    Parameters
    ----------
    path : path
        File with one key or token; a leading ``~`` is the home folder. Spaces and line feeds
        around it are left out.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.expanduser(path)
        self._stamp: tuple[int, ...] | None = None
        """Time, size and inode of the file when it was read."""
        self._key = ""

    def __reduce__(self) -> tuple[Any, ...]:
        return CredentialFile, (self.path,)

    def __call__(self) -> str:
        """Return the key; while the file cannot be read, the last one.

        Raises
        ------
        InvalidRequest
            If the file has never been readable.
        """
        try:
            status = os.stat(self.path)
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
            if stamp != self._stamp:
                with open(self.path, encoding="ascii") as file:
                    self._key = file.read(2 * MAX_LENGTH).strip()
                self._stamp = stamp
        except (OSError, ValueError) as error:
            if self._stamp is None:
                reason = error.strerror if isinstance(error, OSError) else "not a text of ASCII"
                raise InvalidRequest(
                    f"api_key_file={self.path!r}: expected a readable file with an API key or "
                    f"token ({reason})"
                ) from None
        return self._key


class Credentials:
    """Key or token of a client, as the metadata of its requests.

    Parameters
    ----------
    argument : str
        Name of the argument, option or variable that gave it, for messages.
    source : str or callable
        The key or token, or a function that returns it. It is called before each request.

    Raises
    ------
    InvalidRequest
        If ``source`` is no key, token or function.

    Notes
    -----
    Pickles contain functions and names of files, but no key. Only `multiprocessing` passes keys, to
    the processes that it starts. A copy from any other pickle, such as one on a disk, reads the
    environment of its process.
    """

    def __init__(self, argument: str, source: str | Callable[[], str]) -> None:
        # Commands without credentials do not wait for this import.
        from multiprocessing.reduction import ForkingPickler

        ForkingPickler.register(Credentials, _reduce_for_worker)
        self.argument = (
            f"api_key_file={source.path!r}" if isinstance(source, CredentialFile) else argument
        )
        self._source = source
        self._sent: tuple[str, tuple[tuple[str, str], ...]] = ("", ())
        """Last key or token, and its metadata."""
        if isinstance(source, str | CredentialFile):
            self.metadata()
        elif not callable(source):
            raise InvalidRequest(
                f"{argument}: expected a key or token as text, or a function that returns it; "
                f"found a value of type {type(source).__name__}"
            )

    def __repr__(self) -> str:
        return f"Credentials({self.argument})"

    def __reduce__(self) -> tuple[Any, ...]:
        if isinstance(self._source, str | _MissingKey):
            return _read_again, (self.argument,)
        return Credentials, (self.argument, self._source)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """Return the metadata of the next request.

        Raises
        ------
        InvalidRequest
            If a function returns no key or token.
        Unauthenticated
            If a function fails.
        """
        text = self._source if isinstance(self._source, str) else self._call(self._source)
        if text != self._sent[0] or not text:
            _check(self.argument, text)
            self._sent = (text, ((AUTHORIZATION_KEY, f"Bearer {text}"),))
        return self._sent[1]

    def _call(self, function: Callable[[], str]) -> str:
        if isinstance(function, CredentialFile | _MissingKey):
            return function()
        try:
            return function()
        except Exception as error:
            raise Unauthenticated(
                f"{self.argument}: the function that returns it raised {type(error).__name__}"
            ) from error


class _MissingKey:
    """Source of a copy that was pickled without its key, in a process without another one."""

    def __init__(self, argument: str) -> None:
        self._argument = argument

    def __call__(self) -> str:
        raise Unauthenticated(
            f"{self._argument}: left out of a pickled client; set {ENVIRONMENT['key']} or "
            f"{ENVIRONMENT['file']} in this process, or connect with a function in the place of "
            "the key"
        )


def credentials_of(api_key: Credential = None, token: Credential = None) -> Credentials | None:
    """Return the credentials of a connection; None: without any.

    Parameters
    ----------
    api_key, token : str or callable, optional
        Arguments of ``asterism.connect``. If both are None, the environment is read.

    Raises
    ------
    InvalidRequest
        If both are given, or one is invalid.
    """
    if api_key is not None and token is not None:
        raise InvalidRequest("api_key, token: expected one of them; leave one out")
    if api_key is not None:
        return Credentials("api_key", api_key)
    if token is not None:
        return Credentials("token", token)
    # A client has no settings of its own.
    if key := os.environ.get(ENVIRONMENT["key"]):  # noqa: TID251
        return Credentials(ENVIRONMENT["key"], key)
    if path := os.environ.get(ENVIRONMENT["file"]):  # noqa: TID251
        return Credentials(ENVIRONMENT["file"], CredentialFile(path))
    return None


def warn_if_exposed(
    credentials: Credentials | None,
    addresses: Sequence[str],
    tls: TlsOptions | None,
    *,
    stacklevel: int = 3,
) -> None:
    """Warn if others on the network can read the credentials.

    They can if a connection leaves this host without TLS.
    """
    exposed = [address for address in addresses if not is_loopback(address)]
    if credentials is None or tls is not None or not exposed:
        return
    warnings.warn(
        f"{credentials.argument}: sent without TLS to {', '.join(exposed)}, so others on the "
        f"network can read it; {REMEDIES.enable}",
        UserWarning,
        stacklevel=stacklevel,
    )


def is_loopback(address: str) -> bool:
    """Return whether only processes of this host can connect to ``host:port``."""
    return is_loopback_host(address.rpartition(":")[0])


def _check(argument: str, text: object) -> None:
    """Raise InvalidRequest, without the text, unless it can be sent as a key or token."""
    if not isinstance(text, str):
        raise InvalidRequest(
            f"{argument}: expected a key or token as text, found a value of type "
            f"{type(text).__name__}"
        )
    if not text:
        raise InvalidRequest(f"{argument}: expected a key or token, found an empty text")
    if len(text) > MAX_LENGTH:
        raise InvalidRequest(
            f"{argument}: expected at most {MAX_LENGTH:,} characters, found {len(text):,}"
        )
    if (wrong := _NOT_IN_HEADER.search(text)) is not None:
        raise InvalidRequest(
            f"{argument}: expected visible ASCII characters without spaces, found another one at "
            f"position {wrong.start()}; pass the key or token alone, without 'Bearer ' and line "
            "feeds"
        )


def _reduce_for_worker(credentials: Credentials) -> tuple[Any, ...]:
    """Pickle credentials for a process that `multiprocessing` starts or has started."""
    return Credentials, (credentials.argument, credentials._source)


def _read_again(argument: str) -> Credentials:
    """Return the credentials in this process's environment, in the place of a key left out."""
    return credentials_of() or Credentials(argument, _MissingKey(argument))
