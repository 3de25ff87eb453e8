from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.calls import loads
from asterism.calls.loads import Load, _slice_columns, chunk_digest, row_ranges
from asterism.calls.write_encoding import WriteRows
from asterism.transport.waiters import THREAD_WAITER
from asterism_proto.errors import InvalidRequest, Unavailable
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from asterism_proto.v1 import storaged_pb2 as storaged_pb


def columns(rows: int, lengths: list[int]) -> dict[str, object]:
    indptr = np.concatenate([[0], np.cumsum(np.array(lengths, np.int64))]).astype(np.int64)
    return {
        "ids": np.arange(rows),
        "f:tags": (indptr, np.arange(indptr[-1], dtype=np.float32)),
        "f:v": np.zeros((rows, 3), np.float32),
    }


@given(st.lists(st.integers(0, 40), max_size=200), st.integers(200, 2000))
def test_row_ranges_cover_every_row_within_the_limit(lengths: list[int], limit: int) -> None:
    arrays = columns(len(lengths), lengths)
    ranges = list(row_ranges(len(lengths), arrays, limit))  # type: ignore[arg-type]
    assert [start for start, _ in ranges] == [0, *(stop for _, stop in ranges[:-1])]
    assert ranges[-1][1] == len(lengths)
    tag_values = []
    for start, stop in ranges:
        chunk = _slice_columns(arrays, start, stop)  # type: ignore[arg-type]
        indptr, values = chunk["f:tags"]
        assert indptr[0] == 0
        assert (
            values.nbytes + 8 * (len(indptr) - 1) + chunk["ids"].nbytes + chunk["f:v"].nbytes
            <= limit
        )
        tag_values.append(values)
    assert np.array_equal(np.concatenate(tag_values), arrays["f:tags"][1])  # type: ignore[index]


def test_a_row_larger_than_a_message_is_refused_with_its_number() -> None:
    with pytest.raises(InvalidRequest, match="row 2 of 4028 bytes: expected at most 1000 bytes"):
        list(row_ranges(3, columns(3, [0, 1, 1000]), 1000))  # type: ignore[arg-type]


def test_digest_distinguishes_all_written_content() -> None:
    base = {"ids": np.arange(3), "weight": np.ones(3, np.float32)}
    digests = [
        chunk_digest(1, 0, base),
        chunk_digest(1, 1, base),
        chunk_digest(2, 0, base),
        chunk_digest(1, 0, {"ids": np.arange(3)}),
        chunk_digest(1, 0, {**base, "ids": np.array([0, 2, 1])}),
        chunk_digest(1, 0, {**base, "weight": np.ones(3, np.float64)}),
        chunk_digest(1, 0, {**base, "weight": np.ones(3, np.float32).view(np.int32)}),
        chunk_digest(1, 0, {**base, "f:x": np.zeros((3, 0))}),
        chunk_digest(1, 0, {**base, "f:x": (np.zeros(4, np.int64), np.zeros(0))}),
    ]
    assert len(set(digests)) == len(digests)
    assert chunk_digest(1, 0, dict(reversed(base.items()))) == chunk_digest(1, 0, base)


class RecordingSession:
    """A session of which metad assigns edge ids from 100; it can lose a commit."""

    def __init__(self) -> None:
        self.waiter = THREAD_WAITER
        self.writes: list[graphd_pb.WriteRequest] = []
        self.registered: list[metad_pb.Chunk] = []
        self.commits: list[list[int]] = []
        self.fails = False

    def catalog(self, name: str, request: Any) -> Any:
        if name == "register_chunks":
            (chunk,) = request.chunks
            self.registered.append(chunk)
            reply = metad_pb.Chunk(
                index=chunk.index, digest=chunk.digest, first_edge_id=100, rows=chunk.rows
            )
            return metad_pb.RegisterChunksReply(chunks=[reply])
        self.commits.append(list(request.written))
        if self.fails:
            raise Unavailable("metad is away")
        return metad_pb.Load(commit=1)

    def graph(self, name: str, head: graphd_pb.WriteRequest, arrays: Any) -> None:
        self.writes.append(head)


@pytest.fixture
def session() -> RecordingSession:
    return RecordingSession()


@pytest.fixture
def load(session: RecordingSession) -> Load:
    return Load(session, metad_pb.Load(load_id=1, space="g"))  # type: ignore[arg-type]


def edge_rows(src: list[int]) -> WriteRows:
    return WriteRows(
        kind=storaged_pb.OUT_EDGES,
        element=common_pb.EDGE,
        type_id=0,
        count=len(src),
        columns={"src": np.array(src), "dst": np.arange(len(src))},
        is_idempotent=True,
    )


def test_pieces_of_a_chunk_have_own_numbers_and_edge_ids(
    session: RecordingSession, load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loads, "row_ranges", lambda rows, columns: [(0, 2), (2, 4), (4, 5)])
    load.write_rows(3, edge_rows([1, 2, 3, 4, 5]))
    assert [(head.chunk - 3 * loads.PIECES, head.first_edge_id) for head in session.writes] == [
        (0, 100),
        (1, 102),
        (2, 104),
    ]


def test_acknowledgements_are_sent_again_after_a_failure(
    session: RecordingSession, load: Load
) -> None:
    load.write_rows(0, edge_rows([1]))
    session.fails = True
    with pytest.raises(Unavailable):
        load.commit()
    session.fails = False
    assert load.commit() == 1
    assert session.commits == [[0], [0]]


def test_other_content_of_a_chunk_is_registered_too(session: RecordingSession, load: Load) -> None:
    """metad compares it with what is registered, and refuses it."""
    load.write_rows(0, edge_rows([1]))
    load.write_rows(0, edge_rows([1]))
    assert len(session.registered) == len(session.writes) == 1
    load.write_rows(0, edge_rows([2]))
    assert len({chunk.digest for chunk in session.registered}) == 2
