"""Checks of budgets: every outcome of layers of two node types, by fractions; what is given; all edges among what is drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
from tests.kit.images import Edges, Nodes, version_of
from tests.law.checks.basis import require, require_counts, require_independent
from tests.law.checks.hosts import ends_of, sampling_of

from asterism_proto.schema import EdgeType, NodeType, Schema
from asterism_proto.v1 import common_pb2 as pb
from graphd import hgt as room
from graphd import read
from storaged import draw

Node = tuple[int, int]
"""Type and id."""
Order = tuple[Node, ...]
Outcome = tuple[Order, ...]
"""What each layer drew: nodes of the first type in the order of their draws, then of the second."""

NODES = (5, 4)
EDGES: Mapping[tuple[int, int, int], Sequence[tuple[int, int, float]]] = {
    (0, 0, 0): ((0, 1, 1.0), (0, 1, 2.0), (0, 2, 1.0), (0, 3, 0.0), (1, 0, 2.0), (1, 2, 1.0), (1, 4, 3.0), (2, 4, 1.0), (2, 3, 2.0), (4, 0, 0.0)),
    (1, 0, 1): ((0, 0, 2.0), (0, 1, 1.0), (1, 1, 4.0), (1, 2, 1.0), (2, 3, 1.0), (2, 2, 0.5)),
    (2, 1, 0): ((0, 3, 1.0), (0, 2, 1.0), (1, 4, 2.0), (1, 2, 1.0), (2, 0, 1.0), (3, 1, 1.0)),
}
"""By (edge type, source type, destination type): source, destination, weight. Parallel edges, zeros, a node whose edges weigh nothing."""


def _drawn(budget: Mapping[Node, Fraction], kind: int, count: int) -> dict[Order, Fraction]:
    """The probability of every order of successive draws in proportion to squared budgets."""
    law: dict[Order, Fraction] = {(): Fraction(1)}
    for _ in range(count):
        longer: dict[Order, Fraction] = {}
        for order, p in law.items():
            left = {node: b * b for node, b in budget.items() if node[0] == kind and b and node not in order}
            for node, b in left.items():
                longer[(*order, node)] = p * b / sum(left.values())
            if not left:
                longer[order] = p
        law = longer
    return law


def _given(budget: Mapping[Node, Fraction], taken: frozenset[Node], fresh: Order, *, uniform: bool) -> dict[Node, Fraction]:
    """Budgets once the nodes of a layer have given."""
    after = {node: b for node, b in budget.items() if node not in taken}
    for kind, node in fresh:
        for (_, src, dst), rows in EDGES.items():
            mine = [(b, Fraction(1 if uniform else w)) for a, b, w in rows if (src, a) == (kind, node)]
            total = sum(w for _, w in mine)
            for b, w in mine:
                if total and (dst, b) not in taken:
                    after[dst, b] = after.get((dst, b), Fraction(0)) + w / total
    return after


def law_of(seeds: Order, counts: Sequence[Sequence[int]], *, uniform: bool) -> dict[Outcome, float]:
    """The probability of every outcome."""
    states = [((), Fraction(1), _given({}, frozenset(seeds), seeds, uniform=uniform), frozenset(seeds))]
    for layer in zip(*counts, strict=True):
        after = []
        for outcome, p, budget, taken in states:
            for (first, q), (second, r) in product(*(_drawn(budget, kind, count).items() for kind, count in enumerate(layer))):
                both, known = first + second, taken | frozenset(first + second)
                after.append(((*outcome, both), p * q * r, _given(budget, known, both, uniform=uniform), known))
        states = after
    law: dict[Outcome, float] = {}
    for outcome, p, _, _ in states:
        law[outcome] = law.get(outcome, 0.0) + float(p)
    return law


@cache
def web() -> draw.Version:
    names = ("a", "b")
    types = tuple(EdgeType(src_type=names[src], relation=f"e{at}", dst_type=names[dst], weighted=True) for at, src, dst in EDGES)
    edges = {}
    for edge, rows in zip(types, EDGES.values(), strict=True):
        src, dst, weights = zip(*rows, strict=True)
        edges[edge.name] = Edges(src=np.array(src), dst=np.array(dst), weights=np.array(weights, np.float32))
    schema = Schema(node_types=tuple(NodeType(name=name) for name in names), edge_types=types, parts=3)
    return version_of(schema, {name: Nodes(ids=np.arange(size)) for name, size in zip(names, NODES, strict=True)}, edges)


WHAT = read.Adjacent(edge_types=(2, 0, 1), direction=pb.OUT, want_weights=False, want_edge_ids=True, sort="")
HOW = room.Budgeting(followed=(0, 1, 2), counts={0: (2, 1), 1: (1, 2)}, layers=2, uniform=False, direction=pb.OUT, seed=0)


def _outcome(found: Mapping[str, np.ndarray]) -> Outcome:
    """The layers of an answer."""
    ends = np.cumsum(found["node_counts"], axis=1)
    layers = range(1, ends.shape[1])
    return tuple(
        tuple((kind, node) for kind in (0, 1) for node in found[f"nodes.{kind}"][ends[kind, at - 1] : ends[kind, at]].tolist()) for at in layers
    )


def _trials(how: room.Budgeting, seeds: Order, n: int) -> Iterator[Mapping[str, np.ndarray]]:
    nodes, types = np.array([node for _, node in seeds], np.int64), np.array([kind for kind, _ in seeds], np.int32)
    for seed in range(n):
        found = room.sampled(sampling_of(web(), 1), replace(how, seed=seed), WHAT, nodes, -1, types)
        if seed % 50 == 0:
            spread = room.sampled(sampling_of(web(), 3), replace(how, seed=seed), WHAT, nodes, -1, types)
            require(all(bool((found[name] == spread[name]).all()) for name in found), "hosts matter to budgets")
        yield found


def layers_by_budgets_follow_their_law(scale: float) -> None:
    """Every outcome of two layers of two node types, by weight and uniformly, from seeds of one type and of both."""
    n = int(max(250, 2000 * scale))
    for seeds, uniform in ((((0, 0),), False), (((0, 0),), True), (((1, 1), (0, 1)), False)):
        law = law_of(seeds, [HOW.counts[0], HOW.counts[1]], uniform=uniform)
        require(abs(sum(law.values()) - 1) < 1e-12, "the law itself is wrong")
        seen = Counter(_outcome(found) for found in _trials(replace(HOW, uniform=uniform), seeds, n))
        what = f"layers by budgets from {seeds}, uniform={uniform}"
        strange = set(seen) - set(law)
        require(not strange, f"{what}: {list(strange)[:1]} is impossible")
        require_counts([seen[outcome] for outcome in law], np.array(list(law.values())) * n, what)
        # What rare outcomes share is told by each layer and type, too.
        for layer, kind in product((0, 1), (0, 1)):
            wanted: dict[Order, float] = {}
            for outcome, p in law.items():
                order = tuple(node for node in outcome[layer] if node[0] == kind)
                wanted[order] = wanted.get(order, 0.0) + p
            drawn = Counter(dict.fromkeys(wanted, 0))
            for outcome, times in seen.items():
                drawn[tuple(node for node in outcome[layer] if node[0] == kind)] += times
            require_counts([drawn[order] for order in wanted], np.array(list(wanted.values())) * n, f"{what}: layer {layer} of type {kind}")


def layers_by_budgets_have_streams_of_their_own(scale: float) -> None:
    """Of seeds that follow each other, of node types and of layers: draws that do not depend on each other by the law do not."""
    n = int(max(900, 4000 * scale))
    first = [dict(enumerate(_outcome(found)[0])) for found in _trials(replace(HOW, counts={0: (1,), 1: (1,)}, layers=1, uniform=True), ((0, 0),), n)]
    ones, others = (np.array([drawn[at][1] for drawn in first]) for at in (0, 1))
    require_independent(ones[:-1], ones[1:], NODES[0], "seeds that follow each other")
    require_independent(ones, others, NODES[0], "node types of a layer")


@cache
def fork() -> draw.Version:
    """A node that gives to two, each of which gives to the same two others: what they have is alike in both layers."""
    pairs = ((0, 1), (0, 2), (1, 3), (1, 4), (2, 3), (2, 4))
    edge_type = EdgeType(src_type="a", relation="e", dst_type="a")
    schema = Schema(node_types=(NodeType(name="a"),), edge_types=(edge_type,), parts=3)
    ends = np.array(pairs)
    return version_of(schema, {"a": Nodes(ids=np.arange(5))}, {edge_type.name: Edges(src=ends[:, 0], dst=ends[:, 1])})


def what_lost_in_a_layer_is_drawn_in_the_next_like_others(scale: float) -> None:
    """The other one of the first two has a budget like the last two's: drawn by the same variates it would have lost before it began."""
    n = int(max(600, 6000 * scale))
    what = replace(WHAT, edge_types=(0,))
    how = replace(HOW, followed=(0,), counts={0: (1, 1)}, uniform=True)
    met = [room.sampled(sampling_of(fork(), 1), replace(how, seed=seed), what, np.array([0]), 0, None)["nodes.0"].tolist() for seed in range(n)]
    lost = sum(last == 3 - first for _, first, last in met)
    seen = [lost, *(sum(last == node for _, _, last in met) for node in (3, 4))]
    require_counts(seen, np.full(3, n / 3), "what lost in the first layer, and what came in the second")


