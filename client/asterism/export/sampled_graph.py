"""Sample of a graph, exported as a graph: seeds, their sampled neighbors, and all edges.

This reduces a graph of billions of edges to a data set that fits. The sample has every edge between
its nodes. It is read through the service at one version; the same version, parameters and seed
select the same nodes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asterism.calls import validation
from asterism.export.graph_source import Ids, ScanColumn
from asterism.graph import Graph
from asterism.records.samples import EdgeBatch, NodeBatch
from asterism_graphkit.random.partition_choice import part_of
from asterism_model.schema import EdgeType, Schema
from asterism_proto.errors import InvalidRequest

_SEEDS_PER_REQUEST = 4096
"""Seeds per subgraph request.
A request expands each node once. Part of the sampling contract: changing it changes results for a
given seed."""
_NODES_PER_REQUEST = 1 << 16
_EDGES_PER_REQUEST = 1 << 18


class SampledGraph:
    """Induced subgraph of a sample, as returned by `sampled`.

    It can be scanned like any other graph. Nodes are sampled on the first scan.
    """

    def __init__(self, graph: Graph, parameters: Mapping[str, Any], seed_ids: Ids | None) -> None:
        self._graph, self._parameters, self._given_seeds = graph, dict(parameters), seed_ids
        self._sampled_nodes: dict[str, Ids] | None = None

    @property
    def space(self) -> str:
        """Name of the sampled space."""
        return self._graph.space

    @property
    def schema(self) -> Schema:
        """Schema of the sampled graph."""
        return self._graph.schema

    @property
    def sample(self) -> Mapping[str, Any]:
        """Parameters of the sample, in JSON types."""
        return self._parameters

    def digest(self, version: int) -> str:
        """Return the digest of the sampled version."""
        return self._graph.manifest(version).digest

    @contextmanager
    def pin(
        self, version: int | None = None, *, owner: str | None = None
    ) -> Iterator[SampledGraph]:
        """Provide the sample of one version, which is retained until the context ends.

        Parameters
        ----------
        version : int, optional
            Version to pin. None pins the current one.
        owner : str, optional
            Label of the pin.

        Yields
        ------
        SampledGraph
        """
        with self._graph.pin(version, owner=owner) as pinned:
            yield SampledGraph(pinned, self._parameters, self._given_seeds)

    def sampled_nodes(self, ntype: str, version: int | None = None) -> Ids:
        """Return the sampled nodes of a type.

        Parameters
        ----------
        ntype : str
            Node type.
        version : int, optional
            Version to sample on the first call. None uses the current one.

        Returns
        -------
        ndarray of int64, shape (n,)
            Node ids in ascending order.
        """
        if self._sampled_nodes is None:
            self._sampled_nodes = self._sample(version)
        return self._sampled_nodes[ntype]

    def _sample(self, version: int | None) -> dict[str, Ids]:
        parameters = self._parameters
        weights = {"weighted": parameters["weighted"], "weight": parameters["weight"]}
        if self._given_seeds is not None:
            starts = self._given_seeds
        else:
            weighting = {"weighted": parameters["weighted"]}
            starts = self._graph.sample_nodes(
                parameters["seeds"],
                parameters["ntype"],
                replace=False,
                seed=parameters["seed"],
                version=version,
                **weighting,
            ).nodes
        nodes_by_type: dict[str, list[Ids]] = {
            node_type.name: [] for node_type in self.schema.node_types
        }
        nodes_by_type[parameters["ntype"]].append(starts)
        for start in range(0, len(starts) if parameters["fanouts"] else 0, _SEEDS_PER_REQUEST):
            batch = self._graph.sample_subgraph(
                starts[start : start + _SEEDS_PER_REQUEST],
                parameters["fanouts"],
                parameters["etypes"],
                ntype=parameters["ntype"],
                direction=parameters["direction"],
                edge_ids=False,
                seed=parameters["seed"],
                version=version,
                **weights,
            )
            for name, nodes in batch.nodes.items():
                nodes_by_type[name] = [
                    np.union1d(np.concatenate([np.zeros(0, np.int64), *nodes_by_type[name]]), nodes)
                ]
        return {
            name: np.unique(np.concatenate([np.zeros(0, np.int64), *nodes]))
            for name, nodes in nodes_by_type.items()
        }

    def node_features(
        self, nodes: Ids, names: Iterable[str], ntype: str, *, version: int | None = None
    ) -> Mapping[str, ScanColumn]:
        """Return features of nodes of a type, in the order of ``nodes``.

        Parameters
        ----------
        nodes : ndarray of int64, shape (n,)
            Stored node ids.
        names : iterable of str
            Features to read.
        ntype : str
            Node type.
        version : int, optional
            Version to read. None reads the current one.

        Returns
        -------
        dict
            Columns by name: dense arrays, or ``(indptr, values)``.
        """
        return self._graph.node_features(nodes, names, ntype, version=version)

    def scan_nodes(
        self,
        ntype: str,
        names: Iterable[str] = (),
        *,
        version: int | None = None,
        rows: int = 65536,
    ) -> Iterator[NodeBatch]:
        """Yield the sampled nodes of a type, in ascending order of ids.

        Parameters
        ----------
        ntype : str
            Node type.
        names : iterable of str
            Features to read.
        version : int, optional
            Version to read. None reads the current one.
        rows : int, default 65536
            Largest number of nodes per batch.

        Yields
        ------
        NodeBatch
        """
        sampled_ids, column_names = self.sampled_nodes(ntype, version), list(names)
        for start in range(0, len(sampled_ids), rows):
            ids = sampled_ids[start : start + rows]
            columns = self._graph.node_features(
                ids, [*column_names, "weight"], ntype, version=version
            )
            weights: Any = columns.pop("weight")
            yield NodeBatch(
                part=0,
                ids=ids,
                weights=weights,
                features=columns,
                version=self._sampled_version(version),
            )

    def scan_edges(
        self,
        etype: str,
        names: Iterable[str] = (),
        *,
        version: int | None = None,
        rows: int = 65536,
    ) -> Iterator[EdgeBatch]:
        """Yield the edges of a type between two sampled nodes.

        Parameters
        ----------
        etype : str
            Edge type.
        names : iterable of str
            Features to read.
        version : int, optional
            Version to read. None reads the current one.
        rows : int, default 65536
            Largest number of edges per batch.

        Yields
        ------
        EdgeBatch
        """
        kind, column_names = self._edge_type(etype), list(names)
        sampled_ids = self.sampled_nodes(kind.dst_type, version)
        for src, dst, eids, weights in self._edges_from_sample(kind, version):
            selected = np.flatnonzero(_is_member(sampled_ids, dst))
            for start in range(0, len(selected), rows):
                batch = selected[start : start + rows]
                columns = (
                    self._graph.edge_features(eids[batch], column_names, etype, version=version)
                    if column_names
                    else {}
                )
                yield EdgeBatch(
                    part=0,
                    src=src[batch],
                    dst=dst[batch],
                    edge_ids=eids[batch],
                    weights=weights[batch],
                    features=columns,
                    version=self._sampled_version(version),
                )

    def _sampled_version(self, version: int | None) -> int:
        return version or self._graph.manifest().version

    def _edge_type(self, name: str) -> EdgeType:
        return self.schema.edge_types[self.schema.edge_type_id(name)]

    def _edges_from_sample(
        self, kind: EdgeType, version: int | None
    ) -> Iterator[tuple[Ids, Ids, Ids, NDArray[np.float32]]]:
        """Yield ends, ids and weights of all edges from sampled nodes, in the order of the nodes.

        Edges of hubs come last and are found by scans.
        """
        hubs: list[Ids] = [np.zeros(0, np.int64)]
        sampled_ids = self.sampled_nodes(kind.src_type, version)
        for start in range(0, len(sampled_ids), _NODES_PER_REQUEST):
            nodes = sampled_ids[start : start + _NODES_PER_REQUEST]
            degrees = self._graph.degrees(nodes, kind.name, ntype=kind.src_type, version=version)[
                :, 0
            ]
            hubs.append(nodes[degrees > _EDGES_PER_REQUEST])
            nodes, degrees = (
                nodes[degrees <= _EDGES_PER_REQUEST],
                degrees[degrees <= _EDGES_PER_REQUEST],
            )
            groups = np.cumsum(degrees) // _EDGES_PER_REQUEST
            for group in np.split(nodes, np.flatnonzero(np.diff(groups)) + 1):
                neighbors = self._graph.neighbors(
                    group, kind.name, ntype=kind.src_type, version=version
                )
                assert neighbors.weights is not None
                assert neighbors.edge_ids is not None
                yield (
                    np.repeat(group, np.diff(neighbors.indptr)),
                    neighbors.nodes,
                    neighbors.edge_ids,
                    neighbors.weights,
                )
        hub_ids = np.concatenate(hubs)
        if hub_ids.size:
            parts = np.unique(part_of(hub_ids, self.schema.parts, self.schema.placement)).tolist()
            for batch in self._graph.scan_edges(kind.name, version=version, parts=parts):
                is_from_hub = _is_member(hub_ids, batch.src)
                yield (
                    batch.src[is_from_hub],
                    batch.dst[is_from_hub],
                    batch.edge_ids[is_from_hub],
                    batch.weights[is_from_hub],
                )


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
    """Sample a graph, for use as the input of an export.

    For example: ``export.dgl(export.sampled(graph, 10_000, [10, 5]), ...)``.

    Parameters
    ----------
    graph : Graph
        Graph to sample.
    seeds : int or array_like of int64, shape (m,)
        Number of distinct seed nodes to sample, or the seed nodes.
    fanouts : list of int
        Number of neighbors per node of each hop and edge type, sampled without replacement; -1
        takes all.
    ntype : str, optional
        Type of the seeds. Optional if there is only one node type.
    etypes : str or list of str, optional
        Edge types to follow. None follows all.
    weighted : bool, default True
        Sample seeds by node weight and neighbors by edge weight, otherwise uniformly.
    weight : str, default ""
        Name of the edge weight to use.
    direction : {"in", "out"}, default "in"
        Follow edges backwards, as DGL and PyG gather messages, or forwards.
    seed : int, default 0
        Seed of all samples.

    Returns
    -------
    SampledGraph
        All selected nodes with their features, and every edge between two of them, even if no
        sample followed it. Stored ids are kept.

    Raises
    ------
    InvalidRequest
        A parameter is invalid. At the first scan: fewer nodes than ``seeds`` can be sampled.

    Examples
    --------
    >>> small = export.sampled(graph, 10_000, [10, 5], ntype="item")  # doctest: +SKIP
    >>> export.dgl(small, "partitions", parts=2)  # doctest: +SKIP
    """
    types = [node_type.name for node_type in graph.schema.node_types]
    if ntype is None and len(types) > 1:
        raise InvalidRequest(
            f"ntype=None: expected the node type of the seeds, one of {', '.join(types)}"
        )
    if ntype is not None and ntype not in types:
        raise InvalidRequest(f"ntype={ntype!r}: expected one of {', '.join(types)}")
    if direction not in ("in", "out"):
        raise InvalidRequest(f"direction={direction!r}: expected 'in' or 'out'")
    seed_ids = (
        None
        if isinstance(seeds, int)
        else np.unique(graph._require_ids("seeds", seeds, ntype or types[0], None))
    )
    parameters = {
        "seeds": validation.count("seeds", seeds, minimum=1) if isinstance(seeds, int) else None,
        "given": None if seed_ids is None else hashlib.sha256(seed_ids.tobytes()).hexdigest(),
        "fanouts": [
            hop if hop == -1 else validation.count("fanouts", hop, minimum=1) for hop in fanouts
        ],
        "ntype": ntype or types[0],
        "etypes": validation.names(etypes) or None,
        "weighted": weighted,
        "weight": weight,
        "direction": direction,
        "seed": validation.seed(seed),
    }
    return SampledGraph(graph, parameters, seed_ids)


def _is_member(sorted_ids: Ids, ids: Ids) -> NDArray[np.bool_]:
    """Return which ids are in the ascending array ``sorted_ids``."""
    if not sorted_ids.size:
        return np.zeros(len(ids), np.bool_)
    position = np.minimum(np.searchsorted(sorted_ids, ids), len(sorted_ids) - 1)
    is_member: NDArray[np.bool_] = sorted_ids[position] == ids
    return is_member
