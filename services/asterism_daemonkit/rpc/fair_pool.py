"""Weighted fair turns: calls of many principals on a fixed number of threads or slots.

Stride scheduling (Waldspurger & Weihl 1995): each principal has a pass, the waiting principal with
the lowest pass is served next, and its pass grows by 1 / share. Turns count calls, not their time.

Calls that run at the same time share the processor. So that one principal does not take all of it
with many threads, no more calls than cores compute at a time while several principals call; each of
them may have one beyond that. A call that waits for other daemons (`call_context.waiting`) computes
nothing. A principal has all threads once no other has called for ten seconds.
"""

from __future__ import annotations

import heapq
import itertools
import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Generic, ParamSpec, Protocol, TypeVar

from asterism_access.principals import Principal
from asterism_daemonkit.rpc.call_context import CallContext, RunningTurn, exchange_running_turn
from asterism_proto.errors import CALLER_KEY, Busy

_MAX_CALLER_CHARS = 64
"""Characters of a caller's name that are used to distinguish callers."""
_SWEEP_PRINCIPALS = 256
"""Number of principals in memory at which idle ones are removed."""
_MAX_EXECUTORS = 1024
_CONTENDED_S = 10.0
"""Seconds after calls of two principals alternated for which the computing calls stay bounded."""
_MIN_SHARE, _MAX_SHARE = 1e-3, 1e3
"""Bounds of shares. Beyond them, passes would lose precision."""

P = ParamSpec("P")
R = TypeVar("R")
Item = TypeVar("Item")


Grant = Callable[[], None]
"""Function that informs a waiting call of its slot."""
ShareSource = Callable[[str], float]
"""Function that returns the weight of the turns of a principal with some name."""


def equal_share(principal: str) -> float:
    """Return 1 for every principal; the default `ShareSource`."""
    return 1.0


@dataclass(frozen=True, slots=True)
class Turn:
    """Turn that a call takes: its principal, weight and client."""

    principal: str = ""
    """Name of the authenticated principal; without access control, of the caller."""
    share: float = 1.0
    """Weight of the principal's turns, 0.001 to 1000."""
    caller: str = ""
    """Client of the principal. Clients of one principal take turns among themselves."""


def turn_of(
    principal: Principal,
    share_of: ShareSource,
    metadata: Iterable[tuple[str, str | bytes]] = (),
) -> Turn:
    """Return the turn of a call.

    Parameters
    ----------
    principal : Principal
        Caller, as the server authenticated it. Trusted ones take turns by the names of callers in
        their metadata, each with a share of 1.
    share_of : callable
        Returns the weight of the turns of a principal with some name.
    metadata : iterable of (str, str)
        Metadata of the call.
    """
    caller = next((str(value) for key, value in metadata if key == CALLER_KEY), "")
    caller = caller[:_MAX_CALLER_CHARS]
    if principal.is_trusted:
        return Turn(caller or principal.name)
    return Turn(principal.name, share_of(principal.name), caller)


def busy_error(limit: int) -> Busy:
    """Return the error of a call that finds all slots taken."""
    return Busy(
        f"all {limit} slots for calls are taken; try again in 100 ms, or use another daemon"
    )


class _Counted(Protocol):
    """Calls of one principal, as far as the rule of refusals needs them."""

    calls: int
    share: float


def _is_refused(turn: Turn, limit: int, calls: int, principals: Mapping[str, _Counted]) -> bool:
    """Return whether a call beyond some number of calls is refused.

    A principal below its share of the limit may exceed it, up to twice the limit in total.
    """
    if calls < limit:
        return False
    if calls >= 2 * limit:
        return True
    own = principals.get(turn.principal)
    shares = sum(other.share for other in principals.values() if other.calls)
    share = int(limit * turn.share / (shares or turn.share))
    return (own.calls if own is not None else 0) >= share


class _Count:
    """Calls of one principal in `CallCounts`."""

    __slots__ = ("calls", "share")

    def __init__(self, share: float) -> None:
        self.calls, self.share = 1, share


