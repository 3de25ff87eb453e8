"""Frequencies of the node sets that DGL's ShaDow sampler returns around one node, as JSON."""

from __future__ import annotations

import json
import sys
from collections import Counter

import dgl
import torch


def main(request_text: str) -> None:
    """Sample as described by ``request_text``.

    It has nodes, edges (src, dst), fanouts in hop order, the seed node, and the number of
    repetitions.
    """
    request = json.loads(request_text)
    dgl.seed(5)
    torch.manual_seed(5)
    src, dst = torch.tensor(request["edges"]).T
    graph = dgl.graph((src, dst), num_nodes=request["nodes"])
    sampler = dgl.dataloading.ShaDowKHopSampler(request["fanouts"][::-1])
    counts: Counter[str] = Counter()
    for _ in range(request["times"]):
        nodes, roots, subgraph = sampler.sample(graph, torch.tensor([request["seed"]]))
        is_inside = torch.isin(src, nodes) & torch.isin(dst, nodes)
        assert subgraph.num_edges() == int(is_inside.sum())
        assert nodes[0] == roots[0] == request["seed"]
        counts[",".join(map(str, sorted(nodes.tolist())))] += 1
    print(json.dumps(counts))


if __name__ == "__main__":
    main(sys.argv[1])
