"""GraphSAINT: training on sampled subgraphs, with normalization for sampling bias.

Zeng et al. 2020, *GraphSAINT: graph sampling based inductive learning method*, ICLR. Nodes of one
type are sampled along one edge type, and all edges among them are included. Batch i of a sampler
depends only on its seed and i.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count as numbers

import numpy as np
from numpy.typing import NDArray

from asterism import permutations
from asterism.calls import validation
from asterism.graph import Graph
from asterism.records.arrays import ArrayRecord
from asterism.records.samples import Ids, Subgraph, Weights
from asterism_proto.errors import InvalidRequest

__all__ = ["EdgeSampler", "NodeSampler", "Normalization", "RandomWalkSampler", "Sampler"]

_MAX_NORM = 1e4
_UNSEEN = 0.1
"""Replacement for a count of 0, and norm of an edge with an unseen end; as in PyG.
"""
_BATCH, _COUNTING, _EPOCHS = range(3)
_MAX_BLOCKS = 64
_SIDE, _NODES, _OUT, _IN, _WALKS, _EDGES = range(6)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Normalization(ArrayRecord):
    """Counts of nodes and edges in sampled subgraphs, and the resulting coefficients."""

    nodes: Ids
    """ndarray of int64, shape (n,): ids of all nodes of the type, ascending."""
    edges: Ids
    """ndarray of int64, shape (e,): ids of all edges of the type, ascending."""
    ends: Ids
    """ndarray of int64, shape (e,): position in ``nodes`` of each edge's message target."""
    node_counts: Ids
    """ndarray of int64, shape (n,): number of subgraphs that contained each node."""
    edge_counts: Ids
    """ndarray of int64, shape (e,): number of subgraphs that contained each edge."""
    batches: int
    """Number of subgraphs counted."""
    version: int

    @property
    def node_norm(self) -> Weights:
        """Loss coefficient of each node, ndarray of float32, shape (n,).

        It is ``batches / counts / n``: the paper's 1 / lambda, divided by n.
        """
        counts = np.where(self.node_counts > 0, self.node_counts, _UNSEEN)
        return np.asarray(self.batches / counts / len(self.nodes), np.float32)

    @property
    def edge_norm(self) -> Weights:
        """Message coefficient of each edge, ndarray of float32, shape (e,).

        It is the paper's 1 / alpha: the count of its target node divided by its own count, at most
        10,000.
        """
        at_end = self.node_counts[self.ends]
        norm = np.full(len(self.edges), _MAX_NORM)
        np.divide(at_end, self.edge_counts, out=norm, where=self.edge_counts > 0)
        norm[(self.edge_counts == 0) & (at_end == 0)] = _UNSEEN
        return np.asarray(np.minimum(norm, _MAX_NORM), np.float32)

    def of(self, found: Subgraph) -> tuple[Weights, Weights]:
        """Return the coefficients of a subgraph's nodes and edges, in its order.

        Parameters
        ----------
        found : Subgraph
            Subgraph from the sampler that was counted.

        Returns
        -------
        node_norm : ndarray of float32, shape (n,)
            Loss coefficient of each node.
        edge_norm : ndarray of float32, shape (k,)
            Message coefficient of each edge.
        """
        (edges,) = (found.edge_ids or {}).values()
        nodes = np.concatenate(list(found.nodes.values()))  # Other node types are empty.
        return self.node_norm[np.searchsorted(self.nodes, nodes)], self.edge_norm[
            np.searchsorted(self.edges, edges)
        ]


