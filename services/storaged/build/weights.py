"""Further weights of a type, as its tables' expressions have them, and what is found odd about weights of any name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto.degrees import counted, degrees_of
from asterism_proto.errors import InvalidRequest
from asterism_proto.schema import EdgeType, NodeType
from asterism_proto.tables import WeightTable
from graphkit import expression
from graphkit.alias import BLOCK
from storaged.build.source import Sections, Workplace
from storaged.build.steps import State
from storaged.build.table import WEIGHT, BlockSums, TableResult, build_table
from storaged.build.unit import Input, Unit
from storaged.store import keys

if TYPE_CHECKING:
    from storaged.build.rows import Rows

F32 = NDArray[np.float32]
I64 = NDArray[np.int64]

COLUMN = "w:"
"""In a block of edges, what begins the name of a feature that weights are made of, or that is their time."""
NORMAL = np.float32(np.finfo(np.float32).tiny)
"""The smallest weight that has all of its bits."""


@dataclass(slots=True)
class Refused:
    """Values of an expression that are no weights, by what is wrong with them."""

    negative: int = 0
    nan: int = 0
    infinite: int = 0

    def sift(self, values: F32) -> NDArray[np.bool_]:
        """Count those that are no weights and make them 0; bool[n], which they were."""
        nan, infinite = np.isnan(values), np.isinf(values)
        negative = (values < 0) & ~infinite
        self.nan += int(np.count_nonzero(nan))
        self.infinite += int(np.count_nonzero(infinite))
        self.negative += int(np.count_nonzero(negative))
        wrong: NDArray[np.bool_] = nan | infinite | negative
        values[wrong] = 0
        values += np.float32(0)  # -0 is a weight of 0, and has its bits
        return wrong

    @property
    def count(self) -> int:
        """All of them."""
        return sum(getattr(self, field.name) for field in fields(self))


def check(work: Workplace, owner: NodeType | EdgeType, table: WeightTable, values: F32, refused: Refused, ids: I64) -> None:
    """Make weights of an expression's values, in place; InvalidRequest for the first that is none, unless these are to be 0."""
    given = values.copy() if table.invalid == "fail" else values
    wrong = refused.sift(values)
    if table.invalid == "fail" and wrong.any():
        at = int(np.argmax(wrong))
        what = "node" if isinstance(owner, NodeType) else "edge"
        raise InvalidRequest(
            f"part {work.part}, {what} type {owner.name!r}, {what} {ids[at]}: weight {table.name!r} is {given[at]} ({table.expression}); a weight is "
            f"finite, not negative and fits float32: write another value, or make the space with `invalid: zero` for this table"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Hygiene:
    """What weights are like, as common.proto's Total has it."""

    zero: int = 0
    subnormal: int = 0
    squares: float = 0.0
    largest: float = 0.0


def hygiene(weights: F32 | None, live: NDArray[np.uint8], rows: int, count: int) -> Hygiene:
    """Look at the weights of a type once more, in row order.

    Parameters
    ----------
    weights : float32[rows] or None
        None is 1 for every live row.
    live : uint8[rows] or uint8[0]
        Which rows count, where some do not.
    rows, count : int
        Rows, and those that count.
    """
    if weights is None:
        return Hygiene(squares=float(count), largest=1.0 if count else 0.0)
    zero, subnormal, largest = 0, 0, 0.0
    squares = BlockSums()
    for low in range(0, rows, BLOCK):
        here = weights[low : low + BLOCK]
        if live.size:
            here = here[live[low : low + BLOCK] > 0]
        zero += int(np.count_nonzero(here == 0))
        subnormal += int(np.count_nonzero((here > 0) & (here < NORMAL)))
        largest = max(largest, float(here.max(initial=0)))
        squares.add(here.astype(np.float64) ** 2)
    return Hygiene(zero=zero, subnormal=subnormal, squares=squares.total(), largest=largest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """What the weights of one name came to: their table, and what is odd about them."""

    name: str
    table: TableResult
    odd: State
    """Fields of a `Total`."""

    @classmethod
    def of(cls, state: State, name: str = WEIGHT) -> Weighed:
        """What `weigh` gave."""
        return cls(name=name, table=TableResult(**state["table"]), odd=state["odd"])

    def total(self) -> dict[str, Any]:
        """Its share of a `Total`."""
        return {**self.table.total(self.name), **self.odd}


def weigh(work: Workplace, refused: Refused, *, name: str, count: int, weights: F32 | None, live: NDArray[np.uint8], rows: int, **more: Any) -> State:
    """Make the table of weights that are written, and look at them.

    Parameters
    ----------
    refused : Refused
        What an expression gave beside them.
    count : int
        Rows that count.
    name, weights, live, rows, more
        As of `build_table`.
    """
    made = build_table(work, name=name, weights=weights, live=live, rows=rows, **more)
    seen = work.steps.run(f"{name}.hygiene", lambda: asdict(hygiene(weights, live, rows, count)), rows=rows)
    return {"table": asdict(made), "odd": {**seen, **asdict(refused), "zero": seen["zero"] - refused.count}}


def described(tables: Sequence[WeightTable], named: Sequence[Weighed]) -> dict[str, Any]:
    """The tables of a type as the image's manifest has them; nothing where there are none."""
    entries = [{"name": table.name, "size": made.table.size, "total": made.table.weight} for table, made in zip(tables, named, strict=True)]
    return {"tables": entries} if entries else {}


def node_weights(work: Workplace, type_id: int, rows: Rows, *inputs: object) -> Iterator[Weighed]:
    """Write the weights of every table of a node type, row by row, and their alias tables, a unit each.

    Parameters
    ----------
    rows : Rows
        Of the type; its own weights and features are written.
    inputs : plain values
        Digests of what is written.
    """
    node_type = work.task.schema.node_types[type_id]
    for i, table in enumerate(node_type.tables):
        work.progress.phase(f"weights {node_type.name} {table.name}")
        unit = Unit(
            name=f"n{type_id}.w{i}",
            digest=work.input("node weights", weights_input(work, type_id, table), *inputs).digest(),
            files=(f"n{type_id}.w{i}.*",),
            tables=((keys.B1, type_id, table.name),),
        )
        yield Weighed.of(work.units.make(unit, partial(_node_table, work, type_id, rows, i)), table.name)


def weights_input(work: Workplace, type_id: int, table: WeightTable) -> object:
    """What the weights of a table of nodes follow from, beside the nodes: the table, and the degrees that it is made of."""
    degrees = _degrees(work, type_id, table)
    return [asdict(table), *(Input().array(indptr).digest() for of in degrees.values() for indptr in of)] if degrees else asdict(table)


def _degrees(work: Workplace, type_id: int, table: WeightTable) -> dict[str, list[I64]]:
    """The degrees that a table is made of, each as offsets int64[rows + 1] of the adjacencies that it is the sum of."""
    schema, found = work.task.schema, {}
    for column in degrees_of(schema.node_types[type_id], table.parsed.columns):
        incoming, edge_types = counted(schema, schema.node_types[type_id], column)
        found[column] = [work.image.map(f"e{edge_type}.{'in' if incoming else 'out'}.indptr") for edge_type in edge_types]
    return found


def _node_table(work: Workplace, type_id: int, rows: Rows, i: int) -> State:
    name, table = f"n{type_id}.w{i}", work.task.schema.node_types[type_id].tables[i]
    refused = Refused(**work.steps.run(f"{name}.weights", partial(_evaluate, work, type_id, rows, table, name), rows=rows.rows))
    return weigh(
        work,
        refused,
        name=name,
        kind=0,
        type_id=type_id,
        rows=rows.rows,
        count=rows.count,
        weights=work.image.map(f"{name}.weights"),
        live=rows.live,
        ids_of=rows.ids_of,
        weight_name=table.name,
        keyed=not rows.dense,
    )


def _evaluate(work: Workplace, type_id: int, rows: Rows, table: WeightTable, name: str) -> State:
    """Evaluate one table's expression at every row; what is dead weighs 0."""
    node_type, meant = work.task.schema.node_types[type_id], table.parsed
    columns: dict[str, NDArray[Any]] = {}
    for i, feature in enumerate(node_type.features):
        if feature.name in meant.columns:
            columns[feature.name] = work.image.map(f"n{type_id}.c{i}.values")
    columns["weight"] = work.image.map(f"n{type_id}.weights") if node_type.weighted else np.broadcast_to(np.float32(1), (rows.rows,))
    degrees = _degrees(work, type_id, table)
    out, refused = work.image.create(f"{name}.weights", np.float32, (rows.rows,)), Refused()
    for low in range(0, rows.rows, BLOCK):
        high = min(low + BLOCK, rows.rows)
        here = {column: array[low:high] for column, array in columns.items()}
        here |= {column: np.sum([np.diff(indptr[low : high + 1]) for indptr in of], axis=0) for column, of in degrees.items()}
        values = expression.weights(meant, here, high - low)
        if rows.live.size:
            values[rows.live[low:high] == 0] = 0
        check(work, node_type, table, values, refused, _ids(rows, low, high))
        out[low:high] = values
    return asdict(refused)


def _ids(rows: Rows, low: int, high: int) -> I64:
    ids: I64 = rows.ids_of(np.arange(low, high))
    return ids


def edge_weights(edge_type: EdgeType, sections: Sections, own: F32) -> Iterator[F32]:
    """The values of every table of an edge type at each edge of a block: not yet weights, for an edge may be gone by the cut."""
    columns: Mapping[str, NDArray[Any]] = {
        "weight": own,
        **{name: sections.get(f"{COLUMN}{name}", np.zeros(own.size, np.float32)) for name in edge_type.weight_columns},
    }
    for table in edge_type.tables:
        yield expression.weights(table.parsed, columns, own.size)
