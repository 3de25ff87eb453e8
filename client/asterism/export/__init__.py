"""Exports: from scans of a pinned version to partitions on disk.

`dgl` writes what DGL's distributed training loads. The rooms behind it: `plan` (which types and
columns), `methods` (which part; `assign`, `pairs`, `metis` and `streaming` do it, `repair` looks
after DGL's traps), `layout` (which number), `nodes`, `edges` and `parts` (which files), `dgl_files`
and `dgl_graphs` (which bytes), `dispatch` (which machine). Steps (`run`, `journal`, `tasks`) go on
after a kill and are done by `executors`; `seal` publishes what is whole, and `verify` reads it
again; `samples` puts a part of a graph in its place. Nothing here knows a daemon: a graph is
whatever `source.Scannable` says."""

from asterism.export.assignment_export import AssignmentReport, assignment
from asterism.export.chunks import ChunksReport, chunks
from asterism.export.dgl_export import dgl
from asterism.export.dispatch import DestinationReport, DispatchReport, dispatch
from asterism.export.export_report import ExportReport, PartReport
from asterism.export.names import read_names
from asterism.export.pyg_export import PygReport, pyg
from asterism.export.sampled_graph import SampledGraph, sampled
from asterism.export.verify import VerifyReport, verify

# Names of earlier releases.
Dispatched, Verified = DestinationReport, VerifyReport

__all__ = [
    "AssignmentReport",
    "ChunksReport",
    "DestinationReport",
    "DispatchReport",
    "ExportReport",
    "PartReport",
    "PygReport",
    "SampledGraph",
    "VerifyReport",
    "assignment",
    "chunks",
    "dgl",
    "dispatch",
    "pyg",
    "read_names",
    "sampled",
    "verify",
]
