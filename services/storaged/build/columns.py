"""Features: blocks of columns scattered into mapped files in row order, later writes over earlier ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto.schema import Feature
from storaged.build.kernels import copy_lists
from storaged.build.source import Sections, Tombstones, Workplace
from storaged.store.graph import BlockRef

I64 = NDArray[np.int64]
CHUNK = 1 << 18


def build_columns(
    work: Workplace,
    *,
    prefix: str,
    features: Sequence[Feature],
    refs: Sequence[BlockRef],
    id_section: str,
    rows: int,
    find: Callable[[I64], I64],
    tombstones: Tombstones | None,
) -> None:
    """Write a column per feature, named ``<prefix>.c<i>``; what was never given is zero, or empty."""
    dense = {
        f"f:{f.name}": work.image.create(f"{prefix}.c{i}.values", f.dtype, (rows, *f.shape)) for i, f in enumerate(features) if f.kind == "dense"
    }
    ragged = [(i, f) for i, f in enumerate(features) if f.kind != "dense"]
    lengths = {f.name: work.image.create(f"{prefix}.c{i}.indptr", np.int64, (rows + 1,)) for i, f in ragged}
    owners = {f.name: work.scratch.create(f"owner{i}", np.int64, (rows,)) for i, f in ragged}
    for first, at, sections in placed(work, refs, id_section, find, tombstones):
        for name, values in dense.items():
            if name in sections:
                _scatter(values, at, sections[name])
        for name, owner in owners.items():
            if (indptr := sections.get(f"f:{name}.indptr")) is not None:
                kept = at >= 0
                lengths[name][at[kept] + 1] = np.diff(indptr)[kept]
                owner[at[kept]] = first + np.flatnonzero(kept)
    if ragged:
        _place_lists(work, prefix, ragged, refs, id_section, find, tombstones, lengths, owners)
    for i, _ in ragged:
        work.scratch.remove(f"owner{i}")


def placed(
    work: Workplace, refs: Sequence[BlockRef], id_section: str, find: Callable[[I64], I64], tombstones: Tombstones | None
) -> Iterator[tuple[int, I64, Sections]]:
    """Each block with the number of its first record (from 1) and the row of each; -1 where there is none, or it died."""
    first = 1
    for ref, sections in work.source.read(refs):
        at = find(sections[id_section])
        dead = None if tombstones is None else tombstones.kills(sections[id_section], ref.stamp)
        if dead is not None:
            at[dead] = -1
        yield first, at, sections
        first += ref.rows


def _scatter(values: NDArray[Any], at: I64, block: NDArray[Any]) -> None:
    if at.size and at[0] >= 0 and at[-1] - at[0] == at.size - 1 and bool((np.diff(at) == 1).all()):
        values[at[0] : at[-1] + 1] = block
        return
    kept = at >= 0
    # Where a row comes twice in a block NumPy keeps the last, as the order of the writes has it.
    values[at[kept]] = block[kept]


def _place_lists(
    work: Workplace,
    prefix: str,
    ragged: Sequence[tuple[int, Feature]],
    refs: Sequence[BlockRef],
    id_section: str,
    find: Callable[[I64], I64],
    tombstones: Tombstones | None,
    lengths: dict[str, I64],
    owners: dict[str, I64],
) -> None:
    """The second pass over lists: their lengths are known, so that each has its place."""
    targets: dict[str, NDArray[np.uint8]] = {}
    widths = {f.name: 1 if f.kind == "bytes" else np.dtype(f.dtype).itemsize for _, f in ragged}
    for i, feature in ragged:
        offsets = lengths[feature.name]
        total = 0
        for low in range(0, offsets.size, CHUNK):
            here = offsets[low : low + CHUNK]
            here[:] = np.cumsum(here) + total
            total = int(here[-1])
        dtype = np.dtype(np.uint8 if feature.kind == "bytes" else feature.dtype)
        targets[feature.name] = work.image.create(f"{prefix}.c{i}.values", dtype, (total,)).view(np.uint8)
    for first, at, sections in placed(work, refs, id_section, find, tombstones):
        for _, feature in ragged:
            name = feature.name
            if (indptr := sections.get(f"f:{name}.indptr")) is not None:
                content = np.ascontiguousarray(sections[f"f:{name}.values"]).view(np.uint8)
                copy_lists(at, owners[name], np.int64(first), indptr, content, lengths[name], np.int64(widths[name]), targets[name])
