"""Mutations of recorded requests: valid envelopes with hostile fields and arrays.

`mutations` takes any protobuf message and its arrays (none for a plain message) and yields an
endless stream of changed copies. It does not depend on a service, only on field types, values of
other requests (`Donors`) and the shape of arrays. The same generator state gives the same stream.
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

_MAX_EDITS = 3
_LONG_TEXT_LENGTH = 3000
"""Most elements that a list or array grows to.

Enough to exceed a page, and few enough to send thousands of requests.
"""
_BITS = {
    Field.CPPTYPE_INT32: (31, True),
    Field.CPPTYPE_INT64: (63, True),
    Field.CPPTYPE_UINT32: (32, False),
    Field.CPPTYPE_UINT64: (64, False),
}
_FLOATS = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    2.0,
    5e-324,
    1e-300,
    1e300,
    float("nan"),
    float("inf"),
    float("-inf"),
)
_INTEGERS = (
    0,
    1,
    2,
    3,
    7,
    9,
    10,
    100,
    255,
    65535,
    1 << 20,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    1 << 32,
    1 << 40,
    (1 << 62),
    (1 << 63) - 1,
)
_TEXTS = (
    "",
    "weight",
    "id",
    "nope",
    "x" * 300,
    "age < 30",
    "when > 5 and",
    "dst.vec[99] > 1",
    "not",
    "é\0",
    "../../up",
    "0",
    "-1",
    "1.2.3",
)
_DTYPES = ("int8", "int32", "int64", "uint8", "uint32", "uint64", "float32", "float64", "bool")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """A changed request."""

    edits: tuple[str, ...]
    """Descriptions of the changes: ``at.version=0``, ``ids[3]=-1``."""
    head: Message
    arrays: Arrays


@dataclass(slots=True)
class Donors:
    """Content of other requests, which occasionally replaces a request's own."""

    messages: dict[str, list[Message]] = field(default_factory=dict)
    """Messages by the full name of their type."""
    texts: list[str] = field(default_factory=list)
    arrays: dict[str, list[NDArray[Any]]] = field(default_factory=dict)
    """Arrays by the name of the section, without digits."""

    def add(self, message: Message, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Add the content of a request."""
        self.messages.setdefault(message.DESCRIPTOR.full_name, []).append(message)
        for descriptor, value in message.ListFields():
            for element in _elements(descriptor, value):
                if isinstance(element, Message):
                    self.add(element, {})
                elif isinstance(element, str) and element not in self.texts:
                    self.texts.append(element)
        for name, array in arrays.items():
            self.arrays.setdefault(_mask_digits(name), []).append(array)


def mutations(
    message: Message,
    arrays: Mapping[str, NDArray[Any]],
    rng: np.random.Generator,
    donors: Donors | None = None,
    rare_fields: Collection[str] = frozenset(("space", "space_id", "version", "digest")),
) -> Iterator[Mutation]:
    """Yield changed copies of a request, without end.

    Parameters
    ----------
    message : Message
        A request, or the head of one.
    arrays : mapping of str to ndarray
        Its sections; empty for a plain message.
    rng : numpy.random.Generator
    donors : Donors, optional
        Content of other requests.
    rare_fields : collection of str
        Names of fields that are changed seldom, because most changes of a request's target fail at
        the same check.
    """
    editor = _Editor(rng, donors or Donors(), frozenset(rare_fields))
    while True:
        head, own_arrays, edits = _copy_message(message), dict(arrays), []
        for _ in range(1 + int(rng.integers(_MAX_EDITS)) * int(rng.integers(2))):
            in_arrays = own_arrays and rng.integers(2)
            edits.append(editor.edit_arrays(own_arrays) if in_arrays else editor.edit_message(head))
        yield Mutation(edits=tuple(edits), head=head, arrays=own_arrays)


def _copy_message(message: Message) -> Message:
    copy = type(message)()
    copy.CopyFrom(message)
    return copy


def _elements(descriptor: Field, value: Any) -> Sequence[Any]:
    if not descriptor.is_repeated:
        return [value]
    return list(value.values()) if isinstance(value, Mapping) else list(value)


def _submessage_fields(message: Message, descriptor: Field) -> Sequence[tuple[Field, Any]]:
    """Return the message fields that are set in a message."""
    return [] if descriptor.is_repeated else getattr(message, descriptor.name).ListFields()


def _mask_digits(name: str) -> str:
    return "".join("#" if character.isdigit() else character for character in name)


def _short_repr(value: object) -> str:
    text = repr(value)
    return text if len(text) < 60 else f"{text[:57]}..."


class _Editor:
    """Edits messages and arrays in place, one change at a time."""

    def __init__(
        self, rng: np.random.Generator, donors: Donors, rare_fields: frozenset[str]
    ) -> None:
        self._rng, self._donors, self._rare = rng, donors, rare_fields

    def _pick(self, choices: Sequence[Any]) -> Any:
        return choices[int(self._rng.integers(len(choices)))]

    # -- messages ----------------------------------------------------------------------------------

    def edit_message(self, message: Message, path: str = "") -> str:
        """Change a field of a message, or of a nested one."""
        fields = message.DESCRIPTOR.fields
        if not len(fields):
            return f"{path}(no fields)"
        set_fields = [descriptor for descriptor, _ in message.ListFields()]
        descriptor = (
            self._pick(set_fields)
            if set_fields and self._rng.integers(4)
            else self._pick(list(fields))
        )
        for _ in range(4):
            is_rare_only = descriptor.cpp_type == Field.CPPTYPE_MESSAGE and all(
                f.name in self._rare for f, _ in _submessage_fields(message, descriptor)
            )
            if descriptor.name not in self._rare and not is_rare_only:
                break
            descriptor = self._pick(list(fields))
        name = f"{path}{descriptor.name}"
        if self._rng.integers(12) == 0 and descriptor.has_presence:
            message.ClearField(descriptor.name)
            return f"{name} cleared"
        if descriptor.is_repeated:
            return self._edit_repeated(message, descriptor, name)
        if descriptor.cpp_type == Field.CPPTYPE_MESSAGE:
            submessage = getattr(message, descriptor.name)
            submessage.SetInParent()
            donated = self._donors.messages.get(submessage.DESCRIPTOR.full_name, [])
            if donated and self._rng.integers(5) == 0:
                submessage.CopyFrom(self._pick(donated))
                return f"{name} of another request"
            return self.edit_message(submessage, f"{name}.")
        value = self._scalar(descriptor, getattr(message, descriptor.name))
        setattr(message, descriptor.name, value)
        return f"{name}={_short_repr(value)}"

    def _edit_repeated(self, message: Message, descriptor: Field, name: str) -> str:
        if descriptor.message_type is not None and descriptor.message_type.GetOptions().map_entry:
            message.ClearField(descriptor.name)
            return f"{name} emptied"
        repeated = getattr(message, descriptor.name)
        values, is_message = list(repeated), descriptor.cpp_type == Field.CPPTYPE_MESSAGE
        action = int(self._rng.integers(9))
        if values and action < 3:
            index = int(self._rng.integers(len(values)))
            if is_message:
                return self.edit_message(repeated[index], f"{name}[{index}].")
            repeated[index] = self._scalar(descriptor, values[index])
            return f"{name}[{index}]={_short_repr(repeated[index])}"
        if action == 3 or not values:
            element = (
                repeated.add()
                if is_message
                else self._scalar(descriptor, values[0] if values else None)
            )
            if is_message:
                return self.edit_message(element, f"{name}[+].")
            repeated.append(element)
            return f"{name}+={_short_repr(element)}"
        new_values = {
            4: [],
            5: values[:-1],
            6: [*values, self._pick(values)],
            7: values[::-1],
            8: (values * _LONG_TEXT_LENGTH)[:_LONG_TEXT_LENGTH],
        }[action]
        copies = [_copy_message(value) for value in new_values] if is_message else new_values
        del repeated[:]
        repeated.extend(copies)
        return f"{name}: {len(values)} became {len(new_values)}" + (
            " reversed" if action == 7 else ""
        )

    def _scalar(self, descriptor: Field, value: Any) -> Any:
        match descriptor.cpp_type:
            case Field.CPPTYPE_BOOL:
                return not value
            case Field.CPPTYPE_DOUBLE | Field.CPPTYPE_FLOAT:
                return self._pick([*_FLOATS, -(value or 0.0), (value or 0.0) * 2 + 1])
            case Field.CPPTYPE_ENUM:
                return self._pick([0, 1, 2, 3, 99, -1])
            case Field.CPPTYPE_STRING if descriptor.type == Field.TYPE_BYTES:
                current = value or b"x"
                return self._pick([b"", b"\xff", current[:-1], current + b"\0", current * 2])
            case Field.CPPTYPE_STRING:
                if self._donors.texts and self._rng.integers(3) == 0:
                    return self._pick(self._donors.texts)
                return self._pick([*_TEXTS, (value or "x")[:-1], (value or "") + " and"])
            case kind:
                bits, signed = _BITS[kind]
                low, high = (-(1 << bits), (1 << bits) - 1) if signed else (0, (1 << bits) - 1)
                integers = [
                    *_INTEGERS,
                    *(-integer for integer in _INTEGERS),
                    low,
                    high,
                    (value or 0) + 1,
                    (value or 0) - 1,
                    int(self._rng.integers(40)),
                ]
                return self._pick([integer for integer in integers if low <= integer <= high])

    # -- arrays ------------------------------------------------------------------------------------

    def edit_arrays(self, arrays: Arrays) -> str:
        """Change an array, or the set of arrays."""
        name = self._pick(sorted(arrays))
        action = int(self._rng.integers(20))
        if action == 0:
            del arrays[name]
            return f"without {name}"
        if action == 1:
            other_name = self._pick(
                sorted({*arrays, *self._donors.arrays, "types", "times", "positions", "0.0.0"})
            )
            arrays[other_name.replace("#", str(int(self._rng.integers(4))))] = arrays[name]
            return f"{name} as {other_name} too"
        donated = self._donors.arrays.get(_mask_digits(name), [])
        if action == 2 and donated:
            arrays[name] = self._pick(donated)
            return f"{name} of another request"
        with np.errstate(all="ignore"):  # hostile values overflow narrow dtypes
            arrays[name], description = self._edit_array(arrays[name])
        return f"{name} {description}"

    def _edit_array(self, array: NDArray[Any]) -> tuple[NDArray[Any], str]:
        rng = self._rng
        action = int(rng.integers(14))
        flat = array.reshape(-1)
        if action < 5 and flat.size:
            changed = flat.copy()
            indices = rng.integers(0, flat.size, int(rng.integers(1, 4)))
            changed[indices] = self._hostile_value(flat.dtype, flat[int(indices[0])])
            return changed.reshape(array.shape), f"[{indices.tolist()}]={changed[indices[0]]}"
        if action == 5 and flat.size:
            value = self._hostile_value(flat.dtype, flat[0])
            return np.full(array.shape, value, array.dtype), f"all {value}"
        if action == 6:
            return flat[: max(flat.size - int(rng.integers(1, 4)), 0)], "shortened"
        if action == 7:
            return flat[:0], "emptied"
        if action == 8:
            return np.resize(flat, flat.size + int(rng.integers(1, 4))) if flat.size else np.zeros(
                3, flat.dtype
            ), "lengthened"
        if action == 9:
            return np.resize(flat, _LONG_TEXT_LENGTH) if flat.size else np.zeros(
                _LONG_TEXT_LENGTH, flat.dtype
            ), f"of {_LONG_TEXT_LENGTH}"
        if action == 10:
            return rng.permutation(flat), "shuffled"
        if action == 11:
            dtype = self._pick(_DTYPES)
            return array.astype(dtype), f"as {dtype}"
        if action == 12:
            shape = self._pick([(flat.size, 1), (1, flat.size), (0, 3), (flat.size, 0)])
            return (flat if 0 not in shape else flat[:0]).reshape(shape), f"shaped {shape}"
        return flat[::-1].copy(), "reversed"

    def _hostile_value(self, dtype: np.dtype[Any], value: Any) -> Any:
        if dtype.kind == "f":
            return self._pick(_FLOATS)
        if dtype.kind == "b":
            return not value
        limits = np.iinfo(dtype)
        low, high = int(limits.min), int(limits.max)
        integers = [
            *_INTEGERS,
            *(-integer for integer in _INTEGERS),
            low,
            high,
            int(value) + 1,
            int(value) - 1,
            int(self._rng.integers(1000)),
        ]
        return self._pick([integer for integer in integers if low <= integer <= high])
