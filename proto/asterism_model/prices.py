"""Prices of requests: upper bounds of rows, bytes and kernel steps.

Prices are computed before anything is allocated. They are Python integers, so that they neither
overflow nor depend on a platform. Each family of
requests has one function here. `asterism_model.graph_prices` and `storaged.pricing` take the
arguments of these functions from requests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from asterism_proto.errors import InvalidRequest
from asterism_proto.transport import MAX_MESSAGE_BYTES

REPLY_BYTES = 60 << 20
"""Most bytes of arrays in one reply of the Graph service, so that it fits into a message."""
MAX_ROWS_LIMIT = 1 << 26
"""Largest allowed value of the setting ``request_rows_limit``."""

ROWS_LIMIT = 1 << 24
MEMORY_LIMIT_MIB = 512
STEPS_LIMIT = 1 << 36
"""Defaults of the settings ``request_rows_limit``, ``request_memory_limit_mib`` and
``request_steps_limit``.
"""

_ID, _TYPE, _WEIGHT, _SCORE = 8, 4, 4, 8
_EXCLUDED_BYTES = 128
"""Scratch of an excluded edge: its entry, and copies of it by partition and by node."""
_DISTINCT_BYTES = 160
"""Scratch of sampling without replacement, per neighbor of the largest count.

It holds a hash table that is a quarter full, and a heap.
"""
_STEP_KEYS_BYTES = 32
"""Scratch of random walks per step of the walk length: up to four keys."""
_WALKER_BYTES = 120
_HEAP_BYTES = 56
"""Scratch of top-k neighbors per returned neighbor, in addition to the padded result."""
_KEYED_ROW_BYTES = 28
_PAGERANK_NODES = 1 << 22
_PAGERANK_NODE_BYTES = 120
"""Most nodes that personalised PageRank reaches from one start, and the scratch of each.

The scratch includes the copies while tables grow.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The largest request that is accepted."""

    rows: int = ROWS_LIMIT
    memory: int = MEMORY_LIMIT_MIB << 20
    """Total bytes of reply and scratch."""
    steps: int = STEPS_LIMIT


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Upper bounds of the cost of one request."""

    formula: str
    """Number of rows as a product of arguments, as text for messages."""
    rows: int = 0
    """Rows of the reply: sampled, read or walked."""
    bytes: int = 0
    """Bytes of the arrays of the reply."""
    scratch: int = 0
    """Bytes of temporary arrays on the host with the largest share."""
    steps: int = 0
    """Iterations of kernels."""
    exact: bool = True
    """True if the price follows from the arguments alone.

    If False, it also depends on the graph: the values are bounds, and the request fails as soon as
    its actual size is known to exceed a limit, before its arrays are allocated."""

    @property
    def memory(self) -> int:
        """Total bytes of reply and scratch."""
        return self.bytes + self.scratch

    def with_excluded_edges(self, count: int) -> Price:
        """Return the price of a call that excludes edges too.

        Parameters
        ----------
        count : int
            Number of excluded edges. The rows of their nodes, which are copied without them, depend
            on the graph and have a limit of their own.
        """
        if not count:
            return self
        return replace(
            self,
            formula=f"{self.formula} + {product_text(exclude=count)}",
            scratch=self.scratch + count * _EXCLUDED_BYTES,
            steps=self.steps + count,
        )

    def cap(self, limits: Limits) -> Price:
        """Return the price, cut to the limits if it is not exact.

        A request with an inexact price is refused during execution once it exceeds a limit, so that
        it never uses more.
        """
        if self.exact:
            return self
        size = min(self.bytes, REPLY_BYTES, limits.memory)
        return replace(
            self,
            rows=min(self.rows, limits.rows),
            bytes=size,
            scratch=min(self.scratch, limits.memory - size),
            steps=min(self.steps, limits.steps),
        )

    def usage(self, limits: Limits) -> list[tuple[str, int, int]]:
        """Return (setting name, priced value, limit) for each limit."""
        return [
            ("request_rows_limit", self.rows, limits.rows),
            ("request_memory_limit_mib", self.memory, limits.memory),
            ("request_steps_limit", self.steps, limits.steps),
        ]


