"""Euler's operators for TensorFlow: output specifications, gathers and scatters.

A ``tf.function`` is traced before anything is sampled, so dtypes and shapes of results are declared
here. `asterism.euler.frameworks` imports this module; it imports nothing of `asterism.euler`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from asterism import ops
from asterism.records.arrays import SparseTensor
from asterism.tensorflow.operators import (
    OutputSpec,
    Tensor,
    call_as_tensors,
    hop_widths,
    seed_from_array,
    seed_tensor,
)
from asterism_proto.errors import InvalidRequest

TENSOR_PARAMETERS = (
    "nodes",
    "src_nodes",
    "nb_nodes",
    "edges",
    "paths",
    "labels",
    "idx",
    "gather_idx",
    "indices",
    "values",
)
"""Parameters that accept tensors."""


class SparseOutputSpec(NamedTuple):
    """Dtype and rank of a sparse tensor."""

    dtype: str
    rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedCall:
    """Arguments of a call that are available when it is traced."""

    arguments: Mapping[str, Any]
    tensors: Mapping[str, Tensor]

    def count(self, name: str = "nodes") -> int | None:
        """Return the number of entries of a tensor; None if it is unknown."""
        size = self.tensors[name].shape.num_elements()
        return None if size is None else int(size)

    def rows(self, name: str) -> int | None:
        """Return the first dimension of a tensor; None if it is unknown."""
        shape = self.tensors[name].shape
        return None if shape.rank is None else shape[0]

    def names(self, name: str) -> list[str]:
        """Return one or several names of features as a list."""
        value = self.arguments[name]
        return [value] if isinstance(value, str) else list(value)


def _rows_of_neighbors(call: TracedCall) -> tuple[Any, ...]:
    shape = (call.count(), call.arguments.get("count", call.arguments.get("k")))
    return OutputSpec("int64", shape), OutputSpec("float32", shape), OutputSpec("int32", shape)


def _hops(call: TracedCall, counts: Sequence[int]) -> tuple[list[Any], list[Any], list[Any]]:
    sizes = hop_widths(call.count(), counts)
    return (
        [OutputSpec("int64", (n,)) for n in sizes],
        [OutputSpec("float32", (n,)) for n in sizes[1:]],
        [OutputSpec("int32", (n,)) for n in sizes[1:]],
    )


def _hops_with_features(call: TracedCall) -> tuple[list[Any], ...]:
    dims = np.asarray(call.arguments["dense_dimensions"]).reshape(-1).tolist()
    entries = hop_widths(call.count(), call.arguments["count"])
    dense = [OutputSpec("float32", (n, width)) for n in entries for width in dims]
    return (
        *_hops(call, call.arguments["count"]),
        dense,
        [SparseOutputSpec("int64", 2) for _ in entries for _ in call.names("sparse_feature_names")],
    )


def _layers(call: TracedCall) -> tuple[list[Any], list[Any]]:
    counts = call.arguments["counts"]
    return [OutputSpec("int64", (n,)) for n in (call.count(), *counts)], [
        SparseOutputSpec("int64", 3) for _ in counts
    ]


def _layers_each(call: TracedCall) -> tuple[list[Any], list[Any]]:
    n, counts = call.count(), call.arguments["counts"]
    return [
        OutputSpec("int64", (n,)),
        *(OutputSpec("int64", (None if n is None else n * c,)) for c in counts),
    ], [SparseOutputSpec("int64", 3) for _ in counts[1:]]


def _pairs(call: TracedCall) -> Any:
    shape = call.tensors["paths"].shape
    pairs_per_walk = None
    if shape.rank == 2 and shape[1] is not None:
        pairs_per_walk = len(
            ops.pair_places(
                np.zeros((1, shape[1]), np.int64),
                call.arguments["left_win_size"],
                call.arguments["right_win_size"],
            )
        )
    return OutputSpec("int64", (call.rows("paths"), pairs_per_walk, 2))


def _dense_features(element: str, call: TracedCall) -> list[Any]:
    entries = call.count() if element == "nodes" else call.rows("edges")
    return [
        OutputSpec("float32", (entries, int(width)))
        for width in np.asarray(call.arguments["dimensions"]).reshape(-1)
    ]


def _text_features(element: str, call: TracedCall) -> list[Any]:
    entries = call.count() if element == "nodes" else call.rows("edges")
    return [OutputSpec("string", (entries,)) for _ in call.names("feature_names")]


def _list_features(call: TracedCall) -> list[Any]:
    return [SparseOutputSpec("int64", 2) for _ in call.names("feature_names")]


def _full_neighbors(call: TracedCall) -> tuple[Any, ...]:
    return (
        SparseOutputSpec("int64", 2),
        SparseOutputSpec("float32", 2),
        SparseOutputSpec("int32", 2),
    )


OUTPUT_SPECS: dict[str, Callable[[TracedCall], Any]] = {
    "sample_node": lambda call: OutputSpec("int64", (call.arguments["count"],)),
    "sample_node_with_src": lambda call: OutputSpec(
        "int64", (call.count("src_nodes"), call.arguments["count"])
    ),
    "sample_edge": lambda call: OutputSpec("int64", (call.arguments["count"], 3)),
    "sample_graph_label": lambda call: OutputSpec("string", (call.arguments["batch_num"],)),
    "get_graph_by_label": lambda call: SparseOutputSpec("int64", 2),
    "sample_neighbor": _rows_of_neighbors,
    "get_top_k_neighbor": _rows_of_neighbors,
    "get_full_neighbor": _full_neighbors,
    "get_sorted_full_neighbor": _full_neighbors,
    "sample_fanout": lambda call: _hops(call, call.arguments["counts"]),
    "sample_fanout_with_feature": _hops_with_features,
    "sample_neighbor_layerwise": lambda call: (
        OutputSpec("int64", (call.rows("nodes"), call.arguments["count"])),
        SparseOutputSpec("int64", 3),
    ),
    "sample_fanout_layerwise": _layers,
    "sample_fanout_layerwise_each_node": _layers_each,
    "sparse_get_adj": lambda call: SparseOutputSpec("int64", 3),
    "get_multi_hop_neighbor": lambda call: (
        [
            OutputSpec("int64", (n,))
            for n in (call.count(), *(None for _ in call.arguments["edge_types"]))
        ],
        [SparseOutputSpec("float32", 2) for _ in call.arguments["edge_types"]],
    ),
    "random_walk": lambda call: OutputSpec(
        "int64", (call.count(), len(call.arguments["edge_types"]) + 1)
    ),
    "gen_pair": _pairs,
    "get_dense_feature": partial(_dense_features, "nodes"),
    "get_edge_dense_feature": partial(_dense_features, "edges"),
    "get_sparse_feature": _list_features,
    "get_edge_sparse_feature": _list_features,
    "get_binary_feature": partial(_text_features, "nodes"),
    "get_edge_binary_feature": partial(_text_features, "edges"),
    "get_node_type": lambda call: OutputSpec("int32", tuple(call.tensors["nodes"].shape)),
    "inflate_idx": lambda call: OutputSpec("int32", (call.count("idx"),)),
    "sparse_gather": lambda call: SparseOutputSpec(
        call.tensors["values"].dtype.name, call.tensors["indices"].shape[1]
    ),
}
"""Specification of the results of each operator, in the structure of its results."""


def operators(facade: Any, plain: Any) -> dict[str, Callable[..., Any]]:
    """Return the operators of a facade in the form that TensorFlow calls.

    Parameters
    ----------
    facade : asterism.euler.Euler
        Facade that returns tensors, called in eager mode.
    plain : asterism.euler.Euler
        Facade over the same graph that returns arrays, called in a ``tf.function``.

    Returns
    -------
    dict of str to callable
        Operators by name.
    """
    traced = {
        name: _eager_or_traced(getattr(facade, name), getattr(plain, name), output_specs)
        for name, output_specs in OUTPUT_SPECS.items()
    }
    scatters = {
        "add": scatter_add,
        "max": scatter_max,
        "mean": scatter_mean,
        "softmax": scatter_softmax,
    }

    def scatter_(op: str, updates: Tensor, indices: Tensor, size: int) -> Tensor:
        if op not in scatters:
            raise InvalidRequest(f"op={op!r}: expected {', '.join(scatters)}")
        return scatters[op](updates, indices, size)

    return (
        traced
        | {"gather": gather, "scatter_": scatter_}
        | {f"scatter_{op}": scatter for op, scatter in scatters.items()}
    )


def _eager_or_traced(
    eager: Callable[..., Any], plain: Callable[..., Any], output_specs: Callable[[TracedCall], Any]
) -> Callable[..., Any]:
    """Return an operator that runs eagerly, or in each execution of a ``tf.function``."""
    signature = inspect.signature(plain)

    @wraps(plain)
    def operator(*args: Any, **kwargs: Any) -> Any:
        if tf.executing_eagerly():
            return eager(
                *map(_array, args), **{name: _array(value) for name, value in kwargs.items()}
            )
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        arguments = dict(bound.arguments)
        tensors = {
            name: tf.convert_to_tensor(arguments.pop(name))
            for name in TENSOR_PARAMETERS
            if name in arguments
        }
        seeds = [seed_tensor(arguments.pop("seed"))] if "seed" in arguments else []
        specs = output_specs(TracedCall(arguments=arguments, tensors=tensors))

        def call(*arrays: Any) -> list[Any]:
            inputs = dict(zip(tensors, arrays, strict=False))
            seed_options = {"seed": seed_from_array(arrays[-1])} if seeds else {}
            return list(_flatten_output(plain(**arguments, **inputs, **seed_options)))

        leaves = iter(call_as_tensors(call, [*tensors.values(), *seeds], list(_leaf_specs(specs))))
        return _unflatten_output(specs, leaves)

    return operator


def _array(value: Any) -> Any:
    """Return a tensor as an array, and any other argument unchanged."""
    return (
        value.numpy() if tf.is_tensor(value) and not isinstance(value, tf.SparseTensor) else value
    )


def _flatten_output(output: Any) -> Iterator[Any]:
    if isinstance(output, SparseTensor):
        yield from (output.indices, output.values, np.asarray(output.dense_shape, np.int64))
    elif isinstance(output, tuple | list):
        for item in output:
            yield from _flatten_output(item)
    else:
        yield output


def _leaf_specs(specs: Any) -> Iterator[OutputSpec]:
    if isinstance(specs, OutputSpec):
        yield specs
    elif isinstance(specs, SparseOutputSpec):
        yield from (
            OutputSpec("int64", (None, specs.rank)),
            OutputSpec(specs.dtype, (None,)),
            OutputSpec("int64", (specs.rank,)),
        )
    else:
        for item in specs:
            yield from _leaf_specs(item)


def _unflatten_output(specs: Any, leaves: Iterator[Tensor]) -> Any:
    if isinstance(specs, OutputSpec):
        return next(leaves)
    if isinstance(specs, SparseOutputSpec):
        return tf.SparseTensor(next(leaves), next(leaves), next(leaves))
    return type(specs)(_unflatten_output(item, leaves) for item in specs)


def gather(params: Tensor, indices: Tensor) -> Tensor:
    """Return rows of a tensor, as `asterism.ops.gather` does."""
    return tf.gather(params, indices)


def scatter_add(updates: Tensor, indices: Tensor, size: int) -> Tensor:
    """Return the sum per output row, as `asterism.ops.scatter_add` does."""
    return tf.math.unsorted_segment_sum(updates, _places(indices), size)


def scatter_mean(updates: Tensor, indices: Tensor, size: int) -> Tensor:
    """Return the mean per output row, as `asterism.ops.scatter_mean` does."""
    return tf.math.unsorted_segment_mean(updates, _places(indices), size)


def scatter_max(updates: Tensor, indices: Tensor, size: int, empty: float = -1e9) -> Tensor:
    """Return the maximum per output row, as `asterism.ops.scatter_max` does."""
    updates, positions = tf.convert_to_tensor(updates), _places(indices)
    largest = tf.math.unsorted_segment_max(updates, positions, size)
    occupied = tf.math.unsorted_segment_sum(tf.ones_like(positions), positions, size) > 0
    occupied = tf.reshape(occupied, [size, *([1] * (updates.shape.rank - 1))])
    return tf.where(occupied, largest, tf.cast(empty, updates.dtype))


def scatter_softmax(updates: Tensor, indices: Tensor, size: int) -> Tensor:
    """Return the softmax within each output row, as `asterism.ops.scatter_softmax` does."""
    updates, positions = tf.convert_to_tensor(updates), _places(indices)
    exponentials = tf.exp(
        updates
        - tf.gather(
            tf.stop_gradient(tf.math.unsorted_segment_max(updates, positions, size)), positions
        )
    )
    return exponentials / tf.gather(
        tf.math.unsorted_segment_sum(exponentials, positions, size), positions
    )


def _places(indices: Tensor) -> Tensor:
    """Return indices; fail if one is negative, because TensorFlow would ignore it."""
    positions = tf.cast(tf.convert_to_tensor(indices), tf.int64)
    with tf.control_dependencies(
        [tf.debugging.assert_non_negative(positions, "indices: expected 0 or more")]
    ):
        return tf.identity(positions)
