"""PGLBox's metapaths: what they mean in a schema, and where a wrong one is wrong."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import asterism
from asterism.metapaths import metapaths_of, type_pairs_of
from asterism_proto.schema import EdgeType, NodeType, Schema


def schema(*edges: str) -> Schema:
    ends = [edge.split(":") for edge in edges]
    nodes = dict.fromkeys(name for src, _, dst in ends for name in (src, dst))
    return Schema(
        node_types=tuple(NodeType(name=name) for name in nodes),
        edge_types=tuple(EdgeType(src_type=src, relation=relation, dst_type=dst) for src, relation, dst in ends),
    )


SHOP = schema("u:click:i", "i:click:u", "u:buy:i", "u:follow:u", "i:is2like:b2b", "b2b:of:i")


def test_several_metapaths_are_read_in_order_with_the_types_between_their_steps() -> None:
    first, second = metapaths_of(SHOP, "u2click2i-i2click2u;i2click2u - u2buy2i-i2u ")
    assert first.steps == ("u:click:i", "i:click:u")
    assert first.node_types == ("u", "i", "u")
    assert (first.start, first.closed, list(first), len(first), first[1]) == ("u", True, ["u:click:i", "i:click:u"], 2, "i:click:u")
    assert second.steps == ("i:click:u", "u:buy:i", "i:click:u")
    assert (second.start, second.closed, second.text) == ("i", False, "i2click2u - u2buy2i-i2u")


def test_a_step_starts_at_the_type_before_its_first_2_and_other_names_may_have_one() -> None:
    (path,) = metapaths_of(SHOP, "i2is2like2b2b")
    assert (path.steps, path.start) == (("i:is2like:b2b",), "i")
    with pytest.raises(asterism.InvalidRequest, match="no node type 'b'"):
        metapaths_of(SHOP, "b2b2of2i")


def test_a_step_without_a_relation_is_the_one_edge_type_between_its_ends() -> None:
    assert metapaths_of(SHOP, "u2u-u2follow2u")[0].steps == ("u:follow:u",) * 2
    with pytest.raises(asterism.InvalidRequest, match=r"step 2 \('u2i', letter 8\) may be u:click:i or u:buy:i; .* u2click2i"):
        metapaths_of(SHOP, " u2u - u2i")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "metapath 1 of '' is empty"),
        ("u2u;", "metapath 2 of 'u2u;' is empty"),
        ("u2u;;u2u", "metapath 2 .* is empty"),
        ("u2click2i-;u2u", r"step 2 \('', letter 11\): expected a2b"),
        ("u2u;uclicki", r"metapath 2 of .*, step 1 \('uclicki', letter 5\): expected a2b or a2relation2b"),
        ("u2", "expected a2b"),
        ("2i", "expected a2b"),
        ("u2u-u2click2i-u2u", r"step 3 \('u2u', letter 15\) starts at 'u'; the step before ends at 'i'"),
        ("u2u;x2click2i", r"letter 5\): no node type 'x'; there are u, i, b2b"),
        ("u2click2x", "no such edge type; from 'u' there is u2click2i, u2buy2i, u2follow2u"),
        ("i2buy2u", "there is u:buy:i the other way: load it with its reverse"),
    ],
)
def test_a_wrong_step_is_refused_with_where_it_stands(text: str, said: str) -> None:
    with pytest.raises(asterism.InvalidRequest, match=said):
        metapaths_of(SHOP, text)


@given(st.lists(st.lists(st.integers(0, len(SHOP.edge_types) - 1), min_size=1, max_size=4), min_size=1, max_size=3))
def test_what_is_written_by_the_grammar_is_read_back_or_breaks_where_types_do_not_meet(paths: list[list[int]]) -> None:
    edges = [[SHOP.edge_types[at] for at in path if SHOP.edge_types[at].src_type != "b2b"] for path in paths]
    edges = [path for path in edges if path]
    if not edges:
        return
    text = ";".join("-".join(f"{edge.src_type}2{edge.relation}2{edge.dst_type}" for edge in path) for path in edges)
    if all(a.dst_type == b.src_type for path in edges for a, b in pairwise(path)):
        assert [path.steps for path in metapaths_of(SHOP, text)] == [tuple(edge.name for edge in path) for path in edges]
    else:
        with pytest.raises(asterism.InvalidRequest, match="the step before ends at"):
            metapaths_of(SHOP, text)


def test_pairs_of_types_are_read_and_unknown_ones_refused() -> None:
    assert type_pairs_of(SHOP, "u2i; b2b2u;i2b2b") == (("u", "i"), ("b2b", "u"), ("i", "b2b"))
    assert type_pairs_of(SHOP, " ") == ()
    for text, said in (("u2i;w2q", r"pair 2 \('w2q'\)"), ("ui", r"pair 1 \('ui'\)"), ("u2i;", r"pair 2 \(''\)")):
        with pytest.raises(asterism.InvalidRequest, match=said):
            type_pairs_of(SHOP, text)
