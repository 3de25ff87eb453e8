"""Loads as plain operations: stored as by graphd, applied to an oracle, built here."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.random.partition_choice import part_of
from asterism_model.indexes import Index
from asterism_model.schema import Schema
from storaged.build.__main__ import build
from storaged.build.build_task import BuildTask, PartResult
from storaged.build.completion_records import part_folder
from storaged.build.progress import ProgressReporter
from storaged.store import block_store
from storaged.store.block_store import Block, BlockStore
from storaged.store.image import PartImage, open_part


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One chunk of a load."""

    kind: int
    """NODES, OUT_EDGES, NODE_DELETES or OUT_EDGE_DELETES, as a client writes them."""
    type_id: int
    arrays: dict[str, NDArray[np.generic]]
    """Sections of the chunk.

    NODES: ids, weight?, f:x (float32 [n, 2])?, f:l (lists, as `lists`)?; OUT_EDGES: src, dst, eid,
    weight?, f:y?; deletes as in messages.
    """


def select_rows(
    arrays: dict[str, NDArray[np.generic]], mask: NDArray[np.bool_]
) -> dict[str, NDArray[np.generic]]:
    """Return the selected rows of every section, lists included."""
    rows: dict[str, NDArray[np.generic]] = {}
    for name, array in arrays.items():
        if name.endswith(".indptr"):
            lengths = np.diff(array)
            values = arrays[name[: -len("indptr")] + "values"]
            rows[name] = np.concatenate([[0], np.cumsum(lengths[mask])]).astype(np.int64)
            rows[name[: -len("indptr")] + "values"] = values[np.repeat(mask, lengths)]
        elif not name.endswith(".values"):
            rows[name] = array[mask]
    return rows


def blocks_of(schema: Schema, load_id: int, chunk: int, op: Op) -> list[Block]:
    """Return the blocks that graphd makes of a chunk: one per partition and copy."""
    blocks: list[Block] = []

    def send(
        kind: int, parts: NDArray[np.int32] | None, arrays: dict[str, NDArray[np.generic]]
    ) -> None:
        for part in range(schema.parts):
            part_arrays = arrays if parts is None else select_rows(arrays, parts == part)
            if len(next(iter(part_arrays.values()))):
                blocks.append(
                    Block(
                        load_id=load_id,
                        chunk=chunk,
                        kind=kind,
                        type_id=op.type_id,
                        part=part,
                        arrays=part_arrays,
                    )
                )

    def owner(name: str) -> NDArray[np.int32]:
        return part_of(op.arrays[name], schema.parts, schema.placement)

    if op.kind == block_store.NODES:
        send(block_store.NODES, owner("ids"), op.arrays)
        time = schema.node_types[op.type_id].time
        if time and f"f:{time}" in op.arrays:
            send(
                block_store.NODE_TIMES,
                None,
                {"ids": op.arrays["ids"], f"w:{time}": op.arrays[f"f:{time}"]},
            )
    elif op.kind == block_store.NODE_DELETES:
        send(block_store.NODE_DELETES, None, op.arrays)
    else:
        columns = {name: array for name, array in op.arrays.items() if not name.startswith("f:")}
        features = {name: array for name, array in op.arrays.items() if name.startswith("f:")}
        if op.kind == block_store.OUT_EDGES:
            near_columns = schema.edge_types[op.type_id].edge_columns
            columns |= {
                f"w:{name}": op.arrays[f"f:{name}"]
                for name in near_columns
                if f"f:{name}" in op.arrays
            }
        in_kind = (
            block_store.IN_EDGES
            if op.kind == block_store.OUT_EDGES
            else block_store.IN_EDGE_DELETES
        )
        send(op.kind, owner("src"), columns)
        if schema.has_in:
            send(in_kind, owner("dst"), columns)
        if features:
            send(
                block_store.EDGE_FEATURES,
                (op.arrays["eid"] % schema.parts).astype(np.int32),
                {"eid": op.arrays["eid"], **features},
            )
    return blocks


