"""Draws until a time: from the edges that a node sees at its own, by each law, in both directions, for whole trees, on any number of hosts."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.kit.images import Edges, Nodes, version_of
from tests.law.checks.basis import require, require_counts
from tests.law.checks.hosts import sampling_of
from tests.law.checks.neighborhoods import successive

from asterism_proto.schema import EdgeType, Feature, NodeType, Schema
from asterism_proto.v1 import common_pb2 as pb
from graphd import sample, subgraph, until
from graphd.subgraph import Subgraph
from graphkit.growth import Reach
from storaged import draw

HOSTS = (2, 3)
Seen = list[tuple[int, int, float]]
"""(edge type, neighbor, weight), by (edge type, time, neighbor)."""

EDGES: tuple[tuple[tuple[float, float], ...], ...] = (
    ((3, 1.0), (-2, 2.0), (3, 0.0), (5, 4.0), (3, 3.0), (-7, 0.0)),
    ((4, 1.0), (3, 5.0), (-2, 2.0)),
    ((0, 95.0), (1, 2.0), (1, 2.0), (2, 1.0)),
)
"""(time, weight) of the edges of each type, by neighbor: out of order, with equal times, of weight 0, and one so heavy that draws go on as a race."""
TIMES = (-8, -7, -2, 2, 3, 4, 5, 9)


@cache
def _star(*, floating: bool, incoming: bool) -> draw.Version:
    """Node 0 and its edges of two types, numbered so that the ends of slots differ between the directions; the other end has edges of its own."""
    names = ("n:a:n", "n:b:n", "n:c:n")
    dtype = "float32" if floating else "int16"
    types = tuple(
        EdgeType(src_type="n", relation=relation, dst_type="n", weighted=True, features=(Feature(name="t", dtype=dtype),), time="t")
        for relation in "abc"
    )
    edges = {}
    for name, kind in zip(names, EDGES, strict=True):
        near, far = np.zeros(len(kind), np.int64), np.arange(len(kind)) + 1
        times, weights = (np.array(column) for column in zip(*kind, strict=True))
        # Edges the other way round, seen at once: an order that is of the other direction is another one.
        src, dst = np.r_[far, np.full(4, 9)], np.r_[near, np.arange(4) + 3]
        if not incoming:
            src, dst = dst, src
        edges[name] = Edges(
            src=src,
            dst=dst,
            weights=np.r_[weights, np.ones(4)].astype(np.float32),
            times=(np.r_[times, np.full(4, -9)] / (8 if floating else 1)).astype(dtype),
        )
    schema = Schema(node_types=(NodeType(name="n"),), edge_types=types, parts=1, direction="both")
    return version_of(schema, {"n": Nodes(ids=np.arange(10))}, edges)


def _seen(types: tuple[int, ...], time: float, *, strict: bool) -> Seen:
    out: Seen = []
    for at, t in enumerate(types):
        kept = [(when, i + 1, weight) for i, (when, weight) in enumerate(EDGES[t]) if (when < time if strict else when <= time)]
        out += [(at, neighbor, weight) for _, neighbor, weight in sorted(kept)]
    return out


def _drawn(
    types: tuple[int, ...], each: int, count: int, *, replace: bool, uniform: bool = False, last: bool = False, strict: bool = False, **how: bool
) -> dict[float, list[list[tuple[int, int]]]]:
    """(edge type, neighbor) of the draws of node 0 at every time, ``each`` positions a time, all in one request; checked to carry their times."""
    version, floating = _star(**how), how["floating"]
    times = np.tile(np.array(TIMES), each)
    found = draw.timed_neighbors(
        version,
        edge_types=list(types),
        node_type=0,
        ids=np.zeros(times.size, np.int64),
        positions=np.arange(times.size),
        count=count,
        replace=replace,
        uniform=uniform,
        direction=2 if how["incoming"] else 1,
        seed=5,
        hop=0,
        want_weights=True,
        want_edge_ids=True,
        until=draw.Until(times=times / 8 if floating else times, strict=strict, last=last, want_times=True),
    )
    kinds = np.zeros_like(found.ids) if found.types is None else np.searchsorted(types, found.types)
    assert found.times is not None
    assert found.weights is not None
    assert found.eids is not None
    out: dict[float, list[list[tuple[int, int]]]] = {time: [] for time in TIMES}
    for row, time in enumerate(times.tolist()):
        ends = [(int(kind), int(neighbor)) for kind, neighbor in zip(kinds[row], found.ids[row], strict=True)]
        for k, (kind, neighbor) in enumerate(ends):
            when, weight = EDGES[types[kind]][neighbor - 1] if 0 < neighbor <= len(EDGES[types[kind]]) else (0, 0)
            require(neighbor < 9, f"neighbor {neighbor} is of an edge the other way round")
            require(neighbor < 0 or (when < time if strict else when <= time), f"an edge of {when} is seen at {time}, strict {strict}")
            told = float(found.times[row, k]) * (8 if floating else 1), float(found.weights[row, k]), int(found.eids[row, k])
            require(told == (when, weight, neighbor - 1 if neighbor > 0 else -1), f"an edge of {when, weight} to {neighbor} is told as {told}")
        out[time].append(ends)
    return out


def what_is_seen_is_drawn_by_its_law(scale: float) -> None:
    """With and without replacement, by weight and uniformly, at every time: every outcome has its probability among the edges that are seen."""
    each = int(max(60, 2500 * scale))
    cases: tuple[tuple[tuple[int, ...], bool, bool, bool, bool], ...] = (
        ((0,), True, False, False, False),
        ((0, 1), True, True, True, True),
        ((0,), False, False, True, True),
        ((0, 1), False, False, False, False),
        ((0,), False, True, False, True),
        ((0, 1), False, True, True, False),
        ((0, 1), True, False, True, True),
        ((2,), False, False, False, False),
    )
    for types, replace, uniform, strict, floating in cases:
        for time, rows in _drawn(types, each, 2, replace=replace, uniform=uniform, strict=strict, floating=floating, incoming=types == (0,)).items():
            seen = _seen(types, time, strict=strict)
            ends: list[tuple[int, int]] = [(t, neighbor) for t, neighbor, _ in seen]
            weights = [1.0 if uniform else weight for *_, weight in seen]
            name = f"{'uniform ' * uniform}draws {'with' if replace else 'without'} replacement of {types} at {time}, strict {strict}"
            if not sum(weights):
                require(all(neighbor == -1 for row in rows for _, neighbor in row), f"{name}: nothing is seen, and drawn")
                continue
            if replace:
                expected = {(a, b): weights[a] * weights[b] / sum(weights) ** 2 for a in range(len(seen)) for b in range(len(seen))}
            elif len(seen) <= 2:
                whole = [i for i, weight in enumerate(weights) if weight]
                expected = {tuple([*whole, -1, -1][:2]): 1.0}
            else:
                expected = dict(successive(weights, 2))
            observed = Counter(tuple(ends.index(end) if end[1] >= 0 else -1 for end in row) for row in rows)
            require(all(expected.get(outcome, 0) for outcome in observed), f"{name}: something impossible was drawn")
            require_counts([observed[key] for key in expected], [p * len(rows) for p in expected.values()], name)


def the_last_are_the_latest(scale: float) -> None:
    """Of every time, strict or not, in both directions: the latest first, of equal times the later edge type, then the later slot."""
    del scale
    for incoming, strict, floating in ((False, False, False), (True, True, True), (True, False, False)):
        for types in ((0,), (0, 1)):
            for time, rows in _drawn(types, 1, 4, replace=False, last=True, strict=strict, floating=floating, incoming=incoming).items():
                seen = sorted((EDGES[types[t]][neighbor - 1][0], t, neighbor) for t, neighbor, _ in _seen(types, time, strict=strict))
                expected = [(t, neighbor) for _, t, neighbor in reversed(seen)][:4]
                got = [end for end in rows[0] if end[1] >= 0]
                require(got == expected, f"the last 4 of {types} at {time}, strict {strict}, are {got}, not {expected}")


def fewer_are_the_first_of_more(scale: float) -> None:
    """Where there are more than either asks for; past the bound on rejections too."""
    del scale
    for uniform, last in ((False, False), (True, False), (True, True)):
        found = [_drawn((0, 1), 6, count, replace=False, uniform=uniform, last=last, floating=False, incoming=False) for count in (2, 5)]
        for time in TIMES[-2:]:
            require(all(few == more[:2] for few, more in zip(found[0][time], found[1][time], strict=True)), f"the first 2 of 5 at {time} differ")


@cache
def _chain() -> draw.Version:
    """Nodes 0 .. 59 with edges onward at times 0 .. 9, and such as have none, over 5 parts."""
    rng = np.random.default_rng(2)
    src, dst, times = rng.integers(0, 60, 900), rng.integers(0, 60, 900), rng.integers(0, 10, 900)
    weights = rng.integers(0, 3, 900).astype(np.float32)
    feature = (Feature(name="t", dtype="float64"),)
    types = (
        EdgeType(src_type="n", relation="t", dst_type="n", weighted=True, features=feature, time="t"),
        EdgeType(src_type="n", relation="u", dst_type="n"),
    )
    edges = {"n:t:n": Edges(src=src, dst=dst, weights=weights, times=times.astype(np.float64)), "n:u:n": Edges(src=dst[:60], dst=src[:60])}
    return version_of(Schema(node_types=(NodeType(name="n"),), edge_types=types, parts=5, direction="both"), {"n": Nodes(ids=np.arange(60))}, edges)


def _grown(hosts: int, times: NDArray[Any], counts: tuple[int, ...], *, strict: bool = False, last: bool = False) -> dict[str, NDArray[Any]]:
    how = Subgraph(
        reach=tuple(Reach(edge_type=e, near=0, far=0, counts=counts) for e in (0, 1)),
        replace=False,
        uniform=False,
        direction=pb.IN,
        seed=3,
        disjoint=True,
        every=False,
        want_edge_ids=True,
        want_weights=True,
        until=until.Until(times=times, head=pb.Until(strict=strict, last=last, want_times=True)),
    )
    return subgraph.subgraph(sampling_of(_chain(), hosts), how, np.arange(len(times)), 0, None)


def a_seeds_time_holds_for_its_tree(scale: float) -> None:
    """Every edge of a tree is seen at its seed's time, none that is seen is missing where all are asked for, and hosts do not matter."""
    del scale
    version, times = _chain(), np.arange(40) % 12 - 1
    edge = version.parts
    flat = {int(e): int(w) for part in edge.values() for e, w in zip(part.edges[0].out.eid, part.edges[0].out.when, strict=True)}
    of = {int(e): float(t) for e, t in zip(flat, np.array(list(flat.values()), np.int64).view(np.float64), strict=True)}
    into: dict[int, list[int]] = {}
    for part in edge.values():
        side = part.edges[0].into
        assert side is not None
        for row, (start, stop) in enumerate(zip(side.indptr[:-1], side.indptr[1:], strict=True)):
            into[row * 5 + part.part] = side.eid[start:stop].tolist()
    for strict in (False, True):
        found = _grown(1, times, (-1, -1), strict=strict)
        near, trees = found["cols.0"], found["trees.0"]
        require(found["times.0"].size == near.size, f"{found['times.0'].size} times of {near.size} edges")
        met: dict[int, list[int]] = {}
        for column, eid, told in zip(near.tolist(), found["eids.0"].tolist(), found["times.0"].tolist(), strict=True):
            limit = times[trees[column]]
            require(of[eid] < limit if strict else of[eid] <= limit, f"an edge of {of[eid]} is in a tree of {limit}, strict {strict}")
            require(told == of[eid], f"an edge of {of[eid]} is told as of {told}")
            met.setdefault(column, []).append(eid)
        expanded = int(found["node_counts"][0, :2].sum())
        for column in range(expanded):
            limit = times[trees[column]]
            seen = {eid for eid in into[int(found["nodes.0"][column])] if (of[eid] < limit if strict else of[eid] <= limit)}
            require(sorted(met.get(column, [])) == sorted(seen), f"all that is seen at {limit} are {len(seen)} edges, not {len(met.get(column, []))}")
        require("rows.1" in found and found["rows.1"].size > 0, "edges without a time are not there")
    for last in (False, True):
        alone = _grown(1, times, (2, 3), last=last)
        require(bool((of_eids(alone["eids.0"], of) <= times[alone["trees.0"][alone["cols.0"]]]).all()), "a drawn edge is of later than its seed")
        for hosts in HOSTS:
            other = _grown(hosts, times, (2, 3), last=last)
            require(all(np.array_equal(alone[name], other[name]) for name in alone), f"a subgraph until times is another one on {hosts} hosts")


