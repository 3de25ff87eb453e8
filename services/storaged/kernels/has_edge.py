"""Test whether pairs of nodes are joined by an edge."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import kernel


@kernel
def mark_joined_rows(
    rows: NDArray[np.int64],
    indptr: NDArray[np.int64],
    nbr: NDArray[np.int64],
    targets: NDArray[np.int64],
    out: NDArray[np.bool_],
) -> None:
    """Mark the rows that have an edge to their target.

    Parameters
    ----------
    rows : int64[m]
        -1 for no row.
    indptr, nbr : int64[rows + 1], int64[slots]
        Neighbors ascend within a row.
    targets : int64[m]
        -1 for no node.
    out : bool[m], inout
        Set to True for joined pairs; all other elements are unchanged.
    """
    for i in range(rows.shape[0]):
        if rows[i] < 0 or targets[i] < 0:
            continue
        low, high = indptr[rows[i]], indptr[rows[i] + 1]
        end = high
        while low < high:
            middle = (low + high) >> 1
            if nbr[middle] < targets[i]:
                low = middle + 1
            else:
                high = middle
        if low < end and nbr[low] == targets[i]:
            out[i] = True
