"""Validation of arguments: ids, weights, feature columns, seeds.

Every error shows the value."""

from __future__ import annotations

import operator
import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asterism.dtype_ranges import overflow_mask
from asterism.records.samples import (
    FeatureValue,
    Ids,
    RaggedColumn,
    RaggedNeighbors,
    Values,
    Weights,
)
from asterism_model.fanout_fractions import parse_share
from asterism_model.schema import EdgeType, Feature, NodeType
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import common_pb2 as common_pb

MAX_COUNT = 1 << 31
MAX_ID = (1 << 63) - 1
"""Largest id of a node, edge, job or version."""


def ids(argument: str, values: ArrayLike, *, minimum: int = 0) -> Ids:
    """Return ids as ndarray of int64, shape (n,); all must be at least ``minimum``."""
    array = as_array(argument, values, "integers")
    require_one_dimension(argument, array)
    if array.size == 0:
        return np.zeros(0, np.int64)
    if array.dtype.kind not in "iu":
        if array.dtype.kind == "f" and any(_is_large_integer(value) for value in _items(values)):
            array = np.asarray(values, object)  # NumPy made floats of integers beyond int64
        position = _first_invalid_id(array)
        value = array[position]
        if _is_missing(value):
            raise InvalidRequest(
                f"{argument}[{position}]={value}: expected an integer, found a missing value; "
                "drop or fill such rows"
            )
        if _is_id(value):
            raise InvalidRequest(
                f"{argument} of dtype {array.dtype}: expected integers; convert it with "
                "astype('int64')"
            )
        if isinstance(value, int | np.integer) and not isinstance(value, bool):
            raise InvalidRequest(f"{argument}[{position}]={value}: expected an id below 2^63")
        raise InvalidRequest(
            f"{argument}[{position}]={value.item() if isinstance(value, np.generic) else value!r}: "
            "expected an integer"
            + ("" if array.dtype.kind == "O" else f"; convert the {array.dtype} array")
        )
    if array.dtype.kind == "u" and array.dtype.itemsize == 8:
        over = np.flatnonzero(array > np.uint64(np.iinfo(np.int64).max))
        if over.size:
            raise InvalidRequest(
                f"{argument}[{over[0]}]={array[over[0]]}: expected an id below 2^63"
            )
    array = array.astype(np.int64, copy=False)
    if array.min() < minimum:
        position = int(np.argmax(array < minimum))
        raise InvalidRequest(
            f"{argument}[{position}]={array[position]}: expected {minimum} or more"
        )
    return array


def as_array(argument: str, values: ArrayLike, description: str = "numbers") -> NDArray[Any]:
    """Return ``values`` as an array, or raise InvalidRequest if NumPy cannot convert them.

    ``description`` names what the array may hold, for the message.
    """
    try:
        return np.asarray(values)
    except (ValueError, TypeError, RuntimeError, OverflowError) as error:
        if getattr(values, "requires_grad", False):
            reason = "found a tensor that requires grad; pass tensor.detach()"
        elif hasattr(values, "device"):
            reason = f"found a tensor on {values.device}; pass tensor.cpu()"
        elif isinstance(error, OverflowError):
            reason = "found an integer that is too large for any dtype"
        elif isinstance(values, Sequence):
            reason = f"found {_describe_rows(values)}; pass rows of one length"
        else:
            reason = f"found {type(values).__name__} ({error})"
        raise InvalidRequest(f"{argument}: expected an array of {description}, {reason}") from error


def _describe_rows(rows: Sequence[Any]) -> str:
    """Return what makes a sequence ragged, for an error message."""
    lengths = [len(row) if isinstance(row, Sequence | np.ndarray) else -1 for row in rows]
    odd = next((i for i, length in enumerate(lengths) if length != lengths[0]), None)
    if odd is None:
        return "lists of different depths"
    first, other = (
        f"row {i} of length {lengths[i]}" if lengths[i] >= 0 else f"row {i} without a length"
        for i in (0, odd)
    )
    return f"{first} and {other}"


def require_one_dimension(argument: str, array: NDArray[Any]) -> None:
    """Reject an array that does not have one dimension."""
    if array.ndim != 1:
        raise InvalidRequest(
            f"{argument} of shape {list(array.shape)}: expected one dimension, shape [n]"
        )


