"""Tests of the calls of administrators against a server of the methods of access control."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.kit.access_server import AccessServer, access_server

import asterism
import asterism.aio
from asterism.cli.output import to_json_value
from asterism.records import AccessLimits, RoleGrant
from asterism_proto.errors import InvalidRequest, NotFound, Unavailable


@pytest.fixture
def server() -> Iterator[AccessServer]:
    with access_server() as running:
        yield running


@pytest.fixture
def client(server: AccessServer) -> Iterator[asterism.Client]:
    with asterism.connect(server.address) as connected:
        yield connected


def test_only_the_new_key_has_its_secret(client: asterism.Client) -> None:
    key = client.create_api_key("alice", description="training")
    assert key.secret.startswith(f"ak_{key.key_id}_")
    assert (key.principal, key.description, key.expires_ms) == ("alice", "training", 0)
    assert [(listed.key_id, listed.secret) for listed in client.api_keys()] == [(key.key_id, "")]


def test_texts_of_a_new_key_do_not_show_its_secret(client: asterism.Client) -> None:
    key = client.create_api_key("alice")
    secret = key.secret.removeprefix(f"ak_{key.key_id}_")
    assert secret not in f"{key!r} {key!s} {to_json_value(key)}"


def test_a_key_expires_after_the_given_seconds(client: asterism.Client) -> None:
    before_ms = time.time_ns() // 1_000_000
    key = client.create_api_key("alice", expires_s=90)
    assert key.expires_ms == key.created_ms + 90_000
    assert key.created_ms >= before_ms


def test_keys_are_listed_by_principal_and_revoked(client: asterism.Client) -> None:
    alice, bob = client.create_api_key("alice"), client.create_api_key("bob")
    assert [key.key_id for key in client.api_keys("bob")] == [bob.key_id]
    assert client.revoke_api_key(alice.key_id).revoked_ms
    assert {key.principal: bool(key.revoked_ms) for key in client.api_keys()} == {
        "alice": True,
        "bob": False,
    }
    with pytest.raises(NotFound):
        client.revoke_api_key("none")


def test_a_lost_reply_creates_no_second_key(client: asterism.Client, server: AccessServer) -> None:
    def lose() -> None:
        raise Unavailable("lost")

    server.before = lose
    with pytest.raises(Unavailable):
        client.create_api_key("alice")
    assert len(server.authorizations) == 1


def test_grants_are_replaced_listed_and_revoked(client: asterism.Client) -> None:
    client.grant("alice", "shop", "reader")
    client.grant("alice", "shop", "Writer")
    client.grant("bob", "*", "admin")
    everything = client.grants()
    assert everything == [
        RoleGrant(principal="alice", space="shop", role="writer"),
        RoleGrant(principal="bob", space="*", role="admin"),
    ]
    assert client.grants("bob") == everything[1:]
    assert client.grants(space="shop") == everything[:1]
    assert client.revoke("alice", "shop") == ""
    assert client.revoke("alice", "shop") == ""
    assert client.grants() == everything[1:]
    assert client.revoke("bob", "*") == "run bootstrap"


def test_limits_are_set_listed_and_removed(client: asterism.Client) -> None:
    limits = client.set_access_limits("alice", "shop", calls_per_s=2.5, jobs=3, share=0.5)
    assert limits == AccessLimits(
        principal="alice",
        space="shop",
        calls_per_s=2.5,
        rows_per_s=0,
        bytes_per_s=0,
        concurrent_calls=0,
        stored_bytes=0,
        pins=0,
        jobs=3,
        share=0.5,
    )
    everywhere = client.set_access_limits("*", stored_bytes=1 << 40)
    assert (everywhere.space, everywhere.stored_bytes) == ("*", 1 << 40)
    assert client.access_limits("alice") == [limits]
    assert client.access_limits(space="*") == [everywhere]
    client.set_access_limits("alice", "shop")
    assert client.access_limits() == [everywhere]


@pytest.mark.parametrize(
    ("name", "arguments", "options", "message"),
    [
        ("create_api_key", ("",), {}, r"^principal='': expected a name"),
        ("create_api_key", (None,), {}, r"^principal=None: expected a string"),
        ("create_api_key", ("a",), {"expires_s": 0}, r"^expires_s=0: expected above 0"),
        ("create_api_key", ("a",), {"expires_s": "1d"}, r"^expires_s='1d': expected above 0"),
        ("create_api_key", ("a",), {"description": 3}, r"^description=3: expected a string"),
        ("create_api_key", ("\ud800",), {}, r"^principal="),
        ("grant", ("a", "shop", "owner"), {}, r"^role='owner': expected reader, writer, builder"),
        ("grant", ("a", "shop", 3), {}, r"^role=3: expected a string"),
        ("grant", ("a", "", "reader"), {}, r"^space='': expected a name"),
        ("grants", (3,), {}, r"^principal=3: expected a string"),
        ("set_access_limits", ("a",), {"calls_per_s": -1}, r"^calls_per_s=-1: expected 0 to"),
        ("set_access_limits", ("a",), {"share": float("nan")}, r"^share=nan: expected 0 to"),
        ("set_access_limits", ("a",), {"pins": 1.5}, r"^pins=1\.5: expected an integer"),
    ],
)
def test_wrong_arguments_are_named(
    name: str, arguments: Any, options: Any, message: str, client: asterism.Client
) -> None:
    with pytest.raises(InvalidRequest, match=message):
        getattr(client, name)(*arguments, **options)


def test_asynchronous_clients_have_the_same_calls(server: AccessServer) -> None:
    async def run() -> list[RoleGrant]:
        async with asterism.aio.connect(server.address) as client:
            key = await client.create_api_key("alice")
            await client.revoke_api_key(key.key_id)
            await client.grant("alice", "shop", "builder")
            await client.set_access_limits("alice", pins=2)
            assert len(await client.access_limits()) == len(await client.api_keys()) == 1
            return await client.grants()

    assert asyncio.run(run()) == [RoleGrant(principal="alice", space="shop", role="builder")]
