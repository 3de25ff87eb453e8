"""Biased steps of node2vec: accept or reject draws.

A draw is decided by a random toss. If the toss is not enough, it is decided by whether two nodes
are joined. node2vec: Grover & Leskovec 2016, KDD.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import IntLike, f32_at, f64_at, i64_at, inlined, prefetch_at
from storaged.kernels.adjacency_rows import INDPTR, NBR, SUMS, WEIGHTS
from storaged.kernels.walks.bloom_filter import (
    MAX_SHARES,
    bloom_word_address,
    may_have_edge,
    pair_hash,
)
from storaged.kernels.walks.state import (
    ACCEPTED,
    CHECKING,
    EDGE,
    END,
    FOUND,
    KIND,
    LAST_STEP_ROW,
    LOCAL,
    LOW,
    NEIGHBORS,
    OUTCOME,
    PART,
    PENDING,
    PREVIOUS,
    PREVIOUS_KIND,
    PREVIOUS_PART,
    PREVIOUS_ROW,
    REJECTED,
    REMOTE,
    RETURNED,
    ROW,
    SIZE,
    SLOT,
    STEP_ROW,
    TOSS,
    TOSS_UNIT,
    WalkParams,
    WalkTables,
)


@inlined
def row_weight(table: NDArray[np.int64], table_row: IntLike, row: np.int64, uniform: bool) -> float:
    """Return the total weight of a row along one edge type."""
    if not uniform and table[table_row, SUMS] != 0:
        return f64_at(np.uint64(table[table_row, SUMS]), row)  # type: ignore[no-any-return]
    indptr = np.uint64(table[table_row, INDPTR])
    return np.float64(i64_at(indptr, row + 1) - i64_at(indptr, row))


@inlined
def max_return_share(
    tables: WalkTables, params: WalkParams, lanes: NDArray[np.int64], lane: IntLike
) -> float:
    """Return the largest share of a walk's edges that leads back to a previous node.

    It is an upper bound for every previous node.
    """
    table, end_types, steps = tables.table, tables.end_types, tables.steps
    step_row, part, row = lanes[lane, STEP_ROW], lanes[lane, PART], lanes[lane, ROW]
    if steps.shape[1] == 1:
        return np.float64(
            f32_at(
                np.uint64(table[steps[step_row, 0] * params.table_parts + part, MAX_SHARES]), row
            )
        )
    total, max_return = 0.0, 0.0
    for t in range(steps.shape[1]):
        edge = steps[step_row, t]
        if edge >= 0 and end_types[LOCAL, edge] == lanes[lane, KIND]:
            table_row = edge * params.table_parts + part
            weight = row_weight(table, table_row, row, params.uniform)
            total += weight
            max_return += weight * np.float64(f32_at(np.uint64(table[table_row, MAX_SHARES]), row))
    return max_return / total if total > 0.0 else 0.0


@inlined
def try_return(
    tables: WalkTables, params: WalkParams, share: float, lanes: NDArray[np.int64], lane: IntLike
) -> None:
    """Take a step back if a share of the row's weight falls on an edge to the previous node.

    The share is below `max_return_share`. The draw is rejected if there is no such edge.
    """
    table, end_types, steps = tables.table, tables.end_types, tables.steps
    step_row, part, row, kind = (
        lanes[lane, STEP_ROW],
        lanes[lane, PART],
        lanes[lane, ROW],
        lanes[lane, PREVIOUS_KIND],
    )
    node, total = lanes[lane, PREVIOUS], 0.0
    for t in range(steps.shape[1]):
        edge = steps[step_row, t]
        if edge >= 0 and end_types[LOCAL, edge] == lanes[lane, KIND]:
            total += row_weight(table, edge * params.table_parts + part, row, params.uniform)
    lanes[lane, OUTCOME], remaining = REJECTED, share * total
    for t in range(steps.shape[1]):
        edge = steps[step_row, t]
        if (
            edge < 0
            or end_types[LOCAL, edge] != lanes[lane, KIND]
            or (kind >= 0 and end_types[REMOTE, edge] != kind)
        ):
            continue
        table_row = edge * params.table_parts + part
        if not may_have_edge(pair_hash(row, node), table, table_row):
            continue
        indptr, nbr = np.uint64(table[table_row, INDPTR]), np.uint64(table[table_row, NBR])
        slot, end = i64_at(indptr, row), i64_at(indptr, row + 1)
        size = end - slot
        while size > 0:
            half = size >> 1
            if i64_at(nbr, slot + half) < node:
                slot += half + 1
                size -= half + 1
            else:
                size = half
        while slot < end and i64_at(nbr, slot) == node:
            remaining -= (
                1.0
                if params.uniform or table[table_row, WEIGHTS] == 0
                else np.float64(f32_at(np.uint64(table[table_row, WEIGHTS]), slot))
            )
            if remaining < 0.0:
                lanes[lane, OUTCOME], lanes[lane, EDGE], lanes[lane, SLOT] = RETURNED, edge, slot
                return
            slot += 1


@inlined
def decide_outcome(
    tables: WalkTables, params: WalkParams, lanes: NDArray[np.int64], lane: IntLike
) -> IntLike:
    """Return the outcome of a walk's draw if it has a previous node."""
    toss = lanes[lane, TOSS] * TOSS_UNIT
    kind = lanes[
        lane, PREVIOUS_KIND
    ]  # -1 if the node is on another host and ids are global: the id is enough
    if lanes[lane, FOUND] == lanes[lane, PREVIOUS] and (
        kind < 0 or tables.end_types[REMOTE, lanes[lane, EDGE]] == kind
    ):
        return ACCEPTED if toss < params.return_limit else REJECTED
    if toss < params.accept_limit:
        return ACCEPTED
    return CHECKING if lanes[lane, PREVIOUS_PART] >= 0 else PENDING


