"""Columns of the indexes that a schema declares; every version has these indexes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from asterism_model.filters.syntax import ColumnOperand, Term, parse
from asterism_model.schema.features import Feature
from asterism_model.validation import check_distinct
from asterism_proto.errors import AsterismError, InvalidRequest

NODE_COLUMNS, EDGE_COLUMNS = ("id", "weight"), ("id", "src", "dst", "weight")
"""Columns of every row in addition to its features."""


def parse_column(text: str) -> ColumnOperand:
    """Parse one column in the syntax of filters; raise InvalidRequest for any other text."""
    try:
        predicate = parse(f"{text} == 0").predicate if text.strip() else None
    except AsterismError:
        predicate = None
    if not isinstance(predicate, Term) or str(predicate.left) + " == 0" != str(predicate):
        raise InvalidRequest(f"index on {text!r}: expected the name of one column")
    return predicate.left


def column_names(label: str, value: Any) -> tuple[str, ...]:
    """Return the columns under ``index`` in a schema file: a name, or a list of names."""
    names = [value] if isinstance(value, str) else ([] if value is None else value)
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise InvalidRequest(f"{label}: index {value!r}: expected a list of columns")
    return tuple(names)


def canonical_columns(
    owner: str, features: Sequence[Feature], index: Sequence[str], *, edges: bool
) -> tuple[str, ...]:
    """Check the indexed columns of a type and return their canonical names.

    Parameters
    ----------
    owner : str
        The type, as text for messages.
    features : sequence of Feature
        Features of the type.
    index : sequence of str
        Columns in the syntax of filters.
    edges : bool
        The type is an edge type: only scalar numbers can be indexed.

    Returns
    -------
    tuple of str

    Raises
    ------
    InvalidRequest
        If a column cannot be indexed, or occurs twice.
    """
    columns = []
    for text in index:
        try:
            column = parse_column(text)
        except InvalidRequest as error:
            raise InvalidRequest(f"{owner}: {error.message}") from error
        if column.endpoint:
            raise InvalidRequest(f"{owner}: index on {text!r}: expected a column of this type")
        if column.quoted or column.name not in (EDGE_COLUMNS if edges else NODE_COLUMNS):
            _check_feature(owner, features, column, edges=edges)
        elif column.element is not None:
            raise InvalidRequest(f"{owner}: index on {text!r}: the column has one value; omit [ ]")
        columns.append(str(column))
    check_distinct(f"{owner}: index on", columns)
    return tuple(columns)


def _check_feature(
    owner: str, features: Sequence[Feature], column: ColumnOperand, *, edges: bool
) -> None:
    feature = next((feature for feature in features if feature.name == column.name), None)
    if feature is None:
        raise InvalidRequest(
            f"{owner}: index on {str(column)!r}: there is no such feature; features: "
            f"{', '.join(f.name for f in features) or 'none'}"
        )
    size = math.prod(feature.shape)
    is_scalar = (
        column.element is None
        if not feature.shape
        else column.element is not None and column.element < size
    )
    if (
        feature.kind == "ragged"
        or not is_scalar
        or (edges and (feature.kind != "dense" or feature.shape))
    ):
        description = (
            f"{feature.kind} {feature.dtype} {list(feature.shape)}"
            if feature.kind == "dense"
            else feature.kind
        )
        expected = "a scalar number" if edges else "a scalar, a string, or one element of a vector"
        raise InvalidRequest(
            f"{owner}: index on {str(column)!r}: expected {expected}, found {description}"
        )
