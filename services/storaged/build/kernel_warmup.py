"""Kernel compilation for builds: build and audit a graph of a few rows in a temporary folder."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.arrays import fdlibm
from asterism_graphkit.compile.jit import as_kernel_array
from asterism_model.indexes import Index
from asterism_model.schema import EdgeType, Feature, NodeType, Schema
from storaged.build.__main__ import build
from storaged.build.build_task import BuildTask, PartResult
from storaged.build.progress import ProgressReporter
from storaged.build.time_index import merge_slots
from storaged.store import block_store
from storaged.store.block_store import Block, BlockStore
from storaged.version_tasks.audit import audit
from storaged.version_tasks.version_task import VersionTask

_SCHEMA = Schema(
    node_types=(
        NodeType(
            name="dense",
            weighted=True,
            features=(Feature(name="x", shape=(2,)), Feature(name="text", kind="bytes")),
        ),
        NodeType(name="sparse", weighted=True),
    ),
    edge_types=(
        EdgeType(src_type="dense", relation="r", dst_type="dense", weighted=True),
        EdgeType(
            src_type="sparse",
            relation="r",
            dst_type="dense",
            weighted=True,
            features=(Feature(name="t", dtype="int64"),),
            time="t",
        ),
        EdgeType(src_type="dense", relation="equal", dst_type="dense", weighted=True),
    ),
    parts=1,
    direction="both",
)


def _blocks() -> list[Block]:
    """Return the blocks of a load of a few weighted nodes and edges of each type."""
    ids = np.arange(8, dtype=np.int64)
    weights = np.linspace(1, 2, ids.size, dtype=np.float32)
    edges: dict[str, NDArray[Any]] = {"dst": ids[::-1].copy(), "eid": ids, "weight": weights}
    plain: dict[str, NDArray[Any]] = {"src": ids, **edges}
    equal = {**plain, "weight": np.ones_like(weights)}  # without alias tables
    deleted = {name: plain[name][:1] for name in ("src", "dst", "eid")}
    timed: dict[str, NDArray[Any]] = {"src": ids << 40, **edges, "w:t": ids}
    arrays: tuple[tuple[int, int, dict[str, NDArray[Any]]], ...] = (
        (
            block_store.NODES,
            0,
            {
                "ids": ids,
                "weight": weights,
                "f:x": np.ones((ids.size, 2), np.float32),
                "f:text.indptr": np.arange(ids.size + 1, dtype=np.int64),
                "f:text.values": np.zeros(ids.size, np.uint8),
            },
        ),
        (block_store.NODES, 1, {"ids": ids << 40, "weight": weights}),
        (block_store.OUT_EDGES, 0, plain),
        (block_store.IN_EDGES, 0, plain),
        (block_store.OUT_EDGES, 1, timed),
        (block_store.IN_EDGES, 1, timed),
        (block_store.OUT_EDGES, 2, equal),
        (block_store.IN_EDGES, 2, equal),
        (block_store.OUT_EDGE_DELETES, 2, deleted),
        (block_store.IN_EDGE_DELETES, 2, deleted),
        (block_store.EDGE_FEATURES, 1, {"eid": ids, "f:t": ids}),
    )
    return [
        Block(load_id=1, chunk=chunk, kind=kind, type_id=type_id, part=0, arrays=sections)
        for chunk, (kind, type_id, sections) in enumerate(arrays)
    ]


def compile_kernels() -> None:
    """Run the kernels of an ordinary build and its audit once, on the dtypes that loads have."""
    with tempfile.TemporaryDirectory(prefix="asterism-kernels-") as name:
        folder = Path(name)
        store = BlockStore.open(folder / "graph", _SCHEMA)
        store.write(_blocks())
        store.checkpoint(folder / "checkpoint")
        store.close()
        task = BuildTask(
            space_id=1,
            schema=_SCHEMA,
            parts=(0,),
            watermark=1,
            loads=(1,),
            checkpoint=folder / "checkpoint",
            output=folder / "out",
            indexes=(Index(element=2, type_id=0, column="weight", kind="range"),),
        )
        results = build(task, ProgressReporter(io.StringIO()))
        audit(_audit_task(task, results), ProgressReporter(io.StringIO()))
    _sort_heavy_rows()
    _compute_weights()


def _sort_heavy_rows() -> None:
    """Compile the kernel that sorts rows too large for the memory of a build by time."""
    keys, order = np.arange(4, dtype=np.int64), np.arange(4, dtype=np.uint32)
    merge_slots(
        as_kernel_array(keys),
        as_kernel_array(order),
        np.int64(0),
        np.int64(2),
        np.int64(4),
        np.empty_like(order),
    )


def _compute_weights() -> None:
    """Compile the functions of weights by expression."""
    ones = np.ones(2)
    for function in (fdlibm.log_array, fdlibm.log1p_array, fdlibm.exp_array):
        function(as_kernel_array(ones), np.empty(2))
    fdlibm.power_array(as_kernel_array(ones), as_kernel_array(ones), np.empty(2))


def _audit_task(task: BuildTask, results: Sequence[PartResult]) -> VersionTask:
    """Return the task that audits the result of a build."""
    return VersionTask(
        kind="audit",
        space="kernels",
        space_id=task.space_id,
        job_id=1,
        host="",
        schema=task.schema,
        parts=task.parts,
        version=1,
        watermark=task.watermark,
        digest="",
        images={result.part: result.digest for result in results},
        totals=tuple(total for result in results for total in result.totals),
        build=task.output,
        output="",
        address="",
        remote_timeout_s=0.0,
        options={},
    )
