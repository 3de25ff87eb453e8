"""Tests of weighted fair turns: the order by itself, in simulated time, and of real threads."""

from __future__ import annotations

import heapq
import math
import random
import threading
import time
from collections import Counter, deque
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pytest
from tests.kit.waiting import HANG_S, wait_until

from asterism_access.principals import LOCAL, Principal, PrincipalKind
from asterism_daemonkit.rpc.call_context import CallContext, waiting
from asterism_daemonkit.rpc.fair_pool import (
    FairPool,
    FairQueue,
    FairSlots,
    Turn,
    equal_share,
    turn_of,
)
from asterism_proto.errors import CALLER_KEY, Busy, Deadline

A, B, C = Turn("a"), Turn("b"), Turn("c")


def serve_all(queue: FairQueue[str]) -> str:
    """Return the items in the order in which they are served."""
    served = []
    while (entry := queue.pop()) is not None:
        served.append(entry[1])
        queue.end(entry[0])
    return "".join(served)


def serve(queue: FairQueue[str], turns: int, backlogs: Mapping[Turn, int]) -> Counter[str]:
    """Return turns by principal while each keeps its number of waiting calls."""
    served: Counter[str] = Counter()
    for turn, count in backlogs.items():
        for _ in range(count):
            queue.push(turn, turn.principal)
    by_name = {turn.principal: turn for turn in backlogs}
    for _ in range(turns):
        entry = queue.pop()
        assert entry is not None
        served[entry[0]] += 1
        queue.end(entry[0])
        queue.push(by_name[entry[0]], entry[0])
    return served


def test_principals_of_one_share_take_turns() -> None:
    queue: FairQueue[str] = FairQueue(100)
    for turn, items in ((A, "aaaaa"), (B, "bb"), (C, "c")):
        for item in items:
            queue.push(turn, item)
    assert serve_all(queue) == "abcabaaa"
    assert queue.calls == 0


def test_a_newcomer_comes_before_the_next_turn_of_a_backlog() -> None:
    queue: FairQueue[str] = FairQueue(100)
    for _ in range(50):
        queue.push(A, "a")
    for _ in range(20):
        queue.pop()
    queue.push(B, "b")
    entry = queue.pop()
    assert entry is not None
    assert entry[1] == "b"


def test_turns_follow_the_shares() -> None:
    shares = {Turn("a", 1.0): 40, Turn("b", 2.0): 40, Turn("c", 0.5): 40}
    served = serve(FairQueue(1000), 7000, shares)
    assert [round(served[name], -1) for name in "abc"] == [2000, 4000, 1000]


def test_the_length_of_a_backlog_gives_no_turns() -> None:
    served = serve(FairQueue(1000), 1000, {A: 300, B: 2})
    assert abs(served["a"] - served["b"]) <= 1


def test_a_small_share_is_not_evaded_by_one_call_at_a_time() -> None:
    served = serve(FairQueue(1000), 1100, {Turn("a", 1.0): 20, Turn("b", 0.1): 1})
    assert served["b"] == pytest.approx(100, abs=2)


def test_turns_that_were_not_used_are_not_saved() -> None:
    queue: FairQueue[str] = FairQueue(1000)
    queue.push(B, "b")
    serve_all(queue)
    serve(queue, 500, {A: 1})
    for _ in range(10):
        queue.push(B, "b")
        queue.push(A, "a")
    assert set(serve_all(queue)[:4]) == {"a", "b"}


def test_clients_of_one_principal_take_turns_among_themselves() -> None:
    queue: FairQueue[str] = FairQueue(100)
    for caller, items in (("1", "xxx"), ("2", "y")):
        for item in items:
            queue.push(Turn("a", caller=caller), item)
    for item in "bbbb":
        queue.push(B, item)
    assert serve_all(queue) == "xbybxbxb"


def test_a_full_queue_admits_principals_below_their_share() -> None:
    queue: FairQueue[str] = FairQueue(8)
    for _ in range(8):
        assert not queue.refuses(A)
        queue.push(A, "a")
    assert queue.refuses(A)
    for _ in range(4):
        assert not queue.refuses(B)
        queue.push(B, "b")
    assert queue.refuses(B)
    light = Turn("c", 0.5)
    assert not queue.refuses(light)
    queue.push(light, "c")
    assert queue.refuses(light), "its share is a fifth of eight"
    names = iter("defghijk")
    while queue.calls < 16:
        queue.push(Turn(next(names)), "d")
    assert queue.refuses(Turn("last")), "twice the limit"


