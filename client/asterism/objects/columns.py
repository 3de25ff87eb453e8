"""Conversion of an object's attributes to columns: weights, features, rejected values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.dtype_ranges import number_fits
from asterism.name_conversion import as_name
from asterism.objects.graph_tables import ArrayColumn
from asterism.objects.read_options import ReadOptions
from asterism.objects.time_and_decimal_columns import (
    ForeignColumn,
    objects_to_numbers,
    times_to_integers,
)
from asterism.training.torch_gather_scatter import is_tensor
from asterism_proto.errors import InvalidRequest, NotFound
from asterism_proto.framing import DTYPES

_REMEDY = "leave it out with `only`, or convert it to numbers, strings or arrays of one shape"


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeAttributes:
    """Attributes of one type."""

    weights: ArrayColumn | None
    features: dict[str, ArrayColumn]


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedNumbers:
    """Numbers of which some are missing."""

    values: NDArray[Any]
    """Numbers; any value where one is missing."""
    missing: NDArray[np.bool_]
    stands_for_itself: bool = False
    """True if the missing values are NaN, which stays without a replacement."""


class AttributeReader:
    """Reader of the attributes of all types, which tracks unused names of the caller."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._names: set[str] = set()
        self._owners: set[str] = set()

    def read(
        self,
        owner: str,
        rows: int,
        raw: Mapping[str, Any],
        *,
        edges: bool,
        weight: Sequence[str] = ("weight",),
    ) -> TypeAttributes:
        """Return the weight and the features of a type.

        Parameters
        ----------
        owner : str
            Name of the type.
        rows : int
            Number of its rows.
        raw : dict of str to values
            Attributes: tensors, arrays, or lists of Python values where None is missing.
        edges : bool
            True for an edge type. A single weight name of the caller applies to edge types.
        weight : sequence of str, default ("weight",)
            The object's names for a weight, if the caller names none.

        Returns
        -------
        TypeAttributes
            Weight and features.

        Raises
        ------
        NotFound
            If the type does not have the named weight attribute.
        InvalidRequest
            If a value cannot be a weight or a feature, or two features would have the same name.
        """
        self._owners.add(owner)
        self._names.update(raw)
        requested = (
            self._options.weights.get(owner)
            if isinstance(self._options.weights, Mapping)
            else self._options.weights
            if edges
            else None
        )
        if requested is not None and requested not in raw:
            raise NotFound(
                f"weights={requested!r}: expected an attribute of type {owner!r}, which has "
                f"{', '.join(raw) or 'none'}"
            )
        chosen = requested or next((name for name in weight if name in raw), None)
        weights = (
            None
            if chosen is None
            else make_column(
                f"type {owner!r}: weight {chosen!r}",
                raw[chosen],
                rows,
                missing=None if _is_nan_masked(raw[chosen]) else 1,
            )
        )
        if weights is not None and (weights.shape or weights.dtype == "bytes"):
            raise InvalidRequest(
                f"type {owner!r}: weight {chosen!r} of {weights.dtype}{list(weights.shape)}: "
                "expected one number for each row"
            )
        features: dict[str, ArrayColumn] = {}
        for name, values in raw.items():
            if (name == chosen and requested is None) or (
                self._options.only is not None and name not in self._options.only
            ):
                continue
            feature_name = self._options.rename.get(name, as_name(name))
            if feature_name in features:
                raise InvalidRequest(
                    f"type {owner!r}: expected different names, two features would be named "
                    f"{feature_name!r}; rename one with rename={{{name!r}: ...}}"
                )
            if name == chosen and feature_name == "weight":
                continue
            feature_column = make_column(
                f"type {owner!r}: attribute {name!r}",
                values,
                rows,
                missing=self._options.fill.get(name),
                unit=self._options.time_unit,
            )
            try:
                feature_column.feature(feature_name)
            except InvalidRequest as error:
                raise InvalidRequest(
                    f"type {owner!r}: {error.message}; rename it with rename={{{name!r}: ...}}"
                ) from error
            features[feature_name] = feature_column
        return TypeAttributes(weights=weights, features=features)

    def check(self) -> None:
        """Reject names that no type of the object has."""
        for option in ("rename", "only", "fill"):
            unknown = sorted(set(getattr(self._options, option) or ()) - self._names)
            if unknown:
                raise NotFound(
                    f"{option} with {unknown[0]!r}: expected an attribute of the object, which has "
                    f"{', '.join(sorted(self._names)) or 'none'}"
                )
        if isinstance(self._options.weights, Mapping):
            unknown = sorted(set(self._options.weights) - self._owners)
            if unknown:
                raise NotFound(
                    f"weights with {unknown[0]!r}: expected a type of the object, which has "
                    f"{', '.join(sorted(self._owners))}"
                )


