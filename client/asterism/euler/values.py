"""What Euler's operators give back: NumPy's arrays, or tensors of torch or TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from asterism.records.arrays import Ids, RaggedColumn, Values
from asterism_proto.errors import InvalidRequest


class SparseTensor(NamedTuple):
    """A sparse tensor as coordinates: what TensorFlow calls by this name, in arrays."""

    indices: Ids
    """int64 [k, d], row after row."""
    values: Values
    """[k]."""
    dense_shape: tuple[int, ...]
    """d numbers."""


class Framework(Protocol):
    """How values are handed to a trainer."""

    def dense(self, array: Values) -> Any:
        """An array."""

    def sparse(self, indices: Ids, values: Values, shape: tuple[int, ...]) -> Any:
        """A sparse tensor."""

    def texts(self, rows: Sequence[bytes]) -> Any:
        """Byte strings."""

    def operators(self, euler: Any) -> Mapping[str, Callable[..., Any]]:
        """Operators of an `Euler` that this framework has its own way to call."""


class NumpyFramework:
    """NumPy's arrays."""

    def dense(self, array: Values) -> Any:
        """As it is."""
        return array

    def sparse(self, indices: Ids, values: Values, shape: tuple[int, ...]) -> Any:
        """A `SparseTensor`."""
        return SparseTensor(indices, values, shape)

    def texts(self, rows: Sequence[bytes]) -> Any:
        """An array of objects."""
        array: NDArray[Any] = np.empty(len(rows), object)
        array[:] = rows
        return array

    def operators(self, euler: Any) -> Mapping[str, Callable[..., Any]]:
        """None."""
        return {}


class TorchFramework:
    """torch's tensors; torch is imported when the first one is made."""

    def dense(self, array: Values) -> Any:
        """A tensor."""
        from asterism.torch import tensor

        return tensor(array)

    def sparse(self, indices: Ids, values: Values, shape: tuple[int, ...]) -> Any:
        """A sparse COO tensor."""
        import torch

        return torch.sparse_coo_tensor(
            self.dense(np.ascontiguousarray(indices.T)), self.dense(values), shape
        )

    def texts(self, rows: Sequence[bytes]) -> Any:
        """A list, for torch has no texts."""
        return list(rows)

    def operators(self, euler: Any) -> Mapping[str, Callable[..., Any]]:
        """None: gathers and scatters see what they are given."""
        return {}


class TensorFlowFramework:
    """TensorFlow's tensors; it is imported when the first one is made."""

    def dense(self, array: Values) -> Any:
        """A tensor."""
        import tensorflow as tf

        return tf.convert_to_tensor(array)

    def sparse(self, indices: Ids, values: Values, shape: tuple[int, ...]) -> Any:
        """A sparse tensor."""
        import tensorflow as tf

        return tf.SparseTensor(indices, values, shape)

    def texts(self, rows: Sequence[bytes]) -> Any:
        """A tensor of texts."""
        import tensorflow as tf

        return tf.constant(list(rows), tf.string)

    def operators(self, euler: Any) -> Mapping[str, Callable[..., Any]]:
        """All that ask the graph, which in a ``tf.function`` are called when that runs; and gathers
        and scatters, which have gradients.
        """
        from asterism.tensorflow.euler import operators

        return operators(euler)


FRAMEWORKS: dict[str, type[NumpyFramework] | type[TorchFramework] | type[TensorFlowFramework]] = {
    "numpy": NumpyFramework,
    "torch": TorchFramework,
    "tensorflow": TensorFlowFramework,
}


def framework_named(name: str) -> Framework:
    """The framework of a name; InvalidRequest where there is none."""
    if name not in FRAMEWORKS:
        raise InvalidRequest(f"framework {name!r}: expected {' or '.join(map(repr, FRAMEWORKS))}")
    return FRAMEWORKS[name]()


def ragged_to_sparse(framework: Framework, column: RaggedColumn) -> Any:
    """A ragged column as a sparse tensor [rows, longest row], each row from the left."""
    indptr, values = column
    lengths = np.diff(indptr)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    indices = np.stack([rows, np.arange(indptr[-1]) - indptr[:-1][rows]], axis=1).astype(np.int64)
    return framework.sparse(indices, values, (len(lengths), int(lengths.max(initial=0))))


def sorted_sparse(
    framework: Framework, indices: Ids, values: Values, shape: tuple[int, ...]
) -> Any:
    """A sparse tensor whose entries are put in order, row after row; of the same place in the order
    in which they came.
    """
    order = np.lexsort(indices.T[::-1])
    return framework.sparse(indices[order], values[order], shape)


def fill_missing(ids: Ids, default_node: int) -> Ids:
    """Ids with ``default_node`` where there is none."""
    return ids if default_node == -1 else np.where(ids < 0, np.int64(default_node), ids)
