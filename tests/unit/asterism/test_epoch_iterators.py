"""Tests that a saved position is accepted by the same epoch only."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from asterism.calls.epoch_iterators import EdgeEpochs, PairEpochs
from asterism.calls.metapath_notation import parse_metapaths
from asterism_model.schema import Schema
from asterism_proto.errors import InvalidRequest

SCHEMA = Schema.from_dict(
    {"nodes": {"u": {}, "i": {}}, "edges": {"u:buys:i": {}, "i:by:u": {}}, "direction": "both"}
)


class FakeReader:
    """A graph that counts rows and reads none."""

    schema = SCHEMA
    space = "shop"
    _session = SimpleNamespace(edge_type=lambda space, name: (0, SCHEMA.edge_types[0]))

    def _nodes_at(self, ntype: str, positions: Any, version: int | None) -> tuple[Any, int, int]:
        return np.zeros(0, np.int64), 40, 3

    def _edges_at(self, *request: Any) -> tuple[SimpleNamespace, int]:
        return SimpleNamespace(version=3), 90


def pair_passes(**changes: Any) -> PairEpochs:
    options: dict[str, Any] = {
        "walk_length": 4,
        "walks": 1,
        "window": 1,
        "batch_size": 8,
        "first_step": "independent",
        "weighted": True,
        "weight": "",
        "where": "",
        "negatives": 0,
        "excluded": "",
        "seed": 1,
        "rank": 0,
        "world": 1,
        "version": None,
        "starts": {},
    }
    reader: Any = FakeReader()
    return PairEpochs(reader, parse_metapaths(SCHEMA, "u2i-i2u"), **options | changes)


def edge_passes(**changes: Any) -> EdgeEpochs:
    options: dict[str, Any] = {
        "batch_size": 8,
        "weight": "",
        "where": "",
        "seed": 1,
        "rank": 0,
        "world": 1,
        "version": None,
    }
    reader: Any = FakeReader()
    return EdgeEpochs(reader, "buys", **options | changes)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("walk_length", 5),
        ("walks", 2),
        ("window", 2),
        ("first_step", "distinct"),
        ("weighted", False),
        ("weight", "price"),
        ("where", "price > 3"),
        ("negatives", 2),
        ("excluded", "u2u"),
    ],
)
def test_pairs_refuse_the_state_of_other_arguments(name: str, value: Any) -> None:
    state = pair_passes(**{name: value}).state_dict()
    for resume in (pair_passes().load_state_dict, lambda saved: pair_passes().reshard([saved])):
        with pytest.raises(InvalidRequest, match=rf"state with {name}=.*: expected .*, as here"):
            resume(state)
    pair_passes(**{name: value}).load_state_dict(state)


def test_pairs_accept_states_of_earlier_releases() -> None:
    state = {
        name: value
        for name, value in pair_passes(window=3).state_dict().items()
        if name in ("seed", "turn", "metapaths", "starts")
    }
    loaded = pair_passes()
    loaded.load_state_dict(state)
    assert loaded.state_dict().items() >= state.items()


def test_edges_refuse_the_state_of_other_weights() -> None:
    state = edge_passes(weight="price").state_dict()
    with pytest.raises(InvalidRequest, match="'price' in version 3: expected the state of"):
        edge_passes().load_state_dict(state)
    with pytest.raises(InvalidRequest, match=r"expected the state of .*'price'"):
        edge_passes(weight="price").load_state_dict(edge_passes().state_dict())
    edge_passes(weight="price").load_state_dict(state)


def test_edges_accept_states_of_earlier_releases() -> None:
    state = edge_passes().state_dict()
    assert "weight" not in state
    edge_passes().load_state_dict(state)
