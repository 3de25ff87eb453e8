"""What a condition means of one type: its columns looked up in the schema, what its type decides folded in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from asterism_proto.condition import Always, Column, Condition, Literal, Term, Tree, combined, wrong
from asterism_proto.errors import AsterismError, InvalidRequest, NotFound, Place
from asterism_proto.names import id_of
from asterism_proto.schema import EdgeType, Feature, NodeType, Schema

NODE, EDGE = 1, 2
"""Elements, as in `asterism.v1.Element`."""
_OF_NODES = ("id", "weight", "type")
_OF_EDGES = ("id", "src", "dst", "weight", "type")


@dataclass(frozen=True, slots=True, kw_only=True)
class Meant:
    """What a column of a condition is."""

    owner: NodeType | EdgeType
    """The type whose column it is: the row's own, or the one of an edge's end."""
    feature: Feature | None
    """None: a row's own ``id``, ``weight``, ``type``, ``src`` or ``dst``."""

    @property
    def kind(self) -> str:
        """``number``, ``bytes``, ``ragged`` or ``type``."""
        return "number" if self.feature is None or self.feature.kind == "dense" else self.feature.kind


def bound(condition: Condition, schema: Schema, element: int, type_id: int) -> Tree:
    """A condition as it is of the rows of one type.

    Parameters
    ----------
    condition : Condition
    schema : Schema
    element : int
        1 of nodes, 2 of edges.
    type_id : int

    Returns
    -------
    Tree
        Without tests of ``type``: they are so or not so, and what that decides is folded in, so that a type needs only those
        columns that are asked of it.

    Raises
    ------
    NotFound
        Where a feature or type is not there; the message has the place.
    InvalidRequest
        Where a column can not be tested so.
    """
    return _bound(_Binding(condition=condition, schema=schema, element=element, type_id=type_id), condition.tree)


def meant(schema: Schema, element: int, type_id: int, column: Column) -> Meant:
    """What a column is of the rows of a type; NotFound where it is nothing."""
    owner: NodeType | EdgeType = schema.node_types[type_id] if element == NODE else schema.edge_types[type_id]
    if column.of:
        if not isinstance(owner, EdgeType):
            raise NotFound(f"a node has no {column.of}; only edges have ends")
        owner = schema.node_types[schema.node_type_id(owner.src_type if column.of == "src" else owner.dst_type)]
    own = _OF_EDGES if isinstance(owner, EdgeType) else _OF_NODES
    return Meant(owner=owner, feature=None if not column.quoted and column.name in own else owner.feature(column.name))


def place_of(column: Column) -> str | None:
    """Where a column of an edge is kept: "" with its features, ``src`` or ``dst`` with that end's; None: with the edge itself, at both ends."""
    own = not column.quoted
    if column.of:
        return None if own and column.name == "id" else column.of
    return None if own and column.name in ("id", "src", "dst", "weight") else ""


