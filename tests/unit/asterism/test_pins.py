"""Tests that a handle of a version sends this version in every read.

A lost lease stops it before it sends a request.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.kit import cases
from tests.kit.waiting import let_pass, wait_until

from asterism import Client, Graph
from asterism.calls.pins import Lease, pin_version
from asterism.client_state import Session
from asterism.records.samples import PinInfo, SpaceInfo
from asterism_model.schema import Schema
from asterism_proto.errors import InvalidRequest, NotFound, Unavailable
from asterism_proto.framing import Frame
from asterism_proto.methods import CATALOG, Method
from asterism_proto.transport import Content
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb


class RecordingTransport:
    """A transport that records the version of every read without a reply.

    Of the catalog's calls, it supports pins.
    """

    prices_requests = False
    piece_bytes = 4 << 20

    def __init__(self) -> None:
        self.versions: list[int] = []
        self.called_methods: list[str] = []
        self.manifest_versions: list[int] = []
        self.renewal_error: Exception | None = None

    def call(self, method: Method, request: Content, timeout_s: float) -> Any:
        self.called_methods.append(method.python_name)
        if isinstance(request, Frame):
            head: Any = request.head
            self.versions.append(head.version)
            raise NotFound("heard")
        if isinstance(request, metad_pb.ManifestRequest):
            self.manifest_versions.append(request.version)
            return common_pb.Manifest()
        if method is CATALOG["pin_version"]:
            return metad_pb.Pin(pin_id=5, space="g", version=7, term_s=0.3, owner="me")
        if method is CATALOG["renew_pin"] and self.renewal_error is not None:
            raise self.renewal_error
        return (
            metad_pb.Pin(pin_id=5, space="g", version=7, term_s=0.3)
            if method is CATALOG["renew_pin"]
            else common_pb.Empty()
        )

    def close(self) -> None:
        pass


@pytest.fixture
def transport() -> RecordingTransport:
    return RecordingTransport()


@pytest.fixture
def client(transport: RecordingTransport) -> Client:
    client = Client(transport)
    schema = Schema.from_dict(cases.schema())
    client.session.store_space(
        SpaceInfo(name="g", space_id=1, schema=schema, version=9, created_ms=0, hosts=())
    )
    return client


def test_every_read_requests_the_version_of_its_handle(
    client: Client, transport: RecordingTransport
) -> None:
    graph = client.graph("g").at(7)
    for name, call in cases.calls(graph).items():
        transport.versions.clear()
        with pytest.raises(NotFound, match="heard"):
            call()
        assert transport.versions == [7], name


def test_read_cases_cover_every_method_with_a_version(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: set[str] = set()

    def recorder(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            called.add(name)
            return method(*args, **kwargs)

        return call

    methods = inspect.getmembers(Graph, inspect.isfunction)
    read_methods = {
        name: method
        for name, method in methods
        if "version" in inspect.signature(method).parameters and not name.startswith("_")
    }
    graph = client.graph("g").at(7)
    for name, method in read_methods.items():
        monkeypatch.setattr(Graph, name, recorder(name, method))
    for call in cases.calls(graph).values():
        with pytest.raises(NotFound):
            call()
    assert read_methods.keys() - {"at", "pin", "manifest", "node_ids", "node_names"} == called


@pytest.mark.parametrize(
    "call",
    [
        lambda graph: graph.node_ids(["a"], "n"),
        lambda graph: graph.node_names([5], "n"),
        lambda graph: graph.neighbors(["a"], "to"),
        lambda graph: graph.sample_negatives(["a"], 2, "n", exclude=[["a"]]),
    ],
)
def test_names_are_looked_up_in_the_version_of_the_handle(
    transport: RecordingTransport, call: Callable[[Graph], Any]
) -> None:
    client = Client(transport)
    schema = Schema.from_dict({"ids": "string", "nodes": {"n": {}}, "edges": {"n:to:n": {}}})
    client.session.store_space(
        SpaceInfo(name="g", space_id=1, schema=schema, version=9, created_ms=0, hosts=())
    )
    with pytest.raises(NotFound, match="heard"):
        call(client.graph("g").at(7))
    assert (transport.called_methods, transport.versions) == (["node_features"], [7])


def test_the_manifest_of_a_handle_is_that_of_its_version(
    client: Client, transport: RecordingTransport
) -> None:
    client.graph("g").at(7).manifest()
    assert transport.manifest_versions == [7]


def test_handle_at_a_version_rejects_other_versions(
    client: Client, transport: RecordingTransport
) -> None:
    graph = client.graph("g").at(7)
    with pytest.raises(
        InvalidRequest,
        match="version=8: expected 7, the version of this graph",
    ):
        graph.sample_nodes(1, version=8)
    with pytest.raises(InvalidRequest, match="version=8"):
        graph.at(8)
    assert transport.called_methods == []
    assert repr(graph).startswith("Graph('g', version=7)\n")


def test_lost_lease_stops_every_call_before_sending(
    client: Client, transport: RecordingTransport
) -> None:
    transport.renewal_error = NotFound("pin 5 is not there")
    with client.graph("g").pin() as pinned:
        wait_until(lambda: transport.called_methods.count("renew_pin"), "the lease is renewed")
        time.sleep(0.05)
        transport.called_methods.clear()
        for name, call in cases.calls(pinned).items():
            with pytest.raises(
                NotFound, match="version 7 of space 'g' is no longer pinned: pin 5 is not there"
            ):
                call()
            assert transport.called_methods == [], name
    assert transport.called_methods == ["release_pin"]


def test_renewals_stop_with_the_block_and_with_the_client(
    client: Client, transport: RecordingTransport
) -> None:
    with client.graph("g").pin():
        wait_until(lambda: transport.called_methods.count("renew_pin") >= 2, "the lease is renewed")
    renewal_count = transport.called_methods.count("renew_pin")
    pinned = client.graph("g").pin()
    pinned.__enter__()
    client.close()
    let_pass(0.35)
    assert transport.called_methods.count("renew_pin") == renewal_count


def test_pin_is_used_once_and_its_term_is_positive(client: Client) -> None:
    pinned = client.graph("g").pin()
    with pinned:
        pass
    with pytest.raises(InvalidRequest, match="this pin was used already"), pinned:
        pass
    for term_s in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(InvalidRequest, match="expected a number of seconds above 0"):
            client.graph("g").pin(term_s=term_s)


def test_lease_recovers_when_renewal_succeeds_again(transport: RecordingTransport) -> None:
    session = Session(transport, 10.0)
    transport.renewal_error = Unavailable("no metad")
    pin = PinInfo(pin_id=5, space="g", version=7, owner="", term_s=0.3, created_ms=0, expires_ms=0)
    lease = Lease(session, pin, time.monotonic())
    try:
        let_pass(0.4)
        with pytest.raises(
            Exception, match=r"pin 5 of 0.3 s expired .* s ago without renewal \(no metad\)"
        ):
            lease.check()
        transport.renewal_error = None

        def is_valid() -> bool:
            lease.check()
            return True

        wait_until(is_valid, "the lease is renewed", ignored=Exception)
        lease.check()
    finally:
        lease.stop()


class SlowTransport(RecordingTransport):
    """A transport with a clock that moves while a pin is granted or renewed."""

    def __init__(self) -> None:
        super().__init__()
        self.arrived_at: list[float] = []

    def call(self, method: Method, request: Content, timeout_s: float) -> Any:
        arrived_at = time.monotonic()
        reply = super().call(method, request, timeout_s)
        while time.monotonic() <= arrived_at + 1e-4:
            pass
        self.arrived_at.append(arrived_at)
        return reply


def test_lease_ends_a_term_after_its_request() -> None:
    """metad counts the term from the arrival of a request, before its reply."""
    transport = SlowTransport()
    with pin_version(Session(transport, 10.0), "g", 7, owner="me") as lease:
        first_end, granted = lease._expires_at, transport.arrived_at[0]
        wait_until(lambda: lease._expires_at != first_end, "the lease is renewed")
        renewed_end, renewed = lease._expires_at, transport.arrived_at[1]
    assert first_end <= granted + 0.3
    assert renewed_end <= renewed + 0.3