def write_loads(store: BlockStore, schema: Schema, loads: Sequence[Sequence[Op]]) -> list[int]:
    """Write every load, chunk by chunk; return their ids, in commit order."""
    for load_id, ops in enumerate(loads, 1):
        for chunk, op in enumerate(ops):
            store.write(blocks_of(schema, load_id, chunk, op))
        committed = range(1, load_id)
        for type_id, chunk in store.revivals(load_id, committed):
            arrays = {"ids": store.revived_ids(type_id, chunk, load_id, committed)}
            kind = block_store.NODE_REVIVALS
            store.write(
                [
                    Block(
                        load_id=load_id,
                        chunk=chunk,
                        kind=kind,
                        type_id=type_id,
                        part=part,
                        arrays=arrays,
                    )
                    for part in range(schema.parts)
                ]
            )
    return list(range(1, len(loads) + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildResult:
    """Output of a build."""

    output: Path
    results: list[PartResult]
    images: list[PartImage]

    @property
    def digests(self) -> list[str]:
        return [result.digest for result in self.results]


def run_build(
    folder: Path,
    schema: Schema,
    loads: Sequence[Sequence[Op]],
    *,
    memory_limit_mib: int = 512,
    name: str = "out",
    commit: int | None = None,
    sources: Sequence[BuildResult] = (),
    indexes: Sequence[Index] = (),
) -> BuildResult:
    """Write the loads, build every partition in this process, and open the images.

    The loads are written to a folder once; the build reads a checkpoint of it. With ``commit``,
    only the first ``commit`` loads count. Units are linked from ``sources``.
    """
    checkpoint = folder / "checkpoint"
    if not checkpoint.exists():
        store = BlockStore.open(folder / "graph", schema)
        write_loads(store, schema, loads)
        store.checkpoint(checkpoint)
        store.close()
    task = BuildTask(
        space_id=1,
        schema=schema,
        parts=tuple(range(schema.parts)),
        watermark=len(loads) if commit is None else commit,
        loads=tuple(range(1, len(loads) + 1))[:commit],
        checkpoint=checkpoint,
        output=folder / name,
        memory_limit_mib=memory_limit_mib,
        sources=tuple(source.output for source in sources),
        indexes=tuple(indexes),
    )
    results = build(task, ProgressReporter(io.StringIO()))
    return BuildResult(
        output=task.output,
        results=results,
        images=[
            open_part(part_folder(task.output, part), verify=True) for part in range(schema.parts)
        ],
    )


@dataclass(slots=True)
class Oracle:
    """Reference semantics of the operations, one row at a time."""

    schema: Schema
    nodes: list[dict[int, dict[str, object]]] = field(default_factory=list)
    edges: list[list[tuple[int, int, int, float]]] = field(default_factory=list)
    """(src, dst, eid, weight) of the edges of each type."""
    edge_features: list[dict[int, float]] = field(default_factory=list)
    deleted: list[set[int]] = field(default_factory=list)
    """Node ids of each type that were deleted and not written again."""

    @classmethod
    def from_loads(cls, schema: Schema, loads: Sequence[Sequence[Op]]) -> Oracle:
        """Return the state after ``loads``."""
        oracle = cls(
            schema,
            [{} for _ in schema.node_types],
            [[] for _ in schema.edge_types],
            [{} for _ in schema.edge_types],
            [set() for _ in schema.node_types],
        )
        for ops in loads:
            for op in ops:
                oracle.apply(op)
        return oracle

    def apply(self, op: Op) -> None:
        if op.kind == block_store.NODES:
            self._upsert_nodes(op)
        elif op.kind == block_store.NODE_DELETES:
            for node in op.arrays["ids"].tolist():
                self._delete_node(op.type_id, node)
        elif op.kind == block_store.OUT_EDGES:
            self._upsert_edges(op)
        else:
            for src, dst, eid in zip(
                *(op.arrays[name].tolist() for name in ("src", "dst", "eid")), strict=True
            ):
                unique = self.schema.edge_types[op.type_id].multiplicity == "unique"
                remaining = [
                    e
                    for e in self.edges[op.type_id]
                    if (e[0], e[1]) != (src, dst) or not (unique or eid in (-1, e[2]))
                ]
                self.edges[op.type_id] = remaining

    def live_edges(
        self, type_id: int, *, incoming: bool = False
    ) -> list[tuple[int, int, int, float]]:
        """Return live edges as (local, remote, eid, weight), in this order.

        The local end exists and the remote end is not deleted. A remote end that never existed is
        accepted: graphd checks it when the edge is written, and a partition cannot know it.
        """
        edge_type = self.schema.edge_types[type_id]
        src_type, dst_type = (
            self.schema.node_type_id(edge_type.src_type),
            self.schema.node_type_id(edge_type.dst_type),
        )
        local_type, remote_type = (dst_type, src_type) if incoming else (src_type, dst_type)
        local, remote = (1, 0) if incoming else (0, 1)
        alive = (
            e
            for e in self.edges[type_id]
            if e[local] in self.nodes[local_type] and e[remote] not in self.deleted[remote_type]
        )
        return sorted(alive, key=lambda e: (e[local], e[remote], e[2]))

    def _upsert_nodes(self, op: Op) -> None:
        for i, node in enumerate(op.arrays["ids"].tolist()):
            self.deleted[op.type_id].discard(node)
            row = self.nodes[op.type_id].setdefault(node, {"weight": 1.0, "x": (0.0, 0.0), "l": ()})
            if "weight" in op.arrays:
                row["weight"] = float(op.arrays["weight"][i])
            if "f:x" in op.arrays:
                row["x"] = tuple(op.arrays["f:x"][i].tolist())
            if "f:l.indptr" in op.arrays:
                low, high = op.arrays["f:l.indptr"][i : i + 2]
                row["l"] = tuple(op.arrays["f:l.values"][low:high].tolist())

    def _delete_node(self, type_id: int, node: int) -> None:
        self.nodes[type_id].pop(node, None)
        self.deleted[type_id].add(node)
        for e, edge_type in enumerate(self.schema.edge_types):
            if self.schema.node_type_id(edge_type.src_type) == type_id:
                self.edges[e] = [edge for edge in self.edges[e] if edge[0] != node]
            if self.schema.node_type_id(edge_type.dst_type) == type_id:
                self.edges[e] = [edge for edge in self.edges[e] if edge[1] != node]

    def _upsert_edges(self, op: Op) -> None:
        a = op.arrays
        for i, (src, dst, eid) in enumerate(
            zip(*(a[name].tolist() for name in ("src", "dst", "eid")), strict=True)
        ):
            if self.schema.edge_types[op.type_id].multiplicity == "unique":
                self.edges[op.type_id] = [
                    e for e in self.edges[op.type_id] if (e[0], e[1]) != (src, dst)
                ]
            self.edges[op.type_id].append(
                (src, dst, eid, float(a["weight"][i]) if "weight" in a else 1.0)
            )
            if "f:y" in a:
                self.edge_features[op.type_id][eid] = float(a["f:y"][i])
