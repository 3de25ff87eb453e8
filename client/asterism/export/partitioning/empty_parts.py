"""Repair of assignments in which a partition has no node or edge of a type.

DGL's servers do not start on a feature without rows. A node is moved from a partition that can
spare it. Among the candidates, it is always the last node by id of the partition that has the most,
so that the same input gives the same repair.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asterism.export.export_schema import TypePlan
from asterism.export.global_ids import NodeIdTable
from asterism.export.partitioning.assignment_files import Owners
from asterism.export.run_state import ExportRun

_STEP = 1 << 20


def fill_empty_parts(
    run: ExportRun, owners: list[Owners], tables: list[NodeIdTable], *, trainers: int
) -> None:
    """Give each partition a node of every type and an edge of every type with features.

    Changes ``owners`` in place where there are enough nodes. ``owners`` are slots: partition *
    ``trainers`` + trainer.
    """
    if run.parts == 1:
        return
    for kind, type_owners in zip(run.plan.nodes, owners, strict=True):
        for warning in fill_nodes(
            type_owners, parts=run.parts, trainers=trainers, label=kind.label
        ):
            run.warn(warning)
    parts_without_edges = _parts_without_edges(run, owners, tables, trainers)
    if parts_without_edges:
        for warning in _fill_edges(run, owners, tables, trainers, parts_without_edges):
            run.warn(warning)


def fill_nodes(owners: Owners, *, parts: int, trainers: int = 1, label: str) -> list[str]:
    """Move a node from the fullest partition into each one that has no node of this type.

    Changes ``owners`` in place.

    Returns
    -------
    list of str
        Warnings about moved or missing nodes.
    """
    counts = np.zeros(parts, np.int64)
    for start in range(0, len(owners), _STEP):
        counts += np.bincount(owners[start : start + _STEP] // trainers, minlength=parts)
    if len(owners) < parts:
        return [
            (
                f"node type {label}: {len(owners)} nodes cannot give each of {parts} parts one; "
                "export fewer parts, or DGL's servers will not start"
            )
        ] * (len(owners) > 0)
    empty = np.flatnonzero(counts == 0)
    for part in empty:
        donor = int(np.argmax(counts))
        owners[np.flatnonzero(owners // trainers == donor)[-1]] = part * trainers
        counts[donor] -= 1
        counts[part] += 1
    if not empty.size:
        return []
    return [
        (
            f"node type {label}: part(s) {_format_parts(empty)} had no node of it, so that DGL's "
            "servers would not start; one was moved into each"
        )
    ]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Requirement:
    """Kind of element of which each partition must own at least one.

    It is either the nodes of a type, or the nodes that are destinations of an edge type.
    """

    edge_type: int | None
    """Index of the edge type in the plan; -1 for any edge type, None for nodes."""
    members: dict[int, NDArray[np.bool_]]
    """Eligible nodes by index of the node type; ndarray of bool, shape (nodes,)."""
    counts: NDArray[np.int64]
    """Number of eligible nodes in each partition; ndarray of int64, shape (parts,)."""

    def mask(self, node_type: int, nodes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of the given nodes of a type are eligible."""
        return (
            self.members[node_type][nodes]
            if node_type in self.members
            else np.zeros(len(nodes), np.bool_)
        )


def _needed(run: ExportRun, trainers: int) -> list[int]:
    """Return the edge types of which each partition must have feature rows.

    The trainer id of an edge is a feature, too.
    """
    return [
        type_index for type_index, kind in enumerate(run.plan.edges) if kind.columns or trainers > 1
    ]