def layers_by_budgets_have_all_edges_among_them(scale: float) -> None:
    """Every edge of each type among what was drawn, with its id; the first of more are those of a request for fewer."""
    for found in _trials(HOW, ((0, 0), (1, 3)), int(max(20, 200 * scale))):
        kept = [set(found[f"nodes.{kind}"].tolist()) for kind in (0, 1)]
        for (edge_type, src, dst), rows in EDGES.items():
            law = sorted((a, b, eid) for eid, (a, b, _) in enumerate(rows) if a in kept[src] and b in kept[dst])
            rows, cols = ends_of(found, edge_type)
            ends = found[f"nodes.{src}"][rows].tolist(), found[f"nodes.{dst}"][cols].tolist()
            told = sorted(zip(*ends, found[f"eids.{edge_type}"].tolist(), strict=True))
            require(told == law, f"edges of type {edge_type} are {told}, not all {law} among the nodes")
    more, less = replace(HOW, counts={0: (2, 3), 1: (1, 2)}), replace(HOW, counts={0: (2, 1), 1: (1, 1)})
    pairs = zip(_trials(more, ((0, 0),), 20), _trials(less, ((0, 0),), 20), strict=True)
    for outcomes in ((_outcome(many), _outcome(few)) for many, few in pairs):
        for kind, count in ((0, 1), (1, 1)):
            many, few = ([node for node in outcome[1] if node[0] == kind] for outcome in outcomes)
            require(many[:count] == few, "the first of many are not the request for fewer")
