"""GraphSAINT's batches beside PyG's own: the same sets of nodes equally often, with the same edges, and the same coefficients. Needs torch-sparse."""

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
"""No edge is there twice: PyG's subgraphs keep one of several."""
NODES, WALKS, STEPS = 2, 1, 2


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    with asterism.open(tmp_path_factory.mktemp("saint")) as client:
        client.create_space("s", {"parts": 3, "direction": "both", "nodes": {"n": {}}, "edges": {"n:to:n": {}}})
        made = client.graph("s")
        made.upsert_nodes(np.arange(N), "n")
        made.upsert_edges(SRC, DST, "to")
        made.build(timeout_s=600)
        with made.pin() as held:
            yield held


def whole() -> Data:
    """The same graph in memory, with a name for each node."""
    return Data(edge_index=torch.from_numpy(np.stack([SRC, DST])), num_nodes=N, name=torch.arange(N))


def sets(batches: Iterator[frozenset[int]]) -> Counter[frozenset[int]]:
    return Counter(next(batches) for _ in range(BATCHES))


def ours(sampler: saint.Sampler) -> Iterator[frozenset[int]]:
    return (frozenset(sampler.nodes(i).tolist()) for i in range(BATCHES))


def theirs(made: Callable[..., Any]) -> Iterator[frozenset[int]]:
    return (frozenset(batch.name.tolist()) for batch in made(whole(), num_steps=BATCHES, log=False))


def alike(one: Counter[frozenset[int]], other: Counter[frozenset[int]]) -> None:
    """What came less than ten times is counted together."""
    often = [key for key in one | other if one[key] + other[key] >= 20]
    table = [[counts[key] for key in often] + [BATCHES - sum(counts[key] for key in often)] for counts in (one, other)]
    table = [[row[at] for at in range(len(table[0])) if table[0][at] + table[1][at]] for row in table]
    assert len(table[0]) > 5
    assert stats.chi2_contingency(table).pvalue > ALPHA


def test_sets_of_nodes_come_as_often_as_of_pygs_samplers(graph: Graph) -> None:
    torch.manual_seed(1)
    nodes = sets(theirs(lambda *of, **how: GraphSAINTNodeSampler(*of, batch_size=NODES, **how)))
    alike(sets(ours(saint.NodeSampler(graph, "to", NODES, seed=1))), nodes)
    walks = sets(theirs(lambda *of, **how: GraphSAINTRandomWalkSampler(*of, batch_size=WALKS, walk_length=STEPS, **how)))
    alike(sets(ours(saint.RandomWalkSampler(graph, "to", WALKS, STEPS, seed=1))), walks)
    assert stats.chi2_contingency([[counts[key] for key in nodes | walks] for counts in (nodes, walks)]).pvalue < ALPHA  # they differ from each other


def test_edges_among_the_nodes_of_a_batch_are_pygs(graph: Graph) -> None:
    found = {}
    for batch in GraphSAINTNodeSampler(whole(), batch_size=5, num_steps=300, log=False):
        ends = batch.name[batch.edge_index].t().tolist()
        found[frozenset(batch.name.tolist())] = sorted(map(tuple, ends))
    assert len(found) > 20
    for nodes, edges in found.items():
        sub = graph.induced_subgraph(np.array(sorted(nodes)), "to")
        names = sub.nodes["n"]
        assert sorted(zip(names[sub.row["n:to:n"]].tolist(), names[sub.col["n:to:n"]].tolist(), strict=True)) == edges


def test_coefficients_are_pygs_within_what_counting_leaves_open(graph: Graph) -> None:
    torch.manual_seed(2)
    coverage = 1500
    counted = saint.NodeSampler(graph, "to", 4, seed=2).normalize(coverage, to="src")
    made = GraphSAINTNodeSampler(whole(), batch_size=4, num_steps=1, sample_coverage=coverage, log=False)
    place = {int(edge): row for row, edge in enumerate(counted.edges)}
    ends = [np.concatenate(column) for column in zip(*((b.edge_ids, b.src, b.dst) for b in graph.scan_edges("to")), strict=True)]
    rows = {(int(src), int(dst)): place[int(edge)] for edge, src, dst in zip(*ends, strict=True)}
    mine = np.array([rows[edge] for edge in zip(SRC.tolist(), DST.tolist(), strict=True)])
    shares = counted.node_counts / counted.batches
    error = np.sqrt((1 - shares) / (shares * counted.batches))
    assert (np.abs(made.node_norm.numpy() / counted.node_norm - 1) < 8 * error).all()
    both = counted.edge_counts[mine] / counted.batches
    spread = np.sqrt((1 - both) / (both * counted.batches))
    assert (np.abs(made.edge_norm.numpy() / counted.edge_norm[mine] - 1) < 8 * spread).all()
    assert counted.edge_norm.max() > 1.3
