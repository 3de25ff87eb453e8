"""Tests of epochs of PyG's loaders that resume: every seed once.

This holds when processes are killed or restarted, or a version is published.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from tests.kit.cluster import LocalCluster
from torch_geometric.loader import LinkLoader, NodeLoader

from asterism import Client, Graph
from asterism.pyg import NeighborSampler, stores
from asterism.torch import BatchOrder
from asterism_proto.errors import InvalidRequest

TRAIN = torch.arange(500, 2300)
EVERY = Counter(TRAIN.tolist())


def mark_with_pid(batch: Any) -> Any:
    """Return a batch with the process id of its worker, after a moment."""
    time.sleep(0.05)
    batch.pid = os.getpid()
    return batch


@pytest.fixture
def tensors_in_files() -> Iterator[None]:
    """Let workers pass tensors in files.

    Tensors of a killed worker are then not requested over its socket.
    """
    strategy = torch.multiprocessing.get_sharing_strategy()
    torch.multiprocessing.set_sharing_strategy("file_system")
    yield
    torch.multiprocessing.set_sharing_strategy(strategy)


def make_loader(graph: Graph, order: BatchOrder, **options: Any) -> Any:
    return NodeLoader(
        stores(graph, {"paper": {"y": "label"}}),
        NeighborSampler(graph, [3, 2], seed=7),
        TRAIN,
        batch_sampler=order,
        **options,
    )


def seeds_of(batch: Any) -> list[int]:
    return TRAIN[batch.input_id].tolist()


def batch_values(batch: Any) -> tuple[Any, ...]:
    """Return the sampled values, for comparison."""
    return batch.n_id.tolist(), batch.e_id.tolist(), batch.y.tolist()


@pytest.mark.parametrize("workers", [0, 2])
def test_every_seed_comes_once_an_epoch_over_ranks_and_workers(papers: Graph, workers: int) -> None:
    orders = [BatchOrder(len(TRAIN), 128, seed=3, rank=rank, world=2) for rank in range(2)]
    first = []
    for epoch in range(2):
        assert {order.epoch for order in orders} == {epoch}
        assert [len(order) for order in orders] == [8, 8]
        seen = [
            [
                seed
                for batch in order.through(make_loader(papers, order, num_workers=workers))
                for seed in seeds_of(batch)
            ]
            for order in orders
        ]
        assert Counter(itertools.chain(*seen)) == EVERY
        first.append(seen[0])
    assert first[0] != first[1]


def test_links_come_once_an_epoch_too(papers: Graph) -> None:
    links = torch.stack([TRAIN, TRAIN.flip(0)])
    order = BatchOrder(len(TRAIN), 256, seed=1)
    loader = LinkLoader(
        stores(papers, {}),
        NeighborSampler(papers, [2]),
        edge_label_index=(None, links),
        batch_sampler=order,
        neg_sampling="binary",
        num_workers=2,
    )
    seen = []
    for batch in order.through(loader):
        src, dst = batch.n_id[batch.edge_label_index][:, : len(batch.input_id)]
        assert torch.equal(torch.stack([src, dst]), links[:, batch.input_id])
        seen += batch.input_id.tolist()
    assert sorted(seen) == list(range(len(TRAIN)))


def test_killed_pyg_worker_loses_and_repeats_nothing(papers: Graph, tensors_in_files: None) -> None:
    uninterrupted = BatchOrder(len(TRAIN), 100, seed=2)
    expected = [
        batch_values(batch) for batch in uninterrupted.through(make_loader(papers, uninterrupted))
    ]
    order = BatchOrder(len(TRAIN), 100, seed=2)
    seen: list[int] = []
    received: list[Any] = []
    state = order.state_dict()

    def train() -> None:
        nonlocal state
        for batch in order.through(
            make_loader(papers, order, num_workers=2, transform=mark_with_pid)
        ):
            seen.extend(seeds_of(batch))
            received.append(batch_values(batch))
            state = json.loads(json.dumps(order.state_dict()))
            if len(received) == 5:
                os.kill(batch.pid, signal.SIGKILL)

    with pytest.raises(
        RuntimeError, match=r"DataLoader worker \(pid.* (exited unexpectedly|is killed by signal)"
    ):
        train()
    assert 5 <= len(received) < len(expected)
    resumed = BatchOrder(len(TRAIN), 100, seed=0)
    resumed.load_state_dict(state)
    for batch in resumed.through(make_loader(papers, resumed, num_workers=3)):
        seen += seeds_of(batch)
        received.append(batch_values(batch))
    assert Counter(seen) == EVERY
    assert received == expected
    assert resumed.epoch == 1


def test_pyg_loader_waits_for_restarted_server(cluster: LocalCluster) -> None:
    with cluster.client().graph("citations").pin() as pinned:
        uninterrupted, order = (BatchOrder(len(TRAIN), 100, seed=4) for _ in range(2))
        expected = [
            batch_values(batch)
            for batch in uninterrupted.through(make_loader(pinned, uninterrupted))
        ]
        received: list[Any] = []
        restarted: list[threading.Thread] = []
        for batch in order.through(make_loader(pinned, order, num_workers=2)):
            received.append(batch_values(batch))
            if len(received) == 5:
                cluster.kill("storaged-1")
                time.sleep(4)  # longer than the retries of a single call
                restarted.append(threading.Thread(target=cluster.restart, args=("storaged-1",)))
                restarted[0].start()
        restarted[0].join(600)
        assert received == expected


def test_pyg_loader_stays_on_its_version(client: Client) -> None:
    client.create_space(
        "renewed",
        {
            "parts": 3,
            "direction": "both",
            "nodes": {"paper": {"features": {"at": "int64"}}},
            "edges": {"paper:to:paper": {}},
        },
    )
    graph = client.graph("renewed")

    def publish(at: int) -> None:
        ids = np.arange(400)
        graph.upsert_nodes(ids, "paper", features={"at": np.full(400, at)})
        graph.upsert_edges(ids, (ids + at) % 400, "to")
        graph.build()

    publish(1)
    with graph.pin() as pinned:
        order, seen = BatchOrder(400, 40, seed=8), []
        loader = NodeLoader(
            stores(pinned, {"paper": ["at"]}),
            NeighborSampler(pinned, [2]),
            torch.arange(400),
            batch_sampler=order,
            num_workers=2,
        )
        for index, batch in enumerate(order.through(loader)):
            if index == 1:
                publish(2)
            assert set(batch.at.tolist()) == {1}
            row, col = batch.n_id[batch.edge_index]
            assert torch.equal((row + 1) % 400, col), "an edge of the version that is pinned"
            seen += batch.input_id.tolist()
        assert sorted(seen) == list(range(400))
    with graph.pin() as newer_graph:
        assert newer_graph.degrees(np.arange(400), "to", direction="in").sum() == 800


def test_pyg_loader_epoch_resumes_with_other_rank_count(papers: Graph) -> None:
    before = BatchOrder(len(TRAIN), 64, seed=9)
    seen = [
        seed
        for batch in itertools.islice(before.through(make_loader(papers, before)), 7)
        for seed in seeds_of(batch)
    ]
    after = [BatchOrder(len(TRAIN), 64, seed=9, rank=rank, world=3) for rank in range(3)]
    for order in after:
        order.reshard([before.state_dict()])
    seen += [
        seed
        for order in after
        for batch in order.through(make_loader(papers, order))
        for seed in seeds_of(batch)
    ]
    assert Counter(seen) == EVERY
    with pytest.raises(InvalidRequest, match="'size': 1800}: expected the state of an epoch of 10"):
        BatchOrder(10, 5, seed=1).load_state_dict(before.state_dict())
    with pytest.raises(InvalidRequest, match="expected the state of an epoch of 10 rows"):
        BatchOrder(10, 5, seed=1).reshard([before.state_dict()])
