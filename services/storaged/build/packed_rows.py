"""What draws read at random once more, closer together: ids in half the room, and beside each alias
column what it decides between.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import as_kernel_array, kernel
from storaged.build.block_reader import BuildContext
from storaged.build.checkpoints import StepState
from storaged.store.image import NO_NEIGHBOR, pack_pairs

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]

CHUNK = 1 << 18
_LOW, _S32 = np.uint64(0xFFFFFFFF), np.uint64(32)
_NONE = np.uint64(NO_NEIGHBOR << 32 | NO_NEIGHBOR)


@kernel
def pack_rows(
    indptr: I64,
    first: np.int64,
    end: np.int64,
    narrow: U32,
    sums: F64,
    alias_threshold: U64,
    packed: U64,
) -> None:
    """Put beside each alias column of some rows its own neighbor and its alias's.

    Parameters
    ----------
    indptr : int64[rows + 1]
    first, end : int64
        The rows.
    narrow, alias_threshold : uint32[slots], uint64[slots]
    sums : float64[rows]
    packed : uint64[2 * slots], out
        As of `storaged.store.image.AdjacencyImage`.
    """
    for row in range(first, end):
        start = indptr[row]
        for slot in range(start, indptr[row + 1]):
            packed[2 * slot] = alias_threshold[slot]
            if sums[row] > 0.0:
                alias = start + np.int64(alias_threshold[slot] & _LOW)
                packed[2 * slot + 1] = np.uint64(narrow[alias]) << _S32 | np.uint64(narrow[slot])
            else:
                packed[2 * slot + 1] = _NONE


def narrow_ids(context: BuildContext, prefix: str) -> StepState:
    """Write the neighbors of an adjacency in 32 bits each, and beside their edges' ids, where all
    of them fit; says whether the neighbors do.
    """
    nbr, eid = context.image.map(f"{prefix}.nbr"), context.image.map(f"{prefix}.eid")
    if not _fits_32_bits(nbr):
        return {"fit": False}
    narrow = context.image.create_append(f"{prefix}.narrow", np.uint32)
    for low in range(0, nbr.size, CHUNK):
        narrow.append(nbr[low : low + CHUNK].astype(np.uint32))
    if _fits_32_bits(eid):
        pairs = context.image.create_append(f"{prefix}.pairs", np.uint64)
        for low in range(0, nbr.size, CHUNK):
            pairs.append(pack_pairs(nbr[low : low + CHUNK], eid[low : low + CHUNK]))
    return {"fit": True}


def _fits_32_bits(ids: I64) -> bool:
    """Whether ids fit into 32 bits, all of them."""
    return all(int(ids[low : low + CHUNK].max()) < NO_NEIGHBOR for low in range(0, ids.size, CHUNK))


def build_packed_rows(context: BuildContext, prefix: str, side: str) -> StepState:
    """Write the packed rows of an adjacency by one of its weights, where it has alias rows by
    these.

    Parameters
    ----------
    prefix, side : str
        Of the files of the weights, and of the adjacency's.
    """
    image = context.image
    if f"{prefix}.hot" not in image:
        return {}
    indptr, narrow, alias_threshold, sums = (
        as_kernel_array(image.map(name))
        for name in (f"{side}.indptr", f"{side}.narrow", f"{prefix}.hot", f"{prefix}.sums")
    )
    packed = image.create(f"{prefix}.packed", np.uint64, (2 * alias_threshold.size,))
    rows = indptr.size - 1
    low = 0
    while low < rows:
        high = min(
            max(int(np.searchsorted(indptr, indptr[low] + CHUNK, side="right")) - 1, low + 1), rows
        )
        pack_rows(indptr, np.int64(low), np.int64(high), narrow, sums, alias_threshold, packed)
        low = high
    return {}
