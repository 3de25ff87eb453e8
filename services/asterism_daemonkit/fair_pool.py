"""Weighted fair turns: calls of many principals on a fixed number of threads or slots.

Stride scheduling (Waldspurger & Weihl 1995): each principal has a pass, the waiting principal with
the lowest pass is served next, and its pass grows by 1 / share. Turns count calls, not their time.
"""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, ParamSpec, TypeVar

from asterism_access.principals import Principal
from asterism_daemonkit.calls import CallContext
from asterism_proto.errors import CALLER_KEY, Busy

_MAX_CALLER_CHARS = 64
"""Characters of a caller's name that are used to distinguish callers."""
_SWEEP_PRINCIPALS = 256
"""Principals in memory from which idle ones are looked for."""
_MAX_EXECUTORS = 1024
_MIN_SHARE, _MAX_SHARE = 1e-3, 1e3
"""Bounds of shares. Beyond them, passes would lose precision."""

P = ParamSpec("P")
R = TypeVar("R")
Item = TypeVar("Item")


ShareSource = Callable[[str], float]
"""Function that returns the weight of the turns of a principal with some name."""


def equal_share(principal: str) -> float:
    """Return 1 for every principal; the default `ShareSource`."""
    return 1.0


@dataclass(frozen=True, slots=True)
class Turn:
    """Claim of one call on a turn."""

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


class _Principal(Generic[Item]):
    """Calls of one principal in a `FairQueue`."""

    __slots__ = ("calls", "name", "next_pass", "queued", "share", "waiting")

    def __init__(self, name: str, next_pass: float) -> None:
        self.name, self.next_pass = name, next_pass
        self.share = 1.0
        self.calls = 0
        """Running and waiting calls."""
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
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
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
        if self.calls < self.limit:
            return False
        if self.calls >= 2 * self.limit:
            return True
        own = self._principals.get(turn.principal)
        shares = sum(other.share for other in self._principals.values() if other.calls)
        share = int(self.limit * turn.share / (shares or turn.share))
        return (own.calls if own is not None else 0) >= share

    def push(self, turn: Turn, item: Item) -> None:
        """Add a waiting call."""
        principal = self._principals.get(turn.principal)
        if principal is None:
            if len(self._principals) >= self._sweep_at:
                self._sweep()
            principal = self._principals[turn.principal] = _Principal(turn.principal, self._pass)
        principal.share = min(max(turn.share, _MIN_SHARE), _MAX_SHARE)
        principal.calls += 1
        self.calls += 1
        principal.waiting.setdefault(turn.caller, deque()).append(item)
        if not principal.queued:
            principal.next_pass = max(principal.next_pass, self._pass)
            self._queue(principal)

    def pop(self) -> tuple[str, Item] | None:
        """Return the principal and item of the next call to run; None if no call waits."""
        while self._heap:
            served_pass, _, principal = heapq.heappop(self._heap)
            principal.queued = False
            if not principal.waiting:
                continue  # its calls were withdrawn
            caller, items = principal.waiting.popitem(last=False)
            item = items.popleft()
            if items:
                principal.waiting[caller] = items  # after all other clients of the principal
            self._pass = max(self._pass, served_pass)
            principal.next_pass = served_pass + 1 / principal.share
            self._largest_pass = max(self._largest_pass, principal.next_pass)
            if principal.waiting:
                self._queue(principal)
            elif not self._heap:  # nothing waits: what was served until now counts no more
                self._pass = self._largest_pass
            return principal.name, item
        return None

    def withdraw(self, turn: Turn, item: Item) -> bool:
        """Remove a waiting call; return False if it does not wait any more."""
        principal = self._principals.get(turn.principal)
        items = principal.waiting.get(turn.caller) if principal is not None else None
        if principal is None or items is None or item not in items:
            return False
        items.remove(item)
        if not items:
            del principal.waiting[turn.caller]
        self.end(turn.principal)
        return True

    def end(self, name: str) -> None:
        """Count a call of a principal as ended."""
        principal = self._principals[name]
        principal.calls -= 1
        self.calls -= 1
        if self._is_idle(principal):
            del self._principals[name]

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
    """Thread pool that serves principals in turn.

    A principal with many waiting calls delays another one of the same share by one call at most.

    Parameters
    ----------
    workers : int
        Calls that run at a time.
    queue : int
        Calls that may wait.
    """

    def __init__(self, workers: int, queue: int) -> None:
        self.limit = workers + queue
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="grpc")
        self._lock = threading.Lock()
        self._queue: FairQueue[tuple[Future[Any], Callable[[], Any]]] = FairQueue(self.limit)
        self._executors: dict[Turn, TurnExecutor] = {}

    @property
    def calls(self) -> int:
        """Running and waiting calls."""
        return self._queue.calls

    def executor(self, turn: Turn) -> TurnExecutor:
        """Return the executor that queues calls with a turn."""
        executor = self._executors.get(turn)
        if executor is None:
            if len(self._executors) >= _MAX_EXECUTORS:
                self._executors.clear()
            executor = self._executors[turn] = TurnExecutor(self, turn)
        return executor

    def admit(self, turn: Turn) -> TurnExecutor | None:
        """Return the executor for a call; None if the pool and the principal's share are full."""
        with self._lock:
            return None if self._queue.refuses(turn) else self.executor(turn)

    def submit(self, turn: Turn, call: Callable[[], Any]) -> Future[Any]:
        """Queue a call and return its future."""
        future: Future[Any] = Future()
        with self._lock:
            self._queue.push(turn, (future, call))
        try:
            self._threads.submit(self._run_next)
        except RuntimeError:  # shut down: no thread will run the queued call
            with self._lock:
                self._queue.withdraw(turn, (future, call))
            future.cancel()
            raise
        return future

    def stop(self) -> None:
        """Accept no more calls."""
        self._threads.shutdown(wait=False)

    def _run_next(self) -> None:
        with self._lock:
            entry = self._queue.pop()
        if entry is None:  # withdrawn
            return
        principal, (future, call) = entry
        try:
            if future.set_running_or_notify_cancel():
                future.set_result(call())
        except BaseException as error:
            future.set_exception(error)
        finally:
            with self._lock:
                self._queue.end(principal)


