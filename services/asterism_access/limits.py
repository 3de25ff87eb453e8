"""Limits of principals: token buckets and concurrent calls, per principal and space.

A bucket holds what one second permits and fills continuously. A call needs its cost in the bucket,
or a full one if the cost is larger than the bucket; what the call really took is subtracted when it
ends, so a bucket may be in debt. Token buckets: Turner 1986, *New directions in communications*.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import NamedTuple, Self

from asterism_access.roles import EVERY_SPACE
from asterism_proto.errors import QuotaExceeded
from asterism_proto.v1 import metad_pb2 as metad_pb

EVERY_PRINCIPAL = "*"
"""Principal of the limits of every principal without limits of its own."""
MAX_DEBT_S = 60.0
"""Seconds of its rate that a bucket may owe at most, after a large reply."""
_BUSY_WAIT_S = 0.1
"""Wait before a retry where calls in progress are the limit, and their ends are not known."""
_SWEEP_ENTRIES = 1024
"""Entries from which idle ones are looked for."""
_ROUNDING = 1e-9

StateSource = Callable[[], metad_pb.AccessState | None]
"""Function that returns the current state; the same object until it changes."""
RefusalCallback = Callable[[str, str], None]
"""Function called with the principal and the name of the limit of each refused call."""


class LimitUse(NamedTuple):
    """Use of one limit by one principal, now."""

    principal: str
    space: str
    """Name of the space; `EVERY_SPACE` for all spaces together."""
    limit: str
    value: float
    """Calls, rows or bytes a second, or calls at a time."""
    available: float
    """What the principal may still use at once; negative while it owes."""


def ignore_refusal(principal: str, limit: str) -> None:
    """Ignore a refused call; the default `RefusalCallback`."""


class _Rate(NamedTuple):
    """Rate of one bucket."""

    field: int
    """Position of what it counts in a cost: 0 calls, 1 rows, 2 bytes."""
    name: str
    per_s: float
    capacity: float


class _Row(NamedTuple):
    """Limits of one row of the catalog."""

    message: metad_pb.AccessLimits
    rates: tuple[_Rate, ...]
    """Buckets with a limit."""
    concurrent_calls: int


_Cost = tuple[float, float, float]
"""Calls, rows and bytes of a call."""
_Refusal = tuple[float, str, float]
"""Seconds to wait, and name and value of the limit."""


def _row(message: metad_pb.AccessLimits) -> _Row:
    rates = tuple(
        # A bucket of less than one call would never admit any.
        _Rate(field, name, per_s, max(per_s, 1.0))
        for field, (name, per_s) in enumerate(
            (
                ("calls_per_s", message.calls_per_s),
                ("rows_per_s", message.rows_per_s),
                ("bytes_per_s", message.bytes_per_s),
            )
        )
        if 0 < per_s < math.inf
    )
    return _Row(message, rates, message.concurrent_calls)


class _Usage:
    """What one principal uses of one row of limits."""

    __slots__ = ("calls", "levels", "refilled_at", "row", "space")

    def __init__(self, space: str, row: _Row, now: float) -> None:
        self.space, self.row = space, row
        self.levels = [rate.capacity for rate in row.rates]
        self.refilled_at = now
        self.calls = 0

    def check(self, now: float, cost: _Cost) -> _Refusal | None:
        """Fill the buckets; return the limit that the call must wait longest for, if any."""
        worst: _Refusal | None = None
        row, levels, elapsed = self.row, self.levels, now - self.refilled_at
        self.refilled_at = now
        if row.concurrent_calls and self.calls >= row.concurrent_calls:
            worst = (_BUSY_WAIT_S, "concurrent_calls", float(row.concurrent_calls))
        for i, (field, name, per_s, capacity) in enumerate(row.rates):
            level = levels[i] + elapsed * per_s
            if level > capacity:
                level = capacity
            levels[i] = level
            needed = cost[field]
            missing = (needed if needed < capacity else capacity) - level
            if missing > _ROUNDING * capacity and (worst is None or missing / per_s > worst[0]):
                worst = (missing / per_s, name, per_s)
        return worst

    def charge(self, cost: _Cost) -> _Charge:
        """Subtract a call's cost, at most a full bucket: a price may be far above the real cost."""
        self.calls += 1
        charged = [0.0, 0.0, 0.0]
        for i, (field, _, _, capacity) in enumerate(self.row.rates):
            needed = cost[field]
            charged[field] = amount = needed if needed < capacity else capacity
            self.levels[i] -= amount
        return self, charged

    def end(self, charged: list[float], actual: tuple[float | None, ...]) -> None:
        """End a call, and replace what it was charged by what it took."""
        self.calls -= 1
        for i, (field, _, per_s, capacity) in enumerate(self.row.rates):
            taken = actual[field]
            if taken is not None:
                level = min(self.levels[i] + charged[field] - taken, capacity)
                self.levels[i] = max(level, -MAX_DEBT_S * per_s)

    def change_row(self, row: _Row) -> None:
        """Take over changed limits; buckets keep their levels, and a new one starts full."""
        levels = {
            rate.field: level for rate, level in zip(self.row.rates, self.levels, strict=True)
        }
        self.levels = [
            max(
                min(levels.get(rate.field, rate.capacity), rate.capacity),
                -MAX_DEBT_S * rate.per_s,
            )
            for rate in row.rates
        ]
        self.row = row

    def is_idle(self, now: float) -> bool:
        """Return whether a new entry would be equal to this one."""
        self.check(now, _NOTHING)
        return not self.calls and all(
            level >= rate.capacity for level, rate in zip(self.levels, self.row.rates, strict=True)
        )


