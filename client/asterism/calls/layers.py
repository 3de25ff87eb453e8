"""Layers drawn as a whole, edges between lists of nodes, and whole neighborhoods hop by hop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asterism.calls import decoding, validation
from asterism.calls.base import GraphCalls, Names, parse_direction
from asterism.calls.string_ids import NodeTypes
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
    """The part of a graph that works on whole layers of nodes."""

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
        replace: bool = True,
        direction: str = "out",
        edge_ids: bool = False,
        seed: int | None = None,
        version: int | None = None,
    ) -> LayerSample:
        """Draw n nodes for a whole layer from the neighbors of all of its nodes, with the edges
        between the two.

        Parameters
        ----------
        nodes : int64[m] or int64[b, w]
            A layer, or b layers of w nodes, each drawn for by itself; -1 is no node. A node that is
            there twice counts twice.
        etypes : str or list of str, or None
            Edge types; None: all.
        n : int
            Nodes of each new layer.
        measure : {"sum", "sqrt", "squares"}
            What a neighbor counts, of the edges that lead to it: the sum of their weights; its
            square root; or the sum, over the layer's nodes, of the squared sum of each one's, which
            are the squared column norms that LADIES draws by.
        ntype : str or int, optional
            As of `sample_neighbors`; in the shape of ``nodes`` where it is an array.
        weighted, weight
            By edge weight, of that name ("" are the edges' own); otherwise every edge weighs 1.
        where : str
            As of `sample_neighbors`: other edges are as if they were not there.
        replace : bool
            False: different nodes, in the order of successive draws; as many as there are where
            these are fewer than n.
        direction, edge_ids
            As of `sample_neighbors`; ids of the adjacency's edges.

        Returns
        -------
        LayerSample
            ``nodes`` int64[n] or int64[b, n], their ``types`` and ``probabilities``, and the
            ``adjacency`` of the two layers.

        Notes
        -----
        A node is drawn with probability (what it counts) / (what all neighbors of the layer count):
        Zou et al. 2019, *Layer-dependent importance sampling* (LADIES), NeurIPS, section 3.2, with
        ``measure="squares"`` and ``replace=False``. FastGCN (Chen, Ma & Xiao 2018, ICLR, section 3)
        draws from all nodes by one law for all layers: that is `sample_nodes` by a named table, and
        `adjacency`. All edges of the layer's nodes are read.

        Examples
        --------
        >>> layer = graph.sample_layer(seeds, "cites", 512, replace=False)  # doctest: +SKIP
        >>> layer.adjacency.rows, layer.adjacency.cols  # doctest: +SKIP
        """
        edge_types = self._session.edge_type_ids(
            self.space, validation.type_names("etypes", etypes)
        )
        width, node_type, arrays = self._layers(nodes, ntype, edge_types, direction, version)
        head = graphd_pb.SampleLayerRequest(
            edge_types=edge_types,
            count=validation.count("n", n),
            **self._layer_request_fields(
                measure, weighted, weight, where, replace, direction, edge_ids, seed, version
            ),
            width=width,
            node_type=node_type,
        )
        return self._call("sample_layer", decoding.layer_sample, head, arrays)

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
        replace: bool = True,
        direction: str = "out",
        edge_ids: bool = False,
        seed: int | None = None,
        version: int | None = None,
    ) -> LayerStack:
        """Draw layer after layer: hop h draws ``counts[h]`` nodes for the layer that the hop before
        drew.

        Parameters
        ----------
        nodes : int64[m] or int64[b, w]
            The first layer, or b of them. ``nodes[:, None]`` is a layer for each node: its first
            hop is that node's own neighbors.
        metapath : list of (str or list of str)
            The edge types of each hop.
        counts : list of int
            Nodes of each layer.
        measure, ntype, weighted, weight, replace, direction, edge_ids
            As of `sample_layer`.

        Returns
        -------
        LayerStack
            ``layers[h]``, each with the adjacency to the one before.
        """
        if isinstance(metapath, str) or len(metapath) != len(counts) or not counts:
            raise InvalidRequest(
                f"metapath {metapath!r} and counts {counts!r}: expected two lists of the "
                "same length, one entry per hop"
            )
        steps = [
            self._session.edge_type_ids(self.space, validation.type_names("metapath", step))
            for step in metapath
        ]
        sizes = [validation.count(f"counts[{h}]", count) for h, count in enumerate(counts)]
        width, node_type, arrays = self._layers(nodes, ntype, steps[0], direction, version)
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
        return self._call("sample_layers", decoding.layer_stack, head, arrays)

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
        weights: bool = True,
        edge_ids: bool = False,
        version: int | None = None,
    ) -> Adjacency:
        """The edges from some nodes to others, as a sparse matrix is made of them.

        Parameters
        ----------
        rows, cols : int64[m], int64[c]
            Node ids; -1 and unknown ones have no edges. One that is there twice has its edges
            twice.
        etypes : str or list of str, optional
            Edge types; None: all.
        row_type, col_type : str or int[m] or int[c], optional
            Their types. They may be left out where the edge types leave one choice, and in a space
            of global ids.
        direction : {"out", "in"}
            Edges from rows to cols, or from cols to rows (where the schema keeps in-copies).
        weight, where, weights, edge_ids
            As of `neighbors`.

        Returns
        -------
        Adjacency
            In canonical order, an entry per edge.

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
        reply = self._session.read("adjacency", head, arrays)
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
        edge_ids: bool = False,
        version: int | None = None,
    ) -> MultiHopNeighbors:
        """All neighbors, all of theirs, and so on: of each hop every node once, and the edges that
        lead to it.

        Parameters
        ----------
        nodes : int64[m]
            Where to start; -1 and unknown ones have no neighbors.
        metapath : list of (str or list of str)
            The edge types of each hop.
        ntype, direction, weight, where, edge_ids
            As of `neighbors`.

        Returns
        -------
        MultiHopNeighbors
            All of one version.
        """
        if isinstance(metapath, str) or not len(metapath):
            raise InvalidRequest(
                f"metapath {metapath!r}: expected a list with the edge types of each hop"
            )
        frontier, version = (
            self._ids("nodes", nodes, ntype, version),
            self._version(version) or None,
        )
        frontier_types: NodeTypes = ntype
        hop_nodes, types, edges = [frontier], [np.zeros(0, np.int32)], []
        for hop, step in enumerate(metapath):
            edge_types = self._session.edge_type_ids(
                self.space, validation.type_names("metapath", step)
            )
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
        """The types of seeds, as they were said; looked up where they were not."""
        if node_type >= 0:
            return np.where(ids >= 0, np.int32(node_type), np.int32(-1))
        if "types" in arrays:
            types: Types = arrays["types"]
            return types
        return self.node_types(ids, version=version)

    def _remote_types(self, edge_types: Types, direction: str) -> Types:
        """The node type that each edge leads to."""
        schema = self.schema
        ends = [
            schema.node_type_id(edge.dst_type if direction == "out" else edge.src_type)
            for edge in schema.edge_types
        ]
        return np.array([*ends, -1], np.int32)[edge_types]

    def node_types(
        self, ids: ArrayLike, ntype: NodeTypes = None, *, version: int | None = None
    ) -> Types:
        """The type of each node.

        Parameters
        ----------
        ids : int64[m]
        ntype : str or int[m], optional
            In a space whose ids are per type the same id may be a node of several: say of which,
            and the answer tells whether there is such a node. In a space of global ids leave it
            out.

        Returns
        -------
        int32[m]
            Node type ids, positions in ``schema.node_types``; -1 where there is no such node in the
            version.

        Examples
        --------
        >>> graph.node_types([7, 10**12])  # doctest: +SKIP
        array([ 1, -1], dtype=int32)
        """
        node_type, arrays = self._type_sections("ids", ids, ntype, version)
        head = graphd_pb.NodeTypesRequest(
            space=self.space, version=self._version(version), node_type=node_type
        )
        return self._session.read("node_types", head, arrays).array("types", "int32")

    def _layers(
        self,
        nodes: ArrayLike,
        ntype: NodeTypes,
        edge_types: Sequence[int],
        direction: str,
        version: int | None,
    ) -> tuple[int, int, dict[str, NDArray[Any]]]:
        """The width of layers (0: one of any), their node type and sections."""
        array = np.asarray(nodes)
        if array.ndim not in (1, 2):
            raise InvalidRequest(
                f"nodes has shape {list(array.shape)}; expected a layer [m], or layers [b, w]"
            )
        if array.ndim == 2 and not array.shape[1]:
            raise InvalidRequest(
                f"nodes has shape {list(array.shape)}: a layer has one node at least"
            )
        kinds = ntype if ntype is None or isinstance(ntype, str) else np.asarray(ntype).reshape(-1)
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
        """What every request for layers says."""
        if measure not in _MEASURES:
            raise InvalidRequest(f"measure {measure!r}: expected 'sum', 'sqrt' or 'squares'")
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
    """Each (id, type) once, in the order in which they come, and the place of each entry among
    them.
    """
    order = np.lexsort((types, ids))
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = (np.diff(ids[order]) != 0) | (np.diff(types[order]) != 0)
    first = order[is_first]  # the sort is stable: of equals the first one leads
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    positions = np.empty(len(ids), np.int64)
    positions[order] = rank[np.cumsum(is_first) - 1]
    first_sorted = np.sort(first)
    return ids[first_sorted], types[first_sorted], positions
