"""Tests of the generator: words of splitmix64, independent streams, bounded numbers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tests.kit import reference

from asterism_graphkit.random import rng


@pytest.mark.parametrize("seed", [0, 1, 2**63, 2**64 - 1])
def test_words_and_keys_are_those_of_plain_integers(seed: int) -> None:
    assert int(rng.mix64(np.uint64(seed))) == reference.mix64(seed)
    assert int(rng.derive(np.uint64(seed), np.uint64(7))) == reference.derive(seed, 7)
    assert int(rng.word(np.uint64(seed), np.uint64(2**40))) == reference.word(seed, 2**40)
    assert int(rng.key_of(seed, 1, 2, 3)) == reference.key_of(seed, 1, 2, 3)
    assert reference.unmix64(reference.mix64(seed)) == seed
    tag = int(rng.node_tag(np.uint64(seed), np.int64(-1), np.int64(3)))
    assert tag == reference.node_tag(seed, -1, 3)
    key = int(rng.derive_mixed(np.uint64(seed), np.uint64(tag)))
    assert key == reference.derive_mixed(seed, tag)
    assert reference.position_with_tag(tag, -1, 3) & reference.MASK == seed


def test_the_words_of_key_zero_are_splitmix64s_published_ones() -> None:
    assert [int(rng.word(np.uint64(0), np.uint64(i))) for i in range(3)] == [
        0xE220A8397B1DCDAF,
        0x6E789E6AA1B965F4,
        0x06C45D188009454F,
    ]


def test_a_number_below_n_is_the_high_half_of_the_product() -> None:
    for w, n in [(0, 5), (2**64 - 1, 5), (2**63, 7), (123456789 << 30, 2**32 - 1)]:
        assert int(rng.bounded(np.uint64(w), np.uint64(n))) == w * n >> 64


def test_a_unit_is_never_zero_and_never_one() -> None:
    assert rng.unit_float(np.uint64(0)) == 2.0**-53
    assert rng.unit_float(np.uint64(2**64 - 1)) == 1 - 2.0**-53


def test_neighboring_streams_share_no_word() -> None:
    keys = [rng.key_of(seed, tag) for seed in range(8) for tag in range(1, 4)]
    keys += [
        np.uint64(rng.derive(rng.key_of(0, 1), np.uint64(position))) for position in range(100)
    ]
    keys += [
        np.uint64(rng.derive_mixed(rng.key_of(1, 1), np.uint64(reference.node_tag(*node))))
        for node in itertools.product(range(3), range(9), range(2))
    ]
    words = [int(rng.word(key, np.uint64(i))) for key in keys for i in range(64)]
    assert len(set(words)) == len(words)


def test_every_bit_is_fair_over_counters_seeds_and_positions() -> None:
    counters = np.array([rng.word(rng.key_of(1, 1), np.uint64(i)) for i in range(4096)], np.uint64)
    seeds = np.array(
        [rng.word(rng.key_of(seed, 1), np.uint64(0)) for seed in range(4096)], np.uint64
    )
    key = rng.key_of(1, rng.NEIGHBOR, 1, 0)
    positions = np.array(
        [rng.word(np.uint64(rng.derive(key, np.uint64(p))), np.uint64(0)) for p in range(4096)],
        np.uint64,
    )
    for words in (counters, seeds, positions):
        ones = np.array([int((words >> np.uint64(bit) & np.uint64(1)).sum()) for bit in range(64)])
        assert abs(ones - 2048).max() < 6 * 32  # six standard deviations
        flips = words[1:] ^ words[:-1]
        assert abs(np.bitwise_count(flips).mean() - 32) < 6 * 4 / 64


def test_unit_threshold_is_the_last_word_within_probability() -> None:
    generator = np.random.default_rng(2)
    for p in [
        *generator.random(500),
        *generator.random(500) * 2.0**-50,
        2.0**-53,
        2.0**-52,
        np.nextafter(2.0**-53, 0),
        0.5,
        np.nextafter(1.0, 0),
        1 / 3,
    ]:
        threshold = int(rng.unit_threshold(float(p)))
        assert -1 <= threshold < 2**52
        assert threshold < 0 or rng.unit_float(np.uint64(threshold << 12 | 0xFFF)) <= p
        assert threshold == 2**52 - 1 or rng.unit_float(np.uint64(threshold + 1 << 12)) > p
