"""Single writes that gather while another group is under way: who carries them, and who gets which fault."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import pytest
from tests.kit.waiting import HANG_S

from asterism_proto.errors import AsterismError, Deadline, InvalidRequest
from asterism_proto.v1 import storaged_pb2 as store
from daemonkit.calls import Call
from graphd import once
from graphd.once import Groups, Single, joined, runs_of


def single(ids: Sequence[int], *, kind: int = store.NODES, seconds: float = 10, **more: np.ndarray) -> Single:
    arrays = {"ids": np.array(ids, np.int64), **more}
    return Single(kind=kind, type_id=0, rows=len(ids), sections=arrays, call=Call.within(seconds))


class Desk:
    """Carries groups out one by one, each when it is let go."""

    def __init__(self) -> None:
        self.groups: list[list[list[int]]] = []
        self.begun = threading.Semaphore(0)
        self.gate = threading.Semaphore(0)
        self.bad: set[int] = set()
        self.uncertain = False

    def carry(self, space: str, group: Sequence[Single], call: Call) -> None:
        self.groups.append([one.sections["ids"].tolist() for one in group])
        self.begun.release()
        assert self.gate.acquire(timeout=HANG_S)
        if self.uncertain:
            raise once.Uncertain("who knows")
        for one in group:
            if self.bad & set(one.sections["ids"].tolist()):
                raise InvalidRequest(f"bad {self.bad}")
        for one in group:
            one.commit = len(self.groups)


class Writers:
    """Threads that write, and what they got."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups
        self._threads: list[threading.Thread] = []
        self.errors: dict[int, AsterismError] = {}
        self.commits: dict[int, int] = {}

    def write(self, one: Single) -> None:
        def run() -> None:
            name = int(one.sections["ids"][0])
            try:
                self._groups.write("space", one)
                self.commits[name] = one.commit
            except AsterismError as error:
                self.errors[name] = error

        self._threads.append(threading.Thread(target=run))
        self._threads[-1].start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join(HANG_S)
            assert not thread.is_alive()


@pytest.fixture
def desk() -> Desk:
    return Desk()


def gathered(groups: Groups, n: int) -> None:
    """Wait until ``n`` writes wait for their turn."""
    while len(groups._waiting.get("space", ())) < n:
        threading.Event().wait(0.001)


def test_the_first_goes_at_once_and_those_that_come_meanwhile_share_the_next_group(desk: Desk) -> None:
    groups = Groups(desk.carry)
    writers = Writers(groups)
    writers.write(single([1]))
    assert desk.begun.acquire(timeout=HANG_S)
    for i in (2, 3, 4):
        writers.write(single([i]))
        gathered(groups, i - 1)
    desk.gate.release(2)
    writers.join()
    assert desk.groups == [[[1]], [[2], [3], [4]]]
    assert writers.commits == {1: 1, 2: 2, 3: 2, 4: 2}
    desk.gate.release()
    groups.write("space", single([5]))
    assert desk.groups[-1] == [[5]]


def test_a_fault_of_one_write_is_not_the_others(desk: Desk) -> None:
    groups = Groups(desk.carry)
    writers = Writers(groups)
    writers.write(single([1]))
    assert desk.begun.acquire(timeout=HANG_S)
    desk.bad = {3}
    for i in (2, 3, 4):
        writers.write(single([i]))
        gathered(groups, i - 1)
    desk.gate.release(10)
    writers.join()
    assert desk.groups == [[[1]], [[2], [3], [4]], [[2]], [[3]], [[4]]]
    assert set(writers.commits) == {1, 2, 4}
    assert isinstance(writers.errors[3], InvalidRequest)


def test_a_group_whose_commit_nobody_answered_is_not_written_again(desk: Desk) -> None:
    groups = Groups(desk.carry)
    writers = Writers(groups)
    writers.write(single([1]))
    assert desk.begun.acquire(timeout=HANG_S)
    for i in (2, 3):
        writers.write(single([i]))
        gathered(groups, i - 1)
    desk.gate.release()
    assert desk.begun.acquire(timeout=HANG_S)
    desk.uncertain = True
    desk.gate.release()
    writers.join()
    assert desk.groups == [[[1]], [[2], [3]]]
    assert [type(writers.errors[i]) for i in (2, 3)] == [once.Uncertain] * 2


def test_a_write_whose_time_is_up_before_its_turn_is_not_written(desk: Desk) -> None:
    groups = Groups(desk.carry)
    writers = Writers(groups)
    writers.write(single([1]))
    assert desk.begun.acquire(timeout=HANG_S)
    with pytest.raises(Deadline, match="nothing was written"):
        groups.write("space", single([2], seconds=0.05))
    desk.gate.release()
    writers.join()
    assert desk.groups == [[[1]]]


def test_a_group_holds_no_more_than_its_bytes_and_a_large_write_goes_by_itself(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(once, "GROUP_BYTES", 24)
    groups = Groups(desk.carry)
    writers = Writers(groups)
    writers.write(single([1]))
    assert desk.begun.acquire(timeout=HANG_S)
    for i, ids in enumerate([[2, 0], [3], [4], [5, 0, 0, 0, 0]], 1):
        writers.write(single(ids))
        gathered(groups, i)
    desk.gate.release(10)
    writers.join()
    assert desk.groups == [[[1]], [[2, 0], [3]], [[4]], [[5, 0, 0, 0, 0]]]


def test_a_fault_of_ours_ends_every_write(desk: Desk) -> None:
    def carry(space: str, group: Sequence[Single], call: Call) -> None:
        raise ZeroDivisionError

    groups = Groups(carry)
    for _ in range(2):
        with pytest.raises(AsterismError, match="ZeroDivisionError"):
            groups.write("space", single([1]))


def test_neighbors_of_one_kind_are_one_run_and_keep_their_order() -> None:
    lists = [
        {"f:l.indptr": np.array([0, *np.cumsum(lengths)]), "f:l.values": np.arange(sum(lengths)) + 10 * i} for i, lengths in enumerate([[2], [0, 1]])
    ]
    group = [single([1], **lists[0]), single([2, 3], **lists[1]), single([9], kind=store.NODE_DELETES), single([4]), single([5])]
    runs = list(runs_of(group))
    assert [(run.kind, run.rows, run.sections["ids"].tolist()) for run in runs] == [
        (store.NODES, 3, [1, 2, 3]),
        (store.NODE_DELETES, 1, [9]),
        (store.NODES, 2, [4, 5]),
    ]
    assert runs[0].sections["f:l.indptr"].tolist() == [0, 2, 2, 3]
    assert runs[0].sections["f:l.values"].tolist() == [0, 1, 10]
    assert [one for run in runs for one in run.members] == group


def test_what_is_put_together_is_what_came() -> None:
    rng = np.random.default_rng(3)
    pieces = []
    for _ in range(7):
        lengths = rng.integers(0, 4, rng.integers(0, 5))
        pieces.append(
            {
                "x": rng.random((len(lengths), 3)),
                "l.indptr": np.concatenate([[0], np.cumsum(lengths)]),
                "l.values": rng.integers(0, 99, lengths.sum()),
            }
        )
    out = joined(pieces)
    rows = [piece["l.values"][a:b].tolist() for piece in pieces for a, b in zip(piece["l.indptr"], piece["l.indptr"][1:], strict=False)]
    assert [out["l.values"][a:b].tolist() for a, b in zip(out["l.indptr"], out["l.indptr"][1:], strict=False)] == rows
    assert np.array_equal(out["x"], np.concatenate([piece["x"] for piece in pieces]))
