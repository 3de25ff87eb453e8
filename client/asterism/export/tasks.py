"""The steps of an export that read no graph: one part each, on any machine that sees the scratch folder.

A task takes what earlier steps left there and notes in the journal what it found out. It may be done twice, even at the same time:
what it reads stays, and what it writes gets its name once it is whole, with the same bytes each time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from asterism.export.edges import Edges, write_edges
from asterism.export.layout import Ranges
from asterism.export.nodes import numbered, write_features
from asterism.export.parts import write_graph
from asterism.export.run import Run
from asterism_proto.errors import NotFound

Facts = dict[str, Any]


def numbering(run: Run) -> tuple[Ranges, Edges]:
    """How nodes and edges are numbered, as earlier steps found."""
    edges = np.array([run.found(f"edges-{kind.type_id}")["edges"] for kind in run.plan.edges], np.int64).T
    return numbered(run), Edges(run=run, ranges=Ranges.of(edges))


def _part(run: Run, nodes: Ranges, edges: Edges, part: int) -> Facts:
    """Features, and the edges sorted: needs what was dealt to the part."""
    write_features(run, nodes, part)
    return write_edges(run, edges, nodes, part)


_WORK: Mapping[str, Callable[[Run, Ranges, Edges, int], Facts]] = {
    "part": _part,
    "graph": write_graph,
}
"""`graph` needs `part` of all parts: an edge between two is held by both."""


def perform(scratch: str, step: str, part: int) -> Facts:
    """Do one step of one part, unless it was done before; give what it found out.

    Raises
    ------
    NotFound
        Where this machine does not see the scratch folder.
    """
    folder = Path(scratch)
    if not (folder / "run.json").is_file():
        raise NotFound(f"{folder}: this worker does not see the scratch folder; give one with scratch= that all workers see under the same name")
    run = Run.load(folder)
    nodes, edges = numbering(run)
    return run.step(f"{step}-{part}", partial(_WORK[step], run, nodes, edges, part))
