"""Further weights of a type from table expressions, and statistics of weights of any name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.evaluate import weight_expressions
from asterism_graphkit.random.alias_build import SUM_BLOCK
from asterism_model.schema import EdgeType, NodeType
from asterism_model.schema.graph_schema import degree_columns, resolve_degree
from asterism_model.schema.weight_tables import WeightTable
from asterism_proto.errors import InvalidRequest
from storaged.build.alias_table import WEIGHT, BlockSums, TableResult, build_table
from storaged.build.block_reader import BuildContext, Sections
from storaged.build.build_steps import StepState
from storaged.build.unit_cache import BuildUnit, InputDigest
from storaged.store import keys

if TYPE_CHECKING:
    from storaged.build.node_rows import RowMap

F32 = NDArray[np.float32]
I64 = NDArray[np.int64]

COLUMN_PREFIX = "w:"
"""Prefix of a feature in a block of edges that is the input of weights, or the time."""
MIN_NORMAL = np.float32(np.finfo(np.float32).tiny)
"""Smallest weight with full precision."""


@dataclass(slots=True)
class InvalidWeights:
    """Counts of expression values that are no valid weights, by kind."""

    negative: int = 0
    nan: int = 0
    infinite: int = 0

    def zero_invalid(self, values: F32) -> NDArray[np.bool_]:
        """Count invalid weights and set them to 0; return their mask, bool[n]."""
        nan, infinite = np.isnan(values), np.isinf(values)
        negative = (values < 0) & ~infinite
        self.nan += int(np.count_nonzero(nan))
        self.infinite += int(np.count_nonzero(infinite))
        self.negative += int(np.count_nonzero(negative))
        invalid: NDArray[np.bool_] = nan | infinite | negative
        values[invalid] = 0
        values += np.float32(0)  # -0 becomes 0, with the same bits as 0
        return invalid

    @property
    def count(self) -> int:
        """Total number of invalid weights."""
        return sum(getattr(self, field.name) for field in fields(self))


def check_weights(
    context: BuildContext,
    owner: NodeType | EdgeType,
    table: WeightTable,
    values: F32,
    invalid: InvalidWeights,
    ids: I64,
) -> None:
    """Turn an expression's values into weights, in place.

    Raises
    ------
    InvalidRequest
        For the first invalid value, unless the table sets invalid values to 0.
    """
    original = values.copy() if table.invalid == "fail" else values
    invalid_mask = invalid.zero_invalid(values)
    if table.invalid == "fail" and invalid_mask.any():
        position = int(np.argmax(invalid_mask))
        element = "node" if isinstance(owner, NodeType) else "edge"
        raise InvalidRequest(
            f"part {context.part}, {element} type {owner.name!r}, {element} {ids[position]}: "
            f"weight {table.name!r} is {original[position]} ({table.expression}): expected a "
            "finite float32, 0 or more; write another value, or create the space with `invalid: "
            "zero` for this table"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightSummary:
    """Counts and sums of weights of one type in one partition: fields of `PartitionStats`."""

    zero: int = 0
    subnormal: int = 0
    squares: float = 0.0
    largest: float = 0.0


def summarize_weights(
    weights: F32 | None, live: NDArray[np.uint8], rows: int, count: int
) -> WeightSummary:
    """Summarize the weights of a type, in row order.

    Parameters
    ----------
    weights : float32[rows] or None
        None means 1 for every live row.
    live : uint8[rows] or uint8[0]
        Flags of the live rows; empty if all rows are live.
    rows, count : int
        Number of rows, and of live rows.
    """
    if weights is None:
        return WeightSummary(squares=float(count), largest=1.0 if count else 0.0)
    zero, subnormal, largest = 0, 0, 0.0
    squares = BlockSums()
    for low in range(0, rows, SUM_BLOCK):
        chunk = weights[low : low + SUM_BLOCK]
        if live.size:
            chunk = chunk[live[low : low + SUM_BLOCK] > 0]
        zero += int(np.count_nonzero(chunk == 0))
        subnormal += int(np.count_nonzero((chunk > 0) & (chunk < MIN_NORMAL)))
        largest = max(largest, float(chunk.max(initial=0)))
        squares.add(chunk.astype(np.float64) ** 2)
    return WeightSummary(zero=zero, subnormal=subnormal, squares=squares.total(), largest=largest)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightResult:
    """Result of building the weights of one name: their table and statistics."""

    name: str
    table: TableResult
    anomalies: StepState
    """Fields of `PartitionStats`."""

    @classmethod
    def from_state(cls, state: StepState, name: str = WEIGHT) -> WeightResult:
        """Create from the state that `build_weights` returned."""
        return cls(name=name, table=TableResult(**state["table"]), anomalies=state["odd"])

    def stats_fields(self) -> dict[str, Any]:
        """Return the fields of `PartitionStats` that these weights determine."""
        return {**self.table.stats_fields(self.name), **self.anomalies}


def build_weights(
    context: BuildContext,
    invalid: InvalidWeights,
    *,
    name: str,
    count: int,
    weights: F32 | None,
    live: NDArray[np.uint8],
    rows: int,
    **table_options: Any,
) -> StepState:
    """Build the table of weights that are already written, and summarize them.

    Parameters
    ----------
    context : BuildContext
    invalid : InvalidWeights
        Counts of invalid values of the weights' expression.
    count : int
        Number of live rows.
    name, weights, live, rows, **table_options
        As in `build_table`.
    """
    table = build_table(context, name=name, weights=weights, live=live, rows=rows, **table_options)
    stats = context.steps.run(
        f"{name}.weight_stats",
        lambda: asdict(summarize_weights(weights, live, rows, count)),
        rows=rows,
    )
    return {
        "table": asdict(table),
        "odd": {**stats, **asdict(invalid), "zero": stats["zero"] - invalid.count},
    }


def manifest_tables(
    tables: Sequence[WeightTable], extra_weights: Sequence[WeightResult]
) -> dict[str, Any]:
    """Return the manifest entry of a type's tables, or {} if there are none."""
    entries = [
        {"name": table.name, "size": result.table.size, "total": result.table.weight}
        for table, result in zip(tables, extra_weights, strict=True)
    ]
    return {"tables": entries} if entries else {}


