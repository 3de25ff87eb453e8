"""Tests of the forms of excluded edges that calls accept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from asterism.calls import validation
from asterism.calls.excluded_edges import excluded_edges
from asterism.records.samples import EdgeRows, EdgeSample, Ids, LinkSeeds
from asterism_model.excluded_edges import MAX_EXCLUDED_EDGES, ExcludedEdges
from asterism_model.schema import EdgeType, NodeType, Schema
from asterism_proto.errors import InvalidRequest, NotFound

BUYS, BOUGHT, FOLLOWS = range(3)
SCHEMA = Schema(
    node_types=(NodeType(name="user"), NodeType(name="item")),
    edge_types=(
        EdgeType(src_type="user", relation="buys", dst_type="item"),
        EdgeType(src_type="item", relation="bought_by", dst_type="user"),
        EdgeType(src_type="user", relation="follows", dst_type="user"),
    ),
)
SRC, DST, EIDS = np.array([1, 2]), np.array([3, 4]), np.array([7, 8])


def node_ids(nodes: ArrayLike, ntype: str) -> Ids:
    return validation.ids("exclude", nodes, minimum=-1)


def entries(
    exclude: Any, reverse_types: Any = None, edge_types: tuple[int, ...] = (BUYS,)
) -> list[tuple[int, int, int, int]]:
    excluded = excluded_edges(SCHEMA, exclude, reverse_types, edge_types, node_ids)
    if excluded is None:
        return []
    columns = (excluded.types, excluded.src, excluded.dst, excluded.eids)
    return list(zip(*(column.tolist() for column in columns), strict=True))


ROWS = EdgeRows(src=SRC, dst=DST, edge_ids=EIDS, weights=np.ones(2, np.float32), version=1)
LINKS = LinkSeeds(
    src=np.array([1, 2, 9]),
    dst=np.array([3, 4, 9]),
    labels=np.array([1, 1, 0], np.float32),
    negatives=None,
    positives=2,
    edge_ids=EIDS,
    etype="user:buys:item",
    seed=0,
    version=1,
)
SAMPLE = EdgeSample(
    src=SRC,
    dst=DST,
    types=np.array([FOLLOWS, BUYS], np.int32),
    weights=np.ones(2, np.float32),
    edge_ids=EIDS,
    seed=0,
    version=1,
)
PAIRS = [(BUYS, 1, 3, -1), (BUYS, 2, 4, -1)]
EDGES = [(BUYS, 1, 3, 7), (BUYS, 2, 4, 8)]


@pytest.mark.parametrize(
    ("exclude", "expected"),
    [
        (None, []),
        ((SRC, DST), PAIRS),
        (([1, 2], [3, 4]), PAIRS),
        (np.array([[1, 3], [2, 4]]), PAIRS),
        ([[1, 3, 7], [2, 4, 8]], EDGES),
        ((SRC, DST, EIDS), EDGES),
        (ROWS, EDGES),
        (LINKS, EDGES),
        ({"buys": ROWS}, EDGES),
        ({("user", "buys", "item"): (SRC, DST)}, PAIRS),
        (SAMPLE, [(BUYS, 2, 4, 8), (FOLLOWS, 1, 3, 7)]),
        ({}, []),
        ([], []),
        ({"buys": (SRC, DST), "follows": [[5, 6]]}, [*PAIRS, (FOLLOWS, 5, 6, -1)]),
    ],
    ids=range(14),
)
def test_forms_of_excluded_edges(exclude: Any, expected: list[tuple[int, ...]]) -> None:
    assert entries(exclude) == expected


def test_reverse_edges_have_no_edge_ids() -> None:
    assert entries(ROWS, {"buys": "bought_by"}) == [
        *EDGES,
        (BOUGHT, 3, 1, -1),
        (BOUGHT, 4, 2, -1),
    ]
    assert entries({"follows": [[5, 6]]}, {"follows": "follows"}) == [
        (FOLLOWS, 5, 6, -1),
        (FOLLOWS, 6, 5, -1),
    ]


@pytest.mark.parametrize(
    ("exclude", "reverse_types", "message"),
    [
        ((SRC,), None, "a tuple of 1 arrays: expected .src, dst."),
        ((SRC, DST[:1]), None, "exclude of length 1: expected 2"),
        ((SRC, DST, EIDS[:1]), None, "exclude of length 1: expected 2"),
        ([1, 2, 3], None, r"exclude of shape \[3\]: expected a tuple"),
        ({3: (SRC, DST)}, None, "exclude with 3: expected the name of an edge type"),
        (ROWS, {"buys": "follows"}, "expected an edge type from 'item' to 'user'"),
        (ROWS, ["buys"], "reverse_types=.*: expected a dict"),
        (None, {"buys": "bought_by"}, "exclude=None: expected edges to exclude"),
        ((SRC, [-2, 3]), None, "-1 or more"),
        (([0] * (MAX_EXCLUDED_EDGES + 1),) * 2, None, "expected at most 1048576 in one call"),
    ],
    ids=range(10),
)
def test_odd_exclusions_are_refused(exclude: Any, reverse_types: Any, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        entries(exclude, reverse_types)


def test_edges_without_a_type_need_a_single_type() -> None:
    with pytest.raises(InvalidRequest, match="because the call follows user:buys:item, user:foll"):
        entries((SRC, DST), edge_types=(BUYS, FOLLOWS))
    with pytest.raises(NotFound):
        entries({"sells": (SRC, DST)})


def test_sections_are_checked_against_the_schema() -> None:
    sections = ExcludedEdges(
        types=np.array([2], np.int32), src=SRC[:1], dst=DST[:1], eids=EIDS[:1]
    ).sections()
    assert ExcludedEdges.from_sections(sections, 3) is not None
    assert ExcludedEdges.from_sections({}, 3) is None
    changes: list[tuple[dict[str, Any], str]] = [
        (
            {"exclude.types": np.array([3], np.int32)},
            r"exclude.types\[0\]=3: expected an edge type",
        ),
        ({"exclude.src": SRC}, "exclude.dst of length 1: expected 2|exclude.src of length 2"),
        ({"exclude.dst": DST[:1] * 0.5}, "exclude.dst of float64"),
    ]
    for changed, message in changes:
        with pytest.raises(InvalidRequest, match=message):
            ExcludedEdges.from_sections({**sections, **changed}, 3)
    del sections["exclude.eids"]
    with pytest.raises(InvalidRequest, match=r"exclude\.eids: expected this section"):
        ExcludedEdges.from_sections(sections, 3)
