"""Edges to targets, found by bits and by a hash table, against what a loop over all edges finds."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.kit.images import Edges, Nodes, apart, version_of

from asterism_proto.schema import EdgeType, NodeType, Schema
from graphkit.jit import settled
from storaged import draw
from storaged.draw.lookup import Rows
from storaged.draw.targets import Hashed, Marked, Search, Targets
from storaged.kernel.marked import ascend

SIZE, PARTS = 300, 3
GENERATOR = np.random.default_rng(15)
SRC = np.concatenate([GENERATOR.integers(0, SIZE, 3000), np.zeros(900, np.int64), np.full(200, SIZE - 1)])
DST = np.concatenate([GENERATOR.integers(0, SIZE, 3000), np.arange(900) % SIZE, GENERATOR.integers(0, SIZE, 200)])
WEIGHTS = GENERATOR.random(SRC.size).astype(np.float32)
Told = list[tuple[int, int, int, float]]
NONE = np.zeros(0, np.int32)
FAR = 1 << 40
"""From here on ids do not fit into 32 bits."""


@cache
def version(base: int) -> draw.Version:
    """Nodes base, base + 1, ..., two of them with many edges, parallel ones and loops among them; ids in 32 bits only from 0 on."""
    types = (EdgeType(src_type="n", relation="x", dst_type="n", weighted=True),)
    schema = Schema(node_types=(NodeType(name="n"),), edge_types=types, parts=PARTS)
    made = version_of(schema, {"n": Nodes(ids=base + np.arange(SIZE))}, {"n:x:n": Edges(src=base + SRC, dst=base + DST, weights=WEIGHTS)})
    return apart(made) if base else made


def expected(ids: NDArray[np.int64], cols: NDArray[np.int64], base: int, groups: NDArray[np.int32], col_groups: NDArray[np.int32]) -> Told:
    """(row, edge id, col, weight), by (row, neighbor, edge id, col)."""
    found = []
    for row, node in enumerate((ids - base).tolist()):
        for eid in np.flatnonzero(node == SRC).tolist():
            one = (cols - base == DST[eid]) & (True if not groups.size else col_groups == groups[row])
            found += [(row, int(DST[eid]), eid, col, float(WEIGHTS[eid])) for col in np.flatnonzero(one).tolist()]
    return [(row, eid, col, weight) for row, _, eid, col, weight in sorted(found)]


def told(search: Search, rows: Rows, room: int, *, weighted: bool = True) -> Told:
    """What a search finds, asked again with a little more room whenever that is used up; ``weighted``: with weights, which are 0 otherwise."""
    state, sizes = np.zeros(2, np.int64), np.full(rows.lines.size, -7, np.int32)
    kept: tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.int64]] = (np.zeros(0, np.int32), np.zeros(0, np.float32), np.zeros(0, np.int64))
    for more in itertools.count(1):
        cols, weights, eids = (np.concatenate([old[: state[1]], np.full(more * room - state[1], -7, old.dtype)]) for old in kept)
        kept = (cols, weights if weighted else weights[:0], eids)
        assert search.find(state, sizes, kept)
        if state[0] == sizes.size:
            break
    cols, weights, eids = (some[: state[1]] for some in kept)
    weights = weights if weighted else np.zeros(cols.size, np.float32)
    at = np.repeat(np.arange(sizes.size), sizes)
    return list(zip(at.tolist(), eids.tolist(), cols.tolist(), weights.tolist(), strict=True))


@pytest.mark.parametrize("base", [0, 7, FAR])
@pytest.mark.parametrize("room", [1200, 100_000])
@pytest.mark.parametrize("width", [1, 3, 40, SIZE])
def test_both_ways_find_what_a_loop_finds(base: int, room: int, width: int) -> None:
    generator = np.random.default_rng([width, room])
    cols = base + np.concatenate([generator.permutation(SIZE)[:width], [SIZE + 70, SIZE + 5]])
    cols[generator.integers(0, cols.size)] = -1
    ids = np.concatenate([base + generator.integers(0, SIZE, 60), [base, -1, base + SIZE + 9, base + SIZE - 1, base]])
    rows, targets = Rows.of(version(base), 0, 1, ids), Targets.of(cols, None, None)
    marked, law = Marked.fit(rows, targets, NONE), expected(ids, cols, base, NONE, NONE)
    assert marked is not None
    assert told(marked, rows, room) == law
    assert told(marked, rows, room) == law, "a second time: bits are left as they were"
    assert told(marked, rows, room, weighted=False) == [(row, eid, col, 0.0) for row, eid, col, _ in law]
    assert told(Hashed(rows, targets, NONE), rows, room) == law


@pytest.mark.parametrize("base", [0, FAR])
@pytest.mark.parametrize("room", [1200, 100_000])
def test_both_ways_keep_groups_apart(base: int, room: int) -> None:
    """Many groups one after another, some without targets or rows, one node in several, few targets and many."""
    generator = np.random.default_rng(room)
    groups = np.sort(generator.integers(0, 30, 250)).astype(np.int32)
    ids = base + np.where(generator.random(250) < 0.1, 0, generator.integers(0, SIZE, 250))
    pieces = [(group, generator.permutation(SIZE)[: 0 if group % 5 == 3 else 1 + 17 * (group % 4)]) for group in range(1, 33)]
    col_groups = np.concatenate([np.full(own.size, group, np.int32) for group, own in pieces])
    cols = base + np.concatenate([own for _, own in pieces])
    shuffled = generator.permutation(cols.size)
    for order in (np.arange(cols.size), shuffled):
        rows = Rows.of(version(base), 0, 1, ids)
        targets = Targets.of(cols[order], None, col_groups[order])
        law = expected(ids, cols[order], base, groups, col_groups[order])
        marked = Marked.fit(rows, targets, settled(groups))
        assert marked is not None
        assert told(marked, rows, room) == law
        assert told(Hashed(rows, targets, settled(groups)), rows, room) == law


def test_bits_are_for_targets_near_each_other_and_groups_that_ascend() -> None:
    ids = np.arange(40)
    rows = Rows.of(version(0), 0, 1, ids)
    words = 1024 + rows.edges
    for last, fits in ((64 * words - 65, True), (64 * words - 64, True), (64 * words - 1, False), (1 << 62, False)):
        cols = np.array([0, 5, last])
        targets = Targets.of(cols, None, None)
        assert (Marked.fit(rows, targets, NONE) is not None) == fits, last
        found = draw.edges_between(version(0), edge_types=[0], node_type=0, ids=ids, cols=cols, direction=1, want_weights=True, want_edge_ids=True)
        assert found.eids is not None
        assert found.eids.tolist() == [eid for _, eid, _, _ in expected(ids, cols, 0, NONE, NONE)]
    targets = Targets.of(np.arange(40), None, np.zeros(40, np.int32))
    assert Marked.fit(rows, targets, settled(np.arange(40, dtype=np.int32))) is not None
    assert Marked.fit(rows, targets, settled(np.arange(40, dtype=np.int32)[::-1].copy())) is None
    assert Marked.fit(rows, Targets.of(np.full(3, -1), None, None), NONE) is None
    assert Marked.fit(Rows.of(version(0), 0, 1, np.array([-1])), Targets.of(ids, None, None), NONE) is None


@pytest.mark.parametrize("below", [0, 50])
def test_narrow_neighbors_are_no_targets_that_do_not_fit_into_32_bits(below: int) -> None:
    """Also where 32 bits of both are the same."""
    ids = np.arange(SIZE)
    rows, targets = Rows.of(version(0), 0, 1, ids), Targets.of((1 << 32) - below + ids, None, None)
    marked = Marked.fit(rows, targets, NONE)
    assert marked is not None
    assert told(marked, rows, 1200) == []
    assert told(marked, rows, 1200, weighted=False) == []


def test_groups_of_nodes_without_edges_do_not_count() -> None:
    degrees = np.array([2, 0, 1, 0, 3])
    assert ascend(np.array([1, 9, 1, 0, 4], np.int32), settled(degrees))
    assert not ascend(np.array([1, 9, 1, 0, 0], np.int32), settled(degrees))


@pytest.mark.parametrize("grouped", [False, True])
def test_a_target_that_is_there_twice_is_found_by_hashes(grouped: bool) -> None:
    ids = np.arange(SIZE)
    groups, cols = ids // 100, np.concatenate([ids, [SIZE - 1, 3, 3, 250]])
    col_groups = np.concatenate([groups, [2, 0, 0, 2]])
    how = (groups.astype(np.int32), col_groups.astype(np.int32)) if grouped else (None, None)
    rows, targets = Rows.of(version(0), 0, 1, ids), Targets.of(cols, None, how[1])
    marked = Marked.fit(rows, targets, NONE if how[0] is None else settled(how[0]))
    assert marked is not None
    out = (np.zeros(99_999, np.int32), np.zeros(0, np.float32), np.zeros(0, np.int64))
    assert not marked.find(np.zeros(2, np.int64), np.zeros(SIZE, np.int32), out)
    found = draw.edges_between(
        version(0),
        edge_types=[0],
        node_type=0,
        ids=ids,
        cols=cols,
        groups=how[0],
        col_groups=how[1],
        direction=1,
        want_weights=True,
        want_edge_ids=True,
    )
    assert found.eids is not None
    assert found.weights is not None
    at = np.repeat(ids, found.counts)
    law = expected(ids, cols, 0, *(NONE if some is None else some for some in how))
    assert list(zip(at.tolist(), found.eids.tolist(), found.cols.tolist(), found.weights.tolist(), strict=True)) == law
