"""Tests of PyG's NodeLoader with HGT sampling, against all edges among a batch's nodes."""

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
from asterism.pyg import HGTSampler, NeighborSampler, stores
from asterism_proto.errors import InvalidRequest, NotFound

USERS, ITEMS, EDGES = 40, 25, 260
BUYS, FOLLOWS, OF = ("user", "buys", "item"), ("user", "follows", "user"), ("item", "of", "user")
RNG = np.random.default_rng(11)
ENDS = {
    BUYS: (RNG.integers(0, USERS, EDGES), RNG.integers(0, ITEMS, EDGES)),
    FOLLOWS: (RNG.integers(0, USERS, EDGES), RNG.integers(0, USERS, EDGES)),
    OF: (RNG.integers(0, ITEMS, 90), RNG.integers(0, USERS, 90)),
}
COUNTS = {"user": [5, 4], "item": [3, 6]}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    with asterism.open(tmp_path_factory.mktemp("budgets")) as client:
        edges: dict[str, Any] = {":".join(triple): {} for triple in ENDS}
        client.create_space(
            "s",
            {
                "parts": 3,
                "direction": "both",
                "nodes": {"user": {}, "item": {"features": {"x": "float32"}}},
                "edges": edges,
            },
        )
        graph = client.graph("s")
        graph.upsert_nodes(np.arange(USERS), "user")
        graph.upsert_nodes(np.arange(ITEMS), "item", features={"x": np.arange(ITEMS) / 2})
        for triple, (src, dst) in ENDS.items():
            graph.upsert_edges(src, dst, ":".join(triple))
        graph.build(timeout_s=600)
        with graph.pin() as pinned:
            yield pinned


def test_batches_are_layers_and_all_edges_among_them(shop: Graph) -> None:
    loader = NodeLoader(
        stores(shop),
        HGTSampler(shop, COUNTS, seed=3),
        input_nodes=("user", torch.arange(USERS)),
        batch_size=8,
    )
    sizes = []
    for index, batch in enumerate(loader):
        assert batch["user"].n_id[: batch["user"].batch_size].tolist() == list(
            range(8 * index, 8 * index + 8)
        )
        assert torch.equal(batch["item"].x, batch["item"].n_id / 2)
        for triple, (src, dst) in ENDS.items():
            node_sets = [set(batch[end].n_id.tolist()) for end in (triple[0], triple[2])]
            ids = [
                batch[end].n_id[batch[triple].edge_index[side]].tolist()
                for side, end in enumerate((triple[0], triple[2]))
            ]
            expected = Counter(
                (a, b)
                for a, b in zip(src.tolist(), dst.tolist(), strict=True)
                if a in node_sets[0] and b in node_sets[1]
            )
            assert Counter(zip(*ids, strict=True)) == expected
        sizes.append(tuple(len(batch[name].n_id) for name in ("user", "item")))
        assert len(set(batch["user"].n_id.tolist())) == sizes[-1][0]
    assert set(sizes) == {(8 + 9, 9)}


def test_workers_give_the_batches_that_one_process_gives(shop: Graph) -> None:
    def epoch(**options: Any) -> list[Any]:
        return list(
            NodeLoader(
                stores(shop),
                HGTSampler(shop, [4, 4], seed=3),
                input_nodes=("user", torch.arange(USERS)),
                batch_size=10,
                **options,
            )
        )

    for first, second in zip(
        epoch(), epoch(num_workers=2, multiprocessing_context="fork"), strict=True
    ):
        for name in ("user", "item"):
            assert torch.equal(first[name].n_id, second[name].n_id)
        assert all(
            torch.equal(first[triple].edge_index, second[triple].edge_index) for triple in ENDS
        )


def test_seeds_that_do_not_exist_are_named(shop: Graph) -> None:
    loader = NodeLoader(
        stores(shop),
        HGTSampler(shop, [2]),
        input_nodes=("user", torch.tensor([3, 999])),
        batch_size=2,
    )
    with pytest.raises(NotFound, match="seeds with 999 of 'user': expected nodes of version 1"):
        next(iter(loader))


def test_options_missing_in_pyg_are_rejected(shop: Graph) -> None:
    with pytest.raises(
        InvalidRequest, match=r"num_samples with \['shop'\]: expected node types, of user, item"
    ):
        HGTSampler(shop, {"shop": [2]})
    data, repeated_seeds = stores(shop), ("user", torch.tensor([3, 3]))
    with pytest.raises(
        InvalidRequest, match="seeds with 3 of 'user': expected existing nodes, each once"
    ):
        next(
            iter(NodeLoader(data, HGTSampler(shop, [2]), input_nodes=repeated_seeds, batch_size=2))
        )
    links = LinkLoader(
        data, HGTSampler(shop, [2]), edge_label_index=(BUYS, torch.tensor([[1], [2]]))
    )
    with pytest.raises(InvalidRequest, match="pass it to a NodeLoader"):
        next(iter(links))
    assert (
        NeighborSampler(shop, [2]).edge_permutation
        is None
        is HGTSampler(shop, [2]).edge_permutation
    )
