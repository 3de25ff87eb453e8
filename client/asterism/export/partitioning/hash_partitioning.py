"""Owners of nodes by a hash of their ids."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asterism.export.graph_source import Ids
from asterism.export.partitioning.assignment_files import Owners
from asterism_graphkit.compile.jit import as_kernel_array, kernel
from asterism_graphkit.random.rng import bounded, key_of, mix64, word

_PURPOSE = 0x45585054
"""Key of the random words used here, distinct from the keys of sampling.

Part of the sampling contract: changing it changes results for a given seed.
"""


@kernel
def _hash_with_key(
    ids: NDArray[np.int64], key: np.uint64, parts: np.uint64, out: NDArray[np.int32]
) -> None:
    """Write a partition per id, hashed with a key, to ``out``; both of shape (n,)."""
    for i in range(ids.shape[0]):
        out[i] = np.int32(bounded(word(key, np.uint64(ids[i])), parts))


def random_owners(ids: Ids, *, parts: int, seed: int, type_id: int) -> Owners:
    """Assign each node to a partition, independently and uniformly at random.

    The result depends only on (seed, type, id).

    Parameters
    ----------
    ids : ndarray of int64, shape (n,)
        Stored node ids.
    parts, seed, type_id : int
        Number of partitions, seed, and node type.

    Returns
    -------
    ndarray of int32, shape (n,)
    """
    out = np.empty(len(ids), np.int32)
    _hash_with_key(as_kernel_array(ids), key_of(seed, _PURPOSE, type_id), np.uint64(parts), out)
    return out


@kernel
def _hash_ids(ids: NDArray[np.int64], parts: np.uint64, out: NDArray[np.int32]) -> None:
    """Write a partition per id, hashed without a key, to ``out``; both of shape (n,)."""
    for i in range(ids.shape[0]):
        out[i] = np.int32(bounded(mix64(np.uint64(ids[i])), parts))


def hashed_owners(ids: Ids, *, parts: int) -> Owners:
    """Assign each node to a partition by its id alone.

    The partition is the high 64 bits of ``splitmix64(id) * parts``, which any program can compute.

    Parameters
    ----------
    ids : ndarray of int64, shape (n,)
        Stored node ids.
    parts : int
        Number of partitions.

    Returns
    -------
    ndarray of int32, shape (n,)
    """
    out = np.empty(len(ids), np.int32)
    _hash_ids(as_kernel_array(ids), np.uint64(parts), out)
    return out
