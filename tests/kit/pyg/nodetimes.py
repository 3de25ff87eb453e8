"""Tests of PyG's loaders over nodes with times, against PyG's temporal sampler.

Every batch is compared with the nodes that its seeds see.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.loader import LinkLoader, NodeLoader

import asterism
from asterism import Graph
from asterism.pyg import NeighborSampler, stores
from asterism_proto.errors import InvalidRequest

USERS, ITEMS, EDGES = 30, 20, 500
BUYS, OF = ("user", "buys", "item"), ("item", "of", "user")
RNG = np.random.default_rng(18)
ENDS = {
    BUYS: (RNG.integers(0, USERS, EDGES), RNG.integers(0, ITEMS, EDGES)),
    OF: (RNG.integers(0, ITEMS, EDGES), RNG.integers(0, USERS, EDGES)),
}
ARRIVAL_TIMES = {"user": RNG.integers(0, 12, USERS), "item": RNG.integers(0, 12, ITEMS)}


@pytest.fixture(scope="module")
def joined(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    """A graph of users and items with creation times."""
    with asterism.open(tmp_path_factory.mktemp("joined")) as client:
        node_spec = {"features": {"t": "int64"}, "time": "t"}
        client.create_space(
            "s",
            {
                "parts": 3,
                "direction": "both",
                "nodes": {"user": node_spec, "item": node_spec},
                "edges": {"user:buys:item": {}, "item:of:user": {}},
            },
        )
        graph = client.graph("s")
        for name, arrival_times in ARRIVAL_TIMES.items():
            graph.upsert_nodes(np.arange(len(arrival_times)), name, features={"t": arrival_times})
        for triple, (src, dst) in ENDS.items():
            graph.upsert_edges(src, dst, ":".join(triple))
        graph.build(timeout_s=600)
        with graph.pin() as pinned:
            yield pinned


def eligible_sources(triple: tuple[str, str, str], node: int, time: int) -> list[int]:
    """Return nodes with an edge to a node, created by a time, once for each edge."""
    src, dst = ENDS[triple]
    return sorted(src[(dst == node) & (ARRIVAL_TIMES[triple[0]][src] <= time)].tolist())


def expanded_nodes(
    batch: Any, triple: tuple[str, str, str], hops: int
) -> Iterator[tuple[int, int, list[int]]]:
    """Yield (number, node, sources of its edges of one type) of expanded nodes."""
    end = triple[2]
    sources: dict[int, list[int]] = {}
    for row, column in batch[triple].edge_index.T.tolist():
        sources.setdefault(column, []).append(int(batch[triple[0]].n_id[row]))
    for local_id in range(sum(int(count) for count in batch[end].num_sampled_nodes[:hops])):
        yield local_id, int(batch[end].n_id[local_id]), sorted(sources.get(local_id, []))


@pytest.mark.parametrize("strategy", ["uniform", "last"])
@pytest.mark.parametrize("fanout", [[-1, -1], [3, 2]])
@pytest.mark.parametrize("given", [False, True])
def test_trees_hold_only_arrived_nodes(
    joined: Graph, strategy: str, fanout: list[int], given: bool
) -> None:
    """Times come from the loader, or from the seeds themselves."""
    sampler = NeighborSampler(joined, fanout, time_attr="t", temporal_strategy=strategy, seed=3)
    times = torch.arange(USERS) % 14 - 1 if given else torch.from_numpy(ARRIVAL_TIMES["user"])
    loader = NodeLoader(
        stores(joined),
        sampler,
        input_nodes=("user", torch.arange(USERS)),
        input_time=times if given else None,
        batch_size=8,
    )
    first = 0
    for batch in loader:
        for triple in ENDS:
            for local_id, node, sources in expanded_nodes(batch, triple, 2):
                limit = int(times[first + int(batch[triple[2]].batch[local_id])])
                eligible = eligible_sources(triple, node, limit)
                assert not Counter(sources) - Counter(eligible)
                assert (
                    len(sources) == len(eligible)
                    if fanout[0] == -1
                    else len(sources) >= min(2, len(eligible))
                )
                if strategy == "last":
                    latest = sorted(ARRIVAL_TIMES[triple[0]][eligible].tolist())
                    assert (
                        sorted(ARRIVAL_TIMES[triple[0]][sources].tolist())
                        == latest[len(latest) - len(sources) :]
                    )
        first += batch["user"].batch_size


def test_link_ends_see_only_arrived_nodes(joined: Graph) -> None:
    src, dst = (torch.from_numpy(column[:12]) for column in ENDS[BUYS])
    times = torch.arange(12)
    loader = LinkLoader(
        stores(joined),
        NeighborSampler(joined, [4, 3], time_attr="t", seed=3),
        edge_label_index=(BUYS, torch.stack([src, dst])),
        edge_label_time=times,
        batch_size=5,
    )
    links = 0
    for batch in loader:
        for triple in ENDS:
            for local_id, node, sources in expanded_nodes(batch, triple, 2):
                limit = links + int(batch[triple[2]].batch[local_id])
                assert not Counter(sources) - Counter(eligible_sources(triple, node, limit))
        links += len(batch[BUYS].input_id)
    assert links == 12


def compressed(triple: tuple[str, str, str]) -> tuple[Any, Any]:
    """Return the edges of a type in the format of PyG's sampler: by destination."""
    src, dst = ENDS[triple]
    order = np.argsort(dst, kind="stable")
    count = len(ARRIVAL_TIMES[triple[2]])
    return torch.from_numpy(
        np.r_[0, np.cumsum(np.bincount(dst, minlength=count))]
    ), torch.from_numpy(src[order])


