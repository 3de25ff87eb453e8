"""The methods of assigning nodes to parts: what a caller may ask for, and how each runs over a graph."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.export import adjacency, assign, coarsening, metis, streaming
from asterism.export.layout import NodeTable
from asterism.export.pairs import Pairs, firsts_of, read_pairs
from asterism.export.plan import Kind
from asterism.export.run import Meter, Run
from asterism.export.source import Array
from asterism_proto.errors import InvalidRequest, NotReady
from asterism_proto.memory import available_bytes

log = logging.getLogger("asterism.export")

METHODS = ("random", "hash", "metis", *streaming.METHODS)
MAX_PARTS = 1 << 15
MAX_CLASSES = 256
_STEP = 1 << 20

Balance = bool | Mapping[str, "str | Array"]
"""Whether each node type is balanced by itself; or, by node type, a feature (or an array, nodes by id) whose values are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """Which node goes to which part: the words of a caller, checked."""

    method: str | Path = "random"
    """One of METHODS, or a folder that says it."""
    parts: int
    trainers: int = 1
    """How many parts of parts there are to each: trainers per machine."""
    seed: int = 0
    balance_ntypes: Balance = True
    balance_edges: bool = False
    objective: str = "cut"
    imbalance: float = 0.03
    passes: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.parts <= MAX_PARTS:
            raise InvalidRequest(f"parts {self.parts}: expected 1 to {MAX_PARTS}")
        if self.trainers < 1 or self.places > MAX_PARTS:
            raise InvalidRequest(f"num_trainers_per_machine {self.trainers}: expected 1 to {MAX_PARTS // self.parts} for {self.parts} parts")
        if self.method not in METHODS and not Path(self.method).is_dir():
            raise InvalidRequest(f"assign {str(self.method)!r}: expected {', '.join(METHODS)}, or a folder of assignments")
        if self.objective not in metis.OBJECTIVES:
            raise InvalidRequest(f"objective {self.objective!r}: expected cut or vol")
        if not 0.001 <= self.imbalance <= 1:
            raise InvalidRequest(f"imbalance {self.imbalance}: expected 0.001 to 1, the share by which a part may be larger than the others")
        if not 1 <= self.passes <= 100:
            raise InvalidRequest(f"passes {self.passes}: expected 1 to 100")

    @property
    def places(self) -> int:
        """Parts of parts, of all parts."""
        return self.parts * self.trainers

    @property
    def described(self) -> dict[str, Any]:
        """What a manifest says of it."""
        balance = self.balance_ntypes
        return {
            "assign": str(self.method),
            "seed": self.seed,
            "num_trainers_per_machine": self.trainers,
            "balance_ntypes": balance if isinstance(balance, bool) else {t: v if isinstance(v, str) else _digest(v) for t, v in balance.items()},
            "balance_edges": self.balance_edges,
            "objective": self.objective,
            "imbalance": self.imbalance,
            "passes": self.passes,
        }


def _digest(values: Array) -> str:
    """What tells given values from others, in a manifest."""
    return f"sha256 {hashlib.sha256(np.ascontiguousarray(values).data).hexdigest()[:16]} of {values.dtype} {list(values.shape)}"


def owners_of(run: Run, asked: Assignment, tables: list[NodeTable]) -> tuple[list[assign.Owners], str]:
    """The place (part * trainers + trainer) of each node, by type and rank, and DGL's word for the method."""
    if asked.method in ("metis", *streaming.METHODS):
        firsts = firsts_of(tables)
        classes = _classes(run, asked.balance_ntypes, tables)
        if asked.places == 1:
            return [run.blank(len(table), np.int32) for table in tables], str(asked.method)
        pairs = read_pairs(run, tables)
        numbered = _by_metis(run, asked, pairs, classes) if asked.method == "metis" else _by_stream(run, asked, pairs, classes, tables)
        return [numbered[a:b].copy() for a, b in pairwise(firsts.tolist())], str(asked.method)
    if asked.method in ("random", "hash"):
        return [_by_hash(run, asked, kind, table) for kind, table in zip(run.plan.nodes, tables, strict=True)], str(asked.method)
    counts = [len(table) for table in tables]
    found, made_for, algorithm = assign.from_folder(Path(asked.method), run.plan.nodes, counts, parts={asked.parts, asked.places})
    if made_for != asked.places:
        # The trainer within the part that the folder gives is left to chance.
        for i, (kind, table) in enumerate(zip(run.plan.nodes, tables, strict=True)):
            trainer = assign.random(table.ids, parts=asked.trainers, seed=asked.seed, type_id=kind.type_id)
            found[i] = found[i] * np.int32(asked.trainers) + trainer
    return found, algorithm


def _by_hash(run: Run, asked: Assignment, kind: Kind, table: NodeTable) -> assign.Owners:
    owners = run.blank(len(table), np.int32)
    for at in range(0, len(table), _STEP):
        ids = table.ids[at : at + _STEP]
        owners[at : at + _STEP] = (
            assign.hashed(ids, parts=asked.places)
            if asked.method == "hash"
            else assign.random(ids, parts=asked.places, seed=asked.seed, type_id=kind.type_id)
        )
    return owners


