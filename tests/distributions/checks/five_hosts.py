"""Checks of whole calls on five hosts, by enumeration on a small graph.

Layers, ego subgraphs, fanouts, and edges without replacement go through graphd's operators and the
handlers of five storageds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray
from tests.distributions.checks.basis import require, require_counts
from tests.distributions.checks.hosts import request_context
from tests.distributions.checks.walk_paths import Distribution, require_distribution
from tests.kit.images import Edges, Nodes, version_of

from asterism_graphkit.operators import khop, layers
from asterism_model.elements import EDGE
from asterism_model.schema import EdgeType, NodeType, Schema
from asterism_proto.v1 import common_pb2 as common_pb
from graphd.operators import (
    fanout_sampling,
    global_sampling,
    induced_subgraphs,
    neighbor_reads,
    neighbor_sampling,
    subgraphs,
)
from graphd.operators import layers as layer
from graphd.operators.request_context import RequestContext
from storaged import sampling as draw

EDGES: Mapping[int, Sequence[tuple[int, int, float]]] = {
    0: (
        (0, 1, 1.0),
        (0, 2, 3.0),
        (0, 5, 0.0),
        (0, 6, 2.0),
        (1, 0, 2.0),
        (1, 6, 1.0),
        (2, 0, 1.0),
        (2, 2, 1.0),
        (2, 3, 2.0),
        (5, 1, 4.0),
        (6, 5, 1.0),
    ),
    1: ((0, 3, 2.0), (0, 3, 1.0), (1, 3, 1.0), (1, 1, 4.0), (2, 6, 0.5)),
}
"""(source, destination, weight) of each edge of two types, by edge id.

Among them are a weight of 0, parallel edges and edges of a node to itself.
"""
NODES = 7
HOSTS = 5
Edge = tuple[int, int]
"""An edge: (edge type, edge id)."""


def _version(edges: Mapping[int, Sequence[tuple[int, int, float]]]) -> draw.LocalVersion:
    types = tuple(
        EdgeType(src_type="n", relation=f"e{t}", dst_type="n", weighted=True) for t in edges
    )
    columns = {
        edge.name: Edges(
            src=np.array([src for src, _, _ in rows]),
            dst=np.array([dst for _, dst, _ in rows]),
            weights=np.array([weight for _, _, weight in rows], np.float32),
        )
        for edge, rows in zip(types, edges.values(), strict=True)
    }
    return version_of(
        Schema(node_types=(NodeType(name="n"),), edge_types=types, parts=HOSTS),
        {"n": Nodes(ids=np.arange(NODES))},
        columns,
    )


@cache
def _context() -> RequestContext:
    return request_context(_version(EDGES), HOSTS)


def _weights_of(node: int, edge_types: Iterable[int], *, uniform: bool) -> dict[Edge, Fraction]:
    """Return the weights of a node's edges."""
    return {
        (t, e): Fraction(1 if uniform else weight)
        for t in edge_types
        for e, (src, _, weight) in enumerate(EDGES[t])
        if src == node
    }


def orders(
    weights: Mapping[Edge, Fraction], count: int, *, replace: bool
) -> dict[tuple[Edge, ...], list[Fraction]]:
    """Return every outcome of ``count`` draws, with the probability of each given those before.

    Draws end where nothing of positive weight is left.
    """
    found: dict[tuple[Edge, ...], list[Fraction]] = {(): []}
    for _ in range(count):
        extended: dict[tuple[Edge, ...], list[Fraction]] = {}
        for order, shares in found.items():
            left = {
                edge: weight
                for edge, weight in weights.items()
                if weight > 0 and (replace or edge not in order)
            }
            total = sum(left.values(), Fraction(0))
            for edge, weight in left.items():
                extended[*order, edge] = [*shares, weight / total]
            if not left:
                extended[order] = shares
        found = extended
    return found