def sample_with_pyg(seeds: Any, fanout: list[int], *, replace: bool) -> tuple[Any, Any, Any]:
    """Return nodes, rows and columns by type from PyG's temporal sampler."""
    pytest.importorskip("torch_sparse", reason="PyG's samplers are not installed here")
    names = {triple: "__".join(triple) for triple in ENDS}
    compressed_by_name = {names[triple]: compressed(triple) for triple in ENDS}
    nodes, rows, cols, _ = torch.ops.torch_sparse.hetero_temporal_neighbor_sample(
        list(ARRIVAL_TIMES),
        list(ENDS),
        {name: colptr for name, (colptr, _) in compressed_by_name.items()},
        {name: row for name, (_, row) in compressed_by_name.items()},
        {"user": seeds},
        dict.fromkeys(compressed_by_name, fanout),
        {name: torch.from_numpy(arrival_times) for name, arrival_times in ARRIVAL_TIMES.items()},
        len(fanout),
        replace,
        True,
    )
    return (
        nodes,
        {triple: rows[name] for triple, name in names.items()},
        {triple: cols[name] for triple, name in names.items()},
    )


def test_full_trees_match_pyg_sampler(joined: Graph) -> None:
    """Seeds are sampled one at a time, because PyG does not report the tree of a node."""
    for user in range(USERS):
        loader = NodeLoader(
            stores(joined),
            NeighborSampler(joined, [-1, -1], time_attr="t"),
            input_nodes=("user", torch.tensor([user])),
        )
        (batch,) = loader
        nodes, rows, cols = sample_with_pyg(torch.tensor([user]), [-1, -1], replace=False)
        for triple in ENDS:
            ends = batch[triple].edge_index
            our_edges = zip(
                batch[triple[0]].n_id[ends[0]].tolist(),
                batch[triple[2]].n_id[ends[1]].tolist(),
                strict=True,
            )
            pyg_edges = zip(
                nodes[triple[0]][rows[triple]].tolist(),
                nodes[triple[2]][cols[triple]].tolist(),
                strict=True,
            )
            assert Counter(our_edges) == Counter(pyg_edges)


def test_neighbor_frequencies_match_pyg_sampler(joined: Graph) -> None:
    """Sampling is with replacement.

    Without, PyG samples from all neighbors and drops later ones, so that it returns fewer than
    exist.
    """
    user, draws, n = int(np.argmax(ARRIVAL_TIMES["user"] == 6)), 3, 4000
    eligible = eligible_sources(OF, user, 6)
    probabilities = {
        node: 1 - (1 - times / len(eligible)) ** draws for node, times in Counter(eligible).items()
    }
    seeds = torch.full((n,), user)
    batch = next(
        iter(
            NodeLoader(
                stores(joined),
                NeighborSampler(joined, {OF: [draws]}, time_attr="t", replace=True),
                input_nodes=("user", seeds),
                batch_size=n,
            )
        )
    )
    rows, cols = batch[OF].edge_index
    our_counts = Counter(
        node
        for node, _ in {
            (int(batch["item"].n_id[row]), int(col)) for row, col in zip(rows, cols, strict=True)
        }
    )
    nodes, rows, cols = sample_with_pyg(seeds, [draws], replace=True)
    pyg_counts = Counter(
        node
        for node, _ in {
            (int(nodes["item"][row]), int(col)) for row, col in zip(rows[OF], cols[OF], strict=True)
        }
    )
    assert set(our_counts) == set(pyg_counts) == set(probabilities)
    for node, probability in probabilities.items():
        error = (probability * (1 - probability) / n) ** 0.5
        # 5.5 standard errors: a probability of 4e-8 for each of some twenty neighbors in either.
        assert abs(our_counts[node] / n - probability) < 5.5 * error
        assert abs(pyg_counts[node] / n - probability) < 5.5 * error


def test_invalid_times_are_rejected(joined: Graph) -> None:
    with pytest.raises(
        InvalidRequest,
        match=r"time_attr='when': expected the time .* user:buys:item: t, item:of:user: t",
    ):
        NeighborSampler(joined, [2], time_attr="when")
    ends = torch.stack([torch.from_numpy(column[:4]) for column in ENDS[BUYS]])
    with pytest.raises(
        InvalidRequest, match="edge_label_time=None: expected the time of each seed"
    ):
        next(
            iter(
                LinkLoader(
                    stores(joined),
                    NeighborSampler(joined, [2], time_attr="t"),
                    edge_label_index=(BUYS, ends),
                )
            )
        )
