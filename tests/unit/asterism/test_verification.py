"""Tests of the arithmetic of the self-test: tails, false alarms and detected biases.

Tails are compared with SciPy; rates of alarms and detection must equal the stated ones.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from asterism.verification import hypothesis_tests
from asterism.verification.scan_statistics import ZERO_CLASS, EdgeEnds, Neighborhood, TypeCensus
from asterism_model.elements import Element
from asterism_model.partition_stats import PartitionStats


@pytest.mark.parametrize("freedom", [0.5, 1, 2, 3, 10, 63, 1000, 20_000])
def test_tails_and_bounds_are_those_of_chi_square(freedom: float) -> None:
    for p in (1e-30, 1e-12, 1e-5, 0.01, 0.3, 0.9, 0.9999):
        assert hypothesis_tests.survival(stats.chi2.isf(p, freedom), freedom) == pytest.approx(
            p, rel=1e-9
        )
        assert hypothesis_tests.critical_value(p, freedom) == pytest.approx(
            stats.chi2.isf(p, freedom), rel=1e-6
        )
    assert hypothesis_tests.survival(0.0, freedom) == 1.0


@pytest.mark.parametrize("freedom", [1, 5, 63, 5000])
@pytest.mark.parametrize("noncentrality", [0.0, 0.5, 20.0, 500.0])
def test_powers_are_those_of_noncentral_chi_square(freedom: int, noncentrality: float) -> None:
    bound = hypothesis_tests.critical_value(1e-4, freedom)
    assert hypothesis_tests.power_of(noncentrality, bound, freedom) == pytest.approx(
        stats.ncx2.sf(bound, freedom, noncentrality), rel=1e-6
    )


SHARES = {
    "a die": np.ones(6),
    "one heavy cell and two hundred that are too light to stand alone": np.r_[
        0.999, np.full(200, 0.001 / 200)
    ],
    "a power law": np.random.default_rng(7).pareto(1, 300) + 0.01,
}


@pytest.mark.parametrize("name", SHARES)
def test_false_alarms_are_as_rare_as_stated(name: str) -> None:
    shares, rng = SHARES[name] / SHARES[name].sum(), np.random.default_rng(11)
    p = np.array(
        [
            hypothesis_tests.g_test(rng.multinomial(20_000, shares).astype(float), shares).p
            for _ in range(2000)
        ]
    )
    for alpha in (0.1, 0.01):
        allowed = 5 * math.sqrt(alpha * (1 - alpha) * len(p))
        assert abs((p < alpha).sum() - alpha * len(p)) < allowed


def test_bias_of_stated_size_is_detected_with_stated_power() -> None:
    shares, draws, alpha, power = np.full(8, 1 / 8), 20_000, 1e-4, 0.9
    size = hypothesis_tests.detectable_bias(draws, 7, alpha, power)
    # The bias for which the bound is sharp: half of the mass gains what the other half loses.
    biased = shares * (1 + np.repeat([2 * size, -2 * size], 4))
    assert np.abs(biased - shares).sum() / 2 == pytest.approx(size)
    rng = np.random.default_rng(3)
    detected = np.mean(
        [
            hypothesis_tests.g_test(rng.multinomial(draws, biased).astype(float), shares).p < alpha
            for _ in range(1500)
        ]
    )
    assert detected == pytest.approx(power, abs=0.04)
    # Another bias of the same size is detected more often, never less.
    other_bias = shares + np.r_[size, np.full(7, -size / 7)]
    assert (
        np.mean(
            [
                hypothesis_tests.g_test(rng.multinomial(draws, other_bias).astype(float), shares).p
                < alpha
                for _ in range(300)
            ]
        )
        > power
    )


def test_strata_are_tested_separately_and_evidence_adds_up() -> None:
    shares, strata = np.tile([3.0, 1.0], 50), np.repeat(np.arange(50), 2)
    even = np.tile([300.0, 100.0], 50) * np.repeat(
        np.arange(1, 51), 2
    )  # any number of draws in each
    fair = hypothesis_tests.g_test(even, shares, strata)
    assert (fair.statistic, fair.freedom, fair.cells, fair.p) == (
        pytest.approx(0.0, abs=1e-9),
        50,
        100,
        pytest.approx(1.0),
    )
    slanted = hypothesis_tests.g_test(np.tile([280.0, 120.0], 50), shares, strata)
    assert slanted.p < 1e-12
    assert hypothesis_tests.g_test(np.tile([280.0, 120.0], 1), shares[:2]).p > 0.01
    one_stratum = hypothesis_tests.g_test(np.r_[300.0, 100.0, np.zeros(98)], shares, strata)
    assert (one_stratum.freedom, one_stratum.cells) == (1, 2)


def test_single_draw_of_an_impossible_cell_is_rejected() -> None:
    outcome = hypothesis_tests.g_test(np.array([5000.0, 5000.0, 1.0]), np.array([1.0, 1.0, 0.0]))
    assert (outcome.p, outcome.impossible) == (0.0, 1)
    alone = hypothesis_tests.g_test(np.array([10.0, 0.0]), np.array([1.0, 0.0]))
    assert (alone.p, alone.freedom, alone.cells) == (1.0, 0, 1)


def test_cells_too_light_to_stand_alone_are_counted_together() -> None:
    outcome = hypothesis_tests.g_test(
        np.array([1000.0, *[2.0] * 50]), np.array([1000.0, *[2.0] * 50])
    )
    assert 3 <= outcome.cells <= 1 + 100 / hypothesis_tests.MIN_EXPECTED
    lost = hypothesis_tests.g_test(np.array([1100.0, *[0.0] * 50]), np.array([1000.0, *[2.0] * 50]))
    assert lost.p < 1e-20


def test_holms_correction_is_that_of_the_paper() -> None:
    assert hypothesis_tests.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx(
        [0.03, 0.06, 0.06, 0.02]
    )
    assert hypothesis_tests.holm([0.9, 0.8]) == [1.0, 1.0]
    assert hypothesis_tests.holm([]) == []


def part_stats(part: int, weights: np.ndarray) -> PartitionStats:
    exact = math.fsum(weights.astype(np.float64).tolist())
    return PartitionStats(
        part=part,
        element=Element.EDGE,
        type_id=0,
        count=len(weights),
        positive=int((weights > 0).sum()),
        weight=exact,
        audit_tv=0.0,
        audit_rel=0.0,
        dropped=0,
        underflow=0,
    )


def test_census_does_not_depend_on_the_batch_size() -> None:
    rng = np.random.default_rng(2)
    pieces = [
        (
            rng.permutation(500) * 2 + part,
            (rng.random(500) ** 4 * (rng.random(500) < 0.8)).astype(np.float32),
        )
        for part in range(2)
    ]
    keys = np.array([0, 3, 500, 999, 5000])

    def run_census(rows: int) -> TypeCensus:
        census = TypeCensus(
            [part_stats(part, weights) for part, (_, weights) in enumerate(pieces)],
            16,
            keys,
            edges=True,
        )
        for part, (ids, weights) in enumerate(pieces):
            for start in range(0, 500, rows):
                batch = slice(start, start + rows)
                census.add(
                    part,
                    ids[batch],
                    weights[batch],
                    EdgeEnds(src=ids[batch] + 1, dst=ids[batch] + 2, weights=weights[batch]),
                )
        return census

    in_one_batch, piecewise = run_census(500), run_census(7)
    assert all(holds for *_, holds in in_one_batch.checks())
    assert all(holds for *_, holds in piecewise.checks())
    assert in_one_batch.draw_counts.tolist() == piecewise.draw_counts.tolist() == [1, 1, 1, 1, 0]
    for name in ("part", "bucket", "count_bucket", "octave", "count_of_bucket", "count_of_class"):
        assert np.array_equal(getattr(in_one_batch, name), getattr(piecewise, name)), name
    assert np.allclose(in_one_batch.weight_of_bucket, piecewise.weight_of_bucket)
    assert in_one_batch.ends is not None
    assert in_one_batch.ends.src[:4].tolist() == (keys[:4] + 1).tolist()
    total = sum(float(weights.astype(np.float64).sum()) for _, weights in pieces)
    heaviest = max(float(weights.max()) for _, weights in pieces)
    assert in_one_batch.weight_of_bucket[-1] == 0 == in_one_batch.weight_of_class[ZERO_CLASS]
    assert np.abs(in_one_batch.weight_of_bucket[:-1] - total / 16).max() <= heaviest
    assert in_one_batch.count_of_bucket.sum() == 1000
    assert in_one_batch.count_of_class[ZERO_CLASS] == sum(
        int((weights == 0).sum()) for _, weights in pieces
    )


def test_census_detects_wrong_totals_and_repeated_rows() -> None:
    weights = np.linspace(0, 1, 101, dtype=np.float32)
    for tampered in (
        part_stats(0, weights * np.float32(1.0001)),
        part_stats(0, weights[:100]),
        part_stats(0, np.maximum(weights, np.float32(1e-20))),
    ):
        census = TypeCensus([tampered], 8, np.zeros(0, np.int64), edges=False)
        census.add(0, np.arange(101), weights)
        assert not all(holds for *_, holds in census.checks())
    repeated = TypeCensus([part_stats(0, weights[:2])], 8, np.array([0]), edges=False)
    repeated.add(0, np.array([0, 0]), weights[:2])
    assert [description for description, *_, holds in repeated.checks() if not holds] == [
        "drawn rows that scans give twice"
    ]


def test_neighborhood_drops_largest_nodes_beyond_its_limit() -> None:
    neighborhood = Neighborhood(starts=np.array([3, 7, 9]), limit=10)
    neighborhood.add(
        np.array([3, 7, 7, 1, 9]),
        np.arange(5),
        np.array([40, 30, 20, 10, 0]),
        np.ones(5, np.float32),
    )
    start_indices, neighbors, edge_ids, _ = neighborhood.edges()
    assert (start_indices.tolist(), neighbors.tolist(), edge_ids.tolist()) == (
        [0, 1, 1, 2],
        [0, 2, 1, 4],
        [40, 20, 30, 0],
    )
    neighborhood.add(np.full(8, 7), np.arange(8), np.arange(100, 108), np.ones(8, np.float32))
    assert neighborhood.incomplete.tolist() == [False, True, False]
    neighborhood.add(np.full(3, 7), np.arange(3), np.arange(200, 203), np.ones(3, np.float32))
    assert neighborhood.edges()[0].tolist() == [0, 2]
