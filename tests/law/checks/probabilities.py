"""Checks of the probabilities that answers carry: against exact fractions, order by order, and as what they are used for."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.kit.images import hosted
from tests.law.checks.basis import nodes_of, require, star_of, web_of

from graphkit.jit import settled
from graphkit.successive import given_earlier
from storaged import draw
from storaged.draw.blocks import never
from storaged.draw.probability import Drawn, Source, place_probabilities
from storaged.draw.stops import Stop

PRECISION = 1e-14
"""Largest relative error of a probability."""
SIGMAS = 5.4
"""How far an unbiased mean may be from what it estimates: further once in 10^7 times."""

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
"""Weights of a node's edges by edge type: of several, a union."""


def exact(weights: Sequence[float], order: Sequence[int]) -> list[Fraction]:
    """The probability of each of successive draws, given those before it."""
    left, out = sum(map(Fraction, weights), Fraction(0)), []
    for i in order:
        out.append(Fraction(weights[i]) / left)
        left -= Fraction(weights[i])
    return out


def require_close(found: NDArray[np.float64], expected: Sequence[Fraction], what: str) -> None:
    require(found.dtype == np.float64 and found.size == len(expected), f"{what}: {found.dtype}[{found.size}] probabilities of {len(expected)}")
    for p, q in zip(found.tolist(), expected, strict=True):
        require(abs(Fraction(p) - q) <= Fraction(PRECISION) * q, f"{what}: the probability {p!r} should be {float(q)!r}")
        require(0 <= p <= 1, f"{what}: {p!r} is no probability")


def every_order_has_its_probability(scale: float) -> None:
    """For up to 6 edges, of one type and of several: each order's product is that of the fractions, and all of them add up to 1."""
    del scale
    for kinds in ROWS:
        flat = [np.float32(weight).item() for kind in kinds for weight in kind]
        of_type = np.array([t for t, kind in enumerate(kinds) for _ in kind], np.int32)
        slot_of = np.array([slot for kind in kinds for slot in range(len(kind))], np.int64)
        able = [i for i, weight in enumerate(flat) if weight > 0]
        for count in range(1, min(len(able), len(flat) - 1) + 1):
            orders = np.array(list(itertools.permutations(able, count)), np.int64)
            m = len(orders)
            drawn = Drawn(
                count=count,
                rows=settled(np.zeros(m, np.int64)),
                at=settled(np.arange(m)[::-1]),
                sources=[Source(indptr=settled(np.array([0, len(kind)])), weights=settled(np.array(kind, np.float32))) for kind in kinds],
                totals=settled(np.full(m, math.fsum(flat))),
                degrees=settled(np.full(m, float(len(flat)))),
                which=settled(of_type[orders].ravel() if len(kinds) > 1 else np.zeros(0, np.int32)),
                slots=settled(slot_of[orders].ravel()),
            )
            out = np.zeros(m * count)
            place_probabilities(drawn, replace=False, out=out, stop=Stop(never))
            found = out.reshape(m, count)[::-1]
            for order, row in zip(orders.tolist(), found, strict=True):
                require_close(row, exact(flat, order), f"{order} of {kinds}")
            total = math.fsum(found.prod(axis=1).tolist())
            require(abs(total - 1) <= 1e-12, f"the orders of {count} of {kinds} have the probability {total!r} together")


def answers_carry_their_probabilities(scale: float) -> None:
    """Of drawn neighbors, with and without replacement, by weight and uniformly; the draws are those of an answer without."""
    m = int(max(12, 120 * scale))
    for kinds, replace, uniform in itertools.product(ROWS, (True, False), (True, False)):
        flat = [1.0 if uniform else np.float32(weight).item() for kind in kinds for weight in kind]
        starts = np.r_[0, np.cumsum([len(kind) for kind in kinds])]
        for count in (1, 2, len(flat) - 1, len(flat), len(flat) + 2):
            asked: dict[str, Any] = {"edge_types": list(range(len(kinds))), "node_type": 0, "ids": np.r_[np.zeros(m, np.int64), -1, 10**12]}
            asked |= {"positions": np.arange(m + 2), "count": count, "replace": replace, "uniform": uniform, "direction": 1, "seed": 41, "hop": 0}
            asked |= {"want_weights": True, "want_edge_ids": True}
            plain = draw.neighbors(star_of(kinds), **asked)
            found = draw.neighbors(star_of(kinds), want_probabilities=True, **asked)
            what = f"{count} of {kinds}, replace={replace}, uniform={uniform}"
            require(plain.probabilities is None, f"{what}: probabilities that nobody asked for")
            for name in ("ids", "types", "weights", "eids"):
                require(np.array_equal(getattr(plain, name), getattr(found, name)), f"{what}: {name} differ where probabilities are wanted")
            require(found.probabilities is not None and found.probabilities.shape == (m + 2, count), f"{what}: no probabilities")
            assert found.probabilities is not None
            require(
                not found.probabilities[m:].any() and bool((found.probabilities[found.ids < 0] == 0).all()), f"{what}: no draw, but a probability"
            )
            types = np.zeros_like(found.ids) if found.types is None else found.types.astype(np.int64)
            for row in range(m):
                order = [int(starts[t] + i) for t, i in zip(types[row], found.ids[row], strict=True) if i >= 0]
                whole = not replace and len(flat) <= count
                once = [exact(flat, [i])[0] for i in order]
                expected = [Fraction(1)] * len(order) if whole else once if replace else exact(flat, order)
                require_close(found.probabilities[row, : len(order)], expected, what)


