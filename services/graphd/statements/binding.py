"""Values of statements: what stands in the text, or came beside it. A quiet room."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto.condition import MAX_TOKENS, Literal
from asterism_proto.condition import Column as Read
from asterism_proto.errors import InvalidRequest
from graphd.statements.faults import wrong
from graphd.statements.records import Column, Limit, Parameter, Value, Where

MOST_PARAMETERS = 256
Given = bool | int | float | str | tuple[str, ...] | NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bindings:
    """Parameters of a query by their names, and its text, to say where one is missing."""

    text: str
    values: Mapping[str, Given]

    def of(self, parameter: Parameter) -> Given:
        """What came by a name; InvalidRequest where nothing did."""
        found = self.values.get(parameter.name)
        if found is None:
            came = [f"${name}" for name in self.values] or ["none"]
            raise wrong(self.text, parameter.at, f"{parameter}, which was not given", [f"one of the parameters ({', '.join(came)})"])
        return found

    def scalar(self, value: Value) -> bool | int | float | str:
        """A value that is one."""
        if not isinstance(value, Parameter):
            return value
        found = self.of(value)
        if isinstance(found, np.ndarray) and found.ndim == 0:
            return found.item()  # type: ignore[no-any-return]  # a number or a truth
        if isinstance(found, np.ndarray | tuple):
            raise self._wrong(value, "a list", "one value")
        return found

    def whole(self, value: Value, what: str) -> int:
        """A whole number."""
        found = self.scalar(value)
        if isinstance(found, bool) or not isinstance(found, int):
            if isinstance(value, Parameter):
                raise self._wrong(value, repr(found), f"a whole number ({what})")
            raise InvalidRequest(f"{what} {found!r}: expected a whole number")
        return found

    def number(self, value: Value, what: str) -> int:
        """The number of a job or version."""
        found = self.whole(value, what)
        if not 0 <= found < 1 << 63:
            if isinstance(value, Parameter):
                raise self._wrong(value, repr(found), what)
            raise InvalidRequest(f"{what} {found}: expected 0 or more")
        return found

    def real(self, value: Value, what: str) -> float:
        """A number."""
        found = self.scalar(value)
        if isinstance(found, bool | str):
            raise InvalidRequest(f"{what} {found!r}: expected a number")
        return float(found)

    def ids(self, values: Parameter | tuple[int | str, ...] | None) -> NDArray[Any]:
        """Ids of nodes or edges, in the shape in which they came; or what nodes are called: an array of objects."""
        if not isinstance(values, Parameter):
            given = values or ()
            if any(isinstance(value, str) for value in given) and not all(isinstance(value, str) for value in given):
                raise InvalidRequest(f"{', '.join(map(repr, given)):.80}: expected whole numbers, or texts: not both")
            return np.array(given, object if any(isinstance(value, str) for value in given) else np.int64)
        found = self.of(values)
        if isinstance(found, str | tuple):
            return np.array([found] if isinstance(found, str) else found, object)
        if isinstance(found, int) and not isinstance(found, bool):
            return np.array([found], np.int64)
        if not isinstance(found, np.ndarray) or (found.dtype.kind not in "iu" and found.size):
            kind = f"{found.dtype}{list(found.shape)}" if isinstance(found, np.ndarray) else repr(found)
            raise self._wrong(values, kind, "whole numbers: ids")
        return found

    def counts(self, values: Parameter | tuple[Value, ...] | None, what: str) -> list[int]:
        """A list of whole numbers."""
        if isinstance(values, Parameter):
            found = self.ids(values)
            if found.dtype == object:
                raise self._wrong(values, f"{found.reshape(-1)[:1].tolist()}", f"whole numbers ({what})")
            return [int(one) for one in found.reshape(-1)]
        return [self.whole(value, what) for value in values or ()]

    def name(self, value: Any) -> str:
        """A name, or the parameter that has it."""
        if not isinstance(value, Parameter):
            return "" if value is None else str(value.text)
        found = self.of(value)
        if not isinstance(found, str):
            raise self._wrong(value, repr(found), "a text: a name")
        return found

    def limit(self, limit: Limit) -> tuple[int, int]:
        """How many rows are kept, and how many are passed over before."""
        count, offset = self.whole(limit.count, "LIMIT"), self.whole(limit.offset, "LIMIT")
        if count < 0 or offset < 0:
            raise InvalidRequest(f"LIMIT {offset}, {count}: expected 0 or more rows")
        return count, offset

    def _wrong(self, parameter: Parameter, found: str, expected: str) -> InvalidRequest:
        return wrong(self.text, parameter.at, f"{parameter} = {found:.80}", [expected])


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition in its own language, and where its words stand in the statement."""

    text: str = ""
    starts: tuple[tuple[int, int], ...] = field(default=())
    """(place here, place in the statement) of each word, rising."""

    def at(self, place: int) -> int:
        """Where in the statement a place of the condition is."""
        found = 0
        for here, there in self.starts:
            if here > place:
                break
            found = there + (place - here if here == place else 0)
        return found


def condition_of(where: Where | None, bindings: Bindings, *, reverse: bool) -> Condition:
    """A condition as requests carry it.

    Parameters
    ----------
    where : Where, optional
    bindings : Bindings
    reverse : bool
        Whether edges are followed against their direction: then the end that one comes from is ``dst``.
    """
    if where is None:
        return Condition()
    pieces, starts, length = [], [], 0
    for word, at in where.words:
        said = _written(word, bindings) if isinstance(word, Parameter) else _read(word, reverse) if isinstance(word, Column) else word
        starts.append((length, at))
        pieces.append(said)
        length += len(said) + 1
    return Condition(" ".join(pieces), tuple(starts))


def end_of(column: Column, reverse: bool) -> str:
    """Whose a column is, as conditions say it: "", ``src`` or ``dst``."""
    return {"near": "dst" if reverse else "src", "far": "src" if reverse else "dst"}.get(column.of, column.of)


def _read(column: Column, reverse: bool) -> str:
    name, of = column.name.text, end_of(column, reverse)
    if of and name == "id" and not column.quoted:
        return of
    if name == "edge_id" and not of and not column.quoted:
        name = "id"
    return str(Read(name=name, of=of, element=column.element, quoted=column.quoted))


def _written(parameter: Parameter, bindings: Bindings) -> str:
    found = bindings.of(parameter)
    if isinstance(found, np.ndarray) and found.ndim == 0:
        found = found.item()
    if isinstance(found, np.ndarray | tuple):
        values = found.reshape(-1).tolist() if isinstance(found, np.ndarray) else list(found)
        if not values or 2 * len(values) > MAX_TOKENS:
            raise wrong(bindings.text, parameter.at, f"{parameter} of {len(values)} values", [f"1 to {MAX_TOKENS // 2} values in a condition"])
        return f"({', '.join(str(Literal(value=value)) for value in values)})"
    return str(Literal(value=found))
