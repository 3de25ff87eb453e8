"""Compiles what draws call, before the storaged says that it serves: each of them once, on a graph of three nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from asterism_proto.schema import EdgeType, Feature, NodeType, Schema
from graphkit import alias, index, labels, split
from storaged import draw
from storaged.store.image import Adjacency, Column, EdgeImage, NodeImage, PartImage, Table

_OUT, _IN = 1, 2


def _table(weights: np.ndarray[tuple[int], np.dtype[np.float32]]) -> Table:
    hot, cold = alias.thresholds(*alias.build(weights))
    return Table(size=weights.size, total=alias.neumaier(weights), hot=hot, cold=cold)


def _version() -> draw.Version:
    schema = Schema(
        node_types=(
            NodeType(name="n", weighted=True, features=(Feature(name="of", kind="bytes"),), graph_label="of"),
            NodeType(name="m", weighted=True),
        ),
        edge_types=tuple(EdgeType(src_type="n", relation=name, dst_type="n", weighted=True) for name in ("a", "b")),
        parts=1,
        direction="both",
    )
    weights = np.array([1, 2, 3], np.float32)
    ids = np.array([3, 5, 9], np.int64)
    index_ids, index_rows = index.build_index(ids)
    label_indptr, text = np.array([0, 2, 4, 6], np.int64), np.arange(6, dtype=np.uint8)
    label_rows, _, label_hash = labels.grouped(labels.hashes(label_indptr, text, 0, 3), np.arange(3, dtype=np.int64), label_indptr, text)
    labelled: dict[str, Any] = {
        "columns": {"of": Column(values=text, indptr=label_indptr)},
        "label_hash": label_hash,
        "label_indptr": np.arange(4, dtype=np.int64),
        "label_rows": label_rows.astype(np.uint32),
    }
    sparse = NodeImage(
        rows=3, count=3, dense=False, ids=ids, index_ids=index_ids, index_rows=index_rows, weights=weights, table=_table(weights), **labelled
    )
    dense = NodeImage(rows=3, count=3, dense=True, weights=weights, table=_table(weights))
    indptr = np.array([0, 3, 5, 6], np.int64)
    slot_weights = np.array([1, 2, 3, 1, 5, 1], np.float32)
    hot, cold, sums = alias.build_rows(indptr, slot_weights)
    near = np.array([0, 0, 0, 1, 1, 2], np.uint32)
    far = np.array([3, 5, 9, 3, 9, 5], np.int64)
    adjacency = Adjacency(indptr=indptr, nbr=far, eid=np.arange(6, dtype=np.int64), weights=slot_weights, sums=sums, hot=hot, cold=cold)
    edge = EdgeImage(out=adjacency, into=adjacency, src_row=near, table=_table(slot_weights))
    image = PartImage(part=0, parts=1, mod=True, nodes=(sparse, dense), edges=(edge, edge))
    totals = {(element, type_id, 0): draw.Share(count=3, positive=3, weight=6.0) for element in (draw.NODE, draw.EDGE) for type_id in (0, 1)}
    return draw.Version(space_id=0, version=0, digest="", schema=schema, totals=totals, parts={0: image})


def warm() -> None:
    """Run every kernel of draws and reads, on arrays of the types that requests bring."""
    version = _version()
    ids, positions = np.array([3, 5, 9, 4], np.int64), np.arange(4, dtype=np.int64)
    split.group(split.part_of(ids, 2, "mix64"), 2)
    taken, types = np.array([3], np.int64), np.array([0], np.int32)
    for uniform in (False, True):
        share = {"types": [0, 1], "parts": [0], "seed": 1, "count": 4, "uniform": uniform, "want_probabilities": True}
        draw.nodes(version, start=0, **share)  # type: ignore[arg-type]  # a plain dict of the common arguments
        draw.edges(version, start=0, **share)  # type: ignore[arg-type]
        draw.race_nodes(version, taken_ids=taken, taken_types=types, **share)  # type: ignore[arg-type]
        draw.race_edges(version, taken_ids=taken, taken_types=types, **share)  # type: ignore[arg-type]
        for edge_types in ([0], [0, 1]):
            for replace in (False, True):
                draw.neighbors(
                    version,
                    edge_types=edge_types,
                    node_type=0,
                    ids=ids,
                    positions=positions,
                    count=2,
                    replace=replace,
                    uniform=uniform,
                    direction=_OUT,
                    seed=1,
                    hop=0,
                    want_weights=True,
                    want_edge_ids=True,
                    want_probabilities=True,
                )
        for edge_types in ([0], [0, 1]):
            draw.neighbors(
                version,
                edge_types=edge_types,
                node_type=0,
                ids=ids,
                positions=positions,
                count=2,
                replace=False,
                uniform=uniform,
                direction=_OUT,
                seed=1,
                hop=0,
                want_weights=False,
                want_edge_ids=True,
                different=True,
            )
        for bias in (1.0, 0.5):
            draw.walk(
                version,
                draw.Rules(steps=[[0]], length=3, uniform=uniform, direction=_OUT, seed=1, restart=0.5, p=bias, q=bias, want_edge_ids=True),
                draw.Places(
                    ids=ids,
                    kinds=np.zeros(4, np.int32),
                    positions=positions,
                    taken=np.zeros(4, np.int32),
                    starts=ids,
                    start_kinds=np.zeros(4, np.int32),
                    before=ids[::-1].copy(),
                    before_kinds=np.zeros(4, np.int32),
                ),
            )
        draw.numbered_nodes(version, types=[0, 1], numbers=positions, seed=1, uniform=uniform, want_probabilities=True)
        draw.numbered_nodes(version, types=[0, 1], numbers=positions, kinds=np.array([0, 1, 1, 0], np.int32), seed=1, uniform=uniform)
        how = draw.Expansion(seed=1, direction=_OUT, replace=False, uniform=uniform, want_eids=True, want_weights=True)
        for disjoint in (False, True):
            seeds = {"seeds": ids, "types": np.zeros(4, np.int32), "disjoint": disjoint, "every": False}
            draw.grow(version, how, {0: (2, -1), 1: (1, 1)}, most_bytes=1 << 20, checkpoint=lambda: None, **seeds)  # type: ignore[arg-type]
    conditions = draw.Conditions(1 << 20)
    for text, element in (("id > 3", draw.NODE), ("weight > 1", draw.EDGE)):
        conditions.shares(version, draw.Where(text=text, element=element, types=(0, 1), both=element == draw.EDGE), [0], lambda: None)
    draw.rest_of_nodes(version, types=[0, 1], parts=[0], taken_ids=taken, taken_types=types)
    for direction in (_OUT, _IN):
        near = {"edge_types": [0, 1], "node_type": 0, "ids": ids, "direction": direction}
        draw.read_neighbors(version, want_weights=True, want_edge_ids=True, **near)  # type: ignore[arg-type]
        draw.top_neighbors(version, count=2, want_edge_ids=True, **near)  # type: ignore[arg-type]
        kinds = np.zeros(4, np.int32)
        draw.are_joined(version, edge_types=[0, 1], ids=ids, kinds=kinds, targets=ids, target_kinds=kinds, direction=direction)
        draw.degrees(version, **near)  # type: ignore[arg-type]
        draw.edges_between(version, cols=ids, want_weights=True, want_edge_ids=True, **near)  # type: ignore[arg-type]
    for type_id in (0, 1):
        draw.node_features(version, type_id, ["weight"], ids)
        draw.read_nodes(version, type_id, 0, 0, 0, [])
    draw.read_edges(version, 0, 0, 0, 0)
    found, _ = draw.read_labels(version, [0], 0)
    draw.read_labelled(version, [0], found["labels.indptr"], found["labels.values"])
