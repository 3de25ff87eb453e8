"""Tests of stop flags: kernels check them within a row, and return no partial result."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.kit.images import Edges, Nodes, version_of
from tests.kit.waiting import wait_until

from asterism_model.schema import EdgeType, Feature, NodeType, Schema
from asterism_proto.errors import Deadline
from storaged import sampling
from storaged.sampling import cancellation
from storaged.sampling.cancellation import no_checkpoint

HUB, MANY = 200_000, 100_000
NODES = 60


@pytest.fixture(scope="module")
def version() -> sampling.LocalVersion:
    """Return a hub with a few edges of almost all weight.

    Sampling without replacement therefore switches to exponential keys.
    """
    weighted: dict[str, Any] = {
        "weighted": True,
        "features": (Feature(name="t", dtype="int64"),),
        "time": "t",
    }
    kinds = (
        EdgeType(src_type="n", relation="a", dst_type="n", **weighted),
        EdgeType(src_type="n", relation="b", dst_type="n"),
    )
    schema = Schema(node_types=(NodeType(name="n"),), edge_types=kinds, parts=2)
    rng = np.random.default_rng(3)
    src, dst = np.zeros(HUB, np.int64), rng.integers(0, HUB, HUB)
    weights = rng.random(HUB).astype(np.float32)
    weights[:5] = 1e9
    edges = {
        "n:a:n": Edges(src=src, dst=dst, weights=weights, times=rng.integers(0, 50, HUB)),
        "n:b:n": Edges(src=src, dst=dst[::-1].copy()),
    }
    return version_of(schema, {"n": Nodes(ids=np.arange(HUB))}, edges)


def hub_arguments(nodes: int = NODES, **changes: Any) -> dict[str, Any]:
    """Return arguments of neighbor sampling from the hub."""
    ids = np.zeros(nodes, np.int64)
    arguments: dict[str, Any] = {
        "edge_types": [0],
        "node_type": 0,
        "ids": ids,
        "positions": np.arange(nodes),
        "count": 50,
        "replace": False,
    }
    arguments |= {
        "uniform": False,
        "direction": 1,
        "seed": 3,
        "hop": 0,
        "want_weights": True,
        "want_edge_ids": True,
    }
    return arguments | changes


def temporal_filter(nodes: int = NODES) -> sampling.TemporalFilter:
    return sampling.TemporalFilter(
        times=np.full(nodes, 60), strict=False, last=False, want_times=True
    )


EXPANSION_OPTIONS: dict[str, Any] = {
    "seed": 5,
    "direction": 1,
    "uniform": False,
    "want_eids": True,
    "want_weights": True,
}
NO_EXCLUSIONS: dict[str, Any] = {
    "taken_ids": np.zeros(0, np.int64),
    "taken_types": np.zeros(0, np.int32),
}
Run = Callable[..., Any]
CALLS: dict[str, Run] = {
    "distinct": lambda v, **k: sampling.sample_neighbors(v, **hub_arguments(), **k),
    "many distinct": lambda v, **k: sampling.sample_neighbors(
        v, **hub_arguments(1, count=MANY), **k
    ),
    "distinct of a union": lambda v, **k: sampling.sample_neighbors(
        v, **hub_arguments(edge_types=[0, 1]), **k
    ),
    "different": lambda v, **k: sampling.sample_neighbors(
        v, **hub_arguments(), distinct_neighbors=True, **k
    ),
    "different of a union": lambda v, **k: sampling.sample_neighbors(
        v, **hub_arguments(edge_types=[0, 1]), distinct_neighbors=True, **k
    ),
    "timed": lambda v, **k: sampling.sample_temporal_neighbors(
        v, **hub_arguments(), temporal_filter=temporal_filter(), **k
    ),
    "top": lambda v, **k: sampling.top_neighbors(
        v,
        edge_types=[0, 1],
        node_type=0,
        ids=hub_arguments()["ids"],
        direction=1,
        count=50,
        want_edge_ids=True,
        **k,
    ),
    "many of the top": lambda v, **k: sampling.top_neighbors(
        v,
        edge_types=[0],
        node_type=0,
        ids=hub_arguments(1)["ids"],
        direction=1,
        count=MANY,
        want_edge_ids=True,
        **k,
    ),
    "expand": lambda v, **k: sampling.expand(
        v,
        sampling.Expansion(replace=False, **EXPANSION_OPTIONS),
        edge_type=0,
        hop=1,
        count=MANY,
        ids=hub_arguments(1)["ids"],
        trees=None,
        **k,
    ),
    **{
        f"labor, importance {steps}": lambda v, steps=steps, **k: sampling.expand(
            v,
            sampling.Expansion(
                replace=False,
                labor=sampling.LaborOptions(layer_dependency=False, importance=steps),
                **EXPANSION_OPTIONS,
            ),
            edge_type=0,
            hop=1,
            count=50,
            ids=hub_arguments()["ids"],
            trees=None,
            **k,
        )
        for steps in (0, 2)
    },
    "edges among nodes": lambda v, **k: sampling.find_induced_edges(
        v,
        edge_types=[0],
        node_type=0,
        ids=hub_arguments()["ids"],
        cols=np.arange(HUB),
        direction=1,
        want_weights=False,
        want_edge_ids=False,
        **k,
    ),
    "race of edges": lambda v, **k: sampling.sample_distinct_edges(
        v, types=[0, 1], parts=[0, 1], seed=9, count=MANY, uniform=False, **NO_EXCLUSIONS, **k
    ),
}


def enter_with_flag_set(stop: cancellation.StopFlag) -> cancellation.StopFlag:
    """Set the flag from the start."""
    stop.flag[0] = 1
    return stop


def measure_thread_s(run: Callable[[], object]) -> float:
    """Return the processor time of this thread for a call."""
    started_at = time.thread_time()
    run()
    return time.thread_time() - started_at


@pytest.mark.parametrize("call", CALLS)
def test_kernels_stop_inside_one_row(
    call: str, version: sampling.LocalVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the flag set, kernels take a small part of the full time and raise Deadline."""
    CALLS[call](version)  # compiles, and caches data of the version
    full_s = measure_thread_s(lambda: CALLS[call](version))

    def run_stopped() -> None:
        with pytest.raises(Deadline):
            CALLS[call](version, checkpoint=lambda: None)

    with monkeypatch.context() as patch:
        patch.setattr(cancellation.StopFlag, "__enter__", enter_with_flag_set)
        assert measure_thread_s(run_stopped) < full_s / 3


