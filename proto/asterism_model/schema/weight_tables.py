"""Weight tables: named weights of a type, computed from its columns by an expression."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from asterism_model.schema.features import RESERVED_NAMES, Feature
from asterism_model.validation import (
    as_mapping,
    check_distinct,
    check_keys,
    enum_name,
    validate_name,
)
from asterism_model.weight_expressions import Expression, parse
from asterism_proto.errors import InvalidRequest, NotFound
from asterism_proto.v1 import common_pb2 as common_pb

DEGREE_COLUMNS = {"in_degree": True, "out_degree": False}
"""Degree columns of expressions over nodes; True for those that count incoming edges.

A suffix limits the degree to one edge type, as in ``in_degree:buys``.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightTable:
    """Additional weights of a type. Sampling selects them by name."""

    name: str
    expression: str
    """Expression over ``weight``, scalar dense features and, for nodes, degrees.

    See `asterism_model.weight_expressions` and `DEGREE_COLUMNS`.
    """
    invalid: str = "fail"
    """Treatment of negative, infinite and NaN results: ``fail`` or ``zero``.

    ``fail``: the build fails. ``zero``: the row gets weight 0, is counted in the statistics and is
    never sampled.
    """

    def __post_init__(self) -> None:
        validate_name("table", self.name)
        if self.name in RESERVED_NAMES:
            raise InvalidRequest(f"table {self.name!r}: the name is reserved; choose another name")
        if self.invalid not in ("fail", "zero"):
            raise InvalidRequest(
                f"table {self.name!r}: invalid {self.invalid!r}: expected fail or zero"
            )
        try:
            parse(self.expression)
        except InvalidRequest as error:
            raise InvalidRequest(f"table {self.name!r}: {error}") from error

    @property
    def parsed_expression(self) -> Expression:
        """The parsed expression."""
        return parse(self.expression)


def is_degree(column: str) -> bool:
    """Return whether a name denotes a degree; a feature of the same name takes precedence."""
    return column.partition(":")[0] in DEGREE_COLUMNS


def find_table(owner: str, tables: Sequence[WeightTable], name: str) -> WeightTable:
    """Return the table called ``name``; raise NotFound with the names of all tables."""
    for table in tables:
        if table.name == name:
            return table
    available = ", ".join(repr(table.name) for table in tables) or "no named ones"
    raise NotFound(
        f"{owner} has no weights {name!r}; weights: {available}, and '' for its own weight"
    )


def check_tables(
    owner: str, tables: Sequence[WeightTable], features: Sequence[Feature], *, nodes: bool
) -> None:
    """Check the weight tables of a type.

    Raises
    ------
    InvalidRequest
        If two tables share a name, or an expression refers to a column that is not a scalar number
        of the type. Degrees are allowed for node types.
    """
    check_distinct(f"{owner}: table", [table.name for table in tables])
    scalars = {f.name for f in features if f.kind == "dense" and not f.shape} | {"weight"}
    for table in tables:
        for column in table.parsed_expression.columns:
            if column not in scalars and not (
                nodes and is_degree(column) and column not in {feature.name for feature in features}
            ):
                features_by_name = {feature.name: feature for feature in features}
                problem = (
                    "is not a scalar number" if column in features_by_name else "does not exist"
                )
                raise InvalidRequest(
                    f"{owner}: table {table.name!r}: expression {table.expression!r}: column "
                    f"{column!r} {problem}; columns: "
                    f"{', '.join(sorted(scalars))}{', in_degree, out_degree' * nodes}"
                )


def tables_from_dict(label: str, data: Any) -> tuple[WeightTable, ...]:
    """Return weight tables from plain values.

    Parameters
    ----------
    label : str
        The owner of the tables, as text for messages.
    data : mapping of str to str or mapping
        ``{popular: "pow(clicks, 0.75)"}``, or ``{popular: {expression: .., invalid: zero}}``.
    """
    tables = []
    for name, value in as_mapping(f"{label} tables", data).items():
        spec = (
            {"expression": value}
            if isinstance(value, str)
            else as_mapping(f"{label}: table {name!r}", value)
        )
        check_keys(f"{label}: table {name!r}", spec, {"expression", "invalid"})
        try:
            tables.append(
                WeightTable(
                    name=str(name),
                    expression=spec.get("expression", ""),
                    invalid=str(spec.get("invalid", "fail")),
                )
            )
        except InvalidRequest as error:
            raise InvalidRequest(f"{label}: {error}") from error
    return tuple(tables)


def tables_to_dict(tables: Sequence[WeightTable]) -> dict[str, Any]:
    """Return ``{"tables": ..}`` in the form of `tables_from_dict`; {} if there are no tables."""
    plain = {
        t.name: t.expression
        if t.invalid == "fail"
        else {"expression": t.expression, "invalid": t.invalid}
        for t in tables
    }
    return {"tables": plain} if plain else {}


def tables_to_proto(tables: Sequence[WeightTable]) -> list[common_pb.WeightTable]:
    """Return weight tables as messages."""
    return [
        common_pb.WeightTable(name=t.name, expression=t.expression, invalid=t.invalid.upper())
        for t in tables
    ]


def tables_from_proto(messages: Iterable[common_pb.WeightTable]) -> tuple[WeightTable, ...]:
    """Return the weight tables in messages."""
    return tuple(
        WeightTable(
            name=t.name,
            expression=t.expression,
            invalid=enum_name(common_pb.Invalid, t.invalid, "fail"),
        )
        for t in messages
    )
