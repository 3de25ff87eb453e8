"""Comparison of LABOR on a served graph with DGL's on the same edges; then blocks.

It compares the frequency of each edge and the number of visited nodes. Prints OK.

python labor.py ADDRESS
"""

from __future__ import annotations

import sys

import dgl
import numpy as np
import torch
from dgl import backend
from known import refused

import asterism
from asterism.dgl import LaborSampler

SIZE, COPIES, ROUNDS = 12, 250, 16
"""Nodes of a small graph; its copies; batches of all copies.

Variates belong to nodes, so that every copy is an independent trial.
"""
SEEDS = np.array([8, 9, 10, 11])
EDGES = [
    *((t, 8, w) for t, w in ((0, 1.0), (1, 2.0), (2, 3.0), (3, 4.0))),
    *((t, 9, w) for t, w in ((1, 1.0), (2, 1.0), (4, 2.0), (5, 3.0), (6, 0.5))),
    *((t, 10, w) for t, w in ((0, 2.0), (7, 5.0))),
    *(
        (t, 11, w)
        for t, w in (
            (0, 1.0),
            (1, 1.5),
            (2, 0.75),
            (3, 2.0),
            (4, 1.0),
            (5, 2.5),
            (6, 1.25),
            (7, 3.0),
        )
    ),
]
TRIALS = COPIES * ROUNDS


def load_copies(client: asterism.Client) -> tuple[asterism.Graph, np.ndarray, np.ndarray]:
    """Load the copies into a graph space; return it with the ends of their edges."""
    client.create_space(
        "labor",
        {
            "direction": "both",
            "parts": 3,
            "nodes": {"n": {}},
            "edges": {"n:to:n": {"weighted": True}},
        },
    )
    graph = client.graph("labor")
    first = np.arange(COPIES) * SIZE
    src, dst = (
        (first[:, None] + np.array([edge[end] for edge in EDGES])).ravel() for end in (0, 1)
    )
    graph.upsert_nodes(np.arange(COPIES * SIZE), "n")
    graph.upsert_edges(src, dst, "to", weights=np.tile([w for _, _, w in EDGES], COPIES))
    graph.build()
    return graph, src, dst


def sample_served(
    graph: asterism.Graph, fanout: int, importance: int, *, weighted: bool
) -> tuple[np.ndarray, list[int], dict[int, float]]:
    """Return the count of each edge, the visited nodes of each batch, and the last weights.

    The weights are those of the edges in the last batch.
    """
    edge_counts, node_counts, weights = np.zeros(len(EDGES)), [], {}
    nodes = (np.arange(COPIES)[:, None] * SIZE + SEEDS).ravel()
    for seed in range(ROUNDS):
        subgraph = graph.sample_labor(
            nodes, [fanout], importance=importance, weighted=weighted, direction="in", seed=seed
        )
        eids = subgraph.edge_ids["n:to:n"]
        edge_counts += np.bincount(eids % len(EDGES), minlength=len(EDGES))
        node_counts.append(len(subgraph.nodes["n"]))
        weights = dict(zip(eids.tolist(), subgraph.weights["n:to:n"].tolist(), strict=True))
    return edge_counts, node_counts, weights


def sample_with_dgl(
    full_graph: dgl.DGLGraph, fanout: int, importance: int, *, weighted: bool
) -> tuple[np.ndarray, list[int], dict[int, float]]:
    """Return the same results by DGL."""
    edge_counts, node_counts, weights = np.zeros(len(EDGES)), [], {}
    nodes = torch.from_numpy((np.arange(COPIES)[:, None] * SIZE + SEEDS).ravel())
    for seed in range(ROUNDS):
        seed_array = backend.zerocopy_to_dgl_ndarray(torch.tensor([10**9 + 7919 * seed]))
        frontier, edge_weights = full_graph.sample_labors(
            nodes,
            fanout,
            prob="p" if weighted else None,
            importance_sampling=importance,
            random_seed=seed_array,
        )
        eids = frontier.edata[dgl.EID].numpy()
        edge_counts += np.bincount(eids % len(EDGES), minlength=len(EDGES))
        node_counts.append(len(np.union1d(frontier.edges()[0].numpy(), nodes.numpy())))
        weights = dict(
            zip(eids.tolist(), edge_weights[0].tolist(), strict=bool(len(edge_weights[0])))
        )
    return edge_counts, node_counts, weights


