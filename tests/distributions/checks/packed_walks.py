"""Checks of packed rows, a second representation of alias tables and neighbor lists.

Both representations must give the same result for every draw.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.distributions.checks.basis import require
from tests.kit.images import (
    Edges,
    Nodes,
    restrict_to_parts,
    version_of,
    with_packed_columns,
    without_packed_columns,
)
from tests.kit.reference import node_tag

from asterism_graphkit.random import rng
from asterism_model.schema import EdgeType, NodeType, Schema
from storaged import sampling
from storaged.store.image import AdjacencyImage


def packed_rows_draw_what_tables_do(scale: float) -> None:
    """Neighbors, their edges and walks are equal with and without packed rows.

    The cases include zero weights, rows of weight 0, holes in a batch, equal weights, empty rows,
    and several hosts.
    """
    size, generator = 40, np.random.default_rng(12)
    m, count = 6 * size, int(max(4, 20 * scale))
    heavy = np.exp(generator.normal(size=m) * 3).astype(np.float32)
    ends = generator.integers(0, size, (2, m))
    heavy[generator.random(m) < 0.3] = 0
    heavy[ends[0] < 5] = 0
    ids = np.r_[generator.integers(0, size, int(max(60, 400 * scale))), -1, size + 3]
    for parts, placement in ((1, "mod"), (4, "mod"), (3, "mod"), (3, "mix64")):
        for weights in (heavy, np.full(m, 2, np.float32), None):
            edge_type = EdgeType(
                src_type="n", relation="e", dst_type="n", weighted=weights is not None
            )
            nodes = {"n": Nodes(ids=np.arange(size)), "x": Nodes(ids=np.arange(3))}
            schema = Schema(
                node_types=(NodeType(name="n"), NodeType(name="x")),
                edge_types=(edge_type,),
                parts=parts,
                placement=placement,
            )
            version = version_of(
                schema, nodes, {"n:e:n": Edges(src=ends[0], dst=ends[1], weights=weights)}
            )
            for uniform in (False, True):
                label = (
                    f"{parts} parts by {placement}, uniform={uniform}, weights "
                    f"{weights is not None}"
                )
                # Counts around the number that is drawn for one node at a time, and nodes of two
                # types, so that positions differ.
                for some_ids, draws, kinds in (
                    (ids, count, None),
                    (ids[:9], 70, None),
                    (ids[-5:], 700, None),
                    (ids, count, np.arange(ids.size) % 3 // 2),
                ):
                    for want_columns in (False, True):
                        packed_samples, table_samples = (
                            _sample_neighbors(
                                image_version, some_ids, draws, uniform, want_columns, kinds=kinds
                            )
                            for image_version in (version, without_packed_columns(version))
                        )
                        for name in ("ids", "weights", "eids") if want_columns else ("ids",):
                            same = bool(
                                (
                                    getattr(packed_samples, name) == getattr(table_samples, name)
                                ).all()
                            )
                            require(
                                same,
                                (
                                    f"{label}: other {name} than by tables, {draws} draws of "
                                    f"{some_ids.size}, types {kinds is not None}"
                                ),
                            )
                some_parts = (
                    restrict_to_parts(version, range(0, parts, 2))
                    if parts > 1 and placement == "mod"
                    else version
                )
                start_ids = (
                    ids[:-2][np.isin(ids[:-2] % parts, list(some_parts.parts))]
                    if placement == "mod"
                    else ids[:-2]
                )
                walks_by_method = [
                    _sample_walks(image_version, start_ids, uniform)
                    for image_version in (some_parts, without_packed_columns(some_parts))
                ]
                same = bool(
                    (walks_by_method[0].indptr == walks_by_method[1].indptr).all()
                ) and bool((walks_by_method[0].ids == walks_by_method[1].ids).all())
                require(same, f"{label}: other walks than by tables")
                for p, q in ((0.5, 2.0), (0.2, 0.5), (4.0, 0.25), (2.0, 3.0)):
                    biased_walks = [
                        _sample_walks(image_version, start_ids, uniform, p, q)
                        for image_version in (some_parts, without_packed_columns(some_parts))
                    ]
                    require(
                        _walks_equal(*biased_walks),
                        f"{label}: other walks by p = {p} and q = {q} than by tables",
                    )


def packed_coins_have_64_bits(scale: float) -> None:
    """A coin at its threshold selects the alias, and one just below keeps the column.

    This includes cases in which only the low halves differ.
    """
    del scale
    schema = Schema(
        node_types=(NodeType(name="n"),),
        edge_types=(EdgeType(src_type="n", relation="e", dst_type="n", weighted=True),),
        parts=2,
    )
    edges = Edges(
        src=np.array([1, 1, 0]), dst=np.array([0, 1, 1]), weights=np.array([1, 3, 1], np.float32)
    )
    version = version_of(schema, {"n": Nodes(ids=np.arange(2))}, {"n:e:n": edges})
    for seed in range(20):
        position = np.array([seed], np.int64)
        tag = node_tag(seed, 1, 0)
        own = np.uint64(rng.derive_mixed(rng.key_of(seed, rng.NEIGHBOR, 1, 0), np.uint64(tag)))
        w = int(rng.word(own, np.uint64(0)))
        column, coin = (w * 2) >> 64, (w * 2) & ((1 << 64) - 1)
        for threshold, is_kept in ((coin, False), (coin + 1, True)):
            image = version.parts[1]
            side = _with_threshold(image.edges[0].outgoing, column, threshold)
            altered_version = replace(
                version,
                parts={
                    0: version.parts[0],
                    1: replace(image, edges=(replace(image.edges[0], outgoing=side),)),
                },
            )
            for want_columns in (False, True):
                samples = _sample_neighbors(
                    altered_version, np.array([1]), 1, False, want_columns, position, seed
                )
                expected = column if is_kept else 1 - column
                case = f"seed {seed}: coin {coin:#x} at threshold {threshold:#x}"
                require(
                    int(samples.ids[0, 0]) == expected,
                    f"{case} draws {samples.ids[0, 0]}, not {expected}",
                )


def _with_threshold(side: AdjacencyImage, column: int, threshold: int) -> AdjacencyImage:
    alias_thresholds, alias_fractions = side.hot.copy(), side.cold.copy()
    alias_thresholds[column] = (threshold >> 32) << 32 | (1 - column)
    alias_fractions[column] = np.uint32(threshold & 0xFFFFFFFF)
    return with_packed_columns(replace(side, hot=alias_thresholds, cold=alias_fractions))


def _sample_neighbors(
    version: sampling.LocalVersion,
    ids: NDArray[np.int64],
    count: int,
    uniform: bool,
    want_columns: bool,
    positions: NDArray[np.int64] | None = None,
    seed: int = 31,
    kinds: NDArray[np.int64] | None = None,
) -> Any:
    return sampling.sample_neighbors(
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
        want_weights=want_columns,
        want_edge_ids=want_columns,
    )


def _sample_walks(
    version: sampling.LocalVersion,
    ids: NDArray[np.int64],
    uniform: bool,
    p: float = 1.0,
    q: float = 1.0,
) -> sampling.WalkSteps:
    """Return steps of walks in progress.

    For biased walks, the previous nodes are near or far, of another type, or follow attempts
    elsewhere.
    """
    numbers = np.arange(ids.size)
    state = sampling.WalkState(
        ids=ids,
        kinds=(numbers % 17 == 16).astype(np.int32),
        positions=numbers,
        taken=(numbers % 3).astype(np.int32),
    )
    if (p, q) == (1.0, 1.0):
        return sampling.continue_walks(
            version,
            sampling.WalkSpec(steps=[[0], [0]], length=7, uniform=uniform, direction=1, seed=32),
            state,
        )
    previous = np.where(numbers % 3, np.random.default_rng(2).permutation(ids), -1)
    elsewhere = ~np.isin(previous % version.schema.parts, list(version.parts)) & (numbers % 2 == 0)
    kinds = np.where((previous < 0) | elsewhere, -1, numbers % 4 == 2).astype(np.int32)
    state = replace(state, before=previous, before_kinds=kinds, attempts=numbers % 4)
    return sampling.continue_walks(
        version,
        sampling.WalkSpec(steps=[[0]], length=7, uniform=uniform, direction=1, seed=32, p=p, q=q),
        state,
    )


def _walks_equal(one: sampling.WalkSteps, other: sampling.WalkSteps) -> bool:
    """Return whether two biased walks are equal, with the same pending walks and edges."""
    assert one.pending is not None
    assert other.pending is not None
    pending = one.pending.is_pending
    is_same = (
        bool((one.indptr == other.indptr).all())
        and bool((one.ids == other.ids).all())
        and bool((pending == other.pending.is_pending).all())
    )
    columns = ("ids", "types", "attempts")
    return is_same and all(
        bool((getattr(one.pending, name)[pending] == getattr(other.pending, name)[pending]).all())
        for name in columns
    )
