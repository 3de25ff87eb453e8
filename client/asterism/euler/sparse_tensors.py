"""Forms of results: sparse tensors as coordinates, and ids in place of missing ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from asterism.calls import validation
from asterism.euler.frameworks import Framework
from asterism.records.arrays import Ids, RaggedColumn, Values
from asterism_proto.errors import InvalidRequest


def ragged_to_sparse(framework: Framework, column: RaggedColumn) -> Any:
    """Return a ragged column as a sparse tensor [rows, longest row], left-aligned."""
    indptr, values = column
    lengths = np.diff(indptr)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    indices = np.stack([rows, np.arange(indptr[-1]) - indptr[:-1][rows]], axis=1).astype(np.int64)
    return framework.sparse(indices, values, (len(lengths), int(lengths.max(initial=0))))


def sorted_sparse(
    framework: Framework, indices: Ids, values: Values, shape: tuple[int, ...]
) -> Any:
    """Return a sparse tensor with its entries in row-major order.

    Entries at the same coordinates keep their order.
    """
    order = np.lexsort(indices.T[::-1])
    return framework.sparse(indices[order], values[order], shape)


def fill_missing(ids: Ids, default_node: int) -> Ids:
    """Return ids with ``default_node`` in place of missing ones, which are negative."""
    if not -validation.MAX_ID <= default_node <= validation.MAX_ID:
        raise InvalidRequest(f"default_node={default_node}: expected an integer of 64 bits")
    return ids if default_node == -1 else np.where(ids < 0, np.int64(default_node), ids)
