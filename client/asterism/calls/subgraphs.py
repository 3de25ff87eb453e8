"""Subgraphs around seeds, with nodes numbered as models expect them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from numpy.typing import ArrayLike, NDArray

from asterism.calls import decoding, validation
from asterism.calls.base import TYPE_PER_NODE, GraphCalls, Names, parse_direction
from asterism.calls.excluded_edges import EdgeExclusion, ReverseTypes
from asterism.calls.fanout_sampling import FeatureSelection, requested_features
from asterism.calls.string_id_hashing import NodeTypes
from asterism.records.samples import Subgraph
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import graphd_pb2 as graphd_pb


class _RequestPart(NamedTuple):
    """Fields and sections that two requests have in common."""

    fields: dict[str, Any]
    """Fields of the request's head."""
    arrays: dict[str, NDArray[Any]]


class SubgraphCalls(GraphCalls):
    """Calls that return subgraphs for training batches."""

    def sample_subgraph(
        self,
        seeds: ArrayLike,
        fanouts: Sequence[int] | Mapping[str, Sequence[int]],
        etypes: Names = None,
        *,
        ntype: NodeTypes = None,
        weighted: bool = True,
        weight: str = "",
        where: str = "",
        exclude: EdgeExclusion = None,
        reverse_types: ReverseTypes = None,
        replace: bool = False,
        direction: str = "out",
        disjoint: bool = False,
        expand: str = "first",
        times: ArrayLike | None = None,
        strict: bool = False,
        strategy: str = "uniform",
        edge_times: bool = False,
        weights: bool = False,
        edge_ids: bool = True,
        node_features: FeatureSelection = None,
        seed: int | None = None,
        version: int | None = None,
    ) -> Subgraph:
        """Sample neighbors of seeds hop by hop into one subgraph with nodes numbered from 0.

        Parameters
        ----------
        seeds : array_like of int64, shape (m,)
            Seed nodes. -1 means "no node".
        fanouts : list of int, or dict of str to list of int
            Neighbors per node and hop: for every edge type, or by edge type. 0: none. -1: all.
        etypes : str or list of str, optional
            Edge types to follow, in this order. None: the keys of ``fanouts`` if it is a dict, else
            all.
        ntype : str, or array_like of int, shape (m,), optional
            Node type of all seeds by name, or of each seed by type id. Needed only where the edge
            types start at several node types and ids are per type.
        weighted : bool, default True
            Sample in proportion to edge weights. False: uniformly. Edge types are sampled
            independently.
        weight : str, default ""
            Name of the edge weights: a weight table that every one of the edge types has. "": the
            edges' own weights.
        where : str, default ""
            Filter on the edges, as in `sample_neighbors`.
        exclude, reverse_types : optional
            Edges that are as if they did not exist, as in `sample_neighbors`.
        replace : bool, default False
            Sample with replacement. False: distinct edges; a node with too few edges returns all of
            them.
        direction : {"out", "in"}, default "out"
            Follow edges forward, or in reverse. "in" reaches the nodes that send messages to a
            node, as PyG and DGL do.
        disjoint : bool, default False
            Build a separate tree per seed. A node that several seeds reach occurs several times
            (`Subgraph.batch`).
        expand : {"first", "every"}, default "first"
            Sample the neighbors of a node in the hop after it was reached (PyG), or in every hop
            from then on (DGL's blocks).
        times : array_like of int64 or float64, shape (m,), optional
            Time of each seed, which applies to its whole tree; needs ``disjoint``, as in PyG. Later
            edges are ignored, except those of edge types without times. At least one edge type must
            have times.
        strict : bool, default False
            Ignore edges of exactly that time too.
        strategy : {"uniform", "last"}, default "uniform"
            Choice among the edges up to that time, as in `sample_neighbors`. Edge types without
            times are always sampled.
        edge_times : bool, default False
            Return the times of edges; needs ``times``.
        weights : bool, default False
            Return the edge weights, those that ``weight`` names.
        edge_ids : bool, default True
            Return the edge ids.
        node_features : list of str, or dict of str to list of str, optional
            Node features to return in the same request, one row for each of ``nodes``: names by
            node type, or one list of names, of which each node type returns those that it has.
        seed : int, optional
            Seed of the call. None: a random one, which the record returns.
        version : int, optional
            Version to read. None: the version of this graph, or the current one.

        Returns
        -------
        Subgraph
            Nodes by type, edges by type as positions of their ends, and what was requested of them.

        Raises
        ------
        InvalidRequest
            If arguments do not fit together, or the result does not fit into one reply.
        NotFound
            If there is no such edge type, weight table, feature or version.

        Notes
        -----
        Nodes are numbered per type: seeds first, then by first appearance (hop, edge type, source,
        k). The sample of a node does not depend on the rest of the batch.

        Examples
        --------
        >>> batch = graph.sample_subgraph(  # doctest: +SKIP
        ...     [3, 7], [15, 10], "cites", direction="in"
        ... )
        """
        edge_types, request_part = self._khop_request(
            seeds, fanouts, etypes, ntype, direction, expand, version
        )
        excluded = self._exclusion_sections(exclude, reverse_types, edge_types, version)
        temporal_filter, time_arrays = validation.temporal_filter(
            times,
            len(request_part.arrays["nodes"]),
            strict=strict,
            strategy=strategy,
            edge_times=edge_times,
        )
        head = graphd_pb.SampleSubgraphRequest(
            seed=validation.seed(seed),
            replace=replace,
            uniform=not weighted,
            weight=weight,
            where=where,
            disjoint=disjoint,
            want_edge_ids=edge_ids,
            want_weights=weights,
            node_features=requested_features(self.schema, node_features),
            temporal_filter=temporal_filter,
            **request_part.fields,
        )
        return self._call(
            "sample_subgraph",
            decoding.subgraph,
            head,
            request_part.arrays | time_arrays | excluded,
        )

    def sample_ego_subgraphs(
        self,
        seeds: ArrayLike,
        fanouts: Sequence[int] | Mapping[str, Sequence[int]],
        etypes: Names = None,
        *,
        among: Names = None,
        ntype: NodeTypes = None,
        weighted: bool = True,
        weight: str = "",
        where: str = "",
        exclude: EdgeExclusion = None,
        reverse_types: ReverseTypes = None,
        replace: bool = False,
        direction: str = "out",
        disjoint: bool = True,
        expand: str = "first",
        weights: bool = False,
        edge_ids: bool = True,
        node_features: FeatureSelection = None,
        seed: int | None = None,
        version: int | None = None,
    ) -> Subgraph:
        """Sample a subgraph around each seed, with all edges among its nodes (ShaDow).

        Parameters
        ----------
        seeds : array_like of int64, shape (m,)
            Roots. -1 means "no node". A repeated seed has several, independently sampled subgraphs.
        fanouts : list of int, or dict of str to list of int
            Neighbors per node and hop: for every edge type, or by edge type. 0: none. -1: all.
        etypes : str or list of str, optional
            Edge types to follow, in this order. None: the keys of ``fanouts`` if it is a dict, else
            all.
        among : str or list of str, optional
            Types of the edges to return. None: the followed ones.
        ntype : str, or array_like of int, shape (m,), optional
            Node type of all seeds by name, or of each seed by type id. Needed only where the edge
            types start at several node types and ids are per type.
        weighted : bool, default True
            Sample in proportion to edge weights. False: uniformly. Edge types are sampled
            independently.
        weight : str, default ""
            Name of the edge weights: a weight table that every one of the edge types has. "": the
            edges' own weights.
        where : str, default ""
            Filter on the edges, as in `sample_neighbors`; it applies to the edges that are followed
            and to those that are returned.
        exclude, reverse_types : optional
            Edges that are as if they did not exist, as in `sample_neighbors`.
        replace : bool, default False
            Sample with replacement. False: distinct edges; a node with too few edges returns all of
            them.
        direction : {"out", "in"}, default "out"
            Follow edges forward, or in reverse, as in `sample_subgraph`.
        disjoint : bool, default True
            Build a separate component per seed (Zeng et al., and PyG). False: one subgraph of all
            seeds' nodes (DGL).
        expand : {"first", "every"}, default "first"
            Hops in which a node is expanded, as in `sample_subgraph`. DGL's ``ShaDowKHopSampler``
            expands all nodes in every hop, with its fanouts from last to first. PyG expands a node
            in the hop after it was reached, as often as it was reached.
        weights : bool, default False
            Return the edge weights, those that ``weight`` names.
        edge_ids : bool, default True
            Return the edge ids.
        node_features : list of str, or dict of str to list of str, optional
            Node features to return with the sample, in the same request: names by node type, or one
            list of names, of which each node type returns those that it has.
        seed : int, optional
            Seed of the call. None: a random one, which the record returns.
        version : int, optional
            Version to read. None: the version of this graph, or the current one.

        Returns
        -------
        Subgraph
            ``seeds`` holds the position of each root, ``batch`` the seed of each node's component.
            Nodes of a component are consecutive: the root first, then in the order in
            which they were reached. Edges are ordered as in `induced_subgraph`.

        Raises
        ------
        InvalidRequest
            If arguments do not fit together, or the edges do not fit into one reply.
        NotFound
            If there is no such edge type, weight table, feature or version.

        Notes
        -----
        There is no temporal filter: all edges among the nodes would show a seed events after its
        time.

        Zeng et al. 2021, *Decoupling the depth and scope of graph neural networks*, NeurIPS,
        section 3.3. The nodes equal those of `sample_subgraph` with the same arguments and seed.
        Draws are keyed by (hop, edge type, position of the seed, node, k).

        Examples
        --------
        >>> batch = graph.sample_ego_subgraphs(  # doctest: +SKIP
        ...     papers, [10, 5], "cites", direction="in", seed=3
        ... )
        >>> roots = embeddings["paper"][batch.seeds]  # doctest: +SKIP
        """
        edge_types, request_part = self._khop_request(
            seeds, fanouts, etypes, ntype, direction, expand, version
        )
        returned_types = (
            edge_types
            if among is None
            else self._session.edge_type_ids(self.space, validation.type_names("among", among))
        )
        excluded = self._exclusion_sections(
            exclude, reverse_types, [*edge_types, *returned_types], version
        )
        head = graphd_pb.SampleEgoSubgraphsRequest(
            seed=validation.seed(seed),
            edge_types=returned_types,
            replace=replace,
            uniform=not weighted,
            weight=weight,
            where=where,
            disjoint=disjoint,
            want_edge_ids=edge_ids,
            want_weights=weights,
            node_features=requested_features(self.schema, node_features),
            **request_part.fields,
        )
        return self._call(
            "sample_ego_subgraphs",
            decoding.ego_subgraphs,
            head,
            request_part.arrays | excluded,
        )

    def induced_subgraph(
        self,
        nodes: ArrayLike,
        etypes: Names = None,
        *,
        indptr: ArrayLike | None = None,
        ntype: NodeTypes = None,
        weight: str = "",
        where: str = "",
        exclude: EdgeExclusion = None,
        reverse_types: ReverseTypes = None,
        direction: str = "out",
        weights: bool = False,
        edge_ids: bool = True,
        node_features: FeatureSelection = None,
        version: int | None = None,
    ) -> Subgraph:
        """Return all edges among some nodes as one subgraph with nodes numbered from 0.

        Parameters
        ----------
        nodes : array_like of int64, shape (m,)
            Node ids. -1 means "no node". A repeated node occurs once.
        etypes : str or list of str, optional
            Types of the edges to return. None: all.
        indptr : array_like of int64, shape (g + 1,), optional
            Offsets of g groups of nodes: group i is ``nodes[indptr[i]:indptr[i + 1]]``. Each group
            has a separate component: a node of several groups occurs in each, and edges join only
            nodes of one group.
        ntype : str, or array_like of int, shape (m,), optional
            Node type of all nodes by name, or of each node by type id. Not needed if all edge types
            join nodes of one type, or if ids are global.
        weight : str, default ""
            Name of the weights to return: a weight table of all these edge types. "": the edges'
            own weights.
        where : str, default ""
            Filter on the edges, as in `sample_edges`; edges that do not match are ignored. "": no
            filter.
        exclude, reverse_types : optional
            Edges that are as if they did not exist, as in `sample_neighbors`.
        direction : {"out", "in"}, default "out"
            Read edges at their sources, or at their destinations (where the schema keeps
            in-copies). The edges are the same, in another order.
        weights : bool, default False
            Return the edge weights.
        edge_ids : bool, default True
            Return the edge ids.
        node_features : list of str, or dict of str to list of str, optional
            Node features to return with the sample, in the same request: names by node type, or one
            list of names, of which each node type returns those that it has.
        version : int, optional
            Version to read. None: the version of this graph, or the current one.

        Returns
        -------
        Subgraph
            ``seeds`` holds the number of each given node, ``batch`` the group of each node if there
            are groups. Nothing is sampled, so ``seed`` is 0 and ``token`` is empty. Edges are
            ordered by (number of the end at which ``direction`` reads, neighbor id, edge id).

        Raises
        ------
        InvalidRequest
            If the edges do not fit into one reply: request fewer nodes, or no edge ids.
        NotFound
            If there is no such edge type, weight table, feature or version.

        Notes
        -----
        Parallel edges and self-loops are included. A node that the version does not have keeps its
        number and has no edges.

        Examples
        --------
        >>> found = graph.induced_subgraph([3, 7, 12], "cites")  # doctest: +SKIP
        >>> found.row["paper:cites:paper"], found.col["paper:cites:paper"]  # doctest: +SKIP
        """
        edge_types = self._session.edge_type_ids(
            self.space, validation.type_names("etypes", etypes)
        )
        wire_direction = parse_direction(direction)
        node_type, arrays = self._member_sections(nodes, ntype, edge_types, version)
        if indptr is not None:
            arrays["indptr"] = validation.indptr(indptr, len(arrays["nodes"]))
        excluded = self._exclusion_sections(exclude, reverse_types, edge_types, version)
        head = graphd_pb.InducedSubgraphRequest(
            space=self.space,
            version=self._version(version),
            edge_types=edge_types,
            node_type=node_type,
            direction=wire_direction,
            weight=weight,
            where=where,
            want_edge_ids=edge_ids,
            want_weights=weights,
            node_features=requested_features(self.schema, node_features),
        )
        reply = self._session.read("induced_subgraph", head, arrays | excluded)
        return decoding.induced_subgraph(
            decoding.SamplingCall(
                request=head, arrays=arrays, reply=reply, schema=self.schema, token=""
            )
        )

    def _khop_request(
        self,
        seeds: ArrayLike,
        fanouts: Sequence[int] | Mapping[str, Sequence[int]],
        etypes: Names,
        ntype: NodeTypes,
        direction: str,
        expand: str,
        version: int | None,
    ) -> tuple[list[int], _RequestPart]:
        """Return the edge types to follow, and the request fields that k-hop expansion shares."""
        if expand not in ("first", "every"):
            raise InvalidRequest(f"expand={expand!r}: expected 'first' or 'every'")
        followed = validation.type_names(
            "etypes", list(fanouts) if isinstance(fanouts, Mapping) and etypes is None else etypes
        )
        edge_types = self._session.edge_type_ids(self.space, followed)
        counts = self._fanouts(fanouts, edge_types)
        wire_direction = parse_direction(direction)
        node_type, arrays = self._seed_sections(
            seeds, ntype, edge_types, wire_direction, argument="seeds", version=version
        )
        fields = {
            "space": self.space,
            "version": self._version(version),
            "fanouts": [
                graphd_pb.EdgeTypeFanouts(edge_type=etype, counts=hops)
                for etype, hops in zip(edge_types, counts, strict=True)
            ],
            "node_type": node_type,
            "direction": wire_direction,
            "expand_all_hops": expand == "every",
        }
        return edge_types, _RequestPart(fields, arrays)

    def _member_sections(
        self, nodes: ArrayLike, ntype: NodeTypes, edge_types: Sequence[int], version: int | None
    ) -> tuple[int, dict[str, NDArray[Any]]]:
        """Return the node type id and sections of nodes that may be at either end of edges."""
        schema = self.schema
        ends = {
            end
            for e in edge_types
            for end in (schema.edge_types[e].src_type, schema.edge_types[e].dst_type)
        }
        if ntype is None and len(ends) > 1:
            if schema.ids != "global":
                type_names = [schema.edge_types[e].name for e in edge_types]
                raise validation.node_type_required(
                    f"etypes={type_names}: expected edge types that join nodes of one type, found "
                    f"{', '.join(sorted(ends))}"
                )
            return TYPE_PER_NODE, {"nodes": self._ids("nodes", nodes, None, version)}
        return self._seed_sections(
            nodes,
            next(iter(ends)) if ntype is None and ends else ntype,
            edge_types,
            common_pb.OUT,
            version=version,
        )
