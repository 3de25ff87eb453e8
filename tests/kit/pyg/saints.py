"""Comparison of GraphSAINT batches with PyG's; needs torch-sparse.

The node sets have equal frequencies, the same edges and the same coefficients.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from torch_geometric.data import Data
from torch_geometric.loader import GraphSAINTNodeSampler, GraphSAINTRandomWalkSampler

import asterism
from asterism import Graph, saint

N, BATCHES, ALPHA = 8, 6000, 1e-5
SRC = np.array([0, 0, 0, 1, 1, 2, 3, 4, 4, 5, 6, 6, 7])
DST = np.array([1, 2, 3, 0, 2, 0, 4, 3, 5, 4, 7, 0, 6])
"""Destinations of edges without duplicates: PyG's subgraphs keep one of several."""
NODES, WALKS, STEPS = 2, 1, 2


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    with asterism.open(tmp_path_factory.mktemp("saint")) as client:
        client.create_space(
            "s", {"parts": 3, "direction": "both", "nodes": {"n": {}}, "edges": {"n:to:n": {}}}
        )
        new_graph = client.graph("s")
        new_graph.upsert_nodes(np.arange(N), "n")
        new_graph.upsert_edges(SRC, DST, "to")
        new_graph.build(timeout_s=600)
        with new_graph.pin() as pinned:
            yield pinned


def in_memory_graph() -> Data:
    """Return the same graph in memory, with a name for each node."""
    return Data(
        edge_index=torch.from_numpy(np.stack([SRC, DST])), num_nodes=N, name=torch.arange(N)
    )


def count_node_sets(batches: Iterator[frozenset[int]]) -> Counter[frozenset[int]]:
    return Counter(next(batches) for _ in range(BATCHES))


def served_node_sets(sampler: saint.Sampler) -> Iterator[frozenset[int]]:
    return (frozenset(sampler.nodes(i).tolist()) for i in range(BATCHES))


def pyg_node_sets(make_sampler: Callable[..., Any]) -> Iterator[frozenset[int]]:
    return (
        frozenset(batch.name.tolist())
        for batch in make_sampler(in_memory_graph(), num_steps=BATCHES, log=False)
    )


def assert_same_distribution(
    first: Counter[frozenset[int]], second: Counter[frozenset[int]]
) -> None:
    """Compare counts; those below ten are counted together."""
    frequent = [key for key in first | second if first[key] + second[key] >= 20]
    table = [
        [counts[key] for key in frequent] + [BATCHES - sum(counts[key] for key in frequent)]
        for counts in (first, second)
    ]
    table = [
        [row[column] for column in range(len(table[0])) if table[0][column] + table[1][column]]
        for row in table
    ]
    assert len(table[0]) > 5
    assert stats.chi2_contingency(table).pvalue > ALPHA


def test_sets_of_nodes_come_as_often_as_of_pygs_samplers(graph: Graph) -> None:
    torch.manual_seed(1)
    nodes = count_node_sets(
        pyg_node_sets(lambda *of, **how: GraphSAINTNodeSampler(*of, batch_size=NODES, **how))
    )
    assert_same_distribution(
        count_node_sets(served_node_sets(saint.NodeSampler(graph, "to", NODES, seed=1))), nodes
    )
    walks = count_node_sets(
        pyg_node_sets(
            lambda *of, **how: GraphSAINTRandomWalkSampler(
                *of, batch_size=WALKS, walk_length=STEPS, **how
            )
        )
    )
    assert_same_distribution(
        count_node_sets(
            served_node_sets(saint.RandomWalkSampler(graph, "to", WALKS, STEPS, seed=1))
        ),
        walks,
    )
    assert (
        stats.chi2_contingency(
            [[counts[key] for key in nodes | walks] for counts in (nodes, walks)]
        ).pvalue
        < ALPHA
    )  # the other distributions differ


def test_edges_among_the_nodes_of_a_batch_are_pygs(graph: Graph) -> None:
    edges_by_nodes = {}
    for batch in GraphSAINTNodeSampler(in_memory_graph(), batch_size=5, num_steps=300, log=False):
        ends = batch.name[batch.edge_index].t().tolist()
        edges_by_nodes[frozenset(batch.name.tolist())] = sorted(map(tuple, ends))
    assert len(edges_by_nodes) > 20
    for nodes, edges in edges_by_nodes.items():
        subgraph = graph.induced_subgraph(np.array(sorted(nodes)), "to")
        names = subgraph.nodes["n"]
        assert (
            sorted(
                zip(
                    names[subgraph.row["n:to:n"]].tolist(),
                    names[subgraph.col["n:to:n"]].tolist(),
                    strict=True,
                )
            )
            == edges
        )


def test_coefficients_match_pyg_within_sampling_error(graph: Graph) -> None:
    torch.manual_seed(2)
    coverage = 1500
    our_norms = saint.NodeSampler(graph, "to", 4, seed=2).normalize(coverage, to="src")
    pyg_sampler = GraphSAINTNodeSampler(
        in_memory_graph(), batch_size=4, num_steps=1, sample_coverage=coverage, log=False
    )
    row_by_edge = {int(edge): row for row, edge in enumerate(our_norms.edges)}
    ends = [
        np.concatenate(column)
        for column in zip(
            *((b.edge_ids, b.src, b.dst) for b in graph.scan_edges("to")), strict=True
        )
    ]
    rows = {
        (int(src), int(dst)): row_by_edge[int(edge)] for edge, src, dst in zip(*ends, strict=True)
    }
    our_rows = np.array([rows[edge] for edge in zip(SRC.tolist(), DST.tolist(), strict=True)])
    shares = our_norms.node_counts / our_norms.batches
    error = np.sqrt((1 - shares) / (shares * our_norms.batches))
    assert (np.abs(pyg_sampler.node_norm.numpy() / our_norms.node_norm - 1) < 8 * error).all()
    edge_shares = our_norms.edge_counts[our_rows] / our_norms.batches
    edge_error = np.sqrt((1 - edge_shares) / (edge_shares * our_norms.batches))
    assert (
        np.abs(pyg_sampler.edge_norm.numpy() / our_norms.edge_norm[our_rows] - 1) < 8 * edge_error
    ).all()
    assert our_norms.edge_norm.max() > 1.3
