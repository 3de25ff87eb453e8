"""LABOR where edges lie is what its equations make of edges that were read: of nodes of every size, all weights, any steps, hosts and pieces."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from tests.kit.images import Edges, Nodes, hosted, version_of
from tests.law.checks.hosts import sampling_of

from asterism_proto.errors import InvalidRequest, Unavailable
from asterism_proto.schema import EdgeType, NodeType, Schema
from asterism_proto.v1 import common_pb2 as pb
from graphd import labor as graphd
from graphkit import labor
from graphkit.growth import Met, reach_of
from graphkit.rng import unit, word
from storaged import draw
from storaged.draw import labor as room
from storaged.kernel import labor as kernel

WEIGHTS = ("none", "equal", "zeros", "many decades", "few values")
HUB = 2 * kernel.BLOCK + 17


def version(weights: str, parts: int = 3, spread: int = 1) -> draw.Version:
    """Nodes of 0 to 40 edges, one of two blocks and some more; parallel edges, loops, and ids with gaps. ``spread`` is between neighbors."""
    generator = np.random.default_rng(3)
    degrees = np.array([*range(41), HUB, 1, 5])
    src = np.repeat(np.arange(degrees.size), degrees) * 7
    dst = generator.integers(0, 500, src.size) * 7 * spread
    given = {
        "none": None,
        "equal": np.full(src.size, 2.5),
        "zeros": generator.integers(0, 3, src.size) * generator.random(src.size),
        "many decades": np.exp(12 * generator.normal(size=src.size)),
        "few values": generator.choice([0.25, 1.0, 64.0], src.size, p=[0.5, 0.4, 0.1]),
    }[weights]
    schema = Schema(
        node_types=(NodeType(name="n"),),
        edge_types=(EdgeType(src_type="n", relation="to", dst_type="n", weighted=given is not None),),
        parts=parts,
        placement="mix64",
    )
    edges = Edges(src=src, dst=dst, weights=None if given is None else given.astype(np.float32))
    return version_of(schema, {"n": Nodes(ids=np.union1d(np.arange(500) * 7, np.arange(500) * 7 * spread))}, {schema.edge_types[0].name: edges})


def kept(
    held: draw.Version,
    ids: np.ndarray,
    count: int,
    *,
    uniform: bool,
    hop: int = 0,
    dependent: bool = False,
    importance: int = 0,
    stepped: tuple[np.ndarray, np.ndarray] | None = None,
) -> Met:
    how = draw.Expansion(
        seed=11,
        direction=1,
        replace=False,
        uniform=uniform,
        want_eids=True,
        want_weights=True,
        variates=draw.Variates(layer_dependency=dependent, importance=importance),
    )
    return draw.expand(held, how, edge_type=0, hop=hop, count=count, ids=ids, trees=None, stepped=stepped)


def level(weights: np.ndarray, importances: np.ndarray, fanout: int) -> float:
    """1 / c of a node of more edges of positive weight than fanout, by bisection on the paper's equation 22."""
    total = weights.sum()
    target = total**2 / fanout - total**2 / weights.size + (weights**2).sum()
    low, high = 1e-200, 1 / importances.min()
    for _ in range(1200):
        c = np.sqrt(low) * np.sqrt(high)
        low, high = (c, high) if (weights**2 / np.minimum(1, c * importances)).sum() > target else (low, c)
        if high <= low * (1 + 1e-15):
            break
    return 1 / high


