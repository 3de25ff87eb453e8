"""Validation of arguments: ids, weights, feature columns, seeds.

Every error shows the value."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asterism.records.samples import (
    FeatureValue,
    Ids,
    RaggedColumn,
    RaggedNeighbors,
    Values,
    Weights,
)
from asterism_model.schema import EdgeType, Feature, NodeType
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import common_pb2 as common_pb

MAX_COUNT = 1 << 31


def ids(argument: str, values: ArrayLike, *, minimum: int = 0) -> Ids:
    """Return ids as ndarray of int64, shape (n,); all must be at least ``minimum``."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise InvalidRequest(
            f"{argument}: expected one dimension, got an array of shape {list(array.shape)}"
        )
    if array.size == 0:
        return np.zeros(0, np.int64)
    if array.dtype.kind == "O":
        raise InvalidRequest(
            f"{argument}: {_first_invalid_id(array)!r} is not an integer below 2^63"
        )
    if array.dtype.kind not in "iu":
        raise InvalidRequest(
            f"{argument}: ids are integers, not {array.dtype} such as {array[0].item()!r}"
        )
    if array.dtype.kind == "u" and array.dtype.itemsize == 8:
        over = np.flatnonzero(array > np.uint64(np.iinfo(np.int64).max))
        if over.size:
            raise InvalidRequest(f"{argument}[{over[0]}] = {array[over[0]]}: ids are below 2^63")
    array = array.astype(np.int64, copy=False)
    if array.min() < minimum:
        position = int(np.argmax(array < minimum))
        raise InvalidRequest(
            f"{argument}[{position}] = {array[position]}: expected {minimum} or more"
        )
    return array


def _first_invalid_id(array: NDArray[Any]) -> object:
    """Return the first element that is not an integer in range, for an error message."""
    for value in array:
        if (
            not isinstance(value, int)
            or isinstance(value, bool)
            or not -(1 << 63) <= value < 1 << 63
        ):
            return value
    return array[0]


def times(values: ArrayLike, rows: int) -> Values:
    """Return ``values`` as ndarray of int64 or float64, shape (rows,), without NaN."""
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iuf"):
        raise InvalidRequest(
            f"times: expected numbers [{rows}], got {array.dtype}{list(array.shape)}"
        )
    require_length("times", array, rows)
    if array.dtype.kind == "f":
        if np.isnan(array).any():
            raise InvalidRequest(
                f"times[{int(np.argmax(np.isnan(array)))}] = nan: a time is a number"
            )
        return array.astype(np.float64, copy=False)
    return array.astype(np.int64, copy=False) if array.dtype != np.uint64 else ids("times", array)


def temporal_filter(
    values: ArrayLike | None, rows: int, *, strict: bool, strategy: str, edge_times: bool
) -> tuple[common_pb.TemporalFilter | None, dict[str, Values]]:
    """Return the temporal filter of a request and its section; (None, {}) without times."""
    if strategy not in ("uniform", "last"):
        raise InvalidRequest(f"strategy {strategy!r}: expected 'uniform' or 'last'")
    if values is None:
        if strict or strategy == "last" or edge_times:
            raise InvalidRequest(
                f"strict={strict}, strategy={strategy!r}, edge_times={edge_times} without "
                "times; say the time of each node"
            )
        return None, {}
    return common_pb.TemporalFilter(
        strict=strict, last=strategy == "last", want_times=edge_times
    ), {"times": times(values, rows)}


def require_length(argument: str, array: NDArray[Any], rows: int) -> None:
    """Reject an array that does not have one entry per row."""
    if len(array) != rows:
        raise InvalidRequest(f"{argument} has {len(array)} entries for {rows} rows")


