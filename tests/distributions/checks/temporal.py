"""Checks of temporal sampling: by each distribution, direction, tree and number of hosts.

Every node samples from the edges visible at its own time.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.distributions.checks.basis import require, require_counts
from tests.distributions.checks.hosts import request_context
from tests.distributions.checks.neighborhoods import order_probabilities
from tests.kit.images import Edges, Nodes, version_of

from asterism_graphkit.operators.khop import HopFanout
from asterism_model.excluded_edges import ExcludedEdges
from asterism_model.schema import EdgeType, Feature, NodeType, Schema
from asterism_proto.v1 import common_pb2 as common_pb
from graphd.operators import fanout_sampling, neighbor_sampling, subgraphs, temporal_filters
from graphd.operators.request_context import RequestContext
from graphd.operators.subgraphs import SubgraphParams
from storaged import sampling as draw

HOSTS = (2, 3)
VisibleEdges = list[tuple[int, int, float]]
"""(edge type, neighbor, weight), by (edge type, time, neighbor)."""

EDGES: tuple[tuple[tuple[float, float], ...], ...] = (
    ((3, 1.0), (-2, 2.0), (3, 0.0), (5, 4.0), (3, 3.0), (-7, 0.0)),
    ((4, 1.0), (3, 5.0), (-2, 2.0)),
    ((0, 95.0), (1, 2.0), (1, 2.0), (2, 1.0)),
)
"""(time, weight) of the edges of each type, by neighbor.

