"""Tests of the distribution of builds: B1 and thresholds against weights, and equal bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.kit.alias_tables import implied_distribution
from tests.kit.building import BuildResult, Op, run_build

from asterism_model.elements import Element
from asterism_model.schema import EdgeType, Feature, NodeType, Schema
from storaged.store import block_store, keys
from storaged.store.alias_table_store import AliasTableStore
from storaged.store.image import AdjacencyImage, AliasTable

F32 = NDArray[np.float32]

NODES_ONLY = Schema(node_types=(NodeType(name="a", weighted=True),), parts=1)
SHAPES = {
    "random": lambda rng, n: rng.random(n, np.float32),
    "skewed": lambda rng, n: (rng.random(n) ** -1.5).astype(np.float32),
    "all equal": lambda rng, n: np.full(n, 0.3, np.float32),
    "all zero": lambda rng, n: np.zeros(n, np.float32),
    "one positive": lambda rng, n: np.eye(1, n, n // 2, dtype=np.float32)[0],
    "half zero": lambda rng, n: rng.random(n, np.float32) * (rng.random(n) < 0.5),
    "one giant": lambda rng, n: np.where(np.arange(n) == 7, 1e30, 1.0).astype(np.float32),
    "heavy last": lambda rng, n: np.sort(rng.random(n, np.float32) ** 8),
    "heavy first": lambda rng, n: np.sort(rng.random(n, np.float32) ** 8)[::-1],
    "nearly equal": lambda rng, n: (1 + rng.integers(0, 2, n) * np.finfo(np.float32).eps).astype(
        np.float32
    ),
}


def node_load(
    weights: F32, ids: NDArray[np.int64] | None = None, chunk: int = 40_000
) -> list[list[Op]]:
    ids = np.arange(weights.size, dtype=np.int64) if ids is None else ids
    cuts = range(0, max(weights.size, 1), chunk)
    return [
        [
            Op(
                kind=block_store.NODES,
                type_id=0,
                arrays={"ids": ids[c : c + chunk], "weight": weights[c : c + chunk]},
            )
            for c in cuts
        ]
    ]


def final_table(build: BuildResult, part: int, size: int, kind: int = keys.B1) -> list[np.ndarray]:
    store = AliasTableStore.open(build.output)
    blocks = list(store.blocks(part, kind, 0, "weight", size, final=True))
    store.close()
    return [np.concatenate([block[i] for block in blocks]) for i in range(6)]


def table_probabilities(table: AliasTable, rows: int) -> NDArray[np.float64]:
    """Return the probability of each row."""
    columns = (
        implied_distribution(table.hot, table.cold)
        if table.hot.size
        else np.full(table.size, 1 / max(table.size, 1))
    )
    out = np.zeros(rows)
    out[table.row_of if table.row_of.size else np.arange(table.size)] = columns
    return out


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n", [1, 2, 1000, 100_003])
def test_b1_and_the_image_follow_the_weights(tmp_path: Path, shape: str, n: int) -> None:
    weights = np.ascontiguousarray(SHAPES[shape](np.random.default_rng(n), n), np.float32)
    new_build = run_build(tmp_path, NODES_ONLY, node_load(weights))
    image, total = new_build.images[0].nodes[0], new_build.results[0].totals[0]
    exact = weights.astype(np.float64)
    assert image.table.size == total.positive == np.count_nonzero(weights)
    assert total.count == n
    assert image.table.total == total.weight == pytest.approx(float(exact.sum()), rel=1e-12)
    assert total.audit_tv <= 1e-12
    if total.positive:
        shares = exact / exact.sum()
        assert np.abs(table_probabilities(image.table, n) - shares).max() <= 1e-12
        row, ids, prob, alias, alias_id, weight = final_table(new_build, 0, total.positive)
        assert np.array_equal(row, np.flatnonzero(weights))
        assert np.array_equal(ids, row)
        assert np.array_equal(weight, weights[row])
        assert np.array_equal(alias_id, row[alias])
        implied = (prob + np.bincount(alias, 1 - prob, total.positive)) / total.positive
        assert np.abs(implied - shares[row]).max() <= 1e-12


def test_holes_and_zero_weights_are_never_sampled(tmp_path: Path) -> None:
    n = 5000
    rng = np.random.default_rng(3)
    weights = rng.random(n, np.float32) * (rng.random(n) < 0.7)
    deleted = np.flatnonzero(rng.random(n) < 0.2)
    loads = [
        *node_load(weights),
        [Op(kind=block_store.NODE_DELETES, type_id=0, arrays={"ids": deleted})],
    ]
    new_build = run_build(tmp_path, NODES_ONLY, loads)
    weights[deleted] = 0
    image = new_build.images[0].nodes[0]
    assert (image.dense, image.count, image.table.size) == (
        True,
        n - deleted.size,
        np.count_nonzero(weights),
    )
    probabilities = table_probabilities(image.table, image.rows)
    assert (
        np.abs(probabilities - weights[: image.rows] / weights.astype(np.float64).sum()).max()
        <= 1e-12
    )
    assert probabilities[deleted[deleted < image.rows]].max() == 0
    assert image.live_rows.tolist() == np.setdiff1d(np.arange(n), deleted).tolist()


def test_unweighted_type_samples_living_rows_uniformly(tmp_path: Path) -> None:
    schema = Schema(node_types=(NodeType(name="a"), NodeType(name="b")), parts=1)
    ops = [
        Op(kind=block_store.NODES, type_id=0, arrays={"ids": np.arange(10)}),
        Op(kind=block_store.NODE_DELETES, type_id=0, arrays={"ids": np.array([3])}),
    ]
    new_build = run_build(tmp_path, schema, [ops])
    table, empty = new_build.images[0].nodes[0].table, new_build.images[0].nodes[1]
    assert (table.size, table.total, table.hot.size) == (9, 9.0, 0)
    assert table.row_of.tolist() == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert (empty.rows, empty.count, empty.table.size, empty.table.total) == (0, 0, 0, 0.0)


EDGES = Schema(
    node_types=(
        NodeType(
            name="a",
            features=(
                Feature(name="x", shape=(2,)),
                Feature(name="l", kind="ragged", dtype="int64"),
            ),
        ),
    ),
    edge_types=(
        EdgeType(
            src_type="a", relation="r", dst_type="a", weighted=True, features=(Feature(name="y"),)
        ),
    ),
    parts=2,
    direction="both",
)


def edge_load(
    rng: np.random.Generator, nodes: int, edges: int, stride: int = 1, chunk: int = 20_000
) -> list[list[Op]]:
    """Return nodes with features, then edges, half of them of one hub."""
    lengths = rng.integers(0, 4, nodes)
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    columns = {
        "f:x": rng.random((nodes, 2), np.float32),
        "f:l.indptr": indptr,
        "f:l.values": rng.integers(0, 99, int(indptr[-1])),
    }
    ids = np.arange(nodes, dtype=np.int64) * stride
    shuffled = rng.permutation(nodes)
    src, dst = (
        np.where(rng.random(edges) < 0.5, 6, rng.integers(0, nodes, edges)) * stride,
        rng.integers(0, nodes, edges) * stride,
    )
    weight = rng.random(edges, np.float32) * (rng.random(edges) < 0.9)
    eid = np.arange(edges)
    ops = [Op(kind=block_store.NODES, type_id=0, arrays={"ids": ids[shuffled], **columns})]
    for c in range(0, edges, chunk):
        chunk_slice = slice(c, c + chunk)
        arrays = {
            "src": src[chunk_slice],
            "dst": dst[chunk_slice],
            "eid": eid[chunk_slice],
            "weight": weight[chunk_slice],
            "f:y": eid[chunk_slice].astype(np.float32),
        }
        ops.append(Op(kind=block_store.OUT_EDGES, type_id=0, arrays=arrays))
    return [ops]


def assert_rows_follow_weights(side: AdjacencyImage) -> None:
    for row in range(side.indptr.size - 1):
        low, high = side.indptr[row : row + 2]
        exact = side.weights[low:high].astype(np.float64)
        assert side.sums[row] == pytest.approx(float(exact.sum()), rel=1e-12)
        if exact.sum() > 0:
            assert (
                np.abs(
                    implied_distribution(side.hot[low:high], side.cold[low:high])
                    - exact / exact.sum()
                ).max()
                <= 1e-12
            )


def test_neighbor_rows_and_the_edge_table_follow_the_weights(tmp_path: Path) -> None:
    new_build = run_build(tmp_path, EDGES, edge_load(np.random.default_rng(5), 300, 20_000))
    for part, image in enumerate(new_build.images):
        edges = image.edges[0]
        assert edges.incoming is not None
        assert_rows_follow_weights(edges.outgoing)
        assert_rows_follow_weights(edges.incoming)
        exact = edges.outgoing.weights.astype(np.float64)
        assert (
            np.abs(table_probabilities(edges.table, exact.size) - exact / exact.sum()).max()
            <= 1e-12
        )
        slot, eids, *_ = final_table(new_build, part, edges.table.size, keys.B1 | keys.EDGE_TABLE)
        assert np.array_equal(eids, edges.outgoing.eid[slot])
        assert np.array_equal(
            edges.src_row,
            np.repeat(np.arange(edges.outgoing.indptr.size - 1), np.diff(edges.outgoing.indptr)),
        )
    totals = [
        total
        for result in new_build.results
        for total in result.totals
        if total.element == Element.EDGE
    ]
    assert sum(t.mix_out for t in totals) % 2**64 == sum(t.mix_in for t in totals) % 2**64
    assert sum(t.count for t in totals) == sum(t.count_in for t in totals) == 20_000


@pytest.mark.parametrize("stride", [1, 10**9], ids=["dense", "sparse"])
def test_neither_memory_nor_block_size_changes_a_byte(tmp_path: Path, stride: int) -> None:
    """With 1 MiB, a hub has many buckets, split by neighbor.

    Chunks of another size are other blocks.
    """
    digests_by_limits = {}
    for chunk in (5_000, 60_000):
        folder = tmp_path / str(chunk)
        folder.mkdir()
        loads = edge_load(np.random.default_rng(9), 3_000, 60_000, stride, chunk)
        for limit in (1, 16, 512):
            digests_by_limits[chunk, limit] = run_build(
                folder, EDGES, loads, memory_limit_mib=limit, name=f"out{limit}"
            ).digests
    assert len({tuple(digests) for digests in digests_by_limits.values()}) == 1


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(st.lists(st.floats(0, 2.0**127, width=32), min_size=1, max_size=60))
def test_any_weights_pass_the_audit(
    tmp_path_factory: pytest.TempPathFactory, weights: list[float]
) -> None:
    new_build = run_build(
        tmp_path_factory.mktemp("any"), NODES_ONLY, node_load(np.array(weights, np.float32))
    )
    exact = np.array(weights, np.float32).astype(np.float64)
    if exact.sum() > 0:
        assert (
            np.abs(
                table_probabilities(new_build.images[0].nodes[0].table, exact.size)
                - exact / exact.sum()
            ).max()
            <= 1e-12
        )
