"""Draws and reads of statements, as the calls of a graph that they stand for."""

from __future__ import annotations

from dataclasses import dataclass

from asterism.graph import Graph
from asterism_proto.errors import AsterismError
from graphd.statements import yielding
from graphd.statements.asked import Asked, asked_of
from graphd.statements.binding import Bindings
from graphd.statements.calls import CALLS
from graphd.statements.faults import placed
from graphd.statements.features import Features
from graphd.statements.records import Draw, Limit, Order
from graphd.statements.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a statement gave."""

    table: Table
    kind: str
    version: int = 0
    seed: int | None = None
    token: str = ""
    plan: str = ""


def run(draw: Draw, graph: Graph, bindings: Bindings, *, seed: int | None, version: int | None) -> Ran:
    """What a draw or read gives.

    Parameters
    ----------
    draw : Draw
    graph : Graph
        Over this graphd's own handlers.
    bindings : Bindings
    seed, version : int, optional
        Where the statement names none.

    Raises
    ------
    InvalidRequest, NotFound
        With the place in the statement where it is something written there that is wrong.
    """
    asked = asked_of(draw, graph, bindings, seed=seed, version=version)
    try:
        rows, sample = CALLS[draw.kind](asked, graph)
    except AsterismError as error:
        raise _in_statement(error, asked) from error
    features = Features(graph=graph, version=rows.version, items=asked.items, nodes=asked.node_types, edges=asked.edge_types)
    table = yielding.table(rows, features, bindings)
    if draw.options.unlike:
        table = table.distinct()
    for step in draw.options.shape:
        table = shaped(table, step, bindings)
    return Ran(table=table, kind=draw.kind, version=rows.version, seed=getattr(sample, "seed", None), token=getattr(sample, "token", ""))


def shaped(table: Table, step: Order | Limit, bindings: Bindings) -> Table:
    """A table in another order, or some of its rows."""
    if isinstance(step, Limit):
        count, offset = bindings.limit(step)
        return table.taken(slice(offset, offset + count))
    return table.ordered([(name.text, falls) for name, falls in step.keys])


def _in_statement(error: AsterismError, asked: Asked) -> AsterismError:
    """An error of a call, at its place in the statement where it has one there."""
    if error.place is None or "\n" in error.message or not asked.draw.options.where:
        return error
    said = error.message.rpartition(f"character {error.place.column}: ")[2]
    condition = next((one for one in asked.conditions.values() if repr(one.text) in error.message), asked.conditions[asked.ways[0]])
    return placed(type(error), asked.bindings.text, condition.at(error.place.column - 1), said, error.place.expected)