class CallCounts:
    """Numbers of calls by principal, with the rule by which calls are refused. Not thread-safe.

    Parameters
    ----------
    limit : int
        Calls of all principals. A principal below its share of them may exceed the limit, up to
        twice the limit in total.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._counts: dict[str, _Count] = {}
        """Principals with calls."""
        self.calls = 0
        """Calls of all principals."""

    def refuses(self, turn: Turn) -> bool:
        """Return whether a call must be refused now."""
        return _is_refused(turn, self._limit, self.calls, self._counts)

    def add(self, turn: Turn) -> None:
        """Count a call."""
        self.calls += 1
        share = min(max(turn.share, _MIN_SHARE), _MAX_SHARE)
        count = self._counts.get(turn.principal)
        if count is None:
            self._counts[turn.principal] = _Count(share)
        else:
            count.calls += 1
            count.share = share

    def end(self, name: str) -> None:
        """Count a call of a principal as ended."""
        self.calls -= 1
        count = self._counts[name]
        count.calls -= 1
        if not count.calls:
            del self._counts[name]


class _Principal(Generic[Item]):
    """Calls of one principal in a `FairQueue`."""

    __slots__ = ("calls", "computing", "name", "next_pass", "queued", "share", "waiting")

    def __init__(self, name: str, next_pass: float) -> None:
        self.name, self.next_pass = name, next_pass
        self.share = 1.0
        self.calls = 0
        """Running and waiting calls."""
        self.computing = 0
        """Running calls that are not paused."""
        self.waiting: OrderedDict[str, deque[Item]] = OrderedDict()
        """Waiting calls by client; the client to serve next comes first."""
        self.queued = False
        """True while the principal is in the heap; it may have no waiting call any more."""


class FairQueue(Generic[Item]):
    """Queue of calls in fair order, with the rule by which calls are refused. Not thread-safe.

    Parameters
    ----------
    limit : int
        Running and waiting calls. A principal below its share of them may exceed the limit, up to
        twice the limit in total.
    cores : int
        Calls that compute at a time while several principals call, and each of them may have one
        beyond that. 0: as many as are popped.
    clock : callable
        Source of the time in seconds.
    """

    def __init__(
        self, limit: int, *, cores: int = 0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.limit = limit
        self._cores, self._clock = cores, clock
        self.computing = 0
        """Running calls that are not paused."""
        self._active = 0
        """Principals with calls."""
        self._last_name = ""
        """Principal of the last call."""
        self._alternated_at = -math.inf
        """Time of the last call of another principal than the one before."""
        self.calls = 0
        """Running and waiting calls."""
        self._principals: dict[str, _Principal[Item]] = {}
        """Principals with calls, and those that were served beyond their share just now."""
        self._heap: list[tuple[float, int, _Principal[Item]]] = []
        self._order = itertools.count()
        self._pass = 0.0
        """Pass of the last served call, at which new principals start."""
        self._largest_pass = 0.0
        """Largest pass that any principal has reached."""
        self._sweep_at = _SWEEP_PRINCIPALS

    def refuses(self, turn: Turn) -> bool:
        """Return whether a call must be refused now."""
        return _is_refused(turn, self.limit, self.calls, self._principals)

    def push(self, turn: Turn, item: Item) -> None:
        """Add a waiting call."""
        principal = self._principals.get(turn.principal)
        if principal is None:
            if len(self._principals) >= self._sweep_at:
                self._sweep()
            principal = self._principals[turn.principal] = _Principal(turn.principal, self._pass)
        principal.share = min(max(turn.share, _MIN_SHARE), _MAX_SHARE)
        if self._cores and turn.principal != self._last_name:
            if self._last_name:
                self._alternated_at = self._clock()
            self._last_name = turn.principal
        self._active += not principal.calls
        principal.calls += 1
        self.calls += 1
        principal.waiting.setdefault(turn.caller, deque()).append(item)
        if not principal.queued:
            principal.next_pass = max(principal.next_pass, self._pass)
            self._queue(principal)

    def pop(self) -> tuple[str, Item] | None:
        """Return the principal and item of the next call to run; None if none may run now."""
        principal = self._pop_principal()
        if principal is None:
            return None
        served_pass = principal.next_pass
        caller, items = principal.waiting.popitem(last=False)
        item = items.popleft()
        if items:
            principal.waiting[caller] = items  # after all other clients of the principal
        principal.computing += 1
        self.computing += 1
        self._pass = max(self._pass, served_pass)
        principal.next_pass = served_pass + 1 / principal.share
        self._largest_pass = max(self._largest_pass, principal.next_pass)
        if principal.waiting:
            self._queue(principal)
        elif not self._heap:  # nothing waits: what was served until now counts no more
            self._pass = self._largest_pass
        return principal.name, item

    def _pop_principal(self) -> _Principal[Item] | None:
        """Take the principal of the next call to run from the heap; None if none may run now."""
        found, kept = None, []
        while self._heap and found is None:
            entry = heapq.heappop(self._heap)
            principal = entry[2]
            if not principal.waiting:
                principal.queued = False  # its calls were withdrawn
            elif self._may_compute(principal):
                principal.queued, found = False, principal
            else:  # it has a computing call: there are at most as many such entries as threads
                kept.append(entry)
        for _, order, principal in kept:
            if found is not None:  # turns that it could not use are not saved
                principal.next_pass = max(principal.next_pass, found.next_pass)
            heapq.heappush(self._heap, (principal.next_pass, order, principal))
        return found

    def _may_compute(self, principal: _Principal[Item]) -> bool:
        return (
            not self._cores
            or self.computing < self._cores
            or not principal.computing
            or (self._active <= 1 and self._clock() - self._alternated_at >= _CONTENDED_S)
        )

    def pause(self, name: str) -> None:
        """Count a running call of a principal as waiting for other daemons."""
        self._principals[name].computing -= 1
        self.computing -= 1

    def resume(self, name: str) -> None:
        """Count a paused call of a principal as computing."""
        self._principals[name].computing += 1
        self.computing += 1

    def withdraw(self, turn: Turn, item: Item) -> bool:
        """Remove a waiting call; return False if it does not wait any more."""
        principal = self._principals.get(turn.principal)
        items = principal.waiting.get(turn.caller) if principal is not None else None
        if principal is None or items is None or item not in items:
            return False
        items.remove(item)
        if not items:
            del principal.waiting[turn.caller]
        self._leave(principal)
        return True

    def end(self, name: str) -> None:
        """Count a running call of a principal as ended."""
        self.pause(name)
        self._leave(self._principals[name])

    def _leave(self, principal: _Principal[Item]) -> None:
        principal.calls -= 1
        self.calls -= 1
        self._active -= not principal.calls
        if self._is_idle(principal):
            del self._principals[principal.name]

    def _queue(self, principal: _Principal[Item]) -> None:
        principal.queued = True
        heapq.heappush(self._heap, (principal.next_pass, next(self._order), principal))

    def _is_idle(self, principal: _Principal[Item]) -> bool:
        """Return whether a new entry would be equal to this one."""
        return not principal.calls and not principal.queued and principal.next_pass <= self._pass

    def _sweep(self) -> None:
        for name, principal in list(self._principals.items()):
            if self._is_idle(principal):
                del self._principals[name]
        self._sweep_at = max(2 * len(self._principals), _SWEEP_PRINCIPALS)


class FairPool:
    """Threads for calls, of which some run at a time, in turns of their principals.

    A principal with many waiting calls delays another one of the same share by one call at most. A
    call has a thread from its arrival on, for its message may take long: only calls that have
    their message wait for a turn (`turn`), so that a caller that sends none delays no other.

    Parameters
    ----------
    workers : int
        Calls that run at a time.
    queue : int
        Calls that may wait. Up to twice ``workers + queue`` are admitted for principals below
        their share.
    cores : int
        Calls that compute at a time while several principals call; 0: as many as run.
    """

    def __init__(self, workers: int, queue: int, *, cores: int = 0) -> None:
        self.limit = workers + queue
        most = 2 * self.limit  # `CallCounts` admits up to that many
        self._threads = ThreadPoolExecutor(most, thread_name_prefix="grpc")
        self._lock = threading.Lock()
        self._admitted = CallCounts(self.limit)
        self._slots = FairSlots(workers, most, cores=cores)
        self._executors: dict[Turn, TurnExecutor] = {}

    @property
    def calls(self) -> int:
        """Running calls, and those that wait for their turn."""
        return self._slots.calls

    @property
    def admitted(self) -> int:
        """Calls that have a thread; some may wait for their message."""
        return self._admitted.calls

    def executor(self, turn: Turn) -> TurnExecutor:
        """Return the executor that counts calls with a turn."""
        executor = self._executors.get(turn)
        if executor is None:
            if len(self._executors) >= _MAX_EXECUTORS:
                self._executors.clear()
            executor = self._executors[turn] = TurnExecutor(self, turn)
        return executor

    def admit(self, turn: Turn) -> TurnExecutor | None:
        """Return the executor for a call; None if the pool and the principal's share are full."""
        with self._lock:
            return None if self._admitted.refuses(turn) else self.executor(turn)

    def submit(self, turn: Turn, call: Callable[[], R]) -> Future[R]:
        """Start a call on a thread of its own and return its future."""
        with self._lock:
            self._admitted.add(turn)
        try:
            return self._threads.submit(self._run, turn, call)
        except RuntimeError:  # shut down: no thread will run the call
            self._end(turn)
            raise

    def turn(self, turn: Turn, call: CallContext) -> AbstractContextManager[None]:
        """Wait for the turn of a call and hold it, as `FairSlots.slot` does."""
        return self._slots.slot(turn, call)

    def stop(self) -> None:
        """Accept no more calls."""
        self._threads.shutdown(wait=False)

    def _run(self, turn: Turn, call: Callable[[], R]) -> R:
        try:
            return call()
        finally:
            self._end(turn)

    def _end(self, turn: Turn) -> None:
        with self._lock:
            self._admitted.end(turn.principal)


