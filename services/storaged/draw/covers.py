"""What satisfies a condition as an index has it: runs of rows, cut into blocks that have alias tables of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphkit import alias
from graphkit.jit import addresses_of, settled
from storaged.draw.intervals import Runs
from storaged.draw.version import Share
from storaged.kernel.covered import decompose
from storaged.store.image import Adjacency, NodeImage
from storaged.store.ordered import OWN, STEPS, Ordered, levels_of

_MOST_BLOCKS = 2 * sum(STEPS[0] - 1 for _ in STEPS) + 2
"""Of a run, beside those of the last step."""
_BYTES = 64
"""Of memory for each piece."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cover:
    """The rows of one part that satisfy a condition, as pieces of an index. Tables are told by address, not to outlive the image."""

    index: Ordered
    share: Share
    runs: Runs
    starts: NDArray[np.int64]
    """int64[s]: the first row of each piece."""
    sizes: NDArray[np.int64]
    """int64[s]."""
    hots: NDArray[np.uint64]
    colds: NDArray[np.uint64]
    """uint64[s]: addresses of its table; 0: every row alike."""
    measure: NDArray[np.float64]
    """float64[s]: what it weighs."""

    @property
    def bytes(self) -> int:
        """Of memory, about."""
        return _BYTES * (self.starts.size + len(self.runs)) + 1024


def cover_of(index: Ordered, of: NodeImage | Adjacency, runs: Runs, weights: str) -> Cover:
    """The cover of some runs of rows, for draws by the weights of a name; ``OWN`` are the rows' own.

    Parameters
    ----------
    index : Ordered
    of : NodeImage or Adjacency
        Whose rows they are, or slots, with these weights in the place of its own.
    runs : list of (int, int)
    weights : str
    """
    starts = np.array([low for low, _ in runs], np.int64)
    sizes = np.array([high - low for low, high in runs], np.int64)
    count = int(sizes.sum())
    tables = index.tables.get(weights or OWN)
    if tables is None:
        none = np.zeros(starts.size, np.uint64)
        share = Share(count=count, positive=count, weight=float(count))
        return Cover(index=index, share=share, runs=runs, starts=starts, sizes=sizes, hots=none, colds=none, measure=sizes.astype(np.float64))
    steps = levels_of(index.rows.size)
    starts, sizes, levels = _pieces(runs, index.rows.size, steps)
    hots, colds, measure = np.zeros(starts.size, np.uint64), np.zeros(starts.size, np.uint64), np.empty(starts.size, np.float64)
    single = levels < 0
    measure[single] = of.weights[index.rows[starts[single]]]
    for level, (step, table) in enumerate(zip(steps, tables.levels, strict=True)):
        mine = levels == level
        measure[mine] = table.sums[starts[mine] // step]
        hot, cold = addresses_of([table.hot, table.cold])
        hots[mine] = hot + np.uint64(8) * starts[mine].astype(np.uint64)
        colds[mine] = cold + np.uint64(4) * starts[mine].astype(np.uint64)
    weighs = measure > 0
    positive = sum(_positive(index, of, tables.positives, high) - _positive(index, of, tables.positives, low) for low, high in runs)
    return Cover(
        index=index,
        share=Share(count=count, positive=positive, weight=alias.neumaier(measure)),
        runs=runs,
        starts=starts[weighs],
        sizes=sizes[weighs],
        hots=hots[weighs],
        colds=colds[weighs],
        measure=measure[weighs],
    )


def _pieces(runs: Runs, rows: int, steps: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The first row, the rows and the level of every piece of some runs."""
    found: list[NDArray[np.int64]] = []
    for low, high in runs:
        room = min(high - low, _MOST_BLOCKS + (high - low) // STEPS[-1])
        out = np.empty((3, room), np.int64)
        count = int(decompose(np.int64(low), np.int64(high), np.int64(rows), settled(np.array(steps, np.int64)), out[0], out[1], out[2]))
        assert count <= room
        found.append(out[:, :count])
    starts, sizes, levels = np.concatenate([np.empty((3, 0), np.int64), *found], axis=1)
    return starts, sizes, levels


def _positive(index: Ordered, of: NodeImage | Adjacency, positives: NDArray[np.int64], place: int) -> int:
    """How many rows before a place weigh anything."""
    block = place // STEPS[0]
    return int(positives[block]) + int(np.count_nonzero(of.weights[index.rows[block * STEPS[0] : place]]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Covered:
    """The covers of the entries of a draw, one behind another, as `storaged.kernel.covered.draw_covered` takes them."""

    firsts: NDArray[np.int64]
    hot: NDArray[np.uint64]
    cold: NDArray[np.uint32]
    starts: NDArray[np.int64]
    sizes: NDArray[np.uint64]
    hots: NDArray[np.uint64]
    colds: NDArray[np.uint64]
    rows_of: NDArray[np.uint64]


def covered(covers: Sequence[Cover | None], *, uniform: bool) -> Covered:
    """The covers of some entries; None is one that nothing is asked of."""
    made = [_tabled(cover, uniform) for cover in covers]
    return Covered(
        firsts=settled(np.append(0, np.cumsum([starts.size for starts, *_ in made])).astype(np.int64)),
        **{name: settled(np.concatenate([entry[i] for entry in made])) for i, name in enumerate(("starts", "sizes", "hots", "colds", "hot", "cold"))},
        rows_of=addresses_of(np.zeros(0, np.uint32) if cover is None else cover.index.rows for cover in covers),
    )


def _tabled(cover: Cover | None, uniform: bool) -> tuple[NDArray[np.generic], ...]:
    """Pieces of one entry and the table over them; runs, where every row is drawn alike."""
    if cover is None:
        nothing = np.zeros(0, np.uint64)
        return np.zeros(0, np.int64), nothing, nothing, nothing, nothing, np.zeros(0, np.uint32)
    starts, sizes, hots, colds, measure = cover.starts, cover.sizes, cover.hots, cover.colds, cover.measure
    if uniform:
        starts = np.array([low for low, _ in cover.runs], np.int64)
        sizes = np.array([high - low for low, high in cover.runs], np.int64)
        hots = colds = np.zeros(starts.size, np.uint64)
        measure = sizes.astype(np.float64)
    hot, cold = alias.thresholds(*alias.build(measure))
    return starts, sizes.astype(np.uint64), hots, colds, hot, cold


Covers = Mapping[tuple[int, int], Cover]
"""By (type, part)."""
