"""The pages as one thing that is started and stopped: routers for an HTTP door, and the measuring
behind them.
"""

from __future__ import annotations

from collections.abc import Callable

from fastapi import APIRouter

from asterism_daemonkit.metrics import Metrics
from asterism_proto.transport import Transport
from graphd.pages import files, routes
from graphd.pages.data import PageData, ReadHistogram
from graphd.pages.rates import INTERVAL_S, RateMonitor


class Pages:
    """What an HTTP door serves to browsers.

    Parameters
    ----------
    daemon : str
        Whose door it is.
    metad : Transport
    read_histogram : callable
        Reads how the weights of a type are spread.
    metrics : Metrics
        Of the door whose calls are measured.
    missing : callable
        What it lacks before it can answer.
    interval_s : float
        Seconds between two measurements.
    """

    def __init__(
        self,
        *,
        daemon: str,
        metad: Transport,
        read_histogram: ReadHistogram,
        metrics: Metrics,
        missing: Callable[[], list[str]],
        interval_s: float = INTERVAL_S,
    ) -> None:
        self._rates = RateMonitor(metrics, interval_s)
        self.routers: list[APIRouter] = [
            routes.router(
                PageData(metad, read_histogram), self._rates, daemon=daemon, missing=missing
            ),
            files.router(),
        ]
        """The routes of data, then the page, which takes what they leave below ``/ui``."""

    def start(self) -> None:
        """Begin to measure."""
        self._rates.start()

    def stop(self) -> None:
        """Measure no more."""
        self._rates.stop()