@inlined
def resolve_pending(
    tables: WalkTables,
    params: WalkParams,
    check_count: IntLike,
    check_lanes: NDArray[np.int64],
    lanes: NDArray[np.int64],
) -> None:
    """Decide steps that depend on an edge held by this host.

    Bloom filter lookups and row searches of several walks are interleaved.
    """
    table, end_types, steps = tables.table, tables.end_types, tables.steps
    for i in range(check_count):
        lanes[check_lanes[i], OUTCOME] = (
            REJECTED if params.accept_joined else ACCEPTED
        )  # unless the nodes are joined
    for t in range(steps.shape[1]):
        search_count = 0
        for i in range(check_count):
            lane = check_lanes[i]
            edge, row, kind = (
                steps[lanes[lane, LAST_STEP_ROW], t],
                lanes[lane, PREVIOUS_ROW],
                lanes[lane, PREVIOUS_KIND],
            )
            lanes[lane, NEIGHBORS] = -1
            if (
                edge < 0
                or row < 0
                or end_types[LOCAL, edge] != kind
                or end_types[REMOTE, edge] != end_types[REMOTE, lanes[lane, EDGE]]
            ):
                continue
            table_row = edge * params.table_parts + lanes[lane, PREVIOUS_PART]
            pair = pair_hash(row, lanes[lane, FOUND])
            lanes[lane, NEIGHBORS], lanes[lane, LOW] = table_row, np.int64(pair)
            prefetch_at(bloom_word_address(pair, table, table_row))
        for i in range(check_count):
            lane = check_lanes[i]
            table_row, pair, row = (
                lanes[lane, NEIGHBORS],
                np.uint64(lanes[lane, LOW]),
                lanes[lane, PREVIOUS_ROW],
            )
            lanes[lane, SIZE], lanes[lane, LOW] = 0, -1
            if table_row < 0 or not may_have_edge(pair, table, table_row):
                continue
            low, end = (
                i64_at(np.uint64(table[table_row, INDPTR]), row),
                i64_at(np.uint64(table[table_row, INDPTR]), row + 1),
            )
            lanes[lane, LOW], lanes[lane, END], lanes[lane, SIZE], lanes[lane, NEIGHBORS] = (
                low,
                end,
                end - low,
                table[table_row, NBR],
            )
            search_count += end > low
        while search_count > 0:
            search_count = 0
            for i in range(check_count):
                lane = check_lanes[i]
                size, low, nbr = (
                    lanes[lane, SIZE],
                    lanes[lane, LOW],
                    np.uint64(lanes[lane, NEIGHBORS]),
                )
                if size > 0:
                    half = size >> 1
                    # All ones if the target is in the right half: a branch would be unpredictable.
                    right_mask = -np.int64(i64_at(nbr, low + half) < lanes[lane, FOUND])
                    low += (half + 1) & right_mask
                    size = half + ((size - half - 1 - half) & right_mask)
                    lanes[lane, SIZE], lanes[lane, LOW] = size, low
                    if size > 0:
                        prefetch_at(nbr + np.uint64(8 * (low + (size >> 1))))
                        search_count += 1
        for i in range(check_count):
            lane = check_lanes[i]
            low = lanes[lane, LOW]
            if (
                low >= 0
                and low < lanes[lane, END]
                and i64_at(np.uint64(lanes[lane, NEIGHBORS]), low) == lanes[lane, FOUND]
            ):
                lanes[lane, OUTCOME] = ACCEPTED if params.accept_joined else REJECTED
