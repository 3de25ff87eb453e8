"""Layer-wise sampling, edges between lists of nodes, and full multi-hop neighborhoods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asterism.calls import decoding, validation
from asterism.calls.base import GraphCalls, Names, parse_direction
from asterism.calls.excluded_edges import (
    EdgeExclusion,
    ReverseTypes,
    excluded_by_name,
    excluded_edges,
)
from asterism.calls.string_id_hashing import NodeTypes
from asterism.records.samples import (
    Adjacency,
    Ids,
    LayerSample,
    LayerStack,
    MultiHopNeighbors,
    Types,
)
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import graphd_pb2 as graphd_pb

_MEASURES = {"sum": graphd_pb.SUM, "sqrt": graphd_pb.SQRT, "squares": graphd_pb.SQUARES}


class LayerCalls(GraphCalls):
    """Calls on whole layers of nodes."""

    def sample_layer(
        self,
        nodes: ArrayLike,
        etypes: Names,
        n: int,
        *,
        measure: str = "sum",
        ntype: NodeTypes = None,
        weighted: bool = True,
        weight: str = "",
        where: str = "",
        exclude: EdgeExclusion = None,
        reverse_types: ReverseTypes = None,
        replace: bool = True,
        direction: str = "out",
        edge_ids: bool = False,
        seed: int | None = None,
        version: int | None = None,
    ) -> LayerSample:
        """Sample n nodes for a whole layer from the neighbors of all its nodes.

        The edges between the two layers are returned too.

        Parameters
        ----------
        nodes : array_like of int64, shape (m,) or (b, w)
            One layer, or b layers of w nodes that are sampled independently. -1 means "no node". A
            repeated node counts each time.
        etypes : str or list of str, or None
            Edge types by name. None: all.
        n : int
            Nodes per new layer.
        measure : {"sum", "sqrt", "squares"}, default "sum"
            Importance of a neighbor, from the edges that lead to it. "sum": the sum of their
            weights. "sqrt": its square root. "squares": for each node of the layer the squared sum
            of its edges' weights, summed over the layer; these are the squared column norms of
            LADIES.
        ntype : str, or array_like of int, shape of ``nodes``, optional
            Node type of all nodes by name, or of each node by type id. Needed only where the edge
            types start at several node types and ids are per type.
        weighted : bool, default True
            Use edge weights. False: every edge weighs 1.
        weight : str, default ""
            Name of the edge weights: a weight table that every one of the edge types has. "": the
            edges' own weights.
        where : str, default ""
            Filter on the edges, as in `sample_neighbors`.
        exclude, reverse_types : optional
            Edges that are as if they did not exist, as in `sample_neighbors`.
        replace : bool, default True
            Sample with replacement. False: distinct nodes, in the order of successive draws; all
            neighbors if there are fewer than n.
        direction : {"out", "in"}, default "out"
            Follow edges forward, or in reverse (where the schema keeps in-copies).
        edge_ids : bool, default False
            Return the ids of the adjacency's edges.
        seed : int, optional
            Seed of the call. None: a random one, which the record returns.
        version : int, optional
            Version to read. None: the version of this graph, or the current one.

        Returns
        -------
        LayerSample
            ``nodes`` ndarray of int64, shape (n,) or (b, n), their ``types`` and ``probabilities``,
            and the ``adjacency`` of the two layers.

        Raises
        ------
        InvalidRequest
            If ``measure`` is unknown, or the shape of ``nodes`` is not a layer or layers.
        NotFound
            If there is no such edge type, weight table or version.

        Notes
        -----
        A node is sampled with probability (its importance) / (the importance of all neighbors of
        the layer). With ``measure="squares"`` and ``replace=False`` this is Zou et al. 2019,
        *Layer-dependent importance sampling* (LADIES), NeurIPS, section 3.2. FastGCN (Chen, Ma &
        Xiao 2018, ICLR, section 3) samples from all nodes by one distribution for all layers: use
        `sample_nodes` with a weight table, and `adjacency`. All edges of the layer's nodes are
        read.

        Examples
        --------
        >>> layer = graph.sample_layer(seeds, "cites", 512, replace=False)  # doctest: +SKIP
        >>> layer.adjacency.rows, layer.adjacency.cols  # doctest: +SKIP
        """
        edge_types = self._session.edge_type_ids(
            self.space, validation.type_names("etypes", etypes)
        )
        width, node_type, arrays = self._layers(nodes, ntype, edge_types, direction, version)
        excluded = self._exclusion_sections(exclude, reverse_types, edge_types, version)
        head = graphd_pb.SampleLayerRequest(
            edge_types=edge_types,
            count=validation.count("n", n),
            **self._layer_request_fields(
                measure, weighted, weight, where, replace, direction, edge_ids, seed, version
            ),
            width=width,
            node_type=node_type,
        )
        return self._call("sample_layer", decoding.layer_sample, head, arrays | excluded)

    def sample_fanout_layerwise(
        self,
        nodes: ArrayLike,
        metapath: Sequence[Names],
        counts: Sequence[int],
        *,
        measure: str = "sum",
        ntype: NodeTypes = None,
        weighted: bool = True,
        weight: str = "",
        where: str = "",
        exclude: EdgeExclusion = None,
        reverse_types: ReverseTypes = None,
        replace: bool = True,
        direction: str = "out",
        edge_ids: bool = False,
        seed: int | None = None,
        version: int | None = None,
    ) -> LayerStack:
        """Sample layer after layer: hop h samples ``counts[h]`` nodes from the previous layer.

        Parameters
        ----------
        nodes : array_like of int64, shape (m,) or (b, w)
            First layer, or b of them. ``nodes[:, None]`` makes a layer of each node, so that its
            first hop samples that node's own neighbors.
        metapath : list of (str or list of str)
            Edge types of each hop.
        counts : list of int
            Nodes per layer.
        measure : {"sum", "sqrt", "squares"}, default "sum"
            Importance of a neighbor, as in `sample_layer`.
        ntype : str, or array_like of int, shape of ``nodes``, optional
            Node type of all nodes by name, or of each node by type id. Needed only where the first
            hop's edge types start at several node types and ids are per type.
        weighted : bool, default True
            Use edge weights. False: every edge weighs 1.
        weight : str, default ""
            Name of the edge weights: a weight table that every one of the edge types has. "": the
            edges' own weights.
        where : str, default ""
            Filter on the edges, as in `sample_neighbors`.
        exclude, reverse_types : optional
            Edges that are as if they did not exist, as in `sample_neighbors`.
        replace : bool, default True
            Sample with replacement. False: distinct nodes, as in `sample_layer`.
        direction : {"out", "in"}, default "out"
            Follow edges forward, or in reverse (where the schema keeps in-copies).
        edge_ids : bool, default False
            Return the ids of the adjacencies' edges.
        seed : int, optional
            Seed of the call. None: a random one, which the record returns.
        version : int, optional
            Version to read. None: the version of this graph, or the current one.

        Returns
        -------
        LayerStack
            ``layers[h]``, each with the adjacency to the previous layer.

        Raises
        ------
        InvalidRequest
            If ``metapath`` and ``counts`` differ in length, or another argument is invalid.
        NotFound
            If there is no such edge type, weight table or version.

        Examples
        --------
        >>> path = ["follows", "follows"]  # doctest: +SKIP
        >>> two = graph.sample_fanout_layerwise([7], path, [64, 64])  # doctest: +SKIP
        >>> two.layers[0].nodes.shape  # doctest: +SKIP
        (64,)
        """
        if isinstance(metapath, str) or len(metapath) != len(counts) or not counts:
            raise InvalidRequest(
                f"metapath={metapath!r}, counts={counts!r}: expected two lists of one length, an "
                "entry for each hop"
            )
        steps = [
            self._session.edge_type_ids(self.space, validation.type_names("metapath", step))
            for step in metapath
        ]
        sizes = [validation.count(f"counts[{h}]", count) for h, count in enumerate(counts)]
        width, node_type, arrays = self._layers(nodes, ntype, steps[0], direction, version)
        excluded = self._exclusion_sections(
            exclude, reverse_types, [etype for step in steps for etype in step], version
        )
        head = graphd_pb.SampleLayersRequest(
            hops=[
                graphd_pb.Hop(edge_types=step, count=size)
                for step, size in zip(steps, sizes, strict=True)
            ],
            **self._layer_request_fields(
                measure, weighted, weight, where, replace, direction, edge_ids, seed, version
            ),
            width=width,
            node_type=node_type,
        )
        return self._call("sample_layers", decoding.layer_stack, head, arrays | excluded)

    def adjacency(
        self,
        rows: ArrayLike,
        cols: ArrayLike,
        etypes: Names = None,
        *,
        row_type: NodeTypes = None,
        col_type: NodeTypes = None,
        direction: str = "out",
        weight: str = "",
        where: str = "",
        exclude: EdgeExclusion = None,
        reverse_types: ReverseTypes = None,
        weights: bool = True,
        edge_ids: bool = False,
        version: int | None = None,
    ) -> Adjacency:
        """Return the edges from some nodes to others as the entries of a sparse matrix.

        Parameters
        ----------
        rows : array_like of int64, shape (m,)
            Node ids of the rows. -1 and unknown ids have no edges. A repeated node has its edges
            each time.
        cols : array_like of int64, shape (c,)
            Node ids of the columns, with the same rules.
        etypes : str or list of str, optional
            Edge types by name. None: all.
        row_type, col_type : str, or array_like of int, shape (m,) and (c,), optional
            Node types of the rows and columns, by name or by type id per node. Not needed if the
            edge types leave one choice, or if ids are global.
        direction : {"out", "in"}, default "out"
            Edges from rows to columns, or from columns to rows (where the schema keeps in-copies).
        weight : str, default ""
            Name of the weights to return: a weight table of all these edge types. "": the edges'
            own weights.
        where : str, default ""
            Filter on the edges, as in `sample_edges`; edges that do not match are ignored. "": no
            filter.
        exclude, reverse_types : optional
            Edges that are as if they did not exist, as in `sample_neighbors`.
        weights : bool, default True
            Return the edge weights.
        edge_ids : bool, default False
            Return the edge ids.
        version : int, optional
            Version to read. None: the version of this graph, or the current one.

        Returns
        -------
        Adjacency
            One entry per edge, in canonical order.

        Raises
        ------
        InvalidRequest
            If types are ambiguous, or ``where`` is not a valid filter.
        NotFound
            If there is no such edge type, weight table or version.

        Examples
        --------
        >>> found = graph.adjacency(layer, pool, "cites")  # doctest: +SKIP
        >>> scipy.sparse.coo_array(  # doctest: +SKIP
        ...     (found.weights, (found.rows, found.cols)), found.shape
        ... )
        """
        edge_types = self._session.edge_type_ids(
            self.space, validation.type_names("etypes", etypes)
        )
        col_ids = self._ids("cols", cols, col_type, version)
        wire_direction = parse_direction(direction)
        node_type, arrays = self._seed_sections(
            rows, row_type, edge_types, wire_direction, argument="rows", version=version
        )
        arrays["cols"] = col_ids
        if isinstance(col_type, str):
            arrays["col_types"] = np.full(
                len(col_ids), self._session.node_type(self.space, col_type)[0], np.int32
            )
        elif col_type is not None:
            arrays["col_types"] = self._types(col_type, col_ids)
        excluded = self._exclusion_sections(exclude, reverse_types, edge_types, version)
        head = graphd_pb.AdjacencyRequest(
            space=self.space,
            version=self._version(version),
            edge_types=edge_types,
            node_type=node_type,
            direction=wire_direction,
            want_weights=weights,
            want_edge_ids=edge_ids,
            weight=weight,
            where=where,
        )
        reply = self._session.read("adjacency", head, arrays | excluded)
        return decoding.adjacency(
            reply, "", (len(arrays["nodes"]), len(col_ids)), weights=weights, edge_ids=edge_ids
        )

    def multi_hop_neighbors(
        self,
        nodes: ArrayLike,
        metapath: Sequence[Names],
        *,
        ntype: NodeTypes = None,
        direction: str = "out",
        weight: str = "",
        where: str = "",
        exclude: EdgeExclusion = None,
        reverse_types: ReverseTypes = None,
        edge_ids: bool = False,
        version: int | None = None,
    ) -> MultiHopNeighbors:
        """Return the full neighborhood hop by hop, each node once per hop, with its edges.

        Parameters
        ----------
        nodes : array_like of int64, shape (m,)
            Start nodes. -1 and unknown ids have no neighbors.
        metapath : list of (str or list of str)
            Edge types of each hop.
        ntype : str, or array_like of int, shape (m,), optional
            Node type of all nodes by name, or of each node by type id. Needed only where the first
            hop's edge types start at several node types and ids are per type.
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
        edge_ids : bool, default False
            Return the edge ids.
        version : int, optional
            Version to read. None: the version of this graph, or the current one.

        Returns
        -------
        MultiHopNeighbors
            Nodes, types and adjacencies of each hop, all from one version.

        Raises
        ------
        InvalidRequest
            If ``metapath`` is empty or a single name, or types are ambiguous.
        NotFound
            If there is no such edge type, weight table or version.

        Examples
        --------
        >>> found = graph.multi_hop_neighbors([7], [["follows"], ["buys"]])  # doctest: +SKIP
        >>> [nodes.size for nodes in found.nodes]  # doctest: +SKIP
        [1, 2, 5]
        """
        if isinstance(metapath, str) or not len(metapath):
            raise InvalidRequest(
                f"metapath={metapath!r}: expected a list with the edge types of each hop"
            )
        frontier, version = (
            self._ids("nodes", nodes, ntype, version),
            self._version(version) or None,
        )
        steps = [
            self._session.edge_type_ids(self.space, validation.type_names("metapath", step))
            for step in metapath
        ]
        excluded = excluded_by_name(
            self.schema,
            excluded_edges(
                self.schema,
                exclude,
                reverse_types,
                [etype for step in steps for etype in step],
                lambda ids, ntype: self._ids("exclude", ids, ntype, version),
            ),
        )
        frontier_types: NodeTypes = ntype
        hop_nodes, types, edges = [frontier], [np.zeros(0, np.int32)], []
        for hop, (step, edge_types) in enumerate(zip(metapath, steps, strict=True)):
            node_type, arrays = self._seed_sections(
                frontier, frontier_types, edge_types, parse_direction(direction)
            )
            if not hop:
                types[0] = self._resolve_types(frontier, node_type, arrays, version)
            neighbors = self._graph().neighbors(
                frontier,
                step,
                ntype=frontier_types,
                direction=direction,
                weight=weight,
                where=where,
                exclude=excluded,
                edge_ids=edge_ids,
                version=version,
            )
            version = neighbors.version
            rows = np.repeat(np.arange(len(frontier), dtype=np.int64), np.diff(neighbors.indptr))
            frontier, frontier_types, cols = _unique_in_order(
                neighbors.nodes, self._remote_types(neighbors.types, direction)
            )
            hop_nodes, types = (
                [*hop_nodes, frontier],
                [*types, np.asarray(frontier_types, np.int32)],
            )
            shape = (len(hop_nodes[-2]), len(frontier))
            edges.append(
                Adjacency(
                    rows=rows,
                    cols=cols,
                    types=neighbors.types,
                    weights=neighbors.weights,
                    edge_ids=neighbors.edge_ids,
                    shape=shape,
                    version=version,
                )
            )
        return MultiHopNeighbors(
            nodes=tuple(hop_nodes),
            types=tuple(types),
            adjacencies=tuple(edges),
            version=int(version or 0),
        )

    def _resolve_types(
        self, ids: Ids, node_type: int, arrays: dict[str, NDArray[Any]], version: int | None
    ) -> Types:
        """Return the types of start nodes, looking them up where the request does not give them."""
        if node_type >= 0:
            return np.where(ids >= 0, np.int32(node_type), np.int32(-1))
        if "types" in arrays:
            types: Types = arrays["types"]
            return types
        return self._graph().node_types(ids, version=version)

    def _remote_types(self, edge_types: Types, direction: str) -> Types:
        """Return the node type that each edge leads to."""
        schema = self.schema
        ends = [
            schema.node_type_id(edge.dst_type if direction == "out" else edge.src_type)
            for edge in schema.edge_types
        ]
        return np.array([*ends, -1], np.int32)[edge_types]

    def _layers(
        self,
        nodes: ArrayLike,
        ntype: NodeTypes,
        edge_types: Sequence[int],
        direction: str,
        version: int | None,
    ) -> tuple[int, int, dict[str, NDArray[Any]]]:
        """Return the width of the layers (0: one layer), the node type id and the sections."""
        array = validation.as_array("nodes", nodes, "ids")
        if array.ndim not in (1, 2):
            raise InvalidRequest(
                f"nodes of shape {list(array.shape)}: expected a layer, shape [m], or layers, [b, "
                f"w]"
            )
        if array.ndim == 2 and not array.shape[1]:
            raise InvalidRequest(
                f"nodes of shape {list(array.shape)}: expected at least one node in each layer"
            )
        kinds = (
            ntype
            if ntype is None or isinstance(ntype, str)
            else validation.as_array("ntype", ntype, "type ids").reshape(-1)
        )
        node_type, arrays = self._seed_sections(
            array.reshape(-1), kinds, edge_types, parse_direction(direction), version=version
        )
        return array.shape[1] if array.ndim == 2 else 0, node_type, arrays

    def _layer_request_fields(
        self,
        measure: str,
        weighted: bool,
        weight: str,
        where: str,
        replace: bool,
        direction: str,
        edge_ids: bool,
        seed: int | None,
        version: int | None,
    ) -> dict[str, Any]:
        """Return the fields that every request for layers has."""
        if measure not in _MEASURES:
            raise InvalidRequest(f"measure={measure!r}: expected 'sum', 'sqrt' or 'squares'")
        return {
            "space": self.space,
            "version": self._version(version),
            "seed": validation.seed(seed),
            "measure": _MEASURES[measure],
            "uniform": not weighted,
            "weight": weight,
            "where": where,
            "replace": replace,
            "direction": parse_direction(direction),
            "want_edge_ids": edge_ids,
        }


def _unique_in_order(ids: Ids, types: Types) -> tuple[Ids, Types, Ids]:
    """Return distinct (id, type) pairs by first appearance, and each entry's position."""
    order = np.lexsort((types, ids))
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = (np.diff(ids[order]) != 0) | (np.diff(types[order]) != 0)
    first = order[is_first]  # The sort is stable: the first of equal entries comes first.
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    positions = np.empty(len(ids), np.int64)
    positions[order] = rank[np.cumsum(is_first) - 1]
    first_sorted = np.sort(first)
    return ids[first_sorted], types[first_sorted], positions
