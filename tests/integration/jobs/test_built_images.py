"""Built images sample like plain in-memory images, on small random graphs.

Some partitions and types of these graphs are empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.kit.images import Edges, Nodes, version_of

import asterism
from asterism import Client, Graph
from asterism_model.schema import Schema
from graphd.operators.call_seeds import Operator, call_seed
from storaged import sampling

QUERY_IDS = np.r_[np.arange(-1, 40), 10**9, 2**62]
OUT, IN = 1, 2


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with asterism.open(tmp_path_factory.mktemp("images")) as opened:
        yield opened


def random_graph(seed: int) -> tuple[Schema, dict[str, Nodes], dict[str, Edges]]:
    rng = np.random.default_rng(seed)
    schema = Schema.from_dict(
        {
            "parts": int(rng.integers(1, 7)),
            "placement": ["mod", "mix64"][seed % 2],
            "direction": "both",
            "nodes": {
                "a": {
                    "weighted": True,
                    "features": {"x": {"shape": 2}, "r": {"kind": "ragged", "dtype": "int64"}},
                },
                "b": {},
                "none": {},
            },
            "edges": {
                "a:r:b": {"weighted": True, "features": {"y": "int64"}},
                "b:s:b": {},
                "a:t:none": {},
                "b:u:a": {"weighted": True},
            },
        }
    )
    spread = [1, 1, 7, 10**6][seed % 4]
    a = np.sort(rng.choice(30, rng.integers(1, 20), replace=False)) * spread
    b = np.sort(rng.choice(12, rng.integers(1, 4), replace=False))
    lengths = rng.integers(0, 3, a.size)
    ragged = (np.r_[0, np.cumsum(lengths)], rng.integers(0, 99, lengths.sum()))
    nodes = {
        "a": Nodes(
            ids=a,
            weights=rng.integers(0, 4, a.size).astype(np.float32),
            features={"x": rng.random((a.size, 2), np.float32), "r": ragged},
        ),
        "b": Nodes(ids=b),
        "none": Nodes(ids=np.zeros(0, np.int64)),
    }

    def edges(src: Any, dst: Any, n: int, weighted: bool, **features: Any) -> Edges:
        weights = rng.integers(0, 3, n).astype(np.float32) if weighted else None
        return Edges(
            src=rng.choice(src, n), dst=rng.choice(dst, n), weights=weights, features=features
        )

    n = int(rng.integers(0, 40))
    return (
        schema,
        nodes,
        {
            "a:r:b": edges(a, b, n, True, y=np.arange(n) * 3),
            "b:s:b": edges(b, b, int(rng.integers(0, 6)), False),
            "a:t:none": Edges(src=np.zeros(0, np.int64), dst=np.zeros(0, np.int64)),
            "b:u:a": edges(b, a, 25, True),
        },
    )


def publish(
    client: Client, space: str, schema: Schema, nodes: dict[str, Nodes], edges: dict[str, Edges]
) -> Graph:
    client.create_space(space, schema)
    load = client.begin_load(space)
    index = 0
    for name, node_rows in nodes.items():
        load.write_nodes(index, name, node_rows.ids, node_rows.weights, node_rows.features)
        index += 1
    for name, edge_rows in edges.items():
        load.write_edges(
            index, name, edge_rows.src, edge_rows.dst, edge_rows.weights, edge_rows.features
        )
        index += 1
    load.commit()
    graph = client.graph(space)
    graph.build()
    return graph


@pytest.mark.parametrize("seed", range(8))
def test_build_samples_like_images_in_memory(client: Client, seed: int) -> None:
    schema, nodes, edges = random_graph(seed)
    graph = publish(client, f"g{seed}", schema, nodes, edges)
    reference = version_of(schema, nodes, edges)
    everything: dict[str, Any] = {"parts": [*range(schema.parts)], "start": 0, "count": 200}
    for uniform in (False, True):
        if reference.part_shares(sampling.NODE, [0, 1], uniform).total > 0:
            expected_nodes = sampling.sample_nodes(
                reference,
                types=[0, 1, 2],
                uniform=uniform,
                seed=call_seed(9, Operator.NODES, types=[0, 1, 2], weighted=not uniform),
                **everything,
            )
            node_sample = graph.sample_nodes(200, seed=9, weighted=not uniform)
            assert (node_sample.nodes.tolist(), node_sample.types.tolist()) == (
                expected_nodes.ids.tolist(),
                expected_nodes.types.tolist(),
            )
        expected_edges = sampling.sample_edges(
            reference,
            types=[3],
            uniform=uniform,
            seed=call_seed(9, Operator.EDGES, types=[3], weighted=not uniform),
            **everything,
        )
        edge_sample = graph.sample_edges(200, "u", seed=9, weighted=not uniform)
        assert edge_sample.edge_ids.tolist() == expected_edges.eids.tolist()
        for etypes, ntype in (([0], "a"), ([0, 2], "a"), ([1, 3], "b"), ([3], "b")):
            for replace in (False, True):
                expected_neighbors = sampling.sample_neighbors(
                    reference,
                    edge_types=etypes,
                    node_type=schema.node_type_id(ntype),
                    ids=QUERY_IDS,
                    positions=np.arange(QUERY_IDS.size),
                    count=3,
                    replace=replace,
                    uniform=uniform,
                    direction=OUT,
                    seed=call_seed(
                        9,
                        Operator.NEIGHBORS,
                        types=etypes,
                        weighted=not uniform,
                        direction=OUT,
                    ),
                    hop=0,
                    want_weights=True,
                    want_edge_ids=True,
                )
                names = [schema.edge_types[t].name for t in etypes]
                neighbor_sample = graph.sample_neighbors(
                    QUERY_IDS,
                    names,
                    3,
                    ntype=ntype,
                    weighted=not uniform,
                    replace=replace,
                    edge_ids=True,
                    seed=9,
                )
                assert neighbor_sample.edge_ids is not None
                assert expected_neighbors.eids is not None
                np.testing.assert_array_equal(neighbor_sample.nodes, expected_neighbors.ids)
                np.testing.assert_array_equal(neighbor_sample.edge_ids, expected_neighbors.eids)


@pytest.mark.parametrize("seed", range(8))
def test_features_and_neighbors_include_empty_partitions(client: Client, seed: int) -> None:
    schema, nodes, edges = random_graph(seed)
    graph, reference = client.graph(f"g{seed}"), version_of(schema, nodes, edges)
    for ntype in ("a", "b", "none"):
        type_id = schema.node_type_id(ntype)
        names = [feature.name for feature in schema.node_types[type_id].features]
        expected = sampling.node_features(reference, type_id, names, QUERY_IDS)
        features = graph.node_features(QUERY_IDS, names, ntype)
        if names:
            np.testing.assert_array_equal(np.asarray(features["x"]), expected["f:x"])
            np.testing.assert_array_equal(features["r"][0], expected["f:r.indptr"])
            np.testing.assert_array_equal(features["r"][1], expected["f:r.values"])
        for direction in (OUT, IN):
            types = [
                t
                for t, e in enumerate(schema.edge_types)
                if (e.src_type if direction == OUT else e.dst_type) == ntype
            ]
            if types:
                expected_neighbors = sampling.read_neighbors(
                    reference,
                    edge_types=types,
                    node_type=type_id,
                    ids=QUERY_IDS,
                    direction=direction,
                    want_weights=True,
                    want_edge_ids=True,
                )
                names = [schema.edge_types[t].name for t in types]
                neighbors = graph.neighbors(
                    QUERY_IDS, names, ntype=ntype, direction="out" if direction == OUT else "in"
                )
                np.testing.assert_array_equal(neighbors.indptr, expected_neighbors.indptr)
                np.testing.assert_array_equal(neighbors.nodes, expected_neighbors.ids)
        assert sum(batch.ids.size for batch in graph.scan_nodes(ntype)) == nodes[ntype].ids.size
    eids = np.r_[-1, np.arange(60), 10**12]
    edge_values = np.asarray(graph.edge_features(eids, ["y"], "r")["y"])
    np.testing.assert_array_equal(
        edge_values, sampling.edge_features(reference, 0, ["y"], eids)["f:y"]
    )
    assert sum(batch.src.size for batch in graph.scan_edges("u")) == 25
