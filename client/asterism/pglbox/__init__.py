"""PGLBox's configurations, run over a graph: its walks, pairs, negatives and subgraphs as batches,
for trainings that were described for it.

Here lives what a configuration makes of a graph; what is drawn comes from `asterism.Graph`, and its
files are read by `asterism.formats`, as every load's. Trainers call in; nobody inside `asterism`
but the command does. `docs/pglbox.md` has the table of keys, and of what is different. Needs
``asterism[ingest]``."""

from asterism.formats.pglboxconfig import IGNORED, KEYS, Config, Window, read_config
from asterism.pglbox.batches import InferBatch, Nodes, TrainBatch
from asterism.pglbox.run import PGLBox

__all__ = [
    "IGNORED",
    "KEYS",
    "Config",
    "InferBatch",
    "Nodes",
    "PGLBox",
    "TrainBatch",
    "Window",
    "read_config",
]
