"""Check of GraphBolt's pipelines over a served graph.

They combine items, our sampler and features, and GraphBolt's loader, workers and blocks. Prints OK.

python bolt_pipeline.py ADDRESS
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import dgl_shim  # noqa: F401  # first: what follows imports dgl

# isort: split
import dgl
import dgl.graphbolt as gb
import numpy as np
import torch
from bolt_links import check_links
from dgl.nn.pytorch import SAGEConv
from known import edges, refused

import asterism
from asterism.graphbolt import FeatureStore, SubgraphSampler
from asterism.torch import MultiHot

TRAIN = 640


def feature_rows(graph: asterism.Graph, node_type: str, feature: str) -> dict[int, Any]:
    """Return a feature of each node, by node id."""
    rows: dict[int, Any] = {}
    for batch in graph.scan_nodes(node_type, [feature]):
        rows.update(zip(batch.ids.tolist(), batch.features[feature], strict=True))
    return rows


def epoch(pipe: Any, num_workers: int = 0) -> list[Any]:
    return list(gb.DataLoader(pipe, num_workers=num_workers))


def one_type(graph: asterism.Graph) -> None:
    """Check every edge, count and feature of an epoch by two workers; then a model."""
    edges_by_id, label = edges(graph, "cites"), feature_rows(graph, "paper", "label")
    degree = Counter(dst for _, dst in edges_by_id.values())
    train = torch.from_numpy(np.random.default_rng(1).permutation(2708)[:TRAIN])
    items = gb.ItemSet((train, torch.arange(TRAIN)), names=("seed_nodes", "labels"))
    store = FeatureStore(graph)

    def pipe() -> Any:
        sampled = gb.ItemSampler(items, batch_size=64, shuffle=False).sample_asterism(
            graph, [3, 5], seed=2
        )
        return sampled.fetch_feature(store, node_feature_keys=["label"])

    batches = epoch(pipe(), num_workers=2)
    assert sorted(torch.cat([batch.seed_nodes for batch in batches]).tolist()) == sorted(
        train.tolist()
    )
    for batch in batches:
        assert torch.equal(train[batch.labels], batch.seed_nodes)
        assert batch.node_features["label"].tolist() == [
            label[node] for node in batch.input_nodes.tolist()
        ]
        layers = batch.sampled_subgraphs
        assert torch.equal(batch.input_nodes, layers[0].original_row_node_ids)
        assert torch.equal(layers[0].original_column_node_ids, layers[1].original_row_node_ids)
        assert torch.equal(layers[1].original_column_node_ids, batch.seed_nodes)
        for block, layer, fanout in zip(batch.blocks, layers, (3, 5), strict=True):
            rows, columns = layer.original_row_node_ids, layer.original_column_node_ids
            assert torch.equal(rows[: len(columns)], columns)
            src, dst = (ends.long() for ends in block.edges())
            ends = list(zip(rows[src].tolist(), columns[dst].tolist(), strict=True))
            assert [edges_by_id[edge] for edge in block.edata[dgl.EID].tolist()] == ends
            assert block.in_degrees().tolist() == [
                min(fanout, degree[node]) for node in columns.tolist()
            ]
        assert torch.equal(batch.blocks[0].srcdata[dgl.NID], batch.input_nodes)
    second_epoch = epoch(pipe())
    key = {tuple(batch.seed_nodes.tolist()): batch.input_nodes.tolist() for batch in batches}
    assert {
        tuple(batch.seed_nodes.tolist()): batch.input_nodes.tolist() for batch in second_epoch
    } == key

    torch.manual_seed(1)
    layers = [SAGEConv(16, 8, "mean"), SAGEConv(8, 4, "mean")]
    x = torch.randn(2708, 16)
    ends = np.array(list(edges_by_id.values()))
    full_graph = dgl.graph(
        (torch.from_numpy(ends[:, 0]), torch.from_numpy(ends[:, 1])), num_nodes=2708
    )
    expected = layers[1](full_graph, layers[0](full_graph, x).relu())
    for batch in epoch(gb.ItemSampler(items, batch_size=200).sample_asterism(graph, [-1, -1])):
        h = x[batch.input_nodes]
        for layer, block in zip(layers, batch.blocks, strict=True):
            h = layer(block, (h, h[: block.num_dst_nodes()]))
            h = h.relu() if layer is layers[0] else h
        assert torch.allclose(h, expected[batch.seed_nodes], atol=1e-5)

    repeated_seeds = gb.ItemSampler(
        gb.ItemSet(torch.tensor([4, 9, 4]), names="seed_nodes"), batch_size=3
    ).sample_asterism(graph, [2])
    refused(lambda: epoch(repeated_seeds), "seeds with 4 of 'paper' twice")
    refused(
        lambda: repeated_seeds.sample_subgraphs(torch.tensor([4]), torch.tensor([1])),
        "does not filter by time",
    )
    refused(lambda: store.read("node", None, "label"), "pass ids")
    refused(lambda: store.update("node", None, "label", torch.zeros(1)), "expected reads only")
    refused(
        lambda: store.read("node", None, "words", torch.tensor([4])), "pass encode with a function"
    )
    assert store.keys() == [("node", "paper", "label")]
    assert store.size("node", "paper", "label") == torch.Size([])


def several_types(graph: asterism.Graph) -> None:
    """Check layers, blocks and features of several types, sampled by weight."""
    triples = [tuple(t.name.split(":")) for t in graph.schema.edge_types]
    edges_by_type = {triple: edges(graph, ":".join(triple)) for triple in triples}
    altitude = feature_rows(graph, "airport", "altitude")
    airports = torch.from_numpy(next(iter(graph.scan_nodes("airport"))).ids[:100].copy())
    airlines = torch.from_numpy(next(iter(graph.scan_nodes("airline"))).ids[:20].copy())
    items = gb.ItemSetDict(
        {
            "airport": gb.ItemSet(airports, names="seed_nodes"),
            "airline": gb.ItemSet(airlines, names="seed_nodes"),
        }
    )
    sampler = SubgraphSampler(
        gb.ItemSampler(items, batch_size=50, shuffle=True),
        graph,
        dict.fromkeys(triples, (2, 3)),
        prob_name="weight",
    )
    pipe = sampler.fetch_feature(
        FeatureStore(graph), {"airport": ["altitude", "position"], "airline": []}
    )
    seen_seeds: list[tuple[str, int]] = []
    for batch in epoch(pipe, num_workers=1):
        seen_seeds += [
            (name, node) for name, nodes in batch.seed_nodes.items() for node in nodes.tolist()
        ]
        assert batch.node_features["airport", "altitude"].tolist() == [
            altitude[node] for node in batch.input_nodes["airport"].tolist()
        ]
        assert batch.node_features["airport", "position"].shape == (
            len(batch.input_nodes["airport"]),
            2,
        )
        for block, layer, fanout in zip(batch.blocks, batch.sampled_subgraphs, (2, 3), strict=True):
            rows, columns = layer.original_row_node_ids, layer.original_column_node_ids
            for triple in triples:
                src, dst = (ends.long() for ends in block.edges(etype=triple))
                ends = zip(
                    rows[triple[0]][src].tolist(), columns[triple[-1]][dst].tolist(), strict=True
                )
                eids = block.edges[triple].data[dgl.EID].tolist()
                assert [edges_by_type[triple][edge] for edge in eids] == list(ends)
                degree = Counter(dst for _, dst in edges_by_type[triple].values())
                assert block.in_degrees(etype=triple).tolist() == [
                    min(fanout, degree[node]) for node in columns[triple[-1]].tolist()
                ]
    expected_seeds = [("airport", node) for node in airports.tolist()] + [
        ("airline", node) for node in airlines.tolist()
    ]
    assert sorted(seen_seeds) == sorted(expected_seeds)
    refused(
        lambda: sampler.sample_subgraphs(torch.tensor([1, 2])),
        "seeds: expected a dict of node type to nodes",
    )
    refused(
        lambda: FeatureStore(graph).read("node", None, "altitude", torch.tensor([1])),
        "type_name=None",
    )
    refused(
        lambda: FeatureStore(graph).read("node", "airport", "iata", torch.tensor([1])),
        "pass encode with a function",
    )
    refused(
        lambda: FeatureStore(graph).read("node", "person", "altitude", torch.tensor([1])),
        "type_name='person': expected a node type, one of",
    )


def features_of_edges(client: asterism.Client) -> None:
    """Check features of edges, fetched by layer, and ragged features and weights of nodes."""
    client.create_space(
        "dated",
        {
            "direction": "both",
            "nodes": {
                "user": {
                    "weighted": True,
                    "features": {"words": {"kind": "ragged", "dtype": "int64"}},
                }
            },
            "edges": {"user:met:user": {"features": {"year": "int64"}}},
        },
    )
    graph = client.graph("dated")
    src = np.arange(50)
    graph.upsert_nodes(src, "user", weights=src + 1.0, features={"words": [[i % 7] for i in src]})
    graph.upsert_edges(
        np.tile(src, 2),
        np.concatenate([(src + 1) % 50, (src + 7) % 50]),
        "met",
        features={"year": 1900 + np.arange(100)},
    )
    graph.build(timeout_s=600)
    with graph.pin() as pinned:
        year = {
            (s, d): y
            for batch in pinned.scan_edges("met", ["year"])
            for s, d, y in zip(batch.src, batch.dst, batch.features["year"], strict=True)
        }
        store = FeatureStore(pinned, encode={"words": MultiHot(7)})
        assert store.keys() == [("node", "user", "words"), ("edge", "user:met:user", "year")]
        pipe = gb.ItemSampler(gb.ItemSet(50, names="seed_nodes"), batch_size=10).sample_asterism(
            pinned, [1, -1]
        )
        for batch in epoch(pipe.fetch_feature(store, ["words", "weight"], ["year"])):
            assert (
                batch.node_features["words"].argmax(1).tolist() == (batch.input_nodes % 7).tolist()
            )
            assert batch.node_features["weight"].tolist() == (batch.input_nodes + 1).tolist()
            for block, layer, fetched in zip(
                batch.blocks, batch.sampled_subgraphs, batch.edge_features, strict=True
            ):
                ends = [
                    nodes[rows.long()].tolist()
                    for nodes, rows in zip(
                        [layer.original_row_node_ids] * 2, block.edges(), strict=True
                    )
                ]
                assert fetched["year"].tolist() == [year[edge] for edge in zip(*ends, strict=True)]
            assert len(batch.edge_features[1]["year"]) == 20


with asterism.connect(sys.argv[1], timeout_s=600) as client:
    refused(
        lambda: SubgraphSampler(
            gb.ItemSampler(gb.ItemSet(3, names="seed_nodes"), 1), client.graph("citations"), [2]
        ),
        "use graph.pin",
    )
    refused(lambda: FeatureStore(client.graph("citations")), "use graph.pin")
    with client.graph("citations").pin() as papers:
        one_type(papers)
    with client.graph("openflights").pin() as flights:
        several_types(flights)
    features_of_edges(client)
    check_links(client)
print("OK")
