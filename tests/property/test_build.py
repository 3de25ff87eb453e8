"""Random small graphs, with upserts and deletes over several loads, against an oracle that applies them one by one."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, settings
from tests.kit.building import Built, Op, Oracle, built
from tests.kit.histories import loads_of, schemas

from asterism_proto.schema import Schema
from graphkit.split import part_of
from storaged.build.kernels import bits, mix_records
from storaged.store.image import Adjacency, NodeImage


def ids_of_rows(image: NodeImage, parts: int, part: int) -> np.ndarray:
    if not image.dense:
        return image.ids
    ids = np.arange(image.rows, dtype=np.int64) * parts + part
    return ids[image.live.astype(bool)] if image.live.size else ids


def check_nodes(made: Built, oracle: Oracle) -> None:
    schema = oracle.schema
    for part, image in enumerate(made.images):
        for type_id, nodes in enumerate(image.nodes):
            known = oracle.nodes[type_id]
            expected = sorted(i for i in known if part_of(np.array([i]), schema.parts, schema.placement)[0] == part)
            ids = ids_of_rows(nodes, schema.parts, part)
            assert ids.tolist() == expected
            assert nodes.count == len(expected)
            rows = ids // schema.parts if nodes.dense else np.arange(len(ids))
            if nodes.live_rows.size:
                assert nodes.live_rows.tolist() == rows.tolist()
            if schema.node_types[type_id].weighted:
                assert nodes.weights[rows].tolist() == [known[i]["weight"] for i in expected]
            if type_id == 0:
                lists = nodes.columns["l"]
                assert [tuple(v) for v in nodes.columns["x"].values[rows].tolist()] == [known[i]["x"] for i in expected]
                assert [tuple(lists.values[lists.indptr[r] : lists.indptr[r + 1]].tolist()) for r in rows] == [known[i]["l"] for i in expected]


def edges_of(adjacency: Adjacency, near_ids: np.ndarray, *, incoming: bool) -> list[tuple[int, int, int, float]]:
    near = np.repeat(near_ids, np.diff(adjacency.indptr)).tolist()
    weights = adjacency.weights.tolist() if adjacency.weights.size else [1.0] * len(near)
    found = zip(near, adjacency.nbr.tolist(), adjacency.eid.tolist(), weights, strict=True)
    return [(f, n, e, w) if incoming else (n, f, e, w) for n, f, e, w in found]


def check_edges(made: Built, oracle: Oracle) -> None:
    schema = oracle.schema
    for type_id, edge_type in enumerate(schema.edge_types):
        weighted = edge_type.weighted
        for incoming in (False, True) if schema.has_in else (False,):
            near_type = schema.node_type_id(edge_type.dst_type if incoming else edge_type.src_type)
            found: list[tuple[int, int, int, float]] = []
            for part, image in enumerate(made.images):
                nodes, side = image.nodes[near_type], image.edges[type_id].into if incoming else image.edges[type_id].out
                all_ids = np.arange(nodes.rows, dtype=np.int64) * schema.parts + part if nodes.dense else nodes.ids
                mine = edges_of(side, all_ids, incoming=incoming)
                key = 1 if incoming else 0
                assert mine == sorted(mine, key=lambda e: (e[key], e[1 - key], e[2]))
                found += mine
                total = next(t for t in made.results[part].totals if t.element == 2 and t.type_id == type_id)
                assert (total.count_in if incoming else total.count) == len(mine)
                columns = [np.array([e[i] for e in mine], np.int64) for i in range(3)]
                near, far = (columns[1], columns[0]) if incoming else (columns[0], columns[1])
                mix = int(mix_records(near, far, columns[2], bits(np.array([e[3] for e in mine])), incoming)) & (2**64 - 1)
                assert mix == (total.mix_in if incoming else total.mix_out)
            expected = oracle.living_edges(type_id, incoming=incoming)
            assert sorted(found) == sorted((s, d, e, w if weighted else 1.0) for s, d, e, w in expected)
        if type_id == 0:
            for part, image in enumerate(made.images):
                edges = image.edges[0]
                eids = edges.feature_eids if edges.feature_eids.size else np.arange(edges.feature_rows) * schema.parts + part
                known = {e: y for e, y in oracle.edge_features[0].items() if e % schema.parts == part}
                assert dict(zip(eids.tolist(), edges.columns["y"].values.tolist(), strict=True)) == known


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(schemas(), loads_of())
def test_an_image_shows_what_the_loads_mean_in_their_order(schema: Schema, loads: list[list[Op]]) -> None:
    oracle = Oracle.after(schema, loads)
    with tempfile.TemporaryDirectory() as folder:
        made = built(Path(folder), schema, loads)
        check_nodes(made, oracle)
        check_edges(made, oracle)
