"""Roles, API keys and limits through statements and the client, over the real catalog."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import asterism
from asterism.records import RoleGrant
from asterism_proto.errors import InvalidRequest, NotFound


@pytest.fixture
def client(tmp_path: Path) -> Iterator[asterism.Client]:
    with asterism.open(tmp_path / "data") as opened:
        opened.create_space("shop", {"nodes": {"item": {}}})
        yield opened


def test_statements_grant_list_and_revoke_roles(client: asterism.Client) -> None:
    granted = client.query("GRANT ROLE user ON shop TO alice")
    assert granted.kind == "grant"
    assert granted.rows() == [("alice", "shop", "writer")]
    client.query("GRANT ROLE admin ON * TO $who", {"who": "ops@example.com"})
    assert sorted(client.query("SHOW ROLES").rows()) == [
        ("alice", "shop", "writer"),
        ("ops@example.com", "*", "admin"),
    ]
    assert client.query("SHOW ROLES IN shop").rows() == [("alice", "shop", "writer")]
    assert client.grants("alice") == [RoleGrant(principal="alice", space="shop", role="writer")]
    assert len(client.query("REVOKE ROLE ON shop FROM alice")) == 0
    assert client.query("SHOW ROLES ON shop").rows() == []


def test_revoking_the_last_administrator_says_how_to_return(client: asterism.Client) -> None:
    client.query("GRANT ROLE admin ON * TO ops")
    (notice,) = client.query("REVOKE ROLE admin ON * FROM ops")["notice"]
    assert "bootstrap" in notice or "ticket" in notice


def test_a_named_role_is_revoked_only_if_it_is_held(client: asterism.Client) -> None:
    client.query("GRANT ROLE reader ON shop TO alice")
    for text, found in (
        ("REVOKE ROLE writer ON shop FROM alice", "'alice' has the role reader on shop"),
        ("REVOKE ROLE writer ON shop FROM bob", "'bob' has no role on shop"),
    ):
        with pytest.raises(NotFound, match=found) as caught:
            client.query(text)
        assert caught.value.place is not None
        assert caught.value.place.column == 13
    assert len(client.grants()) == 1
    client.query("REVOKE ROLE guest ON shop FROM alice")
    assert client.grants() == []


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("GRANT ROLE owner ON shop TO alice", 12, "role='owner': expected reader, writer"),
        ("GRANT ROLE reader ON shop TO $n", 30, r"\$n is 3: expected the name of a principal"),
        ("GRANT ROLE reader shop TO alice", 19, "expected ON"),
    ],
)
def test_wrong_statements_show_the_place(
    text: str, column: int, message: str, client: asterism.Client
) -> None:
    with pytest.raises(InvalidRequest, match=message) as caught:
        client.query(text, {"n": 3} if "$n" in text else None)
    assert caught.value.place is not None
    assert caught.value.place.column == column


def test_explain_grants_nothing(client: asterism.Client) -> None:
    plan = client.query("EXPLAIN GRANT ROLE reader ON shop TO alice").plan
    assert "Access.GrantRole(principal=alice, role=1)" in plan
    assert client.grants() == []


def test_limits_round_trip_through_the_catalog(client: asterism.Client) -> None:
    limits = client.set_access_limits("alice", "shop", calls_per_s=2.5, jobs=3)
    assert client.access_limits("alice") == [limits]
    client.set_access_limits("alice", "shop")
    assert client.access_limits() == []
