"""Tests that an alias sweep resumed between any two blocks equals an uninterrupted one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from asterism_graphkit.random.alias_build import build, neumaier_sum
from storaged.build.alias_sweep import AliasSweep, SweepPosition
from storaged.store.alias_table_store import Columns

BLOCK = 7


@dataclass
class RowCollector:
    """Collects the output of a sweep."""

    rows: list[tuple[Any, ...]] = field(default_factory=list)

    def append(self, *columns: NDArray[Any]) -> None:
        self.rows += zip(*(column.tolist() for column in columns), strict=True)

    def finish(self) -> int:
        return len(self.rows)


def streams(
    weights: NDArray[np.float64], position: SweepPosition
) -> tuple[Iterator[Columns], Iterator[Columns]]:
    """Return light and heavy columns in blocks, from ``position`` on.

    The id of column i is 10 i.
    """
    p = weights * weights.size / neumaier_sum(weights)
    light, heavy = np.flatnonzero(p < 1), np.flatnonzero(p >= 1)

    def blocks(rows: NDArray[np.int64], done_blocks: int) -> Iterator[Columns]:
        for low in range(done_blocks * BLOCK, rows.size, BLOCK):
            block = rows[low : low + BLOCK]
            yield block.astype(np.uint32), block * 10, p[block]

    return blocks(light, position.light_blocks), blocks(heavy, position.heavy_blocks)


SHAPES = {
    "random": lambda rng: rng.random(200),
    "few heavy": lambda rng: np.where(np.arange(200) % 60 == 5, 1e6, rng.random(200)),
    "few light": lambda rng: np.where(np.arange(200) % 60 == 5, 1e-6, 1.0 + rng.random(200) * 1e-3),
    "heavy first": lambda rng: np.sort(rng.random(200) ** 8)[::-1],
    "heavy last": lambda rng: np.sort(rng.random(200) ** 8),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_sweep_resumed_at_any_checkpoint_gives_same_columns(shape: str) -> None:
    weights = np.ascontiguousarray(SHAPES[shape](np.random.default_rng(3)))
    all_light, all_heavy = RowCollector(), RowCollector()
    checkpoints: list[tuple[str, int, int]] = []
    sweep = AliasSweep(*streams(weights, SweepPosition()), all_light, all_heavy)
    short = sweep.run(
        lambda place: checkpoints.append(
            (json.dumps(asdict(place)), len(all_light.rows), len(all_heavy.rows))
        ),
        1,
    )
    assert len(checkpoints) >= 200 // BLOCK - 3
    for record, lights, heavies in checkpoints:
        place = SweepPosition(**json.loads(record))
        light, heavy = RowCollector(all_light.rows[:lights]), RowCollector(all_heavy.rows[:heavies])
        assert AliasSweep(*streams(weights, place), light, heavy, place).run() == short
        assert (light.rows, heavy.rows) == (all_light.rows, all_heavy.rows)


@pytest.mark.parametrize("shape", SHAPES)
def test_sweep_over_blocks_equals_alias_table_of_an_array(shape: str) -> None:
    weights = np.ascontiguousarray(SHAPES[shape](np.random.default_rng(3)))
    light, heavy = RowCollector(), RowCollector()
    AliasSweep(*streams(weights, SweepPosition()), light, heavy).run()
    prob, alias = build(weights)
    swept_rows = sorted(light.rows + heavy.rows)
    assert [(row, p, to) for row, p, to, _ in swept_rows] == list(
        zip(range(200), prob.tolist(), alias.tolist(), strict=True)
    )
    assert all(to_id == 10 * to for _, _, to, to_id in swept_rows)