def _first_invalid_id(array: NDArray[Any]) -> int:
    """Return the position of the first missing value, or of the first that is no id, or 0.

    A missing value comes first, because it is what turned the others into floats.
    """
    if array.dtype.kind == "f":
        return int(np.argmax(np.isnan(array)))
    if array.dtype.kind != "O":
        return 0
    missing = next((i for i, value in enumerate(array) if _is_missing(value)), None)
    if missing is not None:
        return missing
    return next((i for i, value in enumerate(array) if not _is_id(value)), 0)


def _is_id(value: object) -> bool:
    return (
        isinstance(value, int | np.integer)
        and not isinstance(value, bool)
        and -(1 << 63) <= int(value) < 1 << 63
    )


def _items(values: Any) -> Iterable[Any]:
    """Return the elements of a Python sequence; none of an array."""
    return values if isinstance(values, Sequence) else ()


def _is_large_integer(value: object) -> bool:
    return isinstance(value, int) and not -(1 << 63) <= value < 1 << 63


def _is_missing(value: object) -> bool:
    """Return True for None, NaN and the missing values of pandas."""
    return (
        value is None
        or type(value).__name__ in ("NAType", "NaTType")
        or (isinstance(value, float | np.floating) and bool(np.isnan(value)))
    )


def times(values: ArrayLike, rows: int) -> Values:
    """Return ``values`` as ndarray of int64 or float64, shape (rows,), without NaN."""
    array = as_array("times", values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iuf"):
        raise InvalidRequest(
            f"times of {array.dtype}{list(array.shape)}: expected {rows} numbers, shape [{rows}]"
        )
    require_length("times", array, rows)
    if array.dtype.kind == "f":
        if np.isnan(array).any():
            raise InvalidRequest(f"times[{int(np.argmax(np.isnan(array)))}]=nan: expected a number")
        return array.astype(np.float64, copy=False)
    return array.astype(np.int64, copy=False) if array.dtype != np.uint64 else ids("times", array)


def temporal_filter(
    values: ArrayLike | None, rows: int, *, strict: bool, strategy: str, edge_times: bool
) -> tuple[common_pb.TemporalFilter | None, dict[str, Values]]:
    """Return the temporal filter of a request and its section; (None, {}) without times."""
    if strategy not in ("uniform", "last"):
        raise InvalidRequest(f"strategy={strategy!r}: expected 'uniform' or 'last'")
    if values is None:
        if strict or strategy == "last" or edge_times:
            raise InvalidRequest(
                f"times=None with strict={strict}, strategy={strategy!r}, "
                f"edge_times={edge_times}: expected the time of each node; pass times, or leave "
                "the others at their defaults"
            )
        return None, {}
    return common_pb.TemporalFilter(
        strict=strict, last=strategy == "last", want_times=edge_times
    ), {"times": times(values, rows)}


def require_length(argument: str, array: NDArray[Any], rows: int) -> None:
    """Reject an array that does not have one entry per row."""
    if len(array) != rows:
        raise InvalidRequest(
            f"{argument} of length {len(array)}: expected {rows}, one value for each row"
        )


def weights(values: ArrayLike | None, rows: int, owner: NodeType | EdgeType) -> Weights | None:
    """Return ``values`` as ndarray of float32, shape (rows,): finite and >= 0.

    None stays None, and means that all weights are 1.
    """
    if values is None:
        return None
    if not owner.weighted:
        raise InvalidRequest(
            f"weights: expected None, because type {owner.name!r} was declared without weights; "
            "leave them out, or declare the type with weight: true"
        )
    raw = _float_array("weights", as_array("weights", values))
    if raw.ndim != 1 or (raw.size and raw.dtype.kind not in "iuf"):
        raise InvalidRequest(
            f"weights of {raw.dtype}{list(raw.shape)}: expected {rows} numbers, shape [{rows}]"
        )
    require_length("weights", raw, rows)
    with np.errstate(over="ignore"):
        array = raw.astype(np.float32, copy=False)
    bad = np.flatnonzero(~(np.isfinite(array) & (array >= 0)))
    if bad.size:
        raise InvalidRequest(
            f"weights[{bad[0]}]={raw[bad[0]]}: expected a finite float32, 0 or more"
        )
    return array


def features(
    columns: Mapping[str, Any] | None, rows: int, owner: NodeType | EdgeType
) -> dict[str, FeatureValue]:
    """Return feature columns as the schema declares them, or raise NotFound."""
    checked: dict[str, FeatureValue] = {}
    for name, column in (columns or {}).items():
        feature = owner.feature(name)
        if feature.kind == "dense":
            checked[name] = _dense(feature, column, rows)
        else:
            checked[name] = _ragged(feature, column, rows)
    return checked


def name_column(argument: str, column: Any, rows: int) -> RaggedColumn:
    """Return the names of edge ends as a column of bytes."""
    return _ragged(Feature(name=f"{argument}_names", kind="bytes"), column, rows)


def _float_array(argument: str, values: NDArray[Any]) -> NDArray[Any]:
    """Return an array of Python numbers as float64; other arrays unchanged."""
    if values.dtype.kind != "O" or not all(map(_is_number, values.reshape(-1))):
        return values
    try:
        return values.astype(np.float64)
    except OverflowError as error:
        raise InvalidRequest(
            f"{argument}: expected numbers in the range of float64, found an integer beyond it"
        ) from error


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _number_array(feature: Feature, column: Any) -> Values:
    """Return a column of numbers as an array.

    NumPy makes objects or floats of Python integers that fit no integer dtype together.
    """
    argument, target = f"feature {feature.name!r}", np.dtype(feature.dtype)
    values = as_array(argument, column)
    if values.dtype.kind == "f" and any(map(_is_large_integer, _items(column))):
        values = np.asarray(column, object)
    if values.dtype.kind != "O":
        return values
    items = values.reshape(-1).tolist()
    _refuse_missing(feature, values)
    if target.kind == "f":
        return _float_array(argument, values)
    if target.kind not in "iu" or not all(isinstance(item, int) for item in items):
        return values
    bounds = np.iinfo(target)
    wrong = next((item for item in items if not bounds.min <= item <= bounds.max), None)
    if wrong is not None:
        raise InvalidRequest(
            f"{argument} with value {wrong}: expected {bounds.min} to {bounds.max}, the range of "
            f"{target}"
        )
    return values.astype(target)


def _cast(feature: Feature, values: Values, indptr: Ids | None = None, first: int = 0) -> Values:
    """Return values in the dtype of the schema.

    For messages, ``indptr`` separates the values of rows, of which ``first`` is the first.
    """
    target = np.dtype(feature.dtype)
    if values.dtype == target or values.size == 0:
        return values.astype(target, copy=False)
    fits = np.can_cast(values.dtype, target, "same_kind") or (
        values.dtype.kind in "iu" and target.kind in "iuf"
    )
    if not fits:
        _refuse_missing(feature, values)
        raise InvalidRequest(
            f"feature {feature.name!r} of {values.dtype}: expected {target}, as in the schema"
        )
    if target.kind in "iu" and not np.can_cast(values.dtype, target, "safe"):
        bounds = np.iinfo(target)
        low, high = int(values.min()), int(values.max())
        if low < bounds.min or high > bounds.max:
            raise InvalidRequest(
                f"feature {feature.name!r} with value {low if low < bounds.min else high}: "
                f"expected {bounds.min} to {bounds.max}, the range of {target}"
            )
    with np.errstate(over="ignore"):
        cast: Values = values.astype(target)
    overflow = overflow_mask(values, cast)
    if overflow is not None:
        row = int(np.argwhere(overflow)[0][0])
        if indptr is not None:
            row = int(np.searchsorted(indptr, row, side="right")) - 1
        raise InvalidRequest(
            f"feature {feature.name!r} with value {values[overflow][0]} in row {first + row}: "
            f"expected a number in the range of {target}"
        )
    return cast


def _refuse_missing(feature: Feature, values: Values) -> None:
    """Raise InvalidRequest with the position of the first missing value, if there is one."""
    position = _first_missing(values)
    if position is not None:
        target = np.dtype(feature.dtype)
        raise InvalidRequest(
            f"feature {feature.name!r}{position}={values[tuple(position)]}: expected {target}, "
            "found a missing value; "
            + ("use NaN for it" if target.kind == "f" else "drop or fill such rows")
        )


def _first_missing(values: Values) -> list[int] | None:
    """Return the position of the first None, NaN or NA of an array; None if it has none."""
    if values.dtype.kind == "f":
        missing = np.isnan(values)
    elif values.dtype.kind == "O":
        missing = np.array([_is_missing(value) for value in values.reshape(-1)], np.bool_)
    else:
        return None
    if not missing.any():
        return None
    return [int(i) for i in np.unravel_index(int(np.argmax(missing)), values.shape)]


def _dense(feature: Feature, column: Any, rows: int) -> Values:
    values = _number_array(feature, column)
    if values.shape != (rows, *feature.shape):
        raise InvalidRequest(
            f"feature {feature.name!r} of shape {list(values.shape)}: expected shape "
            f"{[rows, *feature.shape]}"
        )
    return _cast(feature, values)


def _ragged(feature: Feature, column: Any, rows: int) -> RaggedColumn:
    if isinstance(column, tuple) and len(column) == 2:
        indptr, values = (as_array(f"feature {feature.name!r}", part) for part in column)
    elif isinstance(column, Sequence | np.ndarray) and not isinstance(column, str | bytes):
        indptr, values = _from_rows(feature, column)
    else:
        raise InvalidRequest(
            f"feature {feature.name!r}: expected (indptr, values) or a list of rows, not "
            f"{type(column).__name__}"
        )
    if indptr.dtype.kind not in "iu" or indptr.shape != (rows + 1,):
        raise InvalidRequest(
            f"feature {feature.name!r} with indptr of {indptr.dtype}{list(indptr.shape)}: "
            f"expected int64[{rows + 1}], one more than there are rows"
        )
    indptr = indptr.astype(np.int64, copy=False)
    if (
        values.ndim != 1
        or indptr[0] != 0
        or indptr[-1] != len(values)
        or bool((np.diff(indptr) < 0).any())
    ):
        raise InvalidRequest(
            f"feature {feature.name!r}: expected indptr to rise from 0 to {len(values)}, the "
            "number of values"
        )
    if feature.kind == "bytes":
        if values.size and values.dtype != np.uint8:
            raise InvalidRequest(
                f"feature {feature.name!r} of {values.dtype}: expected uint8, for bytes"
            )
        return indptr, values.astype(np.uint8, copy=False)
    return indptr, _cast(feature, values, indptr)


def _from_rows(feature: Feature, rows: Iterable[Any]) -> tuple[Ids, Values]:
    """Build a column from one value per row; meant for small writes."""
    if feature.kind == "bytes":
        pieces = [_byte_string(feature.name, row, value) for row, value in enumerate(rows)]
        lengths = [len(piece) for piece in pieces]
        values: Values = np.frombuffer(b"".join(pieces), np.uint8)
    else:
        arrays = [
            _cast(
                feature,
                as_array(f"feature {feature.name!r}, row {row}", value).reshape(-1),
                np.zeros(1, np.int64),
                row,
            )
            for row, value in enumerate(rows)
        ]
        lengths = [array.size for array in arrays]
        non_empty = [array for array in arrays if array.size]
        values = np.concatenate(non_empty) if non_empty else np.zeros(0, feature.dtype)
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64), values


