"""Tests of PGLBox's metapaths: their meaning in a schema, and positions of errors."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import asterism
from asterism.calls.metapath_notation import parse_metapaths, parse_type_pairs
from asterism_model.schema import EdgeType, NodeType, Schema


def schema(*edges: str) -> Schema:
    ends = [edge.split(":") for edge in edges]
    nodes = dict.fromkeys(name for src, _, dst in ends for name in (src, dst))
    return Schema(
        node_types=tuple(NodeType(name=name) for name in nodes),
        edge_types=tuple(
            EdgeType(src_type=src, relation=relation, dst_type=dst) for src, relation, dst in ends
        ),
    )


SHOP = schema("u:click:i", "i:click:u", "u:buy:i", "u:follow:u", "i:is2like:b2b", "b2b:of:i")


def test_metapaths_are_parsed_in_order_with_node_types() -> None:
    first, second = parse_metapaths(SHOP, "u2click2i-i2click2u;i2click2u - u2buy2i-i2u ")
    assert first.steps == ("u:click:i", "i:click:u")
    assert first.node_types == ("u", "i", "u")
    assert (first.start, first.closed, list(first), len(first), first[1]) == (
        "u",
        True,
        ["u:click:i", "i:click:u"],
        2,
        "i:click:u",
    )
    assert second.steps == ("i:click:u", "u:buy:i", "i:click:u")
    assert (second.start, second.closed, second.text) == ("i", False, "i2click2u - u2buy2i-i2u")


def test_step_starts_at_the_type_before_its_first_2() -> None:
    (path,) = parse_metapaths(SHOP, "i2is2like2b2b")
    assert (path.steps, path.start) == (("i:is2like:b2b",), "i")
    with pytest.raises(asterism.InvalidRequest, match=r"expected a node type, .* found 'b'"):
        parse_metapaths(SHOP, "b2b2of2i")


def test_step_without_a_relation_needs_a_single_edge_type() -> None:
    assert parse_metapaths(SHOP, "u2u-u2follow2u")[0].steps == ("u:follow:u",) * 2
    with pytest.raises(
        asterism.InvalidRequest,
        match=r"step 2 \('u2i', character 8\): .* found u:click:i and u:buy:i; .* u2click2i",
    ):
        parse_metapaths(SHOP, " u2u - u2i")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "metapath 1 of '': expected steps"),
        ("u2u;", "metapath 2 of 'u2u;': expected steps"),
        ("u2u;;u2u", "metapath 2 .*: expected steps"),
        ("u2click2i-;u2u", r"step 2 \('', character 11\): expected a2b"),
        (
            "u2u;uclicki",
            r"metapath 2 of .*, step 1 \('uclicki', character 5\): expected a2b or a2relation2b",
        ),
        ("u2", "expected a2b"),
        ("2i", "expected a2b"),
        (
            "u2u-u2click2i-u2u",
            r"step 3 \('u2u', character 15\): expected a step that starts at 'i', .* it starts at "
            r"'u'",
        ),
        ("u2u;x2click2i", r"character 5\): expected a node type, one of u, i, b2b, found 'x'"),
        ("u2click2x", "expected an edge type; from 'u' there is u2click2i, u2buy2i, u2follow2u"),
        ("i2buy2u", "there is u:buy:i in the other direction: load it with `reverse`"),
    ],
)
def test_wrong_step_is_refused_with_its_position(text: str, said: str) -> None:
    with pytest.raises(asterism.InvalidRequest, match=said):
        parse_metapaths(SHOP, text)


@given(
    st.lists(
        st.lists(st.integers(0, len(SHOP.edge_types) - 1), min_size=1, max_size=4),
        min_size=1,
        max_size=3,
    )
)
def test_generated_metapaths_parse_unless_types_do_not_match(paths: list[list[int]]) -> None:
    edges = [
        [SHOP.edge_types[i] for i in path if SHOP.edge_types[i].src_type != "b2b"] for path in paths
    ]
    edges = [path for path in edges if path]
    if not edges:
        return
    text = ";".join(
        "-".join(f"{edge.src_type}2{edge.relation}2{edge.dst_type}" for edge in path)
        for path in edges
    )
    if all(a.dst_type == b.src_type for path in edges for a, b in pairwise(path)):
        assert [path.steps for path in parse_metapaths(SHOP, text)] == [
            tuple(edge.name for edge in path) for path in edges
        ]
    else:
        with pytest.raises(asterism.InvalidRequest, match="where the step before ends"):
            parse_metapaths(SHOP, text)


def test_type_pairs_are_parsed_and_unknown_ones_refused() -> None:
    assert parse_type_pairs(SHOP, "u2i; b2b2u;i2b2b") == (("u", "i"), ("b2b", "u"), ("i", "b2b"))
    assert parse_type_pairs(SHOP, " ") == ()
    for text, message in (
        ("u2i;w2q", r"pair 2 \('w2q'\)"),
        ("ui", r"pair 1 \('ui'\)"),
        ("u2i;", r"pair 2 \(''\)"),
    ):
        with pytest.raises(asterism.InvalidRequest, match=message):
            parse_type_pairs(SHOP, text)
