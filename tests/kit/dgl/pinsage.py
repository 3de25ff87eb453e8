"""Visit counts of items by DGL's PinSAGE sampler.

Usage: pinsage.py BOUGHT.npz USERS ITEMS ROUNDS WALKS OUT.npy
"""

from __future__ import annotations

import sys

import numpy as np
import torch
from dgl_shim import dgl


def main(pairs_path: str, users: int, items: int, repeat_count: int, walks: int, out: str) -> None:
    """Sum the visits of ``repeat_count`` rounds, for two kinds of walks."""
    pairs = np.load(pairs_path)
    ends = {"user": torch.from_numpy(pairs["users"]), "item": torch.from_numpy(pairs["items"])}
    graph = dgl.heterograph(
        {
            ("user", "buys", "item"): (ends["user"], ends["item"]),
            ("item", "bought", "user"): (ends["item"], ends["user"]),
        },
        num_nodes_dict={"user": users, "item": items},
    )
    torch.manual_seed(1)
    dgl.seed(1)
    visits = np.zeros((2, items - 1, items), np.int64)
    for index, (traversals, termination) in enumerate(((2, 0.5), (4, 0.25))):
        sampler = dgl.sampling.PinSAGESampler(
            graph, "item", "user", traversals, termination, walks, items
        )
        for _ in range(repeat_count):
            sampled = sampler(torch.arange(items - 1))
            neighbors, seeds = sampled.all_edges(form="uv")
            np.add.at(
                visits[index], (seeds.numpy(), neighbors.numpy()), sampled.edata["weights"].numpy()
            )
    np.save(out, visits)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:6]), sys.argv[6])
