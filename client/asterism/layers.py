"""Layers drawn as a whole, edges between lists of nodes, and whole neighborhoods hop by hop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asterism import answers, arguments
from asterism.links import Links
from asterism.names import NodeTypes
from asterism.records import Adjacency, Ids, LayerSample, LayerStack, MultiHop, Types
from asterism.sampling import Names, direction_of
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import graphd_pb2 as wire

_MEASURES = {"sum": wire.SUM, "sqrt": wire.SQRT, "squares": wire.SQUARES}


class Layers(Links):
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
        """Draw n nodes for a whole layer from the neighbors of all of its nodes, with the edges between the two.

        Parameters
        ----------
        nodes : int64[m] or int64[b, w]
            A layer, or b layers of w nodes, each drawn for by itself; -1 is no node. A node that is there twice counts twice.
        etypes : str or list of str, or None
            Edge types; None: all.
        n : int
            Nodes of each new layer.
        measure : {"sum", "sqrt", "squares"}
            What a neighbor counts, of the edges that lead to it: the sum of their weights; its square root; or the sum, over the
            layer's nodes, of the squared sum of each one's, which are the squared column norms that LADIES draws by.
        ntype : str or int, optional
            As of `sample_neighbors`; in the shape of ``nodes`` where it is an array.
        weighted, weight
            By edge weight, of that name ("" are the edges' own); otherwise every edge weighs 1.
        where : str
            As of `sample_neighbors`: other edges are as if they were not there.
        replace : bool
            False: different nodes, in the order of successive draws; as many as there are where these are fewer than n.
        direction, edge_ids
            As of `sample_neighbors`; ids of the adjacency's edges.

        Returns
        -------
        LayerSample
            ``nodes`` int64[n] or int64[b, n], their ``types`` and ``probabilities``, and the ``adjacency`` of the two layers.

        Notes
        -----
        A node is drawn with probability (what it counts) / (what all neighbors of the layer count): Zou et al. 2019, *Layer-dependent
        importance sampling* (LADIES), NeurIPS, section 3.2, with ``measure="squares"`` and ``replace=False``. FastGCN (Chen, Ma & Xiao 2018, ICLR,
        section 3) draws from all nodes by one law for all layers: that is `sample_nodes` by a named table, and `adjacency`.
        All edges of the layer's nodes are read.

        Examples
        --------
        >>> layer = graph.sample_layer(seeds, "cites", 512, replace=False)  # doctest: +SKIP
        >>> layer.adjacency.rows, layer.adjacency.cols  # doctest: +SKIP
        """
        wanted = self._session.edge_type_ids(self.space, arguments.type_names("etypes", etypes))
        width, node_type, arrays = self._layers(nodes, ntype, wanted, direction, version)
        head = wire.SampleLayerRequest(
            edge_types=wanted,
            count=arguments.count("n", n),
            **self._layering(measure, weighted, weight, where, replace, direction, edge_ids, seed, version),
            width=width,
            node_type=node_type,
        )
        return self._sampled("sample_layer", answers.layer_sample, head, arrays)

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
        """Draw layer after layer: hop h draws ``counts[h]`` nodes for the layer that the hop before drew.

        Parameters
        ----------
        nodes : int64[m] or int64[b, w]
            The first layer, or b of them. ``nodes[:, None]`` is a layer for each node: its first hop is that node's own neighbors.
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
            raise InvalidRequest(f"metapath {metapath!r} and counts {counts!r}: expected two lists of the same length, one entry per hop")
        steps = [self._session.edge_type_ids(self.space, arguments.type_names("metapath", step)) for step in metapath]
        sizes = [arguments.count(f"counts[{h}]", count) for h, count in enumerate(counts)]
        width, node_type, arrays = self._layers(nodes, ntype, steps[0], direction, version)
        head = wire.SampleLayersRequest(
            hops=[wire.Hop(edge_types=step, count=size) for step, size in zip(steps, sizes, strict=True)],
            **self._layering(measure, weighted, weight, where, replace, direction, edge_ids, seed, version),
            width=width,
            node_type=node_type,
        )
        return self._sampled("sample_layers", answers.layer_stack, head, arrays)

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
            Node ids; -1 and unknown ones have no edges. One that is there twice has its edges twice.
        etypes : str or list of str, optional
            Edge types; None: all.
        row_type, col_type : str or int[m] or int[c], optional
            Their types. They may be left out where the edge types leave one choice, and in a space of global ids.
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
        >>> scipy.sparse.coo_array((found.weights, (found.rows, found.cols)), found.shape)  # doctest: +SKIP
        """
        wanted = self._session.edge_type_ids(self.space, arguments.type_names("etypes", etypes))
        others = self._ids("cols", cols, col_type, version)
        way = direction_of(direction)
        node_type, arrays = self._starts(rows, row_type, wanted, way, what="rows", version=version)
        arrays["cols"] = others
        if isinstance(col_type, str):
            arrays["col_types"] = np.full(len(others), self._session.node_type(self.space, col_type)[0], np.int32)
        elif col_type is not None:
            arrays["col_types"] = self._types(col_type, others)
        head = wire.AdjacencyRequest(
            space=self.space,
            version=self._version(version),
            edge_types=wanted,
            node_type=node_type,
            direction=way,
            want_weights=weights,
            want_edge_ids=edge_ids,
            weight=weight,
            where=where,
        )
        reply = self._session.read("adjacency", head, arrays)
        return answers.adjacency(reply, "", (len(arrays["nodes"]), len(others)), weights=weights, edge_ids=edge_ids)

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
    ) -> MultiHop:
        """All neighbors, all of theirs, and so on: of each hop every node once, and the edges that lead to it.

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
        MultiHop
            All of one version.
        """
        if isinstance(metapath, str) or not len(metapath):
            raise InvalidRequest(f"metapath {metapath!r}: expected a list with the edge types of each hop")
        here, version = self._ids("nodes", nodes, ntype, version), self._version(version) or None
        kinds: NodeTypes = ntype
        found, types, edges = [here], [np.zeros(0, np.int32)], []
        for hop, step in enumerate(metapath):
            wanted = self._session.edge_type_ids(self.space, arguments.type_names("metapath", step))
            node_type, arrays = self._starts(here, kinds, wanted, direction_of(direction))
            if not hop:
                types[0] = self._known(here, node_type, arrays, version)
            near = self.neighbors(here, step, ntype=kinds, direction=direction, weight=weight, where=where, edge_ids=edge_ids, version=version)
            version = near.version
            rows = np.repeat(np.arange(len(here), dtype=np.int64), np.diff(near.indptr))
            here, kinds, cols = _first_seen(near.nodes, self._far_types(near.types, direction))
            found, types = [*found, here], [*types, np.asarray(kinds, np.int32)]
            shape = (len(found[-2]), len(here))
            edges.append(
                Adjacency(rows=rows, cols=cols, types=near.types, weights=near.weights, edge_ids=near.edge_ids, shape=shape, version=version)
            )
        return MultiHop(nodes=tuple(found), types=tuple(types), adjacencies=tuple(edges), version=int(version or 0))

    def _known(self, ids: Ids, node_type: int, arrays: dict[str, NDArray[Any]], version: int | None) -> Types:
        """The types of seeds, as they were said; looked up where they were not."""
        if node_type >= 0:
            return np.where(ids >= 0, np.int32(node_type), np.int32(-1))
        if "types" in arrays:
            given: Types = arrays["types"]
            return given
        return self.node_types(ids, version=version)

    def _far_types(self, edge_types: Types, direction: str) -> Types:
        """The node type that each edge leads to."""
        schema = self.schema
        ends = [schema.node_type_id(edge.dst_type if direction == "out" else edge.src_type) for edge in schema.edge_types]
        return np.array([*ends, -1], np.int32)[edge_types]

    def node_types(self, ids: ArrayLike, ntype: NodeTypes = None, *, version: int | None = None) -> Types:
        """The type of each node.

        Parameters
        ----------
        ids : int64[m]
        ntype : str or int[m], optional
            In a space whose ids are per type the same id may be a node of several: say of which, and the answer tells whether there is
            such a node. In a space of global ids leave it out.

        Returns
        -------
        int32[m]
            Node type ids, positions in ``schema.node_types``; -1 where there is no such node in the version.

        Examples
        --------
        >>> graph.node_types([7, 10**12])  # doctest: +SKIP
        array([ 1, -1], dtype=int32)
        """
        node_type, arrays = self._of_types("ids", ids, ntype, version)
        head = wire.NodeTypesRequest(space=self.space, version=self._version(version), node_type=node_type)
        return self._session.read("node_types", head, arrays).array("types", "int32")

    def _layers(
        self, nodes: ArrayLike, ntype: NodeTypes, edge_types: Sequence[int], direction: str, version: int | None
    ) -> tuple[int, int, dict[str, NDArray[Any]]]:
        """The width of layers (0: one of any), their node type and sections."""
        given = np.asarray(nodes)
        if given.ndim not in (1, 2):
            raise InvalidRequest(f"nodes has shape {list(given.shape)}; expected a layer [m], or layers [b, w]")
        if given.ndim == 2 and not given.shape[1]:
            raise InvalidRequest(f"nodes has shape {list(given.shape)}: a layer has one node at least")
        kinds = ntype if ntype is None or isinstance(ntype, str) else np.asarray(ntype).reshape(-1)
        node_type, arrays = self._starts(given.reshape(-1), kinds, edge_types, direction_of(direction), version=version)
        return given.shape[1] if given.ndim == 2 else 0, node_type, arrays

    def _layering(
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
            "seed": arguments.seed(seed),
            "measure": _MEASURES[measure],
            "uniform": not weighted,
            "weight": weight,
            "where": where,
            "replace": replace,
            "direction": direction_of(direction),
            "want_edge_ids": edge_ids,
        }


def _first_seen(ids: Ids, types: Types) -> tuple[Ids, Types, Ids]:
    """Each (id, type) once, in the order in which they come, and the place of each entry among them."""
    order = np.lexsort((types, ids))
    new = np.ones(len(order), np.bool_)
    new[1:] = (np.diff(ids[order]) != 0) | (np.diff(types[order]) != 0)
    first = order[new]  # the sort is stable: of equals the first one leads
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    places = np.empty(len(ids), np.int64)
    places[order] = rank[np.cumsum(new) - 1]
    kept = np.sort(first)
    return ids[kept], types[kept], places
