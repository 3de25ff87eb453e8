"""Tests of Euler's facade: numbers of types, and independent groups of operators."""

from __future__ import annotations

import numpy as np
import pytest

from asterism.euler import Euler
from asterism.euler.base import EulerCalls
from asterism.euler.type_ids import TypeIds, require_same_hops
from asterism_model.schema import EdgeType, NodeType, Schema
from asterism_proto.errors import InvalidRequest, NotFound

SCHEMA = Schema(
    node_types=(NodeType(name="user"), NodeType(name="_7")),
    edge_types=(
        EdgeType(src_type="user", relation="buys", dst_type="_7"),
        EdgeType(src_type="user", relation="knows", dst_type="user"),
        EdgeType(src_type="_7", relation="buys", dst_type="_7"),
    ),
    ids="global",
)


@pytest.fixture(scope="module")
def types() -> TypeIds:
    return TypeIds(SCHEMA, "shop")


def test_groups_of_operators_derive_from_one_base_alone() -> None:
    groups = Euler.__bases__
    assert len(groups) == 5
    assert all(group.__bases__ == (EulerCalls,) for group in groups)


def test_node_types_are_named_by_name_or_number(types: TypeIds) -> None:
    assert types.node_type_ids(["_7", "user", 1, "0", "7"]) == [1, 0, 1, 0, 1]
    assert types.node_names("-1") is None
    assert types.node_names(b"user") == ["user"]
    assert types.single_node_type is None
    for unknown in (2, "2", True, "seller"):
        with pytest.raises(NotFound, match=r"user \(0\), _7 \(1\)"):
            types.node_type_ids([unknown])


def test_a_relation_stands_for_all_of_its_triples(types: TypeIds) -> None:
    assert types.edge_type_ids(-1) == [0, 1]
    assert types.edge_names("buys") == ["user:buys:_7", "_7:buys:_7"]
    assert types.edge_names([1, "_7:buys:_7", "buys"]) == [
        "user:knows:user",
        "_7:buys:_7",
        "user:buys:_7",
    ]
    assert types.edge_type_ids("user:knows:user") == [1]
    assert types.relation_numbers(np.array([2, 1, 0, -1], np.int32)).tolist() == [0, 1, 0, -1]
    with pytest.raises(InvalidRequest, match="which share a number"):
        types.edge_type_ids("_7:buys:_7")


def test_a_path_has_the_edge_types_of_each_hop(types: TypeIds) -> None:
    assert types.path("edge_types", [["knows"], -1]) == [["user:knows:user"], None]
    with pytest.raises(InvalidRequest, match="edge types of each hop"):
        types.path("edge_types", "knows")
    with pytest.raises(InvalidRequest, match="two lists of one length"):
        require_same_hops([["knows"]], [2, 3])


def test_ids_per_type_are_refused_unless_there_is_one_type() -> None:
    with pytest.raises(InvalidRequest, match="space='shop': expected a space with ids: global"):
        TypeIds(Schema(node_types=SCHEMA.node_types), "shop")
    assert TypeIds(Schema(node_types=SCHEMA.node_types[:1]), "shop").single_node_type == "user"
