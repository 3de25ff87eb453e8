"""Hypothesis strategies of small graphs and of upserts and deletes over several loads."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from asterism_model.schema import EdgeType, Feature, NodeType, Schema
from storaged.store import block_store
from tests.kit.building import Op

FEATURES = (Feature(name="x", shape=(2,)), Feature(name="l", kind="ragged", dtype="int64"))
WEIGHTS = st.sampled_from([0.0, 1.0, 1.0, 0.25, 3.0, 1e-6, 1e6])


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    weighted, multiplicity = draw(st.booleans()), draw(st.sampled_from(["multi", "unique"]))
    return Schema(
        node_types=(NodeType(name="a", weighted=weighted, features=FEATURES), NodeType(name="b")),
        edge_types=(
            EdgeType(
                src_type="a",
                relation="r",
                dst_type="b",
                weighted=weighted,
                multiplicity=multiplicity,
                features=(Feature(name="y"),),
            ),
            EdgeType(src_type="a", relation="s", dst_type="a", weighted=not weighted),
        ),
        parts=draw(st.integers(1, 3)),
        placement=draw(st.sampled_from(["mod", "mix64"])),
        direction=draw(st.sampled_from(["out", "both"])),
    )


@st.composite
def loads_of(draw: st.DrawFn) -> list[list[Op]]:
    """Draw up to four loads of up to five chunks each; ids are few, so that they collide."""
    stride = draw(st.sampled_from([1, 1, 7, 10**12]))
    next_eid = [0, 0]

    def ids(n: int) -> np.ndarray:
        return (
            np.array(draw(st.lists(st.integers(0, 11), min_size=n, max_size=n)), np.int64) * stride
        )

    def op() -> Op:
        kind = draw(
            st.sampled_from(
                [block_store.NODES] * 3
                + [block_store.OUT_EDGES] * 4
                + [block_store.NODE_DELETES, block_store.OUT_EDGE_DELETES]
            )
        )
        type_id, n = draw(st.integers(0, 1)), draw(st.integers(1, 12))
        weights = (
            {"weight": np.array(draw(st.lists(WEIGHTS, min_size=n, max_size=n)), np.float32)}
            if draw(st.booleans())
            else {}
        )
        if kind == block_store.NODES:
            arrays = {"ids": ids(n), **weights}
            if type_id == 0 and draw(st.booleans()):
                lengths = np.array(
                    draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)), np.int64
                )
                arrays["f:x"] = np.arange(2 * n, dtype=np.float32).reshape(n, 2) + draw(
                    st.integers(0, 9)
                )
                arrays["f:l.indptr"] = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
                arrays["f:l.values"] = np.arange(lengths.sum(), dtype=np.int64) + draw(
                    st.integers(0, 9)
                )
            return Op(kind=kind, type_id=type_id, arrays=arrays)
        if kind == block_store.NODE_DELETES:
            return Op(kind=kind, type_id=type_id, arrays={"ids": ids(draw(st.integers(1, 2)))})
        if kind == block_store.OUT_EDGE_DELETES:
            eid = draw(
                st.lists(st.integers(-1, max(next_eid[type_id] - 1, 0)), min_size=n, max_size=n)
            )
            return Op(
                kind=kind,
                type_id=type_id,
                arrays={"src": ids(n), "dst": ids(n), "eid": np.array(eid, np.int64)},
            )
        arrays = {
            "src": ids(n),
            "dst": ids(n),
            "eid": np.arange(next_eid[type_id], next_eid[type_id] + n),
            **weights,
        }
        next_eid[type_id] += n
        if type_id == 0 and draw(st.booleans()):
            arrays["f:y"] = arrays["eid"].astype(np.float32) + 0.5
        return Op(kind=kind, type_id=type_id, arrays=arrays)

    return [[op() for _ in range(draw(st.integers(1, 5)))] for _ in range(draw(st.integers(1, 4)))]
