"""The alias table of one (part, type): B1, B2, B3, the sweep, the merge, the image, the audit (docs/storage.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import Internal
from graphkit.alias import BLOCK, TOLERANCE, neumaier, sweep
from storaged.build.kernels import audit_table, threshold_block
from storaged.build.source import Workplace
from storaged.store import keys
from storaged.store.tables import SCRATCH_ROWS, Columns, TableWriter

F32 = NDArray[np.float32]
I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]
IdsOf = Callable[[NDArray[Any]], I64]

WEIGHT = "weight"
MAX_DISTANCE = 1e-9
"""Total variation between an image's law and its weights beyond which a version is refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableResult:
    """What one table came to."""

    size: int
    weight: float
    distance: float = 0.0
    worst: float = 0.0
    underflow: int = 0

    def total(self) -> dict[str, Any]:
        """Its share of a `Total`."""
        return {
            "positive": self.size,
            "weight": self.weight,
            "weight_name": WEIGHT,
            "audit_tv": self.distance,
            "audit_rel": self.worst,
            "underflow": self.underflow,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scan:
    """What pass 1 found."""

    size: int
    weight: float
    lightest: float
    heaviest: float

    @property
    def even(self) -> bool:
        """No column differs from another: every one is certain."""
        return self.size == 0 or self.lightest == self.heaviest


def build_table(
    work: Workplace, *, name: str, kind: int, type_id: int, rows: int, weights: F32 | None, live: NDArray[np.uint8], ids_of: IdsOf
) -> TableResult:
    """Make the table over ``rows`` rows and write it to the stat database and the image.

    Parameters
    ----------
    name : str
        Prefix of the image's files.
    kind : int
        0 for nodes, ``keys.EDGE_TABLE`` for edges.
    weights : float32[rows] or None
        None is 1 for every live row.
    live : uint8[rows] or uint8[0]
        Which rows count, where some do not.
    ids_of : callable
        Rows to ids.
    """
    passes = _Passes(work, name, kind, type_id)
    scan = passes.scan(rows, weights, live, ids_of)
    if scan.even:
        passes.merge_even(scan)
        result = TableResult(size=scan.size, weight=scan.weight)
    else:
        lights, heavies = passes.classify(scan)
        passes.sweep(lights, heavies, scan.size)
        passes.merge(scan, lights, heavies)
        result = passes.audit(scan, weights)
    work.tables.forget_scratch()
    return result


class _Passes:
    """The passes over one table, each a forward stream over blocks."""

    def __init__(self, work: Workplace, name: str, kind: int, type_id: int) -> None:
        self._work, self._name, self._kind, self._type_id = work, name, kind, type_id

    def _writer(self, table: int, *, final: bool = False) -> TableWriter:
        return self._work.tables.writer(self._work.part, self._kind | table, self._type_id, WEIGHT, final=final)

    def _blocks(self, table: int, rows: int) -> Iterator[Columns]:
        return self._work.tables.blocks(self._work.part, self._kind | table, self._type_id, WEIGHT, rows)

    def scan(self, rows: int, weights: F32 | None, live: NDArray[np.uint8], ids_of: IdsOf) -> _Scan:
        """Pass 1: rows of positive weight in row order, their number and sum."""
        self._work.progress.phase("B1")
        out, row_of = self._writer(keys.B1), None
        sums = BlockSums()
        lightest, heaviest = np.inf, 0.0
        for low in range(0, rows, SCRATCH_ROWS):
            high = min(low + SCRATCH_ROWS, rows)
            here = np.ones(high - low, np.float32) if weights is None else weights[low:high]
            kept = np.flatnonzero((here > 0) & (live[low:high] > 0) if live.size else here > 0)
            if kept.size < high - low and row_of is None:
                row_of = self._work.image.append_to(f"{self._name}.table.row_of", np.uint32)
                row_of.append(np.arange(low, dtype=np.uint32))
            here = here[kept]
            row = kept + low
            if row_of is not None:
                row_of.append(row)
            if kept.size:
                lightest, heaviest = min(lightest, float(here.min())), max(heaviest, float(here.max()))
                sums.add(here)
                out.append(row.astype(np.uint32), ids_of(row), here)
            self._work.progress.step(high - low)
        return _Scan(size=out.finish(), weight=sums.total(), lightest=lightest, heaviest=heaviest)

    def classify(self, scan: _Scan) -> tuple[int, int]:
        """Pass 2: columns below 1 to B2, the others to B3."""
        self._work.progress.phase("B2, B3")
        light, heavy = self._writer(keys.B2), self._writer(keys.B3)
        position = 0
        for _, ids, weights in self._blocks(keys.B1, scan.size):
            p = weights.astype(np.float64) * scan.size / scan.weight
            for out, mine in ((light, np.flatnonzero(p < 1.0)), (heavy, np.flatnonzero(p >= 1.0))):
                if mine.size:
                    out.append((mine + position).astype(np.uint32), ids[mine], p[mine])
            position += ids.size
        return light.finish(), heavy.finish()

    def sweep(self, lights: int, heavies: int, size: int) -> None:
        """Pass 3: every light column takes the open heavy one as alias, every closed heavy column the next."""
        self._work.progress.phase("sweep")
        swept = Sweep(self._blocks(keys.B2, lights), self._blocks(keys.B3, heavies), self._writer(keys.LIGHT), self._writer(keys.HEAVY))
        short = swept.run()
        if not short <= TOLERANCE * size:
            raise Internal(f"{self._name} of part {self._work.part}: the leftovers of the sweep are short of {short}; the version is refused")

    def merge(self, scan: _Scan, lights: int, heavies: int) -> None:
        """The merge of B1 with both spools by position: the final B1, and the image's thresholds."""
        self._work.progress.phase("merge")
        streams = (_Ordered(self._blocks(keys.LIGHT, lights)), _Ordered(self._blocks(keys.HEAVY, heavies)))
        final = self._writer(keys.B1, final=True)
        hot_out = self._work.image.append_to(f"{self._name}.table.hot", np.uint64)
        cold_out = self._work.image.append_to(f"{self._name}.table.cold", np.uint32)
        low = 0
        for row, ids, weights in self._blocks(keys.B1, scan.size):
            n = row.size
            prob, alias, alias_id = np.empty(n, np.float64), np.empty(n, np.uint32), np.empty(n, np.int64)
            for stream in streams:
                for position, p, to, to_id in stream.below(low + n):
                    at = position - np.uint32(low)
                    prob[at], alias[at], alias_id[at] = p, to, to_id
            final.append(row, ids, prob, alias, alias_id, weights)
            hot, cold = np.empty(n, np.uint64), np.empty(n, np.uint32)
            threshold_block(prob, alias, hot, cold)
            hot_out.append(hot)
            cold_out.append(cold)
            low += n
        final.finish()

    def merge_even(self, scan: _Scan) -> None:
        """The final B1 of a table without a light or heavy row: every column is certain."""
        final = self._writer(keys.B1, final=True)
        low = 0
        for row, ids, weights in self._blocks(keys.B1, scan.size):
            positions = np.arange(low, low + row.size, dtype=np.uint32)
            final.append(row, ids, np.ones(row.size), positions, ids, weights)
            low += row.size
        final.finish()

    def audit(self, scan: _Scan, weights: F32 | None) -> TableResult:
        """Pass 5: the exact law of what was written, against the weights."""
        self._work.progress.phase("audit")
        image, name = self._work.image, self._name
        row_of: U32 = image.map(f"{name}.table.row_of") if f"{name}.table.row_of" in image else np.zeros(0, np.uint32)
        out = np.zeros(3, np.float64)
        assert weights is not None  # a table without weights is even
        audit_table(image.map(f"{name}.table.hot"), image.map(f"{name}.table.cold"), row_of, weights, np.float64(scan.weight), out)
        if not out[0] <= MAX_DISTANCE:
            raise Internal(f"{name} of part {self._work.part}: the table's law is {out[0]:.3g} away from its weights; the version is refused")
        return TableResult(size=scan.size, weight=scan.weight, distance=float(out[0]), worst=float(out[1]), underflow=int(out[2]))


class BlockSums:
    """Compensated sums of every ``BLOCK`` weights, whatever the pieces they come in."""

    def __init__(self) -> None:
        self._held: list[F32] = []
        self._rows = 0
        self._sums: list[float] = []

    def add(self, weights: F32) -> None:
        """The next weights."""
        self._held.append(weights)
        self._rows += weights.size
        while self._rows >= BLOCK:
            joined = np.concatenate(self._held)
            self._sums.append(neumaier(joined[:BLOCK]))
            self._held, self._rows = [joined[BLOCK:]], self._rows - BLOCK

    def total(self) -> float:
        """The sum of all of them."""
        if self._rows:
            self._sums.append(neumaier(np.concatenate(self._held)))
            self._held, self._rows = [], 0
        return neumaier(np.array(self._sums, np.float64))


class _Ordered:
    """A swept stream, taken up to a position at a time."""

    def __init__(self, blocks: Iterator[Columns]) -> None:
        self._blocks = blocks
        self._held: Columns | None = next(blocks, None)

    def below(self, position: int) -> Iterator[Columns]:
        while self._held is not None:
            cut = int(np.searchsorted(self._held[0], np.uint32(position))) if position <= 0xFFFFFFFF else self._held[0].size
            if cut:
                yield tuple(column[:cut] for column in self._held)
            if cut < self._held[0].size:
                self._held = tuple(column[cut:] for column in self._held)
                return
            self._held = next(self._blocks, None)


class Rows(Protocol):
    """Takes (position, probability, alias, alias id), positions ascending: a table, or a place in memory."""

    def append(self, *columns: NDArray[Any]) -> None:
        """Add rows, column by column."""

    def finish(self) -> int:
        """No more will come; gives their number."""


class Sweep:
    """Drives `graphkit.alias.sweep` over two streams of (position, id, p) and writes two."""

    def __init__(self, lights: Iterator[Columns], heavies: Iterator[Columns], light_out: Rows, heavy_out: Rows) -> None:
        self._lights, self._heavies, self._light_out, self._heavy_out = lights, heavies, light_out, heavy_out
        self._cursor = np.array([0, 0, -1], np.int64)
        self._residual = np.zeros(2, np.float64)
        self._light = self._heavy = _NO_ROWS
        self._aliases = np.zeros(0, np.uint32)
        self._open_id = -1

    def run(self) -> float:
        """Sweep to the end; gives what the leftovers are short of."""
        while True:
            if self._cursor[0] == self._light[0].size:
                self._light, self._cursor[0] = next(self._lights, _NO_ROWS), 0
                self._aliases = np.empty(self._light[0].size, np.uint32)
            if self._cursor[1] == self._heavy[0].size:
                self._heavy, self._cursor[1] = next(self._heavies, _NO_ROWS), 0
            if not self._step():
                break
        return self._leftovers()

    def _step(self) -> bool:
        """One call over the blocks at hand; False where it moved nothing: a stream that it wants is at its end."""
        before = self._cursor.copy()
        open_row, open_id = int(before[2]), self._open_id
        room = self._heavy[0].size + 1
        closed_row, closed_prob, closed_alias = np.empty(room, np.uint32), np.empty(room, np.float64), np.empty(room, np.uint32)
        closed = int(
            sweep(self._light[2], self._aliases, self._heavy[0], self._heavy[2], closed_row, closed_prob, closed_alias, self._cursor, self._residual)
        )
        i0, i1 = int(before[0]), int(self._cursor[0])
        if i1 > i0:
            aliases = self._aliases[i0:i1]
            self._light_out.append(self._light[0][i0:i1], self._light[2][i0:i1], aliases.copy(), self._ids(aliases, open_row, open_id))
        if closed:
            aliases = closed_alias[:closed]
            self._heavy_out.append(closed_row[:closed], closed_prob[:closed], aliases, self._ids(aliases, open_row, open_id))
        if self._cursor[2] != open_row:
            self._open_id = int(self._ids(np.array([self._cursor[2]], np.uint32), open_row, open_id)[0])
        return bool((before != self._cursor).any())

    def _ids(self, positions: U32, open_row: int, open_id: int) -> I64:
        """The ids of heavy columns: the one that was open, or of the block at hand."""
        if self._heavy[0].size == 0:
            return np.full(positions.size, open_id, np.int64)
        at = np.minimum(np.searchsorted(self._heavy[0], positions), self._heavy[0].size - 1)
        return np.where(positions == np.uint32(max(open_row, 0)), open_id, self._heavy[1][at]) if open_row >= 0 else self._heavy[1][at]

    def _leftovers(self) -> float:
        short = 0.0
        open_row = int(self._cursor[2])
        if open_row >= 0:
            row = np.array([open_row], np.uint32)
            self._heavy_out.append(row, np.ones(1), row, np.array([self._open_id], np.int64))
            if self._residual[0] < 1.0:
                short += 1.0 - float(self._residual[0])
        while self._heavy[0].size:
            rest = slice(int(self._cursor[1]), None)
            row, ids = self._heavy[0][rest], self._heavy[1][rest]
            self._heavy_out.append(row, np.ones(row.size), row, ids)
            self._heavy, self._cursor[1] = next(self._heavies, _NO_ROWS), 0
        while self._light[0].size:
            rest = slice(int(self._cursor[0]), None)
            row, ids, p = (column[rest] for column in self._light)
            short += float((1.0 - p).sum())
            if open_row >= 0:
                self._light_out.append(row, p, np.full(row.size, open_row, np.uint32), np.full(row.size, self._open_id, np.int64))
            else:
                self._light_out.append(row, p, row, ids)
            self._light, self._cursor[0] = next(self._lights, _NO_ROWS), 0
        self._light_out.finish()
        self._heavy_out.finish()
        return short


_NO_ROWS: Columns = (np.zeros(0, np.uint32), np.zeros(0, np.int64), np.zeros(0, np.float64))
