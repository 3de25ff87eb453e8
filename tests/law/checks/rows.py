"""Checks of rows of draws: nodes by number, nodes like others, negatives; through graphd's rooms and storaged's handlers, without a wire."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
from tests.kit.images import Edges, Nodes, version_of
from tests.law.checks.basis import draw_nodes, nodes_of, require, require_counts, require_independent
from tests.law.checks.hosts import sampling_of

from asterism_proto.schema import EdgeType, Feature, NodeType, Schema
from graphd import labels, numbered, sample, totals
from graphd.positives import Joined, Positives
from graphkit.excluding import Excluded
from storaged import draw


def _what(types: Sequence[int], seed: int, count: int) -> sample.Global:
    return sample.Global(element=totals.NODE, types=tuple(types), seed=seed, count=count, uniform=False, distinct=False, want_probabilities=False)


@cache
def two_types(parts: int) -> draw.Version:
    """Ids 0 .. 5 of one type by weights 1 .. 6, and of another by 6 .. 1."""
    rising = np.arange(1, 7, dtype=np.float32)
    schema = Schema(node_types=(NodeType(name="a", weighted=True), NodeType(name="b", weighted=True)), parts=parts)
    return version_of(schema, {"a": Nodes(ids=np.arange(6), weights=rising), "b": Nodes(ids=np.arange(6), weights=rising[::-1].copy())})


def numbered_draws_are_those_of_the_stream(scale: float) -> None:
    """Draws asked for by number, of any subset, are the bytes of the stream's; each from a type alone where that is said."""
    n = int(max(200, 3000 * scale))
    version = two_types(3)
    streams = [draw.nodes(version, types=[t], parts=range(3), seed=5, start=0, count=n, uniform=False).ids for t in (0, 1)]
    both = draw.nodes(version, types=[0, 1], parts=range(3), seed=5, start=0, count=n, uniform=False)
    chosen = np.sort(np.random.default_rng(1).choice(n, n // 3, replace=False))[::-1].copy()
    kinds = (chosen % 2).astype(np.int32)
    alone = draw.numbered_nodes(version, types=[0, 1], numbers=chosen, kinds=kinds, seed=5, uniform=False)
    require(bool((alone.ids == np.where(kinds == 0, streams[0][chosen], streams[1][chosen])).all()), "draws by number are others than the stream's")
    require(bool((alone.types == kinds).all()), "draws by number are of other types than said")
    together = draw.numbered_nodes(version, types=[0, 1], numbers=chosen, seed=5, uniform=False)
    require(
        bool((together.ids == both.ids[chosen]).all() and (together.types == both.types[chosen]).all()), "draws by number of several types differ"
    )


def nodes_like_others_are_of_their_types(scale: float) -> None:
    """Rows follow the weights of their own type, on any number of hosts, and rows of one type are independent."""
    n = int(max(600, 20_000 * scale))
    version = two_types(6)
    types = np.array([0, 1, 0, -1], np.int32)
    how = numbered.Like(what=_what([0, 1], 9, n), lenient=True)
    answers = [numbered.like(sampling_of(version, hosts), how, np.array([3, 3, 5, -1]), -1, types) for hosts in (1, 2, 5)]
    ids = answers[0]["ids"]
    require(all(bool((other["ids"] == ids).all()) for other in answers[1:]), "hosts matter to nodes like others")
    for row, weights in ((0, np.arange(1, 7)), (1, np.arange(6, 0, -1)), (2, np.arange(1, 7))):
        require_counts(np.bincount(ids[row], minlength=6), weights / 21 * n, f"nodes like that of row {row}")
    require(bool((ids[3] == -1).all()), "no node has nodes like it")
    require_independent(ids[0], ids[2], 6, "rows of nodes of one type")
    require_independent(ids[0], ids[1], 6, "rows of nodes of two types")


def negatives_follow_what_is_left(scale: float) -> None:
    """Negatives are drawn by weight among what their row does not leave out: little or nearly everything."""
    n = int(max(500, 8000 * scale))
    weights = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
    version = nodes_of(weights, 3)
    rows: list[list[int]] = [[], [5], [0, 2, 4, 4], [1, 2, 3, 4, 5]]
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    excluded = Positives(named=Excluded.of(indptr, np.concatenate([np.array(row[::-1], np.int64) for row in rows])), joined=None)
    told = numbered.negatives(sampling_of(version, 3), replace(_what([0], 13, n), want_probabilities=True), len(rows), excluded)
    answers = [numbered.negatives(sampling_of(version, 1), _what([0], 13, n), len(rows), excluded)["ids"], told["ids"]]
    require(bool((answers[0] == answers[1]).all()), "hosts, or asking for probabilities, matter to negatives")
    for row, left_out in enumerate(rows):
        left = np.array(weights)
        left[left_out] = 0
        require_counts(np.bincount(answers[0][row], minlength=6), left / left.sum() * n, f"negatives but {left_out}")
    plain = draw_nodes(version, 13, len(rows) * n).reshape(len(rows), n)
    kept = ~np.array([np.isin(plain[row], left_out) for row, left_out in enumerate(rows)])
    require(bool((answers[0][kept] == plain[kept]).all()), "draws that are not left out are others than without anything left out")
    for row, left_out in enumerate(rows):
        left = np.array(weights)
        left[left_out] = 0
        exact = (left / left.sum())[told["ids"][row]]
        require(
            bool((abs(told["probabilities"][row] / exact - 1) < 1e-14).all()), f"negatives but {left_out} have other probabilities than their shares"
        )
    require_independent(answers[0][1, :-1], answers[0][1, 1:], 6, "negatives at lag 1")
    require_independent(answers[0][1], answers[0][2], 6, "negatives of two rows")


def negatives_are_no_edges(scale: float) -> None:
    """What an edge leads to from a row's source is left out, little or all but one, as if it were listed, on any number of hosts."""
    n = int(max(500, 8000 * scale))
    weights = np.arange(1, 7, dtype=np.float32)
    src, dst = np.array([0, 1, 1, 1, 4, 4, 4, 4, 4, 5, 5]), np.array([5, 0, 2, 4, 0, 1, 2, 3, 4, 3, 3])
    schema = Schema(node_types=(NodeType(name="n", weighted=True),), edge_types=(EdgeType(src_type="n", relation="e", dst_type="n"),), parts=4)
    version = version_of(schema, {"n": Nodes(ids=np.arange(6), weights=weights)}, {"n:e:n": Edges(src=src, dst=dst)})
    sources = np.array([4, 0, 3, 1, 5, -1, 99], np.int64)
    answers = []
    for hosts in (1, 3):
        sampling = sampling_of(version, hosts)
        joined = Joined.of(sampling, [0], sources, [0])
        asked = Positives(named=None, joined=joined)
        answers += [
            numbered.negatives(sampling, _what([0], 17, n), len(sources), asked)["ids"],
            numbered.negatives(sampling, _what([0], 17, n), len(sources), Positives(named=asked.listed(len(sources)), joined=None))["ids"],
        ]
    require(all(bool((answers[0] == other).all()) for other in answers), "hosts, or how edges are left out, matter to negatives")
    for row, source in enumerate(sources.tolist()):
        left = weights.astype(np.float64)
        left[dst[src == source]] = 0
        require_counts(np.bincount(answers[0][row], minlength=6), left / left.sum() * n, f"negatives of {source} that are no edges")
    require_independent(answers[0][3, :-1], answers[0][3, 1:], 6, "negatives that are no edges at lag 1")


def negatives_of_a_hair_are_raced_for(scale: float) -> None:
    """Where all but a billionth of the weight is left out, draws go on as races, by the same law; and nothing comes of nothing."""
    trials = int(max(60, 300 * scale))
    left = np.array([0.0, np.float32(0.1), np.float32(0.3)])  # beside 10^9, little enough for a difference to be rounding
    exact = left / left.sum()
    version = nodes_of((1e9, 0.1, 0.3), 2)
    excluded = Positives(named=Excluded.of(np.array([0, 1, 4], np.int64), np.array([0, 2, 1, 0], np.int64)), joined=None)
    drawn = numbered.negatives(sampling_of(version, 2), replace(_what([0], 3, trials), want_probabilities=True), 2, excluded)
    require_counts(np.bincount(drawn["ids"][0], minlength=3), exact * trials, "negatives of a hair")
    require(bool((drawn["ids"][1] == -1).all() and (drawn["types"][1] == -1).all()), "something was drawn where nothing is left")
    require(
        bool((abs(drawn["probabilities"][0] / exact[drawn["ids"][0]] - 1) < 1e-14).all()),
        "negatives of a hair have other probabilities than their shares",
    )
    require(not drawn["probabilities"][1].any(), "nothing has a probability")


@cache
def labelled(parts: int) -> draw.Version:
    """Two types of nodes of 7 graphs: graph i has 3 i + 1 nodes of the one, graph 6 one of the other too; some nodes are of none."""
    texts = [str(i).encode() * 5 for i in range(7) for _ in range(3 * i + 1)] + [b"", b""]
    types = tuple(NodeType(name=name, features=(Feature(name="of", kind="bytes"),), graph_label="of") for name in ("a", "b"))
    schema = Schema(node_types=types, parts=parts)

    def nodes(of: list[bytes]) -> Nodes:
        column = (np.cumsum([0, *map(len, of)]).astype(np.int64), np.frombuffer(b"".join(of), np.uint8))
        return Nodes(ids=np.arange(len(of)), features={"of": column})

    return version_of(schema, {"a": nodes(texts), "b": nodes([b"6" * 5, b""])})


def graph_labels_are_alike(scale: float) -> None:
    """Labels are drawn alike, however many nodes, types, parts and hosts have them; and a label has just its nodes."""
    n = int(max(600, 20_000 * scale))
    known = [str(i).encode() * 5 for i in range(7)]
    answers = []
    for hosts in (1, 3):
        found = labels.sample(sampling_of(labelled(3), hosts), labels.Labels(), 17, n)
        at, text = found["labels.indptr"].tolist(), found["labels.values"].tobytes()
        answers.append([text[a:b] for a, b in pairwise(at)])
    require(answers[0] == answers[1], "hosts matter to labels")
    drawn = np.array([known.index(label) for label in answers[0]])
    require_counts(np.bincount(drawn, minlength=7), np.full(7, n / 7), "labels of graphs")
    require_independent(drawn[:-1], drawn[1:], 7, "labels at lag 1")
    asked = [*known, b"none", b""]
    indptr, values = np.cumsum([0, *map(len, asked)]).astype(np.int64), np.frombuffer(b"".join(asked), np.uint8)
    found = labels.nodes(sampling_of(labelled(3), 2), indptr, values)
    sizes = [3 * i + 1 + (i == 6) for i in range(7)]
    require(np.diff(found["indptr"]).tolist() == [*sizes, 0, 0], f"graphs have {np.diff(found['indptr']).tolist()} nodes")
    require(found["ids"].tolist() == [*range(sum(sizes) - 1), 0] and int(found["types"].sum()) == 1, "graphs have other nodes than theirs")
