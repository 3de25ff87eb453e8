"""Find the drawn ids that are excluded for their row, and sum the excluded weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.arrays.stable_sort import ENTRIES_PER_PIECE, distinct, stable_order
from asterism_graphkit.compile.jit import as_kernel_array, kernel
from asterism_graphkit.random.successive_probabilities import neumaier_add


@kernel
def _excluded_mask(
    rows: NDArray[np.int64],
    ids: NDArray[np.int64],
    indptr: NDArray[np.int64],
    excluded_ids: NDArray[np.int64],
    out: NDArray[np.bool_],
) -> None:
    for i in range(ids.shape[0]):
        low, high = indptr[rows[i]], indptr[rows[i] + 1]
        end = high
        while low < high:
            middle = (low + high) >> 1
            if excluded_ids[middle] < ids[i]:
                low = middle + 1
            else:
                high = middle
        out[i] = low < end and excluded_ids[low] == ids[i]


@kernel
def _excluded_weights(
    indptr: NDArray[np.int64],
    excluded_ids: NDArray[np.int64],
    weights: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    for row in range(out.shape[0]):
        high, low = 0.0, 0.0
        for at in range(indptr[row], indptr[row + 1]):
            if at == indptr[row] or excluded_ids[at] != excluded_ids[at - 1]:
                high, low = neumaier_add(high, low, weights[at])
        out[row] = high + low


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExcludedIds:
    """Ids that are excluded for each row."""

    indptr: NDArray[np.int64]
    """Ranges of the ids of each row; int64[rows + 1]."""
    ids: NDArray[np.int64]
    """Excluded ids, ascending within a row; int64[k]."""

    @classmethod
    def from_rows(
        cls, indptr: NDArray[np.int64], ids: NDArray[np.int64], checkpoint: Callable[[], object]
    ) -> ExcludedIds:
        """Create from rows with ids in any order.

        ``checkpoint`` is called between pieces of the sort and may raise.
        """
        rows = np.repeat(np.arange(indptr.size - 1, dtype=np.int64), np.diff(indptr))
        order = stable_order([rows, ids], checkpoint)
        return cls(indptr=as_kernel_array(indptr), ids=as_kernel_array(ids[order]))

    def row_ids(self, row: int, checkpoint: Callable[[], object]) -> NDArray[np.int64]:
        """Return the distinct excluded ids of a row, ascending."""
        return distinct(self.ids[self.indptr[row] : self.indptr[row + 1]], checkpoint)[0]

    def excluded_mask(
        self, rows: NDArray[np.int64], ids: NDArray[np.int64], checkpoint: Callable[[], object]
    ) -> NDArray[np.bool_]:
        """Return a mask of the ids that are excluded for their rows.

        Parameters
        ----------
        rows : int64[n]
            Row for which each id was drawn.
        ids : int64[n]
        checkpoint : callable
            Called between pieces; it may raise.

        Returns
        -------
        bool[n]
        """
        out = np.empty(ids.size, np.bool_)
        rows, ids = as_kernel_array(rows), as_kernel_array(ids)
        for begin in range(0, ids.size, ENTRIES_PER_PIECE):
            checkpoint()
            piece = slice(begin, begin + ENTRIES_PER_PIECE)
            _excluded_mask(rows[piece], ids[piece], self.indptr, self.ids, out[piece])
        return out

    def excluded_weights(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the total weight of the distinct excluded ids of each row.

        ``weights`` is float64[k], parallel to ``ids``; the result is float64[rows].
        """
        out = np.empty(self.indptr.size - 1, np.float64)
        _excluded_weights(self.indptr, self.ids, as_kernel_array(weights), out)
        return out
