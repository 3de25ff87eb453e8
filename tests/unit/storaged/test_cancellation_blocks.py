"""Tests of sampling in blocks: equal bytes for any block size, and stops in between."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from tests.kit.images import Edges, Nodes, version_of

from asterism_model.schema import EdgeType, Feature, NodeType, Schema
from asterism_proto.errors import Deadline
from storaged import sampling
from storaged.sampling import cancellation

BLOCKWISE_MODULES = [
    import_module(f"storaged.sampling.{name}")
    for name in [
        "global_sampling.edges",
        "global_sampling.nodes",
        "global_sampling.nodes_by_index",
        "global_sampling.without_replacement",
        "has_edge",
        "node_lookup",
        "neighbors.sample_neighbors",
        "neighbors.temporal",
        "neighbors.degrees",
        "neighbors.top_k",
        "subgraphs.expand",
    ]
]
NODES, EDGES = 60, 500
RNG = np.random.default_rng(4)


@pytest.fixture(scope="module")
def version() -> sampling.LocalVersion:
    weighted = {"weighted": True, "features": (Feature(name="t", dtype="int64"),), "time": "t"}
    schema = Schema(
        node_types=(NodeType(name="n", weighted=True), NodeType(name="m")),
        edge_types=(
            EdgeType(src_type="n", relation="a", dst_type="n", **weighted),  # type: ignore[arg-type]
            EdgeType(src_type="n", relation="b", dst_type="n"),
        ),
        parts=3,
    )
    src, dst = RNG.integers(0, NODES, EDGES), RNG.integers(0, NODES, EDGES)
    weights, times = (
        (RNG.random(EDGES) * (RNG.random(EDGES) > 0.2)).astype(np.float32),
        RNG.integers(0, 50, EDGES),
    )
    edges = {
        "n:a:n": Edges(src=src, dst=dst, weights=weights, times=times),
        "n:b:n": Edges(src=dst, dst=src),
    }
    ids = np.arange(NODES)
    return version_of(
        schema,
        {
            "n": Nodes(ids=ids, weights=RNG.random(NODES).astype(np.float32)),
            "m": Nodes(ids=np.arange(7)),
        },
        edges,
    )


def neighbor_arguments(**changes: Any) -> dict[str, Any]:
    ids = np.r_[np.arange(40), -1, 5, 9999]
    arguments = {
        "edge_types": [0],
        "node_type": 0,
        "ids": ids,
        "positions": np.arange(ids.size),
        "count": 4,
        "replace": True,
        "uniform": False,
    }
    return (
        arguments
        | {"direction": 1, "seed": 3, "hop": 0, "want_weights": True, "want_edge_ids": True}
        | changes
    )


def read_arguments(**changes: Any) -> dict[str, Any]:
    return {
        "edge_types": [0, 1],
        "node_type": 0,
        "ids": np.r_[np.arange(30), -1],
        "direction": 1,
    } | changes


def global_arguments(**changes: Any) -> dict[str, Any]:
    return {"types": [0], "parts": [0, 1, 2], "seed": 9, "count": 25, "uniform": False} | changes


EXCLUSIONS: dict[str, Any] = {"taken_ids": np.array([1, 5]), "taken_types": np.zeros(2, np.int32)}
EXPANSION_OPTIONS = {
    "seed": 5,
    "direction": 1,
    "uniform": False,
    "want_eids": True,
    "want_weights": True,
}
TEMPORAL_FILTER = sampling.TemporalFilter(
    times=np.arange(43) % 50, strict=False, last=False, want_times=True
)
MIXED_TYPES = {
    "node_type": -1,
    "types": np.r_[np.tile(np.array([0, 1], np.int32), 21), np.int32(-1)],
}

Run = Callable[..., Any]
CALLS: dict[str, Run] = {
    "nodes": lambda v, **k: sampling.sample_nodes(v, start=7, **global_arguments(), **k),
    "nodes of types with probabilities": lambda v, **k: sampling.sample_nodes(
        v, start=0, **global_arguments(types=[0, 1], uniform=True), want_probabilities=True, **k
    ),
    "edges": lambda v, **k: sampling.sample_edges(
        v, start=0, **global_arguments(types=[0, 1]), want_probabilities=True, **k
    ),
    "race of nodes": lambda v, **k: sampling.sample_distinct_nodes(
        v, **global_arguments(), **EXCLUSIONS, want_probabilities=True, **k
    ),
    "race of more nodes than there are": lambda v, **k: sampling.sample_distinct_nodes(
        v, **global_arguments(count=1 << 20), **EXCLUSIONS, **k
    ),
    "race of edges": lambda v, **k: sampling.sample_distinct_edges(
        v, **global_arguments(count=200), **EXCLUSIONS, **k
    ),
    "rest of nodes": lambda v, **k: sampling.remaining_node_weight(
        v, types=[0], parts=[0, 1, 2], **EXCLUSIONS, **k
    ),
    "rest of edges": lambda v, **k: sampling.remaining_edge_weight(
        v, types=[0], parts=[0, 1, 2], **EXCLUSIONS, **k
    ),
    "numbered nodes": lambda v, **k: sampling.sample_nodes_by_index(
        v, types=[0, 1], draw_indices=np.arange(30) * 7, seed=3, uniform=True, **k
    ),
    "neighbors": lambda v, **k: sampling.sample_neighbors(
        v, **neighbor_arguments(), want_probabilities=True, **k
    ),
    "only ids": lambda v, **k: sampling.sample_neighbors(
        v, **neighbor_arguments(want_weights=False, want_edge_ids=False), **k
    ),
    "neighbors of mixed nodes": lambda v, **k: sampling.sample_neighbors(
        v, **neighbor_arguments(**MIXED_TYPES), **k
    ),
    "distinct": lambda v, **k: sampling.sample_neighbors(
        v, **neighbor_arguments(replace=False), want_probabilities=True, **k
    ),
    "distinct of a union": lambda v, **k: sampling.sample_neighbors(
        v, **neighbor_arguments(replace=False, edge_types=[0, 1]), want_probabilities=True, **k
    ),
    "different": lambda v, **k: sampling.sample_neighbors(
        v, **neighbor_arguments(replace=False), distinct_neighbors=True, **k
    ),
    "different of a union": lambda v, **k: sampling.sample_neighbors(
        v, **neighbor_arguments(replace=False, edge_types=[0, 1]), distinct_neighbors=True, **k
    ),
    "timed": lambda v, **k: sampling.sample_temporal_neighbors(
        v, **neighbor_arguments(replace=False), temporal_filter=TEMPORAL_FILTER, **k
    ),
    "top": lambda v, **k: sampling.top_neighbors(
        v, **read_arguments(), count=3, want_edge_ids=True, **k
    ),
    "top of more than there are": lambda v, **k: sampling.top_neighbors(
        v, **read_arguments(), count=2000, want_edge_ids=True, **k
    ),
    "degrees": lambda v, **k: sampling.degrees(v, **read_arguments(), **k),
    "measures": lambda v, **k: sampling.type_weights(v, **read_arguments(), uniform=False, **k),
    "node types": lambda v, **k: sampling.node_types(
        v, 0, np.r_[np.arange(70), -1], None, *k.values()
    ),
    "joined": lambda v, **k: sampling.has_edge(
        v,
        edge_types=[0, 1],
        ids=np.arange(50),
        kinds=np.zeros(50, np.int32),
        targets=np.arange(50)[::-1].copy(),
        target_kinds=None,
        direction=1,
        **k,
    ),
}
for replace, count, until in itertools.product([False, True], [3, 9], [None, TEMPORAL_FILTER]):
    CALLS[f"expand {replace} {count} {until is not None}"] = (
        lambda v, replace=replace, count=count, until=until, **k: sampling.expand(
            v,
            sampling.Expansion(replace=replace, **EXPANSION_OPTIONS),
            edge_type=0,
            hop=1,
            count=count,
            ids=neighbor_arguments()["ids"],
            trees=None,
            temporal_filter=until,
            **k,
        )
    )


def arrays_of(result: Any) -> list[np.ndarray[Any, Any] | None]:
    if not is_dataclass(result):
        return [result]
    return [array for field in fields(result) for array in arrays_of(getattr(result, field.name))]


@pytest.mark.parametrize("call", CALLS)
def test_blocks_give_the_same_bytes(
    call: str, version: sampling.LocalVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    single_block = arrays_of(CALLS[call](version))
    with monkeypatch.context() as patch:
        original = cancellation.blocks
        for module in BLOCKWISE_MODULES:
            patch.setattr(
                module,
                "blocks",
                lambda count, first, checkpoint, max_size=3: original(
                    count, 3, checkpoint, max_size=3
                ),
            )
            for name in ("BLOCK_DRAWS", "BLOCK_NODES", "BLOCK_EDGES", "_MIN_SELECT_NODES"):
                patch.setattr(module, name, 3, raising=False)
        checkpoint_calls: list[int] = []
        blockwise = arrays_of(CALLS[call](version, checkpoint=lambda: checkpoint_calls.append(1)))
    assert checkpoint_calls, "it was cut"
    assert len(single_block) == len(blockwise)
    for expected, actual in zip(single_block, blockwise, strict=True):
        assert (expected is None) == (actual is None)
        if expected is not None and actual is not None:
            assert (expected.dtype, expected.shape) == (actual.dtype, actual.shape)
            assert expected.tobytes() == actual.tobytes()


def test_a_checkpoint_that_raises_stops_between_blocks() -> None:
    countdown = iter([3, 2, 1])

    def checkpoint() -> None:
        if not next(countdown, 0):
            raise Deadline("time is up")

    started: list[slice] = []
    with pytest.raises(Deadline):
        any(started.append(block) for block in cancellation.blocks(100, 10, checkpoint))
    assert [block.stop for block in started] == [10, 20, 30]


def test_blocks_by_work_hold_a_quota_or_one_node() -> None:
    work = np.array([3, 3, 3, 50, 0, 0, 9, 1, 1])
    checkpoint_calls: list[int] = []
    work_blocks = [*cancellation.blocks_by_work(work, 9, lambda: checkpoint_calls.append(1))]
    assert [(block.start, block.stop) for block in work_blocks] == [(0, 3), (3, 4), (4, 7), (7, 9)]
    assert len(checkpoint_calls) == 3
    assert [*cancellation.blocks_by_work(work[:0], 9, cancellation.no_checkpoint)] == [slice(0, 0)]


def test_block_size_adapts_to_elapsed_time() -> None:
    """The elapsed time is measured by the remaining seconds.

    Slow blocks are halved, fast ones doubled.
    """
    for elapsed_s, sizes in (
        (0.001, [10, 20, 40, 30]),
        (0.01, [10] * 10),
        (1.0, [10, 5, 2, *[1] * 83]),
    ):
        remaining_s = (100.0 - elapsed_s * step for step in range(200))
        assert [
            block.stop - block.start for block in cancellation.blocks(100, 10, remaining_s.__next__)
        ] == sizes
    assert [*cancellation.blocks(0, 10, cancellation.no_checkpoint)] == [slice(0, 0)]
    assert (
        max(
            block.stop - block.start
            for block in cancellation.blocks(
                100, 10, iter(map(float, range(1000, 0, -1))).__next__, max_size=10
            )
        )
        <= 10
    )
