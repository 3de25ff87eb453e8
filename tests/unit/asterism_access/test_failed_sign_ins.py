"""Tests of the limit of failed sign-ins of an address."""

from __future__ import annotations

import pytest

from asterism_access.failed_sign_ins import MAX_FAILURES, REFILL_S, FailedSignIns
from asterism_proto.errors import QuotaExceeded


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def take(failed: FailedSignIns, address: str, times: int) -> int:
    """Return how many of some attempts are allowed."""
    allowed = 0
    for _ in range(times):
        try:
            failed.take(address)
            allowed += 1
        except QuotaExceeded:
            pass
    return allowed


def test_an_address_may_fail_some_times_and_then_slowly() -> None:
    clock = Clock()
    failed = FailedSignIns(clock=clock)
    assert take(failed, "10.0.0.7", 100) == MAX_FAILURES
    with pytest.raises(QuotaExceeded, match=r"sign_ins=10: .*; try again in 6 s") as raised:
        failed.take("10.0.0.7")
    assert raised.value.retry_after_s == pytest.approx(REFILL_S)
    assert take(failed, "10.0.0.8", 1) == 1
    clock.now_s += REFILL_S
    assert take(failed, "10.0.0.7", 100) == 1
    clock.now_s += 100 * REFILL_S
    assert take(failed, "10.0.0.7", 100) == MAX_FAILURES


def test_sign_ins_that_succeed_do_not_count() -> None:
    failed = FailedSignIns(clock=Clock())
    for _ in range(5 * MAX_FAILURES):
        failed.take("10.0.0.7")
        failed.give_back("10.0.0.7")
    assert take(failed, "10.0.0.7", 100) == MAX_FAILURES


def test_a_host_with_many_ipv6_addresses_counts_once() -> None:
    failed = FailedSignIns(clock=Clock())
    assert sum(take(failed, f"2001:db8::{i:x}", 1) for i in range(1, 50)) == MAX_FAILURES
    assert take(failed, "2001:db8:0:1::1", 1) == 1
    assert take(failed, "::ffff:10.0.0.7", 100) == MAX_FAILURES
    assert take(failed, "10.0.0.7", 1) == 0
    assert take(failed, "fe80::1%eth0", 1) == 1
    assert take(failed, "unix", 1) == 1


def test_the_number_of_remembered_addresses_is_bounded() -> None:
    clock = Clock()
    failed = FailedSignIns(max_addresses=8, clock=clock)
    for i in range(1000):
        failed.take(f"10.0.{i // 250}.{i % 250}")
        assert len(failed) <= 9
    clock.now_s += 100 * REFILL_S
    failed.take("10.1.0.1")
    take(failed, "10.1.0.2", 5)
    assert take(failed, "10.1.0.2", 100) == MAX_FAILURES - 5