def weights(values: ArrayLike | None, rows: int, owner: NodeType | EdgeType) -> Weights | None:
    """Return ``values`` as ndarray of float32, shape (rows,): finite and >= 0.

    None stays None, and means that all weights are 1.
    """
    if values is None:
        return None
    if not owner.weighted:
        raise InvalidRequest(
            f"{owner.name!r} was declared without weights; leave them out, or declare it weighted"
        )
    raw = np.asarray(values)
    if raw.ndim != 1 or (raw.size and raw.dtype.kind not in "iuf"):
        raise InvalidRequest(f"weights: expected numbers [n], got {raw.dtype}{list(raw.shape)}")
    require_length("weights", raw, rows)
    with np.errstate(over="ignore"):
        array = raw.astype(np.float32, copy=False)
    bad = np.flatnonzero(~(np.isfinite(array) & (array >= 0)))
    if bad.size:
        raise InvalidRequest(
            f"weights[{bad[0]}] = {raw[bad[0]]}: a weight is finite, not negative, and fits float32"
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


def _cast(feature: Feature, values: Values) -> Values:
    target = np.dtype(feature.dtype)
    if values.dtype == target or values.size == 0:
        return values.astype(target, copy=False)
    fits = np.can_cast(values.dtype, target, "same_kind") or (
        values.dtype.kind in "iu" and target.kind in "iuf"
    )
    if not fits:
        raise InvalidRequest(
            f"feature {feature.name!r}: values are {values.dtype}, the schema says {target}"
        )
    if target.kind in "iu" and not np.can_cast(values.dtype, target, "safe"):
        bounds = np.iinfo(target)
        low, high = int(values.min()), int(values.max())
        if low < bounds.min or high > bounds.max:
            raise InvalidRequest(
                f"feature {feature.name!r}: the value {low if low < bounds.min else high} "
                f"does not fit {target}"
            )
    with np.errstate(over="ignore"):
        return values.astype(target)


def _dense(feature: Feature, column: Any, rows: int) -> Values:
    values = np.asarray(column)
    if values.shape != (rows, *feature.shape):
        raise InvalidRequest(
            f"feature {feature.name!r}: shape {list(values.shape)}; expected "
            f"{[rows, *feature.shape]}"
        )
    return _cast(feature, values)


def _ragged(feature: Feature, column: Any, rows: int) -> RaggedColumn:
    if isinstance(column, tuple) and len(column) == 2:
        indptr, values = np.asarray(column[0]), np.asarray(column[1])
    elif isinstance(column, Sequence | np.ndarray):
        indptr, values = _from_rows(feature, column)
    else:
        raise InvalidRequest(
            f"feature {feature.name!r}: expected (indptr, values) or a list of rows, not "
            f"{type(column).__name__}"
        )
    if indptr.dtype.kind not in "iu" or indptr.shape != (rows + 1,):
        raise InvalidRequest(
            f"feature {feature.name!r}: indptr is {indptr.dtype}{list(indptr.shape)}; "
            f"expected int64[{rows + 1}]"
        )
    indptr = indptr.astype(np.int64, copy=False)
    if (
        values.ndim != 1
        or indptr[0] != 0
        or indptr[-1] != len(values)
        or bool((np.diff(indptr) < 0).any())
    ):
        raise InvalidRequest(
            f"feature {feature.name!r}: indptr must rise from 0 to {len(values)}, the number "
            "of values"
        )
    if feature.kind == "bytes":
        if values.size and values.dtype != np.uint8:
            raise InvalidRequest(
                f"feature {feature.name!r}: bytes are uint8 values, not {values.dtype}"
            )
        return indptr, values.astype(np.uint8, copy=False)
    return indptr, _cast(feature, values)


def _from_rows(feature: Feature, rows: Iterable[Any]) -> tuple[Ids, Values]:
    """Build a column from one value per row; meant for small writes."""
    if feature.kind == "bytes":
        pieces = [row.encode() if isinstance(row, str) else bytes(row) for row in rows]
        lengths = [len(piece) for piece in pieces]
        values: Values = np.frombuffer(b"".join(pieces), np.uint8)
    else:
        arrays = [np.asarray(row) for row in rows]
        lengths = [array.size for array in arrays]
        non_empty = [array.reshape(-1) for array in arrays if array.size]
        values = np.concatenate(non_empty) if non_empty else np.zeros(0, feature.dtype)
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64), values


def seed(value: int | None) -> int:
    """Return a seed: an integer taken modulo 2^64, or a random one for None."""
    if value is None:
        return secrets.randbits(63)
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InvalidRequest(f"seed {value!r}: expected an integer")
    return int(value) & 0xFFFFFFFFFFFFFFFF


