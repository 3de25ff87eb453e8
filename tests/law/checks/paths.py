"""Checks of what is drawn step by step: every path of walks, fanouts, layers and subgraphs on a small graph, by what it is worth."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from tests.kit.images import Edges, Nodes, version_of
from tests.law.checks.basis import require, require_counts, require_independent
from tests.law.checks.hosts import ends_of, sampling_of

from asterism_proto.schema import EdgeType, NodeType, Schema
from asterism_proto.v1 import common_pb2 as pb
from graphd import induced, layer, read, sample, subgraph, walk
from graphkit import growth, layers
from storaged import draw

EDGES: Mapping[int, Mapping[tuple[int, int], float]] = {
    0: {(0, 1): 1.0, (0, 2): 3.0, (1, 0): 2.0, (1, 2): 1.0, (2, 0): 1.0, (2, 2): 1.0, (2, 3): 2.0, (0, 3): 0.0},
    1: {(0, 3): 2.0, (1, 3): 1.0, (1, 1): 4.0, (0, 1): 0.5},
}
"""Weights by (source, destination) of two edge types among four nodes; 3 leads nowhere."""
Law = dict[tuple[int, ...], float]


@cache
def web(apart: int = 1) -> draw.Version:
    """The four nodes, the id of each so many times its number."""
    types = tuple(EdgeType(src_type="n", relation=f"e{t}", dst_type="n", weighted=True) for t in EDGES)
    edges = {
        edge.name: Edges(
            src=apart * np.array([a for a, _ in some]),
            dst=apart * np.array([b for _, b in some]),
            weights=np.array(list(some.values()), np.float32),
        )
        for edge, some in zip(types, EDGES.values(), strict=True)
    }
    return version_of(Schema(node_types=(NodeType(name="n"),), edge_types=types, parts=3), {"n": Nodes(ids=apart * np.arange(4))}, edges)


def _near(node: int, types: Iterable[int], uniform: bool, bias: Callable[[int], float] = lambda _: 1.0) -> dict[tuple[int, int], float]:
    """The probability of each step from a node, as (edge type, neighbor); of (-1, -1) where there is none."""
    weights = {(t, b): (1.0 if uniform else w) * bias(b) for t in types for (a, b), w in EDGES[t].items() if a == node}
    total = sum(weights.values())
    return {step: w / total for step, w in weights.items() if w > 0} if total > 0 else {(-1, -1): 1.0}


def walks_of(how: walk.Walking, start: int) -> Law:
    """The probability of every walk, as edge types and nodes in turn."""
    law: Law = {(): 1.0}
    for s in range(how.length):
        longer: Law = {}
        for path, p in law.items():
            here, before = (path[-1] if path else start), None
            if path and path[-2] >= 0:
                before = path[-3] if len(path) > 2 else start
            if here < 0:
                longer[(*path, -1, -1)] = longer.get((*path, -1, -1), 0.0) + p
                continue

            def bias(b: int, before: int | None = before, s: int = s) -> float:
                if before is None:
                    return 1.0
                if b == before:
                    return 1 / how.p
                return 1.0 if any((before, b) in EDGES[t] for t in how.steps[(s - 1) % len(how.steps)]) else 1 / how.q

            for step, share in _near(here, how.steps[s % len(how.steps)], how.uniform, bias).items():
                longer[(*path, *step)] = longer.get((*path, *step), 0.0) + p * (1 - how.restart) * share
            if how.restart:
                back = (*path, -1, start)
                longer[back] = longer.get(back, 0.0) + p * how.restart
        law = longer
    return {path: p for path, p in law.items() if p > 0}


def follow(found: Iterable[tuple[int, ...]], law: Law, what: str) -> None:
    observed = Counter(found)
    strange = set(observed) - set(law)
    require(not strange, f"{what}: {list(strange)[:1]} is impossible")
    require(abs(sum(law.values()) - 1) < 1e-9, f"{what}: the law itself is wrong")
    keys, n = sorted(law), sum(observed.values())
    require_counts([observed[key] for key in keys], [law[key] * n for key in keys], what)


PLAIN = walk.Walking(steps=((0,), (0, 1)), length=3, uniform=False, direction=pb.OUT, seed=5, restart=0.0, p=1.0, q=1.0, want_edge_ids=False)


def _require_walks(how: walk.Walking, n: int, start: int) -> None:
    what = f"walks from {start} by {how.steps}, p={how.p}, q={how.q}, restart={how.restart}, uniform={how.uniform}"
    starts = np.full(n, start, np.int64)
    answers = [walk.walk(sampling_of(web(), hosts), how, starts, 0, None) for hosts in (1, 3)]
    require(bool((answers[0]["nodes"] == answers[1]["nodes"]).all()), f"{what}: hosts matter")
    nodes, types = answers[0]["nodes"], answers[0]["types"]
    require(bool((nodes[:, 0] == start).all()), f"{what}: a walk begins elsewhere")
    steps = np.stack([types, nodes[:, 1:]], axis=2).reshape(n, -1).tolist()
    follow(map(tuple, steps), walks_of(how, start), what)
    require_independent(nodes[:-1, 1] + 1, nodes[1:, 1] + 1, 5, f"{what}: neighboring walks")


def walks_follow_their_steps(scale: float) -> None:
    """Every walk over edge types and unions, by weight and uniformly, with restarts, has the product of its steps."""
    n = int(max(600, 6000 * scale))
    for changes in ({}, {"uniform": True}, {"restart": 0.25}, {"steps": ((0, 1),), "restart": 0.5, "uniform": True}):
        for start in (0, 2):
            _require_walks(replace(PLAIN, **changes), n, start)  # type: ignore[arg-type]  # fields of several types


def walks_with_p_and_q_are_node2vecs(scale: float) -> None:
    """The same by weight times bias, whichever of p and q is large; a start and a restart know no bias."""
    n = int(max(400, 4000 * scale))
    for p, q in ((0.25, 4.0), (4.0, 0.25), (0.2, 0.3), (3.0, 5.0)):
        _require_walks(replace(PLAIN, p=p, q=q), n, 0)
    _require_walks(replace(PLAIN, steps=((0, 1),), p=0.2, q=3.0, restart=0.3, uniform=True), n, 1)


def walks_back_take_each_of_parallel_edges_by_its_weight(scale: float) -> None:
    """Where p is small: every edge back of two types by what it counts, also beside others to the same node, and none where there is none."""
    n = int(max(1000, 4000 * scale))
    edges = {
        # From 0 to 1 in any case, from 1 back by three edges; 3 is joined to 0, 2 is not. From 5 to 6, from where none leads back.
        "n:a:n": Edges(
            src=np.array([0, 0, 1, 1, 1, 1, 5, 6, 6]),
            dst=np.array([1, 3, 0, 0, 2, 3, 6, 2, 3]),
            weights=np.array([1, 0, 1, 3, 4, 8, 1, 4, 1], np.float32),
            eids=np.arange(9),
        ),
        "n:b:n": Edges(src=np.array([1, 1]), dst=np.array([0, 2]), weights=np.array([2, 1], np.float32), eids=np.array([20, 21])),
    }
    types = tuple(EdgeType(src_type="n", relation=name, dst_type="n", weighted=True) for name in "ab")
    version = version_of(Schema(node_types=(NodeType(name="n"),), edge_types=types, parts=3), {"n": Nodes(ids=np.arange(7))}, edges)
    alone, both = ((0,),), ((0, 1),)
    for p, q, steps, uniform in ((0.8, 2.0, alone, False), (0.1, 0.2, alone, True), (0.1, 2.0, both, False), (0.25, 0.5, both, True)):
        how = replace(PLAIN, steps=steps, length=2, uniform=uniform, p=p, q=q, want_edge_ids=True)
        for start, middle in ((0, 1), (5, 6)):
            starts = np.full(n, start, np.int64)
            one, three = (walk.walk(sampling_of(version, hosts), how, starts, 0, None) for hosts in (1, 3))
            require(all(bool((one[name] == three[name]).all()) for name in one), "hosts matter to walks back")
            law: dict[int, float] = {}
            for edge_type in steps[0]:
                some = edges[f"n:{'ab'[edge_type]}:n"]
                assert some.weights is not None
                assert some.eids is not None
                for src, dst, weight, eid in zip(some.src.tolist(), some.dst.tolist(), some.weights.tolist(), some.eids.tolist(), strict=True):
                    bias = 1 / p if dst == start else 1.0 if (start, dst) == (0, 3) else 1 / q
                    if src == middle:
                        law[eid] = (1.0 if uniform else weight) * bias
            there, whole = one["nodes"][:, 1] == middle, sum(law.values())
            drawn, passed = one["eids"][there, 1], int(there.sum())
            require(set(drawn.tolist()) <= set(law), "a walk takes an edge that is not there")
            what = f"the edges behind {start} and {middle}, p={p}, q={q}, steps={steps}, uniform={uniform}"
            require_counts([int((drawn == eid).sum()) for eid in law], [share / whole * passed for share in law.values()], what)


def fanouts_draw_for_each_place_by_itself(scale: float) -> None:
    """Every outcome of two hops has the product of its draws: also those of a node that was drawn twice, and none of no node."""
    n = int(max(1000, 12_000 * scale))
    common: dict[str, Any] = {"direction": pb.OUT, "seed": 6, "want_weights": False, "want_edge_ids": False, "want_probabilities": False}
    for uniform in (False, True):
        hops = [
            sample.Neighbors(edge_types=types, count=count, replace=True, uniform=uniform, hop=h, **common)
            for h, (types, count) in enumerate((((0,), 2), ((0, 1), 1)))
        ]
        answers = [sample.fanout(sampling_of(web(), hosts), hops, np.zeros(n, np.int64), 0, None) for hosts in (1, 3)]
        require(all(bool((answers[0][name] == answers[1][name]).all()) for name in answers[0]), "hosts matter to fanouts")
        first, second, types = answers[0]["ids.0"].reshape(n, 2), answers[0]["ids.1"].reshape(n, 2), answers[0]["types.1"].reshape(n, 2)
        law = {
            (a, b, *x, *y): p * q * r * s
            for (_, a), p in _near(0, (0,), uniform).items()
            for (_, b), q in _near(0, (0,), uniform).items()
            for x, r in _near(a, (0, 1), uniform).items()
            for y, s in _near(b, (0, 1), uniform).items()
        }
        found = np.stack([first[:, 0], first[:, 1], types[:, 0], second[:, 0], types[:, 1], second[:, 1]], axis=1).tolist()
        follow(map(tuple, found), law, f"fanouts, uniform={uniform}")


def subgraphs_draw_for_each_node_and_hop_by_itself(scale: float) -> None:
    """Disjoint trees: the neighbors of two seeds, of two edge types, and of a node in two hops are independent, each by its law."""
    n = int(max(1000, 10_000 * scale))
    sampling = sampling_of(web(), 3)
    reach = growth.reach_of(lambda _: (0, 0), [0, 1], [[1, 1], [1, 0]])
    for uniform in (False, True):
        how = subgraph.Subgraph(
            reach=reach, replace=True, uniform=uniform, direction=pb.OUT, seed=8, disjoint=True, every=True, want_edge_ids=False, want_weights=False
        )
        seeds = np.zeros(n, np.int64)
        found = subgraph.subgraph(sampling, how, seeds, 0, None)
        whole = subgraph.subgraph(sampling_of(web(), 1), how, seeds, 0, None)
        require(all(bool((found[name] == whole[name]).all()) for name in found), "hosts matter to subgraphs")
        nodes, trees = found["nodes.0"], found["trees.0"]
        counts = found["edge_counts"]
        steps = {}
        for at, edge_type in enumerate((0, 1)):
            rows, cols = found[f"rows.{edge_type}"], found[f"cols.{edge_type}"]
            begin = 0
            for hop in range(2):
                own = slice(begin, begin + int(counts[at, hop]))
                begin = own.stop
                # The edges of the seeds themselves; in the second hop each is gone on from again.
                of_seed = rows[own] < n
                steps[edge_type, hop] = nodes[cols[own][of_seed]][np.argsort(trees[rows[own][of_seed]], kind="stable")]
        for edge_type in (0, 1):
            for hop in range(2 - edge_type):
                drawn = np.bincount(steps[edge_type, hop], minlength=4)
                law = _near(0, (edge_type,), uniform)
                require_counts(drawn, [law.get((edge_type, b), 0.0) * n for b in range(4)], f"subgraphs by edge type {edge_type} in hop {hop}")
        require_independent(steps[0, 0], steps[0, 1], 4, "a node's neighbors in two hops")
        require_independent(steps[0, 0], steps[1, 0], 4, "a node's neighbors of two edge types")
        require_independent(steps[0, 0][:-1], steps[0, 0][1:], 4, "the neighbors of two seeds")


def ego_subgraphs_have_all_edges_among_what_is_grown(scale: float) -> None:
    """Ego subgraphs: each component has the nodes of its tree, the root first, and every edge among them, none to another's."""
    n = int(max(20, 200 * scale))
    reach = growth.reach_of(lambda _: (0, 0), [0], [[1, 1]])
    how = subgraph.Subgraph(
        reach=reach, replace=False, uniform=True, direction=pb.OUT, seed=8, disjoint=True, every=False, want_edge_ids=False, want_weights=False
    )
    what = read.Adjacent(edge_types=(1, 0), direction=pb.OUT, want_weights=True, want_edge_ids=False, sort="")
    # Near each other, each in a word of bits of its own, and too far apart for bits.
    for hosts, apart in itertools.product((1, 3), (1, 64, 1 << 40)):
        seeds = apart * (np.arange(n, dtype=np.int64) % 4)
        grown = subgraph.subgraph(sampling_of(web(apart), hosts), how, seeds, 0, None)
        found = induced.ego(sampling_of(web(apart), hosts), how, what, seeds, 0, None)
        nodes, trees = found["nodes.0"], found["trees.0"]
        members = set(zip(grown["trees.0"].tolist(), (grown["nodes.0"] // apart).tolist(), strict=True))
        require(bool((nodes[found["seeds"]] == seeds).all()) and bool((np.diff(trees[found["seeds"]]) == 1).all()), "roots are elsewhere")
        nodes = nodes // apart
        require(set(zip(trees.tolist(), nodes.tolist(), strict=True)) == members, "ego subgraphs have other nodes than were grown")
        require(bool((found["seeds"] == np.searchsorted(trees, np.arange(n))).all()), "roots are not the first")
        for edge_type, edges in EDGES.items():
            rows, cols = ends_of(found, edge_type)
            weights = found[f"weights.{edge_type}"].tolist()
            told = sorted(zip(trees[rows].tolist(), trees[cols].tolist(), nodes[rows].tolist(), nodes[cols].tolist(), weights, strict=True))
            law = sorted((tree, tree, a, b, w) for (a, b), w in edges.items() for tree in range(n) if (tree, a) in members and (tree, b) in members)
            require(told == law, f"ego subgraphs have other edges of type {edge_type} than all among their nodes")


@cache
def thicket() -> tuple[draw.Version, list[tuple[int, int]]]:
    """Twelve nodes with 7 to 84 edges each, many of them parallel, and the ends of edge 0, 1, ..."""
    generator = np.random.default_rng(21)
    src = np.repeat(np.arange(12), 7 * np.arange(1, 13))
    dst = generator.integers(0, 12, src.size)
    schema = Schema(node_types=(NodeType(name="n"),), edge_types=(EdgeType(src_type="n", relation="e", dst_type="n"),), parts=3)
    made = version_of(schema, {"n": Nodes(ids=np.arange(12))}, {"n:e:n": Edges(src=src, dst=dst)})
    return made, list(zip(src.tolist(), dst.tolist(), strict=True))


def induced_subgraphs_have_every_edge_of_long_rows(scale: float) -> None:
    """Induced subgraphs: every edge once, with its id, whether or not weights are told, few nodes of many or nearly all."""
    made, edges = thicket()
    for trial, hosts, size, weighted in itertools.product(range(max(int(scale), 1)), (1, 3), (3, 6, 11), (False, True)):
        what = read.Adjacent(edge_types=(0,), direction=pb.OUT, want_weights=weighted, want_edge_ids=True, sort="")
        nodes = np.random.default_rng([trial, size]).permutation(12)[:size].astype(np.int64)
        found, _told = induced.induced(sampling_of(made, hosts), what, nodes, 0, None, None)
        rows, cols = ends_of(found, 0)
        told = sorted(zip(found["eids.0"].tolist(), nodes[rows].tolist(), nodes[cols].tolist(), strict=True))
        law = [(eid, a, b) for eid, (a, b) in enumerate(edges) if a in nodes and b in nodes]
        require(told == law, f"an induced subgraph of {size} nodes has other edges than all among them")


def layers_pool_what_their_nodes_lead_to(scale: float) -> None:
    """Layers through graphd: every node by what the edges from all of its layer's nodes count, those of a hop given the one before."""
    n = int(max(400, 6000 * scale))
    pool = {b: sum(w for t in EDGES for (a, c), w in EDGES[t].items() if c == b and a in (0, 1)) for b in range(4)}
    shares = np.array([pool[b] for b in range(4)]) / sum(pool.values())
    hops = [
        layer.Layering(
            edge_types=(0, 1), count=2, replace=True, uniform=False, direction=pb.OUT, measure=layers.SUM, seed=9, hop=h, want_edge_ids=False
        )
        for h in range(2)
    ]
    nodes = np.tile(np.array([0, 1]), n)
    answers = [layer.stack(sampling_of(web(), hosts), hops, n, nodes, 0, None) for hosts in (1, 3)]
    require(all(bool((answers[0][name] == answers[1][name]).all()) for name in answers[0]), "hosts matter to layers")
    first, second = answers[0]["ids.0"].reshape(n, 2), answers[0]["ids.1"].reshape(n, 2)
    for k in range(2):
        require_counts(np.bincount(first[:, k], minlength=4), shares * n, f"node {k} of a layer")
    require_independent(first[:, 0], first[:, 1], 4, "two nodes of a layer")
    law: Law = {}
    for a in range(4):
        for b in range(4):
            then = {c: sum(w for t in EDGES for (x, y), w in EDGES[t].items() for z in (a, b) if y == c and x == z) for c in range(4)}
            total = sum(then.values())
            outcomes = {c: w / total for c, w in then.items() if w > 0} if total > 0 else {-1: 1.0}
            law |= {(a, b, c): shares[a] * shares[b] * p for c, p in outcomes.items() if shares[a] * shares[b] > 0}
    follow(map(tuple, np.stack([first[:, 0], first[:, 1], second[:, 0]], axis=1).tolist()), law, "layers of two hops")
