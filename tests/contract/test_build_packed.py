"""What a build writes a second time, packed for draws: the same as the first time, where ids fit; and images without it are read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.kit.auditing import altered, audited
from tests.kit.building import Built, Op, built
from tests.kit.images import keyed, packed

from asterism_proto.errors import Corrupt
from asterism_proto.schema import Schema
from graphkit.jit import settled
from storaged import draw
from storaged.reread import law
from storaged.store import graph
from storaged.store.checked import MANIFEST
from storaged.store.image import EMPTY_U32, EMPTY_U64, NOBODY, Adjacency, open_part, weighed

SCHEMA = {
    "parts": 3,
    "placement": "mod",
    "direction": "both",
    "nodes": {"n": {}, "far": {}, "thin": {"weighted": True, "tables": {"root": "sqrt(weight)"}}},
    "edges": {"n:e:n": {"weighted": True, "tables": {"root": "sqrt(weight)"}}, "n:f:far": {"weighted": True}, "n:u:n": {}},
}
NODES, EDGES = 60, 900
THIN = np.arange(200) * 1_000_003
"""Ids of sparse nodes, a fifth of which weigh nothing."""


def made(folder: Path, *, far: int, memory_limit_mib: int = 512) -> Built:
    """A graph with zero weights, rows of nothing, and nodes of a type whose ids reach up to ``far``."""
    rng = np.random.default_rng(3)
    weights = np.exp(rng.normal(size=EDGES) * 3).astype(np.float32)
    weights[::4] = 0
    src, dst = rng.integers(0, NODES, (2, EDGES))
    weights[src < 6] = 0
    ids = np.arange(NODES) if far < NODES else np.r_[np.arange(NODES - 1), far]
    edges = {"src": src, "eid": np.arange(EDGES), "weight": weights}
    ops = [
        Op(kind=graph.NODES, type_id=0, arrays={"ids": np.arange(NODES)}),
        Op(kind=graph.NODES, type_id=1, arrays={"ids": ids}),
        Op(kind=graph.NODES, type_id=2, arrays={"ids": THIN, "weight": np.arange(THIN.size, dtype=np.float32) % 5}),
        Op(kind=graph.OUT_EDGES, type_id=0, arrays=edges | {"dst": dst}),
        Op(kind=graph.OUT_EDGES, type_id=1, arrays=edges | {"dst": ids[dst]}),
        Op(kind=graph.OUT_EDGES, type_id=2, arrays={"src": src, "dst": dst, "eid": np.arange(EDGES)}),
    ]
    return built(folder, Schema.from_dict(SCHEMA), [ops], memory_limit_mib=memory_limit_mib)


def bare(side: Adjacency) -> Adjacency:
    return replace(side, narrow=EMPTY_U32, pairs=EMPTY_U64, packed=EMPTY_U64)


@pytest.mark.parametrize("far", [NODES - 1, NOBODY - 1])
def test_what_is_there_twice_is_the_same_both_times(tmp_path: Path, far: int) -> None:
    for image in made(tmp_path, far=far).images:
        for by in (image, weighed(image, "root")):
            for edge in by.edges:
                for side in (edge.out, edge.into):
                    assert side is not None
                    expected = packed(bare(side))
                    assert side.nbr.size
                    np.testing.assert_array_equal(side.narrow, expected.narrow)
                    np.testing.assert_array_equal(side.pairs, expected.pairs)
                    assert side.pairs.size
                    np.testing.assert_array_equal(side.packed, expected.packed)
            for node in by.nodes:
                np.testing.assert_array_equal(
                    node.table.keyed, keyed(replace(node.table, keyed=EMPTY_U64), node.ids).keyed if node.ids.size else EMPTY_U64
                )
            assert by.nodes[2].table.keyed.size == 2 * by.nodes[2].table.size > 0
        assert image.edges[0].out.packed.size == 2 * image.edges[0].out.nbr.size
        assert (image.edges[0].out.packed != weighed(image, "root").edges[0].out.packed).any()


def test_ids_that_do_not_fit_are_there_once(tmp_path: Path) -> None:
    sides = [image.edges[1].out for image in made(tmp_path, far=NOBODY).images]
    large = [bool((side.nbr == NOBODY).any()) for side in sides]
    assert any(large)
    assert [side.narrow.size == 0 for side in sides] == large
    assert [side.packed.size == 0 for side in sides] == large
    assert [side.pairs.size == 0 for side in sides] == large


def answers(version: draw.Version) -> list[np.ndarray]:
    """Of each operator that reads what is there twice, what it finds."""
    ids = np.arange(NODES)
    near = {"edge_types": [0], "node_type": 0, "ids": ids, "direction": 2, "want_weights": True, "want_edge_ids": True}
    drawn = draw.neighbors(version, **near, positions=ids, count=20, replace=True, uniform=False, seed=4, hop=0)
    among = draw.edges_between(version, **near, cols=ids[::2])
    met = []
    for replaced, count in ((False, 3), (True, 3), (False, -1)):
        how = draw.Expansion(seed=4, direction=1, replace=replaced, uniform=True, want_eids=True, want_weights=True)
        met.append(draw.expand(version, how, edge_type=0, hop=0, count=count, ids=ids, trees=None))
    found = [getattr(some, name) for some in (drawn, *met) for name in ("ids", "weights", "eids")]
    thin = [draw.nodes(version, types=types, parts=range(3), seed=7, start=0, count=3000, uniform=False).ids for types in ([2], [0, 2])]
    return [*found, *thin, among.counts, among.cols, among.weights, among.eids]


@pytest.mark.parametrize(("before", "new"), [(1, (".narrow", ".pairs", ".packed", ".keyed")), (2, (".pairs", ".keyed")), (3, (".pairs", ".keyed"))])
def test_images_of_the_formats_before_are_read_and_drawn_from(tmp_path: Path, before: int, new: tuple[str, ...]) -> None:
    schema, images = Schema.from_dict(SCHEMA), []
    now = made(tmp_path, far=NODES - 1)
    for part in range(schema.parts):
        folder = now.output / f"parts/p{part:05d}"
        manifest = json.loads((folder / MANIFEST).read_bytes())
        for name in [name for name in manifest["files"] if name.endswith(new)]:
            (folder / f"{name}.bin").unlink()
            del manifest["files"][name]
        (folder / MANIFEST).write_text(json.dumps(manifest | {"format": before}))
        images.append(open_part(folder, verify=True))
    assert images[0].edges[0].out.pairs.size == 0 < now.images[0].edges[0].out.pairs.size
    assert (images[0].edges[0].out.packed.size == 0) is (before == 1)
    totals = {
        (total.element, total.type_id, total.part): draw.Share(count=total.count, positive=total.positive, weight=total.weight)
        for result in now.results
        for total in result.totals
        if total.weight_name == "weight"
    }
    known = {"space_id": 1, "version": 1, "digest": "", "schema": schema, "totals": totals}
    found = [answers(draw.Version(**known, parts=dict(enumerate(parts)))) for parts in (now.images, images)]
    assert (found[0][0] >= 0).any()
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
    (now.output / "parts/p00000" / MANIFEST).write_text(json.dumps(manifest | {"format": 5}))
    with pytest.raises(Corrupt, match="format=5: expected 1 to 4"):
        open_part(now.output / "parts/p00000", verify=False)


@pytest.mark.parametrize("wrong", ["column", "own", "alias", "nobody"])
def test_the_audit_finds_a_slot_that_is_packed_wrongly(tmp_path: Path, wrong: str) -> None:
    side = made(tmp_path, far=NODES - 1).images[1].edges[0].out
    arrays = [settled(array) for array in (side.indptr, side.narrow, side.sums, side.hot)]
    assert law.first_unlike(*arrays, settled(side.packed)) == -1
    nothing = side.sums[np.searchsorted(side.indptr, np.arange(side.nbr.size), side="right") - 1] == 0
    slot = int(np.flatnonzero(nothing if wrong == "nobody" else ~nothing)[-1])
    altered = side.packed.copy()
    altered[2 * slot + (wrong != "column")] ^= np.uint64({"column": 1, "own": 1, "alias": 1 << 32, "nobody": 1}[wrong])
    assert law.first_unlike(*arrays, settled(altered)) == slot


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("e0.out.narrow", "out-copy: narrow neighbors from slot 0 on are not its neighbors"),
        ("e2.in.pairs", "in-copy: pairs from slot 0 on are not its neighbors and edges"),
        ("n2.table.keyed", "ids beside the alias table from column 0 on are not those of its rows"),
        ("e0.out.packed", "out-copy: the packed row of slot 0 is not its table"),
    ],
)
def test_the_audit_finds_what_is_not_the_same_both_times(tmp_path: Path, name: str, told: str) -> None:
    whole = made(tmp_path, far=NODES - 1)
    images = dict(enumerate(whole.digests))
    audited(whole, Schema.from_dict(SCHEMA), images)
    file = np.fromfile(whole.output / f"parts/p00001/{name}.bin", np.uint32 if name.endswith("narrow") else np.uint64)
    images[1] = altered(whole, name, 1, file[1] ^ file.dtype.type(1))
    with pytest.raises(Corrupt, match=told):
        audited(whole, Schema.from_dict(SCHEMA), images)
