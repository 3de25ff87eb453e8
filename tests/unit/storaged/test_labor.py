"""Tests of LABOR on storageds against its equations on the edges.

They cover nodes of every degree, all weights, steps, hosts and pieces.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from tests.distributions.checks.hosts import request_context
from tests.kit.images import Edges, Nodes, restrict_to_parts, version_of

from asterism_graphkit.compile.jit import STOP_CHECK_STEPS, as_kernel_array
from asterism_graphkit.operators import labor
from asterism_graphkit.operators.khop import Neighbors, build_fanouts
from asterism_graphkit.random.rng import unit_float, word
from asterism_model.schema import EdgeType, NodeType, Schema
from asterism_proto.errors import InvalidRequest, Unavailable
from asterism_proto.v1 import common_pb2 as common_pb
from graphd.operators import labor as graphd
from storaged import sampling
from storaged.kernels.subgraphs import labor as kernel
from storaged.kernels.subgraphs.expand import NeighborOutputs
from storaged.sampling.node_lookup import EdgeSpans
from storaged.sampling.subgraphs import labor as labor_module

WEIGHTS = ("none", "equal", "zeros", "many decades", "few values")
HUB = 2 * kernel.BLOCK + 17


def version(weights: str, parts: int = 3, spread: int = 1) -> sampling.LocalVersion:
    """Return nodes of 0 to 40 edges, and one of more than two blocks.

    There are parallel edges, loops, and gaps of ``spread`` between ids of neighbors.
    """
    generator = np.random.default_rng(3)
    degrees = np.array([*range(41), HUB, 1, 5])
    src = np.repeat(np.arange(degrees.size), degrees) * 7
    dst = generator.integers(0, 500, src.size) * 7 * spread
    edge_weights = {
        "none": None,
        "equal": np.full(src.size, 2.5),
        "zeros": generator.integers(0, 3, src.size) * generator.random(src.size),
        "many decades": np.exp(12 * generator.normal(size=src.size)),
        "few values": generator.choice([0.25, 1.0, 64.0], src.size, p=[0.5, 0.4, 0.1]),
    }[weights]
    schema = Schema(
        node_types=(NodeType(name="n"),),
        edge_types=(
            EdgeType(src_type="n", relation="to", dst_type="n", weighted=edge_weights is not None),
        ),
        parts=parts,
        placement="mix64",
    )
    edges = Edges(
        src=src, dst=dst, weights=None if edge_weights is None else edge_weights.astype(np.float32)
    )
    return version_of(
        schema,
        {"n": Nodes(ids=np.union1d(np.arange(500) * 7, np.arange(500) * 7 * spread))},
        {schema.edge_types[0].name: edges},
    )


def sampled_by_kernel(
    graph: sampling.LocalVersion,
    ids: np.ndarray,
    count: int,
    *,
    uniform: bool,
    hop: int = 0,
    dependent: bool = False,
    importance: int = 0,
    stepped: tuple[np.ndarray, np.ndarray] | None = None,
) -> Neighbors:
    expansion = sampling.Expansion(
        seed=11,
        direction=1,
        replace=False,
        uniform=uniform,
        want_eids=True,
        want_weights=True,
        labor=sampling.LaborOptions(layer_dependency=dependent, importance=importance),
    )
    return sampling.expand(
        graph,
        expansion,
        edge_type=0,
        hop=hop,
        count=count,
        ids=ids,
        trees=None,
        importance_state=stepped,
    )


def level(weights: np.ndarray, importances: np.ndarray, fanout: int) -> float:
    """Return 1 / c of a node by bisection on the paper's equation 22.

    The node has more edges of positive weight than fanout.
    """
    total = weights.sum()
    target = total**2 / fanout - total**2 / weights.size + (weights**2).sum()
    low, high = 1e-200, 1 / importances.min()
    for _ in range(1200):
        c = np.sqrt(low) * np.sqrt(high)
        low, high = (
            (c, high) if (weights**2 / np.minimum(1, c * importances)).sum() > target else (low, c)
        )
        if high <= low * (1 + 1e-15):
            break
    return 1 / high


def sampled_by_reference(
    graph: sampling.LocalVersion,
    ids: np.ndarray,
    count: int,
    *,
    uniform: bool,
    hop: int = 0,
    dependent: bool = False,
    importance: int = 0,
) -> Neighbors:
    read_all = sampling.Expansion(
        seed=11, direction=1, replace=False, uniform=uniform, want_eids=True, want_weights=True
    )
    edges = sampling.expand(graph, read_all, edge_type=0, hop=hop, count=-1, ids=ids, trees=None)
    assert edges.eids is not None
    assert edges.weights is not None
    rows = np.split(np.arange(edges.ids.size), np.cumsum(edges.sizes)[:-1])
    weights = np.ones(edges.ids.size) if uniform else edges.weights.astype(np.float64)
    rows = [row[weights[row] > 0] for row in rows]
    levels = [
        weights[row].sum() / (len(row) if count < 0 else count) if len(row) else 1.0 for row in rows
    ]

    def solve_levels(importance_of: np.ndarray) -> list[float]:
        takes_all = [count < 0 or len(row) <= count for row in rows]
        return [
            old_level
            if not len(row)
            else min(old_level, importance_of[row].min())
            if all_taken
            else level(weights[row], importance_of[row], count)
            for old_level, row, all_taken in zip(levels, rows, takes_all, strict=True)
        ]

    importances = weights
    if not uniform:
        levels = solve_levels(weights)
    for step in range(importance):
        largest: dict[int, float] = {}
        for row, row_level in zip(rows, levels, strict=True):
            for e in row.tolist():
                ratio = (weights[e] if step == 0 else 1.0) / row_level
                largest[int(edges.ids[e])] = max(largest.get(int(edges.ids[e]), 0.0), ratio)
        largest_of_edge = np.array([largest.get(int(node), 1.0) for node in edges.ids])
        importances = largest_of_edge if step == 0 else importances * largest_of_edge
        levels = solve_levels(importances)
    key = labor.variate_key(11, 0, hop, layer_dependency=dependent)
    variates = np.array(
        [unit_float(np.uint64(word(np.uint64(key), np.uint64(node)))) for node in edges.ids]
    )
    selected_rows: list[np.ndarray] = []
    means: list[np.ndarray] = []
    for row, row_level in zip(rows, levels, strict=True):
        shares = np.minimum(1, importances[row] / row_level)
        selected = variates[row] <= shares
        inverse = weights[row][selected] / shares[selected]
        selected_rows.append(row[selected])
        means.append(inverse * (selected.sum() / inverse.sum() if selected.any() else 1.0))
    e = np.concatenate(selected_rows)
    sizes = np.array([len(row) for row in selected_rows], np.int32)
    return Neighbors(
        sizes=sizes,
        ids=edges.ids[e],
        eids=edges.eids[e],
        weights=np.concatenate(means).astype(np.float32),
    )


def identical(one: Neighbors, other: Neighbors) -> bool:
    pairs = [
        (getattr(one, name), getattr(other, name)) for name in ("sizes", "ids", "eids", "weights")
    ]
    return all(a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in pairs)


def nearly_identical(one: Neighbors, other: Neighbors) -> bool:
    """Return whether edges are equal, and weights are equal except for rounding."""
    assert one.weights is not None
    assert other.weights is not None
    exact = all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("sizes", "ids", "eids")
    )
    return exact and bool(np.allclose(one.weights, other.weights, rtol=3e-7, atol=0))


@pytest.mark.parametrize("weights", WEIGHTS)
def test_labor_kernel_matches_reference(weights: str) -> None:
    graph, ids = (
        version(weights),
        np.array([*(np.arange(44) * 7)[::-1], -1, 3, 41 * 7, 10 * 7, 10 * 7]),
    )
    total = 0
    for count, uniform in itertools.product((1, 2, 7, 40, 300, HUB - 1, HUB, -1), (False, True)):
        sampled = sampled_by_kernel(graph, ids, count, uniform=uniform)
        assert nearly_identical(
            sampled, sampled_by_reference(graph, ids, count, uniform=uniform)
        ), (count, uniform)
        total += len(sampled.ids)
    assert total > HUB
    by_hop = [
        sampled_by_kernel(graph, ids, 3, uniform=False, hop=hop, dependent=dependent)
        for dependent in (False, True)
        for hop in (0, 1)
    ]
    assert nearly_identical(
        by_hop[3], sampled_by_reference(graph, ids, 3, uniform=False, hop=1, dependent=True)
    )
    assert identical(by_hop[2], by_hop[3])
    assert not identical(by_hop[0], by_hop[1])


@pytest.mark.parametrize("spread", [1, 1 << 30])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_importance_steps_of_kernel_match_reference(weights: str, spread: int) -> None:
    """Neighbors are relabeled by bitset or by hash."""
    graph, ids = (
        version(weights, spread=spread),
        np.array([*(np.arange(44) * 7)[::-1], -1, 3, 41 * 7]),
    )
    assert (graph.parts[0].edges[0].outgoing.narrow.size > 0) == (spread == 1)
    for count, uniform, importance in itertools.product((1, 7, 300, -1), (False, True), (1, 3)):
        sampled = sampled_by_kernel(graph, ids, count, uniform=uniform, importance=importance)
        assert nearly_identical(
            sampled, sampled_by_reference(graph, ids, count, uniform=uniform, importance=importance)
        ), (count, uniform, importance)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_importance_steps_resume_from_reported_levels(weights: str) -> None:
    """A graphd passes levels and importances, and may query another storaged each time."""
    graph, ids = version(weights), np.arange(44) * 7
    for count, uniform in itertools.product((1, 7, -1), (False, True)):
        step_args = {
            "edge_type": 0,
            "direction": 1,
            "uniform": uniform,
            "count": count,
            "ids": ids,
            "checkpoint": lambda: None,
        }
        levels: list[np.ndarray] = []

        def update_importances(
            importances: np.ndarray | None,
            step_args: dict[str, Any] = step_args,
            levels: list[np.ndarray] = levels,
        ) -> np.ndarray:
            stepped = sampling.ImportanceSteps(
                graph, **step_args, levels=levels[-1] if levels else None
            )
            largest = stepped.update_importances(importances)
            levels.append(stepped.levels)
            return largest

        importances = labor.solve_importances(3, update_importances, lambda: None)
        assert len(levels) in (2, 3)  # steps also end when nothing changes
        in_one_call = sampled_by_kernel(graph, ids, count, uniform=uniform, importance=3)
        assert identical(
            in_one_call,
            sampled_by_kernel(
                graph, ids, count, uniform=uniform, importance=3, stepped=(levels[-1], importances)
            ),
        )
        with pytest.raises(InvalidRequest, match="'levels': expected shape"):
            sampled_by_kernel(
                graph,
                ids,
                count,
                uniform=uniform,
                importance=3,
                stepped=(levels[-1][1:], importances),
            )
        with pytest.raises(InvalidRequest, match="'importances': expected shape"):
            sampled_by_kernel(
                graph,
                ids,
                count,
                uniform=uniform,
                importance=3,
                stepped=(levels[-1], importances[1:]),
            )


@pytest.mark.parametrize("weights", WEIGHTS)
def test_block_size_and_capacity_do_not_change_samples(
    weights: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred nodes with the same neighbors keep the same ones.

    Their number may exceed the expectation by any amount.
    """
    graph, ids = version(weights), np.array([7 * node for node in (*range(41), *(41,) * 100)])
    requests = [
        {"count": count, "uniform": uniform, "importance": steps}
        for count in (1, 5, -1)
        for uniform in (False, True)
        for steps in (0, 2)
    ]
    # A plain dict of the arguments.
    expected = [(arguments, sampled_by_kernel(graph, ids, **arguments)) for arguments in requests]  # type: ignore[arg-type]
    calls = []
    monkeypatch.setattr(labor_module, "_CHECKPOINT_EDGES", 1)
    grow = labor_module.resized_copy
    monkeypatch.setattr(
        labor_module,
        "resized_copy",
        lambda array, used, size: calls.append(size) or grow(array, used, size),
    )
    for arguments, sampled in expected:
        assert identical(sampled, sampled_by_kernel(graph, ids, **arguments))  # type: ignore[arg-type]
    assert len(calls) >= 3 * len(expected)


