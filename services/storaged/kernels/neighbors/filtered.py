"""Neighbor sampling under a filter on an indexed column.

Draws from the runs that `storaged.kernels.neighbors.index_ranges` finds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import STOP_CHECK_MASK, IntLike, inlined, is_set, kernel, u32_at
from asterism_graphkit.compile.named_tuple_arguments import kernel_record
from asterism_graphkit.random.rng import bounded, derive_mixed, unit_float, word
from asterism_graphkit.random.successive_probabilities import neumaier_add
from storaged.kernels.adjacency_rows import ORDER
from storaged.kernels.neighbors.distinct_edge_sampling import REJECTIONS
from storaged.kernels.neighbors.fisher_yates import hash_table_bits
from storaged.kernels.neighbors.index_ranges import (
    MAX_PIECES,
    SMALL_RUN,
    RowPieces,
    draw_match,
    find_runs,
    prefetch_rows,
)
from storaged.kernels.neighbors.successive import (
    Runs,
    SuccessiveScratch,
    match_weight,
    record_draw,
    select_undrawn,
    shuffle_matches,
)

_NONE, _ONE = np.uint64(0), np.uint64(1)
TOTALS, COUNTS, REMAINING = range(3)
"""Rows of ``stats``, float64[3, m].

The total weight of each node's matches, their number, and the weight of the matches that were not
drawn (0 if there are at most ``count``).
"""


@kernel_record
class IndexedParams(NamedTuple):
    """Parameters of draws under a filter.

    Attributes
    ----------
    key, selection_key : uint64
        ``key_of(seed, rng.RANGE, direction, hop, 0)``, and the same with 1. Draw k of a node uses
        word k of the key derived from the first by the node's tag.
    num_draws : int64
        Draws per node, at least 1.
    replace : bool
    want_remaining : bool
        Without replacement: whether ``REMAINING`` is wanted.
    """

    key: np.uint64
    selection_key: np.uint64
    num_draws: np.int64
    replace: bool
    want_remaining: bool


class _Nodes(NamedTuple):
    """Nodes of a call; see `draw_indexed`."""

    tags: NDArray[np.int64]
    parts: NDArray[np.int32]
    rows: NDArray[np.int64]


class _Output(NamedTuple):
    """Outputs of a call; see `draw_indexed`."""

    type_indices: NDArray[np.int32]
    slots: NDArray[np.int64]
    stats: NDArray[np.float64]


@inlined
def _draw_few(
    tables: NDArray[np.int64],
    part: IntLike,
    key: np.uint64,
    match_count: IntLike,
    runs: Runs,
    pieces: RowPieces,
    draws: NDArray[np.int64],
) -> None:
    """Sample distinct matches by weight from a few matches of positive weight.

    The weight of a drawn match is set to 0, and the rest is summed again.
    """
    masses, sums = pieces.masses, pieces.sums
    for match_index in range(match_count):
        masses[match_index] = match_weight(tables, part, np.int64(match_index), runs)
    for k in range(draws.shape[0]):
        total = 0.0
        for match_index in range(match_count):
            total += masses[match_index]
            sums[match_index] = total
        point = unit_float(word(key, np.uint64(k))) * total
        chosen = np.int64(0)
        for match_index in range(match_count):
            chosen += np.int64(point >= sums[match_index])
        draws[k] = chosen
        masses[chosen] = 0.0


@inlined
def _draw_with_rejection(
    tables: NDArray[np.int64],
    part: IntLike,
    key: np.uint64,
    total: float,
    piece_count: IntLike,
    runs: Runs,
    pieces: RowPieces,
    shift: np.uint64,
    scratch: SuccessiveScratch,
    stop: NDArray[np.int64],
) -> IntLike:
    """Sample matches by weight and reject repeats; return the number of distinct matches.

    Ends with enough matches, or after too many consecutive rejections.
    """
    count = scratch.draws.shape[0]
    num_found, rejections, attempt = np.int64(0), 0, np.int64(0)
    while num_found < count and rejections < REJECTIONS:
        point = unit_float(word(key, np.uint64(attempt))) * total
        chosen = np.int64(draw_match(tables, part, point, piece_count, runs, pieces))
        attempt += 1
        if attempt & STOP_CHECK_MASK == 0 and is_set(stop):
            break
        if record_draw(chosen, num_found, shift, scratch):
            num_found += 1
            rejections = 0
        else:
            rejections += 1
    return num_found


@inlined
def _sum_undrawn(
    tables: NDArray[np.int64],
    part: IntLike,
    match_count: IntLike,
    runs: Runs,
    drawn_bits: NDArray[np.uint64],
    stop: NDArray[np.int64],
) -> float:
    """Sum the weights of the matches with a cleared bit."""
    high, low = 0.0, 0.0
    for match_index in range(match_count):
        if match_index & STOP_CHECK_MASK == STOP_CHECK_MASK and is_set(stop):
            break
        if drawn_bits[match_index >> 6] >> np.uint64(match_index & 63) & _ONE == _NONE:
            high, low = neumaier_add(
                high, low, match_weight(tables, part, np.int64(match_index), runs)
            )
    return high + low


@kernel
def _remaining_weight(
    tables: NDArray[np.int64],
    part: IntLike,
    num_found: IntLike,
    match_count: IntLike,
    runs: Runs,
    draws: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> float:
    """Return the total weight of the matches that were not drawn."""
    drawn_bits = np.zeros((match_count >> 6) + 1, np.uint64)
    for k in range(num_found):
        drawn_bits[draws[k] >> 6] |= _ONE << np.uint64(draws[k] & 63)
    return _sum_undrawn(tables, part, match_count, runs, drawn_bits, stop)


@kernel
def _draw_rows(
    tables: NDArray[np.int64],
    params: IndexedParams,
    nodes: _Nodes,
    bounds: NDArray[np.int64],
    runs: Runs,
    pieces: RowPieces,
    scratch: SuccessiveScratch,
    shift: np.uint64,
    output: _Output,
    stop: NDArray[np.int64],
) -> None:
    """Run `draw_indexed` with existing scratch arrays.

    It is a kernel and not inlined, because `_remaining_weight` allocates an array.
    """
    tags, parts, rows = nodes
    type_indices, slots, stats = output
    count, draws = params.num_draws, scratch.draws
    for i in range(rows.shape[0]):
        prefetch_rows(tables, i, parts, rows)
        part, match_count, piece_count, total, unit_weights, num_found = (
            parts[i],
            0,
            0,
            0.0,
            True,
            np.int64(0),
        )
        if rows[i] >= 0:
            match_count, piece_count, total, unit_weights = find_runs(
                tables, part, rows[i], bounds, runs, pieces
            )
        stats[TOTALS, i], stats[COUNTS, i], stats[REMAINING, i] = (
            total,
            np.float64(match_count),
            0.0,
        )
        if match_count > 0 and total > 0.0:
            node_key = derive_mixed(params.key, np.uint64(tags[i]))
            if params.replace:
                num_found = np.int64(count)
                for k in range(count):
                    if k & STOP_CHECK_MASK == STOP_CHECK_MASK and is_set(stop):
                        return
                    w = word(node_key, np.uint64(k))
                    if unit_weights:
                        draws[k] = np.int64(bounded(w, np.uint64(match_count)))
                    else:
                        draws[k] = draw_match(
                            tables, part, unit_float(w) * total, piece_count, runs, pieces
                        )
            elif match_count <= count:
                for match_index in range(match_count):
                    if (
                        unit_weights
                        or match_weight(tables, part, np.int64(match_index), runs) > 0.0
                    ):
                        draws[num_found] = match_index
                        num_found += 1
            elif unit_weights:
                shuffle_matches(node_key, match_count, shift, scratch, stop)
                num_found = np.int64(count)
            elif (
                match_count <= SMALL_RUN and piece_count == match_count
            ):  # each piece is an edge of positive weight
                _draw_few(tables, part, node_key, match_count, runs, pieces, draws)
                num_found = np.int64(count)
            else:
                num_drawn = np.int64(
                    _draw_with_rejection(
                        tables,
                        part,
                        node_key,
                        total,
                        piece_count,
                        runs,
                        pieces,
                        shift,
                        scratch,
                        stop,
                    )
                )
                selection_key = derive_mixed(params.selection_key, np.uint64(tags[i]))
                num_found = np.int64(
                    select_undrawn(
                        tables,
                        part,
                        selection_key,
                        match_count,
                        num_drawn,
                        runs,
                        shift,
                        scratch,
                        stop,
                    )
                )
            if is_set(stop):
                return
            if params.want_remaining and not params.replace and match_count > count:
                stats[REMAINING, i] = _remaining_weight(
                    tables, part, num_found, match_count, runs, draws, stop
                )
        for k in range(count):
            kind, offset = np.int64(-1), np.int64(-1)
            if k < num_found:
                run, offset = np.int64(0), np.int64(draws[k])
                while offset >= runs.sizes[run]:
                    offset -= runs.sizes[run]
                    run += 1
                kind = runs.types[run]
                order = np.uint64(tables[kind, part, ORDER])
                offset = np.int64(u32_at(order, runs.starts[run] + offset))
            slots[i * count + k] = offset
            if type_indices.shape[0] > 0:
                type_indices[i * count + k] = kind


@kernel
def draw_indexed(
    tables: NDArray[np.int64],
    params: IndexedParams,
    tags: NDArray[np.int64],
    parts: NDArray[np.int32],
    rows: NDArray[np.int64],
    bounds: NDArray[np.int64],
    type_indices: NDArray[np.int32],
    slots: NDArray[np.int64],
    stats: NDArray[np.float64],
    stop: NDArray[np.int64],
) -> None:
    """Sample from the edges of each node with keys in given ranges.

    Parameters
    ----------
    tables : ndarray of int64, shape (types, P, SORTED_COLUMNS)
        Address table of `storaged.kernels.neighbors.index_ranges` for each edge type. Without
        ``WEIGHTS`` and ``TREES`` every edge has weight 1.
    params : IndexedParams
    tags : ndarray of int64, shape (m,)
        Tags that key the nodes' draws, from `storaged.kernels.node_rows.node_tags`.
    parts : ndarray of int32, shape (m,)
    rows : ndarray of int64, shape (m,)
        As in `storaged.kernels.node_rows.locate_nodes`; a node of row -1 has no edges.
    bounds : ndarray of int64, shape (3, runs)
        Edge type of each run, as an index into the union, ascending; its smallest and its largest
        key. Runs of a type ascend and are disjoint.
    type_indices : ndarray of int32, shape (m * count,) or (0,), out
        Edge types, as indices into the union; -1 for none. Empty if there is one type.
    slots : ndarray of int64, shape (m * count,), out
        -1 for none.
    stats : ndarray of float64, shape (3, m), out
        ``TOTALS``, ``COUNTS`` and ``REMAINING`` of each node.
    stop : ndarray of int64, shape (1,)
        A nonzero value stops the call; its outputs are then incomplete.

    Notes
    -----
    Without replacement, a node with at most ``count`` matches gets all of them (by weight: those of
    positive weight), by (edge type, value). From at most ``SMALL_RUN`` matches, all of positive
    weight, each draw is among the remaining ones. Otherwise repeats are rejected. After
    ``REJECTIONS`` consecutive rejections the rest is selected by exponential keys (Efraimidis &
    Spirakis 2006) among the matches not drawn yet. If a node has more matches than draws, the first
    m of n draws are the draws of a request for m.
    """
    num_runs, count = bounds.shape[1], params.num_draws
    bits = hash_table_bits(count)
    hash_keys = np.full(np.int64(1) << np.int64(bits), np.int64(-1), np.int64)
    scratch = SuccessiveScratch(
        hash_keys,
        np.empty(hash_keys.shape[0], np.int64),
        np.empty(count, np.int64),
        np.empty(count, np.float64),
        np.zeros(count, np.int32),
        np.empty(count, np.int64),
    )
    runs = Runs(bounds[0], np.empty(num_runs, np.int64), np.empty(num_runs, np.int64))
    pieces = RowPieces(
        np.empty(num_runs, np.int64),
        np.empty(num_runs, np.int64),
        np.empty(num_runs, np.int64),
        np.empty(num_runs * MAX_PIECES, np.int64),
        np.empty(num_runs * MAX_PIECES, np.int64),
        np.empty(num_runs * MAX_PIECES, np.float64),
        np.empty(SMALL_RUN, np.float64),
    )
    nodes, output = _Nodes(tags, parts, rows), _Output(type_indices, slots, stats)
    shift = np.uint64(64) - bits
    _draw_rows(tables, params, nodes, bounds, runs, pieces, scratch, shift, output, stop)