def test_withdrawn_calls_are_not_served() -> None:
    queue: FairQueue[str] = FairQueue(8)
    for turn, item in ((A, "1"), (A, "2"), (B, "3")):
        queue.push(turn, item)
    assert queue.withdraw(A, "1")
    assert not queue.withdraw(A, "1")
    assert queue.withdraw(B, "3")
    assert not queue.withdraw(C, "4")
    queue.push(B, "5")
    assert sorted(serve_all(queue)) == ["2", "5"]
    assert queue.calls == 0


def test_idle_principals_take_no_memory() -> None:
    queue: FairQueue[str] = FairQueue(8)
    for i in range(20_000):
        queue.push(Turn(f"principal {i}", 0.01), "x")
        serve_all(queue)
    assert len(queue._principals) <= 1024


def simulate(backlogs: Mapping[Turn, int], *, workers: int, calls: int) -> dict[str, list[float]]:
    """Return latencies by principal, in units of one call's time.

    Each principal has as many threads as its backlog, and each of them calls again at once.
    """
    queue: FairQueue[float] = FairQueue(1000)
    running: list[tuple[float, str, float]] = []
    latencies: dict[str, list[float]] = {turn.principal: [] for turn in backlogs}
    by_name = {turn.principal: turn for turn in backlogs}
    now, free, noise = 0.0, workers, random.Random(7)
    for turn, threads in backlogs.items():
        for _ in range(threads):
            queue.push(turn, 0.0)
    for _ in range(calls):
        while free and (entry := queue.pop()) is not None:
            name, started_at = entry
            free -= 1
            heapq.heappush(running, (now + noise.uniform(0.95, 1.05), name, started_at))
        now, name, started_at = heapq.heappop(running)
        free += 1
        queue.end(name)
        latencies[name].append(now - started_at)
        queue.push(by_name[name], now)
    return latencies


class SharedProcessor:
    """Simulated threads on fewer cores: running calls share the processor equally.

    Parameters
    ----------
    threads : mapping
        Threads of each principal, which call again at once.
    workers, cores : int
    bound : int
        Calls that compute at a time, for the queue.
    """

    def __init__(
        self, threads: Mapping[Turn, int], *, workers: int, cores: int, bound: int
    ) -> None:
        self.now = 0.0
        self._queue: FairQueue[float] = FairQueue(1000, cores=bound, clock=lambda: self.now)
        self._workers, self._cores = workers, cores
        self._turns = {turn.principal: turn for turn in threads}
        self._running: list[tuple[float, str, float]] = []
        """Work left in units of one call, principal, and time of the request."""
        self._noise = random.Random(7)
        self.latencies: dict[str, list[float]] = {name: [] for name in self._turns}
        for turn, count in threads.items():
            for _ in range(count):
                self._queue.push(turn, 0.0)

    def run(self, calls: int) -> dict[str, list[float]]:
        """Return latencies by principal, in units of one call alone."""
        for _ in range(calls):
            while len(self._running) < self._workers and (entry := self._queue.pop()) is not None:
                self._running.append((self._noise.uniform(0.95, 1.05), *entry))
            rate = min(1.0, self._cores / len(self._running))
            work, name, requested_at = min(self._running)
            self._running.remove((work, name, requested_at))
            self.now += work / rate
            self._running = [(left - work, *others) for left, *others in self._running]
            self._queue.end(name)
            self.latencies[name].append(self.now - requested_at)
            self._queue.push(self._turns[name], self.now)
        return self.latencies


@pytest.mark.parametrize("workers", [2, 4, 16])
@pytest.mark.parametrize("cores", [1, 2, 8])
def test_threads_beyond_the_cores_give_no_more_processor(workers: int, cores: int) -> None:
    small = Turn("small")

    def p99_beside(other: int, bound: int) -> float:
        threads = {small: 1, Turn("other"): other}
        shared = SharedProcessor(threads, workers=workers, cores=cores, bound=bound)
        return p99(shared.run(2_000 * (1 + min(other, workers)))["small"])

    assert p99_beside(32, cores) <= 2.0 * p99_beside(1, cores)
    if workers == 16 and cores == 2:
        assert p99_beside(32, 0) > 4.0 * p99_beside(1, 0), "without a bound"


