"""Tests of epochs as TensorFlow datasets, ``tf.function`` and Keras included.

Every node occurs once, even when processes are killed or restarted, or a version is published.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tests.kit.cluster import LocalCluster

import asterism
from asterism import Client, Graph
from asterism.records.samples import Ids, Subgraph
from asterism.tensorflow import NodeBatches
from asterism_proto.errors import InvalidRequest

PAPERS = 2708
EVERY = Counter(range(PAPERS))
KILLED = """
import json, os, signal, sys
import numpy as np
import tensorflow as tf
import asterism
from asterism.tensorflow import NodeBatches

address, folder, seen, die_at = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
with asterism.connect(address, space="citations", timeout_s=600) as graph, graph.pin() as held:
    batches = NodeBatches(held, "paper", 100, seed=3, ahead=3)
    manager = tf.train.CheckpointManager(
        tf.train.Checkpoint(batches=batches), folder, max_to_keep=2
    )
    manager.restore_or_initialize()
    for step, nodes in enumerate(batches):
        manager.save()
        with open(seen, "a") as file:
            file.write(json.dumps(nodes.numpy().tolist()) + "\\n")
        if step == die_at:
            os.kill(os.getpid(), signal.SIGKILL)
"""
"""Source of a trainer that is killed after a step."""


def sample_batch(graph: Graph, nodes: Ids, seed: int) -> Subgraph:
    """Return a training batch of nodes."""
    return graph.sample_subgraph(nodes, [3, 2], direction="in", node_features=["label"], seed=seed)


def batch_values(batch: Any) -> tuple[bytes, ...]:
    """Return the content of a batch, for comparison."""
    return tuple(np.asarray(tensor).tobytes() for tensor in tf.nest.flatten(batch))


def seeds_of(batch: Any) -> list[int]:
    return tf.gather(batch["nodes"]["paper"], batch["seeds"]).numpy().tolist()


def test_each_node_comes_once_over_ranks_in_shuffled_order(papers: Graph) -> None:
    ranks = [
        NodeBatches(papers, "paper", 200, sample_batch, seed=3, rank=rank, world=2)
        for rank in range(2)
    ]
    epoch_orders = []
    for epoch in range(2):
        assert {rank.epoch for rank in ranks} == {epoch}
        seen = [[node for batch in rank for node in seeds_of(batch)] for rank in ranks]
        assert abs(len(seen[0]) - len(seen[1])) <= 1
        assert Counter(itertools.chain(*seen)) == EVERY
        epoch_orders.append(seen[0])
    assert epoch_orders[0] != epoch_orders[1]


def test_batches_match_graph_with_and_without_threads(papers: Graph) -> None:
    seeds: list[int] = []

    def recording(graph: Graph, nodes: Ids, seed: int) -> Subgraph:
        seeds.append(seed)
        return sample_batch(graph, nodes, seed)

    batches = list(NodeBatches(papers, "paper", 500, recording, seed=5, ahead=0))
    assert [
        batch_values(batch)
        for batch in NodeBatches(papers, "paper", 500, sample_batch, seed=5, ahead=3)
    ] == [batch_values(batch) for batch in batches]
    for batch, seed in zip(
        batches, seeds[1:], strict=True
    ):  # the first batch only gave the signature
        expected = sample_batch(papers, np.array(seeds_of(batch)), seed)
        assert batch["row"]["paper:cites:paper"].dtype == tf.int64
        for name in ("nodes", "row", "col", "edge_ids"):
            for kind, array in getattr(expected, name).items():
                assert np.array_equal(batch[name][kind], array)
        assert np.array_equal(
            batch["features"]["paper"]["label"], np.asarray(expected.features["paper"]["label"])
        )
        assert batch["num_sampled_edges"]["paper:cites:paper"].numpy().tolist() == list(
            expected.num_sampled_edges["paper:cites:paper"]
        )


def test_dataset_has_static_widths_inside_tf_function(papers: Graph) -> None:
    def with_neighbors(graph: Graph, nodes: Ids, seed: int) -> dict[str, Any]:
        return {"nodes": nodes, "near": graph.sample_neighbors(nodes, "cites", 4, seed=seed).nodes}

    batches = NodeBatches(papers, "paper", 300, with_neighbors, seed=2)
    dataset = batches.dataset()
    assert dataset.element_spec["near"].shape.as_list() == [None, 4]

    @tf.function
    def total() -> Any:
        nodes, neighbors = tf.constant(0, tf.int64), tf.constant(0, tf.int64)
        for batch in dataset:
            nodes += tf.reduce_sum(batch["nodes"])
            neighbors += tf.reduce_sum(batch["near"])
        return nodes, neighbors

    expected = sum(
        int(batch["near"].numpy().sum())
        for batch in NodeBatches(papers, "paper", 300, with_neighbors, seed=2)
    )
    assert [int(value) for value in total()] == [sum(range(PAPERS)), expected]
    assert batches.left == PAPERS, "no step was recorded"


def test_keras_training_advances_the_dataset_position(papers: Graph) -> None:
    remaining: list[int] = []

    def word_vectors(graph: Graph, nodes: Ids, seed: int) -> tuple[Any, Any]:
        indptr, indices = graph.node_features(nodes, ["words"], "paper")["words"]
        x = np.zeros((len(nodes), 1433), np.float32)
        x[np.repeat(np.arange(len(nodes)), np.diff(indptr)), indices] = 1
        return x, np.asarray(graph.node_features(nodes, ["label"], "paper")["label"])

    batches = NodeBatches(papers, "paper", 256, word_vectors, seed=1)
    model = tf.keras.Sequential(
        [tf.keras.Input((1433,)), tf.keras.layers.Dense(32, "relu"), tf.keras.layers.Dense(7)]
    )
    model.compile(
        tf.keras.optimizers.Adam(0.01),
        tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    callback = tf.keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: remaining.append(batches.left)
    )
    history = model.fit(
        batches.dataset(), epochs=4, verbose=0, callbacks=[batches.noting(), callback]
    )
    assert remaining == [PAPERS - 256 * ((step + 1) % 11) for step in range(44)]
    assert batches.epoch == 4
    assert history.history["accuracy"][-1] > 0.8
    with pytest.raises(InvalidRequest, match="steps=1: expected at most 0"):
        batches.note()


def test_killed_trainer_resumes_from_checkpoint_exactly(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    (tmp_path / "trainer.py").write_text(KILLED)
    codes = []
    for kill_step in (6, 8, 100):
        command = [
            sys.executable,
            str(tmp_path / "trainer.py"),
            cluster.addresses,
            str(tmp_path / "kept"),
            str(seen),
            str(kill_step),
        ]
        codes.append(subprocess.run(command, timeout=600, check=False).returncode)
    assert codes == [-9, -9, 0]
    steps = [json.loads(line) for line in seen.read_text().splitlines()]
    assert len(steps) == 28
    assert Counter(node for nodes in steps for node in nodes) == EVERY
    with cluster.client().graph("citations").pin() as pinned:
        assert [
            nodes.numpy().tolist() for nodes in NodeBatches(pinned, "paper", 100, seed=3)
        ] == steps


def test_epoch_waits_for_restarted_server(cluster: LocalCluster) -> None:
    with cluster.client().graph("citations").pin() as pinned:
        expected = [
            batch_values(batch) for batch in NodeBatches(pinned, "paper", 200, sample_batch, seed=4)
        ]
        received, restarted = [], []
        for batch in NodeBatches(pinned, "paper", 200, sample_batch, seed=4):
            received.append(batch_values(batch))
            if len(received) == 4:
                cluster.kill("storaged-1")
                time.sleep(4)  # longer than the retries of a single call
                restarted.append(threading.Thread(target=cluster.restart, args=("storaged-1",)))
                restarted[0].start()
        restarted[0].join(600)
        assert received == expected


def test_epoch_stays_on_its_version(client: Client) -> None:
    client.create_space(
        "growing",
        {
            "direction": "both",
            "nodes": {"paper": {"features": {"at": "int64"}}},
            "edges": {"paper:to:paper": {}},
        },
    )
    graph = client.graph("growing")

    def publish(count: int, at: int) -> None:
        ids = np.arange(count)
        graph.upsert_nodes(ids, "paper", features={"at": np.full(count, at)})
        graph.upsert_edges(ids, (ids + at) % count, "to")
        graph.build()

    def at_of(graph: Graph, nodes: Ids, seed: int) -> Subgraph:
        return graph.sample_subgraph(nodes, [2], direction="in", node_features=["at"], seed=seed)

    publish(400, 1)
    with graph.pin() as pinned:
        seen, batches = [], NodeBatches(pinned, "paper", 40, at_of, seed=8)
        for index, batch in enumerate(batches):
            if index == 2:
                publish(500, 2)
            assert int(batch["version"]) == 1
            assert set(batch["features"]["paper"]["at"].numpy().tolist()) == {1}
            seen += seeds_of(batch)
        assert Counter(seen) == Counter(range(400))
        with (
            graph.pin() as newer_graph,
            pytest.raises(
                InvalidRequest,
                match="of 'paper' in version 1: expected the state of 'paper' in version 2",
            ),
        ):
            NodeBatches(newer_graph, "paper", 40, seed=8).load_state_dict(batches.state_dict())


def test_epoch_resumes_also_over_other_ranks(papers: Graph) -> None:
    interrupted = NodeBatches(papers, "paper", 250, sample_batch, seed=5)
    expected = [
        batch_values(batch) for batch in NodeBatches(papers, "paper", 250, sample_batch, seed=5)
    ]
    first_batches = [batch_values(batch) for batch in itertools.islice(interrupted, 4)]
    state = json.loads(json.dumps(interrupted.state_dict()))
    resumed = NodeBatches(papers, "paper", 250, sample_batch, seed=0)
    resumed.load_state_dict(state)
    assert first_batches + [batch_values(batch) for batch in resumed] == expected
    ranks = [NodeBatches(papers, "paper", 250, seed=5, rank=rank, world=3) for rank in range(3)]
    for rank in ranks:
        rank.reshard([state])
    remaining = [node for rank in ranks for nodes in rank for node in nodes.numpy().tolist()]
    assert len(remaining) == len(set(remaining)) == PAPERS - 1000


def test_batch_error_is_raised_unchanged_and_batch_repeats(papers: Graph) -> None:
    failing = [True]

    def failing_once(graph: Graph, nodes: Ids, seed: int) -> Ids:
        if 2000 in nodes.tolist() and failing.pop():
            failing.append(False)
            raise asterism.NotFound("no such feature")
        return nodes

    batches = NodeBatches(papers, "paper", 100, failing_once, seed=1, ahead=2)
    seen: list[int] = []

    def train() -> None:
        for nodes in batches:
            seen.extend(nodes.numpy().tolist())

    with pytest.raises(asterism.NotFound, match="no such feature"):
        train()
    train()
    assert Counter(seen) == EVERY


def test_invalid_iteration_is_rejected(papers: Graph, client: Client) -> None:
    with pytest.raises(InvalidRequest, match=r"use graph\.pin"):
        NodeBatches(client.graph("citations"), "paper", 10, seed=1)
    with pytest.raises(InvalidRequest, match="rank=2, world=2"):
        NodeBatches(papers, "paper", 10, seed=1, rank=2, world=2)
