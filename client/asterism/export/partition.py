"""An export from beginning to end: `dgl`."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from asterism.export.assign import Owners
from asterism.export.carry import Shape, carried, manifest_of, seal
from asterism.export.dgl_files import sliced
from asterism.export.dispatch import dispatch, is_template, staged
from asterism.export.edges import Edges, deal_edges, drop_dealt
from asterism.export.execution import Execution, executor_of
from asterism.export.executors import Deferred
from asterism.export.layout import NodeTable, Ranges
from asterism.export.methods import METHODS, Assignment, Balance, owners_of
from asterism.export.nodes import deal_features, drop_features, number, read_ids, write_list
from asterism.export.parts import FORMATS
from asterism.export.plan import Kind, Plan, checked_name, plan
from asterism.export.repair import fill_empty
from asterism.export.report import ExportReport
from asterism.export.run import Meter, Run
from asterism.export.seal import Target
from asterism.export.source import Scannable
from asterism.export.spool import Spool
from asterism_proto.errors import InvalidRequest
from asterism_proto.places import redacted

log = logging.getLogger("asterism.export")


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
    ip_config: str | Path | None = None,
    **how: Unpack[Execution],
) -> ExportReport:
    """Write a graph as partitions that DGL (1.1 to 2.4) loads, serves and samples.

    Parameters
    ----------
    graph, out, parts : Graph, str or Path, int
        What to read, at one version, which is pinned; the folder to make, or an address as fsspec names it, which appears when
        all is written (at an address, ``manifest.json`` does), or with ``{part}`` or ``{host}`` in it, an address for each part
        (`dispatch`, from a folder beside ``scratch``); how many partitions.
    assign : {"random", "hash", "metis", "ldg", "fennel"} or Path
        Which part a node goes to: by a hash of (seed, type, id), or of the id alone; so that few edges are cut, by METIS in memory or by a
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
    ip_config : str or Path, optional
        DGL's file of machines, for ``{host}``.
    **how
        `Execution`: who does the work in how much memory, and what becomes of an export that was cut off.

    Returns
    -------
    ExportReport
        Counts by part, the edge cut, and warnings about what DGL will stumble over.

    Raises
    ------
    Conflict, InvalidRequest, NotFound
        ``out`` is not empty; an option does not fit, or there are no nodes; no such version, or file of an assignment.
    """
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
    if is_template(out) or ip_config is not None:
        return _send_out(graph, str(out), options, layout, version, ip_config, how)
    return _carry_out(graph, Target.of(out), options, layout, version, how)


def _send_out(
    graph: Scannable, out: str, options: Options, layout: Plan, version: int | None, ip_config: str | Path | None, how: Execution
) -> ExportReport:
    """Export to a folder, and from there each part to its address."""
    parts, resume, overwrite = options.assignment.parts, how.get("resume", False), how.get("overwrite", False)
    with staged(out, parts, ip_config=ip_config, scratch=how.get("scratch"), resume=resume) as folder:
        # What an export that was killed left there is nobody else's.
        report = _carry_out(graph, Target.of(folder), options, layout, version, {**how, "overwrite": not resume})
        sent = dispatch(folder, out, ip_config=ip_config, overwrite=overwrite, progress=how.get("progress"))
    config = f"{sent.places[0].address}/{options.graph_name}.json"
    return replace(report, out=redacted(out), config=config, warnings=report.warnings + sent.warnings)


def _carry_out(graph: Scannable, target: Target, options: Options, layout: Plan, version: int | None, how: Execution) -> ExportReport:
    """Export to one place."""
    began = time.monotonic()
    asked = options.assignment
    shape = Shape(parts=asked.parts, trainers=asked.trainers, hops=options.halo_hops, formats=options.formats)
    with carried(graph, target, layout, _words(options), version=version, shape=shape, how=how) as run:
        if run is not None:
            _write(run, options, how)
    manifest = manifest_of(target)
    return ExportReport.of(target.path or target.address, target.named(manifest["config"]), manifest, time.monotonic() - began)


def _words(options: Options) -> dict[str, Any]:
    """The options as a manifest has them."""
    return {
        **options.assignment.described,
        "parts": options.assignment.parts,
        "halo_hops": options.halo_hops,
        "formats": list(options.formats),
        "graph_name": options.graph_name,
    }


def _write(run: Run, options: Options, how: Execution) -> None:
    run.step("planned", partial(_warn, run))
    tables = read_ids(run)
    owners = _assign(run, options.assignment, tables)
    nodes = number(run, tables, owners)
    owners.clear()
    deal_features(run, tables, nodes)
    edges = Edges(run=run, ranges=deal_edges(run, tables, nodes))
    tables.clear()
    with executor_of(how, run.parts, nodes.total + edges.ranges.total) as executor:
        _perform(run, executor, "part", "edge features", edges.ranges)
        for part in range(run.parts):
            drop_features(run, part)
            drop_dealt(run, part)
        _perform(run, executor, "graph", "graphs", edges.ranges)
    run.step("lists", partial(_list_edges, run, edges))
    method = str(run.found("assigned")["method"])
    run.step("config", partial(_configure, run, options, method, nodes, edges.ranges))
    seal(run, _described(run, options, method, nodes, edges))


def _warn(run: Run) -> None:
    for warning in run.plan.warnings:
        run.warn(warning)


def _assign(run: Run, asked: Assignment, tables: list[NodeTable]) -> list[Owners]:
    """The place of each node of each type, by rank."""
    spools = [Spool(path=run.scratch / f"owners-{kind.type_id}", dtype=np.dtype(np.int32)) for kind in run.plan.nodes]

    def assign() -> dict[str, Any]:
        owners, method = owners_of(run, asked, tables)
        fill_empty(run, owners, tables, trainers=asked.trainers)
        for spool, each in zip(spools, owners, strict=True):
            spool.drop()
            for some in sliced(each, 1 << 20):
                spool.append(some)
        return {"method": method}

    run.step("assigned", assign)
    return [run.held(spool) for spool in spools]


def _perform(run: Run, executor: Deferred, step: str, phase: str, edges: Ranges) -> None:
    """Have a step of every part done that is not."""
    rows = edges.counts.sum(axis=1)
    meter = Meter(run, phase, edges.total)
    left = [part for part in range(run.parts) if run.journal.get(f"{step}-{part}") is None]
    meter.add(edges.total - int(rows[left].sum()))
    for part, facts in executor.run(run.scratch, step, left) if left else ():
        for warning in facts["warnings"]:
            log.warning("%s", warning)
        meter.add(int(rows[part]))
    for part in range(run.parts):
        run.found(f"{step}-{part}")


def _list_edges(run: Run, edges: Edges) -> None:
    owned = [edges.owned(part) for part in range(run.parts)]
    for place, kind in enumerate(run.plan.edges):
        write_list(run, "edge_ids", kind.label, [each[place].eid for each in owned])


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
    with run.writing(f"{options.graph_name}.json") as file:
        file.write(json.dumps(content, indent=4).encode() + b"\n")


def _described(run: Run, options: Options, method: str, nodes: Ranges, edges: Edges) -> dict[str, Any]:
    """What the manifest says."""
    beside = [run.found(f"graph-{part}") for part in range(run.parts)]
    return {
        "format": 1,
        **({"names": {"salt": run.graph.schema.salt}} if run.called else {}),
        **_words(options),
        "part_method": method,
        "config": f"{options.graph_name}.json",
        "nodes": {kind.label: nodes.counts[:, i].tolist() for i, kind in enumerate(run.plan.nodes)},
        "edges": {kind.label: edges.ranges.counts[:, i].tolist() for i, kind in enumerate(run.plan.edges)},
        "halo_nodes": [each["halo_nodes"] for each in beside],
        "outer_edges": [each["outer_edges"] for each in beside],
        "edge_cut": sum(sum(edges.cuts(part)) for part in range(run.parts)),
        "sums": {kind.label: _sums(run, "nodes", kind) for kind in run.plan.nodes}
        | {kind.label: _sums(run, "edges", kind) for kind in run.plan.edges},
        "columns": {kind.label: {c.name: [c.dtype.name, *c.shape] for c in kind.columns} for kind in (*run.plan.nodes, *run.plan.edges)},
    }


def _sums(run: Run, what: str, kind: Kind) -> dict[str, str]:
    """The sums of a type's rows, as they were read: of identities, and of each column."""
    steps = [f"{what}-{kind.type_id}"] if what == "edges" else [f"ids-{kind.type_id}", *([f"nodes-{kind.type_id}"] if kind.columns else [])]
    found: dict[str, str] = {}
    for step in steps:
        found |= run.found(step)["sums"]
    return found
