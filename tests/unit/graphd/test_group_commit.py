"""Tests of single writes that are batched while another group is committed.

They check which writer commits a group and which writer gets which error.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.kit.waiting import HANG_S, wait_until

from asterism_daemonkit.rpc.call_context import CallContext
from asterism_proto.errors import AsterismError, Deadline, InvalidRequest
from asterism_proto.methods import CATALOG, Method
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from graphd.writes import group_commit
from graphd.writes.group_commit import (
    BatchCommitter,
    SmallWrite,
    WriteBatcher,
    WriteChunk,
    concat_sections,
    split_into_chunks,
)


def small_write(
    ids: Sequence[int],
    *,
    kind: int = storaged_pb.NODES,
    seconds: float = 10,
    **features: np.ndarray,
) -> SmallWrite:
    arrays = {"ids": np.array(ids, np.int64), **features}
    return SmallWrite(
        kind=kind, type_id=0, rows=len(ids), sections=arrays, call=CallContext.with_timeout(seconds)
    )


class ManualCommitter:
    """Committer that commits groups one by one, each when released."""

    def __init__(self) -> None:
        self.groups: list[list[list[int]]] = []
        self.started = threading.Semaphore(0)
        self.gate = threading.Semaphore(0)
        self.bad_ids: set[int] = set()
        self.uncertain = False

    def commit_batch(self, space: str, group: Sequence[SmallWrite], call: CallContext) -> None:
        self.groups.append([write.sections["ids"].tolist() for write in group])
        self.started.release()
        assert self.gate.acquire(timeout=HANG_S)
        if self.uncertain:
            raise group_commit.CommitUncertain("who knows")
        for write in group:
            if self.bad_ids & set(write.sections["ids"].tolist()):
                raise InvalidRequest(f"bad {self.bad_ids}")
        for write in group:
            write.commit_number = len(self.groups)


class Writers:
    """Threads that write, and their results."""

    def __init__(self, groups: WriteBatcher) -> None:
        self._groups = groups
        self._threads: list[threading.Thread] = []
        self.errors: dict[int, AsterismError] = {}
        self.commits: dict[int, int] = {}

    def write(self, write: SmallWrite) -> None:
        def run() -> None:
            first_id = int(write.sections["ids"][0])
            try:
                self._groups.write("space", write)
                self.commits[first_id] = write.commit_number
            except AsterismError as error:
                self.errors[first_id] = error

        self._threads.append(threading.Thread(target=run))
        self._threads[-1].start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join(HANG_S)
            assert not thread.is_alive()


@pytest.fixture
def committer() -> ManualCommitter:
    return ManualCommitter()


def wait_until_queued(groups: WriteBatcher, n: int) -> None:
    """Wait until ``n`` writes are queued."""
    wait_until(
        lambda: len(groups._waiting.get("space", ())) >= n,
        f"{n} writes wait for their turn",
        poll_interval_s=0.001,
    )


def test_writes_during_a_commit_share_the_next_group(committer: ManualCommitter) -> None:
    groups = WriteBatcher(committer.commit_batch)
    writers = Writers(groups)
    writers.write(small_write([1]))
    assert committer.started.acquire(timeout=HANG_S)
    for i in (2, 3, 4):
        writers.write(small_write([i]))
        wait_until_queued(groups, i - 1)
    committer.gate.release(2)
    writers.join()
    assert committer.groups == [[[1]], [[2], [3], [4]]]
    assert writers.commits == {1: 1, 2: 2, 3: 2, 4: 2}
    committer.gate.release()
    groups.write("space", small_write([5]))
    assert committer.groups[-1] == [[5]]


def test_failure_of_one_write_spares_the_others(committer: ManualCommitter) -> None:
    groups = WriteBatcher(committer.commit_batch)
    writers = Writers(groups)
    writers.write(small_write([1]))
    assert committer.started.acquire(timeout=HANG_S)
    committer.bad_ids = {3}
    for i in (2, 3, 4):
        writers.write(small_write([i]))
        wait_until_queued(groups, i - 1)
    committer.gate.release(10)
    writers.join()
    assert committer.groups == [[[1]], [[2], [3], [4]], [[2]], [[3]], [[4]]]
    assert set(writers.commits) == {1, 2, 4}
    assert isinstance(writers.errors[3], InvalidRequest)


def test_group_with_uncertain_commit_is_not_written_again(committer: ManualCommitter) -> None:
    groups = WriteBatcher(committer.commit_batch)
    writers = Writers(groups)
    writers.write(small_write([1]))
    assert committer.started.acquire(timeout=HANG_S)
    for i in (2, 3):
        writers.write(small_write([i]))
        wait_until_queued(groups, i - 1)
    committer.gate.release()
    assert committer.started.acquire(timeout=HANG_S)
    committer.uncertain = True
    committer.gate.release()
    writers.join()
    assert committer.groups == [[[1]], [[2], [3]]]
    assert [type(writers.errors[i]) for i in (2, 3)] == [group_commit.CommitUncertain] * 2


def test_write_that_expires_in_the_queue_is_not_written(committer: ManualCommitter) -> None:
    groups = WriteBatcher(committer.commit_batch)
    writers = Writers(groups)
    writers.write(small_write([1]))
    assert committer.started.acquire(timeout=HANG_S)
    with pytest.raises(Deadline, match="nothing was written"):
        groups.write("space", small_write([2], seconds=0.05))
    committer.gate.release()
    writers.join()
    assert committer.groups == [[[1]]]


def test_groups_are_bounded_and_large_writes_go_alone(
    committer: ManualCommitter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "MAX_BATCH_BYTES", 24)
    groups = WriteBatcher(committer.commit_batch)
    writers = Writers(groups)
    writers.write(small_write([1]))
    assert committer.started.acquire(timeout=HANG_S)
    for i, ids in enumerate([[2, 0], [3], [4], [5, 0, 0, 0, 0]], 1):
        writers.write(small_write(ids))
        wait_until_queued(groups, i)
    committer.gate.release(10)
    writers.join()
    assert committer.groups == [[[1]], [[2, 0], [3]], [[4]], [[5, 0, 0, 0, 0]]]


def test_internal_error_ends_every_write(committer: ManualCommitter) -> None:
    def commit_batch(space: str, group: Sequence[SmallWrite], call: CallContext) -> None:
        raise ZeroDivisionError

    groups = WriteBatcher(commit_batch)
    for _ in range(2):
        with pytest.raises(AsterismError, match="graphd's log has the details"):
            groups.write("space", small_write([1]))


def test_adjacent_writes_of_one_kind_are_one_chunk_in_order() -> None:
    lists = [
        {
            "f:l.indptr": np.array([0, *np.cumsum(lengths)]),
            "f:l.values": np.arange(sum(lengths)) + 10 * i,
        }
        for i, lengths in enumerate([[2], [0, 1]])
    ]
    group = [
        small_write([1], **lists[0]),
        small_write([2, 3], **lists[1]),
        small_write([9], kind=storaged_pb.NODE_DELETES),
        small_write([4]),
        small_write([5]),
    ]
    chunks = list(split_into_chunks(group))
    assert [(chunk.kind, chunk.rows, chunk.sections["ids"].tolist()) for chunk in chunks] == [
        (storaged_pb.NODES, 3, [1, 2, 3]),
        (storaged_pb.NODE_DELETES, 1, [9]),
        (storaged_pb.NODES, 2, [4, 5]),
    ]
    assert chunks[0].sections["f:l.indptr"].tolist() == [0, 2, 2, 3]
    assert chunks[0].sections["f:l.values"].tolist() == [0, 1, 10]
    assert [write for chunk in chunks for write in chunk.writes] == group


def test_adjacent_writes_of_other_columns_are_chunks_of_their_own() -> None:
    x = np.ones(1)
    group = [small_write([1]), small_write([2], **{"f:x": x}), small_write([3], **{"f:x": x})]
    chunks = list(split_into_chunks(group))
    assert [chunk.sections["ids"].tolist() for chunk in chunks] == [[1], [2, 3]]
    assert [sorted(chunk.sections) for chunk in chunks] == [["ids"], ["f:x", "ids"]]


class Catalog:
    """A metad that assigns edge ids from 100 times the number of each chunk."""

    def call(self, method: Method, request: Any, timeout_s: float) -> metad_pb.Load:
        if method is CATALOG["begin_load"]:
            chunks = [
                metad_pb.Chunk(first_edge_id=100 * (i + 1)) for i in range(len(request.chunks))
            ]
            return metad_pb.Load(load_id=1, chunks=chunks)
        assert method is CATALOG["commit_load"]
        return metad_pb.Load(load_id=1, state=metad_pb.COMMITTED, commit=9)


def test_each_write_of_a_batch_gets_the_id_of_its_first_edge() -> None:
    first_edge_ids: list[int] = []

    def write_chunk(
        space: str, load_id: int, i: int, first_edge_id: int, chunk: WriteChunk, call: CallContext
    ) -> set[str]:
        first_edge_ids.append(first_edge_id)
        return {"host"}

    committer = BatchCommitter(
        metad=Catalog(),  # type: ignore[arg-type]  # only `call` is used
        write_chunk=write_chunk,
        resolve_revivals=lambda *_: (0, False),
        seal=lambda *_: [],
    )
    edges = storaged_pb.OUT_EDGES
    group = [
        small_write([1, 2, 3], kind=edges),
        small_write([4, 5], kind=edges),
        small_write([6], kind=edges, weight=np.ones(1)),
        small_write([7], kind=edges, weight=np.ones(1)),
    ]
    committer.commit_batch("space", group, CallContext.with_timeout(HANG_S))
    assert first_edge_ids == [100, 200]
    assert [write.first_edge_id for write in group] == [100, 103, 200, 201]
    assert {write.commit_number for write in group} == {9}


def test_concatenated_sections_keep_their_rows() -> None:
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
    sections = concat_sections(pieces)
    rows = [
        piece["l.values"][a:b].tolist()
        for piece in pieces
        for a, b in zip(piece["l.indptr"], piece["l.indptr"][1:], strict=False)
    ]
    assert [
        sections["l.values"][a:b].tolist()
        for a, b in zip(sections["l.indptr"], sections["l.indptr"][1:], strict=False)
    ] == rows
    assert np.array_equal(sections["x"], np.concatenate([piece["x"] for piece in pieces]))


def test_group_has_the_time_of_its_most_patient_writer() -> None:
    deadlines: list[float] = []

    def commit_batch(space: str, group: Sequence[SmallWrite], call: CallContext) -> None:
        deadlines.append(call.deadline)

    group = [small_write([1], seconds=5), small_write([2], seconds=50)]
    WriteBatcher(commit_batch)._commit_group("space", group)
    assert deadlines == [group[1].call.deadline]


class RecordingCatalog(Catalog):
    """A metad that records the requests of a load."""

    def __init__(self) -> None:
        self.requests: list[Any] = []

    def call(self, method: Method, request: Any, timeout_s: float) -> metad_pb.Load:
        self.requests.append(request)
        if method is CATALOG["abandon_load"]:
            return metad_pb.Load(load_id=1)
        return super().call(method, request, timeout_s)


def committer_over(catalog: RecordingCatalog, write_chunk: Any) -> BatchCommitter:
    return BatchCommitter(
        metad=catalog,  # type: ignore[arg-type]  # only `call` is used
        write_chunk=write_chunk,
        resolve_revivals=lambda *_: (5, True),
        seal=lambda *_: [],
    )


@pytest.mark.parametrize(
    ("kinds", "resolved"),
    [
        ((storaged_pb.NODES, storaged_pb.OUT_EDGES), 0),
        ((storaged_pb.NODES, storaged_pb.NODE_DELETES), 5),
    ],
)
def test_group_that_deletes_nodes_is_resolved_first(kinds: tuple[int, ...], resolved: int) -> None:
    catalog = RecordingCatalog()
    group = [small_write([i], kind=kind) for i, kind in enumerate(kinds)]
    committer = committer_over(catalog, lambda *_: {"host"})
    committer.commit_batch("space", group, CallContext.with_timeout(HANG_S))
    begin, commit = catalog.requests
    assert [chunk.element for chunk in begin.chunks] == [
        common_pb.EDGE if kind == storaged_pb.OUT_EDGES else common_pb.NODE for kind in kinds
    ]
    assert (commit.resolved_commit, commit.deletes) == (resolved, resolved > 0)


def test_load_of_a_group_that_fails_is_abandoned() -> None:
    def fail(*_: Any) -> set[str]:
        raise InvalidRequest("bad row")

    catalog = RecordingCatalog()
    with pytest.raises(InvalidRequest, match="bad row"):
        committer_over(catalog, fail).commit_batch(
            "space", [small_write([1])], CallContext.with_timeout(HANG_S)
        )
    assert [type(request) for request in catalog.requests] == [
        metad_pb.BeginLoadRequest,
        metad_pb.LoadRequest,
    ]
