"""Export of an assignment of nodes to partitions, for DGL's tools and for `dgl`."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.lib import format as npy

from asterism.export.executors import Execution, check_execution, memory_limit
from asterism.export.export_schema import ExportPlan, TypePlan, make_plan
from asterism.export.global_ids import NodeIdTable
from asterism.export.graph_source import ScannableGraph, pin_version, version_digest
from asterism.export.lifecycle import (
    MANIFEST,
    ExportTarget,
    WorkingFolder,
    open_working_folder,
    publish,
)
from asterism.export.nodes import read_ids
from asterism.export.partitioning.assignment_files import Owners, assignment_lines, partition_meta
from asterism.export.partitioning.assignment_methods import (
    METHODS,
    AssignmentOptions,
    Balance,
    assign_owners,
)
from asterism.export.partitioning.empty_parts import fill_empty_parts
from asterism.export.run_state import ExportRun
from asterism.local_paths import local_path
from asterism_graphkit.random.partition_choice import group_by_key
from asterism_proto.errors import Conflict, Corrupt, InvalidRequest

_STEP = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentReport:
    """Summary of a published assignment."""

    out: str | Path
    """Folder or address of the assignment."""
    version: int
    """Version of the space that the assignment covers."""
    seed: int
    """Seed of the assignment."""
    assign: str
    """Assignment method, or the folder that the assignment was read from."""
    nodes: Mapping[str, tuple[int, ...]]
    """Number of nodes in each partition, by node type."""
    warnings: tuple[str, ...]
    """Problems that DGL will have, and repairs that were made."""
    seconds: float
    """Duration in seconds."""


def assignment(
    graph: ScannableGraph,
    out: str | Path,
    *,
    parts: int,
    assign: str | Path = "metis",
    seed: int = 0,
    version: int | None = None,
    homogeneous: bool = False,
    weight: str | None = "weight",
    balance_ntypes: Balance = True,
    balance_edges: bool = False,
    objective: str = "cut",
    imbalance: float = 0.03,
    passes: int = 1,
    **execution: Unpack[Execution],
) -> AssignmentReport:
    """Assign every node to a partition and write the assignment.

    The folder gets ``<ntype>.txt`` for each node type, with one partition number per line in the
    order of node ids, and ``partition_meta.json``. It also gets ``<ntype>.members.npy`` (int64,
    shape (n,)), the node ids grouped by partition, and ``<ntype>.offsets.npy`` (int64, shape (parts
    + 1,)), the start of each partition's group. `Graph.cluster_batches` reads these two files to
    use the partitions as clusters.

    Parameters
    ----------
    graph : Graph
        Graph to read. One version is pinned for the whole run.
    out : str or Path
        New folder, or an address as fsspec names it.
    parts : int
        Number of partitions.
    assign : {"random", "hash", "metis", "ldg", "fennel"} or Path, default "metis"
        Assignment method, or a folder that already holds an assignment. See `dgl`.
    seed : int, default 0
        Seed of the assignment.
    version : int, optional
        Version of the space. None uses the current one.
    homogeneous : bool, default False
        Name the file of a single node type ``_N.txt``, as DGL names a graph without types.
    weight : str, optional, default "weight"
        Feature name under which `dgl` writes edge weights. Use the same value there: edge types
        with features affect the repair of empty partitions.
    balance_ntypes, balance_edges, objective, imbalance, passes
        Balance constraints and method parameters, with the meaning and defaults of `dgl`. Pass the
        same values to both, so that `dgl` has nothing to repair.
    **execution
        Options of `Execution`. All work is done in this process.

    Returns
    -------
    AssignmentReport
        Partition sizes and warnings.

    Raises
    ------
    Conflict
        ``out`` is not empty, or an interrupted run cannot be resumed with these options.
    InvalidRequest
        An option is invalid, or the space has no nodes.
    NotFound
        The version or a file of an assignment does not exist.
    NotReady
        METIS does not fit into memory.

    Examples
    --------
    >>> export.assignment(graph, "assigned", parts=4, assign="fennel", passes=5)  # doctest: +SKIP
    """
    started = time.monotonic()
    check_execution(execution)
    options = AssignmentOptions(
        method=assign if assign in METHODS else local_path("assign", assign),
        parts=parts,
        seed=seed,
        balance_ntypes=balance_ntypes,
        balance_edges=balance_edges,
        objective=objective,
        imbalance=imbalance,
        passes=passes,
    )
    layout, target = (
        make_plan(graph.schema, homogeneous=homogeneous, weight=weight),
        ExportTarget.parse(out),
    )
    parameters = json.loads(
        json.dumps(
            {
                "space": graph.space,
                **options.manifest_entry,
                "parts": parts,
                "plan": layout.to_dict(),
                "kind": "assignment",
            }
        )
    )
    with open_working_folder(
        target,
        parameters,
        overwrite=execution.get("overwrite", False),
        resume=execution.get("resume", False),
        scratch=execution.get("scratch"),
    ) as working_folder:
        if not working_folder.published:
            pinned_version = working_folder.state.get("version", version)
            if version not in (None, pinned_version):
                raise Conflict(
                    f"version={version}: the interrupted assignment reads version "
                    f"{pinned_version}; pass that version, or resume=False"
                )
            with pin_version(
                graph, pinned_version, f"assignment in {target.display_name}"
            ) as source:
                _write(
                    _begin_run(
                        source,
                        layout,
                        pinned_version,
                        options,
                        working_folder,
                        target,
                        parameters,
                        execution,
                    ),
                    options,
                    parameters,
                )
        publish(working_folder, target)
    manifest = target.manifest()
    if manifest is None:
        raise Corrupt(
            f"{target.file_path(MANIFEST)}: no such file, although it was written just now"
        )
    return AssignmentReport(
        out=target.path or target.address,
        version=manifest["version"],
        seed=seed,
        assign=str(options.method),
        nodes={label: tuple(counts) for label, counts in manifest["nodes"].items()},
        warnings=tuple(manifest["warnings"]),
        seconds=time.monotonic() - started,
    )


def _begin_run(
    graph: ScannableGraph,
    layout: ExportPlan,
    version: int | None,
    options: AssignmentOptions,
    working_folder: WorkingFolder,
    target: ExportTarget,
    parameters: Mapping[str, Any],
    execution: Execution,
) -> ExportRun:
    """Resume the interrupted assignment, or begin a new one."""
    first_version = next(
        (
            batch.version
            for kind in layout.nodes
            for batch in graph.scan_nodes(kind.name, (), version=version, rows=1)
        ),
        None,
    )
    if first_version is None:
        raise InvalidRequest(f"space {graph.space!r}: expected nodes to assign, it has none")
    digest = version_digest(graph, first_version)
    if not working_folder.resumed:
        working_folder = working_folder.begin(
            {**parameters, "version": first_version, "digest": digest}
        )
    elif working_folder.state["digest"] != digest:
        raise Conflict(
            f"version {first_version} of space {graph.space!r}: expected the content that the "
            "interrupted assignment read; pass resume=False"
        )
    return ExportRun(
        graph=graph,
        plan=layout,
        version=first_version,
        parts=options.parts,
        trainers=1,
        hops=1,
        formats=(),
        out=working_folder.out,
        address=target.address,
        scratch=working_folder.scratch,
        memory_limit_mib=memory_limit(execution),
        progress=execution.get("progress"),
    )


def _write(run: ExportRun, options: AssignmentOptions, parameters: Mapping[str, Any]) -> None:
    tables = read_ids(run)

    def assign() -> dict[str, Any]:
        owners, method = assign_owners(run, options, tables)
        fill_empty_parts(run, owners, tables, trainers=1)
        for kind, type_owners, table in zip(run.plan.nodes, owners, tables, strict=True):
            _write_type(run, kind, type_owners, table)
        with run.open_output("partition_meta.json") as file:
            file.write(partition_meta(run.parts, method))
        return {
            "nodes": {
                k.label: np.bincount(type_owners, minlength=run.parts).tolist()
                for k, type_owners in zip(run.plan.nodes, owners, strict=True)
            }
        }

    result = run.run_step("assigned", assign)
    version_fields = {"version": run.version, "digest": version_digest(run.graph, run.version)}
    run.run_step(
        "manifest",
        partial(
            _write_manifest,
            run,
            {**parameters, **version_fields, "nodes": result["nodes"], "asked": parameters},
        ),
    )


def _write_type(run: ExportRun, kind: TypePlan, owners: Owners, table: NodeIdTable) -> None:
    """Write the partition of each node, and the nodes grouped by partition."""
    with run.open_output(f"{kind.label}.txt") as file:
        for lines in assignment_lines(owners):
            file.write(lines)
    order, offsets = group_by_key(owners, run.parts)
    for name, rows, pieces in (
        (
            "members",
            len(order),
            (table.ids[order[start : start + _STEP]] for start in range(0, len(order), _STEP)),
        ),
        ("offsets", len(offsets), iter([offsets])),
    ):
        with run.open_output(f"{kind.label}.{name}.npy") as file:
            npy.write_array_header_1_0(
                file, {"descr": "<i8", "fortran_order": False, "shape": (rows,)}
            )
            for piece in pieces:
                file.write(piece.astype("<i8").tobytes())


def _write_manifest(run: ExportRun, content: Mapping[str, Any]) -> None:
    manifest = {
        **content,
        "warnings": [warning for facts in run.results.values() for warning in facts["warnings"]],
        "files": {
            path: manifest
            for facts in run.results.values()
            for path, manifest in sorted(facts["files"].items())
        },
    }
    with run.open_output(MANIFEST) as file:
        file.write(json.dumps(manifest, indent=2).encode() + b"\n")
