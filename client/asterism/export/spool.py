"""Scratch files of rows: appended to, then read back as a map. Nothing is kept open in between."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.export.source import Array

PIECE_BYTES = 16 << 20


@dataclass(slots=True, kw_only=True)
class Spool:
    """Rows of one dtype and shape in a raw file."""

    path: Path
    dtype: np.dtype[Any]
    shape: tuple[int, ...] = ()
    rows: int = field(default=0, init=False)

    def append(self, values: Array) -> None:
        """Add rows at the end."""
        raw = np.ascontiguousarray(values, self.dtype)
        if len(raw):
            # Opened anew each time: there are parts x types x columns of these, more than files may be open.
            with open(self.path, "ab") as file:
                file.write(raw.reshape(-1).view(np.uint8).data)
            self.rows += len(raw)

    def map(self) -> Array:
        """All rows, mapped: read as they are touched, and given back with the array."""
        if self.rows == 0:
            return np.empty((0, *self.shape), self.dtype)
        return np.memmap(self.path, self.dtype, "r", shape=(self.rows, *self.shape))

    def read(self) -> Array:
        """All rows, in memory."""
        if self.rows == 0:
            return np.empty((0, *self.shape), self.dtype)
        return np.fromfile(self.path, self.dtype).reshape(self.rows, *self.shape)

    def pieces(self, order: NDArray[np.int64] | None = None) -> Iterator[Array]:
        """All rows a few at a time, in file order or in ``order``."""
        step = self.step
        for at in range(0, self.rows, step):
            # A map per piece: what it touched does not stay resident.
            rows = self.map()
            yield np.array(rows[at : at + step]) if order is None else np.take(rows, order[at : at + step], axis=0)

    @property
    def step(self) -> int:
        """Rows of a piece."""
        return max(1, PIECE_BYTES // max(1, self.dtype.itemsize * int(np.prod(self.shape))))

    def drop(self) -> None:
        """Remove the file and its rows."""
        self.path.unlink(missing_ok=True)
        self.rows = 0
