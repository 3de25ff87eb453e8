"""Export to DGL's chunked graph format, which `asterism load` and DGL's pipeline read.

Nodes of each type are numbered 0, 1, ... in the order of their stored ids. Edges are in the order
of their stored ids. Loading a space of dense ids from its own chunks therefore reproduces its edge
ids, and partition images with the same digests.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from asterism.export.edges import end_ids
from asterism.export.executors import Execution
from asterism.export.export_schema import ColumnPlan, ExportPlan, TypePlan, make_plan
from asterism.export.external_sort import sorted_positions
from asterism.export.global_ids import NodeIdTable
from asterism.export.graph_source import Array, ScannableGraph, count_rows
from asterism.export.lifecycle import (
    ExportShape,
    ExportTarget,
    published_manifest,
    run_resumable,
    write_manifest,
)
from asterism.export.nodes import read_ids, take_rows, write_id_list
from asterism.export.run_state import ExportRun, ProgressMeter
from asterism.export.scratch_files import Spool
from asterism.export.string_ids import write_name_list
from asterism_model.schema import Schema
from asterism_proto.errors import InvalidRequest, NotReady

EDGE_FORMATS = ("csv", "parquet", "numpy")
_STEP = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunksReport:
    """Summary of an export to chunks."""

    out: str | Path
    """Folder or address of the export."""
    metadata: str | Path
    """Metadata file that DGL's tools and `asterism load` take."""
    version: int
    """Version of the space that was exported."""
    nodes: int
    """Number of exported nodes."""
    edges: int
    """Number of exported edges."""
    files: int
    """Number of files."""
    warnings: tuple[str, ...]
    """Data that was left out, and other remarks."""
    seconds: float
    """Duration in seconds."""


def chunks(
    graph: ScannableGraph,
    out: str | Path,
    *,
    chunk_rows: int = 1 << 22,
    edges: str = "csv",
    version: int | None = None,
    graph_name: str | None = None,
    weight: str | None = "weight",
    **execution: Unpack[Execution],
) -> ChunksReport:
    """Write a graph in DGL's chunked format.

    Parameters
    ----------
    graph : Graph
        Graph to read. One version is pinned for the whole run.
    out : str or Path
        New folder, or an address as fsspec names it.
    chunk_rows : int, default 4194304
        Largest number of nodes or edges per file.
    edges : {"csv", "parquet", "numpy"}, default "csv"
        Format of the edge files. DGL's tools read csv (the two numbers separated by a space) and
        parquet.
    version : int, optional
        Version to export. None uses the current one.
    graph_name : str, optional
        Name of the graph in the metadata. None uses the name of the space.
    weight : str, optional, default "weight"
        Feature name under which the weights of weighted types are written. None omits them.
    **execution
        Options of `Execution`. All work is done in this process.

    Returns
    -------
    ChunksReport
        Counts, and warnings about what was left out.

    Raises
    ------
    Conflict
        ``out`` already exists.
    InvalidRequest
        An option is invalid.
    NotFound
        The version does not exist.
    NotReady
        pyarrow is not installed.

    Examples
    --------
    >>> export.chunks(graph, "chunks", edges="parquet").files  # doctest: +SKIP
    """
    started = time.monotonic()
    if edges not in EDGE_FORMATS:
        raise InvalidRequest(f"edges={edges!r}: expected 'csv', 'parquet' or 'numpy'")
    if chunk_rows < 1:
        raise InvalidRequest(f"chunk_rows={chunk_rows}: expected at least 1")
    layout = _with_stored_dtypes(
        make_plan(graph.schema, homogeneous=False, weight=weight), graph.schema
    )
    parameters = {
        "chunk_rows": chunk_rows,
        "edge_format": edges,
        "graph_name": graph_name or graph.space,
    }
    target = ExportTarget.parse(out)
    with run_resumable(
        graph, target, layout, parameters, version=version, shape=ExportShape(), execution=execution
    ) as run:
        if run is not None:
            _write(run, chunk_rows, edges, graph_name or graph.space)
    manifest = published_manifest(target)
    return ChunksReport(
        out=target.path or target.address,
        metadata=target.file_path("metadata.json"),
        version=manifest["version"],
        nodes=sum(manifest["nodes"].values()),
        edges=sum(manifest["edges"].values()),
        files=len(manifest["files"]),
        warnings=tuple(manifest["warnings"]),
        seconds=time.monotonic() - started,
    )


def _with_stored_dtypes(layout: ExportPlan, schema: Schema) -> ExportPlan:
    """Keep every column in its own dtype, and list types in the order of the schema.

    NumPy files support all dtypes.
    """

    def with_stored_dtypes(kind: TypePlan, owner: Any) -> TypePlan:
        dtypes = {
            feature.name: np.dtype(feature.dtype)
            for feature in owner.features
            if feature.kind == "dense"
        }
        columns = tuple(
            c if c.feature is None else replace(c, dtype=dtypes[c.feature]) for c in kind.columns
        )
        return replace(kind, columns=columns)

    return ExportPlan(
        nodes=tuple(
            with_stored_dtypes(kind, schema.node_types[kind.type_id]) for kind in layout.nodes
        ),
        edges=tuple(
            with_stored_dtypes(kind, schema.edge_types[kind.type_id]) for kind in layout.edges
        ),
        warnings=tuple(warning for warning in layout.warnings if "left out" in warning),
    )


