"""LABOR-0 where edges lie is what it makes of edges that were read, to the last bit: of nodes of every size, all weights, any pieces."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tests.kit.images import Edges, Nodes, hosted, version_of

from asterism_proto.errors import InvalidRequest, Unavailable
from asterism_proto.schema import EdgeType, NodeType, Schema
from graphkit import labor
from graphkit.growth import Met
from graphkit.numbering import numbered
from storaged import draw
from storaged.draw import labor as room
from storaged.kernel import labor as kernel

WEIGHTS = ("none", "equal", "zeros", "many decades", "few values")
HUB = 2 * kernel.BLOCK + 17


def version(weights: str, parts: int = 3) -> draw.Version:
    """Nodes of 0 to 40 edges, one of two blocks and some more; parallel edges, loops, and ids with gaps."""
    generator = np.random.default_rng(3)
    degrees = np.array([*range(41), HUB, 1, 5])
    src = np.repeat(np.arange(degrees.size), degrees) * 7
    dst = generator.integers(0, 500, src.size) * 7
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
    return version_of(schema, {"n": Nodes(ids=np.arange(500) * 7)}, {schema.edge_types[0].name: edges})


def kept(held: draw.Version, ids: np.ndarray, count: int, *, uniform: bool, hop: int = 0, dependent: bool = False) -> Met:
    how = draw.Expansion(
        seed=11,
        direction=1,
        replace=False,
        uniform=uniform,
        want_eids=True,
        want_weights=True,
        variates=draw.Variates(layer_dependency=dependent),
    )
    return draw.expand(held, how, edge_type=0, hop=hop, count=count, ids=ids, trees=None)


def of_edges_that_were_read(held: draw.Version, ids: np.ndarray, count: int, *, uniform: bool, hop: int = 0, dependent: bool = False) -> Met:
    read = draw.Expansion(seed=11, direction=1, replace=False, uniform=uniform, want_eids=True, want_weights=True)
    all_of = draw.expand(held, read, edge_type=0, hop=hop, count=-1, ids=ids, trees=None)
    assert all_of.eids is not None
    assert all_of.weights is not None
    indptr, weights = np.concatenate([[0], np.cumsum(all_of.sizes, dtype=np.int64)]), None if uniform else all_of.weights
    shares = labor.probabilities(indptr, weights, None, count, importance=0)
    key = labor.key_of_variates(11, 0, hop, layer_dependency=dependent)
    numbers, nodes = numbered(all_of.ids)
    found = labor.keep(key, indptr, numbers, nodes, weights, shares)
    assert np.array_equal(found.ids[found.places], all_of.ids[found.edges])
    assert np.array_equal(np.unique(found.places, return_index=True)[1], np.sort(np.unique(found.places, return_index=True)[1])), "first come first"
    return Met(sizes=found.sizes, ids=all_of.ids[found.edges], eids=all_of.eids[found.edges], weights=found.weights)


def same(one: Met, other: Met) -> bool:
    pairs = [(getattr(one, name), getattr(other, name)) for name in ("sizes", "ids", "eids", "weights")]
    return all(a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in pairs)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_what_is_kept_where_edges_lie_is_what_is_kept_of_edges_that_were_read(weights: str) -> None:
    held, ids = version(weights), np.array([*(np.arange(44) * 7)[::-1], -1, 3, 41 * 7, 10 * 7, 10 * 7])
    some = 0
    for count, uniform in itertools.product((1, 2, 7, 40, 300, HUB - 1, HUB, -1), (False, True)):
        found = kept(held, ids, count, uniform=uniform)
        assert same(found, of_edges_that_were_read(held, ids, count, uniform=uniform)), (count, uniform)
        some += len(found.ids)
    assert some > HUB
    last = [kept(held, ids, 3, uniform=False, hop=hop, dependent=dependent) for dependent in (False, True) for hop in (0, 1)]
    assert same(last[3], of_edges_that_were_read(held, ids, 3, uniform=False, hop=1, dependent=True))
    assert same(last[2], last[3])
    assert not same(last[0], last[1])


@pytest.mark.parametrize("weights", WEIGHTS)
def test_pieces_and_room_do_not_matter(weights: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred nodes with the same neighbors keep the same ones, which may be any number more than is expected."""
    held, ids = version(weights), np.array([7 * node for node in (*range(41), *(41,) * 100)])
    wanted = [(count, uniform, kept(held, ids, count, uniform=uniform)) for count in (1, 5, -1) for uniform in (False, True)]
    calls = []
    monkeypatch.setattr(room, "_PIECE", 1)
    grown = room.longer
    monkeypatch.setattr(room, "longer", lambda array, known, size: calls.append(size) or grown(array, known, size))
    for count, uniform, found in wanted:
        assert same(found, kept(held, ids, count, uniform=uniform))
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
