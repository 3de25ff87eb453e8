"""Tests of stored blocks: replays, sizes of values, damage, and live nodes per commit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asterism_model.schema import NodeType, Schema
from asterism_proto.errors import Corrupt, InvalidRequest
from storaged.store import block_store, keys
from storaged.store.block_store import FAMILIES, Block, BlockStore
from storaged.store.memory_engine import MemoryEngine

SCHEMA = Schema(node_types=(NodeType(name="a"),), parts=1)


@pytest.fixture
def engine() -> MemoryEngine:
    return MemoryEngine(FAMILIES)


def nodes(
    ids: list[int], load: int = 1, chunk: int = 0, part: int = 0, **features: np.ndarray
) -> Block:
    arrays = {
        "ids": np.array(ids, np.int64),
        **{f"f:{name}": array for name, array in features.items()},
    }
    return Block(
        load_id=load, chunk=chunk, kind=block_store.NODES, type_id=0, part=part, arrays=arrays
    )


def deletes(ids: list[int], load: int, chunk: int = 0, part: int = 0) -> Block:
    return Block(
        load_id=load,
        chunk=chunk,
        kind=block_store.NODE_DELETES,
        type_id=0,
        part=part,
        arrays={"ids": np.array(ids, np.int64)},
    )


def read_section(
    store: BlockStore,
    kind: int = block_store.NODES,
    loads: tuple[int, ...] = (1,),
    section: str = "ids",
) -> list[object]:
    return np.concatenate(
        [
            np.zeros(0, np.int64),
            *(store.read(ref)[section] for ref in store.refs(0, (kind,), 0, loads)),
        ]
    ).tolist()


def test_a_replay_replaces_what_it_replays(engine: MemoryEngine) -> None:
    store = BlockStore(engine, SCHEMA)
    big = nodes(list(range(50_000)), x=np.zeros((50_000, 16), np.float32))
    store.write([big])
    values = len(list(engine.scan(keys.BLOCKS, b"", None)))
    store.write([big])
    assert len(list(engine.scan(keys.BLOCKS, b"", None))) == values
    store.write([nodes([7])])
    assert read_section(store) == [7]
    assert len(list(engine.scan(keys.BLOCKS, b"", None))) == 1


def test_large_blocks_are_split_into_values_of_a_mebibyte(engine: MemoryEngine) -> None:
    store = BlockStore(engine, SCHEMA)
    n = 40_000
    store.write([nodes(list(range(n)), x=np.arange(n * 8, dtype=np.float64).reshape(n, 8))])
    sizes = [len(value) for _, value in engine.scan(keys.BLOCKS, b"", None)]
    assert max(sizes) <= 1 << 20
    assert read_section(store) == list(range(n))
    assert "f:x" not in store.read(store.refs(0, (block_store.NODES,), 0, [1])[0])
    columns = [
        store.read(ref)["f:x"] for ref in store.refs(0, (block_store.NODES | keys.COLUMNS,), 0, [1])
    ]
    assert np.concatenate(columns)[:, 0].tolist() == [8 * i for i in range(n)]


def test_lists_are_split_with_their_values(engine: MemoryEngine) -> None:
    store = BlockStore(engine, SCHEMA)
    lengths = np.arange(3000) % 100
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    block = nodes(list(range(3000)))
    arrays = {
        **block.arrays,
        "f:l.indptr": indptr,
        "f:l.values": np.arange(indptr[-1], dtype=np.int64),
    }
    store.write(
        [Block(load_id=1, chunk=0, kind=block_store.NODES, type_id=0, part=0, arrays=arrays)]
    )
    pieces = [store.read(ref) for ref in store.refs(0, (block_store.NODES | keys.COLUMNS,), 0, [1])]
    assert len(pieces) > 1
    assert (
        np.concatenate([np.diff(piece["f:l.indptr"]) for piece in pieces]).tolist()
        == lengths.tolist()
    )
    assert np.concatenate([piece["f:l.values"] for piece in pieces]).tolist() == list(
        range(indptr[-1])
    )


def test_sections_of_different_lengths_are_refused(engine: MemoryEngine) -> None:
    with pytest.raises(InvalidRequest, match="3 rows: expected 2, as of its ids"):
        BlockStore(engine, SCHEMA).write([nodes([1, 2], x=np.zeros(3))])


def test_an_altered_value_and_a_missing_one_are_corrupt(engine: MemoryEngine) -> None:
    store = BlockStore(engine, SCHEMA)
    store.write([nodes([1, 2, 3])])
    [ref] = store.refs(0, (block_store.NODES,), 0, [1])
    raw = keys.block_key(ref.key)
    value = engine.get(keys.BLOCKS, raw)
    assert value is not None
    for damaged in (value[:-1] + bytes([value[-1] ^ 1]), value[:-8], None):
        engine.write([(keys.BLOCKS, raw, damaged)])
        with pytest.raises(Corrupt):
            store.read(ref)


def test_blocks_come_in_the_order_of_commits_not_of_load_ids(engine: MemoryEngine) -> None:
    store = BlockStore(engine, SCHEMA)
    store.write(
        [nodes([1], load=1), nodes([2], load=2, chunk=1), nodes([3], load=2), nodes([4], load=3)]
    )
    assert read_section(store, loads=(2, 1)) == [3, 2, 1]


def test_dropped_loads_leave_nothing(engine: MemoryEngine) -> None:
    store = BlockStore(engine, SCHEMA)
    store.write([nodes([1], load=1, x=np.zeros(1)), nodes([2], load=2)])
    store.drop_loads([1])
    assert read_section(store, loads=(1, 2)) == [2]
    assert store.exists(0, np.array([1, 2]), 0, [1, 2]).tolist() == [0, 1]


def test_load_sees_its_own_nodes_but_no_other_open_load(engine: MemoryEngine) -> None:
    store = BlockStore(engine, SCHEMA)
    store.write([nodes([1, 2], load=1), nodes([3], load=2, part=1)])
    ids = np.array([1, 2, 3, 4, -1])
    assert store.exists(0, ids, 1, []).tolist() == [1, 1, 0, 0, 0]
    assert store.exists(0, ids, 2, [1]).tolist() == [1, 1, 1, 0, 0]
    store.write([nodes([4], load=2, chunk=1)])
    assert store.exists(0, ids, 2, [1]).tolist() == [1, 1, 1, 1, 0]
    assert store.exists(0, ids, 3, [2]).tolist() == [0, 0, 1, 1, 0]


def test_replay_with_other_ids_takes_effect(engine: MemoryEngine) -> None:
    store = BlockStore(engine, SCHEMA)
    store.write([nodes([1])])
    assert store.exists(0, np.array([1, 2]), 1, []).tolist() == [1, 0]
    store.write([nodes([2])])
    assert store.exists(0, np.array([1, 2]), 1, []).tolist() == [0, 1]


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.booleans(), st.lists(st.integers(0, 20), min_size=1, max_size=8), st.integers(1, 4)
        ),
        max_size=12,
    ),
    st.permutations([1, 2, 3]),
)
def test_exists_agrees_with_applying_the_writes_one_by_one(
    writes: list[tuple[bool, list[int], int]], order: list[int]
) -> None:
    store = BlockStore(MemoryEngine(FAMILIES), SCHEMA)
    by_load: dict[int, list[tuple[bool, list[int]]]] = {load: [] for load in range(1, 5)}
    all_ids = np.arange(21)
    for is_insert, ids, load in writes:
        chunk = len(by_load[load])
        store.write([nodes(ids, load, chunk) if is_insert else deletes(ids, load, chunk)])
        by_load[load].append((is_insert, ids))
        store.exists(
            0, all_ids, 4, order[: len(by_load[load]) % 3]
        )  # queried in between, so that layers grow gradually
    alive: set[int] = set()
    for load in [*order, 4]:
        for is_insert, ids in by_load[load]:
            alive = alive | set(ids) if is_insert else alive - set(ids)
    assert np.flatnonzero(store.exists(0, all_ids, 4, order)).tolist() == sorted(alive)
