"""Frameworks that Euler's operators return results for: NumPy, torch and TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.euler.values import Framework
from asterism.extras import required
from asterism.records.arrays import Ids, SparseTensor, Values
from asterism_proto.errors import InvalidRequest


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

    def operators(
        self, facade: Any, with_arrays: Callable[[], Any]
    ) -> Mapping[str, Callable[..., Any]]:
        """Return none."""
        return {}


class TorchFramework:
    """torch's tensors; torch is imported when the first one is made."""

    def dense(self, array: Values) -> Any:
        """A tensor."""
        from asterism.torch import tensor

        return tensor(array)

    def sparse(self, indices: Ids, values: Values, shape: tuple[int, ...]) -> Any:
        """A sparse COO tensor."""
        return _torch().sparse_coo_tensor(
            self.dense(np.ascontiguousarray(indices.T)), self.dense(values), shape
        )

    def texts(self, rows: Sequence[bytes]) -> Any:
        """A list, for torch has no texts."""
        return list(rows)

    def operators(
        self, facade: Any, with_arrays: Callable[[], Any]
    ) -> Mapping[str, Callable[..., Any]]:
        """Return none: gathers and scatters dispatch on their arguments."""
        return {}


class TensorFlowFramework:
    """TensorFlow's tensors; it is imported when the first one is made."""

    def dense(self, array: Values) -> Any:
        """A tensor."""
        return _tensorflow().convert_to_tensor(array)

    def sparse(self, indices: Ids, values: Values, shape: tuple[int, ...]) -> Any:
        """A sparse tensor."""
        return _tensorflow().SparseTensor(indices, values, shape)

    def texts(self, rows: Sequence[bytes]) -> Any:
        """A tensor of texts."""
        return _tensorflow().constant(list(rows), _tensorflow().string)

    def operators(
        self, facade: Any, with_arrays: Callable[[], Any]
    ) -> Mapping[str, Callable[..., Any]]:
        """Return those that read the graph, which a ``tf.function`` calls each time that it runs,
        and gathers and scatters, which have gradients.
        """
        from asterism.tensorflow.euler import operators

        return operators(facade, with_arrays())


FRAMEWORKS: dict[str, type[NumpyFramework] | type[TorchFramework] | type[TensorFlowFramework]] = {
    "numpy": NumpyFramework,
    "torch": TorchFramework,
    "tensorflow": TensorFlowFramework,
}


def framework_named(name: str) -> Framework:
    """Return the framework of this name; InvalidRequest if there is none."""
    if name not in FRAMEWORKS:
        raise InvalidRequest(f"framework {name!r}: expected {' or '.join(map(repr, FRAMEWORKS))}")
    return FRAMEWORKS[name]()


def _torch() -> Any:
    """Return torch, which an import of this module does not need."""
    with required("torch", "Euler's operators for torch"):
        import torch

    return torch


def _tensorflow() -> Any:
    """Return TensorFlow, which an import of this module does not need."""
    with required("tensorflow", "Euler's operators for TensorFlow"):
        import tensorflow

    return tensorflow
