"""Tests of expansions against neighbor sampling: the same draws without padding."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from tests.kit.images import Edges, Nodes, restrict_to_parts, version_of
from tests.kit.reference import mix_tag, position_with_tag

from asterism_graphkit.operators.khop import hop_stream
from asterism_graphkit.relabel.relabel import tree_positions
from asterism_model.schema import EdgeType, NodeType, Schema
from asterism_proto.errors import InvalidRequest, Unavailable
from storaged import sampling

FORMS = ["mod", "mix64", "sparse", "holes"]
PARTS = 3


def graph(form: str, parts: int = PARTS) -> sampling.LocalVersion:
    """Return nodes of few and many neighbors, with weights of all sizes.

    Some weights, and all weights of some rows, are zero. One edge type has no weights.
    """
    rng = np.random.default_rng([len(form), parts])
    edge_types = tuple(
        EdgeType(src_type="n", relation=name, dst_type="n", weighted=name != "plain")
        for name in ("heavy", "plain", "even")
    )
    schema = Schema(
        node_types=(NodeType(name="n"),),
        edge_types=edge_types,
        parts=parts,
        placement="mix64" if form == "mix64" else "mod",
        direction="both",
    )
    ids = np.unique(rng.integers(0, 2**40, 300)) if form == "sparse" else np.arange(300)
    if form == "holes":
        ids = np.delete(ids, np.arange(7, 300, 13))
    weights = np.exp(rng.normal(size=3000) * 3) * (rng.random(3000) > 0.3)
    src = rng.choice(ids[:250], 3000, p=np.arange(1, 251) / np.arange(1, 251).sum())
    weights[np.isin(src, ids[:9])] = 0
    edges = {
        "n:heavy:n": Edges(
            src=src,
            dst=rng.choice(ids, 3000),
            weights=weights.astype(np.float32),
            eids=rng.permutation(9000)[:3000].astype(np.int64),
        ),
        "n:plain:n": Edges(src=rng.choice(ids, 2000), dst=rng.choice(ids, 2000)),
        "n:even:n": Edges(
            src=rng.choice(ids, 500),
            dst=rng.choice(ids, 500),
            weights=np.full(500, 2.5, np.float32),
        ),
    }
    return version_of(schema, {"n": Nodes(ids=ids, dense=True if form == "holes" else None)}, edges)


def request_ids(version: sampling.LocalVersion) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return known nodes with repetitions, -1, and unknown ones."""
    ids = np.concatenate([image.nodes[0].ids for image in version.parts.values()])
    known_ids = ids if ids.size else np.arange(300)
    return (
        np.random.default_rng(0)
        .permutation(np.r_[known_ids, known_ids[:40], -1, -1, 300, 10**12, 8, 2**62])
        .astype(np.int64)
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("edge_type", [0, 1, 2])
@pytest.mark.parametrize("apart", [False, True])
def test_expansion_equals_neighbor_draws_without_padding(
    form: str, edge_type: int, apart: bool
) -> None:
    version = graph(form)
    ids = request_ids(version)
    trees = np.random.default_rng(1).integers(0, 9, ids.size).astype(np.int32) if apart else None
    tags = ids if trees is None else tree_positions(trees, ids)
    positions = np.array(
        [
            position_with_tag(mix_tag(tag), node, 0)
            for tag, node in zip(tags.tolist(), ids.tolist(), strict=True)
        ]
    )
    for replace, uniform, count, direction in itertools.product(
        (True, False), (True, False), (0, 1, 4, 30, 1025), (1, 2)
    ):
        expansion = sampling.Expansion(
            seed=5,
            direction=direction,
            replace=replace,
            uniform=uniform,
            want_eids=True,
            want_weights=True,
        )
        expanded = sampling.expand(
            version, expansion, edge_type=edge_type, hop=2, count=count, ids=ids, trees=trees
        )
        padded = sampling.sample_neighbors(
            version,
            edge_types=[edge_type],
            node_type=0,
            ids=ids,
            positions=positions,
            count=count,
            replace=replace,
            uniform=uniform,
            direction=direction,
            seed=5,
            hop=hop_stream(2, edge_type),
            want_weights=True,
            want_edge_ids=True,
        )
        present = padded.ids >= 0
        assert expanded.eids is not None
        assert expanded.weights is not None
        assert padded.eids is not None
        assert padded.weights is not None
        assert np.array_equal(expanded.sizes, present.sum(axis=1))
        assert np.array_equal(expanded.ids, padded.ids[present])
        assert np.array_equal(expanded.eids, padded.eids[present])
        assert np.array_equal(expanded.weights, padded.weights[present])
        ids_expansion = sampling.Expansion(
            seed=5,
            direction=direction,
            replace=replace,
            uniform=uniform,
            want_eids=False,
            want_weights=False,
        )
        ids_only = sampling.expand(
            version, ids_expansion, edge_type=edge_type, hop=2, count=count, ids=ids, trees=trees
        )
        assert (ids_only.eids, ids_only.weights) == (None, None)
        assert np.array_equal(ids_only.ids, expanded.ids)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("direction", [1, 2])
def test_expanding_all_neighbors_equals_reading_them(form: str, direction: int) -> None:
    version = graph(form)
    ids = request_ids(version)
    expansion = sampling.Expansion(
        seed=5, direction=direction, replace=False, uniform=False, want_eids=True, want_weights=True
    )
    for edge_type in (0, 1, 2):
        expanded = sampling.expand(
            version, expansion, edge_type=edge_type, hop=1, count=-1, ids=ids, trees=None
        )
        expected = sampling.read_neighbors(
            version,
            edge_types=[edge_type],
            node_type=0,
            ids=ids,
            types=None,
            direction=direction,
            want_weights=True,
            want_edge_ids=True,
        )
        assert expected.eids is not None
        assert expected.weights is not None
        assert np.array_equal(expanded.sizes, np.diff(expected.indptr))
        assert np.array_equal(expanded.ids, expected.ids)
        assert np.array_equal(expanded.eids, expected.eids)
        assert np.array_equal(expanded.weights, expected.weights)


def test_each_host_gives_its_rows_of_the_full_result() -> None:
    version = graph("mod")
    ids = np.arange(300)
    expansion = sampling.Expansion(
        seed=5, direction=1, replace=False, uniform=False, want_eids=False, want_weights=False
    )
    full_result = sampling.expand(
        version, expansion, edge_type=0, hop=1, count=3, ids=ids, trees=None
    )
    rows = np.split(full_result.ids, np.cumsum(full_result.sizes)[:-1])
    for hosted_parts in ([0, 2], [1]):
        own_ids = ids[np.isin(ids % PARTS, hosted_parts)]
        expanded = sampling.expand(
            restrict_to_parts(version, hosted_parts),
            expansion,
            edge_type=0,
            hop=1,
            count=3,
            ids=own_ids,
            trees=None,
        )
        assert expanded.ids.tolist() == [node for i in own_ids for node in rows[i].tolist()]
        with pytest.raises(Unavailable, match=r"node \d+ of space .* partitions \["):
            sampling.expand(
                restrict_to_parts(version, hosted_parts),
                expansion,
                edge_type=0,
                hop=1,
                count=3,
                ids=ids,
                trees=None,
            )
        with pytest.raises(Unavailable, match=r"node \d+ of space .* partitions \["):
            sampling.expand(
                restrict_to_parts(version, hosted_parts),
                expansion,
                edge_type=0,
                hop=1,
                count=-1,
                ids=ids,
                trees=None,
            )


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"count": -2}, "-2"),
        ({"count": 2**26, "replace": True}, "at most"),
        ({"edge_type": 7}, "7"),
        ({"trees": np.zeros(3, np.int32)}, "trees"),
    ],
)
def test_invalid_expansion_is_refused_with_its_value(changes: dict[str, Any], says: str) -> None:
    expansion = sampling.Expansion(
        seed=5,
        direction=1,
        replace="replace" in changes,
        uniform=False,
        want_eids=False,
        want_weights=False,
    )
    arguments: dict[str, Any] = {
        "edge_type": 0,
        "hop": 1,
        "count": 3,
        "ids": np.arange(5),
        "trees": None,
    }
    changes = {name: value for name, value in changes.items() if name != "replace"}
    with pytest.raises(InvalidRequest, match=says):
        sampling.expand(graph("mod"), expansion, **(arguments | changes))
