"""Builds a graph, changes a little of it, and prints what building again takes: from nothing, and over the build before.

python -m tests.benchmarks.rebuild
python -m tests.benchmarks.rebuild --nodes 4000000 --edges 16000000 --features 128 --folder /mnt/disk
"""

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
from tests.kit.measured_build import Ran, allocated, run

from asterism_proto.schema import EdgeType, Feature, NodeType, Schema
from storaged.store import graph
from storaged.store.graph import GraphStore

MIB = 1 << 20
CHUNK = 1 << 17


def nodes(ids: np.ndarray, features: int, rng: np.random.Generator) -> Iterator[Op]:
    """Nodes with weights, and with features if there are any."""
    for low in range(0, ids.size, CHUNK):
        here = ids[low : low + CHUNK]
        given = {"f:x": rng.random((here.size, features), np.float32)} if features else {}
        yield Op(kind=graph.NODES, type_id=0, arrays={"ids": here, "weight": rng.random(here.size, np.float32), **given})


def edges(type_id: int, first: int, count: int, ends: int, rng: np.random.Generator) -> Iterator[Op]:
    """Edges with weights, ids from ``first`` on."""
    for low in range(first, first + count, CHUNK):
        n = min(CHUNK, first + count - low)
        arrays = {"src": rng.integers(0, ends, n), "dst": rng.integers(0, ends, n), "eid": np.arange(low, low + n)}
        yield Op(kind=graph.OUT_EDGES, type_id=type_id, arrays={**arrays, "weight": rng.random(n, np.float32)})


def built(folder: Path, name: str, task: dict[str, object]) -> Ran:
    """One build, in a folder of its own."""
    path = folder / f"{name}.json"
    path.write_text(json.dumps({**task, "output": str(folder / name)}))
    return run(path)


def took(ran: Ran) -> str:
    """Seconds, and those of a core."""
    return f"{ran.seconds:.1f} s ({ran.core_seconds:.1f} of a core)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=4_000_000, help="of each of two types")
    parser.add_argument("--features", type=int, default=64, help="float32 of each node")
    parser.add_argument("--parts", type=int, default=4)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="on the disk to measure")
    given = parser.parse_args()
    schema = Schema(
        node_types=(NodeType(name="a", weighted=True, features=(Feature(name="x", shape=(given.features,)),) if given.features else ()),),
        edge_types=tuple(EdgeType(src_type="a", relation=name, dst_type="a", weighted=True) for name in ("r", "s")),
        parts=given.parts,
        direction="both",
    )
    rng = np.random.default_rng(1)
    few = np.arange(0, given.nodes, given.parts)[: given.nodes // 100]
    more = given.edges // 100
    everything = chain(nodes(np.arange(given.nodes), given.features, rng), *(edges(t, 0, given.edges, given.nodes, rng) for t in (0, 1)))
    loads: dict[str, Iterator[Op]] = {
        "everything": everything,
        "nothing changed": iter(()),
        f"weights of {few.size:,} nodes of one part": nodes(few, 0, rng),
        "weights and features of these": nodes(few, given.features, rng),
        f"{more:,} more edges of one type": edges(1, given.edges, more, given.nodes, rng),
        f"{few.size:,} nodes of one part deleted": iter([Op(kind=graph.NODE_DELETES, type_id=0, arrays={"ids": few})]),
    }
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        store = GraphStore.open(folder / "graph", schema)
        for load_id, ops in enumerate(loads.values(), 1):
            for chunk, op in enumerate(ops):
                store.write(blocks_of(schema, load_id, chunk, op))
        store.checkpoint(folder / "checkpoint")
        store.close()
        task = {"space_id": 1, "schema": schema.to_dict(), "parts": list(range(given.parts)), "checkpoint": str(folder / "checkpoint")}
        first = built(folder, "first", {**task, "cut": 1, "loads": [1]})
        size = allocated(folder / "first") / MIB
        print(f"{given.nodes:,} nodes of {given.features} features, 2 x {given.edges:,} edges, {given.parts} parts: {took(first)}, {size:,.0f} MiB")
        print(f"{'':36s} {'from nothing':>24s} {'over it':>24s} {'units linked, made':>20s} {'MiB linked, made':>18s} {'disk':>11s}")
        for load_id, what in list(enumerate(loads, 1))[1:]:
            changed = {**task, "cut": load_id, "loads": [1, load_id]}
            whole = built(folder, f"whole{load_id}", changed)
            before = allocated(folder)
            over = built(folder, f"over{load_id}", {**changed, "sources": [str(folder / "first")]})
            units = over.result["finished"]["made"]["units"]
            linked, made, bytes_linked, bytes_made = (sum(u[key] for u in units) for key in ("linked", "built", "bytes_linked", "bytes_built"))
            if over.result["finished"]["images"] != whole.result["finished"]["images"]:
                raise SystemExit(f"{what}: the images differ")
            print(
                f"{what:36s} {took(whole):>24s} {took(over):>24s} {linked:13,} {made:6,} {bytes_linked / MIB:11,.0f} {bytes_made / MIB:6,.0f}"
                f" {(allocated(folder) - before) / MIB:+7,.0f} MiB",
                flush=True,
            )
            shutil.rmtree(folder / f"whole{load_id}")
            shutil.rmtree(folder / f"over{load_id}")


if __name__ == "__main__":
    main()
