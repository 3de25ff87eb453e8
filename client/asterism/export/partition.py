"""An export from beginning to end: `dgl`."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from asterism.export import assign as assignment
from asterism.export import metis
from asterism.export.edges import ends, read_edges
from asterism.export.layout import NodeTable, Ranges
from asterism.export.nodes import number, read_ids, write_features
from asterism.export.parts import FORMATS, write_graphs_of_parts
from asterism.export.plan import Plan, checked_name, plan
from asterism.export.report import ExportReport, PartReport
from asterism.export.run import Meter, Run
from asterism.export.source import Progress, Scannable
from asterism_proto.errors import Conflict, InvalidRequest

MAX_PARTS = 1 << 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to partition: the words of `dgl`, checked."""

    parts: int
    assign: str | Path
    seed: int
    halo_hops: int
    graph_name: str
    formats: tuple[str, ...]
    balance_ntypes: bool
    balance_edges: bool
    objective: str

    def __post_init__(self) -> None:
        if not 1 <= self.parts <= MAX_PARTS:
            raise InvalidRequest(f"parts {self.parts}: expected 1 to {MAX_PARTS}")
        if self.halo_hops < 1:
            raise InvalidRequest(f"halo_hops {self.halo_hops}: DGL needs the in-edges of a part's nodes, so at least 1")
        if not self.formats or not set(self.formats) <= set(FORMATS):
            raise InvalidRequest(f"formats {list(self.formats)}: expected some of {', '.join(FORMATS)}")
        if self.objective not in metis.OBJECTIVES:
            raise InvalidRequest(f"objective {self.objective!r}: expected cut or vol")
        checked_name("graph_name", self.graph_name)
        if self.graph_name == "manifest":
            raise InvalidRequest("graph_name 'manifest': manifest.json is another file of the export; choose another name")

    @property
    def method(self) -> str:
        """How nodes are assigned, in a word or as a folder."""
        return str(self.assign)


def dgl(
    graph: Scannable,
    out: str | Path,
    *,
    parts: int,
    assign: str | Path = "random",
    seed: int = 0,
    version: int | None = None,
    halo_hops: int = 1,
    graph_name: str | None = None,
    homogeneous: bool = False,
    weight: str | None = "weight",
    formats: Sequence[str] = ("coo",),
    balance_ntypes: bool = True,
    balance_edges: bool = False,
    objective: str = "cut",
    overwrite: bool = False,
    progress: Progress | None = None,
) -> ExportReport:
    """Write a graph as partitions that DGL (1.1 to 2.4) loads, serves and samples.

    Parameters
    ----------
    graph : Graph
        What to read: it is scanned at one version, a batch at a time.
    out : str or Path
        The folder to make. It appears when all is written.
    parts : int
        How many partitions.
    assign : {"random", "metis"} or Path
        Which part a node goes to: by a hash of (seed, type, id); so that few edges are cut (in memory); or as a folder
        says, with ``<ntype>.txt`` (a part per line, nodes by id) and ``partition_meta.json``.
    seed : int
        Of the assignment.
    version : int, optional
        Of the space; None is the current one.
    halo_hops : int
        How far beyond its own nodes a part knows the in-edges.
    graph_name : str, optional
        What DGL calls the graph; the configuration is ``<graph_name>.json``. None: the space's name.
    homogeneous : bool
        Write a graph of one node type and one edge type as ``_N`` and ``_N:_E:_N``, as DGL names a graph without types.
    weight : str, optional
        The feature that weights of weighted types are written as; None leaves them out.
    formats : sequence of {"coo", "csr", "csc"}
        What ``graph.dgl`` holds. DGL makes what is missing when it is needed.
    balance_ntypes, balance_edges : bool
        For METIS: balance each node type over the parts; balance the in-degrees.
    objective : {"cut", "vol"}
        For METIS: fewest edges between parts, or least traffic.
    overwrite : bool
        Replace a folder that is not empty.
    progress : callable, optional
        Called with (phase, done, total or None).

    Returns
    -------
    ExportReport
        Counts by part, the edge cut, and warnings about what DGL will stumble over.

    Raises
    ------
    Conflict
        Where ``out`` is there and not empty.
    InvalidRequest
        Where an option does not fit, or the graph has no nodes.
    NotFound
        Where there is no such version, or a folder of assignments lacks a file.
    """
    began = time.monotonic()
    if isinstance(assign, str) and assign not in ("random", "metis"):
        assign = Path(assign)
        if not assign.is_dir():
            raise InvalidRequest(f"assign {str(assign)!r}: expected random, metis, or a folder of assignments")
    options = Options(
        parts=parts,
        assign=assign,
        seed=seed,
        halo_hops=halo_hops,
        graph_name=graph_name or graph.space,
        formats=tuple(formats),
        balance_ntypes=balance_ntypes,
        balance_edges=balance_edges,
        objective=objective,
    )
    layout = plan(graph.schema, homogeneous=homogeneous, weight=weight)
    out = Path(out)
    if not overwrite and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise Conflict(f"{out} is there already; choose another folder, or say overwrite")
    partial = out.with_name(f"{out.name}.partial-{uuid.uuid4().hex[:8]}")
    try:
        run = _begin(graph, layout, version, parts, partial, progress)
        reports, cut, method = _write(run, options)
        _seal(run, options, cut, method)
        _publish(partial, out)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return ExportReport(
        out=out,
        config=out / f"{options.graph_name}.json",
        version=run.version,
        seed=seed,
        assign=options.method,
        parts=tuple(reports),
        edge_cut=cut,
        warnings=tuple(run.warnings),
        seconds=time.monotonic() - began,
    )