def build_node_weights(
    context: BuildContext, type_id: int, rows: RowMap, *inputs: object
) -> Iterator[WeightResult]:
    """Build the weights of every table of a node type, and their alias tables.

    Each table is one unit.

    Parameters
    ----------
    context : BuildContext
    type_id : int
    rows : RowMap
        Rows of the type. Its own weights and features must be written.
    inputs : plain values
        Digests of the written weights and features.
    """
    node_type = context.task.schema.node_types[type_id]
    for i, table in enumerate(node_type.tables):
        context.progress.phase(f"weights {node_type.name} {table.name}")
        unit = BuildUnit(
            name=f"n{type_id}.w{i}",
            digest=context.unit_input(
                "node weights", weight_inputs(context, type_id, table), *inputs
            ).digest(),
            files=(f"n{type_id}.w{i}.*",),
            tables=((keys.B1, type_id, table.name),),
        )
        yield WeightResult.from_state(
            context.units.make(unit, partial(_node_table, context, type_id, rows, i)), table.name
        )


def weight_inputs(context: BuildContext, type_id: int, table: WeightTable) -> object:
    """Return the input of the weights of a node table, in addition to the nodes.

    It consists of the table, and of the degrees that its expression uses.
    """
    degrees = _degrees(context, type_id, table)
    return (
        [
            asdict(table),
            *(
                InputDigest().add_array(indptr).digest()
                for offsets in degrees.values()
                for indptr in offsets
            ),
        ]
        if degrees
        else asdict(table)
    )


def _degrees(context: BuildContext, type_id: int, table: WeightTable) -> dict[str, list[I64]]:
    """Return the degrees that a table uses, as offsets int64[rows + 1].

    A degree is the sum over the returned adjacencies.
    """
    schema, offsets = context.task.schema, {}
    for column in degree_columns(schema.node_types[type_id], table.parsed_expression.columns):
        incoming, edge_types = resolve_degree(schema, schema.node_types[type_id], column)
        offsets[column] = [
            context.image.map(f"e{edge_type}.{'in' if incoming else 'out'}.indptr")
            for edge_type in edge_types
        ]
    return offsets


def _node_table(context: BuildContext, type_id: int, rows: RowMap, i: int) -> StepState:
    name, table = f"n{type_id}.w{i}", context.task.schema.node_types[type_id].tables[i]
    invalid = InvalidWeights(
        **context.steps.run(
            f"{name}.weights",
            partial(_evaluate_table, context, type_id, rows, table, name),
            rows=rows.rows,
        )
    )
    return build_weights(
        context,
        invalid,
        name=name,
        kind=0,
        type_id=type_id,
        rows=rows.rows,
        count=rows.count,
        weights=context.image.map(f"{name}.weights"),
        live=rows.live,
        ids_of=rows.ids_of,
        weight_name=table.name,
        keyed=not rows.dense,
    )


def _evaluate_table(
    context: BuildContext, type_id: int, rows: RowMap, table: WeightTable, name: str
) -> StepState:
    """Evaluate one table's expression at every row; rows that are not live get 0."""
    node_type, parsed = context.task.schema.node_types[type_id], table.parsed_expression
    columns: dict[str, NDArray[Any]] = {}
    for i, feature in enumerate(node_type.features):
        if feature.name in parsed.columns:
            columns[feature.name] = context.image.map(f"n{type_id}.c{i}.values")
    columns["weight"] = (
        context.image.map(f"n{type_id}.weights")
        if node_type.weighted
        else np.broadcast_to(np.float32(1), (rows.rows,))
    )
    degrees = _degrees(context, type_id, table)
    out, invalid = (
        context.image.create(f"{name}.weights", np.float32, (rows.rows,)),
        InvalidWeights(),
    )
    for low in range(0, rows.rows, SUM_BLOCK):
        high = min(low + SUM_BLOCK, rows.rows)
        chunk = {column: array[low:high] for column, array in columns.items()}
        chunk |= {
            column: np.sum([np.diff(indptr[low : high + 1]) for indptr in offsets], axis=0)
            for column, offsets in degrees.items()
        }
        values = weight_expressions.evaluate_weights(parsed, chunk, high - low)
        if rows.live.size:
            values[rows.live[low:high] == 0] = 0
        check_weights(context, node_type, table, values, invalid, _ids(rows, low, high))
        out[low:high] = values
    return asdict(invalid)


def _ids(rows: RowMap, low: int, high: int) -> I64:
    ids: I64 = rows.ids_of(np.arange(low, high))
    return ids


def edge_weight_values(edge_type: EdgeType, sections: Sections, own_weights: F32) -> Iterator[F32]:
    """Yield the values of every table of an edge type at each edge of a block.

    They are not checked as weights yet, since an edge may be deleted by the commit watermark.
    """
    columns: Mapping[str, NDArray[Any]] = {
        "weight": own_weights,
        **{
            name: sections.get(f"{COLUMN_PREFIX}{name}", np.zeros(own_weights.size, np.float32))
            for name in edge_type.weight_columns
        },
    }
    for table in edge_type.tables:
        yield weight_expressions.evaluate_weights(
            table.parsed_expression, columns, own_weights.size
        )
