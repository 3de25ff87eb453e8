"""Tests of string ids and their int64 ids: one hash in three implementations, refusals."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from asterism_graphkit.arrays import siphash as compiled
from asterism_model import string_ids
from asterism_model.filters.binding import bind
from asterism_model.filters.syntax import parse
from asterism_model.schema import EdgeType, Feature, NodeType, Schema
from asterism_model.string_ids import (
    check_strings,
    decode_strings,
    display_string,
    encode_strings,
    equal_mask,
    hash_string,
    hash_strings,
    invalid_mask,
    invalid_reason,
)
from asterism_proto.errors import InvalidRequest

WORDS = [
    "SFO",
    "a",
    "Zürich",
    "東京",
    "👩‍🚀",
    *(f"{i}" * (i % 60 + 1) for i in range(300)),
    "x" * 255,
    "y" * 4096,
]
# SipHash-1-3 under the key 0, as in CPython with PYTHONHASHSEED=0, without the lowest bit
REFERENCE = (
    ("a", 2322208592801664009),
    ("aaaaaaa", 1871777172841305606),
    ("aaaaaaaa", 7097911155991070281),
    ("aaaaaaaaaaaaaaa", 4280911710865596008),
    ("aaaaaaaaaaaaaaaa", 2077746085397656963),
)


def test_ids_match_siphash_of_cpython_under_key_0() -> None:
    assert sys.hash_info.algorithm == "siphash13", "another Python than this one was made for"
    code = (
        "import sys, json; print(json.dumps([hash(word.encode()) & (1 << 64) - 1 for word in "
        "json.load(sys.stdin)]))"
    )
    # The child inherits this environment.
    environment = {**os.environ, "PYTHONHASHSEED": "0"}  # noqa: TID251
    completed = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(WORDS),
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    assert hash_strings(*encode_strings("names", WORDS)).tolist() == [
        word >> 1 for word in json.loads(completed.stdout)
    ]


@pytest.mark.parametrize("salt", [0, 1, (1 << 63) - 1])
def test_single_batch_and_compiled_ids_agree(salt: int) -> None:
    column = encode_strings("names", WORDS)
    batch = hash_strings(*column, salt)
    assert batch.tolist() == [hash_string(word, salt) for word in WORDS]
    assert batch.tolist() == compiled.compute_string_ids(*column, salt).tolist()
    assert batch.min() >= 0
    assert len(set(batch.tolist())) == len(set(WORDS))


def test_ids_never_change() -> None:
    assert [(word, hash_string(word)) for word, _ in REFERENCE] == list(REFERENCE)


def test_salt_changes_ids_and_fewer_bits_are_the_highest() -> None:
    column = encode_strings("names", WORDS)
    assert not set(hash_strings(*column, 0).tolist()) & set(hash_strings(*column, 1).tolist())
    np.testing.assert_array_equal(hash_strings(*column, 5, bits=20), hash_strings(*column, 5) >> 43)


def test_ids_do_not_depend_on_their_batch() -> None:
    many = [f"node-{i}" for i in range(20_000)]
    all_ids = hash_strings(*encode_strings("names", many))
    assert (
        hash_strings(*encode_strings("names", many[7000:7003])).tolist()
        == all_ids[7000:7003].tolist()
    )
    assert len(np.unique(all_ids)) == len(many)
    spread = np.bincount(all_ids % 8, minlength=8)
    assert abs(spread - 2500).max() < 250, "parts are filled evenly"


def test_names_round_trip() -> None:
    assert decode_strings(encode_strings("names", WORDS)).tolist() == WORDS
    assert decode_strings(encode_strings("names", ["a", "bcd"])).dtype == np.dtype("<U3")
    assert decode_strings((np.array([0, 0, 2]), np.frombuffer(b"ab", np.uint8))).tolist() == [
        "",
        "ab",
    ]
    assert decode_strings((np.zeros(1, np.int64), np.zeros(0, np.uint8))).tolist() == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a", ""], r"ids\[1\] = '': the id is missing"),
        (["a", "b" * 4097], r"ids\[1\] = 'b+.*expected at most 4096 bytes in UTF-8, found 4097"),
        (["ü" * 2049], r"ids\[0\] = .*found 4098"),
        (["a", "b\0c"], r"ids\[1\] = 'b\\x00c': expected a string without NUL"),
        (["a", "\0"], r"ids\[1\].*NUL"),
        (["a", 7], r"ids\[1\] = 7: expected a string"),
        (["a", "\ud800"], r"ids\[1\]=.*lone surrogate"),
    ],
)
def test_invalid_names_are_refused_with_their_row(words: list[str], said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        encode_strings("ids", words)


def test_long_strings_are_decoded_without_padding() -> None:
    assert decode_strings(encode_strings("names", ["a" * 256, "b"])).dtype == np.dtype("<U256")
    for long in ("ü" * 200, "c" * 4096):
        decoded = decode_strings(encode_strings("names", ["a", long]))
        assert (decoded.dtype, decoded.tolist()) == (np.dtype(object), ["a", long])


def test_messages_show_both_ends_of_long_strings() -> None:
    column = encode_strings("names", ["https://a/" + "x" * 4000 + "/1", "x" * 80])
    assert display_string(column, 0) == f"'https://a/{'x' * 30}...{'x' * 38}/1' (4012 characters)"
    assert display_string(column, 1) == repr("x" * 80)


def test_invalid_bytes_are_found_by_row() -> None:
    pieces = [b"good", b"\xff", "ü".encode(), b"\xc3", b"\xbcx", b"", b"a\0b"]
    column = np.cumsum([0, *map(len, pieces)]), np.frombuffer(b"".join(pieces), np.uint8)
    assert invalid_mask(column).tolist() == [False, True, False, True, True, True, True]
    with pytest.raises(InvalidRequest, match=r"src\[1\] = .*UTF-8"):
        check_strings("src", column)
    assert (display_string(column, 0), invalid_reason(b"")) == ("'good'", "the id is missing")


def test_columns_are_compared_row_by_row() -> None:
    left, right = (
        encode_strings("l", ["ab", "cd", "e", "fgh"]),
        encode_strings("r", ["ab", "cx", "ee", "fgh"]),
    )
    assert equal_mask(left, right).tolist() == [True, False, False, True]
    assert compiled.first_mismatch(np.array([0, -1, -1, 3]), *left, *right) == -1
    assert compiled.first_mismatch(np.array([0, 1, 2, 3]), *left, *right) == 1
    assert (
        compiled.first_mismatch(np.array([0, 0]), *encode_strings("l", ["ab", "ax"]), *right) == 1
    )


# -- schemas ---------------------------------------------------------------------------------------


def test_string_id_schema_adds_a_hidden_name_column() -> None:
    plain = {
        "ids": "string",
        "salt": 7,
        "nodes": {"airport": {"features": {"city": "bytes"}}, "country": {}},
        "edges": {"airport:in:country": {}},
    }
    schema = Schema.from_dict(plain)
    assert [t.features[-1].name for t in schema.node_types] == [string_ids.ID_COLUMN] * 2
    assert schema.edge_types[0].features == ()
    assert Schema.from_proto(schema.to_proto()) == schema == Schema.from_dict(schema.to_dict())
    as_dict = schema.to_dict()
    assert (as_dict["ids"], as_dict["salt"], set(as_dict["nodes"]["airport"]["features"])) == (
        "string",
        7,
        {"city"},
    )
    assert "salt" not in Schema.from_dict({"nodes": {"n": {}}}).to_dict()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"ids": "string", "salt": -1}, "salt -1: expected an integer"),
        ({"ids": "string", "salt": 1 << 63}, "expected an integer from 0"),
        ({"ids": "string", "salt": True}, "salt True"),
        ({"salt": 3}, "salt 3: .*; ids are per_type"),
        ({"ids": "text"}, "expected per_type or global or string"),
    ],
)
def test_invalid_salt_is_refused(words: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        Schema.from_dict({"nodes": {"n": {}}, **words})


def test_name_of_the_id_column_is_reserved() -> None:
    column = Feature(name="id", kind="bytes")
    with pytest.raises(InvalidRequest, match="'id': the name is reserved"):
        Schema(node_types=(NodeType(name="n", features=(column,)),))
    with pytest.raises(InvalidRequest, match="'id': the name is reserved"):
        Schema(
            node_types=(NodeType(name="n"),),
            ids="string",
            edge_types=(EdgeType(src_type="n", relation="to", dst_type="n", features=(column,)),),
        )
    with pytest.raises(InvalidRequest, match="the name is reserved"):
        Feature(name="id", dtype="int64")


# -- filters ---------------------------------------------------------------------------------------

AIR = Schema.from_dict(
    {"ids": "string", "salt": 3, "nodes": {"airport": {}}, "edges": {"airport:route:airport": {}}}
)


@pytest.mark.parametrize(
    ("element", "text", "meant"),
    [
        (1, "id == 'SFO'", "id == {SFO}"),
        (1, "'SFO' != id", "id != {SFO}"),
        (1, "id in ('SFO', 'JFK', 5)", "id in ({SFO}, {JFK}, 5)"),
        (1, "not id in ('SFO')", "not id in ({SFO})"),
        (2, "src == 'SFO' and dst.id != 'JFK'", "src == {SFO} and dst.id != {JFK}"),
        (1, "`id` == 'SFO'", "`id` == 'SFO'"),
        (1, "id > 5", "id > 5"),
    ],
)
def test_filter_compares_ids_by_name(element: int, text: str, meant: str) -> None:
    ids = {word: hash_string(word, 3) for word in ("SFO", "JFK")}
    assert str(bind(parse(text), AIR, element, 0)) == meant.format(**ids)


@pytest.mark.parametrize("text", ["id < 'SFO'", "id between 'A' and 'B'", "id == ''"])
def test_names_have_no_order_and_are_not_empty(text: str) -> None:
    with pytest.raises(InvalidRequest, match="character 1"):
        bind(parse(text), AIR, 1, 0)


def test_edge_ids_are_numbers_even_with_string_node_ids() -> None:
    with pytest.raises(InvalidRequest, match="a number instead of 'SFO'"):
        bind(parse("id == 'SFO'"), AIR, 2, 0)
    plain = Schema.from_dict({"nodes": {"airport": {}}})
    with pytest.raises(InvalidRequest, match="a number instead of 'SFO'"):
        bind(parse("id == 'SFO'"), plain, 1, 0)
