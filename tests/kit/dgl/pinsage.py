"""How often DGL's PinSAGE sampler visits each item from each: python pinsage.py BOUGHT.npz USERS ITEMS ROUNDS WALKS OUT.npy"""

from __future__ import annotations

import sys

import numpy as np
import torch
from dgl_shim import dgl


def main(bought: str, users: int, items: int, rounds: int, walks: int, out: str) -> None:
    """Sum the visits of that many rounds, in two ways to walk."""
    pairs = np.load(bought)
    ends = {"user": torch.from_numpy(pairs["users"]), "item": torch.from_numpy(pairs["items"])}
    graph = dgl.heterograph(
        {("user", "buys", "item"): (ends["user"], ends["item"]), ("item", "bought", "user"): (ends["item"], ends["user"])},
        num_nodes_dict={"user": users, "item": items},
    )
    torch.manual_seed(1)
    dgl.seed(1)
    visits = np.zeros((2, items - 1, items), np.int64)
    for at, (traversals, termination) in enumerate(((2, 0.5), (4, 0.25))):
        sampler = dgl.sampling.PinSAGESampler(graph, "item", "user", traversals, termination, walks, items)
        for _ in range(rounds):
            found = sampler(torch.arange(items - 1))
            near, seeds = found.all_edges(form="uv")
            np.add.at(visits[at], (seeds.numpy(), near.numpy()), found.edata["weights"].numpy())
    np.save(out, visits)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:6]), sys.argv[6])
