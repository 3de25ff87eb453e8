"""An assignment by itself: which part each node goes to, in the files that DGL's tools and `dgl` take, and which nodes each part has."""

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

from asterism.export.assign import Owners, lines_of, meta_of
from asterism.export.execution import Execution, checked, memory_limit
from asterism.export.layout import NodeTable
from asterism.export.methods import METHODS, Assignment, Balance, owners_of
from asterism.export.nodes import read_ids
from asterism.export.plan import Kind, Plan, plan
from asterism.export.repair import fill_empty
from asterism.export.run import Run
from asterism.export.seal import MANIFEST, Target, Unfinished, publish, unfinished
from asterism.export.source import Scannable, digest_of, held
from asterism_proto.errors import Conflict, Corrupt, InvalidRequest
from graphkit.split import group

_STEP = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentReport:
    """An assignment that stands."""

    out: str | Path
    """The folder, or the address."""
    version: int
    """The version of the space whose nodes it is for."""
    seed: int
    assign: str
    nodes: Mapping[str, tuple[int, ...]]
    """Nodes in each part, by type."""
    warnings: tuple[str, ...]
    seconds: float


def assignment(
    graph: Scannable,
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
    **how: Unpack[Execution],
) -> AssignmentReport:
    """Write which part each node goes to: ``<ntype>.txt``, a part per line for the nodes by id, and ``partition_meta.json``.

    Beside these ``<ntype>.members.npy`` (int64[n]: ids, part after part) and ``<ntype>.offsets.npy`` (int64[parts + 1]: where each part's
    begin), by which `Graph.cluster_batches` takes the parts as clusters.

    Parameters
    ----------
    graph, out, parts, assign, seed, version, homogeneous, weight
        As `dgl` takes them, so that it finds nothing to repair; ``homogeneous`` names the one node type's file ``_N.txt``.
    balance_ntypes, balance_edges, objective, imbalance, passes
        Likewise.
    **how
        `Execution`, of which the work is this process's alone.

    Returns
    -------
    AssignmentReport

    Raises
    ------
    Conflict, InvalidRequest, NotFound, NotReady
        ``out`` is not empty; an option does not fit, or there are no nodes; no such version; METIS does not fit into memory.
    """
    began = time.monotonic()
    checked(how)
    asked = Assignment(
        method=assign if assign in METHODS else Path(assign),
        parts=parts,
        seed=seed,
        balance_ntypes=balance_ntypes,
        balance_edges=balance_edges,
        objective=objective,
        imbalance=imbalance,
        passes=passes,
    )
    layout, target = plan(graph.schema, homogeneous=homogeneous, weight=weight), Target.of(out)
    words = json.loads(json.dumps({"space": graph.space, **asked.described, "parts": parts, "plan": layout.to_dict(), "kind": "assignment"}))
    with unfinished(target, words, overwrite=how.get("overwrite", False), resume=how.get("resume", False), scratch=how.get("scratch")) as place:
        if not place.published:
            pinned = place.state.get("version", version)
            if version not in (None, pinned):
                raise Conflict(f"version {version}: the assignment that was cut off is of version {pinned}; ask for that one, or do not resume")
            with held(graph, pinned, f"assignment in {target.shown}") as source:
                _write(_begin(source, layout, pinned, asked, place, target, words, how), asked, words)
        publish(place, target)
    manifest = target.manifest()
    if manifest is None:
        raise Corrupt(f"{target.named(MANIFEST)}: it was written just now, and is not there")
    return AssignmentReport(
        out=target.path or target.address,
        version=manifest["version"],
        seed=seed,
        assign=str(asked.method),
        nodes={label: tuple(counts) for label, counts in manifest["nodes"].items()},
        warnings=tuple(manifest["warnings"]),
        seconds=time.monotonic() - began,
    )


def _begin(
    graph: Scannable,
    layout: Plan,
    version: int | None,
    asked: Assignment,
    place: Unfinished,
    target: Target,
    words: Mapping[str, Any],
    how: Execution,
) -> Run:
    """The assignment as it was left, or a new one."""
    pinned = next((batch.version for kind in layout.nodes for batch in graph.scan_nodes(kind.name, (), version=version, rows=1)), None)
    if pinned is None:
        raise InvalidRequest(f"space {graph.space!r} has no nodes to assign")
    digest = digest_of(graph, pinned)
    if not place.resumed:
        place = place.begin({**words, "version": pinned, "digest": digest})
    elif place.state["digest"] != digest:
        raise Conflict(f"space {graph.space!r} has another version {pinned} than when the assignment was cut off; do not resume")
    return Run(
        graph=graph,
        plan=layout,
        version=pinned,
        parts=asked.parts,
        trainers=1,
        hops=1,
        formats=(),
        out=place.out,
        address=target.address,
        scratch=place.scratch,
        memory_limit_mib=memory_limit(how),
        progress=how.get("progress"),
    )


def _write(run: Run, asked: Assignment, words: Mapping[str, Any]) -> None:
    tables = read_ids(run)

    def assign() -> dict[str, Any]:
        owners, method = owners_of(run, asked, tables)
        fill_empty(run, owners, tables, trainers=1)
        for kind, each, table in zip(run.plan.nodes, owners, tables, strict=True):
            _write_type(run, kind, each, table)
        with run.writing("partition_meta.json") as file:
            file.write(meta_of(run.parts, method))
        return {"nodes": {k.label: np.bincount(each, minlength=run.parts).tolist() for k, each in zip(run.plan.nodes, owners, strict=True)}}

    found = run.step("assigned", assign)
    of_version = {"version": run.version, "digest": digest_of(run.graph, run.version)}
    run.step("manifest", partial(_seal, run, {**words, **of_version, "nodes": found["nodes"], "asked": words}))


def _write_type(run: Run, kind: Kind, owners: Owners, table: NodeTable) -> None:
    """The part of each node, and the nodes of each part."""
    with run.writing(f"{kind.label}.txt") as file:
        for lines in lines_of(owners):
            file.write(lines)
    order, offsets = group(owners, run.parts)
    for name, rows, pieces in (
        ("members", len(order), (table.ids[order[at : at + _STEP]] for at in range(0, len(order), _STEP))),
        ("offsets", len(offsets), iter([offsets])),
    ):
        with run.writing(f"{kind.label}.{name}.npy") as file:
            npy.write_array_header_1_0(file, {"descr": "<i8", "fortran_order": False, "shape": (rows,)})
            for piece in pieces:
                file.write(piece.astype("<i8").tobytes())


def _seal(run: Run, content: Mapping[str, Any]) -> None:
    told = {
        **content,
        "warnings": [warning for facts in run.done.values() for warning in facts["warnings"]],
        "files": {path: told for facts in run.done.values() for path, told in sorted(facts["files"].items())},
    }
    with run.writing(MANIFEST) as file:
        file.write(json.dumps(told, indent=2).encode() + b"\n")
