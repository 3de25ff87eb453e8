"""Reading what nodes are joined to: all neighbors, the heaviest, degrees and sums of weights."""

from __future__ import annotations

from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asterism.calls import validation
from asterism.calls.base import GraphCalls, Names, parse_direction, version_of
from asterism.calls.string_ids import NodeTypes
from asterism.client_state import expand_edge_types
from asterism.records.samples import EdgeRows, Ids, RaggedNeighbors, TopNeighbors
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import graphd_pb2 as graphd_pb

SORT_KEYS = {None: "", "id": "id", "weight": "weight"}


class NeighborCalls(GraphCalls):
    """What a graph tells of nodes' edges without a draw."""

    def neighbors(
        self,
        nodes: ArrayLike,
        etypes: Names,
        *,
        ntype: NodeTypes = None,
        direction: str = "out",
        weight: str = "",
        where: str = "",
        sort: str | None = None,
        weights: bool = True,
        edge_ids: bool = True,
        version: int | None = None,
    ) -> RaggedNeighbors:
        """All neighbors of each node.

        Parameters
        ----------
        nodes : int64[m]
            Node ids; -1 and unknown ones have no neighbors.
        etypes : str or list of str, or None
            Edge types; None: all.
        ntype, direction, weight, where, weights, edge_ids
            As of `sample_neighbors`.
        sort : {None, "id", "weight"}
            Of each row: by (edge type as asked for, id, edge id); by id over all types; by weight,
            largest first, ties by id.

        Returns
        -------
        RaggedNeighbors
            Row i is ``nodes[indptr[i]:indptr[i + 1]]``, and so for ``types``, ``weights`` and
            ``edge_ids``.
        """
        if sort not in SORT_KEYS:
            raise InvalidRequest(f"sort {sort!r}: expected None, 'id' or 'weight'")
        edge_types = self._session.edge_type_ids(
            self.space, validation.type_names("etypes", etypes)
        )
        wire_direction = parse_direction(direction)
        node_type, arrays = self._seed_sections(
            nodes, ntype, edge_types, wire_direction, version=version
        )
        head = graphd_pb.NeighborsRequest(
            space=self.space,
            version=self._version(version),
            edge_types=edge_types,
            node_type=node_type,
            direction=wire_direction,
            want_weights=weights,
            want_edge_ids=edge_ids,
            sort=SORT_KEYS[sort],
            weight=weight,
            where=where,
        )
        reply = self._session.read("neighbors", head, arrays)
        neighbor_ids: Ids = reply.array("ids", "int64")
        return RaggedNeighbors(
            indptr=reply.array("indptr", "int64"),
            nodes=neighbor_ids,
            types=expand_edge_types(
                neighbor_ids, reply.optional_array("types", "int32"), edge_types
            ),
            weights=reply.array("weights", "float32") if weights else None,
            edge_ids=reply.array("eids", "int64") if edge_ids else None,
            version=version_of(reply.head),
        )

    def top_k_neighbors(
        self,
        nodes: ArrayLike,
        etypes: Names,
        k: int,
        *,
        ntype: NodeTypes = None,
        direction: str = "out",
        edge_ids: bool = False,
        weight: str = "",
        where: str = "",
        version: int | None = None,
    ) -> TopNeighbors:
        """The k heaviest edges of each node, over the union of the edge types.

        Parameters
        ----------
        nodes : int64[m]
            Node ids; -1 and unknown ones have no neighbors.
        etypes : str or list of str, or None
            Edge types; None: all.
        k : int
            Edges per node at most, 1 or more.
        ntype, direction, edge_ids, weight, where
            As of `sample_neighbors`.

        Returns
        -------
        TopNeighbors
            ``nodes`` int64[m, k], heaviest first by the weights of that name, which ``weights``
            has; ties by (id, edge type as asked for, edge id); padded with -1.

        Examples
        --------
        >>> graph.top_k_neighbors([7], "cites", 3).weights  # doctest: +SKIP
        array([[9. , 4.5, 1. ]], dtype=float32)
        """
        count = validation.count("k", k)
        if not count:
            raise InvalidRequest("k 0: expected 1 or more neighbors per node")
        edge_types = self._session.edge_type_ids(
            self.space, validation.type_names("etypes", etypes)
        )
        wire_direction = parse_direction(direction)
        node_type, arrays = self._seed_sections(
            nodes, ntype, edge_types, wire_direction, version=version
        )
        head = graphd_pb.NeighborsRequest(
            space=self.space,
            version=self._version(version),
            edge_types=edge_types,
            node_type=node_type,
            direction=wire_direction,
            want_weights=True,
            want_edge_ids=edge_ids,
            weight=weight,
            where=where,
            top=count,
        )
        reply = self._session.read("neighbors", head, arrays)
        present = np.arange(count) < np.diff(reply.array("indptr", "int64"))[:, None]
        neighbor_ids = np.full(present.shape, -1, np.int64)
        neighbor_ids[present] = reply.array("ids", "int64")
        types = np.full(present.shape, -1, np.int32)
        types[present] = expand_edge_types(
            reply.array("ids", "int64"), reply.optional_array("types", "int32"), edge_types
        )
        weights = np.zeros(present.shape, np.float32)
        weights[present] = reply.array("weights", "float32")
        eids = None
        if edge_ids:
            eids = np.full(present.shape, -1, np.int64)
            eids[present] = reply.array("eids", "int64")
        return TopNeighbors(
            nodes=neighbor_ids,
            types=types,
            weights=weights,
            edge_ids=eids,
            version=version_of(reply.head),
        )

    @overload
    def degrees(
        self,
        nodes: ArrayLike,
        etypes: Names = ...,
        *,
        ntype: NodeTypes = ...,
        direction: str = ...,
        weight: None = ...,
        where: str = ...,
        version: int | None = ...,
    ) -> Ids: ...

    @overload
    def degrees(
        self,
        nodes: ArrayLike,
        etypes: Names = ...,
        *,
        ntype: NodeTypes = ...,
        direction: str = ...,
        weight: str,
        where: str = ...,
        version: int | None = ...,
    ) -> NDArray[np.float64]: ...

    def degrees(
        self,
        nodes: ArrayLike,
        etypes: Names = None,
        *,
        ntype: NodeTypes = None,
        direction: str = "out",
        weight: str | None = None,
        where: str = "",
        version: int | None = None,
    ) -> Ids | NDArray[np.float64]:
        """How many edges of each type each node has, or what they weigh together.

        Parameters
        ----------
        nodes : int64[m]
            Node ids; -1 and unknown ones have none.
        etypes : str or list of str, optional
            Edge types; None: all.
        ntype, direction
            As of `sample_neighbors`.
        weight : str, optional
            The weights to sum: the name of a table of every one of the edge types; "" or
            ``"weight"`` are the edges' own. None: edges are counted, whatever their weight.
        where : str
            As of `sample_neighbors`.

        Returns
        -------
        int64[m, t], or float64[m, t] where ``weight`` is given
            A column per edge type, in the order asked for.

        Raises
        ------
        NotFound
            Where one of the edge types has no table of that name.

        Examples
        --------
        >>> graph.degrees([7], "cites", weight="recent")  # doctest: +SKIP
        array([[2.625]])
        """
        edge_types = self._session.edge_type_ids(
            self.space, validation.type_names("etypes", etypes)
        )
        wire_direction = parse_direction(direction)
        node_type, arrays = self._seed_sections(
            nodes, ntype, edge_types, wire_direction, version=version
        )
        head = graphd_pb.DegreesRequest(
            space=self.space,
            version=self._version(version),
            edge_types=edge_types,
            node_type=node_type,
            direction=wire_direction,
            weight="weight" if weight == "" else weight or "",
            where=where,
        )
        reply = self._session.read("degrees", head, arrays)
        return (
            reply.array("sums", "float64", 2) if head.weight else reply.array("degrees", "int64", 2)
        )

    def count_nodes(self, ntype: str, *, version: int | None = None) -> int:
        """How many nodes of a type there are."""
        return self._nodes_at(ntype, np.zeros(0, np.int64), version)[1]

    def nodes_at(self, ntype: str, places: ArrayLike, *, version: int | None = None) -> Ids:
        """Nodes by their place in a scan of their type: what a shuffled pass over all nodes is made
        of.

        Parameters
        ----------
        ntype : str
            The node type.
        places : int64[m]
            0 to `count_nodes` - 1, in the order of `Graph.scan_nodes`.

        Returns
        -------
        int64[m]

        Raises
        ------
        InvalidRequest
            Where there is no such place.

        Examples
        --------
        >>> graph.nodes_at("paper", [0, 5])  # doctest: +SKIP
        array([ 0, 40])
        """
        return self._nodes_at(ntype, validation.ids("places", places), version)[0]

    def count_edges(self, etype: str, *, where: str = "", version: int | None = None) -> int:
        """How many edges of a type there are, or satisfy a condition."""
        return self._edges_at(etype, np.zeros(0, np.int64), "", where, version)[1]

    def edges_at(
        self,
        etype: str,
        places: ArrayLike,
        *,
        weight: str = "",
        where: str = "",
        version: int | None = None,
    ) -> EdgeRows:
        """Edges by their place in a scan of their type: what a shuffled pass over all edges is made
        of.

        Parameters
        ----------
        etype : str
            The edge type.
        places : int64[m]
            0 to `count_edges` - 1, in the order of `Graph.scan_edges`; under a condition, among the
            edges that satisfy it.
        weight : str
            The name of the weights to give back; "" are the edges' own.
        where : str
            As of `sample_edges`: other edges have no place.

        Returns
        -------
        EdgeRows

        Raises
        ------
        InvalidRequest
            Where there is no such place.

        Examples
        --------
        >>> graph.edges_at("cites", [0, 5]).src  # doctest: +SKIP
        array([ 0, 40])
        """
        return self._edges_at(etype, validation.ids("places", places), weight, where, version)[0]