class TurnExecutor(ThreadPoolExecutor):
    """Executor that queues calls with one turn in a pool.

    gRPC requires a ThreadPoolExecutor to run a behavior; this one has no threads of its own."""

    def __init__(self, pool: FairPool, turn: Turn) -> None:
        super().__init__(1)
        self._pool, self._turn = pool, turn

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Queue a call and return its future."""
        return self._pool.submit(self._turn, partial(fn, *args, **kwargs))


class FairSlots:
    """Slots for the calls of threads that wait for their turn.

    Parameters
    ----------
    workers : int
        Calls that run at a time.
    queue : int
        Calls that may wait.
    """

    def __init__(self, workers: int, queue: int) -> None:
        self.limit = workers + queue
        self._free = workers
        self._lock = threading.Lock()
        self._queue: FairQueue[threading.Lock] = FairQueue(self.limit)
        """Waiting calls: locks that are released when the call has a slot."""

    @property
    def calls(self) -> int:
        """Running and waiting calls."""
        return self._queue.calls

    @contextmanager
    def slot(self, turn: Turn, call: CallContext) -> Iterator[None]:
        """Wait for a slot and hold it.

        Raises
        ------
        Busy
            If all slots and the principal's share of the waiting calls are taken.
        Deadline
            If the call has no slot in time, or its caller has hung up.
        """
        if time.monotonic() >= call.deadline:
            call.remaining()
        granted = threading.Lock()
        granted.acquire()
        with self._lock:
            if self._queue.refuses(turn):
                raise busy_error(self.limit)
            self._queue.push(turn, granted)
            self._grant()
        try:
            if not granted.acquire(blocking=False):
                while not granted.acquire(timeout=call.remaining()):
                    pass
        except BaseException:
            with self._lock:
                if not self._queue.withdraw(turn, granted):
                    self._release(turn)  # it was granted meanwhile
            raise
        try:
            yield
        finally:
            with self._lock:
                self._release(turn)

    def _grant(self) -> None:
        while self._free and (entry := self._queue.pop()) is not None:
            self._free -= 1
            entry[1].release()

    def _release(self, turn: Turn) -> None:
        self._queue.end(turn.principal)
        self._free += 1
        self._grant()