def _byte_string(name: str, row: int, value: object) -> bytes:
    """Return a value of a bytes feature: a string, bytes, or integers from 0 to 255."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, list | tuple | np.ndarray):
        array = as_array(f"feature {name!r}, row {row}", value)
        if array.ndim == 1 and (
            not array.size or (array.dtype.kind in "iu" and array.min() >= 0 and array.max() <= 255)
        ):
            return array.astype(np.uint8).tobytes()
    raise InvalidRequest(
        f"feature {name!r}[{row}]={value!r:.80}: expected bytes or a string"
        + (", found a missing value; use b'' for it" if _is_missing(value) else "")
    )


def seed(value: int | None) -> int:
    """Return a seed: an integer taken modulo 2^64, or a random one for None."""
    if value is None:
        return secrets.randbits(63)
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InvalidRequest(f"seed={value!r}: expected an integer")
    return int(value) & 0xFFFFFFFFFFFFFFFF


def count(argument: str, value: int, *, minimum: int = 0, maximum: int = MAX_COUNT - 1) -> int:
    """Return a count after checking its range."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InvalidRequest(f"{argument}={value!r}: expected an integer")
    if not minimum <= value <= maximum:
        raise InvalidRequest(f"{argument}={value}: expected {minimum} to {maximum}")
    return int(value)


