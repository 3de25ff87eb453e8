"""Epochs as PyTorch's datasets: every node once, over ranks and worker processes, whatever is killed, stopped, restarted or published meanwhile."""

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
from asterism.records import Ids, Subgraph
from asterism.torch import BatchLoader, MultiHot, NodeBatches
from asterism_proto.errors import InvalidRequest

PAPERS = 2708
EVERY = Counter(range(PAPERS))


def sampled(graph: Graph, nodes: Ids, seed: int) -> Subgraph:
    """What a trainer makes of nodes."""
    return graph.sample_subgraph(nodes, [3, 2], direction="in", edge_ids=False, seed=seed)


def slowly(graph: Graph, nodes: Ids, seed: int) -> Any:
    """Nodes, after a moment."""
    time.sleep(0.05)
    return nodes, os.getpid()


def doomed(graph: Graph, nodes: Ids, seed: int, *, order: Path) -> Any:
    """As `slowly`, but the process that ``order`` names dies in the middle of it, when it holds none of the locks that workers share."""
    time.sleep(0.025)
    if order.exists() and order.read_text() == str(os.getpid()):
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.025)
    return nodes, os.getpid()


def seeds_of(batch: Subgraph) -> list[int]:
    return batch.nodes["paper"][batch.seeds].tolist()


def saved(batches: NodeBatches | BatchLoader) -> dict[str, Any]:
    """The state as a checkpoint would have it."""
    state: dict[str, Any] = json.loads(json.dumps(batches.state_dict()))
    return state


@pytest.mark.parametrize("workers", [0, 2])
def test_every_node_comes_once_an_epoch_over_ranks_and_workers(papers: Graph, workers: int) -> None:
    loaders = [BatchLoader(NodeBatches(papers, "paper", 200, sampled, seed=3, rank=rank, world=2), workers) for rank in range(2)]
    orders = []
    for epoch in range(2):
        assert {loader.batches.epoch for loader in loaders} == {epoch}
        seen = [[node for batch in loader for node in seeds_of(batch)] for loader in loaders]
        assert abs(len(seen[0]) - len(seen[1])) <= 1
        assert Counter(itertools.chain(*seen)) == EVERY
        orders.append(seen[0])
    assert orders[0] != orders[1]


def test_spawned_workers_give_what_forked_ones_give(embedded: Client) -> None:
    with embedded.graph("citations").pin() as held:
        batches = [NodeBatches(held, "paper", 300, sampled, seed=3) for _ in range(2)]
        spawned, forked = (list(BatchLoader(b, 2, multiprocessing_context=context)) for b, context in zip(batches, ("spawn", "fork"), strict=True))
        assert [batch.token for batch in spawned] == [batch.token for batch in forked]
        assert Counter(node for batch in spawned for node in seeds_of(batch)) == EVERY


def test_a_dataloader_of_torch_takes_them_too(papers: Graph) -> None:
    batches = NodeBatches(papers, "paper", 300, seed=1)
    first = [nodes for batch in DataLoader(batches, batch_size=None, num_workers=2) for nodes in batch.tolist()]
    again = [nodes for batch in DataLoader(batches, batch_size=None, num_workers=2) for nodes in batch.tolist()]
    batches.set_epoch(1)
    second = [nodes for batch in DataLoader(batches, batch_size=None, num_workers=2) for nodes in batch.tolist()]
    assert Counter(first) == Counter(second) == EVERY
    assert first == again != second


def test_draws_are_the_same_with_and_without_threads_and_after_a_stop(papers: Graph) -> None:
    def tokens(batches: NodeBatches) -> list[str]:
        return [batch.token for batch in batches]

    whole = tokens(NodeBatches(papers, "paper", 250, sampled, seed=5, ahead=0))
    assert tokens(NodeBatches(papers, "paper", 250, sampled, seed=5, ahead=3)) == whole
    assert len(set(whole)) == len(whole) == 11
    cut = NodeBatches(papers, "paper", 250, sampled, seed=5)
    begun = [batch.token for batch in itertools.islice(cut, 4)]
    resumed = NodeBatches(papers, "paper", 250, sampled, seed=0)
    resumed.load_state_dict(saved(cut))
    assert begun + tokens(resumed) == whole


