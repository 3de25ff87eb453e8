"""The digest of a unit's input changes exactly when its bytes may; each file is of one unit."""

from __future__ import annotations

import io
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism_proto.errors import Internal
from storaged.build.progress import ProgressReporter
from storaged.build.unit_cache import BuildUnit, InputDigest, PartUnitCache
from storaged.store.alias_table_store import AliasTableStore
from storaged.store.block_store import NODES, OUT_EDGE_DELETES, OUT_EDGES, BlockRef
from storaged.store.image_writer import ImageWriter
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
    unit = BuildUnit(name="n1.features", digest="", files=("n1.c[0-9]*", "n1.live", "n1.gone"))
    owned = ["n1.c0.values", "n1.c12.indptr", "n1.live"]
    others = ["n1.live_rows", "n11.c0.values", "n1.cold"]
    assert unit.owned({*owned, *others}) == set(owned)


def test_every_file_of_an_image_belongs_to_one_unit(tmp_path: Path) -> None:
    image = ImageWriter(tmp_path / "image")
    for name in ("n0.ids", "n0.c0.values", "n0.c1.values"):
        image.create(name, np.int64, (1,))
    image.seal()
    with closing(AliasTableStore.open(tmp_path / "build")) as tables:
        for files, is_valid in (
            (("n0.c[0-9]*",), True),
            (("n0.c0.*",), False),  # c1 belongs to no unit
            (("n0.c[0-9]*", "n0.i*"), False),  # the ids belong to two
        ):
            units = PartUnitCache(
                part=3,
                image=image,
                tables=tables,
                sources=[],
                progress=ProgressReporter(io.StringIO()),
            )
            for name, patterns in (("n0", ("n0.ids",)), ("n0.features", files)):
                units.make(BuildUnit(name=name, digest="", files=patterns), dict)
            if is_valid:
                assert {name: record["files"] for name, record in units.records().items()} == {
                    "n0": ["n0.ids"],
                    "n0.features": ["n0.c0.values", "n0.c1.values"],
                }
            else:
                with pytest.raises(Internal, match="part 3: every file of an image is of one unit"):
                    units.records()
