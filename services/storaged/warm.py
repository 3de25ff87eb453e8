"""Compiles what draws call, before the storaged says that it serves: each of them once, on a graph of three nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from asterism_proto.schema import EdgeType, Feature, NodeType, Schema
from graphkit import alias, index, labels, split
from graphkit.jit import settled
from graphkit.order import sort_keys
from storaged import draw
from storaged.build.packed import pack_rows
from storaged.draw.blocks import never
from storaged.store.image import Adjacency, Column, EdgeImage, NodeImage, PartImage, Table
from storaged.store.ordered import OWN, Near, Ordered, Tables

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
        edge_types=tuple(
            EdgeType(src_type=end, relation=name, dst_type=end, weighted=True, features=(Feature(name="t", dtype="int64"),), time="t")
            for end, name in (("n", "a"), ("n", "b"), ("m", "c"))
        ),
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
    ordered = Ordered(
        column="weight",
        kind="range",
        rows=np.arange(3, dtype=np.uint32),
        values=weights,
        tables={OWN: Tables(levels=(), positives=np.array([0, 3], np.int64))},
    )
    both: dict[str, Any] = {"rows": 3, "count": 3, "weights": weights, "table": _table(weights), "indexes": (ordered,)}
    sparse = NodeImage(dense=False, ids=ids, index_ids=index_ids, index_rows=index_rows, **both, **labelled)
    dense = NodeImage(dense=True, **both)
    indptr = np.array([0, 3, 5, 6], np.int64)
    slot_weights = np.array([1, 2, 3, 1, 5, 1], np.float32)
    hot, cold, sums = alias.build_rows(indptr, slot_weights)
    near = np.array([0, 0, 0, 1, 1, 2], np.uint32)
    far = np.array([3, 5, 9, 3, 9, 5], np.int64)
    adjacency = Adjacency(
        indptr=indptr,
        nbr=far,
        eid=np.arange(6, dtype=np.int64),
        weights=slot_weights,
        sums=sums,
        hot=hot,
        cold=cold,
        when=np.arange(6, dtype=np.int64),
        order=np.arange(6, dtype=np.uint32),
        time_sums=np.array([1, 3, 6, 1, 6, 1], np.float64),
    )
    of_nodes = Near(order=np.arange(6, dtype=np.uint32), keys=sort_keys(slot_weights), trees={OWN: np.array([6, 6, 5, 6, 6, 1], np.float64)})
    by_weight = Ordered(
        column="weight",
        kind="range",
        rows=np.array([0, 3, 5, 1, 2, 4], np.uint32),
        values=np.sort(slot_weights),
        tables={OWN: Tables(levels=(), positives=np.array([0, 6], np.int64))},
        out=of_nodes,
        into=of_nodes,
    )
    edge = EdgeImage(out=adjacency, into=adjacency, src_row=near, table=_table(slot_weights), indexes=(by_weight,))
    narrow, packed = near.copy(), np.empty(12, np.uint64)
    pack_rows(settled(indptr), np.int64(0), np.int64(3), settled(narrow), settled(sums), settled(hot), packed)
    doubled = replace(adjacency, nbr=near.astype(np.int64), narrow=narrow, packed=packed)
    close = replace(edge, out=doubled, into=doubled)
    image = PartImage(part=0, parts=1, mod=True, nodes=(sparse, dense), edges=(edge, edge, close))
    totals = {(element, type_id, 0): draw.Share(count=3, positive=3, weight=6.0) for element in (draw.NODE, draw.EDGE) for type_id in (0, 1)}
    totals[draw.EDGE, 2, 0] = totals[draw.EDGE, 0, 0]
    return draw.Version(space_id=0, version=0, digest="", schema=schema, totals=totals, parts={0: image})


def _packed(version: draw.Version, positions: np.ndarray[tuple[int], np.dtype[np.int64]], uniform: bool) -> None:
    """Draw from packed rows."""
    draw.neighbors(
        version,
        edge_types=[2],
        node_type=1,
        ids=positions,
        positions=positions,
        count=2,
        replace=True,
        uniform=uniform,
        direction=_OUT,
        seed=1,
        hop=0,
        want_weights=True,
        want_edge_ids=False,
    )
    places = draw.Places(ids=positions, kinds=np.ones(4, np.int32), positions=positions, taken=np.zeros(4, np.int32))
    draw.walk(version, draw.Rules(steps=[[2]], length=3, uniform=uniform, direction=_OUT, seed=1), places)
    biased = draw.Rules(steps=[[2]], length=3, uniform=uniform, direction=_OUT, seed=1, p=0.25, q=0.5)
    draw.paths(version, biased, draw.Places.begun(positions, np.ones(4, np.int32), positions, biased))


def _until(version: draw.Version, ids: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
    """Draw until times."""
    until = draw.Until(times=ids, strict=False, last=False, want_times=True)
    for edge_types in ([0], [0, 1]):
        draw.timed_neighbors(
            version,
            edge_types=edge_types,
            node_type=0,
            ids=ids,
            positions=ids,
            count=2,
            replace=False,
            uniform=False,
            direction=_OUT,
            seed=1,
            hop=0,
            want_weights=True,
            want_edge_ids=True,
            until=until,
        )
    how = draw.Expansion(seed=1, direction=_OUT, replace=False, uniform=False, want_eids=True, want_weights=True)
    grown = {"disjoint": True, "every": False, "most_bytes": 1 << 20, "checkpoint": never}
    draw.grow(version, how, {0: (2, -1)}, ids, np.zeros(ids.size, np.int32), until=until, **grown)  # type: ignore[arg-type]


def _under_conditions(version: draw.Version, ids: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
    """Look for what satisfies conditions, and draw from indexes."""
    conditions = draw.Conditions(1 << 20)
    for text, element in (("id > 3", draw.NODE), ("weight > 1 and id > 0", draw.EDGE)):
        conditions.shares(version, draw.Where(text=text, element=element, types=(0, 1), both=element == draw.EDGE), [0], lambda: None)
    heavy = draw.Where(text="weight > 1", element=draw.NODE, types=(0, 1))
    covering = conditions.version(version, heavy, conditions.shares(version, heavy, [0], lambda: None), lambda: None, globally=True)
    draw.nodes(covering, types=[0, 1], parts=[0], seed=1, start=0, count=4, uniform=False)
    for types in ([0], [0, 1]):
        draw.ranged_neighbors(
            version,
            edge_types=types,
            node_type=0,
            ids=ids,
            positions=ids,
            count=2,
            replace=False,
            uniform=False,
            direction=_OUT,
            seed=1,
            hop=0,
            want_weights=True,
            want_edge_ids=True,
            want_probabilities=True,
            weight="",
            ranges=conditions.ranges(version, draw.Where(text="weight > 1", element=draw.EDGE, types=(0, 1))),
        )


def _grown(version: draw.Version, ids: np.ndarray[tuple[int], np.dtype[np.int64]], uniform: bool) -> None:
    """Subgraphs, and neighbors that are kept by variates."""
    how = draw.Expansion(seed=1, direction=_OUT, replace=False, uniform=uniform, want_eids=True, want_weights=True)
    for disjoint in (False, True):
        seeds = {"seeds": ids, "types": np.zeros(4, np.int32), "disjoint": disjoint, "every": False}
        for counts in ({0: (2, -1), 1: (1, 1)}, {2: (2, 1)}):
            draw.grow(version, how, counts, most_bytes=1 << 20, checkpoint=never, **seeds)  # type: ignore[arg-type]
    for importance in (0, 2):
        variates = draw.Variates(layer_dependency=False, importance=importance)
        draw.expand(version, replace(how, variates=variates), edge_type=0, hop=0, count=2, ids=ids, trees=None)


def warm() -> None:
    """Run every kernel of draws and reads, on arrays of the types that requests bring."""
    version = _version()
    ids, positions = np.array([3, 5, 9, 4], np.int64), np.arange(4, dtype=np.int64)
    for buckets in (2, 1000):  # counted in two ways
        split.group(split.part_of(ids, 2, "mix64"), buckets)
    taken, types = np.array([3], np.int64), np.array([0], np.int32)
    for uniform in (False, True):
        share = {"types": [0, 1], "parts": [0], "seed": 1, "count": 4, "uniform": uniform, "want_probabilities": True}
        draw.nodes(version, start=0, **share)  # type: ignore[arg-type]  # a plain dict of the common arguments
        draw.edges(version, start=0, **share)  # type: ignore[arg-type]
        draw.race_nodes(version, taken_ids=taken, taken_types=types, **share)  # type: ignore[arg-type]
        draw.race_edges(version, taken_ids=taken, taken_types=types, **share)  # type: ignore[arg-type]
        for edge_types in ([0], [0, 1]):
            for with_replacement in (False, True):
                draw.neighbors(
                    version,
                    edge_types=edge_types,
                    node_type=0,
                    ids=ids,
                    positions=positions,
                    count=2,
                    replace=with_replacement,
                    uniform=uniform,
                    direction=_OUT,
                    seed=1,
                    hop=0,
                    want_weights=True,
                    want_edge_ids=True,
                    want_probabilities=True,
                )
        _packed(version, positions, uniform)
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
                draw.Rules(steps=[[0]], length=3, uniform=uniform, direction=_OUT, seed=1, restart=0.5, p=bias**2, q=bias, want_edge_ids=True),
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
        _grown(version, ids, uniform)
        ranked = {"edge_types": [0, 1], "direction": _OUT, "uniform": uniform, "alpha": 0.5, "epsilon": 0.1, "top": 2}
        draw.rank(version, ids=ids, kinds=np.zeros(4, np.int32), checkpoint=never, **ranked)  # type: ignore[arg-type]
    _until(version, ids)
    _under_conditions(version, ids)
    draw.rest_of_nodes(version, types=[0, 1], parts=[0], taken_ids=taken, taken_types=types)
    for direction in (_OUT, _IN):
        near = {"edge_types": [0, 1], "node_type": 0, "ids": ids, "direction": direction}
        draw.read_neighbors(version, want_weights=True, want_edge_ids=True, **near)  # type: ignore[arg-type]
        draw.top_neighbors(version, count=2, want_edge_ids=True, **near)  # type: ignore[arg-type]
        kinds = np.zeros(4, np.int32)
        draw.are_joined(version, edge_types=[0, 1], ids=ids, kinds=kinds, targets=ids, target_kinds=kinds, direction=direction)
        draw.degrees(version, **near)  # type: ignore[arg-type]
        for cols in (ids, ids << 40):  # near each other, and far apart
            draw.edges_between(version, cols=cols, want_weights=True, want_edge_ids=True, **near)  # type: ignore[arg-type]
    for type_id in (0, 1):
        draw.node_features(version, type_id, ["weight"], ids)
        draw.read_nodes(version, type_id, 0, 0, 0, [])
    draw.read_edges(version, 0, 0, 0, 0)
    found, _ = draw.read_labels(version, [0], 0)
    draw.read_labelled(version, [0], found["labels.indptr"], found["labels.values"])
