"""TLS of the connections that this process opens: certificate files, contexts, gRPC channels.

Clients and daemons share it; servers are in `asterism_daemonkit.tls`."""

from __future__ import annotations

import logging
import re
import socket
import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass

import grpc

from asterism_io.certificate_files import (
    FileReloader,
    load_authorities,
    load_key_pair,
    new_context,
    reason_of,
)
from asterism_io.tls_options import SYSTEM_CA, TlsOptions, TlsRemedies
from asterism_proto.errors import Retry, Unavailable

logger = logging.getLogger(__name__)

_CHECK_INTERVAL_S = 1.0
"""Seconds between two looks at the files of a client."""
_EXPLANATION_TIMEOUT_S = 5.0
"""Seconds to find out why a handshake failed. Its peer replied to it, so it is reachable."""
_FAILED_HANDSHAKE = re.compile(
    r"(?i)failed to connect.*(handshak|verification check|socket closed|reset|EOF)"
)
"""Texts of gRPC about a connection that ended before its first call."""


class TlsMismatch(Unavailable):
    """The two ends of a connection disagree on TLS or on a certificate."""

    retry = Retry.NEVER


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
        self._files = FileReloader([self._ca, options.cert, options.key], self._load)
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
            reason = reason_of(error)
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
        return "alert" in reason_of(error)
    except OSError:
        return False


def _connect(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host.strip("[]"), int(port)), _EXPLANATION_TIMEOUT_S)
