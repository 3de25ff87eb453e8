"""Indexes: rows in order of a column, and alias tables over blocks of that order, for draws under conditions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import Internal
from asterism_proto.indexes import HASH, Index
from asterism_proto.meaning import NODE, meant
from graphkit import alias, labels
from graphkit.jit import settled
from graphkit.order import sort_keys
from storaged.build.rows import Rows
from storaged.build.source import Workplace
from storaged.build.spool import Records, buckets
from storaged.build.steps import State
from storaged.build.table import MAX_DISTANCE
from storaged.build.unit import Unit
from storaged.build.weights import weights_input
from storaged.reread import law
from storaged.store.image_writer import Appended
from storaged.store.ordered import OWN, STEPS, described, levels_of, prefix_of

I64 = NDArray[np.int64]
_CHUNK = STEPS[-1]
"""Rows that a pass holds at once: whole blocks of every level."""
_RECORD_BYTES = 96
"""Per record of a bucket: itself, its copy in it, its key, its place in the order, what is kept of it."""
_HALF = np.int64(1 << 62)
_LAST_KEY = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Last:
    """What the bucket before ended with."""

    key: int
    row: int = -1
    groups: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordering:
    """An index under way."""

    work: Workplace
    index: Index
    owner: str
    """What the files of the type begin with."""
    place: str
    """The number of its feature, or the name of what is no feature; of a vector, with the place of the value."""
    count: int
    """Live rows."""
    chunks: Callable[[], Iterator[I64]]
    """The live rows, ascending, some at a time."""
    read: Callable[[I64], NDArray[Any]]
    """The values at rows, of texts their hashes."""
    texts: tuple[I64, NDArray[np.uint8]] | None = None
    """Offsets and bytes of a column of texts."""

    @property
    def prefix(self) -> str:
        """What the names of its files begin with."""
        return prefix_of(self.owner, self.index.kind, self.place)


class Weights(NamedTuple):
    """Weights that tables of an index are made by."""

    name: str
    at: str
    """What the names of their files end with."""
    file: str
    digest: object
    """What they are made of."""


def place_of(work: Workplace, index: Index) -> str:
    """As of `Ordering`."""
    schema, column = work.task.schema, index.parsed
    found = meant(schema, index.element, index.type_id, column)
    if found.feature is None:
        return column.name
    number = found.owner.features.index(found.feature)
    return str(number) if column.element is None else f"{number}e{column.element}"


def build_indexes(work: Workplace, type_id: int, rows: Rows, *, weights: object, features: str) -> list[dict[str, Any]]:
    """Write the indexes of a node type, in units: each order, and its tables by weights of each name. Gives what the manifest says of them.

    Parameters
    ----------
    rows : Rows
        Of the type; its weights, features and further weights are written.
    weights, features : plain values
        Digests of what is written.
    """
    node_type, entries = work.task.schema.node_types[type_id], []
    tables = [Weights(OWN, "w", f"n{type_id}.weights", None)] if node_type.weighted else []
    tables += [Weights(t.name, f"w{i}", f"n{type_id}.w{i}.weights", weights_input(work, type_id, t)) for i, t in enumerate(node_type.tables)]
    for index in work.task.indexes:
        if (index.element, index.type_id) != (NODE, type_id):
            continue
        place = place_of(work, index)
        texts = _texts(work, f"n{type_id}.c{place}")
        making = Ordering(
            work=work,
            index=index,
            owner=f"n{type_id}",
            place=place,
            count=rows.count,
            chunks=partial(_live, rows),
            read=partial(_read, work, index, place, rows, texts),
            texts=texts,
        )
        made_of = (rows.digest, features, weights if place == "weight" else None)
        entries.append(build_order(making, made_of, tables, (features, weights)))
    return entries


def build_order(making: Ordering, made_of: Sequence[object], tables: Sequence[Weights], weighed: Sequence[object]) -> dict[str, Any]:
    """Write one index, in units. Gives what the manifest says of it.

    Parameters
    ----------
    making : Ordering
    made_of : plain values
        What its order follows from.
    tables : sequence of Weights
    weighed : plain values
        What weights follow from.
    """
    work, index, prefix = making.work, making.index, making.prefix
    work.progress.phase(f"index {index.named(work.task.schema)}")
    order = Unit(
        name=prefix,
        digest=work.input("index", asdict(index), *made_of).digest(),
        files=tuple(f"{prefix}.{file}" for file in ("rows", "values", "bounds")),
    )
    work.units.make(order, partial(_step, work, prefix, partial(_order, making), making.count))
    for table in tables:
        at = f"{prefix}.{table.at}"
        unit = Unit(name=at, digest=work.input("index tables", order.digest, table.digest, *weighed).digest(), files=(f"{at}.*",))
        work.units.make(unit, partial(_step, work, at, partial(_tables, work, at, prefix, table.file), making.count))
    return described(index.column, index.kind, prefix, {table.name: f"{prefix}.{table.at}" for table in tables})


def _texts(work: Workplace, file: str) -> tuple[I64, NDArray[np.uint8]] | None:
    """Offsets and bytes of a column, where it is one of texts."""
    image = work.image
    return (image.map(f"{file}.indptr"), image.map(f"{file}.values")) if f"{file}.indptr" in image else None


def _read(work: Workplace, index: Index, place: str, of: Rows, texts: tuple[I64, NDArray[np.uint8]] | None, rows: I64) -> NDArray[Any]:
    """The values of nodes at rows, of texts their hashes."""
    column, image, name = index.parsed, work.image, f"n{index.type_id}"
    if place == "id":
        return of.ids_of(rows)
    if place == "weight":
        return image.map(f"{name}.weights")[rows] if f"{name}.weights" in image else np.ones(rows.size, np.float32)
    if texts is not None:
        low = int(rows[0]) if rows.size else 0
        found = labels.hashes(*texts, low, int(rows[-1]) + 1 - low if rows.size else 0)
        return found[rows - low]
    values = image.map(f"{name}.c{place.partition('e')[0]}.values")[rows]
    return values if column.element is None else values.reshape(rows.size, math.prod(values.shape[1:]))[:, column.element]


def expected_rows(indexes: Sequence[Index], element: int, type_id: int, rows: int, tables: int) -> int:
    """Rows that the passes of a type's indexes will report."""
    return sum(rows * (1 + tables) for index in indexes if (index.element, index.type_id) == (element, type_id))


