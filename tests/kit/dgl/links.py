"""Check of batches of links against DGL's edge prediction sampler. Prints OK.

python links.py ADDRESS
"""

from __future__ import annotations

import sys
from typing import Any

import dgl
import numpy as np
import torch
from dgl.dataloading import NeighborSampler as NeighborSamplerOfDgl
from dgl.dataloading import as_edge_prediction_sampler
from known import refused
from tests.kit import linked_graphs as linked
from tests.kit.linked_graphs import BOUGHT_BY, BUYS, MET, NODES

import asterism
from asterism.dgl import EdgePredictionSampler, LaborSampler, NeighborSampler

ALL = [-1, -1]
REVERSE = {"buys": "bought_by", "bought_by": "buys"}


def pairs(graph: Any, triple: tuple[str, str, str] | None) -> set[tuple[int, int]]:
    """Return the edges of a type of a block or pair graph, by the ids of their ends.

    None is the only type.
    """
    src, dst = graph.edges(etype=triple)
    heads = graph.srcnodes[triple[0]].data if triple else graph.srcdata
    tails = graph.dstnodes[triple[-1]].data if triple else graph.dstdata
    return set(zip(heads[dgl.NID][src].tolist(), tails[dgl.NID][dst].tolist(), strict=True))


def assert_same_batch(ours: tuple[Any, ...], theirs: tuple[Any, ...], types: list[Any]) -> None:
    """Check that batches without negatives have the same links, and the same blocks."""
    inputs, pair_graph, mfgs = ours
    expected_inputs, expected_pair_graph, expected_mfgs = theirs
    assert isinstance(inputs, dict) == isinstance(expected_inputs, dict)
    if not isinstance(inputs, dict):
        inputs, expected_inputs = {"": inputs}, {"": expected_inputs}
    for name in inputs:
        assert set(inputs[name].tolist()) == set(expected_inputs[name].tolist())
    for triple in types:
        assert pairs(pair_graph, triple) == pairs(expected_pair_graph, triple)
        for block, expected in zip(mfgs, expected_mfgs, strict=True):
            assert pairs(block, triple) == pairs(expected, triple)
            assert block.num_edges(etype=triple) == expected.num_edges(etype=triple)
    for name in pair_graph.ntypes:
        ids = pair_graph.nodes[name].data[dgl.NID]
        assert torch.equal(mfgs[-1].dstnodes[name].data[dgl.NID], ids)


def two_types(graph: asterism.Graph) -> None:
    """Check each mode of exclusion with all neighbors, which leaves nothing to chance."""
    edges = linked.shop_edges()
    full = dgl.heterograph(
        {t: tuple(map(torch.from_numpy, ends)) for t, ends in edges.items()}, num_nodes_dict=NODES
    )
    chosen = np.random.default_rng(3).permutation(240)[:30]
    links = {"buys": tuple(ends[chosen] for ends in edges[BUYS])}
    both = links | {BOUGHT_BY: tuple(ends[chosen[:9]] for ends in edges[BOUGHT_BY])}
    for batch, eids in (
        (links, {BUYS: chosen}),
        (both, {BUYS: chosen, BOUGHT_BY: chosen[:9]}),
    ):
        for exclude, reverse in ((None, None), ("self", None), ("reverse_types", REVERSE)):
            copies = {t: torch.tensor(ids) for t, ids in eids.items()}  # DGL sorts them in place
            theirs = as_edge_prediction_sampler(
                NeighborSamplerOfDgl(ALL), exclude=exclude, reverse_etypes=reverse
            ).sample(full, copies)
            for sampler in (NeighborSampler(graph, ALL), LaborSampler(graph, ALL)):
                ours = EdgePredictionSampler(sampler, exclude=exclude, reverse_types=reverse)
                assert_same_batch(ours.sample(batch), theirs, [BUYS, BOUGHT_BY])
    # `reverse_types` alone are enough.
    implied = EdgePredictionSampler(NeighborSampler(graph, ALL), reverse_types=REVERSE)
    assert_same_batch(implied.sample(both), theirs, [BUYS, BOUGHT_BY])
    refused(lambda: implied.sample(links["buys"]), "links without an edge type: expected a dict")
    refused(lambda: implied.sample({"buys": ([1], [99])}), "seeds with 99 of 'item'")
    refused(
        lambda: EdgePredictionSampler(NeighborSampler(graph, ALL), exclude="all"),
        "exclude='all': expected one of 'self'",
    )


