"""What is made of a version once: threads that make it side by side get the same, for tables of addresses keep none of what they tell of."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray
from tests.kit.images import Nodes, version_of
from tests.kit.waiting import HANG_S

from asterism_proto.schema import NodeType, Schema


def test_threads_that_make_the_same_get_the_one_that_is_kept() -> None:
    version = version_of(Schema(node_types=(NodeType(name="n"),), parts=1), {"n": Nodes(ids=np.arange(3))}, {})
    both_make, found = threading.Barrier(2, timeout=HANG_S), []

    def make() -> NDArray[np.int64]:
        both_make.wait()
        return np.zeros(1, np.int64)

    threads = [threading.Thread(target=lambda: found.append(version.once("it", make))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_S)
    assert len(found) == 2
    assert found[0] is found[1] is version.once("it", lambda: np.ones(1, np.int64))