def _by_metis(run: Run, asked: Assignment, pairs: Pairs, classes: NDArray[np.uint8]) -> NDArray[np.int32]:
    """METIS over all types at once."""
    constraints = _constraints(classes, pairs.in_degrees if asked.balance_edges else None)
    nodes, edges, columns = pairs.nodes, len(pairs), constraints.shape[1]
    # Volumes are not those of a coarser graph: for them METIS sees the whole.
    large = asked.objective == "cut" and nodes > coarsening.FEW_NODES
    few = coarsening.FEW_NODES if large else nodes
    first = coarsening.need_bytes(nodes, edges, columns) if large else 0
    most = max(first, adjacency.need_bytes(few, edges) + metis.need_bytes(few, 2 * edges, columns, asked.places, asked.objective))
    told = f"{nodes} nodes and {edges} edges"
    _room(first if large else most, told)
    log.info("METIS takes up to %.1f GiB for %s", most / 2**30, told)
    meter = Meter(run, f"METIS, up to {most / 2**30:.1f} GiB", nodes)
    levels = coarsening.Levels(
        adjacency.adjacency(pairs.pieces(), pairs.degrees), constraints, parts=asked.places, seed=asked.seed, scratch=run.scratch
    )
    del constraints
    pairs.spool.drop()
    if large:
        levels.coarsen(few)
        entries = len(levels.graph.neighbors)
        _room(metis.need_bytes(len(levels.graph), entries, columns, asked.places), f"{told} ({entries // 2} between coarse nodes)")
    found, warnings = metis.partition(
        levels.graph, asked.places, constraints=levels.columns, seed=asked.seed, objective=asked.objective, imbalance=asked.imbalance
    )
    found = levels.refined(found, asked.imbalance)
    meter.add(nodes)
    for warning in warnings:
        run.warn(warning)
    return found


def _room(need: int, told: str) -> None:
    """Refuse what does not fit into memory, before it is tried."""
    free = available_bytes()
    if free is not None and need > free:
        raise NotReady(
            f"METIS takes up to {need / 2**30:.1f} GiB for {told}, of which {free / 2**30:.1f} GiB are to be had; "
            "use assign='fennel', which takes some bytes per node, or more memory"
        )


def _constraints(classes: NDArray[np.uint8], in_degrees: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """A column for each class, and one for the in-degrees of each; none without a sum."""
    held = np.flatnonzero(np.bincount(classes))
    columns = [(classes == c).astype(np.int64) for c in held]
    if in_degrees is not None:
        columns += [each for c in held if (each := np.where(classes == c, in_degrees, 0)).any()]
    if len(columns) > metis.MAX_CONSTRAINTS:
        raise InvalidRequest(f"METIS would have {len(columns)} columns to balance; expected at most {metis.MAX_CONSTRAINTS}: balance fewer values")
    return np.stack(columns, axis=1)


def _by_stream(run: Run, asked: Assignment, pairs: Pairs, classes: NDArray[np.uint8], tables: list[NodeTable]) -> NDArray[np.int32]:
    meter = Meter(run, str(asked.method), pairs.nodes * asked.passes)
    found = streaming.partition(
        pairs,
        np.array([len(table) for table in tables], np.int64),
        parts=asked.places,
        groups=asked.parts,
        method=str(asked.method),
        demands=streaming.Demands(classes=classes, edges=asked.balance_edges, imbalance=asked.imbalance),
        seed=asked.seed,
        passes=asked.passes,
        scratch=run.scratch,
        tell=meter.add,
        stretch_entries=min(streaming.STRETCH_ENTRIES, max(1 << 16, run.memory // 32)),
    )
    pairs.spool.drop()
    return found


def _classes(run: Run, balance: Balance, tables: list[NodeTable]) -> NDArray[np.uint8]:
    """uint8 [n]: the class of each node, all of which are balanced by themselves."""
    firsts = firsts_of(tables)
    found = np.zeros(int(firsts[-1]), np.uint8)
    if balance is False:
        return found
    by_value = {} if balance is True else dict(balance)
    used = 0
    for i, (kind, table) in enumerate(zip(run.plan.nodes, tables, strict=True)):
        what = by_value.pop(kind.name, by_value.pop(kind.label, None))
        values = np.zeros(len(table), np.int64) if what is None else _values(run, i, what, table)
        distinct, place = np.unique(values, return_inverse=True)
        if used + len(distinct) > MAX_CLASSES:
            raise InvalidRequest(f"balance_ntypes: {len(distinct)} different values for node type {kind.name}; expected at most {MAX_CLASSES} in all")
        found[firsts[i] : firsts[i + 1]] = used + place
        used += len(distinct)
    if by_value:
        raise InvalidRequest(f"balance_ntypes {sorted(by_value)}: expected node types, of {[kind.name for kind in run.plan.nodes]}")
    return found


def _values(run: Run, place: int, what: str | Array, table: NodeTable) -> Array:
    """A number for each node of a type, by rank: as given, or a feature."""
    kind = run.plan.nodes[place]
    if not isinstance(what, str):
        given = np.asarray(what)
        if given.shape != (len(table),) or given.dtype.kind not in "biu":
            raise InvalidRequest(
                f"balance_ntypes[{kind.name!r}]: {given.dtype} {list(given.shape)}; expected a whole number for each of {len(table)} nodes, by id"
            )
        return given
    feature = next((f for f in run.graph.schema.node_types[kind.type_id].features if f.name == what), None)
    if feature is None or feature.kind != "dense" or feature.shape or np.dtype(feature.dtype).kind not in "biu":
        raise InvalidRequest(f"balance_ntypes[{kind.name!r}]: {what!r} is no feature of one whole number; give one that is, or an array")
    values = np.zeros(len(table), np.dtype(feature.dtype))
    for batch in run.graph.scan_nodes(kind.name, [what], version=run.version, rows=kind.batch_rows):
        values[table.rank(batch.ids)] = batch.features[what]
    return values