def _begin(graph: Scannable, layout: Plan, version: int | None, parts: int, partial: Path, progress: Progress | None) -> Run:
    pinned = _pin(graph, layout, version)
    scratch = partial / "scratch"
    scratch.mkdir(parents=True)
    run = Run(graph=graph, plan=layout, version=pinned, parts=parts, out=partial, scratch=scratch, progress=progress)
    for part in range(parts):
        run.folder(part).mkdir()
    for warning in layout.warnings:
        run.warn(warning)
    return run


def _pin(graph: Scannable, layout: Plan, version: int | None) -> int:
    """The one version that is read throughout: that of the first node to be found."""
    for kind in layout.nodes:
        for batch in graph.scan_nodes(kind.name, (), version=version, rows=1):
            return batch.version
    raise InvalidRequest(f"space {graph.space!r} has no nodes to export")


def _write(run: Run, options: Options) -> tuple[list[PartReport], int, str]:
    tables = read_ids(run)
    owners, method = _assign(run, options, tables)
    for kind, each in zip(run.plan.nodes, owners, strict=True):
        for warning in assignment.fill_empty(each, parts=run.parts, label=kind.label):
            run.warn(warning)
    nodes = number(run, tables, owners)
    owners.clear()
    write_features(run, tables, nodes)
    edges = read_edges(run, tables, nodes)
    tables.clear()
    reports = write_graphs_of_parts(run, nodes, edges, hops=options.halo_hops, formats=options.formats)
    _configure(run, options, method, nodes, edges.ranges)
    return reports, edges.cut, method


def _assign(run: Run, options: Options, tables: list[NodeTable]) -> tuple[list[assignment.Owners], str]:
    """The part of each node, by type and rank, and DGL's word for the method."""
    if isinstance(options.assign, Path):
        return assignment.from_folder(options.assign, run.plan.nodes, [len(table) for table in tables], parts=run.parts)
    if options.assign == "metis":
        return _by_metis(run, options, tables), "metis"
    return [
        assignment.random(table.ids, parts=run.parts, seed=options.seed, type_id=kind.type_id)
        for kind, table in zip(run.plan.nodes, tables, strict=True)
    ], "random"


