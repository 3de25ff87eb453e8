"""Methods that assign nodes to partitions: their options, and how each runs over a graph."""

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

from asterism.export.export_schema import TypePlan
from asterism.export.global_ids import NodeIdTable
from asterism.export.graph_source import Array
from asterism.export.partitioning import (
    assignment_files,
    coarsening,
    hash_partitioning,
    metis,
    metis_graph,
    streaming_partitioning,
)
from asterism.export.partitioning.edge_list_file import EdgeListFile, type_offsets, write_edge_list
from asterism.export.run_state import ExportRun, ProgressMeter
from asterism_io.available_memory import available_bytes
from asterism_proto.errors import InvalidRequest, NotReady

log = logging.getLogger("asterism.export")

METHODS = ("random", "hash", "metis", *streaming_partitioning.METHODS)
MAX_PARTS = 1 << 15
MAX_CLASSES = 256
_STEP = 1 << 20

Balance = bool | Mapping[str, "str | Array"]
"""Balance setting for node types.
True balances each node type separately. A mapping from node type to a feature name, or to an array
with one value per node in the order of ids, balances the nodes of each value separately."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentOptions:
    """Validated options of an assignment."""

    method: str | Path = "random"
    """One of `METHODS`, or a folder that holds an assignment."""
    parts: int
    """Number of partitions."""
    trainers: int = 1
    """Trainers per machine: slots into which each partition is divided."""
    seed: int = 0
    """Seed of the assignment."""
    balance_ntypes: Balance = True
    """Node types or values to balance separately."""
    balance_edges: bool = False
    """Also balance the in-degrees over the partitions."""
    objective: str = "cut"
    """Quantity that METIS minimizes: ``cut`` or ``vol``."""
    imbalance: float = 0.03
    """Share by which a partition may be larger than the others."""
    passes: int = 1
    """Number of passes of a streaming partitioner over the nodes."""

    def __post_init__(self) -> None:
        if not 1 <= self.parts <= MAX_PARTS:
            raise InvalidRequest(f"parts={self.parts}: expected 1 to {MAX_PARTS}")
        if self.trainers < 1 or self.slots > MAX_PARTS:
            raise InvalidRequest(
                f"num_trainers_per_machine={self.trainers}: expected 1 to "
                f"{MAX_PARTS // self.parts} for {self.parts} parts"
            )
        if self.method not in METHODS and not Path(self.method).is_dir():
            raise InvalidRequest(
                f"assign={str(self.method)!r}: expected {', '.join(METHODS)}, or a folder of "
                "assignments"
            )
        if self.objective not in metis.OBJECTIVES:
            raise InvalidRequest(f"objective={self.objective!r}: expected 'cut' or 'vol'")
        if not 0.001 <= self.imbalance <= 1:
            raise InvalidRequest(
                f"imbalance={self.imbalance}: expected 0.001 to 1, the share by which a part "
                "may be larger than the others"
            )
        if not 1 <= self.passes <= 100:
            raise InvalidRequest(f"passes={self.passes}: expected 1 to 100")

    @property
    def slots(self) -> int:
        """Total number of slots: partitions times trainers."""
        return self.parts * self.trainers

    @property
    def manifest_entry(self) -> dict[str, Any]:
        """Options as a manifest records them."""
        balance = self.balance_ntypes
        return {
            "assign": str(self.method),
            "seed": self.seed,
            "num_trainers_per_machine": self.trainers,
            "balance_ntypes": balance
            if isinstance(balance, bool)
            else {t: v if isinstance(v, str) else _digest(v) for t, v in balance.items()},
            "balance_edges": self.balance_edges,
            "objective": self.objective,
            "imbalance": self.imbalance,
            "passes": self.passes,
        }


def _digest(values: Array) -> str:
    """Describe an array in a manifest by dtype, shape and digest."""
    return (
        f"sha256 {hashlib.sha256(np.ascontiguousarray(values).data).hexdigest()[:16]} of "
        f"{values.dtype} {list(values.shape)}"
    )


def assign_owners(
    run: ExportRun, options: AssignmentOptions, tables: list[NodeIdTable]
) -> tuple[list[assignment_files.Owners], str]:
    """Assign every node to a slot (partition * trainers + trainer).

    Returns
    -------
    owners : list of ndarray of int32
        Slot of each node, by type and rank.
    method : str
        Name of the method, as DGL's configuration records it.

    Raises
    ------
    InvalidRequest
        An option does not fit the graph.
    NotReady
        METIS does not fit into memory.
    """
    if options.method in ("metis", *streaming_partitioning.METHODS):
        firsts = type_offsets(tables)
        classes = _classes(run, options.balance_ntypes, tables)
        if options.slots == 1:
            return [run.allocate(len(table), np.int32) for table in tables], str(options.method)
        pairs = write_edge_list(run, tables)
        assigned = (
            _by_metis(run, options, pairs, classes)
            if options.method == "metis"
            else _by_stream(run, options, pairs, classes, tables)
        )
        return [assigned[a:b].copy() for a, b in pairwise(firsts.tolist())], str(options.method)
    if options.method in ("random", "hash"):
        return [
            _by_hash(run, options, kind, table)
            for kind, table in zip(run.plan.nodes, tables, strict=True)
        ], str(options.method)
    counts = [len(table) for table in tables]
    owners, num_parts, algorithm = assignment_files.read_owners(
        Path(options.method), run.plan.nodes, counts, parts={options.parts, options.slots}
    )
    if num_parts != options.slots:
        # The folder gives partitions only; trainers within a partition are chosen at random.
        for i, (kind, table) in enumerate(zip(run.plan.nodes, tables, strict=True)):
            trainer = hash_partitioning.random_owners(
                table.ids, parts=options.trainers, seed=options.seed, type_id=kind.type_id
            )
            owners[i] = owners[i] * np.int32(options.trainers) + trainer
    return owners, algorithm


def _by_hash(
    run: ExportRun, options: AssignmentOptions, kind: TypePlan, table: NodeIdTable
) -> assignment_files.Owners:
    owners = run.allocate(len(table), np.int32)
    for start in range(0, len(table), _STEP):
        ids = table.ids[start : start + _STEP]
        owners[start : start + _STEP] = (
            hash_partitioning.hashed_owners(ids, parts=options.slots)
            if options.method == "hash"
            else hash_partitioning.random_owners(
                ids, parts=options.slots, seed=options.seed, type_id=kind.type_id
            )
        )
    return owners


def _by_metis(
    run: ExportRun, options: AssignmentOptions, pairs: EdgeListFile, classes: NDArray[np.uint8]
) -> NDArray[np.int32]:
    """Partition the nodes of all types together with METIS."""
    constraints = _constraints(classes, pairs.in_degrees if options.balance_edges else None)
    nodes, edges, columns = pairs.nodes, len(pairs), constraints.shape[1]
    # Contracting nodes changes the communication volume, so METIS needs the full graph for it.
    is_coarsened = options.objective == "cut" and nodes > coarsening.COARSE_NODES
    metis_nodes = coarsening.COARSE_NODES if is_coarsened else nodes
    coarsening_bytes = coarsening.required_bytes(nodes, edges, columns) if is_coarsened else 0
    peak_bytes = max(
        coarsening_bytes,
        metis_graph.required_bytes(metis_nodes, edges)
        + metis.required_bytes(metis_nodes, 2 * edges, columns, options.slots, options.objective),
    )
    graph_size = f"{nodes} nodes and {edges} edges"
    _require_memory(coarsening_bytes if is_coarsened else peak_bytes, graph_size)
    log.info("METIS takes up to %.1f GiB for %s", peak_bytes / 2**30, graph_size)
    meter = ProgressMeter(run, f"METIS, up to {peak_bytes / 2**30:.1f} GiB", nodes)
    levels = coarsening.CoarseningLevels(
        metis_graph.build_metis_graph(pairs.pieces(), pairs.degrees),
        constraints,
        parts=options.slots,
        seed=options.seed,
        scratch=run.scratch,
    )
    del constraints
    pairs.spool.remove()
    if is_coarsened:
        levels.coarsen(metis_nodes)
        entries = len(levels.graph.neighbors)
        _require_memory(
            metis.required_bytes(len(levels.graph), entries, columns, options.slots),
            f"{graph_size} ({entries // 2} between coarse nodes)",
        )
    owners, warnings = metis.partition_graph(
        levels.graph,
        options.slots,
        constraints=levels.columns,
        seed=options.seed,
        objective=options.objective,
        imbalance=options.imbalance,
    )
    owners = levels.refine(owners, options.imbalance)
    meter.add(nodes)
    for warning in warnings:
        run.warn(warning)
    return owners


def _require_memory(required: int, graph_size: str) -> None:
    """Raise NotReady if METIS would not fit into the available memory."""
    available = available_bytes()
    if available is not None and required > available:
        raise NotReady(
            f"assign='metis': expected {required / 2**30:.1f} GiB of memory for {graph_size}, "
            f"{available / 2**30:.1f} GiB are available; "
            "use assign='fennel', which takes a few bytes per node, or add memory"
        )


def _constraints(
    classes: NDArray[np.uint8], in_degrees: NDArray[np.int64] | None
) -> NDArray[np.int64]:
    """Return the balance constraints of METIS, one column each.

    There is one column per class, and with ``in_degrees`` one more per class, unless it is all
    zero.
    """
    used_classes = np.flatnonzero(np.bincount(classes))
    columns = [(classes == c).astype(np.int64) for c in used_classes]
    if in_degrees is not None:
        columns += [
            each for c in used_classes if (each := np.where(classes == c, in_degrees, 0)).any()
        ]
    if len(columns) > metis.MAX_CONSTRAINTS:
        raise InvalidRequest(
            f"balance_ntypes and balance_edges: {len(columns)} values to balance: expected at most "
            f"{metis.MAX_CONSTRAINTS}; balance fewer values"
        )
    return np.stack(columns, axis=1)


def _by_stream(
    run: ExportRun,
    options: AssignmentOptions,
    pairs: EdgeListFile,
    classes: NDArray[np.uint8],
    tables: list[NodeIdTable],
) -> NDArray[np.int32]:
    meter = ProgressMeter(run, str(options.method), pairs.nodes * options.passes)
    owners = streaming_partitioning.partition_stream(
        pairs,
        np.array([len(table) for table in tables], np.int64),
        parts=options.slots,
        groups=options.parts,
        method=str(options.method),
        constraints=streaming_partitioning.BalanceConstraints(
            classes=classes, edges=options.balance_edges, imbalance=options.imbalance
        ),
        seed=options.seed,
        passes=options.passes,
        scratch=run.scratch,
        on_progress=meter.add,
        block_entries=min(streaming_partitioning.BLOCK_ENTRIES, max(1 << 16, run.memory // 32)),
    )
    pairs.spool.remove()
    return owners


def _classes(run: ExportRun, balance: Balance, tables: list[NodeIdTable]) -> NDArray[np.uint8]:
    """Return the class of each node; every class is balanced separately.

    Returns
    -------
    ndarray of uint8, shape (n,)
    """
    firsts = type_offsets(tables)
    classes = np.zeros(int(firsts[-1]), np.uint8)
    if balance is False:
        return classes
    balance_by_type = {} if balance is True else dict(balance)
    class_count = 0
    for i, (kind, table) in enumerate(zip(run.plan.nodes, tables, strict=True)):
        balance_by = balance_by_type.pop(kind.name, balance_by_type.pop(kind.label, None))
        values = (
            np.zeros(len(table), np.int64)
            if balance_by is None
            else _values(run, i, balance_by, table)
        )
        distinct, value_index = np.unique(values, return_inverse=True)
        if class_count + len(distinct) > MAX_CLASSES:
            raise InvalidRequest(
                f"balance_ntypes: {len(distinct)} different values for node type "
                f"{kind.name}; expected at most {MAX_CLASSES} in all"
            )
        classes[firsts[i] : firsts[i + 1]] = class_count + value_index
        class_count += len(distinct)
    if balance_by_type:
        raise InvalidRequest(
            f"balance_ntypes={sorted(balance_by_type)}: expected node types, of "
            f"{[kind.name for kind in run.plan.nodes]}"
        )
    return classes


def _values(run: ExportRun, type_index: int, balance_by: str | Array, table: NodeIdTable) -> Array:
    """Return an integer per node of a type, by rank: the given array, or a feature's values."""
    kind = run.plan.nodes[type_index]
    if not isinstance(balance_by, str):
        given_values = np.asarray(balance_by)
        if given_values.shape != (len(table),) or given_values.dtype.kind not in "biu":
            raise InvalidRequest(
                f"balance_ntypes[{kind.name!r}]: {given_values.dtype} "
                f"{list(given_values.shape)}; expected an integer for each of "
                f"{len(table)} nodes, by id"
            )
        return given_values
    feature = next(
        (f for f in run.graph.schema.node_types[kind.type_id].features if f.name == balance_by),
        None,
    )
    if (
        feature is None
        or feature.kind != "dense"
        or feature.shape
        or np.dtype(feature.dtype).kind not in "biu"
    ):
        raise InvalidRequest(
            f"balance_ntypes[{kind.name!r}]={balance_by!r}: expected a feature of one "
            "integer for each node, or an array"
        )
    values = np.zeros(len(table), np.dtype(feature.dtype))
    for batch in run.graph.scan_nodes(
        kind.name, [balance_by], version=run.version, rows=kind.batch_rows
    ):
        values[table.rank(batch.ids)] = batch.features[balance_by]
    return values