def of_edges_that_were_read(
    held: draw.Version, ids: np.ndarray, count: int, *, uniform: bool, hop: int = 0, dependent: bool = False, importance: int = 0
) -> Met:
    read = draw.Expansion(seed=11, direction=1, replace=False, uniform=uniform, want_eids=True, want_weights=True)
    all_of = draw.expand(held, read, edge_type=0, hop=hop, count=-1, ids=ids, trees=None)
    assert all_of.eids is not None
    assert all_of.weights is not None
    rows = np.split(np.arange(all_of.ids.size), np.cumsum(all_of.sizes)[:-1])
    weights = np.ones(all_of.ids.size) if uniform else all_of.weights.astype(np.float64)
    rows = [row[weights[row] > 0] for row in rows]
    levels = [weights[row].sum() / (len(row) if count < 0 else count) if len(row) else 1.0 for row in rows]

    def solved(by: np.ndarray) -> list[float]:
        few = [count < 0 or len(row) <= count for row in rows]
        return [
            old if not len(row) else min(old, by[row].min()) if small else level(weights[row], by[row], count)
            for old, row, small in zip(levels, rows, few, strict=True)
        ]

    importances = weights
    if not uniform:
        levels = solved(weights)
    for step in range(importance):
        largest: dict[int, float] = {}
        for row, own in zip(rows, levels, strict=True):
            for e in row.tolist():
                asked = (weights[e] if step == 0 else 1.0) / own
                largest[int(all_of.ids[e])] = max(largest.get(int(all_of.ids[e]), 0.0), asked)
        most = np.array([largest.get(int(node), 1.0) for node in all_of.ids])
        importances = most if step == 0 else importances * most
        levels = solved(importances)
    key = labor.key_of_variates(11, 0, hop, layer_dependency=dependent)
    variates = np.array([unit(np.uint64(word(np.uint64(key), np.uint64(node)))) for node in all_of.ids])
    out: list[np.ndarray] = []
    means: list[np.ndarray] = []
    for row, own in zip(rows, levels, strict=True):
        shares = np.minimum(1, importances[row] / own)
        mine = variates[row] <= shares
        inverse = weights[row][mine] / shares[mine]
        out.append(row[mine])
        means.append(inverse * (mine.sum() / inverse.sum() if mine.any() else 1.0))
    e = np.concatenate(out)
    sizes = np.array([len(row) for row in out], np.int32)
    return Met(sizes=sizes, ids=all_of.ids[e], eids=all_of.eids[e], weights=np.concatenate(means).astype(np.float32))


def same(one: Met, other: Met) -> bool:
    pairs = [(getattr(one, name), getattr(other, name)) for name in ("sizes", "ids", "eids", "weights")]
    return all(a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in pairs)


def alike(one: Met, other: Met) -> bool:
    """The same edges, and weights but for rounding."""
    assert one.weights is not None
    assert other.weights is not None
    exact = all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("sizes", "ids", "eids"))
    return exact and bool(np.allclose(one.weights, other.weights, rtol=3e-7, atol=0))


@pytest.mark.parametrize("weights", WEIGHTS)
def test_what_is_kept_where_edges_lie_is_what_is_kept_of_edges_that_were_read(weights: str) -> None:
    held, ids = version(weights), np.array([*(np.arange(44) * 7)[::-1], -1, 3, 41 * 7, 10 * 7, 10 * 7])
    some = 0
    for count, uniform in itertools.product((1, 2, 7, 40, 300, HUB - 1, HUB, -1), (False, True)):
        found = kept(held, ids, count, uniform=uniform)
        assert alike(found, of_edges_that_were_read(held, ids, count, uniform=uniform)), (count, uniform)
        some += len(found.ids)
    assert some > HUB
    last = [kept(held, ids, 3, uniform=False, hop=hop, dependent=dependent) for dependent in (False, True) for hop in (0, 1)]
    assert alike(last[3], of_edges_that_were_read(held, ids, 3, uniform=False, hop=1, dependent=True))
    assert same(last[2], last[3])
    assert not same(last[0], last[1])


@pytest.mark.parametrize("spread", [1, 1 << 30])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_importance_steps_where_edges_lie_are_those_of_edges_that_were_read(weights: str, spread: int) -> None:
    """Whether neighbors are numbered by a bit for every id there may be, or by their hashes."""
    held, ids = version(weights, spread=spread), np.array([*(np.arange(44) * 7)[::-1], -1, 3, 41 * 7])
    assert (held.parts[0].edges[0].out.narrow.size > 0) == (spread == 1)
    for count, uniform, importance in itertools.product((1, 7, 300, -1), (False, True), (1, 3)):
        found = kept(held, ids, count, uniform=uniform, importance=importance)
        assert alike(found, of_edges_that_were_read(held, ids, count, uniform=uniform, importance=importance)), (count, uniform, importance)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_importance_steps_go_on_from_what_the_one_before_told(weights: str) -> None:
    """As a graphd has storageds take them: by levels and importances, of whoever is asked anew each time."""
    held, ids = version(weights), np.arange(44) * 7
    for count, uniform in itertools.product((1, 7, -1), (False, True)):
        along = {"edge_type": 0, "direction": 1, "uniform": uniform, "count": count, "ids": ids, "checkpoint": lambda: None}
        levels: list[np.ndarray] = []

        def raised(importances: np.ndarray | None, along: dict[str, Any] = along, levels: list[np.ndarray] = levels) -> np.ndarray:
            stepped = draw.Stepped(held, **along, levels=levels[-1] if levels else None)
            largest = stepped.raised(importances)
            levels.append(stepped.levels)
            return largest

        importances = labor.importances_of(3, raised)
        assert len(levels) in (2, 3)  # steps end where they change nothing, too
        one = kept(held, ids, count, uniform=uniform, importance=3)
        assert same(one, kept(held, ids, count, uniform=uniform, importance=3, stepped=(levels[-1], importances)))
        with pytest.raises(InvalidRequest, match="'levels' has shape"):
            kept(held, ids, count, uniform=uniform, importance=3, stepped=(levels[-1][1:], importances))
        with pytest.raises(InvalidRequest, match="'importances' has shape"):
            kept(held, ids, count, uniform=uniform, importance=3, stepped=(levels[-1], importances[1:]))


