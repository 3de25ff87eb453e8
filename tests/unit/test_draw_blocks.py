"""Draws in blocks: the same bytes whatever the size of a block, and a stop between two of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from tests.kit.images import Edges, Nodes, version_of

from asterism_proto.errors import Deadline
from asterism_proto.schema import EdgeType, Feature, NodeType, Schema
from storaged import draw
from storaged.draw import blocks

CUT = [
    import_module(f"storaged.draw.{name}") for name in ["edge", "expand", "joined", "lookup", "neighbor", "node", "numbered", "race", "timed", "top"]
]
NODES, EDGES = 60, 500
RNG = np.random.default_rng(4)


@pytest.fixture(scope="module")
def version() -> draw.Version:
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
    weights, times = (RNG.random(EDGES) * (RNG.random(EDGES) > 0.2)).astype(np.float32), RNG.integers(0, 50, EDGES)
    edges = {"n:a:n": Edges(src=src, dst=dst, weights=weights, times=times), "n:b:n": Edges(src=dst, dst=src)}
    ids = np.arange(NODES)
    return version_of(schema, {"n": Nodes(ids=ids, weights=RNG.random(NODES).astype(np.float32)), "m": Nodes(ids=np.arange(7))}, edges)


def near(**changes: Any) -> dict[str, Any]:
    ids = np.r_[np.arange(40), -1, 5, 9999]
    asked = {"edge_types": [0], "node_type": 0, "ids": ids, "positions": np.arange(ids.size), "count": 4, "replace": True, "uniform": False}
    return asked | {"direction": 1, "seed": 3, "hop": 0, "want_weights": True, "want_edge_ids": True} | changes


def read(**changes: Any) -> dict[str, Any]:
    return {"edge_types": [0, 1], "node_type": 0, "ids": np.r_[np.arange(30), -1], "direction": 1} | changes


def shares(**changes: Any) -> dict[str, Any]:
    return {"types": [0], "parts": [0, 1, 2], "seed": 9, "count": 25, "uniform": False} | changes


NOBODY: dict[str, Any] = {"taken_ids": np.array([1, 5]), "taken_types": np.zeros(2, np.int32)}
HOW = {"seed": 5, "direction": 1, "uniform": False, "want_eids": True, "want_weights": True}
UNTIL = draw.Until(times=np.arange(43) % 50, strict=False, last=False, want_times=True)
MIXED = {"node_type": -1, "types": np.r_[np.tile(np.array([0, 1], np.int32), 21), np.int32(-1)]}

Run = Callable[..., Any]
CALLS: dict[str, Run] = {
    "nodes": lambda v, **k: draw.nodes(v, start=7, **shares(), **k),
    "nodes of types with probabilities": lambda v, **k: draw.nodes(v, start=0, **shares(types=[0, 1], uniform=True), want_probabilities=True, **k),
    "edges": lambda v, **k: draw.edges(v, start=0, **shares(types=[0, 1]), want_probabilities=True, **k),
    "race of nodes": lambda v, **k: draw.race_nodes(v, **shares(), **NOBODY, want_probabilities=True, **k),
    "race of more nodes than there are": lambda v, **k: draw.race_nodes(v, **shares(count=1 << 20), **NOBODY, **k),
    "race of edges": lambda v, **k: draw.race_edges(v, **shares(count=200), **NOBODY, **k),
    "rest of nodes": lambda v, **k: draw.rest_of_nodes(v, types=[0], parts=[0, 1, 2], **NOBODY, **k),
    "rest of edges": lambda v, **k: draw.rest_of_edges(v, types=[0], parts=[0, 1, 2], **NOBODY, **k),
    "numbered nodes": lambda v, **k: draw.numbered_nodes(v, types=[0, 1], numbers=np.arange(30) * 7, seed=3, uniform=True, **k),
    "neighbors": lambda v, **k: draw.neighbors(v, **near(), want_probabilities=True, **k),
    "only ids": lambda v, **k: draw.neighbors(v, **near(want_weights=False, want_edge_ids=False), **k),
    "neighbors of mixed nodes": lambda v, **k: draw.neighbors(v, **near(**MIXED), **k),
    "distinct": lambda v, **k: draw.neighbors(v, **near(replace=False), want_probabilities=True, **k),
    "distinct of a union": lambda v, **k: draw.neighbors(v, **near(replace=False, edge_types=[0, 1]), want_probabilities=True, **k),
    "different": lambda v, **k: draw.neighbors(v, **near(replace=False), different=True, **k),
    "different of a union": lambda v, **k: draw.neighbors(v, **near(replace=False, edge_types=[0, 1]), different=True, **k),
    "timed": lambda v, **k: draw.timed_neighbors(v, **near(replace=False), until=UNTIL, **k),
    "top": lambda v, **k: draw.top_neighbors(v, **read(), count=3, want_edge_ids=True, **k),
    "top of more than there are": lambda v, **k: draw.top_neighbors(v, **read(), count=2000, want_edge_ids=True, **k),
    "degrees": lambda v, **k: draw.degrees(v, **read(), **k),
    "measures": lambda v, **k: draw.measures(v, **read(), uniform=False, **k),
    "node types": lambda v, **k: draw.node_types(v, 0, np.r_[np.arange(70), -1], None, *k.values()),
    "joined": lambda v, **k: draw.are_joined(
        v, edge_types=[0, 1], ids=np.arange(50), kinds=np.zeros(50, np.int32), targets=np.arange(50)[::-1].copy(), target_kinds=None, direction=1, **k
    ),
}
for replace, count, until in itertools.product([False, True], [3, 9], [None, UNTIL]):
    CALLS[f"expand {replace} {count} {until is not None}"] = lambda v, replace=replace, count=count, until=until, **k: draw.expand(
        v, draw.Expansion(replace=replace, **HOW), edge_type=0, hop=1, count=count, ids=near()["ids"], trees=None, until=until, **k
    )


def arrays_of(found: Any) -> list[np.ndarray[Any, Any] | None]:
    if not is_dataclass(found):
        return [found]
    return [array for field in fields(found) for array in arrays_of(getattr(found, field.name))]


@pytest.mark.parametrize("call", CALLS)
def test_blocks_give_the_same_bytes(call: str, version: draw.Version, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = arrays_of(CALLS[call](version))
    with monkeypatch.context() as patch:
        of = blocks.blocks
        for module in CUT:
            patch.setattr(module, "blocks", lambda count, first, checkpoint, most=3: of(count, 3, checkpoint, most=3))
            for name in ("DRAWS", "NODES", "EDGES", "_FEW"):
                patch.setattr(module, name, 3, raising=False)
        seen: list[int] = []
        pieces = arrays_of(CALLS[call](version, checkpoint=lambda: seen.append(1)))
    assert seen, "it was cut"
    assert len(whole) == len(pieces)
    for one, other in zip(whole, pieces, strict=True):
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            assert (one.dtype, one.shape) == (other.dtype, other.shape)
            assert one.tobytes() == other.tobytes()


def test_a_checkpoint_that_raises_stops_between_blocks() -> None:
    left = iter([3, 2, 1])

    def checkpoint() -> None:
        if not next(left, 0):
            raise Deadline("time is up")

    begun: list[slice] = []
    with pytest.raises(Deadline):
        any(begun.append(block) for block in blocks.blocks(100, 10, checkpoint))
    assert [block.stop for block in begun] == [10, 20, 30]


def test_blocks_by_work_hold_so_much_of_it_or_one_node() -> None:
    work = np.array([3, 3, 3, 50, 0, 0, 9, 1, 1])
    seen: list[int] = []
    found = [*blocks.by_work(work, 9, lambda: seen.append(1))]
    assert [(block.start, block.stop) for block in found] == [(0, 3), (3, 4), (4, 7), (7, 9)]
    assert len(seen) == 3
    assert [*blocks.by_work(work[:0], 9, blocks.never)] == [slice(0, 0)]


def test_blocks_follow_the_time_that_they_take() -> None:
    """Seconds left say how long a block took: long ones are halved, short ones doubled."""
    for took, sizes in ((0.001, [10, 20, 40, 30]), (0.01, [10] * 10), (1.0, [10, 5, 2, *[1] * 83])):
        left = (100.0 - took * turn for turn in range(200))
        assert [block.stop - block.start for block in blocks.blocks(100, 10, left.__next__)] == sizes
    assert [*blocks.blocks(0, 10, blocks.never)] == [slice(0, 0)]
    assert max(block.stop - block.start for block in blocks.blocks(100, 10, iter(map(float, range(1000, 0, -1))).__next__, most=10)) <= 10
