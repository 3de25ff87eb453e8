"""Bad rows told from good ones: masks while reading, records only for the rows that are bad."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import pyarrow as pa

from asterism.formats import columns
from asterism.formats.chunks import Array, BadRow, Features, FeatureValue, Ids, Mask, Weights, pick
from asterism.formats.spec import FeatureSpec
from asterism.formats.tables import Batch
from asterism_proto import names
from asterism_proto.errors import InvalidRequest
from asterism_proto.names import Names
from graphkit.names import ids_of

T = TypeVar("T")


def why_no_id(value: str) -> str:
    """Why a text is no id."""
    try:
        number = int(value)
    except ValueError:
        return "an id is a whole number" if value else "the id is missing"
    return "an id is not negative" if number < 0 else "an id is below 2^63"


def why_no_weight(value: str) -> str:
    """Why a text is no weight."""
    try:
        number = float(value)
    except ValueError:
        return "a weight is a number" if value else "the weight is missing"
    return "a weight is not negative" if number < 0 and np.isfinite(number) else "a weight is finite and fits float32"


class Sieve:
    """The bad rows of one batch. A row is bad once, for the first reason found."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.bad: Mask | None = None
        self._notes: list[tuple[str, Ids, Callable[[str], str], Array | None]] = []
        self._told: list[BadRow] = []

    def note(self, column: str, bad: Mask | None, why: Callable[[str], str], values: Array | None = None) -> None:
        """Rows that ``bad`` names, because of ``column``; ``why`` says it of a value, one of ``values`` where they are of another file."""
        if bad is None:
            return
        if self.bad is None:
            self.bad = np.zeros(self.batch.rows, np.bool_)
        new = np.flatnonzero(bad & ~self.bad)
        self.bad[new] = True
        self._notes.append((column, new, why, values))

    def tell(self, ordinals: Ids, told: tuple[BadRow, ...]) -> None:
        """Rows (counted among all that the batch stands for) that another file makes bad, and how it says so."""
        if self.bad is None:
            self.bad = np.zeros(self.batch.rows, np.bool_)
        kept = self.batch.ordinals
        for ordinal, bad in zip(ordinals.tolist(), told, strict=True):
            row = ordinal if kept is None else int(np.searchsorted(kept, ordinal))
            if (kept is None or (row < len(kept) and kept[row] == ordinal)) and not self.bad[row]:
                self.bad[row] = True
                self._told.append(bad)

    @property
    def keep(self) -> Mask | None:
        """The good rows; None: all."""
        return None if self.bad is None or not self.bad.any() else ~self.bad

    def places(self) -> Ids:
        """Which of the rows that the batch stands for are bad; `rows` says why, in this order."""
        batch = self.batch
        good = np.zeros(batch.size, np.bool_)
        good[slice(None) if batch.ordinals is None else batch.ordinals] = True if self.keep is None else self.keep
        return np.flatnonzero(~good)

    def rows(self) -> tuple[BadRow, ...]:
        """What is bad, by row."""
        batch, found = self.batch, [*self.batch.bad, *self._told]
        for column, rows, why, values in self._notes:
            for row in rows.tolist():
                value = str(values[row]) if values is not None else batch.shown(column, row) if column in batch.columns else ""
                meant = "" if value in batch.null else value
                found.append(BadRow(file=batch.file, row=batch.number(row), column=column, value=value, reason=why(meant)))
        return tuple(sorted(found, key=lambda bad: bad.row))


def sieved(batch: Batch, take: Callable[[Batch, Sieve], T]) -> tuple[T, Sieve]:
    """What ``take`` makes of a batch; where rows are bad, of its raw text, in which they can be told and shown."""
    sieve = Sieve(batch)
    taken = take(batch, sieve)
    if sieve.bad is None or batch.retry is None:
        return taken, sieve
    sieve = Sieve(batch.retry())
    return take(sieve.batch, sieve), sieve


def read_ids(sieve: Sieve, column: str) -> Ids:
    """A column of ids; bad ones are 0 and noted."""
    values, bad = _named(sieve, column, columns.ids)
    sieve.note(column, bad, why_no_id)
    return values


def read_names(sieve: Sieve, column: str, salt: int) -> tuple[Ids, Names]:
    """A column of names as ids, and the names; bad ones are noted."""
    held, bad = _named(sieve, column, columns.names)
    sieve.note(column, bad, lambda value: names.why(value.encode()))
    return ids_of(*held, salt), held


