"""What a condition means of one type: its columns looked up in the schema, what its type decides
folded in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from asterism_model.elements import EDGE, NODE
from asterism_model.filters.syntax import (
    ColumnOperand,
    Constant,
    Filter,
    Literal,
    Predicate,
    Term,
    combine,
    syntax_error,
)
from asterism_model.schema import EdgeType, Feature, NodeType, Schema
from asterism_model.string_ids import hash_string
from asterism_proto.errors import AsterismError, InvalidRequest, NotFound, SourceLocation

_NODE_COLUMNS = ("id", "weight", "type")
_EDGE_COLUMNS = ("id", "src", "dst", "weight", "type")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedColumn:
    """What a column of a condition is."""

    owner: NodeType | EdgeType
    """The type whose column it is: the row's own, or the one of an edge's end."""
    feature: Feature | None
    """None: a row's own ``id``, ``weight``, ``type``, ``src`` or ``dst``."""

    @property
    def kind(self) -> str:
        """``number``, ``bytes``, ``ragged`` or ``type``."""
        return (
            "number" if self.feature is None or self.feature.kind == "dense" else self.feature.kind
        )


def bind(row_filter: Filter, schema: Schema, element: int, type_id: int) -> Predicate:
    """A condition as it is of the rows of one type.

    Parameters
    ----------
    row_filter : Filter
    schema : Schema
    element : int
        1 of nodes, 2 of edges.
    type_id : int

    Returns
    -------
    Predicate
        Without tests of ``type``: they are so or not so, and what that decides is folded in, so
        that a type needs only those columns that are asked of it.

    Raises
    ------
    NotFound
        Where a feature or type is not there; the message has the place.
    InvalidRequest
        Where a column can not be tested so.
    """
    return _bind(
        _Binding(row_filter=row_filter, schema=schema, element=element, type_id=type_id),
        row_filter.predicate,
    )


def resolve_column(
    schema: Schema, element: int, type_id: int, column: ColumnOperand
) -> ResolvedColumn:
    """What a column is of the rows of a type; NotFound where it is nothing."""
    owner: NodeType | EdgeType = (
        schema.node_types[type_id] if element == NODE else schema.edge_types[type_id]
    )
    if column.endpoint:
        if not isinstance(owner, EdgeType):
            raise NotFound(f"a node has no {column.endpoint}; only edges have ends")
        owner = schema.node_types[
            schema.node_type_id(owner.src_type if column.endpoint == "src" else owner.dst_type)
        ]
    own_columns = _EDGE_COLUMNS if isinstance(owner, EdgeType) else _NODE_COLUMNS
    return ResolvedColumn(
        owner=owner,
        feature=None
        if not column.quoted and column.name in own_columns
        else owner.feature(column.name),
    )


def column_location(column: ColumnOperand) -> str | None:
    """Where a column of an edge is kept: "" with its features, ``src`` or ``dst`` with that end's;
    None: with the edge itself, at both ends.
    """
    unquoted = not column.quoted
    if column.endpoint:
        return None if unquoted and column.name == "id" else column.endpoint
    return None if unquoted and column.name in ("id", "src", "dst", "weight") else ""