def edges_without_replacement_are_successive_draws(scale: float) -> None:
    """Every order of two edges has its frequency, and the product of its probabilities.

    One edge is so heavy that the stream of draws ends, and exponential keys decide.
    """
    heavy = ((0, 1, 995.0), (1, 2, 2.0), (2, 3, 2.0), (3, 4, 1.0), (4, 0, 0.0))
    trials = int(max(100, 300 * scale))
    for edges, uniform, n in (
        (EDGES[1], False, trials),
        (EDGES[1], True, trials),
        (heavy, False, trials // 2),
    ):
        context = request_context(_version({0: edges}), HOSTS)
        weights = {(0, e): Fraction(1 if uniform else w) for e, (_, _, w) in enumerate(edges)}
        expected = orders(weights, 2, replace=False)
        label = f"2 edges of {edges}, {'uniformly' if uniform else 'by weight'}"
        outcomes = []
        for seed in range(n):
            sections = global_sampling.draw(
                context,
                global_sampling.GlobalDraw(
                    element=EDGE,
                    types=(0,),
                    seed=seed,
                    count=2,
                    uniform=uniform,
                    distinct=True,
                    want_probabilities=True,
                ),
            )
            order = tuple((0, e) for e in sections["eids"].tolist())
            require(order in expected, f"{label}: {order} is impossible")
            require(
                bool(
                    np.allclose(
                        sections["probabilities"], [float(p) for p in expected[order]], rtol=1e-13
                    )
                ),
                f"{label}: {order} has other probabilities",
            )
            outcomes.append(tuple(e for _, e in order))
        require_distribution(
            outcomes,
            {tuple(e for _, e in order): float(math.prod(p)) for order, p in expected.items()},
            label,
        )


def _exact_measures(nodes: Sequence[int], measure: int, *, uniform: bool) -> dict[int, Fraction]:
    """Return the measure of each candidate of a layer; of the root, its square."""
    sums = [
        {
            candidate: sum(
                (w for (t, e), w in edges.items() if EDGES[t][e][1] == candidate), Fraction(0)
            )
            for candidate in range(NODES)
        }
        for edges in (_weights_of(node, EDGES, uniform=uniform) for node in nodes)
    ]
    return {
        candidate: sum(
            (row[candidate] ** 2 if measure == layers.SQUARES else row[candidate] for row in sums),
            Fraction(0),
        )
        for candidate in range(NODES)
    }


def layers_of_every_measure_follow_their_distribution(scale: float) -> None:
    """Pairs of nodes of a layer have their frequency, by each measure.

    They are drawn with and without replacement, and one node is in the layer twice.
    """
    n, nodes = int(max(300, 2000 * scale)), (0, 1, 0)
    for measure, uniform, replace in itertools.product(
        (layers.SUM, layers.SQRT, layers.SQUARES), (False, True), (False, True)
    ):
        exact = _exact_measures(nodes, measure, uniform=uniform)
        measures = {
            candidate: Fraction(math.sqrt(m)) if measure == layers.SQRT else m
            for candidate, m in exact.items()
        }
        expected = orders(
            {(0, candidate): m for candidate, m in measures.items()}, 2, replace=replace
        )
        params = layer.LayerParams(
            edge_types=(0, 1),
            count=2,
            replace=replace,
            uniform=uniform,
            direction=common_pb.OUT,
            measure=measure,
            seed=12,
            hop=0,
            want_edge_ids=False,
        )
        reply = layer.sample_layers(_context(), [params], n, np.tile(np.array(nodes), n), 0, None)
        label = f"layers by measure {measure}, uniform={uniform}, replace={replace}"
        pairs = [tuple(pair) for pair in reply["ids.0"].reshape(n, 2).tolist()]
        require_distribution(
            pairs,
            {
                tuple(candidate for _, candidate in order): float(math.prod(p))
                for order, p in expected.items()
            },
            label,
        )
        returned = reply["probabilities.0"].reshape(n, 2)
        exact_shares = [
            [float(p) for p in expected[tuple((0, candidate) for candidate in pair)]]
            for pair in pairs
        ]
        require(
            bool(np.allclose(returned, exact_shares, rtol=1e-12, atol=0)),
            f"{label}: other probabilities",
        )


def fanouts_carry_the_probability_of_each_step(scale: float) -> None:
    """Every hop of a fanout reports the probabilities by which its draws occur.

    The probabilities are exact, and so is the frequency of an edge with the two edges after it.
    """
    n = int(max(400, 1500 * scale))
    for uniform, replace in itertools.product((False, True), (False, True)):
        hops = [
            neighbor_sampling.NeighborParams(
                edge_types=types,
                count=2,
                replace=replace,
                uniform=uniform,
                direction=common_pb.OUT,
                seed=13,
                hop=h,
                want_weights=False,
                want_edge_ids=True,
                want_probabilities=True,
            )
            for h, types in enumerate(((0,), (0, 1)))
        ]
        reply = fanout_sampling.sample_fanout(_context(), hops, np.zeros(n, np.int64), 0, None)
        first = orders(_weights_of(0, (0,), uniform=uniform), 2, replace=replace)
        label = f"fanouts, uniform={uniform}, replace={replace}"
        expected: Distribution = {}
        steps: dict[int, dict[tuple[Edge, ...], list[Fraction]]] = {}
        for order, shares in first.items():
            _, edge = order[0]
            node = EDGES[0][edge][1]
            edges = _weights_of(node, (0, 1), uniform=uniform)
            steps[node] = orders(edges, 2, replace=replace)
            if not replace and len(edges) <= 2:  # all there are, in their order
                whole = tuple(each for each, weight in edges.items() if weight > 0)
                steps[node] = {whole: [Fraction(1)] * len(whole)}
            for after, after_shares in steps[node].items():
                key = (edge, *itertools.chain(*after))
                p = float(math.prod(shares) * math.prod(after_shares))
                expected[key] = expected.get(key, 0.0) + p
        eids, probabilities = (
            reply[f"{name}.0"].reshape(n, 2) for name in ("eids", "probabilities")
        )
        types, next_eids, next_probabilities = (
            reply[f"{name}.1"].reshape(n, 2, 2) for name in ("types", "eids", "probabilities")
        )
        outcomes = []
        for row in range(n):
            taken = tuple((0, e) for e in eids[row].tolist())
            _require_shares(probabilities[row], first[taken], f"{label}, hop 0")
            for k in range(2):
                pairs = zip(types[row, k].tolist(), next_eids[row, k].tolist(), strict=True)
                after = tuple((t, e) for t, e in pairs if e >= 0)
                _require_shares(
                    next_probabilities[row, k],
                    steps[EDGES[0][taken[k][1]][1]][after],
                    f"{label}, hop 1",
                )
                if k == 0:
                    outcomes.append((taken[0][1], *itertools.chain(*after)))
        require_distribution(outcomes, expected, label)


def _require_shares(found: NDArray[np.float64], expected: Sequence[Fraction], label: str) -> None:
    shares = [float(p) for p in expected] + [0.0] * (len(found) - len(expected))
    require(
        bool(np.allclose(found, shares, rtol=1e-13, atol=0)),
        f"{label}: probabilities {found.tolist()} for {shares}",
    )


def _node_sets(
    nodes: Iterable[int], counts: Mapping[int, int], *, uniform: bool
) -> dict[frozenset[int], Fraction]:
    """Return the probability of every set of nodes that a hop reaches from ``nodes``."""
    reached = {frozenset[int](): Fraction(1)}
    for node, edge_type in itertools.product(sorted(nodes), counts):
        edges = _weights_of(node, (edge_type,), uniform=uniform)
        extended: dict[frozenset[int], Fraction] = {}
        for (found, p), (order, shares) in itertools.product(
            reached.items(), orders(edges, counts[edge_type], replace=False).items()
        ):
            ends = found | {EDGES[t][e][1] for t, e in order}
            extended[ends] = extended.get(ends, Fraction(0)) + p * math.prod(shares)
        reached = extended
    return reached


def ego_subgraphs_include_nodes_by_their_trees(scale: float) -> None:
    """Every set of nodes of an ego subgraph has its probability, and so has each node.

    Trees follow two edge types, with other counts of neighbors in the second hop.
    """
    n = int(max(400, 3000 * scale))
    hop_counts: tuple[Mapping[int, int], ...] = ({0: 2, 1: 1}, {0: 1, 1: 0})
    fanout_sampling = khop.build_fanouts(lambda _: (0, 0), [0, 1], [[2, 1], [1, 0]])
    edge_params = neighbor_reads.EdgeReadParams(
        edge_types=(0,), direction=common_pb.OUT, want_weights=False, want_edge_ids=False, sort=""
    )
    for uniform, expand_all in itertools.product((False, True), (False, True)):
        trees = {(frozenset({0}), frozenset({0})): Fraction(1)}
        for counts in hop_counts:
            grown: dict[tuple[frozenset[int], frozenset[int]], Fraction] = {}
            for (visited, frontier), p in trees.items():
                expanded = visited if expand_all else frontier
                for found, q in _node_sets(expanded, counts, uniform=uniform).items():
                    state = (visited | found, found - visited)
                    grown[state] = grown.get(state, Fraction(0)) + p * q
            trees = grown
        expected: Distribution = {}
        for (visited, _), p in trees.items():
            key = tuple(sorted(visited))
            expected[key] = expected.get(key, 0.0) + float(p)
        params = subgraphs.SubgraphParams(
            fanouts=fanout_sampling,
            replace=False,
            uniform=uniform,
            direction=common_pb.OUT,
            seed=14,
            disjoint=True,
            expand_all_hops=expand_all,
            want_edge_ids=False,
            want_weights=False,
        )
        reply = induced_subgraphs.ego_subgraphs(
            _context(), params, edge_params, np.zeros(n, np.int64), 0, None
        )
        members = np.zeros((n, NODES), np.bool_)
        members[reply["trees.0"], reply["nodes.0"]] = True
        label = f"ego subgraphs, uniform={uniform}, expand_all={expand_all}"
        require(len(reply["nodes.0"]) == int(members.sum()), f"{label}: a node is there twice")
        require_distribution(
            (tuple(np.flatnonzero(row).tolist()) for row in members), expected, label
        )
        for node in range(NODES):
            share = sum(p for visited, p in expected.items() if node in visited)
            included = int(members[:, node].sum())
            require_counts(
                [included, n - included],
                [share * n, (1 - share) * n if share < 1 - 1e-12 else 0.0],
                f"{label}: node {node}",
            )
