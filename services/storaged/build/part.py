"""One part, from blocks to a finished image; what is finished is finished once and for all where the input is the same."""

from __future__ import annotations

import shutil

from asterism_proto.errors import Corrupt, Internal, NotFound
from asterism_proto.meaning import EDGE, NODE
from storaged.build.edges import build_edges
from storaged.build.indexes import expected_rows as indexed_rows
from storaged.build.marks import Mark, forget_mark, part_folder, write_mark
from storaged.build.nodes import build_nodes, weigh_nodes
from storaged.build.progress import Progress
from storaged.build.source import Source, Workplace
from storaged.build.steps import Steps
from storaged.build.task import PartResult, Task
from storaged.build.unit import Units, counted
from storaged.store.graph import IN_EDGES, NODES, OUT_EDGES, GraphStore
from storaged.store.image import open_part
from storaged.store.image_writer import Files
from storaged.store.tables import TableStore


def finished_before(task: Task, part: int) -> PartResult | None:
    """What an earlier attempt at the same input came to, where it finished this part and its image is still what it was."""
    mark = Mark.read(task.output, part)
    if mark is None or mark.input != task.digest():
        return None
    try:
        # Every byte: what is published can not be built again.
        open_part(part_folder(task.output, part), verify=True)
    except (Corrupt, NotFound):
        return None
    return mark.result


def build_part(task: Task, part: int, store: GraphStore, tables: TableStore, progress: Progress) -> PartResult:
    """Build one part, from the last step on that an attempt before at the same input left."""
    forget_mark(task.output, part)
    steps = Steps(task, part, part_folder(task.output, part), tables, progress)
    scratch = Files(task.output / "scratch")
    source = Source(store, task, part, progress, scratch)
    units = Units(part=part, image=steps.image, tables=tables, sources=task.sources, progress=progress)
    work = Workplace(
        task=task, part=part, source=source, image=steps.image, scratch=scratch, tables=tables, progress=progress, steps=steps, units=units
    )
    try:
        result = _built(work)
    except Internal:
        # An audit failed: nothing that led to it is gone on from.
        steps.forget()
        raise
    finally:
        work.image.close()
    shutil.rmtree(scratch.folder)
    write_mark(task.output, part, task=task.digest(), result=result, units=units.records())
    steps.forget()
    return result


def _built(work: Workplace) -> PartResult:
    schema = work.task.schema
    nodes = [build_nodes(work, type_id) for type_id in range(len(schema.node_types))]
    rows = [result.rows for result in nodes]
    edges = [build_edges(work, type_id, rows) for type_id in range(len(schema.edge_types))]
    # Behind edges: weights of nodes may be made of how many they have.
    weighed = [weigh_nodes(work, type_id, made) for type_id, made in enumerate(nodes)]
    description = {
        "part": work.part,
        "parts": schema.parts,
        "mod": schema.placement == "mod",
        "nodes": [result.description for result in weighed],
        "edges": [result.description for result in edges],
    }
    work.progress.phase("seal")
    digest = work.image.finish(description)
    work.tables.flush()
    totals = tuple(total for made in (*(n.totals for n in weighed), *(e.totals for e in edges)) for total in made)
    return PartResult(part=work.part, digest=digest, totals=totals, units=counted(work.units.records(), work.part))


def expected_rows(task: Task, part: int, store: GraphStore) -> int:
    """Rows that the passes over a part will report: each block once or twice, then its rows in a table."""

    def written(type_id: int, *kinds: int) -> int:
        return sum(ref.rows for ref in store.refs(part, kinds, type_id, task.loads))

    schema, rows = task.schema, 0
    for type_id, node_type in enumerate(schema.node_types):
        nodes, tables = written(type_id, NODES), len(node_type.tables)
        rows += nodes * ((3 if node_type.weighted else 2) + tables)
        rows += indexed_rows(task.indexes, NODE, type_id, nodes, tables + node_type.weighted)
    for type_id, edge_type in enumerate(schema.edge_types):
        tables = len(edge_type.tables)
        rows += written(type_id, OUT_EDGES, IN_EDGES) * ((2 if edge_type.weighted else 1) + tables) + written(type_id, OUT_EDGES) * (1 + tables)
        rows += indexed_rows(task.indexes, EDGE, type_id, written(type_id, OUT_EDGES), tables + edge_type.weighted)
    return rows
