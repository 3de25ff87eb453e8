"""Settings of a standalone service: keywords of `asterism.open`, or the defaults."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import ConfigDict, Field, ValidationError, field_validator, model_validator

from asterism_access.credentials.cluster_key import ClusterKey
from asterism_daemonkit.access_control import AccessControl
from asterism_daemonkit.audit_settings import AuditSettings
from asterism_daemonkit.connection_settings import ConnectionSettings
from asterism_daemonkit.exposure import insecure_addresses
from asterism_daemonkit.oidc_settings import OidcSettings
from asterism_daemonkit.request_limit_settings import RequestLimits
from asterism_daemonkit.settings import check_tls_settings, daemon_tls, invalid_setting
from asterism_daemonkit.tls import DaemonTls
from asterism_io.remote_folder_addresses import AllowedAddresses


class StandaloneSettings(RequestLimits, ConnectionSettings, OidcSettings, AuditSettings):
    """Settings of the three daemons in one process."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    memory_limit_mib: int = Field(default=512, ge=16)
    """MiB that one build may use beyond an idle process."""
    conditions_mib: int = Field(default=512, ge=1)
    """MiB for the cached matches of request filters."""
    heartbeat_interval_s: float = Field(default=0.5, gt=0.05, le=60)
    """Seconds between two heartbeats. In one process they cost nothing."""
    keep_versions: int = Field(default=2, ge=1, le=100)
    """Number of published versions of a space that are served."""
    allowed_addresses: str = "*"
    """Folders that jobs may read and write, in the format of metad's setting of this name. The
    default allows all, because the process can access them anyway.
    """
    quarantine_grace_s: float = Field(default=86400.0, ge=0)
    """Seconds that a removed folder stays in quarantine before it is unlinked."""
    adopting: bool = False
    """Open a folder with an older copy of its catalog, in order to adopt it."""
    fork_tasks: bool = False
    """Fork the server of tasks from this process, which must not have started a thread yet.

    Tasks then need not import their modules, which takes two seconds of a core. The server is
    executed if the process has threads."""
    ready_timeout_s: float = Field(default=300.0, gt=0)
    """Seconds that opening may take.

    The first start compiles kernels for one or two minutes, and for longer on a busy host.
    """

    tls_cert: str = ""
    """PEM file of the certificate of open ports, followed by its chain. Empty: no TLS."""
    tls_key: str = ""
    """PEM file of the private key of `tls_cert`, without a passphrase."""
    tls_ca: str = ""
    """PEM file of the authorities of clients' certificates."""
    tls_client_auth: Literal["none", "required"] = "none"
    """`required`: demand a certificate signed by `tls_ca` of every client."""
    cluster_key_file: str = ""
    """File with the key that signs tickets: base64 of at least 32 random bytes. It turns access
    control of open ports on. Empty: every caller may do everything."""
    insecure: bool = False
    """Open ports on other addresses than loopback ones even without `tls_cert` or
    `cluster_key_file`."""

    @model_validator(mode="after")
    def _are_tls_settings(self) -> Self:
        check_tls_settings(self.tls_cert, self.tls_key, self.tls_ca, self.tls_client_auth)
        return self

    @field_validator("allowed_addresses")
    @classmethod
    def _are_addresses(cls, value: str) -> str:
        AllowedAddresses.parse(value, daemon="metad")
        return value

    def tls(self) -> DaemonTls | None:
        """Return the certificates of open ports; None without TLS.

        Raises
        ------
        InvalidRequest
            If a file cannot be used, or the certificate is not valid now.
        """
        return daemon_tls(self)

    def access_control(self) -> AccessControl | None:
        """Return the access control of open ports; None if every caller may do everything.

        Raises
        ------
        InvalidRequest
            If the file of keys, or a setting of tokens, cannot be used.
        """
        if not self.cluster_key_file:
            return None
        return AccessControl(ClusterKey(self.cluster_key_file), self.tokens(), "graphd")

    def insecure_addresses(self, *, listen: str, http_listen: str) -> list[str]:
        """Return the addresses that other hosts reach without TLS or access control.

        Raises
        ------
        InvalidRequest
            If there are some, and `insecure` does not permit it.
        """
        return insecure_addresses({"listen": listen, "http_listen": http_listen}, self)

    @classmethod
    def of(cls, values: dict[str, Any]) -> StandaloneSettings:
        """Return settings from keywords; InvalidRequest names the first wrong one."""
        try:
            return cls(**values)
        except ValidationError as error:
            raise invalid_setting(error) from error
