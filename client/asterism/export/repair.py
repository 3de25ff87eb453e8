"""The repair of an assignment, so that no part misses a type that has features: DGL's servers do not start on a feature of no rows.

A node moves where another part can spare it. It is always the last of those that may (by id, of the part with the
most), so that the same input gives the same repair.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asterism.export.assign import Owners
from asterism.export.layout import NodeTable
from asterism.export.plan import Kind
from asterism.export.run import Run

_STEP = 1 << 20


def fill_empty(run: Run, owners: list[Owners], tables: list[NodeTable], *, trainers: int) -> None:
    """Give each part a node of every type, and an edge of every type with features, where there are enough; in place.

    ``owners`` are places: part * ``trainers`` + trainer.
    """
    if run.parts == 1:
        return
    for kind, each in zip(run.plan.nodes, owners, strict=True):
        for warning in fill_nodes(each, parts=run.parts, trainers=trainers, label=kind.label):
            run.warn(warning)
    lacking = _without_edges(run, owners, tables, trainers)
    if lacking:
        for warning in _fill_edges(run, owners, tables, trainers, lacking):
            run.warn(warning)


def fill_nodes(owners: Owners, *, parts: int, trainers: int = 1, label: str) -> list[str]:
    """Give each part without a node of this type one from the fullest part, in place; say what was done."""
    counts = np.zeros(parts, np.int64)
    for at in range(0, len(owners), _STEP):
        counts += np.bincount(owners[at : at + _STEP] // trainers, minlength=parts)
    if len(owners) < parts:
        return [
            f"node type {label}: {len(owners)} nodes can not give each of {parts} parts one; export fewer parts, or DGL's servers will not start"
        ] * (len(owners) > 0)
    empty = np.flatnonzero(counts == 0)
    for part in empty:
        donor = int(np.argmax(counts))
        owners[np.flatnonzero(owners // trainers == donor)[-1]] = part * trainers
        counts[donor] -= 1
        counts[part] += 1
    if not empty.size:
        return []
    return [f"node type {label}: part(s) {_some(empty)} had no node of it, so that DGL's servers would not start; one was moved into each"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Need:
    """What every part must own one of: the nodes of a type, or those with an edge of a type into them."""

    edge: int | None
    """The edge type's place in the plan; -1: of any; None: nodes."""
    members: dict[int, NDArray[np.bool_]]
    """bool [nodes], by node type's place."""
    counts: NDArray[np.int64]
    """int64 [parts]: how many of them each part owns."""

    def at(self, place: int, nodes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of some nodes of a type are among them."""
        return self.members[place][nodes] if place in self.members else np.zeros(len(nodes), np.bool_)


def _needed(run: Run, trainers: int) -> list[int]:
    """The edge types whose features a part must have rows of; the trainer of an edge is one."""
    return [place for place, kind in enumerate(run.plan.edges) if kind.columns or trainers > 1]


def _without_edges(run: Run, owners: list[Owners], tables: list[NodeTable], trainers: int) -> dict[int, NDArray[np.int64]]:
    """The parts that own no edge of a type that they should, and (-1) none at all; each scan ends once all parts have one."""
    lacking: dict[int, NDArray[np.int64]] = {}
    any_edge = np.zeros(run.parts, np.bool_)
    needed = _needed(run, trainers)
    for place in (*needed, *(place for place in range(len(run.plan.edges)) if place not in needed)):
        if place not in needed and any_edge.all():
            break
        seen = np.zeros(run.parts, np.bool_)
        kind = run.plan.edges[place]
        for batch in run.graph.scan_edges(kind.name, (), version=run.version, rows=kind.batch_rows):
            rank = tables[kind.dst].rank(batch.dst)
            seen[owners[kind.dst][rank[rank >= 0]] // trainers] = True
            if seen.all() or (place not in needed and (seen | any_edge).all()):
                break
        any_edge |= seen
        if place in needed and seen.any() and not seen.all():
            lacking[place] = np.flatnonzero(~seen)
    if any_edge.any() and not any_edge.all():
        lacking[-1] = np.flatnonzero(~any_edge)
    return lacking


def _fill_edges(run: Run, owners: list[Owners], tables: list[NodeTable], trainers: int, lacking: dict[int, NDArray[np.int64]]) -> list[str]:
    """Move nodes with edges into them to the parts that lack such; say where it was done."""
    needs = _needs(run, owners, tables, trainers)
    by_edge = {need.edge: need for need in needs if need.edge is not None}
    moved: dict[int, list[int]] = {}
    # The rarest first: they have the least choice.
    for edge in sorted(lacking, key=lambda e: (e < 0, int(by_edge[e].counts.sum()))):
        for part in lacking[edge].tolist():
            if not by_edge[edge].counts[part] and _move(by_edge[edge], needs, owners, trainers, part):
                moved.setdefault(edge, []).append(part)
    return [
        f"{'edges' if edge < 0 else f'edge type {run.plan.edges[edge].label}'}: part(s) {_some(np.array(parts))} owned none, "
        "so that DGL's servers would not start; a node with such edges was moved into each"
        for edge, parts in moved.items()
    ]


def _needs(run: Run, owners: list[Owners], tables: list[NodeTable], trainers: int) -> list[_Need]:
    found = [
        _Need(edge=None, members={place: np.ones(len(each), np.bool_)}, counts=np.bincount(each // trainers, minlength=run.parts))
        for place, each in enumerate(owners)
    ]
    any_edge: dict[int, NDArray[np.bool_]] = {}
    by_edge: list[tuple[int, dict[int, NDArray[np.bool_]]]] = []
    for place, kind in enumerate(run.plan.edges):
        mask = _reached(run, kind, tables)
        any_edge[kind.dst] = any_edge[kind.dst] | mask if kind.dst in any_edge else mask
        if place in _needed(run, trainers):
            by_edge.append((place, {kind.dst: mask}))
    for edge, members in (*by_edge, (-1, any_edge)):
        counts = np.zeros(run.parts, np.int64)
        for place, mask in members.items():
            counts += np.bincount(owners[place][mask] // trainers, minlength=run.parts)
        found.append(_Need(edge=edge, members=members, counts=counts))
    return found


def _reached(run: Run, kind: Kind, tables: list[NodeTable]) -> NDArray[np.bool_]:
    """bool [nodes]: which nodes of its destinations' type an edge type leads to."""
    mask = np.zeros(len(tables[kind.dst]), np.bool_)
    for batch in run.graph.scan_edges(kind.name, (), version=run.version, rows=kind.batch_rows):
        rank = tables[kind.dst].rank(batch.dst)
        mask[rank[rank >= 0]] = True
    return mask


def _move(need: _Need, needs: list[_Need], owners: list[Owners], trainers: int, part: int) -> bool:
    """Move one of ``need`` to a part, such that no other part loses the last of anything; whether there was one."""
    best: tuple[int, int, int] | None = None
    for place, mask in need.members.items():
        nodes = np.flatnonzero(mask)
        donors = owners[place][nodes] // trainers
        free = np.ones(len(nodes), np.bool_)
        for other in needs:
            free &= ~other.at(place, nodes) | (other.counts[donors] >= 2)
        if free.any():
            held = np.where(free, need.counts[donors], -1)
            at = len(held) - 1 - int(np.argmax(held[::-1]))
            best = max(best, (int(held[at]), place, int(nodes[at]))) if best else (int(held[at]), place, int(nodes[at]))
    if best is None:
        return False
    _, place, node = best
    donor = int(owners[place][node]) // trainers
    for other in needs:
        if other.at(place, np.array([node]))[0]:
            other.counts[donor] -= 1
            other.counts[part] += 1
    owners[place][node] = part * trainers
    return True


def _some(parts: NDArray[np.int64]) -> str:
    return ", ".join(map(str, parts[:8])) + (", ..." if parts.size > 8 else "")
