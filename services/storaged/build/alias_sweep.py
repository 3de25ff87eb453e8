"""Resumable alias sweep over two streams of blocks: light and heavy columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import as_kernel_array
from asterism_graphkit.random.alias_build import sweep
from storaged.build.build_kernels import alias_ids
from storaged.store.alias_table_store import Columns

I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]


class RowSink(Protocol):
    """Sink for rows (position, probability, alias, alias id), with ascending positions.

    Implementations are a table and an array in memory.
    """

    def append(self, *columns: NDArray[Any]) -> None:
        """Append rows.

        Parameters
        ----------
        *columns : ndarray
            Columns of equal length.
        """

    def finish(self) -> int:
        """Finish the sink, and return the total number of rows.

        Returns
        -------
        int
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPosition:
    """Position of a sweep; with its outputs, all that is needed to resume it."""

    light_blocks: int = 0
    """Number of finished blocks of the light stream."""
    light: int = 0
    """Number of finished columns of the next block."""
    heavy_blocks: int = 0
    heavy: int = 0
    open_row: int = -1
    """Open heavy column; -1 before there is one."""
    open_id: int = -1
    high: float = 0.0
    """Residual of the open column, as a TwoSum pair with ``low``."""
    low: float = 0.0


class AliasSweep:
    """Driver of `asterism_graphkit.random.alias_build.sweep` over two streams of (position, id, p).

    It writes one output for each stream.

    Parameters
    ----------
    lights, heavies : iterator of Columns
        Streams from the first block that ``position`` has not finished.
    light_out, heavy_out : RowSink
    position : SweepPosition, optional
        Position of an earlier sweep to resume.
    """

    def __init__(
        self,
        lights: Iterator[Columns],
        heavies: Iterator[Columns],
        light_out: RowSink,
        heavy_out: RowSink,
        position: SweepPosition = SweepPosition(),
    ) -> None:
        self._lights, self._heavies, self._light_out, self._heavy_out = (
            lights,
            heavies,
            light_out,
            heavy_out,
        )
        self._light_blocks, self._heavy_blocks, self._open_id = (
            position.light_blocks,
            position.heavy_blocks,
            position.open_id,
        )
        self._light, self._heavy = next(lights, _NO_ROWS), next(heavies, _NO_ROWS)
        self._aliases = np.empty(self._light[0].size, np.uint32)
        self._cursor = np.array([position.light, position.heavy, position.open_row], np.int64)
        self._residual = np.array([position.high, position.low], np.float64)

    @property
    def position(self) -> SweepPosition:
        """Current position of the sweep."""
        light, heavy, open_row = self._cursor.tolist()
        high, low = self._residual.tolist()
        return SweepPosition(
            light_blocks=self._light_blocks,
            light=light,
            heavy_blocks=self._heavy_blocks,
            heavy=heavy,
            open_row=open_row,
            open_id=self._open_id,
            high=high,
            low=low,
        )

    def run(
        self, checkpoint: Callable[[SweepPosition], None] | None = None, interval: int = 0
    ) -> float:
        """Sweep to the end, and return the shortfall of the leftover columns.

        Calls ``checkpoint`` after every ``interval`` blocks.
        """
        reported = self._light_blocks + self._heavy_blocks
        while self._step():
            self._refill()
            done = self._light_blocks + self._heavy_blocks
            if checkpoint is not None and done - reported >= interval:
                checkpoint(self.position)
                reported = done
        return self._write_leftovers()

    def _refill(self) -> None:
        """Load the next block of each stream with a finished block; none at the end of a stream."""
        if 0 < self._light[0].size == self._cursor[0]:
            self._light, self._light_blocks, self._cursor[0] = (
                next(self._lights, _NO_ROWS),
                self._light_blocks + 1,
                0,
            )
            self._aliases = np.empty(self._light[0].size, np.uint32)
        if 0 < self._heavy[0].size == self._cursor[1]:
            self._heavy, self._heavy_blocks, self._cursor[1] = (
                next(self._heavies, _NO_ROWS),
                self._heavy_blocks + 1,
                0,
            )

    def _step(self) -> bool:
        """Sweep the current blocks; return False if nothing moved.

        The stream that the sweep needs is then at its end.
        """
        before = self._cursor.copy()
        open_row, open_id = int(before[2]), self._open_id
        capacity = self._heavy[0].size + 1
        closed_row, closed_prob, closed_alias = (
            np.empty(capacity, np.uint32),
            np.empty(capacity, np.float64),
            np.empty(capacity, np.uint32),
        )
        light_p, heavy_row, heavy_p = (
            as_kernel_array(self._light[2]),
            as_kernel_array(self._heavy[0]),
            as_kernel_array(self._heavy[2]),
        )
        closed = int(
            sweep(
                light_p,
                self._aliases,
                heavy_row,
                heavy_p,
                closed_row,
                closed_prob,
                closed_alias,
                self._cursor,
                self._residual,
            )
        )
        i0, i1 = int(before[0]), int(self._cursor[0])
        if i1 > i0:
            aliases = self._aliases[i0:i1]
            self._light_out.append(
                self._light[0][i0:i1],
                self._light[2][i0:i1],
                aliases.copy(),
                self._heavy_ids(aliases, open_row, open_id),
            )
        if closed:
            aliases = closed_alias[:closed]
            self._heavy_out.append(
                closed_row[:closed],
                closed_prob[:closed],
                aliases,
                self._heavy_ids(aliases, open_row, open_id),
            )
        if self._cursor[2] != open_row:
            self._open_id = int(
                self._heavy_ids(np.array([self._cursor[2]], np.uint32), open_row, open_id)[0]
            )
        return bool((before != self._cursor).any())

    def _heavy_ids(self, positions: U32, open_row: int, open_id: int) -> I64:
        """Return the ids of ascending heavy columns.

        They are the open column, or columns of the current block.
        """
        out = np.empty(positions.size, np.int64)
        alias_ids(
            as_kernel_array(positions),
            as_kernel_array(self._heavy[0]),
            as_kernel_array(self._heavy[1]),
            np.int64(open_row),
            np.int64(open_id),
            out,
        )
        return out

    def _write_leftovers(self) -> float:
        shortfall = 0.0
        open_row = int(self._cursor[2])
        if open_row >= 0:
            row = np.array([open_row], np.uint32)
            self._heavy_out.append(row, np.ones(1), row, np.array([self._open_id], np.int64))
            if self._residual[0] < 1.0:
                shortfall += 1.0 - float(self._residual[0])
        while self._heavy[0].size:
            remaining = slice(int(self._cursor[1]), None)
            row, ids = self._heavy[0][remaining], self._heavy[1][remaining]
            self._heavy_out.append(row, np.ones(row.size), row, ids)
            self._heavy, self._cursor[1] = next(self._heavies, _NO_ROWS), 0
        while self._light[0].size:
            remaining = slice(int(self._cursor[0]), None)
            row, ids, p = (column[remaining] for column in self._light)
            shortfall += float((1.0 - p).sum())
            if open_row >= 0:
                self._light_out.append(
                    row,
                    p,
                    np.full(row.size, open_row, np.uint32),
                    np.full(row.size, self._open_id, np.int64),
                )
            else:
                self._light_out.append(row, p, row, ids)
            self._light, self._cursor[0] = next(self._lights, _NO_ROWS), 0
        self._light_out.finish()
        self._heavy_out.finish()
        return shortfall


_NO_ROWS: Columns = (np.zeros(0, np.uint32), np.zeros(0, np.int64), np.zeros(0, np.float64))
