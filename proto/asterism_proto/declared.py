"""Indexes that a schema declares: which columns of a type every version keeps its rows in order of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from asterism_proto.condition import Column, Term, parse
from asterism_proto.errors import AsterismError, InvalidRequest
from asterism_proto.words import distinct

if TYPE_CHECKING:
    from asterism_proto.schema import Feature

OF_NODES, OF_EDGES = ("id", "weight"), ("id", "src", "dst", "weight")
"""Columns that rows have beside their features."""


def column_of(text: str) -> Column:
    """The one column that ``text`` names, as conditions write it; InvalidRequest otherwise."""
    try:
        tree = parse(f"{text} == 0").tree if text.strip() else None
    except AsterismError:
        tree = None
    if not isinstance(tree, Term) or str(tree.left) + " == 0" != str(tree):
        raise InvalidRequest(f"index on {text!r}: expected the name of one column")
    return tree.left


def listed(what: str, value: Any) -> tuple[str, ...]:
    """The columns of ``index`` as a schema file says them: a name, or a list of names."""
    names = [value] if isinstance(value, str) else ([] if value is None else value)
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise InvalidRequest(f"{what}: index {value!r}: expected a list of columns")
    return tuple(names)


def checked(owner: str, features: Sequence[Feature], index: Sequence[str], *, edges: bool) -> tuple[str, ...]:
    """The columns of an index, canonical.

    Parameters
    ----------
    owner : str
        The type, in words.
    features : sequence of Feature
        Of the type.
    index : sequence of str
    edges : bool
        Of an edge type: its columns are scalars.

    Raises
    ------
    InvalidRequest
        Where one can not be kept in order, or is there twice.
    """
    found = []
    for text in index:
        try:
            column = column_of(text)
        except InvalidRequest as error:
            raise InvalidRequest(f"{owner}: {error.message}") from error
        if column.of:
            raise InvalidRequest(f"{owner}: index on {text!r}: expected a column of its own")
        if column.quoted or column.name not in (OF_EDGES if edges else OF_NODES):
            _check_feature(owner, features, column, edges=edges)
        elif column.element is not None:
            raise InvalidRequest(f"{owner}: index on {text!r}: it is one value; leave [ ] out")
        found.append(str(column))
    distinct(f"{owner}: index on", found)
    return tuple(found)


def _check_feature(owner: str, features: Sequence[Feature], column: Column, *, edges: bool) -> None:
    feature = next((feature for feature in features if feature.name == column.name), None)
    if feature is None:
        raise InvalidRequest(f"{owner}: index on {str(column)!r}: it has no such feature; it has {', '.join(f.name for f in features) or 'none'}")
    values = math.prod(feature.shape)
    of_one = column.element is None if not feature.shape else column.element is not None and column.element < values
    if feature.kind == "ragged" or not of_one or (edges and (feature.kind != "dense" or feature.shape)):
        what = f"{feature.kind} {feature.dtype} {list(feature.shape)}" if feature.kind == "dense" else feature.kind
        expected = "a scalar number" if edges else "a scalar, a text, or one value of a vector"
        raise InvalidRequest(f"{owner}: index on {str(column)!r}: the feature is {what}; expected {expected}")
