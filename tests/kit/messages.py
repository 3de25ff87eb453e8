"""Hypothesis strategies of well-formed messages and frames, with extreme values.

`KnownValues`, by field name, are values that a server really has. Most requests use them, so that
they pass the first checks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from google.protobuf.descriptor import FieldDescriptor as Field
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from asterism_proto.framing import Frame
from asterism_proto.methods import Method

Content = Message | Frame
KnownValues = Mapping[str, Sequence[object]]

WORDS = st.sampled_from(
    [
        "shop",
        "",
        "nope",
        "user",
        "item",
        "age",
        "price",
        "tags",
        "when",
        "weight",
        "build",
        "id",
        "../../up",
        "é\0",
        "x" * 300,
    ]
)
SECTIONS = {
    "ids": "int64",
    "nodes": "int64",
    "types": "int32",
    "positions": "int64",
    "src": "int64",
    "dst": "int64",
    "eid": "int64",
    "eids": "int64",
    "weight": "float32",
    "offsets": "int64",
    "taken": "int64",
    "taken_types": "int32",
    "f:age": "int64",
    "f:price": "float32",
    "f:tags.indptr": "int64",
    "f:tags.values": "int64",
}
_DTYPES = st.sampled_from(
    ["int8", "int32", "int64", "uint8", "uint32", "float32", "float64", "bool"]
)
_FLOATS = st.sampled_from([0.0, 1.0, -1.0, 0.5, float("nan"), float("inf"), 1e308])


def _integers(low: int, high: int) -> st.SearchStrategy[int]:
    edges = [
        v
        for v in (0, 1, 2, 3, 5, 7, -1, -2, 100, 1 << 31, (1 << 31) - 1, 1 << 40, low, high)
        if low <= v <= high
    ]
    return st.sampled_from(edges)


def _scalar(field: Field, depth: int, known_values: KnownValues) -> st.SearchStrategy[object]:
    match field.cpp_type:
        case Field.CPPTYPE_STRING:
            return st.binary(max_size=40) if field.type == Field.TYPE_BYTES else WORDS
        case Field.CPPTYPE_BOOL:
            return st.booleans()
        case Field.CPPTYPE_DOUBLE | Field.CPPTYPE_FLOAT:
            return _FLOATS
        case Field.CPPTYPE_ENUM:
            return st.sampled_from([*field.enum_type.values_by_number, 99])
        case Field.CPPTYPE_MESSAGE:
            return messages(GetMessageClass(field.message_type), known_values, depth - 1)
        case Field.CPPTYPE_INT32:
            return _integers(-(1 << 31), (1 << 31) - 1)
        case Field.CPPTYPE_UINT32:
            return _integers(0, (1 << 32) - 1)
        case Field.CPPTYPE_INT64:
            return _integers(-(1 << 63), (1 << 63) - 1)
        case _:
            return _integers(0, (1 << 64) - 1)


def messages(
    kind: type[Message], known_values: KnownValues, depth: int = 3
) -> st.SearchStrategy[Message]:
    """Generate messages of a kind with any subset of their fields set."""
    required, optional = {}, {}
    for field in kind.DESCRIPTOR.fields:
        if field.cpp_type == Field.CPPTYPE_MESSAGE and depth == 0:
            continue
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            entry = field.message_type.fields_by_name
            optional[field.name] = st.dictionaries(
                _scalar(entry["key"], depth, known_values),
                _scalar(entry["value"], depth, known_values),
                max_size=3,
            )
            continue
        value = _scalar(field, depth, known_values)
        has_known_values = field.name in known_values and field.cpp_type != Field.CPPTYPE_MESSAGE
        if has_known_values:
            valid = st.sampled_from(known_values[field.name])
            value = st.one_of(valid, valid, valid, value)
        (required if has_known_values else optional)[field.name] = (
            st.lists(value, max_size=3) if field.is_repeated else value
        )
    return st.fixed_dictionaries(required, optional=optional).map(lambda values: kind(**values))


@st.composite
def _sections(draw: st.DrawFn) -> dict[str, np.ndarray]:
    rows = draw(st.integers(0, 4))
    sections = {}
    for name in draw(st.lists(st.sampled_from(sorted(SECTIONS)), unique=True, max_size=5)):
        valid = draw(st.integers(0, 9)) > 0
        dtype = np.dtype(SECTIONS[name] if valid else draw(_DTYPES))
        shape = (
            (rows + (name.endswith("indptr") or name == "offsets"),)
            if valid
            else draw(nps.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))
        )
        elements = (
            st.sampled_from([0, 1, 2, 5])
            if dtype.kind != "b" and draw(st.booleans())
            else nps.from_dtype(dtype)
        )
        sections[name] = draw(nps.arrays(dtype, shape, elements=elements))
    return sections


def requests(method: Method, known_values: KnownValues) -> st.SearchStrategy[Content]:
    """Generate requests that the server of a method can parse, though it may refuse them."""
    heads = messages(method.request, known_values)
    return st.builds(Frame, heads, _sections()) if method.is_framed else heads


def payloads(method: Method, known_values: KnownValues) -> st.SearchStrategy[bytes]:
    """Generate payloads: any bytes, a request, or a request that is damaged or truncated."""
    packed = requests(method, known_values).map(method.pack)

    def flip_bits(parts: tuple[bytes, int, int]) -> bytes:
        data, offset, mask = parts
        return (
            data[: offset % len(data)]
            + bytes([data[offset % len(data)] ^ mask])
            + data[offset % len(data) + 1 :]
            if data
            else data
        )

    truncated = st.tuples(packed, st.integers(0, 1 << 16)).map(
        lambda parts: parts[0][: parts[1] % (len(parts[0]) + 1)]
    )
    return st.one_of(
        packed,
        packed,
        st.binary(max_size=200),
        st.tuples(packed, st.integers(0, 1 << 16), st.integers(1, 255)).map(flip_bits),
        truncated,
    )
