"""Sampling of nodes, edges and neighbors, and replay of sampling calls."""

from __future__ import annotations

from typing import Any, cast

from numpy.typing import ArrayLike

from asterism.calls import decoding, replay, validation
from asterism.calls.base import TYPE_PER_NODE, CandidateTypes, GraphCalls, Names, parse_direction
from asterism.calls.excluded_edges import EdgeExclusion, ReverseTypes
from asterism.calls.string_ids import NodeTypes
from asterism.records.samples import (
    EdgeSample,
    NeighborSample,
    NodeSample,
)
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import graphd_pb2 as graphd_pb


class SamplingCalls(GraphCalls):
    """Calls that sample nodes, edges and neighbors.

    Every call takes ``seed`` (an int; None picks a random one, which the record returns, so that
    any call can be replayed) and ``version`` (a published version; None reads the current one,
    which the record returns). The same content, request and seed give the same bytes on any number
    of hosts.
    """

    def sample_nodes(
        self,
        n: int,
        ntype: Names = None,
        *,
        weighted: bool = True,
        weight: str = "",
        where: str = "",
        replace: bool = True,
        probabilities: bool = False,
        seed: int | None = None,
        version: int | None = None,
    ) -> NodeSample:
        """Sample nodes by weight or uniformly.

        Parameters
        ----------
        n : int
            Number of nodes. The first m of n nodes equal those of a request for m.
        ntype : str or list of str, optional
            Node types to sample from, together. None: all.
        weighted : bool, default True
            Sample in proportion to node weights. False: uniformly.
        weight : str, default ""
            Name of the weights: a weight table of all these types
            (`asterism_model.schema.weight_tables.WeightTable`). "": the nodes' own weights.
        where : str, default ""
            Filter on the nodes, such as ``"price > 3 and brand in ('a', 'b')"``. Nodes that do not
            match are ignored; the rest keep their weights. "": no filter. The syntax is in
            `asterism_model.filters.syntax` and docs/sampling.md.
        replace : bool, default True
            Sample with replacement. False: n distinct nodes, in the order of successive draws.
        probabilities : bool, default False
            Return the probability of each draw: its share of the weight of all requested types;
            without replacement, its share of what the earlier draws left. The sample does not
            change.
        seed : int, optional
            Seed of the call. None: a random one, which the record returns.
        version : int, optional
            Version to read. None: the version of this graph, or the current one.

        Returns
        -------
        NodeSample
            ``nodes`` ndarray of int64, shape (n,); ``types`` int32, shape (n,); ``probabilities``
            float64, shape (n,), or None.

        Raises
        ------
        NotFound
            If there is nothing to sample from, or no such version.
        InvalidRequest
            If ``replace=False`` and fewer than n nodes can be sampled, or ``where`` is not a valid
            filter.

        Examples
        --------
        >>> graph.sample_nodes(4, "paper", seed=7).nodes  # doctest: +SKIP
        array([12, 3, 3, 40])
        """
        resolved_seed = validation.seed(seed)
        head = graphd_pb.SampleNodesRequest(
            space=self.space,
            version=self._version(version),
            seed=resolved_seed,
            count=validation.count("n", n),
            types=[
                self._session.node_type(self.space, name)[0]
                for name in validation.type_names("ntype", ntype)
            ],
            uniform=not weighted,
            weight=weight,
            where=where,
            distinct=not replace,
            want_probabilities=probabilities,
        )
        return self._call("sample_nodes", decoding.node_sample, head, {})

    def sample_edges(
        self,
        n: int,
        etype: Names = None,
        *,
        weighted: bool = True,
        weight: str = "",
        where: str = "",
        replace: bool = True,
        probabilities: bool = False,
        seed: int | None = None,
        version: int | None = None,
    ) -> EdgeSample:
        """Sample edges by weight or uniformly.

        Parameters
        ----------
        n : int
            Number of edges.
        etype : str or list of str, optional
            Edge types to sample from, together: a triple, or a relation if it is unambiguous. None:
            all.
        weighted : bool, default True
            Sample in proportion to edge weights. False: uniformly.
        weight : str, default ""
            Name of the weights to sample by and to return: a weight table of all these types. "":
            the edges' own weights.
        where : str, default ""
            Filter on the edges. It may read ``src`` and ``dst``, and features of these nodes:
            ``"rating >= 4 and dst.price < 10"``. Edges that do not match are ignored. "": no
            filter.
        replace : bool, default True
            Sample with replacement. False: n distinct edges, in the order of successive draws.
        probabilities : bool, default False
            Return the probability of each draw, as in `sample_nodes`.
        seed : int, optional
            Seed of the call. None: a random one, which the record returns.
        version : int, optional
            Version to read. None: the version of this graph, or the current one.

        Returns
        -------
        EdgeSample
            ``src``, ``dst`` and ``edge_ids`` ndarray of int64, shape (n,); ``types`` int32, shape
            (n,); ``weights`` float32, shape (n,); ``probabilities`` float64, shape (n,), or None.

        Raises
        ------
        NotFound
            If there is nothing to sample from, or no such version.
        InvalidRequest
            If ``replace=False`` and fewer than n edges can be sampled, or ``where`` is not a valid
            filter.
        """
        resolved_seed = validation.seed(seed)
        head = graphd_pb.SampleEdgesRequest(
            space=self.space,
            version=self._version(version),
            seed=resolved_seed,
            count=validation.count("n", n),
            types=[
                self._session.edge_type(self.space, name)[0]
                for name in validation.type_names("etype", etype)
            ],
            uniform=not weighted,
            weight=weight,
            where=where,
            distinct=not replace,
            want_probabilities=probabilities,
        )
        return self._call("sample_edges", decoding.edge_sample, head, {})

    def sample_neighbors(
        self,
        nodes: ArrayLike,
        etypes: Names,
        n: float,
        *,
        ntype: NodeTypes = None,
        weighted: bool = True,
        weight: str = "",
        where: str = "",
        exclude: EdgeExclusion = None,
        reverse_types: ReverseTypes = None,
        replace: bool = True,
        direction: str = "out",
        times: ArrayLike | None = None,
        strict: bool = False,
        strategy: str = "uniform",
        edge_times: bool = False,
        weights: bool = True,
        edge_ids: bool = False,
        probabilities: bool = False,
        seed: int | None = None,
        version: int | None = None,
    ) -> NeighborSample:
        """Sample n neighbors of each node over the union of the edge types.

        Parameters
        ----------
        nodes : array_like of int64, shape (m,)
            Node ids. -1 means "no node" and has no neighbors. A repeated node is sampled
            independently each time.
        etypes : str or list of str, or None
            Edge types by name. None: all.
        n : int or float
            Neighbors per node. A float above 0 and at most 1 is a share of each node's edges (of
            these types that match ``where``), rounded up: 0.1 of 11 edges are 2. It needs
            ``replace=False``, and is not possible with ``times``.
        ntype : str, or array_like of int, shape (m,), optional
            Node type of all nodes by name, or of each node by type id. Needed only where the edge
            types start at several node types and ids are per type.
        weighted : bool, default True
            Sample in proportion to edge weights. False: uniformly.
        weight : str, default ""
            Name of the weights to sample by and to return: a weight table of all these edge types.
            "": the edges' own weights.
        where : str, default ""
            Filter on the edges, as in `sample_edges`: ``"rating >= 4"``, or on the neighbors,
            ``"dst.price < 10"`` (``src`` if ``direction="in"``). Edges that do not match are
            ignored.
        exclude : EdgeRows, LinkSeeds, EdgeSample, (src, dst), or dict, optional
            Edges that are as if they did not exist, such as the targets of a batch of links:
            records of edges, ``(src, dst)`` or ``(src, dst, edge_ids)`` arrays, or pairs of shape
            (k, 2); by edge type if the call follows several. Without edge ids, or with id -1, all
            edges of that type from the source to the destination are excluded. Edges that do not
            exist have no effect. Samples of other nodes do not change.
        reverse_types : dict of str to str, optional
            Edge type of the reverse edges of an edge type, such as ``{"buys": "bought_by"}`` or
            ``{"cites": "cites"}``. For each excluded edge (u, v) all edges (v, u) of that type are
            excluded too (DGL's ``exclude="reverse_types"``).
        replace : bool, default True
            Sample with replacement. False: distinct edges; a node with n edges or fewer returns all
            of them.
        direction : {"out", "in"}, default "out"
            Follow edges forward, or in reverse (where the schema keeps in-copies).
        times : array_like of int64 or float64, shape (m,), optional
            Time of each node. Later edges, and edges to later nodes, are ignored. Each edge type,
            or the type of its neighbors, must declare the feature that is its time. Not with
            ``probabilities``.
        strict : bool, default False
            Ignore edges of exactly that time too.
        strategy : {"uniform", "last"}, default "uniform"
            "uniform" samples, by weight if ``weighted``. "last" takes the n latest edges, latest
            first, regardless of weight; it needs ``replace=False``. The values are those of PyG's
            ``temporal_strategy``.
        edge_times : bool, default False
            Return the time of each edge; needs ``times``.
        weights : bool, default True
            Return the edge weights, those that ``weight`` names.
        edge_ids : bool, default False
            Return the edge ids.
        probabilities : bool, default False
            Return the probability of each sampled edge: its share of the weight of the node's edges
            of all these types; without replacement, its share of what the node's earlier draws
            left, and 1 where a node returns all its edges. The sample does not change.
        seed : int, optional
            Seed of the call. None: a random one, which the record returns.
        version : int, optional
            Version to read. None: the version of this graph, or the current one.

        Returns
        -------
        NeighborSample
            ``nodes`` ndarray of int64, shape (m, n), padded with -1. Of a share, n is the largest
            number of neighbors of a node.

        Raises
        ------
        InvalidRequest
            If arguments do not fit together, or ``where`` is not a valid filter.
        NotFound
            If there is no such edge type, weight table or version.
        """
        edge_types = self._session.edge_type_ids(
            self.space, validation.type_names("etypes", etypes)
        )
        wire_direction = parse_direction(direction)
        node_type, arrays = self._seed_sections(
            nodes, ntype, edge_types, wire_direction, version=version
        )
        temporal_filter, time_arrays = validation.temporal_filter(
            times, len(arrays["nodes"]), strict=strict, strategy=strategy, edge_times=edge_times
        )
        excluded = self._exclusion_sections(exclude, reverse_types, edge_types, version)
        count, share = validation.neighbors_per_node("n", n, replace=replace)
        resolved_seed = validation.seed(seed)
        head = graphd_pb.SampleNeighborsRequest(
            space=self.space,
            version=self._version(version),
            seed=resolved_seed,
            edge_types=edge_types,
            node_type=node_type,
            count=count,
            share=share,
            replace=replace,
            uniform=not weighted,
            weight=weight,
            where=where,
            direction=wire_direction,
            want_weights=weights,
            want_edge_ids=edge_ids,
            want_probabilities=probabilities,
            temporal_filter=temporal_filter,
        )
        return self._call(
            "sample_neighbors", decoding.neighbor_sample, head, arrays | time_arrays | excluded
        )

    def replay(
        self,
        token: str,
        nodes: ArrayLike | None = None,
        ntype: ArrayLike | None = None,
        *,
        exclude: validation.Exclusions | EdgeExclusion = None,
        reverse_types: ReverseTypes = None,
        times: ArrayLike | None = None,
    ) -> Any:
        """Repeat a sampling call from its token; the record is the same to the bit.

        Parameters
        ----------
        token : str
            ``token`` of a sample. It holds the whole request except the nodes.
        nodes : array_like of int64, shape (m,), optional
            Nodes that the call started from, if it started from nodes.
        ntype : array_like of int, shape (m,), optional
            Type ids of the nodes, if the call had one per node.
        exclude : optional
            Edges that the call excluded; for `sample_negatives`, its exclusions, where ``nodes``
            holds its pairs.
        reverse_types : dict of str to str, optional
            Reverse of edge types, if the call had them.
        times : array_like of int64 or float64, shape (m,), optional
            Times of the nodes, if the call had times.

        Returns
        -------
        record
            The record of the original call, such as `NodeSample`, read from the same version.

        Raises
        ------
        InvalidRequest
            If the token is invalid or belongs to another space, or the nodes differ.
        NotFound
            If the version is no longer kept, or its number now denotes another version.

        Examples
        --------
        >>> first = graph.sample_neighbors(seeds, "cites", 5)  # doctest: +SKIP
        >>> again = graph.replay(first.token, seeds)  # doctest: +SKIP
        """
        call, request = replay.decode_token(token)
        if request.space != self.space:
            raise InvalidRequest(
                f"token of a call to space {request.space!r}: expected one of space "
                f"{self.space!r}; use client.graph({request.space!r})"
            )
        request.version = self._version(request.version)
        node_type: int = getattr(request, "node_type", TYPE_PER_NODE)
        ntypes = (
            CandidateTypes([node_type] if node_type >= 0 else getattr(request, "types", ()))
            or ntype
        )
        if nodes is not None:
            edges = getattr(request, "exclude_edge_types", ())
            nodes = (
                self._resolve_pairs(nodes, ntypes, edges, request.version or None)
                if edges
                else self._as_ids("nodes", nodes, ntypes, request.version or None)
            )
        version = request.version or None
        if isinstance(request, graphd_pb.SampleNegativesRequest):
            exclusions = self._resolve_exclusions(
                cast(validation.Exclusions, exclude), ntypes, version
            )
            arrays = replay.replay_sections(call, request, nodes, exclusions)
        else:
            arrays = replay.replay_sections(call, request, nodes, None)
            if followed := replay.followed_edge_types(request):
                arrays |= self._exclusion_sections(
                    cast(EdgeExclusion, exclude), reverse_types, followed, version
                )
        if ntype is not None and "nodes" in arrays:
            types = validation.as_array("ntype", ntype, "type ids").reshape(-1)
            arrays["types"] = self._types(types, arrays["nodes"])
        if times is not None:
            arrays["times"] = validation.times(times, len(arrays.get("nodes", ())))
        replay.check_nodes(call, request, arrays)
        decode = replay.DECODERS[call.method]
        return self._call(
            call.method,
            decode,
            request,
            arrays,
            check=lambda head: replay.check_version(call, self.space, head),
        )
