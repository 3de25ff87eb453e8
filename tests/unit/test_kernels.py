"""storaged.draw against the oracle: byte for byte, for every way to ask, on small graphs of every form."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.kit.images import Edges, Nodes, hosted, version_of
from tests.kit.reference import Reference
from tests.kit.waiting import HANG_S

from asterism_proto.errors import InvalidRequest, NotFound, Unavailable
from asterism_proto.schema import EdgeType, Feature, NodeType, Schema
from storaged import draw
from storaged.kernel.race import log

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
def graph(form: str, parts: int = 3) -> tuple[draw.Version, Reference]:
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
        "a": Nodes(ids=a, weights=a_weights, features=features_of(rng, a.size), dense=True if form == "holes" else None),
        "b": Nodes(ids=b),
    }
    r_src = rng.choice(a[:30], 300)
    r_weights = heavy.astype(np.float32)
    r_weights[r_src == a[0]] = 0
    eids = rng.permutation(400)[:300].astype(np.int64) if form == "holes" else None
    edges = {
        "a:r:b": Edges(src=r_src, dst=rng.choice(b, 300), weights=r_weights, eids=eids, features=features_of(rng, 300)),
        "a:q:a": Edges(src=rng.choice(a, 200), dst=rng.choice(a, 200)),
        "a:w:a": Edges(src=rng.choice(a, 60), dst=rng.choice(a, 60), weights=(rng.random(60) + 0.1).astype(np.float32)),
    }
    return version_of(schema, nodes, edges), Reference(schema=schema, nodes=nodes, edges=edges)


@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_node_draws_are_the_oracles(form: str, uniform: bool) -> None:
    version, reference = graph(form)
    expected = reference.draws(1, types=[1, 0], seed=11, start=5, count=100, uniform=uniform)
    drawn = draw.nodes(version, types=[1, 0], parts=range(3), seed=11, start=5, count=100, uniform=uniform, want_probabilities=True)
    assert list(zip(drawn.types.tolist(), drawn.ids.tolist(), strict=True)) == [(t, row) for t, _, row in expected]
    assert drawn.probabilities is not None
    shares = [reference.share(1, types=[0, 1], of=(t, row), uniform=uniform) for t, _, row in expected[:20]]
    np.testing.assert_allclose(drawn.probabilities[:20], shares, rtol=1e-14)
    some = draw.nodes(hosted(version, [2]), types=[0, 1], parts=[2], seed=11, start=5, count=100, uniform=uniform)
    assert list(zip(some.types.tolist(), some.ids.tolist(), strict=True)) == [(t, row) for t, part, row in expected if part == 2]


@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_edge_draws_are_the_oracles(form: str, uniform: bool) -> None:
    version, reference = graph(form)
    expected = reference.draws(2, types=[0, 1], seed=12, start=0, count=100, uniform=uniform)
    drawn = draw.edges(version, types=[0, 1], parts=[0, 1, 2], seed=12, start=0, count=100, uniform=uniform, want_probabilities=True)
    assert drawn.probabilities is not None
    shares = [reference.share(2, types=[0, 1], of=(t, row), uniform=uniform) for t, _, row in expected[:20]]
    np.testing.assert_allclose(drawn.probabilities[:20], shares, rtol=1e-14)
    found = zip(drawn.types.tolist(), drawn.src.tolist(), drawn.dst.tolist(), drawn.eids.tolist(), strict=True)
    assert list(found) == [(t, *row) for t, _, row in expected]
    weighted = drawn.types == 0
    by_eid = dict(zip(reference.edges["a:r:b"].ids.tolist(), reference.edges["a:r:b"].weights, strict=True))
    assert drawn.weights[weighted].tolist() == [by_eid[e] for e in drawn.eids[weighted].tolist()]
    assert (drawn.weights[~weighted] == 1).all()


ASKED = [
    (edge_types, replace, uniform, count)
    for edge_types, replace, uniform, count in itertools.product([[0], [1], [0, 1], [2, 1, 0]], [True, False], [False, True], [1, 4, 30])
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("edge_types", "replace", "uniform", "count"), ASKED)
def test_neighbor_draws_are_the_oracles(form: str, edge_types: list[int], replace: bool, uniform: bool, count: int) -> None:
    version, reference = graph(form)
    asked: dict[str, Any] = {"edge_types": edge_types, "count": count, "replace": replace, "uniform": uniform, "direction": 1, "seed": 9, "hop": 1}
    ids = np.r_[reference.nodes["a"].ids[:20], 3, 0, -1, 39, 40, 10**12, 3].astype(np.int64)
    positions = np.arange(ids.size)[::-1] + 100
    drawn = draw.neighbors(
        version, node_type=0, ids=ids, positions=positions, want_weights=True, want_edge_ids=True, want_probabilities=True, **asked
    )
    assert drawn.ids.shape == (ids.size, count)
    assert drawn.probabilities is not None
    given = {name: value for name, value in asked.items() if name not in ("seed", "hop")}
    for i, (node, position) in enumerate(zip(ids.tolist(), positions.tolist(), strict=True)):
        expected = reference.neighbors(node_type=0, node=node, position=position, **asked)
        probabilities = reference.probabilities(expected, node_type=0, node=node, **given)
        np.testing.assert_allclose(drawn.probabilities[i], probabilities + [0.0] * (count - len(expected)), rtol=1e-14)
        expected += [(-1, -1, -1, 0.0)] * (count - len(expected))
        assert drawn.weights is not None
        assert drawn.eids is not None
        types = [t for t, *_ in expected] if drawn.types is None else drawn.types[i].tolist()
        assert list(zip(types, drawn.ids[i].tolist(), drawn.eids[i].tolist(), drawn.weights[i].tolist(), strict=True)) == expected


def test_a_hubs_probabilities_are_exact_however_much_was_drawn_and_however_little_is_left() -> None:
    size, count = 200_000, 30
    rng = np.random.default_rng(6)
    weights = np.r_[[3e7, 2e6, 1e6], rng.random(size - 3)].astype(np.float32)
    schema = Schema(node_types=(NodeType(name="n"),), edge_types=(EdgeType(src_type="n", relation="e", dst_type="n", weighted=True),), parts=1)
    hub = {"n:e:n": Edges(src=np.zeros(size, np.int64), dst=np.arange(size), weights=weights)}
    version = version_of(schema, {"n": Nodes(ids=np.arange(size))}, hub)
    asked: dict[str, Any] = {"edge_types": [0], "node_type": 0, "ids": np.zeros(8, np.int64), "positions": np.arange(8), "replace": False}
    asked |= {"uniform": False, "direction": 1, "seed": 1, "hop": 0, "want_weights": True, "want_edge_ids": False, "want_probabilities": True}
    drawn, fewer = (draw.neighbors(version, count=n, **asked) for n in (count, 4))
    assert drawn.weights is not None
    assert drawn.probabilities is not None
    assert fewer.probabilities is not None
    total = sum(map(Fraction, weights.tolist()))
    for row, found in zip(drawn.weights.tolist(), drawn.probabilities, strict=True):
        before = np.r_[0, np.cumsum([Fraction(w) for w in row[:-1]])]
        np.testing.assert_allclose(found, [float(Fraction(w) / (total - b)) for w, b in zip(row, before, strict=True)], rtol=1e-14)
    np.testing.assert_allclose(fewer.probabilities, drawn.probabilities[:, :4], rtol=1e-14)


@pytest.mark.parametrize("replace", [True, False])
def test_in_neighbors_are_drawn_from_the_other_end(replace: bool) -> None:
    version, reference = graph("mod")
    ids = reference.nodes["b"].ids
    asked: dict[str, Any] = {"edge_types": [0], "count": 3, "replace": replace, "uniform": False, "direction": 2, "seed": 4, "hop": 0}
    drawn = draw.neighbors(version, node_type=1, ids=ids, positions=np.arange(ids.size), want_weights=False, want_edge_ids=True, **asked)
    assert drawn.weights is None
    assert drawn.eids is not None
    for i, node in enumerate(ids.tolist()):
        expected = [(n, e) for _, n, e, _ in reference.neighbors(node_type=1, node=node, position=i, **asked)]
        assert list(zip(drawn.ids[i].tolist(), drawn.eids[i].tolist(), strict=True)) == expected + [(-1, -1)] * (3 - len(expected))


def test_a_mixed_batch_draws_for_each_node_what_it_would_get_alone() -> None:
    version, reference = graph("mod")
    ids = np.r_[reference.nodes["a"].ids[:5], reference.nodes["b"].ids[:5], 7].astype(np.int64)
    types = np.array([0] * 5 + [1] * 5 + [-1], np.int32)
    asked: dict[str, Any] = {"edge_types": [1, 0], "count": 4, "replace": True, "uniform": False, "direction": 2, "seed": 4, "hop": 0}
    drawn = draw.neighbors(version, node_type=-1, ids=ids, types=types, positions=np.arange(11), want_weights=False, want_edge_ids=False, **asked)
    assert drawn.types is not None
    for i, (node, type_id) in enumerate(zip(ids.tolist(), types.tolist(), strict=True)):
        expected = reference.neighbors(node_type=type_id, node=node, position=i, **asked)
        expected += [(-1, -1, -1, 0.0)] * (4 - len(expected))
        assert list(zip(drawn.types[i].tolist(), drawn.ids[i].tolist(), strict=True)) == [(t, n) for t, n, *_ in expected]


def test_ids_of_a_global_space_need_no_types() -> None:
    schema = Schema(
        node_types=(NodeType(name="a"), NodeType(name="b")), edge_types=(EdgeType(src_type="b", relation="r", dst_type="a"),), parts=2, ids="global"
    )
    nodes = {"a": Nodes(ids=np.array([0, 5, 9])), "b": Nodes(ids=np.array([2, 7]))}
    version = version_of(schema, nodes, {"b:r:a": Edges(src=np.array([2, 7]), dst=np.array([5, 9]))})
    asked: dict[str, Any] = {"edge_types": [0], "count": 1, "replace": True, "uniform": True, "direction": 1, "seed": 4, "hop": 0}
    ids = np.array([5, 7, 2, -1, 100])
    drawn = draw.neighbors(version, node_type=-1, ids=ids, positions=np.arange(5), want_weights=False, want_edge_ids=False, **asked)
    assert drawn.ids.ravel().tolist() == [-1, 9, 5, -1, -1]


@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_races_end_as_the_oracles_do(form: str, uniform: bool) -> None:
    version, reference = graph(form)
    taken = reference.nodes["a"].ids[:9]
    of_nodes = draw.race_nodes(
        version, types=[0, 1], parts=range(3), seed=3, count=20, taken_ids=taken, taken_types=np.zeros(9, np.int32), uniform=uniform
    )
    expected = reference.race(1, types=[0, 1], seed=3, count=20, taken={(0, int(i)) for i in taken}, uniform=uniform)
    assert list(zip(of_nodes.types.tolist(), of_nodes.ids.tolist(), strict=True)) == [(t, i) for _, t, i in expected]
    np.testing.assert_allclose(of_nodes.keys, [key for key, _, _ in expected], rtol=1e-14)
    eids = reference.edges["a:r:b"].ids[:50]
    of_edges = draw.race_edges(
        version, types=[0, 2], parts=range(3), seed=3, count=500, taken_ids=eids, taken_types=np.zeros(50, np.int32), uniform=uniform
    )
    expected = reference.race(2, types=[0, 2], seed=3, count=500, taken={(0, int(i)) for i in eids}, uniform=uniform)
    assert list(zip(of_edges.edges.types.tolist(), of_edges.edges.eids.tolist(), strict=True)) == [(t, i) for _, t, i in expected]
    src = {(0, e): s for e, s in zip(reference.edges["a:r:b"].ids.tolist(), reference.edges["a:r:b"].src.tolist(), strict=True)}
    src |= {(2, e): s for e, s in enumerate(reference.edges["a:w:a"].src.tolist())}
    assert of_edges.edges.src.tolist() == [src[t, e] for _, t, e in expected]


@pytest.mark.parametrize("form", FORMS)
def test_whole_neighborhoods_are_in_canonical_order(form: str) -> None:
    version, reference = graph(form)
    ids = np.r_[reference.nodes["a"].ids, -1, 10**12, 5].astype(np.int64)
    found = draw.read_neighbors(version, edge_types=[1, 0], node_type=0, ids=ids, direction=1, want_weights=True, want_edge_ids=True)
    assert found.weights is not None
    assert found.eids is not None
    for i, node in enumerate(ids.tolist()):
        own = slice(found.indptr[i], found.indptr[i + 1])
        rows = zip(found.types[own].tolist(), found.ids[own].tolist(), found.eids[own].tolist(), found.weights[own].tolist(), strict=True)
        assert list(rows) == [(t, *row) for t in (1, 0) for row in reference.adjacency(t, node, 1)]


def rows_of(values: Any, i: int) -> NDArray[Any]:
    return values[1][values[0][i] : values[0][i + 1]] if isinstance(values, tuple) else values[i]


def assert_sections_hold(sections: dict[str, NDArray[Any]], features: Any, asked: list[int], known: dict[int, int]) -> None:
    for name, values in features.items():
        ragged = isinstance(values, tuple)
        given = (sections[f"f:{name}.indptr"], sections[f"f:{name}.values"]) if ragged else sections[f"f:{name}"]
        for i, ident in enumerate(asked):
            if ident in known:
                np.testing.assert_array_equal(rows_of(given, i), rows_of(values, known[ident]))
            else:
                assert not rows_of(given, i).any()
            assert rows_of(given, i).dtype == rows_of(values, 0).dtype


@pytest.mark.parametrize("form", FORMS)
def test_features_come_by_id_and_unknown_ones_are_empty(form: str) -> None:
    version, reference = graph(form)
    nodes, edges = reference.nodes["a"], reference.edges["a:r:b"]
    asked = [5, -1, 3, 39, 10**12, 5, 40]
    sections = draw.node_features(version, 0, ["x", "age", "tags", "raw", "weight"], np.array(asked))
    known = {int(ident): row for row, ident in enumerate(nodes.ids)}
    assert sections["found"].tolist() == [ident in known for ident in asked]
    assert nodes.weights is not None
    assert sections["f:weight"].tolist() == [nodes.weights[known[ident]] if ident in known else 0 for ident in asked]
    assert_sections_hold(sections, nodes.features, asked, known)
    asked = [5, -1, 299, 300, 399, 10**12, 5, 0]
    sections = draw.edge_features(version, 0, ["x", "age", "tags", "raw"], np.array(asked))
    known = {int(ident): row for row, ident in enumerate(edges.ids)}
    assert sections["found"].tolist() == [ident in known for ident in asked]
    assert_sections_hold(sections, edges.features, asked, known)


@pytest.mark.parametrize("limit", [1, 7, 0])
@pytest.mark.parametrize("form", FORMS)
def test_scans_give_every_row_once_in_canonical_order(form: str, limit: int) -> None:
    version, reference = graph(form)
    nodes = reference.nodes["a"]
    known = {int(ident): row for row, ident in enumerate(nodes.ids)}
    for part in range(3):
        ids: list[int] = []
        cursor = 0
        while cursor >= 0:
            sections, cursor = draw.read_nodes(version, 0, part, cursor, limit, ["x", "age", "tags", "raw"])
            assert_sections_hold(sections, nodes.features, sections["ids"].tolist(), known)
            ids += sections["ids"].tolist()
        assert ids == [row for row, _ in reference.rows(1, 0, part)]
        found: list[Any] = []
        cursor = 0
        while cursor >= 0:
            sections, cursor = draw.read_edges(version, 0, part, cursor, limit)
            columns = (sections[name].tolist() for name in ("src", "dst", "eids", "weights"))
            found += [((s, d, e), w) for s, d, e, w in zip(*columns, strict=True)]
        assert found == reference.rows(2, 0, part)


def ask(**changes: Any) -> dict[str, Any]:
    asked: dict[str, Any] = {"edge_types": [0], "node_type": 0, "ids": np.arange(2), "positions": np.arange(2), "count": 1, "replace": True}
    asked |= {"uniform": False, "direction": 1, "seed": 1, "hop": 0, "want_weights": False, "want_edge_ids": False}
    return asked | changes


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"count": -1}, "-1"),
        ({"count": 2**26}, "at most"),
        ({"edge_types": []}, "no edge types"),
        ({"edge_types": [7]}, "7"),
        ({"edge_types": [0, 0]}, "twice"),
        ({"direction": 3}, "3"),
        ({"node_type": 5}, "5"),
        ({"node_type": 1}, "starts at b"),
        ({"node_type": -1}, "per type"),
        ({"node_type": -1, "types": np.array([0, 9], np.int32)}, "9"),
        ({"positions": np.arange(3)}, "positions"),
    ],
)
def test_an_impossible_request_for_neighbors_is_refused_with_its_value(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidRequest, match=says):
        draw.neighbors(graph("mod")[0], **ask(**changes))


def test_what_is_not_there_is_said_to_be_so() -> None:
    version, _ = graph("mod")
    with pytest.raises(NotFound, match="no feature 'y'"):
        draw.node_features(version, 0, ["y"], np.arange(2))
    with pytest.raises(NotFound, match="no feature 'y'"):
        draw.edge_features(version, 0, ["y"], np.arange(2))
    with pytest.raises(Unavailable, match="part 1"):
        draw.nodes(hosted(version, [0]), types=[0], parts=[0, 1], seed=1, start=0, count=1, uniform=False)
    with pytest.raises(Unavailable, match="part 1"):
        draw.neighbors(hosted(version, [0]), **ask())
    for wrong in ({"count": -1}, {"start": -1}, {"types": [9]}, {"parts": [3]}):
        asked: dict[str, Any] = {"types": [0], "parts": [0], "seed": 1, "start": 0, "count": 1, "uniform": False}
        with pytest.raises(InvalidRequest):
            draw.nodes(version, **(asked | wrong))
    with pytest.raises(InvalidRequest, match="cursor -1"):
        draw.read_nodes(version, 0, 0, -1, 1, [])


def test_an_empty_type_and_one_of_zero_weights_say_which() -> None:
    schema = Schema(node_types=(NodeType(name="a", weighted=True), NodeType(name="b")), parts=2)
    version = version_of(schema, {"a": Nodes(ids=np.arange(3), weights=np.zeros(3, np.float32)), "b": Nodes(ids=np.zeros(0, np.int64))})
    asked: dict[str, Any] = {"parts": [0, 1], "seed": 1, "start": 0, "count": 4}
    with pytest.raises(InvalidRequest, match="weights of all nodes of type a"):
        draw.nodes(version, types=[0], uniform=False, **asked)
    with pytest.raises(NotFound, match="no nodes of type b"):
        draw.nodes(version, types=[1], uniform=True, **asked)
    assert set(draw.nodes(version, types=[0, 1], uniform=True, **asked).ids.tolist()) <= {0, 1, 2}


def test_our_logarithm_is_within_one_unit_in_the_last_place() -> None:
    points = np.r_[np.random.default_rng(0).random(20_000), 2.0**-54, 1 - 2.0**-53, 0.5, np.sqrt(0.5), 1e-300]
    ours = np.array([log(float(x)) for x in points])
    exact = np.log(points.astype(np.longdouble)).astype(np.float64)
    assert (abs(ours - exact) <= np.spacing(abs(exact))).all()


def test_kernels_say_the_same_as_plain_python() -> None:
    """Both are compared with the oracle, which is not compiled; the child takes one form of graph."""
    chosen = "mod and (node_draws or edge_draws or neighbor_draws or races or whole or features or scans)"
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}  # noqa: TID251  # a child with one switch more
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-k", chosen, __file__]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout


def test_a_seed_is_taken_modulo_two_to_the_64() -> None:
    version, _ = graph("mod")
    asked: dict[str, Any] = {"types": [0], "parts": range(3), "start": 0, "count": 50, "uniform": False}
    np.testing.assert_array_equal(draw.nodes(version, seed=-1, **asked).ids, draw.nodes(version, seed=2**64 - 1, **asked).ids)
