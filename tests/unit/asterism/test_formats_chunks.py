"""Tests of chunks: what their pieces keep."""

from __future__ import annotations

import numpy as np

from asterism.formats.chunks import BadRow, NodeChunk, split_to_limit


def test_rejects_stay_with_the_first_piece() -> None:
    bad = BadRow(file="n.csv", row=9, column="id", value="x", reason="an id is an integer")
    chunk = NodeChunk(ntype="n", file="n.csv", first_row=2, ids=np.arange(8), bad=(bad,))
    pieces = list(split_to_limit(chunk, 16))
    assert [piece.bad for piece in pieces] == [(bad,), (), (), ()]
    assert [piece.first_row for piece in pieces] == [2, 4, 6, 8]