def _write(run: ExportRun, chunk_rows: int, edge_format: str, name: str) -> None:
    tables = read_ids(run)
    meter = ProgressMeter(
        run,
        "node features",
        sum(len(table) for table, kind in zip(tables, run.plan.nodes, strict=True) if kind.columns),
    )
    for kind, table in zip(run.plan.nodes, tables, strict=True):
        run.run_step(f"nodes-{kind.type_id}", partial(_nodes, run, kind, table, chunk_rows, meter))
    meter = ProgressMeter(
        run,
        "edges",
        count_rows(run.graph, "EDGE", [kind.type_id for kind in run.plan.edges], run.version),
    )
    for kind in run.plan.edges:
        run.run_step(
            f"edges-{kind.type_id}",
            partial(_edges, run, kind, tables, chunk_rows, edge_format, meter),
        )
    run.run_step("metadata", partial(_metadata, run, chunk_rows, edge_format, name))
    counts = {
        element: {kind.label: _count(run, element, kind) for kind in kinds}
        for element, kinds in (("nodes", run.plan.nodes), ("edges", run.plan.edges))
    }
    write_manifest(run, {"format": "dgl-chunks", "config": "metadata.json", **counts})


def _count(run: ExportRun, element: str, kind: TypePlan) -> int:
    count: int = run.step_result(f"{element}-{kind.type_id}")["count"]
    return count


def _nodes(
    run: ExportRun, kind: TypePlan, table: NodeIdTable, chunk_rows: int, meter: ProgressMeter
) -> dict[str, Any]:
    """Write the features of a node type, in the order of ids."""
    ids = run.spool(f"ids-{kind.type_id}")
    write_id_list(run, "node_ids", kind.label, [ids])
    if run.has_string_ids:
        write_name_list(run, kind, [ids])
    columns = {values: _column(run, values) for values in kind.columns}
    arrays = {values: spool.allocate(len(table)) for values, spool in columns.items()}
    for batch in (
        run.graph.scan_nodes(kind.name, kind.names, version=run.version, rows=run.rows(kind))
        if columns
        else ()
    ):
        rank = table.rank(batch.ids)
        for values, rows in arrays.items():
            rows[rank] = values.extract(batch)
        meter.add(len(batch.ids))
    arrays.clear()
    for values, spool in columns.items():
        _write_arrays(run, f"node_data/{kind.label}/{values.name}", spool, chunk_rows)
        spool.remove()
    return {"count": len(table)}


def _column(run: ExportRun, values: ColumnPlan) -> Spool:
    return Spool(
        path=run.scratch_path(),
        dtype=values.dtype,
        shape=values.shape,
        piece_bytes=run.spool("").piece_bytes,
    )


def _edges(
    run: ExportRun,
    kind: TypePlan,
    tables: list[NodeIdTable],
    chunk_rows: int,
    edge_format: str,
    meter: ProgressMeter,
) -> dict[str, Any]:
    """Write the ends and features of an edge type, in the order of ids."""
    src, dst, eid = (
        Spool(
            path=run.scratch_path(), dtype=np.dtype(np.int64), piece_bytes=run.spool("").piece_bytes
        )
        for _ in range(3)
    )
    columns = {values: _column(run, values) for values in kind.columns}
    for batch in run.graph.scan_edges(
        kind.name, kind.names, version=run.version, rows=run.rows(kind)
    ):
        for spool, rows in zip(
            (src, dst), end_ids(run, kind, batch.src, batch.dst, tables, gids=False), strict=True
        ):
            spool.append(rows)
        eid.append(batch.edge_ids)
        for values, spool in columns.items():
            spool.append(values.extract(batch))
        meter.add(len(batch.src))
    count = eid.rows
    max_id = max((int(piece.max()) for piece in eid.pieces()), default=-1)
    order = sorted_positions(run, eid, 0, max_id + 1) if count else np.zeros(0, np.int64)
    write_id_list(
        run,
        "edge_ids",
        kind.label.replace(":", "_"),
        [run.reorder(eid, order, f"eid-{kind.type_id}")],
    )
    ordered = [
        run.reorder(spool, order, f"{name}-{kind.type_id}")
        for name, spool in (("src", src), ("dst", dst))
    ]
    folder = kind.label.replace(":", "_")
    for i, (low, high) in enumerate(_spans(count, chunk_rows)):
        with run.open_output(f"edges/{folder}/{i}.{_SUFFIX[edge_format]}") as file:
            _write_ends(file, ordered, low, high, edge_format)
    for values, spool in columns.items():
        _write_arrays(run, f"edge_data/{folder}/{values.name}", spool, chunk_rows, order)
    for spool in (src, dst, eid, *ordered, *columns.values()):
        spool.remove()
    return {"count": count}


