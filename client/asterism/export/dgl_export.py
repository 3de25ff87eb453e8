"""Export to DGL partitions: the sequence of steps, and the report."""

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

from asterism.export.dgl_tensor_files import row_slices
from asterism.export.dispatch_to_machines import dispatch, is_template, staging_folder
from asterism.export.edges import PartitionedEdges, distribute_edges, remove_distributed
from asterism.export.executors import Execution, LazyExecutor, make_executor
from asterism.export.export_schema import ExportPlan, TypePlan, check_name, make_plan
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
from asterism.export.partitioning.assignment_files import Owners
from asterism.export.partitioning.assignment_methods import (
    METHODS,
    AssignmentOptions,
    Balance,
    assign_owners,
)
from asterism.export.partitioning.empty_parts import fill_empty_parts
from asterism.export.run_state import ExportRun, ProgressMeter
from asterism.export.scratch_files import Spool
from asterism.local_paths import local_path
from asterism_io.remote_storage import redact
from asterism_proto.errors import InvalidRequest

log = logging.getLogger("asterism.export")


@dataclass(frozen=True, slots=True, kw_only=True)
class PartReport:
    """Sizes of one exported partition."""

    part: int
    """Number of the partition."""
    nodes: Mapping[str, int]
    """Number of nodes that the partition owns, by type."""
    edges: Mapping[str, int]
    """Number of edges that the partition owns (those into its nodes), by type."""
    halo_nodes: int
    """Number of nodes of other partitions that it also stores."""
    outer_edges: int
    """Number of edges of other partitions that it also stores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportReport:
    """Summary of a published export."""

    out: str | Path
    """Folder or address of the export."""
    config: str | Path
    """JSON file that DGL's ``load_partition`` takes."""
    version: int
    """Version of the space that was exported."""
    seed: int
    """Seed of the assignment."""
    assign: str
    """Assignment method, or the folder that the assignment was read from."""
    parts: tuple[PartReport, ...]
    """Sizes of each partition."""
    edge_cut: int
    """Number of edges between different partitions."""
    warnings: tuple[str, ...]
    """Problems that DGL will have with the export, and data that was left out."""
    seconds: float
    """Duration in seconds."""

    @classmethod
    def from_manifest(
        cls, out: str | Path, config: str | Path, manifest: Mapping[str, Any], seconds: float
    ) -> ExportReport:
        """Build the report of an export from its manifest."""
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
        """Total number of exported nodes."""
        return sum(sum(part.nodes.values()) for part in self.parts)

    @property
    def edges(self) -> int:
        """Total number of exported edges."""
        return sum(sum(part.edges.values()) for part in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class DglExportOptions:
    """Validated options of `dgl`."""

    assignment: AssignmentOptions
    halo_hops: int
    graph_name: str
    formats: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.halo_hops < 1:
            raise InvalidRequest(
                f"halo_hops={self.halo_hops}: expected 1 or more, because DGL needs the in-edges "
                f"of "
                "the nodes of a part"
            )
        if not self.formats or not set(self.formats) <= set(FORMATS):
            raise InvalidRequest(
                f"formats={list(self.formats)}: expected some of {', '.join(FORMATS)}"
            )
        check_name("graph_name", self.graph_name)
        if self.graph_name == "manifest":
            raise InvalidRequest(
                "graph_name='manifest': expected another name, because the export has its own "
                "manifest.json"
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
    graph : Graph
        Graph to read. One version is pinned for the whole run.
    out : str or Path
        New folder, or an address as fsspec names it. A folder appears once everything is written;
        at an address, ``manifest.json`` is written last. With ``{part}`` or ``{host}`` in it, this
        is a template with an address per partition: the export is written to a folder in
        ``scratch`` and copied with `dispatch`.
    parts : int
        Number of partitions.
    assign : {"random", "hash", "metis", "ldg", "fennel"} or Path, default "random"
        Assignment of nodes to partitions. "random" hashes (seed, type, id); "hash" hashes the id
        alone. "metis" minimizes cut edges in memory; "ldg" and "fennel" are streaming partitioners
        that need some bytes per node. A folder holds an assignment: ``<ntype>.txt`` (one partition
        number per line, in the order of ids) and ``partition_meta.json``.
    seed : int, default 0
        Seed of the assignment.
    version : int, optional
        Version of the space. None uses the current one.
    halo_hops : int, default 1
        Number of hops beyond its own nodes for which a partition stores the in-edges.
    graph_name : str, optional
        Name of the graph in DGL; the configuration is ``<graph_name>.json``. None uses the name of
        the space.
    homogeneous : bool, default False
        Write a graph of one node type and one edge type as ``_N`` and ``_N:_E:_N``, as DGL names a
        graph without types.
    weight : str, optional, default "weight"
        Feature name under which the weights of weighted types are written. None omits them.
    formats : sequence of {"coo", "csr", "csc"}, default ("coo",)
        Sparse formats in ``graph.dgl``. DGL creates missing ones on demand.
    num_trainers_per_machine : int, default 1
        With more than 1, divide each partition among this many trainers. Nodes and edges get a
        feature ``trainer_id``.
    balance_ntypes : bool or dict, default True
        For "metis", "ldg" and "fennel": True balances each node type separately. A dict from node
        type to a feature name, or to an array in the order of ids, balances the nodes of each value
        separately.
    balance_edges : bool, default False
        Also balance the in-degrees over the partitions.
    objective : {"cut", "vol"}, default "cut"
        For "metis": minimize the edges between partitions, or the communication volume.
    imbalance : float, default 0.03
        Share by which a partition may be larger than the others.
    passes : int, default 1
        Number of passes of a streaming partitioner over the nodes.
    ip_config : str or Path, optional
        DGL's file of machines, for ``{host}``.
    **execution
        Options of `Execution`: workers, memory, and handling of interrupted exports.

    Returns
    -------
    ExportReport
        Counts by partition, the edge cut, and warnings about problems that DGL will have.

    Raises
    ------
    Conflict
        ``out`` is not empty.
    InvalidRequest
        An option is invalid, or the space has no nodes.
    NotFound
        The version or a file of an assignment does not exist.
    NotReady
        METIS does not fit into memory.

    Examples
    --------
    >>> export.dgl(graph, "partitions", parts=4, assign="metis")  # doctest: +SKIP
    """
    options = DglExportOptions(
        assignment=AssignmentOptions(
            method=assign if assign in METHODS else local_path("assign", assign),
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
    """Export to a staging folder, and copy each partition from there to its address."""
    parts, resume, overwrite = (
        options.assignment.parts,
        execution.get("resume", False),
        execution.get("overwrite", False),
    )
    with staging_folder(
        out, parts, ip_config=ip_config, scratch=execution.get("scratch"), resume=resume
    ) as folder:
        # The folder is private to this export, so leftovers of a killed run may be replaced.
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
    """Export to a single folder or address."""
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
    """Return the options as a manifest records them."""
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
    """Return the slot of each node, by type and rank."""
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
    """Run a step for every partition that has not completed it."""
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
    """Write the configuration from which DGL loads partitions."""
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
    """Return the content of the manifest."""
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
    """Return the checksums of a type's rows as read: of the ids and of each column."""
    steps = (
        [f"{element}-{kind.type_id}"]
        if element == "edges"
        else [f"ids-{kind.type_id}", *([f"nodes-{kind.type_id}"] if kind.columns else [])]
    )
    checksums: dict[str, str] = {}
    for step in steps:
        checksums |= run.step_result(step)["sums"]
    return checksums
