"""DGL's chunked graph format, written: what DGL's own partitioning pipeline reads, and `asterism load`.

Nodes are 0, 1, ... of each type, in the order of their stored ids; edges are in the order of theirs. So a space of dense ids that is
loaded from its own chunks has the same edge ids, and images of the same digests.
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

from asterism.export.carry import Shape, carried, manifest_of, seal
from asterism.export.edges import ends
from asterism.export.execution import Execution
from asterism.export.layout import NodeTable
from asterism.export.names import list_names
from asterism.export.nodes import read_ids, taken, write_list
from asterism.export.ordering import order_by
from asterism.export.plan import Kind, Plan, Values, plan
from asterism.export.run import Meter, Run
from asterism.export.seal import Target
from asterism.export.source import Array, Scannable, counted
from asterism.export.spool import Spool
from asterism_proto.errors import InvalidRequest, NotReady
from asterism_proto.schema import Schema

EDGE_FORMATS = ("csv", "parquet", "numpy")
_STEP = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunksReport:
    """A graph in chunks."""

    out: str | Path
    metadata: str | Path
    """The file that DGL's tools and `asterism load` take."""
    version: int
    nodes: int
    edges: int
    files: int
    warnings: tuple[str, ...]
    seconds: float


def chunks(
    graph: Scannable,
    out: str | Path,
    *,
    chunk_rows: int = 1 << 22,
    edges: str = "csv",
    version: int | None = None,
    graph_name: str | None = None,
    weight: str | None = "weight",
    **how: Unpack[Execution],
) -> ChunksReport:
    """Write a graph in DGL's chunked format.

    Parameters
    ----------
    graph, out : Graph, str or Path
        What to read, at one version, which is pinned; the folder to make, or an address.
    chunk_rows : int
        Nodes or edges of a file at most.
    edges : {"csv", "parquet", "numpy"}
        Of the files of edges. DGL's tools read csv (with a space between the two numbers) and parquet.
    version : int, optional
        None: the current one.
    graph_name : str, optional
        None: the space's name.
    weight : str, optional
        The feature that weights of weighted types are written as; None leaves them out.
    **how
        `Execution`; all of it is done by this process.

    Returns
    -------
    ChunksReport

    Raises
    ------
    Conflict, InvalidRequest, NotFound, NotReady
        ``out`` is taken; a word does not fit; no such version; pyarrow is not installed.
    """
    began = time.monotonic()
    if edges not in EDGE_FORMATS:
        raise InvalidRequest(f"edges {edges!r}: expected csv, parquet or numpy")
    if chunk_rows < 1:
        raise InvalidRequest(f"chunk_rows {chunk_rows}: expected at least 1")
    layout = _as_stored(plan(graph.schema, homogeneous=False, weight=weight), graph.schema)
    words = {"chunk_rows": chunk_rows, "edge_format": edges, "graph_name": graph_name or graph.space}
    target = Target.of(out)
    with carried(graph, target, layout, words, version=version, shape=Shape(), how=how) as run:
        if run is not None:
            _write(run, chunk_rows, edges, graph_name or graph.space)
    manifest = manifest_of(target)
    return ChunksReport(
        out=target.path or target.address,
        metadata=target.named("metadata.json"),
        version=manifest["version"],
        nodes=sum(manifest["nodes"].values()),
        edges=sum(manifest["edges"].values()),
        files=len(manifest["files"]),
        warnings=tuple(manifest["warnings"]),
        seconds=time.monotonic() - began,
    )


def _as_stored(layout: Plan, schema: Schema) -> Plan:
    """The plan with every column in its own dtype, which NumPy's files have all of; types in the order of the schema."""

    def stored(kind: Kind, owner: Any) -> Kind:
        dtypes = {feature.name: np.dtype(feature.dtype) for feature in owner.features if feature.kind == "dense"}
        columns = tuple(c if c.feature is None else replace(c, dtype=dtypes[c.feature]) for c in kind.columns)
        return replace(kind, columns=columns)

    return Plan(
        nodes=tuple(stored(kind, schema.node_types[kind.type_id]) for kind in layout.nodes),
        edges=tuple(stored(kind, schema.edge_types[kind.type_id]) for kind in layout.edges),
        warnings=tuple(warning for warning in layout.warnings if "left out" in warning),
    )


