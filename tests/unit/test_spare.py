"""Memory of large arrays: used again once the last view of it has gone, and never before."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from asterism_proto import spare
from asterism_proto.arrays import Frame, decode, encode
from asterism_proto.v1.graphd_pb2 import SampleNodesRequest

LARGE = spare.LEAST // 4 + 1000  # float32


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    spare._spare.clear()
    yield
    spare._spare.clear()


def test_memory_is_used_again_by_the_next_array_of_about_its_size() -> None:
    first = spare.empty((LARGE // 8, 8), np.float32)
    place = first.ctypes.data
    assert first.shape == (LARGE // 8, 8)
    assert first.dtype == np.float32
    assert first.flags.writeable
    assert first.flags.c_contiguous
    del first
    second = spare.empty((LARGE // 2 + 100,), np.int64)
    assert second.ctypes.data == place
    assert spare.empty((LARGE,), np.float32).ctypes.data != place


@pytest.mark.parametrize(
    "view", [lambda a: a[5:9], lambda a: a.reshape(4, -1)[1], lambda a: a.view(np.uint8).data, lambda a: np.frombuffer(a.data, np.float32, 3, 8)]
)
def test_memory_is_not_used_while_a_view_of_it_is_there(view: object) -> None:
    array = spare.empty((LARGE // 4 * 4,), np.float32)
    array[:] = 7
    kept = view(array)  # type: ignore[operator]
    del array
    other = spare.empty((LARGE // 4 * 4,), np.float32)
    other[:] = 9
    assert not np.may_share_memory(np.asarray(kept), other)
    assert (np.asarray(kept).view(np.float32) == 7).all()
    del kept
    assert len(spare._spare) == 1


def test_arrays_of_a_frame_keep_what_they_lie_in() -> None:
    raw = encode(Frame(SampleNodesRequest(), {"x": np.arange(LARGE, dtype=np.float32)}), envelope=False)
    body = spare.empty((len(raw),), np.uint8)
    body[:] = np.frombuffer(raw, np.uint8)
    found = decode(body.data, SampleNodesRequest, envelope=False).arrays["x"]
    del body
    spare.empty((len(raw),), np.uint8)[:] = 0
    assert (found == np.arange(LARGE)).all()


def test_small_arrays_are_numpys_own() -> None:
    array = spare.empty((3, 4), np.int16)
    assert array.shape == (3, 4)
    assert array.dtype == np.int16
    assert array.flags.owndata
    assert spare.empty((0, 4), np.int16).shape == (0, 4)
    del array
    assert not spare._spare


def test_no_more_is_kept_than_there_is_room_for() -> None:
    for count in (2, 5):
        many = [spare.empty((LARGE,), np.float32) for _ in range(count)]
        del many
        assert 0 < sum(raw.nbytes for raw in spare._spare) <= spare.MOST
    assert spare.empty((spare.MOST + 1,), np.uint8).flags.owndata


def test_arrays_of_several_threads_never_share_memory() -> None:
    wrong: list[int] = []

    def work(number: int) -> None:
        for turn in range(30):
            own = spare.empty((LARGE,), np.float32)
            own[::4096] = number * 1000 + turn
            time.sleep(0.001)
            if not (own[::4096] == number * 1000 + turn).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
