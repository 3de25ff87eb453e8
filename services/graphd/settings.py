"""What a graphd is told at its start: environment (``ASTERISM_GRAPHD_...``) or flags, read once in `graphd.__main__`."""

from __future__ import annotations

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from asterism_proto.prices import MEMORY_LIMIT_MIB, MOST_ROWS, ROWS_LIMIT, STEPS_LIMIT, Limits
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
    catch_up_s: float = Field(default=5.0, ge=0, le=600)
    """Seconds that a request waits for storageds to serve a version that was published a moment ago; then it is Unavailable."""
    request_rows_limit: int = Field(default=ROWS_LIMIT, ge=1, le=MOST_ROWS)
    """Rows that one request may draw, read or walk; one that is certain to take more is refused before it runs."""
    request_memory_limit_mib: int = Field(default=MEMORY_LIMIT_MIB, ge=16)
    """MiB that the reply and the temporary arrays of one request may take together; one that is certain to take more is refused before it runs."""
    request_steps_limit: int = Field(default=STEPS_LIMIT, ge=1)
    """Steps of kernels (draws, edges looked at) that one request may take; one that may take more is refused before it runs."""

    @property
    def limits(self) -> Limits:
        """The limits of one request."""
        return Limits(rows=self.request_rows_limit, memory=self.request_memory_limit_mib << 20, steps=self.request_steps_limit)
