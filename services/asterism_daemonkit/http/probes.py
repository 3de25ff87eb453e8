"""Probes of the HTTP port: whether a daemon responds, whether it is ready, and its metrics.

Monitors poll them all the time, so they need neither FastAPI nor credentials.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

from asterism_daemonkit.metrics import Metrics

WITHHELD_REASONS = "administrators of the cluster find the reasons in /status"
"""Text in the place of reasons, which may contain names of spaces and folders."""
METRICS_MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BODY_HEADERS = (b"content-length", b"transfer-encoding")

Reply = tuple[int, str, bytes]
"""Status, media type and content."""


def readiness(missing: list[str], *, withheld: bool) -> tuple[int, dict[str, Any]]:
    """Return the status and content of ``/readyz``.

    Parameters
    ----------
    missing : list of str
        Reasons why the daemon is not ready.
    withheld : bool
        Whether the reasons stay secret.
    """
    if missing and withheld:
        missing = [WITHHELD_REASONS]
    return 503 if missing else 200, {"ready": not missing, "missing": missing}


class Probes:
    """Replies to the probes, with the same bytes as the routes of the whole application.

    Parameters
    ----------
    ready : callable
        Returns the reasons why the daemon is not ready; empty if it is.
    metrics : Metrics
    withheld : bool
        Whether the reasons stay secret.
    """

    def __init__(self, ready: Callable[[], list[str]], metrics: Metrics, *, withheld: bool) -> None:
        self._ready, self._metrics, self._withheld = ready, metrics, withheld
        self._replies: dict[str, Callable[[], Reply]] = {
            "/healthz": lambda: (200, "text/plain; charset=utf-8", b"ok"),
            "/readyz": self._readiness,
            "/metrics": lambda: (200, METRICS_MEDIA_TYPE, metrics.render()),
        }

    def answers(self, scope: Mapping[str, Any]) -> bool:
        """Return whether an ASGI request is a probe; one with a body is not."""
        return (
            scope["method"] == "GET"
            and scope["path"] in self._replies
            and not any(name in _BODY_HEADERS for name, _ in scope["headers"])
        )

    async def reply(self, path: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the two ASGI messages of a reply, computed in a thread: locks may be held."""
        status, media_type, body = await asyncio.to_thread(self._replies[path])
        headers = [
            (b"content-length", str(len(body)).encode()),
            (b"content-type", media_type.encode()),
        ]
        return (
            {"type": "http.response.start", "status": status, "headers": headers},
            {"type": "http.response.body", "body": body},
        )

    def _readiness(self) -> Reply:
        status, content = readiness(self._ready(), withheld=self._withheld)
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return status, "application/json", text.encode()
