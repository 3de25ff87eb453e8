"""GraphSAINT: training on subgraphs that are drawn as a whole, and the coefficients that make up
for what is drawn too often.

Zeng et al. 2020, *GraphSAINT: graph sampling based inductive learning method*, ICLR. Nodes are
drawn, of one type along one edge type, and all edges among them come with them. Batch i of a
sampler is a function of its seed and i alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count as numbers

import numpy as np
from numpy.typing import NDArray

from asterism import hashing
from asterism.calls import validation
from asterism.graph import Graph
from asterism.records.arrays import ArrayRecord
from asterism.records.samples import Ids, Subgraph, Weights
from asterism_proto.errors import InvalidRequest

__all__ = ["EdgeSampler", "NodeSampler", "Normalization", "RandomWalkSampler", "Sampler"]

_MAX_NORM = 1e4
_UNSEEN = 0.1
"""Stands for a count of 0 where it divides, and for the edge norm of an edge whose node was not met
either; as in PyG.
"""
_BATCH, _COUNTING, _EPOCHS = range(3)
_MAX_BLOCKS = 64
_SIDE, _NODES, _OUT, _IN, _WALKS, _EDGES = range(6)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Normalization(ArrayRecord):
    """How often subgraphs held each node and edge, and the coefficients that follow."""

    nodes: Ids
    """int64 [n]: ids of all nodes of the type, ascending."""
    edges: Ids
    """int64 [e]: ids of all edges of the type, ascending."""
    ends: Ids
    """int64 [e]: the place among ``nodes`` of the end of each edge that messages go to."""
    node_counts: Ids
    """int64 [n]: in how many subgraphs each node was."""
    edge_counts: Ids
    """int64 [e]."""
    batches: int
    """Subgraphs that were counted."""
    version: int

    @property
    def node_norm(self) -> Weights:
        """float32 [n]: what the loss of each node is multiplied by, ``batches / counts / n``: the
        paper's 1 / lambda, over n.
        """
        counts = np.where(self.node_counts > 0, self.node_counts, _UNSEEN)
        return np.asarray(self.batches / counts / len(self.nodes), np.float32)

    @property
    def edge_norm(self) -> Weights:
        """float32 [e]: what the message along each edge is multiplied by: the paper's 1 / alpha,
        how often its end was there for each time that it was, at most 10,000."""
        at_end = self.node_counts[self.ends]
        norm = np.full(len(self.edges), _MAX_NORM)
        np.divide(at_end, self.edge_counts, out=norm, where=self.edge_counts > 0)
        norm[(self.edge_counts == 0) & (at_end == 0)] = _UNSEEN
        return np.asarray(np.minimum(norm, _MAX_NORM), np.float32)

    def of(self, found: Subgraph) -> tuple[Weights, Weights]:
        """The coefficients of a subgraph's nodes and edges, in its order.

        Parameters
        ----------
        found : Subgraph
            From the sampler that counted.

        Returns
        -------
        node_norm : float32[n]
        edge_norm : float32[k]
        """
        (edges,) = (found.edge_ids or {}).values()
        nodes = np.concatenate(list(found.nodes.values()))  # of the other types there are none
        return self.node_norm[np.searchsorted(self.nodes, nodes)], self.edge_norm[
            np.searchsorted(self.edges, edges)
        ]


class Sampler(ABC):
    """What the samplers have in common.

    Parameters
    ----------
    graph : Graph
        Where it is at no version (`Graph.at`, `Graph.pin`), the sampler stays at its current one;
        only a pin holds that.
    etype : str
        An edge type from one node type to itself.
    size : int
        What is drawn for a subgraph, with replacement: nodes, edges, or walks.
    seed : int
        All batches follow from it.
    """

    def __init__(self, graph: Graph, etype: str, size: int, *, seed: int = 0) -> None:
        edge = graph.schema.edge_types[graph.schema.edge_type_id(etype)]
        if edge.src_type != edge.dst_type:
            raise InvalidRequest(
                f"etype {edge.name!r} leads from {edge.src_type} to {edge.dst_type}: "
                "expected one from a node type to itself"
            )
        self.graph = graph if graph.version is not None else graph.at(graph.manifest().version)
        self.etype, self.ntype = edge.name, edge.src_type
        self.size, self.seed = validation.count("size", size, minimum=1), validation.seed(seed)

    def described(self) -> str:
        """What it draws, in a word: two samplers of one description draw the same."""
        return (
            f"{type(self).__name__}({self.etype}, "
            f"{', '.join(map(str, self._description_fields()))}, seed={self.seed})"
        )

    def _description_fields(self) -> tuple[int | str, ...]:
        return (self.size,)

    @abstractmethod
    def _draw_nodes(self, key: int) -> Ids:
        """Nodes as they are drawn, some of them several times."""

    def nodes(self, i: int) -> Ids:
        """The nodes of batch i, ascending; int64[n]."""
        return self._nodes(_BATCH, validation.count("i", i))

    def _nodes(self, stream: int, i: int) -> Ids:
        nodes = self._draw_nodes(hashing.key_of(self.seed, hashing.SUBGRAPH, stream, i))
        ascending = np.sort(
            nodes[nodes >= 0]
        )  # np.unique hashes, which takes some thousands of ids several times as long
        return ascending[np.diff(ascending, prepend=-1) > 0]

    def batch(self, i: int) -> Subgraph:
        """Batch i: its nodes, and all edges among them.

        Returns
        -------
        Subgraph
            As of `Graph.induced_subgraph`, nodes ascending by id, with edge ids.
        """
        return self._induced(self.nodes(i))

    def _induced(self, nodes: Ids) -> Subgraph:
        return self.graph.induced_subgraph(nodes, self.etype)

    def keyed(self, key: int) -> Subgraph:
        """The subgraph of a key, for epochs that count their batches themselves:
        `asterism.torch.SaintBatches`. As of `batch`, of another stream.
        """
        return self._induced(self._nodes(_EPOCHS, key))

    def batches(self, start: int = 0) -> Iterator[Subgraph]:
        """Batches from ``start`` on, without end: a trainer that had n of them goes on at n."""
        return (self.batch(i) for i in numbers(validation.count("start", start)))

    def normalize(
        self, coverage: float, *, known: Normalization | None = None, to: str = "dst"
    ) -> Normalization:
        """Count what subgraphs hold, until they held ``coverage`` nodes for each that there is.

        Parameters
        ----------
        coverage : float
            PyG's ``sample_coverage``.
        known : Normalization, optional
            To go on from: the same sampler's, of a lesser coverage. The result is as if it were
            counted in one go.
        to : {"dst", "src"}
            The end of an edge that messages go to: the paper has those of an undirected graph, PyG
            takes ``edge_index[0]``, which is "src".

        Returns
        -------
        Normalization
            Over all nodes and edges of the types, in arrays here: 16 bytes a node, 24 an edge.

        Raises
        ------
        InvalidRequest
            Where ``known`` is of another version, or subgraphs have no nodes.
        """
        if to not in ("dst", "src"):
            raise InvalidRequest(f"to {to!r}: expected 'dst' or 'src'")
        target = validation.number("coverage", coverage, 0, 1e9)
        base = self._zero_counts(to) if known is None else known
        assert self.graph.version is not None
        if base.version != self.graph.version:
            raise InvalidRequest(
                f"known is of version {base.version}, this sampler at {self.graph.version}; "
                "count anew"
            )
        node_counts, edge_counts, i = base.node_counts.copy(), base.edge_counts.copy(), base.batches
        node_total = int(node_counts.sum())
        while node_total < target * len(base.nodes):
            nodes = self._nodes(_COUNTING, i)
            if not len(nodes):
                raise InvalidRequest(
                    f"batch {i} has no nodes: there is nothing to draw along {self.etype}"
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
        """All nodes and edges, none of them counted."""
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
    """Nodes in proportion to their degree: the ends of edges that are drawn uniformly, with
    replacement.

    Parameters
    ----------
    graph, etype, size, seed
        As of `Sampler`.
    end : {"src", "dst"}
        By out-degree, as PyG's ``GraphSAINTNodeSampler`` (sources of uniform edges), or by
        in-degree. The paper's is by the squared norms of the normalised adjacency's columns.

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
            raise InvalidRequest(f"end {end!r}: expected 'src' or 'dst'")
        self.end = end

    def _description_fields(self) -> tuple[int | str, ...]:
        return self.size, self.end

    def _draw_nodes(self, key: int) -> Ids:
        edges = self.graph.sample_edges(
            self.size, self.etype, weighted=False, seed=hashing.key_of(key, _EDGES)
        )
        return edges.src if self.end == "src" else edges.dst


