"""Tests of JSON of Euler 1.x, one node per line: the same graph as in 2.0, and refusals."""

from __future__ import annotations

import copy
import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.kit import euler_graph

from asterism import InvalidRequest
from asterism.formats import open_source
from asterism.formats.euler import json_v1 as eulerblocks
from asterism.formats.euler.source import EulerSource

HANDWRITTEN = """\
{"node_id": 10, "node_type": 0, "node_weight": 1.5,\
 "neighbor": {"0": {"11": 2.0, "12": 0.5}, "1": {"10": 1}},\
 "uint64_feature": {"0": [7, 8, 9]}, "float_feature": {"0": [0.25, -1], "1": [3]},\
 "binary_feature": {"0": "ten"},\
 "edge": [{"src_id": 10, "dst_id": 11, "edge_type": 0, "weight": 2.0,\
 "uint64_feature": {}, "float_feature": {"0": [4.5]}, "binary_feature": {}}]}

{"node_id": 11, "node_type": 1, "node_weight": 0, "neighbor": {"0": {}, "1": {}},\
 "uint64_feature": null, "float_feature": {}, "binary_feature": {"0": ""}, "edge": []}
{"edge": [], "node_id": 12, "node_type": 1, "node_weight": 2,\
 "neighbor": {"1": {"11": 3.0}}, "float_feature": {"0": [1]}}
"""


def write_graph(folder: Path, blocks: list[Any] | str, meta: dict[str, int] | None = None) -> Path:
    path = folder / "graph.json"
    path.write_text(
        blocks if isinstance(blocks, str) else "".join(json.dumps(block) + "\n" for block in blocks)
    )
    if meta is not None:
        (folder / "graph_meta.json").write_text(json.dumps(meta))
    return path


def read_content(source: Any) -> tuple[dict[tuple[str, int], Any], list[Any], list[Any]]:
    """Return nodes by type and id, edges with their ends, and bad rows."""

    def rows(chunk: Any) -> list[dict[str, Any]]:
        records: list[dict[str, Any]] = [{} for _ in range(len(chunk))]
        for name, column in chunk.features.items():
            for index, row in enumerate(records):
                row[name] = (
                    column[1][column[0][index] : column[0][index + 1]]
                    if isinstance(column, tuple)
                    else np.asarray(column)[index]
                ).tolist()
        return records

    nodes, edges, bad = {}, [], []
    for chunk in source.node_chunks():
        nodes |= {
            (chunk.ntype, i): properties
            for i, *properties in zip(
                chunk.ids.tolist(), chunk.weights.tolist(), rows(chunk), strict=True
            )
        }
        bad += chunk.bad
    for chunk in source.edge_chunks():
        edges += zip(
            [chunk.etype] * len(chunk),
            chunk.src.tolist(),
            chunk.dst.tolist(),
            chunk.weights.tolist(),
            rows(chunk),
            strict=True,
        )
        bad += chunk.bad
    return nodes, sorted(edges, key=repr), bad


def test_handwritten_file_is_read_exactly(tmp_path: Path) -> None:
    source = open_source(write_graph(tmp_path, HANDWRITTEN))
    assert isinstance(source, EulerSource)
    nodes, edges, bad = read_content(source)
    assert nodes == {
        ("_0", 10): [
            1.5,
            {
                "uint64_0": [7, 8, 9],
                "float_0": [0.25, -1],
                "float_1": [3],
                "binary_0": list(b"ten"),
            },
        ],
        ("_1", 11): [0, {"binary_0": [], "float_0": [0]}],
        ("_1", 12): [2, {"binary_0": [], "float_0": [1]}],
    }
    assert edges == [
        ("_0:_0:_1", 10, 11, 2.0, {"float_0": [4.5]}),
        ("_0:_0:_1", 10, 12, 0.5, {"float_0": [0]}),
        ("_0:_1:_0", 10, 10, 1.0, {}),
        ("_1:_1:_1", 12, 11, 3.0, {}),
    ]
    assert bad == []
    assert source.total_rows == 7


