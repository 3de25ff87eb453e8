"""The steps of an export that read no graph: one part each, on any machine that sees the scratch
folder.

A task takes what earlier steps left there and notes in the journal what it found out. It may be
done twice, even at the same time: what it reads stays, and what it writes gets its name once it is
whole, with the same bytes each time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from asterism.export.context import ExportRun
from asterism.export.edges import PartitionedEdges, write_edges
from asterism.export.global_ids import GlobalIdRanges
from asterism.export.halo_parts import write_graph
from asterism.export.nodes import node_ranges, write_features
from asterism_proto.errors import NotFound

StepFacts = dict[str, Any]


def load_ranges(run: ExportRun) -> tuple[GlobalIdRanges, PartitionedEdges]:
    """How nodes and edges are numbered, as earlier steps found."""
    edges = np.array(
        [run.step_result(f"edges-{kind.type_id}")["edges"] for kind in run.plan.edges], np.int64
    ).T
    return node_ranges(run), PartitionedEdges(run=run, ranges=GlobalIdRanges.from_counts(edges))


def _write_part(
    run: ExportRun, nodes: GlobalIdRanges, edges: PartitionedEdges, part: int
) -> StepFacts:
    """Features, and the edges sorted: needs what was dealt to the part."""
    write_features(run, nodes, part)
    return write_edges(run, edges, nodes, part)


_TASKS: Mapping[str, Callable[[ExportRun, GlobalIdRanges, PartitionedEdges, int], StepFacts]] = {
    "part": _write_part,
    "graph": write_graph,
}
"""`graph` needs `part` of all parts: an edge between two is held by both."""


def run_task(scratch: str, step: str, part: int) -> StepFacts:
    """Do one step of one part, unless it was done before; give what it found out.

    Raises
    ------
    NotFound
        Where this machine does not see the scratch folder.
    """
    folder = Path(scratch)
    if not (folder / "run.json").is_file():
        raise NotFound(
            f"{folder}: this worker does not see the scratch folder; give one with scratch= "
            "that all workers see under the same name"
        )
    run = ExportRun.load(folder)
    nodes, edges = load_ranges(run)
    return run.run_step(f"{step}-{part}", partial(_TASKS[step], run, nodes, edges, part))
