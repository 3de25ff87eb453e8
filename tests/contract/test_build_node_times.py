"""What a build writes of the times of nodes: every edge is there once its neighbor is, through updates, deletes, births and links."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.kit.building import Built, Op, Oracle, built

from asterism_proto.errors import InvalidRequest
from asterism_proto.schema import Schema
from graphkit.times import keys_of
from storaged.build.marks import Mark
from storaged.store import graph
from storaged.store.image import Adjacency, PartImage

DECLARED: dict[str, Any] = {
    "parts": 3,
    "direction": "both",
    "nodes": {"a": {"features": {"t": "int32"}, "time": "t"}, "b": {"features": {"x": "float32", "at": "int16"}, "time": "at"}, "c": {}},
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
        arrays[("f:t", "f:at")[type_id]] = RNG.integers(-9, 9, ids.size).astype(("int32", "int16")[type_id])
    return Op(kind=graph.NODES, type_id=type_id, arrays=arrays)


def edges(type_id: int, first: int, count: int) -> Op:
    arrays: dict[str, Any] = {"src": RNG.integers(0, NODES, count), "dst": RNG.integers(0, NODES, count), "eid": np.arange(first, first + count)}
    if type_id in (0, 2):
        arrays["weight"] = RNG.choice(np.array([0, 0.5, 3], np.float32), count)
    if type_id in (0, 3):
        arrays["f:when"] = RNG.integers(0, 9, count).astype(("int64", "", "", "uint8")[type_id])
    return Op(kind=graph.OUT_EDGES, type_id=type_id, arrays=arrays)


def gone(type_id: int, ids: list[int]) -> Op:
    return Op(kind=graph.NODE_DELETES, type_id=type_id, arrays={"ids": np.array(ids)})


FIRST = [*(nodes(t, np.arange(NODES)) for t in range(3)), *(edges(t, 0, EDGES) for t in range(4))]
SECOND = [
    nodes(0, np.arange(0, NODES, 7)),
    nodes(1, np.r_[np.arange(5), 3, 3]),  # of one id several times the last one counts
    nodes(1, np.arange(20, 30), timed=False),
    gone(0, [11, 12, 14]),
    gone(1, [8, 9]),
]
# What comes back without a time has that of the beginning, not what it had before.
THIRD = [nodes(0, np.array([11, 12]), timed=False), nodes(1, np.array([8])), edges(0, EDGES, 300), edges(1, EDGES, 300), edges(2, EDGES, 90)]
LOADS = [FIRST, SECOND, THIRD]
ENDS = ((0, 1), (0, 0), (2, 1), (1, 2))


def came(loads: list[list[Op]], type_id: int) -> dict[int, int]:
    """The time of every node of a type that has one and lives."""
    found: dict[int, int] = {}
    for op in (op for ops in loads for op in ops if op.type_id == type_id):
        ids = op.arrays["ids"].tolist() if op.kind in (graph.NODES, graph.NODE_DELETES) else []
        given = op.arrays.get("f:t", op.arrays.get("f:at"))
        if op.kind == graph.NODE_DELETES:
            found = {node: time for node, time in found.items() if node not in ids}
        elif op.kind == graph.NODES and given is not None:
            found |= dict(zip(ids, given.tolist(), strict=True))
    return found


def when(loads: list[list[Op]], type_id: int) -> dict[int, int]:
    found: dict[int, int] = {}
    for op in (op for ops in loads for op in ops if op.kind == graph.OUT_EDGES and op.type_id == type_id):
        found |= dict(zip(op.arrays["eid"].tolist(), keys_of(op.arrays["f:when"]).tolist(), strict=True)) if "f:when" in op.arrays else {}
    return found


def side_of(image: PartImage, type_id: int, *, incoming: bool) -> Adjacency:
    edge = image.edges[type_id]
    assert edge.into is not None
    return edge.into if incoming else edge.out


def require_times(made: Built, loads: list[list[Op]]) -> None:
    """Hold every adjacency against the edges and nodes that live, one by one."""
    oracle = Oracle.after(SCHEMA, loads)
    for type_id in range(4):
        for incoming in (False, True):
            far = ENDS[type_id][not incoming]
            own, there = when(loads, type_id), came(loads, far)
            living = {edge[2] for edge in oracle.living_edges(type_id, incoming=incoming)}
            met = []
            for image in made.images:
                side = side_of(image, type_id, incoming=incoming)
                met += side.eid.tolist()
                if far == 2 and not own:
                    assert side.when.size == side.order.size == 0
                    continue
                expected = [
                    max([own.get(eid, 0)] * bool(own) + [there.get(node, 0)] * (far < 2))
                    for node, eid in zip(side.nbr.tolist(), side.eid.tolist(), strict=True)
                ]
                assert side.when.tolist() == expected
                for start, stop in zip(side.indptr[:-1].tolist(), side.indptr[1:].tolist(), strict=True):
                    assert side.order[start:stop].tolist() == sorted(range(start, stop), key=lambda slot: (side.when[slot], slot))
                    if side.weights.size:
                        sums = np.cumsum(side.weights[side.order[start:stop]].astype(np.float64))
                        np.testing.assert_allclose(side.time_sums[start:stop], sums, rtol=2**-50)
            assert sorted(met) == sorted(living)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return built(tmp_path_factory.mktemp("peopled"), SCHEMA, LOADS)


def test_an_edge_is_there_once_its_neighbor_is_through_deletes_and_upserts(made: Built, tmp_path: Path) -> None:
    require_times(made, LOADS)
    for upto in (1, 2):
        require_times(built(made.output.parent, SCHEMA, LOADS, name=f"upto{upto}", upto=upto), LOADS[:upto])


def test_little_memory_makes_the_same_bytes(made: Built) -> None:
    assert built(made.output.parent, SCHEMA, LOADS, name="less", memory_limit_mib=1).digests == made.digests


def test_a_node_that_comes_at_another_time_makes_anew_what_leads_to_its_type_and_nothing_else(tmp_path: Path) -> None:
    loads = [FIRST, [nodes(1, np.arange(4))]]
    first = built(tmp_path, SCHEMA, loads, name="one", upto=1)
    second = built(tmp_path, SCHEMA, loads, name="two", sources=[first])
    assert second.digests == built(tmp_path, SCHEMA, loads, name="anew").digests
    require_times(second, loads)
    anew = set()
    for part in range(SCHEMA.parts):
        mark = Mark.read(second.output, part)
        assert mark is not None
        anew |= {name for name, record in mark.units.items() if not record["linked"] and name.startswith("e")}
    # Along e and f to b, against g from b. Tables are by the out-copies that they are of.
    assert anew == {"e0.out", "e0.table", "e2.out", "e2.table", "e3.in"}


def test_the_copies_of_an_edge_agree_although_their_times_are_others(made: Built) -> None:
    for type_id in range(4):
        totals = [t for result in made.results for t in result.totals if (t.element, t.type_id) == (2, type_id)]
        assert sum(t.mix_out for t in totals) % 2**64 == sum(t.mix_in for t in totals) % 2**64 != 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"a": {"features": {"t": "float32"}, "time": "t"}},
            "'a:e:b': its time 'when' is int64, that of node type 'a' float32; declare both as whole",
        ),
        ({"a": {"features": {"t": "int32"}, "time": "at"}}, "node type 'a': time 'at' is no feature of it; it has t"),
        ({"a": {"features": {"t": {"dtype": "int32", "shape": [2]}}, "time": "t"}}, r"node type 'a': time 't' is dense int32 \[2\]"),
    ],
)
def test_times_that_can_not_be_are_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        Schema.from_dict(DECLARED | {"nodes": DECLARED["nodes"] | change})


def test_a_schema_with_times_of_nodes_is_itself_again() -> None:
    assert Schema.from_dict(SCHEMA.to_dict()) == Schema.from_proto(SCHEMA.to_proto()) == SCHEMA