def a_nodes_time_holds_for_all_that_is_drawn_from_it(scale: float) -> None:
    """Fanouts: of two hops each path has what its start sees, all of it where so many are asked for; types without a time are as ever."""
    del scale
    version, times, count = _chain(), np.arange(60) % 12 - 1, 40
    common: dict[str, Any] = {"replace": False, "uniform": True, "direction": pb.OUT, "seed": 9, "want_weights": False, "want_probabilities": False}
    edges: dict[int, list[tuple[int, float]]] = {node: [] for node in range(60)}
    for part in version.parts.values():
        side = part.edges[0].out
        for row, (start, stop) in enumerate(zip(side.indptr[:-1], side.indptr[1:], strict=True)):
            edges[row * 5 + part.part] = list(zip(side.eid[start:stop].tolist(), side.when[start:stop].view(np.float64).tolist(), strict=True))
    for strict, second in ((False, (0,)), (True, (0,)), (False, (1,))):
        seen = until.Until(times=times, head=pb.Until(strict=strict, want_times=True))
        hops = [
            sample.Neighbors(edge_types=types, count=count, hop=h, want_edge_ids=True, until=seen if types == (0,) else None, **common)
            for h, types in enumerate(((0,), second))
        ]
        answers = [sample.fanout(sampling_of(version, hosts), hops, np.arange(60), 0, None) for hosts in (1, *HOSTS)]
        require(
            all(np.array_equal(answers[0][name], other[name]) for other in answers for name in other), "fanouts until times are others on more hosts"
        )
        nodes = np.arange(60)
        for h, types in enumerate(((0,), second)):
            drawn = answers[0][f"eids.{h}"].reshape(len(nodes), count)
            for place, node in enumerate(nodes.tolist()) if types == (0,) else ():
                limit = times[place // (count if h else 1)]
                there = {eid for eid, when in edges.get(node, []) if (when < limit if strict else when <= limit)}
                got = set(drawn[place].tolist()) - {-1}
                require(got == there, f"hop {h}, strict {strict}: node {node} sees {len(got)} edges at {limit}, not {len(there)}")
            nodes = answers[0][f"ids.{h}"]
        require(second == (0,) or bool((answers[0]["ids.1"] >= 0).any()), "edges without a time are not there")


@cache
def _peopled(*, floating: bool, own: bool) -> draw.Version:
    """Nodes of two types that came at times, edges between them that did too where ``own``, and nodes without a time, over 5 parts."""
    rng, dtype = np.random.default_rng(11), "float32" if floating else "int32"
    scale = 4 if floating else 1
    feature = (Feature(name="t", dtype=dtype),)
    kinds = tuple(NodeType(name=name, features=feature, time="t") for name in "ab")
    types = (
        EdgeType(src_type="a", relation="to", dst_type="b", weighted=True, features=feature if own else (), time="t" if own else ""),
        EdgeType(src_type="a", relation="like", dst_type="a"),
        EdgeType(src_type="a", relation="of", dst_type="z"),
    )
    nodes = {name: Nodes(ids=np.arange(40), features={"t": (rng.integers(-5, 10, 40) / scale).astype(dtype)}) for name in "ab"}
    edges = {}
    for edge_type in types:
        ends = rng.integers(0, 40, (2, 500))
        weights = rng.integers(0, 3, 500).astype(np.float32) if edge_type.weighted else None
        times = (rng.integers(-5, 10, 500) / scale).astype(dtype) if edge_type.time else None
        edges[edge_type.name] = Edges(src=ends[0], dst=ends[1], weights=weights, times=times)
    schema = Schema(node_types=(*kinds, NodeType(name="z")), edge_types=types, parts=5, direction="both")
    made = version_of(schema, nodes | {"z": Nodes(ids=np.arange(40))}, edges)
    _WRITTEN[floating, own] = nodes, edges
    return made


_WRITTEN: dict[tuple[bool, bool], tuple[dict[str, Nodes], dict[str, Edges]]] = {}
"""What versions of `_peopled` are made of."""


def an_edge_is_there_once_its_neighbor_is(scale: float) -> None:
    """Times of nodes: those of the ends that edges lead to, along and against them, beside the edges' own; on any number of hosts."""
    del scale
    for floating, own, incoming, strict in (
        (False, False, False, False),
        (True, True, True, True),
        (False, True, False, True),
        (True, False, True, False),
    ):
        version = _peopled(floating=floating, own=own)
        times = (np.arange(40) % 17 - 6) / (4 if floating else 1)
        for e, name in enumerate(("a:to:b", "a:like:a", "a:of:z")):
            told = f"{name} {'against' if incoming else 'along'} its direction, {'with' if own else 'without'} times of its own, strict {strict}"
            near_ids, since = _there(floating, own, name, incoming=incoming)
            found = [_met(sampling_of(version, hosts), e, name, times, incoming=incoming, strict=strict) for hosts in (1, *HOSTS)]
            require(all(np.array_equal(found[0][key], other[key]) for other in found for key in other), f"{told}: others on more hosts")
            met: dict[int, list[int]] = {node: [] for node in range(40)}
            for column, eid in zip(found[0][f"{'cols' if incoming else 'rows'}.{e}"].tolist(), found[0][f"eids.{e}"].tolist(), strict=True):
                met[column].append(eid)
            for node, limit in enumerate(times.tolist()):
                seen = np.flatnonzero((near_ids == node) & ((since < limit) if strict else (since <= limit))).tolist()
                require(sorted(met[node]) == seen, f"{told}: at {limit} node {node} sees {sorted(met[node])}, not {seen}")
            if np.isfinite(since).all():
                require(np.array_equal(found[0][f"times.{e}"], since[found[0][f"eids.{e}"]]), f"{told}: edges are told as of other times")


def _there(floating: bool, own: bool, name: str, *, incoming: bool) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """The near end of each edge of `_peopled`, and since when it is there; -inf: always."""
    nodes, edges = _WRITTEN[floating, own]
    src, dst = edges[name].src, edges[name].dst
    near, far, kind = (dst, src, name[0]) if incoming else (src, dst, name[-1])
    came = np.full(40, -np.inf) if kind == "z" else np.asarray(nodes[kind].features["t"], np.float64)
    times = edges[name].times
    return near, came[far] if times is None else np.where(times > came[far], times, came[far])


def _met(at: sample.Sampling, e: int, name: str, times: NDArray[Any], *, incoming: bool, strict: bool) -> dict[str, NDArray[Any]]:
    near, far = "abz".index(name[0]), "abz".index(name[-1])
    if incoming:
        near, far = far, near
    how = Subgraph(
        reach=(Reach(edge_type=e, near=near, far=far, counts=(-1,)),),
        replace=False,
        uniform=True,
        direction=pb.IN if incoming else pb.OUT,
        seed=3,
        disjoint=True,
        every=False,
        want_edge_ids=True,
        want_weights=False,
        until=until.Until(times=times, head=pb.Until(strict=strict, want_times=True)),
    )
    return subgraph.subgraph(at, how, np.arange(40), near, None)


def of_eids(eids: NDArray[np.int64], of: dict[int, float]) -> NDArray[np.float64]:
    return np.array([of[eid] for eid in eids.tolist()])


def hosts_do_not_matter_to_what_is_seen(scale: float) -> None:
    """Neighbors until times, of nodes of all parts."""
    del scale
    times = np.arange(60) % 12 - 1
    answers = []
    for hosts in (1, *HOSTS):
        how = sample.Neighbors(
            edge_types=(0,),
            count=3,
            replace=False,
            uniform=False,
            direction=pb.OUT,
            seed=9,
            hop=0,
            want_weights=True,
            want_edge_ids=True,
            want_probabilities=False,
            until=until.Until(times=times, head=pb.Until(strict=True, want_times=True)),
        )
        answers.append(sample.neighbors(sampling_of(_chain(), hosts), how, np.arange(60)[::-1].copy(), 0, None))
        require(
            bool((answers[-1]["times"] < times[:, None])[answers[-1]["ids"] >= 0].all()), f"an edge of later than its node is seen on {hosts} hosts"
        )
    for other in answers[1:]:
        require(all(np.array_equal(answers[0][name], other[name]) for name in answers[0]), "neighbors until times are others on more hosts")
