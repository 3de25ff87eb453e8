"""Options of TLS connections, which commands read without gRPC (see `asterism_io.client_tls`)."""

from __future__ import annotations

from dataclasses import dataclass

SYSTEM_CA = "system"
"""Name of the certificate authorities that this system trusts, in the place of a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsOptions:
    """Files and names of TLS connections to a service.

    Parameters
    ----------
    ca : str
        PEM file of the certificate authorities that sign the service's certificates. Empty, or
        ``"system"``: those that this system trusts.
    cert : str
        PEM file of the certificate that this client shows, followed by its chain. Empty: none.
    key : str
        PEM file of the certificate's private key, without a passphrase.
    server_name : str
        Name that the service's certificate must contain. Empty: the host of the address.
    """

    ca: str = ""
    cert: str = ""
    key: str = ""
    server_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsRemedies:
    """Remedies in messages, in the words of the caller's settings."""

    enable: str
    """How to call a service that speaks TLS."""
    disable: str
    """How to call a service that does not."""
    identify: str
    """How to show a certificate."""