def check(price: Price, limits: Limits) -> None:
    """Refuse a request that is certain to exceed a limit.

    Raises
    ------
    InvalidRequest
        If the price is exact and exceeds a limit. The message has the limit, the value and the
        remedy.
    """
    if not price.exact:
        return
    if price.rows > limits.rows:
        raise InvalidRequest(
            f"{price.formula} = {price.rows:,} rows: expected at most {limits.rows:,} rows per "
            "request; split the request or raise request_rows_limit"
        )
    if price.memory > limits.memory:
        raise InvalidRequest(
            f"{price.formula} takes {price.memory:,} bytes of memory: expected at most "
            f"{limits.memory:,} bytes per request; split the request or raise "
            "request_memory_limit_mib"
        )
    if price.steps > limits.steps:
        raise InvalidRequest(
            f"{price.formula} takes {price.steps:,} steps: expected at most {limits.steps:,} "
            "steps per request; split the request or raise request_steps_limit"
        )


def check_reply(price: Price, max_bytes: int = MAX_MESSAGE_BYTES) -> None:
    """Refuse a request if its reply is certain to exceed the size of a message.

    Parameters
    ----------
    price : Price
    max_bytes : int
        Most bytes of one reply.

    Raises
    ------
    InvalidRequest
        If the price is exact and its reply is too large. The message has both sizes.
    """
    if price.exact and price.bytes > max_bytes:
        max_rows = max_bytes * price.rows // price.bytes
        raise InvalidRequest(
            f"{price.formula} = {price.rows:,} rows of {price.bytes:,} bytes do not fit into one "
            f"reply of {max_bytes:,} bytes; split the request: at most {max_rows:,} rows at a "
            "time"
        )


def product_text(**counts: int) -> str:
    """Return a product as text, such as ``count=5 x nodes=3``."""
    return " x ".join(f"{name}={value}" for name, value in counts.items())


def draw_rows_price(
    count: int, *, width: int, distinct: bool = False, available: int | None = None
) -> Price:
    """Return the price of global sampling of nodes or edges.

    Parameters
    ----------
    count : int
        Number of draws.
    width : int
        Bytes of one row of the reply.
    distinct : bool
        Sample without replacement.
    available : int, optional
        Number of rows to sample from, if known.
    """
    count = max(count, 0)
    scratch, steps = count * (24 + width), count
    if distinct:
        scratch, steps = (
            count * (3 * (width + 24) + 2 * _KEYED_ROW_BYTES + 48),
            3 * count + (available or 0),
        )
    return Price(
        formula=product_text(count=count),
        rows=count,
        bytes=count * width,
        scratch=scratch,
        steps=steps,
    )


def exponential_key_rows_price(count: int, *, excluded: int, width: int, available: int) -> Price:
    """Return the price of one host's share of global sampling without replacement.

    The host scans all rows and selects those with the smallest exponential keys.
    """
    rows = min(max(count, 0), max(available, 0))
    scratch = rows * (_KEYED_ROW_BYTES + width) + excluded * 48
    return Price(
        formula=product_text(count=count),
        rows=rows,
        bytes=rows * (width + 8),
        scratch=scratch,
        steps=max(available, 0) + rows,
    )


def draw_per_row_price(rows: int, count: int, *, width: int) -> Price:
    """Return the price of ``count`` nodes sampled per row, as for similar nodes and negatives."""
    total = max(rows, 0) * max(count, 0)
    return Price(
        formula=product_text(count=count, rows=rows),
        rows=total,
        bytes=total * width,
        scratch=total * (32 + width),
        steps=2 * total,
    )


