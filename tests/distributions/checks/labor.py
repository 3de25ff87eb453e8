"""Checks of LABOR: probabilities against the paper's equations, and outcomes of variates.

The equations are solved by bisection; every outcome of the shared variates is enumerated.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
from tests.distributions.checks.basis import require, require_counts
from tests.distributions.checks.hosts import request_context
from tests.kit.images import Edges, Nodes, version_of

from asterism_graphkit.operators import khop, labor
from asterism_model.excluded_edges import ExcludedEdges
from asterism_model.schema import EdgeType, NodeType, Schema
from asterism_proto.v1 import common_pb2 as common_pb
from graphd.operators import labor as labor_operator
from storaged import sampling

Rows = Mapping[int, Mapping[int, float]]
"""Weights, by source and destination."""

EDGES: Mapping[int, Rows] = {
    0: {
        0: {0: 1.0, 2: 3.0, 3: 0.5, 4: 0.0},
        1: {2: 2.0, 3: 1.0, 4: 4.0, 5: 0.25},
        2: {2: 2.0, 5: 7.0},
        3: {3: 0.0, 4: 0.0},
        4: {0: 1.0, 1: 6.0, 3: 0.125, 4: 2.0, 5: 2.0},
    },
    1: {0: {2: 1.0, 3: 1.0, 5: 2.0}, 5: {0: 1.0, 1: 3.0}},
}
"""Rows of two edge types among six nodes.

They include zeros, nodes with fewer edges than fanouts, and one without positive weights.
"""
NODES, STEPS = 6, 40
"""Number of nodes; and of steps, more than importances need to converge here."""


def _bisected_level(
    weights: Mapping[int, float], importances: Mapping[int, float], fanout: int, previous: float
) -> float:
    """Return c_s of one node by bisection of the paper's equation 22.

    It determines the sum of A^2 / min(1, c pi).
    """
    d = len(weights)
    if d <= fanout or fanout < 0:
        return max(previous, 1 / min(importances[t] for t in weights)) if d else previous
    total = sum(weights.values())
    target = total**2 / fanout - total**2 / d + sum(w**2 for w in weights.values())
    low, high = 1e-30, 1 / min(importances[t] for t in weights)
    for _ in range(80):
        c = (low * high) ** 0.5  # geometric mean, because weights may span many decades
        if sum(w**2 / min(1.0, c * importances[t]) for t, w in weights.items()) > target:
            low = c
        else:
            high = c
    return high


def reference(
    rows: Rows, fanout: int, importance: int, *, uniform: bool
) -> tuple[dict[tuple[int, int], float], list[float]]:
    """Return the probability of each edge, and the expected distinct nodes after each step."""
    rows_with_edges = {
        s: {t: 1.0 if uniform else w for t, w in row.items() if uniform or w > 0}
        for s, row in rows.items()
    }
    c = {
        s: (len(row) if fanout < 0 else fanout) / max(sum(row.values()), 1e-300)
        for s, row in rows_with_edges.items()
    }
    if not uniform:
        c = {s: _bisected_level(row, row, fanout, c[s]) for s, row in rows_with_edges.items()}
    shares = {
        (s, t): min(1.0, c[s] * w) for s, row in rows_with_edges.items() for t, w in row.items()
    }
    importances: dict[int, float] = {}
    expected: list[float] = []
    while len(expected) < (STEPS if importance < 0 else importance):
        by = {
            t: [(s, row[t]) for s, row in rows_with_edges.items() if t in row]
            for row in rows_with_edges.values()
            for t in row
        }
        importances = {
            t: max(c[s] * (w if not importances else 1.0) for s, w in sources)
            * importances.get(t, 1.0)
            for t, sources in by.items()
        }
        c = {
            s: _bisected_level(row, importances, fanout, c[s]) for s, row in rows_with_edges.items()
        }
        shares = {
            (s, t): min(1.0, c[s] * importances[t])
            for s, row in rows_with_edges.items()
            for t in row
        }
        expected.append(sum(min(1.0, p) for p in importances.values()))
        if len(expected) > 1 and expected[-1] >= (1 - 1e-4) * expected[-2]:
            break
    return shares, expected


def _random_rows(generator: np.random.Generator) -> Rows:
    size = int(generator.integers(2, 9))
    return {
        s: {
            int(t): float(np.float32(generator.lognormal(0.0, 1.5)))
            for t in generator.choice(12, size=int(generator.integers(1, 12)), replace=False)
        }
        for s in range(size)
    }


def _graph_of(rows: Rows) -> sampling.LocalVersion:
    """Return the graph of given rows."""
    edge = EdgeType(src_type="n", relation="to", dst_type="n", weighted=True)
    triples = [(s, t, w) for s, row in rows.items() for t, w in row.items()]
    src, dst, weights = (np.array(column) for column in zip(*triples, strict=True))
    schema = Schema(node_types=(NodeType(name="n"),), edge_types=(edge,), parts=3)
    return version_of(
        schema,
        {"n": Nodes(ids=np.arange(12))},
        {edge.name: Edges(src=src, dst=dst, weights=weights.astype(np.float32))},
    )


def _sampler_probabilities(
    version: sampling.LocalVersion, rows: Rows, fanout: int, importance: int, *, uniform: bool
) -> dict[tuple[int, int], float]:
    """Return the probability of each edge from the sampler's levels and importances."""
    edges = [(s, t) for s, row in rows.items() for t in sorted(row)]
    steps = sampling.ImportanceSteps(
        version,
        edge_type=0,
        direction=1,
        uniform=uniform,
        count=fanout,
        ids=np.array(list(rows), np.int64),
        checkpoint=lambda: None,
    )
    require(
        steps.neighbors[steps.neighbor_indices].tolist() == [t for _, t in edges],
        f"numbers of neighbors on {rows}",
    )
    weights = np.array([1.0 if uniform else np.float32(rows[s][t]) for s, t in edges], np.float64)
    importances = weights
    if importance:
        last = labor.solve_importances(importance, steps.update_importances, lambda: None)
        steps.update_importances(last)
        importances = last[steps.neighbor_indices]
    levels = np.repeat(steps.levels, [len(row) for row in rows.values()])
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(weights > 0, np.minimum(1.0, importances / levels), 0.0)
    return dict(zip(edges, shares.tolist(), strict=True))


