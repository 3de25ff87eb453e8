"""Checks of sampling under filters: by weight among matching rows, at every selectivity.

Results do not depend on the number of hosts.
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.distributions.checks.basis import require, require_counts
from tests.distributions.checks.hosts import request_context
from tests.kit.images import Edges, Nodes, version_of

from asterism_model.elements import EDGE, NODE
from asterism_model.schema import EdgeType, Feature, NodeType, Schema
from asterism_proto.errors import NotFound
from asterism_proto.v1 import common_pb2 as common_pb
from graphd.operators import (
    filters,
    global_sampling,
    neighbor_reads,
    neighbor_sampling,
    temporal_filters,
)
from graphd.operators.request_context import RequestContext
from storaged import sampling as draw

SIZE, PARTS, DEGREE = 600, 8, 4
"""Nodes, partitions, and edges per node of the graph of edges."""
MANY, LEAST = 1_000_000, 2000
"""Nodes of the selectivity checks: at scale 1 and above, and at least."""
HOSTS = (1, 2, 3, 5, 8)
_FILTERS = {"x < 1": 1.0, "x < 0.5": 0.5, "x < 0.001": 1e-3, "x < 0.000001": 1e-6}
"""Filters and their selectivities.

``x`` is uniform in 0 .. 1, except for three nodes that satisfy the last filter.
"""
_NODE_TYPE = NodeType(name="n", weighted=True, features=(Feature(name="x", dtype="float64"),))

Columns = dict[str, NDArray[Any]]


def _population(size: int) -> Columns:
    """Return columns of nodes: one for filters, and weights from 0 over orders of magnitude."""
    rng = np.random.default_rng(4)
    x = (np.arange(size) + 0.5) / size
    x[:3] = (5e-7, 6e-7, 7e-7)
    rng.shuffle(x)
    weights = np.where(rng.random(size) < 0.2, 0, np.exp(rng.normal(size=size) * 2)).astype(
        np.float32
    )
    weights[x < 1e-6] = (3, 1, 2)
    return {"x": x, "w": weights}


@cache
def _node_graph(size: int, *, indexed: bool = False) -> tuple[draw.LocalVersion, Columns]:
    """Return a graph of nodes only, and its columns."""
    columns = _population(size)
    schema = Schema(node_types=(_NODE_TYPE,), parts=PARTS)
    indexes = (("x", "range"),) if indexed else ()
    return version_of(
        schema,
        {
            "n": Nodes(
                ids=np.arange(size, dtype=np.int64),
                weights=columns["w"],
                features={"x": columns["x"]},
                indexes=indexes,
            )
        },
    ), columns


@cache
def _edge_graph() -> tuple[draw.LocalVersion, Columns]:
    """Return a graph of nodes and of edges with a filter column, and its columns."""
    columns, m, rng = _population(SIZE), DEGREE * SIZE, np.random.default_rng(5)
    src, dst, y = rng.integers(0, SIZE, m), rng.integers(0, SIZE, m), rng.random(m)
    weights = np.where(rng.random(m) < 0.2, 0, np.exp(rng.normal(size=m))).astype(np.float32)
    schema = Schema(
        node_types=(_NODE_TYPE,),
        edge_types=(
            EdgeType(
                src_type="n",
                relation="e",
                dst_type="n",
                weighted=True,
                features=(Feature(name="y", dtype="float64"),),
            ),
        ),
        parts=PARTS,
        direction="both",
    )
    nodes = {
        "n": Nodes(
            ids=np.arange(SIZE, dtype=np.int64), weights=columns["w"], features={"x": columns["x"]}
        )
    }
    version = version_of(
        schema, nodes, {"n:e:n": Edges(src=src, dst=dst, weights=weights, features={"y": y})}
    )
    return version, columns | {"src": src, "dst": dst, "y": y, "ew": weights}


def _filtered_context(
    hosts: int,
    element: int,
    where: str,
    direction: common_pb.Direction = common_pb.OUT,
    version: draw.LocalVersion | None = None,
) -> RequestContext:
    head = SimpleNamespace(weight="", where=where, direction=direction)
    return filters.with_filter(
        request_context(version or _edge_graph()[0], hosts), element, [0], head
    )


def _sample_nodes(
    context: RequestContext,
    count: int,
    *,
    uniform: bool = False,
    distinct: bool = False,
) -> Columns:
    draw_params = global_sampling.GlobalDraw(
        element=NODE,
        types=(0,),
        seed=1,
        count=count,
        uniform=uniform,
        distinct=distinct,
        want_probabilities=True,
    )
    return global_sampling.draw(context, draw_params)


def _sample_neighbors(
    where: str,
    nodes: NDArray[np.int64],
    count: int,
    *,
    hosts: int = 1,
    replace: bool = True,
    uniform: bool = False,
) -> Columns:
    params = neighbor_sampling.NeighborParams(
        edge_types=(0,),
        count=count,
        replace=replace,
        uniform=uniform,
        direction=common_pb.OUT,
        seed=3,
        hop=0,
        want_weights=True,
        want_edge_ids=True,
        want_probabilities=True,
    )
    return neighbor_sampling.sample_neighbors(
        _filtered_context(hosts, EDGE, where), params, nodes, 0, None
    )


def filters_keep_weights_of_matching_nodes(scale: float) -> None:
    """Nodes of each selectivity follow their weights or are uniform; no match returns nothing."""
    size = max(int(MANY * min(scale, 1.0) ** 3), LEAST)
    version, columns = _node_graph(size)
    n = int(40_000 * scale)
    for where, bound in _FILTERS.items():
        context = _filtered_context(1, NODE, where, version=version)
        for uniform in (False, True):
            weights = np.where(
                columns["x"] < bound, 1.0 if uniform else columns["w"].astype(np.float64), 0.0
            )
            samples = _sample_nodes(context, n, uniform=uniform)
            require(len(samples["ids"]) == n, f"{where}: {len(samples['ids'])} draws of {n}")
            require_counts(
                np.bincount(samples["ids"], minlength=size),
                weights / weights.sum() * n,
                f"nodes where {where}",
            )
            require(
                bool(
                    np.allclose(samples["probabilities"], (weights / weights.sum())[samples["ids"]])
                ),
                f"{where}: probabilities are not their shares",
            )
        distinct_count = min(int(((columns["x"] < bound) & (columns["w"] > 0)).sum()), 50)
        distinct_ids = _sample_nodes(context, distinct_count, distinct=True)["ids"]
        require(
            len(set(distinct_ids.tolist())) == distinct_count,
            f"{where}: different nodes are not, or too few",
        )
        require(
            bool((columns["x"][distinct_ids] < bound).all()),
            f"{where}: a node that does not satisfy it",
        )
    try:
        _sample_nodes(_filtered_context(1, NODE, "x < 0", version=version), 1)
    except NotFound:
        return
    require(False, "something was drawn where nothing satisfies the condition")


def indexes_keep_weights_of_matching_nodes(scale: float) -> None:
    """Nodes sampled by blocks of an index follow their weights or are uniform.

    Every selectivity is checked, and a filter without matches.
    """
    size = max(int(MANY * min(scale, 1.0) ** 3), LEAST)
    version, columns = _node_graph(size, indexed=True)
    n = int(40_000 * scale)
    for where, bound in (*_FILTERS.items(), ("not x >= 0.5", 0.5), ("x < 0.001 or x < 0.5", 0.5)):
        context = _filtered_context(1, NODE, where, version=version)
        require(context.filter_plan == "index on x (range)", f"{where}: {context.filter_plan}")
        for uniform in (False, True):
            weights = np.where(
                columns["x"] < bound, 1.0 if uniform else columns["w"].astype(np.float64), 0.0
            )
            samples = _sample_nodes(context, n, uniform=uniform)
            require(len(samples["ids"]) == n, f"{where}: {len(samples['ids'])} draws of {n}")
            require_counts(
                np.bincount(samples["ids"], minlength=size),
                weights / weights.sum() * n,
                f"nodes of an index where {where}",
            )
            require(
                bool(
                    np.allclose(samples["probabilities"], (weights / weights.sum())[samples["ids"]])
                ),
                f"{where}: probabilities are not their shares",
            )
            require(
                np.array_equal(
                    _sample_nodes(context, 9, uniform=uniform)["ids"], samples["ids"][:9]
                ),
                f"{where}: the first nine are not those of a draw of nine",
            )
        distinct_count = min(int(((columns["x"] < bound) & (columns["w"] > 0)).sum()), 50)
        distinct_ids = _sample_nodes(context, distinct_count, distinct=True)["ids"]
        require(
            len(set(distinct_ids.tolist())) == distinct_count,
            f"{where}: different nodes are not, or too few",
        )
        require(
            bool((columns["x"][distinct_ids] < bound).all()),
            f"{where}: a node that does not satisfy it",
        )
    try:
        _sample_nodes(_filtered_context(1, NODE, "x < 0", version=version), 1)
    except NotFound:
        return
    require(False, "something was drawn where nothing satisfies the condition")


def filters_keep_weights_of_edges_and_neighbors(scale: float) -> None:
    """Edges and neighbors follow filters on the edge, its source and its destination."""
    _, columns = _edge_graph()
    n = int(40_000 * scale)
    for where, mask in (
        ("y < 0.5", columns["y"] < 0.5),
        (
            "dst.x < 0.1 and src.x > 0.2",
            (columns["x"][columns["dst"]] < 0.1) & (columns["x"][columns["src"]] > 0.2),
        ),
    ):
        weights = np.where(mask, columns["ew"].astype(np.float64), 0.0)
        draw_params = global_sampling.GlobalDraw(
            element=EDGE,
            types=(0,),
            seed=5,
            count=n,
            uniform=False,
            distinct=False,
            want_probabilities=False,
        )
        samples = global_sampling.draw(_filtered_context(1, EDGE, where), draw_params)
        require_counts(
            np.bincount(samples["eids"], minlength=weights.size),
            weights / weights.sum() * n,
            f"edges where {where}",
        )
        busiest = int(np.bincount(columns["src"], weights > 0, SIZE).argmax())
        for uniform in (False, True):
            row_weights = np.where(
                (columns["src"] == busiest) & mask,
                1.0 if uniform else columns["ew"].astype(np.float64),
                0.0,
            )
            eids = _sample_neighbors(where, np.full(n, busiest), 1, uniform=uniform)["eids"].ravel()
            require_counts(
                np.bincount(eids, minlength=weights.size),
                row_weights / row_weights.sum() * n,
                f"neighbors where {where}",
            )
    nodes_without = np.flatnonzero(np.bincount(columns["src"], columns["y"] < 0.5, SIZE) == 0)
    require(
        bool((_sample_neighbors("y < 0.5", nodes_without[:20], 3)["ids"] == -1).all()),
        "a node without such edges has neighbors",
    )
    all_eids = _sample_neighbors("y < 0.5", np.arange(SIZE), 30, replace=False, uniform=True)[
        "eids"
    ]
    require(
        sorted(all_eids[all_eids >= 0].tolist()) == np.flatnonzero(columns["y"] < 0.5).tolist(),
        "a node with few such edges does not give all of them",
    )
    in_degrees = neighbor_reads.degrees(
        _filtered_context(1, EDGE, "y < 0.5 and dst.x < 0.3", common_pb.IN),
        [0],
        common_pb.IN,
        np.arange(SIZE),
        0,
        None,
    )["degrees"].ravel()
    is_satisfied = (columns["y"] < 0.5) & (columns["x"][columns["dst"]] < 0.3)
    require(
        in_degrees.tolist() == np.bincount(columns["dst"], is_satisfied, SIZE).tolist(),
        "in-copies satisfy something else than out-copies",
    )


def hosts_do_not_change_filtered_draws(scale: float) -> None:
    """Results are equal byte for byte on any number of hosts.

    Each host has only its own partitions and queries others for columns of remote ends.
    """
    others = HOSTS[1:] if scale >= 1 else (3,)
    nodes = np.arange(0, SIZE, 17)
    where = "y < 0.7 and dst.x < 0.5 or src.x > 0.9"

    def results(hosts: int) -> list[Columns]:
        draw_params = global_sampling.GlobalDraw(
            element=EDGE,
            types=(0,),
            seed=5,
            count=200,
            uniform=False,
            distinct=True,
            want_probabilities=True,
        )
        return [
            *(
                _sample_nodes(_filtered_context(hosts, NODE, condition), 300)
                for condition in _FILTERS
            ),
            _sample_nodes(_filtered_context(hosts, NODE, "x < 0.5"), 100, distinct=True),
            global_sampling.draw(_filtered_context(hosts, EDGE, where), draw_params),
            _sample_neighbors(where, nodes, 4, hosts=hosts),
            _sample_neighbors(where, nodes, 4, hosts=hosts, replace=False),
            neighbor_reads.degrees(
                _filtered_context(hosts, EDGE, where, common_pb.IN),
                [0],
                common_pb.IN,
                nodes,
                0,
                None,
            ),
        ]

    index_graph = _node_graph(LEAST, indexed=True)[0]

    def index_results(hosts: int) -> list[Columns]:
        contexts = [
            _filtered_context(hosts, NODE, context, version=index_graph)
            for context in ("x < 0.5", "x < 0.001", "x != 0.3 and x > 0.1")
        ]
        return [
            *(
                _sample_nodes(context, 300, uniform=uniform)
                for context in contexts
                for uniform in (False, True)
            ),
            _sample_nodes(contexts[0], 100, distinct=True),
            *(_sample_nodes(contexts[1], 3, distinct=True, uniform=True) for _ in contexts),
        ]

    expected, expected_of_index = results(HOSTS[0]), index_results(HOSTS[0])
    for hosts in others:
        for one, other in zip(
            expected + expected_of_index, results(hosts) + index_results(hosts), strict=True
        ):
            same = one.keys() == other.keys() and all(
                one[name].tobytes() == other[name].tobytes() for name in one
            )
            require(same, f"{hosts} hosts give other bytes than one")


@cache
def _timed_graph(filtered: bool) -> draw.LocalVersion:
    """Return a graph of edges at few times with a filter column.

    With ``filtered``, it has only the matching edges.
    """
    rng, m = np.random.default_rng(6), 900
    src, dst = rng.integers(0, 30, (2, m))
    y, times, weights = (
        rng.random(m),
        rng.integers(0, 20, m).astype(np.int16),
        rng.integers(0, 4, m).astype(np.float32),
    )
    rows = np.flatnonzero(y < 0.4) if filtered else np.arange(m)
    features = (Feature(name="y", dtype="float64"), Feature(name="t", dtype="int16"))
    schema = Schema(
        node_types=(NodeType(name="n"),),
        edge_types=(
            EdgeType(
                src_type="n", relation="e", dst_type="n", weighted=True, features=features, time="t"
            ),
        ),
        parts=PARTS,
        direction="both",
    )
    edges = Edges(
        src=src[rows],
        dst=dst[rows],
        weights=weights[rows],
        eids=rows,
        features={"y": y[rows], "t": times[rows]},
        times=times[rows],
    )
    return version_of(schema, {"n": Nodes(ids=np.arange(30))}, {"n:e:n": edges})


def filtered_neighbors_are_in_time_order(scale: float) -> None:
    """Temporal draws under a filter equal those of a graph without the other edges.

    They are equal bit for bit.
    """
    del scale
    nodes = np.tile(np.arange(30), 10)
    as_of = temporal_filters.TemporalFilter(
        times=np.arange(nodes.size) % 23 - 1, head=common_pb.TemporalFilter(want_times=True)
    )
    latest = temporal_filters.TemporalFilter(
        times=as_of.times, head=common_pb.TemporalFilter(want_times=True, last=True)
    )
    cases = [(replace, uniform, as_of) for replace in (False, True) for uniform in (False, True)]
    for direction in (common_pb.OUT, common_pb.IN):
        for replace, uniform, times in (*cases, (False, False, latest)):
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
                want_probabilities=False,
                temporal_filter=times,
            )
            expected = neighbor_sampling.sample_neighbors(
                request_context(_timed_graph(True)), params, nodes, 0, None
            )
            require(bool((expected["ids"] >= 0).any()), "nothing is seen")
            for hosts in (1, 3):
                samples = neighbor_sampling.sample_neighbors(
                    _filtered_context(hosts, EDGE, "y < 0.4", direction, _timed_graph(False)),
                    params,
                    nodes,
                    0,
                    None,
                )
                require(
                    all(np.array_equal(samples[name], expected[name]) for name in expected),
                    f"until times, y < 0.4, on {hosts} hosts: other draws",
                )
