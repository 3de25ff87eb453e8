"""What a metad is told at its start: environment (``ASTERISM_METAD_...``) or flags, read once in
`metad.__main__`.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, field_validator, model_validator
from pydantic_settings import SettingsConfigDict

from asterism_daemonkit.settings import DaemonSettings
from asterism_io.allowed_addresses import AllowedAddresses
from metad.catalog.pins import PinLimits
from metad.model.jobs import JobPolicy


class MetadSettings(DaemonSettings):
    """Settings of a metad."""

    model_config = SettingsConfigDict(env_prefix="ASTERISM_METAD_")

    data: Path = Path("data/metad")
    """Folder of the catalog. One metad owns it."""
    listen: str = "127.0.0.1:9559"
    """host:port of the gRPC door; port 0 takes a free one."""
    http_listen: str = "127.0.0.1:19559"
    """host:port of the HTTP door; port 0 takes a free one."""
    grpc_workers: int = Field(default=128, ge=4, le=4096)
    """Threads that answer gRPC calls. Every storaged and graphd keeps one of them with its parked
    poll.
    """
    stop_grace_s: float = Field(default=5.0, ge=0, le=600)
    """Seconds that calls under way get when the daemon stops. Parked polls are sent home at
    once.
    """

    lease_s: float = Field(default=5.0, gt=0)
    """Seconds without a heartbeat after which a daemon is offline. A larger value delays the
    detection of failures; a smaller one reports slow daemons as offline."""
    tick_s: float = Field(default=0.1, gt=0, le=1.0)
    """Seconds between two looks at leases and retries while a job runs. While none does, leases are
    looked at when they end, and the rest twenty times less often.
    """

    max_attempts: int = Field(default=3, ge=1, le=100)
    """Failed attempts of a task before its job fails."""
    retry_backoff_s: float = Field(default=1.0, gt=0)
    """Before the second attempt, give or take a half; doubled at each further one."""
    retry_backoff_limit_s: float = Field(default=60.0, gt=0)
    """The longest back-off."""
    host_away_limit_s: float = Field(default=600.0, gt=0)
    """A job whose storaged stays away longer fails."""
    keep_jobs_s: float = Field(default=7 * 86400.0, gt=0)
    """How long ended jobs, and loads that were abandoned, are remembered."""

    keep_builds_s: float = Field(default=86400.0, ge=0)
    """How long a failed or stopped build can be recovered from where it was; then its storageds
    remove what it left.
    """
    load_lease_s: float = Field(default=7 * 86400.0, gt=0)
    """An open load whose client is not heard of for longer is abandoned, and its blocks are
    removed.
    """

    keep_versions: int = Field(default=2, ge=1, le=100)
    """Published versions of a space that are served, beside those that are pinned."""
    retire_after_s: float = Field(default=60.0, ge=0)
    """How long every graphd must have known a newer version before one too many goes: longer than
    the longest request.
    """
    pin_limit_s: float = Field(default=86400.0, ge=1)
    """The longest term of a pin."""
    pins_per_space: int = Field(default=1000, ge=1)
    """Pins that a space may have at a time."""

    allowed_addresses: str = ""
    """Folders that jobs may read and write, with commas between: file:///srv/exports,
    s3://bucket/prefix, sftp://host/folder. Empty: none but each storaged's own folder of exports.
    `*`: all, for development machines. Set it for metad and for every storaged alike."""

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
        """What may be pinned."""
        return PinLimits(max_term_ms=int(self.pin_limit_s * 1000), max_pins=self.pins_per_space)

    def job_policy(self) -> JobPolicy:
        """The machine's share of the settings."""
        return JobPolicy(
            max_attempts=self.max_attempts,
            backoff_ms=int(self.retry_backoff_s * 1000),
            backoff_limit_ms=int(self.retry_backoff_limit_s * 1000),
            away_limit_ms=int(self.host_away_limit_s * 1000),
            keep_jobs_ms=int(self.keep_jobs_s * 1000),
        )
