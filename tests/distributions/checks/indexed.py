"""Checks of neighbor sampling from ranges of each node's sorted edges.

They cover every distribution, both directions, unions, and reported probabilities.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from tests.distributions.checks.basis import require, require_counts
from tests.distributions.checks.hosts import request_context
from tests.distributions.checks.neighborhoods import order_probabilities
from tests.kit.images import Edges, Nodes, version_of

from asterism_model.elements import EDGE
from asterism_model.schema import EdgeType, Feature, NodeType, Schema
from asterism_proto.v1 import common_pb2 as common_pb
from graphd.operators import filters, global_sampling, neighbor_sampling
from storaged import sampling as draw

EDGES: tuple[tuple[tuple[float, float], ...], ...] = (
    (
        (3, 1.0),
        (-2, 2.0),
        (3, 0.0),
        (5, 4.0),
        (3, 3.0),
        (-7, 0.0),
        (1, 2.0),
        (0, 1.0),
        (4, 1.0),
        (4, 2.0),
        (7, 1.0),
        *((8 + i % 3, float(1 + i % 4)) for i in range(14)),
        *((-4 - i, float(i)) for i in range(4)),
    ),
    ((4, 1.0), (3, 5.0), (-2, 2.0), (8, 3.0), (4, 2.0), (1, 3.0)),
    ((0, 95.0), (1, 2.0), (1, 2.0), (2, 1.0), (2, 0.0)),
)
"""(value, weight) of the edges of each type, by neighbor.

