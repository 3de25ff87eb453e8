"""Checks of global sampling: shares, independence, and invariance to hosts and ranges."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from tests.distributions.checks.basis import (
    draw_nodes,
    draw_star_neighbors,
    random_graph,
    require,
    require_counts,
    require_independent,
    weighted_nodes,
)
from tests.distributions.checks.tables import WEIGHTS
from tests.kit.images import Nodes, restrict_to_parts, version_of, without_packed_columns

from asterism_graphkit.random import partition_choice, rng
from asterism_model.schema import NodeType, Schema
from storaged import sampling


def nodes_follow_their_weights(scale: float) -> None:
    """Counts of global draws, weighted and uniform, on one partition and on several."""
    for name, weights in WEIGHTS.items():
        for parts in (1, 3):
            version = weighted_nodes(weights, parts)
            total = math.fsum(np.array(weights, np.float32).astype(np.float64).tolist())
            n = int(max(400, 40_000 * scale))
            shares = np.array(weights, np.float32).astype(np.float64) / total
            observed = np.bincount(draw_nodes(version, 1, n), minlength=len(weights))
            require_counts(observed, shares * n, f"nodes {name} in {parts} parts")
        observed = np.bincount(draw_nodes(version, 2, n, uniform=True), minlength=len(weights))
        require_counts(observed, np.full(len(weights), n / len(weights)), f"nodes {name} uniformly")


def a_single_draw_follows_the_shares(scale: float) -> None:
    """Single draws over many seeds choose partitions by their shares.

    The shares are .9 and .1, and must not become .5 and .5.
    """
    trials = int(max(300, 4000 * scale))
    weights = (0.45, 0.45, 0.1)
    version = weighted_nodes(weights, 2, skew=True)  # ids 0, 2 and 1
    samples = np.array([draw_nodes(version, seed, 1)[0] for seed in range(trials)])
    require_counts(
        np.bincount(samples, minlength=3), np.array([0.45, 0.1, 0.45]) * trials, "draws of one node"
    )
    shares = partition_choice.build_shares([0], {(0, 0): 0.9, (0, 1): 0.1}, 2)
    first = [
        int(partition_choice.choose_entries(rng.key_of(seed, rng.PART, 1), 0, 1, shares)[0])
        for seed in range(trials)
    ]
    require_counts(
        np.bincount(first, minlength=2), np.array([0.9, 0.1]) * trials, "the part of a single draw"
    )


def parts_are_multinomial(scale: float) -> None:
    """The number of 6 draws that fall on a partition is binomial over many seeds.

    A proportional split would always return the mean.
    """
    trials, n = int(max(300, 4000 * scale)), 6
    shares = partition_choice.build_shares([0], {(0, 0): 2.0, (0, 1): 1.0, (0, 2): 3.0}, 3)
    counts = np.array(
        [
            np.bincount(
                partition_choice.choose_entries(rng.key_of(seed, rng.PART, 1), 0, n, shares),
                minlength=3,
            )
            for seed in range(trials)
        ]
    )
    for part, p in enumerate((2 / 6, 1 / 6, 3 / 6)):
        expected = [trials * math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
        require_counts(
            np.bincount(counts[:, part], minlength=n + 1), expected, f"draws on part {part} of 6"
        )


def neighboring_draws_are_independent(scale: float) -> None:
    """Pairs of draws at lags 1, 2, 7 and 64 in a call are independent.

    So are the j-th draws of different partitions.
    """
    n = int(max(1200, 60_000 * scale))
    weights = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)
    samples = draw_nodes(weighted_nodes(weights, 4), 5, n)
    for lag in (1, 2, 7, 64):
        require_independent(samples[:-lag], samples[lag:], 8, f"node draws at lag {lag}")
        require_independent(
            samples[:-lag] % 4, samples[lag:] % 4, 4, f"parts of node draws at lag {lag}"
        )
    samples = draw_nodes(weighted_nodes((1.0, 2.0) * 8, 2), 6, n, uniform=True)
    of_part = [samples[samples % 2 == part] // 2 for part in range(2)]
    shorter = min(piece.size for piece in of_part)
    require_independent(
        of_part[0][:shorter], of_part[1][:shorter], 8, "rows of the j-th draws of two parts"
    )
    ids, _ = draw_star_neighbors(((1.0, 2.0, 3.0, 4.0),), 7, n // 8, 8)
    for lag in (1, 3):
        require_independent(
            ids[:, :-lag].ravel(), ids[:, lag:].ravel(), 4, f"neighbor draws at lag {lag}"
        )
    require_independent(
        ids[:-1].ravel(), ids[1:].ravel(), 4, "neighbor draws of neighboring positions"
    )


def streams_are_not_lagged(scale: float) -> None:
    """Draws of neighboring seeds and positions are not shifted copies of one stream."""
    n = int(max(250, 2000 * scale))
    version = weighted_nodes((1.0,) * 50, 2)
    streams = [draw_nodes(version, seed, n) for seed in (100, 101, 102)]
    for a, b in itertools.combinations(range(3), 2):
        for lag in range(-8, 9):
            left, right = (
                streams[a][max(0, lag) : n + min(0, lag)],
                streams[b][max(0, -lag) : n - max(0, lag)],
            )
            same = int((left == right).sum())
            require(
                same <= 0.02 * n + 8 * math.sqrt(0.02 * n),
                f"seeds {100 + a} and {100 + b} agree in {same} of {n} draws at lag {lag}",
            )
    ids, _ = draw_star_neighbors(((1.0,) * 50,), 9, 20, 20)
    for lag in range(1, 4):
        same = int(
            (ids[:-1, lag:] == ids[1:, :-lag]).sum() + (ids[:-1, :-lag] == ids[1:, lag:]).sum()
        )
        cells = 2 * ids[:-1, lag:].size
        require(
            same <= 0.02 * cells + 8 * math.sqrt(0.02 * cells),
            f"neighboring positions agree in {same} of {cells} draws at lag {lag}",
        )


def hosts_and_ranges_do_not_change_draws(scale: float) -> None:
    """Merged results of 1, 2, 3, 5 and 8 hosts are equal bytes; so are ranges of draws."""
    n = int(max(300, 4000 * scale))
    generator = np.random.default_rng(3)
    version = weighted_nodes(tuple(generator.random(64)), 8)
    expected = draw_nodes(version, 11, n)
    entries = partition_choice.choose_entries(
        rng.key_of(11, rng.PART, 1), 0, n, version.part_shares(1, [0], False)
    )
    for hosts in (1, 2, 3, 5, 8):
        merged = np.full(n, -1, np.int64)
        for host in range(hosts):
            parts = [part for part in range(8) if part % hosts == host]
            samples = sampling.sample_nodes(
                restrict_to_parts(version, parts),
                types=[0],
                parts=parts,
                seed=11,
                start=0,
                count=n,
                uniform=False,
            )
            on_host = np.isin(entries, parts)
            require(
                int(on_host.sum()) == samples.ids.size,
                f"host {host} of {hosts} answers {samples.ids.size} draws of {int(on_host.sum())}",
            )
            merged[on_host] = samples.ids
        require(bool((merged == expected).all()), f"{hosts} hosts draw other nodes than one")
    require(
        bool((draw_nodes(version, 11, n // 3) == expected[: n // 3]).all()),
        "the first third of the draws is not the request for a third",
    )
    require(
        bool(
            (draw_nodes(version, 11, n // 3, start=n // 3) == expected[n // 3 : 2 * (n // 3)]).all()
        ),
        "the second third is not",
    )


def hosts_do_not_change_neighbors_edges_and_selections(scale: float) -> None:
    """Neighbors, global edges and exponential-key selection do not depend on hosts.

    Neighbors are sampled with and without replacement. Other rows in a batch have no effect either.
    """
    n = int(max(150, 2000 * scale))
    version = random_graph(64, 8)
    ids = np.random.default_rng(4).integers(0, 64, n)
    request: dict[str, Any] = {
        "edge_types": [0, 1],
        "node_type": 0,
        "count": 3,
        "direction": 1,
        "seed": 5,
        "hop": 2,
    }
    request |= {"want_weights": True, "want_edge_ids": True}
    edges = sampling.sample_edges(
        version, types=[0, 1], parts=range(8), seed=6, start=0, count=n, uniform=False
    )
    no_exclusions: dict[str, Any] = {
        "taken_ids": np.zeros(0, np.int64),
        "taken_types": np.zeros(0, np.int32),
    }
    expected_race = sampling.sample_distinct_edges(
        version, types=[0, 1], parts=range(8), seed=6, count=20, **no_exclusions
    )
    expected_samples = {
        (replace, uniform): sampling.sample_neighbors(
            version, ids=ids, positions=np.arange(n), replace=replace, uniform=uniform, **request
        )
        for replace, uniform in itertools.product((True, False), repeat=2)
    }
    for hosts in (1, 2, 3, 5, 8):
        merged: list[tuple[float, int, int]] = []
        is_sampled = np.zeros(n, bool)
        for host in range(hosts):
            parts = [part for part in range(8) if part % hosts == host]
            host_view = restrict_to_parts(version, parts)
            positions = np.flatnonzero(np.isin(ids % 8, parts))[
                ::-1
            ]  # in another order, and with other rows
            for (replace, uniform), expected in expected_samples.items():
                samples = sampling.sample_neighbors(
                    host_view,
                    ids=ids[positions],
                    positions=positions,
                    replace=replace,
                    uniform=uniform,
                    **request,
                )
                for name in ("ids", "types", "weights", "eids"):
                    same = np.array_equal(
                        getattr(samples, name), getattr(expected, name)[positions]
                    )
                    require(same, f"{name} of neighbors drawn by host {host} of {hosts} differ")
            host_edges = sampling.sample_edges(
                host_view, types=[0, 1], parts=parts, seed=6, start=0, count=n, uniform=False
            )
            on_host = np.isin(edges.src % 8, parts)
            for name in ("src", "dst", "eids", "types", "weights"):
                require(
                    np.array_equal(getattr(host_edges, name), getattr(edges, name)[on_host]),
                    f"{name} of edges drawn by host {host} of {hosts} differ",
                )
            is_sampled |= on_host
            host_race = sampling.sample_distinct_edges(
                host_view, types=[0, 1], parts=parts, seed=6, count=20, **no_exclusions
            )
            merged += zip(
                host_race.keys.tolist(),
                host_race.edges.types.tolist(),
                host_race.edges.eids.tolist(),
                strict=True,
            )
        require(bool(is_sampled.all()), f"{hosts} hosts leave an edge undrawn")
        first = sorted(merged)[:20]
        require(
            first
            == list(
                zip(
                    expected_race.keys.tolist(),
                    expected_race.edges.types.tolist(),
                    expected_race.edges.eids.tolist(),
                    strict=True,
                )
            ),
            f"{hosts} hosts race apart",
        )


def alias_ids_match_those_of_rows(scale: float) -> None:
    """Sparse nodes sampled from packed and from separate arrays are equal.

    The packed array has thresholds and ids together. The cases include zero weights, additional
    dense types, and several hosts.
    """
    generator = np.random.default_rng(5)
    ids, count = np.sort(generator.choice(1 << 40, 300, replace=False)), int(max(500, 5000 * scale))
    schema = Schema(
        node_types=(NodeType(name="n", weighted=True), NodeType(name="d", weighted=True)),
        edge_types=(),
        parts=3,
    )
    dense = Nodes(ids=np.arange(50), weights=np.full(50, 3, np.float32))
    for zeros in (0.0, 0.4):
        heavy = np.exp(generator.normal(size=ids.size) * 2).astype(np.float32)
        heavy[generator.random(ids.size) < zeros] = 0
        version = version_of(schema, {"n": Nodes(ids=ids, weights=heavy), "d": dense}, {})
        for types in ([0], [0, 1]):
            for parts in ((0, 1, 2), (1,)):
                some_parts = version if len(parts) > 1 else restrict_to_parts(version, parts)
                request = {
                    "types": types,
                    "parts": parts,
                    "seed": 9,
                    "start": 0,
                    "count": count,
                    "uniform": False,
                }
                ids_by_method = [
                    sampling.sample_nodes(method_version, **request, want_probabilities=want).ids
                    for method_version, want in (
                        (some_parts, False),
                        (without_packed_columns(some_parts), False),
                        (some_parts, True),
                    )
                ]
                same = all(
                    bool((drawn_ids == ids_by_method[0]).all()) for drawn_ids in ids_by_method
                )
                require(
                    ids_by_method[0].size > 0 and same,
                    (
                        f"nodes of types {types} in parts {parts}, {zeros} of them without "
                        "weight: other ids than by rows"
                    ),
                )
