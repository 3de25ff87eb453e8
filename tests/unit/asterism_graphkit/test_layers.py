"""Layer-wise draws over many candidates, in batches that can be cancelled."""

from __future__ import annotations

import numpy as np
import pytest

from asterism_graphkit.operators import hgt, layers
from asterism_graphkit.random import rng
from asterism_graphkit.relabel.relabel import Relabeling

KEY = rng.key_of(5, rng.LAYER, 0)


class Cancelled(Exception):
    """Raised by a checkpoint."""


def cancel_after(calls: int) -> object:
    left = iter(range(calls))

    def checkpoint() -> None:
        if next(left, None) is None:
            raise Cancelled

    return checkpoint


@pytest.mark.parametrize("replace", [True, False])
def test_batches_draw_what_one_batch_draws(replace: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(3)
    sizes = random.integers(0, 40, 200)
    sizes[[3, 90]] = 900, 500  # larger than a batch of 256
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    measures = random.random(int(starts[-1]))
    measures[random.random(measures.size) < 0.2] = 0.0
    whole = layers.draw(KEY, starts, measures, 30, replace=replace)
    calls = []
    monkeypatch.setattr(layers, "ENTRIES_PER_PIECE", 256)
    pieces = layers.draw(
        KEY, starts, measures, 30, replace=replace, checkpoint=lambda: calls.append(0)
    )
    for expected, found in zip(whole, pieces, strict=True):
        np.testing.assert_array_equal(found, expected)
    assert len(calls) >= (measures.size - 1400) // 256


@pytest.mark.parametrize("replace", [True, False])
def test_a_draw_is_cancelled_between_its_batches(
    replace: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layers, "ENTRIES_PER_PIECE", 256)
    starts = np.arange(0, 2001, 200, dtype=np.int64)
    for calls in range(5):
        with pytest.raises(Cancelled):
            layers.draw(
                KEY, starts, np.ones(2000), 3, replace=replace, checkpoint=cancel_after(calls)
            )


def test_budgets_added_in_pieces_have_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(4)
    ids, amounts = random.integers(0, 300, 5000), random.random(5000)
    whole = hgt.BudgetTable(Relabeling())
    whole.add_seeds(np.arange(3))
    whole.add_budgets(ids, amounts)
    monkeypatch.setattr(hgt, "ENTRIES_PER_PIECE", 64)
    pieces = hgt.BudgetTable(Relabeling())
    pieces.add_seeds(np.arange(3))
    pieces.add_budgets(ids, amounts)
    np.testing.assert_array_equal(pieces.budgets(), whole.budgets())
    table = hgt.BudgetTable(Relabeling(), cancel_after(20))
    with pytest.raises(Cancelled):
        table.add_budgets(ids, amounts)
