"""Forms of results: a port for frameworks, and sparse tensors as coordinates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from asterism.calls import validation
from asterism.records.arrays import Ids, RaggedColumn, Values
from asterism_proto.errors import InvalidRequest


class Framework(Protocol):
    """Form of results: arrays, or the tensors of a training framework."""

    def dense(self, array: Values) -> Any:
        """Convert an array.

        Parameters
        ----------
        array : ndarray
            Array of numbers.

        Returns
        -------
        object
            Dense array or tensor of the framework.
        """

    def sparse(self, indices: Ids, values: Values, shape: tuple[int, ...]) -> Any:
        """Convert the coordinates of a sparse tensor.

        Parameters
        ----------
        indices : ndarray of int64, shape (entries, dimensions)
            Coordinates of the entries.
        values : ndarray, shape (entries,)
            Value of each entry.
        shape : tuple of int
            Dense shape.

        Returns
        -------
        object
            Sparse tensor of the framework.
        """

    def texts(self, rows: Sequence[bytes]) -> Any:
        """Convert byte strings.

        Parameters
        ----------
        rows : sequence of bytes
            Byte strings.

        Returns
        -------
        object
            Form in which the framework represents byte strings.
        """

    def operators(
        self, facade: Any, with_arrays: Callable[[], Any]
    ) -> Mapping[str, Callable[..., Any]]:
        """Return the operators that this framework implements differently, by name.

        Parameters
        ----------
        facade : Euler
            Facade that returns results of this framework.
        with_arrays : callable
            Creates an `Euler` over the same graph that returns arrays.

        Returns
        -------
        mapping of str to callable
            Operators that replace those of the facade.
        """


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
