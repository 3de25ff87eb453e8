"""Tests of the order in which a partition's features are written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from asterism.export.export_schema import ExportPlan, TypePlan
from asterism.export.nodes import _order
from asterism.export.run_state import ExportRun
from asterism.export.scratch_files import Spool
from asterism_proto.errors import Corrupt

PAPER = TypePlan(name="paper", label="paper", type_id=0, columns=())


def order_of(folder: Path, positions: list[int], expected: int) -> list[int] | None:
    """Return the order of rows that were scanned at these positions, in pieces of two rows."""
    spool = Spool(path=folder / "at", dtype=np.dtype(np.int64), piece_bytes=16)
    spool.append(np.array(positions))
    run = ExportRun(
        plan=ExportPlan(nodes=(PAPER,), edges=(), warnings=()),
        version=1,
        parts=1,
        trainers=1,
        hops=1,
        formats=(),
        out=folder,
        scratch=folder,
    )
    order = _order(run, spool, expected, PAPER)
    return None if order is None else order.tolist()


@pytest.mark.parametrize(
    ("positions", "order"),
    [
        ([0, 1, 2, 3, 4], None),
        ([1, 0, 2, 3, 4], [1, 0, 2, 3, 4]),
        ([0, 1, 3, 4, 2], [0, 1, 4, 2, 3]),
    ],
)
def test_rows_are_ordered_if_any_piece_is_not(
    tmp_path: Path, positions: list[int], order: list[int] | None
) -> None:
    assert order_of(tmp_path, positions, 5) == order


@pytest.mark.parametrize(
    ("positions", "message"),
    [
        ([0, 1], "2 nodes of a part came with their features, 3 without"),
        ([0, 2, 2], "a node came with its features twice"),
        ([0, 1, 3], "a node that came with its features was not there before"),
    ],
)
def test_other_rows_than_those_of_the_nodes_are_corrupt(
    tmp_path: Path, positions: list[int], message: str
) -> None:
    with pytest.raises(Corrupt, match=message):
        order_of(tmp_path, positions, 3)
