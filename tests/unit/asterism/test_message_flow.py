"""Tests of the graphs that samplers of message flow graphs accept."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from asterism.training.message_flow import MessageFlowSampler
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
