"""Tests of names of types and features in any script."""

from __future__ import annotations

import unicodedata

import pytest

from asterism_model.schema import Schema
from asterism_model.validation import validate_name
from asterism_proto.errors import InvalidRequest


@pytest.mark.parametrize(
    "name",
    [
        "a",
        "_",
        "a.b-c",
        "x" * 128,
        "用户",
        "購買",
        "товар",
        "été",
        "हिन्दी",
        "用" * 42,
        "ユーザー.1",
    ],
)
def test_names_are_identifiers_of_any_script(name: str) -> None:
    assert validate_name("node type", unicodedata.normalize("NFC", name))


@pytest.mark.parametrize(
    "name",
    ["", "1", "-a", "a b", "a:b", "a`", "x" * 129, "用" * 43, "用户!", "🙂", "-用", "\ud800"],
)
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(
        InvalidRequest, match=r"node type .*: expected a letter or _, then up to 127"
    ):
        validate_name("node type", name)


def test_names_are_in_normalization_form_c() -> None:
    with pytest.raises(
        InvalidRequest,
        match=r"type 'e\\u0301te': expected Unicode normalization form C; write '\\xe9te', as by",
    ):
        validate_name("type", "e\u0301te")


def test_types_are_found_in_any_normalization_form() -> None:
    schema = Schema.from_dict({"nodes": {"a": {}, "\xe9": {}}, "edges": {"a:\xe0:\xe9": {}}})
    assert schema.node_type_id("e\u0301") == 1
    assert schema.edge_type_id("a\u0300") == schema.edge_type_id("a:a\u0300:e\u0301") == 0
