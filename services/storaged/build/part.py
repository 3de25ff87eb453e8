"""One part, from blocks to a finished image; what is finished is finished once and for all where the input is the same."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

from asterism_proto.errors import Internal
from storaged.build.edges import build_edges
from storaged.build.nodes import build_nodes
from storaged.build.progress import Progress
from storaged.build.source import Source, Workplace
from storaged.build.steps import Steps
from storaged.build.task import PartResult, Task
from storaged.store.graph import IN_EDGES, NODES, OUT_EDGES, GraphStore
from storaged.store.image import MANIFEST
from storaged.store.image_writer import Files, write_durably
from storaged.store.tables import TableStore


def part_folder(output: Path, part: int) -> Path:
    """Where the image of a part is."""
    return output / "parts" / f"p{part:05d}"


def finished_before(task: Task, part: int) -> PartResult | None:
    """What an earlier attempt at the same input came to, where it finished this part."""
    try:
        mark = json.loads(_mark(task, part).read_text())
        manifest = (part_folder(task.output, part) / MANIFEST).read_bytes()
        result = PartResult.from_dict(mark["result"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    same = mark["input"] == task.digest() and hashlib.sha256(manifest).hexdigest() == result.digest
    return result if same else None


def build_part(task: Task, part: int, store: GraphStore, tables: TableStore, progress: Progress) -> PartResult:
    """Build one part, from the last step on that an attempt before at the same input left."""
    _mark(task, part).unlink(missing_ok=True)
    steps = Steps(task, part, part_folder(task.output, part), tables, progress)
    scratch = Files(task.output / "scratch")
    source = Source(store, task, part, progress, scratch)
    work = Workplace(task=task, part=part, source=source, image=steps.image, scratch=scratch, tables=tables, progress=progress, steps=steps)
    try:
        result = _built(work)
    except Internal:
        # An audit failed: nothing that led to it is gone on from.
        steps.forget()
        raise
    shutil.rmtree(scratch.folder)
    write_durably(_mark(task, part), json.dumps({"input": task.digest(), "result": result.to_dict()}).encode())
    steps.forget()
    return result


def _built(work: Workplace) -> PartResult:
    schema = work.task.schema
    nodes = [build_nodes(work, type_id) for type_id in range(len(schema.node_types))]
    rows = [result.rows for result in nodes]
    edges = [build_edges(work, type_id, rows) for type_id in range(len(schema.edge_types))]
    description = {
        "part": work.part,
        "parts": schema.parts,
        "mod": schema.placement == "mod",
        "nodes": [result.description for result in nodes],
        "edges": [result.description for result in edges],
    }
    work.progress.phase("seal")
    digest = work.image.finish(description)
    work.tables.flush()
    return PartResult(part=work.part, digest=digest, totals=(*(r.total for r in nodes), *(r.total for r in edges)))


def _mark(task: Task, part: int) -> Path:
    folder = task.output / "done"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"p{part:05d}.json"


def expected_rows(task: Task, part: int, store: GraphStore) -> int:
    """Rows that the passes over a part will report: each block once or twice, then its rows in a table."""

    def written(type_id: int, *kinds: int) -> int:
        return sum(ref.rows for ref in store.refs(part, kinds, type_id, task.loads))

    schema, rows = task.schema, 0
    for type_id, node_type in enumerate(schema.node_types):
        rows += written(type_id, NODES) * (3 if node_type.weighted else 2)
    for type_id, edge_type in enumerate(schema.edge_types):
        rows += written(type_id, OUT_EDGES, IN_EDGES) * (2 if edge_type.weighted else 1) + written(type_id, OUT_EDGES)
    return rows
