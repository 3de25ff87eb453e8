"""Build feature columns: scatter blocks into mapped files.

Later writes replace earlier ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_model.schema import Feature
from storaged.build.block_reader import BuildContext, Sections, Tombstones
from storaged.build.build_kernels import copy_lists
from storaged.store.block_store import BlockRef

I64 = NDArray[np.int64]
CHUNK = 1 << 18


def build_columns(
    context: BuildContext,
    *,
    prefix: str,
    features: Sequence[Feature],
    refs: Sequence[BlockRef],
    id_section: str,
    rows: int,
    find: Callable[[I64], I64],
    tombstones: Tombstones | None,
) -> None:
    """Write a column ``<prefix>.c<i>`` for each feature; missing values are zero or empty."""
    dense = {
        f"f:{f.name}": context.image.create(f"{prefix}.c{i}.values", f.dtype, (rows, *f.shape))
        for i, f in enumerate(features)
        if f.kind == "dense"
    }
    ragged = [(i, f) for i, f in enumerate(features) if f.kind != "dense"]
    lengths = {
        f.name: context.image.create(f"{prefix}.c{i}.indptr", np.int64, (rows + 1,))
        for i, f in ragged
    }
    owners = {f.name: context.scratch.create(f"owner{i}", np.int64, (rows,)) for i, f in ragged}
    for first, located_rows, sections in read_located(context, refs, id_section, find, tombstones):
        for name, values in dense.items():
            if name in sections:
                _scatter(values, located_rows, sections[name])
        for name, owner in owners.items():
            if (indptr := sections.get(f"f:{name}.indptr")) is not None:
                present = located_rows >= 0
                lengths[name][located_rows[present] + 1] = np.diff(indptr)[present]
                owner[located_rows[present]] = first + np.flatnonzero(present)
    if ragged:
        _place_lists(context, prefix, ragged, refs, id_section, find, tombstones, lengths, owners)
    for i, _ in ragged:
        context.scratch.remove(f"owner{i}")


def read_located(
    context: BuildContext,
    refs: Sequence[BlockRef],
    id_section: str,
    find: Callable[[I64], I64],
    tombstones: Tombstones | None,
) -> Iterator[tuple[int, I64, Sections]]:
    """Yield each block with the rows of its records, and the number of the first record.

    Records are numbered from 1. A row is -1 if there is none, or if the record was deleted later.
    """
    first = 1
    for ref, sections in context.reader.read(refs):
        located_rows = find(sections[id_section])
        deleted = (
            None
            if tombstones is None
            else tombstones.deleted_after(sections[id_section], ref.stamp)
        )
        if deleted is not None:
            located_rows[deleted] = -1
        yield first, located_rows, sections
        first += ref.rows


def _scatter(values: NDArray[Any], rows: I64, block: NDArray[Any]) -> None:
    if (
        rows.size
        and rows[0] >= 0
        and rows[-1] - rows[0] == rows.size - 1
        and bool((np.diff(rows) == 1).all())
    ):
        values[rows[0] : rows[-1] + 1] = block
        return
    present = rows >= 0
    # If a row occurs twice in a block, NumPy keeps the last value, which is the last write.
    values[rows[present]] = block[present]


def _place_lists(
    context: BuildContext,
    prefix: str,
    ragged: Sequence[tuple[int, Feature]],
    refs: Sequence[BlockRef],
    id_section: str,
    find: Callable[[I64], I64],
    tombstones: Tombstones | None,
    lengths: dict[str, I64],
    owners: dict[str, I64],
) -> None:
    """Run the second pass over lists: lengths are known, so each list has a position."""
    targets: dict[str, NDArray[np.uint8]] = {}
    widths = {f.name: 1 if f.kind == "bytes" else np.dtype(f.dtype).itemsize for _, f in ragged}
    for i, feature in ragged:
        offsets = lengths[feature.name]
        total = 0
        for low in range(0, offsets.size, CHUNK):
            chunk = offsets[low : low + CHUNK]
            chunk[:] = np.cumsum(chunk) + total
            total = int(chunk[-1])
        dtype = np.dtype(np.uint8 if feature.kind == "bytes" else feature.dtype)
        targets[feature.name] = context.image.create(f"{prefix}.c{i}.values", dtype, (total,)).view(
            np.uint8
        )
    for first, located_rows, sections in read_located(context, refs, id_section, find, tombstones):
        for _, feature in ragged:
            name = feature.name
            if (indptr := sections.get(f"f:{name}.indptr")) is not None:
                content = np.ascontiguousarray(sections[f"f:{name}.values"]).view(np.uint8)
                copy_lists(
                    located_rows,
                    owners[name],
                    np.int64(first),
                    indptr,
                    content,
                    lengths[name],
                    np.int64(widths[name]),
                    targets[name],
                )
