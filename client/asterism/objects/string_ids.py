"""Conversion of tables for spaces with ``ids: string``: labels become names of nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.objects.graph_tables import ArrayColumn, EdgeTable, GraphTables, NodeTable, to_array
from asterism.records.samples import Ids
from asterism_model import string_ids as contract
from asterism_proto.errors import InvalidRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class _NodeNames:
    """Names of the nodes of a type."""

    names: contract.StringColumn
    ids: Ids
    ids_of: Callable[[Any], Ids]
    """Function from a table's nodes (numbers, or positions of labels) to ids."""


def with_string_ids(tables: GraphTables, salt: int) -> GraphTables:
    """Convert tables to string ids: labels become names, and ids are hashed from these.

    The name of an integer label is its decimal text.

    Parameters
    ----------
    tables : GraphTables
        Tables with integer ids.
    salt : int
        Salt of the hash.

    Returns
    -------
    GraphTables
        Tables with hashed ids and name columns.

    Raises
    ------
    InvalidRequest
        If a label is neither a string nor an integer, or is not a valid name.
    """
    names_by_type = {table.name: _node_names(table, tables.names, salt) for table in tables.nodes}
    nodes = tuple(_node_with_names(table, names_by_type[table.name]) for table in tables.nodes)
    edges = tuple(_edge_with_ids(table, names_by_type) for table in tables.edges)
    return replace(tables, nodes=nodes, edges=edges, names={}, salt=salt)


def _node_names(table: NodeTable, names: Mapping[str, NDArray[Any]], salt: int) -> _NodeNames:
    description = f"node type {table.name!r}: node"
    if table.name in names:
        labels = names[table.name].tolist()
        odd = next((label for label in labels if not isinstance(label, str)), None)
        if odd is not None:
            raise InvalidRequest(
                f"{description} {odd!r}: expected a string or an integer, because of ids='string'; "
                "convert the labels"
            )
        encoded = contract.encode_strings(description, labels)
        ids = contract.hash_strings(*encoded, salt)
        return _NodeNames(names=encoded, ids=ids, ids_of=lambda positions: ids[to_array(positions)])

    def ids_of(numbers: Any) -> Ids:
        unique, inverse = np.unique(to_array(numbers), return_inverse=True)
        ids: Ids = contract.hash_strings(*_integer_texts(description, unique), salt)[inverse]
        return ids

    encoded = _integer_texts(
        description, np.arange(table.count) if table.ids is None else table.ids
    )
    return _NodeNames(names=encoded, ids=contract.hash_strings(*encoded, salt), ids_of=ids_of)


def _integer_texts(description: str, numbers: NDArray[Any]) -> contract.StringColumn:
    return contract.encode_strings(description, numbers.astype(np.str_).tolist())


def _node_with_names(table: NodeTable, node_names: _NodeNames) -> NodeTable:
    if contract.ID_COLUMN in table.features:
        raise InvalidRequest(
            f"node type {table.name!r}: attribute {contract.ID_COLUMN!r}: expected another name, "
            "because this one holds the string ids; rename it with `rename`"
        )
    return replace(
        table,
        ids=node_names.ids,
        features={
            **table.features,
            contract.ID_COLUMN: ArrayColumn(dtype="bytes", values=node_names.names),
        },
    )


def _edge_with_ids(table: EdgeTable, node_names: Mapping[str, _NodeNames]) -> EdgeTable:
    return replace(
        table,
        src=node_names[table.triple[0]].ids_of(table.src),
        dst=node_names[table.triple[2]].ids_of(table.dst),
    )