def _by_metis(run: Run, options: Options, tables: list[NodeTable]) -> list[assignment.Owners]:
    """METIS over all types at once, a node's number being its rank after those of the types before."""
    sizes = np.array([len(table) for table in tables], np.int64)
    firsts = np.concatenate([[0], np.cumsum(sizes)])
    total = int(firsts[-1])
    spools = run.spool("metis-src"), run.spool("metis-dst")
    meter = Meter(run, "edges for METIS", None)
    for kind in run.plan.edges:
        for batch in run.graph.scan_edges(kind.name, (), version=run.version, rows=kind.batch_rows):
            src, dst = ends(run, kind, batch.src, batch.dst, tables, gids=False)
            spools[0].append(src + firsts[kind.src])
            spools[1].append(dst + firsts[kind.dst])
            meter.add(len(src))
    src, dst = (spool.read() for spool in spools)
    types = np.repeat(np.arange(len(sizes)), sizes)
    constraints = [types == t for t in np.flatnonzero(sizes)] if options.balance_ntypes else [np.ones(total, np.int64)]
    if options.balance_edges and len(dst):
        constraints.append(np.bincount(dst, minlength=total))
    for spool in spools:
        spool.drop()
    meter = Meter(run, "METIS", total)
    found, warnings = metis.partition(
        metis.adjacency(src, dst, total),
        run.parts,
        constraints=np.stack(constraints, axis=1).astype(np.int64),
        seed=options.seed,
        objective=options.objective,
    )
    meter.add(total)
    for warning in warnings:
        run.warn(warning)
    return [found[a:b].copy() for a, b in pairwise(firsts.tolist())]


def _configure(run: Run, options: Options, method: str, nodes: Ranges, edges: Ranges) -> None:
    """Write the configuration that DGL loads partitions by."""
    content: dict[str, Any] = {
        "graph_name": options.graph_name,
        "num_nodes": nodes.total,
        "num_edges": edges.total,
        "part_method": method,
        "num_parts": run.parts,
        "halo_hops": options.halo_hops,
        "node_map": {kind.label: nodes.spans(i) for i, kind in enumerate(run.plan.nodes)},
        "edge_map": {kind.label: edges.spans(i) for i, kind in enumerate(run.plan.edges)},
        "ntypes": {kind.label: i for i, kind in enumerate(run.plan.nodes)},
        "etypes": {kind.label: i for i, kind in enumerate(run.plan.edges)},
    }
    for part in range(run.parts):
        files = {"node_feats": "node_feat.dgl", "edge_feats": "edge_feat.dgl", "part_graph": "graph.dgl"}
        content[f"part-{part}"] = {key: f"part{part}/{name}" for key, name in files.items()}
    (run.out / f"{options.graph_name}.json").write_text(json.dumps(content, indent=4) + "\n")


def _seal(run: Run, options: Options, cut: int, method: str) -> None:
    """Remove scratch, write the manifest, and make every file durable."""
    shutil.rmtree(run.scratch)
    files: dict[str, Any] = {}
    paths = sorted(path for path in run.out.rglob("*") if path.is_file())
    meter = Meter(run, "digests", len(paths))
    for path in paths:
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            os.fsync(file.fileno())
        files[str(path.relative_to(run.out))] = {"bytes": path.stat().st_size, "sha256": digest}
        meter.add(1)
    config = json.loads((run.out / f"{options.graph_name}.json").read_text())
    manifest = {
        "space": run.graph.space,
        "version": run.version,
        "seed": options.seed,
        "assign": options.method,
        "part_method": method,
        "parts": run.parts,
        "halo_hops": options.halo_hops,
        "formats": list(options.formats),
        "config": f"{options.graph_name}.json",
        "nodes": {label: [b - a for a, b in spans] for label, spans in config["node_map"].items()},
        "edges": {label: [b - a for a, b in spans] for label, spans in config["edge_map"].items()},
        "edge_cut": cut,
        "warnings": run.warnings,
        "files": files,
    }
    with open(run.out / "manifest.json", "w") as file:
        json.dump(manifest, file, indent=2)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    for folder in (*(path for path in run.out.rglob("*") if path.is_dir()), run.out):
        _sync(folder)


def _publish(partial: Path, out: Path) -> None:
    """Give the finished folder its name; what was there before goes once it has it."""
    old = out.with_name(f"{out.name}.partial-{uuid.uuid4().hex[:8]}")
    if out.is_dir() and not any(out.iterdir()):
        out.rmdir()
    elif out.exists():
        out.rename(old)
    partial.rename(out)
    _sync(out.parent)
    if old.is_dir():
        shutil.rmtree(old)
    else:
        old.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
