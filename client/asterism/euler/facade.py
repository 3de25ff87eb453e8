"""Euler's operators over a graph: all groups in one class, and queries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from asterism.calls.annotation_checks import check_argument_types
from asterism.euler.features import EulerFeatureCalls
from asterism.euler.layers import EulerLayerCalls
from asterism.euler.sampling import EulerSamplingCalls
from asterism.euler.tensor_ops import EulerTensorCalls
from asterism.euler.types import EulerTypeCalls
from asterism.graph import Graph


@check_argument_types
class Euler(
    EulerTypeCalls, EulerSamplingCalls, EulerLayerCalls, EulerFeatureCalls, EulerTensorCalls
):
    """Euler's operators over a graph, with Euler's names, arguments and shapes.

    Parameters
    ----------
    graph : Graph
        Graph of a space with ``ids: global``, or with one node type. Calls read one version if the
        graph is from `Graph.pin` or `Graph.at`.
    framework : {"numpy", "torch", "tensorflow"}
        Form of results: arrays and `SparseTensor`, or tensors of torch or TensorFlow. Arguments may
        be arrays or tensors in any case. With TensorFlow, operators may be called in a
        ``tf.function``; they read the graph each time it runs.

    Raises
    ------
    InvalidRequest
        If ids are per type and there are several node types, or if the framework is unknown.

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
        """Run a query in Euler's GQL on the server. Replaces Euler's `Query`.

        Parameters
        ----------
        gql : str
            Query, such as ``"sampleN(node_type, count).as(n).sampleNB(edge_types, count,
            0).as(nb)"``. docs/euler.md has the grammar.
        inputs : mapping, optional
            Values of the names in the query: numbers, strings, arrays and lists.

        Returns
        -------
        dict
            Dense array or tensor of each output: ``"nb:0"`` and so on; for a query without ``as``,
            ``"result:0"``.

        Raises
        ------
        InvalidRequest
            If the query is invalid. The message has the line, a caret and the expected token.
        NotFound
            If the query names a type or feature that does not exist.

        Examples
        --------
        >>> tf_euler.run_gql(  # doctest: +SKIP
        ...     "v(nodes).outV(edge_types).limit(5).as(nb)",
        ...     {"nodes": [1, 2], "edge_types": ["buys"]},
        ... )["nb:1"]
        """
        result = self.graph.query(gql, inputs, language="euler")
        return {name: self._framework.dense(np.asarray(result[name])) for name in result.columns}
