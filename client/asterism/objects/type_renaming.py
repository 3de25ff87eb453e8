"""New names of the types of an object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from asterism.name_conversion import as_name
from asterism.objects.graph_tables import EdgeTable, GraphTables
from asterism.objects.read_options import parse_triple
from asterism_model.validation import validate_name
from asterism_proto.errors import InvalidRequest, NotFound

TypeKey = str | tuple[str, str, str]
"""Name of a node type, or an edge type as a triple or as ``src:relation:dst``."""
Triple = tuple[str, str, str]


def rename_types(tables: GraphTables, types: Mapping[TypeKey, str]) -> GraphTables:
    """Give types new names: node types theirs, and edge types new relations.

    Parameters
    ----------
    tables : GraphTables
        Tables with the names of the object.
    types : mapping
        New name by node type, new relation by edge type. The ends of an edge type in a key have
        the names of the object.

    Returns
    -------
    GraphTables

    Raises
    ------
    NotFound
        The object has no such type.
    InvalidRequest
        A name is not valid, or two node types would have the same one.
    """
    nodes, relations = _split_keys(tables, types)
    renamed = tuple(
        replace(table, name=_checked("node type", table.name, nodes)) for table in tables.nodes
    )
    names = [table.name for table in renamed]
    for table, name in zip(tables.nodes, names, strict=True):
        if names.count(name) > 1:
            raise InvalidRequest(
                f"types with {table.name!r}: expected different names, two node types would be "
                f"named {name!r}"
            )
    return replace(
        tables,
        nodes=renamed,
        edges=tuple(_rename_edges(table, nodes, relations) for table in tables.edges),
        names={nodes.get(name, name): labels for name, labels in tables.names.items()},
    )


def _split_keys(
    tables: GraphTables, types: Mapping[TypeKey, str]
) -> tuple[dict[str, str], dict[Triple, str]]:
    """Return the new names of node types, and the new relations of edge types."""
    triples = {table.triple for table in tables.edges}
    existing = {table.name for table in tables.nodes}
    nodes: dict[str, str] = {}
    relations: dict[Triple, str] = {}
    for key, name in types.items():
        if not isinstance(name, str):
            raise InvalidRequest(f"types[{key!r}]={name!r}: expected a string, the new name")
        if isinstance(key, str) and key not in existing and as_name(key) in existing:
            key = as_name(key)
        if isinstance(key, str) and key in existing:
            nodes[key] = name
            continue
        triple = parse_triple(key) if isinstance(key, tuple) or key.count(":") == 2 else None
        if triple is not None and triple not in triples:
            src, relation, dst = map(as_name, triple)
            triple = src, relation, dst
        if triple is None or triple not in triples:
            available = [*sorted(existing), *sorted(table.name for table in tables.edges)]
            raise NotFound(
                f"types with {key!r}: expected a type of the object, which has "
                f"{', '.join(available)}"
            )
        relations[triple] = name
    return nodes, relations


def _rename_edges(
    table: EdgeTable, nodes: Mapping[str, str], relations: Mapping[Triple, str]
) -> EdgeTable:
    src, relation, dst = table.triple
    new = {relation: relations[table.triple]} if table.triple in relations else {}
    return replace(
        table,
        triple=(
            nodes.get(src, src),
            _checked(f"edge type {table.name!r}: relation", relation, new),
            nodes.get(dst, dst),
        ),
    )


def _checked(kind: str, name: str, names: Mapping[str, str]) -> str:
    """Return the new name of a type, if it is valid."""
    new = names.get(name, name)
    try:
        return validate_name(kind, new)
    except InvalidRequest as error:
        remedy = "" if name in names else "; rename it with types={...: ...}"
        raise InvalidRequest(f"{error.message}{remedy}") from error