def test_blocks_give_the_same_graph_as_json_of_2_0(tmp_path: Path) -> None:
    (new := tmp_path / "new").mkdir()
    (old := tmp_path / "old").mkdir()
    document = copy.deepcopy(euler_graph.as_json())
    for row in [*document["nodes"], *document["edges"]]:
        for feature in row["features"]:
            feature["name"] = euler_graph.NUMBERED_NAMES[feature["name"]]
    (new / "graph.json").write_text(json.dumps(document))
    write_graph(old, euler_graph.as_blocks())
    from_blocks, from_json = open_source(old), open_source(new)
    assert from_blocks.schema == from_json.schema
    assert read_content(from_blocks) == read_content(from_json)
    assert len(read_content(from_blocks)[1]) == 12
    assert from_blocks.total_rows == from_json.total_rows == 18
    assert (
        0
        < sum(chunk.nbytes for chunk in [*from_blocks.node_chunks(), *from_blocks.edge_chunks()])
        <= from_blocks.total_bytes
    )
    small_chunks = open_source(old, chunk_rows=4)
    assert (
        max(len(chunk) for chunk in [*small_chunks.node_chunks(), *small_chunks.edge_chunks()]) <= 4
    )
    assert read_content(small_chunks) == read_content(from_json)


def test_compressed_blocks_find_their_meta_file(tmp_path: Path) -> None:
    path = write_graph(tmp_path, HANDWRITTEN, euler_graph.META)
    plain = open_source(path)
    packed = path.with_name(f"{path.name}.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    source = open_source(packed)
    assert source.files == (packed, *plain.files[1:])
    assert len(source.files) == 2
    assert source.schema == plain.schema
    assert read_content(source) == read_content(plain)


def test_meta_file_gives_the_number_of_types(tmp_path: Path) -> None:
    path = write_graph(
        tmp_path, HANDWRITTEN, {**euler_graph.META, "node_type_num": 3, "edge_type_num": 4}
    )
    source = open_source(path)
    assert [t.name for t in source.schema.node_types] == ["_0", "_1", "_2"]
    assert list(dict.fromkeys(t.relation for t in source.schema.edge_types)) == [
        "_0",
        "_1",
        "_2",
        "_3",
    ]
    assert source.files == (path, tmp_path / "graph_meta.json")
    (tmp_path / "graph_meta.json").write_text('{"node_type_num": 2, "edge_type_num": "two"}')
    with pytest.raises(
        InvalidRequest,
        match=r"graph_meta\.json: expected a meta file .* with a number of edge_type_num",
    ):
        open_source(path)


def set_value(*path: str | int, to: Any) -> Callable[[Any], None]:
    def change(block: Any) -> None:
        for key in path[:-1]:
            block = block[key]
        block[path[-1]] = to

    return change


@pytest.mark.parametrize(
    ("change", "column", "value", "reason"),
    [
        (set_value("node_id", to=-3), "node_id", "-3", "an id is not negative"),
        (set_value("node_weight", to=-1), "node_weight", "-1", "a weight is not negative"),
        (
            set_value("node_type", to=2),
            "node_type",
            "2",
            "expected 0 to 1, the node types",
        ),
        (set_value("node_type", to="0"), "node_type", "0", "expected an integer, 0 or more"),
        (set_value("float_feature", "0", to=[1.0]), "float_0", "[1.0]", "expected 2 values"),
        (
            set_value("float_feature", "0", to=[1.0, 1e300]),
            "float_0",
            "1e+300",
            "expected numbers that fit float32",
        ),
        (
            set_value("uint64_feature", "0", to=[1 << 63]),
            "uint64_0",
            "9223372036854775808",
            "expected numbers that fit int64",
        ),
        (
            set_value("uint64_feature", "5", to=[1]),
            "uint64_feature",
            "5",
            "below the 2 of the meta",
        ),
        (
            set_value("binary_feature", to=["a"]),
            "binary_feature",
            "['a']",
            "expected an object of features",
        ),
        (
            set_value("edge", 0, "src_id", to=5),
            "src_id",
            "5",
            "an edge stands in the block of its source",
        ),
        (
            set_value("edge", 0, "weight", to=9.0),
            "weight",
            "9.0",
            "expected 5.0, as among the neighbors of node 4",
        ),
        (
            set_value("edge", 0, "edge_type", to=0),
            "dst_id",
            "5",
            "expected a neighbor of node 4 by edges of type 0",
        ),
        (set_value("edge", to=7), "edge", "7", "expected a list"),
        (set_value("edge", 0, to=7), "edge", "7", "expected an object"),
        (set_value("edge", 0, "dst_id", to=[5]), "dst_id", "[5]", "an id is an integer"),
        (set_value("neighbor", "1", "99", to=1.0), "dst_id", "99", "there is no such node"),
        (set_value("neighbor", "1", "x", to=1.0), "dst_id", "x", "an id is an integer"),
        (
            set_value("neighbor", "7", to={"5": 1.0}),
            "edge_type",
            "7",
            "expected 0 to 1, the edge types",
        ),
        (set_value("neighbor", to=[5]), "neighbor", "[5]", "expected an object of neighbors"),
    ],
)
def test_bad_row_is_reported_with_its_line_and_skipped(
    tmp_path: Path, change: Callable[[Any], None], column: str, value: str, reason: str
) -> None:
    blocks = euler_graph.as_blocks()
    change(blocks[3])
    nodes, edges, bad = read_content(open_source(write_graph(tmp_path, blocks, euler_graph.META)))
    assert (bad[0].file, bad[0].row, bad[0].column) == ("graph.json", 4, column)
    assert value in bad[0].value
    assert reason in bad[0].reason
    unchanged = read_content(
        open_source(write_graph(tmp_path, euler_graph.as_blocks(), euler_graph.META))
    )
    assert {4} >= {i for _, i in unchanged[0].keys() - nodes.keys()}
    assert nodes.items() <= unchanged[0].items()
    assert [edge for edge in edges if 4 not in edge[1:3]] == [
        edge for edge in unchanged[1] if 4 not in edge[1:3]
    ]


def test_edges_without_neighbors_are_edges(tmp_path: Path) -> None:
    blocks = euler_graph.as_blocks()
    for block in blocks:
        del block["neighbor"]
    expected = read_content(open_source(write_graph(tmp_path, euler_graph.as_blocks())))
    assert read_content(open_source(write_graph(tmp_path, blocks))) == expected


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        (
            '{"node_id": 1, "node_type": 0, "node_weight": 1}\n{"node_id": 2,\n',
            "line 2: expected JSON",
        ),
        (
            '{"node_id": 1, "node_type": 0, "node_weight": 1, '
            '"neighbor": {"0": {"1": 1, "1": 2}}}\n',
            "line 1: not readable: '1' is repeated",
        ),
        (
            '{"node_id": 1, "node_type": 0, "node_weight": 1}\n'
            '{"node_id": 1, "node_type": 1, "node_weight": 1}',
            "node 1: expected one type, found '0' and '1'",
        ),
        ('{"node_id": 1, "x": ' + "[" * 100_000, "line 1: "),
        ('{"node_id": -1, "node_type": 0, "node_weight": 1}', "expected at least one valid node"),
    ],
)
def test_malformed_json_is_refused_with_its_line(tmp_path: Path, text: str, refused: str) -> None:
    with pytest.raises(InvalidRequest, match=re.escape(refused)):
        open_source(write_graph(tmp_path, text))


def test_endless_block_is_refused_before_it_is_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(eulerblocks, "MAX_ELEMENT", 1000)
    with pytest.raises(
        InvalidRequest, match="line 1: expected the end of the element within 1,000 characters"
    ):
        open_source(
            write_graph(
                tmp_path,
                '{"node_id": 1, "node_type": 0, "float_feature": {"0": [' + "1, " * 100_000,
            )
        )
