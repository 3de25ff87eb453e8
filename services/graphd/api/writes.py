"""Writes: chunks of loads, small writes, lookups of node ids, and the steps of a commit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from asterism_daemonkit.rpc.call_context import CallContext
from asterism_model.block_validation import MAX_ID, PIECES_PER_CHUNK
from asterism_proto.errors import InvalidRequest
from asterism_proto.framing import Frame
from asterism_proto.transport import Transport
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from graphd.api.versioned_execution import VersionRunner
from graphd.operators.schema_checks import check_types
from graphd.routing.routes import SpaceRoute
from graphd.writes import row_writes, validation
from graphd.writes.group_commit import BatchCommitter, SmallWrite, WriteBatcher, WriteChunk
from graphd.writes.row_writes import WriteContext

_MAX_SMALL_WRITE_BYTES = 16 << 20
"""Maximum bytes of arrays in one small write."""


class WriteHandlers:
    """Write handlers of the Graph service, and the steps of a commit.

    Parameters
    ----------
    versions : VersionRunner
    committed_loads : callable
        Returns the committed loads of a space, in commit order, and the number of the last commit.
    metad : Transport
        Opens the loads of small writes.
    """

    def __init__(
        self,
        versions: VersionRunner,
        *,
        committed_loads: Callable[[SpaceRoute, CallContext], tuple[Sequence[int], int]],
        metad: Transport,
    ) -> None:
        self._versions = versions
        self._committed_loads = committed_loads
        self._batcher = WriteBatcher(
            BatchCommitter(
                metad=metad,
                write_chunk=self._write_chunk,
                resolve_revivals=self.resolve_revivals,
                seal=self.seal,
            ).commit_batch
        )

    def write(
        self, request: Frame[graphd_pb.WriteRequest], call: CallContext
    ) -> Frame[graphd_pb.WriteReply]:
        """Write one chunk's rows of one type, durably in all partitions that they touch."""
        head = request.head

        def run(space: SpaceRoute) -> int:
            count = validation.check_rows(space.schema, head.kind, head.type_id, request)
            if not 0 <= head.first_edge_id <= MAX_ID - count:
                raise InvalidRequest(
                    f"first_edge_id={head.first_edge_id}: expected 0 to {MAX_ID - count}, the "
                    "first edge id of the chunk"
                )
            if count:
                context = self._write_context(space, call, load_id=head.load_id, chunk=head.chunk)
                row_writes.write_rows(
                    context,
                    head.kind,
                    head.type_id,
                    head.first_edge_id,
                    request.arrays,
                    ends_known=head.ends_known,
                )
            return count

        return Frame(graphd_pb.WriteReply(rows=self._versions.retry_stale(head.space, call, run)))

    def write_once(
        self, request: Frame[graphd_pb.WriteOnceRequest], call: CallContext
    ) -> Frame[graphd_pb.WriteOnceReply]:
        """Write rows without a load, committed together with concurrent writes."""
        head = request.head

        def run(space: SpaceRoute) -> int:
            count = validation.check_rows(space.schema, head.kind, head.type_id, request)
            if head.kind == storaged_pb.OUT_EDGES:
                # Check each write alone: an unknown node must not fail the write of another caller.
                row_writes.check_ends(
                    self._write_context(space, call, load_id=0, chunk=0),
                    head.type_id,
                    request.arrays,
                )
            return count

        size = sum(array.nbytes for array in request.arrays.values())
        if size > _MAX_SMALL_WRITE_BYTES:
            raise InvalidRequest(
                f"the write has {size} bytes: expected at most {_MAX_SMALL_WRITE_BYTES}; use a load"
            )
        count = self._versions.retry_stale(head.space, call, run)
        small_write = SmallWrite(
            kind=head.kind, type_id=head.type_id, rows=count, sections=request.arrays, call=call
        )
        if count:
            self._batcher.write(head.space, small_write)
        return Frame(
            graphd_pb.WriteOnceReply(
                rows=count,
                first_edge_id=small_write.first_edge_id,
                commit=small_write.commit_number,
            )
        )

    def find_nodes(
        self, request: Frame[graphd_pb.FindNodesRequest], call: CallContext
    ) -> Frame[graphd_pb.FindNodesReply]:
        """Return which ids of a type exist."""
        head = request.head

        def run(space: SpaceRoute) -> NDArray[np.uint8]:
            check_types("node", space.schema, [head.type_id])
            return row_writes.nodes_exist(
                self._write_context(space, call, load_id=head.load_id, chunk=0),
                head.type_id,
                request.array("ids", "int64"),
            )

        exists = self._versions.retry_stale(head.space, call, run)
        return Frame(graphd_pb.FindNodesReply(), {"exists": exists})

    def resolve_revivals(self, name: str, load_id: int, call: CallContext) -> tuple[int, bool]:
        """Resolve the nodes that a load revives, before it is committed.

        Returns
        -------
        (int, bool)
            The commit number up to which deletes are resolved, and True if the load deletes nodes.
        """

        def run(space: SpaceRoute) -> tuple[int, bool]:
            loads, last_commit = self._committed_loads(space, call)
            if load_id in loads:  # already committed: the caller repeats the commit for its reply
                return last_commit, False
            return last_commit, row_writes.resolve_revivals(
                self._write_context(space, call, load_id=load_id, chunk=0), loads
            )

        return self._versions.retry_stale(name, call, run)

    def seal(
        self, name: str, load_id: int, hosts: Collection[str], number: int, call: CallContext
    ) -> list[metad_pb.HostSeal]:
        """Seal a load on some hosts of its space before it is committed."""
        return self._versions.retry_stale(
            name,
            call,
            lambda space: row_writes.seal(
                self._write_context(space, call, load_id=load_id, chunk=0), hosts, number
            ),
        )

    def _write_chunk(
        self,
        name: str,
        load_id: int,
        chunk: int,
        first_edge_id: int,
        write_chunk: WriteChunk,
        call: CallContext,
    ) -> set[str]:
        """Write the rows of several writes durably as one chunk; return the hosts written to."""
        hosts: set[str] = set()

        def send(space: SpaceRoute) -> None:
            context = replace(
                self._write_context(space, call, load_id=load_id, chunk=chunk * PIECES_PER_CHUNK),
                hosts=hosts,
            )
            row_writes.write_rows(
                context,
                write_chunk.kind,
                write_chunk.type_id,
                first_edge_id,
                write_chunk.sections,
                ends_known=True,
            )

        self._versions.retry_stale(name, call, send)
        return hosts

    def _write_context(
        self, space: SpaceRoute, call: CallContext, *, load_id: int, chunk: int
    ) -> WriteContext:
        def committed_loads() -> Sequence[int]:
            return self._committed_loads(space, call)[0]

        return WriteContext(
            space=space,
            dispatcher=self._versions.dispatcher,
            call=call,
            load_id=load_id,
            chunk=chunk,
            committed_loads=committed_loads,
        )
