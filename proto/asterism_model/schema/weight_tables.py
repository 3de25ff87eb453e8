"""Tables of further weights: what an expression makes of a type's columns, under a name that draws
choose it by.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from asterism_model.expressions import Expression, parse
from asterism_model.schema.features import RESERVED_NAMES, Feature
from asterism_model.validation import (
    as_mapping,
    check_distinct,
    check_keys,
    enum_name,
    validate_name,
)
from asterism_proto.errors import InvalidRequest, NotFound
from asterism_proto.v1 import common_pb2 as common_pb

DEGREE_COLUMNS = {"in_degree": True, "out_degree": False}
"""Degrees as columns of expressions over nodes, of one edge type as ``in_degree:buys``; True where
edges to the node are counted.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightTable:
    """Weights of a type beside its own, by a name that draws choose them with: what an expression
    makes of its columns.
    """

    name: str
    expression: str
    """Over ``weight`` and scalar dense features of the type, of nodes their degrees too: see
    `asterism_model.expressions` and `DEGREE_COLUMNS`.
    """
    invalid: str = "fail"
    """What a negative, infinite or NaN result is: ``fail``: the build ends with it, or ``zero``:
    counted, and never drawn.
    """

    def __post_init__(self) -> None:
        validate_name("table", self.name)
        if self.name in RESERVED_NAMES:
            raise InvalidRequest(
                f"table {self.name!r}: the name is reserved; call it something else"
            )
        if self.invalid not in ("fail", "zero"):
            raise InvalidRequest(
                f"table {self.name!r}: invalid {self.invalid!r}; expected fail or zero"
            )
        try:
            parse(self.expression)
        except InvalidRequest as error:
            raise InvalidRequest(f"table {self.name!r}: {error}") from error

    @property
    def parsed_expression(self) -> Expression:
        """What the expression means."""
        return parse(self.expression)


def is_degree(column: str) -> bool:
    """Return whether a column of an expression is a degree, unless a feature has this name."""
    return column.partition(":")[0] in DEGREE_COLUMNS


def find_table(owner: str, tables: Sequence[WeightTable], name: str) -> WeightTable:
    """The table called ``name`` among those of a type; NotFound says which there are."""
    for table in tables:
        if table.name == name:
            return table
    available = ", ".join(repr(table.name) for table in tables) or "none beside its own"
    raise NotFound(f"{owner} has no weights {name!r}; there are {available}, and its own under ''")


def check_tables(
    owner: str, tables: Sequence[WeightTable], features: Sequence[Feature], *, nodes: bool
) -> None:
    """InvalidRequest where two tables of a type share a name, or an expression names what is no
    number of the type; of nodes degrees are some.
    """
    check_distinct(f"{owner}: table", [table.name for table in tables])
    scalars = {f.name for f in features if f.kind == "dense" and not f.shape} | {"weight"}
    for table in tables:
        for column in table.parsed_expression.columns:
            if column not in scalars and not (
                nodes and is_degree(column) and column not in {feature.name for feature in features}
            ):
                features_by_name = {feature.name: feature for feature in features}
                problem = "is no scalar number" if column in features_by_name else "is not there"
                raise InvalidRequest(
                    f"{owner}: table {table.name!r}: expression {table.expression!r}: column "
                    f"{column!r} {problem}; "
                    f"it may name {', '.join(sorted(scalars))}{', in_degree, out_degree' * nodes}"
                )


def tables_from_dict(label: str, data: Any) -> tuple[WeightTable, ...]:
    """Tables from plain values: ``{popular: "pow(clicks, 0.75)"}``, or with ``{expression: ..,
    invalid: zero}``.
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
    """Plain values under ``tables``, as `tables_from_dict` reads them; nothing where there are
    none."""
    plain = {
        t.name: t.expression
        if t.invalid == "fail"
        else {"expression": t.expression, "invalid": t.invalid}
        for t in tables
    }
    return {"tables": plain} if plain else {}


def tables_to_proto(tables: Sequence[WeightTable]) -> list[common_pb.WeightTable]:
    """As they travel."""
    return [
        common_pb.WeightTable(name=t.name, expression=t.expression, invalid=t.invalid.upper())
        for t in tables
    ]


def tables_from_proto(messages: Iterable[common_pb.WeightTable]) -> tuple[WeightTable, ...]:
    """Tables from the wire."""
    return tuple(
        WeightTable(
            name=t.name,
            expression=t.expression,
            invalid=enum_name(common_pb.Invalid, t.invalid, "fail"),
        )
        for t in messages
    )
