"""A handle at a version asks for that version and for no other, in every call that reads; a lease that was lost stops it before it asks."""

from __future__ import annotations

import contextlib
import inspect
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.kit import cases
from tests.kit.waiting import HANG_S, let_pass, wait_until

from asterism import Client, Graph
from asterism.pins import Lease
from asterism.records import PinInfo, SpaceInfo
from asterism.session import Session
from asterism.transport import Content
from asterism_proto.arrays import Frame
from asterism_proto.errors import InvalidRequest, NotFound, Unavailable
from asterism_proto.methods import CATALOG, Method
from asterism_proto.schema import Schema
from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.v1 import metad_pb2 as meta


class Listener:
    """A transport that notes the version of every read, and answers none; of the catalog's calls, pins."""

    piece_bytes = 4 << 20

    def __init__(self) -> None:
        self.versions: list[int] = []
        self.asked: list[str] = []
        self.manifests: list[int] = []
        self.renewal: Exception | None = None

    def call(self, method: Method, request: Content, timeout_s: float) -> Any:
        self.asked.append(method.python_name)
        if isinstance(request, Frame):
            head: Any = request.head
            self.versions.append(head.version)
            raise NotFound("heard")
        if isinstance(request, meta.ManifestRequest):
            self.manifests.append(request.version)
            return pb.Manifest()
        if method is CATALOG["pin_version"]:
            return meta.Pin(pin_id=5, space="g", version=7, term_s=0.3, owner="me")
        if method is CATALOG["renew_pin"] and self.renewal is not None:
            raise self.renewal
        return meta.Pin(pin_id=5, space="g", version=7, term_s=0.3) if method is CATALOG["renew_pin"] else pb.Empty()

    def close(self) -> None:
        pass


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def client(listener: Listener) -> Client:
    client = Client(listener)
    schema = Schema.from_dict(cases.schema())
    client.session.learn(SpaceInfo(name="g", space_id=1, schema=schema, version=9, created_ms=0, hosts=()))
    return client


def test_every_call_that_reads_asks_for_the_version_of_its_handle(client: Client, listener: Listener) -> None:
    graph = client.graph("g").at(7)
    for name, call in cases.calls(graph).items():
        listener.versions.clear()
        with pytest.raises(NotFound, match="heard"):
            call()
        assert listener.versions == [7], name


def test_every_method_with_a_version_is_among_those_calls(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    called: set[str] = set()

    def noted(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            called.add(name)
            return method(*args, **more)

        return call

    methods = inspect.getmembers(Graph, inspect.isfunction)
    reading = {name: method for name, method in methods if "version" in inspect.signature(method).parameters and not name.startswith("_")}
    graph = client.graph("g").at(7)
    for name, method in reading.items():
        monkeypatch.setattr(Graph, name, noted(name, method))
    for call in cases.calls(graph).values():
        with pytest.raises(NotFound):
            call()
    assert reading.keys() - {"at", "pin", "manifest", "node_ids", "node_names"} == called


@pytest.mark.parametrize(
    "call",
    [
        lambda graph: graph.node_ids(["a"], "n"),
        lambda graph: graph.node_names([5], "n"),
        lambda graph: graph.neighbors(["a"], "to"),
        lambda graph: graph.sample_negatives(["a"], 2, "n", exclude=[["a"]]),
    ],
)
def test_names_are_looked_up_in_the_version_of_the_handle(listener: Listener, call: Callable[[Graph], Any]) -> None:
    client = Client(listener)
    schema = Schema.from_dict({"ids": "string", "nodes": {"n": {}}, "edges": {"n:to:n": {}}})
    client.session.learn(SpaceInfo(name="g", space_id=1, schema=schema, version=9, created_ms=0, hosts=()))
    with pytest.raises(NotFound, match="heard"):
        call(client.graph("g").at(7))
    assert (listener.asked, listener.versions) == (["node_features"], [7])


def test_the_manifest_of_a_handle_is_that_of_its_version(client: Client, listener: Listener) -> None:
    client.graph("g").at(7).manifest()
    assert listener.manifests == [7]


def test_a_handle_at_a_version_takes_no_other(client: Client, listener: Listener) -> None:
    graph = client.graph("g").at(7)
    with pytest.raises(InvalidRequest, match="version 8: this graph is at version 7; ask the graph that it came from"):
        graph.sample_nodes(1, version=8)
    with pytest.raises(InvalidRequest, match="version 8"):
        graph.at(8)
    assert listener.asked == []
    assert repr(graph).startswith("Graph('g', version=7)\n")


def test_a_lost_lease_stops_every_call_before_it_asks(client: Client, listener: Listener) -> None:
    listener.renewal = NotFound("pin 5 is not there")
    with client.graph("g").pin() as held:
        until = time.monotonic() + HANG_S
        while listener.asked.count("renew_pin") == 0 and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(0.05)
        listener.asked.clear()
        for name, call in cases.calls(held).items():
            with pytest.raises(NotFound, match="version 7 of space 'g' is not pinned any more: pin 5 is not there"):
                call()
            assert listener.asked == [], name
    assert listener.asked == ["release_pin"]


def test_renewals_stop_with_the_block_and_with_the_client(client: Client, listener: Listener) -> None:
    with client.graph("g").pin():
        wait_until(lambda: listener.asked.count("renew_pin") >= 2, "the lease is renewed")
    after = listener.asked.count("renew_pin")
    pinned = client.graph("g").pin()
    pinned.__enter__()
    client.close()
    let_pass(0.35)
    assert listener.asked.count("renew_pin") == after


def test_a_pin_is_good_for_one_block_and_a_term_is_a_length_of_time(client: Client) -> None:
    pinned = client.graph("g").pin()
    with pinned:
        pass
    with pytest.raises(InvalidRequest, match="this pin has had its block"), pinned:
        pass
    for term_s in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(InvalidRequest, match="expected a number of seconds above 0"):
            client.graph("g").pin(term_s=term_s)


def test_a_lease_that_is_refused_once_goes_on_when_it_is_granted_again(listener: Listener) -> None:
    session = Session(listener, 10.0)
    listener.renewal = Unavailable("nobody there")
    pin = PinInfo(pin_id=5, space="g", version=7, owner="", term_s=0.3, created_ms=0, expires_ms=0)
    lease = Lease(session, pin, time.monotonic())
    try:
        let_pass(0.4)
        with pytest.raises(Exception, match=r"pin 5, of 0.3 s, was over .* s ago, without renewal \(nobody there\)"):
            lease.check()
        listener.renewal = None
        until = time.monotonic() + HANG_S
        while time.monotonic() < until:
            with contextlib.suppress(Exception):
                lease.check()
                break
            time.sleep(0.01)
        lease.check()
    finally:
        lease.stop()