def labor_probabilities_are_the_papers(scale: float) -> None:
    """Probabilities of edges match on graphs with ties, zeros and nodes of few edges.

    Every number of steps is checked, and iteration to convergence.
    """
    generator = np.random.default_rng(5)
    graphs = [EDGES[0], EDGES[1], *(_random_rows(generator) for _ in range(int(max(3, 4 * scale))))]
    fewer = 0
    for rows in graphs:
        version = _graph_of(rows)
        for uniform in (False, True):
            for fanout in (1, 2, 4, -1):
                for importance in (0, 1, 2, -1):
                    shares, expected = reference(rows, fanout, importance, uniform=uniform)
                    probabilities = _sampler_probabilities(
                        version, rows, fanout, importance, uniform=uniform
                    )
                    expected_probabilities = {edge: shares.get(edge, 0.0) for edge in probabilities}
                    label = f"LABOR-{importance} of {fanout}, uniform={uniform}, on {rows}"
                    require(
                        bool(
                            np.allclose(
                                list(probabilities.values()),
                                list(expected_probabilities.values()),
                                rtol=1e-9,
                                atol=0,
                            )
                        ),
                        f"{label}: {probabilities} for {expected_probabilities}",
                    )
                    fewer += len(expected) > 1 and expected[-1] < 0.99 * expected[0]
                    require(
                        bool((np.diff(expected) <= 1e-9).all()),
                        f"{label}: more nodes with every step, {expected}",
                    )
    require(fewer > 0, "no step of importance made a difference: the graphs are too simple")


DECOYS: Mapping[int, Mapping[tuple[int, int], float]] = {
    0: {(0, 5): 3.0, (1, 0): 8.0, (1, 2): 9.0, (2, 1): 2.0, (3, 1): 4.0, (4, 2): 5.0},
    1: {(0, 0): 4.0, (1, 2): 2.0, (5, 0): 6.0},
}
"""Further edges that are excluded; some are parallel to others, or the only ones of a node."""