def inverse_probabilities_estimate_totals(scale: float) -> None:
    """The mean of y / p over draws is the sum of y; without replacement that of Raj's: what came before, and y / p."""
    m = int(max(600, 20_000 * scale))
    for kinds, uniform, replace in itertools.product((ROWS[0], ROWS[1], ROWS[-2]), (True, False), (True, False)):
        sizes = [len(kind) for kind in kinds]
        y = np.array([0.0 if not uniform and not weight else 1.0 + i for i, weight in enumerate(w for kind in kinds for w in kind)])
        starts = np.r_[0, np.cumsum(sizes)]
        drawn = draw.neighbors(
            star_of(kinds),
            edge_types=list(range(len(kinds))),
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
        assert drawn.probabilities is not None
        types = np.zeros_like(drawn.ids) if drawn.types is None else drawn.types.astype(np.int64)
        seen = y[starts[types] + drawn.ids]
        for k in range(3):
            before = 0.0 if replace else seen[:, :k].sum(axis=1)
            estimates = before + seen[:, k] / drawn.probabilities[:, k]
            error = (estimates.mean() - y.sum()) / (estimates.std(ddof=1) / math.sqrt(m) + 1e-12)
            what = f"draw {k} of {kinds}, replace={replace}, uniform={uniform}"
            require(abs(error) <= SIGMAS, f"{what}: estimates {estimates.mean():.3f} for {y.sum()}, {error:.1f} standard errors off")


def shares_of_all_parts_are_probabilities(scale: float) -> None:
    """Of global draws: a row's share of all parts and types, from whichever host; with what the others leave, given the earlier."""
    del scale
    weights = (1e6, 0.0, 3.0, 1.0, 0.5, 2.0, 4.0, 1e-3)
    version = nodes_of(weights, 3)
    single = [np.float32(weight).item() for weight in weights]
    for uniform in (False, True):
        flat = [1.0] * len(single) if uniform else single
        for host in ([0, 1, 2], [1]):
            asked: dict[str, Any] = {"types": [0], "parts": host, "seed": 3, "start": 5, "count": 300, "uniform": uniform}
            held = hosted(version, host)
            drawn, plain = draw.nodes(held, want_probabilities=True, **asked), draw.nodes(held, **asked)
            require(plain.probabilities is None and np.array_equal(plain.ids, drawn.ids), "nodes differ where probabilities are wanted")
            assert drawn.probabilities is not None
            require_close(drawn.probabilities, [exact(flat, [i])[0] for i in drawn.ids.tolist()], f"nodes of parts {host}, uniform={uniform}")
        taken: dict[str, Any] = {"taken_ids": np.array([0, 3]), "taken_types": np.zeros(2, np.int32)}
        race = draw.race_nodes(version, types=[0], parts=[0, 1, 2], seed=3, count=3, uniform=uniform, want_probabilities=True, **taken)
        assert race.probabilities is not None
        require_close(race.probabilities, [exact(flat, [i])[0] for i in race.ids.tolist()], f"a race, uniform={uniform}")
        order = [0, 3, *race.ids.tolist()]
        everything: dict[str, Any] = {"taken_ids": np.array(order), "taken_types": np.zeros(5, np.int32)}
        rest = draw.rest_of_nodes(version, types=[0], parts=[0, 1, 2], **everything).sum() if not uniform else len(flat) - 5.0
        given = given_earlier(np.array([flat[i] for i in order]), float(rest))
        require_close(given, exact(flat, order), f"nodes {order} without replacement, uniform={uniform}")
    web = web_of(24, 3)
    table = {}
    for type_id in (0, 1):
        pieces = [draw.read_edges(web, type_id, part, 0, 1000)[0] for part in range(3)]
        table |= {(type_id, e): w for piece in pieces for e, w in zip(piece["eids"].tolist(), piece["weights"].tolist(), strict=True)}
    total = sum(map(Fraction, table.values()), Fraction(0))
    for host in ([0, 1, 2], [2]):
        edges = draw.edges(hosted(web, host), types=[1, 0], parts=host, seed=3, start=0, count=200, uniform=False, want_probabilities=True)
        assert edges.probabilities is not None
        drawn_edges = list(zip(edges.types.tolist(), edges.eids.tolist(), strict=True))
        require_close(edges.probabilities, [Fraction(table[edge]) / total for edge in drawn_edges], f"edges of parts {host}")
    kept = draw.rest_of_edges(web, types=[0, 1], parts=[2, 0, 1], taken_ids=np.arange(5, 144), taken_types=np.zeros(139, np.int32))
    expected = sum(Fraction(w) for (t, e), w in table.items() if t == 1 or e < 5)
    require(
        kept.shape == (2, 3) and abs(Fraction(float(kept.sum())) - expected) <= expected * Fraction(PRECISION), "the rest of the edges is another"
    )
