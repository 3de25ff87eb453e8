"""Euler's operators as TensorFlow's: what each gives, for a ``tf.function`` that is traced before anything is drawn; gathers and scatters.

`asterism.euler` calls in.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from asterism import euler, ops
from asterism.tensorflow.operators import Gives, Tensor, asked, drawn_by, seed_of, widths
from asterism_proto.errors import InvalidRequest

GIVEN = ("nodes", "src_nodes", "nb_nodes", "edges", "paths", "labels", "idx", "gather_idx", "indices", "values")
"""Parameters that tensors are given for."""


class Sparse(NamedTuple):
    """The kind of a sparse tensor."""

    dtype: str
    rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What is known of a call when it is traced."""

    words: Mapping[str, Any]
    tensors: Mapping[str, Tensor]

    def count(self, name: str = "nodes") -> int | None:
        """How many entries a tensor has."""
        size = self.tensors[name].shape.num_elements()
        return None if size is None else int(size)

    def rows(self, name: str) -> int | None:
        """Its first extent."""
        shape = self.tensors[name].shape
        return None if shape.rank is None else shape[0]

    def names(self, name: str) -> list[str]:
        """Names of features, one or several."""
        given = self.words[name]
        return [given] if isinstance(given, str) else list(given)


def _rows_of_neighbors(call: Call) -> tuple[Any, ...]:
    shape = (call.count(), call.words.get("count", call.words.get("k")))
    return Gives("int64", shape), Gives("float32", shape), Gives("int32", shape)


def _hops(call: Call, counts: Sequence[int]) -> tuple[list[Any], list[Any], list[Any]]:
    sizes = widths(call.count(), counts)
    return [Gives("int64", (n,)) for n in sizes], [Gives("float32", (n,)) for n in sizes[1:]], [Gives("int32", (n,)) for n in sizes[1:]]


def _hops_with_features(call: Call) -> tuple[list[Any], ...]:
    dims = np.asarray(call.words["dense_dimensions"]).reshape(-1).tolist()
    entries = widths(call.count(), call.words["count"])
    dense = [Gives("float32", (n, width)) for n in entries for width in dims]
    return (*_hops(call, call.words["count"]), dense, [Sparse("int64", 2) for _ in entries for _ in call.names("sparse_feature_names")])


def _layers(call: Call) -> tuple[list[Any], list[Any]]:
    counts = call.words["counts"]
    return [Gives("int64", (n,)) for n in (call.count(), *counts)], [Sparse("int64", 3) for _ in counts]


def _layers_each(call: Call) -> tuple[list[Any], list[Any]]:
    n, counts = call.count(), call.words["counts"]
    return [Gives("int64", (n,)), *(Gives("int64", (None if n is None else n * c,)) for c in counts)], [Sparse("int64", 3) for _ in counts[1:]]


def _pairs(call: Call) -> Any:
    shape = call.tensors["paths"].shape
    each = None
    if shape.rank == 2 and shape[1] is not None:
        each = len(ops.pair_places(np.zeros((1, shape[1]), np.int64), call.words["left_win_size"], call.words["right_win_size"]))
    return Gives("int64", (call.rows("paths"), each, 2))


def _dense(of: str, call: Call) -> list[Any]:
    entries = call.count() if of == "nodes" else call.rows("edges")
    return [Gives("float32", (entries, int(width))) for width in np.asarray(call.words["dimensions"]).reshape(-1)]


def _texts(of: str, call: Call) -> list[Any]:
    entries = call.count() if of == "nodes" else call.rows("edges")
    return [Gives("string", (entries,)) for _ in call.names("feature_names")]


def _lists(call: Call) -> list[Any]:
    return [Sparse("int64", 2) for _ in call.names("feature_names")]


def _full(call: Call) -> tuple[Any, ...]:
    return Sparse("int64", 2), Sparse("float32", 2), Sparse("int32", 2)


ANSWERS: dict[str, Callable[[Call], Any]] = {
    "sample_node": lambda call: Gives("int64", (call.words["count"],)),
    "sample_node_with_src": lambda call: Gives("int64", (call.count("src_nodes"), call.words["count"])),
    "sample_edge": lambda call: Gives("int64", (call.words["count"], 3)),
    "sample_graph_label": lambda call: Gives("string", (call.words["batch_num"],)),
    "get_graph_by_label": lambda call: Sparse("int64", 2),
    "sample_neighbor": _rows_of_neighbors,
    "get_top_k_neighbor": _rows_of_neighbors,
    "get_full_neighbor": _full,
    "get_sorted_full_neighbor": _full,
    "sample_fanout": lambda call: _hops(call, call.words["counts"]),
    "sample_fanout_with_feature": _hops_with_features,
    "sample_neighbor_layerwise": lambda call: (Gives("int64", (call.rows("nodes"), call.words["count"])), Sparse("int64", 3)),
    "sample_fanout_layerwise": _layers,
    "sample_fanout_layerwise_each_node": _layers_each,
    "sparse_get_adj": lambda call: Sparse("int64", 3),
    "get_multi_hop_neighbor": lambda call: (
        [Gives("int64", (n,)) for n in (call.count(), *(None for _ in call.words["edge_types"]))],
        [Sparse("float32", 2) for _ in call.words["edge_types"]],
    ),
    "random_walk": lambda call: Gives("int64", (call.count(), len(call.words["edge_types"]) + 1)),
    "gen_pair": _pairs,
    "get_dense_feature": partial(_dense, "nodes"),
    "get_edge_dense_feature": partial(_dense, "edges"),
    "get_sparse_feature": _lists,
    "get_edge_sparse_feature": _lists,
    "get_binary_feature": partial(_texts, "nodes"),
    "get_edge_binary_feature": partial(_texts, "edges"),
    "get_node_type": lambda call: Gives("int32", tuple(call.tensors["nodes"].shape)),
    "inflate_idx": lambda call: Gives("int32", (call.count("idx"),)),
    "sparse_gather": lambda call: Sparse(call.tensors["values"].dtype.name, call.tensors["indices"].shape[1]),
}
"""What each operator that reads or draws gives, in the structure that it gives it in."""