def test_turns_beyond_the_bound_are_not_saved() -> None:
    queue: FairQueue[str] = FairQueue(1000, cores=1, clock=lambda: 0.0)
    for _ in range(100):
        queue.push(A, "a")
    assert queue.pop() == ("a", "a")
    for _ in range(50):  # served beside the call of A that computes
        queue.push(B, "b")
        assert queue.pop() == ("b", "b")
        queue.end("b")
    queue.pause("a")
    served = []
    for _ in range(6):
        queue.push(C, "c")
        entry = queue.pop()
        assert entry is not None
        served.append(entry[0])
        queue.pause(entry[0])
    assert served.count("c") == 3, "A has no turns left from when it could not use them"


def test_a_principal_alone_has_all_threads() -> None:
    now = 0.0
    queue: FairQueue[str] = FairQueue(100, cores=2, clock=lambda: now)
    for _ in range(20):
        queue.push(A, "a")
    assert [queue.pop() for _ in range(16)] == [("a", "a")] * 16


def test_the_bound_holds_while_others_call_and_for_a_while() -> None:
    now = 0.0
    queue: FairQueue[str] = FairQueue(100, cores=2, clock=lambda: now)
    for _ in range(20):
        queue.push(A, "a")
    queue.push(B, "b")
    served = [queue.pop() for _ in range(3)]
    assert served == [("a", "a"), ("b", "b"), None], "two calls compute"
    queue.push(C, "c")
    assert [queue.pop(), queue.pop()] == [("c", "c"), None], "each principal may have one"
    for name in "bc":
        queue.end(name)
    assert [queue.pop(), queue.pop()] == [("a", "a"), None], "the others may call again"
    queue.pause("a")
    assert [queue.pop(), queue.pop()] == [("a", "a"), None], "a call waits for another daemon"
    queue.resume("a")
    queue.end("a")
    assert queue.pop() is None
    now = 10.0
    assert [queue.pop() for _ in range(17)] == [("a", "a")] * 17
    assert queue.pop() is None


def p99(latencies: list[float]) -> float:
    return sorted(latencies)[int(0.99 * len(latencies))]


@pytest.mark.parametrize("workers", [1, 2, 4, 16])
def test_a_greedy_principal_at_most_doubles_the_p99_of_another(workers: int) -> None:
    small = Turn("small")
    equal = simulate({small: 1, Turn("other"): 1}, workers=workers, calls=4000)
    greedy = simulate({small: 1, Turn("greedy"): 32}, workers=workers, calls=40_000)
    assert p99(greedy["small"]) <= 2.0 * p99(equal["small"])
    one_queue = simulate({Turn("both"): 33}, workers=workers, calls=40_000)
    assert p99(one_queue["both"]) > 32 / workers, "without turns, it waits for all others"


def test_a_pool_serves_principals_in_turn() -> None:
    pool, release, order = FairPool(1, 100), threading.Event(), deque[str]()

    def serve(turn: Turn) -> None:
        with pool.turn(turn, CallContext.with_timeout(HANG_S)):
            order.append(turn.principal)
            release.wait(HANG_S)

    futures = []
    for number, turn in enumerate([A] * 6 + [B] * 3, 1):
        futures.append(pool.executor(turn).submit(serve, turn))
        wait_until(lambda at=number: pool.calls == at, "the call waits or runs")  # type: ignore[misc]
    release.set()
    for future in futures:
        future.result(HANG_S)
    assert "".join(order) == "aabababaa"
    wait_until(lambda: pool.admitted == 0, "all calls have ended")
    pool.stop()


def test_calls_without_their_message_take_no_turns() -> None:
    pool, message = FairPool(2, 2), threading.Event()

    def serve(turn: Turn, message: threading.Event) -> str:
        message.wait(HANG_S)
        with pool.turn(turn, CallContext.with_timeout(HANG_S)):
            return turn.principal

    silent = [pool.executor(A).submit(serve, A, message) for _ in range(4)]
    assert pool.admit(A) is None
    executor, has_message = pool.admit(B), threading.Event()
    has_message.set()
    assert executor is not None
    assert executor.submit(serve, B, has_message).result(HANG_S) == "b"
    message.set()
    assert [future.result(HANG_S) for future in silent] == ["a"] * 4
    pool.stop()


