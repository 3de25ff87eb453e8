"""Tests of addresses that are refused, and of calls on a closed client."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import asterism
from asterism import Client
from asterism.transport.embedded import start_embedded
from asterism.transport.grpc import ClientClosed, GrpcTransport, parse_addresses
from asterism.transport.read_retries import retry_read
from asterism_model.prices import DEFAULT_LIMITS
from asterism_proto.errors import InvalidRequest, Unavailable
from asterism_proto.methods import CATALOG
from asterism_proto.v1 import common_pb2 as common_pb


@pytest.mark.parametrize(
    "address", ["http://localhost:9669", "https://graphs.example", "a:1,http://b:19669"]
)
def test_urls_are_refused_as_addresses(address: str) -> None:
    with pytest.raises(InvalidRequest, match=r"://.*': expected host:port of .* leave out https?:"):
        asterism.connect(address)
    assert parse_addresses("localhost, b:1") == ("localhost:9669", "b:1")


class CountingTransport(GrpcTransport):
    """A transport to a port where nothing listens that counts its attempts."""

    attempts = 0

    def _send_once(self, *request: Any) -> bytes:
        self.attempts += 1
        return super()._send_once(*request)


def test_a_closed_client_fails_at_once_in_one_sentence() -> None:
    transport = CountingTransport("127.0.0.1:1")
    client = Client(transport)
    client.close()
    for call in (client.spaces, lambda: client.graph("papers").sample_nodes(3)):
        with pytest.raises(ClientClosed) as raised:
            call()
        assert str(raised.value) == (
            "The client is closed; make a new one with asterism.connect or asterism.open."
        )
    assert transport.attempts == 0
    with pytest.raises(ClientClosed):
        transport.call(CATALOG["list_spaces"], common_pb.Empty(), 30)
    assert transport.attempts == 1
    assert issubclass(ClientClosed, Unavailable)


def test_epochs_do_not_wait_for_a_closed_client() -> None:
    calls: list[int] = []

    def read() -> None:
        calls.append(1)
        raise ClientClosed

    with pytest.raises(ClientClosed):
        retry_read(read, 3600)
    assert len(calls) == 1


def test_a_relative_folder_is_resolved_when_it_is_opened(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folders: list[Path] = []

    def embed(folder: Path, **_: Any) -> SimpleNamespace:
        folders.append(folder)
        return SimpleNamespace(handlers={}, limits=DEFAULT_LIMITS, stop=lambda: None)

    monkeypatch.setattr("asterism_standalone.app.embed", embed)
    monkeypatch.chdir(tmp_path)
    start_embedded("graphs", "w", {})
    assert folders == [tmp_path / "graphs"]
