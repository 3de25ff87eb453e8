"""DGL's own ShaDow sampler on a small graph: the node sets that it draws around one node, how often each, as JSON."""

from __future__ import annotations

import json
import sys
from collections import Counter

import dgl
import torch


def main(asked: str) -> None:
    """Draw as ``asked`` says: nodes, edges (src, dst), fanouts in hop order, the seed node, how many times."""
    given = json.loads(asked)
    dgl.seed(5)
    torch.manual_seed(5)
    src, dst = torch.tensor(given["edges"]).T
    graph = dgl.graph((src, dst), num_nodes=given["nodes"])
    sampler = dgl.dataloading.ShaDowKHopSampler(given["fanouts"][::-1])
    counts: Counter[str] = Counter()
    for _ in range(given["times"]):
        nodes, roots, sub = sampler.sample(graph, torch.tensor([given["seed"]]))
        inside = torch.isin(src, nodes) & torch.isin(dst, nodes)
        assert sub.num_edges() == int(inside.sum())
        assert nodes[0] == roots[0] == given["seed"]
        counts[",".join(map(str, sorted(nodes.tolist())))] += 1
    print(json.dumps(counts))


if __name__ == "__main__":
    main(sys.argv[1])
