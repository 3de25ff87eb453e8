"""The law suite: what draws must obey, each check a function that raises Rejected. `test_law` runs all of them, compiled and
at full size; `mutants` runs them small and interpreted on samplers with a planted fault, which they must reject.

Statistics are chi-square tests on fixed seeds with at least 5 expected per cell; a check rejects below ALPHA. What can be
enumerated is: the row map at the words where it steps, the tables' laws, the shares of a union of types.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincc
from tests.kit.images import Edges, Nodes, hosted, version_of
from tests.kit.reference import key_with_word

from asterism_proto.schema import EdgeType, NodeType, Schema
from graphkit import alias, rng, split
from graphkit.jit import settled
from storaged import draw
from storaged.kernel import columns, neighbors

ALPHA = 1e-7
"""Of each statistic. With a few hundred of them, a right sampler is rejected once in 10^5 suites, were the seeds not fixed."""


class Rejected(AssertionError):
    """The sampler does not draw by the law."""


def require(holds: bool, what: str) -> None:
    if not holds:
        raise Rejected(what)


def require_counts(observed: Sequence[int] | NDArray[Any], expected: Sequence[float] | NDArray[Any], what: str) -> None:
    """Chi-square of counts against expected ones; what is impossible must not occur; rare cells are taken together."""
    seen, hoped = np.asarray(observed, np.float64), np.asarray(expected, np.float64)
    require(not seen[hoped == 0].any(), f"{what}: something impossible was drawn")
    order = np.argsort(-hoped, kind="stable")
    seen, hoped = seen[order], hoped[order]
    common = hoped >= 5
    cells, means = list(seen[common]), list(hoped[common])
    if hoped[~common].sum() >= 5:
        cells, means = [*cells, seen[~common].sum()], [*means, hoped[~common].sum()]
    if len(cells) < 2:
        return
    statistic = sum((c - m) ** 2 / m for c, m in zip(cells, means, strict=True))
    p = float(gammaincc((len(cells) - 1) / 2, statistic / 2))
    require(p >= ALPHA, f"{what}: chi-square {statistic:.1f} with {len(cells) - 1} degrees of freedom, p = {p:.2g}")


def require_independent(first: NDArray[np.int64], second: NDArray[np.int64], size: int, what: str) -> None:
    """Chi-square of the pairs of two sequences of 0 .. size - 1 against the product of their shares."""
    pairs = np.bincount(first * size + second, minlength=size * size)
    shares_first, shares_second = np.bincount(first, minlength=size) / first.size, np.bincount(second, minlength=size) / second.size
    require_counts(pairs, np.outer(shares_first, shares_second).ravel() * first.size, what)


@cache
def nodes_of(weights: tuple[float, ...], parts: int, skew: bool = False) -> draw.Version:
    """A type of as many nodes, ids so that ``skew`` puts all but the last into part 0."""
    n = len(weights)
    ids = np.arange(n, dtype=np.int64)
    if skew:
        ids = np.r_[np.arange(n - 1) * parts, 1].astype(np.int64)
    schema = Schema(node_types=(NodeType(name="n", weighted=True),), parts=parts)
    return version_of(schema, {"n": Nodes(ids=ids, weights=np.array(weights, np.float32))})


@cache
def web_of(size: int, parts: int) -> draw.Version:
    """Two edge types among ``size`` nodes, one weighted over many orders of magnitude."""
    generator = np.random.default_rng(8)
    ends = [generator.integers(0, size, 6 * size) for _ in range(4)]
    weights = np.exp(generator.normal(size=6 * size) * 3).astype(np.float32)
    types = (EdgeType(src_type="n", relation="w", dst_type="n", weighted=True), EdgeType(src_type="n", relation="u", dst_type="n"))
    edges = {"n:w:n": Edges(src=ends[0], dst=ends[1], weights=weights), "n:u:n": Edges(src=ends[2], dst=ends[3])}
    return version_of(Schema(node_types=(NodeType(name="n"),), edge_types=types, parts=parts), {"n": Nodes(ids=np.arange(size))}, edges)


@cache
def star_of(kinds: tuple[tuple[float, ...], ...]) -> draw.Version:
    """Node 0 with edges of several types: type t to nodes 0, 1, ... by the weights ``kinds[t]``."""
    names = [f"n:e{t}:n" for t in range(len(kinds))]
    types = tuple(EdgeType(src_type="n", relation=f"e{t}", dst_type="n", weighted=True) for t in range(len(kinds)))
    edges = {
        name: Edges(src=np.zeros(len(kind), np.int64), dst=np.arange(len(kind)), weights=np.array(kind, np.float32))
        for name, kind in zip(names, kinds, strict=True)
    }
    size = max(len(kind) for kind in kinds)
    return version_of(Schema(node_types=(NodeType(name="n"),), edge_types=types, parts=1), {"n": Nodes(ids=np.arange(size))}, edges)


def draw_nodes(version: draw.Version, seed: int, count: int, *, start: int = 0, uniform: bool = False) -> NDArray[np.int64]:
    return draw.nodes(version, types=[0], parts=list(version.parts), seed=seed, start=start, count=count, uniform=uniform).ids


def draw_star(
    kinds: tuple[tuple[float, ...], ...], seed: int, positions: int, count: int, *, replace: bool = True, uniform: bool = False, first: int = 0
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Neighbors and edge types [positions, count] of node 0, asked for at that many positions."""
    drawn = draw.neighbors(
        star_of(kinds),
        edge_types=list(range(len(kinds))),
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
    types = np.zeros_like(drawn.ids) if drawn.types is None else drawn.types.astype(np.int64)
    return drawn.ids, types


WEIGHTS: Mapping[str, tuple[float, ...]] = {
    "one": (3.0,),
    "all equal": (2.0,) * 7,
    "one heavy": (1000.0, *(1.0,) * 9),
    "heavy last": (*(0.5,) * 6, 40.0),
    "zeros between": (0.0, 1.0, 0.0, 2.0, 3.0, 0.0),
    "zeros around one": (0.0, 5.0, 0.0),
    "float32's range": (1e-30, 1.0, 1e30, 1e-38, 3.0),
    "ascending": tuple(float(i) for i in range(1, 13)),
    "halves": (0.6, 0.25, 0.08, 0.04, 0.03),
}


def tables_are_exact(scale: float) -> None:
    """The law that thresholds imply is that of the weights, to 10^-12 in total variation."""
    generator = np.random.default_rng(0)
    cases = dict(WEIGHTS) | {"lognormal": tuple(np.exp(generator.normal(size=max(40, int(2000 * scale))) * 4))}
    for name, values in cases.items():
        weights = np.array(values, np.float32)
        exact = weights.astype(np.float64) / math.fsum(weights.astype(np.float64).tolist())
        law = alias.law(*alias.thresholds(*alias.build(weights)))
        require(abs(law - exact).sum() / 2 <= 1e-12, f"table {name}: its law is {abs(law - exact).sum() / 2:.2g} away from the weights")
        require(not law[weights == 0].any(), f"table {name}: a zero weight may be drawn")
        hot, cold, _ = alias.build_rows(np.array([0, weights.size], np.int64), weights)
        require(abs(alias.law(hot, cold) - exact).sum() / 2 <= 1e-12, f"table {name}: its row in a CSR has another law")


def sums_are_compensated(scale: float) -> None:
    """The sum of weights is the exact one's nearest float64, or next to it."""
    small = int(max(3000, 3 * alias.BLOCK * scale))
    for values in (np.r_[1.0, np.full(small, 2.0**-30)], np.r_[np.full(small, 0.1), 3e9]):
        weights = values.astype(np.float32)
        exact = math.fsum(weights.astype(np.float64).tolist())
        _, _, sums = alias.build_rows(np.array([0, weights.size], np.int64), weights)
        for total in (alias.neumaier(weights), float(sums[0])):
            require(abs(total - exact) <= math.ulp(exact), f"sum of {weights.size} weights: {total!r} instead of {exact!r}")


def rows_come_from_64_bits(scale: float) -> None:
    """Row r is drawn by the words from ceil(r * 2^64 / n) on: so every row by as many words as any other, give or take one."""
    del scale
    empty64, empty32 = settled(np.zeros(0, np.uint64)), settled(np.zeros(0, np.uint32))

    def row_of(wanted: int, n: int) -> int:
        out = np.empty(1, np.int64)
        key = np.uint64(key_with_word(wanted))
        columns.draw_rows(
            key, np.uint64(0), settled(np.zeros(1, np.uint32)), np.uint64(n), empty64, empty32, empty32, empty32, np.int64(1), np.int64(0), out
        )
        return int(out[0])

    def neighbor_of(wanted: int, n: int) -> int:
        out, keys, one = np.empty(1, np.int64), settled(np.array([key_with_word(wanted)], np.uint64)), settled(np.zeros(1, np.int64))
        indptr, which = settled(np.array([0, n], np.int64)), settled(np.zeros(0, np.int32))
        sums, nbr = settled(np.zeros(0, np.float64)), settled(np.arange(n))
        neighbors.draw_slots(keys, one, one, np.int64(1), which, np.int32(0), indptr, sums, empty64, empty32, nbr, out, np.empty(0, np.int64))
        return int(out[0])

    for n in (3, 10, 1_000_003, 200_000_033, 2**32 - 1):
        for r in (1, 2, n // 3 + 1, n // 2 + 1, n - 1):
            step = -(-r * 2**64 // n)
            for picks in (row_of, neighbor_of) if n < 2_000_000 else (row_of,):
                found = picks(step - 1, n), picks(step, n)
                require(found == (r - 1, r), f"{n} rows: words {step - 1} and {step} draw {found} instead of {(r - 1, r)}")
        require(row_of(0, n) == 0, f"{n} rows: word 0 does not draw row 0")
        require(row_of(2**64 - 1, n) == n - 1, f"{n} rows: the last word does not draw the last row")


def coins_have_64_bits(scale: float) -> None:
    """A column of threshold T is kept by coins below T and left by T itself, also where only the low half tells them apart."""
    del scale
    empty32 = settled(np.zeros(0, np.uint32))
    for threshold in (1, 5, 2**31 + 7, 2**33 + 12345, 2**63 + 9, 2**64 - 2**20):
        hot = settled(np.array([threshold >> 32 << 32 | 1, 2**64 - 2**32 | 1], np.uint64))
        cold = settled(np.array([threshold & 0xFFFFFFFF, 0xFFFFFFFF], np.uint32))
        found = []
        for coin in (threshold - 2 + threshold % 2, threshold + threshold % 2):
            out = np.empty(1, np.int64)
            key = np.uint64(key_with_word(coin // 2))  # two columns: the word's product is twice the word
            columns.draw_rows(
                key, np.uint64(0), settled(np.zeros(1, np.uint32)), np.uint64(2), hot, cold, empty32, empty32, np.int64(1), np.int64(0), out
            )
            found.append(int(out[0]))
        require(found == [0, 1], f"threshold {threshold}: coins below and at it draw {found} instead of [0, 1]")


def unions_are_exact(scale: float) -> None:
    """Edge types of a union are chosen by their sums to 2^-50, also light ones beside a heavy one."""
    del scale
    for sums in ([1e9, 0.1, 0.2, 0.3, 0.4], [0.1, 0.2, 0.3, 0.4, 1e9], [2.0**24, 1.0, 1.0, 1.0], [0.0, 1.0, 0.0, 3.0, 0.0]):
        measures = settled(np.array(sums, np.float64).reshape(-1, 1))

        def type_of(wanted: int, measures: NDArray[np.float64] = measures) -> int:
            which = np.empty(1, np.int32)
            neighbors.choose_types(settled(np.array([key_with_word(wanted)], np.uint64)), measures, np.int64(1), which)
            return int(which[0])

        reached = np.cumsum(sums) / np.sum(sums)
        for t, total in enumerate(sums):
            low, high = 0, 2**64  # the first word that chooses a type beyond t
            while low < high:
                middle = (low + high) // 2
                low, high = (middle + 1, high) if middle < 2**64 and type_of(min(middle, 2**64 - 1)) <= t else (low, middle)
            require(
                abs(low / 2**64 - reached[t]) <= 2.0**-50, f"a union of {sums}: type {t} ends at {low / 2**64!r} instead of {float(reached[t])!r}"
            )
            require(total > 0 or low == 0 or type_of(low - 1) != t, f"a union of {sums}: type {t} of weight 0 is chosen")


def nodes_follow_their_weights(scale: float) -> None:
    """Counts of global draws, by weight and uniformly, on one part and on several."""
    for name, weights in WEIGHTS.items():
        for parts in (1, 3):
            version = nodes_of(weights, parts)
            total = math.fsum(np.array(weights, np.float32).astype(np.float64).tolist())
            n = int(max(400, 40_000 * scale))
            shares = np.array(weights, np.float32).astype(np.float64) / total
            observed = np.bincount(draw_nodes(version, 1, n), minlength=len(weights))
            require_counts(observed, shares * n, f"nodes {name} in {parts} parts")
        observed = np.bincount(draw_nodes(version, 2, n, uniform=True), minlength=len(weights))
        require_counts(observed, np.full(len(weights), n / len(weights)), f"nodes {name} uniformly")


def a_single_draw_follows_the_shares(scale: float) -> None:
    """Draws of one, over many seeds: parts of shares .9 and .1 are chosen as often (not .5 and .5)."""
    trials = int(max(300, 4000 * scale))
    weights = (0.45, 0.45, 0.1)
    version = nodes_of(weights, 2, skew=True)  # ids 0, 2 and 1
    drawn = np.array([draw_nodes(version, seed, 1)[0] for seed in range(trials)])
    require_counts(np.bincount(drawn, minlength=3), np.array([0.45, 0.1, 0.45]) * trials, "draws of one node")
    shares = split.shares([0], {(0, 0): 0.9, (0, 1): 0.1}, 2)
    first = [int(split.choose(rng.key_of(seed, rng.PART, 1), 0, 1, shares)[0]) for seed in range(trials)]
    require_counts(np.bincount(first, minlength=2), np.array([0.9, 0.1]) * trials, "the part of a single draw")


def parts_are_multinomial(scale: float) -> None:
    """How many of 6 draws fall on a part is binomial, over many seeds (a proportional split would always give the mean)."""
    trials, n = int(max(300, 4000 * scale)), 6
    shares = split.shares([0], {(0, 0): 2.0, (0, 1): 1.0, (0, 2): 3.0}, 3)
    counts = np.array([np.bincount(split.choose(rng.key_of(seed, rng.PART, 1), 0, n, shares), minlength=3) for seed in range(trials)])
    for part, p in enumerate((2 / 6, 1 / 6, 3 / 6)):
        expected = [trials * math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
        require_counts(np.bincount(counts[:, part], minlength=n + 1), expected, f"draws on part {part} of 6")


def neighboring_draws_are_independent(scale: float) -> None:
    """Pairs of draws at lags 1, 2, 7 and 64 in a call, and the j-th draws of different parts, are independent."""
    n = int(max(1200, 60_000 * scale))
    weights = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)
    drawn = draw_nodes(nodes_of(weights, 4), 5, n)
    for lag in (1, 2, 7, 64):
        require_independent(drawn[:-lag], drawn[lag:], 8, f"node draws at lag {lag}")
        require_independent(drawn[:-lag] % 4, drawn[lag:] % 4, 4, f"parts of node draws at lag {lag}")
    drawn = draw_nodes(nodes_of((1.0, 2.0) * 8, 2), 6, n, uniform=True)
    of_part = [drawn[drawn % 2 == part] // 2 for part in range(2)]
    both = min(piece.size for piece in of_part)
    require_independent(of_part[0][:both], of_part[1][:both], 8, "rows of the j-th draws of two parts")
    ids, _ = draw_star(((1.0, 2.0, 3.0, 4.0),), 7, n // 8, 8)
    for lag in (1, 3):
        require_independent(ids[:, :-lag].ravel(), ids[:, lag:].ravel(), 4, f"neighbor draws at lag {lag}")
    require_independent(ids[:-1].ravel(), ids[1:].ravel(), 4, "neighbor draws of neighboring positions")


def streams_are_not_lagged(scale: float) -> None:
    """The draws of neighboring seeds and positions are not one stream, shifted."""
    n = int(max(250, 2000 * scale))
    version = nodes_of((1.0,) * 50, 2)
    streams = [draw_nodes(version, seed, n) for seed in (100, 101, 102)]
    for a, b in itertools.combinations(range(3), 2):
        for lag in range(-8, 9):
            left, right = streams[a][max(0, lag) : n + min(0, lag)], streams[b][max(0, -lag) : n - max(0, lag)]
            same = int((left == right).sum())
            require(same <= 0.02 * n + 8 * math.sqrt(0.02 * n), f"seeds {100 + a} and {100 + b} agree in {same} of {n} draws at lag {lag}")
    ids, _ = draw_star(((1.0,) * 50,), 9, 20, 20)
    for lag in range(1, 4):
        same = int((ids[:-1, lag:] == ids[1:, :-lag]).sum() + (ids[:-1, :-lag] == ids[1:, lag:]).sum())
        cells = 2 * ids[:-1, lag:].size
        require(same <= 0.02 * cells + 8 * math.sqrt(0.02 * cells), f"neighboring positions agree in {same} of {cells} draws at lag {lag}")


def hosts_and_ranges_do_not_matter(scale: float) -> None:
    """What 1, 2, 3, 5 and 8 hosts answer, merged by the part of each draw, are the same bytes; so are ranges of draws."""
    n = int(max(300, 4000 * scale))
    generator = np.random.default_rng(3)
    version = nodes_of(tuple(generator.random(64)), 8)
    whole = draw_nodes(version, 11, n)
    entries = split.choose(rng.key_of(11, rng.PART, 1), 0, n, version.shares(1, [0], False))
    for hosts in (1, 2, 3, 5, 8):
        merged = np.full(n, -1, np.int64)
        for host in range(hosts):
            parts = [part for part in range(8) if part % hosts == host]
            answer = draw.nodes(hosted(version, parts), types=[0], parts=parts, seed=11, start=0, count=n, uniform=False)
            mine = np.isin(entries, parts)
            require(int(mine.sum()) == answer.ids.size, f"host {host} of {hosts} answers {answer.ids.size} draws of {int(mine.sum())}")
            merged[mine] = answer.ids
        require(bool((merged == whole).all()), f"{hosts} hosts draw other nodes than one")
    require(bool((draw_nodes(version, 11, n // 3) == whole[: n // 3]).all()), "the first third of the draws is not the request for a third")
    require(bool((draw_nodes(version, 11, n // 3, start=n // 3) == whole[n // 3 : 2 * (n // 3)]).all()), "the second third is not")


def hosts_do_not_matter_to_neighbors_edges_and_races(scale: float) -> None:
    """The same for neighbors (with and without replacement), global edges and races; nor does what else is in a batch."""
    n = int(max(150, 2000 * scale))
    version = web_of(64, 8)
    ids = np.random.default_rng(4).integers(0, 64, n)
    asked: dict[str, Any] = {"edge_types": [0, 1], "node_type": 0, "count": 3, "direction": 1, "seed": 5, "hop": 2}
    asked |= {"want_weights": True, "want_edge_ids": True}
    edges = draw.edges(version, types=[0, 1], parts=range(8), seed=6, start=0, count=n, uniform=False)
    nothing: dict[str, Any] = {"taken_ids": np.zeros(0, np.int64), "taken_types": np.zeros(0, np.int32)}
    race = draw.race_edges(version, types=[0, 1], parts=range(8), seed=6, count=20, **nothing)
    whole = {
        (replace, uniform): draw.neighbors(version, ids=ids, positions=np.arange(n), replace=replace, uniform=uniform, **asked)
        for replace, uniform in itertools.product((True, False), repeat=2)
    }
    for hosts in (1, 2, 3, 5, 8):
        merged: list[tuple[float, int, int]] = []
        found = np.zeros(n, bool)
        for host in range(hosts):
            parts = [part for part in range(8) if part % hosts == host]
            held = hosted(version, parts)
            mine = np.flatnonzero(np.isin(ids % 8, parts))[::-1]  # in another order, and in another company
            for (replace, uniform), expected in whole.items():
                drawn = draw.neighbors(held, ids=ids[mine], positions=mine, replace=replace, uniform=uniform, **asked)
                for name in ("ids", "types", "weights", "eids"):
                    same = np.array_equal(getattr(drawn, name), getattr(expected, name)[mine])
                    require(same, f"{name} of neighbors drawn by host {host} of {hosts} differ")
            own = draw.edges(held, types=[0, 1], parts=parts, seed=6, start=0, count=n, uniform=False)
            at = np.isin(edges.src % 8, parts)
            for name in ("src", "dst", "eids", "types", "weights"):
                require(np.array_equal(getattr(own, name), getattr(edges, name)[at]), f"{name} of edges drawn by host {host} of {hosts} differ")
            found |= at
            heat = draw.race_edges(held, types=[0, 1], parts=parts, seed=6, count=20, **nothing)
            merged += zip(heat.keys.tolist(), heat.edges.types.tolist(), heat.edges.eids.tolist(), strict=True)
        require(bool(found.all()), f"{hosts} hosts leave an edge undrawn")
        first = sorted(merged)[:20]
        require(first == list(zip(race.keys.tolist(), race.edges.types.tolist(), race.edges.eids.tolist(), strict=True)), f"{hosts} hosts race apart")


NEIGHBORHOODS: Mapping[str, tuple[float, ...]] = {
    "halves": (0.6, 0.25, 0.08, 0.04, 0.03),
    "zeros": (0.0, 1.0, 2.0, 0.0, 3.0, 0.0),
    "even": (1.0,) * 5,
    "one": (1.0,),
    "heavy first": (90.0, 5.0, 5.0),
}


def neighbors_follow_their_weights(scale: float) -> None:
    """Counts of neighbors drawn with replacement: by weight and uniformly, of one type and of a union; the k-th alike."""
    n = int(max(150, 8000 * scale))
    for name, weights in NEIGHBORHOODS.items():
        shares = np.array(weights) / sum(weights)
        ids, _ = draw_star((weights,), 21, n, 5)
        for k in (0, 4):
            require_counts(np.bincount(ids[:, k], minlength=len(weights)), shares * n, f"neighbor {k} of {name}")
        ids, _ = draw_star((weights,), 22, n, 4, uniform=True)
        require_counts(np.bincount(ids.ravel(), minlength=len(weights)), np.full(len(weights), ids.size / len(weights)), f"uniform of {name}")
    kinds = ((1.0, 2.0), (0.0, 0.0), (4.0, 0.0, 5.0))
    for uniform in (False, True):
        ids, types = draw_star(kinds, 23, n, 4, uniform=uniform)
        expected = np.zeros((3, 3))
        for t, kind in enumerate(kinds):
            expected[t, : len(kind)] = 1 if uniform else kind
        require_counts(np.bincount((types * 3 + ids).ravel(), minlength=9), expected.ravel() / expected.sum() * ids.size, "a union of types")


def successive(weights: Sequence[float], count: int) -> dict[tuple[int, ...], float]:
    """The probability of every outcome of ``count`` successive draws without replacement."""
    outcomes: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(count):
        longer: dict[tuple[int, ...], float] = {}
        for chosen, p in outcomes.items():
            rest = [i for i, w in enumerate(weights) if i not in chosen and w > 0]
            total = sum(weights[i] for i in rest)
            for i in rest:
                longer[(*chosen, i)] = p * weights[i] / total
            if not rest:
                longer[(*chosen, -1)] = p
        outcomes = longer
    return outcomes


def _require_successive(
    drawn: NDArray[np.int64], weights: Sequence[float], name: str, outcomes: Callable[[Sequence[float], int], dict[tuple[int, ...], float]]
) -> None:
    expected = outcomes(weights, drawn.shape[1])
    observed = Counter(map(tuple, drawn.tolist()))
    strange = [outcome for outcome in observed if outcome not in expected]
    require(not strange, f"{name}: {strange[:1]} is impossible")
    keys = sorted(expected)
    require_counts([observed[key] for key in keys], [expected[key] * drawn.shape[0] for key in keys], name)


def distinct_neighbors_are_successive_draws(scale: float) -> None:
    """Every ordered outcome of draws without replacement, for up to 6 neighbors, has the probability of successive draws."""
    n = int(max(700, 20_000 * scale))
    cases = [((1.0, 2.0, 3.0, 4.0), 2), ((1.0, 2.0, 3.0), 2), ((0.6, 0.25, 0.08, 0.04, 0.03, 0.0), 3), ((1.0,) * 6, 2), ((1.0, 0.0, 2.0, 0.0), 3)]
    for weights, count in cases:
        ids, _ = draw_star((weights,), 31, n, count, replace=False)
        _require_successive(ids, weights, f"{count} distinct of {weights}", successive)
        ids, _ = draw_star((weights,), 32, n, count, replace=False, uniform=True)
        _require_successive(ids, (1.0,) * len(weights), f"{count} distinct of {len(weights)} uniformly", successive)


def too_many_rejections_do_not_bias(scale: float) -> None:
    """A weight so heavy that draws often go on as a race after it came first: what came is kept."""
    n = int(max(6000, 30_000 * scale))
    weights = (0.95, 0.02, 0.02, 0.01)
    ids, _ = draw_star((weights,), 33, n, 2, replace=False)
    _require_successive(ids, weights, "2 distinct beside a heavy one", successive)
    more, _ = draw_star((weights,), 33, n // 4, 3, replace=False)
    _require_successive(more, weights, "3 distinct beside a heavy one", successive)
    require(bool((more[:, :2] == ids[: n // 4]).all()), "the first 2 of 3 distinct neighbors are not the request for 2")


def unions_without_replacement_are_successive_draws(scale: float) -> None:
    """The same over a union of edge types."""
    n = int(max(400, 20_000 * scale))
    kinds = ((1.0, 2.0), (3.0, 0.0, 4.0))
    flat = (1.0, 2.0, 0.0, 3.0, 0.0, 4.0)
    for uniform in (False, True):
        ids, types = draw_star(kinds, 34, n, 2, replace=False, uniform=uniform)
        weights = (1.0, 1.0, 0.0, 1.0, 1.0, 1.0) if uniform else flat
        _require_successive(types * 3 + ids, weights, "2 distinct of a union", successive)


def whole_neighborhoods_come_in_order(scale: float) -> None:
    """Asked for at least as many as there are: all of positive weight, or all, in adjacency order, then nothing."""
    del scale
    weights = (0.0, 1.0, 2.0, 0.0, 3.0)
    for count in (5, 8):
        ids, _ = draw_star((weights,), 35, 3, count, replace=False)
        require(bool((ids == [1, 2, 4] + [-1] * (count - 3)).all()), f"all of positive weight are drawn as {ids[0].tolist()}")
        ids, _ = draw_star((weights,), 35, 3, count, replace=False, uniform=True)
        require(bool((ids == [0, 1, 2, 3, 4] + [-1] * (count - 5)).all()), f"all are drawn as {ids[0].tolist()}")
    for replace in (True, False):
        for count in (1, 3):
            ids, _ = draw_star(((0.0, 0.0),), 36, 2, count, replace=replace)
            require(bool((ids == -1).all()), "a node whose weights are all 0 has neighbors by weight")


def races_are_successive_draws(scale: float) -> None:
    """The arrivals of a global race are successive draws without replacement, those taken left out."""
    trials = int(max(500, 10_000 * scale))
    weights = (1.0, 4.0, 2.0, 0.0, 3.0)
    version = nodes_of(weights, 2)
    taken, types = np.array([1]), np.zeros(1, np.int32)
    asked: dict[str, Any] = {"types": [0], "parts": [0, 1], "count": 2, "taken_ids": taken, "taken_types": types}
    drawn = np.array([draw.race_nodes(version, seed=seed, **asked).ids for seed in range(trials)])
    _require_successive(drawn, (1.0, 0.0, 2.0, 0.0, 3.0), "a race over nodes", successive)


CHECKS: tuple[Callable[[float], None], ...] = (
    tables_are_exact,
    sums_are_compensated,
    rows_come_from_64_bits,
    coins_have_64_bits,
    unions_are_exact,
    whole_neighborhoods_come_in_order,
    hosts_and_ranges_do_not_matter,
    hosts_do_not_matter_to_neighbors_edges_and_races,
    streams_are_not_lagged,
    a_single_draw_follows_the_shares,
    parts_are_multinomial,
    neighbors_follow_their_weights,
    distinct_neighbors_are_successive_draws,
    unions_without_replacement_are_successive_draws,
    neighboring_draws_are_independent,
    nodes_follow_their_weights,
    races_are_successive_draws,
    too_many_rejections_do_not_bias,
)
