"""Tests of the digest of a unit's input: it changes exactly when the bytes may change."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storaged.build.unit_cache import BuildUnit, InputDigest
from storaged.store.block_store import NODES, OUT_EDGE_DELETES, OUT_EDGES, BlockRef
from storaged.store.keys import BlockKey


def ref(
    load: int, chunk: int = 0, *, rank: int | None = None, kind: int = OUT_EDGES, sub: int = 0
) -> BlockRef:
    key = BlockKey(part=1, kind=kind, type_id=2, load_id=load, chunk=chunk, sub=sub)
    return BlockRef(
        key,
        load if rank is None else rank,
        rows=10,
        size=240,
        crc=load * 77 + chunk,
        lowest=0,
        highest=9,
    )


REFS = [ref(1), ref(1, sub=1), ref(3, kind=OUT_EDGE_DELETES), ref(3, 2), ref(8)]


def digest(refs: list[BlockRef], *values: object) -> str:
    return InputDigest(*values).add_blocks(refs).digest()


def test_the_order_in_which_blocks_are_listed_does_not_matter() -> None:
    assert digest(REFS) == digest(REFS[::-1])


def test_loads_that_wrote_none_of_the_blocks_do_not_matter() -> None:
    compact_ranks = {1: 0, 3: 1, 8: 2}
    assert digest(REFS) == digest([replace(r, rank=compact_ranks[r.rank]) for r in REFS])


def test_order_of_writes_matters() -> None:
    swapped = {1: 1, 3: 8, 8: 3}
    assert digest(REFS) != digest([replace(r, rank=swapped[r.rank]) for r in REFS])


def test_sharing_one_write_matters() -> None:
    same_write = [ref(4, kind=NODES), ref(4)]
    separate_writes = [ref(4, kind=NODES), ref(4, rank=5)]
    assert digest(same_write) != digest(separate_writes)


@pytest.mark.parametrize(
    "other",
    [
        *(
            {"key": REFS[3].key._replace(**{field: value})}
            for field, value in (("part", 2), ("kind", NODES), ("type_id", 3), ("load_id", 9))
        ),
        *({"key": REFS[3].key._replace(**{field: 7})} for field in ("chunk", "sub")),
        *({field: 11} for field in ("rows", "size", "crc", "lowest", "highest")),
    ],
    ids=str,
)
def test_every_field_of_a_block_matters(other: dict[str, Any]) -> None:
    changed = [*REFS[:3], replace(REFS[3], **other), *REFS[4:]]
    assert digest(REFS) != digest(changed)


def test_number_of_blocks_matters() -> None:
    assert len({digest(REFS[:n]) for n in range(len(REFS) + 1)}) == len(REFS) + 1


def test_values_matter_and_are_delimited() -> None:
    assert (
        len(
            {
                digest(REFS),
                digest(REFS, 1),
                digest(REFS, "1"),
                digest(REFS, 1, None),
                digest(REFS, [1], None),
            }
        )
        == 5
    )
    assert InputDigest().add_blocks(REFS[:1]).add_blocks(REFS[1:]).digest() != digest(REFS)
    assert (
        InputDigest().add_array(np.array([1, 2])).add_array(np.array([3])).digest()
        != InputDigest().add_array(np.array([1])).add_array(np.array([2, 3])).digest()
    )


IDS, STAMPS = np.array([3, 5, 8, 900]), np.array([0, 2 << 32, 5 << 32, 9 << 32])
"""Deletes before all of `REFS`, between two of their writes (twice), and after all."""


def deletes(ids: np.ndarray, stamps: np.ndarray) -> str:
    return InputDigest().add_blocks(REFS).add_deletes([(ids, stamps)], REFS).digest()


@given(st.lists(st.integers(0, 4), max_size=3))
def test_chunking_of_deletes_does_not_matter(cuts: list[int]) -> None:
    bounds = [0, *sorted(cuts), 4]
    pieces = [(IDS[low:high], STAMPS[low:high]) for low, high in pairwise(bounds)]
    assert InputDigest().add_blocks(REFS).add_deletes(pieces, REFS).digest() == deletes(IDS, STAMPS)


def test_only_a_delete_before_every_block_is_ignored() -> None:
    assert deletes(IDS, STAMPS) == deletes(IDS[1:], STAMPS[1:])
    digests = {deletes(np.delete(IDS, i), np.delete(STAMPS, i)) for i in range(4)}
    assert len(digests) == 4


def test_a_delete_matters_by_the_writes_that_it_follows() -> None:
    assert deletes(IDS, STAMPS) == deletes(IDS, STAMPS + np.array([0, 1, -1, 5]))
    assert deletes(IDS, STAMPS) != deletes(IDS, np.array([0, 4 << 32, 5 << 32, 9 << 32]))
    assert deletes(IDS, STAMPS) != deletes(np.array([3, 5, 9, 900]), STAMPS)


def test_unit_owns_files_by_their_full_names() -> None:
    unit = BuildUnit(name="n1.features", digest="", files=("n1.c[0-9]*", "n1.live"))
    assert [
        unit.owns(file)
        for file in (
            "n1.c0.values",
            "n1.c12.indptr",
            "n1.live",
            "n1.live_rows",
            "n11.c0.values",
            "n1.cold",
        )
    ] == [
        True,
        True,
        True,
        False,
        False,
        False,
    ]
