"""Tests of the layers around handlers: limits and the audit log."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.kit.waiting import HANG_S

from asterism_access import delegation
from asterism_access.audit_log import AuditLog, AuditRecord, read_audit_log
from asterism_access.limit_and_audit_interceptors import (
    AuditInterceptor,
    Handler,
    LimitInterceptor,
    describe,
    space_of,
)
from asterism_access.limits import LimitTable
from asterism_access.principals import LOCAL, Principal, PrincipalKind
from asterism_daemonkit.rpc.call_context import CallContext
from asterism_daemonkit.rpc.transports import LocalTransport
from asterism_proto.errors import Forbidden, NotFound, QuotaExceeded, Unavailable
from asterism_proto.framing import Frame
from asterism_proto.methods import ACCESS, CATALOG, GRAPH, STORE
from asterism_proto.transport import Content
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from asterism_proto.v1 import storaged_pb2 as storaged_pb

ALICE = Principal(name="alice", kind=PrincipalKind.API_KEY, credential_id="key")
DAEMON = Principal(name="graphd-1", kind=PrincipalKind.DAEMON)
SAMPLE = Frame(
    graphd_pb.SampleNeighborsRequest(space="shop", count=10, edge_types=[0], replace=True),
    {"nodes": np.arange(5)},
)


def call_of(principal: Principal) -> CallContext:
    return CallContext(time.monotonic() + HANG_S, principal=principal, peer=lambda: "10.0.0.1:5")


def sampled(request: object, call: CallContext) -> Frame:  # type: ignore[type-arg]
    return Frame(graphd_pb.SampleNeighborsReply(), {"neighbors": np.arange(50)})


def raising(error: Exception) -> Handler:
    def handler(request: object, call: CallContext) -> common_pb.Empty:
        raise error

    return handler


def limited(handler: Handler, **limits: float) -> Handler:
    row = metad_pb.AccessLimits(principal="alice", space="shop", **limits)  # type: ignore[arg-type]
    state = metad_pb.AccessState(limits=[row])
    table = LimitTable(lambda: state, clock=lambda: 0.0)
    return LimitInterceptor(table, {7: "shop"}.__getitem__).wrap(GRAPH["sample_neighbors"], handler)


def count_calls(handler: Handler, principal: Principal, request: object = SAMPLE) -> int:
    for number in range(30):
        try:
            handler(request, call_of(principal))
        except QuotaExceeded:
            return number
    return 30


def test_calls_are_admitted_by_their_rows() -> None:
    assert count_calls(limited(sampled, rows_per_s=170), ALICE) == 3, "of 50 rows each"
    assert count_calls(limited(sampled, calls_per_s=4), ALICE) == 4


def test_bytes_are_those_of_request_and_reply() -> None:
    size = SAMPLE.head.ByteSize() + 40 + 400
    assert count_calls(limited(sampled, bytes_per_s=6 * size + 1), ALICE) == 6


def test_trusted_callers_and_other_spaces_have_no_limits() -> None:
    handler = limited(sampled, calls_per_s=1)
    other = Frame(graphd_pb.SampleNeighborsRequest(space="news"), {"nodes": np.arange(5)})
    assert count_calls(handler, DAEMON) == count_calls(handler, LOCAL) == 30
    assert count_calls(handler, ALICE, other) == 30
    assert count_calls(handler, ALICE) == 1


def test_a_forwarded_call_is_not_counted_again() -> None:
    handler = limited(sampled, calls_per_s=1)
    forwarded = delegation.from_text(delegation.to_text(ALICE), forwarder=DAEMON)
    assert count_calls(handler, forwarded) == 30
    assert count_calls(handler, ALICE) == 1


def test_a_call_forwarded_in_one_process_counts_once() -> None:
    """As in `asterism serve`, where graphd calls the handlers of metad in the same process."""
    method, state = GRAPH["sample_neighbors"], metad_pb.AccessState()
    state.limits.add(principal="alice", space="shop", calls_per_s=4)
    layer = LimitInterceptor(LimitTable(lambda: state, clock=lambda: 0.0))
    metad = LocalTransport({method.path: layer.wrap(method, sampled)})

    def forward(request: Content, call: CallContext) -> Content:
        return metad.on_behalf_of(call.principal).call(method, request, HANG_S)

    assert count_calls(layer.wrap(method, forward), ALICE) == 4


def test_a_failed_call_ends() -> None:
    handler = limited(raising(NotFound("no such node")), concurrent_calls=1)
    for _ in range(3):
        with pytest.raises(NotFound):
            handler(SAMPLE, call_of(ALICE))


def test_statements_are_not_admitted_twice() -> None:
    table = LimitTable(lambda: None)
    assert LimitInterceptor(table).wrap(GRAPH["query"], sampled) is sampled


def test_spaces_are_found_by_name_and_by_id() -> None:
    names = {7: "shop"}.__getitem__
    head = storaged_pb.ReadDegreesRequest(version_ref=storaged_pb.VersionRef(space_id=7))
    assert space_of(Frame(head), names) == "shop"
    assert space_of(storaged_pb.WriteBlocksRequest(space_id=7), names) == "shop"
    assert space_of(SAMPLE) == "shop"
    assert space_of(metad_pb.SpaceRequest(space="news")) == "news"
    assert space_of(common_pb.Empty(), names) == ""


@pytest.fixture
def log(tmp_path: Path) -> Iterator[AuditLog]:
    audit_log = AuditLog(tmp_path / "audit", 1 << 20, 2)
    yield audit_log
    audit_log.close()


def records(log: AuditLog) -> list[tuple[str, str, str, str, str]]:
    """Return principal, method, space, outcome and detail of the records."""
    log.close()
    found = [entry for entry in read_audit_log(log.path) if isinstance(entry, AuditRecord)]
    assert {entry.peer for entry in found} <= {"10.0.0.1:5"}
    return [
        (entry.principal, entry.method, entry.space, entry.outcome, entry.detail) for entry in found
    ]


def test_changes_are_recorded_with_their_outcome(log: AuditLog) -> None:
    layer = AuditInterceptor(log)
    drop = CATALOG["drop_space"]
    request = metad_pb.DropSpaceRequest(space="shop", if_exists=True)
    layer.wrap(drop, lambda request, call: common_pb.Empty())(request, call_of(ALICE))
    with pytest.raises(NotFound):
        layer.wrap(drop, raising(NotFound("space='shop': not found")))(request, call_of(ALICE))
    with pytest.raises(KeyError):
        layer.wrap(drop, raising(KeyError("x")))(request, call_of(LOCAL))
    assert records(log) == [
        ("alice", "DropSpace", "shop", "OK", 'space: "shop" if_exists: true'),
        ("alice", "DropSpace", "shop", "NotFound", "space='shop': not found"),
        ("local", "DropSpace", "shop", "Internal", "see the daemon's log"),
    ]


def test_reads_are_recorded_only_if_they_are_forbidden(log: AuditLog) -> None:
    layer, method = AuditInterceptor(log), GRAPH["sample_neighbors"]
    layer.wrap(method, sampled)(SAMPLE, call_of(ALICE))
    for error in (NotFound("no version"), Forbidden("space='shop': not found, or no role")):
        with pytest.raises(type(error)):
            layer.wrap(method, raising(error))(SAMPLE, call_of(ALICE))
    assert records(log) == [
        (
            "alice",
            "SampleNeighbors",
            "shop",
            "Forbidden",
            "space='shop': not found, or no role",
        )
    ]


def test_calls_of_daemons_are_not_recorded(log: AuditLog) -> None:
    handler = AuditInterceptor(log).wrap(
        STORE["write_blocks"], lambda request, call: common_pb.Empty()
    )
    handler(storaged_pb.WriteBlocksRequest(space_id=7), call_of(DAEMON))
    assert records(log) == []


def test_the_secret_of_a_new_key_is_not_recorded(log: AuditLog) -> None:
    secret = f"ak_abcdefghij12_{'s' * 43}"
    handler = AuditInterceptor(log).wrap(
        ACCESS["create_api_key"], lambda request, call: metad_pb.CreateApiKeyReply(secret=secret)
    )
    handler(metad_pb.CreateApiKeyRequest(principal="bob"), call_of(ALICE))
    assert records(log) == [("alice", "CreateApiKey", "", "OK", 'principal: "bob"')]
    assert "ssss" not in log.path.read_text()


def test_changes_are_refused_while_required_records_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "audit"
    path.symlink_to("/dev/full")
    log = AuditLog(path, 1 << 20, 1, required=True)
    done: list[object] = []

    def change(request: object, call: CallContext) -> common_pb.Empty:
        done.append(request)
        return common_pb.Empty()

    handler = AuditInterceptor(log).wrap(CATALOG["drop_space"], change)
    handler(metad_pb.DropSpaceRequest(space="a"), call_of(ALICE))
    assert not log.flush(0.3)
    with pytest.raises(Unavailable, match="audit_required"):
        handler(metad_pb.DropSpaceRequest(space="b"), call_of(ALICE))
    assert len(done) == 1
    reader = AuditInterceptor(log).wrap(GRAPH["sample_neighbors"], sampled)
    assert reader(SAMPLE, call_of(ALICE))
    path.unlink()
    assert log.flush(HANG_S)
    handler(metad_pb.DropSpaceRequest(space="b"), call_of(ALICE))
    assert [space for _, _, space, _, _ in records(log)] == ["a", "b"]


def test_a_record_of_a_late_call_is_still_written(log: AuditLog) -> None:
    handler = AuditInterceptor(log).wrap(
        CATALOG["drop_space"], lambda request, call: common_pb.Empty()
    )
    late = CallContext(time.monotonic() - 5, principal=ALICE, peer=lambda: "10.0.0.1:5")
    handler(metad_pb.DropSpaceRequest(space="a"), late)
    assert len(records(log)) == 1


def test_a_large_request_is_described_by_its_size() -> None:
    record = metad_pb.ImportSpaceRequest(name="x" * 5000)
    assert describe(record) == f"{record.ByteSize()} bytes"
    write = Frame(graphd_pb.WriteOnceRequest(space="shop"), {"ids": np.arange(3)})
    assert describe(write) == 'space: "shop" rows: 3'
