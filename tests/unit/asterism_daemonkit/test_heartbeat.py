"""Tests of heartbeats and polls: the states that a daemon accepts, in memory."""

from __future__ import annotations

import threading
import time
from typing import Any

from tests.kit.waiting import HANG_S, let_pass, wait_until

from asterism_daemonkit.catalog_position import CatalogPositionStore
from asterism_daemonkit.daemon_identity import Identity
from asterism_daemonkit.heartbeat import HeartbeatClient, HeartbeatPayload
from asterism_proto.methods import HEARTBEATS, Method
from asterism_proto.v1 import metad_pb2 as metad_pb

REVISION = 5


class Metad:
    """A metad that returns one state, and parks polls that know its revision."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.state = metad_pb.PollReply()
        self.lease_s = 60.0
        self.arrived_at = 0.0
        """Time of the last heartbeat."""
        self.reply_delay_s = 0.0

    def name(self, term: str, revision: int, *, continues: bool) -> None:
        position = metad_pb.CatalogPosition(history="h", term=term, revision=revision)
        with self.changed:
            self.state = metad_pb.PollReply(
                revision=revision, position=position, contains_position=continues
            )
            self.changed.notify_all()

    def call(self, method: Method, request: Any, timeout_s: float) -> Any:
        if method is HEARTBEATS["heartbeat"]:
            self.arrived_at = time.monotonic()
            let_pass(self.reply_delay_s)
            return metad_pb.HeartbeatReply(
                revision=self.state.revision, lease_s=self.lease_s, position=self.state.position
            )
        with self.changed:
            if request.known_revision == self.state.revision:
                self.changed.wait(0.05)
            return self.state


def test_a_state_of_an_adopted_copy_is_taken_over_under_the_same_revision() -> None:
    """A catalog copy that is restored and adopted twice uses its revisions twice."""
    metad, taken = Metad(), list[str]()
    metad.name("first", REVISION, continues=True)
    followed = CatalogPositionStore(None)

    def take_over(reply: metad_pb.PollReply) -> None:
        followed.follow(reply.position)
        taken.append(reply.position.term)

    client = HeartbeatClient(
        metad=metad,  # type: ignore[arg-type]  # only `call` is used
        role=metad_pb.STORAGED,
        identity=Identity("host", 1, -1),
        address="",
        http_address="",
        on_poll=take_over,
        payload=HeartbeatPayload,
        interval_s=0.01,
        poll_wait_s=1.0,
        followed_catalog=followed,
    )
    client.start()
    try:
        wait_until(lambda: taken == ["first"], "the first state is taken over")
        wait_until(client.has_lease, "the lease is held")
        metad.name("copy", REVISION - 1, continues=False)
        wait_until(lambda: followed.fault, "the copy is refused")
        metad.name("adopted", REVISION, continues=True)
        wait_until(lambda: taken == ["first", "adopted"], "the adopted state is taken over")
        assert followed.fault == ""
        metad.name("again", REVISION, continues=True)
        wait_until(lambda: taken[2:] == ["again"], "a state of another start is taken over")
    finally:
        client.stop()


def test_lease_ends_before_metad_ends_it() -> None:
    """metad counts from the arrival of a heartbeat, the daemon from before it was sent."""
    metad = Metad()
    metad.reply_delay_s = 0.2
    metad.name("first", REVISION, continues=True)
    client = HeartbeatClient(
        metad=metad,  # type: ignore[arg-type]  # only `call` is used
        role=metad_pb.STORAGED,
        identity=Identity("host", 1, -1),
        address="",
        http_address="",
        on_poll=lambda reply: None,
        payload=HeartbeatPayload,
        interval_s=HANG_S,
        poll_wait_s=1.0,
    )
    client.start()
    try:
        wait_until(client.has_lease, "the lease is held")
        now = time.monotonic()
        assert now + client.lease_remaining_s() <= metad.arrived_at + metad.lease_s
    finally:
        client.stop()
