"""The whole of Euler's operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from asterism import ops
from asterism.euler.features import EulerFeatureCalls
from asterism.graph import Graph
from asterism_proto.errors import InvalidRequest

SCATTERS = {
    "add": ops.scatter_add,
    "max": ops.scatter_max,
    "mean": ops.scatter_mean,
    "softmax": ops.scatter_softmax,
}


class Euler(EulerFeatureCalls):
    """Euler's operators over a graph, by its names, with its arguments and shapes.

    Parameters
    ----------
    graph : Graph
        In a space of ``ids: global``, or with one node type. Of one version where it is from a
        `Graph.pin`, or `Graph.at`.
    framework : {"numpy", "torch", "tensorflow"}
        What comes back: arrays and `SparseTensor`, or tensors of torch or TensorFlow. All are
        taken. With TensorFlow, operators may be called in a ``tf.function``: they are asked each
        time that it runs.

    Raises
    ------
    InvalidRequest
        Where ids are per type and there are several; where there is no such framework.

    Examples
    --------
    >>> tf_euler = asterism.euler.Euler(  # doctest: +SKIP
    ...     asterism.connect("localhost:9669", space="graph")
    ... )
    >>> tf_euler.sample_neighbor(tf_euler.sample_node(32, "-1"), ["0", "1"], 10)  # doctest: +SKIP
    """

    def __init__(self, graph: Graph, *, framework: str = "numpy") -> None:
        super().__init__(graph, framework=framework)
        for name, operator in self._framework.operators(self).items():
            setattr(self, name, operator)

    def run_gql(self, gql: str, inputs: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Run a query in Euler's GQL, on the server: what `Query` was.

        Parameters
        ----------
        gql : str
            ``"sampleN(node_type, count).as(n).sampleNB(edge_types, count, 0).as(nb)"``;
            docs/euler.md has the grammar.
        inputs : mapping, optional
            What names in it stand for: numbers, texts, arrays and lists.

        Returns
        -------
        dict
            By output: ``"nb:0"`` and so on; of a query without ``as``, ``"result:0"``. Dense arrays
            or tensors.

        Raises
        ------
        InvalidRequest
            Where it is no query; with line, caret and what was expected.
        NotFound
            Where it names a type or feature that is not there.

        Examples
        --------
        >>> tf_euler.run_gql(  # doctest: +SKIP
        ...     "v(nodes).outV(edge_types).limit(5).as(nb)",
        ...     {"nodes": [1, 2], "edge_types": ["buys"]},
        ... )["nb:1"]
        """
        result = self.graph.query(gql, inputs, language="euler")
        return {name: self._framework.dense(np.asarray(result[name])) for name in result.columns}

    def gen_pair(self, paths: ArrayLike, left_win_size: int, right_win_size: int) -> Any:
        """Skip-gram pairs of walks, of each centre those before it, the nearest first, then those
        behind it.

        Parameters
        ----------
        paths : int64[b, length]

        Returns
        -------
        int64[b, pairs, 2]
            As many of each walk: what is no node stands in its pairs too. `asterism.ops.walk_pairs`
            leaves it out.
        """
        walks = np.asarray(paths, np.int64)
        positions = ops.pair_places(np.zeros_like(walks), left_win_size, right_win_size)
        pairs_per_walk = len(positions) // len(walks) if len(walks) else 0
        return self._framework.dense(
            walks.reshape(-1)[positions].reshape(len(walks), pairs_per_walk, 2)
        )

    def inflate_idx(self, idx: ArrayLike) -> Any:
        """Where each occurrence goes when unique values are written as often as they occur: int32;
        `asterism.ops.inflate_idx`.
        """
        return self._framework.dense(ops.inflate_idx(idx).astype(np.int32))

    def sparse_gather(
        self,
        gather_idx: ArrayLike,
        indices: ArrayLike,
        values: ArrayLike,
        dense_shape: Sequence[int],
    ) -> Any:
        """Rows of a sparse tensor, in the order of ``gather_idx``: a sparse tensor;
        `asterism.ops.sparse_gather`.
        """
        coordinates, gathered, shape = ops.sparse_gather(
            gather_idx, indices, values, [int(dimension) for dimension in dense_shape]
        )
        return self._framework.sparse(coordinates, gathered, shape)

    def gather(self, params: Any, indices: Any) -> Any:
        """Rows of ``params``; of a tensor with a gradient; so are the scatters."""
        return ops.gather(params, indices)

    def scatter_add(self, updates: Any, indices: Any, size: int) -> Any:
        """Sums by place; `asterism.ops.scatter_add`."""
        return ops.scatter_add(updates, indices, size)

    def scatter_max(self, updates: Any, indices: Any, size: int) -> Any:
        """The largest by place, -1e9 where there is none; `asterism.ops.scatter_max`."""
        return ops.scatter_max(updates, indices, size)

    def scatter_mean(self, updates: Any, indices: Any, size: int) -> Any:
        """Means by place; `asterism.ops.scatter_mean`."""
        return ops.scatter_mean(updates, indices, size)

    def scatter_softmax(self, updates: Any, indices: Any, size: int) -> Any:
        """Softmax among those of one place; `asterism.ops.scatter_softmax`."""
        return ops.scatter_softmax(updates, indices, size)

    def scatter_(self, op: str, updates: Any, indices: Any, size: int) -> Any:
        """The scatter called ``op``: add, max, mean or softmax."""
        if op not in SCATTERS:
            raise InvalidRequest(f"op {op!r}: expected {', '.join(SCATTERS)}")
        return SCATTERS[op](updates, indices, size)
