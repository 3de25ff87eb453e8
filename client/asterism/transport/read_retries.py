"""Retries of reads over minutes, for epochs that outlast a restart of the service."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from asterism.transport.grpc import ClientClosed
from asterism_proto.errors import Busy, InvalidRequest, NotReady, Stale, Unavailable

Value = TypeVar("Value")

DEFAULT_PATIENCE_S = 300.0
_FIRST_PAUSE_S, _MAX_PAUSE_S = 0.2, 5.0


def check_patience(seconds: float) -> float:
    """Return ``seconds`` if it is 0 or more; raise InvalidRequest otherwise."""
    if not seconds >= 0:
        raise InvalidRequest(f"patience_s={seconds!r}: expected seconds, 0 or more")
    return float(seconds)


def retry_read(operation: Callable[[], Value], seconds: float) -> Value:
    """Call ``operation`` until it succeeds, while the service is unavailable or busy.

    Only for reads, which return the same result each time.

    Parameters
    ----------
    operation : callable
        Function without parameters.
    seconds : float
        Seconds after which the error of the last attempt is raised.

    Returns
    -------
    value
        Result of ``operation``.

    Raises
    ------
    Unavailable, Busy, NotReady, Stale
        If the last attempt failed with such an error. Other errors are raised at once.
    """
    deadline, pause = time.monotonic() + seconds, _FIRST_PAUSE_S
    while True:
        try:
            return operation()
        except ClientClosed:
            raise
        except (Unavailable, Busy, NotReady, Stale) as error:
            wait = max(pause * random.uniform(0.5, 1.0), error.retry_after_s)
            if time.monotonic() + wait >= deadline:
                raise
            time.sleep(wait)
            pause = min(2 * pause, _MAX_PAUSE_S)