def neighbors_price(
    nodes: int, count: int, *, width: int, types: int, replace: bool = True
) -> Price:
    """Return the price of neighbors sampled for each node, in a padded reply.

    Parameters
    ----------
    nodes, count : int
        Number of nodes, and of neighbors of each.
    width : int
        Bytes of one row of the reply.
    types : int
        Number of edge types; neighbors are sampled from their union.
    replace : bool
        Sample with replacement.
    """
    count, types = max(count, 0), max(types, 1)
    rows = nodes * count
    scratch = rows * (_ID + _TYPE + 4) + nodes * (60 + 16 * types)
    if not replace:
        scratch += count * _DISTINCT_BYTES + (rows * 20 if types > 1 else 0)
    return Price(
        formula=product_text(count=count, nodes=nodes),
        rows=rows,
        bytes=rows * width,
        scratch=scratch,
        steps=rows * types,
    )


def fanout_price(
    nodes: int,
    counts: Sequence[int],
    *,
    widths: Sequence[int],
    types: Sequence[int],
    replace: bool = True,
) -> Price:
    """Return the price of multi-hop neighbor sampling, the sum over its hops.

    Parameters
    ----------
    nodes : int
    counts, widths, types : sequence of int
        The arguments ``count``, ``width`` and ``types`` of `neighbors`, for each hop.
    replace : bool
        Sample with replacement.
    """
    rows = size = scratch = steps = 0
    frontier = nodes
    for count, width, type_count in zip(counts, widths, types, strict=True):
        hop = neighbors_price(frontier, count, width=width, types=type_count, replace=replace)
        rows, size, steps, scratch = (
            rows + hop.rows,
            size + hop.bytes,
            steps + hop.steps,
            max(scratch, hop.scratch),
        )
        frontier = hop.rows
    formula = f"fanouts={'x'.join(map(str, counts))} of nodes={nodes}"
    return Price(formula=formula, rows=rows, bytes=size, scratch=scratch, steps=steps)


def expansion_price(nodes: int, count: int, *, width: int, replace: bool, edges: int) -> Price:
    """Return the price of one hop of a subgraph on the host that owns its nodes.

    Parameters
    ----------
    nodes : int
    count : int
        Most neighbors of each node; -1: all.
    width : int
        Bytes of one row of the reply.
    replace : bool
        Sample with replacement.
    edges : int
        Edges of the type, an upper bound of the neighbors of one node.
    """
    neighbors_per_node = edges if count < 0 else count if replace else min(count, edges)
    rows = nodes * neighbors_per_node
    scratch = nodes * 32 + (0 if count < 0 or replace else neighbors_per_node * _DISTINCT_BYTES)
    return Price(
        formula=product_text(count=count, nodes=nodes),
        rows=rows,
        bytes=nodes * _TYPE + rows * width,
        scratch=scratch,
        steps=rows,
        exact=False,
    )


def subgraph_price(
    seeds: int,
    fanouts: Sequence[tuple[int, int, int, Sequence[int]]],
    *,
    expand_all_hops: bool,
    disjoint: bool,
    width: int,
) -> Price:
    """Return the price of a subgraph sampled hop by hop.

    Parameters
    ----------
    seeds : int
    fanouts : sequence of (local type, remote type, edges of the edge type, counts by hop)
        A count of -1 is all neighbors.
    expand_all_hops : bool
        Every hop expands all nodes visited so far, not only the previous frontier.
    disjoint : bool
        Every seed has its own tree.
    width : int
        Bytes of one edge of the reply.
    """
    hops = max((len(counts) for *_, counts in fanouts), default=0)
    node_types = {
        node_type
        for local_type, remote_type, _, _ in fanouts
        for node_type in (local_type, remote_type)
    }
    visited = frontier = dict.fromkeys(node_types, seeds)
    rows = 0
    for hop in range(hops):
        new_counts = dict.fromkeys(node_types, 0)
        for local_type, remote_type, edges, counts in fanouts:
            count, sources = (
                counts[hop] if hop < len(counts) else 0,
                (visited if expand_all_hops else frontier)[local_type],
            )
            neighbors_per_node = edges if count < 0 else count
            sampled = sources * neighbors_per_node
            new_counts[remote_type] += sampled
            rows += sampled
        frontier = new_counts
        visited = {
            node_type: visited[node_type] + new_counts[node_type] for node_type in node_types
        }
    nodes = seeds + rows
    size = seeds * _TYPE + nodes * (_ID + (_TYPE if disjoint else 0)) + rows * width
    formula = f"{hops} hops from seeds={seeds}"
    return Price(
        formula=formula, rows=rows, bytes=size, scratch=nodes * 24, steps=rows, exact=False
    )