def test_a_pool_starts_a_call_for_each_that_waits() -> None:
    pool, reply = FairPool(8, 100, cores=1), threading.Event()
    computing, started = [0], [0]
    lock = threading.Lock()

    def count(number: int) -> None:
        with lock:
            computing[0] += number

    def call(turn: Turn) -> int:
        with pool.turn(turn, CallContext.with_timeout(HANG_S)):
            count(1)
            with lock:
                started[0] += 1
                most = computing[0]
            count(-1)
            with waiting(), waiting():
                reply.wait(HANG_S)
            return most

    futures = [pool.executor(turn).submit(call, turn) for turn in (A, A, B, A, A, A)]
    wait_until(lambda: started[0] == 6, "all calls wait at the same time")
    reply.set()
    assert max(future.result(HANG_S) for future in futures) <= 3, "one, and one of each principal"
    slots = pool._slots
    wait_until(lambda: (slots.calls, slots._free, slots._queue.computing) == (0, 8, 0), "all ended")
    pool.stop()


def test_a_pool_gives_all_threads_back_after_contention() -> None:
    pool, first, second = FairPool(4, 100, cores=1), threading.Event(), threading.Event()
    slots, running = pool._slots, deque[threading.Event]()

    def call(turn: Turn, release: threading.Event) -> None:
        with pool.turn(turn, CallContext.with_timeout(HANG_S)):
            running.append(release)
            release.wait(HANG_S)

    futures = [pool.executor(turn).submit(call, turn, first) for turn in (A, B)]
    wait_until(lambda: len(running) == 2, "one of each runs")
    futures += [pool.executor(A).submit(call, A, second) for _ in range(8)]
    wait_until(lambda: pool.calls == 10, "the others wait")
    assert second not in running
    with slots._lock:
        slots._queue._alternated_at = -math.inf  # B called long ago, and has ended
        slots._queue._clock = lambda: 1e9
    first.set()
    wait_until(lambda: running.count(second) == 4, "A has all slots")
    second.set()
    for future in futures:
        future.result(HANG_S)
    wait_until(lambda: (slots.calls, slots._free) == (0, 4), "all ended")
    pool.stop()


def test_a_slot_of_a_waiting_call_lets_another_start() -> None:
    slots, entered = FairSlots(4, 20, cores=1), deque[str]()
    reply, done = threading.Event(), threading.Event()

    def hold(turn: Turn, waits: bool) -> None:
        with slots.slot(turn, CallContext.with_timeout(HANG_S)):
            entered.append(turn.principal)
            if waits:
                with waiting():
                    reply.wait(HANG_S)
            done.wait(HANG_S)

    with ThreadPoolExecutor(8) as threads:
        for turn in (A, B):
            threads.submit(hold, turn, True)
        wait_until(lambda: len(entered) == 2, "both wait for a reply")
        threads.submit(hold, A, False)
        wait_until(lambda: len(entered) == 3, "a third call computes")
        threads.submit(hold, A, False)
        wait_until(lambda: slots.calls == 4, "the fourth waits for its turn")
        assert len(entered) == 3
        reply.set()
        done.set()
    assert (slots.calls, slots._free, slots._queue.computing) == (0, 4, 0)


def test_a_stopped_pool_keeps_no_calls() -> None:
    pool = FairPool(1, 100)
    pool.stop()
    with pytest.raises(RuntimeError):
        pool.executor(A).submit(print)
    assert pool.admitted == 0


