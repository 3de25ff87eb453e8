"""Euler's operators over a graph: names, arguments and shapes (``docs/euler.md``).
Sampling and reads belong to `asterism.Graph` and `asterism.ops`."""

from asterism.euler.facade import Euler
from asterism.records.arrays import SparseTensor

__all__ = ["Euler", "SparseTensor"]
