"""Mutations of recorded requests: valid envelopes whose fields and arrays are hostile.

`mutations` takes any protobuf message and its arrays (none for a plain message) and gives an endless stream of changed copies. It does
not depend on a service, only on field types, values of other requests (`Donors`) and the shape of arrays. The same generator
state gives the same stream.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from google.protobuf.descriptor import FieldDescriptor as Field
from google.protobuf.message import Message
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]

_MOST_EDITS = 3
_LONG = 3000
"""Elements that a list or array grows to: enough to leave a page, few enough to send by the thousand."""
_BITS = {Field.CPPTYPE_INT32: (31, True), Field.CPPTYPE_INT64: (63, True), Field.CPPTYPE_UINT32: (32, False), Field.CPPTYPE_UINT64: (64, False)}
_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 5e-324, 1e-300, 1e300, float("nan"), float("inf"), float("-inf"))
_WHOLES = (0, 1, 2, 3, 7, 9, 10, 100, 255, 65535, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 40, (1 << 62), (1 << 63) - 1)
_TEXTS = ("", "weight", "id", "nope", "x" * 300, "age < 30", "when > 5 and", "dst.vec[99] > 1", "not", "é\0", "../../up", "0", "-1", "1.2.3")
_DTYPES = ("int8", "int32", "int64", "uint8", "uint32", "uint64", "float32", "float64", "bool")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """A changed request."""

    edits: tuple[str, ...]
    """What was changed, in words: ``at.version=0``, ``ids[3]=-1``."""
    head: Message
    arrays: Arrays


@dataclass(slots=True)
class Donors:
    """Content of other requests, put into the place of a request's own now and then."""

    messages: dict[str, list[Message]] = field(default_factory=dict)
    """By the full name of their type."""
    texts: list[str] = field(default_factory=list)
    arrays: dict[str, list[NDArray[Any]]] = field(default_factory=dict)
    """By the name of the section, digits aside."""

    def add(self, message: Message, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take what a request consists of."""
        self.messages.setdefault(message.DESCRIPTOR.full_name, []).append(message)
        for described, value in message.ListFields():
            for one in _elements(described, value):
                if isinstance(one, Message):
                    self.add(one, {})
                elif isinstance(one, str) and one not in self.texts:
                    self.texts.append(one)
        for name, array in arrays.items():
            self.arrays.setdefault(_plain(name), []).append(array)


def mutations(
    message: Message,
    arrays: Mapping[str, NDArray[Any]],
    rng: np.random.Generator,
    donors: Donors | None = None,
    rare: Collection[str] = frozenset(("space", "space_id", "version", "digest")),
) -> Iterator[Mutation]:
    """Give changed copies of a request, without end.

    Parameters
    ----------
    message : Message
        A request, or the head of one.
    arrays : mapping of str to ndarray
        Its sections; empty for a plain message.
    rng : numpy.random.Generator
    donors : Donors, optional
        What other requests consist of.
    rare : collection of str
        Names of fields that are changed seldom: most changes of what a request is about end at the same refusal.
    """
    editor = _Editor(rng, donors or Donors(), frozenset(rare))
    while True:
        head, own, edits = _copied(message), dict(arrays), []
        for _ in range(1 + int(rng.integers(_MOST_EDITS)) * int(rng.integers(2))):
            in_arrays = own and rng.integers(2)
            edits.append(editor.edit_arrays(own) if in_arrays else editor.edit_message(head))
        yield Mutation(edits=tuple(edits), head=head, arrays=own)


def _copied(message: Message) -> Message:
    out = type(message)()
    out.CopyFrom(message)
    return out


def _elements(described: Field, value: Any) -> Sequence[Any]:
    if not described.is_repeated:
        return [value]
    return list(value.values()) if isinstance(value, Mapping) else list(value)


def _inside(message: Message, described: Field) -> Sequence[tuple[Field, Any]]:
    """The fields that are set in a message of a message."""
    return [] if described.is_repeated else getattr(message, described.name).ListFields()


def _plain(name: str) -> str:
    return "".join("#" if character.isdigit() else character for character in name)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) < 60 else f"{text[:57]}..."


class _Editor:
    """Changes things in place, one at a time."""

    def __init__(self, rng: np.random.Generator, donors: Donors, rare: frozenset[str]) -> None:
        self._rng, self._donors, self._rare = rng, donors, rare

    def _pick(self, of: Sequence[Any]) -> Any:
        return of[int(self._rng.integers(len(of)))]

    # -- messages -------------------------------------------------------------------------------------------------

    def edit_message(self, message: Message, path: str = "") -> str:
        """Change a field of a message, or of one inside of it."""
        fields = message.DESCRIPTOR.fields
        if not len(fields):
            return f"{path}(no fields)"
        present = [described for described, _ in message.ListFields()]
        described = self._pick(present) if present and self._rng.integers(4) else self._pick(list(fields))
        for _ in range(4):
            only = described.cpp_type == Field.CPPTYPE_MESSAGE and all(f.name in self._rare for f, _ in _inside(message, described))
            if described.name not in self._rare and not only:
                break
            described = self._pick(list(fields))
        name = f"{path}{described.name}"
        if self._rng.integers(12) == 0 and described.has_presence:
            message.ClearField(described.name)
            return f"{name} cleared"
        if described.is_repeated:
            return self._edit_repeated(message, described, name)
        if described.cpp_type == Field.CPPTYPE_MESSAGE:
            inside = getattr(message, described.name)
            inside.SetInParent()
            donated = self._donors.messages.get(inside.DESCRIPTOR.full_name, [])
            if donated and self._rng.integers(5) == 0:
                inside.CopyFrom(self._pick(donated))
                return f"{name} of another request"
            return self.edit_message(inside, f"{name}.")
        value = self._scalar(described, getattr(message, described.name))
        setattr(message, described.name, value)
        return f"{name}={_shown(value)}"

    def _edit_repeated(self, message: Message, described: Field, name: str) -> str:
        if described.message_type is not None and described.message_type.GetOptions().map_entry:
            message.ClearField(described.name)
            return f"{name} emptied"
        held = getattr(message, described.name)
        values, inside = list(held), described.cpp_type == Field.CPPTYPE_MESSAGE
        what = int(self._rng.integers(9))
        if values and what < 3:
            at = int(self._rng.integers(len(values)))
            if inside:
                return self.edit_message(held[at], f"{name}[{at}].")
            held[at] = self._scalar(described, values[at])
            return f"{name}[{at}]={_shown(held[at])}"
        if what == 3 or not values:
            one = held.add() if inside else self._scalar(described, values[0] if values else None)
            if inside:
                return self.edit_message(one, f"{name}[+].")
            held.append(one)
            return f"{name}+={_shown(one)}"
        kept = {
            4: [],
            5: values[:-1],
            6: [*values, self._pick(values)],
            7: values[::-1],
            8: (values * _LONG)[:_LONG],
        }[what]
        copies = [_copied(value) for value in kept] if inside else kept
        del held[:]
        held.extend(copies)
        return f"{name}: {len(values)} became {len(kept)}" + (" reversed" if what == 7 else "")

    def _scalar(self, described: Field, value: Any) -> Any:
        match described.cpp_type:
            case Field.CPPTYPE_BOOL:
                return not value
            case Field.CPPTYPE_DOUBLE | Field.CPPTYPE_FLOAT:
                return self._pick([*_FLOATS, -(value or 0.0), (value or 0.0) * 2 + 1])
            case Field.CPPTYPE_ENUM:
                return self._pick([0, 1, 2, 3, 99, -1])
            case Field.CPPTYPE_STRING if described.type == Field.TYPE_BYTES:
                held = value or b"x"
                return self._pick([b"", b"\xff", held[:-1], held + b"\0", held * 2])
            case Field.CPPTYPE_STRING:
                if self._donors.texts and self._rng.integers(3) == 0:
                    return self._pick(self._donors.texts)
                return self._pick([*_TEXTS, (value or "x")[:-1], (value or "") + " and"])
            case kind:
                bits, signed = _BITS[kind]
                low, high = (-(1 << bits), (1 << bits) - 1) if signed else (0, (1 << bits) - 1)
                wholes = [*_WHOLES, *(-whole for whole in _WHOLES), low, high, (value or 0) + 1, (value or 0) - 1, int(self._rng.integers(40))]
                return self._pick([whole for whole in wholes if low <= whole <= high])

    # -- arrays ---------------------------------------------------------------------------------------------------

    def edit_arrays(self, arrays: Arrays) -> str:
        """Change an array, or which there are."""
        name = self._pick(sorted(arrays))
        what = int(self._rng.integers(20))
        if what == 0:
            del arrays[name]
            return f"without {name}"
        if what == 1:
            other = self._pick(sorted({*arrays, *self._donors.arrays, "types", "times", "positions", "0.0.0"}))
            arrays[other.replace("#", str(int(self._rng.integers(4))))] = arrays[name]
            return f"{name} as {other} too"
        donated = self._donors.arrays.get(_plain(name), [])
        if what == 2 and donated:
            arrays[name] = self._pick(donated)
            return f"{name} of another request"
        with np.errstate(all="ignore"):  # hostile values overflow narrow dtypes
            arrays[name], said = self._edited(arrays[name])
        return f"{name} {said}"

    def _edited(self, array: NDArray[Any]) -> tuple[NDArray[Any], str]:
        rng = self._rng
        what = int(rng.integers(14))
        flat = array.reshape(-1)
        if what < 5 and flat.size:
            changed = flat.copy()
            at = rng.integers(0, flat.size, int(rng.integers(1, 4)))
            changed[at] = self._hostile(flat.dtype, flat[int(at[0])])
            return changed.reshape(array.shape), f"[{at.tolist()}]={changed[at[0]]}"
        if what == 5 and flat.size:
            value = self._hostile(flat.dtype, flat[0])
            return np.full(array.shape, value, array.dtype), f"all {value}"
        if what == 6:
            return flat[: max(flat.size - int(rng.integers(1, 4)), 0)], "shortened"
        if what == 7:
            return flat[:0], "emptied"
        if what == 8:
            return np.resize(flat, flat.size + int(rng.integers(1, 4))) if flat.size else np.zeros(3, flat.dtype), "lengthened"
        if what == 9:
            return np.resize(flat, _LONG) if flat.size else np.zeros(_LONG, flat.dtype), f"of {_LONG}"
        if what == 10:
            return rng.permutation(flat), "shuffled"
        if what == 11:
            dtype = self._pick(_DTYPES)
            return array.astype(dtype), f"as {dtype}"
        if what == 12:
            shape = self._pick([(flat.size, 1), (1, flat.size), (0, 3), (flat.size, 0)])
            return (flat if 0 not in shape else flat[:0]).reshape(shape), f"shaped {shape}"
        return flat[::-1].copy(), "reversed"

    def _hostile(self, dtype: np.dtype[Any], value: Any) -> Any:
        if dtype.kind == "f":
            return self._pick(_FLOATS)
        if dtype.kind == "b":
            return not value
        limits = np.iinfo(dtype)
        low, high = int(limits.min), int(limits.max)
        wholes = [*_WHOLES, *(-whole for whole in _WHOLES), low, high, int(value) + 1, int(value) - 1, int(self._rng.integers(1000))]
        return self._pick([whole for whole in wholes if low <= whole <= high])
