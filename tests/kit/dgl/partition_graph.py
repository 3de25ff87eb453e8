"""Partition a graph with DGL's `partition_graph`, and print the time as JSON.

Usage: partition_graph.py INPUT_FOLDER OUT PARTS METHOD.

The input is src.npy, dst.npy and feat.npy. Only `partition_graph` itself is timed, with the graph
in memory."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from pathlib import Path

import numpy as np
import torch
from dgl_shim import dgl


def resident(field: str) -> int:
    """Return bytes of this process's memory: VmRSS for now, VmHWM for the peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field + ":"))


def main(folder: str, out: str, parts: str, method: str) -> None:
    src, dst, feat = (
        torch.from_numpy(np.load(f"{folder}/{name}.npy")) for name in ("src", "dst", "feat")
    )
    graph = dgl.graph((src, dst), num_nodes=len(feat))
    graph.ndata["feat"] = feat
    del src, dst, feat
    before, started = resident("VmRSS"), time.perf_counter()
    with open(os.devnull, "w") as null, contextlib.redirect_stdout(null):
        dgl.distributed.partition_graph(graph, "graph", int(parts), out, part_method=method)
    print(
        json.dumps(
            {"seconds": time.perf_counter() - started, "peak": resident("VmHWM"), "before": before}
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
