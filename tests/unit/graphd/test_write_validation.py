from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from asterism_model import string_ids
from asterism_model.schema import Schema
from asterism_proto.errors import AsterismError, InvalidRequest, NotFound
from asterism_proto.framing import Frame
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from graphd.writes import validation

SCHEMA = Schema.from_dict(
    {
        "nodes": {
            "n": {
                "weighted": True,
                "features": {"v": {"dtype": "int16", "shape": [2]}, "t": "bytes"},
            },
            "plain": {"features": {"born": "float64"}, "time": "born"},
        },
        "edges": {
            "n:e:plain": {},
            "n:f:n": {"features": {"t": "float32"}, "time": "t"},
            "n:i:n": {"features": {"t": "int64", "u": "float32"}, "time": "t"},
        },
    }
)
IDS = np.arange(3)


def frame(**sections: Any) -> Frame:
    return Frame(
        graphd_pb.WriteRequest(),
        {name.replace("__", ":"): np.asarray(array) for name, array in sections.items()},
    )


def test_a_complete_write_is_counted() -> None:
    full = frame(ids=IDS, weight=np.ones(3, np.float32), f__v=np.zeros((3, 2), np.int16))
    full = Frame(
        full.head,
        {**full.arrays, "f:t.indptr": np.array([0, 1, 1, 2]), "f:t.values": np.zeros(2, np.uint8)},
    )
    assert validation.check_rows(SCHEMA, storaged_pb.NODES, 0, full) == 3
    assert validation.check_rows(SCHEMA, storaged_pb.OUT_EDGES, 0, frame(src=IDS, dst=IDS)) == 3
    assert (
        validation.check_rows(
            SCHEMA, storaged_pb.OUT_EDGE_DELETES, 0, frame(src=IDS, dst=IDS, eid=np.full(3, -1))
        )
        == 3
    )


@pytest.mark.parametrize(
    ("kind", "type_id", "sections", "error", "said"),
    [
        (storaged_pb.IN_EDGES, 0, {"src": IDS}, InvalidRequest, "expected one of NODES, OUT_EDGES"),
        (
            storaged_pb.NODES,
            7,
            {"ids": IDS},
            NotFound,
            "type 7: expected a type of the space, 0 to 1: n, plain",
        ),
        (storaged_pb.NODES, 0, {}, InvalidRequest, "the array 'ids' is missing"),
        (storaged_pb.NODES, 0, {"ids": [0, -5]}, InvalidRequest, r"ids\[1\] = -5"),
        (storaged_pb.NODES, 0, {"ids": IDS.astype(np.int32)}, InvalidRequest, "int32"),
        (
            storaged_pb.NODES,
            0,
            {"ids": IDS, "weight": np.float32([1, 2, np.nan])},
            InvalidRequest,
            r"weight\[2\] = nan",
        ),
        (
            storaged_pb.NODES,
            1,
            {"ids": IDS, "weight": np.ones(3, np.float32)},
            InvalidRequest,
            "declared without them",
        ),
        (
            storaged_pb.NODES,
            0,
            {"ids": IDS, "weight": np.ones(2, np.float32)},
            InvalidRequest,
            "2 entries: expected 3",
        ),
        (
            storaged_pb.NODES,
            0,
            {"ids": IDS, "f__v": np.zeros((3, 3), np.int16)},
            InvalidRequest,
            r"expected shape \[3, 2\] of 'f:v', found \[3, 3\]",
        ),
        (
            storaged_pb.NODES,
            0,
            {"ids": IDS, "f__v": np.zeros((3, 2), np.int32)},
            InvalidRequest,
            "int32",
        ),
        (storaged_pb.NODES, 0, {"ids": IDS, "f__w": np.zeros(3)}, InvalidRequest, "section 'f:w'"),
        (storaged_pb.NODES, 0, {"ids": IDS, "f__t": [5, 3, 2]}, InvalidRequest, "f:t"),
        (
            storaged_pb.NODES,
            0,
            {"ids": IDS, "f__t.indptr": [0, 1, 1, 2], "f__t.values": [5, 3]},
            InvalidRequest,
            r"feature 't': expected values of uint8 in one dimension, found int64\[2\]",
        ),
        (
            storaged_pb.NODES,
            0,
            {
                "ids": IDS,
                "f__t.indptr": np.int32([0, 1, 1, 2]),
                "f__t.values": np.zeros(2, np.uint8),
            },
            InvalidRequest,
            r"feature 't': indptr of int32\[4\]: expected int64\[4\]",
        ),
        (
            storaged_pb.OUT_EDGES,
            0,
            {"src": IDS, "dst": IDS[:2]},
            InvalidRequest,
            "dst has 2 entries: expected 3",
        ),
        (
            storaged_pb.OUT_EDGES,
            1,
            {"src": IDS, "dst": IDS, "f__t": np.float32([0, np.inf, np.nan])},
            InvalidRequest,
            r"time 't'\[2\] = nan: expected a number",
        ),
        (
            storaged_pb.NODES,
            1,
            {"ids": IDS, "f__born": [0, np.nan, 1]},
            InvalidRequest,
            r"time 'born'\[1\] = nan: expected a number",
        ),
        (
            storaged_pb.OUT_EDGES,
            2,
            {"src": IDS, "dst": IDS, "f__t": [0, -(2**63), 1]},
            InvalidRequest,
            r"time 't'\[1\] = -9223372036854775808: expected a number",
        ),
        (
            storaged_pb.OUT_EDGE_DELETES,
            0,
            {"src": IDS, "dst": IDS, "eid": [0, 1, -2]},
            InvalidRequest,
            r"eid\[2\] = -2",
        ),
    ],
)
def test_invalid_write_is_refused_with_the_value(
    kind: int, type_id: int, sections: dict[str, Any], error: type[AsterismError], said: str
) -> None:
    with pytest.raises(error, match=said):
        validation.check_rows(SCHEMA, kind, type_id, frame(**sections))


def test_each_end_of_an_edge_has_names_of_its_own() -> None:
    schema = Schema.from_dict(
        {
            "ids": "string",
            "salt": 7,
            "nodes": {"n": {}},
            "edges": {"n:e:n": {"missing": "create"}},
        }
    )
    sections: dict[str, np.ndarray] = {}
    for end, names in (("src", ["a", "b"]), ("dst", ["c", "d"])):
        indptr, values = string_ids.encode_strings(end, names)
        sections |= {
            f"{end}_names.indptr": indptr,
            f"{end}_names.values": values,
            end: string_ids.hash_strings(indptr, values, 7),
        }

    def check(**changes: np.ndarray) -> int:
        full = Frame(graphd_pb.WriteRequest(), sections | changes)
        return validation.check_rows(schema, storaged_pb.OUT_EDGES, 0, full)

    assert check() == 2
    for end, name in (("src", "b"), ("dst", "d")):
        wrong = sections[end] + np.array([0, 1])
        with pytest.raises(InvalidRequest, match=rf"{end}\[1\] = .*: expected the id of '{name}'"):
            check(**{end: wrong})


def test_ragged_feature_with_wrong_indptr_is_refused() -> None:
    for indptr in ([0, 1], [0, 1, 1, 3], [1, 1, 1, 2], [0, 2, 1, 2]):
        wrong = Frame(
            graphd_pb.WriteRequest(),
            {"ids": IDS, "f:t.indptr": np.array(indptr), "f:t.values": np.zeros(2, np.uint8)},
        )
        with pytest.raises(InvalidRequest, match="rise from 0 to 2"):
            validation.check_rows(SCHEMA, storaged_pb.NODES, 0, wrong)
