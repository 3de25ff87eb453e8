"""What a graphd is told at its start: environment (``ASTERISM_GRAPHD_...``) or flags, read once in `graphd.__main__`."""

from __future__ import annotations

from pydantic_settings import SettingsConfigDict

from daemonkit.settings import DaemonSettings


class GraphdSettings(DaemonSettings):
    """Settings of a graphd. It is stateless: ``data`` is not used."""

    model_config = SettingsConfigDict(env_prefix="ASTERISM_GRAPHD_", frozen=True, extra="forbid", use_attribute_docstrings=True)

    listen: str = "0.0.0.0:9669"
    """host:port of the gRPC door; port 0 takes a free one."""
    http_listen: str = "0.0.0.0:19669"
    """host:port of the HTTP door; port 0 takes a free one."""
    metad: str = "127.0.0.1:9559"
    """host:port of metad's gRPC door."""
