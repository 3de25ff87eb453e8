"""Tests of edges to targets by bitset and by hash table, against a loop over all edges."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.kit.images import Edges, Nodes, version_of, without_packed_columns

from asterism_graphkit.compile.jit import as_kernel_array
from asterism_model.schema import EdgeType, NodeType, Schema
from storaged import sampling
from storaged.kernels.induced.bitset_join import groups_ascend
from storaged.kernels.induced.hash_join import EdgeOutputs
from storaged.sampling.cancellation import Checkpoint, no_checkpoint
from storaged.sampling.node_lookup import EdgeSpans
from storaged.sampling.subgraphs import target_sets
from storaged.sampling.subgraphs.target_sets import (
    BitsetJoin,
    EdgeSearch,
    HashJoin,
    select_targets,
)

SIZE, PARTS = 300, 3
GENERATOR = np.random.default_rng(15)
SRC = np.concatenate(
    [GENERATOR.integers(0, SIZE, 3000), np.zeros(900, np.int64), np.full(200, SIZE - 1)]
)
DST = np.concatenate(
    [GENERATOR.integers(0, SIZE, 3000), np.arange(900) % SIZE, GENERATOR.integers(0, SIZE, 200)]
)
WEIGHTS = GENERATOR.random(SRC.size).astype(np.float32)
EdgeRows = list[tuple[int, int, int, float]]
NO_GROUPS = np.zeros(0, np.int32)
WIDE_BASE = 1 << 40
"""First id that does not fit into 32 bits, with a margin."""


@cache
def version(base: int) -> sampling.LocalVersion:
    """Return nodes base, base + 1, ... with 32-bit ids only if base is 0.

    Two nodes have many edges, with parallel ones and loops.
    """
    types = (EdgeType(src_type="n", relation="x", dst_type="n", weighted=True),)
    schema = Schema(node_types=(NodeType(name="n"),), edge_types=types, parts=PARTS)
    narrow = version_of(
        schema,
        {"n": Nodes(ids=base + np.arange(SIZE))},
        {"n:x:n": Edges(src=base + SRC, dst=base + DST, weights=WEIGHTS)},
    )
    return without_packed_columns(narrow) if base else narrow


def expected(
    ids: NDArray[np.int64],
    cols: NDArray[np.int64],
    base: int,
    groups: NDArray[np.int32],
    col_groups: NDArray[np.int32],
) -> EdgeRows:
    """Return (row, edge id, col, weight), by (row, neighbor, edge id, col)."""
    entries = []
    for row, node in enumerate((ids - base).tolist()):
        for eid in np.flatnonzero(node == SRC).tolist():
            mask = (cols - base == DST[eid]) & (
                True if not groups.size else col_groups == groups[row]
            )
            entries += [
                (row, int(DST[eid]), eid, col, float(WEIGHTS[eid]))
                for col in np.flatnonzero(mask).tolist()
            ]
    return [(row, eid, col, weight) for row, _, eid, col, weight in sorted(entries)]


def search_edges(
    search: EdgeSearch, rows: EdgeSpans, capacity: int, *, weighted: bool = True
) -> EdgeRows:
    """Return the edges found by a search, repeated with more capacity when it is full.

    Weights are 0 unless ``weighted``.
    """
    state, sizes = np.zeros(2, np.int64), np.full(rows.partitions.size, -7, np.int32)
    buffers = EdgeOutputs(np.zeros(0, np.int32), np.zeros(0, np.float32), np.zeros(0, np.int64))
    for multiple in itertools.count(1):
        cols, weights, eids = (
            np.concatenate(
                [buffer[: state[1]], np.full(multiple * capacity - state[1], -7, buffer.dtype)]
            )
            for buffer in buffers
        )
        buffers = EdgeOutputs(cols, weights if weighted else weights[:0], eids)
        assert search.find(state, sizes, buffers, np.zeros(1, np.int64))
        if state[0] == sizes.size:
            break
    cols, weights, eids = (column[: state[1]] for column in buffers)
    weights = weights if weighted else np.zeros(cols.size, np.float32)
    row_indices = np.repeat(np.arange(sizes.size), sizes)
    return list(
        zip(row_indices.tolist(), eids.tolist(), cols.tolist(), weights.tolist(), strict=True)
    )


@pytest.mark.parametrize("base", [0, 7, WIDE_BASE])
@pytest.mark.parametrize("buffer_size", [1200, 100_000])
@pytest.mark.parametrize("width", [1, 3, 40, SIZE])
def test_both_searches_find_what_a_loop_finds(base: int, buffer_size: int, width: int) -> None:
    generator = np.random.default_rng([width, buffer_size])
    cols = base + np.concatenate([generator.permutation(SIZE)[:width], [SIZE + 70, SIZE + 5]])
    cols[generator.integers(0, cols.size)] = -1
    ids = np.concatenate(
        [base + generator.integers(0, SIZE, 60), [base, -1, base + SIZE + 9, base + SIZE - 1, base]]
    )
    rows, targets = EdgeSpans.locate(version(base), 0, 1, ids), select_targets(cols, None, None)
    bitset_join, expected_edges = (
        BitsetJoin.create_if_fits(rows, targets, NO_GROUPS),
        expected(ids, cols, base, NO_GROUPS, NO_GROUPS),
    )
    assert bitset_join is not None
    assert search_edges(bitset_join, rows, buffer_size) == expected_edges
    assert search_edges(bitset_join, rows, buffer_size) == expected_edges, (
        "a second time: bits are left as they were"
    )
    assert search_edges(bitset_join, rows, buffer_size, weighted=False) == [
        (row, eid, col, 0.0) for row, eid, col, _ in expected_edges
    ]
    assert search_edges(HashJoin(rows, targets, NO_GROUPS), rows, buffer_size) == expected_edges


@pytest.mark.parametrize("width", [3, SIZE])
def test_both_searches_write_nothing_once_stopped(width: int) -> None:
    cols, ids = np.arange(width), np.arange(SIZE)
    rows, targets = EdgeSpans.locate(version(0), 0, 1, ids), select_targets(cols, None, None)
    searches: list[EdgeSearch | None] = [
        BitsetJoin.create_if_fits(rows, targets, NO_GROUPS),
        HashJoin(rows, targets, NO_GROUPS),
    ]
    for search in searches:
        assert search is not None
        state, sizes = np.zeros(2, np.int64), np.zeros(SIZE, np.int32)
        out = EdgeOutputs(
            np.full(9_999, -7, np.int32), np.zeros(9_999, np.float32), np.full(9_999, -7)
        )
        assert search.find(state, sizes, out, np.ones(1, np.int64))
        assert state.tolist() == [0, 0]
        assert out.places.max() == out.eids.max() == -7
        assert search.find(state, sizes, out, np.zeros(1, np.int64))
        assert state[0] == SIZE


@pytest.mark.parametrize("piece", [2, 7])
def test_targets_are_sorted_and_entered_in_pieces(
    piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = np.random.default_rng(piece)
    cols, groups = generator.integers(0, SIZE, 150), generator.integers(0, 3, 150).astype(np.int32)
    ids = np.sort(generator.integers(0, SIZE, 30))
    row_groups = as_kernel_array(np.sort(generator.integers(0, 3, ids.size)).astype(np.int32))
    rows = EdgeSpans.locate(version(0), 0, 1, ids)

    def find(checkpoint: Checkpoint) -> EdgeRows:
        targets = select_targets(cols, None, groups, checkpoint)
        return search_edges(HashJoin(rows, targets, row_groups, checkpoint), rows, 100_000)

    at_once = find(no_checkpoint)
    monkeypatch.setattr(target_sets, "_PIECE", piece)
    calls: list[int] = []
    assert find(lambda: calls.append(1)) == at_once
    assert len(calls) >= 3 * cols.size // piece


@pytest.mark.parametrize("base", [0, WIDE_BASE])
@pytest.mark.parametrize("buffer_size", [1200, 100_000])
def test_both_searches_separate_groups(base: int, buffer_size: int) -> None:
    """Many groups follow each other, some without targets or rows.

    One node is in several groups; targets are few or many.
    """
    generator = np.random.default_rng(buffer_size)
    groups = np.sort(generator.integers(0, 30, 250)).astype(np.int32)
    ids = base + np.where(generator.random(250) < 0.1, 0, generator.integers(0, SIZE, 250))
    pieces = [
        (group, generator.permutation(SIZE)[: 0 if group % 5 == 3 else 1 + 17 * (group % 4)])
        for group in range(1, 33)
    ]
    col_groups = np.concatenate(
        [np.full(members.size, group, np.int32) for group, members in pieces]
    )
    cols = base + np.concatenate([members for _, members in pieces])
    shuffled = generator.permutation(cols.size)
    for order in (np.arange(cols.size), shuffled):
        rows = EdgeSpans.locate(version(base), 0, 1, ids)
        targets = select_targets(cols[order], None, col_groups[order])
        expected_edges = expected(ids, cols[order], base, groups, col_groups[order])
        bitset_join = BitsetJoin.create_if_fits(rows, targets, as_kernel_array(groups))
        assert bitset_join is not None
        assert search_edges(bitset_join, rows, buffer_size) == expected_edges
        assert (
            search_edges(HashJoin(rows, targets, as_kernel_array(groups)), rows, buffer_size)
            == expected_edges
        )


def test_bitset_needs_nearby_targets_and_ascending_groups() -> None:
    ids = np.arange(40)
    rows = EdgeSpans.locate(version(0), 0, 1, ids)
    words = 1024 + rows.edges
    for last, fits in (
        (64 * words - 65, True),
        (64 * words - 64, True),
        (64 * words - 1, False),
        (1 << 62, False),
    ):
        cols = np.array([0, 5, last])
        targets = select_targets(cols, None, None)
        assert (BitsetJoin.create_if_fits(rows, targets, NO_GROUPS) is not None) == fits, last
        induced_edges = sampling.find_induced_edges(
            version(0),
            edge_types=[0],
            node_type=0,
            ids=ids,
            cols=cols,
            direction=1,
            want_weights=True,
            want_edge_ids=True,
        )
        assert induced_edges.eids is not None
        assert induced_edges.eids.tolist() == [
            eid for _, eid, _, _ in expected(ids, cols, 0, NO_GROUPS, NO_GROUPS)
        ]
    targets = select_targets(np.arange(40), None, np.zeros(40, np.int32))
    assert (
        BitsetJoin.create_if_fits(rows, targets, as_kernel_array(np.arange(40, dtype=np.int32)))
        is not None
    )
    assert (
        BitsetJoin.create_if_fits(
            rows, targets, as_kernel_array(np.arange(40, dtype=np.int32)[::-1].copy())
        )
        is None
    )
    assert (
        BitsetJoin.create_if_fits(rows, select_targets(np.full(3, -1), None, None), NO_GROUPS)
        is None
    )
    assert (
        BitsetJoin.create_if_fits(
            EdgeSpans.locate(version(0), 0, 1, np.array([-1])),
            select_targets(ids, None, None),
            NO_GROUPS,
        )
        is None
    )


@pytest.mark.parametrize("below", [0, 50])
def test_narrow_neighbors_never_match_targets_over_32_bits(below: int) -> None:
    """The low 32 bits may be equal."""
    ids = np.arange(SIZE)
    rows, targets = (
        EdgeSpans.locate(version(0), 0, 1, ids),
        select_targets((1 << 32) - below + ids, None, None),
    )
    bitset_join = BitsetJoin.create_if_fits(rows, targets, NO_GROUPS)
    assert bitset_join is not None
    assert search_edges(bitset_join, rows, 1200) == []
    assert search_edges(bitset_join, rows, 1200, weighted=False) == []


def test_groups_of_nodes_without_edges_do_not_count() -> None:
    degrees = np.array([2, 0, 1, 0, 3])
    assert groups_ascend(np.array([1, 9, 1, 0, 4], np.int32), as_kernel_array(degrees))
    assert not groups_ascend(np.array([1, 9, 1, 0, 0], np.int32), as_kernel_array(degrees))


@pytest.mark.parametrize("grouped", [False, True])
def test_duplicate_target_is_found_by_hashing(grouped: bool) -> None:
    ids = np.arange(SIZE)
    groups, cols = ids // 100, np.concatenate([ids, [SIZE - 1, 3, 3, 250]])
    col_groups = np.concatenate([groups, [2, 0, 0, 2]])
    group_arrays = (
        (groups.astype(np.int32), col_groups.astype(np.int32)) if grouped else (None, None)
    )
    rows, targets = (
        EdgeSpans.locate(version(0), 0, 1, ids),
        select_targets(cols, None, group_arrays[1]),
    )
    bitset_join = BitsetJoin.create_if_fits(
        rows, targets, NO_GROUPS if group_arrays[0] is None else as_kernel_array(group_arrays[0])
    )
    assert bitset_join is not None
    buffers = EdgeOutputs(
        np.zeros(99_999, np.int32), np.zeros(0, np.float32), np.zeros(0, np.int64)
    )
    state, sizes = np.zeros(2, np.int64), np.zeros(SIZE, np.int32)
    assert not bitset_join.find(state, sizes, buffers, np.zeros(1, np.int64))
    induced_edges = sampling.find_induced_edges(
        version(0),
        edge_types=[0],
        node_type=0,
        ids=ids,
        cols=cols,
        groups=group_arrays[0],
        col_groups=group_arrays[1],
        direction=1,
        want_weights=True,
        want_edge_ids=True,
    )
    assert induced_edges.eids is not None
    assert induced_edges.weights is not None
    rows_of_edges = np.repeat(ids, induced_edges.counts)
    expected_edges = expected(
        ids,
        cols,
        0,
        *(NO_GROUPS if group_array is None else group_array for group_array in group_arrays),
    )
    assert (
        list(
            zip(
                rows_of_edges.tolist(),
                induced_edges.eids.tolist(),
                induced_edges.cols.tolist(),
                induced_edges.weights.tolist(),
                strict=True,
            )
        )
        == expected_edges
    )
