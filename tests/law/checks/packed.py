"""Checks of packed rows: they are another way to what tables and lists of neighbors say, and must lead there draw by draw."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.kit.images import Edges, Nodes, apart, hosted, packed, version_of
from tests.law.checks.basis import require

from asterism_proto.schema import EdgeType, NodeType, Schema
from graphkit import rng
from storaged import draw
from storaged.store.image import Adjacency


def packed_rows_draw_what_tables_do(scale: float) -> None:
    """Neighbors, their edges and walks: with zero weights, rows of nothing, holes in a batch, equal weights, none, on several hosts."""
    size, generator = 40, np.random.default_rng(12)
    m, count = 6 * size, int(max(4, 20 * scale))
    heavy = np.exp(generator.normal(size=m) * 3).astype(np.float32)
    ends = generator.integers(0, size, (2, m))
    heavy[generator.random(m) < 0.3] = 0
    heavy[ends[0] < 5] = 0
    ids = np.r_[generator.integers(0, size, int(max(60, 400 * scale))), -1, size + 3]
    for parts, placement in ((1, "mod"), (4, "mod"), (3, "mod"), (3, "mix64")):
        for weights in (heavy, np.full(m, 2, np.float32), None):
            edge_type = EdgeType(src_type="n", relation="e", dst_type="n", weighted=weights is not None)
            nodes = {"n": Nodes(ids=np.arange(size)), "x": Nodes(ids=np.arange(3))}
            schema = Schema(node_types=(NodeType(name="n"), NodeType(name="x")), edge_types=(edge_type,), parts=parts, placement=placement)
            version = version_of(schema, nodes, {"n:e:n": Edges(src=ends[0], dst=ends[1], weights=weights)})
            for uniform in (False, True):
                what = f"{parts} parts by {placement}, uniform={uniform}, weights {weights is not None}"
                # As many as are drawn of a node at a time, more of few than of several together; nodes of two types, so that places differ.
                for some_ids, draws, kinds in (
                    (ids, count, None),
                    (ids[:9], 70, None),
                    (ids[-5:], 700, None),
                    (ids, count, np.arange(ids.size) % 3 // 2),
                ):
                    for want in (False, True):
                        once, again = (_drawn(held, some_ids, draws, uniform, want, kinds=kinds) for held in (version, apart(version)))
                        for name in ("ids", "weights", "eids") if want else ("ids",):
                            same = bool((getattr(once, name) == getattr(again, name)).all())
                            require(same, f"{what}: other {name} than by tables, {draws} draws of {some_ids.size}, types {kinds is not None}")
                some = hosted(version, range(0, parts, 2)) if parts > 1 and placement == "mod" else version
                here = ids[:-2][np.isin(ids[:-2] % parts, list(some.parts))] if placement == "mod" else ids[:-2]
                walks = [_walked(held, here, uniform) for held in (some, apart(some))]
                same = bool((walks[0].indptr == walks[1].indptr).all()) and bool((walks[0].ids == walks[1].ids).all())
                require(same, f"{what}: other walks than by tables")
                for p, q in ((0.5, 2.0), (0.2, 0.5), (4.0, 0.25), (2.0, 3.0)):
                    biased = [_walked(held, here, uniform, p, q) for held in (some, apart(some))]
                    require(_alike(*biased), f"{what}: other walks by p = {p} and q = {q} than by tables")


def packed_coins_have_64_bits(scale: float) -> None:
    """A coin at its threshold leads to the alias, one just below keeps the column: also where only the low halves tell."""
    del scale
    schema = Schema(node_types=(NodeType(name="n"),), edge_types=(EdgeType(src_type="n", relation="e", dst_type="n", weighted=True),), parts=2)
    edges = Edges(src=np.array([1, 1, 0]), dst=np.array([0, 1, 1]), weights=np.array([1, 3, 1], np.float32))
    version = version_of(schema, {"n": Nodes(ids=np.arange(2))}, {"n:e:n": edges})
    for seed in range(20):
        position = np.array([seed], np.int64)
        own = np.uint64(rng.derive(rng.key_of(seed, rng.NEIGHBOR, 1, 0), np.uint64(seed)))
        w = int(rng.word(own, np.uint64(0)))
        column, coin = (w * 2) >> 64, (w * 2) & ((1 << 64) - 1)
        for threshold, kept in ((coin, False), (coin + 1, True)):
            image = version.parts[1]
            side = _with_threshold(image.edges[0].out, column, threshold)
            held = replace(version, parts={0: version.parts[0], 1: replace(image, edges=(replace(image.edges[0], out=side),))})
            for want in (False, True):
                found = _drawn(held, np.array([1]), 1, False, want, position, seed)
                expected = column if kept else 1 - column
                told = f"seed {seed}: coin {coin:#x} at threshold {threshold:#x}"
                require(int(found.ids[0, 0]) == expected, f"{told} draws {found.ids[0, 0]}, not {expected}")


def _with_threshold(side: Adjacency, column: int, threshold: int) -> Adjacency:
    hot, cold = side.hot.copy(), side.cold.copy()
    hot[column] = (threshold >> 32) << 32 | (1 - column)
    cold[column] = np.uint32(threshold & 0xFFFFFFFF)
    return packed(replace(side, hot=hot, cold=cold))


def _drawn(
    version: draw.Version,
    ids: NDArray[np.int64],
    count: int,
    uniform: bool,
    want: bool,
    positions: NDArray[np.int64] | None = None,
    seed: int = 31,
    kinds: NDArray[np.int64] | None = None,
) -> Any:
    return draw.neighbors(
        version,
        edge_types=[0],
        node_type=0 if kinds is None else -1,
        ids=ids,
        types=None if kinds is None else kinds.astype(np.int32),
        positions=np.arange(ids.size) * 3 if positions is None else positions,
        count=count,
        replace=True,
        uniform=uniform,
        direction=1,
        seed=seed,
        hop=0,
        want_weights=want,
        want_edge_ids=want,
    )


def _walked(version: draw.Version, ids: NDArray[np.int64], uniform: bool, p: float = 1.0, q: float = 1.0) -> draw.Walks:
    """Walks that are under way: where steps are biased, from nodes next to some, far from some, of another type, and after attempts elsewhere."""
    numbers = np.arange(ids.size)
    places = draw.Places(ids=ids, kinds=(numbers % 17 == 16).astype(np.int32), positions=numbers, taken=(numbers % 3).astype(np.int32))
    if (p, q) == (1.0, 1.0):
        return draw.walk(version, draw.Rules(steps=[[0], [0]], length=7, uniform=uniform, direction=1, seed=32), places)
    before = np.where(numbers % 3, np.random.default_rng(2).permutation(ids), -1)
    elsewhere = ~np.isin(before % version.schema.parts, list(version.parts)) & (numbers % 2 == 0)
    kinds = np.where((before < 0) | elsewhere, -1, numbers % 4 == 2).astype(np.int32)
    places = replace(places, before=before, before_kinds=kinds, attempts=numbers % 4)
    return draw.walk(version, draw.Rules(steps=[[0]], length=7, uniform=uniform, direction=1, seed=32, p=p, q=q), places)


def _alike(one: draw.Walks, other: draw.Walks) -> bool:
    """Whether walks by p and q are the same, and those hang that did, on the same edges."""
    assert one.open is not None
    assert other.open is not None
    hanging = one.open.open
    same = bool((one.indptr == other.indptr).all()) and bool((one.ids == other.ids).all()) and bool((hanging == other.open.open).all())
    columns = ("ids", "types", "attempts")
    return same and all(bool((getattr(one.open, name)[hanging] == getattr(other.open, name)[hanging]).all()) for name in columns)
