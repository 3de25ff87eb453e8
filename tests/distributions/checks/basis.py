"""Basis of the checks: verdicts with a stated alpha, small graphs, and samples of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincc
from tests.kit.images import Edges, Nodes, version_of

from asterism_model.schema import EdgeType, NodeType, Schema
from storaged import sampling

ALPHA = 1e-7
"""Significance level of each statistic.

With a few hundred statistics, a correct sampler would be rejected once in 10^5 runs if seeds were
not fixed.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic:
    """One chi-square test."""

    label: str
    samples: int
    degrees: int
    """Degrees of freedom."""
    value: float
    p: float


_recordings: list[list[Statistic]] = []


@contextmanager
def recording() -> Iterator[list[Statistic]]:
    """Yield a list to which every chi-square test of the block is added."""
    statistics: list[Statistic] = []
    _recordings.append(statistics)
    try:
        yield statistics
    finally:
        _recordings[:] = [other for other in _recordings if other is not statistics]


class Rejected(AssertionError):
    """The sampler does not follow the expected distribution."""


def require(condition: bool, message: str) -> None:
    if not condition:
        raise Rejected(message)


def require_counts(
    observed: Sequence[int] | NDArray[Any],
    expected: Sequence[float] | NDArray[Any],
    label: str,
    *,
    estimated: int = 0,
) -> None:
    """Require counts to match expected ones by a chi-square test.

    Impossible outcomes must not occur; rare cells are merged. ``estimated`` is the number of
    parameters of the expected counts that come from the observed ones; each takes a degree of
    freedom, unless cells are merged.
    """
    counts, means = np.asarray(observed, np.float64), np.asarray(expected, np.float64)
    require(not counts[means == 0].any(), f"{label}: something impossible was drawn")
    order = np.argsort(-means, kind="stable")
    counts, means = counts[order], means[order]
    common = means >= 5
    cells, cell_means = list(counts[common]), list(means[common])
    if means[~common].sum() >= 5:
        cells, cell_means = [*cells, counts[~common].sum()], [*cell_means, means[~common].sum()]
    degrees = len(cells) - 1 - (estimated if common[means > 0].all() else 0)
    if degrees < 1:
        return
    statistic = sum((c - m) ** 2 / m for c, m in zip(cells, cell_means, strict=True))
    p = float(gammaincc(degrees / 2, statistic / 2))
    for statistics in _recordings:
        statistics.append(
            Statistic(
                label=label,
                samples=int(counts.sum()),
                degrees=degrees,
                value=float(statistic),
                p=p,
            )
        )
    require(
        p >= ALPHA,
        f"{label}: chi-square {statistic:.1f} with {degrees} degrees of freedom, p = {p:.2g}",
    )


def require_independent(
    first: NDArray[np.int64], second: NDArray[np.int64], size: int, label: str
) -> None:
    """Require two sequences of 0 .. size - 1 to be independent, by a chi-square test of pairs."""
    pairs = np.bincount(first * size + second, minlength=size * size)
    shares_first, shares_second = (
        np.bincount(first, minlength=size) / first.size,
        np.bincount(second, minlength=size) / second.size,
    )
    require_counts(
        pairs,
        np.outer(shares_first, shares_second).ravel() * first.size,
        label,
        estimated=np.count_nonzero(shares_first) + np.count_nonzero(shares_second) - 2,
    )


@cache
def weighted_nodes(
    weights: tuple[float, ...], parts: int, skew: bool = False
) -> sampling.LocalVersion:
    """Return a version with one node per weight.

    ``skew`` puts all but the last into partition 0.
    """
    n = len(weights)
    ids = np.arange(n, dtype=np.int64)
    if skew:
        ids = np.r_[np.arange(n - 1) * parts, 1].astype(np.int64)
    schema = Schema(node_types=(NodeType(name="n", weighted=True),), parts=parts)
    return version_of(schema, {"n": Nodes(ids=ids, weights=np.array(weights, np.float32))})


@cache
def random_graph(size: int, parts: int) -> sampling.LocalVersion:
    """Return a graph of two edge types among ``size`` nodes.

    One type has weights over many orders of magnitude.
    """
    generator = np.random.default_rng(8)
    ends = [generator.integers(0, size, 6 * size) for _ in range(4)]
    weights = np.exp(generator.normal(size=6 * size) * 3).astype(np.float32)
    types = (
        EdgeType(src_type="n", relation="w", dst_type="n", weighted=True),
        EdgeType(src_type="n", relation="u", dst_type="n"),
    )
    edges = {
        "n:w:n": Edges(src=ends[0], dst=ends[1], weights=weights),
        "n:u:n": Edges(src=ends[2], dst=ends[3]),
    }
    return version_of(
        Schema(node_types=(NodeType(name="n"),), edge_types=types, parts=parts),
        {"n": Nodes(ids=np.arange(size))},
        edges,
    )


@cache
def star_graph(weights_by_type: tuple[tuple[float, ...], ...]) -> sampling.LocalVersion:
    """Return a graph of node 0 with edges of several types.

    Type t leads to nodes 0, 1, ... with the weights ``weights_by_type[t]``.
    """
    names = [f"n:e{t}:n" for t in range(len(weights_by_type))]
    types = tuple(
        EdgeType(src_type="n", relation=f"e{t}", dst_type="n", weighted=True)
        for t in range(len(weights_by_type))
    )
    edges = {
        name: Edges(
            src=np.zeros(len(weights), np.int64),
            dst=np.arange(len(weights)),
            weights=np.array(weights, np.float32),
        )
        for name, weights in zip(names, weights_by_type, strict=True)
    }
    size = max(len(weights) for weights in weights_by_type)
    return version_of(
        Schema(node_types=(NodeType(name="n"),), edge_types=types, parts=1),
        {"n": Nodes(ids=np.arange(size))},
        edges,
    )


def draw_nodes(
    version: sampling.LocalVersion, seed: int, count: int, *, start: int = 0, uniform: bool = False
) -> NDArray[np.int64]:
    return sampling.sample_nodes(
        version,
        types=[0],
        parts=list(version.parts),
        seed=seed,
        start=start,
        count=count,
        uniform=uniform,
    ).ids


def draw_star_neighbors(
    weights_by_type: tuple[tuple[float, ...], ...],
    seed: int,
    positions: int,
    count: int,
    *,
    replace: bool = True,
    uniform: bool = False,
    first: int = 0,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return neighbors and edge types [positions, count] of node 0 for each position."""
    samples = sampling.sample_neighbors(
        star_graph(weights_by_type),
        edge_types=list(range(len(weights_by_type))),
        node_type=0,
        ids=np.zeros(positions, np.int64),
        positions=np.arange(first, first + positions),
        count=count,
        replace=replace,
        uniform=uniform,
        direction=1,
        seed=seed,
        hop=0,
        want_weights=False,
        want_edge_ids=False,
    )
    types = np.zeros_like(samples.ids) if samples.types is None else samples.types.astype(np.int64)
    return samples.ids, types
