"""Tables for a space whose ids are strings: nodes are called what the object calls them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.objects.tables import Column, EdgeTable, NodeTable, Tables, array_of
from asterism.records import Ids
from asterism_proto import names as contract
from asterism_proto.errors import InvalidRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """What the nodes of a type are called."""

    names: contract.Names
    ids: Ids
    of: Callable[[Any], Ids]
    """The ids of nodes by what tables call them: a number, or the place of a label."""


def called(tables: Tables, salt: int) -> Tables:
    """Tables in which nodes have their labels as names, and ids that follow from these; of whole numbers their text is the name.

    Raises
    ------
    InvalidRequest
        Where a label is no string and no whole number, or is no name.
    """
    known = {table.name: _known(table, tables.names, salt) for table in tables.nodes}
    nodes = tuple(_node(table, known[table.name]) for table in tables.nodes)
    edges = tuple(_edge(table, known) for table in tables.edges)
    return replace(tables, nodes=nodes, edges=edges, names={}, salt=salt)


def _known(table: NodeTable, names: Mapping[str, NDArray[Any]], salt: int) -> _Known:
    what = f"node type {table.name!r}: node"
    if table.name in names:
        labels = names[table.name].tolist()
        odd = next((label for label in labels if not isinstance(label, str)), None)
        if odd is not None:
            raise InvalidRequest(f'{what} {odd!r}: a {type(odd).__name__}; with ids="string" nodes are called by strings or by whole numbers')
        held = contract.encoded(what, labels)
        ids = contract.ids_of(*held, salt)
        return _Known(names=held, ids=ids, of=lambda places: ids[array_of(places)])

    def of(numbers: Any) -> Ids:
        unique, places = np.unique(array_of(numbers), return_inverse=True)
        found: Ids = contract.ids_of(*_text(what, unique), salt)[places]
        return found

    held = _text(what, np.arange(table.count) if table.ids is None else table.ids)
    return _Known(names=held, ids=contract.ids_of(*held, salt), of=of)


def _text(what: str, numbers: NDArray[Any]) -> contract.Names:
    return contract.encoded(what, numbers.astype(np.str_).tolist())


def _node(table: NodeTable, known: _Known) -> NodeTable:
    if contract.COLUMN in table.features:
        raise InvalidRequest(
            f"node type {table.name!r}: attribute {contract.COLUMN!r}: that is where names are kept; call it otherwise with `rename`"
        )
    return replace(table, ids=known.ids, features={**table.features, contract.COLUMN: Column(dtype="bytes", values=known.names)})


def _edge(table: EdgeTable, known: Mapping[str, _Known]) -> EdgeTable:
    return replace(table, src=known[table.triple[0]].of(table.src), dst=known[table.triple[2]].of(table.dst))
