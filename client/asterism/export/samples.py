"""A sample of a graph that is exported as a graph: seeds, what their fanouts reach, and every edge among those nodes.

That is how a graph of billions of edges becomes a data set that fits. It reads through the service at one version; the same
version, words and seed choose the same nodes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asterism import arguments
from asterism.export.source import Column, Ids
from asterism.graph import Graph
from asterism.records import EdgeBatch, NodeBatch
from asterism_proto.errors import InvalidRequest
from asterism_proto.schema import EdgeType, Schema
from graphkit.split import part_of

_SEEDS_AT_ONCE = 4096
"""Of one subgraph. Its nodes expand once, so that this number is part of what a seed chooses."""
_NODES_AT_ONCE = 1 << 16
_EDGES_AT_ONCE = 1 << 18


class SampledGraph:
    """The graph that a sample induces: what `sampled` gives. It is scanned as any other is, and samples when that begins."""

    def __init__(self, graph: Graph, words: Mapping[str, Any], given: Ids | None) -> None:
        self._graph, self._words, self._given = graph, dict(words), given
        self._chosen: dict[str, Ids] | None = None

    @property
    def space(self) -> str:
        """Of the graph that is sampled."""
        return self._graph.space

    @property
    def schema(self) -> Schema:
        """Of the graph that is sampled."""
        return self._graph.schema

    @property
    def sample(self) -> Mapping[str, Any]:
        """How it is sampled, in words that JSON has."""
        return self._words

    def digest(self, version: int) -> str:
        """Of the version that is sampled."""
        return self._graph.manifest(version).digest

    @contextmanager
    def pin(self, version: int | None = None, *, owner: str | None = None) -> Iterator[SampledGraph]:
        """The sample of one version, which stays while the block runs."""
        with self._graph.pin(version, owner=owner) as held:
            yield SampledGraph(held, self._words, self._given)

    def chosen(self, ntype: str, version: int | None = None) -> Ids:
        """int64 [n]: the nodes of a type, by id."""
        if self._chosen is None:
            self._chosen = self._choose(version)
        return self._chosen[ntype]

    def _choose(self, version: int | None) -> dict[str, Ids]:
        words = self._words
        weights = {"weighted": words["weighted"], "weight": words["weight"]}
        if self._given is not None:
            starts = self._given
        else:
            own = {"weighted": words["weighted"]}
            starts = self._graph.sample_nodes(words["seeds"], words["ntype"], replace=False, seed=words["seed"], version=version, **own).nodes
        found: dict[str, list[Ids]] = {node_type.name: [] for node_type in self.schema.node_types}
        found[words["ntype"]].append(starts)
        for at in range(0, len(starts) if words["fanouts"] else 0, _SEEDS_AT_ONCE):
            batch = self._graph.sample_subgraph(
                starts[at : at + _SEEDS_AT_ONCE],
                words["fanouts"],
                words["etypes"],
                ntype=words["ntype"],
                direction=words["direction"],
                edge_ids=False,
                seed=words["seed"],
                version=version,
                **weights,
            )
            for name, nodes in batch.nodes.items():
                found[name] = [np.union1d(np.concatenate([np.zeros(0, np.int64), *found[name]]), nodes)]
        return {name: np.unique(np.concatenate([np.zeros(0, np.int64), *nodes])) for name, nodes in found.items()}

    def node_features(self, nodes: Ids, names: Iterable[str], ntype: str, *, version: int | None = None) -> Mapping[str, Column]:
        """Columns of nodes of a type, in their order."""
        return self._graph.node_features(nodes, names, ntype, version=version)

    def scan_nodes(self, ntype: str, names: Iterable[str] = (), *, version: int | None = None, rows: int = 65536) -> Iterator[NodeBatch]:
        """The nodes of a type that were chosen, by id."""
        held, wanted = self.chosen(ntype, version), list(names)
        for at in range(0, len(held), rows):
            ids = held[at : at + rows]
            columns = self._graph.node_features(ids, [*wanted, "weight"], ntype, version=version)
            weights: Any = columns.pop("weight")
            yield NodeBatch(part=0, ids=ids, weights=weights, features=columns, version=self._at(version))

    def scan_edges(self, etype: str, names: Iterable[str] = (), *, version: int | None = None, rows: int = 65536) -> Iterator[EdgeBatch]:
        """The edges of a type whose ends were both chosen."""
        kind, wanted = self._edge_type(etype), list(names)
        known = self.chosen(kind.dst_type, version)
        for src, dst, eids, weights in self._edges(kind, version):
            mine = np.flatnonzero(_member(known, dst))
            for at in range(0, len(mine), rows):
                some = mine[at : at + rows]
                columns = self._graph.edge_features(eids[some], wanted, etype, version=version) if wanted else {}
                yield EdgeBatch(
                    part=0,
                    src=src[some],
                    dst=dst[some],
                    edge_ids=eids[some],
                    weights=weights[some],
                    features=columns,
                    version=self._at(version),
                )

    def _at(self, version: int | None) -> int:
        return version or self._graph.manifest().version

    def _edge_type(self, name: str) -> EdgeType:
        return self.schema.edge_types[self.schema.edge_type_id(name)]

    def _edges(self, kind: EdgeType, version: int | None) -> Iterator[tuple[Ids, Ids, Ids, NDArray[np.float32]]]:
        """Ends, ids and weights of all edges from chosen nodes, in the order of these; those of hubs last, by scans."""
        hubs: list[Ids] = [np.zeros(0, np.int64)]
        held = self.chosen(kind.src_type, version)
        for at in range(0, len(held), _NODES_AT_ONCE):
            nodes = held[at : at + _NODES_AT_ONCE]
            degrees = self._graph.degrees(nodes, kind.name, ntype=kind.src_type, version=version)[:, 0]
            hubs.append(nodes[degrees > _EDGES_AT_ONCE])
            nodes, degrees = nodes[degrees <= _EDGES_AT_ONCE], degrees[degrees <= _EDGES_AT_ONCE]
            groups = np.cumsum(degrees) // _EDGES_AT_ONCE
            for group in np.split(nodes, np.flatnonzero(np.diff(groups)) + 1):
                found = self._graph.neighbors(group, kind.name, ntype=kind.src_type, version=version)
                assert found.weights is not None
                assert found.edge_ids is not None
                yield np.repeat(group, np.diff(found.indptr)), found.nodes, found.edge_ids, found.weights
        large = np.concatenate(hubs)
        if large.size:
            parts = np.unique(part_of(large, self.schema.parts, self.schema.placement)).tolist()
            for batch in self._graph.scan_edges(kind.name, version=version, parts=parts):
                mine = _member(large, batch.src)
                yield batch.src[mine], batch.dst[mine], batch.edge_ids[mine], batch.weights[mine]


def sampled(
    graph: Graph,
    seeds: int | ArrayLike,
    fanouts: Sequence[int],
    *,
    ntype: str | None = None,
    etypes: str | Iterable[str] | None = None,
    weighted: bool = True,
    weight: str = "",
    direction: str = "in",
    seed: int = 0,
) -> SampledGraph:
    """A sample of a graph, to be exported in its place: ``export.dgl(export.sampled(graph, 10_000, [10, 5]), ...)``.

    Parameters
    ----------
    graph : Graph
        What to sample.
    seeds : int or int64[m]
        How many different nodes to draw, or which nodes to begin with.
    fanouts : list of int
        Neighbors per node of each hop and edge type, without replacement; -1 all.
    ntype : str, optional
        The type of the seeds; it may be left out where there is one.
    etypes : str or list of str, optional
        Edge types to follow; None: all.
    weighted, weight : bool, str
        Draw seeds by node weight and neighbors by edge weight, of that name; else uniformly.
    direction : {"in", "out"}
        Against the edges, as DGL and PyG gather messages, or along them.
    seed : int
        Of all draws.

    Returns
    -------
    SampledGraph
        All chosen nodes with their features, and every edge between two of them, also one that no draw followed. Stored ids stay.

    Raises
    ------
    InvalidRequest
        Where a word does not fit; at the first scan, where fewer nodes than ``seeds`` can be drawn.
    """
    types = [node_type.name for node_type in graph.schema.node_types]
    if ntype is None and len(types) > 1:
        raise InvalidRequest(f"the space has the node types {', '.join(types)}; say ntype, of the seeds")
    if ntype is not None and ntype not in types:
        raise InvalidRequest(f"ntype {ntype!r}: there are the node types {', '.join(types)}")
    if direction not in ("in", "out"):
        raise InvalidRequest(f"direction {direction!r}: expected in or out")
    given = None if isinstance(seeds, int) else np.unique(graph._there("seeds", seeds, ntype or types[0], None))
    words = {
        "seeds": arguments.count("seeds", seeds, least=1) if isinstance(seeds, int) else None,
        "given": None if given is None else hashlib.sha256(given.tobytes()).hexdigest(),
        "fanouts": [hop if hop == -1 else arguments.count("fanouts", hop, least=1) for hop in fanouts],
        "ntype": ntype or types[0],
        "etypes": arguments.names(etypes) or None,
        "weighted": weighted,
        "weight": weight,
        "direction": direction,
        "seed": arguments.seed(seed),
    }
    return SampledGraph(graph, words, given)


def _member(known: Ids, ids: Ids) -> NDArray[np.bool_]:
    """Which ids are among ``known``, which are in order."""
    if not known.size:
        return np.zeros(len(ids), np.bool_)
    at = np.minimum(np.searchsorted(known, ids), len(known) - 1)
    found: NDArray[np.bool_] = known[at] == ids
    return found
