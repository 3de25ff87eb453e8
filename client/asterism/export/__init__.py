"""Exports: from scans of a pinned version to partitions on disk.

`dgl` writes what DGL's distributed training loads. The rooms behind it: `plan` (which types and columns), `assign` and
`metis` (which part), `layout` (which number), `nodes`, `edges` and `parts` (which files), `dgl_files` and `dgl_graphs`
(which bytes). Nothing here knows a daemon: a graph is whatever `source.Scannable` says.
"""

from asterism.export.dispatch import Dispatched, DispatchReport, dispatch
from asterism.export.partition import dgl
from asterism.export.report import ExportReport, PartReport

__all__ = ["DispatchReport", "Dispatched", "ExportReport", "PartReport", "dgl", "dispatch"]