They are unordered, with equal values, weights of 0, and one so heavy that sampling switches to
exponential keys. The second type has no weight of 0, so that each drawn edge is excluded from the
next draw.
"""
SATISFIES: dict[str, Any] = {
    "x between 3 and 5": lambda x: 3 <= x <= 5,
    "x < 0 or x == 4 or x > 6": lambda x: x < 0 or x == 4 or x > 6,
    "x != 3": lambda x: x != 3,
    "x > -9": lambda x: True,
    "x >= 0 and x < 3": lambda x: 0 <= x < 3,
    "x == 77": lambda x: False,
}
"""Filters, with a function that returns whether a value matches."""
Ends = tuple[tuple[int, int], ...]


@cache
def _star(*, floating: bool, incoming: bool) -> draw.LocalVersion:
    """Return node 0 and its edges of three types; the remote ends have edges too."""
    dtype = "float32" if floating else "int16"
    types = tuple(
        EdgeType(
            src_type="n",
            relation=relation,
            dst_type="n",
            weighted=True,
            features=(Feature(name="x", dtype=dtype),),
            index=("x",),
        )
        for relation in "abc"
    )
    edges = {}
    for edge_type, type_edges in zip(types, EDGES, strict=True):
        local_ends, remote_ends = (
            np.zeros(len(type_edges), np.int64),
            np.arange(len(type_edges)) + 1,
        )
        values, weights = (np.array(column) for column in zip(*type_edges, strict=True))
        src, dst = np.r_[remote_ends, np.full(4, 59)], np.r_[local_ends, np.arange(4) + 3]
        if not incoming:
            src, dst = dst, src
        edges[edge_type.name] = Edges(
            src=src,
            dst=dst,
            weights=np.r_[weights, np.ones(4)].astype(np.float32),
            features={"x": np.r_[values, np.full(4, 3)].astype(dtype)},
        )
    schema = Schema(node_types=(NodeType(name="n"),), edge_types=types, parts=1, direction="both")
    return version_of(schema, {"n": Nodes(ids=np.arange(60))}, edges)


def _matching_edges(types: tuple[int, ...], where: str) -> list[tuple[tuple[int, int], float]]:
    """Return the edges of node 0 that match a filter, by (edge type, value, neighbor), with
    weights.
    """
    matches = [
        (number, value, i + 1, weight)
        for number, t in enumerate(types)
        for i, (value, weight) in enumerate(EDGES[t])
        if SATISFIES[where](value)
    ]
    return [((number, neighbor), weight) for number, _, neighbor, weight in sorted(matches)]


@dataclass(frozen=True, kw_only=True)
class _Outcome:
    """An outcome and the number of positions with it."""

    ends: Ends
    """(edge type, neighbor) of each draw."""
    probabilities: tuple[float, ...]
    """Probabilities of the draws, if requested."""
    repeats: int
    """Number of positions with this outcome."""


def _sample_outcomes(
    types: tuple[int, ...],
    where: str,
    positions: int,
    count: int,
    *,
    replace: bool,
    uniform: bool,
    want_probabilities: bool,
    **star_options: bool,
) -> tuple[list[_Outcome], bytes]:
    """Return the draws of node 0 at ``positions`` positions in one request, and their bytes."""
    direction = common_pb.IN if star_options["incoming"] else common_pb.OUT
    params = neighbor_sampling.NeighborParams(
        edge_types=types,
        count=count,
        replace=replace,
        uniform=uniform,
        direction=direction,
        seed=5,
        hop=0,
        want_weights=True,
        want_edge_ids=True,
        want_probabilities=want_probabilities,
    )
    head: Any = type("Head", (), {"weight": "", "where": where, "direction": direction})
    context = filters.with_filter(request_context(_star(**star_options)), EDGE, types, head)
    require(context.filter_plan == "index on x (range)", f"{where}: {context.filter_plan}")
    reply = neighbor_sampling.sample_neighbors(
        context, params, np.zeros(positions, np.int64), 0, None
    )
    kinds = (
        np.searchsorted(types, reply["types"]) if "types" in reply else np.zeros_like(reply["ids"])
    )
    probabilities = reply["probabilities"] if want_probabilities else np.zeros(reply["ids"].shape)
    rows, repeat_counts = np.unique(
        np.stack([kinds, reply["ids"], reply["weights"], reply["eids"], probabilities], axis=2),
        axis=0,
        return_counts=True,
    )
    outcomes = []
    for row, repeats in zip(rows, repeat_counts.tolist(), strict=True):
        drawn_rows = row[row[:, 1] >= 0]
        for kind, neighbor, weight, eid, _ in drawn_rows.tolist():
            require(
                neighbor <= len(EDGES[types[int(kind)]]),
                f"neighbor {neighbor} is of an edge the other way round",
            )
            value, own_weight = EDGES[types[int(kind)]][int(neighbor) - 1]
            require(SATISFIES[where](value), f"an edge of {value} is drawn where {where}")
            require(
                (weight, eid) == (own_weight, neighbor - 1), "an edge has the columns of another"
            )
        ends = tuple((int(kind), int(neighbor)) for kind, neighbor in drawn_rows[:, :2])
        outcomes.append(
            _Outcome(ends=ends, probabilities=tuple(drawn_rows[:, 4].tolist()), repeats=repeats)
        )
    return outcomes, reply["eids"].tobytes() + kinds.tobytes()


Case = tuple[tuple[int, ...], bool, int]


def range_draws_follow_their_distribution(scale: float) -> None:
    """Draws with replacement have their probabilities among matching edges.

    They are weighted and uniform, of one type and of unions.
    """
    cases: tuple[Case, ...] = (
        ((0,), False, 1),
        ((0,), True, 1),
        ((0, 1), False, 2),
        ((2,), False, 1),
        ((0, 1, 2), True, 1),
    )
    _require_cases(cases, scale, replace=True)


def range_draws_without_replacement_follow_their_distribution(scale: float) -> None:
    """Draws without replacement have their probabilities among matching edges.

    They are weighted and uniform, of one type and of unions.
    """
    cases: tuple[Case, ...] = (
        ((0,), True, 2),
        ((0, 1), False, 2),
        ((2,), False, 3),
        ((1, 2), True, 2),
        ((1,), False, 3),
        ((0,), False, 2),
    )
    _require_cases(cases, scale, replace=False)


def _require_cases(cases: tuple[Case, ...], scale: float, *, replace: bool) -> None:
    """Require draws to follow their distribution in each case and under each filter.

    A case is (edge types, uniform, count). The four kinds of stars are used in turn.
    """
    positions = int(max(300, 5000 * scale))
    for number, (types, uniform, count) in enumerate(cases):
        star_options = {"floating": bool(number & 1), "incoming": bool(number & 2)}
        for where in SATISFIES:
            edges = [
                (end, 1.0 if uniform else weight) for end, weight in _matching_edges(types, where)
            ]
            outcomes, drawn_bytes = _sample_outcomes(
                types,
                where,
                positions,
                count,
                replace=replace,
                uniform=uniform,
                want_probabilities=True,
                **star_options,
            )
            _, plain_bytes = _sample_outcomes(
                types,
                where,
                positions,
                count,
                replace=replace,
                uniform=uniform,
                want_probabilities=False,
                **star_options,
            )
            require(
                plain_bytes == drawn_bytes,
                f"{where}: draws are others where their probabilities are wanted",
            )
            label = (
                f"{types}, {'with' if replace else 'without'} replacement, "
                f"{'uniformly' if uniform else 'by weight'}, where {where}"
            )
            _require_outcomes(edges, outcomes, positions, count, label, replace=replace)


def _require_outcomes(
    edges: list[tuple[tuple[int, int], float]],
    outcomes: list[_Outcome],
    positions: int,
    count: int,
    label: str,
    *,
    replace: bool,
) -> None:
    """Require outcomes to follow the distribution of edges."""
    ends = {end: weight for end, weight in edges if weight > 0}
    if not ends:
        require(all(not outcome.ends for outcome in outcomes), f"{label}: something is drawn")
    elif replace:
        total = sum(ends.values())
        for k in range(count):
            observed: Counter[tuple[int, int]] = Counter()
            for outcome in outcomes:
                observed[outcome.ends[k]] += outcome.repeats
            require_counts(
                np.array([observed[end] for end in ends]),
                np.array([weight / total * positions for weight in ends.values()]),
                label,
            )
        rows = {
            row: math.prod(ends[end] / total for end in row) * positions
            for row in itertools.product(ends, repeat=count)
        }
        observed_rows = Counter({outcome.ends: outcome.repeats for outcome in outcomes})
        require_counts(
            np.array([observed_rows[row] for row in rows]),
            np.array(list(rows.values())),
            f"{label}, together",
        )
        is_equal = all(
            np.allclose(outcome.probabilities, [ends[end] / total for end in outcome.ends])
            for outcome in outcomes
        )
        require(is_equal, f"{label}: probabilities are not the shares")
    elif len(edges) <= count:
        require(
            [outcome.ends for outcome in outcomes] == [tuple(ends)],
            f"{label}: not all, or not in order",
        )
        require(
            set(outcomes[0].probabilities) == {1.0},
            f"{label}: certain outcomes have other probabilities",
        )
    else:
        names, observed_ends = (
            list(ends),
            Counter({outcome.ends: outcome.repeats for outcome in outcomes}),
        )
        orders = order_probabilities(list(ends.values()), min(count, len(ends)))
        expected = {tuple(names[i] for i in order): p for order, p in orders.items()}
        require(
            len(observed_ends) == len(outcomes) and set(observed_ends) <= set(expected),
            f"{label}: an outcome that cannot be",
        )
        require_counts(
            np.array([observed_ends[row] for row in expected]),
            np.array([p * positions for p in expected.values()]),
            label,
        )
        is_equal = all(
            np.isclose(math.prod(outcome.probabilities), expected[outcome.ends])
            for outcome in outcomes
        )
        require(is_equal, f"{label}: probabilities do not multiply to those of the outcomes")


@cache
def _hub_graph(parts: int = 8) -> draw.LocalVersion:
    """Return a graph of nodes with many degrees, one of them a hub."""
    rng = np.random.default_rng(8)
    size, m = 200, 3000
    src = np.where(rng.random(m) < 0.3, 7, rng.integers(0, size, m))
    edge_type = EdgeType(
        src_type="n",
        relation="e",
        dst_type="n",
        weighted=True,
        features=(Feature(name="x", dtype="float64"),),
        index=("x", "weight"),
    )
    schema = Schema(
        node_types=(NodeType(name="n"),), edge_types=(edge_type,), parts=parts, direction="both"
    )
    weights = np.where(rng.random(m) < 0.2, 0, np.exp(rng.normal(size=m) * 2)).astype(np.float32)
    edges = Edges(
        src=src, dst=rng.integers(0, size, m), weights=weights, features={"x": rng.random(m)}
    )
    return version_of(schema, {"n": Nodes(ids=np.arange(size))}, {edge_type.name: edges})


def hosts_do_not_change_index_ranges(scale: float) -> None:
    """Edges and neighbors are equal byte for byte if each host has only its partitions."""
    nodes = np.arange(200)

    def results(hosts: int) -> list[dict[str, Any]]:
        results = []
        for where in ("x between 0.2 and 0.4", "x < 0.1 or x > 0.95", "weight > 3"):
            for direction in (common_pb.OUT, common_pb.IN):
                head: Any = type("Head", (), {"weight": "", "where": where, "direction": direction})
                context = filters.with_filter(request_context(_hub_graph(), hosts), EDGE, [0], head)
                require(
                    context.filter_plan.startswith("index on "), f"{where}: {context.filter_plan}"
                )
                for replace, uniform in ((True, False), (False, False), (False, True)):
                    params = neighbor_sampling.NeighborParams(
                        edge_types=(0,),
                        count=5,
                        replace=replace,
                        uniform=uniform,
                        direction=direction,
                        seed=3,
                        hop=0,
                        want_weights=True,
                        want_edge_ids=True,
                        want_probabilities=True,
                    )
                    results.append(
                        neighbor_sampling.sample_neighbors(context, params, nodes, 0, None)
                    )
                for distinct in (False, True):
                    draw_params = global_sampling.GlobalDraw(
                        element=EDGE,
                        types=(0,),
                        seed=5,
                        count=90,
                        uniform=False,
                        distinct=distinct,
                        want_probabilities=True,
                    )
                    results.append(global_sampling.draw(context, draw_params))
        return results

    expected = results(1)
    for hosts in (2, 3, 5, 8) if scale >= 1 else (3,):
        for one, other in zip(expected, results(hosts), strict=True):
            require(
                one.keys() == other.keys()
                and all(one[name].tobytes() == other[name].tobytes() for name in one),
                f"{hosts} hosts give other bytes",
            )
