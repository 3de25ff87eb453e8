"""Builds of random small graphs, compared with an oracle that applies writes one by one."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, settings
from tests.kit.building import BuildResult, Op, Oracle, run_build
from tests.kit.histories import loads_of, schemas

from asterism_graphkit.random.partition_choice import part_of
from asterism_model.elements import Element
from asterism_model.schema import Schema
from storaged.build.build_kernels import mix_records, weight_bits
from storaged.store.image import AdjacencyImage, NodeImage


def ids_of_rows(image: NodeImage, parts: int, part: int) -> np.ndarray:
    if not image.dense:
        return image.ids
    ids = np.arange(image.rows, dtype=np.int64) * parts + part
    return ids[image.live.astype(bool)] if image.live.size else ids


def assert_nodes_match(build: BuildResult, oracle: Oracle) -> None:
    schema = oracle.schema
    for part, image in enumerate(build.images):
        for type_id, nodes in enumerate(image.nodes):
            expected_nodes = oracle.nodes[type_id]
            expected = sorted(
                i
                for i in expected_nodes
                if part_of(np.array([i]), schema.parts, schema.placement)[0] == part
            )
            ids = ids_of_rows(nodes, schema.parts, part)
            assert ids.tolist() == expected
            assert nodes.count == len(expected)
            rows = ids // schema.parts if nodes.dense else np.arange(len(ids))
            if nodes.live_rows.size:
                assert nodes.live_rows.tolist() == rows.tolist()
            if schema.node_types[type_id].weighted:
                assert nodes.weights[rows].tolist() == [
                    expected_nodes[i]["weight"] for i in expected
                ]
            if type_id == 0:
                lists = nodes.columns["l"]
                assert [tuple(v) for v in nodes.columns["x"].values[rows].tolist()] == [
                    expected_nodes[i]["x"] for i in expected
                ]
                assert [
                    tuple(lists.values[lists.indptr[r] : lists.indptr[r + 1]].tolist())
                    for r in rows
                ] == [expected_nodes[i]["l"] for i in expected]


def edges_of(
    adjacency: AdjacencyImage, local_ids: np.ndarray, *, incoming: bool
) -> list[tuple[int, int, int, float]]:
    local_column = np.repeat(local_ids, np.diff(adjacency.indptr)).tolist()
    weights = adjacency.weights.tolist() if adjacency.weights.size else [1.0] * len(local_column)
    entries = zip(
        local_column, adjacency.nbr.tolist(), adjacency.eid.tolist(), weights, strict=True
    )
    return [(f, n, e, w) if incoming else (n, f, e, w) for n, f, e, w in entries]


def assert_edges_match(build: BuildResult, oracle: Oracle) -> None:
    schema = oracle.schema
    for type_id, edge_type in enumerate(schema.edge_types):
        weighted = edge_type.weighted
        for incoming in (False, True) if schema.has_in else (False,):
            local_type = schema.node_type_id(edge_type.dst_type if incoming else edge_type.src_type)
            all_edges: list[tuple[int, int, int, float]] = []
            for part, image in enumerate(build.images):
                nodes, side = (
                    image.nodes[local_type],
                    image.edges[type_id].incoming if incoming else image.edges[type_id].outgoing,
                )
                all_ids = (
                    np.arange(nodes.rows, dtype=np.int64) * schema.parts + part
                    if nodes.dense
                    else nodes.ids
                )
                part_edges = edges_of(side, all_ids, incoming=incoming)
                key = 1 if incoming else 0
                assert part_edges == sorted(part_edges, key=lambda e: (e[key], e[1 - key], e[2]))
                all_edges += part_edges
                total = next(
                    t
                    for t in build.results[part].totals
                    if t.element == Element.EDGE and t.type_id == type_id
                )
                assert (total.count_in if incoming else total.count) == len(part_edges)
                columns = [np.array([e[i] for e in part_edges], np.int64) for i in range(3)]
                local_ids, remote_ids = (
                    (columns[1], columns[0]) if incoming else (columns[0], columns[1])
                )
                mix = int(
                    mix_records(
                        local_ids,
                        remote_ids,
                        columns[2],
                        weight_bits(np.array([e[3] for e in part_edges])),
                        incoming,
                    )
                ) & (2**64 - 1)
                assert mix == (total.mix_in if incoming else total.mix_out)
            expected = oracle.live_edges(type_id, incoming=incoming)
            assert sorted(all_edges) == sorted(
                (s, d, e, w if weighted else 1.0) for s, d, e, w in expected
            )
        if type_id == 0:
            for part, image in enumerate(build.images):
                edges = image.edges[0]
                eids = (
                    edges.feature_eids
                    if edges.feature_eids.size
                    else np.arange(edges.feature_rows) * schema.parts + part
                )
                expected_features = {
                    e: y for e, y in oracle.edge_features[0].items() if e % schema.parts == part
                }
                assert (
                    dict(zip(eids.tolist(), edges.columns["y"].values.tolist(), strict=True))
                    == expected_features
                )


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(schemas(), loads_of())
def test_image_equals_loads_applied_in_order(schema: Schema, loads: list[list[Op]]) -> None:
    oracle = Oracle.from_loads(schema, loads)
    with tempfile.TemporaryDirectory() as folder:
        new_build = run_build(Path(folder), schema, loads)
        assert_nodes_match(new_build, oracle)
        assert_edges_match(new_build, oracle)
