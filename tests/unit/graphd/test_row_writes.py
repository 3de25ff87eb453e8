"""Tests of rows as blocks: the partition of each row, and messages of bounded size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.kit.waiting import HANG_S

from asterism_daemonkit.rpc.call_context import CallContext
from asterism_model.schema import EdgeType, Feature, NodeType, Schema
from asterism_proto.errors import InvalidRequest
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


def graph_context(dispatcher: RecordingDispatcher, **settings: Any) -> WriteContext:
    """Return the context of a space of two node types and one edge type."""
    schema = Schema(
        node_types=(
            NodeType(name="n", features=(Feature(name="since", dtype="int64"),), time="since"),
            NodeType(name="m"),
        ),
        edge_types=(
            EdgeType(
                src_type="n",
                relation="to",
                dst_type="m",
                features=(Feature(name="x", dtype="float32"),),
            ),
        ),
        parts=PARTS,
        direction="both",
        **settings,
    )
    context = write_context(dispatcher)
    return replace(context, space=replace(context.space, schema=schema), load_id=6)


def rows_by_part(dispatcher: RecordingDispatcher, kind: int, name: str) -> dict[int, list[Any]]:
    """Return a section of the blocks of one kind, by partition."""
    out: dict[int, list[Any]] = {}
    for _, request in dispatcher.requests:
        if request.head.kind == kind:
            offsets = request.array("offsets", "int64")
            for i, part in enumerate(request.head.parts):
                out[part] = request.arrays[name][offsets[i] : offsets[i + 1]].tolist()
    return out


def test_edges_go_to_partitions_of_both_ends_and_of_their_ids() -> None:
    dispatcher = RecordingDispatcher()
    sections = {
        "src": np.array([0, 8]),
        "dst": np.array([2, 3]),
        "f:x": np.array([0.5, 1.5], np.float32),
    }
    row_writes.write_edges(graph_context(dispatcher), 0, 40, sections, ends_known=True)
    assert rows_by_part(dispatcher, storaged_pb.OUT_EDGES, "eid") == {0: [40], 1: [41]}
    assert rows_by_part(dispatcher, storaged_pb.IN_EDGES, "eid") == {2: [40], 3: [41]}
    assert rows_by_part(dispatcher, storaged_pb.EDGE_FEATURES, "f:x") == {5: [0.5], 6: [1.5]}


def test_edge_deletes_go_to_partitions_of_both_ends() -> None:
    dispatcher = RecordingDispatcher()
    sections = {"src": np.array([0, 8]), "dst": np.array([2, 3]), "eid": np.array([40, -1])}
    row_writes.delete_edges(graph_context(dispatcher), 0, sections)
    assert rows_by_part(dispatcher, storaged_pb.OUT_EDGE_DELETES, "eid") == {0: [40], 1: [-1]}
    assert rows_by_part(dispatcher, storaged_pb.IN_EDGE_DELETES, "eid") == {2: [40], 3: [-1]}


def test_times_of_nodes_go_to_every_partition() -> None:
    """An edge to a node may be in any partition, and is visible from the node's time on."""
    dispatcher = RecordingDispatcher()
    sections = {"ids": np.array([1, 8]), "f:since": np.array([10, 20])}
    row_writes.write_nodes(graph_context(dispatcher), 0, sections)
    assert rows_by_part(dispatcher, storaged_pb.NODES, "ids") == {1: [1, 8]}
    assert rows_by_part(dispatcher, storaged_pb.NODE_TIMES, "w:since") == {
        part: [10, 20] for part in range(PARTS)
    }


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_runs_of_partitions_fit_a_message(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = np.repeat(np.arange(PARTS), 2)
    monkeypatch.setattr(row_writes, "MESSAGE_BYTES", 8 * rows)
    dispatcher = RecordingDispatcher()
    row_writes.write_nodes(write_context(dispatcher), 0, {"ids": ids})
    sizes = [len(request.arrays["ids"]) for _, request in dispatcher.requests]
    assert max(sizes) <= max(rows, 2)
    assert sum(sizes) == len(ids)
    assert dispatcher.ids_by_part() == {part: [part, part] for part in range(PARTS)}


class ExistingNodes(RecordingDispatcher):
    """Storageds on which some nodes exist, by type."""

    def __init__(self, ids_by_type: dict[int, list[int]]) -> None:
        super().__init__()
        self._ids_by_type = ids_by_type
        self.loads: set[int] = set()
        """Loads that lookups included."""

    def dispatch(
        self,
        name: str,
        space: SpaceRoute,
        requests: Sequence[tuple[int, Frame[Any]]],
        call: CallContext,
    ) -> list[Frame[Any]]:
        if name != "exists":
            return super().dispatch(name, space, requests, call)
        self.loads |= {request.head.load_id for _, request in requests}
        return [
            Frame(
                storaged_pb.ExistsReply(),
                {
                    "exists": np.isin(
                        request.array("ids", "int64"),
                        self._ids_by_type.get(request.head.type_id, []),
                    ).astype(np.uint8)
                },
            )
            for _, request in requests
        ]


def test_lookups_include_nodes_of_the_same_load() -> None:
    dispatcher = ExistingNodes({1: [2]})
    found = row_writes.nodes_exist(graph_context(dispatcher), 1, np.array([3, 2]))
    assert (found.tolist(), dispatcher.loads) == ([0, 1], {6})


def test_id_of_another_type_is_refused_if_ids_are_global() -> None:
    context = graph_context(ExistingNodes({0: [5], 1: [2]}), ids="global")
    row_writes.write_nodes(context, 0, {"ids": np.array([5, 3])})
    with pytest.raises(InvalidRequest, match=r"ids\[1\] = 2: .*'m'"):
        row_writes.write_nodes(context, 0, {"ids": np.array([5, 2])})
