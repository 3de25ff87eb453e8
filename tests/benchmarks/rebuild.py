"""Benchmark of incremental builds: a full build against one after a small change.

python -m tests.benchmarks.rebuild
python -m tests.benchmarks.rebuild --nodes 4000000 --edges 16000000 --features 128 --folder
/mnt/disk"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np
from tests.kit.building import Op, blocks_of
from tests.kit.measured_build import BuildMeasurement, allocated_bytes, run

from asterism_model.schema import EdgeType, Feature, NodeType, Schema
from storaged.store import block_store
from storaged.store.block_store import BlockStore

MIB = 1 << 20
CHUNK = 1 << 17


def nodes(ids: np.ndarray, features: int, rng: np.random.Generator) -> Iterator[Op]:
    """Yield nodes with weights, and with features if there are any."""
    for low in range(0, ids.size, CHUNK):
        chunk_ids = ids[low : low + CHUNK]
        feature_arrays = (
            {"f:x": rng.random((chunk_ids.size, features), np.float32)} if features else {}
        )
        yield Op(
            kind=block_store.NODES,
            type_id=0,
            arrays={
                "ids": chunk_ids,
                "weight": rng.random(chunk_ids.size, np.float32),
                **feature_arrays,
            },
        )


def edges(
    type_id: int, first: int, count: int, ends: int, rng: np.random.Generator
) -> Iterator[Op]:
    """Yield edges with weights; ids start at ``first``."""
    for low in range(first, first + count, CHUNK):
        n = min(CHUNK, first + count - low)
        arrays = {
            "src": rng.integers(0, ends, n),
            "dst": rng.integers(0, ends, n),
            "eid": np.arange(low, low + n),
        }
        yield Op(
            kind=block_store.OUT_EDGES,
            type_id=type_id,
            arrays={**arrays, "weight": rng.random(n, np.float32)},
        )


def run_build(folder: Path, name: str, task: dict[str, object]) -> BuildMeasurement:
    """Run one build in its own folder."""
    path = folder / f"{name}.json"
    path.write_text(json.dumps({**task, "output": str(folder / name)}))
    return run(path)


def format_seconds(measured: BuildMeasurement) -> str:
    """Return seconds and core seconds as text."""
    return f"{measured.seconds:.1f} s ({measured.core_seconds:.1f} of a core)"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=4_000_000, help="of each of two types")
    parser.add_argument("--features", type=int, default=64, help="float32 of each node")
    parser.add_argument("--parts", type=int, default=4)
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()), help="on the disk to measure"
    )
    options = parser.parse_args()
    schema = Schema(
        node_types=(
            NodeType(
                name="a",
                weighted=True,
                features=(Feature(name="x", shape=(options.features,)),)
                if options.features
                else (),
            ),
        ),
        edge_types=tuple(
            EdgeType(src_type="a", relation=name, dst_type="a", weighted=True)
            for name in ("r", "s")
        ),
        parts=options.parts,
        direction="both",
    )
    rng = np.random.default_rng(1)
    changed_nodes = np.arange(0, options.nodes, options.parts)[: options.nodes // 100]
    added_edges = options.edges // 100
    initial_load = chain(
        nodes(np.arange(options.nodes), options.features, rng),
        *(edges(t, 0, options.edges, options.nodes, rng) for t in (0, 1)),
    )
    loads: dict[str, Iterator[Op]] = {
        "everything": initial_load,
        "nothing changed": iter(()),
        f"weights of {changed_nodes.size:,} nodes of one part": nodes(changed_nodes, 0, rng),
        "weights and features of these": nodes(changed_nodes, options.features, rng),
        f"{added_edges:,} more edges of one type": edges(
            1, options.edges, added_edges, options.nodes, rng
        ),
        f"{changed_nodes.size:,} nodes of one part deleted": iter(
            [Op(kind=block_store.NODE_DELETES, type_id=0, arrays={"ids": changed_nodes})]
        ),
    }
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        store = BlockStore.open(folder / "graph", schema)
        for load_id, ops in enumerate(loads.values(), 1):
            for chunk, op in enumerate(ops):
                store.write(blocks_of(schema, load_id, chunk, op))
        store.checkpoint(folder / "checkpoint")
        store.close()
        task = {
            "space_id": 1,
            "schema": schema.to_dict(),
            "parts": list(range(options.parts)),
            "checkpoint": str(folder / "checkpoint"),
        }
        first = run_build(folder, "first", {**task, "watermark": 1, "loads": [1]})
        size = allocated_bytes(folder / "first") / MIB
        print(
            f"{options.nodes:,} nodes of {options.features} features, 2 x {options.edges:,} "
            f"edges, {options.parts} parts: {format_seconds(first)}, {size:,.0f} MiB"
        )
        print(
            f"{'':36s} {'from nothing':>24s} {'over it':>24s} {'units linked, made':>20s} "
            f"{'MiB linked, made':>18s} {'disk':>11s}"
        )
        for load_id, label in list(enumerate(loads, 1))[1:]:
            changed_task = {**task, "watermark": load_id, "loads": [1, load_id]}
            from_scratch = run_build(folder, f"whole{load_id}", changed_task)
            disk_before = allocated_bytes(folder)
            incremental = run_build(
                folder, f"over{load_id}", {**changed_task, "sources": [str(folder / "first")]}
            )
            units = incremental.result["finished"]["made"]["units"]
            linked, built_units, bytes_linked, bytes_made = (
                sum(u[key] for u in units)
                for key in ("linked", "built", "bytes_linked", "bytes_built")
            )
            if (
                incremental.result["finished"]["images"]
                != from_scratch.result["finished"]["images"]
            ):
                raise SystemExit(f"{label}: the images differ")
            print(
                f"{label:36s} {format_seconds(from_scratch):>24s} "
                f"{format_seconds(incremental):>24s} {linked:13,} {built_units:6,} "
                f"{bytes_linked / MIB:11,.0f} {bytes_made / MIB:6,.0f}"
                f" {(allocated_bytes(folder) - disk_before) / MIB:+7,.0f} MiB",
                flush=True,
            )
            shutil.rmtree(folder / f"whole{load_id}")
            shutil.rmtree(folder / f"over{load_id}")


if __name__ == "__main__":
    main()
