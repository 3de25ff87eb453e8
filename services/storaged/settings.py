"""Settings of a storaged: flags, then ``ASTERISM_STORAGED_...``, then these defaults."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pydantic import Field, field_validator
from pydantic_settings import SettingsConfigDict

from asterism_daemonkit.audit_settings import AuditSettings
from asterism_daemonkit.listening import split_address
from asterism_daemonkit.request_limit_settings import RequestLimits
from asterism_daemonkit.rpc.connection_limits import ConnectionLimits
from asterism_daemonkit.settings import DaemonSettings
from asterism_io.certificate_files import check_authorities
from asterism_io.remote_folder_addresses import AllowedAddresses
from asterism_io.remote_storage import REMOTE_TIMEOUT_S
from asterism_proto.errors import InvalidRequest
from storaged.paths import DataPaths


class StoragedSettings(RequestLimits, AuditSettings, DaemonSettings):
    """Settings of a storaged."""

    model_config = SettingsConfigDict(env_prefix="ASTERISM_STORAGED_", cli_prog_name="storaged")

    data: Path = Path("data/storaged")
    """Folder of the partitions: databases, images, builds."""
    listen: str = "127.0.0.1:9779"
    """Address of the gRPC endpoint, host:port; port 0 takes a free one."""
    http_listen: str = "127.0.0.1:19779"
    """Address of the HTTP endpoint, host:port; port 0 takes a free one."""
    stream_listen: str = ":0"
    """Address of the binary endpoint, host:port, where graphds sample and read; without a host,
    that of `listen`. Port 0 takes a free one, which graphds learn over gRPC; set a port if a
    firewall needs one. Empty: none, and all calls go over gRPC."""
    stream_connections: int = Field(default=1024, ge=1, le=65536)
    """Connections that the binary endpoint accepts at a time; each has a thread. A further one
    takes the place of one that was not greeted, or is idle for the longest time."""
    metad: str = "127.0.0.1:9559"
    """Address of metad's gRPC endpoint, host:port."""
    memory_limit_mib: int = Field(default=512, ge=16)
    """MiB that one build may use beyond an idle process."""
    conditions_mib: int = Field(default=512, ge=1)
    """MiB for cached results of filters: rows, edges and their tables. The least recently used are
    removed first; a filter with a larger result is refused."""
    concurrent_tasks: int = Field(default=1, ge=1, le=64)
    """Tasks of jobs (of different spaces) that run at the same time; further ones wait."""
    verify_images: bool = False
    """Check every byte of every image before it is served, however large its version is. After an
    unclean stop this is always done.
    """
    verify_open_mib: int = Field(default=16384, ge=0)
    """Versions with images of at most this many MiB on this storaged are checked completely before
    they are served. Of larger versions, only the files that hold offsets are checked then; the
    scrub checks the rest first."""
    scrub_interval_s: float = Field(default=86400.0, ge=0)
    """Seconds between two complete checks (scrubs) of a served version. 0: served versions are not
    checked again.
    """
    scrub_mib_per_s: float = Field(default=256.0, gt=0)
    """MiB per second that the scrub reads at most."""
    open_retry_s: float = Field(default=30.0, gt=0)
    """Seconds until a version that could not be opened is tried again."""
    allowed_addresses: str = ""
    """Folders that jobs may read and write: the value that metad has. Checked again before a file
    is opened. The folder `exports` in `data` is always allowed."""
    remote_timeout_s: float = Field(default=REMOTE_TIMEOUT_S, gt=0, le=3600)
    """Seconds that an object store or an SFTP host may be silent. An operation on a file is given
    up after four times as long, and the task fails."""
    s3_ca: str = ""
    """PEM file of the authorities that sign the certificates of object stores (`s3://`). Empty:
    `AWS_CA_BUNDLE` of the environment, else the usual ones."""
    sweep_interval_s: float = Field(default=300.0, gt=0)
    """Seconds between two sweeps: a sweep retries removal orders that failed, deletes quarantined
    folders that are due and looks for unreferenced data."""
    quarantine_grace_s: float = Field(default=86400.0, ge=0)
    """Seconds that a removed folder stays in quarantine before it is deleted. Time during which no
    storaged runs on the data folder does not count."""
    quarantine_limit_mib: int = Field(default=65536, ge=0)
    """MiB that all quarantined folders may take together; above that, the oldest are deleted
    early.
    """
    quarantine_free_mib: int = Field(default=4096, ge=0)
    """While the disk has less than this many MiB free, quarantined folders are deleted early,
    oldest first.
    """

    @field_validator("allowed_addresses")
    @classmethod
    def _are_addresses(cls, value: str) -> str:
        AllowedAddresses.parse(value, daemon="storaged")
        return value

    @field_validator("stream_listen")
    @classmethod
    def _is_an_address_or_a_port(cls, value: str) -> str:
        try:
            split_address(f"127.0.0.1{value or ':0'}" if value[:1] in ("", ":") else value)
        except InvalidRequest as error:
            raise InvalidRequest(
                f"stream_listen={value!r}: expected host:port, such as 127.0.0.1:9780, or :port"
            ) from error
        return value

    @field_validator("s3_ca")
    @classmethod
    def _is_a_file_of_authorities(cls, value: str) -> str:
        if value:
            check_authorities(value, "s3_ca")
        return value

    def stream_address(self) -> str:
        """Return host:port of the binary endpoint; empty if there is none."""
        if self.stream_listen.startswith(":"):
            return f"{split_address(self.listen)[0]}{self.stream_listen}"
        return self.stream_listen

    def listen_addresses(self) -> dict[str, str]:
        """Return the address of each port by the name of its setting."""
        return {**super().listen_addresses(), "stream_listen": self.stream_address()}

    def connection_limits(self) -> ConnectionLimits:
        """Return the limits of the connections to each open port."""
        limits = super().connection_limits()
        return replace(limits, stream_connections=self.stream_connections)

    def addresses(self) -> AllowedAddresses:
        """Return the addresses that tasks may open."""
        return AllowedAddresses.parse(
            self.allowed_addresses,
            daemon="storaged",
            exports=DataPaths(self.data).exports,
            reserved=self.data,
        )
