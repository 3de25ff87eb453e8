"""Euler's operators over a graph: its names, arguments and shapes, for programs that were written
for it.

Euler's names and shapes belong here; samples and reads come from `asterism.Graph` and
`asterism.ops`. Trainers call in; no module inside `asterism` does.
`docs/euler.md` has the table of names, and of what is different."""

from asterism.euler.facade import Euler
from asterism.euler.values import SparseTensor

__all__ = ["Euler", "SparseTensor"]