def test_an_error_of_a_call_ends_it() -> None:
    pool = FairPool(2, 0)
    with pytest.raises(ZeroDivisionError):
        pool.executor(A).submit(lambda: 1 // 0).result(HANG_S)
    wait_until(lambda: pool.admitted == 0, "the call has ended")
    pool.stop()


class SlotUser:
    """Threads that wait for slots, hold them until released, and note their order."""

    def __init__(self, slots: FairSlots) -> None:
        self.slots, self.order, self.release = slots, deque[str](), threading.Event()
        self.threads = ThreadPoolExecutor(64)

    def hold(self, turn: Turn) -> None:
        with self.slots.slot(turn, CallContext.with_timeout(HANG_S)):
            self.order.append(turn.principal)
            self.release.wait(HANG_S)

    def start(self, turn: Turn) -> None:
        calls = self.slots.calls
        self.threads.submit(self.hold, turn)
        wait_until(lambda: self.slots.calls == calls + 1, "the call waits or runs")


def test_slots_are_granted_in_turn() -> None:
    user = SlotUser(FairSlots(1, 20))
    for turn in [A] * 6 + [B] * 3:
        user.start(turn)
    assert list(user.order) == ["a"]
    user.release.set()
    user.threads.shutdown()
    assert "".join(user.order) == "aabababaa"
    assert user.slots.calls == 0


def test_a_call_beyond_the_slots_is_busy_unless_below_its_share() -> None:
    user = SlotUser(FairSlots(2, 2))
    for _ in range(4):
        user.start(A)
    with (
        pytest.raises(Busy, match="all 4 slots for calls are taken; try again in 100 ms"),
        user.slots.slot(A, CallContext.with_timeout(1)),
    ):
        pass
    user.start(B)
    user.release.set()
    user.threads.shutdown()
    assert Counter(user.order) == {"a": 4, "b": 1}


def test_a_call_that_waits_too_long_leaves_the_queue() -> None:
    user = SlotUser(FairSlots(1, 4))
    user.start(A)
    with pytest.raises(Deadline), user.slots.slot(B, CallContext.with_timeout(0.05)):
        pass
    with pytest.raises(Deadline), user.slots.slot(B, CallContext(time.monotonic() - 1)):
        pass
    hung_up = CallContext(time.monotonic() + HANG_S, lambda: False)
    with pytest.raises(Deadline), user.slots.slot(B, hung_up):
        pass
    assert user.slots.calls == 1
    user.release.set()
    user.threads.shutdown()
    with user.slots.slot(B, CallContext.with_timeout(HANG_S)):
        assert user.slots.calls == 1
    assert user.slots.calls == 0


@pytest.mark.parametrize("cores", [0, 1, 2])
def test_no_slot_is_lost_to_errors_and_short_deadlines(cores: int) -> None:
    slots = FairSlots(3, 10, cores=cores)
    running, most, lock = [0], [0], threading.Lock()

    def work(number: int) -> None:
        try:
            with slots.slot(Turn(str(number % 5)), CallContext.with_timeout((number % 7) * 2e-4)):
                with lock:
                    running[0] += 1
                    most[0] = max(most[0], running[0])
                with waiting() if number % 2 else nullcontext():
                    time.sleep(1e-4)
                with lock:
                    running[0] -= 1
                if number % 3 == 0:
                    raise KeyError
        except (Busy, Deadline, KeyError):
            pass

    with ThreadPoolExecutor(12) as threads:
        list(threads.map(work, range(3000)))
    assert most[0] <= 3
    assert (slots.calls, slots._free, slots._queue.computing) == (0, 3, 0)


@pytest.mark.parametrize("cores", [0, 1, 2])
def test_no_thread_of_a_pool_is_lost(cores: int) -> None:
    pool = FairPool(3, 100, cores=cores)
    slots = pool._slots

    def work(turn: Turn, number: int) -> None:
        with pool.turn(turn, CallContext.with_timeout(HANG_S)):
            with waiting() if number % 2 else nullcontext():
                time.sleep(1e-5 * (number % 3))
            if number % 7 == 0:
                raise KeyError(number)

    def submit(number: int) -> bool:
        turn = Turn(str(number % 5))
        return pool.executor(turn).submit(work, turn, number).exception(HANG_S) is None

    with ThreadPoolExecutor(16) as threads:
        results = list(threads.map(submit, range(3000)))
    assert results == [number % 7 != 0 for number in range(3000)]
    assert (slots.calls, slots._free, slots._queue.computing) == (0, 3, 0)
    wait_until(lambda: pool.admitted == 0, "all calls have ended")
    pool.stop()


def test_a_turn_is_that_of_the_principal_or_a_trusted_caller() -> None:
    metadata = (("x", "1"), (CALLER_KEY, "c" * 100))
    alice = Principal(name="alice", kind=PrincipalKind.API_KEY)
    assert turn_of(alice, {"alice": 3.0}.__getitem__, metadata) == Turn("alice", 3.0, "c" * 64)
    assert turn_of(LOCAL, equal_share, metadata) == Turn("c" * 64)
    daemon = Principal(name="graphd", kind=PrincipalKind.DAEMON)
    assert turn_of(daemon, {}.__getitem__) == Turn("graphd", 1.0)