@pytest.mark.parametrize("ahead", [0, 1, 3])
def test_as_many_batches_as_asked_for_are_in_the_making_while_one_is_trained_on(papers: Graph, ahead: int) -> None:
    begun: list[int] = []

    def noted(graph: Graph, nodes: Ids, seed: int) -> Ids:
        begun.append(seed)
        return nodes

    for given, _ in enumerate(NodeBatches(papers, "paper", 250, noted, seed=5, ahead=ahead), start=1):
        until = time.monotonic() + 600
        while len(begun) < min(given + ahead, 11) and time.monotonic() < until:
            time.sleep(0.01)
        assert len(begun) == min(given + ahead, 11)


def test_an_epoch_goes_on_with_other_numbers_of_workers_and_ranks(papers: Graph) -> None:
    def rank(at: int, world: int, workers: int) -> BatchLoader:
        return BatchLoader(NodeBatches(papers, "paper", 64, seed=9, rank=at, world=world), workers)

    before = [rank(0, 2, 2), rank(1, 2, 0)]
    seen = [node for loader, many in zip(before, (7, 3), strict=True) for batch in itertools.islice(loader, many) for node in batch.tolist()]
    alone = rank(0, 2, 0)
    alone.load_state_dict(saved(before[0]))
    seen += [node for batch in itertools.islice(alone, 2) for node in batch.tolist()]
    states = [saved(alone), saved(before[1])]
    after = [rank(at, 3, workers) for at, workers in enumerate((0, 2, 0))]
    for loader in after:
        loader.batches.reshard(states)
    lefts = [loader.batches.left for loader in after]
    assert sum(lefts) == PAPERS - len(seen)
    assert max(lefts) - min(lefts) <= 3
    seen += [node for loader in after for batch in loader for node in batch.tolist()]
    assert Counter(seen) == EVERY
    assert {loader.batches.epoch for loader in after} == {1}
    later = [node for loader in after for batch in loader for node in batch.tolist()]
    assert Counter(later) == EVERY


def test_a_worker_killed_in_mid_epoch_loses_and_doubles_nothing(papers: Graph, tmp_path: Path) -> None:
    order = tmp_path / "order"
    loader = BatchLoader(NodeBatches(papers, "paper", 50, functools.partial(doomed, order=order), seed=2, ahead=2), 2)
    seen: list[int] = []
    state = saved(loader)

    def train() -> None:
        nonlocal state
        for nodes, pid in loader:
            seen.extend(nodes.tolist())
            state = saved(loader)
            if len(seen) == 500:
                (tmp_path / "draft").write_text(str(pid))
                (tmp_path / "draft").rename(order)

    with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid.* (exited unexpectedly|is killed by signal)"):
        train()
    assert 500 <= len(seen) < PAPERS
    resumed = BatchLoader(NodeBatches(papers, "paper", 50, slowly, seed=0), 2)
    resumed.load_state_dict(state)
    seen += [node for nodes, _ in resumed for node in nodes.tolist()]
    assert Counter(seen) == EVERY


def test_a_server_restarted_in_mid_epoch_is_waited_for(cluster: LocalCluster) -> None:
    with cluster.client().graph("citations").pin() as held:
        expected = [batch.token for batch in NodeBatches(held, "paper", 100, sampled, seed=4)]
        got: list[str] = []
        restarted: list[threading.Thread] = []
        for batch in NodeBatches(held, "paper", 100, sampled, seed=4):
            got.append(batch.token)
            if len(got) == 5:
                cluster.kill("storaged-1")
                time.sleep(4)  # longer than a single call is tried again
                restarted.append(threading.Thread(target=cluster.restart, args=("storaged-1",)))
                restarted[0].start()
        restarted[0].join(600)
        assert got == expected


def test_a_graphd_that_goes_is_passed_over_in_mid_epoch(cluster: LocalCluster) -> None:
    with cluster.client().graph("citations").pin() as held:
        expected = [batch.token for batch in NodeBatches(held, "paper", 100, sampled, seed=6)]
        got = []
        for batch in NodeBatches(held, "paper", 100, sampled, seed=6):
            got.append(batch.token)
            if len(got) == 5:
                cluster.kill("graphd-1")
        assert got == expected
    cluster.restart("graphd-1")