def test_buffers_grow_beyond_the_expected_size(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, ids = version("none"), np.array([7 * 41] * 3000)
    sizes: list[int] = []
    grow = labor_module.resized_copy
    monkeypatch.setattr(
        labor_module,
        "resized_copy",
        lambda array, used, size: sizes.append(size) or grow(array, used, size),
    )
    largest = max(
        len(sampled_by_kernel(graph, ids, 3, uniform=True, hop=hop).ids) for hop in range(20)
    )
    assert largest > 9000 * 9 // 8 + kernel.BLOCK
    assert len(set(sizes)) >= 3


def test_unsupported_labor_requests_are_refused() -> None:
    graph = version("none", parts=3)
    expansion = sampling.Expansion(
        seed=1,
        direction=1,
        replace=False,
        uniform=True,
        want_eids=False,
        want_weights=False,
        labor=sampling.LaborOptions(layer_dependency=False),
    )
    with pytest.raises(InvalidRequest, match="no disjoint trees and no temporal filter"):
        sampling.expand(
            graph,
            expansion,
            edge_type=0,
            hop=0,
            count=1,
            ids=np.array([7]),
            trees=np.zeros(1, np.int32),
        )
    with pytest.raises(Unavailable, match="belongs to a partition of another host"):
        sampling.expand(
            restrict_to_parts(graph, [0]),
            expansion,
            edge_type=0,
            hop=0,
            count=1,
            ids=np.arange(40) * 7,
            trees=None,
        )
    empty = sampling.expand(
        graph, expansion, edge_type=0, hop=0, count=4, ids=np.zeros(0, np.int64), trees=None
    )
    assert (len(empty.sizes), len(empty.ids), empty.eids, empty.weights) == (0, 0, None, None)


@pytest.mark.parametrize("weights", ["none", "many decades"])
def test_kernels_stop_within_one_row(weights: str) -> None:
    """Once the flag is set, kernels read no more edges of a hub than between two checks."""
    graph = version(weights)
    rows = EdgeSpans.locate(graph, 0, 1, np.array([41 * 7]))
    assert rows.edges > 2 * STOP_CHECK_STEPS
    spans, stop = rows.spans(), np.ones(1, np.int64)
    words, word_ranks = np.zeros(500 * 7 // 64 + 1, np.uint64), np.zeros(55, np.int32)
    kernel.set_neighbor_bits(spans, words, stop)
    assert not words.any()
    indices = np.full(rows.edges, -1, np.int32)
    kernel.index_neighbors(spans, words, word_ranks, indices, stop)
    assert indices.max() == -1
    neighbors = np.full(rows.edges, -1)
    kernel.list_neighbors(spans, neighbors, stop)
    assert neighbors.max() == -1
    largest = np.zeros(rows.edges)
    steps = kernel.ImportanceState(
        as_kernel_array(np.array([0, rows.edges])),
        as_kernel_array(np.arange(rows.edges, dtype=np.int32)),
        as_kernel_array(np.zeros(0)),
        np.ones(1),
    )
    kernel.update_importances(spans, False, True, steps, largest, stop)
    assert np.flatnonzero(largest).max() < STOP_CHECK_STEPS
    out = NeighborOutputs(
        np.full(rows.edges + kernel.BLOCK, -1), np.zeros(0, np.int64), np.zeros(0, np.float32)
    )
    state, params = (
        np.zeros(2, np.int64),
        kernel.KeepParams(np.uint64(3), np.int64(-1), False, np.int64(1 << 40)),
    )
    kernel.keep_edges(
        spans, params, labor_module._NO_STEPS, state, np.zeros(1, np.int32), out, stop
    )
    assert out.ids.max() == -1
    assert state.tolist() == [0, 0]


@pytest.mark.parametrize("weights", ["none", "many decades"])
def test_levels_are_solved_for_within_a_stretch_of_a_stopped_row(weights: str) -> None:
    """Sums over a row end with the first check of the flag.

    With more edges, levels would differ.
    """
    row_weights = np.zeros(0, np.float32) if weights == "none" else np.ones(HUB, np.float32)
    stop = np.ones(1, np.int64)
    if row_weights.size:
        assert labor.level_from_weights(row_weights, HUB, np.int64(5), False, stop) == 0.0
    importances = np.full(HUB, 0.5)
    squares, ratios = np.full(HUB, -1.0), np.full(HUB, -1.0)
    assert (
        labor.solve_level(row_weights, importances, squares, ratios, np.int64(5), 2.0, stop) == 2.0
    )
    assert squares.max() == -1.0


def test_long_scan_stops_at_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labor_module, "_CHECKPOINT_EDGES", 100)
    expansion = sampling.Expansion(
        seed=1,
        direction=1,
        replace=False,
        uniform=True,
        want_eids=False,
        want_weights=False,
        labor=sampling.LaborOptions(layer_dependency=False),
    )

    def raise_timeout() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        sampling.expand(
            version("none"),
            expansion,
            edge_type=0,
            hop=0,
            count=1,
            ids=np.arange(41) * 7,
            trees=None,
            checkpoint=raise_timeout,
        )


def test_neighbors_beyond_the_message_limit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    request = graphd.LaborParams(
        fanouts=build_fanouts(lambda _: (0, 0), [0], [[2]]),
        uniform=True,
        direction=common_pb.OUT,
        seed=1,
        importance_steps=1,
        layer_dependency=False,
        expand_all_hops=True,
        want_edge_ids=False,
        want_weights=False,
    )
    graph, nodes = version("none"), np.arange(41) * 7
    monkeypatch.setattr("storaged.api.subgraphs.MAX_NEIGHBORS", 60)
    with pytest.raises(
        InvalidRequest,
        match=(
            r"on one storaged have \d{2,3} different neighbors: expected at most 60 with "
            r"importance steps"
        ),
    ):
        graphd.sample_labor(request_context(graph, 3), request, nodes, 0, None)
    on_one_host = graphd.sample_labor(request_context(graph, 1), request, nodes, 0, None)
    monkeypatch.setattr("storaged.api.subgraphs.MAX_NEIGHBORS", 500)
    on_three_hosts = graphd.sample_labor(request_context(graph, 3), request, nodes, 0, None)
    assert all(np.array_equal(on_one_host[name], on_three_hosts[name]) for name in on_one_host)
