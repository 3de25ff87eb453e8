"""Results of Euler's operators: sparse tensors as coordinates, and the form that a framework gives
them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from asterism.records.arrays import Ids, RaggedColumn, Values


class Framework(Protocol):
    """The form of results: arrays, or the tensors of a training framework."""

    def dense(self, array: Values) -> Any:
        """An array."""

    def sparse(self, indices: Ids, values: Values, shape: tuple[int, ...]) -> Any:
        """A sparse tensor."""

    def texts(self, rows: Sequence[bytes]) -> Any:
        """Byte strings."""

    def operators(
        self, facade: Any, with_arrays: Callable[[], Any]
    ) -> Mapping[str, Callable[..., Any]]:
        """Return the operators that this framework calls in its own way, by name.

        Parameters
        ----------
        facade : Euler
            Of this framework.
        with_arrays : callable
            Makes an `Euler` over the same graph that returns arrays.
        """


def ragged_to_sparse(framework: Framework, column: RaggedColumn) -> Any:
    """Return a ragged column as a sparse tensor [rows, longest row], each row from the left."""
    indptr, values = column
    lengths = np.diff(indptr)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    indices = np.stack([rows, np.arange(indptr[-1]) - indptr[:-1][rows]], axis=1).astype(np.int64)
    return framework.sparse(indices, values, (len(lengths), int(lengths.max(initial=0))))


def sorted_sparse(
    framework: Framework, indices: Ids, values: Values, shape: tuple[int, ...]
) -> Any:
    """Return a sparse tensor with its entries in order, row after row; entries of the same place
    keep their order.
    """
    order = np.lexsort(indices.T[::-1])
    return framework.sparse(indices[order], values[order], shape)


def fill_missing(ids: Ids, default_node: int) -> Ids:
    """Return ids with ``default_node`` in place of missing ones, which are below 0."""
    return ids if default_node == -1 else np.where(ids < 0, np.int64(default_node), ids)
