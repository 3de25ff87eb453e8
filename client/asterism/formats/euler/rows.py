"""Rows of Euler's JSON: validation of nodes and edges, and their columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from asterism.formats.chunks import Array, FeatureValue, Ids, Weights
from asterism.formats.row_validation import id_error, weight_error
from asterism.json_objects import Infinity
from asterism.name_conversion import as_name
from asterism_model.schema import Feature

FEATURE_KINDS = {"sparse": "ragged", "dense": "dense", "binary": "bytes"}
_MAX_ID = (1 << 63) - 1
_MAX_FLOAT32 = float(np.finfo(np.float32).max)


class BadRowError(Exception):
    """Bad row, with its column, its value and the reason."""

    def __init__(self, column: str, value: object, reason: str) -> None:
        # JSON may have lone surrogates, which cannot be written to a file.
        super().__init__(column, str(value)[:100].encode(errors="replace").decode(), reason)


def parse_head(row: Any, id_columns: Sequence[str]) -> tuple[tuple[int, ...], str]:
    """Return the ids and the type of a row; raise `BadRowError` if invalid."""
    if isinstance(row, BadRowError):
        raise row
    if not isinstance(row, dict):
        raise BadRowError("", row, "expected an object")
    ids = []
    for column in id_columns:
        value = row.get(column, "")
        if type(value) is not int or not 0 <= value <= _MAX_ID:
            raise BadRowError(
                column,
                value,
                id_error(str(value))
                if type(value) is int or value == ""
                else "an id is an integer",
            )
        ids.append(value)
    kind = row.get("type", "")
    if not isinstance(kind, str | int) or kind == "":
        raise BadRowError("type", kind, "expected the name of a type, or its number")
    return tuple(ids), str(kind)


def parse_features(row: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield (name, kind, value) of each feature of a row; raise `BadRowError` if invalid."""
    features = row.get("features") or ()
    if not isinstance(features, list | tuple):
        raise BadRowError("features", features, "expected a list")
    for feature in features:
        if (
            not isinstance(feature, dict)
            or "name" not in feature
            or not isinstance(feature.get("type"), str)
            or feature["type"] not in FEATURE_KINDS
            or "value" not in feature
        ):
            raise BadRowError(
                "features", feature, "expected name, type (sparse, dense or binary) and value"
            )
        yield as_name(feature["name"]), FEATURE_KINDS[feature["type"]], feature["value"]


def parse_weight(row: Mapping[str, Any]) -> float:
    """Return the weight of a row; raise `BadRowError` if invalid."""
    weight = row.get("weight", "")
    if type(weight) not in (int, float) or not 0 <= weight <= _MAX_FLOAT32:
        raise BadRowError(
            "weight",
            weight,
            weight_error(str(weight))
            if type(weight) in (int, float, Infinity) or weight == ""
            else "a weight is a number",
        )
    return float(weight)


def check_feature(feature: Feature, kind: str, value: Any) -> Any:
    """Return a feature's value if it fits the schema; raise `BadRowError` otherwise."""
    if kind != feature.kind:
        raise BadRowError(
            feature.name, value, f"expected {feature.kind}, as in an earlier row; it is {kind}"
        )
    if kind == "bytes":
        if not isinstance(value, str):
            raise BadRowError(feature.name, value, "expected text")
        try:
            return value.encode()
        except UnicodeEncodeError as error:
            raise BadRowError(
                feature.name,
                value,
                "expected UTF-8, it has a lone surrogate",
            ) from error
    allowed = {int} if kind == "ragged" else {int, float, Infinity}
    if not isinstance(value, list) or not set(map(type, value)) <= allowed:
        raise BadRowError(
            feature.name,
            value,
            f"expected a list of {'integers' if kind == 'ragged' else 'numbers'}",
        )
    if kind == "ragged" and value and not (min(value) >= -_MAX_ID - 1 and max(value) <= _MAX_ID):
        raise BadRowError(feature.name, value, "expected numbers that fit int64")
    if kind == "dense" and value and len(value) != feature.shape[0]:
        raise BadRowError(feature.name, value, f"expected {feature.shape[0]} values")
    if (
        kind == "dense"
        and value
        and not (min(value) >= -_MAX_FLOAT32 and max(value) <= _MAX_FLOAT32)
        and any(_exceeds_float32(item) for item in value)
    ):
        raise BadRowError(feature.name, value, "expected numbers that fit float32")
    return value


def _exceeds_float32(number: float) -> bool:
    """Return True if a number that is not written as infinity exceeds the range of float32."""
    return type(number) is not Infinity and abs(number) > _MAX_FLOAT32


class RowBuffer:
    """Buffer of rows of one type for a chunk."""

    def __init__(self, features: Sequence[Feature], id_columns: int) -> None:
        self._features = {feature.name: feature for feature in features}
        self.ids: tuple[list[int], ...] = tuple([] for _ in range(id_columns))
        self.weights: list[float] = []
        self.lines: list[int] = []
        self._values: dict[str, list[Any]] = {feature.name: [] for feature in features}

    def __len__(self) -> int:
        return len(self.lines)

    def append(
        self, ids: tuple[int, ...], row: Mapping[str, Any], new_names: Mapping[str, str], line: int
    ) -> None:
        """Append a row; raise `BadRowError` without appending if it is invalid."""
        weight = parse_weight(row)
        values: dict[str, Any] = {}
        for original_name, kind, value in parse_features(row):
            name = new_names.get(original_name, original_name)
            if name not in self._features:
                raise BadRowError(
                    name,
                    value,
                    "expected the features that the type had when the file was opened; it has "
                    "changed",
                )
            values[name] = check_feature(self._features[name], kind, value)
        for column, node_id in zip(self.ids, ids, strict=True):
            column.append(node_id)
        self.weights.append(weight)
        self.lines.append(line)
        for name, collected in self._values.items():
            collected.append(values.get(name))

    def arrays(self) -> tuple[tuple[Ids, ...], Weights, dict[str, FeatureValue]]:
        """Return the rows as columns: ids, weights and features.

        A missing feature is zeros or empty.
        """
        features = {
            feature.name: _column(feature, self._values[feature.name])
            for feature in self._features.values()
        }
        return (
            tuple(np.array(column, np.int64) for column in self.ids),
            np.array(self.weights, np.float32),
            features,
        )


def _column(feature: Feature, values: Sequence[Any]) -> FeatureValue:
    if feature.kind == "dense":
        default_row = [0.0] * feature.shape[0]
        return np.array([value or default_row for value in values], np.float32).reshape(
            len(values), *feature.shape
        )
    lists = [value or () for value in values]
    indptr = np.concatenate([[0], np.cumsum([len(value) for value in lists])]).astype(np.int64)
    if feature.kind == "bytes":
        return indptr, np.frombuffer(b"".join(value or b"" for value in values), np.uint8)
    flat: Array = np.fromiter(chain.from_iterable(lists), np.int64, count=int(indptr[-1]))
    return indptr, flat
