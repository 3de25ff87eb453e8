"""Draws under conditions: from what satisfies one, by weight, at every selectivity, on any number of hosts."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.kit.images import Edges, Nodes, version_of
from tests.law.checks.basis import require, require_counts
from tests.law.checks.hosts import sampling_of

from asterism_proto.errors import NotFound
from asterism_proto.schema import EdgeType, Feature, NodeType, Schema
from asterism_proto.v1 import common_pb2 as pb
from graphd import read, restriction, sample, until
from graphd.totals import EDGE, NODE
from storaged import draw

SIZE, PARTS, DEGREE = 600, 8, 4
"""Of the web of nodes and edges."""
MANY, LEAST = 1_000_000, 2000
"""Nodes that are looked for at every selectivity: at scale 1 and above, and at least."""
HOSTS = (1, 2, 3, 5, 8)
_CONDITIONS = {"x < 1": 1.0, "x < 0.5": 0.5, "x < 0.001": 1e-3, "x < 0.000001": 1e-6}
"""With their selectivities: ``x`` is even in 0 .. 1, but for three nodes that satisfy the last one."""
_OF_NODES = NodeType(name="n", weighted=True, features=(Feature(name="x", dtype="float64"),))

Columns = dict[str, NDArray[Any]]


def _population(size: int) -> Columns:
    """Columns of nodes: one that decides, and weights from 0 over several orders of magnitude."""
    rng = np.random.default_rng(4)
    x = (np.arange(size) + 0.5) / size
    x[:3] = (5e-7, 6e-7, 7e-7)
    rng.shuffle(x)
    weights = np.where(rng.random(size) < 0.2, 0, np.exp(rng.normal(size=size) * 2)).astype(np.float32)
    weights[x < 1e-6] = (3, 1, 2)
    return {"x": x, "w": weights}


@cache
def _many(size: int, *, indexed: bool = False) -> tuple[draw.Version, Columns]:
    """Nodes alone."""
    of = _population(size)
    schema = Schema(node_types=(_OF_NODES,), parts=PARTS)
    indexes = (("x", "range"),) if indexed else ()
    return version_of(schema, {"n": Nodes(ids=np.arange(size, dtype=np.int64), weights=of["w"], features={"x": of["x"]}, indexes=indexes)}), of


@cache
def _web() -> tuple[draw.Version, Columns]:
    """Nodes, and edges with a column that decides."""
    of, m, rng = _population(SIZE), DEGREE * SIZE, np.random.default_rng(5)
    src, dst, y = rng.integers(0, SIZE, m), rng.integers(0, SIZE, m), rng.random(m)
    weights = np.where(rng.random(m) < 0.2, 0, np.exp(rng.normal(size=m))).astype(np.float32)
    schema = Schema(
        node_types=(_OF_NODES,),
        edge_types=(EdgeType(src_type="n", relation="e", dst_type="n", weighted=True, features=(Feature(name="y", dtype="float64"),)),),
        parts=PARTS,
        direction="both",
    )
    nodes = {"n": Nodes(ids=np.arange(SIZE, dtype=np.int64), weights=of["w"], features={"x": of["x"]})}
    version = version_of(schema, nodes, {"n:e:n": Edges(src=src, dst=dst, weights=weights, features={"y": y})})
    return version, of | {"src": src, "dst": dst, "y": y, "ew": weights}


def _by(hosts: int, element: int, where: str, direction: pb.Direction = pb.OUT, version: draw.Version | None = None) -> sample.Sampling:
    head = SimpleNamespace(weight="", where=where, direction=direction)
    return restriction.by(sampling_of(version or _web()[0], hosts), element, [0], head)


def _nodes(by: sample.Sampling, count: int, *, uniform: bool = False, distinct: bool = False) -> Columns:
    what = sample.Global(element=NODE, types=(0,), seed=1, count=count, uniform=uniform, distinct=distinct, want_probabilities=True)
    return sample.draw(by, what)


def _near(where: str, nodes: NDArray[np.int64], count: int, *, hosts: int = 1, replace: bool = True, uniform: bool = False) -> Columns:
    how = sample.Neighbors(
        edge_types=(0,),
        count=count,
        replace=replace,
        uniform=uniform,
        direction=pb.OUT,
        seed=3,
        hop=0,
        want_weights=True,
        want_edge_ids=True,
        want_probabilities=True,
    )
    return sample.neighbors(_by(hosts, EDGE, where), how, nodes, 0, None)


def conditions_leave_the_weights_among_what_satisfies_them(scale: float) -> None:
    """Nodes of each selectivity, by weight and uniformly, and what nothing satisfies."""
    size = max(int(MANY * min(scale, 1.0) ** 3), LEAST)
    version, of = _many(size)
    n = int(40_000 * scale)
    for where, bound in _CONDITIONS.items():
        by = _by(1, NODE, where, version=version)
        for uniform in (False, True):
            law = np.where(of["x"] < bound, 1.0 if uniform else of["w"].astype(np.float64), 0.0)
            drawn = _nodes(by, n, uniform=uniform)
            require(len(drawn["ids"]) == n, f"{where}: {len(drawn['ids'])} draws of {n}")
            require_counts(np.bincount(drawn["ids"], minlength=size), law / law.sum() * n, f"nodes where {where}")
            require(bool(np.allclose(drawn["probabilities"], (law / law.sum())[drawn["ids"]])), f"{where}: probabilities are not their shares")
        some = min(int(((of["x"] < bound) & (of["w"] > 0)).sum()), 50)
        found = _nodes(by, some, distinct=True)["ids"]
        require(len(set(found.tolist())) == some, f"{where}: different nodes are not, or too few")
        require(bool((of["x"][found] < bound).all()), f"{where}: a node that does not satisfy it")
    try:
        _nodes(_by(1, NODE, "x < 0", version=version), 1)
    except NotFound:
        return
    require(False, "something was drawn where nothing satisfies the condition")


def indexes_leave_the_weights_among_what_satisfies_conditions(scale: float) -> None:
    """Nodes of each selectivity, by blocks of an index: by weight and uniformly, and what nothing satisfies."""
    size = max(int(MANY * min(scale, 1.0) ** 3), LEAST)
    version, of = _many(size, indexed=True)
    n = int(40_000 * scale)
    for where, bound in (*_CONDITIONS.items(), ("not x >= 0.5", 0.5), ("x < 0.001 or x < 0.5", 0.5)):
        by = _by(1, NODE, where, version=version)
        require(by.way == "index on x (range)", f"{where}: {by.way}")
        for uniform in (False, True):
            law = np.where(of["x"] < bound, 1.0 if uniform else of["w"].astype(np.float64), 0.0)
            drawn = _nodes(by, n, uniform=uniform)
            require(len(drawn["ids"]) == n, f"{where}: {len(drawn['ids'])} draws of {n}")
            require_counts(np.bincount(drawn["ids"], minlength=size), law / law.sum() * n, f"nodes of an index where {where}")
            require(bool(np.allclose(drawn["probabilities"], (law / law.sum())[drawn["ids"]])), f"{where}: probabilities are not their shares")
            require(
                np.array_equal(_nodes(by, 9, uniform=uniform)["ids"], drawn["ids"][:9]), f"{where}: the first nine are not those of a draw of nine"
            )
        some = min(int(((of["x"] < bound) & (of["w"] > 0)).sum()), 50)
        found = _nodes(by, some, distinct=True)["ids"]
        require(len(set(found.tolist())) == some, f"{where}: different nodes are not, or too few")
        require(bool((of["x"][found] < bound).all()), f"{where}: a node that does not satisfy it")
    try:
        _nodes(_by(1, NODE, "x < 0", version=version), 1)
    except NotFound:
        return
    require(False, "something was drawn where nothing satisfies the condition")


def conditions_leave_the_weights_of_edges_and_neighbors(scale: float) -> None:
    """Edges and neighbors under conditions that read the edge, its source and its destination."""
    _, of = _web()
    n = int(40_000 * scale)
    for where, mask in (("y < 0.5", of["y"] < 0.5), ("dst.x < 0.1 and src.x > 0.2", (of["x"][of["dst"]] < 0.1) & (of["x"][of["src"]] > 0.2))):
        law = np.where(mask, of["ew"].astype(np.float64), 0.0)
        what = sample.Global(element=EDGE, types=(0,), seed=5, count=n, uniform=False, distinct=False, want_probabilities=False)
        drawn = sample.draw(_by(1, EDGE, where), what)
        require_counts(np.bincount(drawn["eids"], minlength=law.size), law / law.sum() * n, f"edges where {where}")
        busiest = int(np.bincount(of["src"], law > 0, SIZE).argmax())
        for uniform in (False, True):
            own = np.where((of["src"] == busiest) & mask, 1.0 if uniform else of["ew"].astype(np.float64), 0.0)
            found = _near(where, np.full(n, busiest), 1, uniform=uniform)["eids"].ravel()
            require_counts(np.bincount(found, minlength=law.size), own / own.sum() * n, f"neighbors where {where}")
    alone = np.flatnonzero(np.bincount(of["src"], of["y"] < 0.5, SIZE) == 0)
    require(bool((_near("y < 0.5", alone[:20], 3)["ids"] == -1).all()), "a node without such edges has neighbors")
    every = _near("y < 0.5", np.arange(SIZE), 30, replace=False, uniform=True)["eids"]
    require(sorted(every[every >= 0].tolist()) == np.flatnonzero(of["y"] < 0.5).tolist(), "a node with few such edges does not give all of them")
    into = read.degrees(_by(1, EDGE, "y < 0.5 and dst.x < 0.3", pb.IN), [0], pb.IN, np.arange(SIZE), 0, None)["degrees"].ravel()
    satisfied = (of["y"] < 0.5) & (of["x"][of["dst"]] < 0.3)
    require(into.tolist() == np.bincount(of["dst"], satisfied, SIZE).tolist(), "in-copies satisfy something else than out-copies")


def hosts_do_not_matter_under_conditions(scale: float) -> None:
    """Byte for byte, where each host has its own parts only and asks the others what it can not tell."""
    others = HOSTS[1:] if scale >= 1 else (3,)
    nodes = np.arange(0, SIZE, 17)
    where = "y < 0.7 and dst.x < 0.5 or src.x > 0.9"

    def answers(hosts: int) -> list[Columns]:
        what = sample.Global(element=EDGE, types=(0,), seed=5, count=200, uniform=False, distinct=True, want_probabilities=True)
        return [
            *(_nodes(_by(hosts, NODE, each), 300) for each in _CONDITIONS),
            _nodes(_by(hosts, NODE, "x < 0.5"), 100, distinct=True),
            sample.draw(_by(hosts, EDGE, where), what),
            _near(where, nodes, 4, hosts=hosts),
            _near(where, nodes, 4, hosts=hosts, replace=False),
            read.degrees(_by(hosts, EDGE, where, pb.IN), [0], pb.IN, nodes, 0, None),
        ]

    many = _many(LEAST, indexed=True)[0]

    def of_index(hosts: int) -> list[Columns]:
        by = [_by(hosts, NODE, each, version=many) for each in ("x < 0.5", "x < 0.001", "x != 0.3 and x > 0.1")]
        return [
            *(_nodes(each, 300, uniform=uniform) for each in by for uniform in (False, True)),
            _nodes(by[0], 100, distinct=True),
            *(_nodes(by[1], 3, distinct=True, uniform=True) for _ in by),
        ]

    expected, of_one = answers(HOSTS[0]), of_index(HOSTS[0])
    for hosts in others:
        for one, other in zip(expected + of_one, answers(hosts) + of_index(hosts), strict=True):
            same = one.keys() == other.keys() and all(one[name].tobytes() == other[name].tobytes() for name in one)
            require(same, f"{hosts} hosts give other bytes than one")


@cache
def _dated(left: bool) -> draw.Version:
    """Edges of few nodes at few times, with a column that decides; only those that satisfy it where ``left``."""
    rng, m = np.random.default_rng(6), 900
    src, dst = rng.integers(0, 30, (2, m))
    y, times, weights = rng.random(m), rng.integers(0, 20, m).astype(np.int16), rng.integers(0, 4, m).astype(np.float32)
    kept = np.flatnonzero(y < 0.4) if left else np.arange(m)
    features = (Feature(name="y", dtype="float64"), Feature(name="t", dtype="int16"))
    schema = Schema(
        node_types=(NodeType(name="n"),),
        edge_types=(EdgeType(src_type="n", relation="e", dst_type="n", weighted=True, features=features, time="t"),),
        parts=PARTS,
        direction="both",
    )
    edges = Edges(src=src[kept], dst=dst[kept], weights=weights[kept], eids=kept, features={"y": y[kept], "t": times[kept]}, times=times[kept])
    return version_of(schema, {"n": Nodes(ids=np.arange(30))}, {"n:e:n": edges})


def times_of_what_a_condition_leaves_are_in_order(scale: float) -> None:
    """Draws until times under a condition are, bit for bit, those of a graph that never had the other edges."""
    del scale
    nodes = np.tile(np.arange(30), 10)
    seen = until.Until(times=np.arange(nodes.size) % 23 - 1, head=pb.Until(want_times=True))
    latest = until.Until(times=seen.times, head=pb.Until(want_times=True, last=True))
    ways = [(replace, uniform, seen) for replace in (False, True) for uniform in (False, True)]
    for direction in (pb.OUT, pb.IN):
        for replace, uniform, times in (*ways, (False, False, latest)):
            how = sample.Neighbors(
                edge_types=(0,),
                count=5,
                replace=replace,
                uniform=uniform,
                direction=direction,
                seed=3,
                hop=0,
                want_weights=True,
                want_edge_ids=True,
                want_probabilities=False,
                until=times,
            )
            expected = sample.neighbors(sampling_of(_dated(True)), how, nodes, 0, None)
            require(bool((expected["ids"] >= 0).any()), "nothing is seen")
            for hosts in (1, 3):
                found = sample.neighbors(_by(hosts, EDGE, "y < 0.4", direction, _dated(False)), how, nodes, 0, None)
                require(all(np.array_equal(found[name], expected[name]) for name in expected), f"until times, y < 0.4, on {hosts} hosts: other draws")
