"""Tests of limits per principal and space, with a clock of the test's own."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from asterism_access.limits import MAX_DEBT_S, AdmittedCall, LimitTable
from asterism_proto.errors import QuotaExceeded
from asterism_proto.v1 import metad_pb2 as metad_pb


class Catalog:
    """A state that a test changes, and the clock of its table."""

    def __init__(self, *rows: metad_pb.AccessLimits) -> None:
        self.now = 100.0
        self.refused: list[tuple[str, str]] = []
        self.set(*rows)
        self.table = LimitTable(
            lambda: self.state,
            on_refusal=lambda *refusal: self.refused.append(refusal),
            clock=lambda: self.now,
        )

    def set(self, *rows: metad_pb.AccessLimits) -> None:
        self.state = metad_pb.AccessState(limits=rows)

    def calls(self, principal: str, space: str, *, at_most: int = 1000) -> int:
        """Return how many calls are admitted one after another."""
        for number in range(at_most):
            try:
                self.table.admit(principal, space).release()
            except QuotaExceeded:
                return number
        return at_most


def row(principal: str, space: str = "*", **limits: float) -> metad_pb.AccessLimits:
    return metad_pb.AccessLimits(principal=principal, space=space, **limits)  # type: ignore[arg-type]


def test_no_state_and_no_rows_are_no_limits() -> None:
    assert LimitTable(lambda: None).admit("alice", "shop", 1e12, 1e12)
    catalog = Catalog()
    assert catalog.calls("alice", "shop") == 1000
    assert len(catalog.table) == 0


def test_a_bucket_holds_one_second_and_fills_over_time() -> None:
    catalog = Catalog(row("alice", "shop", calls_per_s=10))
    assert catalog.calls("alice", "shop") == 10
    catalog.now += 0.25
    assert catalog.calls("alice", "shop") == 2
    catalog.now += 3600
    assert catalog.calls("alice", "shop") == 10


def test_a_refusal_names_limit_caller_space_and_wait() -> None:
    catalog = Catalog(row("alice", "shop", calls_per_s=100), row("bob", calls_per_s=0.5))
    assert catalog.calls("alice", "shop") == 100
    with pytest.raises(QuotaExceeded) as caught:
        catalog.table.admit("alice", "shop")
    assert caught.value.message == (
        "calls_per_s=100: used up by 'alice' in space 'shop'; try again in 0.01 s"
    )
    assert catalog.calls("bob", "shop") == 1
    with pytest.raises(QuotaExceeded) as caught:
        catalog.table.admit("bob", "")
    assert caught.value.message == (
        "calls_per_s=0.5: used up by 'bob' in all spaces together; try again in 2.00 s"
    )
    assert caught.value.retry_after_s == 2.0
    assert catalog.refused[-2:] == [("bob", "calls_per_s")] * 2


def test_a_call_after_the_stated_wait_is_admitted() -> None:
    catalog = Catalog(row("alice", "shop", calls_per_s=3, rows_per_s=7, bytes_per_s=1e9 / 3))
    waits = 0
    for i in range(200):
        try:
            catalog.table.admit("alice", "shop", i % 11, i * 1e7).release()
        except QuotaExceeded as error:
            catalog.now += error.retry_after_s
            catalog.table.admit("alice", "shop", i % 11, i * 1e7).release()
            waits += 1
    assert waits > 10, "calls were refused, and admitted after the wait"


def test_a_refused_call_takes_nothing() -> None:
    catalog = Catalog(
        row("alice", "shop", calls_per_s=10, rows_per_s=100), row("alice", rows_per_s=40)
    )
    catalog.table.admit("alice", "shop", 40).release()
    for _ in range(50):
        with pytest.raises(QuotaExceeded, match="rows_per_s=40"):
            catalog.table.admit("alice", "shop", 1)
    assert catalog.calls("alice", "shop") == 9


def test_a_call_above_one_second_needs_a_full_bucket() -> None:
    catalog = Catalog(row("alice", "shop", rows_per_s=100))
    with catalog.table.admit("alice", "shop", rows=1000) as call:
        call.settle(rows=1000)
    with pytest.raises(QuotaExceeded) as caught:
        catalog.table.admit("alice", "shop", rows=1)
    assert caught.value.retry_after_s == pytest.approx(9.01)
    catalog.now += 9.02
    catalog.table.admit("alice", "shop", rows=1).release()
    with pytest.raises(QuotaExceeded):
        catalog.table.admit("alice", "shop", rows=1000)
    catalog.now += 1
    catalog.table.admit("alice", "shop", rows=1000).release()


def test_one_call_blocks_a_principal_for_a_minute_at_most() -> None:
    catalog = Catalog(row("alice", "shop", bytes_per_s=10))
    with catalog.table.admit("alice", "shop", size=5) as call:
        call.settle(size=1e9)
    with pytest.raises(QuotaExceeded) as caught:
        catalog.table.admit("alice", "shop", size=10)
    assert caught.value.retry_after_s == MAX_DEBT_S + 1


def test_a_price_above_the_real_cost_is_given_back() -> None:
    catalog = Catalog(row("alice", "shop", rows_per_s=100, bytes_per_s=1000))
    for _ in range(20):
        with catalog.table.admit("alice", "shop", rows=1e15, size=1e18) as call:
            call.settle(rows=0, size=0)
    with catalog.table.admit("alice", "shop", rows=30, size=900) as call:
        call.settle(size=100)
    catalog.table.admit("alice", "shop", rows=70, size=900).release()


def test_a_failed_call_takes_rows_but_no_bytes() -> None:
    catalog = Catalog(row("alice", "shop", rows_per_s=100, bytes_per_s=1000))
    with pytest.raises(KeyError), catalog.table.admit("alice", "shop", rows=60, size=1000):
        raise KeyError
    catalog.table.admit("alice", "shop", rows=40, size=1000).release()
    with pytest.raises(QuotaExceeded, match="rows_per_s"):
        catalog.table.admit("alice", "shop", rows=1)


def test_concurrent_calls_end_with_their_release() -> None:
    catalog = Catalog(row("alice", concurrent_calls=2))
    first, second = (catalog.table.admit("alice", space) for space in ("shop", "news"))
    with pytest.raises(QuotaExceeded, match="concurrent_calls=2: used up by 'alice' in all") as e:
        catalog.table.admit("alice", "shop")
    assert e.value.retry_after_s > 0
    first.release()
    first.release()
    third = catalog.table.admit("alice", "shop")
    with pytest.raises(QuotaExceeded):
        catalog.table.admit("alice", "shop")
    for admission in (second, third):
        admission.release()
    assert catalog.calls("alice", "shop") == 1000


def test_rows_of_the_star_hold_for_each_other_principal() -> None:
    catalog = Catalog(
        row("*", "shop", calls_per_s=5),
        row("alice", "shop", calls_per_s=7),
        row("alice", calls_per_s=9),
    )
    assert catalog.calls("bob", "shop") == 5
    assert catalog.calls("carol", "shop") == 5, "each has the full amount"
    assert catalog.calls("bob", "news") == 1000
    assert catalog.calls("alice", "shop") == 7
    assert catalog.calls("alice", "news") == 2, "of the nine in all spaces together"


def test_changed_limits_hold_at_once_and_levels_stay() -> None:
    catalog = Catalog(row("alice", "shop", calls_per_s=10))
    assert catalog.calls("alice", "shop") == 10
    catalog.set(row("alice", "shop", calls_per_s=100))
    assert catalog.calls("alice", "shop") == 0
    catalog.now += 0.5
    assert catalog.calls("alice", "shop") == 50
    catalog.now += 1
    catalog.set(row("alice", "shop", calls_per_s=4))
    assert catalog.calls("alice", "shop") == 4
    catalog.set(row("alice", "shop", calls_per_s=4, rows_per_s=8))
    catalog.now += 0.25
    catalog.table.admit("alice", "shop", rows=8).release()
    catalog.set()
    assert catalog.calls("alice", "shop") == 1000
    assert len(catalog.table) == 0


def test_an_equal_state_changes_no_level() -> None:
    catalog = Catalog(row("alice", "shop", calls_per_s=10, concurrent_calls=1))
    held = catalog.table.admit("alice", "shop")
    for _ in range(3):
        catalog.set(row("alice", "shop", calls_per_s=10, concurrent_calls=1))
        with pytest.raises(QuotaExceeded, match="concurrent_calls"):
            catalog.table.admit("alice", "shop")
    held.release()
    assert catalog.calls("alice", "shop") == 9


def test_idle_entries_are_dropped_and_active_ones_stay() -> None:
    catalog = Catalog(row("*", "shop", calls_per_s=10, concurrent_calls=1))
    held = catalog.table.admit("held", "shop")
    assert catalog.calls("spent", "shop") == 10
    for i in range(20_000):
        catalog.now += 0.01
        catalog.table.admit(f"principal {i}", "shop").release()
        if i % 500 == 0:
            assert catalog.calls("spent", "shop") <= 10
    assert len(catalog.table) <= 4096
    with pytest.raises(QuotaExceeded, match="concurrent_calls"):
        catalog.table.admit("held", "shop")
    held.release()


def test_threads_never_exceed_a_limit_together() -> None:
    catalog = Catalog(
        row("alice", "shop", calls_per_s=500, concurrent_calls=3), row("alice", rows_per_s=400)
    )
    admitted: list[AdmittedCall] = []
    most, lock = [0], threading.Lock()
    running = 0

    def work(_: int) -> None:
        nonlocal running
        try:
            admission = catalog.table.admit("alice", "shop", rows=1)
        except QuotaExceeded:
            return
        with lock:
            running += 1
            most[0] = max(most[0], running)
            admitted.append(admission)
        with lock:
            running -= 1
        admission.release()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(4000)))
    assert len(admitted) <= 400
    assert most[0] <= 3
    assert catalog.table.admit("alice", "shop")


def test_the_share_of_turns_is_that_of_all_spaces() -> None:
    catalog = Catalog(row("alice", share=3), row("*", share=0.5), row("bob", calls_per_s=1))
    assert [catalog.table.share(name) for name in ("alice", "bob", "carol")] == [3.0, 1.0, 0.5]
    catalog.set()
    assert catalog.table.share("alice") == 1.0
