"""Scans of all rows of a type, in canonical order, partition by partition, and rows by position.

A scan reads one version and can resume after every batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, cast

import numpy as np
from numpy.typing import ArrayLike

from asterism.calls import validation
from asterism.calls.base import GraphCalls
from asterism.client_state import VersionReply
from asterism.records.samples import Cursor, EdgeBatch, EdgeRows, Ids, NodeBatch
from asterism_proto.errors import InvalidRequest
from asterism_proto.framing import Frame
from asterism_proto.v1 import graphd_pb2 as graphd_pb

_DONE = -1
"""Row of a cursor at the end of its partition."""


class _ScanReply(VersionReply, Protocol):
    """Fields that the reply to every scan has."""

    next_cursor: int


class ScanCalls(GraphCalls):
    """Calls that scan a whole type, for exports and full inference, or read rows by position."""

    def scan_nodes(
        self,
        ntype: str,
        names: str | Iterable[str] = (),
        *,
        weight: str = "",
        version: int | None = None,
        rows: int = 65536,
        parts: Iterable[int] | None = None,
        after: Sequence[int] | None = None,
    ) -> Iterator[NodeBatch]:
        """Yield every node of a type once, partition by partition, by id, from one version.

        Parameters
        ----------
        ntype : str
            Node type.
        names : str or list of str, default ()
            Features to return.
        weight : str, default ""
            Name of the weights to return. "": the nodes' own weights.
        version : int, optional
            Version to read. None: the version of ``after``, of this graph, or the current one. Pin
            it while the scan lasts.
        rows : int, default 65536
            Maximum rows per batch; the service may return fewer.
        parts : iterable of int, optional
            Partitions to scan, in this order. None: all. Several readers can divide the partitions
            among them.
        after : Cursor, optional
            Resume after the batch that had this `NodeBatch.cursor`, with the same ``parts``. Its
            three numbers, such as from JSON, are accepted too.

        Yields
        ------
        NodeBatch
            Ids, weights and features of some nodes, with the cursor to resume from.

        Raises
        ------
        InvalidRequest
            If ``after`` belongs to another version or to none of ``parts``.
        NotFound
            If there is no such node type, feature or version.

        Examples
        --------
        >>> for batch in graph.scan_nodes("paper", ["year"], after=saved):  # doctest: +SKIP
        ...     write(batch.ids, batch.features["year"])
        ...     saved = batch.cursor
        """
        type_id, _ = self._session.node_type(self.space, ntype)
        feature_names = validation.names(names)
        head = graphd_pb.ScanNodesRequest(
            space=self.space, type_id=type_id, names=feature_names, weight=weight
        )
        for reply, cursor in self._scan_replies(
            "scan_nodes", head, "ids", version, rows, parts, after
        ):
            yield NodeBatch(
                part=cursor.part,
                ids=reply.array("ids", "int64"),
                weights=reply.array("weights", "float32"),
                features=validation.decode_columns(reply.arrays, feature_names),
                version=cursor.version,
                cursor=cursor,
            )

    def scan_edges(
        self,
        etype: str,
        names: str | Iterable[str] = (),
        *,
        weight: str = "",
        version: int | None = None,
        rows: int = 65536,
        parts: Iterable[int] | None = None,
        after: Sequence[int] | None = None,
    ) -> Iterator[EdgeBatch]:
        """Yield every edge of a type once, by the source's partition, from one version.

        Edges of a partition are in the order of its out-adjacency.

        Parameters
        ----------
        etype : str
            Edge type.
        names : str or list of str, default ()
            Features to return.
        weight : str, default ""
            Name of the weights to return. "": the edges' own weights.
        version : int, optional
            Version to read. None: the version of ``after``, of this graph, or the current one. Pin
            it while the scan lasts.
        rows : int, default 65536
            Maximum rows per batch; the service may return fewer.
        parts : iterable of int, optional
            Partitions to scan, in this order. None: all.
        after : Cursor, optional
            Resume after the batch that had this `EdgeBatch.cursor`, with the same ``parts``.

        Yields
        ------
        EdgeBatch
            Ends, edge ids, weights and features of some edges, with the cursor to resume from.

        Raises
        ------
        InvalidRequest
            If ``after`` belongs to another version or to none of ``parts``.
        NotFound
            If there is no such edge type, feature or version.

        Examples
        --------
        >>> sum(len(batch.src) for batch in graph.scan_edges("buys"))  # doctest: +SKIP
        5000
        """
        type_id, _ = self._session.edge_type(self.space, etype)
        feature_names = validation.names(names)
        head = graphd_pb.ScanEdgesRequest(
            space=self.space, type_id=type_id, names=feature_names, weight=weight
        )
        for reply, cursor in self._scan_replies(
            "scan_edges", head, "src", version, rows, parts, after
        ):
            yield EdgeBatch(
                part=cursor.part,
                src=reply.array("src", "int64"),
                dst=reply.array("dst", "int64"),
                edge_ids=reply.array("eids", "int64"),
                weights=reply.array("weights", "float32"),
                features=validation.decode_columns(reply.arrays, feature_names),
                version=cursor.version,
                cursor=cursor,
            )

    def count_nodes(self, ntype: str, *, version: int | None = None) -> int:
        """Return the number of nodes of a type.

        Parameters
        ----------
        ntype : str
            Node type.
        version : int, optional
            Version to read. None: the version of this graph, or the current one.

        Returns
        -------
        int
            Number of nodes.

        Raises
        ------
        NotFound
            If there is no such node type or version.

        Examples
        --------
        >>> graph.count_nodes("item")  # doctest: +SKIP
        200
        """
        return self._nodes_at(ntype, np.zeros(0, np.int64), version)[1]

    def nodes_at(self, ntype: str, places: ArrayLike, *, version: int | None = None) -> Ids:
        """Return nodes by their position in a scan of their type.

        Shuffled epochs over all nodes are built from this call.

        Parameters
        ----------
        ntype : str
            Node type.
        places : array_like of int64, shape (m,)
            Positions from 0 to `count_nodes` - 1, in the order of `Graph.scan_nodes`.
        version : int, optional
            Version to read. None: the version of this graph, or the current one.

        Returns
        -------
        ndarray of int64, shape (m,)
            Node ids.

        Raises
        ------
        InvalidRequest
            If a position is out of range.

        Examples
        --------
        >>> graph.nodes_at("paper", [0, 5])  # doctest: +SKIP
        array([ 0, 40])
        """
        return self._nodes_at(ntype, validation.ids("places", places), version)[0]

    def count_edges(self, etype: str, *, where: str = "", version: int | None = None) -> int:
        """Return the number of edges of a type, or of those that match a filter.

        Parameters
        ----------
        etype : str
            Edge type.
        where : str, default ""
            Filter on the edges, as in `sample_edges`. "": count all edges.
        version : int, optional
            Version to read. None: the version of this graph, or the current one.

        Returns
        -------
        int
            Number of edges.

        Raises
        ------
        NotFound
            If there is no such edge type or version.
        InvalidRequest
            If ``where`` is not a valid filter.

        Examples
        --------
        >>> graph.count_edges("buys")  # doctest: +SKIP
        5000
        """
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
        """Return edges by their position in a scan of their type.

        Shuffled epochs over all edges are built from this call.

        Parameters
        ----------
        etype : str
            Edge type.
        places : array_like of int64, shape (m,)
            Positions from 0 to `count_edges` - 1, in the order of `Graph.scan_edges`. With a
            filter, positions among the edges that match.
        weight : str, default ""
            Name of the weights to return. "": the edges' own weights.
        where : str, default ""
            Filter on the edges, as in `sample_edges`; edges that do not match have no position.
        version : int, optional
            Version to read. None: the version of this graph, or the current one.

        Returns
        -------
        EdgeRows
            Sources, destinations, edge ids and weights of the edges.

        Raises
        ------
        InvalidRequest
            If a position is out of range, or ``where`` is not a valid filter.

        Examples
        --------
        >>> graph.edges_at("cites", [0, 5]).src  # doctest: +SKIP
        array([ 0, 40])
        """
        return self._edges_at(etype, validation.ids("places", places), weight, where, version)[0]

    def _scan_replies(
        self,
        method: str,
        head: graphd_pb.ScanNodesRequest | graphd_pb.ScanEdgesRequest,
        id_section: str,
        version: int | None,
        rows: int,
        parts: Iterable[int] | None,
        after: Sequence[int] | None,
    ) -> Iterator[tuple[Frame[VersionReply], Cursor]]:
        """Yield the replies that have rows, with the cursor at their end."""
        remaining = (
            list(range(self.schema.parts))
            if parts is None
            else [validation.count("parts", part) for part in parts]
        )
        row = 0
        if after is not None:
            if isinstance(after, str) or len(after) != len(Cursor._fields):
                raise InvalidRequest(f"after={after!r:.80}: expected the cursor of a batch")
            start = Cursor(*validation.ids("after", after, minimum=-1).tolist())
            if version not in (None, start.version):
                raise InvalidRequest(
                    f"version={version}: expected {start.version}, the version of the cursor in "
                    "after; leave version out, or leave after out to start again"
                )
            if start.part not in remaining:
                raise InvalidRequest(
                    f"parts={remaining}: expected to include {start.part}, the partition of the "
                    "cursor in after; pass the same parts again"
                )
            version, remaining, row = (
                start.version,
                remaining[remaining.index(start.part) :],
                start.row,
            )
        pinned, head.limit = self._version(version), validation.count("rows", rows, minimum=1)
        for part in remaining:
            while row != _DONE:
                self._version(pinned or None)  # A lease may be lost while a scan is read.
                head.version, head.part, head.cursor = pinned, part, row
                reply = cast("Frame[_ScanReply]", self._session.read(method, head))
                pinned, row = reply.head.version, reply.head.next_cursor
                if len(reply.array(id_section, "int64")):
                    yield reply, Cursor(pinned, part, row)
            row = 0