def _step(work: Workplace, name: str, make: Any, rows: int) -> State:
    return work.steps.run(name, make, rows=rows)


def _order(making: Ordering) -> State:
    """Write rows by (value, row), and the values."""
    work, prefix, texts = making.work, making.prefix, making.texts
    out = work.image.append_to(f"{prefix}.rows", np.uint32)
    hashed = making.index.kind == HASH
    dtype = making.read(np.zeros(0, np.int64)).dtype
    out_values = work.image.append_to(f"{prefix}.values", dtype)
    out_bounds = work.image.append_to(f"{prefix}.bounds", np.int64) if hashed else None
    low, high = _span(making)
    last, held = _Last(key=-_LAST_KEY - 1), 0
    split = buckets(
        _records(making),
        making.count,
        low=low,
        high=high,
        limit=work.task.row_limit(_RECORD_BYTES),
        folder=work.spools,
        keys=(0, 1, 2),
    )
    for bucket in split:
        coarse, fine, row = bucket.records
        if not row.size:
            continue
        keys = ((coarse - _HALF) << 1) | fine
        if texts is not None:
            ordered, starts, hashes = labels.grouped(keys, row, *texts)
            first = int(hashes[0])
            if first == last.key and (last.groups > 1 or starts.size > 1 or _text(*texts, last.row) != _text(*texts, int(ordered[0]))):
                raise Internal(f"part {work.part}: two texts of {prefix} have one hash, and more nodes than the memory limit allows; raise it")
            values = hashes
        else:
            by = np.argsort(keys, kind="stable")
            ordered, keys = row[by], keys[by]
            starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
            first = int(keys[0])
            values = making.read(ordered[starts] if hashed else ordered)
            hashes = keys[starts]
        out.append(ordered)
        if out_bounds is not None:
            new = slice(1 if first == last.key and held else 0, None)
            out_bounds.append(starts[new] + held)
            out_values.append(values[new])
        else:
            out_values.append(values)
        if first != last.key or not held or starts.size > 1:
            last = _Last(key=int(hashes[-1]), row=int(ordered[starts[-1]]), groups=int((hashes == hashes[-1]).sum()))
        held += ordered.size
        work.progress.step(ordered.size)
    if out_bounds is not None:
        out_bounds.append(np.array([held], np.int64))
    if held != making.count:
        raise Internal(f"part {work.part}: {prefix} has {held} rows of {making.count}; the version is refused")
    return {}


