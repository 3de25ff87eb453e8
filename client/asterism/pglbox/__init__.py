"""Batches of PGLBox configurations over a graph. Needs ``asterism-graph[ingest]``.
Sampling belongs to `asterism.Graph`, reading of PGLBox's files to `asterism.formats`."""

from asterism.formats.pglbox.config import IGNORED, KEYS, Config, Window, read_config
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
