"""Tests of keys: they sort like their content, and a prefix's end follows all its keys."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from storaged.store import keys
from storaged.store.keys import BlockKey

block_keys = st.builds(
    BlockKey,
    part=st.integers(0, 4095),
    kind=st.integers(0, 255),
    type_id=st.integers(0, 65535),
    load_id=st.integers(0, 2**64 - 1),
    chunk=st.integers(0, 2**32 - 1),
    sub=st.integers(0, 2**32 - 1),
)


@given(block_keys, block_keys)
def test_block_keys_sort_as_their_fields(a: BlockKey, b: BlockKey) -> None:
    assert (keys.block_key(a) < keys.block_key(b)) == (a < b)


@given(block_keys)
def test_a_block_key_is_read_back(key: BlockKey) -> None:
    assert keys.parse_block_key(keys.block_key(key)) == key


@given(block_keys)
def test_key_starts_with_each_of_its_prefixes(key: BlockKey) -> None:
    raw = keys.block_key(key)
    assert raw.startswith(keys.type_prefix(*key[:3]))
    assert raw.startswith(keys.load_prefix(*key[:4]))
    assert raw.startswith(keys.chunk_prefix(*key[:5]))
    assert raw.startswith(keys.part_prefix(key.part))


@given(st.binary(max_size=8), st.binary(max_size=8))
def test_prefix_end_bounds_exactly_the_keys_with_the_prefix(prefix: bytes, other: bytes) -> None:
    end = keys.prefix_end(prefix)
    assert end is None or prefix + other < end
    if end is not None and other >= prefix and not other.startswith(prefix):
        assert other >= end


def test_a_table_of_one_weight_is_not_a_prefix_of_another() -> None:
    short, long = keys.table_prefix(1, 2, 3, "w"), keys.table_prefix(1, 2, 3, "weight")
    assert not long.startswith(short)


def test_blocks_of_a_table_sort_by_number() -> None:
    prefix = keys.table_prefix(1, keys.B1, 0, "weight")
    table_keys = [keys.table_key(prefix, n) for n in (0, 1, 255, 256, 2**32 - 1)]
    assert table_keys == sorted(table_keys)
