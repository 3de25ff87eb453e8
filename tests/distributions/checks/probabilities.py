"""Checks of reported probabilities: against exact fractions, and as estimator weights."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.distributions.checks.basis import random_graph, require, star_graph, weighted_nodes
from tests.kit.images import restrict_to_parts

from asterism_graphkit.compile.jit import as_kernel_array
from asterism_graphkit.random.successive_probabilities import conditional_probabilities
from storaged import sampling
from storaged.sampling.cancellation import StopFlag, no_checkpoint
from storaged.sampling.neighbors.probabilities import EdgeSource, UnionDraws, write_probabilities

PRECISION = 1e-14
"""Largest relative error of a probability."""
SIGMAS = 5.4
"""Largest deviation of an unbiased mean, in standard errors; exceeded once in 10^7 times."""

ROWS: tuple[tuple[tuple[float, ...], ...], ...] = (
    ((1.0, 2.0, 3.0, 4.0),),
    ((0.6, 0.25, 0.08, 0.04, 0.03, 0.0),),
    ((1.0,) * 6,),
    ((0.0, 1.0, 0.0, 2.0),),
    ((1e30, 1.0, 2.0, 1e-30, 5.0),),
    ((3.0, 1e-38, 1e38, 1e-45),),
    ((3e8, 0.1, 0.7, 0.3),),
    ((7.0,),),
    ((1.0, 2.0), (3.0, 0.0, 4.0)),
    ((1e20, 1.0), (2.0, 1e-20), (0.0, 1e20)),
)
"""Weights of a node's edges by edge type; several types are a union."""


def exact_probabilities(weights: Sequence[float], order: Sequence[int]) -> list[Fraction]:
    """Return the probability of each successive draw, given those before it."""
    remaining, probabilities = sum(map(Fraction, weights), Fraction(0)), []
    for i in order:
        probabilities.append(Fraction(weights[i]) / remaining)
        remaining -= Fraction(weights[i])
    return probabilities


def require_close(
    probabilities: NDArray[np.float64], expected: Sequence[Fraction], label: str
) -> None:
    require(
        probabilities.dtype == np.float64 and probabilities.size == len(expected),
        f"{label}: {probabilities.dtype}[{probabilities.size}] probabilities of {len(expected)}",
    )
    for p, q in zip(probabilities.tolist(), expected, strict=True):
        require(
            abs(Fraction(p) - q) <= Fraction(PRECISION) * q,
            f"{label}: the probability {p!r} should be {float(q)!r}",
        )
        require(0 <= p <= 1, f"{label}: {p!r} is no probability")


def draw_orders_follow_their_probabilities(scale: float) -> None:
    """Probabilities of every order multiply to the exact fraction, and orders add up to 1.

    There are up to 6 edges, of one type and of several.
    """
    del scale
    for weights_by_type in ROWS:
        all_weights = [
            np.float32(weight).item() for type_weights in weights_by_type for weight in type_weights
        ]
        of_type = np.array(
            [t for t, type_weights in enumerate(weights_by_type) for _ in type_weights], np.int32
        )
        slot_of = np.array(
            [slot for type_weights in weights_by_type for slot in range(len(type_weights))],
            np.int64,
        )
        drawable = [i for i, weight in enumerate(all_weights) if weight > 0]
        for count in range(1, min(len(drawable), len(all_weights) - 1) + 1):
            orders = np.array(list(itertools.permutations(drawable, count)), np.int64)
            m = len(orders)
            union_draws = UnionDraws(
                count=count,
                rows=as_kernel_array(np.zeros(m, np.int64)),
                places=as_kernel_array(np.arange(m)[::-1]),
                sources=[
                    EdgeSource(
                        indptr=as_kernel_array(np.array([0, len(type_weights)])),
                        weights=as_kernel_array(np.array(type_weights, np.float32)),
                    )
                    for type_weights in weights_by_type
                ],
                totals=as_kernel_array(np.full(m, math.fsum(all_weights))),
                degrees=as_kernel_array(np.full(m, float(len(all_weights)))),
                type_indices=as_kernel_array(
                    of_type[orders].ravel() if len(weights_by_type) > 1 else np.zeros(0, np.int32)
                ),
                slots=as_kernel_array(slot_of[orders].ravel()),
            )
            out = np.zeros(m * count)
            write_probabilities(union_draws, replace=False, out=out, stop=StopFlag(no_checkpoint))
            probabilities = out.reshape(m, count)[::-1]
            for order, row in zip(orders.tolist(), probabilities, strict=True):
                require_close(
                    row, exact_probabilities(all_weights, order), f"{order} of {weights_by_type}"
                )
            total = math.fsum(probabilities.prod(axis=1).tolist())
            require(
                abs(total - 1) <= 1e-12,
                (
                    f"the orders of {count} of {weights_by_type} have the probability {total!r} "
                    "together"
                ),
            )


