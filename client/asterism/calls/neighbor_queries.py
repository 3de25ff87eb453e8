"""Reads of edges: all neighbors, the heaviest ones, degrees, and sums of weights."""

from __future__ import annotations

from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asterism.calls import validation
from asterism.calls.base import GraphCalls, Names, parse_direction, version_of
from asterism.calls.excluded_edges import EdgeExclusion, ReverseTypes
from asterism.calls.string_id_hashing import NodeTypes
from asterism.client_state import fill_edge_types
from asterism.records.samples import Ids, RaggedNeighbors, TopNeighbors
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import graphd_pb2 as graphd_pb

SORT_KEYS = {None: "", "id": "id", "weight": "weight"}


class NeighborCalls(GraphCalls):
    """Calls that read the edges of nodes without sampling."""

    def neighbors(
        self,
        nodes: ArrayLike,
        etypes: Names,
        *,
        ntype: NodeTypes = None,
        direction: str = "out",
        weight: str = "",
        where: str = "",
        exclude: EdgeExclusion = None,
        reverse_types: ReverseTypes = None,
        sort: str | None = None,
        weights: bool = True,
        edge_ids: bool = True,
        version: int | None = None,
    ) -> RaggedNeighbors:
        """Return all neighbors of each node.

        Parameters
        ----------
        nodes : array_like of int64, shape (m,)
            Node ids. -1 and unknown ids have no neighbors.
        etypes : str or list of str, or None
            Edge types by name. None: all.
        ntype : str, or array_like of int, shape (m,), optional
            Node type of all nodes by name, or of each node by type id. Needed only where the edge
            types start at several node types and ids are per type.
        direction : {"out", "in"}, default "out"
            Follow edges forward, or in reverse (where the schema keeps in-copies).
        weight : str, default ""
            Name of the weights to return: a weight table of all these edge types. "": the edges'
            own weights.
        where : str, default ""
            Filter on the edges, as in `sample_edges`; edges that do not match are ignored. "": no
            filter.
        exclude, reverse_types : optional
            Edges that are as if they did not exist, as in `sample_neighbors`.
        sort : {None, "id", "weight"}, default None
            Order of each row. None: by (position of the edge type in the request, id, edge id).
            "id": by id over all types. "weight": by weight, largest first, ties by id.
        weights : bool, default True
            Return the edge weights.
        edge_ids : bool, default True
            Return the edge ids.
        version : int, optional
            Version to read. None: the version of this graph, or the current one.

        Returns
        -------
        RaggedNeighbors
            Row i is ``nodes[indptr[i]:indptr[i + 1]]``. ``types``, ``weights`` and ``edge_ids``
            align with ``nodes``.

        Raises
        ------
        InvalidRequest
            If ``sort`` or ``direction`` is unknown, or ``where`` is not a valid filter.
        NotFound
            If there is no such edge type, weight table or version.

        Examples
        --------
        >>> found = graph.neighbors([7, 8], "buys")  # doctest: +SKIP
        >>> found.indptr, found.nodes  # doctest: +SKIP
        (array([0, 2, 3]), array([ 4, 17,  9]))
        """
        if sort not in SORT_KEYS:
            raise InvalidRequest(f"sort={sort!r}: expected None, 'id' or 'weight'")
        edge_types = self._session.edge_type_ids(
            self.space, validation.type_names("etypes", etypes)
        )
        wire_direction = parse_direction(direction)
        node_type, arrays = self._seed_sections(
            nodes, ntype, edge_types, wire_direction, version=version
        )
        excluded = self._exclusion_sections(exclude, reverse_types, edge_types, version)
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
        reply = self._session.read("neighbors", head, arrays | excluded)
        neighbor_ids: Ids = reply.array("ids", "int64")
        return RaggedNeighbors(
            indptr=reply.array("indptr", "int64"),
            nodes=neighbor_ids,
            types=fill_edge_types(neighbor_ids, reply.optional_array("types", "int32"), edge_types),
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
        exclude: EdgeExclusion = None,
        reverse_types: ReverseTypes = None,
        version: int | None = None,
    ) -> TopNeighbors:
        """Return the k heaviest edges of each node over the union of the edge types.

        Parameters
        ----------
        nodes : array_like of int64, shape (m,)
            Node ids. -1 and unknown ids have no neighbors.
        etypes : str or list of str, or None
            Edge types by name. None: all.
        k : int
            Maximum number of edges per node, at least 1.
        ntype : str, or array_like of int, shape (m,), optional
            Node type of all nodes by name, or of each node by type id. Needed only where the edge
            types start at several node types and ids are per type.
        direction : {"out", "in"}, default "out"
            Follow edges forward, or in reverse (where the schema keeps in-copies).
        edge_ids : bool, default False
            Return the edge ids.
        weight : str, default ""
            Name of the weights to rank by and to return: a weight table of all these edge types.
            "": the edges' own weights.
        where : str, default ""
            Filter on the edges, as in `sample_edges`; edges that do not match are ignored. "": no
            filter.
        exclude, reverse_types : optional
            Edges that are as if they did not exist, as in `sample_neighbors`.
        version : int, optional
            Version to read. None: the version of this graph, or the current one.

        Returns
        -------
        TopNeighbors
            ``nodes`` ndarray of int64, shape (m, k), heaviest first, padded with -1. Ties are
            ordered by (id, position of the edge type in the request, edge id). ``weights`` holds
            the weights.

        Raises
        ------
        InvalidRequest
            If ``k`` is 0, or ``where`` is not a valid filter.
        NotFound
            If there is no such edge type, weight table or version.

        Examples
        --------
        >>> graph.top_k_neighbors([7], "cites", 3).weights  # doctest: +SKIP
        array([[9. , 4.5, 1. ]], dtype=float32)
        """
        count = validation.count("k", k, minimum=1)
        edge_types = self._session.edge_type_ids(
            self.space, validation.type_names("etypes", etypes)
        )
        wire_direction = parse_direction(direction)
        node_type, arrays = self._seed_sections(
            nodes, ntype, edge_types, wire_direction, version=version
        )
        excluded = self._exclusion_sections(exclude, reverse_types, edge_types, version)
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
        reply = self._session.read("neighbors", head, arrays | excluded)
        present = np.arange(count) < np.diff(reply.array("indptr", "int64"))[:, None]
        neighbor_ids = np.full(present.shape, -1, np.int64)
        neighbor_ids[present] = reply.array("ids", "int64")
        types = np.full(present.shape, -1, np.int32)
        types[present] = fill_edge_types(
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
        exclude: EdgeExclusion = ...,
        reverse_types: ReverseTypes = ...,
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
        exclude: EdgeExclusion = ...,
        reverse_types: ReverseTypes = ...,
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
        exclude: EdgeExclusion = None,
        reverse_types: ReverseTypes = None,
        version: int | None = None,
    ) -> Ids | NDArray[np.float64]:
        """Return the number, or the total weight, of each node's edges of each type.

        Parameters
        ----------
        nodes : array_like of int64, shape (m,)
            Node ids. -1 and unknown ids have no edges.
        etypes : str or list of str, optional
            Edge types by name. None: all.
        ntype : str, or array_like of int, shape (m,), optional
            Node type of all nodes by name, or of each node by type id. Needed only where the edge
            types start at several node types and ids are per type.
        direction : {"out", "in"}, default "out"
            Follow edges forward, or in reverse (where the schema keeps in-copies).
        weight : str, optional
            Weights to sum: the name of a weight table that every one of the edge types has; "" and
            ``"weight"`` are the edges' own weights. None: count edges, regardless of weight.
        where : str, default ""
            Filter on the edges, as in `sample_edges`; edges that do not match are ignored. "": no
            filter.
        exclude, reverse_types : optional
            Edges that are as if they did not exist, as in `sample_neighbors`.
        version : int, optional
            Version to read. None: the version of this graph, or the current one.

        Returns
        -------
        ndarray of int64, shape (m, t), or of float64 if ``weight`` is given
            One column per edge type, in the order of the request.

        Raises
        ------
        NotFound
            If one of the edge types has no weight table of that name.

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
        excluded = self._exclusion_sections(exclude, reverse_types, edge_types, version)
        head = graphd_pb.DegreesRequest(
            space=self.space,
            version=self._version(version),
            edge_types=edge_types,
            node_type=node_type,
            direction=wire_direction,
            weight="weight" if weight == "" else weight or "",
            where=where,
        )
        reply = self._session.read("degrees", head, arrays | excluded)
        return (
            reply.array("sums", "float64", 2) if head.weight else reply.array("degrees", "int64", 2)
        )
