"""Tests that memory of large arrays is reused once the last view is gone, and not before."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from asterism_io import buffer_pool
from asterism_proto.framing import Frame, decode, encode
from asterism_proto.v1.graphd_pb2 import SampleNodesRequest

LARGE = buffer_pool.MIN_BYTES // 4 + 1000  # float32


@pytest.fixture(autouse=True)
def empty_pool() -> Iterator[None]:
    buffer_pool._free_buffers.clear()
    yield
    buffer_pool._free_buffers.clear()


def test_memory_is_reused_by_an_array_of_similar_size() -> None:
    first = buffer_pool.empty((LARGE // 8, 8), np.float32)
    address = first.ctypes.data
    assert first.shape == (LARGE // 8, 8)
    assert first.dtype == np.float32
    assert first.flags.writeable
    assert first.flags.c_contiguous
    del first
    second = buffer_pool.empty((LARGE // 2 + 100,), np.int64)
    assert second.ctypes.data == address
    assert buffer_pool.empty((LARGE,), np.float32).ctypes.data != address


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a[5:9],
        lambda a: a.reshape(4, -1)[1],
        lambda a: a.view(np.uint8).data,
        lambda a: np.frombuffer(a.data, np.float32, 3, 8),
    ],
)
def test_memory_is_not_reused_while_a_view_of_it_exists(view: object) -> None:
    array = buffer_pool.empty((LARGE // 4 * 4,), np.float32)
    array[:] = 7
    retained = view(array)  # type: ignore[operator]
    del array
    other = buffer_pool.empty((LARGE // 4 * 4,), np.float32)
    other[:] = 9
    assert not np.may_share_memory(np.asarray(retained), other)
    assert (np.asarray(retained).view(np.float32) == 7).all()
    del retained
    assert len(buffer_pool._free_buffers) == 1


def test_arrays_of_a_frame_keep_its_buffer_alive() -> None:
    raw = encode(
        Frame(SampleNodesRequest(), {"x": np.arange(LARGE, dtype=np.float32)}), envelope=False
    )
    body = buffer_pool.empty((len(raw),), np.uint8)
    body[:] = np.frombuffer(raw, np.uint8)
    decoded = decode(body.data, SampleNodesRequest, envelope=False).arrays["x"]
    del body
    buffer_pool.empty((len(raw),), np.uint8)[:] = 0
    assert (decoded == np.arange(LARGE)).all()


def test_small_arrays_are_numpys_own() -> None:
    array = buffer_pool.empty((3, 4), np.int16)
    assert array.shape == (3, 4)
    assert array.dtype == np.int16
    assert array.flags.owndata
    assert buffer_pool.empty((0, 4), np.int16).shape == (0, 4)
    del array
    assert not buffer_pool._free_buffers


def test_size_of_the_pool_is_bounded() -> None:
    for count in (2, 5):
        many = [buffer_pool.empty((LARGE,), np.float32) for _ in range(count)]
        del many
        assert 0 < sum(raw.nbytes for raw in buffer_pool._free_buffers) <= buffer_pool.MAX_BYTES
    assert buffer_pool.empty((buffer_pool.MAX_BYTES + 1,), np.uint8).flags.owndata


def test_arrays_of_several_threads_never_share_memory() -> None:
    wrong: list[int] = []

    def work(number: int) -> None:
        for repeat in range(30):
            array = buffer_pool.empty((LARGE,), np.float32)
            array[::4096] = number * 1000 + repeat
            time.sleep(0.001)
            if not (array[::4096] == number * 1000 + repeat).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
