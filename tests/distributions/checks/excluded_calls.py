"""Checks of fanouts, walks and visits without excluded edges, by the distributions of `EDGES`.

The graph has further edges, which every call excludes. Nodes are copied without them; or each edge
is split into many parallel ones, and draws of nodes of many edges reject the excluded ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial

import numpy as np
from tests.distributions.checks.basis import require
from tests.distributions.checks.hosts import request_context
from tests.distributions.checks.visits import require_visits
from tests.distributions.checks.walk_paths import (
    EDGES,
    PLAIN_WALK,
    ContextOf,
    require_fanouts,
    require_walks,
)
from tests.kit.images import Edges, Nodes, version_of

from asterism_model.excluded_edges import ExcludedEdges
from asterism_model.schema import EdgeType, NodeType, Schema
from graphd.operators import visit_counts, walks
from graphd.operators.request_context import RequestContext
from storaged import sampling

DECOYS: Mapping[int, Mapping[tuple[int, int], float]] = {
    0: {(0, 0): 1.5, (1, 0): 5.0, (1, 1): 9.0, (2, 1): 1.0, (3, 0): 2.0},
    1: {(1, 2): 7.0, (3, 3): 1.0},
}
"""Weights of the further edges, by edge type and ends.

Nodes 0 and 2 keep most edges and weight, node 1 does not, and node 3 has no others. One edge is
parallel to another, and excluded by its id.
"""
SPLIT = 100
"""Parallel edges of each pair, so that a node has more edges than are copied."""


@cache
def _graph(split: int) -> sampling.LocalVersion:
    """Return `EDGES` and `DECOYS`, each edge as ``split`` edges that share its weight."""
    types = tuple(
        EdgeType(src_type="n", relation=f"e{t}", dst_type="n", weighted=True) for t in EDGES
    )
    edges = {}
    for edge, weights, further in zip(types, EDGES.values(), DECOYS.values(), strict=True):
        pairs = [*weights, *further]
        shares = np.array([*weights.values(), *further.values()]) / split
        edges[edge.name] = Edges(
            src=np.repeat([a for a, _ in pairs], split),
            dst=np.repeat([b for _, b in pairs], split),
            weights=np.repeat(shares, split).astype(np.float32),
        )
    return version_of(
        Schema(node_types=(NodeType(name="n"),), edge_types=types, parts=3),
        {"n": Nodes(ids=np.arange(4))},
        edges,
    )


def _excluded(split: int) -> ExcludedEdges:
    """Return the decoys: by their ends, or by edge id if another edge has the same ends."""
    rows = []
    for edge_type, further in DECOYS.items():
        for number, (a, b) in enumerate(further):
            if (a, b) in EDGES[edge_type]:
                first = (len(EDGES[edge_type]) + number) * split
                rows += [(edge_type, a, b, eid) for eid in range(first, first + split)]
            else:
                rows.append((edge_type, a, b, -1))
    types, src, dst, eids = np.array(rows, np.int64).T.copy()
    return ExcludedEdges(types=types.astype(np.int32), src=src, dst=dst, eids=eids)


def _context(split: int, hosts: int) -> RequestContext:
    return request_context(_graph(split), hosts, _excluded(split))


def _require_under_both(require_calls: Callable[[ContextOf], None]) -> None:
    """Require distributions where nodes are copied, and where draws reject edges."""
    for split in (1, SPLIT):
        rest = sampling.exclude_edges(
            _graph(split),
            _excluded(split),
            edge_types=[0],
            direction=1,
            rejection=sampling.RejectionParams(uniform=False),
        )
        require((rest.rejected is not None) == (split > 1), "nodes are not handled as intended")
        require_calls(partial(_context, split))


def excluded_edges_leave_walks(scale: float) -> None:
    """Walks have the probability of their steps, with restarts and in unions of types."""
    n = int(max(600, 6000 * scale))
    changes: tuple[Mapping[str, object], ...] = (
        {},
        {"uniform": True, "restart": 0.25},
        {"steps": ((0, 1),)},
    )

    def require_calls(context_of: ContextOf) -> None:
        for change in changes:
            for start in (0, 2):
                # Fields of several types.
                params = replace(PLAIN_WALK, **change)  # type: ignore[arg-type]
                require_walks(params, n, start, context_of)

    _require_under_both(require_calls)


def excluded_edges_leave_biased_walks(scale: float) -> None:
    """Walks by p and q weigh a neighbor of the last node by the remaining edges alone."""
    n = int(max(400, 4000 * scale))

    def require_calls(context_of: ContextOf) -> None:
        for p, q, uniform in ((0.25, 4.0, False), (4.0, 0.25, True), (0.2, 0.3, False)):
            for start in (0, 2):
                params = replace(PLAIN_WALK, p=p, q=q, uniform=uniform)
                require_walks(params, n, start, context_of)

    _require_under_both(require_calls)


def excluded_edges_leave_fanouts(scale: float) -> None:
    """Every outcome of two hops has the product of its draws among the remaining edges."""
    n = int(max(1000, 12_000 * scale))

    def require_calls(context_of: ContextOf) -> None:
        for uniform in (False, True):
            require_fanouts(n, context_of, uniform=uniform)

    _require_under_both(require_calls)


def excluded_edges_leave_visits(scale: float) -> None:
    """Every outcome of the walks that PinSAGE counts has its probability."""
    n = int(max(600, 6000 * scale))

    def require_calls(context_of: ContextOf) -> None:
        for steps, traversals, walk_count, termination, uniform, start in (
            (((0,),), 3, 2, 0.5, False, 0),
            (((0,), (0, 1)), 2, 2, 0.3, True, 2),
        ):
            walking: walks.RandomWalkParams = replace(
                PLAIN_WALK, steps=steps, length=len(steps) * traversals, uniform=uniform
            )
            params = visit_counts.VisitParams(
                walk=walking, walks=walk_count, termination=termination, count=3
            )
            require_visits(params, n, start, context_of)

    _require_under_both(require_calls)
