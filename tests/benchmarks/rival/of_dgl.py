"""DGL on the CPU with one thread, on the reversed graph.

DGL samples the edges that lead to a node.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from answering import TOGETHER, Graph, answer, real

sys.path.append(str(Path(__file__).parents[2] / "kit" / "dgl"))
from dgl_shim import dgl


def main(folder: str) -> None:
    torch.set_num_threads(1)
    graph = Graph.at(folder)
    src, dst, weights, starts, seeds = (
        torch.from_numpy(graph.column(name))
        for name in ("src", "dst", "weights", "starts", "seeds")
    )
    node_weights = torch.from_numpy(graph.column("node_weights"))
    in_graph = dgl.graph((dst, src), num_nodes=graph.nodes)
    in_graph.edata["w"] = weights
    in_graph = in_graph.formats(["csc"])
    out_graph = dgl.graph((src, dst), num_nodes=graph.nodes)
    out_graph.edata["w"] = weights
    out_graph = out_graph.formats(["csr"])
    in_graph.create_formats_()
    out_graph.create_formats_()
    del src, dst
    walkers = starts[: graph.walkers]
    uniform = dgl.dataloading.NeighborSampler(graph.fanouts[::-1], replace=False)
    weighted = dgl.dataloading.NeighborSampler(graph.fanouts[::-1], replace=False, prob="w")

    def batch(sampler: Any, seed: int) -> Any:
        return sampler.sample_blocks(in_graph, seeds[seed % len(seeds)])[2]

    def batch_group(sampler: Any, seed: int) -> list[Any]:
        return [batch(sampler, own) for own in range(seed * TOGETHER, (seed + 1) * TOGETHER)]

    def edges(blocks: Any) -> int:
        return sum(block.num_edges() for block in blocks)

    def sample_neighbors(prob: str | None) -> Any:
        return dgl.sampling.sample_neighbors(in_graph, starts, graph.width, prob=prob, replace=True)

    def steps(walks: Any) -> int:
        return real((walks[0] if isinstance(walks, tuple) else walks).numpy())

    answer(
        f"DGL {dgl.__version__}",
        {
            "nodes by weight": (
                lambda _: torch.multinomial(node_weights, graph.draws, replacement=True),
                len,
            ),
            "neighbors by weight": (
                lambda _: sample_neighbors("w"),
                lambda found: int(found.num_edges()),
            ),
            "neighbors uniformly": (
                lambda _: sample_neighbors(None),
                lambda found: int(found.num_edges()),
            ),
            "walks by weight": (
                lambda _: dgl.sampling.random_walk(
                    out_graph, walkers, length=graph.length, prob="w"
                ),
                steps,
            ),
            "walks uniformly": (
                lambda _: dgl.sampling.random_walk(out_graph, walkers, length=graph.length),
                steps,
            ),
            "node2vec by weight": (
                lambda _: dgl.sampling.node2vec_random_walk(
                    out_graph, walkers, graph.p, graph.q, walk_length=graph.length, prob="w"
                ),
                steps,
            ),
            "subgraph by weight": (lambda seed: batch(weighted, seed), edges),
            "subgraph uniformly": (lambda seed: batch(uniform, seed), edges),
            "subgraphs by weight": (
                lambda seed: batch_group(weighted, seed),
                lambda found: sum(map(edges, found)),
            ),
            "subgraphs uniformly": (
                lambda seed: batch_group(uniform, seed),
                lambda found: sum(map(edges, found)),
            ),
        },
    )


if __name__ == "__main__":
    main(sys.argv[1])