def test_a_checkpoint_that_raises_sets_the_flag() -> None:
    expired: list[int] = []

    def checkpoint() -> None:
        if expired:
            raise Deadline("time is up")

    with cancellation.StopFlag(checkpoint) as stop:
        stop.check()
        expired.append(1)
        wait_until(lambda: stop.flag[0] != 0, "the flag is set")
        with pytest.raises(Deadline, match="time is up"):
            stop.check()


def test_released_stop_flags_are_not_watched() -> None:
    calls: list[int] = []
    with cancellation.StopFlag(lambda: calls.append(1)) as first:
        wait_until(lambda: len(calls) > 2, "the checkpoint is called")
    with cancellation.StopFlag(no_checkpoint) as second:
        pass
    assert not {id(first), id(second)} & cancellation._watcher._stops.keys()


def _wait_for_flag() -> None:
    with cancellation.StopFlag(_raise) as stop:
        wait_until(lambda: stop.flag[0] != 0, "the flag is set")


def _raise() -> None:
    raise Deadline("time is up")


def test_forked_process_has_its_own_watcher() -> None:
    _wait_for_flag()  # starts the watcher thread of this process
    child = multiprocessing.get_context("fork").Process(target=_wait_for_flag)
    child.start()
    child.join()
    assert child.exitcode == 0
