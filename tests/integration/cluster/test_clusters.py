"""Batches of whole clusters.

Each epoch contains every cluster once, with all edges among the clusters of a batch. Iteration
resumes where a trainer stopped.
"""

from __future__ import annotations

import itertools
import json
import pickle
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.distributions.checks import require_counts
from tests.kit import cases
from tests.kit.cases_clusters import cases_cluster

import asterism
from asterism import Graph, export
from asterism.calls.clusters import ClusterBatch, Clusters
from asterism_proto.errors import Conflict, Corrupt, InvalidRequest, NotFound

COUNT, Q = 7, 3


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[asterism.Client]:
    with asterism.open(cases.copy_built_graph(tmp_path_factory.mktemp("clusters"))) as opened:
        yield opened


@pytest.fixture(scope="module")
def graph(client: asterism.Client) -> Graph:
    return client.graph("cases")


@pytest.fixture(scope="module")
def folder(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("assigned") / "clusters"
    export.assignment(graph, path, parts=COUNT, assign="metis", seed=3)
    return path


def cluster_by_node(clusters: Clusters) -> dict[tuple[str, int], int]:
    """Return the cluster of each node."""
    return {
        (name, node): c
        for c in range(clusters.count)
        for name, ids in clusters.nodes([c]).items()
        for node in ids.tolist()
    }


def members(batch: ClusterBatch) -> set[tuple[str, int]]:
    return {(name, node) for name, ids in batch.subgraph.nodes.items() for node in ids.tolist()}


@pytest.mark.parametrize("method", ["metis", "fennel", "ldg", "hash"])
def test_a_folder_has_every_node_in_its_assigned_cluster(
    graph: Graph, tmp_path: Path, method: str
) -> None:
    report = export.assignment(graph, tmp_path / "given", parts=COUNT, assign=method, seed=1)
    clusters = Clusters.in_folder(tmp_path / "given")
    assert (clusters.space, clusters.version, clusters.count) == ("cases", 1, COUNT)
    assert {
        name: tuple(np.diff(offsets).tolist()) for name, offsets in clusters.offsets.items()
    } == dict(report.nodes)
    owner = cluster_by_node(clusters)
    for name in ("person", "paper"):
        ids = np.sort(np.concatenate([batch.ids for batch in graph.scan_nodes(name)]))
        lines = (tmp_path / f"given/{name}.txt").read_text().split()
        assert [owner[name, node] for node in ids.tolist()] == [int(line) for line in lines]
    assert len(owner) == cases.PEOPLE + cases.PAPERS


def test_every_epoch_has_each_cluster_once_over_all_ranks(graph: Graph, folder: Path) -> None:
    clusters = Clusters.in_folder(folder)
    owner = cluster_by_node(clusters)
    shares = [graph.cluster_batches(folder, Q, seed=5, rank=rank, world=2) for rank in range(2)]
    orders = []
    for epoch in range(3):
        assert {share.epoch for share in shares} == {epoch}
        batches = [batch for share in shares for batch in share]
        assert all(len(batch.clusters) <= Q for batch in batches)
        orders.append([c for batch in batches for c in batch.clusters.tolist()])
        assert sorted(orders[-1]) == list(range(COUNT))
        for batch in batches:
            for name, nodes in batch.subgraph.nodes.items():
                expected = [
                    sorted(
                        node
                        for (node_type, node), cluster in owner.items()
                        if (node_type, cluster) == (name, c)
                    )
                    for c in batch.clusters.tolist()
                ]
                assert nodes.tolist() == list(itertools.chain(*expected))
        assert sum(len(members(batch)) for batch in batches) == len(owner)
    assert len({tuple(order) for order in orders}) == 3


def test_edges_between_the_clusters_of_a_batch_are_kept(graph: Graph, folder: Path) -> None:
    owner, cross_edges = cluster_by_node(Clusters.in_folder(folder)), 0
    for batch in graph.cluster_batches(folder, Q, seed=2):
        batch_nodes, subgraph = members(batch), batch.subgraph
        assert subgraph.edge_ids is not None
        for relation, (src, dst, _) in cases.edges().items():
            name = next(edge.name for edge in graph.schema.edge_types if edge.relation == relation)
            src_type, dst_type = name.split(":")[0], name.split(":")[2]
            pairs = list(zip(src.tolist(), dst.tolist(), strict=True))
            expected = Counter(
                (a, b)
                for a, b in pairs
                if (src_type, a) in batch_nodes and (dst_type, b) in batch_nodes
            )
            assert (
                Counter(
                    zip(
                        subgraph.nodes[src_type][subgraph.row[name]].tolist(),
                        subgraph.nodes[dst_type][subgraph.col[name]].tolist(),
                        strict=True,
                    )
                )
                == expected
            )
            cross_edges += sum(
                count
                for (a, b), count in expected.items()
                if owner[src_type, a] != owner[dst_type, b]
            )
            ends = (
                subgraph.nodes[src_type][subgraph.row[name]].tolist(),
                subgraph.nodes[dst_type][subgraph.col[name]].tolist(),
            )
            assert [pairs[edge] for edge in subgraph.edge_ids[name].tolist()] == list(
                zip(*ends, strict=True)
            )
    assert cross_edges > 100
    single_batches = list(graph.cluster_batches(folder, 1, seed=2))
    assert len(single_batches) == COUNT
    for batch in single_batches:
        for name in batch.subgraph.row:
            src_type, dst_type = name.split(":")[0], name.split(":")[2]
            ends = (
                batch.subgraph.nodes[src_type][batch.subgraph.row[name]],
                batch.subgraph.nodes[dst_type][batch.subgraph.col[name]],
            )
            assert {owner[src_type, a] for a in ends[0].tolist()} | {
                owner[dst_type, b] for b in ends[1].tolist()
            } <= set(batch.clusters.tolist())


def test_clusters_are_combined_at_random(graph: Graph, folder: Path) -> None:
    epochs, pairs = 600, Counter[tuple[int, int]]()
    batches = graph.cluster_batches(folder, Q, seed=8)
    for _ in range(epochs):
        while batches.cursor.left:
            pairs.update(itertools.combinations(sorted(batches.cursor.take(Q).tolist()), 2))
        batches.cursor.next_epoch()
    # Seven clusters in groups of three make two groups of three and one single cluster: 6 of 21
    # pairs meet in an epoch.
    possible_pairs = list(itertools.combinations(range(COUNT), 2))
    require_counts(
        [pairs[pair] for pair in possible_pairs],
        np.full(len(possible_pairs), epochs * 6 / len(possible_pairs)),
        "clusters that meet",
    )


def test_epochs_resume_where_they_stopped_and_on_more_ranks(graph: Graph, folder: Path) -> None:
    first = [graph.cluster_batches(folder, 1, seed=5, rank=rank, world=2) for rank in range(2)]
    seen = [*itertools.islice(first[0], 2), *itertools.islice(first[1], 1)]
    states = json.loads(json.dumps([share.state_dict() for share in first]))
    resharded = [graph.cluster_batches(folder, 2, seed=0, rank=rank, world=3) for rank in range(3)]
    for share in resharded:
        share.reshard(states)
    remaining = [batch for share in resharded for batch in share]
    assert sorted(
        np.concatenate([batch.clusters for batch in [*seen, *remaining]]).tolist()
    ) == list(range(COUNT))
    resumed = graph.cluster_batches(folder, 1)
    resumed.load_state_dict(states[0])
    assert [cases.digest(batch) for batch in resumed] == [cases.digest(batch) for batch in first[0]]
    others = graph.cluster_batches({"paper": ([1, 2, 3], [0, 1, 1])}, 1)
    with pytest.raises(InvalidRequest, match="state of"):
        others.load_state_dict(states[0])


def test_clusters_may_come_from_a_feature_or_from_arrays(graph: Graph) -> None:
    by_age = Clusters.of_feature(graph, "age")
    people, ages = cases.person_ids(), np.arange(cases.PEOPLE) % 99
    assert by_age.count == 99
    assert cluster_by_node(by_age) == {
        ("person", node): age for node, age in zip(people.tolist(), ages.tolist(), strict=True)
    }
    by_arrays = Clusters.of_arrays(graph, {"person": (people, ages)})
    assert by_arrays.identity == by_age.identity
    batches = list(graph.cluster_batches(by_arrays, 50, seed=1))
    assert [len(batch.clusters) for batch in batches] == [50, 49]
    few_batches = list(
        graph.cluster_batches(
            {"paper": ([5, 3, 9], [2, 0, 0]), "person": ([], [])},
            9,
            "cites",
            node_features=["vec"],
            seed=1,
        )
    )
    (batch,) = few_batches
    assert sorted(batch.clusters.tolist()) == [0, 1, 2]  # one of these clusters is empty
    assert sorted(batch.subgraph.nodes["paper"].tolist()) == [3, 5, 9]
    assert batch.subgraph.features is not None
    assert np.array_equal(
        np.asarray(batch.subgraph.features["paper"]["vec"])[:, 0], batch.subgraph.nodes["paper"] * 3
    )


def test_storing_clusters_in_a_feature_keeps_all_other_columns(
    client: asterism.Client, tmp_path: Path
) -> None:
    features = {
        "cluster": "int8",
        "age": "int32",
        "words": {"kind": "ragged", "dtype": "int64"},
        "said": "bytes",
    }
    nodes = {
        "person": {"weighted": True, "features": features},
        "thing": {"features": {"cluster": "int64"}},
    }
    client.create_space("kept", {"parts": 3, "nodes": nodes, "edges": {"person:likes:thing": {}}})
    graph, people = client.graph("kept"), np.arange(0, 400, 2)
    ends = np.concatenate([[0], np.cumsum(people % 4)])
    values = {
        "age": people * 3,
        "words": (ends, np.arange(ends[-1])),
        "said": [b"%d" % node for node in people.tolist()],
    }
    graph.upsert_nodes(people, "person", people / 7, values)
    graph.upsert_nodes(np.arange(90), "thing")
    graph.upsert_edges(people, people % 90, "likes")
    graph.build()
    before = {
        batch.ids.tobytes(): batch for batch in graph.scan_nodes("person", ["age", "words", "said"])
    }
    export.assignment(graph, tmp_path / "clusters", parts=COUNT, assign="fennel", seed=2)
    clusters = Clusters.in_folder(tmp_path / "clusters")
    commit = clusters.keep(graph, "cluster")
    graph.build()
    assert graph.manifest().watermark == commit
    assert cluster_by_node(Clusters.of_feature(graph, "cluster")) == cluster_by_node(clusters)
    for batch in graph.scan_nodes("person", ["age", "words", "said"]):
        old = before.pop(batch.ids.tobytes())
        assert cases.digest((batch.weights, batch.features)) == cases.digest(
            (old.weights, old.features)
        )
    assert not before
    assert sum(len(batch.src) for batch in graph.scan_edges("likes")) == len(people)
    with pytest.raises(InvalidRequest, match="the present content"):
        Clusters.in_folder(tmp_path / "clusters").keep(client.graph("cases"), "age")
    current = Clusters.of_feature(graph, "cluster")
    graph.upsert_nodes([90], "thing")
    with pytest.raises(Conflict, match="1 commits after version 2"):
        current.keep(graph, "cluster")
    graph.build()
    partial = Clusters.of_arrays(graph, {"thing": (np.arange(90), np.arange(90) % 3)})
    with pytest.raises(InvalidRequest, match="node 90 of 'thing': expected a cluster"):
        partial.keep(graph, "cluster")
    with pytest.raises(
        InvalidRequest,
        match=r"feature='age': expected a feature of node type 'thing' .* it has cluster",
    ):
        partial.keep(graph, "age")
    many = Clusters.of_arrays(graph, {"person": (people, people)})
    with pytest.raises(
        InvalidRequest, match=r"feature='cluster': expected a dtype that holds 398, .* it is int8"
    ):
        many.keep(graph, "cluster")
    with pytest.raises(InvalidRequest, match="expected one integer for each node"):
        many.keep(graph, "said")


def test_clusters_of_a_space_with_string_ids_are_stored(
    client: asterism.Client, tmp_path: Path
) -> None:
    client.create_space(
        "airports",
        {
            "ids": "string",
            "nodes": {"airport": {"features": {"cluster": "int32"}}},
            "edges": {"airport:route:airport": {}},
        },
    )
    air, codes = client.graph("airports"), [f"A{i:02}" for i in range(40)]
    air.upsert_nodes(codes, "airport")
    air.upsert_edges(codes, [*codes[1:], codes[0]], "route")
    air.build()
    export.assignment(air, tmp_path / "clusters", parts=4, assign="fennel", seed=2)
    clusters = Clusters.in_folder(tmp_path / "clusters")
    clusters.keep(air, "cluster")
    air.build()
    stored = Clusters.of_feature(air, "cluster")
    assert {node: c for (_, node), c in cluster_by_node(stored).items()} == {
        node: c for (_, node), c in cluster_by_node(clusters).items()
    }
    assert (
        sorted(
            air.node_names(
                np.concatenate(list(stored.nodes(np.arange(4)).values())), "airport"
            ).tolist()
        )
        == codes
    )


def test_clusters_survive_pickling(graph: Graph, folder: Path) -> None:
    for clusters in (Clusters.in_folder(folder), Clusters.of_feature(graph, "age")):
        data = pickle.dumps(clusters)
        assert cluster_by_node(pickle.loads(data)) == cluster_by_node(clusters)
    assert len(pickle.dumps(Clusters.in_folder(folder))) < 1000


def test_clusters_of_other_content_are_refused(client: asterism.Client, tmp_path: Path) -> None:
    client.create_space("changing", {"parts": 2, "nodes": {"n": {}}, "edges": {"n:to:n": {}}})
    changing = client.graph("changing")
    changing.upsert_nodes(np.arange(20), "n")
    changing.upsert_edges(np.arange(19), np.arange(1, 20), "to")
    changing.build()
    export.assignment(changing, tmp_path / "old", parts=3, assign="fennel", homogeneous=True)
    with changing.pin() as pinned:
        changing.upsert_nodes([99], "n")
        changing.build()
        with pytest.raises(
            InvalidRequest,
            match=r"of version 1 of space 'changing': expected clusters of version 2",
        ):
            changing.cluster_batches(tmp_path / "old", 1)
        assert sorted(
            np.concatenate(
                [
                    batch.subgraph.nodes["n"]
                    for batch in pinned.cluster_batches(tmp_path / "old", 2, seed=1)
                ]
            )
        ) == list(range(20))
    client.drop_space("changing")


def test_invalid_clusterings_are_refused_with_a_message(
    graph: Graph, folder: Path, tmp_path: Path
) -> None:
    for message, clustering in (
        (r"nodes of 'paper' with 5 twice", {"paper": ([5, 5], [0, 1])}),
        (r"clusters of 'paper'\[1\]=-1", {"paper": ([5, 6], [0, -1])}),
        ("of length 1: expected 2", {"paper": ([5, 6], [0])}),
    ):
        with pytest.raises(InvalidRequest, match=message):
            graph.cluster_batches(clustering, 1)
    with pytest.raises(NotFound, match="'nope'"):
        Clusters.of_feature(graph, "nope")
    with pytest.raises(InvalidRequest, match="feature='vec': expected one integer for each node"):
        Clusters.of_feature(graph, "vec")
    with pytest.raises(NotFound, match=r"manifest\.json: no such file"):
        graph.cluster_batches(tmp_path / "nowhere", 1)
    with pytest.raises(InvalidRequest, match="batch_size=0: expected 1"):
        graph.cluster_batches(folder, 0)
    with pytest.raises(InvalidRequest, match="seed=None with world=2"):
        graph.cluster_batches(folder, 1, world=2)
    with pytest.raises(InvalidRequest, match="clusters with 7: expected 0 to 6"):
        Clusters.in_folder(folder).nodes([7])


@pytest.mark.parametrize(
    ("name", "damage", "error", "said"),
    [
        (
            "paper.members.npy",
            lambda path: path.write_bytes(path.read_bytes()[:-8]),
            Corrupt,
            "expected .* bytes, found",
        ),
        ("paper.members.npy", lambda path: path.unlink(), NotFound, "no such file"),
        (
            "paper.offsets.npy",
            lambda path: path.write_bytes(b"x" * path.stat().st_size),
            Corrupt,
            "not an array",
        ),
        ("manifest.json", lambda path: path.write_text("{"), Corrupt, "damaged"),
        (
            "manifest.json",
            lambda path: path.write_text(path.read_text().replace('"assignment"', '"dgl"')),
            InvalidRequest,
            "found 'dgl'",
        ),
    ],
)
def test_a_damaged_folder_is_refused(
    folder: Path, tmp_path: Path, name: str, damage: object, error: type[Exception], said: str
) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in folder.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    assert callable(damage)
    damage(copy / name)
    with pytest.raises(error, match=said):
        Clusters.in_folder(copy)


def test_batches_are_the_same_bytes_on_several_hosts(graph: Graph, folder: Path) -> None:
    clusters = Clusters.in_folder(folder)
    arrays = {
        name: (ids, np.repeat(np.arange(COUNT), np.diff(clusters.offsets[name])))
        for name, ids in clusters.members.items()
    }
    expected = [
        cases.digest(batch) for batch in graph.cluster_batches(folder, Q, seed=4, weights=True)
    ]
    assert [
        cases.digest(batch) for batch in graph.cluster_batches(arrays, Q, seed=4, weights=True)
    ] == expected
    with cases_cluster(3) as cluster:
        remote_graph = cluster.client().graph("cases")
        assert [
            cases.digest(batch)
            for batch in remote_graph.cluster_batches(arrays, Q, seed=4, weights=True)
        ] == expected
        with pytest.raises(InvalidRequest, match="assign clusters again"):
            remote_graph.cluster_batches(folder, Q)
