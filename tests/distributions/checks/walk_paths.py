"""Checks of walks, fanouts, layers and subgraphs on a small graph, by every path."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from tests.distributions.checks.basis import require, require_counts, require_independent
from tests.distributions.checks.hosts import edge_ends, request_context
from tests.kit.images import Edges, Nodes, version_of

from asterism_graphkit.operators import khop, layers
from asterism_model.schema import EdgeType, NodeType, Schema
from asterism_proto.v1 import common_pb2 as common_pb
from graphd.operators import (
    fanout_sampling,
    induced_subgraphs,
    neighbor_reads,
    neighbor_sampling,
    subgraphs,
    walks,
)
from graphd.operators import layers as layer
from graphd.operators.request_context import RequestContext
from storaged import sampling as draw

EDGES: Mapping[int, Mapping[tuple[int, int], float]] = {
    0: {
        (0, 1): 1.0,
        (0, 2): 3.0,
        (1, 0): 2.0,
        (1, 2): 1.0,
        (2, 0): 1.0,
        (2, 2): 1.0,
        (2, 3): 2.0,
        (0, 3): 0.0,
    },
    1: {(0, 3): 2.0, (1, 3): 1.0, (1, 1): 4.0, (0, 1): 0.5},
}
"""Weights by (source, destination) of two edge types among four nodes; 3 has no edges."""
Distribution = dict[tuple[int, ...], float]
ContextOf = Callable[[int], RequestContext]
"""Returns the request context of a graph on a number of hosts."""


@cache
def small_graph(spacing: int = 1) -> draw.LocalVersion:
    """Return the graph of four nodes; an id is its number times ``spacing``."""
    types = tuple(
        EdgeType(src_type="n", relation=f"e{t}", dst_type="n", weighted=True) for t in EDGES
    )
    edges = {
        edge.name: Edges(
            src=spacing * np.array([a for a, _ in weights]),
            dst=spacing * np.array([b for _, b in weights]),
            weights=np.array(list(weights.values()), np.float32),
        )
        for edge, weights in zip(types, EDGES.values(), strict=True)
    }
    return version_of(
        Schema(node_types=(NodeType(name="n"),), edge_types=types, parts=3),
        {"n": Nodes(ids=spacing * np.arange(4))},
        edges,
    )


def _step_probabilities(
    node: int, types: Iterable[int], uniform: bool, bias: Callable[[int], float] = lambda _: 1.0
) -> dict[tuple[int, int], float]:
    """Return the probability of each step from a node, as (edge type, neighbor).

    (-1, -1) stands for a node without edges.
    """
    weights = {
        (t, b): (1.0 if uniform else w) * bias(b)
        for t in types
        for (a, b), w in EDGES[t].items()
        if a == node
    }
    total = sum(weights.values())
    return (
        {step: w / total for step, w in weights.items() if w > 0} if total > 0 else {(-1, -1): 1.0}
    )


def walk_probabilities(params: walks.RandomWalkParams, start: int) -> Distribution:
    """Return the probability of every walk, as edge types and nodes in turn."""
    probabilities: Distribution = {(): 1.0}
    for s in range(params.length):
        extended: Distribution = {}
        for path, p in probabilities.items():
            current, previous = (path[-1] if path else start), None
            if path and path[-2] >= 0:
                previous = path[-3] if len(path) > 2 else start
            if current < 0:
                extended[(*path, -1, -1)] = extended.get((*path, -1, -1), 0.0) + p
                continue

            def bias(b: int, previous: int | None = previous, s: int = s) -> float:
                if previous is None:
                    return 1.0
                if b == previous:
                    return 1 / params.p
                return (
                    1.0
                    if any(
                        (previous, b) in EDGES[t] for t in params.steps[(s - 1) % len(params.steps)]
                    )
                    else 1 / params.q
                )

            for step, share in _step_probabilities(
                current, params.steps[s % len(params.steps)], params.uniform, bias
            ).items():
                extended[(*path, *step)] = (
                    extended.get((*path, *step), 0.0) + p * (1 - params.restart) * share
                )
            if params.restart:
                back = (*path, -1, start)
                extended[back] = extended.get(back, 0.0) + p * params.restart
        probabilities = extended
    return {path: p for path, p in probabilities.items() if p > 0}


def require_distribution(
    outcomes: Iterable[tuple[int, ...]], expected: Distribution, label: str
) -> None:
    observed = Counter(outcomes)
    impossible = set(observed) - set(expected)
    require(not impossible, f"{label}: {list(impossible)[:1]} is impossible")
    require(abs(sum(expected.values()) - 1) < 1e-9, f"{label}: the expected distribution is wrong")
    keys, n = sorted(expected), sum(observed.values())
    require_counts([observed[key] for key in keys], [expected[key] * n for key in keys], label)


PLAIN_WALK = walks.RandomWalkParams(
    steps=((0,), (0, 1)),
    length=3,
    uniform=False,
    direction=common_pb.OUT,
    seed=5,
    restart=0.0,
    p=1.0,
    q=1.0,
    want_edge_ids=False,
)


def small_context(hosts: int) -> RequestContext:
    """Return the request context of the graph of four nodes."""
    return request_context(small_graph(), hosts)


def require_walks(
    params: walks.RandomWalkParams, n: int, start: int, context_of: ContextOf = small_context
) -> None:
    """Require walks to follow their distribution over `EDGES`, on one host and three."""
    label = (
        f"walks from {start} by {params.steps}, p={params.p}, q={params.q}, "
        f"restart={params.restart}, uniform={params.uniform}"
    )
    starts = np.full(n, start, np.int64)
    replies = [walks.random_walks(context_of(hosts), params, starts, 0, None) for hosts in (1, 3)]
    require(bool((replies[0]["nodes"] == replies[1]["nodes"]).all()), f"{label}: hosts matter")
    nodes, types = replies[0]["nodes"], replies[0]["types"]
    require(bool((nodes[:, 0] == start).all()), f"{label}: a walk begins elsewhere")
    steps = np.stack([types, nodes[:, 1:]], axis=2).reshape(n, -1).tolist()
    require_distribution(map(tuple, steps), walk_probabilities(params, start), label)
    require_independent(nodes[:-1, 1] + 1, nodes[1:, 1] + 1, 5, f"{label}: neighboring walks")


def walks_follow_step_probabilities(scale: float) -> None:
    """Every walk has the product of its steps.

    Walks are over edge types and unions, weighted and uniform, with restarts.
    """
    n = int(max(600, 6000 * scale))
    for changes in (
        {},
        {"uniform": True},
        {"restart": 0.25},
        {"steps": ((0, 1),), "restart": 0.5, "uniform": True},
    ):
        for start in (0, 2):
            # Fields of several types.
            require_walks(replace(PLAIN_WALK, **changes), n, start)  # type: ignore[arg-type]


def biased_walks_follow_node2vec(scale: float) -> None:
    """Walks by p and q follow weight times bias, for any order of p and q.

    Starts and restarts have no bias.
    """
    n = int(max(400, 4000 * scale))
    for p, q in ((0.25, 4.0), (4.0, 0.25), (0.2, 0.3), (3.0, 5.0)):
        require_walks(replace(PLAIN_WALK, p=p, q=q), n, 0)
    require_walks(
        replace(PLAIN_WALK, steps=((0, 1),), p=0.2, q=3.0, restart=0.3, uniform=True), n, 1
    )


def returning_walks_weigh_parallel_edges(scale: float) -> None:
    """With small p, each parallel edge back is taken by its measure.

    The edges are of two types, with others to the same node; and no edge back may exist.
    """
    n = int(max(1000, 4000 * scale))
    edges = {
        # From 0 always to 1, and from 1 back by three edges; 3 is joined to 0, 2 is not. From 5 to
        # 6, which has no edge back.
        "n:a:n": Edges(
            src=np.array([0, 0, 1, 1, 1, 1, 5, 6, 6]),
            dst=np.array([1, 3, 0, 0, 2, 3, 6, 2, 3]),
            weights=np.array([1, 0, 1, 3, 4, 8, 1, 4, 1], np.float32),
            eids=np.arange(9),
        ),
        "n:b:n": Edges(
            src=np.array([1, 1]),
            dst=np.array([0, 2]),
            weights=np.array([2, 1], np.float32),
            eids=np.array([20, 21]),
        ),
    }
    types = tuple(
        EdgeType(src_type="n", relation=name, dst_type="n", weighted=True) for name in "ab"
    )
    version = version_of(
        Schema(node_types=(NodeType(name="n"),), edge_types=types, parts=3),
        {"n": Nodes(ids=np.arange(7))},
        edges,
    )
    one_type, two_types = ((0,),), ((0, 1),)
    for p, q, steps, uniform in (
        (0.8, 2.0, one_type, False),
        (0.1, 0.2, one_type, True),
        (0.1, 2.0, two_types, False),
        (0.25, 0.5, two_types, True),
    ):
        params = replace(
            PLAIN_WALK, steps=steps, length=2, uniform=uniform, p=p, q=q, want_edge_ids=True
        )
        for start, middle in ((0, 1), (5, 6)):
            starts = np.full(n, start, np.int64)
            one, three = (
                walks.random_walks(request_context(version, hosts), params, starts, 0, None)
                for hosts in (1, 3)
            )
            require(
                all(bool((one[name] == three[name]).all()) for name in one),
                "hosts matter to walks back",
            )
            edge_weights: dict[int, float] = {}
            for edge_type in steps[0]:
                type_edges = edges[f"n:{'ab'[edge_type]}:n"]
                assert type_edges.weights is not None
                assert type_edges.eids is not None
                for src, dst, weight, eid in zip(
                    type_edges.src.tolist(),
                    type_edges.dst.tolist(),
                    type_edges.weights.tolist(),
                    type_edges.eids.tolist(),
                    strict=True,
                ):
                    bias = 1 / p if dst == start else 1.0 if (start, dst) == (0, 3) else 1 / q
                    if src == middle:
                        edge_weights[eid] = (1.0 if uniform else weight) * bias
            at_middle, total = one["nodes"][:, 1] == middle, sum(edge_weights.values())
            eids, walk_count = one["eids"][at_middle, 1], int(at_middle.sum())
            require(
                set(eids.tolist()) <= set(edge_weights), "a walk takes an edge that is not there"
            )
            label = (
                f"the edges after {start} and {middle}, p={p}, q={q}, steps={steps}, "
                f"uniform={uniform}"
            )
            require_counts(
                [int((eids == eid).sum()) for eid in edge_weights],
                [share / total * walk_count for share in edge_weights.values()],
                label,
            )


def fanouts_draw_separately_for_each_position(scale: float) -> None:
    """Every outcome of two hops has the product of its draws.

    This includes nodes drawn twice; a missing node has no neighbors.
    """
    n = int(max(1000, 12_000 * scale))
    for uniform in (False, True):
        require_fanouts(n, small_context, uniform=uniform)


def require_fanouts(n: int, context_of: ContextOf, *, uniform: bool) -> None:
    """Require fanouts of two hops to follow their distribution over `EDGES`."""
    common: dict[str, Any] = {
        "direction": common_pb.OUT,
        "seed": 6,
        "want_weights": False,
        "want_edge_ids": False,
        "want_probabilities": False,
    }
    hops = [
        neighbor_sampling.NeighborParams(
            edge_types=types, count=count, replace=True, uniform=uniform, hop=h, **common
        )
        for h, (types, count) in enumerate((((0,), 2), ((0, 1), 1)))
    ]
    replies = [
        fanout_sampling.sample_fanout(context_of(hosts), hops, np.zeros(n, np.int64), 0, None)
        for hosts in (1, 3)
    ]
    require(
        all(bool((replies[0][name] == replies[1][name]).all()) for name in replies[0]),
        "hosts matter to fanouts",
    )
    first, second, types = (
        replies[0]["ids.0"].reshape(n, 2),
        replies[0]["ids.1"].reshape(n, 2),
        replies[0]["types.1"].reshape(n, 2),
    )
    expected = {
        (a, b, *x, *y): p * q * r * s
        for (_, a), p in _step_probabilities(0, (0,), uniform).items()
        for (_, b), q in _step_probabilities(0, (0,), uniform).items()
        for x, r in _step_probabilities(a, (0, 1), uniform).items()
        for y, s in _step_probabilities(b, (0, 1), uniform).items()
    }
    outcomes = np.stack(
        [first[:, 0], first[:, 1], types[:, 0], second[:, 0], types[:, 1], second[:, 1]], axis=1
    ).tolist()
    require_distribution(map(tuple, outcomes), expected, f"fanouts, uniform={uniform}")


def subgraphs_draw_separately_for_each_node_and_hop(scale: float) -> None:
    """In disjoint trees, neighbors of seeds, edge types and hops are independent.

    Each follows its own distribution.
    """
    n = int(max(1000, 10_000 * scale))
    context = request_context(small_graph(), 3)
    fanout_sampling = khop.build_fanouts(lambda _: (0, 0), [0, 1], [[1, 1], [1, 0]])
    for uniform in (False, True):
        params = subgraphs.SubgraphParams(
            fanouts=fanout_sampling,
            replace=True,
            uniform=uniform,
            direction=common_pb.OUT,
            seed=8,
            disjoint=True,
            expand_all_hops=True,
            want_edge_ids=False,
            want_weights=False,
        )
        seeds = np.zeros(n, np.int64)
        reply = subgraphs.sample_subgraph(context, params, seeds, 0, None)
        single_host_reply = subgraphs.sample_subgraph(
            request_context(small_graph(), 1), params, seeds, 0, None
        )
        require(
            all(bool((reply[name] == single_host_reply[name]).all()) for name in reply),
            "hosts matter to subgraphs",
        )
        nodes, trees = reply["nodes.0"], reply["trees.0"]
        counts = reply["edge_counts"]
        steps = {}
        for number, edge_type in enumerate((0, 1)):
            rows, cols = reply[f"rows.{edge_type}"], reply[f"cols.{edge_type}"]
            begin = 0
            for hop in range(2):
                edge_range = slice(begin, begin + int(counts[number, hop]))
                begin = edge_range.stop
                # The edges of the seeds themselves; the second hop expands each again.
                is_of_seed = rows[edge_range] < n
                steps[edge_type, hop] = nodes[cols[edge_range][is_of_seed]][
                    np.argsort(trees[rows[edge_range][is_of_seed]], kind="stable")
                ]
        for edge_type in (0, 1):
            for hop in range(2 - edge_type):
                observed = np.bincount(steps[edge_type, hop], minlength=4)
                expected = _step_probabilities(0, (edge_type,), uniform)
                require_counts(
                    observed,
                    [expected.get((edge_type, b), 0.0) * n for b in range(4)],
                    f"subgraphs by edge type {edge_type} in hop {hop}",
                )
        require_independent(steps[0, 0], steps[0, 1], 4, "a node's neighbors in two hops")
        require_independent(steps[0, 0], steps[1, 0], 4, "a node's neighbors of two edge types")
        require_independent(steps[0, 0][:-1], steps[0, 0][1:], 4, "the neighbors of two seeds")


def ego_subgraphs_have_all_edges_among_their_nodes(scale: float) -> None:
    """Ego subgraphs have the nodes of their tree, root first, and every edge among them.

    No edge leads to another component.
    """
    n = int(max(20, 200 * scale))
    fanout_sampling = khop.build_fanouts(lambda _: (0, 0), [0], [[1, 1]])
    params = subgraphs.SubgraphParams(
        fanouts=fanout_sampling,
        replace=False,
        uniform=True,
        direction=common_pb.OUT,
        seed=8,
        disjoint=True,
        expand_all_hops=False,
        want_edge_ids=False,
        want_weights=False,
    )
    edge_params = neighbor_reads.EdgeReadParams(
        edge_types=(1, 0), direction=common_pb.OUT, want_weights=True, want_edge_ids=False, sort=""
    )
    # Ids close together, ids in separate words of the bitset, and ids too far apart for a bitset.
    for hosts, spacing in itertools.product((1, 3), (1, 64, 1 << 40)):
        seeds = spacing * (np.arange(n, dtype=np.int64) % 4)
        sampled = subgraphs.sample_subgraph(
            request_context(small_graph(spacing), hosts), params, seeds, 0, None
        )
        reply = induced_subgraphs.ego_subgraphs(
            request_context(small_graph(spacing), hosts), params, edge_params, seeds, 0, None
        )
        nodes, trees = reply["nodes.0"], reply["trees.0"]
        members = set(
            zip(sampled["trees.0"].tolist(), (sampled["nodes.0"] // spacing).tolist(), strict=True)
        )
        require(
            bool((nodes[reply["seeds"]] == seeds).all())
            and bool((np.diff(trees[reply["seeds"]]) == 1).all()),
            "roots are elsewhere",
        )
        nodes = nodes // spacing
        require(
            set(zip(trees.tolist(), nodes.tolist(), strict=True)) == members,
            "ego subgraphs have other nodes than were grown",
        )
        require(
            bool((reply["seeds"] == np.searchsorted(trees, np.arange(n))).all()),
            "roots are not the first",
        )
        for edge_type, edges in EDGES.items():
            rows, cols = edge_ends(reply, edge_type)
            weights = reply[f"weights.{edge_type}"].tolist()
            reply_edges = sorted(
                zip(
                    trees[rows].tolist(),
                    trees[cols].tolist(),
                    nodes[rows].tolist(),
                    nodes[cols].tolist(),
                    weights,
                    strict=True,
                )
            )
            expected_edges = sorted(
                (tree, tree, a, b, w)
                for (a, b), w in edges.items()
                for tree in range(n)
                if (tree, a) in members and (tree, b) in members
            )
            require(
                reply_edges == expected_edges,
                f"ego subgraphs have other edges of type {edge_type} than all among their nodes",
            )


@cache
def dense_graph() -> tuple[draw.LocalVersion, list[tuple[int, int]]]:
    """Return twelve nodes with 7 to 84 edges each, many parallel, and the ends of each edge."""
    generator = np.random.default_rng(21)
    src = np.repeat(np.arange(12), 7 * np.arange(1, 13))
    dst = generator.integers(0, 12, src.size)
    schema = Schema(
        node_types=(NodeType(name="n"),),
        edge_types=(EdgeType(src_type="n", relation="e", dst_type="n"),),
        parts=3,
    )
    version = version_of(
        schema, {"n": Nodes(ids=np.arange(12))}, {"n:e:n": Edges(src=src, dst=dst)}
    )
    return version, list(zip(src.tolist(), dst.tolist(), strict=True))


def induced_subgraphs_have_every_edge_of_long_rows(scale: float) -> None:
    """Induced subgraphs have every edge once, with its id, with or without weights.

    They have few nodes of many, or nearly all.
    """
    version, edges = dense_graph()
    for trial, hosts, size, weighted in itertools.product(
        range(max(int(scale), 1)), (1, 3), (3, 6, 11), (False, True)
    ):
        edge_params = neighbor_reads.EdgeReadParams(
            edge_types=(0,),
            direction=common_pb.OUT,
            want_weights=weighted,
            want_edge_ids=True,
            sort="",
        )
        nodes = np.random.default_rng([trial, size]).permutation(12)[:size].astype(np.int64)
        reply, _description = induced_subgraphs.induced_subgraph(
            request_context(version, hosts), edge_params, nodes, 0, None, None
        )
        rows, cols = edge_ends(reply, 0)
        reply_edges = sorted(
            zip(reply["eids.0"].tolist(), nodes[rows].tolist(), nodes[cols].tolist(), strict=True)
        )
        expected_edges = [
            (eid, a, b) for eid, (a, b) in enumerate(edges) if a in nodes and b in nodes
        ]
        require(
            reply_edges == expected_edges,
            f"an induced subgraph of {size} nodes has other edges than all among them",
        )


def layers_pool_the_neighbors_of_their_nodes(scale: float) -> None:
    """Layers through graphd sample nodes by the measure of edges from all nodes of the layer.

    Each hop depends on the one before.
    """
    n = int(max(400, 6000 * scale))
    measures = {
        b: sum(w for t in EDGES for (a, c), w in EDGES[t].items() if c == b and a in (0, 1))
        for b in range(4)
    }
    shares = np.array([measures[b] for b in range(4)]) / sum(measures.values())
    hops = [
        layer.LayerParams(
            edge_types=(0, 1),
            count=2,
            replace=True,
            uniform=False,
            direction=common_pb.OUT,
            measure=layers.SUM,
            seed=9,
            hop=h,
            want_edge_ids=False,
        )
        for h in range(2)
    ]
    nodes = np.tile(np.array([0, 1]), n)
    replies = [
        layer.sample_layers(request_context(small_graph(), hosts), hops, n, nodes, 0, None)
        for hosts in (1, 3)
    ]
    require(
        all(bool((replies[0][name] == replies[1][name]).all()) for name in replies[0]),
        "hosts matter to layers",
    )
    first, second = replies[0]["ids.0"].reshape(n, 2), replies[0]["ids.1"].reshape(n, 2)
    for k in range(2):
        require_counts(np.bincount(first[:, k], minlength=4), shares * n, f"node {k} of a layer")
    require_independent(first[:, 0], first[:, 1], 4, "two nodes of a layer")
    expected: Distribution = {}
    for a in range(4):
        for b in range(4):
            next_measures = {
                c: sum(
                    w
                    for t in EDGES
                    for (x, y), w in EDGES[t].items()
                    for z in (a, b)
                    if y == c and x == z
                )
                for c in range(4)
            }
            total = sum(next_measures.values())
            outcomes = (
                {c: w / total for c, w in next_measures.items() if w > 0}
                if total > 0
                else {-1: 1.0}
            )
            expected |= {
                (a, b, c): shares[a] * shares[b] * p
                for c, p in outcomes.items()
                if shares[a] * shares[b] > 0
            }
    require_distribution(
        map(tuple, np.stack([first[:, 0], first[:, 1], second[:, 0]], axis=1).tolist()),
        expected,
        "layers of two hops",
    )
