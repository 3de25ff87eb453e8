"""Exports: from scans of a pinned version to partitions on disk.

`dgl_export`, `pyg_export`, `chunks`, `assignment_export` and `sampled_graph` are the exports, made
of steps that go on after a kill (`lifecycle`, `journal`, `part_tasks`). `assignment_methods`
assigns nodes to parts, `dispatch` sends parts to machines, `publishing` publishes, `verify` checks.
Daemons do not belong here: a graph is what `graph_source.ScannableGraph` says."""

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
