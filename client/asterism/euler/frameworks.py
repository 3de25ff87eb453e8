"""Frameworks that Euler's operators return results for: NumPy, torch and TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from asterism.extras import required
from asterism.records.arrays import Ids, SparseTensor, Values
from asterism_proto.errors import InvalidRequest


class Framework(Protocol):
    """Form of results: arrays, or the tensors of a training framework."""

    def dense(self, array: Values) -> Any:
        """Convert an array.

        Parameters
        ----------
        array : ndarray
            Array of numbers.

        Returns
        -------
        object
            Dense array or tensor of the framework.
        """

    def sparse(self, indices: Ids, values: Values, shape: tuple[int, ...]) -> Any:
        """Convert the coordinates of a sparse tensor.

        Parameters
        ----------
        indices : ndarray of int64, shape (entries, dimensions)
            Coordinates of the entries.
        values : ndarray, shape (entries,)
            Value of each entry.
        shape : tuple of int
            Dense shape.

        Returns
        -------
        object
            Sparse tensor of the framework.
        """

    def texts(self, rows: Sequence[bytes]) -> Any:
        """Convert byte strings.

        Parameters
        ----------
        rows : sequence of bytes
            Byte strings.

        Returns
        -------
        object
            Form in which the framework represents byte strings.
        """

    def operators(
        self, facade: Any, with_arrays: Callable[[], Any]
    ) -> Mapping[str, Callable[..., Any]]:
        """Return the operators that this framework implements differently, by name.

        Parameters
        ----------
        facade : Euler
            Facade that returns results of this framework.
        with_arrays : callable
            Creates an `Euler` over the same graph that returns arrays.

        Returns
        -------
        mapping of str to callable
            Operators that replace those of the facade.
        """


class NumpyFramework:
    """Results as NumPy arrays."""

    def dense(self, array: Values) -> Any:
        """Return the array unchanged."""
        return array

    def sparse(self, indices: Ids, values: Values, shape: tuple[int, ...]) -> Any:
        """Return a `SparseTensor`."""
        return SparseTensor(indices, values, shape)

    def texts(self, rows: Sequence[bytes]) -> Any:
        """Return an array of objects."""
        array: NDArray[Any] = np.empty(len(rows), object)
        array[:] = rows
        return array

    def operators(
        self, facade: Any, with_arrays: Callable[[], Any]
    ) -> Mapping[str, Callable[..., Any]]:
        """Return no operators."""
        return {}


class TorchFramework:
    """Results as tensors of torch, which is imported at first use."""

    def dense(self, array: Values) -> Any:
        """Return a tensor."""
        from asterism.torch import tensor

        return tensor(array)

    def sparse(self, indices: Ids, values: Values, shape: tuple[int, ...]) -> Any:
        """Return a sparse COO tensor."""
        return _torch().sparse_coo_tensor(
            self.dense(np.ascontiguousarray(indices.T)), self.dense(values), shape
        )

    def texts(self, rows: Sequence[bytes]) -> Any:
        """Return a list, because torch has no tensors of strings."""
        return list(rows)

    def operators(
        self, facade: Any, with_arrays: Callable[[], Any]
    ) -> Mapping[str, Callable[..., Any]]:
        """Return no operators: gathers and scatters dispatch on their arguments."""
        return {}


class TensorFlowFramework:
    """Results as tensors of TensorFlow, which is imported at first use."""

    def dense(self, array: Values) -> Any:
        """Return a tensor."""
        return _tensorflow().convert_to_tensor(array)

    def sparse(self, indices: Ids, values: Values, shape: tuple[int, ...]) -> Any:
        """Return a sparse tensor."""
        return _tensorflow().SparseTensor(indices, values, shape)

    def texts(self, rows: Sequence[bytes]) -> Any:
        """Return a tensor of strings."""
        return _tensorflow().constant(list(rows), _tensorflow().string)

    def operators(
        self, facade: Any, with_arrays: Callable[[], Any]
    ) -> Mapping[str, Callable[..., Any]]:
        """Return the operators that read the graph, and gathers and scatters with gradients.

        A ``tf.function`` calls the former each time it runs.
        """
        from asterism.tensorflow.euler import operators

        return operators(facade, with_arrays())


FRAMEWORKS: dict[str, type[NumpyFramework] | type[TorchFramework] | type[TensorFlowFramework]] = {
    "numpy": NumpyFramework,
    "torch": TorchFramework,
    "tensorflow": TensorFlowFramework,
}


def framework_named(name: str) -> Framework:
    """Return the framework of this name; raise InvalidRequest if it is unknown."""
    if name not in FRAMEWORKS:
        raise InvalidRequest(f"framework={name!r}: expected {' or '.join(map(repr, FRAMEWORKS))}")
    return FRAMEWORKS[name]()


def _torch() -> Any:
    """Import torch on demand."""
    with required("torch", "Euler's operators for torch"):
        import torch

    return torch


def _tensorflow() -> Any:
    """Import TensorFlow on demand."""
    with required("tensorflow", "Euler's operators for TensorFlow"):
        import tensorflow

    return tensorflow