_SUFFIX = {"csv": "csv", "parquet": "parquet", "numpy": "npy"}


def _spans(count: int, chunk_rows: int) -> list[tuple[int, int]]:
    """Return the bounds of each chunk; a single empty chunk if there are no rows."""
    return [(low, min(count, low + chunk_rows)) for low in range(0, max(count, 1), chunk_rows)]


def _pieces(spool: Spool, low: int, high: int, order: Array | None = None) -> Iterator[Array]:
    for start in range(low, high, spool.piece_rows):
        stop = min(high, start + spool.piece_rows)
        yield (
            np.array(spool.map()[start:stop])
            if order is None
            else take_rows(spool.map(), order[start:stop])
        )


def _write_arrays(
    run: ExportRun, folder: str, spool: Spool, chunk_rows: int, order: Array | None = None
) -> None:
    for i, (low, high) in enumerate(_spans(spool.rows, chunk_rows)):
        with run.open_output(f"{folder}/{i}.npy") as file:
            head = {
                "descr": spool.dtype.str,
                "fortran_order": False,
                "shape": (high - low, *spool.shape),
            }
            np.lib.format.write_array_header_1_0(file, head)
            for piece in _pieces(spool, low, high, order):
                file.write(np.ascontiguousarray(piece).reshape(-1).view(np.uint8).data)


def _write_ends(file: Any, spools: list[Spool], low: int, high: int, edge_format: str) -> None:
    """Write sources and destinations as two columns."""
    if edge_format == "numpy":
        np.lib.format.write_array_header_1_0(
            file, {"descr": "<i8", "fortran_order": False, "shape": (high - low, 2)}
        )
        for src, dst in zip(*(_pieces(spool, low, high) for spool in spools), strict=True):
            file.write(np.stack([src, dst], axis=1).reshape(-1).view(np.uint8).data)
        return
    try:
        import pyarrow as pa
        from pyarrow import csv, parquet
    except ImportError as error:
        raise NotReady(
            f"edges={edge_format!r} needs pyarrow: pip install 'asterism-graph[ingest]' "
            f"({error}), or "
            "use edges='numpy'"
        ) from error
    schema = pa.schema([("src", pa.int64()), ("dst", pa.int64())])
    options = csv.WriteOptions(include_header=False, delimiter=" ")
    table_writer = (
        parquet.ParquetWriter(file, schema)
        if edge_format == "parquet"
        else csv.CSVWriter(file, schema, write_options=options)
    )
    with table_writer as writer:
        for src, dst in zip(*(_pieces(spool, low, high) for spool in spools), strict=True):
            writer.write_table(pa.table({"src": src, "dst": dst}, schema=schema))


def _metadata(run: ExportRun, chunk_rows: int, edge_format: str, name: str) -> None:
    nodes, edges = (
        sorted(kinds, key=lambda kind: kind.type_id) for kinds in (run.plan.nodes, run.plan.edges)
    )
    counts = {
        kind.label: _count(run, element, kind)
        for element, kinds in (("nodes", nodes), ("edges", edges))
        for kind in kinds
    }

    def rows(kind: TypePlan) -> list[int]:
        return [high - low for low, high in _spans(counts[kind.label], chunk_rows)]

    def data(kind: TypePlan, folder: str) -> dict[str, Any]:
        return {
            c.name: {
                "format": {"name": "numpy"},
                "data": [f"{folder}/{c.name}/{i}.npy" for i in range(len(rows(kind)))],
            }
            for c in kind.columns
        }

    edge_layout: dict[str, Any] = {
        "name": edge_format,
        **({"delimiter": " "} if edge_format == "csv" else {}),
    }
    content = {
        "graph_name": name,
        "node_type": [kind.label for kind in nodes],
        "num_nodes_per_chunk": [rows(kind) for kind in nodes],
        "num_nodes_per_type": [counts[kind.label] for kind in nodes],
        "edge_type": [kind.label for kind in edges],
        "num_edges_per_chunk": [rows(kind) for kind in edges],
        "num_edges_per_type": [counts[kind.label] for kind in edges],
        "edges": {
            kind.label: {
                "format": edge_layout,
                "data": [
                    f"edges/{kind.label.replace(':', '_')}/{i}.{_SUFFIX[edge_format]}"
                    for i in range(len(rows(kind)))
                ],
            }
            for kind in edges
        },
        "node_data": {
            kind.label: data(kind, f"node_data/{kind.label}") for kind in nodes if kind.columns
        },
        "edge_data": {
            kind.label: data(kind, f"edge_data/{kind.label.replace(':', '_')}")
            for kind in edges
            if kind.columns
        },
    }
    with run.open_output("metadata.json") as file:
        file.write(json.dumps(content, indent=4).encode() + b"\n")