def _parts_without_edges(
    run: ExportRun, owners: list[Owners], tables: list[NodeIdTable], trainers: int
) -> dict[int, NDArray[np.int64]]:
    """Find the partitions that own no edge of a required type, or (-1) no edge at all.

    Each scan ends once all partitions have an edge.
    """
    parts_without: dict[int, NDArray[np.int64]] = {}
    has_any_edge = np.zeros(run.parts, np.bool_)
    required_types = _needed(run, trainers)
    for type_index in (
        *required_types,
        *(
            type_index
            for type_index in range(len(run.plan.edges))
            if type_index not in required_types
        ),
    ):
        if type_index not in required_types and has_any_edge.all():
            break
        has_edge = np.zeros(run.parts, np.bool_)
        kind = run.plan.edges[type_index]
        for batch in run.graph.scan_edges(kind.name, (), version=run.version, rows=kind.batch_rows):
            rank = tables[kind.dst].rank(batch.dst)
            has_edge[owners[kind.dst][rank[rank >= 0]] // trainers] = True
            if has_edge.all() or (
                type_index not in required_types and (has_edge | has_any_edge).all()
            ):
                break
        has_any_edge |= has_edge
        if type_index in required_types and has_edge.any() and not has_edge.all():
            parts_without[type_index] = np.flatnonzero(~has_edge)
    if has_any_edge.any() and not has_any_edge.all():
        parts_without[-1] = np.flatnonzero(~has_any_edge)
    return parts_without


def _fill_edges(
    run: ExportRun,
    owners: list[Owners],
    tables: list[NodeIdTable],
    trainers: int,
    parts_without_edges: dict[int, NDArray[np.int64]],
) -> list[str]:
    """Move destination nodes to partitions that lack edges, and return warnings."""
    requirements = _needs(run, owners, tables, trainers)
    by_edge_type = {
        requirement.edge_type: requirement
        for requirement in requirements
        if requirement.edge_type is not None
    }
    filled_parts: dict[int, list[int]] = {}
    # Edge types with the fewest destinations have the least choice, so they go first.
    for edge in sorted(
        parts_without_edges, key=lambda e: (e < 0, int(by_edge_type[e].counts.sum()))
    ):
        for part in parts_without_edges[edge].tolist():
            if not by_edge_type[edge].counts[part] and _move(
                by_edge_type[edge], requirements, owners, trainers, part
            ):
                filled_parts.setdefault(edge, []).append(part)
    return [
        f"{'edges' if edge < 0 else f'edge type {run.plan.edges[edge].label}'}: part(s) "
        f"{_format_parts(np.array(parts))} owned none, "
        "so that DGL's servers would not start; a node with such edges was moved into each"
        for edge, parts in filled_parts.items()
    ]


def _needs(
    run: ExportRun, owners: list[Owners], tables: list[NodeIdTable], trainers: int
) -> list[_Requirement]:
    requirements = [
        _Requirement(
            edge_type=None,
            members={type_index: np.ones(len(each), np.bool_)},
            counts=np.bincount(each // trainers, minlength=run.parts),
        )
        for type_index, each in enumerate(owners)
    ]
    any_edge_masks: dict[int, NDArray[np.bool_]] = {}
    required_masks: list[tuple[int, dict[int, NDArray[np.bool_]]]] = []
    for type_index, kind in enumerate(run.plan.edges):
        mask = _destination_mask(run, kind, tables)
        any_edge_masks[kind.dst] = (
            any_edge_masks[kind.dst] | mask if kind.dst in any_edge_masks else mask
        )
        if type_index in _needed(run, trainers):
            required_masks.append((type_index, {kind.dst: mask}))
    for edge, members in (*required_masks, (-1, any_edge_masks)):
        counts = np.zeros(run.parts, np.int64)
        for type_index, mask in members.items():
            counts += np.bincount(owners[type_index][mask] // trainers, minlength=run.parts)
        requirements.append(_Requirement(edge_type=edge, members=members, counts=counts))
    return requirements


def _destination_mask(
    run: ExportRun, kind: TypePlan, tables: list[NodeIdTable]
) -> NDArray[np.bool_]:
    """Return which nodes are destinations of an edge type; ndarray of bool, shape (nodes,)."""
    mask = np.zeros(len(tables[kind.dst]), np.bool_)
    for batch in run.graph.scan_edges(kind.name, (), version=run.version, rows=kind.batch_rows):
        rank = tables[kind.dst].rank(batch.dst)
        mask[rank[rank >= 0]] = True
    return mask


def _move(
    requirement: _Requirement,
    requirements: list[_Requirement],
    owners: list[Owners],
    trainers: int,
    part: int,
) -> bool:
    """Move an eligible node to a partition and return True, or return False if none can move.

    No move takes the last required element from another partition.
    """
    best: tuple[int, int, int] | None = None
    for node_type, mask in requirement.members.items():
        nodes = np.flatnonzero(mask)
        donors = owners[node_type][nodes] // trainers
        movable = np.ones(len(nodes), np.bool_)
        for other in requirements:
            movable &= ~other.mask(node_type, nodes) | (other.counts[donors] >= 2)
        if movable.any():
            donor_counts = np.where(movable, requirement.counts[donors], -1)
            row = len(donor_counts) - 1 - int(np.argmax(donor_counts[::-1]))
            best = (
                max(best, (int(donor_counts[row]), node_type, int(nodes[row])))
                if best
                else (int(donor_counts[row]), node_type, int(nodes[row]))
            )
    if best is None:
        return False
    _, node_type, node = best
    donor = int(owners[node_type][node]) // trainers
    for other in requirements:
        if other.mask(node_type, np.array([node]))[0]:
            other.counts[donor] -= 1
            other.counts[part] += 1
    owners[node_type][node] = part * trainers
    return True


def _format_parts(parts: NDArray[np.int64]) -> str:
    return ", ".join(map(str, parts[:8])) + (", ..." if parts.size > 8 else "")