def reads_edge_columns(edge_type: EdgeType, term: Term) -> bool:
    """Whether a term reads features that an edge type keeps beside its edges, at both ends, and
    nothing else.
    """
    return all(not column.endpoint and column.name in edge_type.indexed for column in term.columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Binding:
    row_filter: Filter
    schema: Schema
    element: int
    type_id: int

    def resolve_column(self, column: ColumnOperand) -> ResolvedColumn:
        try:
            return resolve_column(self.schema, self.element, self.type_id, column)
        except NotFound as error:
            raise not_found_error(self.row_filter.text, column.position, error.message) from error

    def syntax_error(self, column: ColumnOperand, found: str, expected: str) -> InvalidRequest:
        return syntax_error(self.row_filter.text, column.position, f"{column}, {found}", expected)


def _bind(binding: _Binding, predicate: Predicate) -> Predicate:
    if isinstance(predicate, Constant):
        return predicate
    if isinstance(predicate, Term):
        return _bind_term(binding, predicate)
    operands: list[Predicate] = []
    first_error: AsterismError | None = None
    for operand in predicate.operands:
        try:
            operands.append(_bind(binding, operand))
        except (
            InvalidRequest,
            NotFound,
        ) as error:  # nothing to this type where the rest decides without it
            first_error = first_error or error
    resolved = combine(predicate.operator, operands) if operands else Constant(value=True)
    if first_error is not None and not (
        isinstance(resolved, Constant)
        and operands
        and resolved.value == (predicate.operator == "or")
    ):
        raise first_error
    return resolved


def _bind_term(binding: _Binding, term: Term) -> Predicate:
    left = binding.resolve_column(term.left)
    if binding.schema.has_string_ids and _is_node_id(binding, term.left, left):
        term = _names_to_ids(binding, term)
    if left.feature is None and term.left.name == "type":
        return Constant(value=_matches_type(binding, term, left.owner))
    if term.operator == "null":
        never_null = left.feature is None or (
            left.kind == "number" and left.feature.dtype[:5] != "float"
        )
        return (
            Constant(value=False)
            if never_null
            else _check_term(binding, term, term.left, left, single_value=False)
        )
    predicate = _check_term(binding, term, term.left, left)
    for operand in term.right:
        if isinstance(operand, ColumnOperand):
            right_column = binding.resolve_column(operand)
            if (
                right_column.kind != "number"
                or left.kind != "number"
                or (right_column.feature is None and operand.name == "type")
            ):
                raise binding.syntax_error(
                    operand, "beside another column", "numbers on both sides"
                )
            if binding.element == EDGE and column_location(operand) != column_location(term.left):
                raise binding.syntax_error(
                    operand,
                    f"beside {term.left}",
                    "two features of the edge, or two of the same end: others are kept apart",
                )
            _check_term(binding, term, operand, right_column)
        elif isinstance(operand.value, str) != (left.kind == "bytes"):
            raise binding.syntax_error(
                term.left,
                f"{left.kind}s" if left.kind == "number" else left.kind,
                f"no comparison with {operand}",
            )
    return predicate


def _is_node_id(binding: _Binding, column: ColumnOperand, resolved: ResolvedColumn) -> bool:
    """Whether a column is the id of a node: the row's own, or that of an edge's end."""
    if resolved.feature is not None:
        return False
    return column.name in ("src", "dst") or (
        column.name == "id" and (bool(column.endpoint) or binding.element == NODE)
    )


def _names_to_ids(binding: _Binding, term: Term) -> Term:
    """A test of a node's name as one of its id."""
    if not any(
        isinstance(operand, Literal) and isinstance(operand.value, str) for operand in term.right
    ):
        return term
    if term.operator not in ("==", "!=", "in"):
        raise binding.syntax_error(
            term.left, "the name of a node", "==, != or 'in': names have no order"
        )
    try:
        ids = tuple(
            Literal(value=hash_string(operand.value, binding.schema.salt))
            if isinstance(operand, Literal) and isinstance(operand.value, str)
            else operand
            for operand in term.right
        )
    except InvalidRequest as error:
        position = term.left.position + 1
        raise InvalidRequest(
            f"condition {binding.row_filter.text!r}, character {position}: {error.message}",
            SourceLocation(line=1, column=position),
        ) from error
    return replace(term, right=ids)


def _check_term(
    binding: _Binding,
    term: Term,
    column: ColumnOperand,
    resolved: ResolvedColumn,
    *,
    single_value: bool = True,
) -> Predicate:
    """The term; InvalidRequest where this column of it can not be tested so. ``single_value``: one
    value of each row is looked at.
    """
    feature = resolved.feature
    shape = () if feature is None else feature.shape
    size = math.prod(shape)
    if column.element is not None and (not shape or column.element >= size):
        raise binding.syntax_error(
            column,
            f"a feature of shape {list(shape)}" if shape else "one value",
            f"[0] to [{size - 1}]" if shape else "no [ ]",
        )
    if shape and column.element is None:
        raise binding.syntax_error(
            column,
            f"a feature of shape {list(shape)}",
            f"one of its values, {column}[0] to {column}[{size - 1}]",
        )
    if single_value and resolved.kind == "ragged":
        raise binding.syntax_error(column, "a list for each row", "'is null' or 'is not null'")
    if single_value and resolved.kind == "bytes" and term.operator not in ("==", "!=", "in"):
        raise binding.syntax_error(column, "a text", "==, !=, 'in' or 'is null'")
    return term


def _matches_type(binding: _Binding, term: Term, owner: NodeType | EdgeType) -> bool:
    """Whether a test of ``type`` is so for the rows of a type."""
    if term.operator not in ("==", "!=", "in") or not all(
        isinstance(operand, Literal) and isinstance(operand.value, str) for operand in term.right
    ):
        raise binding.syntax_error(term.left, "the name of a type", "==, != or 'in', with names")
    type_names = [str(operand.value) for operand in term.right if isinstance(operand, Literal)]
    types: Sequence[NodeType | EdgeType] = (
        binding.schema.node_types if isinstance(owner, NodeType) else binding.schema.edge_types
    )
    names_by_type = [
        {kind.name, kind.relation} if isinstance(kind, EdgeType) else {kind.name} for kind in types
    ]
    for name in type_names:
        if not any(name in names for names in names_by_type):
            raise not_found_error(
                binding.row_filter.text,
                term.left.position,
                f"no type {name!r}; there are {', '.join(t.name for t in types)}",
            )
    own_names = {owner.name, owner.relation} if isinstance(owner, EdgeType) else {owner.name}
    return any(name in own_names for name in type_names) != (term.operator == "!=")


def not_found_error(text: str, position: int, message: str) -> NotFound:
    """The error of what a place of a condition names, and is not there."""
    return NotFound(
        f"condition {text!r}, character {position + 1}: {message}",
        SourceLocation(line=1, column=position + 1),
    )
