"""Scratch files of rows, appended to and then mapped. No file is kept open in between."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.export.graph_source import Array

PIECE_BYTES = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Spool:
    """Rows of one dtype and shape in a raw file, visible to any process that sees the file."""

    path: Path
    dtype: np.dtype[Any]
    shape: tuple[int, ...] = ()
    piece_bytes: int = PIECE_BYTES

    @property
    def row_bytes(self) -> int:
        """Size of a row in bytes."""
        return self.dtype.itemsize * int(np.prod(self.shape, dtype=np.int64))

    @property
    def rows(self) -> int:
        """Number of rows in the file."""
        try:
            return self.path.stat().st_size // max(1, self.row_bytes)
        except FileNotFoundError:
            return 0

    def append(self, values: Array) -> None:
        """Append rows."""
        raw = np.ascontiguousarray(values, self.dtype)
        if len(raw):
            # Reopened for each call: there are partitions x types x columns of these files, more
            # than may be open at once.
            with open(self.path, "ab") as file:
                file.write(raw.reshape(-1).view(np.uint8).data)

    def allocate(self, rows: int) -> Array:
        """Create a file of zeros and map it for writing in any order."""
        with open(self.path, "wb") as file:
            file.truncate(rows * self.row_bytes)
        return self.map("r+")

    def map(self, mode: str = "r") -> Array:
        """Map all rows. Pages are read on access and released with the array."""
        rows = self.rows
        if rows == 0:
            return np.empty((0, *self.shape), self.dtype)
        mapped: Array = np.memmap(
            self.path, self.dtype, "r" if mode == "r" else "r+", shape=(rows, *self.shape)
        )
        return mapped

    def read(self) -> Array:
        """Read all rows into memory."""
        if self.rows == 0:
            return np.empty((0, *self.shape), self.dtype)
        return np.fromfile(self.path, self.dtype).reshape(-1, *self.shape)

    def pieces(self, order: NDArray[np.int64] | None = None) -> Iterator[Array]:
        """Yield all rows in batches, in file order or in ``order``."""
        step, count = self.piece_rows, self.rows
        if 0 < count <= step:  # a map would cost more than it saves
            rows = self.read()
            yield rows if order is None else np.take(rows, order, axis=0)
            return
        for start in range(0, count, step):
            # Each batch has its own map, so that its pages do not stay resident.
            rows = self.map()
            yield (
                np.array(rows[start : start + step])
                if order is None
                else np.take(rows, order[start : start + step], axis=0)
            )

    @property
    def piece_rows(self) -> int:
        """Number of rows per batch."""
        return max(1, min(PIECE_BYTES, self.piece_bytes) // max(1, self.row_bytes))

    def remove(self) -> None:
        """Remove the file with its rows, if it exists."""
        self.path.unlink(missing_ok=True)