class Sampler(ABC):
    """Base of the GraphSAINT samplers.

    Parameters
    ----------
    graph : Graph
        Graph to sample. If it is at no version (`Graph.at`, `Graph.pin`), the sampler reads its
        current version from now on; only a pin keeps that version.
    etype : str
        Edge type from a node type to itself.
    size : int
        Number of nodes, edges or walks sampled per subgraph, with replacement.
    seed : int, default 0
        Seed of all batches.

    Raises
    ------
    InvalidRequest
        If the edge type joins two node types, or ``size`` is below 1.
    """

    def __init__(self, graph: Graph, etype: str, size: int, *, seed: int = 0) -> None:
        edge = graph.schema.edge_types[graph.schema.edge_type_id(etype)]
        if edge.src_type != edge.dst_type:
            raise InvalidRequest(
                f"etype={edge.name!r}: expected an edge type from a node type to itself"
            )
        self.graph = graph if graph.version is not None else graph.at(graph.manifest().version)
        self.etype, self.ntype = edge.name, edge.src_type
        self.size, self.seed = validation.count("size", size, minimum=1), validation.seed(seed)

    def described(self) -> str:
        """Return a description; samplers with equal descriptions return equal batches."""
        return (
            f"{type(self).__name__}({self.etype}, "
            f"{', '.join(map(str, self._description_fields()))}, seed={self.seed})"
        )

    def _description_fields(self) -> tuple[int | str, ...]:
        return (self.size,)

    @abstractmethod
    def _draw_nodes(self, key: int) -> Ids:
        """Sample nodes, possibly with repetitions."""

    def nodes(self, i: int) -> Ids:
        """Return the nodes of batch i.

        Parameters
        ----------
        i : int
            Number of the batch, from 0.

        Returns
        -------
        ndarray of int64, shape (n,)
            Distinct node ids, ascending.
        """
        return self._nodes(_BATCH, validation.count("i", i))

    def _nodes(self, stream: int, i: int) -> Ids:
        nodes = self._draw_nodes(permutations.key_of(self.seed, permutations.SUBGRAPH, stream, i))
        ascending = np.sort(
            nodes[nodes >= 0]
        )  # np.unique hashes, which takes several times as long for some thousands of ids.
        return ascending[np.diff(ascending, prepend=-1) > 0]

    def batch(self, i: int) -> Subgraph:
        """Return the subgraph of batch i: its nodes, and all edges among them.

        Parameters
        ----------
        i : int
            Number of the batch, from 0.

        Returns
        -------
        Subgraph
            Subgraph as returned by `Graph.induced_subgraph`, nodes ascending by id, with edge ids.
        """
        return self._induced(self.nodes(i))

    def _induced(self, nodes: Ids) -> Subgraph:
        return self.graph.induced_subgraph(nodes, self.etype)

    def keyed(self, key: int) -> Subgraph:
        """Return the subgraph of a key, for callers that count their own batches.

        `asterism.torch.SaintBatches` is one. The keys form another random stream than `batch`.

        Parameters
        ----------
        key : int
            Key of the subgraph.

        Returns
        -------
        Subgraph
            Subgraph as returned by `batch`.
        """
        return self._induced(self._nodes(_EPOCHS, key))

    def batches(self, start: int = 0) -> Iterator[Subgraph]:
        """Return an endless iterator over batches; a trainer that had n batches resumes at n.

        Parameters
        ----------
        start : int, default 0
            Number of the first batch.

        Returns
        -------
        iterator of Subgraph
            The batches.
        """
        return (self.batch(i) for i in numbers(validation.count("start", start)))

    def normalize(
        self, coverage: float, *, known: Normalization | None = None, to: str = "dst"
    ) -> Normalization:
        """Count nodes and edges of subgraphs until nodes occur ``coverage`` times on average.

        Parameters
        ----------
        coverage : float
            Average number of occurrences per node; PyG's ``sample_coverage``.
        known : Normalization, optional
            Earlier result of the same sampler to continue from. The result is the same as that of
            one uninterrupted count.
        to : {"dst", "src"}, default "dst"
            End of an edge that receives messages. The paper uses undirected graphs; PyG uses
            ``edge_index[0]``, which is "src".

        Returns
        -------
        Normalization
            Counts of all nodes and edges of the types, held in memory: 16 bytes per node, 24 per
            edge.

        Raises
        ------
        InvalidRequest
            If ``known`` is from another version, or a subgraph has no nodes.
        """
        if to not in ("dst", "src"):
            raise InvalidRequest(f"to={to!r}: expected 'dst' or 'src'")
        target = validation.number("coverage", coverage, 0, 1e9)
        base = self._zero_counts(to) if known is None else known
        assert self.graph.version is not None
        if base.version != self.graph.version:
            raise InvalidRequest(
                f"known of version {base.version}: expected {self.graph.version}, the version of "
                "this sampler; leave known out to count again"
            )
        node_counts, edge_counts, i = base.node_counts.copy(), base.edge_counts.copy(), base.batches
        node_total = int(node_counts.sum())
        while node_total < target * len(base.nodes):
            nodes = self._nodes(_COUNTING, i)
            if not len(nodes):
                raise InvalidRequest(
                    f"etype={self.etype!r}: expected edges to sample from, batch {i} has no nodes"
                )
            edge_ids = self._induced(nodes).edge_ids
            assert edge_ids is not None
            node_counts[np.searchsorted(base.nodes, nodes)] += 1
            edge_counts[np.searchsorted(base.edges, edge_ids[self.etype])] += 1
            node_total, i = node_total + len(nodes), i + 1
        return Normalization(
            nodes=base.nodes,
            edges=base.edges,
            ends=base.ends,
            node_counts=node_counts,
            edge_counts=edge_counts,
            batches=i,
            version=base.version,
        )

    def _zero_counts(self, end: str) -> Normalization:
        """Return a normalization of all nodes and edges with counts of 0."""
        empty = np.zeros(0, np.int64)
        nodes = np.sort(
            np.concatenate([empty, *(batch.ids for batch in self.graph.scan_nodes(self.ntype))])
        )
        pieces = [
            (batch.edge_ids, batch.dst if end == "dst" else batch.src)
            for batch in self.graph.scan_edges(self.etype)
        ]
        edges, ends = (
            np.concatenate([empty, *(piece[column] for piece in pieces)]) for column in (0, 1)
        )
        order = np.argsort(edges)
        assert self.graph.version is not None
        return Normalization(
            nodes=nodes,
            edges=edges[order],
            ends=np.searchsorted(nodes, ends[order]),
            node_counts=np.zeros(len(nodes), np.int64),
            edge_counts=np.zeros(len(edges), np.int64),
            batches=0,
            version=self.graph.version,
        )


