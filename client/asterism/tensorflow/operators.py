"""Graph operators for TensorFlow.

In eager mode they run immediately; in a ``tf.function`` they run each time it is executed.
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
"""A ``tf.Tensor``, or a value that converts to one."""


class OutputSpec(NamedTuple):
    """Dtype and shape of a tensor; a dimension known only from the result is None."""

    dtype: str
    shape: tuple[int | None, ...]


def call_as_tensors(
    call: Callable[..., Sequence[Any]], inputs: Sequence[Tensor], specs: Sequence[OutputSpec]
) -> list[Tensor]:
    """Return the arrays that ``call`` returns as tensors of the given specifications.

    In a ``tf.function`` the call is repeated in each execution. An error ends the execution with
    its message.

    Parameters
    ----------
    call : callable
        Function from arrays to a sequence of arrays.
    inputs : sequence of tensor
        Arguments of the call.
    specs : sequence of OutputSpec
        Specification of each result.

    Returns
    -------
    list of tf.Tensor
        One tensor per specification.
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
    """Return a seed as an argument of a call: int64[1], or int64[0] for a random seed."""
    if seed is None:
        return tf.zeros([0], tf.int64)
    if isinstance(seed, int | np.integer):
        seed = np.uint64(validation.seed(int(seed))).astype(np.int64)
    return tf.reshape(tf.cast(seed, tf.int64), [1])


def seed_from_array(seed: Any) -> int | None:
    """Return the seed that `seed_tensor` encoded."""
    return int(seed[0]) if len(seed) else None


class Operators:
    """Sampling calls of a graph that accept and return tensors.

    Shapes that follow from the arguments are set statically, so that layers know the widths.
    ``seed`` may be a tensor. An integer is a constant of the ``tf.function``, so every execution
    returns the same samples. None: a random seed in each execution.

    Parameters
    ----------
    graph : Graph
        Graph. If all samples must be of one version, get it from `Graph.pin` or `Graph.at`.

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
        """Sample nodes.

        Parameters
        ----------
        n : int
            Number of samples.
        ntype : str or list of str, optional
            Node types to sample from. None: all.
        seed : int or tensor, optional
            Random seed, see the class. None: random in each run.
        **how
            Further arguments of `Graph.sample_nodes`.

        Returns
        -------
        Tensor of int64, shape (n,)
            Node ids.
        """
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
        """Sample neighbors of nodes.

        Parameters
        ----------
        nodes : tensor of int64
            Node ids of any shape, flattened to m nodes.
        etypes : str, list of str or None
            Edge types to follow. None: all.
        n : int
            Neighbors per node.
        seed : int or tensor, optional
            Random seed, see the class. None: random in each run.
        **how
            Further arguments of `Graph.sample_neighbors`.

        Returns
        -------
        nodes : Tensor of int64, shape (m, n)
            Neighbors; -1 if there is none.
        weights : Tensor of float32, shape (m, n)
            Weights of the edges; 0 if there is none.
        types : Tensor of int32, shape (m, n)
            Type ids of the edges; -1 if there is none.
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
        """Sample neighbors of neighbors, hop by hop.

        Parameters
        ----------
        nodes : tensor of int64
            Node ids of any shape, flattened to m nodes.
        metapath : list
            Edge types of each hop.
        fanouts : list of int
            Neighbors per entry in each hop.
        seed : int or tensor, optional
            Random seed, see the class. None: random in each run.
        **how
            Further arguments of `Graph.sample_fanout`.

        Returns
        -------
        list of Tensor of int64
            The given nodes, shape (m,), then the nodes of each hop, shape (m * fanouts[0],),
            (m * fanouts[0] * fanouts[1],) and so on.
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
        """Sample a random walk along a metapath from each node.

        Parameters
        ----------
        nodes : tensor of int64
            Node ids of any shape, flattened to m nodes.
        metapath : list
            Edge types of each step.
        seed : int or tensor, optional
            Random seed, see the class. None: random in each run.
        **how
            Further arguments of `Graph.random_walk`.

        Returns
        -------
        Tensor of int64, shape (m, steps + 1)
            Nodes of each walk, starting with the given node; -1 after a dead end. With ``walks``,
            there is one row per walk.
        """
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
        """Sample negatives for each pair.

        Parameters
        ----------
        pairs : tensor of int64
            Pairs of a source and a positive, or sources; m rows.
        n : int
            Negatives per row.
        ntype : str or list of str, optional
            Node types to sample from, as for `Graph.sample_negatives`.
        seed : int or tensor, optional
            Random seed, see the class. None: random in each run.
        **how
            Further arguments of `Graph.sample_negatives`. ``shared`` is not supported.

        Returns
        -------
        Tensor of int64, shape (m, n)
            Node ids; -1 if there is none.

        Raises
        ------
        InvalidRequest
            If ``shared`` is set.
        """
        if how.get("shared"):
            raise InvalidRequest(
                "shared=True: expected False, because rows of negatives have one shape here; use "
                "sample_nodes for shared negatives"
            )
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
        """Return dense features of nodes.

        Parameters
        ----------
        nodes : tensor of int64
            Node ids of any shape.
        names : str or list of str
            Names of features.
        ntype : str
            Type of the nodes.

        Returns
        -------
        dict of str to Tensor
            Feature of each name, shape (*shape of nodes, *shape of the feature); zeros if there is
            no node.

        Raises
        ------
        InvalidRequest
            If a feature is not dense.
        NotFound
            If the type or a feature does not exist.
        """
        feature_names = [names] if isinstance(names, str) else list(names)
        schema = self.graph.schema
        owner = schema.node_types[schema.node_type_id(ntype)]
        features = [owner.feature(name) for name in feature_names]
        for feature in features:
            if feature.kind != "dense":
                raise InvalidRequest(
                    f"feature {feature.name!r} of {ntype!r}: expected a dense feature, this one is "
                    f"{feature.kind}; read it with Graph.node_features"
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
    """Return nodes of any shape as int64[n]."""
    return tf.reshape(tf.cast(tf.convert_to_tensor(nodes), tf.int64), [-1])


def hop_widths(nodes: int | None, counts: Sequence[int]) -> list[int | None]:
    """Return the number of entries of the nodes and of each hop."""
    sizes = [nodes]
    for count in counts:
        sizes.append(None if sizes[-1] is None else sizes[-1] * count)
    return sizes
