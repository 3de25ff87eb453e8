"""Handlers for loads: writes, seals, and lookups that graphd makes before a commit."""

from __future__ import annotations

import numpy as np

from asterism_daemonkit.rpc.call_context import CallContext
from asterism_model.schema import Schema
from asterism_proto.errors import InvalidRequest
from asterism_proto.framing import Frame
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from storaged.api import write_decoding
from storaged.load_write_admission import Admissions
from storaged.local_spaces import LocalSpaces


class BlockHandlers:
    """The handlers of the Store service for loads and their blocks.

    Parameters
    ----------
    local_spaces : LocalSpaces
        Graph spaces and stores held here.
    admissions : Admissions
        Loads that may be written.
    """

    def __init__(self, local_spaces: LocalSpaces, admissions: Admissions) -> None:
        self._local_spaces = local_spaces
        self._admissions = admissions

    def write_blocks(
        self, request: Frame[storaged_pb.WriteBlocksRequest], call: CallContext
    ) -> Frame[storaged_pb.WriteBlocksReply]:
        """Write blocks. They are durable when the reply is sent."""
        head = request.head
        space = self._local_spaces.space(head.space_id)
        blocks = write_decoding.decode_blocks(request, space.schema, space.parts)
        chunk, extents = (
            write_decoding.registered_chunk_number(head),
            write_decoding.block_extents(blocks),
        )
        with self._admissions.admit_write(
            head.space_id, head.load_id, chunk, extents, call
        ) as registered:
            write_decoding.check_chunk(request, space.schema, registered)
            call.remaining()
            return Frame(
                storaged_pb.WriteBlocksReply(
                    bytes=self._local_spaces.store(head.space_id).write(blocks)
                )
            )

    def seal_load(
        self, request: Frame[storaged_pb.SealLoadRequest], call: CallContext
    ) -> Frame[storaged_pb.SealLoadReply]:
        """End the writes of a load and return the fingerprints of its blocks."""
        head = request.head
        local_parts = self._local_spaces.space(head.space_id).parts
        with self._admissions.seal(head.space_id, head.load_id, head.number, call) as seal:
            fingerprints = (
                self._local_spaces.store(head.space_id).fingerprints(head.load_id, seal.extents)
                if seal.has_writes
                else {}
            )
        parts = [
            fingerprint.to_proto()
            for part, fingerprint in sorted(fingerprints.items())
            if part in local_parts
        ]
        return Frame(storaged_pb.SealLoadReply(number=seal.number, parts=parts))

    def exists(
        self, request: Frame[storaged_pb.ExistsRequest], call: CallContext
    ) -> Frame[storaged_pb.ExistsReply]:
        """Return which ids are nodes."""
        head = request.head
        _check_node_type(self._local_spaces.space(head.space_id).schema, head.type_id)
        ids = request.array("ids", "int64")
        mask = self._local_spaces.store(head.space_id).exists(
            head.type_id, ids, head.load_id, list(head.loads)
        )
        return Frame(storaged_pb.ExistsReply(), {"exists": mask})

    def list_revivals(
        self, request: Frame[storaged_pb.ListRevivalsRequest], call: CallContext
    ) -> Frame[storaged_pb.ListRevivalsReply]:
        """Return the chunks in which a load writes nodes that are deleted so far."""
        head = request.head
        store = self._local_spaces.store(head.space_id)
        type_chunks = np.array(store.revivals(head.load_id, list(head.loads)), np.int64).reshape(
            -1, 2
        )
        return Frame(
            storaged_pb.ListRevivalsReply(deletes=store.deletes_nodes(head.load_id)),
            {"types": type_chunks[:, 0].astype(np.int32), "chunks": type_chunks[:, 1].copy()},
        )

    def read_revivals(
        self, request: Frame[storaged_pb.ReadRevivalsRequest], call: CallContext
    ) -> Frame[storaged_pb.ReadRevivalsReply]:
        """Return the nodes of one chunk that are deleted so far."""
        head = request.head
        _check_node_type(self._local_spaces.space(head.space_id).schema, head.type_id)
        ids = self._local_spaces.store(head.space_id).revived_ids(
            head.type_id, head.chunk, head.load_id, list(head.loads)
        )
        return Frame(storaged_pb.ReadRevivalsReply(), {"ids": ids})


def _check_node_type(schema: Schema, type_id: int) -> None:
    type_count = len(schema.node_types)
    if type_id >= type_count:
        raise InvalidRequest(
            f"node type {type_id}: expected a node type of the schema, 0 to {type_count - 1}"
        )
