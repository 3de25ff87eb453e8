"""Node ids of files: numbers for string keys, and detection of repeated ids."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from asterism import arrow_types
from asterism.formats import columns
from asterism.formats.chunks import Ids, Mask
from asterism.formats.table_reader import TableReader
from asterism_proto.errors import InvalidRequest

MAX_STRING_IDS = 50_000_000
"""Largest number of string keys of a node type, because they are held in memory."""


def as_strings(column: columns.Column) -> pa.Array:
    """Return a column as strings for lookup."""
    if not isinstance(column, pa.Array):
        column = pa.array(column)
    column = arrow_types.plain_array(column)
    return (
        columns.to_utf8(column).cast(pa.large_string())
        if columns.is_text(column)
        else column.cast(pa.large_string())
    )


class StringIdIndex:
    """Index of the string keys of a node type's nodes, numbered by first appearance."""

    def __init__(self, names: pa.Array) -> None:
        self._names = names

    def __len__(self) -> int:
        return len(self._names)

    @classmethod
    def read(cls, table: TableReader, column: str, limit: int) -> StringIdIndex:
        """Collect the distinct strings of a column of the type's files."""
        name_arrays: list[pa.Array] = []
        name_count = 0
        for batch in table.batches({column: pa.string()}, limit):
            name_arrays.append(pc.unique(as_strings(batch.column(column)).drop_null()))
            name_count += len(name_arrays[-1])
            if name_count > MAX_STRING_IDS:
                raise InvalidRequest(
                    f"{batch.file}: column {column!r}: expected at most {MAX_STRING_IDS:,} names; "
                    f"use an "
                    "`id` of integers for such a type"
                )
        return cls(
            pc.unique(pa.concat_arrays(name_arrays))
            if name_arrays
            else pa.array([], pa.large_string())
        )

    def ids(self, column: columns.Column) -> tuple[Ids, Mask | None]:
        """Return the numbers of strings, int64, shape (n,), and a mask of unknown strings."""
        indices = pc.index_in(as_strings(column), value_set=self._names)
        unknown_mask = np.asarray(indices.is_null()) if indices.null_count else None
        return indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64), unknown_mask


class SeenIds:
    """Set of the numbers 0 .. n - 1 that have appeared so far."""

    def __init__(self, size: int) -> None:
        self._seen = np.zeros(size, np.bool_)

    def find_repeats(self, ids: Ids, good_mask: Mask | None) -> Mask | None:
        """Return a mask of the rows that repeat an earlier good row, and add the good rows."""
        rows = np.arange(len(ids)) if good_mask is None else np.flatnonzero(good_mask)
        _, first = np.unique(ids[rows], return_index=True)
        is_repeat = np.zeros(len(ids), np.bool_)
        is_repeat[rows] = True
        is_repeat[rows[first]] = self._seen[ids[rows[first]]]
        self._seen[ids[rows]] = True
        return is_repeat if is_repeat.any() else None


def ids_without_loops(ids: Iterator[Ids], existing: Ids) -> Iterator[Ids]:
    """Yield the ids that need a self-loop: all except the ascending ``existing``."""
    for chunk in ids:
        if len(existing):
            positions = np.minimum(np.searchsorted(existing, chunk), len(existing) - 1)
            chunk = chunk[existing[positions] != chunk]
        if len(chunk):
            yield chunk
