from __future__ import annotations

from typing import Any

import pytest

from asterism_proto.errors import InvalidRequest, NotFound
from asterism_proto.schema import EdgeType, Feature, NodeType, Schema
from asterism_proto.v1 import common_pb2 as pb

FULL: dict[str, Any] = {
    "parts": 3,
    "ids": "global",
    "placement": "mix64",
    "direction": "both",
    "nodes": {
        "paper": {"weighted": True, "features": {"year": "int64", "words": {"kind": "ragged", "dtype": "int64"}, "title": "bytes"}},
        "author": None,
    },
    "edges": {
        "author:writes:paper": {"weighted": True, "edges": "unique", "missing": "create", "features": {"when": {"dtype": "float32", "shape": 2}}},
        "paper:cites:paper": {},
        "author:cites:author": {},
    },
}


def test_a_schema_survives_the_wire_and_plain_values() -> None:
    schema = Schema.from_dict(FULL)
    assert Schema.from_proto(schema.to_proto()) == schema
    assert Schema.from_proto(pb.Schema.FromString(schema.to_proto().SerializeToString())) == schema
    assert Schema.from_dict(schema.to_dict()) == schema


def test_words_that_are_left_out_have_defaults() -> None:
    schema = Schema.from_proto(
        pb.Schema(node_types=[pb.NodeType(name="n")], edge_types=[pb.EdgeType(src_type="n", relation="r", dst_type="n")], parts=1)
    )
    assert (schema.ids, schema.placement, schema.direction, schema.has_in) == ("per_type", "mod", "out", False)
    assert (schema.edge_types[0].multiplicity, schema.edge_types[0].missing) == ("multi", "reject")


def test_an_edge_type_is_found_by_its_triple_or_by_a_relation_that_only_it_has() -> None:
    schema = Schema.from_dict(FULL)
    assert schema.edge_type_id("writes") == schema.edge_type_id("author:writes:paper") == 0
    with pytest.raises(NotFound, match="ambiguous"):
        schema.edge_type_id("cites")
    with pytest.raises(NotFound, match="no edge type 'reads'"):
        schema.edge_type_id("reads")
    with pytest.raises(NotFound, match="no node type 'venue'; there are paper, author"):
        schema.node_type_id("venue")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"parts": 0}, "parts 0"),
        ({"parts": 5000}, "parts 5000"),
        ({"parts": "3"}, "parts '3'"),
        ({"ids": "local"}, "ids 'local'"),
        ({"placement": "hash"}, "placement 'hash'"),
        ({"nodes": {}}, "at least one node type"),
        ({"nodes": {"a b": {}}}, "'a b'"),
        ({"nodes": {"paper": {"color": 1}, "author": {}}}, "unknown key 'color'"),
        ({"edges": {"author:writes": {}}}, "source:relation:destination"),
        ({"edges": {"author:writes:book": {}}}, "no node type 'book'"),
        ({"edges": {"author:writes:paper": {"edges": "some"}}}, "'some'"),
        ({"nodes": {"paper": {"features": {"x": {"dtype": "complex64"}}}, "author": {}}}, "complex64"),
        ({"nodes": {"paper": {"features": {"x": {"shape": [2, 0]}}}, "author": {}}}, r"\[2, 0\]"),
        ({"nodes": {"paper": {"features": {"weight": "float32"}}, "author": {}}}, "reserved"),
        ({"vertices": {}}, "unknown key 'vertices'"),
    ],
)
def test_a_wrong_schema_is_refused_with_the_value(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        Schema.from_dict({**FULL, **change})


def test_a_number_that_is_no_word_is_refused() -> None:
    message = Schema.from_dict(FULL).to_proto()
    message.ids = 9  # type: ignore[assignment]  # what a newer client might send
    with pytest.raises(InvalidRequest, match="IdScope 9"):
        Schema.from_proto(message)


def test_names_are_distinct() -> None:
    with pytest.raises(InvalidRequest, match="'x' is named twice"):
        NodeType(name="n", features=(Feature(name="x"), Feature(name="x")))
    with pytest.raises(InvalidRequest, match="'n:r:n' is named twice"):
        Schema(node_types=(NodeType(name="n"),), edge_types=(EdgeType(src_type="n", relation="r", dst_type="n"),) * 2)