def results_carry_their_probabilities(scale: float) -> None:
    """Sampled neighbors report their probabilities, with and without replacement.

    They are weighted and uniform; the samples equal those of a request without probabilities.
    """
    m = int(max(12, 120 * scale))
    for weights_by_type, replace, uniform in itertools.product(ROWS, (True, False), (True, False)):
        all_weights = [
            1.0 if uniform else np.float32(weight).item()
            for type_weights in weights_by_type
            for weight in type_weights
        ]
        starts = np.r_[0, np.cumsum([len(type_weights) for type_weights in weights_by_type])]
        for count in (1, 2, len(all_weights) - 1, len(all_weights), len(all_weights) + 2):
            request: dict[str, Any] = {
                "edge_types": list(range(len(weights_by_type))),
                "node_type": 0,
                "ids": np.r_[np.zeros(m, np.int64), -1, 10**12],
            }
            request |= {
                "positions": np.arange(m + 2),
                "count": count,
                "replace": replace,
                "uniform": uniform,
                "direction": 1,
                "seed": 41,
                "hop": 0,
            }
            request |= {"want_weights": True, "want_edge_ids": True}
            plain = sampling.sample_neighbors(star_graph(weights_by_type), **request)
            samples = sampling.sample_neighbors(
                star_graph(weights_by_type), want_probabilities=True, **request
            )
            label = f"{count} of {weights_by_type}, replace={replace}, uniform={uniform}"
            require(plain.probabilities is None, f"{label}: unrequested probabilities")
            for name in ("ids", "types", "weights", "eids"):
                require(
                    np.array_equal(getattr(plain, name), getattr(samples, name)),
                    f"{label}: {name} differ where probabilities are wanted",
                )
            require(
                samples.probabilities is not None and samples.probabilities.shape == (m + 2, count),
                f"{label}: no probabilities",
            )
            assert samples.probabilities is not None
            require(
                not samples.probabilities[m:].any()
                and bool((samples.probabilities[samples.ids < 0] == 0).all()),
                f"{label}: no draw, but a probability",
            )
            types = (
                np.zeros_like(samples.ids)
                if samples.types is None
                else samples.types.astype(np.int64)
            )
            checked: set[tuple[tuple[int, ...], bytes]] = set()
            for row in range(m):
                order = tuple(
                    int(starts[t] + i)
                    for t, i in zip(types[row], samples.ids[row], strict=True)
                    if i >= 0
                )
                probabilities = samples.probabilities[row, : len(order)]
                if (order, probabilities.tobytes()) in checked:
                    continue  # few outcomes are possible
                checked.add((order, probabilities.tobytes()))
                draws_all = not replace and len(all_weights) <= count
                independent = [exact_probabilities(all_weights, [i])[0] for i in order]
                expected = (
                    [Fraction(1)] * len(order)
                    if draws_all
                    else independent
                    if replace
                    else exact_probabilities(all_weights, order)
                )
                require_close(probabilities, expected, label)


def inverse_probabilities_estimate_totals(scale: float) -> None:
    """The mean of y / p over draws estimates the sum of y.

    Without replacement, Raj's estimator is used: the values drawn before, and y / p.
    """
    m = int(max(600, 20_000 * scale))
    for weights_by_type, uniform, replace in itertools.product(
        (ROWS[0], ROWS[1], ROWS[-2]), (True, False), (True, False)
    ):
        sizes = [len(type_weights) for type_weights in weights_by_type]
        y = np.array(
            [
                0.0 if not uniform and not weight else 1.0 + i
                for i, weight in enumerate(
                    w for type_weights in weights_by_type for w in type_weights
                )
            ]
        )
        starts = np.r_[0, np.cumsum(sizes)]
        samples = sampling.sample_neighbors(
            star_graph(weights_by_type),
            edge_types=list(range(len(weights_by_type))),
            node_type=0,
            ids=np.zeros(m, np.int64),
            positions=np.arange(m),
            count=3,
            replace=replace,
            uniform=uniform,
            direction=1,
            seed=42,
            hop=0,
            want_weights=False,
            want_edge_ids=False,
            want_probabilities=True,
        )
        assert samples.probabilities is not None
        types = (
            np.zeros_like(samples.ids) if samples.types is None else samples.types.astype(np.int64)
        )
        values = y[starts[types] + samples.ids]
        for k in range(3):
            earlier_sum = 0.0 if replace else values[:, :k].sum(axis=1)
            estimates = earlier_sum + values[:, k] / samples.probabilities[:, k]
            error = (estimates.mean() - y.sum()) / (estimates.std(ddof=1) / math.sqrt(m) + 1e-12)
            label = f"draw {k} of {weights_by_type}, replace={replace}, uniform={uniform}"
            require(
                abs(error) <= SIGMAS,
                (
                    f"{label}: estimates {estimates.mean():.3f} for {y.sum()}, {error:.1f} "
                    "standard errors off"
                ),
            )