_Charge = tuple[_Usage, list[float]]
"""Usage, and the calls, rows and bytes that were subtracted from its buckets."""
_NOTHING: _Cost = (0.0, 0.0, 0.0)


class AdmittedCall:
    """An admitted call; a context manager that releases it.

    A call that fails takes the expected rows, and no bytes."""

    __slots__ = ("_charges", "_rows", "_size", "_table")

    def __init__(self, table: LimitTable | None, charges: list[_Charge]) -> None:
        self._table, self._charges = table, charges
        self._rows: float | None = None
        self._size: float | None = None

    def settle(self, *, rows: float | None = None, size: float | None = None) -> None:
        """Replace the expected rows and bytes by the actual ones; None: as expected."""
        self._rows, self._size = rows, size

    def release(self) -> None:
        """End the call. Further calls of this method have no effect."""
        charges, self._charges = self._charges, []
        if charges and self._table is not None:
            self._table._end(charges, self._rows, self._size)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self._size = 0.0
        self.release()


class LimitTable:
    """Limits of all principals, from the state of the catalog. Thread-safe.

    The limits of a principal in a space are its own row for the space, or else the row of
    `EVERY_PRINCIPAL`, of which each principal has the full amount. The rows of `EVERY_SPACE` hold
    for all spaces together, in addition. The table counts the calls of this daemon only.

    Parameters
    ----------
    state : callable
        Returns the state; it is read at each call, and a new object replaces the limits.
    on_refusal : callable
        Called with principal and limit of each refused call.
    clock : callable
        Source of the time in seconds.
    """

    def __init__(
        self,
        state: StateSource,
        *,
        on_refusal: RefusalCallback = ignore_refusal,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._state, self._on_refusal, self._clock = state, on_refusal, clock
        self._lock = threading.Lock()
        self._seen: metad_pb.AccessState | None = None
        self._rows: dict[tuple[str, str], _Row] = {}
        self._usages: dict[tuple[str, str], _Usage] = {}
        self._sweep_at = _SWEEP_ENTRIES

    def admit(self, principal: str, space: str, rows: float = 0, size: float = 0) -> AdmittedCall:
        """Admit a call before it runs.

        Parameters
        ----------
        principal : str
            Name of the caller.
        space : str
            Graph space of the call; empty if it has none.
        rows : number
            Expected rows of the reply; see `asterism_access.call_costs`.
        size : number
            Expected bytes of request and reply.

        Returns
        -------
        AdmittedCall
            The caller releases it when the call ends.

        Raises
        ------
        QuotaExceeded
            If a limit is reached. Nothing is charged.
        """
        if self.is_empty:
            return AdmittedCall(None, [])
        cost = (1.0, float(rows), float(size))
        with self._lock:
            now = self._clock()
            usages = [
                usage
                for key in ((space, EVERY_SPACE) if space else (EVERY_SPACE,))
                if (usage := self._usage(principal, key, now)) is not None
            ]
            worst, where = None, ""
            for usage in usages:
                refusal = usage.check(now, cost)
                if refusal is not None and (worst is None or refusal[0] > worst[0]):
                    worst, where = refusal, usage.space
            if worst is None:
                return AdmittedCall(self, [usage.charge(cost) for usage in usages])
        self._on_refusal(principal, worst[1])
        raise _exceeded(principal, where, worst)

    @property
    def is_empty(self) -> bool:
        """True if there are no limits."""
        self._follow_state()
        return not self._rows

    def share(self, principal: str) -> float:
        """Return the weight of a principal's turns: the share for all spaces, by default 1."""
        row = self.limits(principal, EVERY_SPACE)
        return row.share if row is not None and row.share > 0 else 1.0

    def limits(self, principal: str, space: str) -> metad_pb.AccessLimits | None:
        """Return the row of limits that holds for a principal in a space; None if none does."""
        self._follow_state()
        row = self._find_row(principal, space)
        return None if row is None else row.message

    def uses(self) -> list[LimitUse]:
        """Return the use of all limits by the principals that have called recently."""
        self._follow_state()
        uses = []
        with self._lock:
            now = self._clock()
            for (principal, space), usage in self._usages.items():
                usage.check(now, _NOTHING)
                row = usage.row
                uses += [
                    LimitUse(principal, space, rate.name, rate.per_s, level)
                    for rate, level in zip(row.rates, usage.levels, strict=True)
                ]
                if most := row.concurrent_calls:
                    available = float(most - usage.calls)
                    uses.append(LimitUse(principal, space, "concurrent_calls", most, available))
        return uses

    def __len__(self) -> int:
        """Return the number of entries in memory."""
        return len(self._usages)

    def _follow_state(self) -> None:
        state = self._state()
        if state is self._seen:
            return
        with self._lock:
            rows = {
                (message.principal, message.space): _row(message)
                for message in (state.limits if state is not None else ())
            }
            self._rows, self._seen = rows, state
            for (principal, space), usage in list(self._usages.items()):
                row = self._find_row(principal, space)
                if row is not None:
                    usage.check(self._clock(), _NOTHING)
                    usage.change_row(row)
                else:  # calls in progress keep the entry until they end
                    del self._usages[principal, space]

    def _find_row(self, principal: str, space: str) -> _Row | None:
        rows = self._rows
        return rows.get((principal, space)) or rows.get((EVERY_PRINCIPAL, space))

    def _usage(self, principal: str, space: str, now: float) -> _Usage | None:
        usage = self._usages.get((principal, space))
        if usage is None:
            row = self._find_row(principal, space)
            if row is None:
                return None
            if len(self._usages) >= self._sweep_at:
                self._sweep(now)
            usage = self._usages[principal, space] = _Usage(space, row, now)
        return usage

    def _sweep(self, now: float) -> None:
        """Drop the entries to which a new one would be equal."""
        self._usages = {key: usage for key, usage in self._usages.items() if not usage.is_idle(now)}
        self._sweep_at = max(2 * len(self._usages), _SWEEP_ENTRIES)

    def _end(self, charges: list[_Charge], rows: float | None, size: float | None) -> None:
        with self._lock:
            for usage, charged in charges:
                usage.end(charged, (None, rows, size))


def _exceeded(principal: str, space: str, refusal: _Refusal) -> QuotaExceeded:
    wait_s, name, value = refusal
    wait_s = max(math.ceil(wait_s * 100) / 100, 0.01)
    where = "in all spaces together" if space == EVERY_SPACE else f"in space {space!r}"
    return QuotaExceeded(
        f"{name}={value:.15g}: used up by {principal!r} {where}; try again in {wait_s:.2f} s",
        retry_after_s=wait_s,
    )
