"""Tests of the counts and records of refused credentials."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from asterism_access.audit_log import AuditLog, AuditRecord, read_audit_log
from asterism_access.authentication import Authenticator
from asterism_access.credentials.api_keys import generate
from asterism_access.credentials.cluster_key import ClusterKey, create_key_file
from asterism_access.principals import LOCAL, Principal, PrincipalKind
from asterism_access.refused_credential_audit import MAX_RECORDS, RefusedCredentials
from asterism_proto.errors import Unauthenticated
from asterism_proto.v1.metad_pb2 import AccessState, ApiKey

ALICE = Principal(name="alice", kind=PrincipalKind.API_KEY)


class Refusals:
    """Refused requests, with a clock that the test sets."""

    def __init__(self, folder: Path) -> None:
        self.now = 100.0
        self.counts: Counter[tuple[str, str]] = Counter()
        self.log = AuditLog(folder / "audit.jsonl", 1 << 20, 2)
        self.refused = RefusedCredentials(self._count, self.log, clock=lambda: self.now)

    def _count(self, port: str, reason: str) -> None:
        self.counts[port, reason] += 1

    def refuse(self, peer: str, reason: str = "unknown", message: str = "api_key: unknown") -> None:
        error = Unauthenticated(message, reason=reason)
        self.refused.refuse_request(error, "GET /status", peer)

    def records(self) -> list[AuditRecord]:
        self.log.close()
        return [line for line in read_audit_log(self.log.path) if isinstance(line, AuditRecord)]


@pytest.fixture
def refusals(tmp_path: Path) -> Refusals:
    return Refusals(tmp_path)


def test_an_address_has_one_record_a_minute_and_reason(refusals: Refusals) -> None:
    for port in range(5):
        refusals.refuse(f"ipv4:10.0.0.7:{port}")
        refusals.refuse(f"ipv4:10.0.0.7:{port}", "expired")
        refusals.refuse(f"ipv6:[2001:db8::{port}]:1")
    refusals.now += 60
    refusals.refuse("ipv4:10.0.0.7:9")
    assert refusals.counts == {("http", "unknown"): 11, ("http", "expired"): 5}
    records = refusals.records()
    assert [record.peer for record in records] == [
        "ipv4:10.0.0.7:0",
        "ipv4:10.0.0.7:0",
        "ipv6:[2001:db8::0]:1",
        "ipv4:10.0.0.7:9",
    ]
    assert records[-1].detail == ("api_key: unknown; 12 refusals before this one were not recorded")
    assert {
        (record.kind, record.principal, record.method, record.outcome) for record in records
    } == {("anonymous", "", "GET /status", "Unauthenticated")}


def test_many_addresses_cannot_fill_the_log(refusals: Refusals) -> None:
    for address in range(1000):
        refusals.refuse(f"ipv4:10.0.{address // 256}.{address % 256}:1")
    assert refusals.counts["http", "unknown"] == 1000
    assert len(refusals.records()) == MAX_RECORDS


def test_a_request_without_a_credential_is_counted_only(refusals: Refusals) -> None:
    refusals.refuse("ipv4:10.0.0.7:1", "missing")
    assert refusals.counts == {("http", "missing"): 1}
    assert refusals.records() == []


def test_a_closed_log_does_not_fail_the_request(refusals: Refusals) -> None:
    refusals.log.close()
    refusals.refuse("ipv4:10.0.0.7:1")
    assert refusals.counts == {("http", "unknown"): 1}


def test_refusals_of_a_function_are_counted(refusals: Refusals) -> None:
    def authenticate(authorization: str) -> Principal:
        if authorization != "good":
            raise Unauthenticated("ticket: expired", reason="expired")
        return LOCAL

    counting = refusals.refused.counting("grpc", authenticate)
    assert counting("good") is LOCAL
    with pytest.raises(Unauthenticated, match="expired"):
        counting("bad")
    assert refusals.counts == {("grpc", "expired"): 1}


def test_every_refused_credential_has_a_reason(tmp_path: Path) -> None:
    create_key_file(tmp_path / "cluster.key")
    cluster_key = ClusterKey(str(tmp_path / "cluster.key"))
    secrets = {name: generate() for name in ("revoked", "expired", "other")}
    state = AccessState(
        keys=[
            ApiKey(key_id=key.key_id, principal=name, secret_hash=key.hash, **{field: 1})
            for (name, key), field in zip(
                secrets.items(), ("revoked_ms", "expires_ms", "created_ms"), strict=True
            )
        ]
    )
    authenticator = Authenticator(cluster_key, None, lambda: state)
    ticket = cluster_key.root_ticket(60)
    forged = ticket[:-1] + ("A" if ticket[-1] != "A" else "B")
    reasons = {
        "": "missing",
        "Basic x": "malformed",
        "Bearer nonsense": "malformed",
        "Bearer ak_short": "malformed",
        f"Bearer {generate().text}": "unknown",
        f"Bearer {secrets['revoked'].text}": "revoked",
        f"Bearer {secrets['expired'].text}": "expired",
        f"Bearer {forged}": "signature",
        f"Bearer {cluster_key.client_ticket(ALICE, {})}": "kind",
        "Bearer a.b.c": "kind",
    }
    for authorization, reason in reasons.items():
        with pytest.raises(Unauthenticated) as raised:
            authenticator.authenticate(authorization)
        assert raised.value.reason == reason, authorization
