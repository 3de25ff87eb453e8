"""An export from beginning to end: `dgl`."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from asterism.export import assign as assignment
from asterism.export import metis
from asterism.export.edges import Edges, ends, read_edges
from asterism.export.layout import NodeTable, Ranges
from asterism.export.nodes import number, read_ids, write_features
from asterism.export.parts import FORMATS, write_graphs_of_parts
from asterism.export.plan import Plan, checked_name, plan
from asterism.export.report import ExportReport, PartReport
from asterism.export.run import Meter, Run
from asterism.export.seal import unfinished, write_manifest
from asterism.export.source import Progress, Scannable, held
from asterism_proto.errors import InvalidRequest

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
        What to read: it is scanned at one version, a batch at a time. The version is pinned meanwhile.
    out : str or Path
        The folder to make. It appears when all is written.
    parts : int
        How many partitions.
    assign : {"random", "metis"} or Path
        Which part a node goes to: by a hash of (seed, type, id); so that few edges are cut (in memory); or as a folder
        says, with ``<ntype>.txt`` (a part per line, nodes by id) and ``partition_meta.json``.
    seed, version : int
        Of the assignment; of the space, None being the current one.
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
    balance_ntypes, balance_edges, objective : bool, bool, {"cut", "vol"}
        For METIS: balance each node type over the parts; balance the in-degrees; fewest edges between parts, or least traffic.
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
    Conflict, InvalidRequest, NotFound
        ``out`` is not empty; an option does not fit, or there are no nodes; no such version, or file of an assignment.
    """
    began = time.monotonic()
    options = Options(
        parts=parts,
        assign=_known(assign),
        seed=seed,
        halo_hops=halo_hops,
        graph_name=graph_name or graph.space,
        formats=tuple(formats),
        balance_ntypes=balance_ntypes,
        balance_edges=balance_edges,
        objective=objective,
    )
    layout = plan(graph.schema, homogeneous=homogeneous, weight=weight)
    with unfinished(out := Path(out), overwrite=overwrite) as partial, held(graph, version, f"export to {out.absolute()}") as source:
        run = _begin(source, layout, version, parts, partial, progress)
        reports, cut = _write(run, options)
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


def _known(assign: str | Path) -> str | Path:
    """A word for a method, or a folder that is there."""
    if assign in ("random", "metis"):
        return assign
    if not Path(assign).is_dir():
        raise InvalidRequest(f"assign {str(assign)!r}: expected random, metis, or a folder of assignments")
    return Path(assign)


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


def _write(run: Run, options: Options) -> tuple[list[PartReport], int]:
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
    shutil.rmtree(run.scratch)
    _configure(run, options, method, nodes, edges.ranges)
    write_manifest(run, _described(run, options, method, nodes, edges))
    return reports, edges.cut


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


def _described(run: Run, options: Options, method: str, nodes: Ranges, edges: Edges) -> dict[str, Any]:
    """What the manifest says beside its files."""
    return {
        "space": run.graph.space,
        "version": run.version,
        "seed": options.seed,
        "assign": options.method,
        "part_method": method,
        "parts": run.parts,
        "halo_hops": options.halo_hops,
        "formats": list(options.formats),
        "config": f"{options.graph_name}.json",
        "nodes": {kind.label: nodes.counts[:, i].tolist() for i, kind in enumerate(run.plan.nodes)},
        "edges": {kind.label: edges.ranges.counts[:, i].tolist() for i, kind in enumerate(run.plan.edges)},
        "edge_cut": edges.cut,
        "warnings": run.warnings,
    }
