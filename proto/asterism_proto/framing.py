"""Frames: a small protobuf head and named arrays, in one buffer that decodes uncopied.

A frame is the content of `asterism.v1.Frame.body`, and the form in which the graph database stores
a block. The layout is little endian. Offsets count from the start of the *message*, so arrays are
aligned in the buffer that gRPC provides::

    0x0A varint(len(body))                     the protobuf field `body`
    u32 magic, u32 len(head), u32 arrays, u32 0
    for each array:
        u8 dtype, u8 wire dtype, u8 ndim, u8 len(name), u32 flags, i64 shape[ndim],
        name, padded to a multiple of 8 bytes
    head, padded so that the data that follow are 8-aligned
    data of each array, each padded to a multiple of 8 bytes

`wire dtype` differs from `dtype` if integers were narrowed: large int64 arrays with values from -1
to 2^32 - 2 travel as uint32, where the all-ones pattern is -1 (flag 1 is set if there is one).
Decoding widens them again."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

import numpy as np
from google.protobuf.message import DecodeError, Message
from numpy.typing import NDArray

from asterism_proto.errors import InvalidRequest

Array = NDArray[Any]
Head = TypeVar("Head", bound=Message)
HeadFields_co = TypeVar("HeadFields_co", covariant=True)

MAGIC = 0x4D525341  # "ASRM"
_FRAME_HEADER = struct.Struct("<IIII")
_DESCRIPTOR = struct.Struct("<BBBBI")
_NAMES = (
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "bool",
)
_DTYPES = tuple(np.dtype(name).newbyteorder("<") for name in _NAMES)
_DTYPE_OF = {name: np.dtype(name) for name in _NAMES}
_CODES = {np.dtype(name): code for code, name in enumerate(_NAMES)}
_INT64_CODE, _UINT32_CODE = _CODES[np.dtype("int64")], _CODES[np.dtype("uint32")]
_NARROW_MIN_SIZE = 1024
_HAS_MINUS_ONE = 1
_PAD = bytes(8)

DTYPES = frozenset(_NAMES)
"""NumPy names of the element types that a frame carries."""


@dataclass(frozen=True, slots=True)
class Frame(Generic[HeadFields_co]):
    """A head and its arrays: the request or reply of a framed method.

    The type parameter is the message type of the head. A function that reads a few fields of
    several messages can name these fields by a protocol instead; a frame with any such message
    fits."""

    head: HeadFields_co
    arrays: Mapping[str, Array] = field(default_factory=dict)

    def with_head(self, head_type: type[Head]) -> Frame[Head]:
        """Return this frame, typed by its head; TypeError if the head is not a ``head_type``."""
        if not isinstance(self.head, head_type):
            raise TypeError(
                f"frame head: expected {head_type.__name__}, found {type(self.head).__name__}"
            )
        return cast("Frame[Head]", self)

    def array(self, name: str, dtype: str, ndim: int = 1) -> Array:
        """Return an array of the frame.

        Parameters
        ----------
        name : str
        dtype : str
            Expected NumPy name of the element type.
        ndim : int, default 1
            Expected number of dimensions.

        Returns
        -------
        ndarray

        Raises
        ------
        InvalidRequest
            If the array is missing, or has another dtype or number of dimensions.
        """
        section = self.arrays.get(name)
        if section is None:
            raise InvalidRequest(
                f"the array {name!r} is missing; expected {dtype} of {ndim} dimension(s)"
            )
        if section.dtype != _DTYPE_OF[dtype] or section.ndim != ndim:
            raise InvalidRequest(
                f"array {name!r}: expected {dtype} of {ndim} dimension(s), found "
                f"{section.dtype}{list(section.shape)}"
            )
        return section

    def optional_array(self, name: str, dtype: str, ndim: int = 1) -> Array | None:
        """Return the array called ``name``, as `array` does; None if it is missing."""
        return self.array(name, dtype, ndim) if name in self.arrays else None


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _narrow(array: Array) -> tuple[Array, int]:
    """Return ``array`` as uint32 if that is possible and worthwhile, and its flags.

    All values must lie in -1 .. 2^32 - 2. An unsuitable or small array is returned unchanged."""
    if (
        array.size < _NARROW_MIN_SIZE
        or (min_value := int(array.min())) < -1
        or array.max() > 0xFFFFFFFE
    ):
        return array, 0
    return array.astype(np.uint32), _HAS_MINUS_ONE if min_value < 0 else 0


def _widen(array: Array, flags: int) -> Array:
    """Return an array that `_narrow` made uint32 as int64."""
    if not flags & _HAS_MINUS_ONE:
        return array.astype(np.int64)
    signed = array.view(np.int32)
    if signed.min(initial=0) >= -1:  # mostly true: sign extension of 32 bits is enough
        return signed.astype(np.int64)
    wide = (array + np.uint32(1)).astype(np.int64)
    wide -= 1
    return wide


def encode(frame: Frame[Message], *, narrow: bool = True, envelope: bool = True) -> bytes:
    """Return ``frame`` as one buffer; see `encode_pieces` for the parameters."""
    return b"".join(encode_pieces(frame, narrow=narrow, envelope=envelope))


def encode_pieces(
    frame: Frame[Message], *, narrow: bool = True, envelope: bool = True
) -> list[bytes | memoryview]:
    """Return ``frame`` as buffers in wire order; unchanged arrays are not copied.

    Parameters
    ----------
    frame : Frame
        Arrays must be of one of ``DTYPES``.
    narrow : bool, default True
        Encode int64 arrays as uint32 if their values allow.
    envelope : bool, default True
        Begin with the protobuf field, as on the wire. Stored blocks have none.

    Returns
    -------
    list of bytes and memoryview
        Views refer to the arrays of ``frame``.

    Raises
    ------
    TypeError
        If an array has another dtype.
    """
    head = frame.head.SerializeToString()
    descriptors: list[bytes] = []
    data: list[Array] = []
    for name, array in frame.arrays.items():
        array = np.ascontiguousarray(array) if array.ndim else array.reshape(())
        code = _CODES.get(array.dtype)
        if code is None:
            raise TypeError(f"array {name!r}: a frame cannot contain {array.dtype}")
        encoded, flags = _narrow(array) if narrow and code == _INT64_CODE else (array, 0)
        raw_name = name.encode()
        descriptors.append(
            _DESCRIPTOR.pack(code, _CODES[encoded.dtype], array.ndim, len(raw_name), flags)
        )
        descriptors.append(struct.pack(f"<{array.ndim}q", *array.shape))
        descriptors.append(raw_name + _PAD[: -len(raw_name) % 8])
        data.append(encoded)
    header = _FRAME_HEADER.pack(MAGIC, len(head), len(data), 0) + b"".join(descriptors) + head
    data_bytes = sum(a.nbytes + (-a.nbytes) % 8 for a in data)
    prefix = b""
    pad = (-len(header)) % 8
    if envelope:
        # The length of the prefix depends on the padding only through a varint boundary, so try all
        # paddings.
        for pad in range(8):
            prefix = b"\x0a" + _varint(len(header) + pad + data_bytes)
            if (len(prefix) + len(header) + pad) % 8 == 0:
                break
    out: list[bytes | memoryview] = [prefix + header + _PAD[:pad]]
    for array in data:
        if array.size:
            out.append(array.reshape(-1).view(np.uint8).data)
        if array.nbytes % 8:
            out.append(_PAD[: (-array.nbytes) % 8])
    return out


def _body_start(buffer: bytes | memoryview) -> int:
    """Return the offset of the body after the protobuf field's tag and length.

    Raises
    ------
    InvalidRequest
        If the field does not fill the buffer.
    """
    if len(buffer) == 0 or buffer[0] != 0x0A:
        raise InvalidRequest("not a frame: the message does not begin with field 1 (body)")
    length = shift = 0
    for position in range(1, min(len(buffer), 11)):
        byte = buffer[position]
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            if position + 1 + length != len(buffer):
                raise InvalidRequest(
                    f"not a frame: the body is said to have {length} bytes, "
                    f"{len(buffer) - position - 1} follow"
                )
            return position + 1
    raise InvalidRequest("not a frame: the length of the body is incomplete")


def decode(
    buffer: bytes | memoryview, head_type: type[Head], *, envelope: bool = True
) -> Frame[Head]:
    """Return the frame in ``buffer``.

    Parameters
    ----------
    buffer : bytes or memoryview
    head_type : type
        Message type of the head.
    envelope : bool, default True
        Whether the buffer begins with the protobuf field, as on the wire.

    Returns
    -------
    Frame
        Arrays that were not narrowed are read-only views of ``buffer``.

    Raises
    ------
    InvalidRequest
        If the bytes are not a frame, or its head is not a ``head_type``.
    """
    start = _body_start(buffer) if envelope else 0
    view = memoryview(buffer)
    end = len(view)
    if end - start < _FRAME_HEADER.size:
        raise InvalidRequest(
            f"not a frame: {end - start} bytes, fewer than the {_FRAME_HEADER.size} of a header"
        )
    magic, head_length, count, _ = _FRAME_HEADER.unpack_from(view, start)
    if magic != MAGIC:
        raise InvalidRequest(f"not a frame: magic {magic:#x}: expected {MAGIC:#x}")
    position = start + _FRAME_HEADER.size
    descriptors: list[tuple[str, int, int, int, tuple[int, ...]]] = []
    try:
        for _ in range(count):
            code, wire_code, ndim, name_length, flags = _DESCRIPTOR.unpack_from(view, position)
            position += _DESCRIPTOR.size
            shape = struct.unpack_from(f"<{ndim}q", view, position)
            position += 8 * ndim
            name = bytes(view[position : position + name_length]).decode()
            position += name_length + (-name_length) % 8
            if (
                position > end
                or code >= len(_DTYPES)
                or min(shape, default=0) < 0
                or (wire_code != code and (wire_code, code) != (_UINT32_CODE, _INT64_CODE))
            ):
                raise InvalidRequest(
                    f"not a frame: the description of the array {name!r} is invalid"
                )
            descriptors.append((name, code, wire_code, flags, shape))
    except (struct.error, UnicodeDecodeError) as error:
        raise InvalidRequest(
            f"not a frame: the descriptions of its arrays are invalid ({error})"
        ) from error
    if position + head_length > end:
        raise InvalidRequest(
            f"not a frame: a head of {head_length} bytes does not fit into {end - position}"
        )
    head = head_type()
    try:
        head.ParseFromString(bytes(view[position : position + head_length]))
    except DecodeError as error:
        raise InvalidRequest(
            f"not a {head_type.DESCRIPTOR.name}: the head of the frame cannot be parsed ({error})"
        ) from error
    position += head_length
    position += (-position) % 8
    arrays: dict[str, Array] = {}
    for name, code, wire_code, flags, shape in descriptors:
        dtype, size = _DTYPES[wire_code], 1
        for extent in shape:
            size *= extent  # Python integers: a shape cannot overflow and pass the next check
        if position + size * dtype.itemsize > end:
            raise InvalidRequest(
                f"not a frame: the array {name!r} of shape {list(shape)} does not fit into "
                f"{end - position} bytes"
            )
        try:
            array = np.frombuffer(view, dtype, size, position if size else 0).reshape(shape)
        # too many dimensions, or an empty array with extents too large for NumPy
        except ValueError as error:
            raise InvalidRequest(
                f"not a frame: the array {name!r} has an invalid shape of {len(shape)} extents "
                f"({error})"
            ) from error
        if wire_code != code:
            array = _widen(array, flags)
        arrays[name] = array
        position += size * dtype.itemsize + (-size * dtype.itemsize) % 8
    return Frame(head, arrays)
