"""LABOR of a served graph beside DGL's own on the same edges: which edges are kept how often, how many nodes are met; then blocks. Prints OK.

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
"""Nodes of a small graph, of which every copy is a trial: variates are of nodes; and batches of all copies."""
SEEDS = np.array([8, 9, 10, 11])
EDGES = [
    *((t, 8, w) for t, w in ((0, 1.0), (1, 2.0), (2, 3.0), (3, 4.0))),
    *((t, 9, w) for t, w in ((1, 1.0), (2, 1.0), (4, 2.0), (5, 3.0), (6, 0.5))),
    *((t, 10, w) for t, w in ((0, 2.0), (7, 5.0))),
    *((t, 11, w) for t, w in ((0, 1.0), (1, 1.5), (2, 0.75), (3, 2.0), (4, 1.0), (5, 2.5), (6, 1.25), (7, 3.0))),
]
TRIALS = COPIES * ROUNDS


def served(client: asterism.Client) -> tuple[asterism.Graph, np.ndarray, np.ndarray]:
    """The copies as a space, and their edges' ends."""
    client.create_space("labor", {"direction": "both", "parts": 3, "nodes": {"n": {}}, "edges": {"n:to:n": {"weighted": True}}})
    graph = client.graph("labor")
    first = np.arange(COPIES) * SIZE
    src, dst = ((first[:, None] + np.array([edge[at] for edge in EDGES])).ravel() for at in (0, 1))
    graph.upsert_nodes(np.arange(COPIES * SIZE), "n")
    graph.upsert_edges(src, dst, "to", weights=np.tile([w for _, _, w in EDGES], COPIES))
    graph.build()
    return graph, src, dst


def ours(graph: asterism.Graph, fanout: int, importance: int, *, weighted: bool) -> tuple[np.ndarray, list[int], dict[int, float]]:
    """How often each edge was kept, how many nodes were met by each batch, and the weights of the last batch's edges."""
    kept, met, weights = np.zeros(len(EDGES)), [], {}
    nodes = (np.arange(COPIES)[:, None] * SIZE + SEEDS).ravel()
    for seed in range(ROUNDS):
        sub = graph.sample_labor(nodes, [fanout], importance=importance, weighted=weighted, direction="in", seed=seed)
        eids = sub.edge_ids["n:to:n"]
        kept += np.bincount(eids % len(EDGES), minlength=len(EDGES))
        met.append(len(sub.nodes["n"]))
        weights = dict(zip(eids.tolist(), sub.weights["n:to:n"].tolist(), strict=True))
    return kept, met, weights


def theirs(whole: dgl.DGLGraph, fanout: int, importance: int, *, weighted: bool) -> tuple[np.ndarray, list[int], dict[int, float]]:
    """The same by DGL."""
    kept, met, weights = np.zeros(len(EDGES)), [], {}
    nodes = torch.from_numpy((np.arange(COPIES)[:, None] * SIZE + SEEDS).ravel())
    for seed in range(ROUNDS):
        told = backend.zerocopy_to_dgl_ndarray(torch.tensor([10**9 + 7919 * seed]))
        frontier, given = whole.sample_labors(nodes, fanout, prob="p" if weighted else None, importance_sampling=importance, random_seed=told)
        eids = frontier.edata[dgl.EID].numpy()
        kept += np.bincount(eids % len(EDGES), minlength=len(EDGES))
        met.append(len(np.union1d(frontier.edges()[0].numpy(), nodes.numpy())))
        weights = dict(zip(eids.tolist(), given[0].tolist(), strict=bool(len(given[0]))))
    return kept, met, weights


def compare(graph: asterism.Graph, src: np.ndarray, dst: np.ndarray) -> None:
    """Each edge's share within five standard errors and the 1e-3 that DGL's solver leaves; the nodes met, likewise."""
    whole = dgl.graph((torch.from_numpy(src), torch.from_numpy(dst)), num_nodes=COPIES * SIZE)
    whole.edata["p"] = torch.from_numpy(np.tile([w for _, _, w in EDGES], COPIES)).float()
    for weighted in (False, True):
        for fanout, importance in ((2, 0), (2, 1), (3, 2), (3, -1)):
            (mine, met, weights), (its, its_met, its_weights) = (
                how(on, fanout, importance, weighted=weighted) for how, on in ((ours, graph), (theirs, whole))
            )
            what = f"weighted={weighted}, fanout {fanout}, importance {importance}"
            assert ((mine > 0) == (its > 0)).all(), what
            p = (mine + its) / (2 * TRIALS)
            far = np.abs(mine - its) / TRIALS - (5 * np.sqrt(2 * p * (1 - p) / TRIALS) + 1e-3)
            assert (far < 0).all(), f"{what}: {(mine / TRIALS).round(3).tolist()} and {(its / TRIALS).round(3).tolist()}"
            # A batch's nodes are COPIES independent trials of at most SIZE nodes.
            error = np.sqrt(2 / ROUNDS * max(np.var(met), np.var(its_met), COPIES / 4))
            assert abs(np.mean(met) - np.mean(its_met)) < 5 * error + 1e-3 * np.mean(met), f"{what}: {np.mean(met)} and {np.mean(its_met)} nodes"
            # The rule of edge weights is the same: alike where a node kept the same edges.
            alike = 0
            for copy in range(COPIES):
                for s in SEEDS:
                    own = [copy * len(EDGES) + at for at, edge in enumerate(EDGES) if edge[1] == s]
                    both = [[e for e in own if e in some] for some in (weights, its_weights)]
                    if both[0] == both[1] and len(both[0]) > 1:
                        alike += 1
                        assert np.allclose([weights[e] for e in own if e in weights], [its_weights[e] for e in own if e in its_weights], rtol=2e-3)
            assert alike > 10 or not its_weights, what


def blocks(graph: asterism.Graph) -> None:
    """Blocks of the adapter: their nodes follow each other, their edges are the graph's, and a node's weights sum to their number."""
    sampler = LaborSampler(graph, [2, 3], prob="weight", importance_sampling=-5, layer_dependency=True)
    inputs, outputs, mfgs = sampler.sample_blocks(SEEDS, seed=3)
    assert outputs.tolist() == SEEDS.tolist()
    assert torch.equal(inputs, mfgs[0].srcdata[dgl.NID])
    assert torch.equal(mfgs[0].dstdata[dgl.NID], mfgs[1].srcdata[dgl.NID])
    for block in mfgs:
        src, dst = block.edges()
        for eid, s, t in zip(block.edata[dgl.EID].tolist(), block.srcdata[dgl.NID][src].tolist(), block.dstdata[dgl.NID][dst].tolist(), strict=True):
            assert EDGES[eid % len(EDGES)][:2] == (s % SIZE, t % SIZE)
        sums = torch.zeros(block.num_dst_nodes()).index_add_(0, dst, block.edata["edge_weights"])
        assert torch.allclose(sums, block.in_degrees().float(), atol=1e-4)
    refused(lambda: sampler.sample_blocks([8, 9, 8]), "seed 8 of 'n' is twice in a batch of 3")


with asterism.connect(sys.argv[1]) as client:
    made, src, dst = served(client)
    compare(made, src, dst)
    with made.pin() as held:
        blocks(held)
print("OK")