class EdgeSampler(Sampler):
    """Both ends of edges drawn with probability in proportion to 1 / deg(source) + 1 /
    deg(destination), with replacement.

    Degrees are out-degrees of sources and in-degrees of destinations, so that the space keeps both
    directions. The paper's algorithm 2, where the graph is undirected. PyG's
    ``GraphSAINTEdgeSampler`` takes reciprocals twice: its edges are drawn in proportion to the
    in-degree of the source plus the out-degree of the destination, and without replacement.

    Parameters
    ----------
    graph, etype, size, seed
        As of `Sampler`.

    Notes
    -----
    A node is drawn uniformly, then one of its out-edges or in-edges, either with probability 1/2,
    uniformly; where it has none, another node is. What comes is in proportion to 1 / deg + 1 / deg,
    and no degree is asked for."""

    def __init__(self, graph: Graph, etype: str, size: int, *, seed: int = 0) -> None:
        super().__init__(graph, etype, size, seed=seed)
        if not graph.schema.has_in:
            raise InvalidRequest(
                f"space {graph.space!r} keeps out-edges only: edges by the degrees of both "
                "ends need `direction: both`"
            )

    def ends(self, key: int) -> tuple[Ids, Ids]:
        """Sources and destinations of the edges of a key; int64[size] each."""
        src, dst, missing = [], [], self.size
        for block in range(_MAX_BLOCKS):
            if not missing:
                break
            block_key = hashing.key_of(key, block)
            attempts = 2 * missing + 16
            local_nodes = self.graph.sample_nodes(
                attempts, self.ntype, weighted=False, seed=hashing.key_of(block_key, _NODES)
            ).nodes
            out = (
                hashing.key_stream(hashing.key_of(block_key, _SIDE), attempts) >> np.uint64(63) == 0
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
                    seed=hashing.key_of(block_key, tag),
                )
                remote_nodes[side] = sample.nodes[:, 0]
            accepted = np.flatnonzero(remote_nodes >= 0)[:missing]
            src.append(np.where(out, local_nodes, remote_nodes)[accepted])
            dst.append(np.where(out, remote_nodes, local_nodes)[accepted])
            missing -= len(accepted)
        if missing:
            raise InvalidRequest(
                f"{self.size - missing} of {self.size} edges were found in {_MAX_BLOCKS} "
                f"tries: few nodes have any of {self.etype}"
            )
        return np.concatenate(src), np.concatenate(dst)

    def _draw_nodes(self, key: int) -> Ids:
        return np.concatenate(self.ends(key))


class RandomWalkSampler(Sampler):
    """The nodes of uniform walks from roots that are drawn uniformly, with replacement.

    Parameters
    ----------
    graph, etype, size, seed
        As of `Sampler`; ``size`` walks.
    length : int
        Steps of a walk; it ends at a dead end.
    """

    def __init__(self, graph: Graph, etype: str, size: int, length: int, *, seed: int = 0) -> None:
        super().__init__(graph, etype, size, seed=seed)
        self.length = validation.count("length", length)

    def _description_fields(self) -> tuple[int | str, ...]:
        return self.size, self.length

    def _draw_nodes(self, key: int) -> Ids:
        roots = self.graph.sample_nodes(
            self.size, self.ntype, weighted=False, seed=hashing.key_of(key, _NODES)
        ).nodes
        walk_nodes: NDArray[np.int64] = self.graph.random_walk(
            roots, [self.etype], self.length, weighted=False, seed=hashing.key_of(key, _WALKS)
        ).nodes
        return walk_nodes.reshape(-1)
