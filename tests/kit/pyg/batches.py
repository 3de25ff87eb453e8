"""Tests of epochs as PyTorch datasets: every node once, over ranks and workers.

This holds when processes are killed, stopped or restarted, or a version is published.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import signal
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.kit.cluster import LocalCluster
from torch.utils.data import DataLoader

import asterism
from asterism import Client, Graph
from asterism.records.samples import Ids, Subgraph
from asterism.torch import BatchLoader, MultiHot, NodeBatches
from asterism_proto.errors import InvalidRequest

PAPERS = 2708
EVERY = Counter(range(PAPERS))


def sample_batch(graph: Graph, nodes: Ids, seed: int) -> Subgraph:
    """Return a training batch of nodes."""
    return graph.sample_subgraph(nodes, [3, 2], direction="in", edge_ids=False, seed=seed)


def sample_slowly(graph: Graph, nodes: Ids, seed: int) -> Any:
    """Return nodes, after a moment."""
    time.sleep(0.05)
    return nodes, os.getpid()


def sample_or_die(graph: Graph, nodes: Ids, seed: int, *, order: Path) -> Any:
    """Sample slowly, and kill the process that ``order`` names meanwhile.

    It dies when it holds no lock that workers share.
    """
    time.sleep(0.025)
    if order.exists() and order.read_text() == str(os.getpid()):
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.025)
    return nodes, os.getpid()


def seeds_of(batch: Subgraph) -> list[int]:
    return batch.nodes["paper"][batch.seeds].tolist()


def saved_state(batches: NodeBatches | BatchLoader) -> dict[str, Any]:
    """Return the state as restored from a checkpoint."""
    state: dict[str, Any] = json.loads(json.dumps(batches.state_dict()))
    return state


@pytest.mark.parametrize("workers", [0, 2])
def test_every_node_comes_once_an_epoch_over_ranks_and_workers(papers: Graph, workers: int) -> None:
    loaders = [
        BatchLoader(
            NodeBatches(papers, "paper", 200, sample_batch, seed=3, rank=rank, world=2), workers
        )
        for rank in range(2)
    ]
    epoch_orders = []
    for epoch in range(2):
        assert {loader.batches.epoch for loader in loaders} == {epoch}
        seen = [[node for batch in loader for node in seeds_of(batch)] for loader in loaders]
        assert abs(len(seen[0]) - len(seen[1])) <= 1
        assert Counter(itertools.chain(*seen)) == EVERY
        epoch_orders.append(seen[0])
    assert epoch_orders[0] != epoch_orders[1]


def test_spawned_workers_give_what_forked_ones_give(embedded: Client) -> None:
    with embedded.graph("citations").pin() as pinned:
        batches = [NodeBatches(pinned, "paper", 300, sample_batch, seed=3) for _ in range(2)]
        spawned, forked = (
            list(BatchLoader(b, 2, multiprocessing_context=context))
            for b, context in zip(batches, ("spawn", "fork"), strict=True)
        )
        assert [batch.token for batch in spawned] == [batch.token for batch in forked]
        assert Counter(node for batch in spawned for node in seeds_of(batch)) == EVERY


def test_torch_dataloader_accepts_batches(papers: Graph) -> None:
    batches = NodeBatches(papers, "paper", 300, seed=1)
    first = [
        nodes
        for batch in DataLoader(batches, batch_size=None, num_workers=2)
        for nodes in batch.tolist()
    ]
    repeated = [
        nodes
        for batch in DataLoader(batches, batch_size=None, num_workers=2)
        for nodes in batch.tolist()
    ]
    batches.set_epoch(1)
    second = [
        nodes
        for batch in DataLoader(batches, batch_size=None, num_workers=2)
        for nodes in batch.tolist()
    ]
    assert Counter(first) == Counter(second) == EVERY
    assert first == repeated != second


def test_draws_do_not_depend_on_threads_or_stops(papers: Graph) -> None:
    def tokens(batches: NodeBatches) -> list[str]:
        return [batch.token for batch in batches]

    expected = tokens(NodeBatches(papers, "paper", 250, sample_batch, seed=5, ahead=0))
    assert tokens(NodeBatches(papers, "paper", 250, sample_batch, seed=5, ahead=3)) == expected
    assert len(set(expected)) == len(expected) == 11
    interrupted = NodeBatches(papers, "paper", 250, sample_batch, seed=5)
    first_tokens = [batch.token for batch in itertools.islice(interrupted, 4)]
    resumed = NodeBatches(papers, "paper", 250, sample_batch, seed=0)
    resumed.load_state_dict(saved_state(interrupted))
    assert first_tokens + tokens(resumed) == expected


@pytest.mark.parametrize("ahead", [0, 1, 3])
def test_ahead_limits_batches_prepared_in_advance(papers: Graph, ahead: int) -> None:
    started_seeds: list[int] = []

    def recording(graph: Graph, nodes: Ids, seed: int) -> Ids:
        started_seeds.append(seed)
        return nodes

    for consumed, _ in enumerate(
        NodeBatches(papers, "paper", 250, recording, seed=5, ahead=ahead), start=1
    ):
        deadline = time.monotonic() + 600
        while len(started_seeds) < min(consumed + ahead, 11) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(started_seeds) == min(consumed + ahead, 11)


def test_epoch_resumes_with_other_worker_and_rank_counts(papers: Graph) -> None:
    def rank(rank_index: int, world: int, workers: int) -> BatchLoader:
        return BatchLoader(
            NodeBatches(papers, "paper", 64, seed=9, rank=rank_index, world=world), workers
        )

    before = [rank(0, 2, 2), rank(1, 2, 0)]
    seen = [
        node
        for loader, limit in zip(before, (7, 3), strict=True)
        for batch in itertools.islice(loader, limit)
        for node in batch.tolist()
    ]
    single_process = rank(0, 2, 0)
    single_process.load_state_dict(saved_state(before[0]))
    seen += [node for batch in itertools.islice(single_process, 2) for node in batch.tolist()]
    states = [saved_state(single_process), saved_state(before[1])]
    after = [rank(rank_index, 3, workers) for rank_index, workers in enumerate((0, 2, 0))]
    for loader in after:
        loader.batches.reshard(states)
    remaining_counts = [loader.batches.left for loader in after]
    assert sum(remaining_counts) == PAPERS - len(seen)
    assert max(remaining_counts) - min(remaining_counts) <= 3
    seen += [node for loader in after for batch in loader for node in batch.tolist()]
    assert Counter(seen) == EVERY
    assert {loader.batches.epoch for loader in after} == {1}
    next_epoch = [node for loader in after for batch in loader for node in batch.tolist()]
    assert Counter(next_epoch) == EVERY


def test_killed_worker_loses_and_repeats_nothing(papers: Graph, tmp_path: Path) -> None:
    order = tmp_path / "order"
    loader = BatchLoader(
        NodeBatches(
            papers, "paper", 50, functools.partial(sample_or_die, order=order), seed=2, ahead=2
        ),
        2,
    )
    seen: list[int] = []
    state = saved_state(loader)

    def train() -> None:
        nonlocal state
        for nodes, pid in loader:
            seen.extend(nodes.tolist())
            state = saved_state(loader)
            if len(seen) == 500:
                (tmp_path / "draft").write_text(str(pid))
                (tmp_path / "draft").rename(order)

    with pytest.raises(
        RuntimeError, match=r"DataLoader worker \(pid.* (exited unexpectedly|is killed by signal)"
    ):
        train()
    assert 500 <= len(seen) < PAPERS
    resumed = BatchLoader(NodeBatches(papers, "paper", 50, sample_slowly, seed=0), 2)
    resumed.load_state_dict(state)
    seen += [node for nodes, _ in resumed for node in nodes.tolist()]
    assert Counter(seen) == EVERY


def test_epoch_waits_for_restarted_server(cluster: LocalCluster) -> None:
    with cluster.client().graph("citations").pin() as pinned:
        expected = [
            batch.token for batch in NodeBatches(pinned, "paper", 100, sample_batch, seed=4)
        ]
        received: list[str] = []
        restarted: list[threading.Thread] = []
        for batch in NodeBatches(pinned, "paper", 100, sample_batch, seed=4):
            received.append(batch.token)
            if len(received) == 5:
                cluster.kill("storaged-1")
                time.sleep(4)  # longer than the retries of a single call
                restarted.append(threading.Thread(target=cluster.restart, args=("storaged-1",)))
                restarted[0].start()
        restarted[0].join(600)
        assert received == expected


def test_epoch_survives_loss_of_one_graphd(cluster: LocalCluster) -> None:
    with cluster.client().graph("citations").pin() as pinned:
        expected = [
            batch.token for batch in NodeBatches(pinned, "paper", 100, sample_batch, seed=6)
        ]
        received = []
        for batch in NodeBatches(pinned, "paper", 100, sample_batch, seed=6):
            received.append(batch.token)
            if len(received) == 5:
                cluster.kill("graphd-1")
        assert received == expected
    cluster.restart("graphd-1")


@pytest.mark.parametrize("workers", [0, 2])
def test_epoch_stays_on_its_version(client: Client, workers: int) -> None:
    space = f"growing{workers}"
    client.create_space(
        space,
        {
            "parts": 3,
            "direction": "both",
            "nodes": {"paper": {"features": {"at": "int64"}}},
            "edges": {"paper:to:paper": {}},
        },
    )
    graph = client.graph(space)

    def publish(count: int, at: int) -> None:
        ids = np.arange(count)
        graph.upsert_nodes(ids, "paper", features={"at": np.full(count, at)})
        graph.upsert_edges(ids, (ids + at) % count, "to")
        graph.build()

    publish(400, 1)
    with graph.pin() as pinned:
        expected = [
            batch.token for batch in NodeBatches(pinned, "paper", 40, versioned_subgraph, seed=8)
        ]
        loader = BatchLoader(NodeBatches(pinned, "paper", 40, versioned_subgraph, seed=8), workers)
        seen, tokens = [], []
        for index, batch in enumerate(loader):
            if index == 2:
                publish(500, 2)
            assert batch.version == 1
            assert set(batch.features["paper"]["at"].tolist()) == {1}
            seen += seeds_of(batch)
            tokens.append(batch.token)
        assert Counter(seen) == Counter(range(400))
        assert workers or tokens == expected
        with (
            graph.pin() as newer_graph,
            pytest.raises(
                InvalidRequest,
                match="of 'paper' in version 1: expected the state of 'paper' in version 2",
            ),
        ):
            NodeBatches(newer_graph, "paper", 40, seed=8).load_state_dict(loader.state_dict())


def versioned_subgraph(graph: Graph, nodes: Ids, seed: int) -> Subgraph:
    """Return a subgraph with the version of its features."""
    return graph.sample_subgraph(nodes, [2], direction="in", node_features=["at"], seed=seed)


def labor_batch(graph: Graph, nodes: Ids, seed: int) -> Subgraph:
    """Return LABOR samples of nodes."""
    return graph.sample_labor(
        nodes, [5, 3], direction="in", importance=1, weighted=False, seed=seed
    )


@pytest.mark.parametrize("workers", [0, 2])
def test_labor_batches_have_weights_of_means(papers: Graph, workers: int) -> None:
    seen: list[int] = []
    for batch in BatchLoader(NodeBatches(papers, "paper", 900, labor_batch, seed=5), workers):
        seen += seeds_of(batch)
        cols, weights = batch.col["paper:cites:paper"], batch.weights["paper:cites:paper"]
        first = slice(0, batch.num_sampled_edges["paper:cites:paper"][0])
        sums, counts = np.bincount(cols[first], weights[first]), np.bincount(cols[first])
        assert np.allclose(sums, counts, atol=1e-3)
        assert weights.max() > 1.01  # importance sampling makes them differ
    assert Counter(seen) == EVERY


def test_batch_error_is_raised_in_order_and_batch_repeats(papers: Graph) -> None:
    failing = [True]

    def failing_once(graph: Graph, nodes: Ids, seed: int) -> Ids:
        if 17 in nodes.tolist() and failing.pop():
            failing.append(False)
            raise asterism.NotFound("no such feature")
        return nodes

    batches = NodeBatches(papers, "paper", 100, failing_once, seed=1, ahead=3)
    seen: list[int] = []

    def train() -> None:
        for nodes in batches:
            seen.extend(nodes.tolist())

    with pytest.raises(asterism.NotFound, match="no such feature"):
        train()
    train()
    assert Counter(seen) == EVERY


def test_invalid_iteration_is_rejected(papers: Graph, client: Client) -> None:
    for call, pattern in (
        (
            lambda: NodeBatches(client.graph("citations"), "paper", 10, seed=1),
            r"use graph\.pin",
        ),
        (lambda: NodeBatches(papers, "paper", 0, seed=1), "batch_size=0"),
        (lambda: NodeBatches(papers, "paper", 10, seed=1, rank=2, world=2), "rank=2, world=2"),
        (
            lambda: BatchLoader(
                NodeBatches(papers, "paper", 10, seed=1), 2, persistent_workers=True
            ),
            "persistent_workers: expected other options",
        ),
        (
            lambda: NodeBatches(papers, "paper", 10, seed=1).reshard([]),
            "expected one state of every rank",
        ),
        (
            lambda: MultiHot(3)((np.array([0, 2]), np.array([1, 3]))),
            "column with index 3: expected 0 to 2",
        ),
        (
            lambda: MultiHot(3)(np.zeros((2, 3))),
            r"column of shape \[2, 3\]: expected \(indptr, indices\)",
        ),
    ):
        with pytest.raises(InvalidRequest, match=pattern):
            call()
    assert torch.equal(
        MultiHot(3)((np.array([0, 2, 2]), np.array([2, 0]))), torch.tensor([[1.0, 0, 1], [0, 0, 0]])
    )
