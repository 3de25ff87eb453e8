"""Packed copies of adjacencies: they give the same samples as the plain arrays.

They exist where the ids fit. Images of older formats without them are still read.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.kit.auditing import alter_value, audit_build
from tests.kit.building import BuildResult, Op, run_build
from tests.kit.images import with_keyed_columns, with_packed_columns

from asterism_graphkit.compile.jit import as_kernel_array
from asterism_model.partition_stats import PartitionTotals
from asterism_model.schema import Schema
from asterism_proto.errors import Corrupt
from storaged import sampling
from storaged.store import block_store
from storaged.store.checksums import MANIFEST
from storaged.store.image import (
    EMPTY_U32,
    EMPTY_U64,
    NO_NEIGHBOR,
    AdjacencyImage,
    open_part,
    with_weights,
)
from storaged.version_tasks import alias_audit

SCHEMA = {
    "parts": 3,
    "placement": "mod",
    "direction": "both",
    "nodes": {"n": {}, "far": {}, "thin": {"weighted": True, "tables": {"root": "sqrt(weight)"}}},
    "edges": {
        "n:e:n": {"weighted": True, "tables": {"root": "sqrt(weight)"}},
        "n:f:far": {"weighted": True},
        "n:u:n": {},
    },
}
NODES, EDGES = 60, 900
SPARSE_IDS = np.arange(200) * 1_000_003
"""Ids of sparse nodes; a fifth of them have weight 0."""


def build_packed_graph(
    folder: Path, *, largest_id: int, memory_limit_mib: int = 512
) -> BuildResult:
    """Build a graph with zero weights, zero-sum rows and node ids up to `largest_id`."""
    rng = np.random.default_rng(3)
    weights = np.exp(rng.normal(size=EDGES) * 3).astype(np.float32)
    weights[::4] = 0
    src, dst = rng.integers(0, NODES, (2, EDGES))
    weights[src < 6] = 0
    ids = np.arange(NODES) if largest_id < NODES else np.r_[np.arange(NODES - 1), largest_id]
    edges = {"src": src, "eid": np.arange(EDGES), "weight": weights}
    ops = [
        Op(kind=block_store.NODES, type_id=0, arrays={"ids": np.arange(NODES)}),
        Op(kind=block_store.NODES, type_id=1, arrays={"ids": ids}),
        Op(
            kind=block_store.NODES,
            type_id=2,
            arrays={"ids": SPARSE_IDS, "weight": np.arange(SPARSE_IDS.size, dtype=np.float32) % 5},
        ),
        Op(kind=block_store.OUT_EDGES, type_id=0, arrays=edges | {"dst": dst}),
        Op(kind=block_store.OUT_EDGES, type_id=1, arrays=edges | {"dst": ids[dst]}),
        Op(
            kind=block_store.OUT_EDGES,
            type_id=2,
            arrays={"src": src, "dst": dst, "eid": np.arange(EDGES)},
        ),
    ]
    return run_build(folder, Schema.from_dict(SCHEMA), [ops], memory_limit_mib=memory_limit_mib)


def without_packing(side: AdjacencyImage) -> AdjacencyImage:
    return replace(side, narrow=EMPTY_U32, pairs=EMPTY_U64, packed=EMPTY_U64)


@pytest.mark.parametrize("far", [NODES - 1, NO_NEIGHBOR - 1])
def test_packed_arrays_equal_the_arrays_that_they_repeat(tmp_path: Path, far: int) -> None:
    for image in build_packed_graph(tmp_path, largest_id=far).images:
        for view in (image, with_weights(image, "root")):
            for edge in view.edges:
                for side in (edge.outgoing, edge.incoming):
                    assert side is not None
                    expected = with_packed_columns(without_packing(side))
                    assert side.nbr.size
                    np.testing.assert_array_equal(side.narrow, expected.narrow)
                    np.testing.assert_array_equal(side.pairs, expected.pairs)
                    assert side.pairs.size
                    np.testing.assert_array_equal(side.packed, expected.packed)
            for node in view.nodes:
                np.testing.assert_array_equal(
                    node.table.keyed,
                    with_keyed_columns(replace(node.table, keyed=EMPTY_U64), node.ids).keyed
                    if node.ids.size
                    else EMPTY_U64,
                )
            assert view.nodes[2].table.keyed.size == 2 * view.nodes[2].table.size > 0
        assert image.edges[0].outgoing.packed.size == 2 * image.edges[0].outgoing.nbr.size
        assert (
            image.edges[0].outgoing.packed != with_weights(image, "root").edges[0].outgoing.packed
        ).any()


def test_ids_that_do_not_fit_are_not_packed(tmp_path: Path) -> None:
    sides = [
        image.edges[1].outgoing
        for image in build_packed_graph(tmp_path, largest_id=NO_NEIGHBOR).images
    ]
    large = [bool((side.nbr == NO_NEIGHBOR).any()) for side in sides]
    assert any(large)
    assert [side.narrow.size == 0 for side in sides] == large
    assert [side.packed.size == 0 for side in sides] == large
    assert [side.pairs.size == 0 for side in sides] == large


def sample_every_operator(version: sampling.LocalVersion) -> list[np.ndarray]:
    """Return the results of every operator that reads packed data."""
    ids = np.arange(NODES)
    request = {
        "edge_types": [0],
        "node_type": 0,
        "ids": ids,
        "direction": 2,
        "want_weights": True,
        "want_edge_ids": True,
    }
    neighbor_samples = sampling.sample_neighbors(
        version, **request, positions=ids, count=20, replace=True, uniform=False, seed=4, hop=0
    )
    induced_edges = sampling.find_induced_edges(version, **request, cols=ids[::2])
    expansions = []
    for replaced, count in ((False, 3), (True, 3), (False, -1)):
        params = sampling.Expansion(
            seed=4, direction=1, replace=replaced, uniform=True, want_eids=True, want_weights=True
        )
        expansions.append(
            sampling.expand(version, params, edge_type=0, hop=0, count=count, ids=ids, trees=None)
        )
    columns = [
        getattr(some, name)
        for some in (neighbor_samples, *expansions)
        for name in ("ids", "weights", "eids")
    ]
    sparse_ids = [
        sampling.sample_nodes(
            version, types=types, parts=range(3), seed=7, start=0, count=3000, uniform=False
        ).ids
        for types in ([2], [0, 2])
    ]
    return [
        *columns,
        *sparse_ids,
        induced_edges.counts,
        induced_edges.cols,
        induced_edges.weights,
        induced_edges.eids,
    ]


@pytest.mark.parametrize(
    ("before", "new"),
    [
        (1, (".narrow", ".pairs", ".packed", ".keyed")),
        (2, (".pairs", ".keyed")),
        (3, (".pairs", ".keyed")),
    ],
)
def test_images_of_earlier_formats_can_be_read_and_sampled(
    tmp_path: Path, before: int, new: tuple[str, ...]
) -> None:
    schema, images = Schema.from_dict(SCHEMA), []
    current = build_packed_graph(tmp_path, largest_id=NODES - 1)
    for part in range(schema.parts):
        folder = current.output / f"parts/p{part:05d}"
        manifest = json.loads((folder / MANIFEST).read_bytes())
        for name in [name for name in manifest["files"] if name.endswith(new)]:
            (folder / f"{name}.bin").unlink()
            del manifest["files"][name]
        (folder / MANIFEST).write_text(json.dumps(manifest | {"format": before}))
        images.append(open_part(folder, verify=True))
    assert (
        images[0].edges[0].outgoing.pairs.size == 0 < current.images[0].edges[0].outgoing.pairs.size
    )
    assert (images[0].edges[0].outgoing.packed.size == 0) is (before == 1)
    totals = {
        (total.element.number, total.type_id, total.part): PartitionTotals(
            count=total.count, positive=total.positive, weight=total.weight
        )
        for result in current.results
        for total in result.totals
        if total.weight_name == "weight"
    }
    fields = {"space_id": 1, "version": 1, "digest": "", "schema": schema, "totals": totals}
    results = [
        sample_every_operator(sampling.LocalVersion(**fields, parts=dict(enumerate(parts))))
        for parts in (current.images, images)
    ]
    assert (results[0][0] >= 0).any()
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)
    (current.output / "parts/p00000" / MANIFEST).write_text(json.dumps(manifest | {"format": 5}))
    with pytest.raises(Corrupt, match="format=5: expected 1 to 4"):
        open_part(current.output / "parts/p00000", verify=False)


@pytest.mark.parametrize("wrong", ["column", "own", "alias", "no neighbor"])
def test_the_audit_finds_a_slot_that_is_packed_wrongly(tmp_path: Path, wrong: str) -> None:
    side = build_packed_graph(tmp_path, largest_id=NODES - 1).images[1].edges[0].outgoing
    arrays = [as_kernel_array(array) for array in (side.indptr, side.narrow, side.sums, side.hot)]
    assert alias_audit.first_packed_mismatch(*arrays, as_kernel_array(side.packed)) == -1
    in_zero_row = (
        side.sums[np.searchsorted(side.indptr, np.arange(side.nbr.size), side="right") - 1] == 0
    )
    slot = int(np.flatnonzero(in_zero_row if wrong == "no neighbor" else ~in_zero_row)[-1])
    altered = side.packed.copy()
    altered[2 * slot + (wrong != "column")] ^= np.uint64(
        {"column": 1, "own": 1, "alias": 1 << 32, "no neighbor": 1}[wrong]
    )
    assert alias_audit.first_packed_mismatch(*arrays, as_kernel_array(altered)) == slot


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("e0.out.narrow", "out-copy: narrow neighbors differ from its neighbors from slot 0 on"),
        ("e2.in.pairs", "in-copy: pairs differ from its neighbors and edges from slot 0 on"),
        (
            "n2.table.keyed",
            "the ids in the alias table differ from those of its rows from column 0 on",
        ),
        ("e0.out.packed", "out-copy: the packed row of slot 0 differs from its table"),
    ],
)
def test_the_audit_finds_packed_arrays_that_differ(tmp_path: Path, name: str, message: str) -> None:
    new_build = build_packed_graph(tmp_path, largest_id=NODES - 1)
    images = dict(enumerate(new_build.digests))
    audit_build(new_build, Schema.from_dict(SCHEMA), images)
    file = np.fromfile(
        new_build.output / f"parts/p00001/{name}.bin",
        np.uint32 if name.endswith("narrow") else np.uint64,
    )
    images[1] = alter_value(new_build, name, 1, file[1] ^ file.dtype.type(1))
    with pytest.raises(Corrupt, match=message):
        audit_build(new_build, Schema.from_dict(SCHEMA), images)
