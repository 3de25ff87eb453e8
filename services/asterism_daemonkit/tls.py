"""TLS of a daemon: the ports that it serves and the daemons that it calls.

One certificate serves all ports of a daemon and identifies it to the daemons that it calls. Files
are looked at in each handshake and read again if they have changed. Running connections keep the
certificate that they began with."""

from __future__ import annotations

import logging
import ssl
from dataclasses import dataclass

import grpc

from asterism_io.certificate_files import (
    FileReloader,
    check_certificate,
    is_readable_by_others,
    load_authorities,
    load_key_pair,
    new_context,
    subject_name,
)
from asterism_io.client_tls import TlsClient
from asterism_io.tls_options import TlsOptions

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _ServerFiles:
    context: ssl.SSLContext
    """Context of the binary RPC endpoint."""
    http_context: ssl.SSLContext
    grpc_configuration: grpc.ServerCertificateConfiguration


class DaemonTls:
    """TLS of one daemon, in both directions.

    Parameters
    ----------
    cert, key : str
        PEM files of the daemon's certificate, with its chain, and of its private key.
    ca : str
        PEM file of the authorities of peers' certificates. Empty: those that the system trusts.
    client_auth : bool
        Demand a certificate signed by ``ca`` of every client, on every port.
    server_name : str
        Name that the certificates of called daemons contain. Empty: the host of their address.

    Raises
    ------
    InvalidRequest
        If a file cannot be used; the message names the setting.
    """

    def __init__(
        self, *, cert: str, key: str, ca: str = "", client_auth: bool = False, server_name: str = ""
    ) -> None:
        self._cert, self._key, self._ca, self._client_auth = cert, key, ca, client_auth
        self._files = FileReloader([cert, key, ca], self._load)
        self.client = TlsClient(
            TlsOptions(ca=ca, cert=cert, key=key, server_name=server_name), prefix="tls_"
        )
        """TLS of calls to other daemons."""
        if is_readable_by_others(key):
            logger.warning("key_readable_by_others", extra={"file": key, "remedy": "chmod 600"})

    def server_context(self) -> ssl.SSLContext:
        """Return the context of a new connection to the binary RPC endpoint."""
        return self._files.current()[0].context

    def http_context(self) -> ssl.SSLContext:
        """Return the context of an HTTP server, which reloads its certificate by itself."""
        return self._files.current()[0].http_context

    def grpc_credentials(self) -> grpc.ServerCredentials:
        """Return the credentials of a gRPC port, which reload their certificate by themselves."""

        def fetch() -> grpc.ServerCertificateConfiguration:
            return self._files.current()[0].grpc_configuration

        return grpc.dynamic_ssl_server_credentials(
            fetch(), fetch, require_client_authentication=self._client_auth
        )

    def own_options(self) -> TlsOptions:
        """Return the options for calls of this daemon to itself, by any address."""
        return TlsOptions(
            ca=self._ca,
            cert=self._cert,
            key=self._key,
            server_name=subject_name(self._cert, self._key),
        )

    def _load(self) -> _ServerFiles:
        context, authorities = new_context(ssl.PROTOCOL_TLS_SERVER), None
        context.num_tickets = 0  # no connection is resumed
        http_context = new_context(ssl.PROTOCOL_TLS_SERVER)
        http_context.set_alpn_protocols(["http/1.1"])
        http_context.sni_callback = self._use_current  # also called without a server name
        pair = load_key_pair(context, self._cert, self._key, prefix="tls_")
        check_certificate(
            self._cert,
            self._key,
            name="tls_cert",
            purposes=["server", "client"] if self._client_auth else ["server"],
        )
        http_context.load_cert_chain(self._cert, self._key, password="")
        if self._client_auth:
            for each in (context, http_context):
                authorities = load_authorities(each, self._ca, "tls_ca")
                each.verify_mode = ssl.CERT_REQUIRED
        configuration = grpc.ssl_server_certificate_configuration(
            [(pair.key, pair.cert)], root_certificates=authorities
        )
        return _ServerFiles(context, http_context, configuration)

    def _use_current(
        self, connection: ssl.SSLObject | ssl.SSLSocket, name: str | None, context: ssl.SSLContext
    ) -> None:
        latest = self.http_context()
        if latest is not context:
            connection.context = latest
