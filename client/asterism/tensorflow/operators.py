"""Operators of a graph as TensorFlow's: called at once where TensorFlow is eager, and in a ``tf.function`` each time that it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from asterism import arguments
from asterism.graph import Graph
from asterism_proto.errors import InvalidRequest

Tensor = Any
"""A ``tf.Tensor``, or what becomes one."""


class Gives(NamedTuple):
    """The kind of a tensor; None: an extent that only the answer tells."""

    dtype: str
    shape: tuple[int | None, ...]


def asked(call: Callable[..., Sequence[Any]], given: Sequence[Tensor], gives: Sequence[Gives]) -> list[Tensor]:
    """What ``call`` gives of arrays, as tensors of these kinds.

    In a ``tf.function`` it is called whenever that runs; an error of it ends the run with its text.
    """
    tensors = [tf.convert_to_tensor(one) for one in given]
    if tf.executing_eagerly():
        return [tf.convert_to_tensor(array, kind.dtype) for array, kind in zip(call(*(t.numpy() for t in tensors)), gives, strict=True)]
    found = tf.numpy_function(lambda *arrays: list(call(*arrays)), tensors, [tf.as_dtype(kind.dtype) for kind in gives])
    for tensor, kind in zip(found, gives, strict=True):
        tensor.set_shape(kind.shape)
    return list(found)


def seed_of(seed: Tensor) -> Tensor:
    """A seed as an argument of a call: int64[1], or int64[0] for a fresh one."""
    if seed is None:
        return tf.zeros([0], tf.int64)
    if isinstance(seed, int | np.integer):
        seed = np.uint64(arguments.seed(int(seed))).astype(np.int64)
    return tf.reshape(tf.cast(seed, tf.int64), [1])


def drawn_by(seed: Any) -> int | None:
    """The seed that `seed_of` made an argument of."""
    return int(seed[0]) if len(seed) else None


class Operators:
    """A graph's sampling calls, that take and give tensors.

    What shapes follow from the arguments are set, so that layers know the widths. ``seed`` may be a tensor; as a number it is a constant of the
    ``tf.function``, which then draws the same each time. None: a fresh one each time.

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

    def sample_nodes(self, n: int, ntype: str | Sequence[str] | None = None, *, seed: Tensor = None, **how: Any) -> Tensor:
        """Draw nodes: int64[n]; ``how`` as of `Graph.sample_nodes`."""
        (nodes,) = asked(lambda by: [self.graph.sample_nodes(n, ntype, seed=drawn_by(by), **how).nodes], [seed_of(seed)], [Gives("int64", (n,))])
        return nodes

    def sample_neighbors(
        self, nodes: Tensor, etypes: str | Sequence[str] | None, n: int, *, seed: Tensor = None, **how: Any
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

        def call(ids: Any, by: Any) -> list[Any]:
            found = self.graph.sample_neighbors(ids, etypes, n, seed=drawn_by(by), **how)
            return [found.nodes, found.weights, found.types]

        ids = flat(nodes)
        shape = (ids.shape[0], n)
        near, weights, types = asked(call, [ids, seed_of(seed)], [Gives("int64", shape), Gives("float32", shape), Gives("int32", shape)])
        return near, weights, types

    def sample_fanout(self, nodes: Tensor, metapath: Sequence[Any], fanouts: Sequence[int], *, seed: Tensor = None, **how: Any) -> list[Tensor]:
        """Draw neighbors of neighbors.

        Returns
        -------
        list of int64
            The nodes [m] first, then [m * fanouts[0]], [m * fanouts[0] * fanouts[1]], ..
        """

        def call(ids: Any, by: Any) -> list[Any]:
            found = self.graph.sample_fanout(ids, metapath, fanouts, seed=drawn_by(by), weights=False, **how)
            return [found.seeds, *(hop.nodes for hop in found.hops)]

        ids = flat(nodes)
        return asked(call, [ids, seed_of(seed)], [Gives("int64", (width,)) for width in widths(ids.shape[0], fanouts)])

    def random_walk(self, nodes: Tensor, metapath: Sequence[Any], *, seed: Tensor = None, **how: Any) -> Tensor:
        """Walk from each node along a metapath: int64[m, steps + 1], -1 behind a dead end."""
        ids, steps = flat(nodes), how.get("length") or len(metapath)
        starts = None if how.get("walks") else ids.shape[0]
        (walks,) = asked(
            lambda given, by: [self.graph.random_walk(given, metapath, seed=drawn_by(by), **how).nodes],
            [ids, seed_of(seed)],
            [Gives("int64", (starts, steps + 1))],
        )
        return walks

    def sample_negatives(self, pairs: Tensor, n: int, ntype: str | Sequence[str] | None = None, *, seed: Tensor = None, **how: Any) -> Tensor:
        """Draw n negatives for each pair: int64[m, n], -1 where there is none; ``how`` as of `Graph.sample_negatives`, but ``shared``."""
        if how.get("shared"):
            raise InvalidRequest("shared negatives: draw them with sample_nodes")
        asked_of = tf.cast(tf.convert_to_tensor(pairs), tf.int64)
        (nodes,) = asked(
            lambda given, by: [self.graph.sample_negatives(given, n, ntype, seed=drawn_by(by), **how).nodes],
            [asked_of, seed_of(seed)],
            [Gives("int64", (asked_of.shape[0], n))],
        )
        return nodes

    def node_features(self, nodes: Tensor, names: str | Sequence[str], ntype: str) -> dict[str, Tensor]:
        """Dense features of nodes of any shape, [*shape of nodes, *shape of the feature]; zeros where there is no node."""
        wanted = [names] if isinstance(names, str) else list(names)
        schema = self.graph.schema
        owner = schema.node_types[schema.node_type_id(ntype)]
        features = [owner.feature(name) for name in wanted]
        for feature in features:
            if feature.kind != "dense":
                raise InvalidRequest(f"feature {feature.name!r} of {ntype!r} is {feature.kind}: tensors have one shape; read it with the graph")

        def call(ids: Any) -> list[Any]:
            found = self.graph.node_features(ids.reshape(-1), wanted, ntype)
            return [np.asarray(found[feature.name]).reshape(*ids.shape, *feature.shape) for feature in features]

        ids = tf.cast(tf.convert_to_tensor(nodes), tf.int64)
        kinds = [Gives(feature.dtype, (*ids.shape, *feature.shape)) for feature in features]
        return dict(zip(wanted, asked(call, [ids], kinds), strict=True))


def flat(nodes: Tensor) -> Tensor:
    """Nodes of any shape as int64[n]."""
    return tf.reshape(tf.cast(tf.convert_to_tensor(nodes), tf.int64), [-1])


def widths(nodes: int | None, counts: Sequence[int]) -> list[int | None]:
    """How many entries the nodes and each hop have."""
    found = [nodes]
    for count in counts:
        found.append(None if found[-1] is None else found[-1] * count)
    return found
