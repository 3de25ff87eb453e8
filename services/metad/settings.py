"""Settings of metad, read once at start from ``ASTERISM_METAD_...`` variables or flags."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, field_validator, model_validator
from pydantic_settings import SettingsConfigDict

from asterism_daemonkit.audit_settings import AuditSettings
from asterism_daemonkit.settings import DaemonSettings
from asterism_io.remote_folder_addresses import AllowedAddresses
from metad.catalog.pins import PinLimits
from metad.model.jobs import JobPolicy


class MetadSettings(AuditSettings, DaemonSettings):
    """Settings of a metad."""

    model_config = SettingsConfigDict(env_prefix="ASTERISM_METAD_")

    data: Path = Path("data/metad")
    """Folder of the catalog. Exactly one metad may use it."""
    listen: str = "127.0.0.1:9559"
    """host:port of the gRPC server; port 0 picks a free one."""
    http_listen: str = "127.0.0.1:19559"
    """host:port of the HTTP server; port 0 picks a free one."""
    grpc_workers: int = Field(default=128, ge=4, le=4096)
    """gRPC calls that run at a time. The parked poll of each storaged and graphd is one of them."""
    stop_grace_s: float = Field(default=5.0, ge=0, le=600)
    """Seconds that running calls get to finish at shutdown. Parked polls return at once."""

    lease_s: float = Field(default=6.0, gt=0)
    """Seconds without a heartbeat after which a daemon is offline.

    A larger value delays the detection of failures; a smaller one reports slow daemons as
    offline."""
    tick_s: float = Field(default=0.1, gt=0, le=1.0)
    """Seconds between two checks of leases and retries while a job runs.

    Without a running job, leases are checked when they end, and everything else one twentieth as
    often."""

    max_attempts: int = Field(default=3, ge=1, le=100)
    """Failed attempts of a task before its job fails."""
    retry_backoff_s: float = Field(default=1.0, gt=0)
    """Seconds before the second attempt, give or take a half; doubled for each further one."""
    retry_backoff_limit_s: float = Field(default=60.0, gt=0)
    """Upper bound of the retry back-off, in seconds."""
    host_away_limit_s: float = Field(default=600.0, gt=0)
    """Seconds that a storaged may stay offline before its job fails."""
    keep_jobs_s: float = Field(default=7 * 86400.0, gt=0)
    """Seconds for which ended jobs and abandoned loads are remembered."""

    keep_builds_s: float = Field(default=86400.0, ge=0)
    """Seconds during which a failed or stopped build can resume.

    Afterwards its storageds delete its data."""
    load_lease_s: float = Field(default=7 * 86400.0, gt=0)
    """Seconds without a request of the client after which an open load is abandoned.

    Its blocks are then removed."""

    keep_versions: int = Field(default=2, ge=1, le=100)
    """Published versions that each space serves, not counting pinned ones."""
    retire_after_s: float = Field(default=60.0, ge=0)
    """Seconds for which every graphd must know a newer version before an old one is retired.

    Set it longer than the longest request."""
    pin_limit_s: float = Field(default=86400.0, ge=1)
    """Longest term of a pin, in seconds."""
    pins_per_space: int = Field(default=1000, ge=1)
    """Maximum number of pins that a space has at a time."""

    allowed_addresses: str = ""
    """Comma-separated folders that jobs may read and write.

    Examples: file:///srv/exports, s3://bucket/prefix, sftp://host/folder. Empty allows only each
    storaged's own folder of exports. `*` allows every address, for development machines. Set the
    same value for metad and for every storaged."""

    @field_validator("allowed_addresses")
    @classmethod
    def _are_addresses(cls, value: str) -> str:
        AllowedAddresses.parse(value, daemon="metad")
        return value

    @model_validator(mode="after")
    def _times_fit(self) -> MetadSettings:
        if self.lease_s <= 3 * self.heartbeat_interval_s:
            raise ValueError(
                f"lease_s={self.lease_s}: expected more than three heartbeat intervals "
                f"({3 * self.heartbeat_interval_s} s), so that two may be lost"
            )
        if self.retry_backoff_limit_s < self.retry_backoff_s:
            raise ValueError(
                f"retry_backoff_limit_s={self.retry_backoff_limit_s}: expected at least "
                f"retry_backoff_s={self.retry_backoff_s}"
            )
        if self.host_away_limit_s <= self.lease_s:
            raise ValueError(
                f"host_away_limit_s={self.host_away_limit_s}: expected more than "
                f"lease_s={self.lease_s}, after which a host is offline"
            )
        return self

    def addresses(self) -> AllowedAddresses:
        """Return the addresses that jobs may name."""
        return AllowedAddresses.parse(self.allowed_addresses, daemon="metad", reserved=self.data)

    def pin_limits(self) -> PinLimits:
        """Return the limits on pins."""
        return PinLimits(max_term_ms=int(self.pin_limit_s * 1000), max_pins=self.pins_per_space)

    def job_policy(self) -> JobPolicy:
        """Return the policy of the job machine: attempts, back-off and retention."""
        return JobPolicy(
            max_attempts=self.max_attempts,
            backoff_ms=int(self.retry_backoff_s * 1000),
            backoff_limit_ms=int(self.retry_backoff_limit_s * 1000),
            away_limit_ms=int(self.host_away_limit_s * 1000),
            keep_jobs_ms=int(self.keep_jobs_s * 1000),
        )
