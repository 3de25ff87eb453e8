"""How much a client may ask twice: budgets of retries and of second requests, and how long answers
take.

Whoever tries again when a service is slow or overloaded makes it slower. A budget bounds that by a
share of the calls that were made."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from asterism_proto.errors import InvalidRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What a client has asked of graphds, since it was made or came into this process."""

    calls: int = 0
    """Of its methods, each of which may be several requests."""
    requests: int = 0
    """Sent: the first ones of calls, retries and hedges."""
    retries: int = 0
    """After an error that may pass."""
    hedges: int = 0
    """Second requests of reads that took long."""
    hedges_won: int = 0
    """Of these, answered before the first one."""
    direct: int = 0
    """Calls that storageds answered, without a graphd."""


class RetryBudget:
    """What may be asked beyond calls: ``burst`` at first, then a share of the calls, and so many a
    second at least.

    Parameters
    ----------
    share : float
        Earned by each call.
    burst : float
        At most so much is kept; it begins full.
    per_s : float
        Earned by time.

    Examples
    --------
    >>> budget = Budget(share=0.5, burst=1, per_s=0, clock=lambda: 0.0)
    >>> budget.spend(), budget.spend()
    (True, False)
    >>> budget.earn(), budget.earn(), budget.spend()
    (None, None, True)
    """

    def __init__(
        self,
        *,
        share: float,
        burst: float,
        per_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._share, self._burst, self._per_s, self._clock = share, burst, per_s, clock
        self._tokens, self._refilled_at = burst, clock()

    def deposit(self) -> None:
        """A call was made."""
        self._tokens = min(self._tokens + self._share, self._burst)

    def try_withdraw(self) -> bool:
        """Whether one more may go; it counts."""
        self._refill()
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def reserve(self, max_wait_s: float) -> float | None:
        """Seconds until one more may go, which counts; None where that is not within so many, and
        does not.
        """
        self._refill()
        wait = (
            0.0
            if self._tokens >= 1
            else (1 - self._tokens) / self._per_s
            if self._per_s
            else float("inf")
        )
        if wait > max_wait_s:
            return None
        self._tokens -= 1
        return wait

    def _refill(self) -> None:
        now = self._clock()
        self._tokens = min(self._tokens + (now - self._refilled_at) * self._per_s, self._burst)
        self._refilled_at = now


class HedgeDelays:
    """How long recent answers to a method took, and when a second request of it should go.

    Parameters
    ----------
    hedge : float or "p95"
        Seconds; or the time that 95 of 100 recent answers took.
    """

    MIN_LATENCIES = 20
    """Answers before which nothing is known of a method."""
    _WINDOW = 200

    def __init__(self, hedge: float | str) -> None:
        if isinstance(hedge, str) or not hedge > 0:
            if hedge != "p95":
                raise InvalidRequest(f"hedge {hedge!r}: expected seconds above 0, or 'p95'")
            self._fixed = None
        else:
            self._fixed = float(hedge)
        self._latencies: dict[str, deque[float]] = {}

    def delay_for(self, path: str) -> float | None:
        """Seconds after which a second request of the method goes; None: none does."""
        if self._fixed is not None:
            return self._fixed
        latencies = self._latencies.get(path, ())
        return (
            sorted(latencies)[int(0.95 * len(latencies))]
            if len(latencies) >= self.MIN_LATENCIES
            else None
        )

    def record(self, path: str, seconds: float) -> None:
        """A request was answered after so many seconds."""
        if self._fixed is None:
            self._latencies.setdefault(path, deque(maxlen=self._WINDOW)).append(seconds)
