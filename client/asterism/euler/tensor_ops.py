"""Operators over arrays and tensors: skip-gram pairs, gathers and scatters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from asterism import ops
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
        """Return the skip-gram pairs of walks: of each centre those before it, the nearest first,
        then those after it.

        Parameters
        ----------
        paths : int64[b, length]

        Returns
        -------
        int64[b, pairs, 2]
            The same number of pairs for each walk; places without a node are included, which
            `asterism.ops.walk_pairs` leaves out.
        """
        walks = np.asarray(paths, np.int64)
        positions = ops.pair_places(np.zeros_like(walks), left_win_size, right_win_size)
        pairs_per_walk = len(positions) // len(walks) if len(walks) else 0
        return self._framework.dense(
            walks.reshape(-1)[positions].reshape(len(walks), pairs_per_walk, 2)
        )

    def inflate_idx(self, idx: ArrayLike) -> Any:
        """Return the place of each occurrence when unique values are written as often as they
        occur: int32; `asterism.ops.inflate_idx`.
        """
        return self._framework.dense(ops.inflate_idx(idx).astype(np.int32))

    def sparse_gather(
        self,
        gather_idx: ArrayLike,
        indices: ArrayLike,
        values: ArrayLike,
        dense_shape: Sequence[int],
    ) -> Any:
        """Return rows of a sparse tensor, in the order of ``gather_idx``: a sparse tensor;
        `asterism.ops.sparse_gather`.
        """
        coordinates, gathered, shape = ops.sparse_gather(
            gather_idx, indices, values, [int(dimension) for dimension in dense_shape]
        )
        return self._framework.sparse(coordinates, gathered, shape)

    def gather(self, params: Any, indices: Any) -> Any:
        """Return rows of ``params``. Gathers and scatters of tensors have gradients."""
        return ops.gather(params, indices)

    def scatter_add(self, updates: Any, indices: Any, size: int) -> Any:
        """Return sums by place; `asterism.ops.scatter_add`."""
        return ops.scatter_add(updates, indices, size)

    def scatter_max(self, updates: Any, indices: Any, size: int) -> Any:
        """Return the largest by place, -1e9 where there is none; `asterism.ops.scatter_max`."""
        return ops.scatter_max(updates, indices, size)

    def scatter_mean(self, updates: Any, indices: Any, size: int) -> Any:
        """Return means by place; `asterism.ops.scatter_mean`."""
        return ops.scatter_mean(updates, indices, size)

    def scatter_softmax(self, updates: Any, indices: Any, size: int) -> Any:
        """Return the softmax among those of one place; `asterism.ops.scatter_softmax`."""
        return ops.scatter_softmax(updates, indices, size)

    def scatter_(self, op: str, updates: Any, indices: Any, size: int) -> Any:
        """Return the result of the scatter ``op``: add, max, mean or softmax."""
        if op not in SCATTERS:
            raise InvalidRequest(f"op {op!r}: expected {', '.join(SCATTERS)}")
        return SCATTERS[op](updates, indices, size)