def kept_near(edge_type: EdgeType, term: Term) -> bool:
    """Whether a term reads features that an edge type keeps beside its edges, at both ends, and nothing else."""
    return all(not column.of and column.name in edge_type.indexed for column in term.columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Binding:
    condition: Condition
    schema: Schema
    element: int
    type_id: int

    def meant(self, column: Column) -> Meant:
        try:
            return meant(self.schema, self.element, self.type_id, column)
        except NotFound as error:
            raise absent(self.condition.text, column.at, error.message) from error

    def wrong(self, column: Column, found: str, expected: str) -> InvalidRequest:
        return wrong(self.condition.text, column.at, f"{column}, {found}", expected)


def _bound(binding: _Binding, tree: Tree) -> Tree:
    if isinstance(tree, Always):
        return tree
    if isinstance(tree, Term):
        return _term(binding, tree)
    found: list[Tree] = []
    refused: AsterismError | None = None
    for each in tree.of:
        try:
            found.append(_bound(binding, each))
        except (InvalidRequest, NotFound) as error:  # nothing to this type where the rest decides without it
            refused = refused or error
    tree_of_type = combined(tree.word, found) if found else Always(holds=True)
    if refused is not None and not (isinstance(tree_of_type, Always) and found and tree_of_type.holds == (tree.word == "or")):
        raise refused
    return tree_of_type


def _term(binding: _Binding, term: Term) -> Tree:
    left = binding.meant(term.left)
    if binding.schema.named and _is_node_id(binding, term.left, left):
        term = _by_id(binding, term)
    if left.feature is None and term.left.name == "type":
        return Always(holds=_of_type(binding, term, left.owner))
    if term.word == "null":
        whole = left.feature is None or (left.kind == "number" and left.feature.dtype[:5] != "float")
        return Always(holds=False) if whole else _checked(binding, term, term.left, left, of_one=False)
    tree = _checked(binding, term, term.left, left)
    for operand in term.right:
        if isinstance(operand, Column):
            other = binding.meant(operand)
            if other.kind != "number" or left.kind != "number" or (other.feature is None and operand.name == "type"):
                raise binding.wrong(operand, "beside another column", "numbers on both sides")
            if binding.element == EDGE and place_of(operand) != place_of(term.left):
                raise binding.wrong(operand, f"beside {term.left}", "two features of the edge, or two of the same end: others are kept apart")
            _checked(binding, term, operand, other)
        elif isinstance(operand.value, str) != (left.kind == "bytes"):
            raise binding.wrong(term.left, f"{left.kind}s" if left.kind == "number" else left.kind, f"no comparison with {operand}")
    return tree


def _is_node_id(binding: _Binding, column: Column, found: Meant) -> bool:
    """Whether a column is the id of a node: the row's own, or that of an edge's end."""
    if found.feature is not None:
        return False
    return column.name in ("src", "dst") or (column.name == "id" and (bool(column.of) or binding.element == NODE))


def _by_id(binding: _Binding, term: Term) -> Term:
    """A test of a node's name as one of its id."""
    if not any(isinstance(each, Literal) and isinstance(each.value, str) for each in term.right):
        return term
    if term.word not in ("==", "!=", "in"):
        raise binding.wrong(term.left, "the name of a node", "==, != or 'in': names have no order")
    try:
        ids = tuple(
            Literal(value=id_of(each.value, binding.schema.salt)) if isinstance(each, Literal) and isinstance(each.value, str) else each
            for each in term.right
        )
    except InvalidRequest as error:
        at = term.left.at + 1
        raise InvalidRequest(f"condition {binding.condition.text!r}, character {at}: {error.message}", Place(line=1, column=at)) from error
    return replace(term, right=ids)


def _checked(binding: _Binding, term: Term, column: Column, found: Meant, *, of_one: bool = True) -> Tree:
    """The term; InvalidRequest where this column of it can not be tested so. ``of_one``: one value of each row is looked at."""
    feature = found.feature
    shape = () if feature is None else feature.shape
    values = math.prod(shape)
    if column.element is not None and (not shape or column.element >= values):
        raise binding.wrong(column, f"a feature of shape {list(shape)}" if shape else "one value", f"[0] to [{values - 1}]" if shape else "no [ ]")
    if shape and column.element is None:
        raise binding.wrong(column, f"a feature of shape {list(shape)}", f"one of its values, {column}[0] to {column}[{values - 1}]")
    if of_one and found.kind == "ragged":
        raise binding.wrong(column, "a list for each row", "'is null' or 'is not null'")
    if of_one and found.kind == "bytes" and term.word not in ("==", "!=", "in"):
        raise binding.wrong(column, "a text", "==, !=, 'in' or 'is null'")
    return term


def _of_type(binding: _Binding, term: Term, owner: NodeType | EdgeType) -> bool:
    """Whether a test of ``type`` is so for the rows of a type."""
    if term.word not in ("==", "!=", "in") or not all(isinstance(each, Literal) and isinstance(each.value, str) for each in term.right):
        raise binding.wrong(term.left, "the name of a type", "==, != or 'in', with names")
    named = [str(each.value) for each in term.right if isinstance(each, Literal)]
    types: Sequence[NodeType | EdgeType] = binding.schema.node_types if isinstance(owner, NodeType) else binding.schema.edge_types
    of_each = [{kind.name, kind.relation} if isinstance(kind, EdgeType) else {kind.name} for kind in types]
    for name in named:
        if not any(name in names for names in of_each):
            raise absent(binding.condition.text, term.left.at, f"no type {name!r}; there are {', '.join(t.name for t in types)}")
    own = {owner.name, owner.relation} if isinstance(owner, EdgeType) else {owner.name}
    return any(name in own for name in named) != (term.word == "!=")


def absent(text: str, at: int, said: str) -> NotFound:
    """The error of what a place of a condition names, and is not there."""
    return NotFound(f"condition {text!r}, character {at + 1}: {said}", Place(line=1, column=at + 1))
