"""Graphs for TensorFlow: epochs as datasets of ``tf.data``, and operators that may be called in a
``tf.function``. Needs ``asterism[tensorflow]``.

TensorFlow is imported with this module; nobody inside `asterism` but `asterism.euler`, where it is
told to give tensors, imports it."""

from asterism.tensorflow.batches import NodeBatches
from asterism.tensorflow.operators import Operators

__all__ = ["NodeBatches", "Operators"]