def _is_nan_masked(values: Any) -> bool:
    return isinstance(values, MaskedNumbers) and values.stands_for_itself


def make_column(
    description: str, values: Any, rows: int, *, missing: Any = None, unit: str | None = None
) -> ArrayColumn:
    """Convert values to a column.

    Parameters
    ----------
    description : str
        Description of the values, for error messages.
    values : tensor, array, sequence, MaskedNumbers or ForeignColumn
        Values of ``rows`` rows. None in a sequence is missing.
    rows : int
        Expected number of rows.
    missing : optional
        Replacement for missing values. None: missing values are rejected.
    unit : str, optional
        Unit of times. None: times are rejected.

    Returns
    -------
    ArrayColumn
        The column.

    Raises
    ------
    InvalidRequest
        If the dtype is not one of a feature, rows differ in shape, or values are neither numbers
        nor text.
    """
    if is_tensor(values):
        if "strided" not in str(values.layout):
            raise InvalidRequest(
                f"{description}: expected a dense tensor, this one is sparse; {_REMEDY}"
            )
        dtype = str(values.dtype).removeprefix("torch.").replace("bfloat16", "float32")
    else:
        values = _flat_values(description, values, missing, unit)
        if isinstance(values, tuple):
            if len(values[0]) - 1 != rows:
                raise InvalidRequest(
                    f"{description} of length {len(values[0]) - 1}: expected {rows} rows"
                )
            return ArrayColumn(dtype="bytes", values=values)
        dtype = values.dtype.name
    if values.ndim == 0 or len(values) != rows:
        raise InvalidRequest(f"{description} of shape {list(values.shape)}: expected {rows} rows")
    if dtype not in DTYPES:
        raise InvalidRequest(
            f"{description} of dtype {dtype}: expected {', '.join(sorted(DTYPES))} or strings; "
            "convert it, or leave it out with `only`"
        )
    return ArrayColumn(
        dtype=dtype, shape=tuple(int(extent) for extent in values.shape[1:]), values=values
    )


