"""What every daemon is told at its start: from flags first, then from the environment, then these
defaults.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, CliApp, SettingsConfigDict

from asterism_daemonkit.allowed_hosts import AllowedHosts
from asterism_proto.errors import InvalidRequest


class DaemonSettings(BaseSettings):
    """Settings that all daemons share. Read once, in a daemon's `__main__`, and passed down."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        cli_kebab_case=True,
        cli_implicit_flags=True,
    )

    data: Path = Path("data")
    """Folder for all that the daemon keeps; made when missing. One daemon a folder."""
    listen: str = "127.0.0.1:0"
    """host:port of the gRPC door; port 0 takes a free one."""
    advertise: str = ""
    """host:port under which others reach the gRPC door; empty: as it listens."""
    http_listen: str = "127.0.0.1:0"
    """host:port of the HTTP door; port 0 takes a free one."""
    ports_file: str = ""
    """File to which the open ports and the process id are written as JSON once the daemon listens:
    {"grpc": 9669, "http": 19669, "pid": 42}, and "stream" of a storaged. Empty: none."""
    http_names: str = ""
    """Further names by which the HTTP door may be called, with commas between: graph.example.com,
    .example.com (all below it), * (any).
    """
    log_level: str = "INFO"
    """DEBUG (each call), INFO (jobs, versions, states), WARNING or ERROR."""
    log_json: bool = False
    """One JSON object a line, for collectors; else text for people."""
    heartbeat_interval_s: float = Field(default=1.0, gt=0.05, le=60)
    """Seconds between two beats to metad. Short: a daemon that is gone is noticed within a few of
    them.
    """
    poll_wait_s: float = Field(default=10.0, gt=0, le=60)
    """Seconds that a poll may park at metad before it is asked again."""
    grpc_workers: int = Field(default=16, ge=1, le=1024)
    """Threads that answer gRPC calls."""
    grpc_queue: int = Field(default=256, ge=0, le=65536)
    """Calls that may wait for a thread; one more is answered Busy."""
    stop_grace_s: float = Field(default=10.0, ge=0, le=600)
    """Seconds that calls under way get when the daemon stops."""

    @field_validator("listen", "http_listen")
    @classmethod
    def _is_an_address(cls, value: str) -> str:
        split_address(value)
        return value

    @classmethod
    def read(cls, arguments: list[str] | None = None) -> Self:
        """The settings from flags (``--listen 0.0.0.0:9669``) and the environment.

        Raises
        ------
        InvalidRequest
            Naming the first wrong setting and its value.
        """
        try:
            return CliApp.run(cls, cli_args=arguments)
        except ValidationError as error:
            first = error.errors()[0]
            setting = ".".join(str(part) for part in first["loc"])
            raise InvalidRequest(
                f"setting {setting} = {first.get('input')!r}: {first['msg']}"
            ) from error

    def advertised_address(self, port: int) -> str:
        """Where others reach the gRPC door that listens on ``port``: as told, else this host's
        loopback or given address.
        """
        host, _ = split_address(self.listen)
        return self.advertise or f"{'127.0.0.1' if host in ('0.0.0.0', '[::]') else host}:{port}"

    def allowed_hosts(self) -> AllowedHosts:
        """By which names the HTTP door may be called."""
        return AllowedHosts(self.http_names.split(","), self.advertise)

    def flags(self) -> dict[str, Any]:
        """All settings as plain values, for ``/flags``."""
        return self.model_dump(mode="json")


def split_address(address: str) -> tuple[str, int]:
    """``host:port`` as a pair; InvalidRequest otherwise."""
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdigit() or int(port) > 65535:
        raise InvalidRequest(f"address {address!r}: expected host:port, such as 127.0.0.1:9669")
    return host, int(port)
