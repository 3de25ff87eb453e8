"""Scans: everything of a type, part after part, in canonical order, of one version; resumable after
every batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, cast

from asterism.calls import validation
from asterism.calls.base import GraphCalls
from asterism.client_state import VersionReply
from asterism.records.samples import Cursor, EdgeBatch, NodeBatch
from asterism_proto.errors import InvalidRequest
from asterism_proto.framing import Frame
from asterism_proto.v1 import graphd_pb2 as graphd_pb

_DONE = -1
"""A cursor's row: the part has been read to its end."""


class _ScanReply(VersionReply, Protocol):
    """Fields of the reply to every scan."""

    next_cursor: int


class ScanCalls(GraphCalls):
    """The part of a graph that exports and full inference read through."""

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
        """Every node of a type once: part after part, by id, all of one version.

        Parameters
        ----------
        ntype : str
            The node type.
        names : str or list of str
            Features to bring along.
        weight : str
            The name of the weights to give back; "" are the nodes' own.
        version : int, optional
            None: that of ``after``, or the current one. Pin it for as long as the scan lasts.
        rows : int
            Of a batch at most; a server may give fewer.
        parts : iterable of int, optional
            Of these parts only, in this order; None: all. Several readers may share the parts among
            them.
        after : Cursor, optional
            Go on behind the batch that had this `NodeBatch.cursor`, with the same ``parts``; its
            three numbers, as JSON has them, will do.

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
        """Every edge of a type once: part after part of the sources, in out-adjacency order, all of
        one version.

        Arguments as of `scan_nodes`.
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
        """Replies with any rows, and where each one ends."""
        remaining = list(range(self.schema.parts) if parts is None else parts)
        row = 0
        if after is not None:
            start = Cursor(*after)
            if version not in (None, start.version):
                raise InvalidRequest(
                    f"version {version}: the cursor is of version {start.version}; leave the "
                    "version out, or scan anew"
                )
            if start.part not in remaining:
                raise InvalidRequest(
                    f"the cursor is in part {start.part}, the scan of parts {remaining}; "
                    "give the same parts again"
                )
            version, remaining, row = (
                start.version,
                remaining[remaining.index(start.part) :],
                start.row,
            )
        pinned, head.limit = self._version(version), validation.count("rows", rows, minimum=1)
        for part in remaining:
            while row != _DONE:
                self._version(pinned or None)  # a lease may end while a scan is read
                head.version, head.part, head.cursor = pinned, part, row
                reply = cast("Frame[_ScanReply]", self._session.read(method, head))
                pinned, row = reply.head.version, reply.head.next_cursor
                if len(reply.array(id_section, "int64")):
                    yield reply, Cursor(pinned, part, row)
            row = 0
