"""Tests of the clients' keys and tokens: their forms, the environment, requests, and workers."""

from __future__ import annotations

import asyncio
import copy
import multiprocessing
import os
import pickle
import warnings
from collections.abc import Iterator
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import pytest
from tests.kit.access_server import AccessServer, access_server
from tests.kit.waiting import HANG_S

import asterism
import asterism.aio
from asterism.transport.credentials import (
    ENVIRONMENT,
    MAX_LENGTH,
    CredentialFile,
    Credentials,
    credentials_of,
    is_loopback,
)
from asterism.transport.direct import DirectTransport
from asterism.transport.grpc import GrpcTransport
from asterism_proto.errors import InvalidRequest, Unauthenticated, Unavailable

KEY = "ak_AAAAAAAAAAAA_" + "s3cret" * 7


@pytest.fixture(autouse=True)
def empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ENVIRONMENT.values():
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def server() -> Iterator[AccessServer]:
    with access_server() as running:
        yield running


def test_every_request_carries_the_key(server: AccessServer) -> None:
    with asterism.connect(server.address, api_key=KEY) as client:
        client.spaces()
        client.spaces()
    assert server.authorizations == [f"Bearer {KEY}"] * 2


def test_without_a_key_a_request_has_no_credentials(server: AccessServer) -> None:
    with asterism.connect(server.address) as client:
        client.spaces()
    assert server.authorizations == [None]


def test_a_function_gives_a_token_for_each_request(server: AccessServer) -> None:
    tokens = iter(["one", "two", "two"])
    with asterism.connect(server.address, token=lambda: next(tokens)) as client:
        for _ in range(3):
            client.spaces()
    assert server.authorizations == ["Bearer one", "Bearer two", "Bearer two"]


def test_a_retry_asks_for_a_fresh_token(server: AccessServer) -> None:
    tokens = iter(["one", "two"])
    failures = iter([Unavailable("once")])

    def fail_once() -> None:
        for failure in failures:
            raise failure

    server.before = fail_once
    with asterism.connect(server.address, token=lambda: next(tokens)) as client:
        client.spaces()
    assert server.authorizations == ["Bearer one", "Bearer two"]


def test_hedged_requests_carry_the_key(server: AccessServer) -> None:
    addresses = f"{server.address},{server.address}"
    with asterism.connect(addresses, hedge=30.0, api_key=KEY) as client:
        client.spaces()
    assert server.authorizations == [f"Bearer {KEY}"]


def test_asynchronous_clients_send_the_key(server: AccessServer) -> None:
    async def read() -> None:
        async with asterism.aio.connect(server.address, api_key=KEY) as client:
            await client.spaces()

    asyncio.run(read())
    assert server.authorizations == [f"Bearer {KEY}"]


def test_the_environment_applies_unless_a_key_is_given(
    server: AccessServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "key"
    file.write_text("from-file\n")
    monkeypatch.setenv(ENVIRONMENT["file"], str(file))
    with asterism.connect(server.address) as client:
        client.spaces()
    monkeypatch.setenv(ENVIRONMENT["key"], "from-variable")
    with asterism.connect(server.address) as client:
        client.spaces()
    with asterism.connect(server.address, token="given") as client:
        client.spaces()
    assert server.authorizations == ["Bearer from-file", "Bearer from-variable", "Bearer given"]


def test_a_changed_key_file_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("first\n")
    key = CredentialFile(file)
    assert key() == "first"
    (tmp_path / "next").write_text("  second \n")
    os.replace(tmp_path / "next", file)
    assert key() == "second"
    file.unlink()
    assert key() == "second"


def test_a_missing_key_file_is_an_error_when_connecting(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(ENVIRONMENT["file"], str(tmp_path / "none"))
    with pytest.raises(InvalidRequest, match=r"^api_key_file=.*expected a readable file .*No such"):
        asterism.connect("localhost:1")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("", "found an empty text"),
        (f"{KEY}\n", "position 58"),
        (f"Bearer {KEY}", "without 'Bearer '"),
        ("schlüssel-" + KEY, "position 4"),
        (KEY + "\x00", "visible ASCII"),
        ("x" * (MAX_LENGTH + 1), "at most 7,000"),
        (b"key", "of type bytes"),
        (3, "of type int"),
    ],
)
def test_unusable_keys_are_refused_and_not_shown(value: object, reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason) as caught:
        asterism.connect("localhost:1", api_key=value)  # type: ignore[call-overload]
    assert "s3cret" not in str(caught.value)


