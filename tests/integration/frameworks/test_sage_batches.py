"""Batches for GraphSAGE over walks (PGLBox's ``sage_mode``).

A batch has the pairs of the walks and the neighborhoods of their nodes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tests.kit import cases
from tests.kit.waiting import HANG_S

import asterism
from asterism import Graph

SIZE = 30_000


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[asterism.Client]:
    with asterism.open(cases.copy_built_graph(tmp_path_factory.mktemp("sage"))) as opened:
        yield opened


@pytest.fixture(scope="module")
def graph(client: asterism.Client) -> Graph:
    return client.graph("cases")


def test_pair_batches_sample_neighbors_of_all_edge_types(graph: Graph) -> None:
    batch = next(
        iter(
            graph.walk_pairs(
                "person2writes2paper-paper2by2person", 4, walks=3, window=2, batch_size=40, seed=4
            )
        )
    )
    sub = graph.sample_subgraph(
        batch.pairs.reshape(-1), [3, 2], ntype=batch.types.reshape(-1), weights=True, seed=4
    )
    numbers = sub.seeds.reshape(-1, 2)
    names = [node_type.name for node_type in graph.schema.node_types]
    for type_id, name in enumerate(names):
        of_type = batch.types == type_id
        assert np.array_equal(sub.nodes[name][numbers[of_type]], batch.pairs[of_type])
        centres = sub.num_sampled_nodes[name][0]
        assert set(numbers[of_type].tolist()) == set(range(centres))
        assert len(np.unique(sub.nodes[name])) == len(sub.nodes[name])
    assert sub.weights is not None
    assert sub.edge_ids is not None
    edges = cases.edges()
    for etype, hops in sub.num_sampled_edges.items():
        src, relation, dst = etype.split(":")
        assert len(hops) == 2
        assert sum(hops) == len(sub.row[etype])
        ends = sub.nodes[src][sub.row[etype]], sub.nodes[dst][sub.col[etype]]
        edge_ids = sub.edge_ids[etype]
        assert np.array_equal(edges[relation][0][edge_ids], ends[0])
        assert np.array_equal(edges[relation][1][edge_ids], ends[1])
        assert np.array_equal(edges[relation][2][edge_ids], sub.weights[etype])
        first = sub.row[etype][: hops[0]]
        centres = sub.num_sampled_nodes[src][0]
        assert first.size == 0 or first.max() < centres
        weighted_degrees = np.array(
            [
                np.count_nonzero((edges[relation][0] == node) & (edges[relation][2] > 0))
                for node in sub.nodes[src][:centres]
            ]
        )
        assert np.array_equal(
            np.bincount(first, minlength=centres), np.minimum(weighted_degrees, 3)
        )
    for type_id, name in enumerate(names):
        degrees = graph.degrees(sub.nodes[name], ntype=np.full(len(sub.nodes[name]), type_id))
        expected = [
            np.array(
                [
                    np.count_nonzero(edges[edge.relation][0] == node)
                    if edge.src_type == name
                    else 0
                    for node in sub.nodes[name]
                ]
            )
            for edge in graph.schema.edge_types
        ]
        assert np.array_equal(degrees, np.stack(expected, axis=1))


def test_twenty_thousand_seeds_of_three_edge_types(client: asterism.Client) -> None:
    client.create_space(
        "wide",
        {
            "parts": 4,
            "nodes": {"n": {}},
            "edges": {f"n:e{t}:n": {"weighted": True} for t in range(3)},
        },
    )
    graph, rng = client.graph("wide"), np.random.default_rng(1)
    graph.upsert_nodes(np.arange(SIZE), "n")
    for t in range(3):
        graph.upsert_edges(
            np.repeat(np.arange(SIZE), 8),
            rng.integers(0, SIZE, 8 * SIZE),
            f"e{t}",
            weights=rng.random(8 * SIZE) + 0.1,
        )
    graph.build(timeout_s=HANG_S)
    seeds = rng.permutation(SIZE)[:20_000]
    sub = graph.sample_subgraph(seeds, [3, 2], weights=True, seed=2)
    assert np.array_equal(sub.nodes["n"][:20_000], seeds)
    assert np.array_equal(sub.seeds, np.arange(20_000))
    assert sub.num_sampled_nodes["n"][0] == 20_000
    for etype, (first, second) in sub.num_sampled_edges.items():
        assert first == 60_000
        assert second == 2 * sub.num_sampled_nodes["n"][1]
        assert np.array_equal(np.bincount(sub.row[etype][:first]), np.full(20_000, 3))
    assert (
        len(np.unique(sub.nodes["n"]))
        == sum(sub.num_sampled_nodes["n"])
        == len(sub.nodes["n"])
        <= SIZE
    )
    assert graph.degrees(sub.nodes["n"]).tolist() == [[8, 8, 8]] * len(sub.nodes["n"])
    union = graph.sample_neighbors(seeds, None, 30, replace=False, seed=2)
    assert ((union.nodes >= 0).sum(axis=1) == 24).all()
