"""An export from beginning to end: `dgl`."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asterism.export.edges import Edges, read_edges
from asterism.export.layout import Ranges
from asterism.export.methods import METHODS, Assignment, Balance, owners_of
from asterism.export.nodes import number, read_ids, write_features
from asterism.export.parts import FORMATS, write_graphs_of_parts
from asterism.export.plan import Plan, checked_name, plan
from asterism.export.repair import fill_empty
from asterism.export.report import ExportReport, PartReport
from asterism.export.run import Run
from asterism.export.seal import unfinished, write_manifest
from asterism.export.source import Progress, Scannable, held
from asterism_proto.errors import InvalidRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to write what is assigned: the words of `dgl`, checked."""

    assignment: Assignment
    halo_hops: int
    graph_name: str
    formats: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.halo_hops < 1:
            raise InvalidRequest(f"halo_hops {self.halo_hops}: DGL needs the in-edges of a part's nodes, so at least 1")
        if not self.formats or not set(self.formats) <= set(FORMATS):
            raise InvalidRequest(f"formats {list(self.formats)}: expected some of {', '.join(FORMATS)}")
        checked_name("graph_name", self.graph_name)
        if self.graph_name == "manifest":
            raise InvalidRequest("graph_name 'manifest': manifest.json is another file of the export; choose another name")


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
    num_trainers_per_machine: int = 1,
    balance_ntypes: Balance = True,
    balance_edges: bool = False,
    objective: str = "cut",
    imbalance: float = 0.03,
    passes: int = 1,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> ExportReport:
    """Write a graph as partitions that DGL (1.1 to 2.4) loads, serves and samples.

    Parameters
    ----------
    graph, out, parts : Graph, str or Path, int
        What to read, at one version, which is pinned; the folder to make, which appears when all is written; how many
        partitions.
    assign : {"random", "metis", "ldg", "fennel"} or Path
        Which part a node goes to: by a hash of (seed, type, id); so that few edges are cut, by METIS in memory or by a
        streaming partitioner in some bytes per node; or as a folder says, with ``<ntype>.txt`` (a part per line, nodes
        by id) and ``partition_meta.json``.
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
    num_trainers_per_machine : int
        More than 1: divide each part among so many trainers; nodes and edges get a feature ``trainer_id``.
    balance_ntypes : bool or dict
        For METIS and the streaming ones: balance each node type over the parts by itself; or, by node type, each value of
        a feature (its name) or of an array (nodes by id).
    balance_edges : bool
        Balance the in-degrees over the parts too.
    objective, imbalance, passes : {"cut", "vol"}, float, int
        For METIS: fewest edges between parts, or least traffic; by which share a part may be larger than the others; how
        often a streaming partitioner goes over the nodes.
    overwrite, progress : bool, callable
        Replace a folder that is not empty; called with (phase, done, total or None).

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
        assignment=Assignment(
            method=assign if assign in METHODS else Path(assign),
            parts=parts,
            trainers=num_trainers_per_machine,
            seed=seed,
            balance_ntypes=balance_ntypes,
            balance_edges=balance_edges,
            objective=objective,
            imbalance=imbalance,
            passes=passes,
        ),
        halo_hops=halo_hops,
        graph_name=graph_name or graph.space,
        formats=tuple(formats),
    )
    layout = plan(graph.schema, homogeneous=homogeneous, weight=weight)
    with unfinished(out := Path(out), overwrite=overwrite) as partial, held(graph, version, f"export to {out.absolute()}") as source:
        run = _begin(source, layout, version, parts, partial, progress)
        reports, cut = _write(run, options)
    return _report(run, options, out, reports, cut, time.monotonic() - began)


def _report(run: Run, options: Options, out: Path, parts: list[PartReport], cut: int, seconds: float) -> ExportReport:
    return ExportReport(
        out=out,
        config=out / f"{options.graph_name}.json",
        version=run.version,
        seed=options.assignment.seed,
        assign=str(options.assignment.method),
        parts=tuple(parts),
        edge_cut=cut,
        warnings=tuple(run.warnings),
        seconds=seconds,
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


def _write(run: Run, options: Options) -> tuple[list[PartReport], int]:
    tables = read_ids(run)
    owners, method = owners_of(run, options.assignment, tables)
    fill_empty(run, owners, tables, trainers=options.assignment.trainers)
    nodes = number(run, tables, owners, trainers=options.assignment.trainers)
    owners.clear()
    write_features(run, tables, nodes)
    edges = read_edges(run, tables, nodes)
    tables.clear()
    reports = write_graphs_of_parts(run, nodes, edges, hops=options.halo_hops, formats=options.formats)
    shutil.rmtree(run.scratch)
    _configure(run, options, method, nodes, edges.ranges)
    write_manifest(run, _described(run, options, method, nodes, edges))
    return reports, edges.cut


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
        **options.assignment.described,
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