They are unordered, with equal times, weights of 0, and one so heavy that sampling switches to
exponential keys.
"""
TIMES = (-8, -7, -2, 2, 3, 4, 5, 9)
DECOYS = ((1, -9, 50.0), (2, 3, 1.0), (7, -9, 20.0))
"""(neighbor, time, weight) of further edges of each type, to exclude; some are parallel."""


@cache
def _star(*, floating: bool, incoming: bool, decoys: bool = False) -> draw.LocalVersion:
    """Return node 0 and its edges of three types; the remote ends have edges too.

    Ids are chosen so that the ends of slots differ between directions. With ``decoys``, the last
    edges of each type are `DECOYS`.
    """
    names = ("n:a:n", "n:b:n", "n:c:n")
    dtype = "float32" if floating else "int16"
    types = tuple(
        EdgeType(
            src_type="n",
            relation=relation,
            dst_type="n",
            weighted=True,
            features=(Feature(name="t", dtype=dtype),),
            time="t",
        )
        for relation in "abc"
    )
    edges = {}
    for name, type_edges in zip(names, EDGES, strict=True):
        local_ends, remote_ends = (
            np.zeros(len(type_edges), np.int64),
            np.arange(len(type_edges)) + 1,
        )
        times, weights = (np.array(column) for column in zip(*type_edges, strict=True))
        # Edges in the other direction, visible at once: an order of the wrong direction would
        # differ.
        further = np.array(DECOYS if decoys else []).reshape(-1, 3)
        src = np.r_[remote_ends, np.full(4, 9), further[:, 0].astype(np.int64)]
        dst = np.r_[local_ends, np.arange(4) + 3, np.zeros(len(further), np.int64)]
        if not incoming:
            src, dst = dst, src
        times = np.r_[times, np.full(4, -9), further[:, 1]]
        edges[name] = Edges(
            src=src,
            dst=dst,
            weights=np.r_[weights, np.ones(4), further[:, 2]].astype(np.float32),
            times=(times / (8 if floating else 1)).astype(dtype),
        )
    schema = Schema(node_types=(NodeType(name="n"),), edge_types=types, parts=1, direction="both")
    return version_of(schema, {"n": Nodes(ids=np.arange(10))}, edges)


def _without_decoys(
    version: draw.LocalVersion, types: tuple[int, ...], *, incoming: bool
) -> draw.LocalVersion:
    """Return a star with decoys, of which a request excludes them by edge id."""
    local, remote = np.zeros(len(DECOYS), np.int64), np.array([edge[0] for edge in DECOYS])
    excluded = ExcludedEdges.concatenate(
        [
            ExcludedEdges(
                types=np.full(len(DECOYS), t, np.int32),
                src=remote if incoming else local,
                dst=local if incoming else remote,
                eids=len(EDGES[t]) + 4 + np.arange(len(DECOYS)),
            )
            for t in types
        ]
    )
    return draw.exclude_edges(
        version, excluded, edge_types=list(types), direction=2 if incoming else 1
    )


def _visible_edges(types: tuple[int, ...], time: float, *, strict: bool) -> VisibleEdges:
    edges: VisibleEdges = []
    for number, t in enumerate(types):
        visible = [
            (edge_time, i + 1, weight)
            for i, (edge_time, weight) in enumerate(EDGES[t])
            if (edge_time < time if strict else edge_time <= time)
        ]
        edges += [(number, neighbor, weight) for _, neighbor, weight in sorted(visible)]
    return edges


def _sample_by_time(
    types: tuple[int, ...],
    positions: int,
    count: int,
    *,
    replace: bool,
    uniform: bool = False,
    last: bool = False,
    strict: bool = False,
    **star_options: bool,
) -> dict[float, list[list[tuple[int, int]]]]:
    """Return (edge type, neighbor) of the draws of node 0 at every time, in one request.

    There are ``positions`` positions per time. The times of the draws are checked.
    """
    version, floating = _star(**star_options), star_options["floating"]
    if star_options.get("decoys"):
        version = _without_decoys(version, types, incoming=star_options["incoming"])
    times = np.tile(np.array(TIMES), positions)
    samples = draw.sample_temporal_neighbors(
        version,
        edge_types=list(types),
        node_type=0,
        ids=np.zeros(times.size, np.int64),
        positions=np.arange(times.size),
        count=count,
        replace=replace,
        uniform=uniform,
        direction=2 if star_options["incoming"] else 1,
        seed=5,
        hop=0,
        want_weights=True,
        want_edge_ids=True,
        temporal_filter=draw.TemporalFilter(
            times=times / 8 if floating else times, strict=strict, last=last, want_times=True
        ),
    )
    kinds = (
        np.zeros_like(samples.ids)
        if samples.types is None
        else np.searchsorted(types, samples.types)
    )
    assert samples.times is not None
    assert samples.weights is not None
    assert samples.eids is not None
    draws_by_time: dict[float, list[list[tuple[int, int]]]] = {time: [] for time in TIMES}
    columns = (kinds, samples.ids, samples.times, samples.weights, samples.eids)
    checked: set[tuple[float, ...]] = set()
    for time, *rows in zip(times.tolist(), *(column.tolist() for column in columns), strict=True):
        draws = list(zip(*rows, strict=True))
        ends = [(kind, neighbor) for kind, neighbor, *_ in draws]
        for kind, neighbor, edge_time_read, weight_read, eid in draws:
            key = (time, kind, neighbor, edge_time_read, weight_read, eid)
            if key in checked:
                continue
            checked.add(key)
            edge_time, weight = (
                EDGES[types[kind]][neighbor - 1]
                if 0 < neighbor <= len(EDGES[types[kind]])
                else (0, 0)
            )
            require(neighbor < 9, f"neighbor {neighbor} is of an edge the other way round")
            require(
                neighbor < 0 or (edge_time < time if strict else edge_time <= time),
                f"an edge of {edge_time} is seen at {time}, strict {strict}",
            )
            sampled = (float(edge_time_read) * (8 if floating else 1), weight_read, eid)
            require(
                sampled == (edge_time, weight, neighbor - 1 if neighbor > 0 else -1),
                f"an edge of {edge_time, weight} to {neighbor} is returned as {sampled}",
            )
        draws_by_time[time].append(ends)
    return draws_by_time


def visible_edges_are_drawn_by_their_distribution(scale: float) -> None:
    """Every outcome has its probability among visible edges, at every time.

    Draws are with and without replacement, weighted and uniform.
    """
    _require_visible_draws(int(max(60, 2500 * scale)), decoys=False)


def excluded_edges_leave_visible_ones(scale: float) -> None:
    """Excluded edges that would be visible do not change the distribution of the others."""
    _require_visible_draws(int(max(60, 2500 * scale)), decoys=True)


def _require_visible_draws(positions: int, *, decoys: bool) -> None:
    """Require draws among visible edges to follow their distribution, at every time."""
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
        for time, rows in _sample_by_time(
            types,
            positions,
            2,
            replace=replace,
            uniform=uniform,
            strict=strict,
            floating=floating,
            incoming=types == (0,),
            decoys=decoys,
        ).items():
            visible = _visible_edges(types, time, strict=strict)
            ends: list[tuple[int, int]] = [(t, neighbor) for t, neighbor, _ in visible]
            weights = [1.0 if uniform else weight for *_, weight in visible]
            name = (
                f"{'uniform ' * uniform}draws {'with' if replace else 'without'} replacement "
                f"of {types} at {time}, strict {strict}"
            )
            if not sum(weights):
                require(
                    all(neighbor == -1 for row in rows for _, neighbor in row),
                    f"{name}: nothing is seen, and drawn",
                )
                continue
            if replace:
                expected = {
                    (a, b): weights[a] * weights[b] / sum(weights) ** 2
                    for a in range(len(visible))
                    for b in range(len(visible))
                }
            elif len(visible) <= 2:
                all_edges = [i for i, weight in enumerate(weights) if weight]
                expected = {tuple([*all_edges, -1, -1][:2]): 1.0}
            else:
                expected = dict(order_probabilities(weights, 2))
            observed = Counter(
                tuple(ends.index(end) if end[1] >= 0 else -1 for end in row) for row in rows
            )
            require(
                all(expected.get(outcome, 0) for outcome in observed),
                f"{name}: something impossible was drawn",
            )
            require_counts(
                [observed[key] for key in expected],
                [p * len(rows) for p in expected.values()],
                name,
            )


def last_neighbors_are_the_latest(scale: float) -> None:
    """The strategy `last` returns the latest edges, at every time, strict or not, in both
    directions.

    For equal times, the later edge type comes first, then the later slot.
    """
    del scale
    for incoming, strict, floating in (
        (False, False, False),
        (True, True, True),
        (True, False, False),
    ):
        for types in ((0,), (0, 1)):
            for time, rows in _sample_by_time(
                types,
                1,
                4,
                replace=False,
                last=True,
                strict=strict,
                floating=floating,
                incoming=incoming,
            ).items():
                visible = sorted(
                    (EDGES[types[t]][neighbor - 1][0], t, neighbor)
                    for t, neighbor, _ in _visible_edges(types, time, strict=strict)
                )
                expected = [(t, neighbor) for _, t, neighbor in reversed(visible)][:4]
                got = [end for end in rows[0] if end[1] >= 0]
                require(
                    got == expected,
                    f"the last 4 of {types} at {time}, strict {strict}, are {got}, not {expected}",
                )


def fewer_are_the_first_of_more(scale: float) -> None:
    """Fewer draws are a prefix of more, also beyond the bound on rejections."""
    del scale
    for uniform, last in ((False, False), (True, False), (True, True)):
        draws_by_count = [
            _sample_by_time(
                (0, 1),
                6,
                count,
                replace=False,
                uniform=uniform,
                last=last,
                floating=False,
                incoming=False,
            )
            for count in (2, 5)
        ]
        for time in TIMES[-2:]:
            require(
                all(
                    few == more[:2]
                    for few, more in zip(
                        draws_by_count[0][time], draws_by_count[1][time], strict=True
                    )
                ),
                f"the first 2 of 5 at {time} differ",
            )


@cache
def _timed_graph() -> draw.LocalVersion:
    """Return nodes 0 .. 59 with edges at times 0 .. 9 and without times, in 5 partitions."""
    rng = np.random.default_rng(2)
    src, dst, times = rng.integers(0, 60, 900), rng.integers(0, 60, 900), rng.integers(0, 10, 900)
    weights = rng.integers(0, 3, 900).astype(np.float32)
    feature = (Feature(name="t", dtype="float64"),)
    types = (
        EdgeType(
            src_type="n", relation="t", dst_type="n", weighted=True, features=feature, time="t"
        ),
        EdgeType(src_type="n", relation="u", dst_type="n"),
    )
    edges = {
        "n:t:n": Edges(src=src, dst=dst, weights=weights, times=times.astype(np.float64)),
        "n:u:n": Edges(src=dst[:60], dst=src[:60]),
    }
    return version_of(
        Schema(node_types=(NodeType(name="n"),), edge_types=types, parts=5, direction="both"),
        {"n": Nodes(ids=np.arange(60))},
        edges,
    )


def _sample_subgraph(
    hosts: int,
    times: NDArray[Any],
    counts: tuple[int, ...],
    *,
    strict: bool = False,
    last: bool = False,
) -> dict[str, NDArray[Any]]:
    params = SubgraphParams(
        fanouts=tuple(
            HopFanout(edge_type=e, local_type=0, remote_type=0, counts=counts) for e in (0, 1)
        ),
        replace=False,
        uniform=False,
        direction=common_pb.IN,
        seed=3,
        disjoint=True,
        expand_all_hops=False,
        want_edge_ids=True,
        want_weights=True,
        temporal_filter=temporal_filters.TemporalFilter(
            times=times, head=common_pb.TemporalFilter(strict=strict, last=last, want_times=True)
        ),
    )
    return subgraphs.sample_subgraph(
        request_context(_timed_graph(), hosts), params, np.arange(len(times)), 0, None
    )


def seed_times_hold_for_their_trees(scale: float) -> None:
    """All edges of a tree are visible at its seed's time, on any number of hosts.

    A request for all neighbors misses none.
    """
    del scale
    version, times = _timed_graph(), np.arange(40) % 12 - 1
    edge = version.parts
    time_keys = {
        int(e): int(w)
        for part in edge.values()
        for e, w in zip(part.edges[0].outgoing.eid, part.edges[0].outgoing.when, strict=True)
    }
    times_by_eid = {
        int(e): float(t)
        for e, t in zip(
            time_keys, np.array(list(time_keys.values()), np.int64).view(np.float64), strict=True
        )
    }
    incoming: dict[int, list[int]] = {}
    for part in edge.values():
        side = part.edges[0].incoming
        assert side is not None
        for row, (start, stop) in enumerate(zip(side.indptr[:-1], side.indptr[1:], strict=True)):
            incoming[row * 5 + part.part] = side.eid[start:stop].tolist()
    for strict in (False, True):
        reply = _sample_subgraph(1, times, (-1, -1), strict=strict)
        columns, trees = reply["cols.0"], reply["trees.0"]
        require(
            reply["times.0"].size == columns.size,
            f"{reply['times.0'].size} times of {columns.size} edges",
        )
        eids_by_column: dict[int, list[int]] = {}
        for column, eid, reply_time in zip(
            columns.tolist(), reply["eids.0"].tolist(), reply["times.0"].tolist(), strict=True
        ):
            limit = times[trees[column]]
            require(
                times_by_eid[eid] < limit if strict else times_by_eid[eid] <= limit,
                f"an edge of {times_by_eid[eid]} is in a tree of {limit}, strict {strict}",
            )
            require(
                reply_time == times_by_eid[eid],
                f"an edge of {times_by_eid[eid]} is returned with the time {reply_time}",
            )
            eids_by_column.setdefault(column, []).append(eid)
        expanded = int(reply["node_counts"][0, :2].sum())
        for column in range(expanded):
            limit = times[trees[column]]
            visible = {
                eid
                for eid in incoming[int(reply["nodes.0"][column])]
                if (times_by_eid[eid] < limit if strict else times_by_eid[eid] <= limit)
            }
            require(
                sorted(eids_by_column.get(column, [])) == sorted(visible),
                (
                    f"all that is seen at {limit} are {len(visible)} edges, not "
                    f"{len(eids_by_column.get(column, []))}"
                ),
            )
        require(
            "rows.1" in reply and reply["rows.1"].size > 0, "edges without a time are not there"
        )
    for last in (False, True):
        single_host_reply = _sample_subgraph(1, times, (2, 3), last=last)
        require(
            bool(
                (
                    times_of_eids(single_host_reply["eids.0"], times_by_eid)
                    <= times[single_host_reply["trees.0"][single_host_reply["cols.0"]]]
                ).all()
            ),
            "a drawn edge is of later than its seed",
        )
        for hosts in HOSTS:
            distributed_reply = _sample_subgraph(hosts, times, (2, 3), last=last)
            require(
                all(
                    np.array_equal(single_host_reply[name], distributed_reply[name])
                    for name in single_host_reply
                ),
                f"a subgraph until times is another one on {hosts} hosts",
            )


def node_times_hold_for_their_draws(scale: float) -> None:
    """Paths of two hops follow the time of their start.

    Large counts return all visible edges; types without times are unaffected.
    """
    del scale
    version, times, count = _timed_graph(), np.arange(60) % 12 - 1, 40
    common: dict[str, Any] = {
        "replace": False,
        "uniform": True,
        "direction": common_pb.OUT,
        "seed": 9,
        "want_weights": False,
        "want_probabilities": False,
    }
    edges: dict[int, list[tuple[int, float]]] = {node: [] for node in range(60)}
    for part in version.parts.values():
        side = part.edges[0].outgoing
        for row, (start, stop) in enumerate(zip(side.indptr[:-1], side.indptr[1:], strict=True)):
            edges[row * 5 + part.part] = list(
                zip(
                    side.eid[start:stop].tolist(),
                    side.when[start:stop].view(np.float64).tolist(),
                    strict=True,
                )
            )
    for strict, second in ((False, (0,)), (True, (0,)), (False, (1,))):
        as_of = temporal_filters.TemporalFilter(
            times=times, head=common_pb.TemporalFilter(strict=strict, want_times=True)
        )
        hops = [
            neighbor_sampling.NeighborParams(
                edge_types=types,
                count=count,
                hop=h,
                want_edge_ids=True,
                temporal_filter=as_of if types == (0,) else None,
                **common,
            )
            for h, types in enumerate(((0,), second))
        ]
        replies = [
            fanout_sampling.sample_fanout(
                request_context(version, hosts), hops, np.arange(60), 0, None
            )
            for hosts in (1, *HOSTS)
        ]
        require(
            all(
                np.array_equal(replies[0][name], other[name]) for other in replies for name in other
            ),
            "fanouts until times are others on more hosts",
        )
        nodes = np.arange(60)
        for h, types in enumerate(((0,), second)):
            eids = replies[0][f"eids.{h}"].reshape(len(nodes), count)
            for position, node in enumerate(nodes.tolist()) if types == (0,) else ():
                limit = times[position // (count if h else 1)]
                visible = {
                    eid
                    for eid, edge_time in edges.get(node, [])
                    if (edge_time < limit if strict else edge_time <= limit)
                }
                sampled = set(eids[position].tolist()) - {-1}
                require(
                    sampled == visible,
                    (
                        f"hop {h}, strict {strict}: node {node} sees {len(sampled)} edges at "
                        f"{limit}, not {len(visible)}"
                    ),
                )
            nodes = replies[0][f"ids.{h}"]
        require(
            second == (0,) or bool((replies[0]["ids.1"] >= 0).any()),
            "edges without a time are not there",
        )


@cache
def _node_time_graph(*, floating: bool, has_own_times: bool) -> draw.LocalVersion:
    """Return nodes of two types with times, and nodes without, in 5 partitions.

    Edges between them have times too if ``has_own_times``.
    """
    rng, dtype = np.random.default_rng(11), "float32" if floating else "int32"
    scale = 4 if floating else 1
    feature = (Feature(name="t", dtype=dtype),)
    node_types = tuple(NodeType(name=name, features=feature, time="t") for name in "ab")
    types = (
        EdgeType(
            src_type="a",
            relation="to",
            dst_type="b",
            weighted=True,
            features=feature if has_own_times else (),
            time="t" if has_own_times else "",
        ),
        EdgeType(src_type="a", relation="like", dst_type="a"),
        EdgeType(src_type="a", relation="of", dst_type="z"),
    )
    nodes = {
        name: Nodes(
            ids=np.arange(40), features={"t": (rng.integers(-5, 10, 40) / scale).astype(dtype)}
        )
        for name in "ab"
    }
    edges = {}
    for edge_type in types:
        ends = rng.integers(0, 40, (2, 500))
        weights = rng.integers(0, 3, 500).astype(np.float32) if edge_type.weighted else None
        times = (rng.integers(-5, 10, 500) / scale).astype(dtype) if edge_type.time else None
        edges[edge_type.name] = Edges(src=ends[0], dst=ends[1], weights=weights, times=times)
    schema = Schema(
        node_types=(*node_types, NodeType(name="z")), edge_types=types, parts=5, direction="both"
    )
    version = version_of(schema, nodes | {"z": Nodes(ids=np.arange(40))}, edges)
    _INPUTS[floating, has_own_times] = nodes, edges
    return version


_INPUTS: dict[tuple[bool, bool], tuple[dict[str, Nodes], dict[str, Edges]]] = {}
"""Inputs of the versions of `_node_time_graph`."""


def edges_appear_with_their_neighbors(scale: float) -> None:
    """Edges are visible once their neighbor exists, in both directions, on all hosts.

    Edges may have their own times in addition.
    """
    del scale
    for floating, has_own_times, incoming, strict in (
        (False, False, False, False),
        (True, True, True, True),
        (False, True, False, True),
        (True, False, True, False),
    ):
        version = _node_time_graph(floating=floating, has_own_times=has_own_times)
        times = (np.arange(40) % 17 - 6) / (4 if floating else 1)
        for e, name in enumerate(("a:to:b", "a:like:a", "a:of:z")):
            case = (
                f"{name} {'against' if incoming else 'along'} its direction, "
                f"{'with' if has_own_times else 'without'} times of its own, strict {strict}"
            )
            local_ends, since = _visible_since(floating, has_own_times, name, incoming=incoming)
            replies = [
                _sample_visible(
                    request_context(version, hosts),
                    e,
                    name,
                    times,
                    incoming=incoming,
                    strict=strict,
                )
                for hosts in (1, *HOSTS)
            ]
            require(
                all(
                    np.array_equal(replies[0][key], other[key])
                    for other in replies
                    for key in other
                ),
                f"{case}: others on more hosts",
            )
            eids_by_node: dict[int, list[int]] = {node: [] for node in range(40)}
            for column, eid in zip(
                replies[0][f"{'cols' if incoming else 'rows'}.{e}"].tolist(),
                replies[0][f"eids.{e}"].tolist(),
                strict=True,
            ):
                eids_by_node[column].append(eid)
            for node, limit in enumerate(times.tolist()):
                visible = np.flatnonzero(
                    (local_ends == node) & ((since < limit) if strict else (since <= limit))
                ).tolist()
                require(
                    sorted(eids_by_node[node]) == visible,
                    (
                        f"{case}: at {limit} node {node} sees {sorted(eids_by_node[node])}, not "
                        f"{visible}"
                    ),
                )
            if np.isfinite(since).all():
                require(
                    np.array_equal(replies[0][f"times.{e}"], since[replies[0][f"eids.{e}"]]),
                    f"{case}: edges are returned with other times",
                )


def _visible_since(
    floating: bool, has_own_times: bool, name: str, *, incoming: bool
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return the local end of each edge of `_node_time_graph`, and its first visible time.

    -inf means always.
    """
    nodes, edges = _INPUTS[floating, has_own_times]
    src, dst = edges[name].src, edges[name].dst
    local_ends, remote_ends, remote_type = (dst, src, name[0]) if incoming else (src, dst, name[-1])
    node_times = (
        np.full(40, -np.inf)
        if remote_type == "z"
        else np.asarray(nodes[remote_type].features["t"], np.float64)
    )
    times = edges[name].times
    return local_ends, node_times[remote_ends] if times is None else np.where(
        times > node_times[remote_ends], times, node_times[remote_ends]
    )