class TurnExecutor(ThreadPoolExecutor):
    """Executor that starts calls with one turn in a pool.

    gRPC requires a ThreadPoolExecutor to run a behavior; this one has no threads of its own."""

    def __init__(self, pool: FairPool, turn: Turn) -> None:
        super().__init__(1)
        self._pool, self._turn = pool, turn

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Start a call and return its future."""
        return self._pool.submit(self._turn, partial(fn, *args, **kwargs))


class FairSlots:
    """Slots for calls that wait for their turn, in threads or in an event loop.

    Parameters
    ----------
    workers : int
        Calls that run at a time.
    queue : int
        Calls that may wait.
    cores : int
        Calls that compute at a time while several principals call; 0: as many as run.
    """

    def __init__(self, workers: int, queue: int, *, cores: int = 0) -> None:
        self.limit = workers + queue
        self._free = workers
        self._lock = threading.Lock()
        self._queue: FairQueue[Grant] = FairQueue(self.limit, cores=cores)

    @property
    def calls(self) -> int:
        """Running and waiting calls."""
        return self._queue.calls

    def slot(self, turn: Turn, call: CallContext) -> AbstractContextManager[None]:
        """Wait for a slot, and hold it while the body of a ``with`` statement runs.

        Raises
        ------
        Busy
            If all slots and the principal's share of the waiting calls are taken.
        Deadline
            If the call has no slot in time, or its caller has hung up.
        """
        return _HeldSlot(self, turn, call)

    def join(self, turn: Turn, grant: Grant) -> bool:
        """Add a waiting call; return False if it is refused.

        Parameters
        ----------
        turn : Turn
        grant : callable
            Called once when the call has a slot, by any thread, and maybe before this returns.
        """
        with self._lock:
            if self._queue.refuses(turn):
                return False
            self._queue.push(turn, grant)
            self._grant()
            return True

    def leave(self, turn: Turn, grant: Grant) -> None:
        """Remove a call that waits no more; if it has a slot meanwhile, that is free again."""
        with self._lock:
            if not self._queue.withdraw(turn, grant):
                self._release(turn.principal)

    def end(self, principal: str) -> None:
        """Free the slot of a call of a principal."""
        with self._lock:
            self._release(principal)

    def pause(self, principal: str) -> None:
        """Let another call start, because one of a principal waits."""
        with self._lock:
            self._queue.pause(principal)
            self._grant()

    def resume(self, principal: str) -> None:
        """Count a paused call of a principal as computing again."""
        with self._lock:
            self._queue.resume(principal)

    def _grant(self) -> None:
        while self._free and (entry := self._queue.pop()) is not None:
            self._free -= 1
            entry[1]()

    def _release(self, principal: str) -> None:
        self._queue.end(principal)
        self._free += 1
        self._grant()


class _HeldSlot(AbstractContextManager[None]):
    """Slot of a call, which waits for it and runs in one thread.

    A class and not a generator, because each call enters and leaves one."""

    __slots__ = ("_call", "_outer", "_slots", "_turn")

    def __init__(self, slots: FairSlots, turn: Turn, call: CallContext) -> None:
        self._slots, self._turn, self._call = slots, turn, call
        self._outer: RunningTurn | None = None

    def __enter__(self) -> None:
        self._wait()
        self._outer = exchange_running_turn(self)

    def __exit__(self, *exception: object) -> None:
        exchange_running_turn(self._outer)
        self._slots.end(self._turn.principal)

    def pause(self) -> None:
        """Let another call start, because this one waits."""
        self._slots.pause(self._turn.principal)

    def resume(self) -> None:
        """Count this call as computing again."""
        self._slots.resume(self._turn.principal)

    def _wait(self) -> None:
        """Take a slot when it is the turn of the call."""
        call = self._call
        if time.monotonic() >= call.deadline:
            call.remaining()
        granted = threading.Lock()
        granted.acquire()
        if not self._slots.join(self._turn, granted.release):
            raise busy_error(self._slots.limit)
        try:
            if not granted.acquire(blocking=False):
                while not granted.acquire(timeout=call.remaining()):
                    pass
        except BaseException:
            self._slots.leave(self._turn, granted.release)
            raise