def read_weights(sieve: Sieve, column: str | None) -> Weights | None:
    """A column of weights; bad ones are noted."""
    if column is None:
        return None
    values, bad = _named(sieve, column, columns.weights)
    sieve.note(column, bad, why_no_weight)
    return values


def _named(sieve: Sieve, column: str, read: Callable[[columns.Column], T]) -> T:
    try:
        return read(sieve.batch.column(column))
    except InvalidRequest as error:
        raise InvalidRequest(f"{sieve.batch.file}: column {column!r}: {error}") from error


def read_features(sieve: Sieve, specs: tuple[FeatureSpec, ...]) -> dict[str, FeatureValue]:
    """The features of a type, row by row of the batch."""
    return {spec.feature.name: _read_feature(sieve, spec) for spec in specs}


def _read_feature(sieve: Sieve, spec: FeatureSpec) -> FeatureValue:
    feature, batch = spec.feature, sieve.batch
    if feature.kind == "bytes":
        return _named(sieve, spec.columns[0], lambda column: columns.strings(column, batch.rows))
    dtype = np.dtype(feature.dtype)
    if len(spec.columns) > 1:
        parts = []
        for name in spec.columns:
            values, bad = _named(sieve, name, lambda column: columns.numbers(column, dtype, spec.fill))
            sieve.note(name, bad, lambda value: f"expected {feature.dtype}")
            parts.append(values)
        return np.stack(parts, axis=1)
    name = spec.columns[0]
    if feature.kind == "ragged":
        indptr, values, bad = _named(sieve, name, lambda column: columns.lists(column, dtype, spec.split))
        sieve.note(name, bad, lambda value: f"expected a list of {feature.dtype}")
        return indptr, values
    column = batch.columns[name]
    if isinstance(column, np.ndarray) and column.ndim > 1:
        values, bad = _named(sieve, name, lambda column: columns.numbers(column.reshape(-1), dtype, spec.fill))
        sieve.note(name, None if bad is None else np.asarray(bad.reshape(batch.rows, -1).any(axis=1)), lambda value: f"expected {feature.dtype}")
        return values.reshape(batch.rows, *feature.shape)
    if feature.shape:
        return _vectors(sieve, spec, name, dtype)
    values, bad = _named(sieve, name, lambda column: columns.numbers(column, dtype, spec.fill))
    sieve.note(name, bad, lambda value: f"expected {feature.dtype}" if value else "the value is missing; `fill` says what it is then")
    return values


def _vectors(sieve: Sieve, spec: FeatureSpec, name: str, dtype: np.dtype[np.generic]) -> FeatureValue:
    """Lists or split text that all have the length that the schema says."""
    feature = spec.feature
    indptr, values, bad = _named(sieve, name, lambda column: columns.lists(column, dtype, spec.split))
    width = int(np.prod(feature.shape))
    wrong = np.diff(indptr) != width
    sieve.note(name, bad, lambda value: f"expected {width} values of {feature.dtype}")
    if wrong.any():
        sieve.note(name, wrong, lambda value: f"expected {width} values")
        out = np.zeros((sieve.batch.rows, width), dtype)
        right = pick((indptr, values), ~wrong)
        assert isinstance(right, tuple)
        out[~wrong] = right[1].reshape(-1, width)
        values = out
    return values.reshape(sieve.batch.rows, *feature.shape)


def kept(keep: Mask | None, features: Features) -> dict[str, FeatureValue]:
    """The good rows of features."""
    return dict(features) if keep is None else {name: pick(value, keep) for name, value in features.items()}


def arrow_type(spec: FeatureSpec) -> pa.DataType:
    """What text is parsed to for a feature."""
    if spec.feature.kind == "bytes":
        return pa.binary()
    if spec.split is not None:
        return pa.string()
    return pa.float32() if spec.feature.dtype == "float16" else pa.bool_() if spec.feature.dtype == "bool" else pa.type_for_alias(spec.feature.dtype)


def wanted(ids: list[tuple[str, pa.DataType]], weight: str | None, specs: tuple[FeatureSpec, ...]) -> dict[str, pa.DataType | None]:
    """The columns that a type needs and what their text is parsed to; a column with two uses stays text."""
    uses = [*ids, *([(weight, pa.float32())] if weight else []), *((name, arrow_type(spec)) for spec in specs for name in spec.columns)]
    found: dict[str, pa.DataType | None] = {}
    for name, kind in uses:
        found[name] = kind if found.get(name, kind) == kind else pa.string()
    return found
