"""Weights of nodes by their degrees: what a build counts, through deletes, links and indexes, against every edge that lives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.kit.building import Built, Op, Oracle, built

from asterism_proto.errors import InvalidRequest
from asterism_proto.indexes import Index
from asterism_proto.schema import Schema
from storaged.build.marks import Mark
from storaged.store import graph

DECLARED: dict[str, Any] = {
    "parts": 3,
    "direction": "both",
    "nodes": {
        "a": {"tables": {"liked": "pow(in_degree, 0.75)", "busy": "out_degree + `out_degree:a:u:a`"}},
        "b": {"features": {"out_degree": "int32"}, "tables": {"met": "1 + `in_degree:e` * 2", "own": "out_degree"}},
    },
    "edges": {"a:e:b": {}, "a:u:a": {"edges": "unique"}, "b:g:a": {"weighted": True}},
}
SCHEMA = Schema.from_dict(DECLARED)
NODES = 50
RNG = np.random.default_rng(31)


def edges(type_id: int, first: int, count: int) -> Op:
    ends = {name: RNG.integers(0, NODES, count) for name in ("src", "dst")}
    return Op(kind=graph.OUT_EDGES, type_id=type_id, arrays={**ends, "eid": np.arange(first, first + count)})


IDS = np.arange(NODES)
FIRST = [
    Op(kind=graph.NODES, type_id=0, arrays={"ids": IDS}),
    Op(kind=graph.NODES, type_id=1, arrays={"ids": IDS, "f:out_degree": IDS.astype(np.int32)}),
    *(edges(t, 0, 400) for t in range(3)),
]
SECOND = [
    Op(kind=graph.NODE_DELETES, type_id=0, arrays={"ids": np.array([3, 7])}),
    edges(1, 400, 80),
    Op(kind=graph.OUT_EDGE_DELETES, type_id=0, arrays={name: FIRST[2].arrays[name][:50] for name in ("src", "dst", "eid")}),
]


def expected(loads: list[list[Op]]) -> dict[tuple[int, str], list[float]]:
    """The weight of every node by every table, 0 of those that are gone."""
    oracle = Oracle.after(SCHEMA, loads)

    def count(type_id: int, end: int) -> np.ndarray[Any, Any]:
        return np.bincount([edge[end] for edge in oracle.living_edges(type_id)], minlength=NODES).astype(np.float64)

    liked, busy = np.power(count(1, 1) + count(2, 1), 0.75), count(0, 0) + 2 * count(1, 0)
    alive = np.isin(IDS, list(oracle.nodes[0]))
    met, own = 1 + 2 * count(0, 1), IDS
    return {(0, "liked"): (liked * alive).tolist(), (0, "busy"): (busy * alive).tolist(), (1, "met"): met.tolist(), (1, "own"): own.tolist()}


def require_weights(made: Built, loads: list[list[Op]]) -> None:
    for (type_id, name), weights in expected(loads).items():
        for part, image in enumerate(made.images):
            rows = image.nodes[type_id].named[name].weights
            np.testing.assert_allclose(rows, weights[part :: SCHEMA.parts], rtol=1e-6)
        total = sum(t.weight for result in made.results for t in result.totals if (t.element, t.type_id, t.weight_name) == (1, type_id, name))
        np.testing.assert_allclose(total, sum(weights), rtol=1e-6)


def test_degrees_are_of_the_edges_that_live(tmp_path: Path) -> None:
    made = built(tmp_path, SCHEMA, [FIRST, SECOND])
    require_weights(made, [FIRST, SECOND])
    assert sum(w > 0 for w in expected([FIRST, SECOND])[0, "liked"]) > 40


def test_new_edges_make_anew_the_weights_that_count_them_and_no_others(tmp_path: Path) -> None:
    loads = [FIRST, [edges(0, 500, 30)]]
    indexes = (Index(element=1, type_id=0, column="id", kind="range"),)
    first = built(tmp_path, SCHEMA, loads, name="one", upto=1, indexes=indexes)
    second = built(tmp_path, SCHEMA, loads, name="two", sources=[first], indexes=indexes)
    require_weights(second, loads)
    assert second.digests == built(tmp_path, SCHEMA, loads, name="anew", indexes=indexes).digests
    anew = set()
    for part in range(SCHEMA.parts):
        mark = Mark.read(second.output, part)
        assert mark is not None
        anew |= {name for name, record in mark.units.items() if not record["linked"]}
    assert anew == {"e0.out", "e0.in", "e0.table", "n0.w1", "n1.w0", "n0.xrid.w1"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"nodes": {"a": {"tables": {"t": "in_degree:e"}}, "b": {}}}, "character 10: found .:"),
        ({"nodes": {"a": {"tables": {"t": "`in_degree:x`"}}, "b": {}}}, "node type 'a': column 'in_degree:x': no edge type 'x'; there are a:e:b"),
        ({"nodes": {"a": {"tables": {"t": "`in_degree:e`"}}, "b": {}}}, "column 'in_degree:e': edges of 'a:e:b' lead to others"),
        ({"nodes": {"a": {}, "b": {"tables": {"t": "`out_degree:e`"}}}}, "column 'out_degree:e': edges of 'a:e:b' start at others"),
        ({"direction": "out"}, "node type 'a': column 'in_degree': the space keeps edges at their sources alone; make it with direction: both"),
        ({"edges": {"a:e:b": {"tables": {"t": "in_degree"}}}}, "edge type 'a:e:b': table 't': .* column 'in_degree' is not there"),
        ({"nodes": {"a": {"tables": {"t": "degree"}}, "b": {}}}, "column 'degree' is not there; it may name weight, in_degree, out_degree"),
        ({"nodes": {"a": {}, "b": {}, "c": {"tables": {"t": "in_degree"}}}}, "node type 'c': column 'in_degree': no edge type leads to these nodes"),
    ],
)
def test_degrees_that_can_not_be_counted_are_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        Schema.from_dict(DECLARED | change)
