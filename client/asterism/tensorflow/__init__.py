"""Graphs for TensorFlow: epochs as datasets of ``tf.data``, and operators that may be called in a
``tf.function``. Needs ``asterism[tensorflow]``.

TensorFlow is imported with this module. Inside `asterism` only `asterism.euler.frameworks` imports
it, for results as tensors.
"""

from asterism.tensorflow.batches import NodeBatches
from asterism.tensorflow.operators import Operators

__all__ = ["NodeBatches", "Operators"]
