"""Tests of the data of the pages: concurrent readings of weight histograms."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.kit.waiting import HANG_S, wait_until

from asterism_daemonkit.rpc.transports import LocalTransport
from asterism_proto.errors import Busy
from asterism_proto.v1 import common_pb2 as common_pb
from graphd.pages.catalog_reader import PageData

SPACE = common_pb.Space(space_id=1, name="shop")
MANIFEST = common_pb.Manifest(version=3, digest="d")


class _SlowReader:
    """Reader of histograms that waits until it is released."""

    def __init__(self) -> None:
        self.begun, self.released = threading.Event(), threading.Event()
        self.reads: list[int] = []

    def __call__(self, *arguments: Any) -> Any:
        self.reads.append(arguments[3])
        self.begun.set()
        assert self.released.wait(HANG_S)
        return f"histogram of type {arguments[3]}", None


class _CountingCondition(threading.Condition):
    """Condition that counts the waits."""

    waits = 0

    def wait(self, timeout: float | None = None) -> bool:
        self.waits += 1
        return super().wait(timeout)


def test_readers_of_one_histogram_share_one_reading() -> None:
    reader = _SlowReader()
    data = PageData(LocalTransport({}), reader, lambda _: LocalTransport({}))
    data._reading = condition = _CountingCondition()
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(data.histogram, SPACE, MANIFEST, 1, 0, "")
        assert reader.begun.wait(HANG_S)
        second = threads.submit(data.histogram, SPACE, MANIFEST, 1, 0, "")
        wait_until(lambda: condition.waits > 0, "the second call waits for the first")
        reader.released.set()
        assert first.result() is second.result()
    assert reader.reads == [0]


def test_reader_of_another_type_is_busy() -> None:
    reader = _SlowReader()
    data = PageData(LocalTransport({}), reader, lambda _: LocalTransport({}))
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(data.histogram, SPACE, MANIFEST, 1, 0, "")
        assert reader.begun.wait(HANG_S)
        with pytest.raises(Busy, match="another type"):
            data.histogram(SPACE, MANIFEST, 1, 1, "")
        reader.released.set()
        first.result()
    data.histogram(SPACE, MANIFEST, 1, 1, "")
    assert reader.reads == [0, 1]
