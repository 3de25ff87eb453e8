"""Tests of partitions of ids, grouping, partition choice and the index of sparse ids."""

from __future__ import annotations

import numpy as np
import pytest

from asterism_graphkit.random import partition_choice, rng
from asterism_graphkit.relabel import hash_index


def test_mod_placement_is_the_remainder_for_any_part_count() -> None:
    ids = np.r_[np.arange(50), 2**62, 2**63 - 1].astype(np.int64)
    for parts in (1, 2, 7, 8, 4096):
        np.testing.assert_array_equal(partition_choice.part_of(ids, parts, "mod"), ids % parts)


def test_mix64_placement_is_splitmix64s_finaliser_modulo_parts() -> None:
    def mix(x: int) -> int:
        mask = 2**64 - 1
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & mask
        x = (x ^ (x >> 27)) * 0x94D049BB133111EB & mask
        return x ^ (x >> 31)

    ids = np.r_[np.arange(0, 8000, 8), 2**63 - 1].astype(np.int64)
    for parts in (1, 7, 8):
        parts_of = partition_choice.part_of(ids, parts, "mix64")
        assert parts_of.tolist() == [mix(int(i)) % parts for i in ids]
    assert np.bincount(partition_choice.part_of(ids, 8, "mix64"), minlength=8).min() > 80


@pytest.mark.parametrize("count", [1, 3, 4, 7, 1000, 1003])
@pytest.mark.parametrize("groups", [1, 3, 100, 256, 257])
def test_grouping_is_a_stable_sort(groups: int, count: int) -> None:
    keys = np.random.default_rng(groups).integers(0, groups, count).astype(np.int32)
    order, offsets = partition_choice.group_by_key(keys, groups)
    np.testing.assert_array_equal(order, np.argsort(keys, kind="stable"))
    np.testing.assert_array_equal(np.diff(offsets), np.bincount(keys, minlength=groups))


def test_grouping_nothing_gives_empty_groups() -> None:
    order, offsets = partition_choice.group_by_key(np.zeros(0, np.int32), 3)
    assert order.size == 0
    assert offsets.tolist() == [0, 0, 0, 0]


def test_shares_are_sorted_and_missing_ones_are_never_chosen() -> None:
    shares = partition_choice.build_shares([2, 0, 2], {(0, 1): 3.0, (2, 0): 1.0, (1, 0): 9.0}, 2)
    assert shares.types.tolist() == [0, 0, 2, 2]
    assert shares.parts.tolist() == [0, 1, 0, 1]
    assert shares.measure.tolist() == [0.0, 3.0, 1.0, 0.0]
    assert shares.total == 4.0
    chosen = partition_choice.choose_entries(rng.key_of(1, rng.PART, 1), 0, 10_000, shares)
    assert set(chosen.tolist()) == {1, 2}


def test_choice_depends_on_its_number_not_on_the_range() -> None:
    shares = partition_choice.build_shares(
        [0], {(0, part): float(part + 1) for part in range(5)}, 5
    )
    key = rng.key_of(7, rng.PART, 1)
    all_choices = partition_choice.choose_entries(key, 0, 1000, shares)
    np.testing.assert_array_equal(
        partition_choice.choose_entries(key, 313, 99, shares), all_choices[313:412]
    )


@pytest.mark.parametrize("n", [0, 1, 4, 5, 1000])
def test_every_id_is_found_at_its_row_and_no_other_id_is(n: int) -> None:
    ids = np.unique(np.random.default_rng(n).integers(0, 2**62, n))
    index_ids, index_rows = hash_index.build_index(ids)
    assert index_ids.size >= max(8, 2 * ids.size)
    np.testing.assert_array_equal(hash_index.find(ids, index_ids, index_rows), np.arange(ids.size))
    absent = np.r_[ids + 1, -1, 2**63 - 1]
    absent = absent[~np.isin(absent, ids)]
    assert (hash_index.find(absent, index_ids, index_rows) == -1).all()


def test_id_is_stored_at_or_after_its_hash_slot() -> None:
    ids = np.arange(100, dtype=np.int64) * 8
    index_ids, index_rows = hash_index.build_index(ids)
    for slot in np.flatnonzero(index_ids >= 0):
        home = int(rng.mix64(np.uint64(index_ids[slot]))) >> 64 - 8
        between = index_ids[np.arange(home, home + (slot - home) % 256) % 256]
        assert (between >= 0).all()
        assert ids[index_rows[slot]] == index_ids[slot]


def test_empty_index_finds_nothing() -> None:
    rows = hash_index.find(np.array([0, 7, -1]), np.zeros(0, np.int64), np.zeros(0, np.uint32))
    assert rows.tolist() == [-1, -1, -1]
