"""Settings of every daemon, read from flags, the environment and defaults, in that order."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, Protocol, Self

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    CliApp,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from asterism_access.credentials.cluster_key import ClusterKey
from asterism_daemonkit.access_control import AccessControl
from asterism_daemonkit.connection_settings import ConnectionSettings
from asterism_daemonkit.exposure import insecure_addresses, insecure_from_environment
from asterism_daemonkit.http.allowed_hosts import AllowedHosts
from asterism_daemonkit.listening import split_address
from asterism_daemonkit.oidc_settings import OidcSettings
from asterism_daemonkit.setting_descriptions import describe_settings
from asterism_daemonkit.tls import DaemonTls
from asterism_proto.errors import InvalidRequest

_NO_VARIABLE = "="
"""Prefix of no variable of an environment: names of variables contain no ``=``."""


class DaemonSettings(ConnectionSettings, OidcSettings, BaseSettings):
    """Settings that all daemons share. Read once, in a daemon's `__main__`, and passed down."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        cli_kebab_case=True,
        cli_implicit_flags=True,
    )

    data: Path = Path("data")
    """Folder for all data of the daemon; created if missing. Each daemon needs its own."""
    listen: str = "127.0.0.1:0"
    """host:port of the gRPC server; port 0 picks a free one."""
    advertise: str = ""
    """host:port under which other hosts reach the gRPC server; empty: the listen address."""
    http_listen: str = "127.0.0.1:0"
    """host:port of the HTTP server; port 0 picks a free one."""
    ports_file: str = ""
    """File for the open ports and the process id as JSON, written once the daemon listens.

    Example: {"grpc": 9669, "http": 19669, "pid": 42}, and "stream" of a storaged. Empty: none."""
    http_names: str = ""
    """Further host names under which the HTTP server may be called, comma-separated.

    Examples: graph.example.com, .example.com (all names below it), * (any)."""
    tls_cert: str = ""
    """PEM file of the daemon's certificate, followed by its chain. It serves every port and is
    shown to the daemons that this one calls. A changed file is used from the next handshake on.
    Empty: no TLS."""
    tls_key: str = ""
    """PEM file of the private key of `tls_cert`, without a passphrase."""
    tls_ca: str = ""
    """PEM file of the authorities that sign the certificates of other daemons and, with
    `tls_client_auth`, of clients. Empty: those that the system trusts."""
    tls_client_auth: Literal["none", "required"] = "none"
    """`required`: demand a certificate signed by `tls_ca` of every client on every port (mutual
    TLS)."""
    tls_server_name: str = ""
    """Name that the certificates of other daemons contain. Empty: the host of their address."""
    cluster_key_file: str = ""
    """File with the keys of the cluster, one per line: base64 of at least 32 random bytes. It turns
    access control on; all daemons need the same file. The first key signs, and all keys verify. A
    changed file is used at once. Empty: every caller may do everything."""
    insecure: bool = False
    """Open ports on other addresses than loopback ones even without `tls_cert`, not encrypted, or
    without `cluster_key_file`: everyone who reaches them may do everything. If false, the daemon
    refuses to start then. The variable `ASTERISM_INSECURE` sets it for all daemons."""
    log_level: str = "INFO"
    """Log level: DEBUG (libraries too), INFO (jobs, versions, states), WARNING or ERROR."""
    log_json: bool = False
    """If true, log one JSON object per line, for collectors; else text."""
    heartbeat_interval_s: float = Field(default=1.9, gt=0.05, le=60)
    """Seconds between two heartbeats to metad. A lost daemon is noticed within a few of them."""
    poll_wait_s: float = Field(default=10.0, gt=0, le=60)
    """Seconds that a poll may wait at metad before it is repeated."""
    grpc_workers: int = Field(default=16, ge=1, le=1024)
    """gRPC calls that run at a time."""
    grpc_queue: int = Field(default=256, ge=0, le=65536)
    """gRPC calls that may wait for their turn; further calls are refused as Busy."""
    stop_grace_s: float = Field(default=10.0, ge=0, le=600)
    """Seconds that running calls get to finish when the daemon stops."""

    @field_validator("listen", "http_listen")
    @classmethod
    def _is_an_address(cls, value: str) -> str:
        split_address(value)
        return value

    @model_validator(mode="after")
    def _are_tls_settings(self) -> Self:
        check_tls_settings(self.tls_cert, self.tls_key, self.tls_ca, self.tls_client_auth)
        return self

    @classmethod
    def read(cls, arguments: list[str] | None = None) -> Self:
        """Return the settings from flags (``--listen 127.0.0.1:9669``) and the environment.

        Raises
        ------
        InvalidRequest
            Naming the first invalid setting and its value.
        """
        if {"-h", "--help"} & set(sys.argv[1:] if arguments is None else arguments):
            describe_settings(cls)
        try:
            settings = CliApp.run(cls, cli_args=arguments)
        except ValidationError as error:
            raise invalid_setting(error) from error
        settings.insecure_addresses()
        return settings

    @classmethod
    def from_keywords(cls, **values: Any) -> Self:
        """Return the settings of a daemon inside another process: keywords and defaults only.

        Variables of the environment are for processes that are one daemon.
        """
        create: Callable[..., Self] = cls  # the plugin of mypy does not know this keyword
        return create(_env_prefix=_NO_VARIABLE, **values)

    @classmethod
    def settings_customise_sources(
        cls, settings_cls: type[BaseSettings], *sources: Any, **more_sources: Any
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the usual sources, and the variable that all daemons share as the last."""
        usual = super().settings_customise_sources(settings_cls, *sources, **more_sources)
        shared = insecure_from_environment()
        return (*usual, InitSettingsSource(settings_cls, shared))

    def advertised_address(self, port: int) -> str:
        """Return the address under which other hosts reach the gRPC server on ``port``.

        It is the advertised address if set, else the listen host, with loopback for a wildcard."""
        host, _ = split_address(self.listen)
        return self.advertise or f"{'127.0.0.1' if host in ('0.0.0.0', '[::]') else host}:{port}"

    def listen_addresses(self) -> dict[str, str]:
        """Return the address of each port by the name of its setting."""
        return {"listen": self.listen, "http_listen": self.http_listen}

    def insecure_addresses(self) -> list[str]:
        """Return the addresses that other hosts reach without TLS or access control.

        Raises
        ------
        InvalidRequest
            If there are some, and `insecure` does not permit it.
        """
        return insecure_addresses(self.listen_addresses(), self)

    def allowed_hosts(self) -> AllowedHosts:
        """Return the host names under which the HTTP server may be called."""
        return AllowedHosts(self.http_names.split(","), self.advertise)

    def tls(self) -> DaemonTls | None:
        """Return the daemon's certificates; None without TLS.

        Raises
        ------
        InvalidRequest
            If a file cannot be used, or the certificate is not valid now.
        """
        return daemon_tls(self, self.tls_server_name)

    def access_control(self, role: str) -> AccessControl | None:
        """Return the access control of the daemon; None if every caller may do everything.

        Parameters
        ----------
        role : {"metad", "storaged", "graphd"}

        Raises
        ------
        InvalidRequest
            If the file of keys, or a setting of tokens, cannot be used.
        """
        if not self.cluster_key_file:
            return None
        return AccessControl(ClusterKey(self.cluster_key_file), self.tokens(), role)

    def flags(self) -> dict[str, Any]:
        """Return all settings as plain values, for ``/flags``."""
        return self.model_dump(mode="json")


def check_tls_settings(cert: str, key: str, ca: str, client_auth: str) -> None:
    """Check that the settings of TLS are given together.

    Raises
    ------
    ValueError
        Naming the setting that is missing.
    """
    if bool(cert) != bool(key):
        given, missing = ("tls_cert", "tls_key") if cert else ("tls_key", "tls_cert")
        raise ValueError(f"{given}={cert or key!r}: expected {missing} with it")
    if client_auth == "required" and not ca:
        raise ValueError(
            "tls_client_auth='required': expected tls_ca, the authorities of clients' certificates"
        )
    if (ca or client_auth == "required") and not cert:
        raise ValueError(f"tls_ca={ca!r}: expected tls_cert and tls_key with it")


class TlsSettings(Protocol):
    """Settings of the certificates of open ports."""

    @property
    def tls_cert(self) -> str:
        """PEM file of the certificate; empty: no TLS."""

    @property
    def tls_key(self) -> str:
        """PEM file of its private key."""

    @property
    def tls_ca(self) -> str:
        """PEM file of the authorities of peers."""

    @property
    def tls_client_auth(self) -> str:
        """``none`` or ``required``."""


def daemon_tls(settings: TlsSettings, server_name: str = "") -> DaemonTls | None:
    """Return the certificates that settings name; None without TLS.

    Raises
    ------
    InvalidRequest
        If a file cannot be used, or the certificate is not valid now.
    """
    if not settings.tls_cert:
        return None
    return DaemonTls(
        cert=settings.tls_cert,
        key=settings.tls_key,
        ca=settings.tls_ca,
        client_auth=settings.tls_client_auth == "required",
        server_name=server_name,
    )


def invalid_setting(error: ValidationError) -> InvalidRequest:
    """Return the error for the first invalid setting, without the wording of pydantic."""
    first = error.errors()[0]
    expected = str(first["msg"]).removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        expected = "there is no such setting"
    for bound in ("greater", "less"):
        expected = expected.replace(f"Input should be {bound}", f"expected a value {bound}", 1)
    expected = expected.replace("Input should be", "expected", 1)
    setting = ".".join(str(part) for part in first["loc"])
    # A check of several settings has no location, and its message names them.
    return InvalidRequest(f"{setting}={first.get('input')!r}: {expected}" if setting else expected)
