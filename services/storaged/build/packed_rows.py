"""Build packed copies of adjacencies for sampling with fewer random reads.

Ids are stored in 32 bits, and each alias column is stored with the two neighbors that it chooses
between.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import as_kernel_array, kernel
from storaged.build.block_reader import BuildContext
from storaged.build.build_steps import StepState
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
    """Pack each alias column of some rows with its neighbor and the neighbor of its alias.

    Parameters
    ----------
    indptr : int64[rows + 1]
    first, end : int64
        Range of rows.
    narrow, alias_threshold : uint32[slots], uint64[slots]
    sums : float64[rows]
    packed : uint64[2 * slots], out
        Format of `storaged.store.image.AdjacencyImage`.
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
    """Write the neighbors of an adjacency in 32 bits, if all of them fit.

    Also writes pairs of neighbor and edge id, if the edge ids fit as well. The returned state says
    whether the neighbors fit.
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
    """Return whether all ids fit in 32 bits."""
    return all(int(ids[low : low + CHUNK].max()) < NO_NEIGHBOR for low in range(0, ids.size, CHUNK))


def build_packed_rows(context: BuildContext, prefix: str, side: str) -> StepState:
    """Write the packed rows of an adjacency for one of its weights, if it has alias rows.

    Parameters
    ----------
    context : BuildContext
    prefix, side : str
        Prefixes of the files of the weights, and of the adjacency.
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
