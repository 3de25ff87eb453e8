"""Tests of rows as blocks: the partition of each row, and messages of bounded size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.kit.waiting import HANG_S

from asterism_daemonkit.calls import CallContext
from asterism_model.schema import NodeType, Schema
from asterism_proto.framing import Frame
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from graphd.routing.routes import SpaceRoute
from graphd.writes import row_writes
from graphd.writes.row_writes import WriteContext

PARTS, HOSTS, CHUNK = 7, 3, 4


class RecordingDispatcher:
    """Storageds that accept every block; on host i, a load has revived node 10 * i."""

    def __init__(self) -> None:
        self.requests: list[tuple[int, Frame[storaged_pb.WriteBlocksRequest]]] = []
        """Host and request of every written block."""

    def dispatch(
        self,
        name: str,
        space: SpaceRoute,
        requests: Sequence[tuple[int, Frame[Any]]],
        call: CallContext,
    ) -> list[Frame[Any]]:
        if name == "list_revivals":
            arrays = {"types": np.zeros(1, np.int32), "chunks": np.full(1, CHUNK)}
            return [Frame(storaged_pb.ListRevivalsReply(), arrays) for _ in requests]
        if name == "read_revivals":
            return [
                Frame(storaged_pb.ReadRevivalsReply(), {"ids": np.array([10 * host])})
                for host, _ in requests
            ]
        assert name == "write_blocks"
        self.requests += requests
        return [Frame(storaged_pb.WriteBlocksReply()) for _ in requests]

    def ids_by_part(self) -> dict[int, list[int]]:
        """Return the ids sent to each partition, in one block each, at its host."""
        ids_by_part: dict[int, list[int]] = {}
        for host, request in self.requests:
            ids, offsets = request.array("ids", "int64"), request.array("offsets", "int64")
            for i, part in enumerate(request.head.parts):
                assert part % HOSTS == host
                assert part not in ids_by_part
                ids_by_part[part] = ids[offsets[i] : offsets[i + 1]].tolist()
        return ids_by_part


def write_context(dispatcher: RecordingDispatcher) -> WriteContext:
    space = SpaceRoute(
        space_id=1,
        name="s",
        schema=Schema(node_types=(NodeType(name="n"),), parts=PARTS),
        hosts=tuple(f"h{i}" for i in range(HOSTS)),
        host_of_part=(np.arange(PARTS) % HOSTS).astype(np.int32),
    )
    return WriteContext(
        space=space,
        dispatcher=dispatcher,  # type: ignore[arg-type]  # only `dispatch` is used
        call=CallContext.with_timeout(HANG_S),
        load_id=1,
        chunk=0,
        committed_loads=list,
    )


@pytest.mark.parametrize("message_parts", [1, 2, PARTS])
def test_node_deletes_reach_every_partition_once(
    message_parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node's edges may be in any partition; tombstones of one partition are one block."""
    ids = np.array([5, 3, 8])
    monkeypatch.setattr(row_writes, "MESSAGE_BYTES", message_parts * ids.nbytes)
    dispatcher = RecordingDispatcher()
    row_writes.delete_nodes(write_context(dispatcher), 0, {"ids": ids})
    assert max(len(request.head.parts) for _, request in dispatcher.requests) <= message_parts
    assert dispatcher.ids_by_part() == dict.fromkeys(range(PARTS), ids.tolist())


def test_births_at_any_host_reach_every_partition() -> None:
    dispatcher = RecordingDispatcher()
    assert not row_writes.resolve_revivals(write_context(dispatcher), [1, 2])
    assert {request.head.kind for _, request in dispatcher.requests} == {storaged_pb.NODE_REVIVALS}
    assert {request.head.chunk for _, request in dispatcher.requests} == {CHUNK}
    assert dispatcher.ids_by_part() == {part: [0, 10, 20] for part in range(PARTS)}
