"""PGLBox configurations, run on a graph loaded from their files.

The tests check the effect of every key on the batches.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.kit import pglbox_files as kit
from tests.kit import zygote
from tests.kit.cluster import LocalCluster

import asterism
from asterism import Client, Graph, InvalidRequest, NotFound, ingest
from asterism.pglbox import PGLBox, TrainBatch

USER, ITEM, TAG = 0, 1, 2
PURCHASES = {(src, dst) for src, dst, _ in kit.BUYS}
CONNECTED_PAIRS = PURCHASES | set(kit.KNOWS) | set(kit.HAS)
CONNECTED_PAIRS |= {(dst, src) for src, dst in CONNECTED_PAIRS}


def load(client: Client, folder: Path) -> Graph:
    path = kit.write(folder)
    ingest.load(client, "box", path, schema=replace(ingest.schema_of(path), parts=2))
    graph = client.graph("box")
    graph.build()
    return graph


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with asterism.open(tmp_path_factory.mktemp("pglbox")) as opened:
        yield opened


@pytest.fixture(scope="module")
def graph(client: Client, tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return load(client, tmp_path_factory.mktemp("files"))


def box(graph: Graph, folder: Path, **keys: Any) -> PGLBox:
    return PGLBox(graph, kit.write(folder, **keys), seed=7)


def start_nodes(runner: PGLBox) -> set[int]:
    return {
        node
        for batch in runner.train()
        if batch.walks is not None
        for node in batch.walks.nodes[:, 0].tolist()
    }


def to_lists(batch: TrainBatch) -> list[Any]:
    arrays = [batch.pairs, batch.types, batch.places, batch.negatives, *batch.nodes.ids.values()]
    return [None if array is None else array.tolist() for array in arrays]


def test_metapaths_walk_length_count_and_window_are_obeyed(graph: Graph, tmp_path: Path) -> None:
    batches = list(
        box(graph, tmp_path, need_dump_walk=True, walk_len=4, walk_times=3, win_size=2).train()
    )
    assert {batch.metapath for batch in batches} == {"u2buy2i-i2buy2u", "i2t-t2i", "u2u"}
    starts: Counter[int] = Counter()
    pairs: Counter[tuple[int, int]] = Counter()
    for walks in (batch.walks for batch in batches if batch.walks is not None):
        assert walks.nodes.shape[1] == 5
        starts.update(walks.nodes[:, 0].tolist())
        for walk in walks.nodes.tolist():
            path = [node for node in walk if node >= 0]
            assert set(pairwise(path)) <= CONNECTED_PAIRS
            for position, node in enumerate(path):
                pairs.update(
                    (node, neighbor)
                    for neighbor in path[max(position - 2, 0) : position]
                    + path[position + 1 : position + 3]
                )
    # Each node starts up to 3 walks, to distinct neighbors. An item has one tag, so it starts one
    # walk.
    assert set(starts) == {*kit.USERS, *kit.ITEMS}
    assert {starts[item] for item in kit.ITEMS} == {1}
    assert max(starts[user] for user in kit.USERS) == 3
    assert Counter(map(tuple, np.concatenate([batch.pairs for batch in batches]).tolist())) == pairs


def test_batch_size_and_negatives_match_configuration(graph: Graph, tmp_path: Path) -> None:
    batches = list(box(graph, tmp_path, batch_size=40, neg_num=3, batch_node_size=16).train())
    assert max(map(len, batches)) == 40
    for batch in batches:
        assert batch.negatives is not None
        assert batch.negatives.shape == (len(batch), 3)
        kinds = np.select([batch.negatives < 100, batch.negatives < 200], [USER, ITEM], TAG)
        assert np.array_equal(kinds, np.repeat(batch.types[:, 1:], 3, axis=1))
        assert batch.walks is None
    assert all(batch.negatives is None for batch in box(graph, tmp_path, neg_num=0).train())


def test_excluded_pairs_pair_labels_and_max_steps(graph: Graph, tmp_path: Path) -> None:
    batches = list(
        box(
            graph,
            tmp_path,
            excluded_train_pair="u2i;i2i",
            pair_label="i2u:3,u2u:4",
            meta_path="u2buy2i-i2buy2u",
        ).train()
    )
    kinds: dict[tuple[int, ...], int] = {}
    for batch in batches:
        assert batch.labels is not None
        kinds.update(zip(map(tuple, batch.types.tolist()), batch.labels.tolist(), strict=True))
    assert kinds == {(ITEM, USER): 3, (USER, USER): 4}
    assert all(batch.labels is None for batch in box(graph, tmp_path).train())
    assert len(list(box(graph, tmp_path, max_steps=2).train())) == 2
    assert list(box(graph, tmp_path, need_train=False).train()) == []


def test_each_epoch_has_its_own_order(graph: Graph, tmp_path: Path) -> None:
    first, second = ([], []), ([], [])
    for batch in box(graph, tmp_path, epochs=2, need_dump_walk=True, batch_node_size=4).train():
        if batch.walks is not None:
            (first, second)[batch.epoch][0].extend(batch.walks.nodes[:, 0].tolist())
    assert set(first[0]) == set(second[0]) == {*kit.USERS, *kit.ITEMS}
    assert first[0] != second[0]


def test_seed_repeats_batches_and_ranks_split_start_nodes(graph: Graph, tmp_path: Path) -> None:
    path = kit.write(tmp_path, need_dump_walk=True, sage_mode=True, samples=[2], infer_samples=[2])
    batches = [to_lists(batch) for batch in PGLBox(graph, path, seed=3).train()]
    assert batches == [to_lists(batch) for batch in PGLBox(graph, path, seed=3).train()]
    assert batches != [to_lists(batch) for batch in PGLBox(graph, path, seed=4).train()]
    shares = [start_nodes(PGLBox(graph, path, seed=3, rank=rank, world=2)) for rank in (0, 1)]
    assert shares[0] & shares[1] == set()
    assert shares[0] | shares[1] == {*kit.USERS, *kit.ITEMS}
    with pytest.raises(InvalidRequest, match="seed=None with world=2"):
        PGLBox(graph, path, world=2)


def test_training_resumes_after_last_delivered_batch(graph: Graph, tmp_path: Path) -> None:
    path = kit.write(
        tmp_path,
        epochs=2,
        batch_size=60,
        batch_node_size=20,
        sage_mode=True,
        samples=[2],
        infer_samples=[2],
    )
    expected = [to_lists(batch) for batch in PGLBox(graph, path, seed=3).train()]
    assert len(expected) > 20
    for count in (1, 7, len(expected) // 2 + 1, len(expected)):
        first = PGLBox(graph, path, seed=3)
        before = [to_lists(batch) for batch in islice(first.train(), count)]
        resumed = PGLBox(graph, path, seed=3)
        resumed.load_state_dict(json.loads(json.dumps(first.state_dict())))
        assert before + [to_lists(batch) for batch in resumed.train()] == expected
    assert list(resumed.train()) == [], "it is over"
    with pytest.raises(InvalidRequest, match="seed=4: expected 3, the seed of the state"):
        PGLBox(graph, path, seed=4).load_state_dict(first.state_dict())


@pytest.mark.parametrize("weighted", [False, True])
def test_weighted_sample_walks_by_weight_and_otherwise_uniformly(
    graph: Graph, tmp_path: Path, weighted: bool
) -> None:
    keys = {
        "meta_path": "u2buy2i-i2buy2u",
        "walk_len": 1,
        "walk_times": 1,
        "win_size": 1,
        "epochs": 60,
        "need_dump_walk": True,
        "neg_num": 0,
    }
    hits = 0
    for batch in box(graph, tmp_path, **keys, batch_size=10_000, weighted_sample=weighted).train():
        if batch.walks is not None:
            user, item = batch.walks.nodes.T
            hits += int((item == 101 + user * 7 % 20).sum())
    share = 0.0
    for user in kit.USERS:
        purchases = [
            (dst, weight if weighted else 1.0) for src, dst, weight in kit.BUYS if src == user
        ]
        share += sum(weight for dst, weight in purchases if dst == 101 + user * 7 % 20) / sum(
            weight for _, weight in purchases
        )
    assert abs(hits - 60 * share) < 5 * np.sqrt(60 * len(kit.USERS) / 4), (
        "five standard deviations at most"
    )


def test_sage_mode_samples_around_the_nodes_of_a_batch(graph: Graph, tmp_path: Path) -> None:
    keys = {
        "sage_mode": True,
        "samples": [3, 2],
        "infer_samples": [4],
        "return_weight": True,
        "use_degree_norm": True,
    }
    batches = list(box(graph, tmp_path, **keys).train())
    degrees = {
        "u:buy:i": Counter(src for src, _, _ in kit.BUYS),
        "i:to:t": Counter(src for src, _ in kit.HAS),
    }
    weights = {(src, dst, weight) for src, dst, weight in kit.BUYS}
    for batch in batches:
        subgraph = batch.nodes.subgraph
        assert subgraph is not None
        assert subgraph.weights is not None
        names = ["u", "i", "t"]
        for (a, b), (at, bt), (pa, pb) in zip(
            batch.pairs.tolist(), batch.types.tolist(), batch.places.tolist(), strict=True
        ):
            assert (batch.nodes.ids[names[at]][pa], batch.nodes.ids[names[bt]][pb]) == (a, b)
        for name in ("u:buy:i", "i:to:t"):
            src, dst = name.split(":")[0], name.split(":")[2]
            ends = zip(
                subgraph.nodes[src][subgraph.row[name]].tolist(),
                subgraph.nodes[dst][subgraph.col[name]].tolist(),
                strict=True,
            )
            assert set(ends) <= CONNECTED_PAIRS
            assert batch.nodes.degrees is not None
            assert batch.nodes.degrees[name].tolist() == [
                degrees[name][node] for node in batch.nodes.ids[src].tolist()
            ]
        users, items = (
            subgraph.nodes["u"][subgraph.row["u:buy:i"]],
            subgraph.nodes["i"][subgraph.col["u:buy:i"]],
        )
        assert (
            set(
                zip(
                    users.tolist(),
                    items.tolist(),
                    subgraph.weights["u:buy:i"].tolist(),
                    strict=True,
                )
            )
            <= weights
        )
        assert [len(counts) for counts in subgraph.num_sampled_nodes.values()] == [3, 3, 3], (
            "the batch's own, and two hops"
        )
        hop = np.bincount(subgraph.row["u:buy:i"][: subgraph.num_sampled_edges["u:buy:i"][0]])
        assert hop.max(initial=0) <= 3
    assert batches[0].nodes.degrees is not None
    light = next(iter(box(graph, tmp_path, sage_mode=True, samples=[3], infer_samples=[1]).train()))
    assert light.nodes.degrees is None
    assert light.nodes.subgraph is not None
    assert light.nodes.subgraph.weights is None


def test_slot_values_are_returned_up_to_their_limit(graph: Graph, tmp_path: Path) -> None:
    for limit in (100, 2):
        batch = next(
            batch
            for batch in box(graph, tmp_path, max_slot_value_size=limit).train()
            if batch.metapath == "u2buy2i-i2buy2u"
        )
        indptr, values = batch.nodes.features["i"]["_11"]
        for row, item in enumerate(batch.nodes.ids["i"].tolist()):
            assert values[indptr[row] : indptr[row + 1]].tolist() == kit.SLOTS[item][:limit]
        indptr, values = batch.nodes.features["u"]["_12"]
        assert values.tolist() == batch.nodes.ids["u"].tolist()
    batch = next(box(graph, tmp_path, slots=["11"]).train())
    assert set(batch.nodes.features["u"]) == {"_11"}
    with pytest.raises(NotFound, match="no feature '_77'"):
        box(graph, tmp_path, slots=["77"])


def test_inference_covers_all_nodes_or_a_type_or_a_file(graph: Graph, tmp_path: Path) -> None:
    batches = list(box(graph, tmp_path, infer_batch_size=8).infer())
    assert max(map(len, batches)) == 8
    assert sorted(np.concatenate([batch.ids for batch in batches]).tolist()) == [
        *kit.USERS,
        *kit.ITEMS,
        *kit.TAGS,
    ]
    by_type = list(
        box(
            graph, tmp_path, infer_node_type="t;i", sage_mode=True, samples=[1], infer_samples=[5]
        ).infer()
    )
    assert [batch.ntype for batch in by_type] == ["t", "i", "i", "i"]
    for batch in by_type:
        assert batch.nodes.subgraph is not None
        assert batch.nodes.ids[batch.ntype][batch.places].tolist() == batch.ids.tolist()
        assert len(batch.nodes.subgraph.num_sampled_nodes["i"]) == 2
    folder = tmp_path / "data/some"
    folder.mkdir()
    (folder / "part-0").write_text("u\t3\ni\t105\nu\t9\nu\t3\n")
    from_file = list(box(graph, tmp_path, infer_nodes="some").infer())
    assert sorted((batch.ntype, *sorted(batch.ids.tolist())) for batch in from_file) == [
        ("i", 105),
        ("u", 3, 9),
    ]
    assert list(box(graph, tmp_path, need_inference=False).infer()) == []
    assert start_nodes(box(graph, tmp_path, train_start_nodes="some", need_dump_walk=True)) == {
        3,
        9,
        105,
    }
    (folder / "part-0").write_text("u\t3\nu\t77\n")
    with pytest.raises(
        InvalidRequest, match="infer_nodes: node 77: expected a node of type 'u' of the graph"
    ):
        list(box(graph, tmp_path, infer_nodes="some").infer())


def test_graph_without_configured_types_is_refused(client: Client, tmp_path: Path) -> None:
    client.create_space("other", {"nodes": {"u": {}}}, if_not_exists=True)
    with pytest.raises(NotFound, match="no node type 'i'"):
        PGLBox(client.graph("other"), kit.write(tmp_path))


def test_a_window_is_loaded_from_its_folder(client: Client, tmp_path: Path) -> None:
    path = kit.write(
        tmp_path,
        train_mode="online_train",
        start_time="20230219/02",
        time_delta=3,
        graph_data_hdfs_path="data",
    )
    for hour, users in (("02", 2), ("05", 4)):
        folder = tmp_path / "data/20230219" / hour
        for name in ("node_types", "u2buy2i", "i2t"):
            (folder / name).mkdir(parents=True)
        (folder / "node_types/all").write_text(
            "i\t101\nt\t201\n" + "".join(f"u\t{user}\n" for user in range(1, users + 1))
        )
        (folder / "u2buy2i/all").write_text(
            "".join(f"{user}\t101\n" for user in range(1, users + 1))
        )
        (folder / "u2u.txt").write_text("1\t2\n")
        (folder / "i2t/all").write_text("101\t201\n")
    counts = []
    for window in asterism.pglbox.read_config(path).windows():
        name = f"w{window.time:%Y%m%d%H}"
        report = ingest.load(
            client,
            name,
            path,
            root=window.folder,
            schema=ingest.schema_of(path, root=window.folder),
        )
        counts.append((name, report.nodes, report.edges))
    assert counts == [("w2023021902", 4, 2 * (2 + 1 + 1)), ("w2023021905", 6, 2 * (4 + 1 + 1))]


def test_cluster_embedded_and_command_give_same_batches(graph: Graph, tmp_path: Path) -> None:
    path = kit.write(tmp_path, sage_mode=True, samples=[2], infer_samples=[2])
    with LocalCluster(storageds=2) as cluster, cluster.client() as remote:
        remote_graph = load(remote, tmp_path)
        kit.write(tmp_path, sage_mode=True, samples=[2], infer_samples=[2])
        assert [to_lists(b) for b in PGLBox(remote_graph, path, seed=5).train()] == [
            to_lists(b) for b in PGLBox(graph, path, seed=5).train()
        ]
        options = ("--address", cluster.addresses, "--json")
        command = ("asterism.cli", *options, "sample", "pglbox", "box", path)
        process = zygote.run(*command, "--seed", 5, "--batches", 2)
        assert process.returncode == 0, process.stderr
        output = json.loads(process.stdout)
        first = next(PGLBox(graph, path, seed=5).train())
        assert len(output) == 2
        assert output[0]["pairs"] == first.pairs.tolist()
