"""Partitions for DGL: the export from beginning to end, and its report."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from asterism.export.assignment_files import Owners
from asterism.export.assignment_methods import METHODS, AssignmentOptions, Balance, assign_owners
from asterism.export.dgl_files import row_slices
from asterism.export.dispatch import dispatch, is_template, staging_folder
from asterism.export.edges import PartitionedEdges, distribute_edges, remove_distributed
from asterism.export.empty_parts import fill_empty_parts
from asterism.export.execution import Execution, LazyExecutor, make_executor
from asterism.export.export_run import ExportRun, ProgressMeter
from asterism.export.global_ids import GlobalIdRanges, NodeIdTable
from asterism.export.graph_source import ScannableGraph
from asterism.export.halo_parts import FORMATS
from asterism.export.lifecycle import (
    ExportShape,
    ExportTarget,
    published_manifest,
    run_resumable,
    write_manifest,
)
from asterism.export.nodes import (
    assign_global_ids,
    distribute_features,
    read_ids,
    remove_distributed_features,
    write_id_list,
)
from asterism.export.plan import ExportPlan, TypePlan, check_name, make_plan
from asterism.export.scratch_files import Spool
from asterism_io.remote_storage import redact
from asterism_proto.errors import InvalidRequest

log = logging.getLogger("asterism.export")


@dataclass(frozen=True, slots=True, kw_only=True)
class PartReport:
    """One part of an export."""

    part: int
    nodes: Mapping[str, int]
    """Nodes that it owns, by type."""
    edges: Mapping[str, int]
    """Edges that it owns (those into its nodes), by type."""
    halo_nodes: int
    """Nodes of other parts that it holds beside."""
    outer_edges: int
    """Edges of other parts that it holds beside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportReport:
    """An export that stands."""

    out: str | Path
    """The folder, or the address."""
    config: str | Path
    """The JSON file that DGL's ``load_partition`` takes."""
    version: int
    """The version of the space that was exported."""
    seed: int
    assign: str
    """``random``, ``metis``, or the folder that the parts were read from."""
    parts: tuple[PartReport, ...]
    edge_cut: int
    """Edges between different parts."""
    warnings: tuple[str, ...]
    """What DGL will stumble over, and what was left out."""
    seconds: float

    @classmethod
    def from_manifest(
        cls, out: str | Path, config: str | Path, manifest: Mapping[str, Any], seconds: float
    ) -> ExportReport:
        """The report of an export with this manifest."""
        return cls(
            out=out,
            config=config,
            version=manifest["version"],
            seed=manifest["seed"],
            assign=manifest["assign"],
            parts=tuple(
                PartReport(
                    part=part,
                    nodes={label: counts[part] for label, counts in manifest["nodes"].items()},
                    edges={label: counts[part] for label, counts in manifest["edges"].items()},
                    halo_nodes=manifest["halo_nodes"][part],
                    outer_edges=manifest["outer_edges"][part],
                )
                for part in range(manifest["parts"])
            ),
            edge_cut=manifest["edge_cut"],
            warnings=tuple(manifest["warnings"]),
            seconds=seconds,
        )

    @property
    def nodes(self) -> int:
        """How many nodes were written."""
        return sum(sum(part.nodes.values()) for part in self.parts)

    @property
    def edges(self) -> int:
        """How many edges were written."""
        return sum(sum(part.edges.values()) for part in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class DglExportOptions:
    """How to write what is assigned: the words of `dgl`, checked."""

    assignment: AssignmentOptions
    halo_hops: int
    graph_name: str
    formats: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.halo_hops < 1:
            raise InvalidRequest(
                f"halo_hops {self.halo_hops}: DGL needs the in-edges of a part's nodes, so "
                "at least 1"
            )
        if not self.formats or not set(self.formats) <= set(FORMATS):
            raise InvalidRequest(
                f"formats {list(self.formats)}: expected some of {', '.join(FORMATS)}"
            )
        check_name("graph_name", self.graph_name)
        if self.graph_name == "manifest":
            raise InvalidRequest(
                "graph_name 'manifest': manifest.json is another file of the export; choose "
                "another name"
            )


def dgl(
    graph: ScannableGraph,
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
    **execution: Unpack[Execution],
) -> ExportReport:
    """Write a graph as partitions that DGL (1.1 to 2.4) loads, serves and samples.

    Parameters
    ----------
    graph, out, parts : Graph, str or Path, int
        What to read, at one version, which is pinned; the folder to make, or an address as fsspec
        names it, which appears when all is written (at an address, ``manifest.json`` does), or with
        ``{part}`` or ``{host}`` in it, an address for each part (`dispatch`, from a folder beside
        ``scratch``); how many partitions.
    assign : {"random", "hash", "metis", "ldg", "fennel"} or Path
        Which part a node goes to: by a hash of (seed, type, id), or of the id alone; so that few
        edges are cut, by METIS in memory or by a streaming partitioner in some bytes per node; or
        as a folder says, with ``<ntype>.txt`` (a part per line, nodes by id) and
        ``partition_meta.json``.
    seed, version : int
        Of the assignment; of the space, None being the current one.
    halo_hops : int
        How far beyond its own nodes a part knows the in-edges.
    graph_name : str, optional
        What DGL calls the graph; the configuration is ``<graph_name>.json``. None: the space's
        name.
    homogeneous : bool
        Write a graph of one node type and one edge type as ``_N`` and ``_N:_E:_N``, as DGL names a
        graph without types.
    weight : str, optional
        The feature that weights of weighted types are written as; None leaves them out.
    formats : sequence of {"coo", "csr", "csc"}
        What ``graph.dgl`` holds. DGL makes what is missing when it is needed.
    num_trainers_per_machine : int
        More than 1: divide each part among so many trainers; nodes and edges get a feature
        ``trainer_id``.
    balance_ntypes : bool or dict
        For METIS and the streaming ones: balance each node type over the parts by itself; or, by
        node type, each value of a feature (its name) or of an array (nodes by id).
    balance_edges : bool
        Balance the in-degrees over the parts too.
    objective, imbalance, passes : {"cut", "vol"}, float, int
        For METIS: fewest edges between parts, or least traffic; by which share a part may be larger
        than the others; how often a streaming partitioner goes over the nodes.
    ip_config : str or Path, optional
        DGL's file of machines, for ``{host}``.
    **execution
        `Execution`: who does the work in how much memory, and what becomes of an export that was
        cut off.

    Returns
    -------
    ExportReport
        Counts by part, the edge cut, and warnings about what DGL will stumble over.

    Raises
    ------
    Conflict, InvalidRequest, NotFound
        ``out`` is not empty; an option does not fit, or there are no nodes; no such version, or
        file of an assignment.
    """
    options = DglExportOptions(
        assignment=AssignmentOptions(
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
    layout = make_plan(graph.schema, homogeneous=homogeneous, weight=weight)
    if is_template(out) or ip_config is not None:
        return _export_and_dispatch(graph, str(out), options, layout, version, ip_config, execution)
    return _export_to_target(graph, ExportTarget.parse(out), options, layout, version, execution)


def _export_and_dispatch(
    graph: ScannableGraph,
    out: str,
    options: DglExportOptions,
    layout: ExportPlan,
    version: int | None,
    ip_config: str | Path | None,
    execution: Execution,
) -> ExportReport:
    """Export to a folder, and from there each part to its address."""
    parts, resume, overwrite = (
        options.assignment.parts,
        execution.get("resume", False),
        execution.get("overwrite", False),
    )
    with staging_folder(
        out, parts, ip_config=ip_config, scratch=execution.get("scratch"), resume=resume
    ) as folder:
        # What an export that was killed left there is nobody else's.
        report = _export_to_target(
            graph,
            ExportTarget.parse(folder),
            options,
            layout,
            version,
            {**execution, "overwrite": not resume},
        )
        dispatch_report = dispatch(
            folder,
            out,
            ip_config=ip_config,
            overwrite=overwrite,
            progress=execution.get("progress"),
        )
    config = f"{dispatch_report.places[0].address}/{options.graph_name}.json"
    return replace(
        report, out=redact(out), config=config, warnings=report.warnings + dispatch_report.warnings
    )


def _export_to_target(
    graph: ScannableGraph,
    target: ExportTarget,
    options: DglExportOptions,
    layout: ExportPlan,
    version: int | None,
    execution: Execution,
) -> ExportReport:
    """Export to one place."""
    started = time.monotonic()
    assignment = options.assignment
    shape = ExportShape(
        parts=assignment.parts,
        trainers=assignment.trainers,
        hops=options.halo_hops,
        formats=options.formats,
    )
    with run_resumable(
        graph,
        target,
        layout,
        _manifest_parameters(options),
        version=version,
        shape=shape,
        execution=execution,
    ) as run:
        if run is not None:
            _write(run, options, execution)
    manifest = published_manifest(target)
    return ExportReport.from_manifest(
        target.path or target.address,
        target.file_path(manifest["config"]),
        manifest,
        time.monotonic() - started,
    )


def _manifest_parameters(options: DglExportOptions) -> dict[str, Any]:
    """The options as a manifest has them."""
    return {
        **options.assignment.manifest_entry,
        "parts": options.assignment.parts,
        "halo_hops": options.halo_hops,
        "formats": list(options.formats),
        "graph_name": options.graph_name,
    }


def _write(run: ExportRun, options: DglExportOptions, execution: Execution) -> None:
    run.run_step("planned", partial(_warn, run))
    tables = read_ids(run)
    owners = _assign(run, options.assignment, tables)
    nodes = assign_global_ids(run, tables, owners)
    owners.clear()
    distribute_features(run, tables, nodes)
    edges = PartitionedEdges(run=run, ranges=distribute_edges(run, tables, nodes))
    tables.clear()
    with make_executor(execution, run.parts, nodes.total + edges.ranges.total) as executor:
        _run_parts(run, executor, "part", "edge features", edges.ranges)
        for part in range(run.parts):
            remove_distributed_features(run, part)
            remove_distributed(run, part)
        _run_parts(run, executor, "graph", "graphs", edges.ranges)
    run.run_step("lists", partial(_list_edges, run, edges))
    method = str(run.step_result("assigned")["method"])
    run.run_step("config", partial(_configure, run, options, method, nodes, edges.ranges))
    write_manifest(run, _manifest_content(run, options, method, nodes, edges))


def _warn(run: ExportRun) -> None:
    for warning in run.plan.warnings:
        run.warn(warning)


def _assign(run: ExportRun, options: AssignmentOptions, tables: list[NodeIdTable]) -> list[Owners]:
    """The place of each node of each type, by rank."""
    spools = [
        Spool(path=run.scratch / f"owners-{kind.type_id}", dtype=np.dtype(np.int32))
        for kind in run.plan.nodes
    ]

    def assign() -> dict[str, Any]:
        owners, method = assign_owners(run, options, tables)
        fill_empty_parts(run, owners, tables, trainers=options.trainers)
        for spool, type_owners in zip(spools, owners, strict=True):
            spool.remove()
            for batch in row_slices(type_owners, 1 << 20):
                spool.append(batch)
        return {"method": method}

    run.run_step("assigned", assign)
    return [run.read_rows(spool) for spool in spools]


def _run_parts(
    run: ExportRun, executor: LazyExecutor, step: str, phase: str, edges: GlobalIdRanges
) -> None:
    """Have a step of every part done that is not."""
    rows = edges.counts.sum(axis=1)
    meter = ProgressMeter(run, phase, edges.total)
    remaining = [part for part in range(run.parts) if run.journal.get(f"{step}-{part}") is None]
    meter.add(edges.total - int(rows[remaining].sum()))
    for part, facts in executor.run(run.scratch, step, remaining) if remaining else ():
        for warning in facts["warnings"]:
            log.warning("%s", warning)
        meter.add(int(rows[part]))
    for part in range(run.parts):
        run.step_result(f"{step}-{part}")


def _list_edges(run: ExportRun, edges: PartitionedEdges) -> None:
    part_edges = [edges.owned_edges(part) for part in range(run.parts)]
    for type_index, kind in enumerate(run.plan.edges):
        write_id_list(run, "edge_ids", kind.label, [each[type_index].eid for each in part_edges])


def _configure(
    run: ExportRun,
    options: DglExportOptions,
    method: str,
    nodes: GlobalIdRanges,
    edges: GlobalIdRanges,
) -> None:
    """Write the configuration that DGL loads partitions by."""
    content: dict[str, Any] = {
        "graph_name": options.graph_name,
        "num_nodes": nodes.total,
        "num_edges": edges.total,
        "part_method": method,
        "num_parts": run.parts,
        "halo_hops": options.halo_hops,
        "node_map": {kind.label: nodes.type_ranges(i) for i, kind in enumerate(run.plan.nodes)},
        "edge_map": {kind.label: edges.type_ranges(i) for i, kind in enumerate(run.plan.edges)},
        "ntypes": {kind.label: i for i, kind in enumerate(run.plan.nodes)},
        "etypes": {kind.label: i for i, kind in enumerate(run.plan.edges)},
    }
    for part in range(run.parts):
        files = {
            "node_feats": "node_feat.dgl",
            "edge_feats": "edge_feat.dgl",
            "part_graph": "graph.dgl",
        }
        content[f"part-{part}"] = {key: f"part{part}/{name}" for key, name in files.items()}
    with run.open_output(f"{options.graph_name}.json") as file:
        file.write(json.dumps(content, indent=4).encode() + b"\n")


def _manifest_content(
    run: ExportRun,
    options: DglExportOptions,
    method: str,
    nodes: GlobalIdRanges,
    edges: PartitionedEdges,
) -> dict[str, Any]:
    """What the manifest says."""
    graph_results = [run.step_result(f"graph-{part}") for part in range(run.parts)]
    return {
        "format": 1,
        **({"names": {"salt": run.graph.schema.salt}} if run.has_string_ids else {}),
        **_manifest_parameters(options),
        "part_method": method,
        "config": f"{options.graph_name}.json",
        "nodes": {kind.label: nodes.counts[:, i].tolist() for i, kind in enumerate(run.plan.nodes)},
        "edges": {
            kind.label: edges.ranges.counts[:, i].tolist() for i, kind in enumerate(run.plan.edges)
        },
        "halo_nodes": [result["halo_nodes"] for result in graph_results],
        "outer_edges": [result["outer_edges"] for result in graph_results],
        "edge_cut": sum(sum(edges.incoming_counts(part)) for part in range(run.parts)),
        "sums": {kind.label: _sums(run, "nodes", kind) for kind in run.plan.nodes}
        | {kind.label: _sums(run, "edges", kind) for kind in run.plan.edges},
        "columns": {
            kind.label: {c.name: [c.dtype.name, *c.shape] for c in kind.columns}
            for kind in (*run.plan.nodes, *run.plan.edges)
        },
    }


def _sums(run: ExportRun, element: str, kind: TypePlan) -> dict[str, str]:
    """The sums of a type's rows, as they were read: of identities, and of each column."""
    steps = (
        [f"{element}-{kind.type_id}"]
        if element == "edges"
        else [f"ids-{kind.type_id}", *([f"nodes-{kind.type_id}"] if kind.columns else [])]
    )
    checksums: dict[str, str] = {}
    for step in steps:
        checksums |= run.step_result(step)["sums"]
    return checksums
