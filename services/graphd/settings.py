"""Settings of a graphd: environment (``ASTERISM_GRAPHD_...``) or flags.

`graphd.__main__` reads them once at start.
"""

from __future__ import annotations

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from asterism_daemonkit.audit_settings import AuditSettings
from asterism_daemonkit.request_limit_settings import RequestLimits
from asterism_daemonkit.settings import DaemonSettings


class GraphdSettings(RequestLimits, AuditSettings, DaemonSettings):
    """Settings of a graphd. It is stateless: ``data`` is not used."""

    model_config = SettingsConfigDict(env_prefix="ASTERISM_GRAPHD_", frozen=True, extra="forbid")

    listen: str = "127.0.0.1:9669"
    """host:port of the gRPC port; port 0 selects a free one."""
    http_listen: str = "127.0.0.1:19669"
    """host:port of the HTTP port; port 0 selects a free one."""
    metad: str = "127.0.0.1:9559"
    """host:port of metad's gRPC port."""
    catch_up_s: float = Field(default=5.0, ge=0, le=600)
    """Seconds that a request waits for storageds to serve a version published moments ago.
    After that it fails with Unavailable. For storageds to open a space, it waits until its
    deadline; with 0, it waits for neither.
    """
    session_s: int = Field(default=28800, ge=60, le=604800)
    """Seconds after which a sign-in on the web pages ends. With access control only."""
