"""Build the alias table of one (partition, type).

The passes are B1, B2 and B3, the sweep, the merge with the image, and the audit (docs/storage.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.random.alias_build import LEFTOVER_TOLERANCE, SUM_BLOCK, neumaier_sum
from asterism_proto.errors import Internal
from storaged.build.alias_sweep import AliasSweep, SweepPosition
from storaged.build.block_reader import BuildContext
from storaged.build.build_kernels import audit_table, threshold_block
from storaged.build.build_steps import StepState
from storaged.store import keys
from storaged.store.alias_table_store import SCRATCH_ROWS, AliasTableWriter, Columns, TableExtent
from storaged.store.image import interleave_ids

F32 = NDArray[np.float32]
I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]
IdsOf = Callable[[NDArray[Any]], I64]

WEIGHT = "weight"
MAX_DISTANCE = 1e-9
"""Maximum total variation distance between an image's distribution and its weights.

A version with a larger distance is refused.
"""
SWEEP_CHECKPOINTS = 16
"""Rows between two checkpoints of a sweep, in units of ``BuildTask.checkpoint_rows``.

The sweep is the fastest pass, and each checkpoint writes two files.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableResult:
    """Statistics of one table."""

    size: int
    weight: float
    distance: float = 0.0
    worst: float = 0.0
    underflow: int = 0

    def stats_fields(self, weight_name: str = WEIGHT) -> dict[str, Any]:
        """Return the fields of `PartitionStats` that this table determines."""
        return {
            "positive": self.size,
            "weight": self.weight,
            "weight_name": weight_name,
            "audit_tv": self.distance,
            "audit_rel": self.worst,
            "underflow": self.underflow,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _ScanResult:
    """Result of pass 1."""

    size: int
    weight: float
    lightest: float
    heaviest: float

    @property
    def all_equal(self) -> bool:
        """True if all weights are equal, so that every column is certain."""
        return self.size == 0 or self.lightest == self.heaviest


@dataclass(frozen=True, slots=True, kw_only=True)
class _ClassifyResult:
    """Result of pass 2."""

    lights: int
    heavies: int


def build_table(
    context: BuildContext,
    *,
    name: str,
    kind: int,
    type_id: int,
    rows: int,
    weights: F32 | None,
    live: NDArray[np.uint8],
    ids_of: IdsOf,
    weight_name: str = WEIGHT,
    keyed: bool = False,
) -> TableResult:
    """Build the alias table of ``rows`` rows in the stat database and the image.

    Each pass is a separate step.

    Parameters
    ----------
    context : BuildContext
    name : str
        Prefix of the image's files, and of the steps.
    kind : int
        0 for nodes, ``keys.EDGE_TABLE`` for edges.
    type_id, rows : int
    weights : float32[rows] or None
        None means 1 for every live row.
    live : uint8[rows] or uint8[0]
        Flags of the live rows; empty if all rows are live.
    ids_of : callable
        Maps rows to ids.
    weight_name : str, optional
        Name of the table in the stat database.
    keyed : bool, optional
        Whether the image also has an array of thresholds interleaved with ids.
    """
    passes = _TablePasses(context, f"{name}.table", kind, type_id, weight_name)
    scan = _ScanResult(
        **passes.step("scan", rows, lambda: asdict(passes.scan(rows, weights, live, ids_of)))
    )
    if scan.all_equal:
        passes.step("merge", scan.size, lambda: passes.merge_equal(scan), drops_scratch=True)
        return TableResult(size=scan.size, weight=scan.weight)
    split = _ClassifyResult(
        **passes.step("classify", scan.size, lambda: asdict(passes.classify(scan)))
    )
    passes.step("sweep", scan.size, lambda: passes.sweep(split, scan.size))
    passes.step("merge", scan.size, lambda: passes.merge(scan, split, keyed), drops_scratch=True)
    return TableResult(
        **passes.step("audit", scan.size, lambda: asdict(passes.audit(scan, weights)))
    )


class _TablePasses:
    """Passes over one table, each a forward stream over blocks."""

    def __init__(
        self, context: BuildContext, prefix: str, kind: int, type_id: int, weight_name: str
    ) -> None:
        self._work, self._prefix, self._kind, self._type_id, self._weight_name = (
            context,
            prefix,
            kind,
            type_id,
            weight_name,
        )

    def step(
        self, name: str, rows: int, make: Callable[[], StepState], *, drops_scratch: bool = False
    ) -> StepState:
        """Run one pass, unless an earlier attempt completed it."""
        return self._work.steps.run(
            f"{self._prefix}.{name}", make, rows=rows, drops_scratch=drops_scratch
        )

    def _writer(
        self, table: int, *, final: bool = False, resume: TableExtent | None = None
    ) -> AliasTableWriter:
        return self._work.tables.writer(
            self._work.part,
            self._kind | table,
            self._type_id,
            self._weight_name,
            final=final,
            resume=resume,
        )

    def _blocks(self, table: int, rows: int, skip: int = 0) -> Iterator[Columns]:
        return self._work.tables.blocks(
            self._work.part, self._kind | table, self._type_id, self._weight_name, rows, skip=skip
        )

    def scan(
        self, rows: int, weights: F32 | None, live: NDArray[np.uint8], ids_of: IdsOf
    ) -> _ScanResult:
        """Run pass 1: write the rows of positive weight in row order; count and sum them."""
        self._work.progress.phase("B1")
        out, row_of = self._writer(keys.B1), None
        sums = BlockSums()
        lightest, heaviest = np.inf, 0.0
        for low in range(0, rows, SCRATCH_ROWS):
            high = min(low + SCRATCH_ROWS, rows)
            chunk = np.ones(high - low, np.float32) if weights is None else weights[low:high]
            selected = np.flatnonzero(
                (chunk > 0) & (live[low:high] > 0) if live.size else chunk > 0
            )
            if selected.size < high - low and row_of is None:
                row_of = self._work.image.create_append(f"{self._prefix}.row_of", np.uint32)
                row_of.append(np.arange(low, dtype=np.uint32))
            chunk = chunk[selected]
            row = selected + low
            if row_of is not None:
                row_of.append(row)
            if selected.size:
                lightest, heaviest = (
                    min(lightest, float(chunk.min())),
                    max(heaviest, float(chunk.max())),
                )
                sums.add(chunk)
                out.append(row.astype(np.uint32), ids_of(row), chunk)
            self._work.progress.step(high - low)
        return _ScanResult(
            size=out.finish(), weight=sums.total(), lightest=lightest, heaviest=heaviest
        )

    def classify(self, scan: _ScanResult) -> _ClassifyResult:
        """Run pass 2: write columns with p < 1 to B2, and all others to B3."""
        self._work.progress.phase("B2, B3")
        light, heavy = self._writer(keys.B2), self._writer(keys.B3)
        position = 0
        for _, ids, weights in self._blocks(keys.B1, scan.size):
            p = weights.astype(np.float64) * scan.size / scan.weight
            for out, selected in (
                (light, np.flatnonzero(p < 1.0)),
                (heavy, np.flatnonzero(p >= 1.0)),
            ):
                if selected.size:
                    out.append((selected + position).astype(np.uint32), ids[selected], p[selected])
            position += ids.size
        return _ClassifyResult(lights=light.finish(), heavies=heavy.finish())

    def sweep(self, split: _ClassifyResult, size: int) -> StepState:
        """Run pass 3: assign the open heavy column to light columns, and the next one to it.

        Resumes from the last checkpoint of an earlier attempt.
        """
        self._work.progress.phase("sweep")
        steps, name = self._work.steps, f"{self._prefix}.sweep"
        saved = steps.saved_state(name)
        position = SweepPosition() if saved is None else SweepPosition(**saved["place"])
        light_out, heavy_out = (
            self._writer(table, resume=None if saved is None else TableExtent(**saved[key]))
            for table, key in ((keys.LIGHT, "light"), (keys.HEAVY, "heavy"))
        )

        def checkpoint(position: SweepPosition) -> None:
            light, heavy = light_out.flush(), heavy_out.flush()
            steps.checkpoint(
                name,
                {"place": asdict(position), "light": asdict(light), "heavy": asdict(heavy)},
                light,
                heavy,
            )

        lights, heavies = (
            self._blocks(keys.B2, split.lights, position.light_blocks),
            self._blocks(keys.B3, split.heavies, position.heavy_blocks),
        )
        alias_sweep = AliasSweep(lights, heavies, light_out, heavy_out, position)
        shortfall = alias_sweep.run(
            checkpoint, max(1, SWEEP_CHECKPOINTS * self._work.task.checkpoint_rows // SCRATCH_ROWS)
        )
        if not shortfall <= LEFTOVER_TOLERANCE * size:
            raise Internal(
                f"{self._prefix} of part {self._work.part}: the remainder of the sweep is short "
                f"by {shortfall}; the version is rejected"
            )
        return {}

    def merge(self, scan: _ScanResult, split: _ClassifyResult, keyed: bool) -> StepState:
        """Merge B1 with both spools by position: write the final B1 and the image's thresholds."""
        self._work.progress.phase("merge")
        streams = (
            _PositionStream(self._blocks(keys.LIGHT, split.lights)),
            _PositionStream(self._blocks(keys.HEAVY, split.heavies)),
        )
        final = self._writer(keys.B1, final=True)
        threshold_out = self._work.image.create_append(f"{self._prefix}.hot", np.uint64)
        fraction_out = self._work.image.create_append(f"{self._prefix}.cold", np.uint32)
        keyed_out = (
            self._work.image.create_append(f"{self._prefix}.keyed", np.uint64) if keyed else None
        )
        low = 0
        for row, ids, weights in self._blocks(keys.B1, scan.size):
            n = row.size
            prob, alias, alias_id = (
                np.empty(n, np.float64),
                np.empty(n, np.uint32),
                np.empty(n, np.int64),
            )
            for stream in streams:
                for position, p, alias_position, alias_target in stream.take_below(low + n):
                    offsets = position - np.uint32(low)
                    prob[offsets], alias[offsets], alias_id[offsets] = (
                        p,
                        alias_position,
                        alias_target,
                    )
            final.append(row, ids, prob, alias, alias_id, weights)
            alias_threshold, alias_fraction = np.empty(n, np.uint64), np.empty(n, np.uint32)
            threshold_block(prob, alias, alias_threshold, alias_fraction)
            threshold_out.append(alias_threshold)
            fraction_out.append(alias_fraction)
            if keyed_out is not None:
                keyed_out.append(interleave_ids(alias_threshold, ids))
            low += n
        final.finish()
        return {}

    def merge_equal(self, scan: _ScanResult) -> StepState:
        """Write the final B1 of a table with equal weights: every column is certain."""
        final = self._writer(keys.B1, final=True)
        low = 0
        for row, ids, weights in self._blocks(keys.B1, scan.size):
            positions = np.arange(low, low + row.size, dtype=np.uint32)
            final.append(row, ids, np.ones(row.size), positions, ids, weights)
            low += row.size
        final.finish()
        return {}

    def audit(self, scan: _ScanResult, weights: F32 | None) -> TableResult:
        """Run pass 5: compare the exact distribution of the written table with the weights."""
        self._work.progress.phase("audit")
        image, prefix = self._work.image, self._prefix
        row_of: U32 = (
            image.map(f"{prefix}.row_of") if f"{prefix}.row_of" in image else np.zeros(0, np.uint32)
        )
        out = np.zeros(3, np.float64)
        assert weights is not None  # a table without weights has equal ones
        audit_table(
            image.map(f"{prefix}.hot"),
            image.map(f"{prefix}.cold"),
            row_of,
            weights,
            np.float64(scan.weight),
            out,
        )
        if not out[0] <= MAX_DISTANCE:
            raise Internal(
                f"{prefix} of part {self._work.part}: the table's distribution differs from its "
                f"weights by {out[0]:.3g}; the version is rejected"
            )
        return TableResult(
            size=scan.size,
            weight=scan.weight,
            distance=float(out[0]),
            worst=float(out[1]),
            underflow=int(out[2]),
        )


class BlockSums:
    """Compensated sums of blocks of ``SUM_BLOCK`` weights, or of their squares.

    The sum does not depend on the sizes of the pieces that are added.
    """

    def __init__(self) -> None:
        self._pending: list[NDArray[Any]] = []
        self._rows = 0
        self._sums: list[float] = []

    def add(self, weights: NDArray[Any]) -> None:
        """Add the next weights."""
        self._pending.append(weights)
        self._rows += weights.size
        while self._rows >= SUM_BLOCK:
            joined = np.concatenate(self._pending)
            self._sums.append(neumaier_sum(joined[:SUM_BLOCK]))
            self._pending, self._rows = [joined[SUM_BLOCK:]], self._rows - SUM_BLOCK

    def total(self) -> float:
        """Return the total sum."""
        if self._rows:
            self._sums.append(neumaier_sum(np.concatenate(self._pending)))
            self._pending, self._rows = [], 0
        return neumaier_sum(np.array(self._sums, np.float64))


class _PositionStream:
    """A swept stream that is read up to given positions."""

    def __init__(self, blocks: Iterator[Columns]) -> None:
        self._blocks = blocks
        self._block: Columns | None = next(blocks, None)

    def take_below(self, position: int) -> Iterator[Columns]:
        """Yield the remaining rows with positions below ``position``."""
        while self._block is not None:
            end = (
                int(np.searchsorted(self._block[0], np.uint32(position)))
                if position <= 0xFFFFFFFF
                else self._block[0].size
            )
            if end:
                yield tuple(column[:end] for column in self._block)
            if end < self._block[0].size:
                self._block = tuple(column[end:] for column in self._block)
                return
            self._block = next(self._blocks, None)
