"""Reads of types and feature columns by id."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from asterism.calls import chunked_reads, validation
from asterism.calls.base import CandidateTypes, GraphCalls
from asterism.calls.edge_existence import existing_edges
from asterism.calls.string_id_hashing import NodeTypes, as_string_array
from asterism.records.samples import FeatureValue, Ids, Types
from asterism_model.schema import NodeType
from asterism_proto.errors import InvalidRequest, NotFound
from asterism_proto.v1 import graphd_pb2 as graphd_pb


class FeatureCalls(GraphCalls):
    """Calls that read types and features of given nodes and edges."""

    def node_types(
        self, ids: ArrayLike, ntype: NodeTypes = None, *, version: int | None = None
    ) -> Types:
        """Return the type of each node.

        Parameters
        ----------
        ids : array_like of int64, shape (m,)
            Node ids.
        ntype : str, or array_like of int, shape (m,), optional
            Expected node type of all nodes by name, or of each by type id. Required if ids are per
            type, where one id may exist in several types; the result then says whether the node
            exists. Not needed if ids are global.
        version : int, optional
            Version to read. None: the version of this graph, or the current one.

        Returns
        -------
        ndarray of int32, shape (m,)
            Node type ids, positions in ``schema.node_types``; -1 where the version has no such
            node.

        Raises
        ------
        InvalidRequest
            If ids are per type and ``ntype`` is None.

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

    def node_features(
        self,
        nodes: ArrayLike,
        names: str | Iterable[str],
        ntype: str | None = None,
        *,
        strict: bool = False,
        version: int | None = None,
    ) -> dict[str, FeatureValue]:
        """Return feature columns of nodes of one type.

        Parameters
        ----------
        nodes : array_like of int64, shape (m,)
            Node ids of one type. -1 and unknown ids have zeros, or empty rows.
        names : str or list of str
            Names of features; ``"weight"`` is the node's weight.
        ntype : str, optional
            Node type. Not needed if only one node type has these features.
        strict : bool, default False
            Raise NotFound for unknown ids, at the cost of another request. -1, "no node", still has
            zeros.
        version : int, optional
            Version to read. None: the version of this graph, or the current one.

        Returns
        -------
        dict of str to ndarray or (ndarray, ndarray)
            Columns by name: shape (m, *shape) for dense features; ``(indptr, values)`` with
            ``indptr`` int64, shape (m + 1,), for ragged and bytes features.

        Raises
        ------
        InvalidRequest
            If ``ntype`` is needed.
        NotFound
            If there is no such type, feature or version; with ``strict``, if there is no such node.

        Examples
        --------
        >>> graph.node_features([4, 17], ["price"], "item")["price"]  # doctest: +SKIP
        array([26.79,  1.5 ], dtype=float32)
        """
        feature_names = validation.names(names)
        type_id = (
            self._session.node_type(self.space, ntype)[0]
            if ntype is not None
            else self._feature_owner(feature_names)
        )
        head = graphd_pb.NodeFeaturesRequest(
            space=self.space, version=self._version(version), type_id=type_id, names=feature_names
        )
        owner = self.schema.node_types[type_id]
        ids = self._ids("nodes", nodes, CandidateTypes([type_id]), version)
        if strict:
            head.version = self._require_nodes(nodes, ids, owner.name, type_id, head.version)
        request = chunked_reads.ColumnRequest(
            method="node_features", head=head, section="nodes", owner=owner, names=feature_names
        )
        return chunked_reads.read_columns(self._session, request, ids)

    def _require_nodes(
        self, nodes: ArrayLike, ids: Ids, ntype: str, type_id: int, version: int
    ) -> int:
        """Raise NotFound for the first node that does not exist; return the version read.

        ``ids`` has -1 both for "no node" and for a string that no node has as its name.
        """
        head = graphd_pb.NodeTypesRequest(space=self.space, version=version, node_type=type_id)
        reply = self._session.read("node_types", head, {"nodes": ids})
        unknown = (reply.array("types", "int32") < 0) & (ids >= 0)
        strings = as_string_array("nodes", nodes)
        if strings is not None:
            unknown |= (ids < 0) & (strings != "")
        if unknown.any():
            position = int(np.argmax(unknown))
            value = ids[position] if strings is None else repr(strings[position])
            raise NotFound(
                f"nodes[{position}]={value}: expected a node of type {ntype!r} in version "
                f"{reply.head.version} ({int(unknown.sum()) - 1} more); leave such nodes out, or "
                "pass strict=False to get zeros"
            )
        return reply.head.version

    def edge_features(
        self,
        edge_ids: ArrayLike,
        names: str | Iterable[str],
        etype: str,
        *,
        strict: bool = False,
        version: int | None = None,
    ) -> dict[str, FeatureValue]:
        """Return feature columns of edges of one type by edge id.

        Parameters
        ----------
        edge_ids : array_like of int64, shape (m,)
            Edge ids. -1 and unknown ids have zeros, or empty rows. Edges that were deleted may
            still have their values; ``strict`` refuses them.
        names : str or list of str
            Names of features.
        etype : str
            Edge type.
        strict : bool, default False
            Raise NotFound for ids that no edge of the version has. -1, "no edge", still has zeros.
            The edges are searched by filters, at the cost of further requests and, for each 700
            ids, a scan of the edges of the type.
        version : int, optional
            Version to read. None: the version of this graph, or the current one.

        Returns
        -------
        dict of str to ndarray or (ndarray, ndarray)
            Columns by name, as in `node_features`.

        Raises
        ------
        NotFound
            If there is no such type, feature or version; with ``strict``, if there is no such edge.

        Examples
        --------
        >>> edges = graph.sample_edges(3, "buys", seed=7)  # doctest: +SKIP
        >>> graph.edge_features(edges.edge_ids, "stars", "buys")["stars"]  # doctest: +SKIP
        array([5., 4., 4.], dtype=float32)
        """
        feature_names = validation.names(names)
        type_id, owner = self._session.edge_type(self.space, etype)
        head = graphd_pb.EdgeFeaturesRequest(
            space=self.space, version=self._version(version), type_id=type_id, names=feature_names
        )
        request = chunked_reads.ColumnRequest(
            method="edge_features", head=head, section="eids", owner=owner, names=feature_names
        )
        ids = validation.ids("edge_ids", edge_ids, minimum=-1)
        if not strict:
            return chunked_reads.read_columns(self._session, request, ids)
        columns = chunked_reads.read_columns(self._session, request, ids)
        self._require_edges(ids, owner.name, head.version)
        return columns

    def _require_edges(self, ids: Ids, etype: str, version: int) -> None:
        """Raise NotFound for the first edge that does not exist."""
        unknown = (ids >= 0) & ~existing_edges(self._graph(), etype, ids, version)
        if unknown.any():
            position = int(np.argmax(unknown))
            raise NotFound(
                f"edge_ids[{position}]={ids[position]}: expected an edge of type {etype!r} in "
                f"version {version}; leave such edges out, or pass strict=False to get zeros"
            )

    def _feature_owner(self, names: list[str]) -> int:
        """Return the id of the one node type that has all these features."""
        types = self.schema.node_types
        owners = [i for i, node_type in enumerate(types) if _has_features(node_type, names)]
        if len(owners) != 1:
            found = " and ".join(types[i].name for i in owners) or "none"
            raise InvalidRequest(
                f"names={names}: expected features that one node type has, found {found}; pass "
                f"ntype, one of {', '.join(t.name for t in types)}"
            )
        return owners[0]


def _has_features(node_type: NodeType, names: list[str]) -> bool:
    return set(names) <= {feature.name for feature in node_type.features} | {"weight"}
