"""Euler's operators over a graph: its names, arguments and shapes, for programs that were written
for it.

Here lives how Euler asks and what it expects back; what is drawn and read comes from
`asterism.Graph` and `asterism.ops`. Trainers call in; nobody inside `asterism` does.
`docs/euler.md` has the table of names, and of what is different."""

from asterism.euler.facade import Euler
from asterism.euler.values import SparseTensor

__all__ = ["Euler", "SparseTensor"]
