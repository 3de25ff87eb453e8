"""Tests of the access state that a daemon follows."""

from __future__ import annotations

import threading

from asterism_daemonkit.access_cache import AccessCache
from asterism_proto.v1 import metad_pb2 as metad_pb


def reply(*key_ids: str) -> metad_pb.PollReply:
    keys = [metad_pb.ApiKey(key_id=key_id) for key_id in key_ids]
    return metad_pb.PollReply(access=metad_pb.AccessState(keys=keys))


def key_ids(followed: AccessCache) -> list[str]:
    state = followed.state()
    assert state is not None
    return [key.key_id for key in state.keys]


def test_there_is_no_state_before_the_first_reply() -> None:
    followed = AccessCache()
    assert followed.state() is None
    assert followed.missing() == ["no roles from metad yet"]
    assert not followed.wait_for(lambda state: True, 0)
    followed.follow(metad_pb.PollReply(revision=9))
    assert followed.state() is None, "the daemon is ahead of the catalog"
    followed.follow(reply())
    assert followed.state() == metad_pb.AccessState()
    assert followed.missing() == []


def test_an_equal_state_stays_the_same_object() -> None:
    followed = AccessCache()
    followed.follow(reply("a"))
    state = followed.state()
    assert state is not None
    assert [key.key_id for key in state.keys] == ["a"]
    followed.follow(reply("a"))
    assert followed.state() is state
    followed.follow(reply("a", "b"))
    assert followed.state() is not state
    assert [key.key_id for key in state.keys] == ["a"], "a state does not change"


def test_a_reply_without_a_state_keeps_the_last_one() -> None:
    followed = AccessCache()
    followed.follow(reply("a"))
    followed.follow(metad_pb.PollReply(revision=9))
    assert key_ids(followed) == ["a"]
    followed.follow(reply())
    assert followed.state() == metad_pb.AccessState()


def test_the_state_outlives_changes_of_its_reply() -> None:
    followed, first = AccessCache(), reply("a")
    followed.follow(first)
    first.ClearField("access")
    assert key_ids(followed) == ["a"]


def test_a_new_state_wakes_its_waiters() -> None:
    followed = AccessCache()
    threading.Timer(0.02, lambda: followed.follow(reply("a"))).start()
    assert followed.wait_for(lambda state: len(state.keys) == 1, 10)
    assert not followed.wait_for(lambda state: len(state.keys) == 2, 0)
