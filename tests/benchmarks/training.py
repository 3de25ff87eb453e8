"""Benchmark of GraphSAGE steps and their wait for batches, from a cluster and from memory.

    make pyg-env dgl-env                 # the trainers, each in its own environment, if it can be
                                         installed
    python -m tests.benchmarks.training  # R-MAT of 500,000 nodes and 5M edges, 100 float32 a node;
                                         batches of 1024 seeds, [15, 10] neighbors
    python -m tests.benchmarks.training --nodes 20000 --edges 200000 --steps 5 --rounds 1    # small

Two layers of GraphSAGE, the same model for all loaders of a framework, with Adam; the loaders of a
framework take turns in one process. In memory are DGL's own DataLoader, and PyG's NeighborLoader
where its sampler is built, or else a slow sampler of the same distribution in Python, which is
named so. Threads prepare batches while one is trained on; workers are processes. The trainer and
the daemons share the machine's cores: prefetched batches shorten the wait of a step, but still use
processors. It asserts nothing."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tests.kit.cluster import LocalCluster

import asterism
from asterism.formats.rmat import rmat

ROOT = Path(__file__).resolve().parents[2]
TRAINERS = Path(__file__).with_name("trainer")
PYTHONS = {"pyg": ROOT / ".venv-pyg/bin/python", "dgl": ROOT / ".venv-dgl/bin/python"}
CHUNK, CLASSES = 1 << 18, 16


def write(folder: Path, args: argparse.Namespace) -> None:
    """Write the graph's files, for trainers in memory and for the cluster."""
    src, dst = rmat(1, 0, 0, args.edges, sources=args.nodes, targets=args.nodes)
    generator = np.random.default_rng(1)
    columns = {
        "src": src,
        "dst": dst,
        "x": generator.standard_normal((args.nodes, args.width), np.float32),
        "y": generator.integers(0, CLASSES, args.nodes),
    }
    for name, column in columns.items():
        np.save(folder / f"{name}.npy", column)


def fill(client: asterism.Client, folder: Path, args: argparse.Namespace) -> None:
    """Load and build the same graph in a space."""
    features = {"x": {"shape": [args.width]}, "y": "int64"}
    client.create_space(
        "bench",
        {
            "parts": 8,
            "direction": "both",
            "nodes": {"n": {"features": features}},
            "edges": {"n:to:n": {}},
        },
    )
    src, dst, x, y = (
        np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("src", "dst", "x", "y")
    )
    load = client.begin_load("bench", source="generated")
    chunk_index = iter(range(1 << 30))
    for start in range(0, args.nodes, CHUNK // 8):
        rows = slice(start, min(start + CHUNK // 8, args.nodes))
        load.write_nodes(
            next(chunk_index),
            "n",
            np.arange(rows.start, rows.stop),
            features={"x": np.array(x[rows]), "y": np.array(y[rows])},
        )
    for start in range(0, args.edges, CHUNK):
        load.write_edges(
            next(chunk_index),
            "to",
            np.array(src[start : start + CHUNK]),
            np.array(dst[start : start + CHUNK]),
            ends_known=True,
        )
    load.commit()
    client.graph("bench").build(timeout_s=1800)


def run_trainer(
    name: str, folder: Path, addresses: str, args: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """Yield the reports of a trainer on its loaders."""
    python_path = os.pathsep.join(map(str, (ROOT / "client", ROOT / "proto", ROOT)))
    settings = {"PYTHONPATH": python_path, "DGLBACKEND": "pytorch", "HOME": str(folder)}
    options = {
        name: getattr(args, name)
        for name in (
            "batch",
            "fanouts",
            "hidden",
            "steps",
            "rounds",
            "threads",
            "ahead",
            "workers",
            "width",
            "nodes",
        )
    }
    command_tail = [
        str(PYTHONS[name]),
        str(TRAINERS / f"of_{name}.py"),
        str(folder),
        addresses,
        json.dumps(options | {"classes": CLASSES}),
    ]
    command = ["env", *(f"{key}={value}" for key, value in settings.items()), *command_tail]
    with (
        (folder / f"{name}.log").open("w+") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            yield json.loads(line)
        if process.wait():
            log.seek(0)
            raise RuntimeError(
                f"the trainer of {name} ended with {process.returncode}:\n{log.read()[-3000:]}"
            )


def show(reports: list[dict[str, Any]], args: argparse.Namespace) -> None:
    """Print a line for each loader of a framework, the one in memory first."""
    memory_epoch = None
    for report in reports:
        wait, step = np.array(report["wait_s"]), np.array(report["step_s"])
        epoch = (wait.mean() + step.mean()) * -(-args.nodes // args.batch)
        memory_epoch = memory_epoch or epoch
        share = wait.sum() / (wait.sum() + step.sum())
        print(
            f"{report['name']:<46}{1e3 * np.median(wait):>9.1f}{1e3 * np.median(step):>9.1f}"
            f"{1e3 * (wait + step).mean():>12.1f}{share:>9.1%}"
            f"{epoch:>10.1f}{epoch / memory_epoch:>10.2f}",
            flush=True,
        )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=500_000)
    parser.add_argument("--edges", type=int, default=5_000_000)
    parser.add_argument("--width", type=int, default=100, help="float32 of a node")
    parser.add_argument("--batch", type=int, default=1024, help="seeds of a batch")
    parser.add_argument("--fanouts", type=int, nargs="+", default=[15, 10])
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--steps", type=int, default=20, help="steps in a turn")
    parser.add_argument("--rounds", type=int, default=3, help="turns that each loader has")
    parser.add_argument("--threads", type=int, default=1, help="of the model")
    parser.add_argument("--ahead", type=int, nargs="+", default=[0, 1, 2, 4])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--only", nargs="*", default=list(PYTHONS), help="which frameworks")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write(folder, args)
        (folder / "cluster").mkdir()
        with LocalCluster(storageds=3, folder=folder / "cluster", fast=False) as cluster:
            fill(cluster.client(timeout_s=120), folder, args)
            print(
                f"{args.nodes:,} nodes, {args.edges:,} edges, {args.width} float32 a node; "
                f"batches of {args.batch}, {args.fanouts} neighbors; "
                f"{args.threads} threads of the model on {os.cpu_count()} cores that daemons "
                f"share; load {os.getloadavg()[0]:.1f}"
            )
            print(
                f"{'':<46}{'wait ms':>9}{'step ms':>9}{'both, mean':>12}{'waits':>9}"
                f"{'epoch s':>10}{'of memory':>10}"
            )
            for name in args.only:
                if not PYTHONS[name].exists():
                    print(f"{name}: no environment; say `make {name}-env`")
                    continue
                show(list(run_trainer(name, folder, cluster.addresses, args)), args)


if __name__ == "__main__":
    sys.exit(main())
