"""Negative sampling: nodes of given types, and nodes outside given sets."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from asterism.calls import decoding, validation
from asterism.calls.base import CandidateTypes, GraphCalls, Names
from asterism.calls.string_id_hashing import NodeTypes
from asterism.records.samples import NodeRows
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import graphd_pb2 as graphd_pb


class NegativeCalls(GraphCalls):
    """Calls that sample nodes to contrast with others."""

    def sample_nodes_like(
        self,
        src: ArrayLike,
        n: int,
        *,
        ntype: NodeTypes = None,
        weighted: bool = True,
        weight: str = "",
        where: str = "",
        unknown: str = "error",
        probabilities: bool = False,
        seed: int | None = None,
        version: int | None = None,
    ) -> NodeRows:
        """Sample n nodes of the type of each node, from the whole graph.

        Parameters
        ----------
        src : array_like of int64, shape (m,)
            Node ids.
        n : int
            Nodes to sample per row.
        ntype : str, or array_like of int, shape (m,), optional
            Node type of all nodes by name, or of each by type id. If given, nodes are not looked
            up, and only -1 means "no node". Not needed if ids are global.
        weighted : bool, default True
            Sample in proportion to node weights. False: uniformly.
        weight : str, default ""
            Name of the node weights: a weight table of every type that may be sampled. "": the
            nodes' own weights.
        where : str, default ""
            Filter on the sampled nodes, as in `sample_nodes`.
        unknown : {"error", "none"}, default "error"
            Raise for a node that does not exist, or return a row of -1.
        probabilities : bool, default False
            Return the probability of each draw: its share of the weight of its type.
        seed : int, optional
            Seed of the call. None: a random one, which the record returns.
        version : int, optional
            Version to read. None: the version of this graph, or the current one.

        Returns
        -------
        NodeRows
            ``nodes`` ndarray of int64, shape (m, n); ``types`` int32, shape (m, n).

        Raises
        ------
        NotFound
            If a node does not exist (with ``unknown="error"``), or a type has nothing to sample
            from.
        InvalidRequest
            If an argument is invalid.

        Notes
        -----
        Draw k of row i depends on the seed, the type and ``i * n + k`` only.

        Examples
        --------
        >>> graph.sample_nodes_like([3, 17], 2, seed=1).nodes.shape  # doctest: +SKIP
        (2, 2)
        """
        if unknown not in ("error", "none"):
            raise InvalidRequest(f"unknown={unknown!r}: expected 'error' or 'none'")
        node_type, arrays = self._type_sections("src", src, ntype, version)
        head = graphd_pb.SampleNodesLikeRequest(
            space=self.space,
            version=self._version(version),
            seed=validation.seed(seed),
            node_type=node_type,
            count=validation.count("n", n),
            uniform=not weighted,
            allow_unknown=unknown == "none",
            want_probabilities=probabilities,
            weight=weight,
            where=where,
        )
        return self._call("sample_nodes_like", decoding.nodes_like, head, arrays)

    def sample_negatives(
        self,
        pairs: ArrayLike,
        n: int,
        ntype: Names = None,
        *,
        weighted: bool = True,
        weight: str = "",
        where: str = "",
        shared: bool = False,
        exclude: validation.Exclusions = None,
        exclude_edges: Names = None,
        probabilities: bool = False,
        seed: int | None = None,
        version: int | None = None,
    ) -> NodeRows:
        """Sample n negatives for each pair, or n for all pairs together.

        Negatives are nodes that are not among the positives of a row.

        Parameters
        ----------
        pairs : array_like of int64, shape (m,) or (m, 2)
            One row of negatives is sampled for each entry. In pairs (source, destination) the
            destination is a positive; sources alone have no known positives.
        n : int
            Negatives per row.
        ntype : str or list of str, optional
            Node types of the negatives, together. None: all.
        weighted : bool, default True
            Sample in proportion to node weights. False: uniformly.
        weight : str, default ""
            Name of the node weights: a weight table such as ``pow(degree, 0.75)`` of a column. "":
            the nodes' own weights.
        where : str, default ""
            Filter on the negatives, as in `sample_nodes`.
        shared : bool, default False
            Sample one row of n for the whole batch; it leaves out the positives of every pair.
        exclude : (indptr, ids), RaggedNeighbors, or array_like of int64, shape (m, k), optional
            Further positives of each row; -1 means none.
        exclude_edges : str or list of str, optional
            Edge types. Destinations of such edges from a row's source are left out too, so that no
            negative is a true edge. The neighbors of sources are not read; instead, sources are
            checked for an edge to each draw, whatever their degree.
        probabilities : bool, default False
            Return the probability of each draw: its share of the weight of all nodes that its row
            does not leave out.
        seed : int, optional
            Seed of the call. None: a random one, which the record returns.
        version : int, optional
            Version to read. None: the version of this graph, or the current one.

        Returns
        -------
        NodeRows
            ``nodes`` ndarray of int64, shape (m, n), or (1, n) if shared; ``types`` int32 of the
            same shape. -1 where a row leaves nothing to sample.

        Raises
        ------
        NotFound
            If there is nothing to sample from at all.
        InvalidRequest
            If positives are left out among several types of a space with per-type ids: sample type
            by type. If no edge of ``exclude_edges`` leads to the sampled types. If ``shared`` or
            ``probabilities`` is combined with ``exclude_edges`` and the neighbors of all sources,
            which are then read, do not fit into one reply.

        Notes
        -----
        Draws are independent: node v has probability w_v / (the weight of all nodes that its row
        does not leave out). Draw k of row i depends on the seed and ``i * n + k`` only, unless the
        row leaves it out; then it is redrawn until it is allowed.

        Examples
        --------
        >>> edges = graph.sample_edges(512, "cites")  # doctest: +SKIP
        >>> pairs = np.stack([edges.src, edges.dst], axis=1)  # doctest: +SKIP
        >>> graph.sample_negatives(pairs, 5, "paper", exclude_edges="cites").nodes  # doctest: +SKIP
        """
        types = CandidateTypes(
            self._session.node_type(self.space, name)[0]
            for name in validation.type_names("ntype", ntype)
        )
        edge_types = [
            self._session.edge_type(self.space, name)[0]
            for name in validation.type_names("exclude_edges", exclude_edges)
        ]
        pair_ids = self._resolve_pairs(pairs, types or None, edge_types, version)
        arrays = validation.exclusion_sections(
            pair_ids, self._resolve_exclusions(exclude, types or None, version), shared=shared
        )
        if edge_types:
            arrays["sources"] = validation.pair_sources(pair_ids)
        head = graphd_pb.SampleNegativesRequest(
            space=self.space,
            version=self._version(version),
            seed=validation.seed(seed),
            types=types,
            rows=1 if shared else len(np.asarray(pairs)),
            count=validation.count("n", n),
            uniform=not weighted,
            want_probabilities=probabilities,
            weight=weight,
            where=where,
            exclude_edge_types=edge_types,
        )
        return self._call("sample_negatives", decoding.negatives, head, arrays)