def an_epoch(graph: asterism.Graph) -> None:
    """Check that no sampled block of an epoch contains its links or their reverse edges."""
    edges = linked.shop_edges()
    all_pairs = set(zip(*(ends.tolist() for ends in edges[BUYS]), strict=True))
    in_degrees = {
        triple: np.bincount(edges[triple][1], minlength=NODES[triple[-1]])
        for triple in (BUYS, BOUGHT_BY)
    }
    fanouts, leaks = [2, 3], 0
    for make in (NeighborSampler, LaborSampler):
        sampler = EdgePredictionSampler(make(graph, fanouts), reverse_types=REVERSE)
        leaky = EdgePredictionSampler(make(graph, fanouts), exclude=None)
        for number, rows in enumerate(graph.edge_batches("buys", 40, seed=1)):
            seeds = graph.link_seeds(rows, "buys", amount=2, seed=number)
            inputs, positive, negative, mfgs = sampler.sample(seeds, seed=number)
            targets = pairs(positive, BUYS)
            assert targets == set(zip(rows.src.tolist(), rows.dst.tolist(), strict=True))
            assert positive.edges[BUYS].data[dgl.EID].tolist() == rows.edge_ids.tolist()
            assert positive.num_edges(BOUGHT_BY) == negative.num_edges(BOUGHT_BY) == 0
            assert negative.num_edges(BUYS) == 2 * len(rows.src)
            assert not pairs(negative, BUYS) & all_pairs
            assert torch.equal(
                negative.nodes["item"].data[dgl.NID], positive.nodes["item"].data[dgl.NID]
            )
            reverse = {(dst, src) for src, dst in targets}
            for block, fanout in zip(mfgs, fanouts, strict=True):
                assert not pairs(block, BUYS) & targets
                assert not pairs(block, BOUGHT_BY) & reverse
                if make is NeighborSampler:  # a node still gets its number of neighbors
                    for triple, lost in ((BUYS, targets), (BOUGHT_BY, reverse)):
                        nodes = block.dstnodes[triple[-1]].data[dgl.NID].numpy()
                        left = (
                            in_degrees[triple][nodes]
                            - np.bincount([dst for _, dst in lost], minlength=NODES[triple[-1]])[
                                nodes
                            ]
                        )
                        degrees = block.in_degrees(etype=triple).numpy()
                        assert np.array_equal(degrees, np.minimum(left, fanout))
            assert set(mfgs[0].srcnodes["user"].data[dgl.NID].tolist()) == set(
                inputs["user"].tolist()
            )
            *_, blocks_with_targets = leaky.sample(seeds, seed=number)
            leaks += sum(len(pairs(block, BUYS) & targets) for block in blocks_with_targets)
    assert leaks > 100
    triplets = graph.link_seeds(
        graph.edges_at("buys", np.arange(9)), "buys", mode="triplet", amount=3, seed=1
    )
    _, positive, negative, _ = sampler.sample(triplets)
    assert (positive.num_edges(BUYS), negative.num_edges(BUYS)) == (9, 27)


def one_type(graph: asterism.Graph) -> None:
    """Check reverse edges of the same type, where the batch has no names of types."""
    src, dst = linked.friend_edges()
    full = dgl.graph((torch.from_numpy(src), torch.from_numpy(dst)), num_nodes=NODES["user"])
    count = len(src) // 2
    reverse_ids = torch.from_numpy(np.r_[np.arange(count, 2 * count), np.arange(count)])
    chosen = np.random.default_rng(4).permutation(2 * count)[:25]
    batch = (src[chosen], dst[chosen])
    for exclude in ("self", "reverse_id"):
        theirs = as_edge_prediction_sampler(
            NeighborSamplerOfDgl(ALL), exclude=exclude, reverse_eids=reverse_ids
        ).sample(full, torch.tensor(chosen))
        ours = EdgePredictionSampler(NeighborSampler(graph, ALL), exclude=exclude)
        assert_same_batch(ours.sample(batch), theirs, [None])
    named = EdgePredictionSampler(NeighborSampler(graph, ALL), reverse_types={MET: MET})
    assert_same_batch(named.sample(batch), theirs, [None])


with asterism.connect(sys.argv[1], timeout_s=600) as client:
    for space in ("shop", "friends"):
        linked.load(client, space)
    with client.graph("shop").pin() as shop:
        two_types(shop)
        an_epoch(shop)
    with client.graph("friends").pin() as friends:
        one_type(friends)
print("OK")