def _decoys(copies: int) -> ExcludedEdges:
    """Return the further edges of `_repeated_graph`, which are the last ones of their types."""
    pieces = []
    for edge_type, weights in DECOYS.items():
        triples = sum(len(row) for row in EDGES[edge_type].values())
        first = np.arange(copies)[:, None] * NODES
        pieces.append(
            ExcludedEdges(
                types=np.full(copies * len(weights), edge_type, np.int32),
                src=(first + np.array([s for s, _ in weights])).ravel(),
                dst=(first + np.array([t for _, t in weights])).ravel(),
                eids=copies * triples + np.arange(copies * len(weights)),
            )
        )
    return ExcludedEdges.concatenate(pieces)


@cache
def _repeated_graph(copies: int, *, decoys: bool = False) -> sampling.LocalVersion:
    """Return ``copies`` copies of the graph, or of the graph with `DECOYS`.

    Each copy is a trial, because variates belong to nodes.
    """
    types = tuple(
        EdgeType(src_type="n", relation=f"e{t}", dst_type="n", weighted=True) for t in EDGES
    )
    first = np.arange(copies) * NODES
    edges = {}
    for edge, rows in zip(types, EDGES.values(), strict=True):
        triples = [(s, t, w) for s, row in rows.items() for t, w in row.items()]
        further = [(s, t, w) for (s, t), w in DECOYS[len(edges)].items()] if decoys else []
        src, dst, weights = (
            np.concatenate(
                [
                    (offset + np.array([edge[column] for edge in group])).ravel()
                    for group in (triples, further)
                    if group
                ]
            )
            for column, offset in enumerate((first[:, None], first[:, None], 0 * first[:, None]))
        )
        edges[edge.name] = Edges(src=src, dst=dst, weights=weights.astype(np.float32))
    return version_of(
        Schema(node_types=(NodeType(name="n"),), edge_types=types, parts=3),
        {"n": Nodes(ids=np.arange(copies * NODES))},
        edges,
    )


Edge = tuple[int, int, int, int]
"""An edge: (hop, edge type, source, destination)."""
Outcome = tuple[Edge, ...]


