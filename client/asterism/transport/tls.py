"""TLS of a client: what callers pass as ``tls``, and the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

from asterism_io.tls_options import SYSTEM_CA, TlsOptions, TlsRemedies
from asterism_proto.errors import InvalidRequest

ENVIRONMENT = {
    "ca": "ASTERISM_TLS_CA",
    "cert": "ASTERISM_TLS_CERT",
    "key": "ASTERISM_TLS_KEY",
    "server_name": "ASTERISM_TLS_SERVER_NAME",
}
"""Environment variable of each option."""
REMEDIES = TlsRemedies(
    enable="connect with tls='ca.pem', --tls-ca ca.pem or ASTERISM_TLS_CA",
    disable="connect without tls, --tls-ca and ASTERISM_TLS_CA",
    identify="connect with tls=TlsOptions(ca=..., cert=..., key=...), or with --tls-cert and "
    "--tls-key",
)

Tls = TlsOptions | bool | str | os.PathLike[str] | None
"""Options; a file of certificate authorities; True: those of the system; None: the environment."""


def tls_from(values: Mapping[str, str | None]) -> TlsOptions | None:
    """Return the options with these fields; None if none of them has a value."""
    given = {field: value for field, value in values.items() if value}
    return TlsOptions(**given) if given else None


def tls_options(tls: Tls) -> TlsOptions | None:
    """Return the options of a connection, with ``~`` of files expanded; None: without TLS.

    Raises
    ------
    InvalidRequest
        If ``tls`` is of another type.
    """
    if isinstance(tls, TlsOptions):
        return _with_home(tls)
    if tls is None:
        # A client has no settings of its own.
        options = tls_from(
            {field: os.environ.get(name) for field, name in ENVIRONMENT.items()}  # noqa: TID251
        )
        return None if options is None else _with_home(options)
    if isinstance(tls, bool):
        return TlsOptions(ca=SYSTEM_CA) if tls else None
    if isinstance(tls, str | os.PathLike) and (path := os.fspath(tls)):
        return _with_home(TlsOptions(ca=path))
    raise InvalidRequest(
        f"tls={tls!r}: expected True, a file of certificate authorities, or TlsOptions"
    )


def _with_home(options: TlsOptions) -> TlsOptions:
    files = {name: getattr(options, name) for name in ("ca", "cert", "key")}
    at_home = {name: os.path.expanduser(path) for name, path in files.items()}
    return options if at_home == files else replace(options, **at_home)
