"""Certificate files: contexts with them, checks of their content, and reloading after changes.

A renewed certificate needs no restart. A new file that cannot be used is logged once, and the old
certificate stays."""

from __future__ import annotations

import logging
import os
import ssl
import stat
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from asterism_proto.errors import InvalidRequest

logger = logging.getLogger(__name__)

_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""Ciphers of TLS 1.2: authenticated encryption with forward secrecy. Those of 1.3 all are."""
_NOT_YET_VALID, _EXPIRED, _WRONG_PURPOSE = 9, 10, 26
"""Codes of OpenSSL for a certificate that fails to verify."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate with its chain, and its private key, both as PEM."""

    cert: bytes
    key: bytes


def new_context(protocol: ssl._SSLMethod) -> ssl.SSLContext:
    """Return a context for TLS 1.2 and above, with ciphers that have forward secrecy."""
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_CIPHERS)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    return context


def load_key_pair(context: ssl.SSLContext, cert: str, key: str, *, prefix: str) -> KeyPair:
    """Make a context show a certificate, and return the bytes of its files.

    Parameters
    ----------
    context : ssl.SSLContext
    cert, key : str
        PEM files.
    prefix : str
        Start of the names of the two options in messages: ``"tls_"`` for ``tls_cert``.

    Raises
    ------
    InvalidRequest
        If a file is missing or malformed, the key belongs to another certificate, or the
        certificate has expired or is not valid yet.
    """
    if not cert or not key:
        absent, present = ("key", "cert") if cert else ("cert", "key")
        raise InvalidRequest(
            f"{prefix}{present}={cert or key!r}: expected {prefix}{absent} with it; give both files"
        )
    pair = KeyPair(_read(cert, f"{prefix}cert"), _read(key, f"{prefix}key"))
    if b"-----BEGIN CERTIFICATE-----" not in pair.cert:
        raise InvalidRequest(f"{prefix}cert={cert!r}: expected a certificate in PEM form")
    if b"PRIVATE KEY-----" not in pair.key:
        raise InvalidRequest(f"{prefix}key={key!r}: expected a private key in PEM form")
    if b"ENCRYPTED" in pair.key:
        raise InvalidRequest(
            f"{prefix}key={key!r}: expected a key without a passphrase; remove it with "
            "`openssl pkey`, and protect the file instead"
        )
    try:
        context.load_cert_chain(cert, key, password="")
    except ssl.SSLError as error:
        if "MISMATCH" in (error.reason or ""):
            raise InvalidRequest(
                f"{prefix}key={key!r}: expected the key of the certificate in {cert!r}; it belongs "
                "to another one"
            ) from error
        raise InvalidRequest(
            f"{prefix}cert={cert!r}: expected a certificate and its key in PEM form "
            f"({reason_of(error)})"
        ) from error
    check_certificate(cert, key, name=f"{prefix}cert")
    return pair


def check_certificate(cert: str, key: str, *, name: str, purposes: Sequence[str] = ()) -> None:
    """Check that a certificate is valid now, and for some purposes.

    It is verified in a handshake of this process with itself, as a peer verifies it.

    Parameters
    ----------
    cert, key : str
        PEM files, which `load_key_pair` accepts.
    name : str
        Name of the option in messages.
    purposes : sequence of {"server", "client"}
        Sides of a connection on which the certificate is to be shown.

    Raises
    ------
    InvalidRequest
        If the certificate has expired, is not valid yet, or is for other purposes only.
    """
    fault = _self_test(cert, key)
    if fault is None:
        return
    side, error = fault
    if error.verify_code in (_EXPIRED, _NOT_YET_VALID):
        raise InvalidRequest(
            f"{name}={cert!r}: expected a certificate that is valid now ({error.verify_message}); "
            "renew it, or set the clock of this host"
        ) from error
    if error.verify_code == _WRONG_PURPOSE and side in purposes:
        usage = "serverAuth" if side == "server" else "clientAuth"
        raise InvalidRequest(
            f"{name}={cert!r}: expected a certificate for a {side}; its extended key usage needs "
            f"{usage}"
        ) from error


def subject_name(cert: str, key: str) -> str:
    """Return the first name or address that a certificate is for; empty if it has none."""
    names: list[str] = []
    _self_test(cert, key, names)
    return names[0] if names else ""