def _write(run: Run, chunk_rows: int, edge_format: str, name: str) -> None:
    tables = read_ids(run)
    meter = Meter(run, "node features", sum(len(table) for table, kind in zip(tables, run.plan.nodes, strict=True) if kind.columns))
    for kind, table in zip(run.plan.nodes, tables, strict=True):
        run.step(f"nodes-{kind.type_id}", partial(_nodes, run, kind, table, chunk_rows, meter))
    meter = Meter(run, "edges", counted(run.graph, "EDGE", [kind.type_id for kind in run.plan.edges], run.version))
    for kind in run.plan.edges:
        run.step(f"edges-{kind.type_id}", partial(_edges, run, kind, tables, chunk_rows, edge_format, meter))
    run.step("metadata", partial(_metadata, run, chunk_rows, edge_format, name))
    counts = {what: {kind.label: _count(run, what, kind) for kind in kinds} for what, kinds in (("nodes", run.plan.nodes), ("edges", run.plan.edges))}
    seal(run, {"format": "dgl-chunks", "config": "metadata.json", **counts})


def _count(run: Run, what: str, kind: Kind) -> int:
    count: int = run.found(f"{what}-{kind.type_id}")["count"]
    return count


def _nodes(run: Run, kind: Kind, table: NodeTable, chunk_rows: int, meter: Meter) -> dict[str, Any]:
    """The features of a node type, in the order of ids."""
    ids = run.spool(f"ids-{kind.type_id}")
    write_list(run, "node_ids", kind.label, [ids])
    if run.called:
        list_names(run, kind, [ids])
    columns = {values: _column(run, values) for values in kind.columns}
    made = {values: spool.make(len(table)) for values, spool in columns.items()}
    for batch in run.graph.scan_nodes(kind.name, kind.names, version=run.version, rows=run.rows(kind)) if columns else ():
        rank = table.rank(batch.ids)
        for values, rows in made.items():
            rows[rank] = values.of(batch)
        meter.add(len(batch.ids))
    made.clear()
    for values, spool in columns.items():
        _write_arrays(run, f"node_data/{kind.label}/{values.name}", spool, chunk_rows)
        spool.drop()
    return {"count": len(table)}


def _column(run: Run, values: Values) -> Spool:
    return Spool(path=run.making(), dtype=values.dtype, shape=values.shape, piece_bytes=run.spool("").piece_bytes)


def _edges(run: Run, kind: Kind, tables: list[NodeTable], chunk_rows: int, edge_format: str, meter: Meter) -> dict[str, Any]:
    """The ends and features of an edge type, in the order of ids."""
    src, dst, eid = (Spool(path=run.making(), dtype=np.dtype(np.int64), piece_bytes=run.spool("").piece_bytes) for _ in range(3))
    columns = {values: _column(run, values) for values in kind.columns}
    for batch in run.graph.scan_edges(kind.name, kind.names, version=run.version, rows=run.rows(kind)):
        for spool, rows in zip((src, dst), ends(run, kind, batch.src, batch.dst, tables, gids=False), strict=True):
            spool.append(rows)
        eid.append(batch.edge_ids)
        for values, spool in columns.items():
            spool.append(values.of(batch))
        meter.add(len(batch.src))
    count = eid.rows
    top = max((int(piece.max()) for piece in eid.pieces()), default=-1)
    order = order_by(run, eid, 0, top + 1) if count else np.zeros(0, np.int64)
    write_list(run, "edge_ids", kind.label.replace(":", "_"), [run.reordered(eid, order, f"eid-{kind.type_id}")])
    ordered = [run.reordered(spool, order, f"{name}-{kind.type_id}") for name, spool in (("src", src), ("dst", dst))]
    folder = kind.label.replace(":", "_")
    for i, (low, high) in enumerate(_spans(count, chunk_rows)):
        with run.writing(f"edges/{folder}/{i}.{_SUFFIX[edge_format]}") as file:
            _write_ends(file, ordered, low, high, edge_format)
    for values, spool in columns.items():
        _write_arrays(run, f"edge_data/{folder}/{values.name}", spool, chunk_rows, order)
    for spool in (src, dst, eid, *ordered, *columns.values()):
        spool.drop()
    return {"count": count}


