"""Text and HTML representations of graphs: lines or tables of their types."""

from __future__ import annotations

from collections.abc import Iterable

from asterism.records.versions import VersionInfo
from asterism_model.html import table
from asterism_model.schema import EdgeType, NodeType, Schema

MAX_TEXT_CHARS = 120
"""Maximum number of characters of a text in a one-line representation."""
MAX_SHOWN_TYPES = 20
"""Maximum number of types in a line of text; HTML shows all."""


def graph_lines(schema: Schema, info: VersionInfo | None) -> list[str]:
    """Return a line of node types and one of edge types, with counts if a version is known."""
    nodes = [
        _describe_type(owner.name, _count(info, "NODE", type_id), owner)
        for type_id, owner in enumerate(schema.node_types)
    ]
    edges = [
        _describe_type(owner.name, _count(info, "EDGE", type_id), owner)
        for type_id, owner in enumerate(schema.edge_types)
    ]
    return [f"  nodes: {_join_limited(nodes)}", f"  edges: {_join_limited(edges)}"]


def graph_html(title: str, schema: Schema, info: VersionInfo | None) -> str:
    """Return an HTML table of node types and one of edge types, with counts if known."""
    headers = [
        "type",
        *(("count", "weight") if info is not None else ()),
        "weighted",
        "features",
        "tables",
    ]

    def rows(element: str, owners: Iterable[NodeType | EdgeType]) -> list[list[object]]:
        return [
            [
                owner.name,
                *(
                    (info.count(element, type_id), info.weight(element, type_id))
                    if info is not None
                    else ()
                ),
                "yes" if owner.weighted else "no",
                ", ".join(_columns(owner)),
                ", ".join(f"{weights.name} = {weights.expression}" for weights in owner.tables),
            ]
            for type_id, owner in enumerate(owners)
        ]

    return table(f"{title}: nodes", headers, rows("NODE", schema.node_types)) + table(
        f"{title}: edges", headers, rows("EDGE", schema.edge_types)
    )


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, such as ``2,048 rows``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def short_text(value: object) -> str:
    """Return the repr of a value, of a string at most its first `MAX_TEXT_CHARS` characters."""
    if isinstance(value, str) and len(value) > MAX_TEXT_CHARS:
        return f"{value[:MAX_TEXT_CHARS]!r}..."
    return repr(value)


def _count(info: VersionInfo | None, element: str, type_id: int) -> int | None:
    return None if info is None else info.count(element, type_id)


def _columns(owner: NodeType | EdgeType) -> list[str]:
    return [
        (
            f"{feature.name} {feature.dtype if feature.kind == 'dense' else feature.kind}"
            f"{list(feature.shape) or ''}"
        )
        for feature in owner.features
    ]


def _describe_type(name: str, count: int | None, owner: NodeType | EdgeType) -> str:
    columns = ", ".join(_columns(owner))
    return f"{name}{'' if count is None else f' {count:,}'}{f' ({columns})' if columns else ''}"


def _join_limited(names: list[str]) -> str:
    more = len(names) - MAX_SHOWN_TYPES
    return (
        "; ".join(names[:MAX_SHOWN_TYPES]) + (f"; and {more} more" if more > 0 else "")
        if names
        else "none"
    )
