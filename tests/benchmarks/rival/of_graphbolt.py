"""GraphBolt on the CPU with one thread, without data pipes, on the reversed graph.

It uses GraphBolt's graph and the steps of its neighbor sampler, which samples the edges that lead
to a node.
"""

from __future__ import annotations

import sys
from typing import Any

import dgl
import dgl.graphbolt as gb
import numpy as np
import torch
from answering import TOGETHER, Graph, answer


def main(folder: str) -> None:
    torch.set_num_threads(1)
    graph = Graph.at(folder)
    src = graph.column("src")
    order = np.argsort(src, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(src, minlength=graph.nodes))])
    sampling_graph = gb.fused_csc_sampling_graph(
        torch.from_numpy(indptr),
        torch.from_numpy(graph.column("dst")[order]),
        edge_attributes={
            "w": torch.from_numpy(graph.column("weights")[order]),
            gb.ORIGINAL_EDGE_ID: torch.from_numpy(order),
        },
    )
    del src, order, indptr
    starts, seeds = (torch.from_numpy(graph.column(name)) for name in ("starts", "seeds"))

    def sample_neighbors(weights: str | None) -> Any:
        return sampling_graph.sample_neighbors(
            starts, torch.tensor([graph.width]), replace=True, probs_name=weights
        )

    def batch(weights: str | None, seed: int) -> list[Any]:
        nodes, layers = seeds[seed % len(seeds)], []
        for fanout in graph.fanouts:
            layer = sampling_graph.sample_neighbors(
                nodes, torch.tensor([fanout]), probs_name=weights
            )
            nodes, compact = gb.unique_and_compact_csc_formats(layer.sampled_csc, nodes)
            layers.append((compact, layer.original_edge_ids))
        return layers

    def batch_group(weights: str | None, seed: int) -> list[Any]:
        return [
            layer
            for own in range(seed * TOGETHER, (seed + 1) * TOGETHER)
            for layer in batch(weights, own)
        ]

    def edges(layers: Any) -> int:
        return sum(len(compact.indices) for compact, _ in layers)

    answer(
        f"GraphBolt of DGL {dgl.__version__}",
        {
            "neighbors by weight": (
                lambda _: sample_neighbors("w"),
                lambda found: len(found.sampled_csc.indices),
            ),
            "neighbors uniformly": (
                lambda _: sample_neighbors(None),
                lambda found: len(found.sampled_csc.indices),
            ),
            "subgraph by weight": (lambda seed: batch("w", seed), edges),
            "subgraph uniformly": (lambda seed: batch(None, seed), edges),
            "subgraphs by weight": (lambda seed: batch_group("w", seed), edges),
            "subgraphs uniformly": (lambda seed: batch_group(None, seed), edges),
        },
    )


if __name__ == "__main__":
    main(sys.argv[1])
