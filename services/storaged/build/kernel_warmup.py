"""Kernel compilation for builds: build and audit a graph of a few rows in a temporary folder."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_model.schema import EdgeType, Feature, NodeType, Schema
from storaged.build.__main__ import build
from storaged.build.build_task import BuildTask
from storaged.build.progress import ProgressReporter
from storaged.store import block_store
from storaged.store.block_store import Block, BlockStore

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
        (block_store.EDGE_FEATURES, 1, {"eid": ids, "f:t": ids}),
    )
    return [
        Block(load_id=1, chunk=chunk, kind=kind, type_id=type_id, part=0, arrays=sections)
        for chunk, (kind, type_id, sections) in enumerate(arrays)
    ]


def compile_kernels() -> None:
    """Run the kernels of an ordinary build once, on arrays of the dtypes that loads have."""
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
        )
        build(task, ProgressReporter(io.StringIO()))