def layer_price(layers: int, count: int, *, edges: int, width: int) -> Price:
    """Return the price of nodes sampled for whole layers, and of the edges between layers."""
    draw_count = max(layers, 1) * max(count, 0)
    size = draw_count * 20
    return Price(
        formula=product_text(count=count, layers=layers),
        rows=draw_count,
        bytes=size + edges * width,
        scratch=edges * 48,
        steps=draw_count + edges,
        exact=False,
    )


def hgt_layers_price(seeds: int, layers: int, count: int, *, edges: int, width: int) -> Price:
    """Return the price of HGT sampling: ``count`` nodes per layer, and the edges among them.

    The count of a layer is the sum over all node types.
    """
    draw_count = max(layers, 0) * max(count, 0)
    nodes = seeds + draw_count
    return Price(
        formula=f"{product_text(count=count, layers=layers)} + seeds={seeds}",
        rows=nodes,
        bytes=nodes * 16 + edges * width,
        scratch=edges * 48,
        steps=draw_count + edges,
        exact=False,
    )


def walks_price(
    starts: int, walks_per_start: int, length: int, *, width: int, attempts: int = 1
) -> Price:
    """Return the price of random walks.

    A request without starts counts as one walk, because the arrays for each step are allocated in
    any case.

    Parameters
    ----------
    starts, walks_per_start, length : int
        Start nodes, walks from each of them, and steps of each walk.
    width : int
        Bytes of one step of the reply.
    attempts : int
        Expected draws per step; 1 unless steps are biased.
    """
    count, length = max(starts, 1) * max(walks_per_start, 1), max(length, 0)
    rows = count * (length + 1)
    scratch = length * _STEP_KEYS_BYTES + count * _WALKER_BYTES + rows * _ID
    formula = f"walks={count} x (length={length} + 1)"
    return Price(
        formula=formula,
        rows=rows,
        bytes=rows * width,
        scratch=scratch,
        steps=count * length * max(attempts, 1),
    )


def expected_attempts(p: float, q: float) -> int:
    """Return an upper bound of the expected draws per step of a node2vec walk by p and q."""
    p, q = p or 1.0, q or 1.0
    if (p, q) == (
        1.0,
        1.0,
    ) or not 1e-3 <= q <= 1e3:  # the operator refuses values that are out of range
        return 1
    return math.ceil(max(q, 1.0 / q))


