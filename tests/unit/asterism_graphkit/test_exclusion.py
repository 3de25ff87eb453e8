"""Tests of ids that are excluded for rows: equal to sets, and stoppable between pieces."""

from __future__ import annotations

import numpy as np
import pytest

from asterism_graphkit.random import exclusion
from asterism_graphkit.random.exclusion import ExcludedIds
from asterism_proto.errors import Deadline

PIECE = 16


class Checkpoints:
    """A checkpoint that raises at its last allowed call."""

    def __init__(self, allowed: int = 10**9) -> None:
        self.calls, self._allowed = 0, allowed

    def __call__(self) -> None:
        self.calls += 1
        if self.calls >= self._allowed:
            raise Deadline("time is up")


@pytest.fixture
def excluded() -> tuple[list[list[int]], ExcludedIds]:
    rng = np.random.default_rng(5)
    rows = [rng.integers(0, 40, size).tolist() for size in (0, 7, 100, 1, 30)]
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    return rows, ExcludedIds.from_rows(
        indptr, np.array([x for row in rows for x in row]), Checkpoints()
    )


def test_masks_and_row_ids_are_those_of_sets(
    excluded: tuple[list[list[int]], ExcludedIds], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exclusion, "ENTRIES_PER_PIECE", PIECE)
    rows, ids = excluded
    rng = np.random.default_rng(6)
    row_of, candidates = rng.integers(0, len(rows), 200), rng.integers(0, 40, 200)
    checkpoints = Checkpoints()
    mask = ids.excluded_mask(row_of, candidates, checkpoints)
    assert mask.tolist() == [
        candidate in rows[row] for row, candidate in zip(row_of, candidates, strict=True)
    ]
    assert checkpoints.calls == -(-200 // PIECE)
    for row, values in enumerate(rows):
        assert ids.row_ids(row, checkpoints).tolist() == sorted(set(values))


def test_a_mask_of_many_draws_can_be_cancelled(
    excluded: tuple[list[list[int]], ExcludedIds], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exclusion, "ENTRIES_PER_PIECE", PIECE)
    checkpoints = Checkpoints(allowed=3)
    with pytest.raises(Deadline):
        excluded[1].excluded_mask(np.zeros(200, np.int64), np.zeros(200, np.int64), checkpoints)
    assert checkpoints.calls == 3
