"""Comparison of HGT sampling with torch_sparse's on one graph: frequencies of nodes.

Needs torch_sparse.
"""

from __future__ import annotations

import numpy as np
import torch
from torch_geometric.data import HeteroData
from torch_geometric.sampler import HGTSampler as Theirs
from torch_geometric.sampler import NodeSamplerInput

from asterism import Client
from asterism.pyg import HGTSampler

NODES = {"a": 12, "b": 9}
TYPES = (("a", "x", "a"), ("a", "y", "b"), ("b", "z", "a"))
COUNTS, SEEDS = {"a": [2, 3], "b": [2, 2]}, torch.tensor([0, 5])
TRIALS = 4000
MAX_ERRORS = 5.0
"""Most standard errors between two shares of the same number of trials.

Of 21 shares, one exceeds it by chance once in 80,000 runs.
"""


def count_nodes(sampler: HGTSampler | Theirs) -> dict[str, np.ndarray]:
    """Return the number of batches that each node is in."""
    counts = {name: np.zeros(size, np.int64) for name, size in NODES.items()}
    for _ in range(TRIALS):
        sampled = sampler.sample_from_nodes(
            NodeSamplerInput(input_id=None, node=SEEDS, time=None, input_type="a")
        )
        for name, ids in sampled.node.items():
            counts[name][ids.numpy()] += 1
    return counts


def test_hgt_sampling_matches_torch_sparse_distribution(embedded: Client) -> None:
    rng, ends = np.random.default_rng(4), {}
    for triple in TYPES:
        ends[triple] = rng.integers(0, NODES[triple[0]], 30), rng.integers(0, NODES[triple[2]], 30)
    data = HeteroData()
    for name, size in NODES.items():
        data[name].num_nodes = size
    for triple, (src, dst) in ends.items():
        data[triple].edge_index = torch.from_numpy(np.stack([src, dst]))
    torch.manual_seed(1)
    embedded.create_space(
        "budgets",
        {
            "parts": 3,
            "direction": "both",
            "nodes": {name: {} for name in NODES},
            "edges": {":".join(t): {} for t in TYPES},
        },
    )
    graph = embedded.graph("budgets")
    for name, size in NODES.items():
        graph.upsert_nodes(np.arange(size), name)
    for triple, (src, dst) in ends.items():
        graph.upsert_edges(src, dst, ":".join(triple))
    graph.build(timeout_s=600)
    with graph.pin() as pinned:
        node_counts = [
            count_nodes(sampler) for sampler in (HGTSampler(pinned, COUNTS), Theirs(data, COUNTS))
        ]
    for name in NODES:
        ours, theirs = (shares[name] / TRIALS for shares in node_counts)
        assert np.array_equal(ours > 0, theirs > 0), (name, ours, theirs)
        p = (ours + theirs) / 2
        errors = np.sqrt(np.maximum(2 * p * (1 - p) / TRIALS, 1e-12))
        assert (np.abs(ours - theirs) / errors).max() < MAX_ERRORS, name
