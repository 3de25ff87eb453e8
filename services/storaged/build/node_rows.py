"""Map of the nodes of one type in a partition to their rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.relabel.hash_index import find

I64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowMap:
    """Rows of the ids of a type."""

    part: int
    parts: int
    rows: int
    count: int
    dense: bool
    live: NDArray[np.uint8]
    """Flag of each row; empty if every row is live, and for sparse types."""
    ids: I64
    index_ids: I64
    index_rows: NDArray[np.uint32]
    digest: str = ""
    """Digest of the assignment of rows to ids; empty until it is known."""

    def find_rows(self, ids: I64) -> I64:
        """Return the row of each id, or -1 if it is not live in this partition."""
        if self.rows == 0:
            return np.full(ids.size, -1, np.int64)
        if not self.dense:
            return find(ids, self.index_ids, self.index_rows)
        rows = ids // self.parts
        invalid = (ids < 0) | (rows >= self.rows) | (ids - rows * self.parts != self.part)
        if invalid.any():
            rows[invalid] = -1
        if self.live.size:
            rows[self.live[np.maximum(rows, 0)] == 0] = -1
        return rows

    def ids_of(self, rows: NDArray[Any]) -> I64:
        """Return the id of each row."""
        if self.dense:
            return rows.astype(np.int64) * self.parts + self.part
        ids: I64 = self.ids[rows]
        return ids
