"""Tests of edges between lists of nodes, against a loop over all edges."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.kit.images import Edges, Nodes, version_of

from asterism_model.schema import EdgeType, NodeType, Schema
from asterism_proto.errors import InvalidRequest
from storaged import sampling
from storaged.sampling import version as version_module
from storaged.sampling.subgraphs import induced

SIZE = 40
GENERATOR = np.random.default_rng(6)
ENDS = {
    "a:x:a": (GENERATOR.integers(0, SIZE, 900), GENERATOR.integers(0, SIZE, 900)),
    "a:y:b": (GENERATOR.integers(0, 5, 300), GENERATOR.integers(0, SIZE, 300)),
}
WEIGHTS = GENERATOR.random(900).astype(np.float32)


@pytest.fixture(scope="module")
def version() -> sampling.LocalVersion:
    """Return a version of two edge types, one of them weighted, with many parallel edges."""
    types = (
        EdgeType(src_type="a", relation="x", dst_type="a", weighted=True),
        EdgeType(src_type="a", relation="y", dst_type="b"),
    )
    schema = Schema(
        node_types=(NodeType(name="a"), NodeType(name="b")),
        edge_types=types,
        parts=1,
        direction="both",
    )
    edges = {
        "a:x:a": Edges(src=ENDS["a:x:a"][0], dst=ENDS["a:x:a"][1], weights=WEIGHTS),
        "a:y:b": Edges(src=ENDS["a:y:b"][0], dst=ENDS["a:y:b"][1]),
    }
    return version_of(
        schema, {"a": Nodes(ids=np.arange(SIZE)), "b": Nodes(ids=np.arange(SIZE))}, edges
    )


def expected(
    ids: list[int], cols: list[int], kinds: list[int], direction: int
) -> list[tuple[int, int, int, int, float]]:
    """Return (row, edge type, edge id, col, weight) of edges, sorted.

    The order is by row, requested edge type, neighbor, edge id and col.
    """
    entries = []
    for row, node in enumerate(ids):
        for order, name in ((0, "a:y:b"), (1, "a:x:a")):
            src, dst = ENDS[name]
            local_ends, remote_ends = (src, dst) if direction == 1 else (dst, src)
            kind = 1 if name == "a:y:b" and direction == 1 else 0
            if direction == 2 and name == "a:y:b":
                continue  # these edges end at nodes of the other type
            for eid in np.flatnonzero(local_ends == node).tolist():
                for col, other in enumerate(cols):
                    if other == remote_ends[eid] and kinds[col] == kind:
                        weight = float(WEIGHTS[eid]) if name == "a:x:a" else 1.0
                        entries.append(
                            (row, order, int(remote_ends[eid]), eid, col, 1 - order, weight)
                        )
    return [
        (row, etype, eid, col, weight) for row, _, _, eid, col, etype, weight in sorted(entries)
    ]


@pytest.mark.parametrize("direction", [1, 2])
@pytest.mark.parametrize("width", [0, 1, 3, 25, 400])
def test_edges_equal_those_of_a_loop_for_any_width(
    version: sampling.LocalVersion, width: int, direction: int
) -> None:
    ids = [3, 0, 39, 3, -1, 1000, *range(5, 12)]
    generator = np.random.default_rng(width)
    cols = np.concatenate([generator.integers(0, SIZE, width), [-1, 2000] * (width > 1)]).astype(
        np.int64
    )
    kinds = generator.integers(0, 2, cols.size).astype(np.int32)
    induced_edges = sampling.find_induced_edges(
        version,
        edge_types=[1, 0],
        node_type=0,
        ids=np.array(ids),
        cols=cols,
        col_types=kinds,
        direction=direction,
        want_weights=True,
        want_edge_ids=True,
    )
    assert induced_edges.eids is not None
    assert induced_edges.weights is not None
    rows = np.repeat(np.arange(len(ids)), induced_edges.counts)
    entries = zip(
        rows.tolist(),
        induced_edges.types.tolist(),
        induced_edges.eids.tolist(),
        induced_edges.cols.tolist(),
        induced_edges.weights.tolist(),
        strict=True,
    )
    assert list(entries) == expected(ids, cols.tolist(), kinds.tolist(), direction)


def test_edges_of_groups_join_nodes_of_one_group(version: sampling.LocalVersion) -> None:
    generator = np.random.default_rng(9)
    ids, cols = generator.integers(0, SIZE, 60), generator.integers(0, SIZE, 150)
    groups, col_groups = (
        generator.integers(0, 4, 60).astype(np.int32) * 1000,
        generator.integers(0, 5, 150).astype(np.int32) * 1000,
    )
    options = {
        "edge_types": [1, 0],
        "node_type": 0,
        "direction": 1,
        "want_weights": True,
        "want_edge_ids": True,
    }
    kinds = generator.integers(0, 2, 150).astype(np.int32)
    grouped = sampling.find_induced_edges(
        version,
        ids=ids,
        cols=cols,
        col_types=kinds,
        groups=groups,
        col_groups=col_groups,
        **options,
    )  # type: ignore[arg-type]
    ungrouped = sampling.find_induced_edges(version, ids=ids, cols=cols, col_types=kinds, **options)  # type: ignore[arg-type]
    rows = np.repeat(np.arange(60), ungrouped.counts)
    same_group = groups[rows] == col_groups[ungrouped.cols]
    assert 0 < same_group.sum() < same_group.size
    assert np.array_equal(np.repeat(np.arange(60), grouped.counts), rows[same_group])
    for name in ("cols", "types", "weights", "eids"):
        assert np.array_equal(getattr(grouped, name), getattr(ungrouped, name)[same_group]), name
    with pytest.raises(InvalidRequest, match="groups, col_groups: expected both or neither"):
        sampling.find_induced_edges(
            version, ids=ids, cols=cols, col_types=kinds, groups=groups, **options
        )  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match="col_groups"):
        sampling.find_induced_edges(
            version,
            ids=ids,
            cols=cols,
            col_types=kinds,
            groups=groups,
            col_groups=groups,
            **options,
        )  # type: ignore[arg-type]


def test_types_of_another_length_are_refused(version: sampling.LocalVersion) -> None:
    options = {
        "edge_types": [0],
        "node_type": 0,
        "ids": np.arange(3),
        "direction": 1,
        "want_weights": False,
        "want_edge_ids": False,
    }
    with pytest.raises(InvalidRequest, match="col_types"):
        sampling.find_induced_edges(
            version, cols=np.arange(3), col_types=np.zeros(2, np.int32), **options
        )  # type: ignore[arg-type]
    assert sampling.find_induced_edges(version, cols=np.arange(3), **options).weights is None  # type: ignore[arg-type]


def test_unknown_nodes_of_parts_without_any_have_no_edges() -> None:
    """Builds write an index without slots for partitions without nodes of a type."""
    types = (EdgeType(src_type="a", relation="x", dst_type="a"),)
    schema = Schema(node_types=(NodeType(name="a"),), edge_types=types, parts=8, direction="both")
    ids = np.array([3, 1 << 40, 77 << 20])
    complete = version_of(schema, {"a": Nodes(ids=ids)}, {"a:x:a": Edges(src=ids, dst=ids[::-1])})
    empty_index = {"index_ids": np.zeros(0, np.int64), "index_rows": np.zeros(0, np.uint32)}
    parts = {
        part: image
        if image.nodes[0].ids.size
        else replace(image, nodes=(replace(image.nodes[0], **empty_index),))
        for part, image in complete.parts.items()
    }
    assert 0 < sum(image.nodes[0].index_ids.size == 0 for image in parts.values()) < 8
    version = replace(complete, parts=parts)
    requested_ids = np.concatenate([np.arange(2000) * 7919, ids])
    induced_edges = sampling.find_induced_edges(
        version,
        edge_types=[0],
        node_type=0,
        ids=requested_ids,
        cols=ids,
        direction=1,
        want_weights=False,
        want_edge_ids=False,
    )

    assert induced_edges.counts.nonzero()[0].tolist() == [2000, 2001, 2002]
    assert ids[induced_edges.cols].tolist() == ids[::-1].tolist()
    expansion = sampling.Expansion(
        seed=1, direction=1, replace=False, uniform=True, want_eids=False, want_weights=False
    )
    neighbors = sampling.expand(
        version, expansion, edge_type=0, hop=0, count=2, ids=requested_ids, trees=None
    )
    assert neighbors.sizes.nonzero()[0].tolist() == [2000, 2001, 2002]


def test_only_found_edges_count_towards_the_message_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row may need space for all of its edges during the search; only found edges count.

    Blocks of rows give the same bytes.
    """
    schema = Schema(
        node_types=(NodeType(name="n"),),
        edge_types=(EdgeType(src_type="n", relation="e", dst_type="n"),),
        parts=1,
    )
    src, dst = (
        np.repeat(np.arange(3), [4000, 50, 50]),
        np.concatenate([np.arange(4000), np.arange(100)]),
    )
    version = version_of(
        schema, {"n": Nodes(ids=np.arange(4000))}, {"n:e:n": Edges(src=src, dst=dst)}
    )

    def find_edges(cols: int, **options: Any) -> sampling.InducedEdges:
        arguments: dict[str, Any] = {
            "edge_types": [0],
            "node_type": 0,
            "direction": 1,
            "want_weights": True,
            "want_edge_ids": True,
        }
        return sampling.find_induced_edges(
            version, ids=np.arange(3), cols=np.arange(cols), **arguments, **options
        )

    unlimited, checkpoint_calls = find_edges(150), list[int]()
    assert unlimited.counts.tolist() == [150, 50, 50]
    monkeypatch.setattr(version_module, "MAX_MESSAGE_BYTES", 16 * 250)
    for use_bitset in (True, False):
        if not use_bitset:
            monkeypatch.setattr(induced.BitsetJoin, "create_if_fits", lambda *_: None)
        monkeypatch.setattr(induced, "_BLOCK", 60)
        blockwise = find_edges(150, checkpoint=lambda: checkpoint_calls.append(1))
        for name in ("counts", "cols", "weights", "eids"):
            assert getattr(blockwise, name).tobytes() == getattr(unlimited, name).tobytes()
        with pytest.raises(InvalidRequest, match="more than 250 rows do not fit"):
            find_edges(151)
    assert len(checkpoint_calls) >= 4
