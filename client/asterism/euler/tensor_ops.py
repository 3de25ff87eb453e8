"""Operators over arrays and tensors: skip-gram pairs, gathers and scatters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from asterism import ops
from asterism.calls import validation
from asterism.euler.base import EulerCalls
from asterism_proto.errors import InvalidRequest

SCATTERS = {
    "add": ops.scatter_add,
    "max": ops.scatter_max,
    "mean": ops.scatter_mean,
    "softmax": ops.scatter_softmax,
}


class EulerTensorCalls(EulerCalls):
    """Operators that read no graph: skip-gram pairs, gathers and scatters."""

    def gen_pair(self, paths: ArrayLike, left_win_size: int, right_win_size: int) -> Any:
        """Return the skip-gram pairs of walks.

        For each center, the nodes before it come first, starting with the nearest, then the nodes
        after it.

        Parameters
        ----------
        paths : array_like of int64, shape (b, length)
            Walks.
        left_win_size, right_win_size : int
            Steps before and after the center that form pairs with it.

        Returns
        -------
        ndarray of int64, shape (b, pairs, 2)
            Every walk has the same number of pairs: missing nodes are included, which
            `asterism.ops.walk_pairs` omits.
        """
        given = validation.as_array("paths", paths, "integers")
        walks = validation.ids("paths", given.reshape(-1), minimum=-1).reshape(given.shape)
        positions = ops.pair_places(np.zeros_like(walks), left_win_size, right_win_size)
        pairs_per_walk = len(positions) // len(walks) if len(walks) else 0
        return self._framework.dense(
            walks.reshape(-1)[positions].reshape(len(walks), pairs_per_walk, 2)
        )

    def inflate_idx(self, idx: ArrayLike) -> Any:
        """Return the position of each occurrence when values are grouped by unique value.

        Parameters
        ----------
        idx : array_like of int
            Index of the unique value of each occurrence.

        Returns
        -------
        ndarray of int32
            Positions; see `asterism.ops.inflate_idx`.
        """
        return self._framework.dense(ops.inflate_idx(idx).astype(np.int32))

    def sparse_gather(
        self,
        gather_idx: ArrayLike,
        indices: ArrayLike,
        values: ArrayLike,
        dense_shape: Sequence[int],
    ) -> Any:
        """Return rows of a sparse tensor in the order of ``gather_idx``.

        Parameters
        ----------
        gather_idx : array_like of int
            Rows to return.
        indices, values, dense_shape
            Coordinates, values and dense shape of the sparse tensor.

        Returns
        -------
        SparseTensor, or sparse tensor of the framework
            The rows; see `asterism.ops.sparse_gather`.
        """
        coordinates, gathered, shape = ops.sparse_gather(gather_idx, indices, values, dense_shape)
        return self._framework.sparse(coordinates, gathered, shape)

    def gather(self, params: Any, indices: Any) -> Any:
        """Return rows of ``params``. Gathers and scatters of tensors have gradients.

        Parameters
        ----------
        params : array_like or tensor
            Rows to choose from.
        indices : array_like or tensor of int
            Rows to return.

        Returns
        -------
        ndarray or tensor
            The rows; see `asterism.ops.gather`.
        """
        return ops.gather(params, indices)

    def scatter_add(self, updates: Any, indices: Any, size: int) -> Any:
        """Return the sum of the updates of each output row.

        Parameters
        ----------
        updates : array_like or tensor, shape (m, ...)
            Values to combine.
        indices : array_like or tensor of int, shape (m,)
            Output row of each value.
        size : int
            Number of output rows.

        Returns
        -------
        ndarray or tensor
            Sums; see `asterism.ops.scatter_add`.
        """
        return ops.scatter_add(updates, indices, size)

    def scatter_max(self, updates: Any, indices: Any, size: int) -> Any:
        """Return the maximum of the updates of each output row.

        Parameters
        ----------
        updates : array_like or tensor, shape (m, ...)
            Values to combine.
        indices : array_like or tensor of int, shape (m,)
            Output row of each value.
        size : int
            Number of output rows.

        Returns
        -------
        ndarray or tensor
            Maxima, -1e9 for a row without updates; see `asterism.ops.scatter_max`.
        """
        return ops.scatter_max(updates, indices, size)

    def scatter_mean(self, updates: Any, indices: Any, size: int) -> Any:
        """Return the mean of the updates of each output row.

        Parameters
        ----------
        updates : array_like or tensor, shape (m, ...)
            Values to combine.
        indices : array_like or tensor of int, shape (m,)
            Output row of each value.
        size : int
            Number of output rows.

        Returns
        -------
        ndarray or tensor
            Means; see `asterism.ops.scatter_mean`.
        """
        return ops.scatter_mean(updates, indices, size)

    def scatter_softmax(self, updates: Any, indices: Any, size: int) -> Any:
        """Return the softmax of each update among the updates of its output row.

        Parameters
        ----------
        updates : array_like or tensor, shape (m, ...)
            Values to combine.
        indices : array_like or tensor of int, shape (m,)
            Output row of each value.
        size : int
            Number of output rows.

        Returns
        -------
        ndarray or tensor
            One row per update; see `asterism.ops.scatter_softmax`.
        """
        return ops.scatter_softmax(updates, indices, size)

    def scatter_(self, op: str, updates: Any, indices: Any, size: int) -> Any:
        """Return the result of the scatter ``op``.

        Parameters
        ----------
        op : {"add", "max", "mean", "softmax"}
            Operation.
        updates, indices, size
            Arguments of the operation, as for `scatter_add`.

        Returns
        -------
        ndarray or tensor
            Result of the operation.

        Raises
        ------
        InvalidRequest
            If the operation is unknown.
        """
        if op not in SCATTERS:
            raise InvalidRequest(f"op={op!r}: expected {', '.join(SCATTERS)}")
        return SCATTERS[op](updates, indices, size)
