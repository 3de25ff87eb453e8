"""A graph of flat arrays that can be scanned like a graph space, for testing exports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism import Client, Graph
from asterism.records.samples import EdgeBatch, NodeBatch
from asterism_model.schema import Schema
from asterism_proto.errors import NotFound

VERSION = 7


@dataclass(frozen=True, kw_only=True)
class FlatNodes:
    """The nodes of one type."""

    ids: NDArray[np.int64]
    weights: NDArray[np.float32]
    features: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class FlatEdges:
    """The edges of one type."""

    src: NDArray[np.int64]
    dst: NDArray[np.int64]
    eids: NDArray[np.int64]
    weights: NDArray[np.float32]
    features: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class FlatGraph:
    """Nodes and edges by type, scanned partition by partition in canonical order."""

    schema: Schema
    nodes: Mapping[str, FlatNodes]
    edges: Mapping[str, FlatEdges]
    space: str = "flat"

    def without_nodes(self, ntype: str, ids: NDArray[np.int64]) -> FlatGraph:
        """Return the graph without some nodes and every edge at them."""
        nodes, edges = dict(self.nodes), dict(self.edges)
        nodes[ntype] = _select_rows(nodes[ntype], ~np.isin(nodes[ntype].ids, ids))
        for edge_type in self.schema.edge_types:
            type_edges = edges[edge_type.name]
            mask = np.ones(len(type_edges.src), np.bool_)
            for end, end_type in (
                (type_edges.src, edge_type.src_type),
                (type_edges.dst, edge_type.dst_type),
            ):
                if end_type == ntype:
                    mask &= ~np.isin(end, ids)
            edges[edge_type.name] = _select_rows(type_edges, mask)
        return replace(self, nodes=nodes, edges=edges)

    def scan_nodes(
        self,
        ntype: str,
        names: Iterable[str] = (),
        *,
        version: int | None = None,
        rows: int = 65536,
    ) -> Iterator[NodeBatch]:
        self._check(version)
        flat_nodes, column_names = self.nodes[ntype], list(names)
        for part in range(self.schema.parts):
            part_rows = np.flatnonzero(flat_nodes.ids % self.schema.parts == part)
            part_rows = part_rows[np.argsort(flat_nodes.ids[part_rows])]
            for start in range(0, len(part_rows), rows):
                batch = part_rows[start : start + rows]
                yield NodeBatch(
                    part=part,
                    ids=flat_nodes.ids[batch],
                    weights=flat_nodes.weights[batch],
                    features={name: flat_nodes.features[name][batch] for name in column_names},
                    version=VERSION,
                )

    def scan_edges(
        self,
        etype: str,
        names: Iterable[str] = (),
        *,
        version: int | None = None,
        rows: int = 65536,
    ) -> Iterator[EdgeBatch]:
        self._check(version)
        flat_edges, column_names = self.edges[etype], list(names)
        for part in range(self.schema.parts):
            part_rows = np.flatnonzero(flat_edges.src % self.schema.parts == part)
            part_rows = part_rows[
                np.lexsort(
                    (
                        flat_edges.eids[part_rows],
                        flat_edges.dst[part_rows],
                        flat_edges.src[part_rows],
                    )
                )
            ]
            for start in range(0, len(part_rows), rows):
                batch = part_rows[start : start + rows]
                yield EdgeBatch(
                    part=part,
                    src=flat_edges.src[batch],
                    dst=flat_edges.dst[batch],
                    edge_ids=flat_edges.eids[batch],
                    weights=flat_edges.weights[batch],
                    features={name: flat_edges.features[name][batch] for name in column_names},
                    version=VERSION,
                )

    @staticmethod
    def _check(version: int | None) -> None:
        if version not in (None, VERSION):
            raise NotFound(f"version {version}: only {VERSION} is held")


def _select_rows(rows: Any, mask: NDArray[np.bool_]) -> Any:
    columns = {f.name: getattr(rows, f.name)[mask] for f in fields(rows) if f.name != "features"}
    return replace(
        rows, **columns, features={name: values[mask] for name, values in rows.features.items()}
    )


def publish(client: Client, flat: FlatGraph) -> tuple[Graph, FlatGraph]:
    """Publish the content and return the graph and the content with the assigned edge ids."""
    client.create_space(flat.space, flat.schema)
    load, edges = client.begin_load(flat.space, source="flat arrays"), {}
    for index, node_type in enumerate(flat.schema.node_types):
        nodes = flat.nodes[node_type.name]
        load.write_nodes(
            index,
            node_type.name,
            nodes.ids,
            nodes.weights if node_type.weighted else None,
            nodes.features,
        )
    for index, edge_type in enumerate(flat.schema.edge_types, len(flat.schema.node_types)):
        flat_edges = flat.edges[edge_type.name]
        base = load.write_edges(
            index,
            edge_type.name,
            flat_edges.src,
            flat_edges.dst,
            flat_edges.weights if edge_type.weighted else None,
            flat_edges.features,
        )
        edges[edge_type.name] = replace(flat_edges, eids=base + np.arange(len(flat_edges.src)))
    load.commit()
    graph = client.graph(flat.space)
    graph.build()
    return graph, replace(flat, edges=edges)


def _values(generator: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return generator.random(shape) < 0.5
    if kind.kind == "f":
        return generator.standard_normal(shape).astype(kind)
    return generator.integers(0, 100, shape).astype(kind)


def generate(
    schema: Schema,
    *,
    nodes: Mapping[str, int],
    edges: Mapping[str, int],
    seed: int,
    sparse: bool = False,
    space: str = "flat",
) -> FlatGraph:
    """Return a random graph of a schema.

    Ids are 0, 1, ... or sparse. Some weights are zero, some edges occur twice, and there are a few
    loops.
    """
    generator = np.random.default_rng(seed)
    flat_nodes, flat_edges = {}, {}
    for node_type in schema.node_types:
        n = nodes[node_type.name]
        ids = np.unique(generator.integers(0, 1 << 40, n + 16))[:n] if sparse else np.arange(n)
        flat_nodes[node_type.name] = FlatNodes(
            ids=generator.permutation(ids.astype(np.int64)),
            weights=_weights(generator, n) if node_type.weighted else np.ones(n, np.float32),
            features={
                f.name: _values(generator, f.dtype, (n, *f.shape))
                for f in node_type.features
                if f.kind == "dense"
            },
        )
    for edge_type in schema.edge_types:
        m = edges[edge_type.name]
        src = (
            generator.choice(flat_nodes[edge_type.src_type].ids, m) if m else np.zeros(0, np.int64)
        )
        dst = (
            generator.choice(flat_nodes[edge_type.dst_type].ids, m) if m else np.zeros(0, np.int64)
        )
        if m > 3:
            src[1], dst[1] = src[0], dst[0]
            dst[2] = src[2] if edge_type.src_type == edge_type.dst_type else dst[2]
        flat_edges[edge_type.name] = FlatEdges(
            src=src,
            dst=dst,
            eids=generator.permutation(np.arange(m))
            if not sparse
            else generator.permutation(np.arange(m) * 3 + 5),
            weights=_weights(generator, m) if edge_type.weighted else np.ones(m, np.float32),
            features={
                f.name: _values(generator, f.dtype, (m, *f.shape))
                for f in edge_type.features
                if f.kind == "dense"
            },
        )
    return FlatGraph(schema=schema, nodes=flat_nodes, edges=flat_edges, space=space)


def _weights(generator: np.random.Generator, n: int) -> NDArray[np.float32]:
    weights = generator.exponential(size=n).astype(np.float32)
    weights[generator.random(n) < 0.1] = 0
    return weights