@pytest.mark.parametrize("weights", WEIGHTS)
def test_pieces_and_room_do_not_matter(weights: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred nodes with the same neighbors keep the same ones, which may be any number more than is expected."""
    held, ids = version(weights), np.array([7 * node for node in (*range(41), *(41,) * 100)])
    asked = [{"count": count, "uniform": uniform, "importance": steps} for count in (1, 5, -1) for uniform in (False, True) for steps in (0, 2)]
    wanted = [(how, kept(held, ids, **how)) for how in asked]  # type: ignore[arg-type]  # a plain dict of the arguments
    calls = []
    monkeypatch.setattr(room, "_PIECE", 1)
    grown = room.longer
    monkeypatch.setattr(room, "longer", lambda array, known, size: calls.append(size) or grown(array, known, size))
    for how, found in wanted:
        assert same(found, kept(held, ids, **how))  # type: ignore[arg-type]
    assert len(calls) >= 3 * len(wanted)


def test_room_is_made_for_more_than_is_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    held, ids = version("none"), np.array([7 * 41] * 3000)
    sizes: list[int] = []
    grown = room.longer
    monkeypatch.setattr(room, "longer", lambda array, known, size: sizes.append(size) or grown(array, known, size))
    most = max(len(kept(held, ids, 3, uniform=True, hop=hop).ids) for hop in range(20))
    assert most > 9000 * 9 // 8 + kernel.BLOCK
    assert len(set(sizes)) >= 3


def test_what_can_not_be_kept_is_refused() -> None:
    held = version("none", parts=3)
    how = draw.Expansion(
        seed=1, direction=1, replace=False, uniform=True, want_eids=False, want_weights=False, variates=draw.Variates(layer_dependency=False)
    )
    with pytest.raises(InvalidRequest, match="no tree and of no time"):
        draw.expand(held, how, edge_type=0, hop=0, count=1, ids=np.array([7]), trees=np.zeros(1, np.int32))
    with pytest.raises(Unavailable, match="lives in a part that is not held here"):
        draw.expand(hosted(held, [0]), how, edge_type=0, hop=0, count=1, ids=np.arange(40) * 7, trees=None)
    nobody = draw.expand(held, how, edge_type=0, hop=0, count=4, ids=np.zeros(0, np.int64), trees=None)
    assert (len(nobody.sizes), len(nobody.ids), nobody.eids, nobody.weights) == (0, 0, None, None)


def test_a_long_look_is_broken_off_at_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_PIECE", 100)
    how = draw.Expansion(
        seed=1, direction=1, replace=False, uniform=True, want_eids=False, want_weights=False, variates=draw.Variates(layer_dependency=False)
    )

    def late() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        draw.expand(version("none"), how, edge_type=0, hop=0, count=1, ids=np.arange(41) * 7, trees=None, checkpoint=late)


def test_neighbors_that_do_not_fit_into_a_message_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    how = graphd.Labor(
        reach=reach_of(lambda _: (0, 0), [0], [[2]]),
        uniform=True,
        direction=pb.OUT,
        seed=1,
        importance=1,
        layer_dependency=False,
        every=True,
        want_edge_ids=False,
        want_weights=False,
    )
    held, nodes = version("none"), np.arange(41) * 7
    monkeypatch.setattr("storaged.operators.MOST_NEIGHBORS", 60)
    with pytest.raises(InvalidRequest, match=r"live on one host lead to \d{2,3} different ones, with importance steps to 60 at most"):
        graphd.grown(sampling_of(held, 3), how, nodes, 0, None)
    alone = graphd.grown(sampling_of(held, 1), how, nodes, 0, None)
    monkeypatch.setattr("storaged.operators.MOST_NEIGHBORS", 500)
    several = graphd.grown(sampling_of(held, 3), how, nodes, 0, None)
    assert all(np.array_equal(alone[name], several[name]) for name in alone)
