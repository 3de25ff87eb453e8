"""Tests of storaged.sampling against the reference, byte for byte.

They cover all parameters on small graphs of every form.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.kit.images import Edges, Nodes, restrict_to_parts, version_of
from tests.kit.reference import Reference
from tests.kit.waiting import HANG_S

from asterism_model.schema import EdgeType, Feature, NodeType, Schema
from asterism_proto.errors import InvalidRequest, NotFound, Unavailable
from storaged import sampling
from storaged.kernels.exponential_keys import log
from storaged.sampling import features

FORMS = ["mod", "mix64", "holes"]


def features_of(rng: np.random.Generator, n: int) -> dict[str, Any]:
    lengths = rng.integers(0, 4, n)
    indptr = np.r_[0, np.cumsum(lengths)].astype(np.int64)
    return {
        "x": rng.random((n, 3)).astype(np.float32),
        "age": rng.integers(0, 99, n).astype(np.int16),
        "tags": (indptr, rng.integers(0, 2**40, indptr[-1])),
        "raw": (indptr, rng.integers(0, 255, indptr[-1]).astype(np.uint8)),
    }


FEATURES = (
    Feature(name="x", shape=(3,)),
    Feature(name="age", dtype="int16"),
    Feature(name="tags", kind="ragged", dtype="int64"),
    Feature(name="raw", kind="bytes"),
)


@cache
def graph(form: str, parts: int = 3) -> tuple[sampling.LocalVersion, Reference]:
    rng = np.random.default_rng([len(form), parts])
    schema = Schema(
        node_types=(NodeType(name="a", weighted=True, features=FEATURES), NodeType(name="b")),
        edge_types=(
            EdgeType(src_type="a", relation="r", dst_type="b", weighted=True, features=FEATURES),
            EdgeType(src_type="a", relation="q", dst_type="a"),
            EdgeType(src_type="a", relation="w", dst_type="a", weighted=True),
        ),
        parts=parts,
        placement="mix64" if form == "mix64" else "mod",
        direction="both",
    )
    a = np.delete(np.arange(40), [3, 17, 30]) if form == "holes" else np.arange(40)
    b = np.unique(rng.integers(0, 2**40, 25))
    a_weights = (rng.random(a.size) * (rng.random(a.size) > 0.2)).astype(np.float32)
    heavy = np.exp(rng.normal(size=300) * 3) * (rng.random(300) > 0.2)
    nodes = {
        "a": Nodes(
            ids=a,
            weights=a_weights,
            features=features_of(rng, a.size),
            dense=True if form == "holes" else None,
        ),
        "b": Nodes(ids=b),
    }
    r_src = rng.choice(a[:30], 300)
    r_weights = heavy.astype(np.float32)
    r_weights[r_src == a[0]] = 0
    eids = rng.permutation(400)[:300].astype(np.int64) if form == "holes" else None
    edges = {
        "a:r:b": Edges(
            src=r_src,
            dst=rng.choice(b, 300),
            weights=r_weights,
            eids=eids,
            features=features_of(rng, 300),
        ),
        "a:q:a": Edges(src=rng.choice(a, 200), dst=rng.choice(a, 200)),
        "a:w:a": Edges(
            src=rng.choice(a, 60),
            dst=rng.choice(a, 60),
            weights=(rng.random(60) + 0.1).astype(np.float32),
        ),
    }
    return version_of(schema, nodes, edges), Reference(schema=schema, nodes=nodes, edges=edges)


@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_node_draws_are_the_oracles(form: str, uniform: bool) -> None:
    version, reference = graph(form)
    expected = reference.draws(1, types=[1, 0], seed=11, start=5, count=100, uniform=uniform)
    sampled = sampling.sample_nodes(
        version,
        types=[1, 0],
        parts=range(3),
        seed=11,
        start=5,
        count=100,
        uniform=uniform,
        want_probabilities=True,
    )
    assert list(zip(sampled.types.tolist(), sampled.ids.tolist(), strict=True)) == [
        (t, row) for t, _, row in expected
    ]
    assert sampled.probabilities is not None
    shares = [
        reference.row_probability(1, types=[0, 1], target_row=(t, row), uniform=uniform)
        for t, _, row in expected[:20]
    ]
    np.testing.assert_allclose(sampled.probabilities[:20], shares, rtol=1e-14)
    of_part = sampling.sample_nodes(
        restrict_to_parts(version, [2]),
        types=[0, 1],
        parts=[2],
        seed=11,
        start=5,
        count=100,
        uniform=uniform,
    )
    assert list(zip(of_part.types.tolist(), of_part.ids.tolist(), strict=True)) == [
        (t, row) for t, part, row in expected if part == 2
    ]


@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_edge_draws_are_the_oracles(form: str, uniform: bool) -> None:
    version, reference = graph(form)
    expected = reference.draws(2, types=[0, 1], seed=12, start=0, count=100, uniform=uniform)
    sampled = sampling.sample_edges(
        version,
        types=[0, 1],
        parts=[0, 1, 2],
        seed=12,
        start=0,
        count=100,
        uniform=uniform,
        want_probabilities=True,
    )
    assert sampled.probabilities is not None
    shares = [
        reference.row_probability(2, types=[0, 1], target_row=(t, row), uniform=uniform)
        for t, _, row in expected[:20]
    ]
    np.testing.assert_allclose(sampled.probabilities[:20], shares, rtol=1e-14)
    rows = zip(
        sampled.types.tolist(),
        sampled.src.tolist(),
        sampled.dst.tolist(),
        sampled.eids.tolist(),
        strict=True,
    )
    assert list(rows) == [(t, *row) for t, _, row in expected]
    weighted = sampled.types == 0
    by_eid = dict(
        zip(reference.edges["a:r:b"].ids.tolist(), reference.edges["a:r:b"].weights, strict=True)
    )
    assert sampled.weights[weighted].tolist() == [
        by_eid[e] for e in sampled.eids[weighted].tolist()
    ]
    assert (sampled.weights[~weighted] == 1).all()


NEIGHBOR_REQUESTS = [
    (edge_types, replace, uniform, count)
    for edge_types, replace, uniform, count in itertools.product(
        [[0], [1], [0, 1], [2, 1, 0]], [True, False], [False, True], [1, 4, 30]
    )
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("edge_types", "replace", "uniform", "count"), NEIGHBOR_REQUESTS)
def test_neighbor_draws_are_the_oracles(
    form: str, edge_types: list[int], replace: bool, uniform: bool, count: int
) -> None:
    version, reference = graph(form)
    request: dict[str, Any] = {
        "edge_types": edge_types,
        "count": count,
        "replace": replace,
        "uniform": uniform,
        "direction": 1,
        "seed": 9,
        "hop": 1,
    }
    ids = np.r_[reference.nodes["a"].ids[:20], 3, 0, -1, 39, 40, 10**12, 3].astype(np.int64)
    positions = np.arange(ids.size)[::-1] + 100
    sampled = sampling.sample_neighbors(
        version,
        node_type=0,
        ids=ids,
        positions=positions,
        want_weights=True,
        want_edge_ids=True,
        want_probabilities=True,
        **request,
    )
    assert sampled.ids.shape == (ids.size, count)
    assert sampled.probabilities is not None
    without_seed = {name: value for name, value in request.items() if name not in ("seed", "hop")}
    for i, (node, position) in enumerate(zip(ids.tolist(), positions.tolist(), strict=True)):
        expected = reference.neighbors(node_type=0, node=node, position=position, **request)
        probabilities = reference.probabilities(expected, node_type=0, node=node, **without_seed)
        np.testing.assert_allclose(
            sampled.probabilities[i], probabilities + [0.0] * (count - len(expected)), rtol=1e-14
        )
        expected += [(-1, -1, -1, 0.0)] * (count - len(expected))
        assert sampled.weights is not None
        assert sampled.eids is not None
        types = [t for t, *_ in expected] if sampled.types is None else sampled.types[i].tolist()
        assert (
            list(
                zip(
                    types,
                    sampled.ids[i].tolist(),
                    sampled.eids[i].tolist(),
                    sampled.weights[i].tolist(),
                    strict=True,
                )
            )
            == expected
        )


def test_hub_probabilities_stay_exact_as_weight_runs_out() -> None:
    size, count = 200_000, 30
    rng = np.random.default_rng(6)
    weights = np.r_[[3e7, 2e6, 1e6], rng.random(size - 3)].astype(np.float32)
    schema = Schema(
        node_types=(NodeType(name="n"),),
        edge_types=(EdgeType(src_type="n", relation="e", dst_type="n", weighted=True),),
        parts=1,
    )
    hub = {"n:e:n": Edges(src=np.zeros(size, np.int64), dst=np.arange(size), weights=weights)}
    version = version_of(schema, {"n": Nodes(ids=np.arange(size))}, hub)
    request: dict[str, Any] = {
        "edge_types": [0],
        "node_type": 0,
        "ids": np.zeros(8, np.int64),
        "positions": np.arange(8),
        "replace": False,
    }
    request |= {
        "uniform": False,
        "direction": 1,
        "seed": 1,
        "hop": 0,
        "want_weights": True,
        "want_edge_ids": False,
        "want_probabilities": True,
    }
    sampled, fewer = (sampling.sample_neighbors(version, count=n, **request) for n in (count, 4))
    assert sampled.weights is not None
    assert sampled.probabilities is not None
    assert fewer.probabilities is not None
    total = sum(map(Fraction, weights.tolist()))
    for row, probabilities in zip(sampled.weights.tolist(), sampled.probabilities, strict=True):
        before = np.r_[0, np.cumsum([Fraction(w) for w in row[:-1]])]
        np.testing.assert_allclose(
            probabilities,
            [float(Fraction(w) / (total - b)) for w, b in zip(row, before, strict=True)],
            rtol=1e-14,
        )
    np.testing.assert_allclose(fewer.probabilities, sampled.probabilities[:, :4], rtol=1e-14)


@pytest.mark.parametrize("replace", [True, False])
def test_in_neighbors_are_drawn_from_the_other_end(replace: bool) -> None:
    version, reference = graph("mod")
    ids = reference.nodes["b"].ids
    request: dict[str, Any] = {
        "edge_types": [0],
        "count": 3,
        "replace": replace,
        "uniform": False,
        "direction": 2,
        "seed": 4,
        "hop": 0,
    }
    sampled = sampling.sample_neighbors(
        version,
        node_type=1,
        ids=ids,
        positions=np.arange(ids.size),
        want_weights=False,
        want_edge_ids=True,
        **request,
    )
    assert sampled.weights is None
    assert sampled.eids is not None
    for i, node in enumerate(ids.tolist()):
        expected = [
            (n, e)
            for _, n, e, _ in reference.neighbors(node_type=1, node=node, position=i, **request)
        ]
        assert list(
            zip(sampled.ids[i].tolist(), sampled.eids[i].tolist(), strict=True)
        ) == expected + [(-1, -1)] * (3 - len(expected))


def test_mixed_type_batch_matches_single_types() -> None:
    version, reference = graph("mod")
    ids = np.r_[reference.nodes["a"].ids[:5], reference.nodes["b"].ids[:5], 7].astype(np.int64)
    types = np.array([0] * 5 + [1] * 5 + [-1], np.int32)
    request: dict[str, Any] = {
        "edge_types": [1, 0],
        "count": 4,
        "replace": True,
        "uniform": False,
        "direction": 2,
        "seed": 4,
        "hop": 0,
    }
    sampled = sampling.sample_neighbors(
        version,
        node_type=-1,
        ids=ids,
        types=types,
        positions=np.arange(11),
        want_weights=False,
        want_edge_ids=False,
        **request,
    )
    assert sampled.types is not None
    for i, (node, type_id) in enumerate(zip(ids.tolist(), types.tolist(), strict=True)):
        expected = reference.neighbors(node_type=type_id, node=node, position=i, **request)
        expected += [(-1, -1, -1, 0.0)] * (4 - len(expected))
        assert list(zip(sampled.types[i].tolist(), sampled.ids[i].tolist(), strict=True)) == [
            (t, n) for t, n, *_ in expected
        ]


def test_ids_of_a_global_space_need_no_types() -> None:
    schema = Schema(
        node_types=(NodeType(name="a"), NodeType(name="b")),
        edge_types=(EdgeType(src_type="b", relation="r", dst_type="a"),),
        parts=2,
        ids="global",
    )
    nodes = {"a": Nodes(ids=np.array([0, 5, 9])), "b": Nodes(ids=np.array([2, 7]))}
    version = version_of(
        schema, nodes, {"b:r:a": Edges(src=np.array([2, 7]), dst=np.array([5, 9]))}
    )
    request: dict[str, Any] = {
        "edge_types": [0],
        "count": 1,
        "replace": True,
        "uniform": True,
        "direction": 1,
        "seed": 4,
        "hop": 0,
    }
    ids = np.array([5, 7, 2, -1, 100])
    sampled = sampling.sample_neighbors(
        version,
        node_type=-1,
        ids=ids,
        positions=np.arange(5),
        want_weights=False,
        want_edge_ids=False,
        **request,
    )
    assert sampled.ids.ravel().tolist() == [-1, 9, 5, -1, -1]


@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_races_end_as_the_oracles_do(form: str, uniform: bool) -> None:
    version, reference = graph(form)
    excluded = reference.nodes["a"].ids[:9]
    node_result = sampling.sample_distinct_nodes(
        version,
        types=[0, 1],
        parts=range(3),
        seed=3,
        count=20,
        taken_ids=excluded,
        taken_types=np.zeros(9, np.int32),
        uniform=uniform,
    )
    expected = reference.exponential_arrivals(
        1, types=[0, 1], seed=3, count=20, excluded={(0, int(i)) for i in excluded}, uniform=uniform
    )
    assert list(zip(node_result.types.tolist(), node_result.ids.tolist(), strict=True)) == [
        (t, i) for _, t, i in expected
    ]
    np.testing.assert_allclose(node_result.keys, [key for key, _, _ in expected], rtol=1e-14)
    eids = reference.edges["a:r:b"].ids[:50]
    edge_result = sampling.sample_distinct_edges(
        version,
        types=[0, 2],
        parts=range(3),
        seed=3,
        count=500,
        taken_ids=eids,
        taken_types=np.zeros(50, np.int32),
        uniform=uniform,
    )
    expected = reference.exponential_arrivals(
        2, types=[0, 2], seed=3, count=500, excluded={(0, int(i)) for i in eids}, uniform=uniform
    )
    assert list(
        zip(edge_result.edges.types.tolist(), edge_result.edges.eids.tolist(), strict=True)
    ) == [(t, i) for _, t, i in expected]
    src = {
        (0, e): s
        for e, s in zip(
            reference.edges["a:r:b"].ids.tolist(),
            reference.edges["a:r:b"].src.tolist(),
            strict=True,
        )
    }
    src |= {(2, e): s for e, s in enumerate(reference.edges["a:w:a"].src.tolist())}
    assert edge_result.edges.src.tolist() == [src[t, e] for _, t, e in expected]


@pytest.mark.parametrize("form", FORMS)
def test_whole_neighborhoods_are_in_canonical_order(form: str) -> None:
    version, reference = graph(form)
    ids = np.r_[reference.nodes["a"].ids, -1, 10**12, 5].astype(np.int64)
    neighbors = sampling.read_neighbors(
        version,
        edge_types=[1, 0],
        node_type=0,
        ids=ids,
        direction=1,
        want_weights=True,
        want_edge_ids=True,
    )
    assert neighbors.weights is not None
    assert neighbors.eids is not None
    for i, node in enumerate(ids.tolist()):
        node_slice = slice(neighbors.indptr[i], neighbors.indptr[i + 1])
        rows = zip(
            neighbors.types[node_slice].tolist(),
            neighbors.ids[node_slice].tolist(),
            neighbors.eids[node_slice].tolist(),
            neighbors.weights[node_slice].tolist(),
            strict=True,
        )
        assert list(rows) == [(t, *row) for t in (1, 0) for row in reference.adjacency(t, node, 1)]


def rows_of(values: Any, i: int) -> NDArray[Any]:
    return values[1][values[0][i] : values[0][i + 1]] if isinstance(values, tuple) else values[i]


def assert_sections_match(
    sections: dict[str, NDArray[Any]],
    features: Any,
    requested: list[int],
    row_of_id: dict[int, int],
) -> None:
    for name, values in features.items():
        ragged = isinstance(values, tuple)
        returned = (
            (sections[f"f:{name}.indptr"], sections[f"f:{name}.values"])
            if ragged
            else sections[f"f:{name}"]
        )
        for i, ident in enumerate(requested):
            if ident in row_of_id:
                np.testing.assert_array_equal(
                    rows_of(returned, i), rows_of(values, row_of_id[ident])
                )
            else:
                assert not rows_of(returned, i).any()
            assert rows_of(returned, i).dtype == rows_of(values, 0).dtype


@pytest.mark.parametrize("form", FORMS)
def test_features_come_by_id_and_unknown_ones_are_empty(form: str) -> None:
    version, reference = graph(form)
    nodes, edges = reference.nodes["a"], reference.edges["a:r:b"]
    requested = [5, -1, 3, 39, 10**12, 5, 40]
    sections = sampling.node_features(
        version, 0, ["x", "age", "tags", "raw", "weight"], np.array(requested)
    )
    row_of_id = {int(ident): row for row, ident in enumerate(nodes.ids)}
    assert sections["found"].tolist() == [ident in row_of_id for ident in requested]
    assert nodes.weights is not None
    assert sections["f:weight"].tolist() == [
        nodes.weights[row_of_id[ident]] if ident in row_of_id else 0 for ident in requested
    ]
    assert_sections_match(sections, nodes.features, requested, row_of_id)
    requested = [5, -1, 299, 300, 399, 10**12, 5, 0]
    sections = sampling.edge_features(version, 0, ["x", "age", "tags", "raw"], np.array(requested))
    row_of_id = {int(ident): row for row, ident in enumerate(edges.ids)}
    assert sections["found"].tolist() == [ident in row_of_id for ident in requested]
    assert_sections_match(sections, edges.features, requested, row_of_id)


@pytest.mark.parametrize("limit", [1, 7, 0])
@pytest.mark.parametrize("form", FORMS)
def test_scans_give_every_row_once_in_canonical_order(form: str, limit: int) -> None:
    version, reference = graph(form)
    nodes = reference.nodes["a"]
    row_of_id = {int(ident): row for row, ident in enumerate(nodes.ids)}
    for part in range(3):
        ids: list[int] = []
        cursor = 0
        while cursor >= 0:
            sections, cursor = sampling.read_nodes(
                version, 0, part, cursor, limit, ["x", "age", "tags", "raw"]
            )
            assert_sections_match(sections, nodes.features, sections["ids"].tolist(), row_of_id)
            ids += sections["ids"].tolist()
        assert ids == [row for row, _ in reference.rows(1, 0, part)]
        scanned: list[Any] = []
        cursor = 0
        while cursor >= 0:
            sections, cursor = sampling.read_edges(version, 0, part, cursor, limit)
            columns = (sections[name].tolist() for name in ("src", "dst", "eids", "weights"))
            scanned += [((s, d, e), w) for s, d, e, w in zip(*columns, strict=True)]
        assert scanned == reference.rows(2, 0, part)


def neighbors_request(**changes: Any) -> dict[str, Any]:
    request: dict[str, Any] = {
        "edge_types": [0],
        "node_type": 0,
        "ids": np.arange(2),
        "positions": np.arange(2),
        "count": 1,
        "replace": True,
    }
    request |= {
        "uniform": False,
        "direction": 1,
        "seed": 1,
        "hop": 0,
        "want_weights": False,
        "want_edge_ids": False,
    }
    return request | changes


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"count": -1}, "-1"),
        ({"count": 2**26}, "at most"),
        ({"edge_types": []}, "at least one edge type"),
        ({"edge_types": [7]}, "7"),
        ({"edge_types": [0, 0]}, "each edge type once"),
        ({"direction": 3}, "3"),
        ({"node_type": 5}, "5"),
        ({"node_type": 1}, "starts at b"),
        ({"node_type": -1}, "per type"),
        ({"node_type": -1, "types": np.array([0, 9], np.int32)}, "9"),
        ({"positions": np.arange(3)}, "positions"),
    ],
)
def test_invalid_neighbor_request_is_refused_with_its_value(
    changes: dict[str, Any], says: str
) -> None:
    with pytest.raises(InvalidRequest, match=says):
        sampling.sample_neighbors(graph("mod")[0], **neighbors_request(**changes))


def test_missing_parts_and_columns_are_reported() -> None:
    version, _ = graph("mod")
    with pytest.raises(NotFound, match="no feature 'y'"):
        sampling.node_features(version, 0, ["y"], np.arange(2))
    with pytest.raises(NotFound, match="no feature 'y'"):
        sampling.edge_features(version, 0, ["y"], np.arange(2))
    with pytest.raises(Unavailable, match="part 1"):
        sampling.sample_nodes(
            restrict_to_parts(version, [0]),
            types=[0],
            parts=[0, 1],
            seed=1,
            start=0,
            count=1,
            uniform=False,
        )
    with pytest.raises(Unavailable, match="part 1"):
        sampling.sample_neighbors(restrict_to_parts(version, [0]), **neighbors_request())
    for wrong in ({"count": -1}, {"start": -1}, {"types": [9]}, {"parts": [3]}):
        request: dict[str, Any] = {
            "types": [0],
            "parts": [0],
            "seed": 1,
            "start": 0,
            "count": 1,
            "uniform": False,
        }
        with pytest.raises(InvalidRequest):
            sampling.sample_nodes(version, **(request | wrong))
    with pytest.raises(InvalidRequest, match="cursor -1"):
        sampling.read_nodes(version, 0, 0, -1, 1, [])


def test_empty_and_zero_weight_types_are_named_in_errors() -> None:
    schema = Schema(node_types=(NodeType(name="a", weighted=True), NodeType(name="b")), parts=2)
    version = version_of(
        schema,
        {
            "a": Nodes(ids=np.arange(3), weights=np.zeros(3, np.float32)),
            "b": Nodes(ids=np.zeros(0, np.int64)),
        },
    )
    request: dict[str, Any] = {"parts": [0, 1], "seed": 1, "start": 0, "count": 4}
    with pytest.raises(InvalidRequest, match="weights of all nodes of type a"):
        sampling.sample_nodes(version, types=[0], uniform=False, **request)
    with pytest.raises(NotFound, match="no nodes of type b"):
        sampling.sample_nodes(version, types=[1], uniform=True, **request)
    assert set(
        sampling.sample_nodes(version, types=[0, 1], uniform=True, **request).ids.tolist()
    ) <= {0, 1, 2}


def test_our_logarithm_is_within_one_unit_in_the_last_place() -> None:
    points = np.r_[
        np.random.default_rng(0).random(20_000), 2.0**-54, 1 - 2.0**-53, 0.5, np.sqrt(0.5), 1e-300
    ]
    ours = np.array([log(float(x)) for x in points])
    exact = np.log(points.astype(np.longdouble)).astype(np.float64)
    assert (abs(ours - exact) <= np.spacing(abs(exact))).all()


def test_kernels_match_interpreted_python() -> None:
    """Both are compared with the interpreted reference; the child uses one form of graph."""
    selection = (
        "mod and (node_draws or edge_draws or neighbor_draws or races or whole or features "
        "or scans)"
    )
    # Environment of a child with one more switch.
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}  # noqa: TID251
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "-k",
        selection,
        __file__,
    ]
    completed = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=HANG_S, check=False
    )
    assert completed.returncode == 0, completed.stdout[-3000:]
    assert " passed" in completed.stdout


def test_a_seed_is_taken_modulo_two_to_the_64() -> None:
    version, _ = graph("mod")
    request: dict[str, Any] = {
        "types": [0],
        "parts": range(3),
        "start": 0,
        "count": 50,
        "uniform": False,
    }
    np.testing.assert_array_equal(
        sampling.sample_nodes(version, seed=-1, **request).ids,
        sampling.sample_nodes(version, seed=2**64 - 1, **request).ids,
    )


def test_features_in_blocks_have_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    version, _ = graph(FORMS[0])
    ids, names = np.r_[np.arange(40), -1, 10**12], ["x", "age", "tags", "raw"]

    def read(checkpoint: Callable[[], object]) -> list[dict[str, NDArray[Any]]]:
        return [
            sampling.node_features(version, 0, [*names, "weight"], ids, checkpoint),
            sampling.edge_features(version, 0, names, ids, checkpoint),
        ]

    whole, calls = read(lambda: None), []
    original = features.blocks
    monkeypatch.setattr(
        features,
        "blocks",
        lambda count, _, checkpoint: original(count, 3, checkpoint, max_size=3),
    )
    pieces = read(lambda: calls.append(0))
    assert len(calls) > 2 * len(names) * ids.size // 3 // 2
    for expected, found in zip(whole, pieces, strict=True):
        assert expected.keys() == found.keys()
        for name in expected:
            np.testing.assert_array_equal(found[name], expected[name])
            assert found[name].dtype == expected[name].dtype
