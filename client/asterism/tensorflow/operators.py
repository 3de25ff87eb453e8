"""Operators of a graph as TensorFlow's: called at once where TensorFlow is eager, and in a
``tf.function`` each time that it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from asterism.calls import validation
from asterism.graph import Graph
from asterism_proto.errors import InvalidRequest

Tensor = Any
"""A ``tf.Tensor``, or what becomes one."""


class OutputSpec(NamedTuple):
    """The kind of a tensor; None: an extent that only the answer tells."""

    dtype: str
    shape: tuple[int | None, ...]


def call_as_tensors(
    call: Callable[..., Sequence[Any]], inputs: Sequence[Tensor], specs: Sequence[OutputSpec]
) -> list[Tensor]:
    """What ``call`` gives of arrays, as tensors of these kinds.

    In a ``tf.function`` it is called whenever that runs; an error of it ends the run with its text.
    """
    tensors = [tf.convert_to_tensor(value) for value in inputs]
    if tf.executing_eagerly():
        return [
            tf.convert_to_tensor(array, spec.dtype)
            for array, spec in zip(call(*(t.numpy() for t in tensors)), specs, strict=True)
        ]
    outputs = tf.numpy_function(
        lambda *arrays: list(call(*arrays)), tensors, [tf.as_dtype(spec.dtype) for spec in specs]
    )
    for tensor, spec in zip(outputs, specs, strict=True):
        tensor.set_shape(spec.shape)
    return list(outputs)


def seed_tensor(seed: Tensor) -> Tensor:
    """A seed as an argument of a call: int64[1], or int64[0] for a fresh one."""
    if seed is None:
        return tf.zeros([0], tf.int64)
    if isinstance(seed, int | np.integer):
        seed = np.uint64(validation.seed(int(seed))).astype(np.int64)
    return tf.reshape(tf.cast(seed, tf.int64), [1])


def seed_from_array(seed: Any) -> int | None:
    """The seed that `seed_tensor` made an argument of."""
    return int(seed[0]) if len(seed) else None


class Operators:
    """A graph's sampling calls, that take and give tensors.

    What shapes follow from the arguments are set, so that layers know the widths. ``seed`` may be a
    tensor; as a number it is a constant of the ``tf.function``, which then draws the same each
    time. None: a fresh one each time.

    Parameters
    ----------
    graph : Graph
        Of one version where all that is drawn has to be of one: from a `Graph.pin`, or `Graph.at`.

    Examples
    --------
    >>> operators = Operators(held)  # doctest: +SKIP
    >>> @tf.function  # doctest: +SKIP
    ... def step(nodes):
    ...     neighbors, weights, _ = operators.sample_neighbors(nodes, "cites", 10)
    ...     return operators.node_features(neighbors, "vector", "paper")["vector"]  # [n, 10, 16]
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def sample_nodes(
        self, n: int, ntype: str | Sequence[str] | None = None, *, seed: Tensor = None, **how: Any
    ) -> Tensor:
        """Draw nodes: int64[n]; ``how`` as of `Graph.sample_nodes`."""
        (nodes,) = call_as_tensors(
            lambda seed_array: [
                self.graph.sample_nodes(n, ntype, seed=seed_from_array(seed_array), **how).nodes
            ],
            [seed_tensor(seed)],
            [OutputSpec("int64", (n,))],
        )
        return nodes

    def sample_neighbors(
        self,
        nodes: Tensor,
        etypes: str | Sequence[str] | None,
        n: int,
        *,
        seed: Tensor = None,
        **how: Any,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Draw neighbors.

        Parameters
        ----------
        nodes : int64[m]
        etypes, n, how
            As of `Graph.sample_neighbors`.

        Returns
        -------
        nodes, weights, types : int64[m, n], float32[m, n], int32[m, n]
            -1, 0 and -1 where there is none.
        """

        def call(ids: Any, seed_array: Any) -> list[Any]:
            sample = self.graph.sample_neighbors(
                ids, etypes, n, seed=seed_from_array(seed_array), **how
            )
            return [sample.nodes, sample.weights, sample.types]

        ids = flat_ids(nodes)
        shape = (ids.shape[0], n)
        neighbors, weights, types = call_as_tensors(
            call,
            [ids, seed_tensor(seed)],
            [OutputSpec("int64", shape), OutputSpec("float32", shape), OutputSpec("int32", shape)],
        )
        return neighbors, weights, types

    def sample_fanout(
        self,
        nodes: Tensor,
        metapath: Sequence[Any],
        fanouts: Sequence[int],
        *,
        seed: Tensor = None,
        **how: Any,
    ) -> list[Tensor]:
        """Draw neighbors of neighbors.

        Returns
        -------
        list of int64
            The nodes [m] first, then [m * fanouts[0]], [m * fanouts[0] * fanouts[1]], ..
        """

        def call(ids: Any, seed_array: Any) -> list[Any]:
            sample = self.graph.sample_fanout(
                ids, metapath, fanouts, seed=seed_from_array(seed_array), weights=False, **how
            )
            return [sample.seeds, *(hop.nodes for hop in sample.hops)]

        ids = flat_ids(nodes)
        return call_as_tensors(
            call,
            [ids, seed_tensor(seed)],
            [OutputSpec("int64", (width,)) for width in hop_widths(ids.shape[0], fanouts)],
        )

    def random_walk(
        self, nodes: Tensor, metapath: Sequence[Any], *, seed: Tensor = None, **how: Any
    ) -> Tensor:
        """Walk from each node along a metapath: int64[m, steps + 1], -1 behind a dead end."""
        ids, steps = flat_ids(nodes), how.get("length") or len(metapath)
        starts = None if how.get("walks") else ids.shape[0]
        (walks,) = call_as_tensors(
            lambda node_ids, seed_array: [
                self.graph.random_walk(
                    node_ids, metapath, seed=seed_from_array(seed_array), **how
                ).nodes
            ],
            [ids, seed_tensor(seed)],
            [OutputSpec("int64", (starts, steps + 1))],
        )
        return walks

    def sample_negatives(
        self,
        pairs: Tensor,
        n: int,
        ntype: str | Sequence[str] | None = None,
        *,
        seed: Tensor = None,
        **how: Any,
    ) -> Tensor:
        """Draw n negatives for each pair: int64[m, n], -1 where there is none; ``how`` as of
        `Graph.sample_negatives`, but ``shared``.
        """
        if how.get("shared"):
            raise InvalidRequest("shared negatives: draw them with sample_nodes")
        pair_tensor = tf.cast(tf.convert_to_tensor(pairs), tf.int64)
        (nodes,) = call_as_tensors(
            lambda pair_array, seed_array: [
                self.graph.sample_negatives(
                    pair_array, n, ntype, seed=seed_from_array(seed_array), **how
                ).nodes
            ],
            [pair_tensor, seed_tensor(seed)],
            [OutputSpec("int64", (pair_tensor.shape[0], n))],
        )
        return nodes

    def node_features(
        self, nodes: Tensor, names: str | Sequence[str], ntype: str
    ) -> dict[str, Tensor]:
        """Dense features of nodes of any shape, [*shape of nodes, *shape of the feature]; zeros
        where there is no node.
        """
        feature_names = [names] if isinstance(names, str) else list(names)
        schema = self.graph.schema
        owner = schema.node_types[schema.node_type_id(ntype)]
        features = [owner.feature(name) for name in feature_names]
        for feature in features:
            if feature.kind != "dense":
                raise InvalidRequest(
                    f"feature {feature.name!r} of {ntype!r} is {feature.kind}: tensors have "
                    "one shape; read it with the graph"
                )

        def call(ids: Any) -> list[Any]:
            columns = self.graph.node_features(ids.reshape(-1), feature_names, ntype)
            return [
                np.asarray(columns[feature.name]).reshape(*ids.shape, *feature.shape)
                for feature in features
            ]

        ids = tf.cast(tf.convert_to_tensor(nodes), tf.int64)
        specs = [OutputSpec(feature.dtype, (*ids.shape, *feature.shape)) for feature in features]
        return dict(zip(feature_names, call_as_tensors(call, [ids], specs), strict=True))


def flat_ids(nodes: Tensor) -> Tensor:
    """Nodes of any shape as int64[n]."""
    return tf.reshape(tf.cast(tf.convert_to_tensor(nodes), tf.int64), [-1])


def hop_widths(nodes: int | None, counts: Sequence[int]) -> list[int | None]:
    """How many entries the nodes and each hop have."""
    sizes = [nodes]
    for count in counts:
        sizes.append(None if sizes[-1] is None else sizes[-1] * count)
    return sizes