def neighbors_per_node(argument: str, value: float, *, replace: bool) -> tuple[int, str]:
    """Return a number of neighbors, or a share of each node's edges as text, after checking it.

    A float is the decimal that its text shows: 0.1 is exactly a tenth.
    """
    if not isinstance(value, float | np.floating):
        with suppress(TypeError):  # scalars of training frameworks are integers too
            value = value if isinstance(value, bool) else operator.index(value)
        return count(argument, value), ""
    text = str(value)
    parse_share(argument, text)
    if replace:
        raise InvalidRequest(
            f"{argument}={text}: expected replace=False; a share of a node's edges is sampled "
            "without replacement"
        )
    return 0, text


def counts(argument: str, values: Any) -> list[Any]:
    """Return a list of counts, for one edge or node type, that is not yet checked."""
    if isinstance(values, str | bytes | Mapping):
        raise InvalidRequest(f"{argument}={values!r:.80}: expected a list of counts")
    try:
        return list(values)
    except TypeError:
        raise InvalidRequest(f"{argument}={values!r:.80}: expected a list of counts") from None


def version(value: int | None) -> int:
    """Return a version in its wire form: 0 is the current one."""
    if value is None:
        return 0
    if (
        isinstance(value, bool)
        or not isinstance(value, int | np.integer)
        or not 1 <= value < 1 << 63
    ):
        raise InvalidRequest(f"version={value!r}: expected 1 or more, or None for the current one")
    return int(value)


