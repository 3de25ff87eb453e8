"""Exports of a pinned version to disk: formats, assignment, dispatch and verification.

Code that runs in daemons does not belong here. An export reads a graph only through
`graph_source.ScannableGraph`.
"""

from asterism.extras import required

with required("export", "asterism.export"):
    from asterism.export.assignment_export import AssignmentReport, assignment
    from asterism.export.chunked_graph_export import ChunksReport, chunks
    from asterism.export.dgl_export import ExportReport, PartReport, dgl
    from asterism.export.dispatch_to_machines import DestinationReport, DispatchReport, dispatch
    from asterism.export.pyg_export import PygReport, pyg
    from asterism.export.sampled_graph import SampledGraph, sampled
    from asterism.export.string_ids import read_names
    from asterism.export.verify import VerifyReport, verify

# Aliases kept for earlier releases.
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
