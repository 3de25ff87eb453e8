"""Detection of bad rows: masks while reading, detailed records only for bad rows."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import pyarrow as pa

from asterism import arrow_types
from asterism.formats import columns
from asterism.formats.chunks import (
    Array,
    BadRow,
    Features,
    FeatureValue,
    Ids,
    Mask,
    Weights,
    select_rows,
)
from asterism.formats.schema_file import FeatureSpec
from asterism.formats.table_reader import RowBatch
from asterism_graphkit.arrays.siphash import compute_string_ids
from asterism_model import string_ids
from asterism_model.schema import time_columns
from asterism_model.string_ids import StringColumn
from asterism_proto.errors import InvalidRequest

T = TypeVar("T")

_INTEGER = re.compile(columns.INTEGER_PATTERN)
_FLOAT = re.compile(columns.FLOAT_PATTERN)


def id_error(value: str) -> str:
    """Return the reason why a text is not an id."""
    if not _INTEGER.match(value.strip()):
        return "an id is an integer" if value else "the id is missing"
    return "an id is not negative" if value.strip()[0] == "-" else "an id is below 2^63"


def weight_error(value: str) -> str:
    """Return the reason why a text is not a weight."""
    if not _FLOAT.match(value.strip()):
        return "a weight is a number" if value else "the weight is missing"
    number = float(value)
    return (
        "a weight is not negative"
        if number < 0 and np.isfinite(number)
        else "a weight is finite and fits float32"
    )


def number_error(value: str, dtype: str) -> str:
    """Return the reason why a text is not a number of a dtype."""
    if not value:
        return "the value is missing; `fill` says what it is then"
    is_overflow = np.dtype(dtype).kind == "f" and _FLOAT.match(value.strip())
    return f"expected {dtype}" + ("; the number exceeds its range" if is_overflow else "")


class BadRowCollector:
    """Bad rows of one batch. Each row counts once, for the first reason found."""

    def __init__(self, batch: RowBatch) -> None:
        self.batch = batch
        self.bad: Mask | None = None
        self._notes: list[tuple[str, Ids, Callable[[str], str]]] = []
        self._external: list[BadRow] = []

    def record(self, column: str, mask: Mask | None, reason_of: Callable[[str], str]) -> None:
        """Mark the rows in ``mask`` as bad because of ``column``.

        ``reason_of`` gives the reason for a value of the batch.
        """
        if mask is None:
            return
        if self.bad is None:
            self.bad = np.zeros(self.batch.rows, np.bool_)
        new = np.flatnonzero(mask & ~self.bad)
        self.bad[new] = True
        self._notes.append((column, new, reason_of))

    def record_external(self, ordinals: Ids, bad_rows: tuple[BadRow, ...]) -> None:
        """Mark rows as bad because of another file, with that file's records.

        ``ordinals`` are positions among all rows that the batch stands for.
        """
        if self.bad is None:
            self.bad = np.zeros(self.batch.rows, np.bool_)
        kept_rows = self.batch.ordinals
        for ordinal, bad_row in zip(ordinals.tolist(), bad_rows, strict=True):
            row = ordinal if kept_rows is None else int(np.searchsorted(kept_rows, ordinal))
            if (
                kept_rows is None or (row < len(kept_rows) and kept_rows[row] == ordinal)
            ) and not self.bad[row]:
                self.bad[row] = True
                self._external.append(bad_row)

    @property
    def good_mask(self) -> Mask | None:
        """Mask of the good rows, or None if all are good."""
        return None if self.bad is None or not self.bad.any() else ~self.bad

    def bad_positions(self) -> Ids:
        """Return the positions of bad rows among all rows that the batch stands for.

        `bad_rows` gives the reasons in the same order.
        """
        batch = self.batch
        is_good = np.zeros(batch.size, np.bool_)
        is_good[slice(None) if batch.ordinals is None else batch.ordinals] = (
            True if self.good_mask is None else self.good_mask
        )
        return np.flatnonzero(~is_good)

    def bad_rows(self) -> tuple[BadRow, ...]:
        """Return a record of each bad row, sorted by row."""
        batch, bad_rows = self.batch, [*self.batch.bad, *self._external]
        for column, rows, reason_of in self._notes:
            for row in rows.tolist():
                value = batch.display_value(column, row) if column in batch.columns else ""
                cell = "" if value in batch.null_texts else value
                bad_rows.append(
                    BadRow(
                        file=batch.file,
                        row=batch.row_number(row),
                        column=column,
                        value=value,
                        reason=reason_of(cell),
                    )
                )
        return tuple(sorted(bad_rows, key=lambda bad_row: bad_row.row))


def read_batch(
    batch: RowBatch, read: Callable[[RowBatch, BadRowCollector], T]
) -> tuple[T, BadRowCollector]:
    """Apply ``read`` to a batch, and again to its raw text if it has bad rows.

    Raw text is needed to identify the bad rows and to show their values.
    """
    collector = BadRowCollector(batch)
    result = read(batch, collector)
    if collector.bad is None or batch.retry is None:
        return result, collector
    collector = BadRowCollector(batch.retry())
    return read(collector.batch, collector), collector


def read_ids(collector: BadRowCollector, column: str) -> Ids:
    """Read a column of ids. Bad ids are 0 and recorded."""
    values, bad_mask = _read_column(collector, column, columns.parse_ids)
    collector.record(column, bad_mask, id_error)
    return values


def read_names(collector: BadRowCollector, column: str, salt: int) -> tuple[Ids, StringColumn]:
    """Read a column of string ids as hashed ids and texts. Bad ones are recorded."""
    texts, bad_mask = _read_column(collector, column, columns.parse_names)
    collector.record(column, bad_mask, lambda value: string_ids.invalid_reason(value.encode()))
    return compute_string_ids(*texts, salt), texts


def read_weights(collector: BadRowCollector, column: str | None) -> Weights | None:
    """Read a column of weights. Bad ones are recorded."""
    if column is None:
        return None
    values, bad_mask = _read_column(collector, column, columns.parse_weights)
    collector.record(column, bad_mask, weight_error)
    return values


def _read_column(collector: BadRowCollector, column: str, read: Callable[[columns.Column], T]) -> T:
    try:
        return read(collector.batch.column(column))
    except InvalidRequest as error:
        raise InvalidRequest(f"{collector.batch.file}: column {column!r}: {error}") from error


def read_features(
    collector: BadRowCollector, specs: tuple[FeatureSpec, ...], time: str = ""
) -> dict[str, FeatureValue]:
    """Read the features of a type for the rows of the batch.

    ``time`` names the feature with times; values that are none are recorded.
    """
    features = {spec.feature.name: _read_feature(collector, spec) for spec in specs}
    times = features.get(time)
    if isinstance(times, np.ndarray):
        mask = time_columns.invalid_times(times)
        (column,) = (spec.columns[0] for spec in specs if spec.feature.name == time)
        collector.record(
            column,
            mask if mask.any() else None,
            lambda value: "a time is a number, and not the minimum of int64",
        )
    return features


def _read_feature(collector: BadRowCollector, spec: FeatureSpec) -> FeatureValue:
    feature, batch = spec.feature, collector.batch
    if feature.kind == "bytes":
        return _read_column(
            collector, spec.columns[0], lambda column: columns.parse_strings(column, batch.rows)
        )
    dtype = np.dtype(feature.dtype)
    if len(spec.columns) > 1:
        parts = []
        for name in spec.columns:
            values, bad_mask = _read_column(
                collector, name, lambda column: _parse_numbers(column, spec)
            )
            collector.record(name, bad_mask, _number_error(spec, batch.columns[name]))
            parts.append(values)
        return np.stack(parts, axis=1)
    name = spec.columns[0]
    if feature.kind == "ragged":
        indptr, values, bad_mask = _read_column(
            collector,
            name,
            lambda column: columns.parse_lists(column, dtype, spec.split, spec.fill),
        )
        collector.record(name, bad_mask, lambda value: f"expected a list of {feature.dtype}")
        return indptr, values
    column = batch.columns[name]
    if isinstance(column, np.ndarray) and column.ndim > 1:
        values, bad_mask = _read_column(
            collector,
            name,
            lambda column: columns.parse_numbers(column.reshape(-1), dtype, spec.fill),
        )
        collector.record(
            name,
            None if bad_mask is None else np.asarray(bad_mask.reshape(batch.rows, -1).any(axis=1)),
            lambda value: f"expected {feature.dtype}",
        )
        return values.reshape(batch.rows, *feature.shape)
    if feature.shape:
        return _read_vectors(collector, spec, name, dtype)
    values, bad_mask = _read_column(collector, name, lambda column: _parse_numbers(column, spec))
    collector.record(name, bad_mask, _number_error(spec, batch.columns[name]))
    return values


def _parse_numbers(column: columns.Column, spec: FeatureSpec) -> tuple[Array, Mask | None]:
    return columns.parse_numbers(column, np.dtype(spec.feature.dtype), spec.fill, spec.unit)


def _number_error(spec: FeatureSpec, column: columns.Column) -> Callable[[str], str]:
    """Return a function that gives the reason why a value is not a number of a feature."""
    is_time = isinstance(column, pa.Array) and arrow_types.is_time(
        arrow_types.value_type(column.type)
    )
    if not is_time:
        return lambda value: number_error(value, spec.feature.dtype)
    return lambda value: (
        f"expected {spec.feature.dtype} in the unit {spec.unit!r}; choose another `unit`"
        if value
        else number_error(value, spec.feature.dtype)
    )


def _read_vectors(
    collector: BadRowCollector, spec: FeatureSpec, name: str, dtype: np.dtype[np.generic]
) -> FeatureValue:
    """Read lists or split text that must have the length of the schema's shape."""
    feature = spec.feature
    indptr, values, bad_mask = _read_column(
        collector, name, lambda column: columns.parse_lists(column, dtype, spec.split, spec.fill)
    )
    width = int(np.prod(feature.shape))
    wrong_length = np.diff(indptr) != width
    collector.record(name, bad_mask, lambda value: f"expected {width} values of {feature.dtype}")
    if wrong_length.any():
        collector.record(name, wrong_length, lambda value: f"expected {width} values")
        result = np.zeros((collector.batch.rows, width), dtype)
        well_formed = select_rows((indptr, values), ~wrong_length)
        assert isinstance(well_formed, tuple)
        result[~wrong_length] = well_formed[1].reshape(-1, width)
        values = result
    return values.reshape(collector.batch.rows, *feature.shape)