def _sample_visible(
    context: RequestContext,
    e: int,
    name: str,
    times: NDArray[Any],
    *,
    incoming: bool,
    strict: bool,
) -> dict[str, NDArray[Any]]:
    local_type, remote_type = "abz".index(name[0]), "abz".index(name[-1])
    if incoming:
        local_type, remote_type = remote_type, local_type
    params = SubgraphParams(
        fanouts=(
            HopFanout(edge_type=e, local_type=local_type, remote_type=remote_type, counts=(-1,)),
        ),
        replace=False,
        uniform=True,
        direction=common_pb.IN if incoming else common_pb.OUT,
        seed=3,
        disjoint=True,
        expand_all_hops=False,
        want_edge_ids=True,
        want_weights=False,
        temporal_filter=temporal_filters.TemporalFilter(
            times=times, head=common_pb.TemporalFilter(strict=strict, want_times=True)
        ),
    )
    return subgraphs.sample_subgraph(context, params, np.arange(40), local_type, None)


def times_of_eids(eids: NDArray[np.int64], times_by_eid: dict[int, float]) -> NDArray[np.float64]:
    return np.array([times_by_eid[eid] for eid in eids.tolist()])


def hosts_do_not_change_visible_edges(scale: float) -> None:
    """Temporal neighbors of nodes in all partitions do not depend on hosts."""
    del scale
    times = np.arange(60) % 12 - 1
    replies = []
    for hosts in (1, *HOSTS):
        params = neighbor_sampling.NeighborParams(
            edge_types=(0,),
            count=3,
            replace=False,
            uniform=False,
            direction=common_pb.OUT,
            seed=9,
            hop=0,
            want_weights=True,
            want_edge_ids=True,
            want_probabilities=False,
            temporal_filter=temporal_filters.TemporalFilter(
                times=times, head=common_pb.TemporalFilter(strict=True, want_times=True)
            ),
        )
        replies.append(
            neighbor_sampling.sample_neighbors(
                request_context(_timed_graph(), hosts), params, np.arange(60)[::-1].copy(), 0, None
            )
        )
        require(
            bool((replies[-1]["times"] < times[:, None])[replies[-1]["ids"] >= 0].all()),
            f"an edge of later than its node is seen on {hosts} hosts",
        )
    for other in replies[1:]:
        require(
            all(np.array_equal(replies[0][name], other[name]) for name in replies[0]),
            "neighbors until times are others on more hosts",
        )
