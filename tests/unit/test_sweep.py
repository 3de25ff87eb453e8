"""A sweep that is left between any two blocks and gone on with is the sweep that was not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from graphkit.alias import build, neumaier
from storaged.build.sweep import Place, Sweep
from storaged.store.tables import Columns

BLOCK = 7


@dataclass
class Kept:
    """Takes what is swept."""

    rows: list[tuple[Any, ...]] = field(default_factory=list)

    def append(self, *columns: NDArray[Any]) -> None:
        self.rows += zip(*(column.tolist() for column in columns), strict=True)

    def finish(self) -> int:
        return len(self.rows)


def streams(weights: NDArray[np.float64], place: Place) -> tuple[Iterator[Columns], Iterator[Columns]]:
    """Light and heavy columns in blocks, from those on that ``place`` is not done with. The id of column i is 10 i."""
    p = weights * weights.size / neumaier(weights)
    light, heavy = np.flatnonzero(p < 1), np.flatnonzero(p >= 1)

    def blocks(rows: NDArray[np.int64], done: int) -> Iterator[Columns]:
        for low in range(done * BLOCK, rows.size, BLOCK):
            here = rows[low : low + BLOCK]
            yield here.astype(np.uint32), here * 10, p[here]

    return blocks(light, place.light_blocks), blocks(heavy, place.heavy_blocks)


SHAPES = {
    "random": lambda rng: rng.random(200),
    "few heavy": lambda rng: np.where(np.arange(200) % 60 == 5, 1e6, rng.random(200)),
    "few light": lambda rng: np.where(np.arange(200) % 60 == 5, 1e-6, 1.0 + rng.random(200) * 1e-3),
    "heavy first": lambda rng: np.sort(rng.random(200) ** 8)[::-1],
    "heavy last": lambda rng: np.sort(rng.random(200) ** 8),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_sweep_left_at_any_checkpoint_and_gone_on_with_gives_the_same_columns(shape: str) -> None:
    weights = np.ascontiguousarray(SHAPES[shape](np.random.default_rng(3)))
    whole_light, whole_heavy = Kept(), Kept()
    left: list[tuple[str, int, int]] = []
    swept = Sweep(*streams(weights, Place()), whole_light, whole_heavy)
    short = swept.run(lambda place: left.append((json.dumps(asdict(place)), len(whole_light.rows), len(whole_heavy.rows))), 1)
    assert len(left) >= 200 // BLOCK - 3
    for written, lights, heavies in left:
        place = Place(**json.loads(written))
        light, heavy = Kept(whole_light.rows[:lights]), Kept(whole_heavy.rows[:heavies])
        assert Sweep(*streams(weights, place), light, heavy, place).run() == short
        assert (light.rows, heavy.rows) == (whole_light.rows, whole_heavy.rows)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_sweep_over_blocks_has_the_bits_of_the_table_over_an_array(shape: str) -> None:
    weights = np.ascontiguousarray(SHAPES[shape](np.random.default_rng(3)))
    light, heavy = Kept(), Kept()
    Sweep(*streams(weights, Place()), light, heavy).run()
    prob, alias = build(weights)
    found = sorted(light.rows + heavy.rows)
    assert [(row, p, to) for row, p, to, _ in found] == list(zip(range(200), prob.tolist(), alias.tolist(), strict=True))
    assert all(to_id == 10 * to for _, _, to, to_id in found)