def compare(graph: asterism.Graph, src: np.ndarray, dst: np.ndarray) -> None:
    """Compare the share of each edge, and the number of visited nodes.

    The tolerance is five standard errors and the 1e-3 of DGL's solver.
    """
    full_graph = dgl.graph((torch.from_numpy(src), torch.from_numpy(dst)), num_nodes=COPIES * SIZE)
    full_graph.edata["p"] = torch.from_numpy(np.tile([w for _, _, w in EDGES], COPIES)).float()
    for weighted in (False, True):
        for fanout, importance in ((2, 0), (2, 1), (3, 2), (3, -1)):
            (our_counts, our_nodes, our_weights), (dgl_counts, dgl_nodes, dgl_weights) = (
                sample(source, fanout, importance, weighted=weighted)
                for sample, source in ((sample_served, graph), (sample_with_dgl, full_graph))
            )
            label = f"weighted={weighted}, fanout {fanout}, importance {importance}"
            assert ((our_counts > 0) == (dgl_counts > 0)).all(), label
            p = (our_counts + dgl_counts) / (2 * TRIALS)
            excess = np.abs(our_counts - dgl_counts) / TRIALS - (
                5 * np.sqrt(2 * p * (1 - p) / TRIALS) + 1e-3
            )
            assert (excess < 0).all(), (
                f"{label}: {(our_counts / TRIALS).round(3).tolist()} and "
                f"{(dgl_counts / TRIALS).round(3).tolist()}"
            )
            # The nodes of a batch are COPIES independent trials of at most SIZE nodes.
            error = np.sqrt(2 / ROUNDS * max(np.var(our_nodes), np.var(dgl_nodes), COPIES / 4))
            assert abs(np.mean(our_nodes) - np.mean(dgl_nodes)) < 5 * error + 1e-3 * np.mean(
                our_nodes
            ), f"{label}: {np.mean(our_nodes)} and {np.mean(dgl_nodes)} nodes"
            # The rule of edge weights is the same: weights agree where a node kept the same edges.
            equal_rows = 0
            for copy in range(COPIES):
                for s in SEEDS:
                    node_edges = [
                        copy * len(EDGES) + index
                        for index, edge in enumerate(EDGES)
                        if edge[1] == s
                    ]
                    kept_edges = [
                        [e for e in node_edges if e in sampled_weights]
                        for sampled_weights in (our_weights, dgl_weights)
                    ]
                    if kept_edges[0] == kept_edges[1] and len(kept_edges[0]) > 1:
                        equal_rows += 1
                        assert np.allclose(
                            [our_weights[e] for e in node_edges if e in our_weights],
                            [dgl_weights[e] for e in node_edges if e in dgl_weights],
                            rtol=2e-3,
                        )
            assert equal_rows > 10 or not dgl_weights, label


def blocks(graph: asterism.Graph) -> None:
    """Check blocks of the adapter.

    Their nodes are consecutive, their edges are the graph's, and the weights of a node sum to their
    number.
    """
    sampler = LaborSampler(
        graph, [2, 3], prob="weight", importance_sampling=-5, layer_dependency=True
    )
    inputs, outputs, mfgs = sampler.sample_blocks(SEEDS, seed=3)
    assert outputs.tolist() == SEEDS.tolist()
    assert torch.equal(inputs, mfgs[0].srcdata[dgl.NID])
    assert torch.equal(mfgs[0].dstdata[dgl.NID], mfgs[1].srcdata[dgl.NID])
    for block in mfgs:
        src, dst = block.edges()
        for eid, s, t in zip(
            block.edata[dgl.EID].tolist(),
            block.srcdata[dgl.NID][src].tolist(),
            block.dstdata[dgl.NID][dst].tolist(),
            strict=True,
        ):
            assert EDGES[eid % len(EDGES)][:2] == (s % SIZE, t % SIZE)
        sums = torch.zeros(block.num_dst_nodes()).index_add_(0, dst, block.edata["edge_weights"])
        assert torch.allclose(sums, block.in_degrees().float(), atol=1e-4)
    refused(lambda: sampler.sample_blocks([8, 9, 8]), "seeds with 8 of 'n' twice")


with asterism.connect(sys.argv[1], timeout_s=600) as client:
    copies_graph, src, dst = load_copies(client)
    compare(copies_graph, src, dst)
    with copies_graph.pin() as held:
        blocks(held)
print("OK")
