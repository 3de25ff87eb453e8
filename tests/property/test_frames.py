"""Frames survive encoding unchanged; invalid bytes are refused with a message."""

from __future__ import annotations

import contextlib
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from asterism_proto import framing
from asterism_proto.errors import InvalidRequest
from asterism_proto.framing import DTYPES, Frame
from asterism_proto.v1.common_pb2 import Frame as Envelope
from asterism_proto.v1.graphd_pb2 import SampleNodesRequest

COLUMNS = st.sampled_from(sorted(DTYPES)).flatmap(
    lambda name: hnp.arrays(name, hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=5))
)
FRAMES = st.builds(
    Frame,
    st.builds(
        SampleNodesRequest,
        space=st.text(max_size=20),
        seed=st.integers(0, 2**64 - 1),
        types=st.lists(st.integers(0, 9), max_size=4),
    ),
    st.dictionaries(st.text("abc.:_", min_size=1, max_size=12), COLUMNS, max_size=4),
)


def frames_equal(decoded: Frame, sent: Frame) -> bool:
    return (
        decoded.head == sent.head
        and list(decoded.arrays) == list(sent.arrays)
        and all(
            decoded.arrays[name].dtype == array.dtype
            and decoded.arrays[name].shape == array.shape
            and decoded.arrays[name].tobytes() == array.tobytes()
            for name, array in sent.arrays.items()
        )
    )


@given(frame=FRAMES, envelope=st.booleans())
def test_frame_round_trips_bit_for_bit(frame: Frame, envelope: bool) -> None:
    encoded = framing.encode(frame, envelope=envelope)
    decoded = framing.decode(encoded, SampleNodesRequest, envelope=envelope)
    assert frames_equal(decoded, frame)
    # Kernels are compiled for aligned arrays only. Sections are aligned relative to the buffer that
    # they arrive in.
    offsets = [
        array.__array_interface__["data"][0]
        - np.frombuffer(encoded, np.uint8).__array_interface__["data"][0]
        for array in decoded.arrays.values()
        if array.size
    ]
    assert all(offset % 8 == 0 for offset in offsets)


@given(frame=FRAMES)
def test_a_frame_is_a_protobuf_message_of_one_field(frame: Frame) -> None:
    encoded = framing.encode(frame)
    message = Envelope.FromString(encoded)
    assert message.body
    assert message.SerializeToString() == encoded


@pytest.mark.parametrize("lowest", [0, -1, -2])
@pytest.mark.parametrize("highest", [7, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1, 2**40])
def test_ids_are_narrowed_only_where_that_loses_nothing(lowest: int, highest: int) -> None:
    ids = np.arange(5000, dtype=np.int64)
    ids[17], ids[4999] = lowest, highest
    frame = Frame(SampleNodesRequest(), {"ids": ids})
    encoded = framing.encode(frame)
    assert (len(encoded) < ids.nbytes) == (lowest >= -1 and highest < 2**32 - 1)
    assert frames_equal(framing.decode(encoded, SampleNodesRequest), frame)
    assert len(framing.encode(frame, narrow=False)) > ids.nbytes


@given(frame=FRAMES, data=st.data())
def test_damaged_bytes_decode_or_are_an_invalid_request(frame: Frame, data: st.DataObject) -> None:
    encoded = bytearray(framing.encode(frame))
    position = data.draw(st.integers(0, len(encoded) - 1))
    encoded[position] ^= data.draw(st.integers(1, 255))
    end = data.draw(st.integers(0, len(encoded)))
    for damaged in (bytes(encoded), bytes(encoded[:end])):
        with contextlib.suppress(InvalidRequest):
            decoded = framing.decode(damaged, SampleNodesRequest)
            assert sum(array.nbytes for array in decoded.arrays.values()) <= 2 * len(damaged)


@given(data=st.binary(max_size=200))
def test_arbitrary_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidRequest, match="not a frame"):
        framing.decode(data, SampleNodesRequest)


@pytest.mark.parametrize("shape", [(0, 1 << 62, 2), (1 << 40, 1 << 40, 0), (0,) * 70, (1,) * 70])
def test_impossible_shape_is_refused(shape: tuple[int, ...]) -> None:
    valid_array = np.zeros([min(extent, 1) for extent in shape[:2]], np.int8)
    sent = framing.encode(Frame(SampleNodesRequest(), {"ids": valid_array}), envelope=False)
    head = framing._FRAME_HEADER.size
    code, wire, _, name, flags = framing._DESCRIPTOR.unpack_from(sent, head)
    descriptor = framing._DESCRIPTOR.pack(code, wire, len(shape), name, flags) + struct.pack(
        f"<{len(shape)}q", *shape
    )
    remainder = sent[head + framing._DESCRIPTOR.size + 8 * valid_array.ndim :]
    with pytest.raises(
        InvalidRequest,
        match=r"not a frame: the array 'ids' has an invalid shape of \d+ extents",
    ):
        framing.decode(sent[:head] + descriptor + remainder, SampleNodesRequest, envelope=False)


@pytest.mark.parametrize(
    ("name", "dtype", "ndim", "said"),
    [("b", "int64", 1, "missing"), ("a", "int32", 1, "int64"), ("a", "int64", 2, "2 dimension")],
)
def test_invalid_section_is_named(name: str, dtype: str, ndim: int, said: str) -> None:
    sections: dict[str, NDArray[np.int64]] = {"a": np.zeros(3, np.int64)}
    with pytest.raises(InvalidRequest, match=said):
        Frame(SampleNodesRequest(), sections).array(name, dtype, ndim)
