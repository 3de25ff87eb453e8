"""Features: named, typed columns of node and edge types."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from asterism_model import string_ids
from asterism_model.validation import as_mapping, check_keys, enum_name, validate_name
from asterism_proto.errors import InvalidRequest, NotFound
from asterism_proto.framing import DTYPES
from asterism_proto.v1 import common_pb2 as common_pb

RESERVED_NAMES = frozenset({"weight", "id", "src", "dst", "eid"})
"""Names that features and weight tables must not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """A named column of a type."""

    name: str
    kind: str = "dense"
    """``dense`` (dtype and shape), ``ragged`` (int64 or float32 list per row) or ``bytes``."""
    dtype: str = "float32"
    shape: tuple[int, ...] = ()
    """Shape of one row; () for a scalar. ``dense`` only."""

    def __post_init__(self) -> None:
        validate_name("feature", self.name)
        if self.name in RESERVED_NAMES and (self.name, self.kind) != (
            string_ids.ID_COLUMN,
            "bytes",
        ):
            raise InvalidRequest(
                f"feature {self.name!r}: the name is reserved; choose another name"
            )
        if self.kind not in ("dense", "ragged", "bytes"):
            raise InvalidRequest(
                f"feature {self.name!r}: kind {self.kind!r}: expected dense, ragged or bytes"
            )
        if self.kind == "dense" and self.dtype not in DTYPES:
            raise InvalidRequest(
                f"feature {self.name!r}: dtype {self.dtype!r}: expected one of "
                f"{', '.join(sorted(DTYPES))}"
            )
        if self.kind == "ragged" and self.dtype not in ("int64", "float32"):
            raise InvalidRequest(
                f"feature {self.name!r}: dtype {self.dtype!r}: expected int64 or float32 for a "
                "ragged feature"
            )
        if (
            any(extent < 1 for extent in self.shape)
            or len(self.shape) > 8
            or int(np.prod(self.shape, dtype=object)) > 1 << 24
        ):
            raise InvalidRequest(
                f"feature {self.name!r}: shape {list(self.shape)}: expected at most 8 extents of "
                "1 or more, and at most 2^24 values per row"
            )
        if self.kind != "dense" and self.shape:
            raise InvalidRequest(
                f"feature {self.name!r}: expected no shape; only dense features have one"
            )


STRING_ID_FEATURE = Feature(name=string_ids.ID_COLUMN, kind="bytes")
"""String ids of nodes: a feature of every node type in a space with ``ids: string``."""


def find_feature(owner: str, features: Sequence[Feature], name: str) -> Feature:
    """Return the feature called ``name``; raise NotFound with the names of all features."""
    for feature in features:
        if feature.name == name:
            return feature
    raise NotFound(
        f"{owner} has no feature {name!r}; it has {', '.join(f.name for f in features) or 'none'}"
    )


def features_from_dict(label: str, data: Any) -> tuple[Feature, ...]:
    """Return features from plain values: ``{age: int64, x: {dtype: float32, shape: [16]}}``."""
    features = []
    for name, column in as_mapping(f"{label} features", data).items():
        column = column or {}
        if isinstance(column, str):  # the short form, `age: int64`
            column = {"kind": "bytes"} if column == "bytes" else {"dtype": column}
        column = as_mapping(f"{label}: feature {name!r}", column)
        check_keys(f"{label}: feature {name!r}", column, {"kind", "dtype", "shape"})
        shape = column.get("shape", [])
        shape = [shape] if isinstance(shape, int) else shape
        if not isinstance(shape, list | tuple) or not all(
            isinstance(extent, int) for extent in shape
        ):
            raise InvalidRequest(
                f"{label}: feature {name!r}: shape {shape!r}: expected a list of integers"
            )
        features.append(
            Feature(
                name=str(name),
                kind=str(column.get("kind", "dense")),
                dtype=str(column.get("dtype", "float32")),
                shape=tuple(shape),
            )
        )
    return tuple(features)


def features_to_dict(features: Iterable[Feature]) -> dict[str, Any]:
    """Return plain values, as `features_from_dict` reads them, without the string ids."""
    return {
        f.name: {"kind": f.kind, "dtype": f.dtype, "shape": list(f.shape)}
        for f in features
        if f != STRING_ID_FEATURE
    }


def features_to_proto(features: Iterable[Feature]) -> list[common_pb.Feature]:
    """Return features as messages, without the string ids, which ``ids: string`` implies."""
    return [
        common_pb.Feature(name=f.name, kind=f.kind.upper(), dtype=f.dtype, shape=f.shape)
        for f in features
        if f != STRING_ID_FEATURE
    ]


def features_from_proto(messages: Iterable[common_pb.Feature]) -> tuple[Feature, ...]:
    """Return the features in messages."""
    return tuple(
        Feature(
            name=f.name,
            kind=enum_name(common_pb.FeatureKind, f.kind, "dense"),
            dtype=f.dtype or "float32",
            shape=tuple(f.shape),
        )
        for f in messages
    )
