"""Tests of PyG's loaders over edges with times.

Every batch is compared with all edges that each seed sees at its own time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.loader import LinkLoader, NodeLoader
from torch_geometric.sampler import NegativeSampling

import asterism
from asterism import Graph
from asterism.pyg import NeighborSampler, stores
from asterism_proto.errors import InvalidRequest

USERS, ITEMS, EDGES = 30, 20, 500
BUYS, FOLLOWS, OF = ("user", "buys", "item"), ("user", "follows", "user"), ("item", "of", "user")
RNG = np.random.default_rng(8)
ENDS = {
    BUYS: (RNG.integers(0, USERS, EDGES), RNG.integers(0, ITEMS, EDGES)),
    FOLLOWS: (RNG.integers(0, USERS, EDGES), RNG.integers(0, USERS, EDGES)),
    OF: (RNG.integers(0, ITEMS, 60), RNG.integers(0, USERS, 60)),
}
TIMES = {BUYS: RNG.integers(0, 12, EDGES), FOLLOWS: RNG.integers(0, 24, EDGES) / 2}
SEEDS = torch.arange(USERS)
SEED_TIMES = torch.from_numpy(RNG.integers(-1, 14, USERS))


@pytest.fixture(scope="module")
def bought(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    """A graph of users who buy and follow at times, and of edges without times."""
    with asterism.open(tmp_path_factory.mktemp("timed")) as client:
        edge_spec = {"features": {"when": "int64"}, "time": "when"}
        edges = {
            "user:buys:item": edge_spec,
            "user:follows:user": edge_spec | {"features": {"when": "float32"}},
            "item:of:user": {},
        }
        client.create_space(
            "s",
            {"parts": 3, "direction": "both", "nodes": {"user": {}, "item": {}}, "edges": edges},
        )
        graph = client.graph("s")
        graph.upsert_nodes(np.arange(USERS), "user")
        graph.upsert_nodes(np.arange(ITEMS), "item")
        for triple, (src, dst) in ENDS.items():
            graph.upsert_edges(
                src,
                dst,
                ":".join(triple),
                features={"when": TIMES[triple]} if triple in TIMES else None,
            )
        graph.build(timeout_s=600)
        with graph.pin() as pinned:
            yield pinned


@pytest.fixture(scope="module")
def ids(bought: Graph) -> dict[tuple[str, str, str], dict[int, int]]:
    """Rows in ``ENDS`` by edge id."""
    rows: dict[tuple[str, str, str], dict[int, int]] = {}
    for triple, (src, dst) in ENDS.items():
        columns = [
            np.concatenate(column)
            for column in zip(
                *((b.edge_ids, b.src, b.dst) for b in bought.scan_edges(":".join(triple))),
                strict=True,
            )
        ]
        order = np.argsort(columns[0])
        assert np.array_equal(np.stack(columns[1:])[:, order], np.stack([src, dst]))
        rows[triple] = {int(eid): row for row, eid in enumerate(columns[0][order])}
    return rows


def eligible_rows(triple: tuple[str, str, str], node: int, time: float) -> list[int]:
    """Return rows of the edges to a node up to a time, ordered by time, source and edge."""
    src, dst = ENDS[triple]
    times = TIMES.get(triple, np.full(len(src), -np.inf))
    return sorted(
        np.flatnonzero((dst == node) & (times <= time)).tolist(),
        key=lambda row: (times[row], src[row], row),
    )


def expanded_nodes(
    batch: Any, triple: tuple[str, str, str], rows: dict[int, int], limits: list[float], hops: int
) -> Iterator[tuple[int, float, list[int]]]:
    """Yield (node, time of its tree, rows of its edges of one type) of expanded nodes."""
    end = triple[2]
    counts = [int(count) for count in batch[end].num_sampled_nodes]
    rows_by_node: dict[int, list[int]] = {}
    for column, eid in zip(
        batch[triple].edge_index[1].tolist(), batch[triple].e_id.tolist(), strict=True
    ):
        rows_by_node.setdefault(column, []).append(rows[eid])
    for local_id in range(sum(counts[:hops])):
        yield (
            int(batch[end].n_id[local_id]),
            limits[int(batch[end].batch[local_id])],
            rows_by_node.get(local_id, []),
        )


@pytest.mark.parametrize("strategy", ["uniform", "last"])
@pytest.mark.parametrize("fanout", [[-1, -1], [3, 2]])
def test_trees_hold_only_edges_before_seed_times(
    bought: Graph, ids: dict[tuple[str, str, str], dict[int, int]], strategy: str, fanout: list[int]
) -> None:
    sampler = NeighborSampler(bought, fanout, time_attr="when", temporal_strategy=strategy, seed=3)
    loader = NodeLoader(
        stores(bought), sampler, input_nodes=("user", SEEDS), input_time=SEED_TIMES, batch_size=8
    )
    first = 0
    for batch in loader:
        size = batch["user"].batch_size
        limits = [float(time) for time in SEED_TIMES[first : first + size]]
        assert batch["user"].n_id[:size].tolist() == list(range(first, first + size))
        for triple in ENDS:
            for node, limit, rows in expanded_nodes(batch, triple, ids[triple], limits, 2):
                eligible = eligible_rows(triple, node, limit)
                assert set(rows) <= set(eligible)
                if fanout[0] == -1:
                    assert sorted(rows) == sorted(eligible)
                else:
                    assert len(rows) == len(set(rows)) >= min(2, len(eligible))
                if strategy == "last" and triple in TIMES:
                    assert sorted(rows) == sorted(eligible[len(eligible) - len(rows) :])
        first += size


def test_link_ends_see_only_edges_before_the_link(
    bought: Graph, ids: dict[tuple[str, str, str], dict[int, int]]
) -> None:
    src, dst = (torch.from_numpy(column[:12]) for column in ENDS[BUYS])
    times = torch.from_numpy(TIMES[BUYS][:12])
    sampler = NeighborSampler(bought, [4, 3], time_attr="when", seed=3)
    for negatives in (None, NegativeSampling("binary", 1.0), NegativeSampling("triplet", 2)):
        loader = LinkLoader(
            stores(bought),
            sampler,
            edge_label_index=(BUYS, torch.stack([src, dst])),
            edge_label_time=times - 1,
            neg_sampling=negatives,
            batch_size=5,
        )
        links = 0
        for batch in loader:
            size = (
                len(batch[BUYS].input_id)
                if negatives is None or negatives.is_binary()
                else len(batch["user"].src_index)
            )
            # PyG merges the trees of a link and of its negatives: all have the link's time.
            limits = [float(time) - 1 for time in times[links : links + size]]
            for triple in (BUYS, FOLLOWS):
                for node, limit, rows in expanded_nodes(batch, triple, ids[triple], limits, 2):
                    assert set(rows) <= set(eligible_rows(triple, node, limit))
            links += size
        assert links == 12


def test_invalid_times_are_rejected(bought: Graph) -> None:
    with pytest.raises(
        InvalidRequest,
        match=r"time_attr='year': expected the time .* user:buys:item: when, .* item:of:user: none",
    ):
        NeighborSampler(bought, [2], time_attr="year")
    with pytest.raises(
        InvalidRequest,
        match=(
            "time_attr='when': expected the time that the followed edge types, or their source "
            "types, declare; these are item:of:user: none"
        ),
    ):
        NeighborSampler(bought, {OF: [2]}, time_attr="when")
    for times in ({"time_attr": "when"}, {}):
        with pytest.raises(InvalidRequest, match="temporal_strategy='newest'"):
            NeighborSampler(bought, [2], temporal_strategy="newest", **times)
    with pytest.raises(InvalidRequest, match="input_time: expected None"):
        next(
            iter(
                NodeLoader(
                    stores(bought),
                    NeighborSampler(bought, [2], disjoint=True),
                    input_nodes=("user", SEEDS),
                    input_time=SEED_TIMES,
                )
            )
        )
    with pytest.raises(InvalidRequest, match="input_time=None: expected the time of each seed"):
        next(
            iter(
                NodeLoader(
                    stores(bought),
                    NeighborSampler(bought, [2], time_attr="when"),
                    input_nodes=("user", SEEDS),
                )
            )
        )
    sampler = NeighborSampler(bought, [2], time_attr="when", temporal_strategy="last", replace=True)
    with pytest.raises(InvalidRequest, match="the last neighbors with replacement"):
        next(
            iter(
                NodeLoader(
                    stores(bought), sampler, input_nodes=("user", SEEDS), input_time=SEED_TIMES
                )
            )
        )
