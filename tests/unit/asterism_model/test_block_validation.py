"""Tests of the rules for rows of a write: valid blocks pass, and wrong values are refused.

Errors have the section, position and value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asterism_graphkit.random.partition_choice import part_of
from asterism_model import block_validation
from asterism_model.schema import Schema
from asterism_proto.errors import InvalidRequest, Stale
from asterism_proto.framing import Frame, decode, encode
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from storaged.api import write_decoding

PARTS = 3
SCHEMA = Schema.from_dict(
    {
        "parts": PARTS,
        "direction": "both",
        "nodes": {
            "n": {
                "weighted": True,
                "features": {
                    "v": {"dtype": "int16", "shape": [2]},
                    "l": {"kind": "ragged", "dtype": "int64"},
                    "born": "float64",
                    "flag": "bool",
                },
                "time": "born",
            },
            "plain": {},
        },
        "edges": {
            "plain:e:plain": {
                "weighted": True,
                "features": {"at": "int64", "x": "float32"},
                "time": "at",
            },
            "n:f:plain": {},
        },
    }
)
NAMED = Schema.from_dict({"parts": PARTS, "ids": "string", "nodes": {"n": {}}})
ROWS = 6
ALL = np.arange(ROWS, dtype=np.int64)


def nodes() -> dict[str, np.ndarray[Any, Any]]:
    return {
        "ids": PARTS * ALL + 1,
        "weight": np.ones(ROWS, np.float32),
        "f:v": np.zeros((ROWS, 2), np.int16),
        "f:l.indptr": np.arange(ROWS + 1, dtype=np.int64),
        "f:l.values": ALL,
        "f:born": np.zeros(ROWS),
        "f:flag": np.zeros(ROWS, np.bool_),
    }


def edges(kind: int) -> dict[str, np.ndarray[Any, Any]]:
    local_ids, remote_ids = PARTS * ALL + 1, ALL * 7
    src, dst = (
        (local_ids, remote_ids)
        if kind in (storaged_pb.OUT_EDGES, storaged_pb.OUT_EDGE_DELETES)
        else (remote_ids, local_ids)
    )
    arrays: dict[str, np.ndarray[Any, Any]] = {"src": src, "dst": dst, "eid": 100 + ALL}
    if kind in (storaged_pb.OUT_EDGES, storaged_pb.IN_EDGES):
        arrays |= {"weight": np.ones(ROWS, np.float32), "w:at": ALL}
    return arrays


VALID: dict[int, dict[str, np.ndarray[Any, Any]]] = {
    storaged_pb.NODES: nodes(),
    storaged_pb.NODE_DELETES: {"ids": ALL},
    storaged_pb.NODE_REVIVALS: {"ids": ALL},
    storaged_pb.NODE_TIMES: {"ids": ALL, "w:born": np.zeros(ROWS)},
    **{
        kind: edges(kind)
        for kind in (
            storaged_pb.OUT_EDGES,
            storaged_pb.IN_EDGES,
            storaged_pb.OUT_EDGE_DELETES,
            storaged_pb.IN_EDGE_DELETES,
        )
    },
    storaged_pb.EDGE_FEATURES: {
        "eid": PARTS * ALL + 1,
        "f:at": ALL,
        "f:x": np.zeros(ROWS, np.float32),
    },
}


def check_rows(
    kind: int,
    arrays: dict[str, np.ndarray[Any, Any]],
    *,
    schema: Schema = SCHEMA,
    type_id: int = 0,
    part: int = 1,
) -> int:
    rows = next((len(arrays[name]) for name in ("ids", "src", "eid") if name in arrays), 0)
    return block_validation.check_block(schema, kind, type_id, arrays, [(part, 0, rows)], part_of)


@pytest.mark.parametrize("kind", VALID, ids=storaged_pb.BlockKind.Name)
def test_a_valid_block_passes(kind: int) -> None:
    assert check_rows(kind, VALID[kind]) == ROWS
    assert (
        check_rows(
            kind,
            {
                name: array[: 1 if name.endswith("indptr") else 0]
                for name, array in VALID[kind].items()
            },
        )
        == 0
    )


def test_every_kind_of_block_has_a_rule() -> None:
    assert set(VALID) == set(storaged_pb.BlockKind.values()) - {storaged_pb.BLOCK_KIND_UNSPECIFIED}


def with_value(name: str, index: int, value: Any) -> Any:
    def change(arrays: dict[str, np.ndarray[Any, Any]]) -> None:
        arrays[name] = arrays[name].copy()
        arrays[name][index] = value

    return change


def with_array(name: str, array: Any) -> Any:
    return lambda arrays: arrays.__setitem__(name, array)


def without_array(name: str) -> Any:
    return lambda arrays: arrays.pop(name)


LARGEST = 2**63 - 1
WRONG: list[tuple[int, Any, str]] = [
    (storaged_pb.NODES, with_value("ids", 2, -1), r"ids\[2\] = -1: expected 0 to"),
    (storaged_pb.NODES, with_value("ids", 2, -500), r"ids\[2\] = -500"),
    (storaged_pb.NODES, with_value("ids", 2, -4000), r"ids\[2\] = -4000"),
    (storaged_pb.NODES, with_value("ids", 5, LARGEST), r"ids\[5\] = 9223372036854775807"),
    (
        storaged_pb.NODES,
        with_value("ids", 3, 2),
        r"ids\[3\] = 2: expected a row of partition 1, found one of partition 2",
    ),
    (storaged_pb.NODES, with_value("weight", 1, np.nan), r"weight\[1\] = nan"),
    (storaged_pb.NODES, with_value("weight", 1, -1), r"weight\[1\] = -1.0"),
    (storaged_pb.NODES, with_value("weight", 1, np.inf), r"weight\[1\] = inf"),
    (storaged_pb.NODES, with_array("weight", np.ones(ROWS)), r"weight: .* found float64"),
    (
        storaged_pb.NODES,
        with_array("weight", np.ones(ROWS - 1, np.float32)),
        "weight has 5 entries: expected 6",
    ),
    (
        storaged_pb.NODES,
        with_array("ids", (PARTS * ALL + 1).astype(np.int32)),
        r"ids: .* found int32",
    ),
    (storaged_pb.NODES, without_array("ids"), "the array 'ids' is missing"),
    (
        storaged_pb.NODES,
        with_array("f:v", np.zeros((ROWS, 2), np.int32)),
        "expected int16 in 'f:v', found int32",
    ),
    (
        storaged_pb.NODES,
        with_array("f:v", np.zeros((ROWS, 3), np.int16)),
        r"expected shape \[6, 2\] of 'f:v', found \[6, 3\]",
    ),
    (storaged_pb.NODES, with_array("f:v", np.zeros((ROWS - 1, 2), np.int16)), r"found \[5, 2\]"),
    (
        storaged_pb.NODES,
        with_array("f:flag", np.full(ROWS, 2, np.uint8).view(np.bool_)),
        r"expected bytes 0 or 1 .* found 2",
    ),
    (storaged_pb.NODES, with_array("f:w", ALL), "section 'f:w'"),
    (storaged_pb.NODES, with_array("src", ALL), "section 'src'"),
    (storaged_pb.NODES, with_value("f:l.indptr", 0, 1), r"indptr\[0\] = 1"),
    (storaged_pb.NODES, with_value("f:l.indptr", 3, 9), r"indptr\[4\] = 4 after 9"),
    (storaged_pb.NODES, with_value("f:l.indptr", ROWS, 7), r"indptr\[6\] = 7"),
    (storaged_pb.NODES, with_value("f:l.indptr", 1, -1), r"indptr\[1\] = -1 after 0"),
    (
        storaged_pb.NODES,
        with_array("f:l.indptr", np.arange(ROWS, dtype=np.int64)),
        r"indptr of int64\[6\]",
    ),
    (storaged_pb.NODES, with_array("f:l.values", ALL.astype(np.float32)), "found float32"),
    (storaged_pb.NODES, without_array("f:l.values"), "'f:l.values' is missing"),
    (storaged_pb.NODES, with_value("f:born", 4, np.nan), r"time 'born'\[4\] = nan"),
    (storaged_pb.NODE_DELETES, with_value("ids", 0, -1), r"ids\[0\] = -1"),
    (storaged_pb.NODE_DELETES, with_array("weight", np.ones(ROWS, np.float32)), "weights"),
    (storaged_pb.NODE_REVIVALS, with_value("ids", 0, LARGEST), r"ids\[0\] = 9223372036854775807"),
    (storaged_pb.NODE_TIMES, without_array("w:born"), "'w:born' is missing"),
    (storaged_pb.NODE_TIMES, with_value("w:born", 2, np.nan), r"time 'born'\[2\] = nan"),
    (storaged_pb.OUT_EDGES, with_value("dst", 4, -500), r"dst\[4\] = -500"),
    (storaged_pb.OUT_EDGES, with_value("eid", 4, -1), r"eid\[4\] = -1: expected 0"),
    (
        storaged_pb.OUT_EDGES,
        with_value("src", 4, 3),
        r"src\[4\] = 3: expected a row of partition 1, found one of partition 0",
    ),
    (storaged_pb.OUT_EDGES, with_value("w:at", 2, -(2**63)), r"time 'at'\[2\]"),
    (storaged_pb.OUT_EDGES, with_array("w:x", np.zeros(ROWS, np.float32)), "section 'w:x'"),
    (storaged_pb.OUT_EDGES, with_array("f:x", np.zeros(ROWS, np.float32)), "section 'f:x'"),
    (
        storaged_pb.IN_EDGES,
        with_value("dst", 0, 0),
        r"dst\[0\] = 0: expected a row of partition 1, found one of partition 0",
    ),
    (storaged_pb.IN_EDGES, with_value("src", 0, LARGEST), r"src\[0\] = 9223372036854775807"),
    (storaged_pb.OUT_EDGE_DELETES, with_value("eid", 1, -2), r"eid\[1\] = -2: expected -1"),
    (storaged_pb.OUT_EDGE_DELETES, with_value("src", 1, 2), "found one of partition 2"),
    (storaged_pb.IN_EDGE_DELETES, with_value("dst", 1, 2), "found one of partition 2"),
    (
        storaged_pb.EDGE_FEATURES,
        with_value("eid", 3, 2),
        r"eid\[3\] = 2: expected a row of partition 1, found one of partition 2",
    ),
    (storaged_pb.EDGE_FEATURES, with_value("f:at", 3, -(2**63)), r"time 'at'\[3\]"),
]


@pytest.mark.parametrize(("kind", "change", "message"), WRONG)
def test_a_wrong_block_is_refused_with_the_value(kind: int, change: Any, message: str) -> None:
    arrays = dict(VALID[kind])
    change(arrays)
    with pytest.raises(InvalidRequest, match=message):
        check_rows(kind, arrays)


def test_weights_from_zero_to_the_largest_float_are_accepted() -> None:
    weights = np.float32([0.0, -0.0, 1e-45, 1.0, np.finfo(np.float32).max, 0.5])
    assert check_rows(storaged_pb.NODES, {**VALID[storaged_pb.NODES], "weight": weights}) == ROWS


def test_kinds_and_types_that_do_not_exist_are_refused() -> None:
    wrong = [
        (0, 0, "kind=0"),
        (10, 0, "kind=10"),
        (storaged_pb.NODES, 2, "type_id=2: expected a node"),
        (storaged_pb.OUT_EDGES, 2, "type_id=2: expected an edge"),
    ]
    for kind, type_id, message in wrong:
        with pytest.raises(InvalidRequest, match=message):
            check_rows(kind, VALID[storaged_pb.NODES], type_id=type_id)
    with pytest.raises(InvalidRequest, match="expected a node type with a time"):
        check_rows(storaged_pb.NODE_TIMES, {"ids": ALL}, type_id=1)
    with pytest.raises(InvalidRequest, match="expected no weights"):
        check_rows(
            storaged_pb.NODES,
            {"ids": PARTS * ALL + 1, "weight": np.ones(ROWS, np.float32)},
            type_id=1,
        )


def test_nodes_of_a_space_of_strings_have_valid_names() -> None:
    def named(*values: bytes) -> dict[str, np.ndarray[Any, Any]]:
        indptr = np.cumsum([0, *map(len, values)]).astype(np.int64)
        return {
            "ids": PARTS * np.arange(len(values)) + 1,
            "f:id.indptr": indptr,
            "f:id.values": np.frombuffer(b"".join(values), np.uint8),
        }

    assert check_rows(storaged_pb.NODES, named(b"a", "ü".encode()), schema=NAMED) == 2
    for wrong in (b"", b"\xff", b"a\0b", b"a" * 4097):
        with pytest.raises(InvalidRequest, match=r"ids\[1\]"):
            check_rows(storaged_pb.NODES, named(b"a", wrong), schema=NAMED)
    with pytest.raises(InvalidRequest, match=r"'f:id\.indptr' is missing"):
        check_rows(storaged_pb.NODES, {"ids": PARTS * ALL + 1}, schema=NAMED)


def request(arrays: dict[str, Any], parts: list[int], **head: Any) -> Frame:
    fields = {"space_id": 1, "load_id": 1, "kind": storaged_pb.NODE_DELETES, "parts": parts, **head}
    frame = Frame(storaged_pb.WriteBlocksRequest(**fields), arrays)
    return decode(encode(frame), storaged_pb.WriteBlocksRequest)


@pytest.mark.parametrize(
    ("arrays", "parts", "head", "message"),
    [
        ({"ids": ALL, "offsets": [0, 6]}, [1], {"load_id": 0}, "load_id=0"),
        ({"ids": ALL, "offsets": [0, 6]}, [3], {}, "parts=3: expected a partition"),
        ({"ids": ALL, "offsets": [0, 3, 6]}, [1, 1], {}, "expected each partition once"),
        ({"ids": ALL}, [1], {}, "'offsets' is missing"),
        ({"ids": ALL, "offsets": [0, 7]}, [1], {}, "the rows of the longest section"),
        ({"ids": ALL, "offsets": [0, 5]}, [1], {}, "expected 6, the number of rows"),
        ({"ids": ALL, "offsets": [1, 6]}, [1], {}, "ascending values from 0"),
        ({"ids": ALL, "offsets": [0, 5, 3, 6]}, [0, 1, 2], {}, "ascending values from 0"),
        ({"ids": ALL, "offsets": [0, 2, 6]}, [1], {}, "expected 2 ascending"),
        ({"ids": ALL, "offsets": [0, 2**62]}, [1], {}, "the rows of the longest section"),
    ],
)
def test_request_with_inconsistent_rows_is_refused(
    arrays: dict[str, Any], parts: list[int], head: dict[str, Any], message: str
) -> None:
    arrays = {name: np.asarray(array, np.int64) for name, array in arrays.items()}
    with pytest.raises(InvalidRequest, match=message):
        write_decoding.decode_blocks(request(arrays, parts, **head), SCHEMA, range(PARTS))


def test_request_for_a_partition_of_another_host_is_stale() -> None:
    with pytest.raises(Stale, match="part 2 of space 1 belongs to another host"):
        write_decoding.decode_blocks(
            request({"ids": ALL, "offsets": np.array([0, 6])}, [2]), SCHEMA, (0, 1)
        )


@settings(deadline=None, max_examples=100)
@given(
    st.sampled_from([1, 3, 4, 8]),
    st.sampled_from(["mod", "mix64"]),
    st.lists(st.integers(0, block_validation.MAX_ID), min_size=1, max_size=30),
    st.data(),
)
def test_exactly_the_rows_of_a_partition_pass(
    parts: int, placement: str, ids: list[int], data: st.DataObject
) -> None:
    schema = Schema.from_dict({"parts": parts, "placement": placement, "nodes": {"n": {}}})
    values = np.array(ids, np.int64)
    owners = part_of(values, parts, placement)
    part = data.draw(st.sampled_from(owners.tolist()))
    part_ids = values[owners == part]
    assert check_rows(storaged_pb.NODES, {"ids": part_ids}, schema=schema, part=part) == len(
        part_ids
    )
    if (owners != part).any():
        row = int(np.argmax(owners != part))
        with pytest.raises(
            InvalidRequest,
            match=(
                rf"ids\[{row}\] = {values[row]}: expected a row of partition {part}, found "
                rf"one of partition {owners[row]}"
            ),
        ):
            check_rows(storaged_pb.NODES, {"ids": values}, schema=schema, part=part)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, block_validation.MAX_ID), min_size=1, max_size=40), st.data())
def test_a_frame_of_several_partitions_becomes_its_blocks(
    ids: list[int], data: st.DataObject
) -> None:
    """Every row arrives in the block of its partition.

    If one id is moved to another partition, the request is refused.
    """
    node_ids = np.array(ids, np.int64)
    owners = part_of(node_ids, PARTS, SCHEMA.placement)
    order = np.argsort(owners, kind="stable")
    parts = sorted(set(owners.tolist()))
    offsets = np.concatenate(
        [[0], np.cumsum([np.count_nonzero(owners == part) for part in parts])]
    ).astype(np.int64)
    lengths = np.array([i % 3 for i in range(len(ids))])
    arrays = {
        "ids": node_ids[order],
        "f:l.indptr": np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        "f:l.values": np.arange(lengths.sum(), dtype=np.int64),
    }
    blocks = write_decoding.decode_blocks(
        request({**arrays, "offsets": offsets}, parts, kind=storaged_pb.NODES), SCHEMA, range(PARTS)
    )
    assert [block.part for block in blocks] == parts
    assert (
        np.concatenate([block.arrays["ids"] for block in blocks]).tolist() == arrays["ids"].tolist()
    )
    assert (
        np.concatenate([np.diff(block.arrays["f:l.indptr"]) for block in blocks]).tolist()
        == lengths.tolist()
    )
    assert (
        np.concatenate([block.arrays["f:l.values"] for block in blocks]).tolist()
        == arrays["f:l.values"].tolist()
    )
    row = data.draw(st.integers(0, len(ids) - 1))
    wrong = arrays["ids"].copy()
    wrong[row] = wrong[row] + 1 if wrong[row] < block_validation.MAX_ID else wrong[row] - 1
    with pytest.raises(
        InvalidRequest, match=rf"ids\[{row}\] = {wrong[row]}: expected a row of partition"
    ):
        write_decoding.decode_blocks(
            request({**arrays, "ids": wrong, "offsets": offsets}, parts, kind=storaged_pb.NODES),
            SCHEMA,
            range(PARTS),
        )
