from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.loading import _cut, digest, pieces
from asterism_proto.errors import InvalidRequest


def columns(rows: int, lengths: list[int]) -> dict[str, object]:
    indptr = np.concatenate([[0], np.cumsum(np.array(lengths, np.int64))]).astype(np.int64)
    return {"ids": np.arange(rows), "f:tags": (indptr, np.arange(indptr[-1], dtype=np.float32)), "f:v": np.zeros((rows, 3), np.float32)}


@given(st.lists(st.integers(0, 40), max_size=200), st.integers(200, 2000))
def test_pieces_cover_every_row_once_and_none_is_larger_than_the_limit(lengths: list[int], limit: int) -> None:
    arrays = columns(len(lengths), lengths)
    cuts = list(pieces(len(lengths), arrays, limit))  # type: ignore[arg-type]
    assert [start for start, _ in cuts] == [0, *(stop for _, stop in cuts[:-1])]
    assert cuts[-1][1] == len(lengths)
    whole = []
    for start, stop in cuts:
        piece = _cut(arrays, start, stop)  # type: ignore[arg-type]
        indptr, values = piece["f:tags"]
        assert indptr[0] == 0
        assert values.nbytes + 8 * (len(indptr) - 1) + piece["ids"].nbytes + piece["f:v"].nbytes <= limit
        whole.append(values)
    assert np.array_equal(np.concatenate(whole), arrays["f:tags"][1])  # type: ignore[index]


def test_a_row_larger_than_a_message_is_refused_with_its_number() -> None:
    with pytest.raises(InvalidRequest, match="row 2 of the chunk has 4028 bytes; a row has at most 1000"):
        list(pieces(3, columns(3, [0, 1, 1000]), 1000))  # type: ignore[arg-type]


def test_a_digest_tells_apart_whatever_is_written() -> None:
    base = {"ids": np.arange(3), "weight": np.ones(3, np.float32)}
    others = [
        digest(1, 0, base),
        digest(1, 1, base),
        digest(2, 0, base),
        digest(1, 0, {"ids": np.arange(3)}),
        digest(1, 0, {**base, "ids": np.array([0, 2, 1])}),
        digest(1, 0, {**base, "weight": np.ones(3, np.float64)}),
        digest(1, 0, {**base, "f:x": np.zeros((3, 0))}),
        digest(1, 0, {**base, "f:x": (np.zeros(4, np.int64), np.zeros(0))}),
    ]
    assert len(set(others)) == len(others)
    assert digest(1, 0, dict(reversed(base.items()))) == digest(1, 0, base)
