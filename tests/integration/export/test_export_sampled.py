"""Exports of samples: the sampled nodes with exactly the edges among them.

The sample is reproducible by seed and comes from one version.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.kit.flat_graph import FlatGraph, generate, publish
from tests.kit.partitions import assert_partition, read_partition

import asterism
from asterism import Graph, export
from asterism_model.schema import Schema
from asterism_proto.errors import InvalidRequest

SCHEMA = Schema.from_dict(
    {
        "parts": 3,
        "direction": "both",
        "nodes": {
            "paper": {"weighted": True, "features": {"feat": {"dtype": "float32", "shape": [3]}}},
            "author": {"features": {"h": {"dtype": "float64", "shape": [2]}}},
        },
        "edges": {
            "paper:cites:paper": {
                "weighted": True,
                "features": {"y": {"dtype": "int64", "shape": [2]}},
            },
            "author:writes:paper": {"weighted": True},
        },
    }
)
IdsByType = Mapping[str, NDArray[np.int64]]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Graph, FlatGraph]]:
    nodes, edges = (
        {"paper": 600, "author": 300},
        {"paper:cites:paper": 3000, "author:writes:paper": 1500},
    )
    flat = generate(SCHEMA, nodes=nodes, edges=edges, seed=8, sparse=True, space="papers")
    with asterism.open(tmp_path_factory.mktemp("service")) as client:
        yield publish(client, flat)


def induced_subgraph(flat: FlatGraph, node_ids: IdsByType) -> FlatGraph:
    """Return the flat graph restricted to the chosen nodes and the edges among them."""
    for name, ids in node_ids.items():
        flat = flat.without_nodes(name, np.setdiff1d(flat.nodes[name].ids, ids))
    return flat


def read_manifest(out: Path) -> dict[str, Any]:
    return dict(json.loads((out / "manifest.json").read_text()))


def source_nodes(flat: FlatGraph, etype: str, dst: NDArray[np.int64]) -> NDArray[np.int64]:
    edges = flat.edges[etype]
    return np.unique(edges.src[np.isin(edges.dst, dst)])


def test_sample_has_reached_nodes_and_all_edges_between_them(
    published: tuple[Graph, FlatGraph], tmp_path: Path
) -> None:
    graph, flat = published
    seeds = np.unique(graph.sample_nodes(40, "paper", replace=False, seed=5).nodes)
    assert len(seeds) == 40
    one_hop = np.union1d(seeds, source_nodes(flat, "paper:cites:paper", seeds))
    authors = source_nodes(flat, "author:writes:paper", one_hop)
    node_ids = {
        "paper": np.union1d(one_hop, source_nodes(flat, "paper:cites:paper", one_hop)),
        "author": authors,
    }
    report = export.dgl(
        export.sampled(graph, 40, [-1, -1], ntype="paper", seed=5), tmp_path / "out", parts=2
    )
    assert_partition(read_partition(report.config), induced_subgraph(flat, node_ids))
    assert export.verify(tmp_path / "out").ok
    assert read_manifest(tmp_path / "out")["sample"]["fanouts"] == [-1, -1]


def test_neighbors_are_sampled_by_weight_and_edges_induced(
    published: tuple[Graph, FlatGraph], tmp_path: Path
) -> None:
    graph, flat = published
    sample = export.sampled(graph, 30, [2, 1], ntype="paper", seed=9)
    report = export.dgl(sample, tmp_path / "out", parts=2)
    subgraph = graph.sample_subgraph(
        graph.sample_nodes(30, "paper", replace=False, seed=9).nodes,
        [2, 1],
        ntype="paper",
        direction="in",
        seed=9,
        edge_ids=False,
    )
    node_ids = {name: np.sort(ids) for name, ids in subgraph.nodes.items()}
    assert_partition(read_partition(report.config), induced_subgraph(flat, node_ids))
    assert report.edges > sum(len(rows) for rows in subgraph.row.values()), (
        "some edge that no draw followed is among the nodes"
    )


def test_nodes_without_weight_are_never_seeds(published: tuple[Graph, FlatGraph]) -> None:
    graph, flat = published
    weights = dict(
        zip(flat.nodes["paper"].ids.tolist(), flat.nodes["paper"].weights.tolist(), strict=True)
    )
    positive = sum(weight > 0 for weight in weights.values())
    seeds = export.sampled(graph, positive, [], ntype="paper").sampled_nodes("paper")
    assert all(weights[node] > 0 for node in seeds.tolist())
    with pytest.raises(InvalidRequest):
        export.sampled(graph, positive + 1, [], ntype="paper").sampled_nodes("paper")
    assert (
        len(
            export.sampled(graph, positive + 1, [], ntype="paper", weighted=False).sampled_nodes(
                "paper"
            )
        )
        == positive + 1
    )


def test_samples_are_equal_for_equal_seeds_only(
    published: tuple[Graph, FlatGraph], tmp_path: Path
) -> None:
    graph, _ = published
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        export.dgl(
            export.sampled(graph, 20, [3], ntype="paper", seed=seed), tmp_path / name, parts=2
        )
    assert read_manifest(tmp_path / "a") == read_manifest(tmp_path / "b")
    assert read_manifest(tmp_path / "a")["sums"] != read_manifest(tmp_path / "c")["sums"]


def test_request_batch_sizes_do_not_change_a_sample(
    published: tuple[Graph, FlatGraph], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, flat = published
    seeds = flat.nodes["paper"].ids[:100]
    export.dgl(export.sampled(graph, seeds, [2], ntype="paper"), tmp_path / "whole", parts=2)
    monkeypatch.setattr("asterism.export.sampled_graph._EDGES_PER_REQUEST", 4)
    monkeypatch.setattr("asterism.export.sampled_graph._NODES_PER_REQUEST", 7)
    export.dgl(export.sampled(graph, seeds, [2], ntype="paper"), tmp_path / "pieces", parts=2)
    expected, pieces = read_manifest(tmp_path / "whole"), read_manifest(tmp_path / "pieces")
    assert expected["sums"] == pieces["sums"]
    assert expected["edges"] == pieces["edges"]
    assert export.verify(tmp_path / "pieces").ok


def test_sample_stays_at_its_version_after_later_builds(
    published: tuple[Graph, FlatGraph], tmp_path: Path
) -> None:
    graph, flat = published
    first = graph.manifest().version
    with graph.pin(first):
        export.dgl(
            export.sampled(graph, 25, [2], ntype="paper", seed=3), tmp_path / "before", parts=2
        )
        graph.upsert_edges(flat.nodes["paper"].ids[:200], flat.nodes["paper"].ids[200:400], "cites")
        graph.build()
        export.dgl(
            export.sampled(graph, 25, [2], ntype="paper", seed=3),
            tmp_path / "again",
            parts=2,
            version=first,
        )
    assert read_manifest(tmp_path / "before") == read_manifest(tmp_path / "again")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seeds": 3, "fanouts": [2]}, "ntype=None: expected the node type"),
        ({"seeds": 3, "fanouts": [2], "ntype": "x"}, "'x'"),
        ({"seeds": 0, "fanouts": [2], "ntype": "paper"}, "seeds=0"),
        ({"seeds": 3, "fanouts": [0], "ntype": "paper"}, "fanouts=0"),
        ({"seeds": 3, "fanouts": [2], "ntype": "paper", "direction": "up"}, "'up'"),
    ],
    ids=str,
)
def test_invalid_sample_options_are_refused(
    published: tuple[Graph, FlatGraph], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidRequest, match=message):
        export.sampled(published[0], **options)


def test_different_options_do_not_resume_a_sample(
    published: tuple[Graph, FlatGraph], tmp_path: Path
) -> None:
    graph, _ = published
    export.dgl(
        export.sampled(graph, 20, [3], ntype="paper"), tmp_path / "out", parts=2, resume=True
    )
    with pytest.raises(asterism.errors.Conflict):
        export.dgl(
            export.sampled(graph, 21, [3], ntype="paper"), tmp_path / "out", parts=2, resume=True
        )