def partition_shares_are_probabilities(scale: float) -> None:
    """Global draws report a row's share of all partitions and types, from any host.

    Without replacement, the probability is conditional on the earlier draws.
    """
    del scale
    weights = (1e6, 0.0, 3.0, 1.0, 0.5, 2.0, 4.0, 1e-3)
    version = weighted_nodes(weights, 3)
    float32_weights = [np.float32(weight).item() for weight in weights]
    for uniform in (False, True):
        row_weights = [1.0] * len(float32_weights) if uniform else float32_weights
        for host in ([0, 1, 2], [1]):
            request: dict[str, Any] = {
                "types": [0],
                "parts": host,
                "seed": 3,
                "start": 5,
                "count": 300,
                "uniform": uniform,
            }
            host_view = restrict_to_parts(version, host)
            samples, plain = (
                sampling.sample_nodes(host_view, want_probabilities=True, **request),
                sampling.sample_nodes(host_view, **request),
            )
            require(
                plain.probabilities is None and np.array_equal(plain.ids, samples.ids),
                "nodes differ where probabilities are wanted",
            )
            assert samples.probabilities is not None
            require_close(
                samples.probabilities,
                [exact_probabilities(row_weights, [i])[0] for i in samples.ids.tolist()],
                f"nodes of parts {host}, uniform={uniform}",
            )
        exclusions: dict[str, Any] = {
            "taken_ids": np.array([0, 3]),
            "taken_types": np.zeros(2, np.int32),
        }
        race = sampling.sample_distinct_nodes(
            version,
            types=[0],
            parts=[0, 1, 2],
            seed=3,
            count=3,
            uniform=uniform,
            want_probabilities=True,
            **exclusions,
        )
        assert race.probabilities is not None
        require_close(
            race.probabilities,
            [exact_probabilities(row_weights, [i])[0] for i in race.ids.tolist()],
            f"a race, uniform={uniform}",
        )
        order = [0, 3, *race.ids.tolist()]
        all_exclusions: dict[str, Any] = {
            "taken_ids": np.array(order),
            "taken_types": np.zeros(5, np.int32),
        }
        remaining_weight = (
            sampling.remaining_node_weight(
                version, types=[0], parts=[0, 1, 2], **all_exclusions
            ).sum()
            if not uniform
            else len(row_weights) - 5.0
        )
        conditional = conditional_probabilities(
            np.array([row_weights[i] for i in order]), float(remaining_weight)
        )
        require_close(
            conditional,
            exact_probabilities(row_weights, order),
            f"nodes {order} without replacement, uniform={uniform}",
        )
    edge_version = random_graph(24, 3)
    table = {}
    for type_id in (0, 1):
        pieces = [sampling.read_edges(edge_version, type_id, part, 0, 1000)[0] for part in range(3)]
        table |= {
            (type_id, e): w
            for piece in pieces
            for e, w in zip(piece["eids"].tolist(), piece["weights"].tolist(), strict=True)
        }
    total = sum(map(Fraction, table.values()), Fraction(0))
    for host in ([0, 1, 2], [2]):
        edges = sampling.sample_edges(
            restrict_to_parts(edge_version, host),
            types=[1, 0],
            parts=host,
            seed=3,
            start=0,
            count=200,
            uniform=False,
            want_probabilities=True,
        )
        assert edges.probabilities is not None
        drawn_edges = list(zip(edges.types.tolist(), edges.eids.tolist(), strict=True))
        require_close(
            edges.probabilities,
            [Fraction(table[edge]) / total for edge in drawn_edges],
            f"edges of parts {host}",
        )
    remaining_weights = sampling.remaining_edge_weight(
        edge_version,
        types=[0, 1],
        parts=[2, 0, 1],
        taken_ids=np.arange(5, 144),
        taken_types=np.zeros(139, np.int32),
    )
    expected = sum(Fraction(w) for (t, e), w in table.items() if t == 1 or e < 5)
    require(
        remaining_weights.shape == (2, 3)
        and abs(Fraction(float(remaining_weights.sum())) - expected)
        <= expected * Fraction(PRECISION),
        "the rest of the edges is another",
    )
