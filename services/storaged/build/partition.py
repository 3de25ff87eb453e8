"""Build one partition, from blocks to a finished image.

A finished partition is reused if the input is the same.
"""

from __future__ import annotations

import shutil

from asterism_model.elements import EDGE, NODE
from asterism_proto.errors import Corrupt, Internal, NotFound
from storaged.build.block_reader import BlockReader, BuildContext
from storaged.build.build_steps import PartSteps
from storaged.build.build_task import BuildTask, PartResult
from storaged.build.completion_records import (
    CompletedPart,
    part_folder,
    remove_completion,
    write_completion,
)
from storaged.build.edges import build_edges
from storaged.build.indexes import expected_rows as indexed_rows
from storaged.build.nodes import build_node_tables, build_nodes
from storaged.build.progress import ProgressReporter
from storaged.build.unit_cache import PartUnitCache, count_units
from storaged.store.alias_table_store import AliasTableStore
from storaged.store.block_store import IN_EDGES, NODES, OUT_EDGES, BlockStore
from storaged.store.image import open_part
from storaged.store.image_writer import ArrayFiles


def completed_result(task: BuildTask, part: int) -> PartResult | None:
    """Return the result of an earlier attempt with the same input.

    Returns None if it did not finish this partition, or if its image is not intact.
    """
    completed = CompletedPart.read(task.output, part)
    if completed is None or completed.input != task.digest():
        return None
    try:
        # Verify every byte: a published image cannot be built again.
        open_part(part_folder(task.output, part), verify=True)
    except (Corrupt, NotFound):
        return None
    return completed.result


def build_part(
    task: BuildTask,
    part: int,
    store: BlockStore,
    tables: AliasTableStore,
    progress: ProgressReporter,
) -> PartResult:
    """Build one partition, resuming after the last step of an earlier attempt.

    Only steps of an attempt with the same input are kept.
    """
    remove_completion(task.output, part)
    steps = PartSteps(task, part, part_folder(task.output, part), tables, progress)
    scratch = ArrayFiles(task.output / "scratch")
    reader = BlockReader(store, task, part, progress, scratch)
    units = PartUnitCache(
        part=part, image=steps.image, tables=tables, sources=task.sources, progress=progress
    )
    context = BuildContext(
        task=task,
        part=part,
        reader=reader,
        image=steps.image,
        scratch=scratch,
        tables=tables,
        progress=progress,
        steps=steps,
        units=units,
    )
    try:
        result = _build(context)
    except Internal:
        # An audit failed: do not resume from the steps that led to it.
        steps.forget()
        raise
    finally:
        context.image.close()
    shutil.rmtree(scratch.folder)
    write_completion(task.output, part, task=task.digest(), result=result, units=units.records())
    steps.forget()
    return result


def _build(context: BuildContext) -> PartResult:
    schema = context.task.schema
    nodes = [build_nodes(context, type_id) for type_id in range(len(schema.node_types))]
    rows = [result.rows for result in nodes]
    edges = [build_edges(context, type_id, rows) for type_id in range(len(schema.edge_types))]
    # After edges, since weights of nodes may depend on degrees.
    node_results = [
        build_node_tables(context, type_id, built) for type_id, built in enumerate(nodes)
    ]
    description = {
        "part": context.part,
        "parts": schema.parts,
        "mod": schema.placement == "mod",
        "nodes": [result.description for result in node_results],
        "edges": [result.description for result in edges],
    }
    context.progress.phase("seal")
    digest = context.image.finish(description)
    context.tables.flush()
    totals = tuple(
        total
        for built in (*(n.totals for n in node_results), *(e.totals for e in edges))
        for total in built
    )
    return PartResult(
        part=context.part,
        digest=digest,
        totals=totals,
        units=count_units(context.units.records(), context.part),
    )


def expected_rows(task: BuildTask, part: int, store: BlockStore) -> int:
    """Return the number of rows that the passes over a partition will report.

    Each block counts once or twice, then its rows count in each table.
    """

    def written_rows(type_id: int, *kinds: int) -> int:
        return sum(ref.rows for ref in store.refs(part, kinds, type_id, task.loads))

    schema, rows = task.schema, 0
    for type_id, node_type in enumerate(schema.node_types):
        nodes, tables = written_rows(type_id, NODES), len(node_type.tables)
        rows += nodes * ((3 if node_type.weighted else 2) + tables)
        rows += indexed_rows(task.indexes, NODE, type_id, nodes, tables + node_type.weighted)
    for type_id, edge_type in enumerate(schema.edge_types):
        tables = len(edge_type.tables)
        rows += written_rows(type_id, OUT_EDGES, IN_EDGES) * (
            (2 if edge_type.weighted else 1) + tables
        ) + written_rows(type_id, OUT_EDGES) * (1 + tables)
        rows += indexed_rows(
            task.indexes,
            EDGE,
            type_id,
            written_rows(type_id, OUT_EDGES),
            tables + edge_type.weighted,
        )
    return rows
