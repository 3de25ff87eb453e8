"""Bind a filter to one type: resolve its columns in the schema and fold tests of the type."""

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
    """The schema entry that a column of a filter refers to."""

    owner: NodeType | EdgeType
    """Type that has the column: the row's own type, or the node type at an end of an edge."""
    feature: Feature | None
    """Feature of the owner; None for ``id``, ``weight``, ``type``, ``src`` and ``dst``."""

    @property
    def kind(self) -> str:
        """Kind of the values: ``number``, ``bytes`` or ``ragged``."""
        return (
            "number" if self.feature is None or self.feature.kind == "dense" else self.feature.kind
        )


def bind(row_filter: Filter, schema: Schema, element: int, type_id: int) -> Predicate:
    """Return the predicate that a filter is for the rows of one type.

    Parameters
    ----------
    row_filter : Filter
    schema : Schema
    element : int
        1: nodes; 2: edges.
    type_id : int

    Returns
    -------
    Predicate
        The predicate without tests of ``type``. These are constant for one type and are folded
        into the rest, so that a type needs only the columns that its result depends on.

    Raises
    ------
    NotFound
        If a feature or type does not exist; the message has the position.
    InvalidRequest
        If a column does not support the test.
    """
    return _bind(
        _Binding(row_filter=row_filter, schema=schema, element=element, type_id=type_id),
        row_filter.predicate,
    )


def resolve_column(
    schema: Schema, element: int, type_id: int, column: ColumnOperand
) -> ResolvedColumn:
    """Resolve a column for the rows of a type; raise NotFound if there is no such column."""
    owner: NodeType | EdgeType = (
        schema.node_types[type_id] if element == NODE else schema.edge_types[type_id]
    )
    if column.endpoint:
        if not isinstance(owner, EdgeType):
            raise NotFound(f"a node has no {column.endpoint}; only edges have src and dst")
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
    """Return the place that stores a column of an edge.

    Returns
    -------
    str or None
        "": with the features of the edge; ``src`` or ``dst``: with the node at that end; None: in
        both copies of the edge itself.
    """
    unquoted = not column.quoted
    if column.endpoint:
        return None if unquoted and column.name == "id" else column.endpoint
    return None if unquoted and column.name in ("id", "src", "dst", "weight") else ""


def reads_edge_columns(edge_type: EdgeType, term: Term) -> bool:
    """Return whether a term reads only indexed features, which are stored in both edge copies."""
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
        ) as error:  # irrelevant for this type if the other operands decide the result
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
    if term.operator == "in" and not term.right:
        _check_term(binding, term, term.left, left)
        return Constant(value=False)
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
                    operand, "another column on the right", "numbers on both sides"
                )
            if binding.element == EDGE and column_location(operand) != column_location(term.left):
                raise binding.syntax_error(
                    operand,
                    f"{term.left} on the left",
                    "two features of the edge, or two of the same end node",
                )
            _check_term(binding, term, operand, right_column)
        elif isinstance(operand.value, str) != (left.kind == "bytes"):
            raise binding.syntax_error(
                term.left,
                f"{left.kind}s" if left.kind == "number" else left.kind,
                f"a {'string' if left.kind == 'bytes' else 'number'} instead of {operand}",
            )
    return predicate


def _is_node_id(binding: _Binding, column: ColumnOperand, resolved: ResolvedColumn) -> bool:
    """Return whether a column is the id of a node: of the row, or at an end of an edge."""
    if resolved.feature is not None:
        return False
    return column.name in ("src", "dst") or (
        column.name == "id" and (bool(column.endpoint) or binding.element == NODE)
    )


def _names_to_ids(binding: _Binding, term: Term) -> Term:
    """Replace the string ids in a test of a node id by the int64 ids that they hash to."""
    if not any(
        isinstance(operand, Literal) and isinstance(operand.value, str) for operand in term.right
    ):
        return term
    if term.operator not in ("==", "!=", "in"):
        raise binding.syntax_error(
            term.left,
            "a node id compared with strings",
            "==, != or 'in', because string ids have no order",
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
            f"filter {binding.row_filter.text!r}, character {position}: {error.message}",
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
    """Return the term, or raise InvalidRequest if the column does not support its test.

    Parameters
    ----------
    single_value : bool
        The test reads one value of each row.
    """
    feature = resolved.feature
    shape = () if feature is None else feature.shape
    size = math.prod(shape)
    if column.element is not None and (not shape or column.element >= size):
        raise binding.syntax_error(
            column,
            f"a feature of shape {list(shape)}" if shape else "one value",
            f"an element, [0] to [{size - 1}]" if shape else "no [ ]",
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
        raise binding.syntax_error(column, "a string column", "==, !=, 'in' or 'is null'")
    return term


def _matches_type(binding: _Binding, term: Term, owner: NodeType | EdgeType) -> bool:
    """Return the result of a test of ``type``, which is the same for all rows of a type."""
    if term.operator not in ("==", "!=", "in") or not all(
        isinstance(operand, Literal) and isinstance(operand.value, str) for operand in term.right
    ):
        raise binding.syntax_error(term.left, "a type name", "==, != or 'in' with names")
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
    """Return the error for a name in a filter that does not exist."""
    return NotFound(
        f"filter {text!r}, character {position + 1}: {message}",
        SourceLocation(line=1, column=position + 1),
    )
