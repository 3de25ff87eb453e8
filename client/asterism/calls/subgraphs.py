"""Subgraphs around seeds, numbered as models want them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from numpy.typing import ArrayLike, NDArray

from asterism.calls import decoding, validation
from asterism.calls.base import TYPE_PER_NODE, GraphCalls, Names, parse_direction
from asterism.calls.fanouts import FeatureSelection, requested_features
from asterism.calls.string_ids import NodeTypes
from asterism.records.samples import Subgraph
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import graphd_pb2 as graphd_pb


class _RequestPart(NamedTuple):
    """A part of a request."""

    fields: dict[str, Any]
    """Of its head."""
    arrays: dict[str, NDArray[Any]]


class SubgraphCalls(GraphCalls):
    """The part of a graph that batches are made of."""

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
        """Seeds, sampled neighbors of theirs, and theirs, hop by hop, as one subgraph with nodes
        numbered from 0.

        Parameters
        ----------
        seeds : int64[m]
            Node ids; -1 is no node.
        fanouts : list of int, or dict of edge type to list of int
            Neighbors per node of each hop: of each edge type, or as a dict says; 0 is none, -1 all.
        etypes : str or list of str, optional
            Edge types to follow, in the order in which they are; None: those of ``fanouts`` where
            it is a dict, else all.
        ntype : str or int[m], optional
            The type of the seeds, or of each. It may be left out where all edge types start at the
            same one.
        weighted, weight, where, replace
            As of `sample_neighbors`; each edge type is drawn from by itself.
        direction : {"out", "in"}
            Along the edges, or against them: "in" gives each node's messages, as PyG and DGL
            sample.
        disjoint : bool
            A tree of its own for every seed: a node that several seeds reach is there several times
            (`Subgraph.batch`).
        expand : {"first", "every"}
            Whether a node's neighbors are drawn in the hop after the one that met it (PyG), or in
            every hop from then on (DGL's blocks).
        times : int64[m] or float64[m], optional
            The time of each seed and its whole tree, ``disjoint``, as in PyG: no later edge is
            seen, but of types that have no time. One must.
        strict, strategy, edge_times
            As of `sample_neighbors`; of edge types without a time "last" draws.
        weights, edge_ids : bool
            Whether to give these too.
        node_features : list of str, or dict of node type to list of str
            Features of the nodes to bring along, as of `sample_fanout`: a row for each of
            ``nodes``.

        Returns
        -------
        Subgraph

        Notes
        -----
        Nodes are numbered per type: seeds first, then by first appearance (hop, edge type, source,
        k). Draws do not depend on the rest of the batch.

        Examples
        --------
        >>> batch = graph.sample_subgraph(  # doctest: +SKIP
        ...     [3, 7], [15, 10], "cites", direction="in"
        ... )
        """
        _, request_part = self._khop_request(
            seeds, fanouts, etypes, ntype, direction, expand, version
        )
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
            "sample_subgraph", decoding.subgraph, head, request_part.arrays | time_arrays
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
        """A subgraph around each seed: nodes sampled hop by hop, and all edges among them (ShaDow).

        Parameters
        ----------
        seeds : int64[m]
            Node ids, the roots; -1 is no node. One that is given twice has two subgraphs, with
            draws of their own.
        fanouts, etypes
            As of `sample_subgraph`: how nodes are met.
        among : str or list of str, optional
            The types of the edges among the nodes that are given; None: those that are followed.
        ntype, weighted, weight, replace, direction
            As of `sample_subgraph`.
        where : str
            As of `sample_neighbors`, of the edges that are followed and of those that are given.
        disjoint : bool
            A component of its own for every seed (Zeng et al., and PyG); otherwise one subgraph of
            all seeds' nodes (DGL).
        expand : {"first", "every"}
            As of `sample_subgraph`. DGL's ``ShaDowKHopSampler`` expands all nodes in every hop, by
            its fanouts from the last to the first; PyG's a node in the hop after the one that met
            it, as often as it was met.
        weights, edge_ids, node_features
            As of `sample_subgraph`.

        Returns
        -------
        Subgraph
            ``seeds`` says where each root is, ``batch`` which seed's component a node is of: those
            of a component are side by side, the root first, the others in the order in which they
            were met. Edges as of `induced_subgraph`.

        Raises
        ------
        InvalidRequest
            As of `sample_subgraph`; also where the edges do not fit into one reply.

        Notes
        -----
        There are no times here: all edges among nodes would show a seed what came after it.

        Zeng et al. 2021, *Decoupling the depth and scope of graph neural networks*, NeurIPS,
        section 3.3. The nodes are those of `sample_subgraph` with the same arguments and seed, to
        the last one; draws are keyed by (hop, edge type, the seed's place, node, k).

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
        head = graphd_pb.SampleEgoSubgraphsRequest(
            seed=validation.seed(seed),
            edge_types=edge_types
            if among is None
            else self._session.edge_type_ids(self.space, validation.type_names("among", among)),
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
        return self._call("sample_ego_subgraphs", decoding.ego_subgraphs, head, request_part.arrays)

    def induced_subgraph(
        self,
        nodes: ArrayLike,
        etypes: Names = None,
        *,
        indptr: ArrayLike | None = None,
        ntype: NodeTypes = None,
        weight: str = "",
        where: str = "",
        direction: str = "out",
        weights: bool = False,
        edge_ids: bool = True,
        node_features: FeatureSelection = None,
        version: int | None = None,
    ) -> Subgraph:
        """All edges among some nodes, as one subgraph with nodes numbered from 0.

        Parameters
        ----------
        nodes : int64[m]
            Node ids; -1 is no node. One that is given twice is there once.
        etypes : str or list of str, optional
            Edge types; None: all.
        indptr : int64[g + 1], optional
            The nodes are g groups, group i being ``nodes[indptr[i]:indptr[i + 1]]``: each has a
            component of its own, in which a node of several groups is there again, and edges join
            nodes of one group only.
        ntype : str or int[m], optional
            The type of the nodes, or of each. It may be left out where all edge types begin and end
            at the same one, and in a space of global ids.
        weight, where
            As of `neighbors`: the weights to give, and which edges count.
        direction : {"out", "in"}
            Whether edges are read at their sources or at their destinations (where the schema keeps
            in-copies). They are the same ones, in another order.
        weights, edge_ids : bool
            Whether to give these too.
        node_features : list of str, or dict of node type to list of str
            As of `sample_subgraph`.

        Returns
        -------
        Subgraph
            ``seeds`` has the number of each given node, ``batch`` the group of each node where
            there are groups; nothing is drawn, so that ``seed`` is 0 and ``token`` empty. Edges are
            by (number of the end that ``direction`` begins at, neighbor id, edge id).

        Raises
        ------
        InvalidRequest
            Where the edges do not fit into one reply: ask for fewer nodes, or without edge ids.

        Notes
        -----
        Parallel edges are all there, and loops. A node that the version does not have keeps its
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
        reply = self._session.read("induced_subgraph", head, arrays)
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
        """The edge types that are followed, and what a request says of how nodes are met."""
        if expand not in ("first", "every"):
            raise InvalidRequest(f"expand {expand!r}: expected 'first' or 'every'")
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
        """The node type and sections of nodes that are at either end of edges."""
        schema = self.schema
        ends = {
            end
            for e in edge_types
            for end in (schema.edge_types[e].src_type, schema.edge_types[e].dst_type)
        }
        if ntype is None and len(ends) > 1:
            if schema.ids != "global":
                type_names = [schema.edge_types[e].name for e in edge_types]
                raise InvalidRequest(
                    f"edge types {type_names} join nodes of several types; say ntype, one or "
                    "per node"
                )
            return TYPE_PER_NODE, {"nodes": self._ids("nodes", nodes, None, version)}
        return self._seed_sections(
            nodes,
            next(iter(ends)) if ntype is None and ends else ntype,
            edge_types,
            common_pb.OUT,
            version=version,
        )
