"""Record of the table that a query returns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any

import numpy as np

from asterism.records.arrays import RaggedColumn, Values
from asterism_model.html import table
from asterism_proto.errors import InvalidRequest
from asterism_proto.framing import Frame
from asterism_proto.v1 import graphd_pb2 as graphd_pb

MAX_SHOWN_ROWS = 20
"""Maximum number of rows that a table displays."""
_MAX_CELL_WIDTH = 40
Value = Values | RaggedColumn
"""Column of a table: an array of shape (n, ...), with dtype str for text.

Columns of lists or bytes are pairs ``(indptr, values)``.
"""


@dataclass(frozen=True, slots=True)
class _DictionaryEncoded:
    """Dictionary-encoded strings: a code per row."""

    codes: Values
    dictionary: tuple[str, ...]

    def texts(self) -> Values:
        return np.array([*self.dictionary, ""], np.str_)[
            self.codes
        ]  # Code -1 selects the last entry, the empty string.


class _Columns(Mapping[str, Value]):
    """Columns by name; dictionary-encoded strings are decoded on first access."""

    def __init__(self, columns: dict[str, Value | _DictionaryEncoded]) -> None:
        self._columns = columns

    def __getitem__(self, name: str) -> Value:
        column = self._columns[name]
        if isinstance(column, _DictionaryEncoded):
            column = self._columns[name] = column.texts()
        return column

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Cost of one step of a statement."""

    name: str
    took_s: float
    rows: int
    """Number of rows that the step returned; -1: it returns none."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class QueryResult:
    """Table of a statement.

    Examples
    --------
    >>> result = graph.query("SAMPLE 4 VERTICES ON item YIELD id, price SEED 7")  # doctest: +SKIP
    >>> result["price"], result.rows()  # doctest: +SKIP
    """

    columns: tuple[str, ...]
    """Names of the columns, in order."""
    types: tuple[str, ...]
    """Types: a dtype, ``text``, ``bytes``, ``list<int64>`` or ``list<float32>``.
    """
    values: Mapping[str, Value]
    """Columns by name; see `QueryResult.__getitem__`."""
    length: int
    """Number of rows; -1 if columns differ in length, as in Euler's GQL.

    Columns of different lengths are displayed as one row.
    """
    kind: str
    """Kind of statement: ``use``, ``vertices``, ``show``, ..."""
    space: str
    """Space of the next statement; "": none selected yet."""
    version: int
    """Version that was read; 0: none."""
    digest: str = ""
    """Digest of that version's manifest, if the statement sampled."""
    seed: int | None = None
    """Seed that repeats the sample, if the statement sampled."""
    token: str = ""
    """Token of the sampling call for `Graph.replay`, if the statement sampled."""
    took_s: float = 0.0
    """Seconds in graphd."""
    plan: str = ""
    """Plan of EXPLAIN or PROFILE: a line per step."""
    stages: tuple[Stage, ...] = ()
    """Cost of each step, for PROFILE."""

    def __len__(self) -> int:
        return 1 if self.length < 0 else self.length

    def __getitem__(self, name: str) -> Value:
        """Return a column by name.

        Parameters
        ----------
        name : str
            Name of the column.

        Returns
        -------
        ndarray or (ndarray, ndarray)
            Array of shape (rows, ...), of str for text; ``(indptr, values)`` for lists and bytes.

        Raises
        ------
        KeyError
            If there is no such column.
        """
        if name not in self.values:
            raise KeyError(
                f"column {name!r}: expected one of {', '.join(self.columns) or 'no columns'}"
            )
        return self.values[name]

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        if self.length < 0:
            return iter([tuple(np.asarray(self.values[name]).tolist() for name in self.columns)])
        return zip(
            *(
                _cells(self.values[name], kind)
                for name, kind in zip(self.columns, self.types, strict=True)
            ),
            strict=True,
        )

    def rows(self, most: int | None = None) -> list[tuple[Any, ...]]:
        """Return rows as tuples of plain Python values, for display.

        Parameters
        ----------
        most : int, optional
            Maximum number of rows. None: all.

        Returns
        -------
        list of tuple
            The first rows.
        """
        return list(islice(self, most))

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame. Needs pandas.

        Columns other than numbers and text become columns of lists and bytes.

        Returns
        -------
        pandas.DataFrame
            One column per column of the table.

        Raises
        ------
        InvalidRequest
            If the columns differ in length.
        """
        import pandas as pd

        self._check_rows()
        name_types = zip(self.columns, self.types, strict=True)
        flat = {name: _scalar_column(self.values[name]) for name in self.columns}
        return pd.DataFrame(
            {
                name: list(_cells(self.values[name], kind)) if flat[name] is None else flat[name]
                for name, kind in name_types
            }
        )

    def to_arrow(self) -> Any:
        """Return an Arrow table. Needs pyarrow.

        Lists become lists, and vectors fixed-size lists.

        Returns
        -------
        pyarrow.Table
            One column per column of the table.

        Raises
        ------
        InvalidRequest
            If the columns differ in length.
        """
        import pyarrow as pa

        self._check_rows()
        return pa.table(
            {
                name: _arrow(pa, self.values[name], kind)
                for name, kind in zip(self.columns, self.types, strict=True)
            }
        )

    def _check_rows(self) -> None:
        if self.length < 0:
            raise InvalidRequest(
                f"columns {', '.join(self.columns)}: expected equal lengths; read these columns "
                "one by one, as result[name]"
            )

    def __repr__(self) -> str:
        columns = ", ".join(
            f"{name} {kind}" for name, kind in zip(self.columns, self.types, strict=True)
        )
        head = f"QueryResult({len(self):,} rows, {columns or 'no columns'}"
        details = [("space", self.space), ("version", self.version), ("seed", self.seed)]
        head += (
            "".join(f", {name}={value!r}" for name, value in details if value not in ("", 0, None))
            + ")"
        )
        if not self.columns or not self.length:
            return head + (f"\n{self.plan}" if self.plan else "")
        cells = [[_shorten(cell) for cell in row] for row in self.rows(MAX_SHOWN_ROWS)]
        widths = [max(map(len, column)) for column in zip(self.columns, *cells, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in [list(self.columns), *cells]
        ]
        more = (
            [f"... {self.length - MAX_SHOWN_ROWS:,} more"] if self.length > MAX_SHOWN_ROWS else []
        )
        return "\n".join([head, *lines, *more, *([self.plan] if self.plan else [])])

    def _repr_html_(self) -> str:
        """Return the HTML that notebooks display."""
        title = (
            f"{len(self):,} rows"
            + (f" of {self.space}" if self.space else "")
            + (f", version {self.version}" if self.version else "")
        )
        if self.length > MAX_SHOWN_ROWS:
            title += f"; the first {MAX_SHOWN_ROWS}"
        return table(
            title,
            self.columns,
            (
                [cell if isinstance(cell, int | float) else _shorten(cell) for cell in row]
                for row in self.rows(MAX_SHOWN_ROWS)
            ),
            separators=False,
        )


def decode_result(reply: Frame[graphd_pb.QueryReply]) -> QueryResult:
    """Decode the table in a reply."""
    head = reply.head
    columns = [
        (column.name, column.type, _value(index, column, reply))
        for index, column in enumerate(head.columns)
    ]
    return QueryResult(
        columns=tuple(name for name, _, _ in columns),
        types=tuple(kind for _, kind, _ in columns),
        values=_Columns({name: value for name, _, value in columns}),
        length=head.rows,
        kind=head.kind,
        space=head.space,
        version=head.version,
        digest=head.digest,
        seed=head.seed if head.HasField("seed") else None,
        token=head.token,
        took_s=head.took_s,
        plan=head.plan,
        stages=tuple(
            Stage(name=stage.name, took_s=stage.took_s, rows=stage.rows) for stage in head.stages
        ),
    )


def _value(
    index: int, column: graphd_pb.Column, reply: Frame[graphd_pb.QueryReply]
) -> Value | _DictionaryEncoded:
    array = reply.arrays.get(f"c.{index}")
    if array is not None:
        return (
            _DictionaryEncoded(array, tuple(column.dictionary))
            if column.dictionary_encoded
            else array
        )
    indptr, values = reply.arrays[f"c.{index}.indptr"], reply.arrays[f"c.{index}.values"]
    if column.type != "text":
        return indptr, values
    raw = values.tobytes()
    return np.array(
        [raw[start:stop].decode() for start, stop in pairwise(indptr.tolist())], np.str_
    )


def _cells(value: Value, kind: str) -> Iterator[Any]:
    if not isinstance(value, tuple):
        return iter(value.tolist())
    indptr, values = value
    rows = (values[start:stop] for start, stop in pairwise(indptr.tolist()))
    return (row.tobytes() for row in rows) if kind == "bytes" else (row.tolist() for row in rows)


def _scalar_column(value: Value) -> Values | None:
    """Return a column with one value per row, or None if it is not one."""
    return None if isinstance(value, tuple) or value.ndim != 1 else value


def _arrow(pa: Any, value: Value, kind: str) -> Any:
    if isinstance(value, tuple):
        indptr, values = value
        if kind == "bytes":
            return pa.array(list(_cells(value, kind)), pa.large_binary())
        return pa.LargeListArray.from_arrays(pa.array(indptr), pa.array(values))
    if value.ndim == 1:
        return pa.array(value)
    inner = _arrow(
        pa, value.reshape(-1, *value.shape[2:]) if value.ndim > 2 else value.reshape(-1), kind
    )
    return pa.FixedSizeListArray.from_arrays(inner, value.shape[1])


def _shorten(cell: Any) -> str:
    text = f"{cell:.6g}" if isinstance(cell, float) else str(cell)
    return text if len(text) <= _MAX_CELL_WIDTH else f"{text[: _MAX_CELL_WIDTH - 3]}..."
