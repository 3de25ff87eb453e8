"""TLS of the connections that this process opens: certificate files, contexts, gRPC channels.

Clients and daemons share it; servers are in `asterism_daemonkit.tls`. Files are read again after
they change, so that a renewed certificate needs no restart. A new file that cannot be used is
logged once, and the old certificate stays."""

from __future__ import annotations

import logging
import os
import re
import socket
import ssl
import stat
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import grpc

from asterism_io.tls_options import SYSTEM_CA, TlsOptions, TlsRemedies
from asterism_proto.errors import InvalidRequest, Retry, Unavailable

logger = logging.getLogger(__name__)

_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""Ciphers of TLS 1.2: authenticated encryption with forward secrecy. Those of 1.3 all are."""
_CHECK_INTERVAL_S = 1.0
"""Seconds between two looks at the files of a client."""
_EXPLANATION_TIMEOUT_S = 1.0
_FAILED_HANDSHAKE = re.compile(
    r"(?i)failed to connect.*(handshak|verification check|socket closed|reset|EOF)"
)
"""Texts of gRPC about a connection that ended before its first call."""
_NOT_YET_VALID, _EXPIRED, _WRONG_PURPOSE = 9, 10, 26
"""Codes of OpenSSL for a certificate that fails to verify."""

T = TypeVar("T")


class TlsMismatch(Unavailable):
    """The two ends of a connection disagree on TLS or on a certificate."""

    retry = Retry.NEVER


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
            f"({_reason_of(error)})"
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


class ReloadedFiles(Generic[T]):
    """Value made from files, and made again after the files change.

    Without a lock, so that a forked child can use it: concurrent callers may read the files twice.

    Parameters
    ----------
    paths : sequence of str
        Files; empty names are left out.
    load : callable
        Returns the value, or raises InvalidRequest.
    """

    def __init__(self, paths: Sequence[str], load: Callable[[], T]) -> None:
        self._paths = [path for path in paths if path]
        self._load = load
        self._seen = self._look()
        self._current = (load(), 0)

    def current(self) -> tuple[T, int]:
        """Return the value, and a number that grows each time it is made again."""
        seen = self._look()
        if seen != self._seen:
            self._seen = seen
            try:
                self._current = (self._load(), self._current[1] + 1)
                logger.info("certificates_reloaded", extra={"files": ",".join(self._paths)})
            except InvalidRequest as error:
                logger.warning("certificates_not_reloaded", extra={"reason": error.message})
        return self._current

    def _look(self) -> tuple[tuple[int, int, int] | None, ...]:
        return tuple(map(_stamp, self._paths))


@dataclass(frozen=True, slots=True)
class _ClientFiles:
    context: ssl.SSLContext
    credentials: grpc.ChannelCredentials


class TlsClient:
    """TLS of the connections to a service, with certificates that are reloaded.

    Parameters
    ----------
    options : TlsOptions
    prefix : str
        Start of the names of options in messages.

    Raises
    ------
    InvalidRequest
        If a file cannot be used.
    """

    def __init__(self, options: TlsOptions, *, prefix: str = "tls_") -> None:
        self.options = options
        self._ca = "" if options.ca == SYSTEM_CA else options.ca
        self._prefix = prefix
        self._files = ReloadedFiles([self._ca, options.cert, options.key], self._load)
        self._checked_at = time.monotonic()
        self._current = self._files.current()

    def version(self) -> int:
        """Return a number that grows when the files change; they are looked at once a second."""
        now = time.monotonic()
        if now - self._checked_at > _CHECK_INTERVAL_S:
            self._checked_at, self._current = now, self._files.current()
        return self._current[1]

    def channel(self, address: str, options: Sequence[tuple[str, int]]) -> grpc.Channel:
        """Return a gRPC channel to ``host:port`` with the current files."""
        self.version()
        named: list[tuple[str, int | str]] = [*options]
        if self.options.server_name:
            named.append(("grpc.ssl_target_name_override", self.options.server_name))
        return grpc.secure_channel(address, self._current[0].credentials, options=named)

    def wrap(self, connection: socket.socket, host: str, timeout_s: float) -> ssl.SSLSocket:
        """Return a connected socket after a handshake; the plain one is closed if that fails.

        Raises
        ------
        OSError
            If the handshake fails; ``ssl.SSLCertVerificationError`` if the certificate of the
            server is not accepted, and TimeoutError after ``timeout_s`` seconds.
        """
        self.version()
        wrapped: ssl.SSLSocket | None = None
        try:
            connection.settimeout(timeout_s)
            wrapped = self._current[0].context.wrap_socket(
                connection,
                server_hostname=self.options.server_name or host.strip("[]"),
                do_handshake_on_connect=False,
            )
            wrapped.do_handshake()
        except BaseException:
            (wrapped or connection).close()
            raise
        return wrapped

    def explain(self, address: str, remedies: TlsRemedies) -> str:
        """Return what a service at ``host:port`` does not accept; empty if it accepts TLS."""
        try:
            with (
                _connect(address) as connection,
                self.wrap(
                    connection, address.rpartition(":")[0], _EXPLANATION_TIMEOUT_S
                ) as wrapped,
            ):
                # In TLS 1.3, a server refuses a client's certificate after the handshake. gRPC
                # closes the connection then; otherwise it sends its settings.
                if not wrapped.recv(1):
                    return self._refusal("", remedies)
        except ssl.SSLCertVerificationError as error:
            return (
                "shows a certificate that is not accepted "
                f"({error.verify_message.rstrip('.')}); check the file of authorities, and the "
                "names and dates in the certificate"
            )
        except ssl.SSLError as error:
            reason = _reason_of(error)
            return (
                self._refusal(f" ({reason})", remedies)
                if "alert" in reason
                else f"does not speak TLS; {remedies.disable}"
            )
        except OSError:
            pass
        return ""

    def _refusal(self, reason: str, remedies: TlsRemedies) -> str:
        return (
            f"refuses the certificate of this client{reason}; check its authority and dates"
            if self.options.cert
            else f"demands a certificate of its clients{reason}; {remedies.identify}"
        )

    def _load(self) -> _ClientFiles:
        context = new_context(ssl.PROTOCOL_TLS_CLIENT)
        context.set_alpn_protocols(["h2"])  # gRPC demands it of `explain`; others ignore it
        if self._ca:
            authorities: bytes | None = load_authorities(context, self._ca, f"{self._prefix}ca")
        else:
            context.load_default_certs()
            authorities = (
                "".join(
                    map(ssl.DER_cert_to_PEM_cert, context.get_ca_certs(binary_form=True))
                ).encode()
                or None  # gRPC's own
            )
        pair = None
        if self.options.cert or self.options.key:
            pair = load_key_pair(context, self.options.cert, self.options.key, prefix=self._prefix)
        return _ClientFiles(
            context,
            grpc.ssl_channel_credentials(
                authorities, pair.key if pair else None, pair.cert if pair else None
            ),
        )


def tls_mismatch(
    details: str, *, peer: str, address: str, tls: TlsClient | None, remedies: TlsRemedies
) -> TlsMismatch | None:
    """Return the error of a call that failed because of TLS; None if TLS is not the reason.

    gRPC's text does not give the reason, so this connects once more.

    Parameters
    ----------
    details : str
        gRPC's text of the failed call.
    peer : str
        Description of the server, such as ``"graphd at 10.0.0.1:9669"``.
    address : str
        host:port of the server.
    tls : TlsClient, optional
        TLS of the failed call; None if it had none.
    remedies : TlsRemedies
    """
    if not _FAILED_HANDSHAKE.search(details):
        return None
    if tls is not None:
        fault = tls.explain(address, remedies)
    else:
        fault = f"speaks TLS; {remedies.enable}" if speaks_tls(address) else ""
    return TlsMismatch(f"{peer} {fault}") if fault else None


def speaks_tls(address: str) -> bool:
    """Return whether ``host:port`` replies to the start of a TLS handshake."""
    context = new_context(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with _connect(address) as connection, context.wrap_socket(connection):
            return True
    except ssl.SSLError as error:
        return "alert" in _reason_of(error)
    except OSError:
        return False


def _connect(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host.strip("[]"), int(port)), _EXPLANATION_TIMEOUT_S)


def _reason_of(error: OSError) -> str:
    reason = error.reason if isinstance(error, ssl.SSLError) else None
    return (reason or "").replace("_", " ").lower()


def _read(path: str, name: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise InvalidRequest(
            f"{name}={path!r}: expected a readable file ({(error.strerror or str(error)).lower()})"
        ) from error


def _stamp(path: str) -> tuple[int, int, int] | None:
    """Return what changes when a file is replaced or written; None if it is missing."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def is_readable_by_others(path: str) -> bool:
    """Return whether users other than the owner and its group may read a file."""
    return bool(os.stat(path).st_mode & stat.S_IROTH)
