"""Tests of PGLBox's configurations and files: known keys, and errors with their place."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.kit import pglbox_files as kit

from asterism.formats import csv_files, open_source
from asterism.formats.chunks import BadRow, EdgeChunk
from asterism.formats.graph_source import GraphSource
from asterism.formats.pglbox import nodes as pglboxnodes
from asterism.formats.pglbox.config import IGNORED, KEYS, read_config
from asterism_proto.errors import InvalidRequest

UPSTREAM_KEYS = """
batch_size chunk_num debug_mode dense_lr dump_node_emb_name dump_node_name emb_size epochs \
etype2files excluded_train_pair feature_mode gcl_loss
gpups_memory_allocated_rate graph_data_fs_name graph_data_fs_ugi graph_data_hdfs_path \
graph_data_local_path hadoop_home hadoop_shard hcl
infer_batch_size infer_node_type infer_nodes infer_samples init_range load_binary_mode loss_type \
margin max_slot_value_size mem_cache_passid_num
meta_path metapath_split_opt model_type need_dump_walk need_inference need_train neg_num \
nodeid_slot ntype2files num_part output_fs_name
output_fs_ugi pair_label return_weight sage_act sage_alpha sage_layer_type sage_mode \
sample_times_one_chunk samples save_binary_mode
save_cache_frequency save_model_interval slot_feature_lr slot_pool_type slots softsign sparse_lr \
sparse_type start_time symmetry time_delta
train_mode train_start_nodes train_storage_mode use_degree_norm walk_len walk_times \
warm_start_from weighted_sample win_size working_root
newest_time max_steps token_slot train_pass_cap infer_pass_cap batch_node_size batch_pair_size \
shard_num nfeat_info sample_num_list
infer_sample_num_list num_nodes embed_size hidden_size lr lazy_mode num_workers dataset_type \
collatefn task_name log_dir output_dir save_dir
files2saved log_steps save_steps pair_stream_shuffle_size res_alpha interact_mode \
beta1_decay_rate beta2_decay_rate load_filter_slots auto_shard
"""
"""Keys in the configurations of PGLBox and Graph4Rec, and keys that their programs read."""


def test_every_upstream_key_is_supported_or_ignored() -> None:
    assert set(UPSTREAM_KEYS.split()) - KEYS - set(IGNORED) == set()
    assert KEYS & set(IGNORED) == set()


def test_ignored_keys_are_listed_with_their_owner(tmp_path: Path) -> None:
    config = read_config(kit.write(tmp_path, emb_size=64, sparse_lr=0.1, walk_len=7))
    assert config.ignored == {"emb_size": "the model", "sparse_lr": "the optimizer"}
    assert config["walk_len"] == 7
    assert config["win_size"] == 2


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"walk_length": 3}, r"unknown key 'walk_length'; did you mean 'walk_len'\?"),
        ({"qqqqqqq": 3}, r"unknown key 'qqqqqqq'; docs/pglbox.md lists those there are"),
        ({"walk_len": 0}, r"walk_len=0: expected an integer, 1 or more"),
        ({"win_size": "3"}, r"win_size='3': expected an integer"),
        ({"neg_num": True}, r"neg_num=True: expected an integer, 0 or more"),
        ({"symmetry": "yes please"}, r"symmetry='yes please': expected True or False"),
        ({"samples": [0]}, r"samples=\[0\]: expected a list of neighbors per hop"),
        ({"sage_mode": True}, r"sage_mode=True: expected samples"),
        ({"train_mode": "offline"}, r"train_mode='offline': expected train or online_train"),
        (
            {"start_time": "2023-02-17"},
            r"start_time='2023-02-17': expected a day and hour, such as 20230217/00",
        ),
        (
            {"meta_path": "u2buy2i-u2buy2i"},
            r"meta_path='u2buy2i-u2buy2i', step 2: expected a step that starts at 'i', it starts "
            r"at 'u'",
        ),
        (
            {"meta_path": "u2i"},
            (
                r"meta_path='u2i', step 1: expected an edge type, found 'u2i'; there are u2buy2i, "
                r"i2buy2u, u2u, "
                r"i2t, t2i"
            ),
        ),
        (
            {"symmetry": False, "meta_path": "i2buy2u"},
            (
                r"meta_path=.*, step 1: expected an edge type, found 'i2buy2u'; symmetry: True "
                r"creates it "
                r"in the other direction"
            ),
        ),
        (
            {"etype2files": "u2x:a"},
            r"etype2files: 'u2to2x': expected node types of ntype2files, u, i, t; found 'x'",
        ),
        (
            {"etype2files": "u2u"},
            r"etype2files='u2u': expected type:file or folder, and each type once",
        ),
        ({"pair_label": "u2q:1"}, r"pair_label: u2q:1: expected a2b:number of node types u, i, t"),
        ({"infer_node_type": "u;q"}, r"infer_node_type='q': expected one of u, i, t"),
        (
            {"graph_data_local_path": "hdfs://a/b"},
            r"graph_data_local_path='hdfs://a/b': expected local files",
        ),
        (
            {"nfeat_info": [["u", "age", "date", 1]]},
            r"nfeat_info=.*: expected a list of \[node type, name, string or int32",
        ),
    ],
)
def test_a_wrong_key_or_value_is_refused_by_name(
    tmp_path: Path, keys: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidRequest, match=rf"config\.yaml: {said}"):
        read_config(kit.write(tmp_path, **keys))


def test_configuration_cannot_construct_objects(tmp_path: Path) -> None:
    path = kit.write(tmp_path)
    path.write_text(path.read_text() + "task_name: !!python/object/apply:os.getcwd []\n")
    with pytest.raises(InvalidRequest, match="cannot be read"):
        read_config(path)


def read_nodes(
    source: GraphSource,
) -> tuple[dict[tuple[str, int], dict[str, list[int]]], list[BadRow]]:
    slots_by_node: dict[tuple[str, int], dict[str, list[int]]] = {}
    bad: list[BadRow] = []
    for chunk in source.node_chunks():
        bad += chunk.bad
        for row, node in enumerate(chunk.ids.tolist()):
            columns = {
                name: value[1][value[0][row] : value[0][row + 1]].tolist()
                for name, value in chunk.features.items()
                if isinstance(value, tuple)
            }
            assert (chunk.ntype, node) not in slots_by_node
            slots_by_node[chunk.ntype, node] = columns
    return slots_by_node, bad


def read_edges(source: GraphSource) -> tuple[Counter[tuple[str, int, int, float]], list[BadRow]]:
    counts: Counter[tuple[str, int, int, float]] = Counter()
    bad: list[BadRow] = []
    for chunk in source.edge_chunks():
        assert isinstance(chunk, EdgeChunk)
        bad += chunk.bad
        weights = np.ones(len(chunk)) if chunk.weights is None else chunk.weights
        counts.update(
            zip(
                [chunk.etype] * len(chunk),
                chunk.src.tolist(),
                chunk.dst.tolist(),
                weights.tolist(),
                strict=True,
            )
        )
    return counts, bad


def expected_edges(*, both_ways: bool) -> Counter[tuple[str, int, int, float]]:
    expected = Counter(
        [("u:buy:i", *row) for row in kit.BUYS]
        + [("u:to:u", *row, 1.0) for row in kit.KNOWS]
        + [("i:to:t", *row, 1.0) for row in kit.HAS]
    )
    if both_ways:
        reverse_types = {"u:buy:i": "i:buy:u", "u:to:u": "u:to:u", "i:to:t": "t:to:i"}
        expected.update(
            [
                (reverse_types[name], dst, src, weight)
                for name, src, dst, weight in expected.elements()
            ]
        )
    return expected


@pytest.mark.parametrize("block", [64, 1 << 20])
def test_nodes_of_types_in_shared_files_keep_their_slots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(pglboxnodes, "BLOCK_BYTES", block)
    source = open_source(kit.write(tmp_path))
    assert [(node.name, [f.name for f in node.features]) for node in source.schema.node_types] == [
        (name, ["_11", "_12"]) for name in ("u", "i", "t")
    ]
    assert source.schema.ids == "global"
    nodes, bad = read_nodes(source)
    expected = {("u", user): {"_11": [], "_12": [user]} for user in kit.USERS}
    expected |= {("i", item): {"_11": kit.SLOTS[item], "_12": []} for item in kit.ITEMS}
    expected |= {("t", tag): {"_11": [], "_12": []} for tag in kit.TAGS}
    assert (nodes, bad) == (expected, [])


@pytest.mark.parametrize("symmetry", [True, False])
def test_edges_have_weights_and_reverses_with_symmetry(tmp_path: Path, symmetry: bool) -> None:
    source = open_source(kit.write(tmp_path, symmetry=symmetry, meta_path="u2u"))
    edges, bad = read_edges(source)
    assert (edges, bad) == (expected_edges(both_ways=symmetry), [])
    assert {edge.name: edge.weighted for edge in source.schema.edge_types} == {
        "u:buy:i": True,
        "u:to:u": False,
        "i:to:t": False,
        **({"i:buy:u": True, "t:to:i": False} if symmetry else {}),
    }


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("rows", [1 << 18, 3])
def test_rows_duplicated_by_sharding_are_read_once(
    tmp_path: Path, symmetric: bool, rows: int
) -> None:
    path = kit.write(tmp_path, hadoop_shard=True, num_part=7)
    kit.write_parts(tmp_path, 7, symmetric=symmetric)
    lines = [
        line
        for part in (tmp_path / "data/u2buy2i").iterdir()
        for line in part.read_text().splitlines()
    ]
    assert len(lines) == len(kit.BUYS) * (2 if symmetric else 1)
    assert any(src % 7 == dst % 7 for src, dst, _ in kit.BUYS)
    assert read_edges(open_source(path, chunk_rows=rows))[0] == expected_edges(both_ways=True)


def test_bad_rows_are_reported_with_their_position_and_value(tmp_path: Path) -> None:
    path = kit.write(tmp_path)
    data = tmp_path / "data"
    (data / "node_types/part-00000").write_text(
        "u\t1\t12:1\n\nu\t-4\nu\nother\tx\nu\t5\t12:a,2\nu\t6\tcolour\ni\t7\t11:1,2\t11:3\n"
    )
    (data / "u2u.txt").write_text("1\t2\n1\tb\n3\n")
    (data / "u2buy2i/edges").write_text("1\t2\t0.5\n1\t2\t-1\n1\t2\tnan\n")
    nodes, bad = read_nodes(open_source(path))
    assert [str(row) for row in bad] == [
        "node_types/part-00000, row 3, column 'id', value '-4': an id is not negative",
        "node_types/part-00000, row 4, column '', value 'u': expected a type, a tab and an id",
        "node_types/part-00000, row 6, column '12', value '12:a,2': expected int64 values",
        (
            "node_types/part-00000, row 7, column '', value 'colour': expected slot:value after "
            "the id, separated by tabs"
        ),
    ]
    assert (nodes["u", 1]["_12"], nodes["i", 7]["_11"]) == ([1], [1, 2, 3])
    messages = [str(row) for row in read_edges(open_source(path))[1]]
    assert messages[:2] == [
        "u2buy2i/edges, row 2, column 'weight', value '-1': a weight is not negative",
        "u2buy2i/edges, row 3, column 'weight', value 'nan': a weight is finite and fits float32",
    ]
    assert any(
        "u2u.txt, row 2, column 'dst', value 'b': an id is an integer" in message
        for message in messages
    )
    assert any(
        "u2u.txt, row 3" in message and "expected 2 columns, found 1" in message
        for message in messages
    )


def test_features_of_graph4rec_are_lists_and_texts(tmp_path: Path) -> None:
    path = kit.write(
        tmp_path,
        slots=[],
        nfeat_info=[["u", "age", "int64", 1], ["u", "word", "string", 1], ["t", "x", "float32", 2]],
    )
    (tmp_path / "data/node_types/part-00000").write_text("u\t1\tage 30 31\tword two words\n")
    (tmp_path / "data/node_types/part-00001").write_text("t\t201\tx 0.5 1e3\nt\t202\n")
    source = open_source(path)
    assert [
        [(f.name, f.kind, f.dtype) for f in node.features] for node in source.schema.node_types
    ] == [
        [("age", "ragged", "int64"), ("word", "bytes", "float32")],
        [],
        [("x", "ragged", "float32")],
    ]
    nodes, bad = read_nodes(source)
    assert bad == []
    assert nodes["u", 1] == {"age": [30, 31], "word": list(b"two words")}
    assert (nodes["t", 201], nodes["t", 202]) == ({"x": [0.5, 1000.0]}, {"x": []})


PAIRS_DECLARED = [["u", "s", "string", 1]]
PAIRS_EXPECTED = "expected slot:value pairs, separated by commas"


def open_pairs(tmp_path: Path, lines: str, **keys: Any) -> GraphSource:
    """Return a source with slots 1 and 2, and with these lines of nodes alone."""
    path = kit.write(tmp_path, **{"slots": ["1", "2"], "nfeat_info": PAIRS_DECLARED, **keys})
    folder = tmp_path / "data/node_types"
    (folder / "part-00000").write_text(lines)
    (folder / "part-00001").unlink()
    return open_source(path)


@pytest.mark.parametrize("block", [16, 1 << 20])
def test_slots_are_read_from_the_pairs_of_graph4rec(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(pglboxnodes, "BLOCK_BYTES", block)
    source = open_pairs(
        tmp_path,
        "u\t11\ts 1:583,2:697\nu\t12\ts 1:651,2:578,2:9\nu\t13\ni\t21\ts 1:386,2:747\n",
    )
    assert [[(f.name, f.kind, f.dtype) for f in n.features] for n in source.schema.node_types] == [
        [("_1", "ragged", "int64"), ("_2", "ragged", "int64"), ("s", "bytes", "float32")],
        [("_1", "ragged", "int64"), ("_2", "ragged", "int64")],
        [("_1", "ragged", "int64"), ("_2", "ragged", "int64")],
    ]
    assert read_nodes(source) == (
        {
            ("u", 11): {"_1": [583], "_2": [697], "s": list(b"1:583,2:697")},
            ("u", 12): {"_1": [651], "_2": [578, 9], "s": list(b"1:651,2:578,2:9")},
            ("u", 13): {"_1": [], "_2": [], "s": []},
            ("i", 21): {"_1": [386], "_2": [747]},
        },
        [],
    )


@pytest.mark.parametrize(
    ("fields", "first", "second"),
    [
        ("s:1:5,2:6", [5], [6]),
        ("s 1:5,", [5], []),
        ("s 1:-5,2:0", [-5], [0]),
        ("s 2:6,1:5,2:7", [5], [6, 7]),
        ("s 1:5,1:5", [5, 5], []),
        ("s 1:5\ts 1:6,2:7", [5, 6], [7]),
        ("s 1:5\t1:6\t2:7", [5, 6], [7]),
        ("1:6\ts 1:5\t1:7,8", [6, 5, 7, 8], []),
        ("s 9:4,1:5,word:3", [5], []),
        ("s 9:99999999999999999999,1:5", [5], []),
        ("s 1:9223372036854775807", [2**63 - 1], []),
        ("t 1:5\t2:6", [], [6]),
    ],
)
def test_pairs_are_read_like_fields_of_their_slots(
    tmp_path: Path, fields: str, first: list[int], second: list[int]
) -> None:
    nodes, bad = read_nodes(open_pairs(tmp_path, f"u\t3\t1:8\nu\t4\t{fields}\nu\t5\t2:9\n"))
    assert bad == []
    columns = [(row["_1"], row["_2"]) for row in nodes.values()]
    assert columns == [([8], []), (first, second), ([], [9])]


def test_fields_that_are_no_pairs_are_bad_rows_of_column_s(tmp_path: Path) -> None:
    fields = ["1", "1:", ":5", "1:a", "1:5;2:6", "1:5,,2:6", "1:5,2", "1:2:3", "1:1.5", "1:5 2:6"]
    nodes, bad = read_nodes(
        open_pairs(
            tmp_path,
            "u\t1\ts 1:5\n"
            + "".join(f"u\t2\ts {field}\n" for field in fields)
            + "u\t2\t2:7\ts \t1:5\nu\t3\ts 2:6\n",
        )
    )
    values = [f"s {field}" for field in fields] + ["2:7\ts \t1:5"]
    assert [str(row) for row in bad] == [
        f"node_types/part-00000, row {row}, column 's', value {value!r}: {PAIRS_EXPECTED}"
        for row, value in enumerate(values, 2)
    ]
    assert [(node, row["_1"], row["_2"]) for node, row in nodes.items()] == [
        (("u", 1), [5], []),
        (("u", 3), [], [6]),
    ]


def test_a_pair_beyond_int64_is_a_bad_row_of_its_slot(tmp_path: Path) -> None:
    nodes, bad = read_nodes(open_pairs(tmp_path, "u\t1\ts 1:5,2:9223372036854775808\nu\t2\ts\n"))
    assert nodes == {}
    assert [str(row) for row in bad] == [
        (
            "node_types/part-00000, row 1, column '2', value 's 1:5,2:9223372036854775808': "
            "expected int64 values"
        ),
        (
            "node_types/part-00000, row 2, column '', value 's': expected slot:value after the "
            "id, separated by tabs"
        ),
    ]


@pytest.mark.parametrize(
    ("keys", "features"),
    [
        ({"nfeat_info": []}, {"_1": [], "_2": []}),
        ({"slots": []}, {"s": list(b"red shoes")}),
        ({"slots": ["s"], "nfeat_info": []}, None),
        ({"nfeat_info": [["u", "s", "int64", 1]]}, None),
    ],
)
def test_other_contents_of_field_s_need_no_pairs(
    tmp_path: Path, keys: dict[str, Any], features: dict[str, list[int]] | None
) -> None:
    """Only slots together with a string ``s`` make pairs of that field."""
    nodes, bad = read_nodes(open_pairs(tmp_path, "u\t1\ts red shoes\nu\t2\n", **keys))
    assert nodes.get(("u", 1)) == features
    assert [str(row) for row in bad] == (
        []
        if features is not None
        else [
            "node_types/part-00000, row 1, column 's', value 's red shoes': expected int64 values"
        ]
    )


def test_missing_files_and_wrong_compressions_are_refused(tmp_path: Path) -> None:
    path = kit.write(tmp_path, etype2files="u2u:nowhere", meta_path="u2u")
    with pytest.raises(
        InvalidRequest,
        match=r"etype2files: 'u:to:u': nowhere: no such file or folder under .*data",
    ):
        open_source(path)
    (tmp_path / "data/nowhere").mkdir()
    with pytest.raises(InvalidRequest, match="the folder has no files"):
        open_source(path)
    (tmp_path / "data/nowhere/part-00000.gz").write_bytes(b"x")
    with pytest.raises(
        InvalidRequest, match=r"part-00000\.gz: named \.gz, but does not begin like gzip data"
    ):
        open_source(path)


def test_windows_of_a_routine_training_follow_each_other(tmp_path: Path) -> None:
    path = kit.write(
        tmp_path,
        train_mode="online_train",
        start_time="20230219/22",
        time_delta=3,
        graph_data_hdfs_path="routine",
        graph_data_local_path="x",
    )
    for name in ("20230219/22", "20230220/01", "20230220/07"):
        (tmp_path / "routine" / name).mkdir(parents=True)
    (tmp_path / "routine/20230219/22/to.hadoop.done").touch()
    windows = read_config(path).windows()
    assert [(str(window.folder.relative_to(tmp_path)), window.ready) for window in windows] == [
        ("routine/20230219/22", True),
        ("routine/20230220/01", False),
    ]
    path.write_text(path.read_text() + "newest_time: 20230220/01\n")
    assert [window.time.hour for window in read_config(path).windows()] == [1]


def test_memory_does_not_grow_with_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = kit.write(tmp_path)
    line = "u\t{}\t12:1\t11:5\n"
    peaks = []
    monkeypatch.setattr(pglboxnodes, "BLOCK_BYTES", 1 << 16)
    monkeypatch.setattr(csv_files, "BLOCK_BYTES", 1 << 16)
    for rows in (20_000, 100_000):
        (tmp_path / "data/node_types/part-00000").write_text(
            "".join(line.format(i) for i in range(1000, 1000 + rows))
        )
        tracemalloc.start()
        base_bytes = pa.total_allocated_bytes()
        peak_bytes, count = 0, 0
        for chunk in open_source(path).node_chunks():
            count += len(chunk)
            peak_bytes = max(peak_bytes, pa.total_allocated_bytes() - base_bytes)
        peaks.append(tracemalloc.get_traced_memory()[1] + peak_bytes)
        tracemalloc.stop()
        assert count > rows
    assert peaks[1] < 1.5 * peaks[0], peaks
