"""Tests of the table of the Store service's methods."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from asterism_daemonkit.recent_logs import RECENT_RECORDS
from asterism_daemonkit.rpc.call_context import CallContext
from asterism_daemonkit.rpc.tcp_client import TcpEndpoint
from asterism_proto.errors import Stale
from asterism_proto.framing import Frame
from asterism_proto.methods import STORE
from asterism_proto.v1 import common_pb2
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from storaged.api.service import OPERATIONS, StoreService


class _NoVersions:
    """Local spaces that hold no version."""

    def version(self, space_id: int, version: int, digest: str) -> Any:
        raise Stale(f"version {version} is not held here")


@pytest.fixture
def service() -> StoreService:
    return StoreService(_NoVersions(), lambda: TcpEndpoint(7, 5, "name"))  # type: ignore[arg-type]


def test_every_method_has_a_handler(service: StoreService) -> None:
    assert set(service.handlers) == {method.path for method in STORE.values()}


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_version_that_is_not_held_is_stale(service: StoreService, name: str) -> None:
    request: Any = Frame(
        STORE[name].request(version_ref=storaged_pb.VersionRef(space_id=1, version=3))
    )
    request.head.version_ref.where.expression = "id > 1"
    request.head.version_ref.where.element = common_pb2.NODE
    with pytest.raises(Stale, match="version 3"):
        service.handlers[STORE[name].path](request, CallContext.with_timeout(60))


def test_find_stream_returns_the_endpoint(service: StoreService) -> None:
    reply = service.handlers[STORE["find_binary_endpoint"].path](
        storaged_pb.FindBinaryEndpointRequest(), CallContext.with_timeout(60)
    )
    assert reply == storaged_pb.FindBinaryEndpointReply(port=7, handshake_key=5, unix_socket="name")


def test_the_log_of_the_process_is_listed(service: StoreService) -> None:
    logger = logging.getLogger("storaged.test")
    logger.handlers[:] = [RECENT_RECORDS]
    logger.warning("disk_slow", extra={"read_ms": 4000})
    reply = service.handlers[STORE["list_log_records"].path](
        common_pb2.ListLogRecordsRequest(limit=1), CallContext.with_timeout(60)
    )
    assert isinstance(reply, common_pb2.LogRecordList)
    assert [record.text for record in reply.records] == ["disk_slow read_ms=4000"]
