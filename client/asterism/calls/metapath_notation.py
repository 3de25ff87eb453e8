"""Parser for metapaths in PGLBox notation: ``u2click2i-i2click2u;i2click2u-u2click2i``.

Metapaths are separated by ``;`` and steps by ``-``. A step is ``a2b``, or ``a2relation2b`` if there
are several relations between the two types. The text before its first ``2`` is the node type that
it starts at. The reverse of an edge type is a separate step, if the space has it (loads create it
with `symmetry` or `reverse`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

from asterism_model.schema import EdgeType, Schema
from asterism_proto.errors import InvalidRequest

__all__ = ["Metapath", "parse_metapaths", "parse_type_pairs"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metapath(Sequence[str]):
    """Steps of a walk, for the ``metapath`` argument of `Graph.random_walk`."""

    text: str
    """The metapath as it was written."""
    steps: tuple[str, ...]
    """Edge type of each step, as a triple."""
    node_types: tuple[str, ...]
    """Node type at which each step starts, then the one at which the last step ends."""

    @property
    def start(self) -> str:
        """Node type at which walks start."""
        return self.node_types[0]

    @property
    def closed(self) -> bool:
        """True if the metapath ends where it starts, so that a longer walk can repeat it."""
        return self.node_types[0] == self.node_types[-1]

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[str]:
        return iter(self.steps)

    @overload
    def __getitem__(self, step: int) -> str: ...

    @overload
    def __getitem__(self, step: slice) -> Sequence[str]: ...

    def __getitem__(self, step: int | slice) -> str | Sequence[str]:
        return self.steps[step]


def parse_metapaths(schema: Schema, text: str) -> tuple[Metapath, ...]:
    """Parse metapaths and resolve their steps in a schema.

    Parameters
    ----------
    schema : Schema
        Schema of the graph space to walk.
    text : str
        One metapath or several: ``u2click2i-i2click2u;i2click2u-u2click2i``. Spaces around words
        are ignored. A name with a ``-`` cannot be written in this notation; a name with a ``2``
        can, except as the first node type.

    Returns
    -------
    tuple of Metapath
        The metapaths, in the order of the text.

    Raises
    ------
    InvalidRequest
        If a step is malformed, its types are not in the schema, several edge types match it, or it
        does not start where the step before ends. The message names the step and its position.

    Examples
    --------
    >>> from asterism_model.schema import EdgeType, NodeType
    >>> types = (NodeType(name="u"), NodeType(name="i"))
    >>> edges = (
    ...     EdgeType(src_type="u", relation="click", dst_type="i"),
    ...     EdgeType(src_type="i", relation="click", dst_type="u"),
    ... )
    >>> schema = Schema(node_types=types, edge_types=edges)
    >>> [path.steps for path in parse_metapaths(schema, "u2click2i-i2u; i2u")]
    [('u:click:i', 'i:click:u'), ('i:click:u',)]
    """
    metapaths: list[Metapath] = []
    offset = 0
    for path in text.split(";"):
        if not path.strip():
            raise InvalidRequest(
                f"metapath {len(metapaths) + 1} of {text!r}: expected steps such as u2click2i, "
                "found none; leave out a ';'"
            )
        metapaths.append(_parse_metapath(schema, path, text, offset, len(metapaths) + 1))
        offset += len(path) + 1
    return tuple(metapaths)


def _parse_metapath(schema: Schema, path: str, text: str, offset: int, number: int) -> Metapath:
    steps: list[EdgeType] = []
    for token in path.split("-"):
        step = token.strip()
        location = (
            f"metapath {number} of {text!r}, step {len(steps) + 1} ({step!r}, character "
            f"{offset + len(token) - len(token.lstrip()) + 1})"
        )
        edge = _find_edge_type(schema, step, location)
        if steps and steps[-1].dst_type != edge.src_type:
            raise InvalidRequest(
                f"{location}: expected a step that starts at {steps[-1].dst_type!r}, where the "
                f"step before ends; it starts at {edge.src_type!r}"
            )
        steps.append(edge)
        offset += len(token) + 1
    return Metapath(
        text=path.strip(),
        steps=tuple(edge.name for edge in steps),
        node_types=(*(edge.src_type for edge in steps), steps[-1].dst_type),
    )


def _find_edge_type(schema: Schema, step: str, location: str) -> EdgeType:
    """Return the one edge type that a step matches."""
    src, separator, rest = step.partition("2")
    if not (src and separator and rest):
        raise InvalidRequest(f"{location}: expected a2b or a2relation2b")
    types = [node_type.name for node_type in schema.node_types]
    if src not in types:
        raise InvalidRequest(
            f"{location}: expected a node type, one of {', '.join(types)}, found {src!r}"
        )
    # A name may itself contain a 2, so every 2 is a candidate for the end of the relation.
    ends = [
        (rest[:position], rest[position + 1 :])
        for position in range(1, len(rest))
        if rest[position] == "2"
    ]
    outgoing = [edge for edge in schema.edge_types if edge.src_type == src]
    with_relation = [edge for edge in outgoing if (edge.relation, edge.dst_type) in ends]
    candidates = with_relation or [edge for edge in outgoing if edge.dst_type == rest]
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        raise InvalidRequest(
            f"{location}: expected one edge type, found "
            f"{' and '.join(edge.name for edge in candidates)}; write the step with its relation, "
            f"such as {_format_edge_type(candidates[0])}"
        )
    raise InvalidRequest(f"{location}: expected an edge type; {_hint(schema, src, ends, rest)}")


def _hint(schema: Schema, src: str, ends: Sequence[tuple[str, str]], rest: str) -> str:
    reversed_edges = [
        edge
        for edge in schema.edge_types
        if edge.dst_type == src
        and ((edge.relation, edge.src_type) in ends or edge.src_type == rest)
    ]
    if reversed_edges:
        return (
            f"there is {reversed_edges[0].name} in the other direction: load it with `reverse` or "
            "`symmetry` to walk it both ways"
        )
    choices = ", ".join(
        _format_edge_type(edge) for edge in schema.edge_types if edge.src_type == src
    )
    return f"from {src!r} there is {choices}" if choices else f"no edge type starts at {src!r}"


def _format_edge_type(edge: EdgeType) -> str:
    return f"{edge.src_type}2{edge.relation}2{edge.dst_type}"


def parse_type_pairs(schema: Schema, text: str) -> tuple[tuple[str, str], ...]:
    """Parse pairs of node types in the notation of ``excluded_train_pair``: ``w2q;q2t``.

    Parameters
    ----------
    schema : Schema
        Schema with the types.
    text : str
        Pairs separated by ``;``; empty for none.

    Returns
    -------
    tuple of (str, str)
        The pairs.

    Raises
    ------
    InvalidRequest
        If a pair is malformed, or a type is not in the schema.
    """
    types = [node_type.name for node_type in schema.node_types]
    pairs: list[tuple[str, str]] = []
    for number, part in enumerate(text.split(";") if text.strip() else (), 1):
        pair = part.strip()
        halves = [
            (pair[:position], pair[position + 1 :])
            for position in range(1, len(pair))
            if pair[position] == "2"
        ]
        matching = [(a, b) for a, b in halves if a in types and b in types]
        if not matching:
            raise InvalidRequest(
                f"pair {number} ({pair!r}) of {text!r}: expected two node types as a2b; "
                f"there are {', '.join(types)}"
            )
        pairs.append(matching[0])
    return tuple(pairs)