def _trials(
    version: sampling.LocalVersion,
    params: labor_operator.LaborParams,
    seeds: Sequence[int],
    copies: int,
    excluded: ExcludedEdges | None = None,
) -> list[dict[Edge, float]]:
    """Return the edges that each copy of a batch keeps, with their weights."""
    nodes = (np.arange(copies)[:, None] * NODES + np.array(seeds)).ravel()
    reply, distributed_reply = (
        labor_operator.sample_labor(
            request_context(version, hosts, excluded), params, nodes, 0, None
        )
        for hosts in (1, 3)
    )
    require(
        all(bool((reply[name] == distributed_reply[name]).all()) for name in reply),
        "hosts matter to LABOR",
    )
    kept_edges: list[dict[Edge, float]] = [{} for _ in range(copies)]
    for number, fanout in enumerate(params.fanouts):
        hops = np.repeat(np.arange(reply["edge_counts"].shape[1]), reply["edge_counts"][number])
        ends = [
            reply[f"nodes.{end}"][reply[f"{name}.{fanout.edge_type}"]].tolist()
            for end, name in ((fanout.local_type, "rows"), (fanout.remote_type, "cols"))
        ]
        for hop, s, t, weight in zip(
            hops.tolist(), *ends, reply[f"weights.{fanout.edge_type}"].tolist(), strict=True
        ):
            kept_edges[s // NODES][hop, fanout.edge_type, s % NODES, t % NODES] = weight
    return kept_edges


def _outcome_probabilities(
    shares: Mapping[Edge, float], variate: Mapping[Edge, object]
) -> dict[Outcome, float]:
    """Return the probability of every outcome for edges kept by named variates.

    These are products of the intervals of each variate.
    """
    probabilities: dict[Outcome, float] = {(): 1.0}
    for name in dict.fromkeys(variate.values()):
        edges = {edge: p for edge, p in shares.items() if variate[edge] == name}
        steps = sorted({0.0, 1.0, *edges.values()})
        outcomes = [
            (tuple(edge for edge, p in edges.items() if p >= high), high - low)
            for low, high in pairwise(steps)
        ]
        probabilities = {
            tuple(sorted((*outcome, *added))): p * q
            for outcome, p in probabilities.items()
            for added, q in outcomes
        }
    return probabilities


def _require_outcomes(
    outcomes: Iterable[Outcome], expected: Mapping[Outcome, float], label: str
) -> None:
    observed = Counter(outcomes)
    impossible = set(observed) - set(expected)
    require(not impossible, f"{label}: {list(impossible)[:1]} is impossible")
    require_counts(
        [observed[key] for key in expected],
        np.array(list(expected.values())) * sum(observed.values()),
        label,
    )


def _params(
    counts: tuple[tuple[int, ...], ...],
    *,
    uniform: bool,
    importance: int,
    layer_dependency: bool = False,
) -> labor_operator.LaborParams:
    fanouts = khop.build_fanouts(lambda _: (0, 0), list(range(len(counts))), counts)
    return labor_operator.LaborParams(
        fanouts=fanouts,
        uniform=uniform,
        direction=common_pb.OUT,
        seed=9,
        importance_steps=importance,
        layer_dependency=layer_dependency,
        expand_all_hops=True,
        want_edge_ids=True,
        want_weights=True,
    )


def labor_keeps_edges_by_one_variate_per_node(scale: float) -> None:
    """Every outcome of a batch of three nodes along two edge types has its probability.

    Edges have their weights.
    """
    n = int(max(200, 4000 * scale))
    # Of 3 neighbors, some edges are certain with a probability above 1 before it is limited.
    for fanout, uniform, importance in (
        (2, False, 0),
        (2, True, 1),
        (2, False, 1),
        (2, False, -1),
        (3, False, 0),
    ):
        _require_batches(_params(((fanout,), (fanout,)), uniform=uniform, importance=importance), n)


def excluded_edges_leave_labor_outcomes(scale: float) -> None:
    """Outcomes and weights are those of a graph without the excluded edges."""
    n = int(max(200, 4000 * scale))
    for fanout, uniform, importance in ((2, False, 0), (2, True, 1), (2, False, -1)):
        _require_batches(
            _params(((fanout,), (fanout,)), uniform=uniform, importance=importance),
            n,
            excluded=True,
        )


def _require_batches(params: labor_operator.LaborParams, n: int, *, excluded: bool = False) -> None:
    """Require outcomes and weights of batches of three nodes along both edge types of `EDGES`."""
    seeds = (1, 0, 4, 0)
    uniform, importance = params.uniform, params.importance_steps
    ((fanout,), _) = (fanout.counts for fanout in params.fanouts)
    shares: dict[Edge, float] = {}
    for edge_type, rows in EDGES.items():
        batch = {s: rows[s] for s in (1, 0, 4) if s in rows}
        shares |= {
            (0, edge_type, *edge): p
            for edge, p in reference(batch, fanout, importance, uniform=uniform)[0].items()
        }
    expected = _outcome_probabilities(shares, {edge: edge[3] for edge in shares})
    label = f"LABOR-{importance} of {fanout}, uniform={uniform}, excluded={excluded}"
    trials = _trials(
        _repeated_graph(n, decoys=excluded), params, seeds, n, _decoys(n) if excluded else None
    )
    _require_outcomes(map(tuple, map(sorted, trials)), expected, label)
    for trial in trials[:50]:
        for edge_type, s in {edge[1:3] for edge in trial}:
            edges = [edge for edge in trial if edge[1:3] == (edge_type, s)]
            inverse = [
                (1.0 if uniform else EDGES[edge_type][s][edge[3]]) / shares[edge] for edge in edges
            ]
            expected_weights = [x * len(edges) / sum(inverse) for x in inverse]
            require(
                bool(np.allclose([trial[edge] for edge in edges], expected_weights, rtol=1e-6)),
                f"{label}: weights of {edges}",
            )


def labor_variates_differ_by_hop_unless_layers_depend(scale: float) -> None:
    """A node that expands twice uses two variates per neighbor, one if layers depend."""
    n = int(max(400, 4000 * scale))
    shares = reference({s: EDGES[0][s] for s in (2, 1)}, 1, 0, uniform=True)[0]
    twice = {(hop, 0, *edge): p for edge, p in shares.items() for hop in (0, 1)}
    for layer_dependency in (False, True):
        expected = _outcome_probabilities(
            twice, {edge: (edge[3], 0 if layer_dependency else edge[0]) for edge in twice}
        )
        trials = _trials(
            _repeated_graph(n),
            _params(((1, 1),), uniform=True, importance=0, layer_dependency=layer_dependency),
            (2, 1),
            n,
        )
        _require_outcomes(
            (tuple(sorted(edge for edge in trial if edge[2] in (1, 2))) for trial in trials),
            expected,
            f"two hops, layer_dependency={layer_dependency}",
        )


VALUES = (3.0, 1.0, 4.0, 1.5, 9.0, 2.0)
"""Value of each neighbor, of which sampled edges estimate totals and means."""
SIGMAS = 5.4
"""Largest deviation of a mean from its expectation, in standard errors; exceeded once in 10^7
times."""


def labor_weights_estimate_totals_and_means(scale: float) -> None:
    """Kept edges by weight over probability estimate totals without bias.

    Means by the returned weights have the expectation that the probabilities imply, over every set
    of kept edges with at least one.
    """
    n, seeds = int(max(300, 4000 * scale)), (1, 0, 4)
    for uniform, importance in ((False, 0), (True, 1), (False, -1)):
        shares = reference({s: EDGES[0][s] for s in seeds}, 2, importance, uniform=uniform)[0]
        trials = _trials(
            _repeated_graph(n), _params(((2,),), uniform=uniform, importance=importance), seeds, n
        )
        for s in seeds:
            ratios = {
                t: (1.0 if uniform else EDGES[0][s][t]) / p
                for (source, t), p in shares.items()
                if source == s
            }
            expected_mean, at_least_one = 0.0, 0.0
            for kept in itertools.product((False, True), repeat=len(ratios)):
                p = math.prod(
                    shares[s, t] if is_kept else 1 - shares[s, t]
                    for t, is_kept in zip(ratios, kept, strict=True)
                )
                chosen = list(itertools.compress(ratios, kept))
                if chosen:
                    at_least_one += p
                    expected_mean += (
                        p
                        * sum(ratios[t] * VALUES[t] for t in chosen)
                        / sum(ratios[t] for t in chosen)
                    )
            rows = [
                {t: w for (_, _, source, t), w in trial.items() if source == s} for trial in trials
            ]
            totals = np.array([sum(ratios[t] * VALUES[t] for t in row) for row in rows])
            means = np.array(
                [
                    sum(w * VALUES[t] for t, w in row.items()) / sum(row.values())
                    for row in rows
                    if row
                ]
            )
            label = f"LABOR-{importance} of {s}, uniform={uniform}"
            for name, estimates, expected in (
                ("totals", totals, sum(shares[s, t] * r * VALUES[t] for t, r in ratios.items())),
                ("means", means, expected_mean / at_least_one),
            ):
                error = abs(float(estimates.mean()) - expected)
                allowed = SIGMAS * float(estimates.std(ddof=1)) / math.sqrt(len(estimates))
                require(
                    error <= allowed + 1e-6 * abs(expected),
                    f"{label}: {name} of {estimates.mean():.4f} for {expected:.4f}, more than "
                    f"{SIGMAS} standard errors off",
                )


def labor_variates_depend_on_the_node_type(scale: float) -> None:
    """Equal ids of two node types are two nodes: edges to them are kept independently."""
    n = int(max(200, 4000 * scale))
    types = (
        EdgeType(src_type="n", relation="to", dst_type="n"),
        EdgeType(src_type="n", relation="by", dst_type="m"),
    )
    src = np.repeat(np.arange(n) * NODES, 2)
    type_edges = Edges(src=src, dst=src + np.tile([1, 2], n))
    nodes = Nodes(ids=np.arange(n * NODES))
    schema = Schema(node_types=(NodeType(name="n"), NodeType(name="m")), edge_types=types, parts=3)
    version = version_of(
        schema, {"n": nodes, "m": nodes}, {edge.name: type_edges for edge in types}
    )
    fanouts = khop.build_fanouts(lambda edge_type: (0, edge_type), [0, 1], [[1], [1]])
    edges = [(0, edge_type, 0, t) for edge_type in (0, 1) for t in (1, 2)]
    expected = _outcome_probabilities(
        dict.fromkeys(edges, 0.5), {edge: (edge[1], edge[3]) for edge in edges}
    )
    trials = _trials(
        version, replace(_params(((1,),), uniform=True, importance=0), fanouts=fanouts), (0,), n
    )
    _require_outcomes(map(tuple, map(sorted, trials)), expected, "one id of two node types")