_SUFFIX = {"csv": "csv", "parquet": "parquet", "numpy": "npy"}


def _spans(count: int, chunk_rows: int) -> list[tuple[int, int]]:
    """Where each chunk begins and ends; one that is empty where there is nothing."""
    return [(low, min(count, low + chunk_rows)) for low in range(0, max(count, 1), chunk_rows)]


def _pieces(spool: Spool, low: int, high: int, order: Array | None = None) -> Iterator[Array]:
    for at in range(low, high, spool.step):
        until = min(high, at + spool.step)
        yield np.array(spool.map()[at:until]) if order is None else taken(spool.map(), order[at:until])


def _write_arrays(run: Run, folder: str, spool: Spool, chunk_rows: int, order: Array | None = None) -> None:
    for i, (low, high) in enumerate(_spans(spool.rows, chunk_rows)):
        with run.writing(f"{folder}/{i}.npy") as file:
            head = {"descr": spool.dtype.str, "fortran_order": False, "shape": (high - low, *spool.shape)}
            np.lib.format.write_array_header_1_0(file, head)
            for piece in _pieces(spool, low, high, order):
                file.write(np.ascontiguousarray(piece).reshape(-1).view(np.uint8).data)


def _write_ends(file: Any, spools: list[Spool], low: int, high: int, edge_format: str) -> None:
    """Two columns of numbers."""
    if edge_format == "numpy":
        np.lib.format.write_array_header_1_0(file, {"descr": "<i8", "fortran_order": False, "shape": (high - low, 2)})
        for src, dst in zip(*(_pieces(spool, low, high) for spool in spools), strict=True):
            file.write(np.stack([src, dst], axis=1).reshape(-1).view(np.uint8).data)
        return
    try:
        import pyarrow as pa
        from pyarrow import csv, parquet
    except ImportError as error:
        raise NotReady(f"edges={edge_format!r} needs pyarrow: pip install 'asterism[ingest]' ({error}); edges='numpy' needs nothing") from error
    schema = pa.schema([("src", pa.int64()), ("dst", pa.int64())])
    options = csv.WriteOptions(include_header=False, delimiter=" ")
    opened = parquet.ParquetWriter(file, schema) if edge_format == "parquet" else csv.CSVWriter(file, schema, write_options=options)
    with opened as writer:
        for src, dst in zip(*(_pieces(spool, low, high) for spool in spools), strict=True):
            writer.write_table(pa.table({"src": src, "dst": dst}, schema=schema))


def _metadata(run: Run, chunk_rows: int, edge_format: str, name: str) -> None:
    nodes, edges = (sorted(kinds, key=lambda kind: kind.type_id) for kinds in (run.plan.nodes, run.plan.edges))
    counts = {kind.label: _count(run, what, kind) for what, kinds in (("nodes", nodes), ("edges", edges)) for kind in kinds}

    def rows(kind: Kind) -> list[int]:
        return [high - low for low, high in _spans(counts[kind.label], chunk_rows)]

    def data(kind: Kind, folder: str) -> dict[str, Any]:
        return {c.name: {"format": {"name": "numpy"}, "data": [f"{folder}/{c.name}/{i}.npy" for i in range(len(rows(kind)))]} for c in kind.columns}

    told: dict[str, Any] = {"name": edge_format, **({"delimiter": " "} if edge_format == "csv" else {})}
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
                "format": told,
                "data": [f"edges/{kind.label.replace(':', '_')}/{i}.{_SUFFIX[edge_format]}" for i in range(len(rows(kind)))],
            }
            for kind in edges
        },
        "node_data": {kind.label: data(kind, f"node_data/{kind.label}") for kind in nodes if kind.columns},
        "edge_data": {kind.label: data(kind, f"edge_data/{kind.label.replace(':', '_')}") for kind in edges if kind.columns},
    }
    with run.writing("metadata.json") as file:
        file.write(json.dumps(content, indent=4).encode() + b"\n")