def names(values: str | Iterable[str] | None) -> list[str]:
    """Return one name or several as a list."""
    if values is None:
        return []
    selected = [values] if isinstance(values, str) else _entries(values)
    for name in selected:
        if not isinstance(name, str):
            raise InvalidRequest(f"names with {name!r:.80}: expected a name, or a list of names")
    return selected


def _entries(values: Any) -> list[Any]:
    """Return the entries of an iterable; any other value is the only entry."""
    try:
        return list(values)
    except TypeError:
        return [values]


def type_names(argument: str, values: str | Iterable[str] | None) -> list[str]:
    """Return one type name or several as a list; an empty list means all types.

    An empty list passed by the caller is rejected, because it does not mean all types.
    """
    if values is None:
        return []
    selected = [values] if isinstance(values, str) else _entries(values)
    for name in selected:
        if not isinstance(name, str):
            raise InvalidRequest(
                f"{argument}={name!r}: expected the name of a type, or a list of names"
            )
    if not selected:
        raise InvalidRequest(
            f"{argument}={values!r}: expected at least one type; pass None for all types"
        )
    return selected


def number(
    argument: str, value: float, minimum: float, maximum: float, *, above: bool = False
) -> float:
    """Return a float after checking its range; with ``above``, it excludes the minimum."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float | np.integer | np.floating)
        or not minimum <= value <= maximum
        or (above and value == minimum)
    ):
        lowest = f"above {minimum:g} and at most" if above else f"{minimum:g} to"
        raise InvalidRequest(f"{argument}={value!r}: expected {lowest} {maximum:g}")
    return float(value)


def feature_sections(columns: Mapping[str, FeatureValue]) -> dict[str, NDArray[Any]]:
    """Return columns as sections ``f:name``, or ``f:name.indptr`` and ``f:name.values``."""
    arrays: dict[str, NDArray[Any]] = {}
    for name, column in columns.items():
        if isinstance(column, tuple):
            arrays[f"f:{name}.indptr"], arrays[f"f:{name}.values"] = column
        else:
            arrays[f"f:{name}"] = column
    return arrays


def decode_columns(
    arrays: Mapping[str, NDArray[Any]], feature_names: Iterable[str]
) -> dict[str, FeatureValue]:
    """Return the columns ``feature_names`` from the sections of a frame."""
    return {
        name: arrays[f"f:{name}"]
        if f"f:{name}" in arrays
        else (arrays[f"f:{name}.indptr"], arrays[f"f:{name}.values"])
        for name in feature_names
    }


class NodeTypeRequired(InvalidRequest):
    """A node type is needed, because the request does not determine it."""

    problem = ""
    """The message without the remedy, for callers that offer another remedy than ``ntype``."""


def node_type_required(problem: str) -> NodeTypeRequired:
    """Return the error of a request that needs a node type."""
    error = NodeTypeRequired(f"{problem}; pass ntype: a type's name, or the type id of each node")
    error.problem = problem
    return error


Exclusions = RaggedNeighbors | tuple[ArrayLike, ArrayLike] | ArrayLike | None
"""Nodes that rows of negatives leave out.