def operators(facade: euler.Euler) -> dict[str, Callable[..., Any]]:
    """The operators of a facade as TensorFlow calls them."""
    plain = euler.Euler(facade.graph)
    found = {name: _either(getattr(facade, name), getattr(plain, name), answer) for name, answer in ANSWERS.items()}
    scatters = {"add": scatter_add, "max": scatter_max, "mean": scatter_mean, "softmax": scatter_softmax}

    def scatter_(op: str, updates: Tensor, indices: Tensor, size: int) -> Tensor:
        if op not in scatters:
            raise InvalidRequest(f"op {op!r}: expected {', '.join(scatters)}")
        return scatters[op](updates, indices, size)

    return found | {"gather": gather, "scatter_": scatter_} | {f"scatter_{op}": scatter for op, scatter in scatters.items()}


def _either(eager: Callable[..., Any], plain: Callable[..., Any], answer: Callable[[Call], Any]) -> Callable[..., Any]:
    """An operator that is called at once, or in a ``tf.function`` each time that it runs."""
    signature = inspect.signature(plain)

    @wraps(plain)
    def operator(*args: Any, **kwargs: Any) -> Any:
        if tf.executing_eagerly():
            return eager(*map(_array, args), **{name: _array(value) for name, value in kwargs.items()})
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        words = dict(bound.arguments)
        tensors = {name: tf.convert_to_tensor(words.pop(name)) for name in GIVEN if name in words}
        seeds = [seed_of(words.pop("seed"))] if "seed" in words else []
        gives = answer(Call(words=words, tensors=tensors))

        def call(*arrays: Any) -> list[Any]:
            given = dict(zip(tensors, arrays, strict=False))
            more = {"seed": drawn_by(arrays[-1])} if seeds else {}
            return list(_laid_flat(plain(**words, **given, **more)))

        leaves = iter(asked(call, [*tensors.values(), *seeds], list(_kinds(gives))))
        return _shaped(gives, leaves)

    return operator


def _array(value: Any) -> Any:
    """An argument as it is, a tensor as an array."""
    return value.numpy() if tf.is_tensor(value) and not isinstance(value, tf.SparseTensor) else value


def _laid_flat(found: Any) -> Iterator[Any]:
    if isinstance(found, euler.SparseTensor):
        yield from (found.indices, found.values, np.asarray(found.dense_shape, np.int64))
    elif isinstance(found, tuple | list):
        for one in found:
            yield from _laid_flat(one)
    else:
        yield found


def _kinds(gives: Any) -> Iterator[Gives]:
    if isinstance(gives, Gives):
        yield gives
    elif isinstance(gives, Sparse):
        yield from (Gives("int64", (None, gives.rank)), Gives(gives.dtype, (None,)), Gives("int64", (gives.rank,)))
    else:
        for one in gives:
            yield from _kinds(one)


def _shaped(gives: Any, leaves: Iterator[Tensor]) -> Any:
    if isinstance(gives, Gives):
        return next(leaves)
    if isinstance(gives, Sparse):
        return tf.SparseTensor(next(leaves), next(leaves), next(leaves))
    return type(gives)(_shaped(one, leaves) for one in gives)


def gather(params: Tensor, indices: Tensor) -> Tensor:
    """Rows of a tensor, as `asterism.ops.gather`."""
    return tf.gather(params, indices)


def scatter_add(updates: Tensor, indices: Tensor, size: int) -> Tensor:
    """Sums by place, as `asterism.ops.scatter_add`."""
    return tf.math.unsorted_segment_sum(updates, _places(indices), size)


def scatter_mean(updates: Tensor, indices: Tensor, size: int) -> Tensor:
    """Means by place, as `asterism.ops.scatter_mean`."""
    return tf.math.unsorted_segment_mean(updates, _places(indices), size)


def scatter_max(updates: Tensor, indices: Tensor, size: int, empty: float = -1e9) -> Tensor:
    """The largest by place, as `asterism.ops.scatter_max`."""
    updates, places = tf.convert_to_tensor(updates), _places(indices)
    largest = tf.math.unsorted_segment_max(updates, places, size)
    there = tf.math.unsorted_segment_sum(tf.ones_like(places), places, size) > 0
    there = tf.reshape(there, [size, *([1] * (updates.shape.rank - 1))])
    return tf.where(there, largest, tf.cast(empty, updates.dtype))


def scatter_softmax(updates: Tensor, indices: Tensor, size: int) -> Tensor:
    """Softmax among those of one place, as `asterism.ops.scatter_softmax`."""
    updates, places = tf.convert_to_tensor(updates), _places(indices)
    risen = tf.exp(updates - tf.gather(tf.stop_gradient(tf.math.unsorted_segment_max(updates, places, size)), places))
    return risen / tf.gather(tf.math.unsorted_segment_sum(risen, places, size), places)


def _places(indices: Tensor) -> Tensor:
    """Indices, of which TensorFlow itself would leave out those below 0."""
    places = tf.cast(tf.convert_to_tensor(indices), tf.int64)
    with tf.control_dependencies([tf.debugging.assert_non_negative(places, "indices: expected 0 or more")]):
        return tf.identity(places)
