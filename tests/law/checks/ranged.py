"""Draws of neighbors from runs of each node's order: by each law, in both directions, of unions, beside the probabilities that they are told with."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from tests.kit.images import Edges, Nodes, version_of
from tests.law.checks.basis import require, require_counts
from tests.law.checks.hosts import sampling_of
from tests.law.checks.neighborhoods import successive

from asterism_proto.schema import EdgeType, Feature, NodeType, Schema
from asterism_proto.v1 import common_pb2 as pb
from graphd import restriction, sample
from graphd.totals import EDGE
from storaged import draw

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
"""(value, weight) of the edges of each type, by neighbor: out of order, equal ones, of weight 0, and one so heavy that draws go on as a race;
of the second none is of weight 0, so that what was drawn is left out of the next draw."""
SEEN: dict[str, Any] = {
    "x between 3 and 5": lambda x: 3 <= x <= 5,
    "x < 0 or x == 4 or x > 6": lambda x: x < 0 or x == 4 or x > 6,
    "x != 3": lambda x: x != 3,
    "x > -9": lambda x: True,
    "x >= 0 and x < 3": lambda x: 0 <= x < 3,
    "x == 77": lambda x: False,
}
"""Conditions, and which values satisfy each."""
Ends = tuple[tuple[int, int], ...]


@cache
def _star(*, floating: bool, incoming: bool) -> draw.Version:
    """Node 0 and its edges of three types; the other end has edges of its own."""
    dtype = "float32" if floating else "int16"
    types = tuple(
        EdgeType(src_type="n", relation=relation, dst_type="n", weighted=True, features=(Feature(name="x", dtype=dtype),), index=("x",))
        for relation in "abc"
    )
    edges = {}
    for kind, of in zip(types, EDGES, strict=True):
        near, far = np.zeros(len(of), np.int64), np.arange(len(of)) + 1
        values, weights = (np.array(column) for column in zip(*of, strict=True))
        src, dst = np.r_[far, np.full(4, 59)], np.r_[near, np.arange(4) + 3]
        if not incoming:
            src, dst = dst, src
        edges[kind.name] = Edges(
            src=src, dst=dst, weights=np.r_[weights, np.ones(4)].astype(np.float32), features={"x": np.r_[values, np.full(4, 3)].astype(dtype)}
        )
    schema = Schema(node_types=(NodeType(name="n"),), edge_types=types, parts=1, direction="both")
    return version_of(schema, {"n": Nodes(ids=np.arange(60))}, edges)


def _near(types: tuple[int, ...], where: str) -> list[tuple[tuple[int, int], float]]:
    """The edges of node 0 that satisfy a condition, by (edge type, value, neighbor), and their weights."""
    found = [(at, value, i + 1, weight) for at, t in enumerate(types) for i, (value, weight) in enumerate(EDGES[t]) if SEEN[where](value)]
    return [((at, neighbor), weight) for at, _, neighbor, weight in sorted(found)]


@dataclass(frozen=True, kw_only=True)
class _Outcome:
    """What some positions drew alike."""

    ends: Ends
    """(edge type, neighbor) of each draw."""
    told: tuple[float, ...]
    """Their probabilities, where wanted."""
    times: int
    """How many positions did."""


def _drawn(
    types: tuple[int, ...], where: str, each: int, count: int, *, replace: bool, uniform: bool, want: bool, **how: bool
) -> tuple[list[_Outcome], bytes]:
    """The draws of node 0, ``each`` positions, all in one request; and their bytes."""
    direction = pb.IN if how["incoming"] else pb.OUT
    asked = sample.Neighbors(
        edge_types=types,
        count=count,
        replace=replace,
        uniform=uniform,
        direction=direction,
        seed=5,
        hop=0,
        want_weights=True,
        want_edge_ids=True,
        want_probabilities=want,
    )
    head: Any = type("Head", (), {"weight": "", "where": where, "direction": direction})
    by = restriction.by(sampling_of(_star(**how)), EDGE, types, head)
    require(by.way == "index on x (range)", f"{where}: {by.way}")
    found = sample.neighbors(by, asked, np.zeros(each, np.int64), 0, None)
    kinds = np.searchsorted(types, found["types"]) if "types" in found else np.zeros_like(found["ids"])
    chances = found["probabilities"] if want else np.zeros(found["ids"].shape)
    rows, times = np.unique(np.stack([kinds, found["ids"], found["weights"], found["eids"], chances], axis=2), axis=0, return_counts=True)
    out = []
    for row, seen in zip(rows, times.tolist(), strict=True):
        mine = row[row[:, 1] >= 0]
        for kind, neighbor, weight, eid, _ in mine.tolist():
            require(neighbor <= len(EDGES[types[int(kind)]]), f"neighbor {neighbor} is of an edge the other way round")
            value, own = EDGES[types[int(kind)]][int(neighbor) - 1]
            require(SEEN[where](value), f"an edge of {value} is drawn where {where}")
            require((weight, eid) == (own, neighbor - 1), "an edge has the columns of another")
        ends = tuple((int(kind), int(neighbor)) for kind, neighbor in mine[:, :2])
        out.append(_Outcome(ends=ends, told=tuple(mine[:, 4].tolist()), times=seen))
    return out, found["eids"].tobytes() + kinds.tobytes()


Case = tuple[tuple[int, ...], bool, int]


def what_is_in_a_range_is_drawn_by_its_law(scale: float) -> None:
    """With replacement, by weight and uniformly, of one type and of unions: every outcome has its probability among what satisfies."""
    cases: tuple[Case, ...] = (((0,), False, 1), ((0,), True, 1), ((0, 1), False, 2), ((2,), False, 1), ((0, 1, 2), True, 1))
    _follow(cases, scale, replace=True)


def what_is_in_a_range_is_drawn_by_its_law_without_replacement(scale: float) -> None:
    """By weight and uniformly, of one type and of unions: every outcome has its probability among what satisfies."""
    cases: tuple[Case, ...] = (
        ((0,), True, 2), ((0, 1), False, 2), ((2,), False, 3), ((1, 2), True, 2), ((1,), False, 3), ((0,), False, 2),
    )  # fmt: skip
    _follow(cases, scale, replace=False)


def _follow(cases: tuple[Case, ...], scale: float, *, replace: bool) -> None:
    """Hold draws against their law, in each case of (edge types, uniformly, count) under each condition, by the four kinds of stars in turn."""
    each = int(max(300, 5000 * scale))
    for number, (types, uniform, count) in enumerate(cases):
        how = {"floating": bool(number & 1), "incoming": bool(number & 2)}
        for where in SEEN:
            near = [(end, 1.0 if uniform else weight) for end, weight in _near(types, where)]
            drawn, told = _drawn(types, where, each, count, replace=replace, uniform=uniform, want=True, **how)
            _, plain = _drawn(types, where, each, count, replace=replace, uniform=uniform, want=False, **how)
            require(plain == told, f"{where}: draws are others where their probabilities are wanted")
            what = f"{types}, {'with' if replace else 'without'} replacement, {'uniformly' if uniform else 'by weight'}, where {where}"
            _hold(near, drawn, each, count, what, replace=replace)


def _hold(near: list[tuple[tuple[int, int], float]], drawn: list[_Outcome], each: int, count: int, what: str, *, replace: bool) -> None:
    """Hold outcomes against the law of these edges."""
    ends = {end: weight for end, weight in near if weight > 0}
    if not ends:
        require(all(not outcome.ends for outcome in drawn), f"{what}: something is drawn")
    elif replace:
        total = sum(ends.values())
        for k in range(count):
            seen: Counter[tuple[int, int]] = Counter()
            for outcome in drawn:
                seen[outcome.ends[k]] += outcome.times
            require_counts(np.array([seen[end] for end in ends]), np.array([weight / total * each for weight in ends.values()]), what)
        rows = {row: math.prod(ends[end] / total for end in row) * each for row in itertools.product(ends, repeat=count)}
        together = Counter({outcome.ends: outcome.times for outcome in drawn})
        require_counts(np.array([together[row] for row in rows]), np.array(list(rows.values())), f"{what}, together")
        right = all(np.allclose(outcome.told, [ends[end] / total for end in outcome.ends]) for outcome in drawn)
        require(right, f"{what}: probabilities are not the shares")
    elif len(near) <= count:
        require([outcome.ends for outcome in drawn] == [tuple(ends)], f"{what}: not all, or not in order")
        require(set(drawn[0].told) == {1.0}, f"{what}: what is certain is told as something else")
    else:
        names, counted = list(ends), Counter({outcome.ends: outcome.times for outcome in drawn})
        law = successive(list(ends.values()), min(count, len(ends)))
        expected = {tuple(names[i] for i in order): chance for order, chance in law.items()}
        require(len(counted) == len(drawn) and set(counted) <= set(expected), f"{what}: an outcome that can not be")
        require_counts(np.array([counted[row] for row in expected]), np.array([chance * each for chance in expected.values()]), what)
        right = all(np.isclose(math.prod(outcome.told), expected[outcome.ends]) for outcome in drawn)
        require(right, f"{what}: probabilities do not multiply to those of the outcomes")


@cache
def _web(parts: int = 8) -> draw.Version:
    """Nodes with edges of many degrees, one a hub."""
    rng = np.random.default_rng(8)
    size, m = 200, 3000
    src = np.where(rng.random(m) < 0.3, 7, rng.integers(0, size, m))
    kind = EdgeType(src_type="n", relation="e", dst_type="n", weighted=True, features=(Feature(name="x", dtype="float64"),), index=("x", "weight"))
    schema = Schema(node_types=(NodeType(name="n"),), edge_types=(kind,), parts=parts, direction="both")
    weights = np.where(rng.random(m) < 0.2, 0, np.exp(rng.normal(size=m) * 2)).astype(np.float32)
    edges = Edges(src=src, dst=rng.integers(0, size, m), weights=weights, features={"x": rng.random(m)})
    return version_of(schema, {"n": Nodes(ids=np.arange(size))}, {kind.name: edges})


def hosts_do_not_matter_to_ranges(scale: float) -> None:
    """Byte for byte, edges and neighbors, where each host has its own parts only."""
    nodes = np.arange(200)

    def answers(hosts: int) -> list[dict[str, Any]]:
        found = []
        for where in ("x between 0.2 and 0.4", "x < 0.1 or x > 0.95", "weight > 3"):
            for direction in (pb.OUT, pb.IN):
                head: Any = type("Head", (), {"weight": "", "where": where, "direction": direction})
                by = restriction.by(sampling_of(_web(), hosts), EDGE, [0], head)
                require(by.way.startswith("index on "), f"{where}: {by.way}")
                for replace, uniform in ((True, False), (False, False), (False, True)):
                    how = sample.Neighbors(
                        edge_types=(0,), count=5, replace=replace, uniform=uniform, direction=direction, seed=3, hop=0,
                        want_weights=True, want_edge_ids=True, want_probabilities=True,
                    )  # fmt: skip
                    found.append(sample.neighbors(by, how, nodes, 0, None))
                for distinct in (False, True):
                    what = sample.Global(element=EDGE, types=(0,), seed=5, count=90, uniform=False, distinct=distinct, want_probabilities=True)
                    found.append(sample.draw(by, what))
        return found

    expected = answers(1)
    for hosts in (2, 3, 5, 8) if scale >= 1 else (3,):
        for one, other in zip(expected, answers(hosts), strict=True):
            require(
                one.keys() == other.keys() and all(one[name].tobytes() == other[name].tobytes() for name in one), f"{hosts} hosts give other bytes"
            )