def keep_rows(good: Mask | None, features: Features) -> dict[str, FeatureValue]:
    """Return the good rows of features."""
    return (
        dict(features)
        if good is None
        else {name: select_rows(value, good) for name, value in features.items()}
    )


def arrow_type(spec: FeatureSpec) -> pa.DataType:
    """Return the Arrow type to which text is parsed for a feature."""
    if spec.feature.kind == "bytes":
        return pa.binary()
    if spec.split is not None:
        return pa.string()
    return (
        pa.float32()
        if spec.feature.dtype == "float16"
        else pa.bool_()
        if spec.feature.dtype == "bool"
        else pa.type_for_alias(spec.feature.dtype)
    )


def columns_to_read(
    ids: list[tuple[str, pa.DataType]], weight: str | None, specs: tuple[FeatureSpec, ...]
) -> dict[str, pa.DataType | None]:
    """Return the columns that a type needs and the Arrow type to which each is parsed.

    A column that is used as two different types stays text.
    """
    uses = [
        *ids,
        *([(weight, pa.float32())] if weight else []),
        *((name, arrow_type(spec)) for spec in specs for name in spec.columns),
    ]
    column_types: dict[str, pa.DataType | None] = {}
    for name, kind in uses:
        column_types[name] = kind if column_types.get(name, kind) == kind else pa.string()
    return column_types
