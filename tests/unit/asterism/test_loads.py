from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.calls.loads import _slice_columns, chunk_digest, row_ranges
from asterism_proto.errors import InvalidRequest


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
        chunk_digest(1, 0, {**base, "f:x": np.zeros((3, 0))}),
        chunk_digest(1, 0, {**base, "f:x": (np.zeros(4, np.int64), np.zeros(0))}),
    ]
    assert len(set(digests)) == len(digests)
    assert chunk_digest(1, 0, dict(reversed(base.items()))) == chunk_digest(1, 0, base)
