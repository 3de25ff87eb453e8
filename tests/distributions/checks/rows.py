"""Checks of numbered draws, similar nodes and negatives.

They run graphd's logic and storaged's handlers without a network.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
from tests.distributions.checks.basis import (
    draw_nodes,
    require,
    require_counts,
    require_independent,
    weighted_nodes,
)
from tests.distributions.checks.hosts import request_context
from tests.kit.images import Edges, Nodes, version_of

from asterism_graphkit.random import rng
from asterism_graphkit.random.exclusion import ExcludedIds
from asterism_model.elements import NODE
from asterism_model.schema import EdgeType, Feature, NodeType, Schema
from graphd.operators import global_sampling, graph_labels, negatives
from graphd.operators.negative_exclusions import NeighborExclusion, RowExclusions
from graphd.routing.split_merge import no_checkpoint
from storaged import sampling as draw


def _draw_params(types: Sequence[int], seed: int, count: int) -> global_sampling.GlobalDraw:
    return global_sampling.GlobalDraw(
        element=NODE,
        types=tuple(types),
        seed=seed,
        count=count,
        uniform=False,
        distinct=False,
        want_probabilities=False,
    )


@cache
def two_type_graph(parts: int) -> draw.LocalVersion:
    """Return a graph with ids 0 .. 5 of two types, with weights 1 .. 6 and 6 .. 1."""
    rising = np.arange(1, 7, dtype=np.float32)
    schema = Schema(
        node_types=(NodeType(name="a", weighted=True), NodeType(name="b", weighted=True)),
        parts=parts,
    )
    return version_of(
        schema,
        {
            "a": Nodes(ids=np.arange(6), weights=rising),
            "b": Nodes(ids=np.arange(6), weights=rising[::-1].copy()),
        },
    )


def draws_by_index_match_the_stream(scale: float) -> None:
    """Draws requested by number, for any subset, equal those of the stream.

    A draw can be limited to one type; its stream is that of the seed of the type.
    """
    n = int(max(200, 3000 * scale))
    version = two_type_graph(3)
    streams = [
        draw.sample_nodes(
            version,
            types=[t],
            parts=range(3),
            seed=rng.seed_of_type(5, t),
            start=0,
            count=n,
            uniform=False,
        ).ids
        for t in (0, 1)
    ]
    union_stream = draw.sample_nodes(
        version, types=[0, 1], parts=range(3), seed=5, start=0, count=n, uniform=False
    )
    numbers = np.sort(np.random.default_rng(1).choice(n, n // 3, replace=False))[::-1].copy()
    kinds = (numbers % 2).astype(np.int32)
    typed_samples = draw.sample_nodes_by_index(
        version, types=[0, 1], draw_indices=numbers, kinds=kinds, seed=5, uniform=False
    )
    require(
        bool(
            (
                typed_samples.ids == np.where(kinds == 0, streams[0][numbers], streams[1][numbers])
            ).all()
        ),
        "draws by number are others than the stream's",
    )
    require(
        bool((typed_samples.types == kinds).all()), "draws by number are of other types than said"
    )
    union_samples = draw.sample_nodes_by_index(
        version, types=[0, 1], draw_indices=numbers, seed=5, uniform=False
    )
    require(
        bool(
            (union_samples.ids == union_stream.ids[numbers]).all()
            and (union_samples.types == union_stream.types[numbers]).all()
        ),
        "draws by number of several types differ",
    )


def nodes_like_others_have_their_types(scale: float) -> None:
    """Similar nodes follow the weights of their own type, on any number of hosts.

    Rows of one type are independent.
    """
    n = int(max(600, 20_000 * scale))
    version = two_type_graph(6)
    types = np.array([0, 1, 0, -1], np.int32)
    params = negatives.NodesLikeParams(draw=_draw_params([0, 1], 9, n), allow_unknown=True)
    replies = [
        negatives.sample_nodes_like(
            request_context(version, hosts), params, np.array([3, 3, 5, -1]), -1, types
        )
        for hosts in (1, 2, 5)
    ]
    ids = replies[0]["ids"]
    require(
        all(bool((other["ids"] == ids).all()) for other in replies[1:]),
        "hosts matter to nodes like others",
    )
    for row, weights in ((0, np.arange(1, 7)), (1, np.arange(6, 0, -1)), (2, np.arange(1, 7))):
        require_counts(
            np.bincount(ids[row], minlength=6), weights / 21 * n, f"nodes like that of row {row}"
        )
    require(bool((ids[3] == -1).all()), "no node has nodes like it")
    require_independent(ids[0], ids[2], 6, "rows of nodes of one type")
    require_independent(ids[0], ids[1], 6, "rows of nodes of two types")


def negatives_follow_remaining_weights(scale: float) -> None:
    """Negatives follow the weights of nodes that their row does not exclude.

    The excluded share is small or almost 1.
    """
    n = int(max(500, 8000 * scale))
    weights = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
    version = weighted_nodes(weights, 3)
    rows: list[list[int]] = [[], [5], [0, 2, 4, 4], [1, 2, 3, 4, 5]]
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    excluded = RowExclusions(
        listed=ExcludedIds.from_rows(
            indptr, np.concatenate([np.array(row[::-1], np.int64) for row in rows]), no_checkpoint
        ),
        neighbors=None,
    )
    reply_with_probabilities = negatives.sample_negatives(
        request_context(version, 3),
        replace(_draw_params([0], 13, n), want_probabilities=True),
        len(rows),
        excluded,
    )
    ids_by_hosts = [
        negatives.sample_negatives(
            request_context(version, 1), _draw_params([0], 13, n), len(rows), excluded
        )["ids"],
        reply_with_probabilities["ids"],
    ]
    require(
        bool((ids_by_hosts[0] == ids_by_hosts[1]).all()),
        "hosts, or asking for probabilities, matter to negatives",
    )
    for row, excluded_ids in enumerate(rows):
        remaining = np.array(weights)
        remaining[excluded_ids] = 0
        require_counts(
            np.bincount(ids_by_hosts[0][row], minlength=6),
            remaining / remaining.sum() * n,
            f"negatives but {excluded_ids}",
        )
    plain = draw_nodes(version, 13, len(rows) * n).reshape(len(rows), n)
    is_kept = ~np.array(
        [np.isin(plain[row], excluded_ids) for row, excluded_ids in enumerate(rows)]
    )
    require(
        bool((ids_by_hosts[0][is_kept] == plain[is_kept]).all()),
        "draws that are not left out are others than without anything left out",
    )
    for row, excluded_ids in enumerate(rows):
        remaining = np.array(weights)
        remaining[excluded_ids] = 0
        shares = (remaining / remaining.sum())[reply_with_probabilities["ids"][row]]
        require(
            bool((abs(reply_with_probabilities["probabilities"][row] / shares - 1) < 1e-14).all()),
            f"negatives but {excluded_ids} have other probabilities than their shares",
        )
    require_independent(ids_by_hosts[0][1, :-1], ids_by_hosts[0][1, 1:], 6, "negatives at lag 1")
    require_independent(ids_by_hosts[0][1], ids_by_hosts[0][2], 6, "negatives of two rows")


def negatives_are_no_edges(scale: float) -> None:
    """Destinations of a source's edges are excluded as if they were listed.

    The share is small, or all but one; results are equal on any number of hosts.
    """
    n = int(max(500, 8000 * scale))
    weights = np.arange(1, 7, dtype=np.float32)
    src, dst = (
        np.array([0, 1, 1, 1, 4, 4, 4, 4, 4, 5, 5]),
        np.array([5, 0, 2, 4, 0, 1, 2, 3, 4, 3, 3]),
    )
    schema = Schema(
        node_types=(NodeType(name="n", weighted=True),),
        edge_types=(EdgeType(src_type="n", relation="e", dst_type="n"),),
        parts=4,
    )
    version = version_of(
        schema, {"n": Nodes(ids=np.arange(6), weights=weights)}, {"n:e:n": Edges(src=src, dst=dst)}
    )
    sources = np.array([4, 0, 3, 1, 5, -1, 99], np.int64)
    ids_by_method = []
    for hosts in (1, 3):
        context = request_context(version, hosts)
        neighbors = NeighborExclusion.from_request(context, [0], sources, [0])
        exclusions = RowExclusions(listed=None, neighbors=neighbors)
        ids_by_method += [
            negatives.sample_negatives(context, _draw_params([0], 17, n), len(sources), exclusions)[
                "ids"
            ],
            negatives.sample_negatives(
                context,
                _draw_params([0], 17, n),
                len(sources),
                RowExclusions(
                    listed=exclusions.excluded_ids(len(sources), no_checkpoint), neighbors=None
                ),
            )["ids"],
        ]
    require(
        all(bool((ids_by_method[0] == other).all()) for other in ids_by_method),
        "hosts, or how edges are left out, matter to negatives",
    )
    for row, source in enumerate(sources.tolist()):
        remaining = weights.astype(np.float64)
        remaining[dst[src == source]] = 0
        require_counts(
            np.bincount(ids_by_method[0][row], minlength=6),
            remaining / remaining.sum() * n,
            f"negatives of {source} that are no edges",
        )
    require_independent(
        ids_by_method[0][3, :-1], ids_by_method[0][3, 1:], 6, "negatives that are no edges at lag 1"
    )


def rare_negatives_use_exponential_keys(scale: float) -> None:
    """Negatives keep their distribution if all but a billionth of the weight is excluded.

    Sampling then uses exponential keys. If nothing is left, it returns nothing.
    """
    trials = int(max(60, 300 * scale))
    remaining = np.array(
        [0.0, np.float32(0.1), np.float32(0.3)]
    )  # so small relative to 10^9 that a difference would be rounding
    shares = remaining / remaining.sum()
    version = weighted_nodes((1e9, 0.1, 0.3), 2)
    excluded = RowExclusions(
        listed=ExcludedIds.from_rows(
            np.array([0, 1, 4], np.int64), np.array([0, 2, 1, 0], np.int64), no_checkpoint
        ),
        neighbors=None,
    )
    reply = negatives.sample_negatives(
        request_context(version, 2),
        replace(_draw_params([0], 3, trials), want_probabilities=True),
        2,
        excluded,
    )
    require_counts(
        np.bincount(reply["ids"][0], minlength=3), shares * trials, "negatives of a hair"
    )
    require(
        bool((reply["ids"][1] == -1).all() and (reply["types"][1] == -1).all()),
        "something was drawn where nothing is left",
    )
    require(
        bool((abs(reply["probabilities"][0] / shares[reply["ids"][0]] - 1) < 1e-14).all()),
        "negatives of a hair have other probabilities than their shares",
    )
    require(not reply["probabilities"][1].any(), "nothing has a probability")


@cache
def labelled_graph(parts: int) -> draw.LocalVersion:
    """Return two types of nodes with labels of 7 graphs.

    Graph i has 3 i + 1 nodes of one type, and graph 6 also one of the other; some nodes have no
    label.
    """
    texts = [str(i).encode() * 5 for i in range(7) for _ in range(3 * i + 1)] + [b"", b""]
    types = tuple(
        NodeType(name=name, features=(Feature(name="of", kind="bytes"),), graph_label="of")
        for name in ("a", "b")
    )
    schema = Schema(node_types=types, parts=parts)

    def nodes(texts_of_nodes: list[bytes]) -> Nodes:
        column = (
            np.cumsum([0, *map(len, texts_of_nodes)]).astype(np.int64),
            np.frombuffer(b"".join(texts_of_nodes), np.uint8),
        )
        return Nodes(ids=np.arange(len(texts_of_nodes)), features={"of": column})

    return version_of(schema, {"a": nodes(texts), "b": nodes([b"6" * 5, b""])})


def graph_labels_are_equally_likely(scale: float) -> None:
    """Labels are uniform regardless of their nodes, types, partitions and hosts.

    A label returns exactly its nodes.
    """
    n = int(max(600, 20_000 * scale))
    all_labels = [str(i).encode() * 5 for i in range(7)]
    labels_by_hosts = []
    for hosts in (1, 3):
        reply = graph_labels.sample_labels(
            request_context(labelled_graph(3), hosts), graph_labels.GraphLabelCache(), 17, n
        )
        bounds, values = reply["labels.indptr"].tolist(), reply["labels.values"].tobytes()
        labels_by_hosts.append([values[a:b] for a, b in pairwise(bounds)])
    require(labels_by_hosts[0] == labels_by_hosts[1], "hosts matter to labels")
    label_numbers = np.array([all_labels.index(label) for label in labels_by_hosts[0]])
    require_counts(np.bincount(label_numbers, minlength=7), np.full(7, n / 7), "labels of graphs")
    require_independent(label_numbers[:-1], label_numbers[1:], 7, "labels at lag 1")
    requested = [*all_labels, b"none", b""]
    indptr, requested_bytes = (
        np.cumsum([0, *map(len, requested)]).astype(np.int64),
        np.frombuffer(b"".join(requested), np.uint8),
    )
    reply = graph_labels.label_nodes(request_context(labelled_graph(3), 2), indptr, requested_bytes)
    sizes = [3 * i + 1 + (i == 6) for i in range(7)]
    require(
        np.diff(reply["indptr"]).tolist() == [*sizes, 0, 0],
        f"graphs have {np.diff(reply['indptr']).tolist()} nodes",
    )
    require(
        reply["ids"].tolist() == [*range(sum(sizes) - 1), 0] and int(reply["types"].sum()) == 1,
        "graphs have other nodes than theirs",
    )