def _self_test(
    cert: str, key: str, names: list[str] | None = None
) -> tuple[str, ssl.SSLCertVerificationError] | None:
    """Return the side and the error of a handshake with itself; None if it succeeds."""
    sides: dict[str, ssl.SSLObject] = {}
    incoming = {"server": ssl.MemoryBIO(), "client": ssl.MemoryBIO()}
    for side, other, protocol in (
        ("server", "client", ssl.PROTOCOL_TLS_SERVER),
        ("client", "server", ssl.PROTOCOL_TLS_CLIENT),
    ):
        context = new_context(protocol)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        context.load_verify_locations(cert)
        context.load_cert_chain(cert, key, password="")
        sides[side] = context.wrap_bio(
            incoming[side], incoming[other], server_side=side == "server"
        )
    for _ in range(3):  # flights of a handshake
        for side in ("client", "server"):
            try:
                sides[side].do_handshake()
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLCertVerificationError as error:  # of the certificate of the other side
                return ("server" if side == "client" else "client"), error
    if names is not None:
        peer = sides["client"].getpeercert() or {}
        names += [str(entry[1]) for entry in peer.get("subjectAltName", ())]
    return None


class FileReloader(Generic[T]):
    """Value made from files, and made again after the files change.

    Without a lock, so that a forked child can use it: concurrent callers may read the files twice.

    Parameters
    ----------
    paths : sequence of str
        Files; empty names are left out.
    load : callable
        Returns the value, or raises InvalidRequest.
    events : str
        First word of the log events: ``certificates`` for ``certificates_reloaded``.
    interval_s : float
        Seconds between two looks at the files.
    clock : callable
        Returns seconds.
    """

    def __init__(
        self,
        paths: Sequence[str],
        load: Callable[[], T],
        *,
        events: str = "certificates",
        interval_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._paths = [path for path in paths if path]
        self._load = load
        self._events = events
        self._interval_s = interval_s
        self._clock = clock
        self._looked_s = clock()
        self._seen = self._look()
        self._current = (load(), 0)

    def current(self) -> tuple[T, int]:
        """Return the value, and a number that grows each time it is made again."""
        now = self._clock()
        if 0 <= now - self._looked_s < self._interval_s:
            return self._current
        self._looked_s = now
        seen = self._look()
        if seen != self._seen:
            self._seen = seen
            try:
                self._current = (self._load(), self._current[1] + 1)
                logger.info("%s_reloaded", self._events, extra={"files": ",".join(self._paths)})
            except InvalidRequest as error:
                logger.warning("%s_not_reloaded", self._events, extra={"reason": error.message})
        return self._current

    def _look(self) -> tuple[tuple[int, int, int] | None, ...]:
        return tuple(map(_stamp, self._paths))


def load_authorities(context: ssl.SSLContext, path: str, name: str) -> bytes:
    """Make a context trust the authorities in a file, and return the file's bytes.

    Parameters
    ----------
    context : ssl.SSLContext
    path : str
        PEM file.
    name : str
        Name of the option in messages.

    Raises
    ------
    InvalidRequest
        If the file cannot be read, or has no certificate.
    """
    content = _read(path, name)
    try:
        context.load_verify_locations(cadata=content.decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        raise InvalidRequest(
            f"{name}={path!r}: expected certificates of authorities in PEM form"
        ) from error
    return content


def check_authorities(path: str, name: str) -> None:
    """Check a file of certificate authorities; `load_authorities` has the errors."""
    load_authorities(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), path, name)


def _read(path: str, name: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise InvalidRequest(
            f"{name}={path!r}: expected a readable file ({(error.strerror or str(error)).lower()})"
        ) from error


def reason_of(error: OSError) -> str:
    """Return OpenSSL's reason of an error in lower case; empty if it is not OpenSSL's."""
    reason = error.reason if isinstance(error, ssl.SSLError) else None
    return (reason or "").replace("_", " ").lower()


def _stamp(path: str) -> tuple[int, int, int] | None:
    """Return what changes when a file is replaced, written or given rights; None if missing."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):  # also a name that no file can have
        return None
    return status.st_ctime_ns, status.st_size, status.st_ino


def is_readable_by_others(path: str) -> bool:
    """Return whether users other than the owner and its group may read a file."""
    return bool(os.stat(path).st_mode & stat.S_IROTH)
