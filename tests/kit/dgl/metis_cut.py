"""Cut graphs with DGL's METIS: metis_cut.py PARTS INPUT_FOLDER...

Prints the number of edges between partitions of each graph as a JSON list.

An input is src.npy, dst.npy and nodes.npy, the number of nodes.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys

import numpy as np
import torch
from dgl_shim import dgl


def main(parts: str, *folders: str) -> None:
    cut_sizes = []
    for folder in folders:
        src, dst, nodes = (
            torch.from_numpy(np.load(f"{folder}/{name}.npy")) for name in ("src", "dst", "nodes")
        )
        graph = dgl.graph((src, dst), num_nodes=int(nodes))
        with open(os.devnull, "w") as null, contextlib.redirect_stdout(null):
            owners = dgl.metis_partition_assignment(graph, int(parts))
        cut_sizes.append(int((owners[src] != owners[dst]).sum()))
    print(json.dumps(cut_sizes))


if __name__ == "__main__":
    main(*sys.argv[1:])
