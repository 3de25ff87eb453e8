"""Node times in builds: an edge is visible once its neighbor exists.

The times hold through updates, deletes, revived nodes and linked units.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.kit.building import BuildResult, Op, Oracle, run_build

from asterism_graphkit.arrays.time_keys import encode_times
from asterism_model.elements import Element
from asterism_model.schema import Schema
from asterism_proto.errors import InvalidRequest
from storaged.build.completion_records import CompletedPart
from storaged.store import block_store
from storaged.store.image import AdjacencyImage, PartImage

DECLARED: dict[str, Any] = {
    "parts": 3,
    "direction": "both",
    "nodes": {
        "a": {"features": {"t": "int32"}, "time": "t"},
        "b": {"features": {"x": "float32", "at": "int16"}, "time": "at"},
        "c": {},
    },
    "edges": {
        "a:e:b": {"weighted": True, "features": {"when": "int64"}, "time": "when"},
        "a:u:a": {"edges": "unique", "tables": {}},
        "c:f:b": {"weighted": True},
        "b:g:c": {"features": {"when": "uint8"}, "time": "when"},
    },
}
SCHEMA = Schema.from_dict(DECLARED)
NODES, EDGES = 60, 900
RNG = np.random.default_rng(21)


def nodes(type_id: int, ids: np.ndarray[Any, Any], *, timed: bool = True) -> Op:
    arrays: dict[str, Any] = {"ids": ids}
    if timed and type_id < 2:
        arrays[("f:t", "f:at")[type_id]] = RNG.integers(-9, 9, ids.size).astype(
            ("int32", "int16")[type_id]
        )
    return Op(kind=block_store.NODES, type_id=type_id, arrays=arrays)


def edges(type_id: int, first: int, count: int) -> Op:
    arrays: dict[str, Any] = {
        "src": RNG.integers(0, NODES, count),
        "dst": RNG.integers(0, NODES, count),
        "eid": np.arange(first, first + count),
    }
    if type_id in (0, 2):
        arrays["weight"] = RNG.choice(np.array([0, 0.5, 3], np.float32), count)
    if type_id in (0, 3):
        arrays["f:when"] = RNG.integers(0, 9, count).astype(("int64", "", "", "uint8")[type_id])
    return Op(kind=block_store.OUT_EDGES, type_id=type_id, arrays=arrays)


def node_deletes(type_id: int, ids: list[int]) -> Op:
    return Op(kind=block_store.NODE_DELETES, type_id=type_id, arrays={"ids": np.array(ids)})


FIRST = [*(nodes(t, np.arange(NODES)) for t in range(3)), *(edges(t, 0, EDGES) for t in range(4))]
SECOND = [
    nodes(0, np.arange(0, NODES, 7)),
    nodes(1, np.r_[np.arange(5), 3, 3]),  # repeated ids: the last row counts
    nodes(1, np.arange(20, 30), timed=False),
    node_deletes(0, [11, 12, 14]),
    node_deletes(1, [8, 9]),
]
# A revived node without a time gets the minimum time, not its earlier one.
THIRD = [
    nodes(0, np.array([11, 12]), timed=False),
    nodes(1, np.array([8])),
    edges(0, EDGES, 300),
    edges(1, EDGES, 300),
    edges(2, EDGES, 90),
]
LOADS = [FIRST, SECOND, THIRD]
ENDS = ((0, 1), (0, 0), (2, 1), (1, 2))


def node_times(loads: list[list[Op]], type_id: int) -> dict[int, int]:
    """Return the time of every living node that has one."""
    times: dict[int, int] = {}
    for op in (op for ops in loads for op in ops if op.type_id == type_id):
        ids = (
            op.arrays["ids"].tolist()
            if op.kind in (block_store.NODES, block_store.NODE_DELETES)
            else []
        )
        time_column = op.arrays.get("f:t", op.arrays.get("f:at"))
        if op.kind == block_store.NODE_DELETES:
            times = {node: time for node, time in times.items() if node not in ids}
        elif op.kind == block_store.NODES and time_column is not None:
            times |= dict(zip(ids, time_column.tolist(), strict=True))
    return times


def edge_times(loads: list[list[Op]], type_id: int) -> dict[int, int]:
    times: dict[int, int] = {}
    for op in (
        op
        for ops in loads
        for op in ops
        if op.kind == block_store.OUT_EDGES and op.type_id == type_id
    ):
        times |= (
            dict(
                zip(
                    op.arrays["eid"].tolist(),
                    encode_times(op.arrays["f:when"]).tolist(),
                    strict=True,
                )
            )
            if "f:when" in op.arrays
            else {}
        )
    return times


def side_of(image: PartImage, type_id: int, *, incoming: bool) -> AdjacencyImage:
    edge = image.edges[type_id]
    assert edge.incoming is not None
    return edge.incoming if incoming else edge.outgoing


def assert_times(build: BuildResult, loads: list[list[Op]]) -> None:
    """Compare every adjacency with the living edges and nodes, one by one."""
    oracle = Oracle.from_loads(SCHEMA, loads)
    for type_id in range(4):
        for incoming in (False, True):
            remote_type = ENDS[type_id][not incoming]
            own_times, remote_times = edge_times(loads, type_id), node_times(loads, remote_type)
            living_eids = {edge[2] for edge in oracle.live_edges(type_id, incoming=incoming)}
            stored_eids = []
            for image in build.images:
                side = side_of(image, type_id, incoming=incoming)
                stored_eids += side.eid.tolist()
                if remote_type == 2 and not own_times:
                    assert side.when.size == side.order.size == 0
                    continue
                expected = [
                    max(
                        [own_times.get(eid, 0)] * bool(own_times)
                        + [remote_times.get(node, 0)] * (remote_type < 2)
                    )
                    for node, eid in zip(side.nbr.tolist(), side.eid.tolist(), strict=True)
                ]
                assert side.when.tolist() == expected
                for start, stop in zip(
                    side.indptr[:-1].tolist(), side.indptr[1:].tolist(), strict=True
                ):
                    assert side.order[start:stop].tolist() == sorted(
                        range(start, stop), key=lambda slot: (side.when[slot], slot)
                    )
                    if side.weights.size:
                        sums = np.cumsum(side.weights[side.order[start:stop]].astype(np.float64))
                        np.testing.assert_allclose(side.time_sums[start:stop], sums, rtol=2**-50)
            assert sorted(stored_eids) == sorted(living_eids)


@pytest.fixture(scope="module")
def timed_build(tmp_path_factory: pytest.TempPathFactory) -> BuildResult:
    return run_build(tmp_path_factory.mktemp("peopled"), SCHEMA, LOADS)


def test_edges_exist_from_their_neighbors_time_on(timed_build: BuildResult, tmp_path: Path) -> None:
    assert_times(timed_build, LOADS)
    for upto in (1, 2):
        assert_times(
            run_build(timed_build.output.parent, SCHEMA, LOADS, name=f"upto{upto}", commit=upto),
            LOADS[:upto],
        )


def test_little_memory_makes_the_same_bytes(timed_build: BuildResult) -> None:
    assert (
        run_build(timed_build.output.parent, SCHEMA, LOADS, name="less", memory_limit_mib=1).digests
        == timed_build.digests
    )


def test_changed_node_time_rebuilds_only_edges_to_its_type(tmp_path: Path) -> None:
    loads = [FIRST, [nodes(1, np.arange(4))]]
    first = run_build(tmp_path, SCHEMA, loads, name="one", commit=1)
    second = run_build(tmp_path, SCHEMA, loads, name="two", sources=[first])
    assert second.digests == run_build(tmp_path, SCHEMA, loads, name="fresh").digests
    assert_times(second, loads)
    rebuilt_units = set()
    for part in range(SCHEMA.parts):
        completed_part = CompletedPart.read(second.output, part)
        assert completed_part is not None
        rebuilt_units |= {
            name
            for name, record in completed_part.units.items()
            if not record["linked"] and name.startswith("e")
        }
    # Edge types e and f lead to b, g starts at b. An alias table belongs to its out-edges.
    assert rebuilt_units == {"e0.out", "e0.table", "e2.out", "e2.table", "e3.in"}


def test_copies_of_an_edge_agree_although_their_times_differ(timed_build: BuildResult) -> None:
    for type_id in range(4):
        totals = [
            t
            for result in timed_build.results
            for t in result.totals
            if (t.element, t.type_id) == (Element.EDGE, type_id)
        ]
        assert sum(t.mix_out for t in totals) % 2**64 == sum(t.mix_in for t in totals) % 2**64 != 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"a": {"features": {"t": "float32"}, "time": "t"}},
            (
                "'a:e:b': its time 'when' is int64, that of node type 'a' float32; declare both "
                "as integers"
            ),
        ),
        (
            {"a": {"features": {"t": "int32"}, "time": "at"}},
            "node type 'a': time 'at': there is no such feature; features: t",
        ),
        (
            {"a": {"features": {"t": {"dtype": "int32", "shape": [2]}}, "time": "t"}},
            r"node type 'a': time 't': expected a scalar of one of .*, found dense int32 \[2\]",
        ),
    ],
)
def test_invalid_times_are_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        Schema.from_dict(DECLARED | {"nodes": DECLARED["nodes"] | change})


def test_schema_with_node_times_round_trips() -> None:
    assert Schema.from_dict(SCHEMA.to_dict()) == Schema.from_proto(SCHEMA.to_proto()) == SCHEMA
