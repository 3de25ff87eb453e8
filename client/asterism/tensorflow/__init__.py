"""Graphs for TensorFlow: datasets of epochs, and operators for a ``tf.function``.
Needs ``asterism-graph[tensorflow]``. Only `asterism.euler.frameworks` imports this package."""

from asterism.extras import required

with required("tensorflow", "asterism.tensorflow"):
    from asterism.tensorflow.batches import NodeBatches
    from asterism.tensorflow.operators import Operators

__all__ = ["NodeBatches", "Operators"]
