"""Stop flags: kernels look at them inside one node's row, and nothing incomplete is returned."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.kit.images import Edges, Nodes, version_of
from tests.kit.waiting import wait_until

from asterism_proto.errors import Deadline
from asterism_proto.schema import EdgeType, Feature, NodeType, Schema
from storaged import draw
from storaged.draw import stops
from storaged.draw.blocks import never

HUB, MANY = 200_000, 100_000
NODES = 60


@pytest.fixture(scope="module")
def version() -> draw.Version:
    """A hub, few of whose edges weigh almost all, so that draws without replacement end in a race."""
    weighted: dict[str, Any] = {"weighted": True, "features": (Feature(name="t", dtype="int64"),), "time": "t"}
    kinds = (EdgeType(src_type="n", relation="a", dst_type="n", **weighted), EdgeType(src_type="n", relation="b", dst_type="n"))
    schema = Schema(node_types=(NodeType(name="n"),), edge_types=kinds, parts=2)
    rng = np.random.default_rng(3)
    src, dst = np.zeros(HUB, np.int64), rng.integers(0, HUB, HUB)
    weights = rng.random(HUB).astype(np.float32)
    weights[:5] = 1e9
    edges = {"n:a:n": Edges(src=src, dst=dst, weights=weights, times=rng.integers(0, 50, HUB)), "n:b:n": Edges(src=src, dst=dst[::-1].copy())}
    return version_of(schema, {"n": Nodes(ids=np.arange(HUB))}, edges)


def near(nodes: int = NODES, **changes: Any) -> dict[str, Any]:
    """Arguments of draws of neighbors of the hub."""
    ids = np.zeros(nodes, np.int64)
    given: dict[str, Any] = {"edge_types": [0], "node_type": 0, "ids": ids, "positions": np.arange(nodes), "count": 50, "replace": False}
    given |= {"uniform": False, "direction": 1, "seed": 3, "hop": 0, "want_weights": True, "want_edge_ids": True}
    return given | changes


def until(nodes: int = NODES) -> draw.Until:
    return draw.Until(times=np.full(nodes, 60), strict=False, last=False, want_times=True)


HOW: dict[str, Any] = {"seed": 5, "direction": 1, "uniform": False, "want_eids": True, "want_weights": True}
NONE: dict[str, Any] = {"taken_ids": np.zeros(0, np.int64), "taken_types": np.zeros(0, np.int32)}
Run = Callable[..., Any]
CALLS: dict[str, Run] = {
    "distinct": lambda v, **k: draw.neighbors(v, **near(), **k),
    "many distinct": lambda v, **k: draw.neighbors(v, **near(1, count=MANY), **k),
    "distinct of a union": lambda v, **k: draw.neighbors(v, **near(edge_types=[0, 1]), **k),
    "different": lambda v, **k: draw.neighbors(v, **near(), different=True, **k),
    "different of a union": lambda v, **k: draw.neighbors(v, **near(edge_types=[0, 1]), different=True, **k),
    "timed": lambda v, **k: draw.timed_neighbors(v, **near(), until=until(), **k),
    "top": lambda v, **k: draw.top_neighbors(v, edge_types=[0, 1], node_type=0, ids=near()["ids"], direction=1, count=50, want_edge_ids=True, **k),
    "many of the top": lambda v, **k: draw.top_neighbors(
        v, edge_types=[0], node_type=0, ids=near(1)["ids"], direction=1, count=MANY, want_edge_ids=True, **k
    ),
    "expand": lambda v, **k: draw.expand(
        v, draw.Expansion(replace=False, **HOW), edge_type=0, hop=1, count=MANY, ids=near(1)["ids"], trees=None, **k
    ),
    "race of edges": lambda v, **k: draw.race_edges(v, types=[0, 1], parts=[0, 1], seed=9, count=MANY, uniform=False, **NONE, **k),
}


def entered(stop: stops.Stop) -> stops.Stop:
    """Set the flag from the start."""
    stop.flag[0] = 1
    return stop


def spent_s(run: Callable[[], object]) -> float:
    """Return the processor time of this thread that a call takes."""
    begun = time.thread_time()
    run()
    return time.thread_time() - begun


@pytest.mark.parametrize("call", CALLS)
def test_kernels_stop_inside_one_row(call: str, version: draw.Version, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the flag set from the start they take a small part of the whole time, and give Deadline instead of a result."""
    CALLS[call](version)  # compiled, and what is kept with the version is there
    whole = spent_s(lambda: CALLS[call](version))

    def stopped() -> None:
        with pytest.raises(Deadline):
            CALLS[call](version, checkpoint=lambda: None)

    with monkeypatch.context() as patch:
        patch.setattr(stops.Stop, "__enter__", entered)
        assert spent_s(stopped) < whole / 3


def test_a_checkpoint_that_raises_sets_the_flag() -> None:
    over: list[int] = []

    def checkpoint() -> None:
        if over:
            raise Deadline("time is up")

    with stops.Stop(checkpoint) as stop:
        stop.check()
        over.append(1)
        wait_until(lambda: stop.flag[0] != 0, "the flag is set")
        with pytest.raises(Deadline, match="time is up"):
            stop.check()


def test_stops_that_are_left_are_watched_no_longer() -> None:
    calls: list[int] = []
    with stops.Stop(lambda: calls.append(1)) as first:
        wait_until(lambda: len(calls) > 2, "the checkpoint is called")
    with stops.Stop(never) as second:
        pass
    assert not {id(first), id(second)} & stops._watch._stops.keys()


def _flagged_in_child() -> None:
    with stops.Stop(_raise) as stop:
        wait_until(lambda: stop.flag[0] != 0, "the flag is set")


def _raise() -> None:
    raise Deadline("time is up")


def test_forked_processes_have_a_watch_of_their_own() -> None:
    _flagged_in_child()  # the thread of this process runs
    child = multiprocessing.get_context("fork").Process(target=_flagged_in_child)
    child.start()
    child.join()
    assert child.exitcode == 0
