"""Rows as blocks: which partition each goes to, in messages of a bounded size."""

from __future__ import annotations

from collections.abc import Sequence

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

PARTS, HOSTS = 7, 3


class RecordingDispatcher:
    """Storageds that take every block."""

    def __init__(self) -> None:
        self.requests: list[tuple[int, Frame[storaged_pb.WriteBlocksRequest]]] = []

    def dispatch(
        self,
        name: str,
        space: SpaceRoute,
        requests: Sequence[tuple[int, Frame[storaged_pb.WriteBlocksRequest]]],
        call: CallContext,
    ) -> list[Frame[storaged_pb.WriteBlocksReply]]:
        assert name == "write_blocks"
        self.requests += requests
        return [Frame(storaged_pb.WriteBlocksReply()) for _ in requests]


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
    """Edges to a node may be anywhere, and tombstones of one partition come in one block."""
    ids = np.array([5, 3, 8])
    monkeypatch.setattr(row_writes, "MESSAGE_BYTES", message_parts * ids.nbytes)
    dispatcher = RecordingDispatcher()
    row_writes.delete_nodes(write_context(dispatcher), 0, {"ids": ids})
    ids_by_part: dict[int, list[int]] = {}
    for host, request in dispatcher.requests:
        offsets = request.array("offsets", "int64")
        assert len(request.head.parts) <= message_parts
        for i, part in enumerate(request.head.parts):
            assert part % HOSTS == host
            assert part not in ids_by_part
            ids_by_part[part] = request.array("ids", "int64")[offsets[i] : offsets[i + 1]].tolist()
    assert ids_by_part == dict.fromkeys(range(PARTS), ids.tolist())