class NodeSampler(Sampler):
    """Sampler of nodes by degree: the ends of edges that are sampled uniformly.

    Parameters
    ----------
    graph : Graph
        Graph to sample, as in `Sampler`.
    etype : str
        Edge type from a node type to itself.
    size : int
        Number of nodes per subgraph, with replacement.
    end : {"src", "dst"}, default "src"
        "src": by out-degree, as PyG's ``GraphSAINTNodeSampler`` (sources of uniform edges). "dst":
        by in-degree. The paper samples by the squared column norms of the normalized adjacency.
    seed : int, default 0
        Seed of all batches.

    Examples
    --------
    >>> sampler = NodeSampler(held, "cites", 6000, seed=1)  # doctest: +SKIP
    >>> norms = sampler.normalize(50)  # doctest: +SKIP
    >>> for batch in islice(sampler.batches(), 100):  # doctest: +SKIP
    ...     node_norm, edge_norm = norms.of(batch)
    """

    def __init__(
        self, graph: Graph, etype: str, size: int, *, end: str = "src", seed: int = 0
    ) -> None:
        super().__init__(graph, etype, size, seed=seed)
        if end not in ("src", "dst"):
            raise InvalidRequest(f"end={end!r}: expected 'src' or 'dst'")
        self.end = end

    def _description_fields(self) -> tuple[int | str, ...]:
        return self.size, self.end

    def _draw_nodes(self, key: int) -> Ids:
        edges = self.graph.sample_edges(
            self.size, self.etype, weighted=False, seed=permutations.key_of(key, _EDGES)
        )
        return edges.src if self.end == "src" else edges.dst