def count(argument: str, value: int, *, minimum: int = 0) -> int:
    """Return a count after checking its range."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InvalidRequest(f"{argument} {value!r}: expected an integer")
    if not minimum <= value < MAX_COUNT:
        raise InvalidRequest(f"{argument} {value}: expected {minimum} to {MAX_COUNT - 1}")
    return int(value)


def version(value: int | None) -> int:
    """Return a version in its wire form: 0 is the current one."""
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InvalidRequest(
            f"version {value!r}: expected an integer from 1, or None for the current one"
        )
    return int(value)


def names(values: str | Iterable[str] | None) -> list[str]:
    """Return one name or several as a list."""
    if values is None:
        return []
    return [values] if isinstance(values, str) else list(values)


def type_names(argument: str, values: str | Iterable[str] | None) -> list[str]:
    """Return one type name or several as a list; an empty list means all types.

    An empty list passed by the caller is rejected, because it does not mean all types.
    """
    if values is None:
        return []
    selected = (
        [values]
        if isinstance(values, str)
        else list(values)
        if isinstance(values, Iterable)
        else [values]
    )
    for name in selected:
        if not isinstance(name, str):
            raise InvalidRequest(
                f"{argument} {name!r}: expected the name of a type, or a list of names"
            )
    if not selected:
        raise InvalidRequest(
            f"{argument} {values!r}: a list of no types; name one at least, or give None for all"
        )
    return selected


def number(argument: str, value: float, minimum: float, maximum: float) -> float:
    """Return a float after checking its range."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float | np.integer | np.floating)
        or not minimum <= value <= maximum
    ):
        raise InvalidRequest(f"{argument} {value!r}: expected {minimum:g} to {maximum:g}")
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


Exclusions = RaggedNeighbors | tuple[ArrayLike, ArrayLike] | ArrayLike | None
"""Nodes that rows of negatives leave out.

``(indptr, ids)``, a record of neighbors, or an array with one row each; -1 means none.
"""


def indptr(values: ArrayLike, rows: int) -> Ids:
    """Return the offsets of g groups in ``rows`` rows as ndarray of int64, shape (g + 1,)."""
    array = ids("indptr", values)
    if not array.size or array[0] != 0 or array[-1] != rows or bool((np.diff(array) < 0).any()):
        raise InvalidRequest(
            f"indptr of {len(array)} entries for {rows} nodes: it must rise from 0 to {rows}"
        )
    return array


def exclusion_sections(
    pairs: ArrayLike, exclude: Exclusions, *, shared: bool
) -> dict[str, NDArray[Any]]:
    """Return what rows of negatives leave out as sections of a request; {} if that is nothing."""
    raw = np.asarray(pairs)
    if raw.ndim not in (1, 2) or (raw.ndim == 2 and raw.shape[1] != 2):
        raise InvalidRequest(
            f"pairs has shape {list(raw.shape)}; expected sources [m], or pairs [m, 2]"
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
    raw = np.asarray(pairs)
    return ids("pairs", raw if raw.ndim == 1 else raw[:, 0], minimum=-1)


def _explicit_exclusions(exclude: Exclusions, rows: int) -> tuple[Ids, Ids] | tuple[()]:
    """Return (row, id) arrays of everything in ``exclude``."""
    if exclude is None:
        return ()
    if isinstance(exclude, RaggedNeighbors):
        exclude = (exclude.indptr, exclude.nodes)
    if isinstance(exclude, tuple):
        indptr, nodes = np.asarray(exclude[0]), ids("exclude", exclude[1], minimum=-1)
        if (
            indptr.shape != (rows + 1,)
            or indptr[0] != 0
            or indptr[-1] != len(nodes)
            or bool((np.diff(indptr) < 0).any())
        ):
            raise InvalidRequest(
                f"exclude: indptr has shape {list(indptr.shape)}; expected {rows + 1} "
                f"entries that rise from 0 to {len(nodes)}"
            )
        return np.repeat(np.arange(rows, dtype=np.int64), np.diff(indptr)), nodes
    table = np.asarray(exclude)
    if table.ndim not in (1, 2) or len(table) != rows:
        raise InvalidRequest(
            f"exclude has shape {list(table.shape)}; expected a row for each of {rows}"
        )
    table = table.reshape(rows, -1)
    return np.repeat(np.arange(rows, dtype=np.int64), table.shape[1]), ids(
        "exclude", table.reshape(-1), minimum=-1
    )