def visit_counts_price(
    nodes: int, count: int, walks_per_node: int, length: int, *, width: int
) -> Price:
    """Return the price of the nodes that random walks visit most often.

    Walks run in batches of a quarter of `REPLY_BYTES`. They are not part of the reply, but their
    rows count as those of `walks_price` do: they are what the call takes its time for.
    """
    rows = nodes * max(count, 0)
    walk_price = walks_price(1, walks_per_node, length, width=width)
    walked = walks_price(nodes, walks_per_node, length, width=width)
    scratch = (
        min(max(REPLY_BYTES // 4, walk_price.bytes), max(nodes, 1) * walk_price.bytes) * 3
        + length * _STEP_KEYS_BYTES
    )
    return Price(
        formula=walked.formula if walked.rows > rows else product_text(count=count, nodes=nodes),
        rows=max(rows, walked.rows),
        bytes=rows * 20,
        scratch=scratch,
        steps=walked.steps,
    )


def pagerank_price(
    nodes: int, top: int, *, alpha: float, epsilon: float, existing: int, edges: int
) -> Price:
    """Return the price of personalised PageRank.

    Nodes push, for each start, until no residual exceeds epsilon times the weight of the node's
    edges. The number of steps for each start is the smaller of the two bounds 1 / (alpha epsilon)
    and edges x (1 + log(1 / epsilon)) / alpha."""
    rows = nodes * max(top, 0)
    pushes = 0.0
    if 0 < alpha <= 1 and 0 < epsilon <= 1:  # the operator refuses values that are out of range
        pushes = min(
            1.0 / max(alpha * epsilon, 1e-300),
            edges * (1.0 + math.log(1.0 / epsilon)) / alpha,
            1e18,
        )
    scratch = min(existing, _PAGERANK_NODES) * _PAGERANK_NODE_BYTES + rows * 4
    return Price(
        formula=product_text(top=top, nodes=nodes),
        rows=rows,
        bytes=rows * 20 + nodes * _SCORE,
        scratch=scratch,
        steps=nodes * (int(pushes) + 1),
    )


def all_neighbors_price(nodes: int, *, edges: int, width: int) -> Price:
    """Return the price of all neighbors of nodes; ``edges`` is the edge count of their types."""
    rows = nodes * edges
    return Price(
        formula=f"all neighbors of nodes={nodes}",
        rows=rows,
        bytes=(nodes + 1) * _ID + rows * width,
        scratch=nodes * 40,
        exact=False,
    )


def top_neighbors_price(nodes: int, top: int, *, edges: int, width: int) -> Price:
    """Return the price of the ``top`` heaviest neighbors of each node.

    ``edges`` is the edge count of their types.
    """
    rows = nodes * min(max(top, 0), edges)
    return Price(
        formula=product_text(top=top, nodes=nodes),
        rows=rows,
        bytes=(nodes + 1) * _ID + rows * width,
        scratch=rows * _HEAP_BYTES + nodes * 40,
        steps=rows,
        exact=False,
    )


def per_node_price(nodes: int, columns: int = 1, *, width: int, scratch: int = 0) -> Price:
    """Return the price of values of a fixed size per node, such as degrees or types."""
    rows = nodes * max(columns, 0)
    formula = (
        product_text(nodes=nodes) if columns == 1 else product_text(nodes=nodes, columns=columns)
    )
    return Price(
        formula=formula,
        rows=rows,
        bytes=rows * width,
        scratch=nodes * 40 + rows * scratch,
        steps=rows,
    )


def features_price(rows: int, *, width: int, ragged: bool) -> Price:
    """Return the price of features of rows.

    Parameters
    ----------
    rows : int
    width : int
        Bytes of all dense features of one row.
    ragged : bool
        Some features are not dense; the price is then not exact.
    """
    return Price(
        formula=f"features of rows={rows}",
        rows=rows,
        bytes=rows * (width + 1),
        scratch=rows * 40,
        steps=rows,
        exact=not ragged,
    )


def scan_price(limit: int, *, width: int) -> Price:
    """Return the price of a scan of at most ``limit`` rows."""
    rows = max(limit, 0)
    return Price(
        formula=product_text(limit=limit),
        rows=rows,
        bytes=rows * width,
        scratch=rows * 16,
        steps=rows,
        exact=False,
    )


def edges_between_price(nodes: int, cols: int, *, edges: int, width: int) -> Price:
    """Return the price of the edges between two sets of nodes.

    ``edges`` is the edge count of their types.
    """
    rows = nodes * edges
    return Price(
        formula=product_text(nodes=nodes, cols=cols),
        rows=rows,
        bytes=nodes * _TYPE + rows * width,
        scratch=(nodes + 4 * cols) * 32,
        exact=False,
    )


def neighbor_width(
    *, types: int, weights: bool, edge_ids: bool, probabilities: bool = False, times: bool = False
) -> int:
    """Return the bytes of one sampled neighbor: its id and the requested columns."""
    return (
        _ID
        + _TYPE * (types > 1)
        + _WEIGHT * weights
        + _ID * edge_ids
        + _SCORE * probabilities
        + 8 * times
    )
