"""Euler's operators over a graph: all groups, joined without a ladder, and queries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from asterism.euler.features import EulerFeatureCalls
from asterism.euler.layers import EulerLayerCalls
from asterism.euler.sampling import EulerSamplingCalls
from asterism.euler.tensor_ops import EulerTensorCalls
from asterism.euler.types import EulerTypeCalls
from asterism.graph import Graph


class Euler(
    EulerTypeCalls, EulerSamplingCalls, EulerLayerCalls, EulerFeatureCalls, EulerTensorCalls
):
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
        operators = self._framework.operators(self, lambda: Euler(graph))
        for name, operator in operators.items():
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
