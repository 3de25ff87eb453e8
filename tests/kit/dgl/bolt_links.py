"""Check of GraphBolt's batches of links: no sampled layer contains a link of its batch."""

from __future__ import annotations

from typing import Any

import dgl.graphbolt as gb
import numpy as np
import torch
from known import refused
from tests.kit import linked_graphs as linked
from tests.kit.linked_graphs import BOUGHT_BY, BUYS, MET, NODES
from torch.utils.data import functional_datapipe

import asterism
from asterism.graphbolt import SubgraphSampler

BUYS_NAME, BOUGHT_NAME, MET_NAME = (":".join(triple) for triple in (BUYS, BOUGHT_BY, MET))
FANOUTS = [3, 4]
RATIO = 2


@functional_datapipe("sample_known_negative")
class _NegativeSampler(gb.NegativeSampler):  # type: ignore[misc]  # DGL has no types here
    """Negatives that are destinations of other links of the batch; some are links by chance."""

    def _sample_with_etype(
        self, node_pairs: Any, etype: str | None = None, use_seeds: bool = False
    ) -> Any:
        """Return links with negatives, as GraphBolt's uniform sampler does."""
        if not use_seeds:
            return None, node_pairs[1].roll(1).repeat_interleave(self.negative_ratio)
        count = len(node_pairs)
        src = node_pairs[:, 0].repeat_interleave(self.negative_ratio)
        dst = node_pairs[:, 1].roll(1).repeat_interleave(self.negative_ratio)
        labels = torch.cat([torch.ones(count), torch.zeros(len(src))]).bool()
        own = torch.arange(count)
        indexes = torch.cat([own, own.repeat_interleave(self.negative_ratio)])
        return torch.cat([node_pairs, torch.stack([src, dst], dim=1)]), labels, indexes


def layer_pairs(layer: Any, name: str | None) -> list[tuple[int, int]]:
    """Return the edges of a sampled layer by the ids of their ends; None is the only type."""
    csc, rows, columns = (
        layer.sampled_csc,
        layer.original_row_node_ids,
        layer.original_column_node_ids,
    )
    if name is not None:
        src_type, _, dst_type = name.split(":")
        csc, rows, columns = csc[name], rows[src_type], columns[dst_type]
    counts = csc.indptr.diff()
    src, dst = rows[csc.indices], columns.repeat_interleave(counts)
    return list(zip(src.tolist(), dst.tolist(), strict=True))


def several_types(graph: asterism.Graph) -> None:
    """Check each form of links, with and without negatives, reverse edges and exclusion."""
    src, dst = (torch.from_numpy(ends) for ends in linked.shop_edges()[BUYS])
    links = torch.stack([src, dst], dim=1)
    all_pairs = set(zip(src.tolist(), dst.tolist(), strict=True))
    in_degrees = np.bincount(dst.numpy(), minlength=NODES["item"])
    classes = torch.arange(len(src)) % 2  # of edges: 0 is a class, not a negative
    item_sets = {
        "node_pairs": gb.ItemSet(links, names="node_pairs"),
        "seeds": gb.ItemSet(links, names="seeds"),
        "classes": gb.ItemSet((links, classes), names=("seeds", "labels")),
    }
    leaks = 0
    for form, item_set in item_sets.items():
        for negatives in (False, True):
            if form == "classes" and negatives:
                continue  # GraphBolt's negatives replace the labels
            for reverse in (None, {BUYS_NAME: BOUGHT_NAME}):
                items = gb.ItemSetDict({BUYS_NAME: item_set})
                pipe = gb.ItemSampler(items, batch_size=40, shuffle=True)
                if negatives:
                    pipe = pipe.sample_known_negative(RATIO)
                pipe = pipe.sample_asterism(graph, FANOUTS, seed=1, reverse_types=reverse)
                seen: set[tuple[int, int]] = set()
                for batch in gb.DataLoader(pipe):
                    targets = batch_links(batch)
                    seen |= targets
                    assert len(targets) == 40
                    backward = {(b, a) for a, b in targets}
                    lost = np.bincount([b for _, b in targets], minlength=NODES["item"])
                    for layer, fanout in zip(batch.sampled_subgraphs, FANOUTS, strict=True):
                        found = layer_pairs(layer, BUYS_NAME)
                        assert set(found) <= all_pairs
                        assert not set(found) & targets, form
                        nodes = layer.original_column_node_ids["item"].numpy()
                        counts = layer.sampled_csc[BUYS_NAME].indptr.diff().numpy()
                        left = in_degrees[nodes] - lost[nodes]
                        assert np.array_equal(counts, np.minimum(left, fanout))
                        leaked = set(layer_pairs(layer, BOUGHT_NAME)) & backward
                        assert not (leaked and reverse), form
                        leaks += len(leaked)
                assert seen == all_pairs
    assert leaks > 100, "reverse edges show the links unless they are excluded too"


def batch_links(batch: Any) -> set[tuple[int, int]]:
    """Return the links of a batch of purchases without its negatives."""
    if batch.node_pairs is not None:
        src, dst = batch.node_pairs[BUYS_NAME]
        return set(zip(src.tolist(), dst.tolist(), strict=True))
    rows = batch.seeds[BUYS_NAME]
    if batch.indexes is not None:
        rows = rows[batch.labels[BUYS_NAME]]
    return set(map(tuple, rows.tolist()))


def one_type(graph: asterism.Graph) -> None:
    """Check batches without names of types, with both directions of each edge in one type."""
    src, dst = (torch.from_numpy(ends) for ends in linked.friend_edges())
    links = torch.stack([src, dst], dim=1)[: len(src) // 2]
    for name in ("node_pairs", "seeds"):
        for options, leak_of in (
            ({"exclude": False}, {"links", "reverse"}),
            ({}, {"reverse"}),
            ({"reverse_types": {MET_NAME: MET_NAME}}, set()),
        ):
            items = gb.ItemSampler(gb.ItemSet(links, names=name), batch_size=30)
            leaked = set()
            for batch in gb.DataLoader(items.sample_asterism(graph, FANOUTS, seed=2, **options)):
                pairs = batch.seeds if name == "seeds" else torch.stack(batch.node_pairs, dim=1)
                targets = set(map(tuple, pairs.tolist()))
                for layer in batch.sampled_subgraphs:
                    found = set(layer_pairs(layer, None))
                    leaked |= {"links"} if found & targets else set()
                    leaked |= {"reverse"} if found & {(b, a) for a, b in targets} else set()
            assert leaked == leak_of, (name, options, leaked)
    refused(
        lambda: SubgraphSampler(
            items, graph, [2], exclude=False, reverse_types={MET_NAME: MET_NAME}
        ),
        "reverse_types with exclude=False",
    )


def check_links(client: asterism.Client) -> None:
    """Check batches of links of a graph of two edge types, and of one."""
    for space, check in (("shop", several_types), ("friends", one_type)):
        linked.load(client, f"{space}_of_bolt")
        with client.graph(f"{space}_of_bolt").pin() as pinned:
            check(pinned)