``(indptr, ids)``, a record of neighbors, or an array with one row each; -1 means none.
"""


def indptr(values: ArrayLike, rows: int) -> Ids:
    """Return the offsets of g groups in ``rows`` rows as ndarray of int64, shape (g + 1,)."""
    array = ids("indptr", values)
    if not array.size or array[0] != 0 or array[-1] != rows or bool((np.diff(array) < 0).any()):
        raise InvalidRequest(
            f"indptr of length {len(array)}: expected offsets that rise from 0 to {rows}, the "
            "number of nodes"
        )
    return array


def exclusion_sections(
    pairs: ArrayLike, exclude: Exclusions, *, shared: bool
) -> dict[str, NDArray[Any]]:
    """Return what rows of negatives leave out as sections of a request; {} if that is nothing."""
    raw = as_array("pairs", pairs, "integers")
    if raw.ndim not in (1, 2) or (raw.ndim == 2 and raw.shape[1] != 2):
        raise InvalidRequest(
            f"pairs of shape {list(raw.shape)}: expected sources, shape [m], or pairs, [m, 2]"
        )
    columns = raw.reshape(len(raw), 1) if raw.ndim == 1 else raw
    checked = ids("pairs", columns.reshape(-1), minimum=-1).reshape(columns.shape)
    rows = np.arange(len(checked), dtype=np.int64)
    row_groups, node_groups = (
        [rows, *_explicit_exclusions(exclude, len(rows))[:1]],
        [
            checked[:, 1] if raw.ndim == 2 else rows * 0 - 1,
            *_explicit_exclusions(exclude, len(rows))[1:],
        ],
    )
    row, node = np.concatenate(row_groups), np.concatenate(node_groups)
    row, node = row[node >= 0], node[node >= 0]
    if not len(node):
        return {}
    if shared:
        return {"indptr": np.array([0, len(node)], np.int64), "excluded": node}
    order = np.argsort(row, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(rows)))]).astype(
        np.int64
    )
    return {"indptr": indptr, "excluded": node[order]}


def pair_sources(pairs: ArrayLike) -> Ids:
    """Return the sources of pairs, shape (m, 2), or of sources alone."""
    raw = as_array("pairs", pairs, "integers")
    return ids("pairs", raw if raw.ndim == 1 else raw[:, 0], minimum=-1)


def _explicit_exclusions(exclude: Exclusions, rows: int) -> tuple[Ids, Ids] | tuple[()]:
    """Return (row, id) arrays of everything in ``exclude``."""
    if exclude is None:
        return ()
    if isinstance(exclude, RaggedNeighbors):
        exclude = (exclude.indptr, exclude.nodes)
    if isinstance(exclude, tuple):
        indptr = as_array("exclude", exclude[0], "integers")
        nodes = ids("exclude", exclude[1], minimum=-1)
        if (
            indptr.shape != (rows + 1,)
            or indptr[0] != 0
            or indptr[-1] != len(nodes)
            or bool((np.diff(indptr) < 0).any())
        ):
            raise InvalidRequest(
                f"exclude with indptr of shape {list(indptr.shape)}: expected {rows + 1} offsets "
                f"that rise from 0 to {len(nodes)}, the number of nodes to leave out"
            )
        return np.repeat(np.arange(rows, dtype=np.int64), np.diff(indptr)), nodes
    table = as_array("exclude", exclude, "integers")
    if table.ndim not in (1, 2) or len(table) != rows:
        raise InvalidRequest(
            f"exclude of shape {list(table.shape)}: expected {rows} rows, one for each of pairs"
        )
    table = table.reshape(rows, -1)
    return np.repeat(np.arange(rows, dtype=np.int64), table.shape[1]), ids(
        "exclude", table.reshape(-1), minimum=-1
    )