class EdgeSampler(Sampler):
    """Sampler of both ends of edges, by 1 / deg(source) + 1 / deg(destination).

    Edges are sampled with replacement. Degrees are out-degrees of sources and in-degrees of
    destinations, so the space must keep both directions. On undirected graphs this is the paper's
    algorithm 2. PyG's ``GraphSAINTEdgeSampler`` takes reciprocals twice: it samples edges in
    proportion to the in-degree of the source plus the out-degree of the destination, without
    replacement.

    Parameters
    ----------
    graph : Graph
        Graph to sample, as in `Sampler`; its space has ``direction: both``.
    etype : str
        Edge type from a node type to itself.
    size : int
        Number of edges per subgraph.
    seed : int, default 0
        Seed of all batches.

    Notes
    -----
    A node is sampled uniformly, then one of its out-edges or in-edges, each side with probability
    1/2, uniformly. If it has none, another node is sampled. The resulting edges are in proportion
    to 1 / deg + 1 / deg, and no degree is read.
    """

    def __init__(self, graph: Graph, etype: str, size: int, *, seed: int = 0) -> None:
        super().__init__(graph, etype, size, seed=seed)
        if not graph.schema.has_in:
            raise InvalidRequest(
                f"space {graph.space!r} with direction: out: expected direction: both, because "
                "this sampler reads edges from both ends; create a space with direction: both in "
                "its schema, and load the graph into it"
            )

    def ends(self, key: int) -> tuple[Ids, Ids]:
        """Return the sources and destinations of the edges of a key.

        Parameters
        ----------
        key : int
            Key of the subgraph.

        Returns
        -------
        src, dst : ndarray of int64, shape (size,)
            Ends of the edges.

        Raises
        ------
        InvalidRequest
            If too few nodes have edges of the type.
        """
        src, dst, missing = [], [], self.size
        for block in range(_MAX_BLOCKS):
            if not missing:
                break
            block_key = permutations.key_of(key, block)
            attempts = 2 * missing + 16
            local_nodes = self.graph.sample_nodes(
                attempts, self.ntype, weighted=False, seed=permutations.key_of(block_key, _NODES)
            ).nodes
            out = (
                permutations.key_stream(permutations.key_of(block_key, _SIDE), attempts)
                >> np.uint64(63)
                == 0
            )
            remote_nodes = np.empty(attempts, np.int64)
            for side, direction, tag in ((out, "out", _OUT), (~out, "in", _IN)):
                sample = self.graph.sample_neighbors(
                    local_nodes[side],
                    self.etype,
                    1,
                    weighted=False,
                    weights=False,
                    direction=direction,
                    seed=permutations.key_of(block_key, tag),
                )
                remote_nodes[side] = sample.nodes[:, 0]
            accepted = np.flatnonzero(remote_nodes >= 0)[:missing]
            src.append(np.where(out, local_nodes, remote_nodes)[accepted])
            dst.append(np.where(out, remote_nodes, local_nodes)[accepted])
            missing -= len(accepted)
        if missing:
            raise InvalidRequest(
                f"size={self.size}: found {self.size - missing} edges in {_MAX_BLOCKS} rounds, "
                f"because few nodes have edges of {self.etype}; use NodeSampler or "
                f"RandomWalkSampler"
            )
        return np.concatenate(src), np.concatenate(dst)

    def _draw_nodes(self, key: int) -> Ids:
        return np.concatenate(self.ends(key))


class RandomWalkSampler(Sampler):
    """Sampler of the nodes of uniform walks from uniformly sampled roots.

    Parameters
    ----------
    graph : Graph
        Graph to sample, as in `Sampler`.
    etype : str
        Edge type from a node type to itself.
    size : int
        Number of walks per subgraph; roots are sampled with replacement.
    length : int
        Steps per walk; a walk ends at a dead end.
    seed : int, default 0
        Seed of all batches.
    """

    def __init__(self, graph: Graph, etype: str, size: int, length: int, *, seed: int = 0) -> None:
        super().__init__(graph, etype, size, seed=seed)
        self.length = validation.count("length", length)

    def _description_fields(self) -> tuple[int | str, ...]:
        return self.size, self.length

    def _draw_nodes(self, key: int) -> Ids:
        roots = self.graph.sample_nodes(
            self.size, self.ntype, weighted=False, seed=permutations.key_of(key, _NODES)
        ).nodes
        walk_nodes: NDArray[np.int64] = self.graph.random_walk(
            roots, [self.etype], self.length, weighted=False, seed=permutations.key_of(key, _WALKS)
        ).nodes
        return walk_nodes.reshape(-1)
