"""Names as ids: nodes that files call by a text get the numbers 0, 1, 2, ... in the order of their first row."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from asterism.formats import columns
from asterism.formats.chunks import Ids, Mask
from asterism.formats.tables import Table
from asterism_proto.errors import InvalidRequest

MAX_KEYS = 50_000_000
"""Of one node type: they are in memory."""


def as_keys(column: columns.Column) -> pa.Array:
    """A column as texts to look up."""
    if not isinstance(column, pa.Array):
        column = pa.array(column)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return columns.utf8(column).cast(pa.large_string()) if columns.is_text(column) else column.cast(pa.large_string())


class Keys:
    """The names of one node type's nodes."""

    def __init__(self, names: pa.Array) -> None:
        self._names = names

    def __len__(self) -> int:
        return len(self._names)

    @classmethod
    def read(cls, table: Table, column: str, limit: int) -> Keys:
        """Collect the names in a column of the type's files."""
        found: list[pa.Array] = []
        held = 0
        for batch in table.batches({column: pa.string()}, limit):
            found.append(pc.unique(as_keys(batch.column(column)).drop_null()))
            held += len(found[-1])
            if held > MAX_KEYS:
                raise InvalidRequest(f"{batch.file}: column {column!r} has more than {MAX_KEYS:,} names; give such a type an `id` of whole numbers")
        return cls(pc.unique(pa.concat_arrays(found)) if found else pa.array([], pa.large_string()))

    def ids(self, column: columns.Column) -> tuple[Ids, Mask | None]:
        """int64[n], and a mask of the rows whose name is no node's."""
        found = pc.index_in(as_keys(column), value_set=self._names)
        unknown = np.asarray(found.is_null()) if found.null_count else None
        return found.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64), unknown


class Seen:
    """Which of the numbers 0 .. n - 1 came up before."""

    def __init__(self, size: int) -> None:
        self._seen = np.zeros(size, np.bool_)

    def again(self, ids: Ids, good: Mask | None) -> Mask | None:
        """The rows of ``ids`` that repeat an earlier good one; the others count as seen from now on."""
        rows = np.arange(len(ids)) if good is None else np.flatnonzero(good)
        _, first = np.unique(ids[rows], return_index=True)
        repeated = np.zeros(len(ids), np.bool_)
        repeated[rows] = True
        repeated[rows[first]] = self._seen[ids[rows[first]]]
        self._seen[ids[rows]] = True
        return repeated if repeated.any() else None


def self_loops(ids: Iterator[Ids], looped: Ids) -> Iterator[Ids]:
    """Ids that get an edge to themselves: all but those in ``looped`` (sorted)."""
    for chunk in ids:
        if len(looped):
            at = np.minimum(np.searchsorted(looped, chunk), len(looped) - 1)
            chunk = chunk[looped[at] != chunk]
        if len(chunk):
            yield chunk