def test_a_key_and_a_token_together_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="expected one of them"):
        asterism.connect("localhost:1", api_key=KEY, token="t")


@pytest.mark.parametrize("wrong", [None, "a b"])
def test_a_function_that_returns_no_token_is_an_error(wrong: Any, server: AccessServer) -> None:
    with (
        asterism.connect(server.address, token=lambda: wrong) as client,
        pytest.raises(InvalidRequest, match=r"^token: expected"),
    ):
        client.spaces()
    assert server.authorizations == []


def test_a_function_that_fails_is_unauthenticated(server: AccessServer) -> None:
    def fetch() -> str:
        raise OSError("issuer s3cret is down")

    with (
        asterism.connect(server.address, token=fetch) as client,
        pytest.raises(Unauthenticated, match=r"^token: the function .* raised OSError$"),
    ):
        client.spaces()


def test_no_text_of_a_client_shows_its_key() -> None:
    with asterism.connect("localhost:1", api_key=KEY) as client:
        transport: Any = client.session.transport
        for shown in (client, transport, transport._credentials, transport.__getstate__()):
            assert "s3cret" not in f"{shown!r} {shown!s}"


def test_a_key_without_tls_to_another_host_warns_once() -> None:
    with pytest.warns(UserWarning, match=r"^api_key: sent without TLS to db:9669, so ") as caught:
        asterism.connect("localhost:1,db", api_key=KEY).close()
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert "s3cret" not in str(caught[0].message)


def test_local_and_encrypted_connections_do_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asterism.connect("127.0.0.1:1,localhost:2,[::1]:3", api_key=KEY).close()
        asterism.connect("db:1", api_key=KEY, tls=True).close()
        asterism.connect("db:1").close()


@pytest.mark.parametrize(
    ("address", "expected"), [("127.8.0.1:1", True), ("[::1]:1", True), ("10.0.0.1:1", False)]
)
def test_loopback_addresses(address: str, expected: bool) -> None:
    assert is_loopback(address) is expected


def _send_from_worker(client: asterism.Client) -> None:
    client.spaces()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_worker_sends_the_key(method: str, server: AccessServer) -> None:
    with asterism.connect(server.address, api_key=KEY) as client:
        worker: Any = multiprocessing.get_context(method).Process(
            target=_send_from_worker, args=(client,)
        )
        worker.start()
        worker.join(HANG_S)
    assert worker.exitcode == 0
    assert server.authorizations == [f"Bearer {KEY}"]


@pytest.mark.parametrize("transport", [GrpcTransport, DirectTransport])
def test_pickles_leave_the_key_out_except_for_workers(transport: type[GrpcTransport]) -> None:
    original = transport("localhost:1", credentials=credentials_of(KEY))
    assert b"s3cret" not in pickle.dumps(original)
    copied = pickle.loads(bytes(ForkingPickler.dumps(original)))
    assert copied._credentials.metadata() == original._credentials.metadata()
    assert copy.deepcopy(original._credentials).metadata() == original._credentials.metadata()


def test_other_pickles_read_the_environment_again(monkeypatch: pytest.MonkeyPatch) -> None:
    data = pickle.dumps(Credentials("api_key", KEY))
    lost = pickle.loads(data)
    with pytest.raises(Unauthenticated, match=r"^api_key: left out of a pickled client; set AST"):
        lost.metadata()
    monkeypatch.setenv(ENVIRONMENT["key"], "other")
    for pickled in (data, pickle.dumps(lost)):
        assert pickle.loads(pickled).metadata() == (("authorization", "Bearer other"),)


def test_pickles_keep_files_and_functions(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(KEY)
    data = pickle.dumps(Credentials("api_key", CredentialFile(file)))
    assert b"s3cret" not in data
    assert pickle.loads(data).metadata() == (("authorization", f"Bearer {KEY}"),)
    assert pickle.loads(pickle.dumps(Credentials("token", _token))).metadata()[0][1] == "Bearer t"


def _token() -> str:
    return "t"
