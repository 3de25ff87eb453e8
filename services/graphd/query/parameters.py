"""Values of statements: literals in the text and bound parameters. A pure module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_model.filters.syntax import MAX_VALUES, ColumnOperand, Literal
from asterism_proto.errors import InvalidRequest
from graphd.query.ast import ColumnRef, Limit, Parameter, Value, WhereClause
from graphd.query.errors import syntax_error

MAX_PARAMETERS = 256
_MAX_ID = (1 << 63) - 1
ParameterValue = bool | int | float | str | tuple[str, ...] | NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ParameterBindings:
    """Parameters of a query by name, and its text, for error positions."""

    text: str
    values: Mapping[str, ParameterValue]

    def lookup(self, parameter: Parameter) -> ParameterValue:
        """Return the value of a parameter; raise InvalidRequest if it was not given."""
        value = self.values.get(parameter.name)
        if value is None:
            available = [f"${name}" for name in self.values] or ["none"]
            raise syntax_error(
                self.text,
                parameter.at,
                f"{parameter}, which was not given",
                [f"one of the parameters ({', '.join(available)})"],
            )
        return value

    def scalar(self, value: Value) -> bool | int | float | str:
        """Return a single value."""
        if not isinstance(value, Parameter):
            return value
        bound_value = self.lookup(value)
        if isinstance(bound_value, np.ndarray) and bound_value.ndim == 0:
            return bound_value.item()  # type: ignore[no-any-return]  # a number or a truth
        if isinstance(bound_value, np.ndarray | tuple):
            raise self._wrong(value, "a list", "one value")
        return bound_value

    def integer(self, value: Value, description: str) -> int:
        """Return an integer."""
        bound_value = self.scalar(value)
        if isinstance(bound_value, bool) or not isinstance(bound_value, int):
            if isinstance(value, Parameter):
                raise self._wrong(value, repr(bound_value), f"an integer ({description})")
            raise InvalidRequest(f"{description} {bound_value!r}: expected an integer")
        return bound_value

    def nonnegative_integer(self, value: Value, description: str) -> int:
        """Return the number of a job or version."""
        bound_value = self.integer(value, description)
        if not 0 <= bound_value < 1 << 63:
            if isinstance(value, Parameter):
                raise self._wrong(value, repr(bound_value), description)
            raise InvalidRequest(f"{description} {bound_value}: expected 0 or more")
        return bound_value

    def real(self, value: Value, description: str) -> float:
        """Return a float."""
        bound_value = self.scalar(value)
        if isinstance(bound_value, bool | str):
            raise InvalidRequest(f"{description} {bound_value!r}: expected a number")
        return float(bound_value)

    def ids(self, values: Parameter | tuple[int | str, ...] | None) -> NDArray[Any]:
        """Return ids of nodes or edges in their given shape, or string ids as an object array."""
        if not isinstance(values, Parameter):
            items = values or ()
            for item in items:
                if isinstance(item, int) and item > _MAX_ID:
                    raise InvalidRequest(f"id {item}: expected an id below 2^63")
            if any(isinstance(value, str) for value in items) and not all(
                isinstance(value, str) for value in items
            ):
                raise InvalidRequest(
                    f"{', '.join(map(repr, items)):.80}: expected only integers, or only strings"
                )
            return np.array(
                items, object if any(isinstance(value, str) for value in items) else np.int64
            )
        bound_value = self.lookup(values)
        if isinstance(bound_value, str | tuple):
            return np.array([bound_value] if isinstance(bound_value, str) else bound_value, object)
        if isinstance(bound_value, int) and not isinstance(bound_value, bool):
            bound_value = np.array([bound_value])
        if not isinstance(bound_value, np.ndarray) or (
            bound_value.dtype.kind not in "iu" and bound_value.size
        ):
            description = (
                f"{bound_value.dtype}{list(bound_value.shape)}"
                if isinstance(bound_value, np.ndarray)
                else repr(bound_value)
            )
            raise self._wrong(values, description, "integers as ids")
        if bound_value.dtype == np.uint64 and (bound_value > _MAX_ID).any():
            raise self._wrong(values, str(bound_value.max()), "ids below 2^63")
        return np.atleast_1d(bound_value.astype(np.int64, copy=False))

    def integers(self, values: Parameter | tuple[Value, ...] | None, description: str) -> list[int]:
        """Return a list of integers."""
        if isinstance(values, Parameter):
            ids = self.ids(values)
            if ids.dtype == object:
                raise self._wrong(
                    values, f"{ids.reshape(-1)[:1].tolist()}", f"integers ({description})"
                )
            return [int(item) for item in ids.reshape(-1)]
        return [self.integer(value, description) for value in values or ()]

    def literals(self, parameter: Parameter) -> list[Literal]:
        """Return the values of a parameter as constants of a filter."""
        bound_value = self.lookup(parameter)
        values: Sequence[bool | int | float | str] = (
            bound_value.reshape(-1).tolist()
            if isinstance(bound_value, np.ndarray)
            else bound_value
            if isinstance(bound_value, tuple)
            else [bound_value]
        )
        if len(values) > MAX_VALUES:
            raise syntax_error(
                self.text,
                parameter.at,
                f"{parameter} of {len(values)} values",
                [f"at most {MAX_VALUES} values in a filter"],
            )
        if any(value != value for value in values):
            raise self._wrong(
                parameter,
                "nan",
                "a number, because nothing equals NaN; IS NULL finds missing values",
            )
        return [Literal(value=value) for value in values]

    def name(self, value: Any) -> str:
        """Return a name, from the text or from a parameter."""
        if not isinstance(value, Parameter):
            return "" if value is None else str(value.text)
        bound_value = self.lookup(value)
        if not isinstance(bound_value, str):
            raise self._wrong(value, repr(bound_value), "a string as a name")
        return bound_value

    def limit(self, limit: Limit) -> tuple[int, int]:
        """Return how many rows to keep, and how many to skip before them."""
        count, offset = self.integer(limit.count, "LIMIT"), self.integer(limit.offset, "LIMIT")
        if count < 0 or offset < 0:
            raise InvalidRequest(f"LIMIT {offset}, {count}: expected 0 or more rows")
        return count, offset

    def _wrong(self, parameter: Parameter, found: str, expected: str) -> InvalidRequest:
        return syntax_error(self.text, parameter.at, f"{parameter} = {found:.80}", [expected])


@dataclass(frozen=True, slots=True)
class FilterText:
    """Filter text as storageds parse it, with the origin of its tokens in the statement."""

    text: str = ""
    word_positions: tuple[tuple[int, int], ...] = field(default=())
    """(position here, position in the statement) of each token, ascending."""

    def statement_position(self, filter_position: int) -> int:
        """Return the position in the statement of a position in the filter."""
        position = 0
        for filter_start, statement_start in self.word_positions:
            if filter_start > filter_position:
                break
            position = statement_start + (
                filter_position - filter_start if filter_start == filter_position else 0
            )
        return position


def build_filter_text(
    where: WhereClause | None, bindings: ParameterBindings, *, reverse: bool
) -> FilterText:
    """Return a filter in the form that requests carry.

    Parameters
    ----------
    where : WhereClause, optional
    bindings : ParameterBindings
    reverse : bool
        True if edges are followed against their direction. The local end is then ``dst``.
    """
    if where is None:
        return FilterText()
    pieces, starts, length = [], [], 0
    for word, position in where.words:
        text = (
            _format_parameter(word, bindings)
            if isinstance(word, Parameter)
            else _filter_column(word, reverse)
            if isinstance(word, ColumnRef)
            else word
        )
        starts.append((length, position))
        pieces.append(text)
        length += len(text) + 1
    return FilterText(" ".join(pieces), tuple(starts))


def column_end(column: ColumnRef, reverse: bool) -> str:
    """Return the owner of a column as filters name it: "", ``src`` or ``dst``."""
    return {"near": "dst" if reverse else "src", "far": "src" if reverse else "dst"}.get(
        column.end, column.end
    )


def _filter_column(column: ColumnRef, reverse: bool) -> str:
    name, end = column.name.text, column_end(column, reverse)
    if end and name == "id" and not column.quoted:
        return end
    if name == "edge_id" and not end and not column.quoted:
        name = "id"
    return str(ColumnOperand(name=name, endpoint=end, element=column.element, quoted=column.quoted))


def _format_parameter(parameter: Parameter, bindings: ParameterBindings) -> str:
    values = ", ".join(map(str, bindings.literals(parameter)))
    bound_value = bindings.lookup(parameter)
    is_list = isinstance(bound_value, tuple) or np.ndim(bound_value) > 0
    return f"({values})" if is_list else values
