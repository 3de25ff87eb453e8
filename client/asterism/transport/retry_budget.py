"""Budgets for retries and hedged requests, and delays before hedging.

Retries make a slow or overloaded service slower. A budget limits them to a share of the calls.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Counts of a client's requests since it was created or came into this process."""

    calls: int = 0
    """Number of calls; a call may need several requests."""
    requests: int = 0
    """Number of requests sent: first attempts, retries and hedges."""
    retries: int = 0
    """Number of retries after transient errors."""
    hedges: int = 0
    """Number of second requests for slow reads."""
    hedges_won: int = 0
    """Number of hedges that were faster than the first request."""
    direct: int = 0
    """Number of calls that storageds served without a graphd."""


class RetryBudget:
    """Token bucket for extra requests, filled by a share of the calls and by time.

    Parameters
    ----------
    share : float
        Tokens added per call.
    burst : float
        Capacity; the bucket starts full.
    per_s : float, default 0
        Tokens added per second.
    clock : callable, optional
        Source of the time in seconds; the monotonic clock by default.

    Examples
    --------
    >>> budget = RetryBudget(share=0.5, burst=1, per_s=0, clock=lambda: 0.0)
    >>> budget.try_withdraw(), budget.try_withdraw()
    (True, False)
    >>> budget.deposit(), budget.deposit(), budget.try_withdraw()
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
        """Add the share of one call."""
        self._tokens = min(self._tokens + self._share, self._burst)

    def try_withdraw(self) -> bool:
        """Take a token and return True, or return False if there is none."""
        self._refill()
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def reserve(self, max_wait_s: float) -> float | None:
        """Reserve a token and return the seconds to wait for it.

        Returns None, without a reservation, if the wait would exceed ``max_wait_s``.
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
