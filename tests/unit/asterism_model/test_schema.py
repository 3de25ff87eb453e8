from __future__ import annotations

from typing import Any

import pytest

from asterism_model.schema import EdgeType, Feature, NodeType, Schema, WeightTable
from asterism_proto.errors import InvalidRequest, NotFound
from asterism_proto.v1 import common_pb2 as common_pb

TABLES = {
    "recent": "exp((year - 2020) / 4)",
    "flat": {"expression": "1 / weight", "invalid": "zero"},
}
FULL: dict[str, Any] = {
    "parts": 3,
    "ids": "global",
    "placement": "mix64",
    "direction": "both",
    "nodes": {
        "paper": {
            "weighted": True,
            "features": {
                "year": "int64",
                "words": {"kind": "ragged", "dtype": "int64"},
                "title": "bytes",
            },
            "tables": {
                "recent": "exp((year - 2020) / 4)",
                "flat": {"expression": "1 / weight", "invalid": "zero"},
            },
            "time": "year",
        },
        "author": None,
    },
    "edges": {
        "author:writes:paper": {
            "weighted": True,
            "edges": "unique",
            "missing": "create",
            "features": {"when": {"dtype": "float32", "shape": 2}, "n-times": "int32"},
            "tables": {"often": "log1p(`n-times`)"},
            "time": "n-times",
        },
        "paper:cites:paper": {},
        "author:cites:author": {},
    },
}


def test_a_schema_survives_the_wire_and_plain_values() -> None:
    schema = Schema.from_dict(FULL)
    assert Schema.from_proto(schema.to_proto()) == schema
    assert (
        Schema.from_proto(common_pb.Schema.FromString(schema.to_proto().SerializeToString()))
        == schema
    )
    assert Schema.from_dict(schema.to_dict()) == schema


def test_omitted_fields_have_defaults() -> None:
    schema = Schema.from_proto(
        common_pb.Schema(
            node_types=[common_pb.NodeType(name="n")],
            edge_types=[common_pb.EdgeType(src_type="n", relation="r", dst_type="n")],
            parts=1,
        )
    )
    assert (schema.ids, schema.placement, schema.direction, schema.has_in) == (
        "per_type",
        "mod",
        "out",
        False,
    )
    assert (schema.edge_types[0].multiplicity, schema.edge_types[0].missing) == ("multi", "reject")


def test_edge_type_is_found_by_triple_or_unique_relation() -> None:
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
        (
            {"nodes": {"paper": {"features": {"x": {"dtype": "complex64"}}}, "author": {}}},
            "complex64",
        ),
        ({"nodes": {"paper": {"features": {"x": {"shape": [2, 0]}}}, "author": {}}}, r"\[2, 0\]"),
        ({"nodes": {"paper": {"features": {"weight": "float32"}}, "author": {}}}, "reserved"),
        ({"vertices": {}}, "unknown key 'vertices'"),
        (
            {"nodes": {"paper": {"tables": {"t": "year"}}, "author": {}}},
            "expression 'year': column 'year' does not exist; columns: weight",
        ),
        (
            {
                "nodes": {
                    "paper": {"features": {"x": {"shape": 2}}, "tables": {"t": "x"}},
                    "author": {},
                }
            },
            "column 'x' is not a scalar number",
        ),
        (
            {"nodes": {"paper": {"tables": {"t": "1 +"}}, "author": {}}},
            "type 'paper': table 't': expression '1 \\+', character 4: found the end",
        ),
        (
            {"nodes": {"paper": {"tables": {"t": None}}, "author": {}}},
            "table 't': expression '': expected a text",
        ),
        (
            {"nodes": {"paper": {"tables": {"weight": "1"}}, "author": {}}},
            "table 'weight': the name is reserved",
        ),
        (
            {
                "nodes": {
                    "paper": {"tables": {"t": {"expression": "1", "invalid": "skip"}}},
                    "author": {},
                }
            },
            "invalid 'skip': expected fail or zero",
        ),
        (
            {"nodes": {"paper": {"tables": {"t": {"formula": "1"}}}, "author": {}}},
            "unknown key 'formula'",
        ),
        (
            {"nodes": {"a": {}}, "edges": {"a:r:a": {"time": "when"}}},
            "edge type 'a:r:a': time 'when': there is no such feature; features: none",
        ),
        (
            {"nodes": {"a": {}}, "edges": {"a:r:a": {"features": {"t": "bytes"}, "time": "t"}}},
            "time 't': expected a scalar of one of int8",
        ),
        (
            {"nodes": {"a": {}}, "edges": {"a:r:a": {"features": {"t": "uint64"}, "time": "t"}}},
            r"time 't': expected a scalar of one of .*, found dense uint64 \[\]",
        ),
        (
            {
                "nodes": {"a": {}},
                "edges": {"a:r:a": {"features": {"t": {"shape": 2}}, "time": "t"}},
            },
            r"time 't': expected a scalar of one of .*, found dense float32 \[2\]",
        ),
    ],
)
def test_a_wrong_schema_is_refused_with_the_value(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        Schema.from_dict({**FULL, **change})


def test_unknown_enum_number_is_refused() -> None:
    message = Schema.from_dict(FULL).to_proto()
    message.ids = 9  # type: ignore[assignment]  # sent by a newer client
    with pytest.raises(InvalidRequest, match="IdScope 9"):
        Schema.from_proto(message)


def test_names_are_distinct() -> None:
    with pytest.raises(InvalidRequest, match="'x': expected each name once"):
        NodeType(name="n", features=(Feature(name="x"), Feature(name="x")))
    with pytest.raises(InvalidRequest, match="'n:r:n': expected each name once"):
        Schema(
            node_types=(NodeType(name="n"),),
            edge_types=(EdgeType(src_type="n", relation="r", dst_type="n"),) * 2,
        )


def test_tables_are_found_by_name_and_list_weight_columns() -> None:
    schema = Schema.from_dict(FULL)
    assert schema.node_types[0].table("flat").invalid == "zero"
    assert schema.edge_types[0].weight_columns == ("n-times",)
    with pytest.raises(
        NotFound,
        match=(
            "node type 'paper' has no weights 'popular'; weights: 'recent', 'flat', and '' "
            "for its own weight"
        ),
    ):
        schema.node_types[0].table("popular")
    with pytest.raises(NotFound, match="weights: no named ones"):
        schema.edge_types[1].table("often")


def test_names_of_tables_of_a_type_are_distinct() -> None:
    table = WeightTable(name="t", expression="weight")
    with pytest.raises(InvalidRequest, match="table 't': expected each name once"):
        NodeType(name="n", tables=(table, table))


def test_a_schema_is_shown_on_a_short_line() -> None:
    nodes = {f"type{i}": {"features": {"x": "float32"}} for i in range(9)}
    schema = Schema.from_dict({"parts": 4, "nodes": nodes, "edges": {"type0:to:type1": {}}})
    assert repr(schema) == (
        "Schema(node_types=['type0', 'type1', 'type2', 'type3', 'type4', and 4 more], "
        "edge_types=['type0:to:type1'], parts=4, ids='per_type', direction='out')"
    )
