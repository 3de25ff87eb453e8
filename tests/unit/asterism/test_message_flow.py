"""Tests of the graphs that samplers of message flow graphs accept."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from asterism.training.message_flow import MessageFlowSampler, counts_by_type
from asterism_model.schema import Schema
from asterism_proto.errors import InvalidRequest


def sampler(**changes: Any) -> MessageFlowSampler:
    schema = Schema.from_dict(
        {
            "nodes": {"paper": {}},
            "edges": {"paper:cites:paper": {}},
            "direction": changes.pop("direction", "both"),
        }
    )
    graph: Any = SimpleNamespace(**{"version": 1, "space": "s", "schema": schema} | changes)
    return MessageFlowSampler(graph, [2], replace=False, prob=None, weights=False)


def test_a_graph_without_in_edges_is_refused_when_made() -> None:
    with pytest.raises(
        InvalidRequest,
        match=r"space 's' with direction: out: expected direction: both, .* create a space",
    ):
        sampler(direction="out")
    assert sampler().graph.version == 1


def test_a_graph_without_a_version_is_refused_when_made() -> None:
    with pytest.raises(InvalidRequest, match=r"expected a graph of one version, .* graph\.pin"):
        sampler(version=None)


SCHEMA = Schema.from_dict(
    {
        "nodes": {"user": {}, "item": {}},
        "edges": {"user:buys:item": {}, "user:likes:item": {}, "user:likes:user": {}},
    }
)
BUYS, ITEMS, USERS = "user:buys:item", "user:likes:item", "user:likes:user"


@pytest.mark.parametrize(
    ("fanouts", "expected"),
    [
        ([3, -1], {BUYS: [3, -1], ITEMS: [3, -1], USERS: [3, -1]}),
        ({("user", "buys", "item"): [3, 2]}, {BUYS: [3, 2]}),
        ({"buys": [3, 2], ITEMS: (1, 0)}, {BUYS: [3, 2], ITEMS: [1, 0]}),
        ([{"buys": 3}, {ITEMS: 2, ("user", "buys", "item"): -1}], {BUYS: [3, -1], ITEMS: [0, 2]}),
        ([{"buys": 3}, 2], {BUYS: [3, 2], ITEMS: [0, 2], USERS: [0, 2]}),
    ],
)
def test_fanouts_are_given_by_layer_or_by_edge_type(fanouts: Any, expected: Any) -> None:
    assert counts_by_type(SCHEMA, fanouts) == expected


@pytest.mark.parametrize("fanouts", [[{"likes": 3}], [{"sells": 3}], {("user", "buys"): [3]}])
def test_fanouts_of_unknown_edge_types_are_refused(fanouts: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"fanouts with \[.*\]: expected edge types, of"):
        counts_by_type(SCHEMA, fanouts)


@pytest.mark.parametrize("fanouts", [3, None, "buys", {"buys": 3}])
def test_fanouts_that_are_no_lists_are_refused(fanouts: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"fanouts=.*: expected a list of counts"):
        counts_by_type(SCHEMA, fanouts)
