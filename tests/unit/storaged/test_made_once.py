"""Tests of data computed once per version: concurrent threads get the same objects.

Tables of addresses do not keep their arrays alive.
"""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray
from tests.kit.images import Nodes, version_of
from tests.kit.waiting import HANG_S

from asterism_model.schema import NodeType, Schema


def test_concurrent_builders_share_one_value() -> None:
    version = version_of(
        Schema(node_types=(NodeType(name="n"),), parts=1), {"n": Nodes(ids=np.arange(3))}, {}
    )
    barrier, values = threading.Barrier(2, timeout=HANG_S), []

    def build() -> NDArray[np.int64]:
        barrier.wait()
        return np.zeros(1, np.int64)

    threads = [
        threading.Thread(target=lambda: values.append(version.cached("it", build)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_S)
    assert len(values) == 2
    assert values[0] is values[1] is version.cached("it", lambda: np.ones(1, np.int64))