@pytest.mark.parametrize("workers", [0, 2])
def test_a_version_published_in_mid_epoch_is_not_seen(client: Client, workers: int) -> None:
    space = f"growing{workers}"
    client.create_space(space, {"direction": "both", "nodes": {"paper": {"features": {"at": "int64"}}}, "edges": {"paper:to:paper": {}}})
    graph = client.graph(space)

    def publish(count: int, at: int) -> None:
        ids = np.arange(count)
        graph.upsert_nodes(ids, "paper", features={"at": np.full(count, at)})
        graph.upsert_edges(ids, (ids + at) % count, "to")
        graph.build()

    publish(400, 1)
    with graph.pin() as held:
        expected = [batch.token for batch in NodeBatches(held, "paper", 40, at_of, seed=8)]
        loader = BatchLoader(NodeBatches(held, "paper", 40, at_of, seed=8), workers)
        seen, tokens = [], []
        for turn, batch in enumerate(loader):
            if turn == 2:
                publish(500, 2)
            assert batch.version == 1
            assert set(batch.features["paper"]["at"].tolist()) == {1}
            seen += seeds_of(batch)
            tokens.append(batch.token)
        assert Counter(seen) == Counter(range(400))
        assert workers or tokens == expected
        with graph.pin() as newer, pytest.raises(InvalidRequest, match="of 'paper' in version 1, this reads 'paper' in version 2"):
            NodeBatches(newer, "paper", 40, seed=8).load_state_dict(loader.state_dict())


def at_of(graph: Graph, nodes: Ids, seed: int) -> Subgraph:
    """A subgraph with the version that its features are of."""
    return graph.sample_subgraph(nodes, [2], direction="in", node_features=["at"], seed=seed)


def by_labor(graph: Graph, nodes: Ids, seed: int) -> Subgraph:
    """Layer-neighbor samples of nodes."""
    return graph.sample_labor(nodes, [5, 3], direction="in", importance=1, weighted=False, seed=seed)


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_of_layer_neighbor_samples_have_the_weights_of_means(papers: Graph, workers: int) -> None:
    seen: list[int] = []
    for batch in BatchLoader(NodeBatches(papers, "paper", 900, by_labor, seed=5), workers):
        seen += seeds_of(batch)
        cols, weights = batch.col["paper:cites:paper"], batch.weights["paper:cites:paper"]
        first = slice(0, batch.num_sampled_edges["paper:cites:paper"][0])
        sums, counts = np.bincount(cols[first], weights[first]), np.bincount(cols[first])
        assert np.allclose(sums, counts, atol=1e-3)
        assert weights.max() > 1.01  # importance makes them differ
    assert Counter(seen) == EVERY


def test_an_error_of_a_batch_is_raised_in_its_turn_and_the_batch_comes_again(papers: Graph) -> None:
    failing = [True]

    def once(graph: Graph, nodes: Ids, seed: int) -> Ids:
        if 17 in nodes.tolist() and failing.pop():
            failing.append(False)
            raise asterism.NotFound("no such feature")
        return nodes

    batches = NodeBatches(papers, "paper", 100, once, seed=1, ahead=3)
    seen: list[int] = []

    def train() -> None:
        for nodes in batches:
            seen.extend(nodes.tolist())

    with pytest.raises(asterism.NotFound, match="no such feature"):
        train()
    train()
    assert Counter(seen) == EVERY


def test_what_can_not_be_gone_through_is_refused(papers: Graph, client: Client) -> None:
    for made, said in (
        (lambda: NodeBatches(client.graph("citations"), "paper", 10, seed=1), r"hold one: with graph\.pin"),
        (lambda: NodeBatches(papers, "paper", 0, seed=1), "batch_size 0"),
        (lambda: NodeBatches(papers, "paper", 10, seed=1, rank=2, world=2), "rank 2 of 2"),
        (lambda: BatchLoader(NodeBatches(papers, "paper", 10, seed=1), 2, persistent_workers=True), "persistent_workers: a loader of batches"),
        (lambda: NodeBatches(papers, "paper", 10, seed=1).reshard([]), "expected one of every rank"),
        (lambda: MultiHot(3)((np.array([0, 2]), np.array([1, 3]))), "index 3: expected 0 to 2"),
        (lambda: MultiHot(3)(np.zeros((2, 3))), "a dense column"),
    ):
        with pytest.raises(InvalidRequest, match=said):
            made()
    assert torch.equal(MultiHot(3)((np.array([0, 2, 2]), np.array([2, 0]))), torch.tensor([[1.0, 0, 1], [0, 0, 0]]))
