"""Tests of YAML: names as they are written, and no key twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.kit import pglbox_files, schema_folder

from asterism.cli.schema_files import read_schema
from asterism.formats import open_source
from asterism.formats.pglbox.config import read_config
from asterism.yaml_files import parse_yaml
from asterism_proto.errors import InvalidRequest

WORDS = ["on", "off", "yes", "no", "On", "YES", "y", "n", "null", "true", "False", "none"]


@pytest.mark.parametrize("word", WORDS)
def test_types_and_features_have_the_written_names(tmp_path: Path, word: str) -> None:
    schema = (
        f"nodes:\n  {word}: {{files: n.csv, id: id, features: {{{word}: int64}}}}\n"
        f"edges:\n  {word}:{word}:{word}: {{files: n.csv, src: id, dst: id}}\n"
    )
    source = open_source(schema_folder.write(tmp_path, schema, {"n.csv": f"id,{word}\n1,2\n"}))
    (node,), (edge,) = source.schema.node_types, source.schema.edge_types
    assert (node.name, [f.name for f in node.features]) == (word, [word])
    assert edge.name == f"{word}:{word}:{word}"
    plain = f"nodes: {{{word}: {{features: {{{word}: int64}}}}}}\n"
    (tmp_path / "space.yaml").write_text(plain)
    assert [t.name for t in read_schema(tmp_path / "space.yaml").node_types] == [word]


@pytest.mark.parametrize("word", ["on", "Off", "yes", "no", "010", "1:30", "0x1F", "2024-02-30"])
def test_columns_have_the_written_names(tmp_path: Path, word: str) -> None:
    schema = (
        "csv: {nulls: [NO]}\n"
        f"nodes:\n  n: {{files: n.csv, id: {word}, features: {{x: {{column: {word}}}}}}}\n"
    )
    chunks = schema_folder.nodes(tmp_path, schema, {"n.csv": f"{word}\n1\nNO\n"})
    assert schema_folder.ids_of(chunks) == [1]
    assert schema_folder.bad_rows(chunks)[0].reason == "the id is missing"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("true", "id=True: expected a name; put it in quotes if it is the text 'true'"),
        ("5", "id=5: expected a name; put it in quotes if it is the text '5'"),
        ("[a]", r"id=\['a'\]: expected a name"),
    ],
)
def test_a_value_that_is_no_name_is_refused(tmp_path: Path, value: str, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        schema_folder.nodes(
            tmp_path, f"nodes: {{n: {{files: n.csv, id: {value}}}}}\n", {"n.csv": "a\n"}
        )


@pytest.mark.parametrize(("word", "flag"), [("yes", True), ("on", True), ("No", False)])
def test_flags_may_be_words(tmp_path: Path, word: str, flag: bool) -> None:
    schema = (
        "nodes:\n  n: {count: 5}\n"
        f"edges:\n  n:e:n: {{files: n.csv, src: s, dst: d, symmetry: {word}}}\n"
    )
    chunks = schema_folder.edges(tmp_path, schema, {"n.csv": "s,d\n1,2\n"})
    assert sum(map(len, chunks)) == 1 + flag
    (tmp_path / "space.yaml").write_text(f"nodes: {{n: {{weighted: {word}}}}}\n")
    assert read_schema(tmp_path / "space.yaml").node_types[0].weighted is flag
    path = pglbox_files.write(tmp_path)
    path.write_text(path.read_text().replace("hadoop_shard: false", f"hadoop_shard: {word}"))
    assert read_config(path)["hadoop_shard"] is flag


def test_a_flag_that_is_no_boolean_is_refused(tmp_path: Path) -> None:
    (tmp_path / "space.yaml").write_text("nodes: {n: {weighted: maybe}}\n")
    with pytest.raises(InvalidRequest, match="weighted='maybe': expected true or false"):
        read_schema(tmp_path / "space.yaml")


@pytest.mark.parametrize(
    ("text", "key", "line"),
    [
        ("nodes:\n  n: {count: 3}\n  n: {count: 5}\n", "n", 3),
        ("nodes:\n  on: {count: 3}\n  'on': {count: 5}\n", "on", 3),
        ("nodes: {n: {count: 3, count: 4}}\n", "count", 1),
        ("parts: 2\nnodes: {n: {}}\nparts: 3\n", "parts", 3),
    ],
)
def test_a_key_that_is_there_twice_is_refused(
    tmp_path: Path, text: str, key: str, line: int
) -> None:
    path = schema_folder.write(tmp_path, text)
    for read in (open_source, read_schema, read_config):
        with pytest.raises(InvalidRequest, match=rf"line {line}: '{key}' is there twice"):
            read(path)


@pytest.mark.parametrize(
    "text",
    [
        "{[a, b]: 1}",
        "{{a: 1}: 2}",
        "a: [",
        "a: !!int x",
        "a: !!python/object:os.system {}",
        "a: *b",
        "---\na: 1\n---\nb: 2\n",
        "a: \x01",
        "[" * 3000,
        "a: 2024-99-99T99:99:99\n- b",
    ],
)
def test_text_that_is_no_yaml_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "schema.yaml"
    path.write_text(text)
    for read in (open_source, read_schema, read_config):
        with pytest.raises(InvalidRequest):
            read(path)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "schema.yaml"
    path.write_bytes(b"nodes: \xff\xfe\n")
    for read in (open_source, read_schema, read_config):
        with pytest.raises(InvalidRequest):
            read(path)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{a: 1, b: -2, c: 1_000}", {"a": 1, "b": -2, "c": 1000}),
        ("{a: 1.5, b: 1e5, c: .5, d: -1.0e-3, e: .inf}", None),
        (
            "{a: true, b: False, c: null, d: ~, e: }",
            {"a": True, "b": False, **dict.fromkeys("cde")},
        ),
        ("{a: 'on', b: \"1\", c: on}", {"a": "on", "b": "1", "c": "on"}),
        ("a: &x {p: 1}\nb: {<<: *x, q: 2}\n", {"a": {"p": 1}, "b": {"p": 1, "q": 2}}),
        ("a: &x {p: 1}\nb: {<<: *x, p: 2}\n", {"a": {"p": 1}, "b": {"p": 2}}),
        ("1: a\ntrue: b\n", {"1": "a", "true": "b"}),
        ("- a\n- b\n", ["a", "b"]),
        ("", None),
    ],
)
def test_plain_values_are_read_as_before(text: str, value: Any) -> None:
    parsed = parse_yaml(text)
    if value is None and text:
        value = {"a": 1.5, "b": 1e5, "c": 0.5, "d": -1e-3, "e": float("inf")}
    assert parsed == value


def test_slots_and_lists_of_pglbox_are_checked(tmp_path: Path) -> None:
    path = pglbox_files.write(tmp_path)
    text = path.read_text()
    for slots, names in (("[011, on]", ("011", "on")), ("[11, '12']", ("11", "12"))):
        start = text.index("slots:")
        stop = text.index("symmetry:")
        path.write_text(f"{text[:start]}slots: {slots}\n{text[stop:]}")
        assert read_config(path)["slots"] == names
    for key, value in (("nfeat_info", "5"), ("slots", "[true]"), ("time_delta", "10000000000")):
        path.write_text(text.replace("slots:\n- '11'\n- '12'\n", "") + f"{key}: {value}\n")
        with pytest.raises(InvalidRequest, match=f"{key}="):
            read_config(path)


@pytest.mark.parametrize("name", ["metadata.json", "graph.json", "space.json"])
def test_a_name_that_json_has_twice_is_refused(tmp_path: Path, name: str) -> None:
    texts = {
        "metadata.json": '{"node_type": ["a"], "node_type": ["b"]}',
        "graph.json": '{"nodes": [{"id": 1, "id": 2, "type": 0, "weight": 1}], "edges": []}',
        "space.json": '{"nodes": {"a": {}, "a": {}}}',
    }
    (tmp_path / name).write_text(texts[name])
    read = read_schema if name == "space.json" else open_source
    with pytest.raises(InvalidRequest, match="is repeated"):
        read(tmp_path / name)


def test_errors_name_line_and_column() -> None:
    with pytest.raises(ValueError, match=r"^line 2, column 1: found character '\\t'"):
        parse_yaml("a:\n\t- b")
    with pytest.raises(ValueError, match=r"^line 1, column 14: expected ',' or '\]'"):
        parse_yaml("nodes: [paper")