def _records(making: Ordering) -> Iterator[Records]:
    """(coarse key, its last bit, row) of every live row: what buckets are split by is below 2^63."""
    for rows in making.chunks():
        keys = sort_keys(making.read(rows))
        yield (keys >> np.int64(1)) + _HALF, keys & np.int64(1), rows


def _live(rows: Rows) -> Iterator[I64]:
    for low in range(0, rows.rows, _CHUNK):
        here = np.arange(low, min(low + _CHUNK, rows.rows))
        yield here[rows.live[here] > 0] if rows.live.size else here


def _span(making: Ordering) -> tuple[int, int]:
    """The least and the largest coarse key, where they are needed."""
    if making.count <= making.work.task.row_limit(_RECORD_BYTES):
        return 0, _LAST_KEY
    low, high = _LAST_KEY, 0
    for coarse, _, _ in _records(making):
        if coarse.size:
            low, high = min(low, int(coarse.min())), max(high, int(coarse.max()))
    return low, high


def _text(indptr: I64, values: NDArray[np.uint8], row: int) -> bytes:
    return bytes(values[indptr[row] : indptr[row + 1]])


class _Level(NamedTuple):
    """The files of one level's tables."""

    step: int
    hot: Appended
    cold: Appended
    sums: Appended


def _tables(work: Workplace, at: str, prefix: str, file: str) -> State:
    """Write alias tables over blocks of an order, and hold the law of each against its weights."""
    image = work.image
    rows, weights = image.map(f"{prefix}.rows"), image.map(file)
    levels = [
        _Level(step, *(image.append_to(f"{at}.{i}.{name}", kind) for name, kind in (("hot", np.uint64), ("cold", np.uint32), ("sums", np.float64))))
        for i, step in enumerate(levels_of(rows.size))
    ]
    positives, counted = image.append_to(f"{at}.positives", np.int64), 0
    for low in range(0, rows.size, _CHUNK):
        here = weights[rows[low : low + _CHUNK]]
        for level in levels:
            bounds = np.append(np.arange(0, here.size, level.step), here.size)
            hot, cold, sums = alias.build_rows(bounds, here)
            found, wrong = law.fresh()
            law.audit_rows(settled(bounds), settled(here), settled(sums), settled(hot), settled(cold), 0.0, MAX_DISTANCE, found, wrong)
            if wrong[1]:
                raise Internal(f"part {work.part}: {at}: the table of rows {low + int(wrong[0]) * level.step} on is not the law of its weights")
            level.hot.append(hot)
            level.cold.append(cold)
            level.sums.append(sums)
        before = np.append(0, np.cumsum(np.add.reduceat((here > 0).astype(np.int64), np.arange(0, here.size, STEPS[0]))))
        positives.append(before[:-1] + counted)
        counted += int(before[-1])
        work.progress.step(here.size)
    positives.append(np.array([counted], np.int64))
    return {}