def _flat_values(
    description: str, values: Any, missing: Any, unit: str | None
) -> NDArray[Any] | tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return values as an array of numbers, or strings as offsets and bytes."""
    if isinstance(values, ForeignColumn):
        return values.convert(description, missing, unit)
    if isinstance(values, np.ndarray) and values.dtype.kind in "mM":
        return times_to_integers(description, values, missing, unit)
    if isinstance(values, MaskedNumbers):
        return _filled_numbers(description, values, missing)
    if isinstance(values, np.ndarray) and values.dtype.kind not in "OSU":
        return values
    items = values.tolist() if isinstance(values, np.ndarray) else list(values)
    numbers = objects_to_numbers(description, items, missing, unit)
    if numbers is not None:
        return numbers
    kinds = set(map(type, items))
    if type(None) in kinds:
        if missing is None:
            row = next(i for i, value in enumerate(items) if value is None)
            raise _missing_value(description, row, items.count(None))
        items = [missing if value is None else value for value in items]
        kinds = set(map(type, items))
    if kinds and all(issubclass(kind, str | bytes) for kind in kinds):
        return _encode_attribute(description, items)
    if all(issubclass(kind, bool | int | float | np.number | np.bool_) for kind in kinds):
        return _number_array(description, items, kinds)
    if all(issubclass(kind, list | tuple | np.ndarray) for kind in kinds) or all(
        map(is_tensor, items)
    ):
        return _stack_vectors(description, items)
    odd = next(
        i
        for i, value in enumerate(items)
        if not isinstance(value, type(items[0]))
        or not isinstance(value, str | int | float | list | tuple)
    )
    raise InvalidRequest(
        f"{description}, row {odd}, value {items[odd]!r:.80}: expected values of one type, found "
        f"{', '.join(sorted(kind.__name__ for kind in kinds))}; {_REMEDY}"
    )


def _missing_value(description: str, row: int, count: int) -> InvalidRequest:
    return InvalidRequest(
        f"{description}, row {row}: expected a value, found a missing one "
        f"({count - 1} more); pass a replacement with `fill`"
    )


def _filled_numbers(description: str, column: MaskedNumbers, missing: Any) -> NDArray[Any]:
    """Return numbers in their dtype, with the replacement where one is missing."""
    values, mask = column.values, column.missing
    if not mask.any() or (missing is None and column.stands_for_itself):
        return values
    if missing is None:
        raise _missing_value(description, int(np.argmax(mask)), int(mask.sum()))
    if not isinstance(missing, bool | int | float | np.number | np.bool_) or not number_fits(
        missing.item() if isinstance(missing, np.generic) else missing, values.dtype.name
    ):
        raise InvalidRequest(
            f"{description}: fill={missing!r}: expected a value of {values.dtype.name}, the dtype "
            "of the column; pass such a value, or convert the column"
        )
    values = values.copy()
    values[mask] = missing
    return values


def _number_array(description: str, items: list[Any], kinds: set[type]) -> NDArray[Any]:
    """Return Python numbers as an array; raise InvalidRequest for integers beyond 64 bits."""
    if items and all(issubclass(kind, int | np.integer) for kind in kinds):
        low, high = min(items), max(items)
        if low < -(1 << 63) or high >= (1 << 63 if low < 0 else 1 << 64):
            row = items.index(low if low < -(1 << 63) else high)
            raise InvalidRequest(
                f"{description}: expected integers of 64 bits, found {items[row]} in row {row}; "
                f"{_REMEDY}"
            )
        if high >= 1 << 63:  # NumPy would make floats of large and small ones
            return np.array(items, np.uint64)
    try:
        array = np.asarray(items)
    except OverflowError:
        array = np.empty(0, object)
    if array.dtype.kind == "O":
        raise InvalidRequest(f"{description}: expected integers of 64 bits; {_REMEDY}")
    return array


def _encode_attribute(
    description: str, items: list[Any]
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    try:
        return encode_texts(items)
    except UnicodeEncodeError as error:
        row = next(i for i, value in enumerate(items) if value is error.object)
        raise InvalidRequest(
            f"{description}, row {row}, value {items[row]!r:.80}: expected text in Unicode, found "
            "a lone surrogate"
        ) from error


def _stack_vectors(description: str, items: list[Any]) -> NDArray[Any]:
    """Stack rows that are vectors of one shape."""
    arrays = [np.asarray(row) if not is_ragged(row) else None for row in items]
    first = arrays[0]
    for row, array in enumerate(arrays):
        if array is None or first is None or array.shape != first.shape:
            shapes = [
                list(a.shape) if a is not None else "with rows of several lengths"
                for a in (first, array)
            ]
            raise InvalidRequest(
                f"{description}: expected rows of one shape, found row 0 of shape {shapes[0]} and "
                f"row {row} of shape {shapes[1]}; pad the rows, or leave it out with `only`"
            )
    stacked = np.stack([array for array in arrays if array is not None])
    if stacked.dtype.kind not in "biuf":
        raise InvalidRequest(f"{description} of {stacked.dtype}: expected numbers; {_REMEDY}")
    return stacked


def is_ragged(row: Any) -> bool:
    """Return True if the rows of a row differ in length."""
    try:
        np.asarray(row)
    except ValueError:
        return True
    return False


def encode_texts(items: Iterable[str | bytes]) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Encode strings as UTF-8: offsets, and bytes."""
    pieces = [value.encode() if isinstance(value, str) else value for value in items]
    indptr = np.zeros(len(pieces) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, pieces), np.int64, len(pieces)), out=indptr[1:])
    return indptr, np.frombuffer(b"".join(pieces), np.uint8)
