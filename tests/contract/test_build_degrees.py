"""Node weights computed from degrees, compared with a count of all living edges.

Builds go through deletes, linked units and indexes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.kit.building import BuildResult, Op, Oracle, run_build

from asterism_model.elements import Element
from asterism_model.indexes import Index
from asterism_model.schema import Schema
from asterism_proto.errors import InvalidRequest
from storaged.build.completion_records import CompletedPart
from storaged.store import block_store

DECLARED: dict[str, Any] = {
    "parts": 3,
    "direction": "both",
    "nodes": {
        "a": {
            "tables": {"liked": "pow(in_degree, 0.75)", "busy": "out_degree + `out_degree:a:u:a`"}
        },
        "b": {
            "features": {"out_degree": "int32"},
            "tables": {"met": "1 + `in_degree:e` * 2", "own": "out_degree"},
        },
    },
    "edges": {"a:e:b": {}, "a:u:a": {"edges": "unique"}, "b:g:a": {"weighted": True}},
}
SCHEMA = Schema.from_dict(DECLARED)
NODES = 50
RNG = np.random.default_rng(31)


def edges(type_id: int, first: int, count: int) -> Op:
    ends = {name: RNG.integers(0, NODES, count) for name in ("src", "dst")}
    return Op(
        kind=block_store.OUT_EDGES,
        type_id=type_id,
        arrays={**ends, "eid": np.arange(first, first + count)},
    )


IDS = np.arange(NODES)
FIRST = [
    Op(kind=block_store.NODES, type_id=0, arrays={"ids": IDS}),
    Op(
        kind=block_store.NODES, type_id=1, arrays={"ids": IDS, "f:out_degree": IDS.astype(np.int32)}
    ),
    *(edges(t, 0, 400) for t in range(3)),
]
SECOND = [
    Op(kind=block_store.NODE_DELETES, type_id=0, arrays={"ids": np.array([3, 7])}),
    edges(1, 400, 80),
    Op(
        kind=block_store.OUT_EDGE_DELETES,
        type_id=0,
        arrays={name: FIRST[2].arrays[name][:50] for name in ("src", "dst", "eid")},
    ),
]


def expected_weights(loads: list[list[Op]]) -> dict[tuple[int, str], list[float]]:
    """Return the expected node weights of every weight table, 0 for deleted nodes."""
    oracle = Oracle.from_loads(SCHEMA, loads)

    def count(type_id: int, end: int) -> np.ndarray[Any, Any]:
        return np.bincount(
            [edge[end] for edge in oracle.live_edges(type_id)], minlength=NODES
        ).astype(np.float64)

    liked, busy = np.power(count(1, 1) + count(2, 1), 0.75), count(0, 0) + 2 * count(1, 0)
    alive = np.isin(IDS, list(oracle.nodes[0]))
    met_weights, own_weights = 1 + 2 * count(0, 1), IDS
    return {
        (0, "liked"): (liked * alive).tolist(),
        (0, "busy"): (busy * alive).tolist(),
        (1, "met"): met_weights.tolist(),
        (1, "own"): own_weights.tolist(),
    }


def assert_weights(build: BuildResult, loads: list[list[Op]]) -> None:
    for (type_id, name), weights in expected_weights(loads).items():
        for part, image in enumerate(build.images):
            rows = image.nodes[type_id].extra_weights[name].weights
            np.testing.assert_allclose(rows, weights[part :: SCHEMA.parts], rtol=1e-6)
        total = sum(
            t.weight
            for result in build.results
            for t in result.totals
            if (t.element, t.type_id, t.weight_name) == (Element.NODE, type_id, name)
        )
        np.testing.assert_allclose(total, sum(weights), rtol=1e-6)


def test_degrees_count_only_living_edges(tmp_path: Path) -> None:
    new_build = run_build(tmp_path, SCHEMA, [FIRST, SECOND])
    assert_weights(new_build, [FIRST, SECOND])
    assert sum(w > 0 for w in expected_weights([FIRST, SECOND])[0, "liked"]) > 40


def test_new_edges_rebuild_only_the_weights_that_count_them(tmp_path: Path) -> None:
    loads = [FIRST, [edges(0, 500, 30)]]
    indexes = (Index(element=1, type_id=0, column="id", kind="range"),)
    first = run_build(tmp_path, SCHEMA, loads, name="one", commit=1, indexes=indexes)
    second = run_build(tmp_path, SCHEMA, loads, name="two", sources=[first], indexes=indexes)
    assert_weights(second, loads)
    assert (
        second.digests == run_build(tmp_path, SCHEMA, loads, name="fresh", indexes=indexes).digests
    )
    rebuilt_units = set()
    for part in range(SCHEMA.parts):
        completed_part = CompletedPart.read(second.output, part)
        assert completed_part is not None
        rebuilt_units |= {
            name for name, record in completed_part.units.items() if not record["linked"]
        }
    assert rebuilt_units == {"e0.out", "e0.in", "e0.table", "n0.w1", "n1.w0", "n0.xrid.w1"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"nodes": {"a": {"tables": {"t": "in_degree:e"}}, "b": {}}}, "character 10: found .:"),
        (
            {"nodes": {"a": {"tables": {"t": "`in_degree:x`"}}, "b": {}}},
            "node type 'a': column 'in_degree:x': no edge type 'x'; there are a:e:b",
        ),
        (
            {"nodes": {"a": {"tables": {"t": "`in_degree:e`"}}, "b": {}}},
            "column 'in_degree:e': edges of 'a:e:b' lead to other nodes",
        ),
        (
            {"nodes": {"a": {}, "b": {"tables": {"t": "`out_degree:e`"}}}},
            "column 'out_degree:e': edges of 'a:e:b' start at other nodes",
        ),
        (
            {"direction": "out"},
            (
                "node type 'a': column 'in_degree': the space keeps edges at their sources "
                "alone; create it with `direction: both`"
            ),
        ),
        (
            {"edges": {"a:e:b": {"tables": {"t": "in_degree"}}}},
            "edge type 'a:e:b': table 't': .* column 'in_degree' does not exist",
        ),
        (
            {"nodes": {"a": {"tables": {"t": "degree"}}, "b": {}}},
            "column 'degree' does not exist; columns: weight, in_degree, out_degree",
        ),
        (
            {"nodes": {"a": {}, "b": {}, "c": {"tables": {"t": "in_degree"}}}},
            "node type 'c': column 'in_degree': no edge type leads to these nodes",
        ),
    ],
)
def test_degrees_that_cannot_be_counted_are_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        Schema.from_dict(DECLARED | change)
