"""Tests of alias tables: the sweep, thresholds, sums, and three bit-equal implementations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.kit.alias_tables import implied_distribution

from asterism_graphkit.random import alias_build


def weights_of(kind: str, n: int) -> NDArray[np.float32]:
    rng = np.random.default_rng(n)
    values = {
        "even": lambda: np.ones(n),
        "uniform": lambda: rng.random(n),
        "lognormal": lambda: np.exp(rng.normal(size=n) * 8),
        "with zeros": lambda: (rng.random(n) < 0.3) * rng.random(n),
        "one heavy": lambda: np.r_[np.full(n - 1, 1e-3), 1e6],
        "heavy first": lambda: np.r_[1e6, np.full(n - 1, 1e-3)],
        "denormal": lambda: np.full(n, 1e-45),
        "float32's ends": lambda: np.r_[np.full(n - 1, 1e-38), 3e38],
    }[kind]()
    return values.astype(np.float32)


KINDS = [
    "even",
    "uniform",
    "lognormal",
    "with zeros",
    "one heavy",
    "heavy first",
    "denormal",
    "float32's ends",
]
CASES = [
    (kind, n) for kind in KINDS for n in (1, 2, 3, 7, 1000, 70_001) if weights_of(kind, n).any()
]


@pytest.mark.parametrize(("kind", "n"), CASES)
def test_table_implies_the_distribution_of_its_weights(kind: str, n: int) -> None:
    weights = weights_of(kind, n)
    probabilities = implied_distribution(*alias_build.pack_thresholds(*alias_build.build(weights)))
    exact = weights.astype(np.float64) / math.fsum(weights.tolist())
    assert abs(probabilities - exact).sum() / 2 < 1e-12
    assert not probabilities[weights == 0].any()
    assert abs(math.fsum(probabilities.tolist()) - 1) < 1e-15


@pytest.mark.parametrize(("kind", "n"), CASES)
def test_csr_rows_get_the_same_tables_as_single_rows(kind: str, n: int) -> None:
    weights = np.concatenate(
        [weights_of("uniform", 5), weights_of(kind, n), weights_of("lognormal", 11)]
    )
    indptr = np.array([0, 5, 5, 5 + n, 16 + n], np.int64)
    alias_threshold, alias_fraction, sums = alias_build.build_rows(indptr, weights)
    for start, stop, total in zip(indptr[:-1], indptr[1:], sums, strict=True):
        single_threshold, single_fraction = alias_build.pack_thresholds(
            *alias_build.build(weights[start:stop])
        )
        np.testing.assert_array_equal(alias_threshold[start:stop], single_threshold)
        np.testing.assert_array_equal(alias_fraction[start:stop], single_fraction)
        assert total == alias_build.neumaier_sum(weights[start:stop])


@pytest.mark.parametrize("block", [1, 3, 1000])
@pytest.mark.parametrize(("kind", "n"), [case for case in CASES if case[1] <= 1000])
def test_blockwise_sweep_is_bitwise_equal_to_one_in_memory(kind: str, n: int, block: int) -> None:
    weights = weights_of(kind, n)
    prob, targets = alias_build.build(weights)
    p = weights.astype(np.float64) * n / alias_build.neumaier_sum(weights)
    light, heavy = np.flatnonzero(p < 1), np.flatnonzero(~(p < 1)).astype(np.uint32)
    streamed_prob, streamed_targets = np.ones(n), np.arange(n, dtype=np.uint32)
    streamed_prob[light] = p[light]
    cursor, residual = np.array([0, 0, -1], np.int64), np.zeros(2)
    light_start = heavy_start = 0
    finished = (np.empty(block + 1, np.uint32), np.empty(block + 1), np.empty(block + 1, np.uint32))
    lights, heavies = light[:block], heavy[:block]
    aliases = np.empty(block, np.uint32)
    while True:
        count = alias_build.sweep(
            p[lights], aliases[: lights.size], heavies, p[heavies], *finished, cursor, residual
        )
        streamed_prob[finished[0][:count]], streamed_targets[finished[0][:count]] = (
            finished[1][:count],
            finished[2][:count],
        )
        swept_count = int(cursor[0])
        streamed_targets[lights[:swept_count]] = aliases[:swept_count]
        needs_light = swept_count == lights.size and cursor[2] >= 0 and residual[0] >= 1
        if needs_light:
            light_start += swept_count
            lights, cursor[0] = light[light_start : light_start + block], 0
            if not lights.size:
                break
        else:
            heavy_start += int(cursor[1])
            heavies, cursor[1] = heavy[heavy_start : heavy_start + block], 0
            if not heavies.size:
                break
    remaining = light[light_start + int(cursor[0]) :]
    streamed_targets[remaining] = cursor[2] if cursor[2] >= 0 else remaining
    np.testing.assert_array_equal(streamed_prob, prob)
    np.testing.assert_array_equal(streamed_targets, targets)


def test_certain_and_impossible_columns_have_exact_thresholds() -> None:
    alias_threshold, alias_fraction = alias_build.pack_thresholds(
        *alias_build.build(np.array([0, 1, 1, 0, 2], np.float32))
    )
    thresholds = (alias_threshold >> np.uint64(32) << np.uint64(32)) | alias_fraction
    aliases = alias_threshold & np.uint64(0xFFFFFFFF)
    assert thresholds[0] == thresholds[3] == 0
    assert set(aliases[[0, 3]].tolist()) <= {1, 2, 4}
    certain = thresholds == np.uint64(2**64 - 1)
    np.testing.assert_array_equal(aliases[certain], np.flatnonzero(certain))


def test_a_threshold_is_the_probability_rounded_to_64_bits() -> None:
    prob = np.array([0.5, 2.0**-64, 2.0**-66, 1 - 2.0**-53, 0.1, 1.0])
    alias_threshold, alias_fraction = alias_build.pack_thresholds(prob, np.full(6, 7, np.uint32))
    thresholds = [
        (int(h) >> 32 << 32) | int(c) for h, c in zip(alias_threshold, alias_fraction, strict=True)
    ]
    assert thresholds == [2**63, 1, 0, 2**64 - 2**11, round(0.1 * 2**64), 2**64 - 1]
    assert int(alias_threshold[5]) & 0xFFFFFFFF == 5


def test_all_zero_weights_give_self_aliased_columns() -> None:
    prob, targets = alias_build.build(np.zeros(3, np.float32))
    assert not prob.any()
    np.testing.assert_array_equal(targets, [0, 1, 2])


def test_a_sum_is_compensated_and_the_same_by_blocks() -> None:
    weights = np.r_[1e8, np.full(3 * alias_build.SUM_BLOCK, 1e-9)].astype(np.float32)
    exact = math.fsum(weights.astype(np.float64).tolist())
    assert abs(alias_build.neumaier_sum(weights) - exact) <= math.ulp(exact)
    blocks = [
        alias_build.neumaier_sum(weights[i : i + alias_build.SUM_BLOCK])
        for i in range(0, weights.size, alias_build.SUM_BLOCK)
    ]
    assert alias_build.neumaier_sum(np.array(blocks)) == alias_build.neumaier_sum(weights)


def test_a_table_of_many_rows_loses_nothing_to_rounding() -> None:
    weights = np.random.default_rng(3).pareto(0.5, 300_000).clip(1e-3, 1e30).astype(np.float32)
    probabilities = implied_distribution(*alias_build.pack_thresholds(*alias_build.build(weights)))
    exact = weights.astype(np.float64) / math.fsum(weights.tolist())
    assert abs(probabilities - exact).sum() / 2 < 1e-13
