"""Tests of hashed labels: groups, look-ups and draws against Python dictionaries."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asterism_graphkit.operators import graph_labels
from asterism_graphkit.random import rng
from storaged.build.external_partitioning import split_into_buckets


def pack_strings(texts: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    return np.cumsum([0, *map(len, texts)]).astype(np.int64), np.frombuffer(
        b"".join(texts), np.uint8
    )


STRING_LISTS = st.lists(st.binary(max_size=20), max_size=30)


@settings(deadline=None)  # the first example compiles
@given(STRING_LISTS, STRING_LISTS)
def test_groups_have_the_same_text_and_are_found_by_it(
    texts: list[bytes], others: list[bytes]
) -> None:
    indptr, values = pack_strings(texts)
    hashes = graph_labels.hash_strings(indptr, values, 0, len(texts))
    rows, starts, group_hashes = graph_labels.group_strings(
        hashes, np.arange(len(texts)), indptr, values
    )
    ends = [*starts.tolist(), len(texts)]
    rows_by_text = {texts[rows[a]]: rows[a:b].tolist() for a, b in pairwise(ends)}
    expected = {text: [i for i, other in enumerate(texts) if other == text] for text in texts}
    assert rows_by_text == expected
    assert (np.diff(group_hashes) >= 0).all()
    queries = [*texts, *others]
    groups = graph_labels.find_groups(
        *pack_strings(queries),
        group_hashes,
        np.array(ends, np.int64),
        rows.astype(np.uint32),
        indptr,
        values,
    )
    assert [-1 if g < 0 else texts[rows[starts[g]]] for g in groups.tolist()] == [
        text if text in expected else -1 for text in queries
    ]


def test_different_texts_of_one_hash_are_different_groups() -> None:
    texts = [b"b", b"a", b"b", b"", b"a", b"ab"]
    indptr, values = pack_strings(texts)
    equal_hashes = np.zeros(len(texts), np.int64)
    rows, starts, group_hashes = graph_labels.group_strings(
        equal_hashes, np.arange(len(texts)), indptr, values
    )
    assert [texts[row] for row in rows] == [b"", b"a", b"a", b"ab", b"b", b"b"]
    assert rows.tolist() == [3, 1, 4, 5, 0, 2]
    assert starts.tolist() == [0, 1, 3, 4]
    assert group_hashes.tolist() == [0] * 4


def test_hashes_of_texts_that_differ_in_a_bit_or_in_zeros_differ() -> None:
    texts = (
        [b"\0" * n for n in range(40)]
        + [bytes([1 << bit]) for bit in range(8)]
        + [b"a" * 8 + bytes([c]) for c in range(1, 99)]
    )
    assert len(set(graph_labels.hash_strings(*pack_strings(texts), 0, len(texts)).tolist())) == len(
        texts
    )


def test_choices_are_uniform_and_share_a_prefix() -> None:
    chosen = graph_labels.choose_uniform(rng.key_of(3, rng.LABEL), 30_000, 7)
    counts = np.bincount(chosen, minlength=7)
    assert counts.sum() == 30_000
    assert (
        float(((counts - 30_000 / 7) ** 2 / (30_000 / 7)).sum()) < 33
    )  # chi-square, 6 degrees of freedom: 1e-5
    assert np.array_equal(graph_labels.choose_uniform(rng.key_of(3, rng.LABEL), 10, 7), chosen[:10])


def test_buckets_come_in_hash_order_for_any_limit(tmp_path: Path) -> None:
    hashes = np.random.default_rng(1).integers(0, 1 << 63, 900)
    hashes[::3] = (1 << 63) - 1  # more of one hash than fit at once: split by their rows
    for limit in (1000, 200, 50):
        hash_buckets = list(
            split_into_buckets(
                [(hashes, np.arange(900))],
                900,
                low=0,
                high=(1 << 63) - 1,
                limit=limit,
                folder=tmp_path,
                keys=(0, 1),
            )
        )
        assert max(len(bucket.records[0]) for bucket in hash_buckets) <= max(limit, 50)
        rows = np.concatenate(
            [bucket.records[1][np.lexsort(bucket.records[::-1])] for bucket in hash_buckets]
        )
        assert np.array_equal(rows, np.lexsort((np.arange(900), hashes)))


@pytest.mark.parametrize("first", [0, 2, 5])
def test_hashes_of_a_run_are_those_of_its_texts(first: int) -> None:
    indptr, values = pack_strings([b"one", b"", b"two", b"three", b"four", b"five"])
    assert np.array_equal(
        graph_labels.hash_strings(indptr, values, first, 6 - first),
        graph_labels.hash_strings(indptr, values, 0, 6)[first:],
    )
