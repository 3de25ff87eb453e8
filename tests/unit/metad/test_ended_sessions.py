"""Tests of ended sessions in the catalog: who receives them, and how long they are kept."""

from __future__ import annotations

import pytest
from tests.kit.metad import InProcessMetad

from asterism_proto.errors import Conflict, InvalidRequest
from asterism_proto.v1 import metad_pb2 as metad_pb
from metad.catalog import ended_sessions
from metad.catalog.ended_sessions import EndedSessions
from metad.model.access import EndedSession
from metad.store import keys
from metad.store.memory_store import MemoryStore

NOW_MS = 1_000_000


def session(number: int, expires_ms: int = NOW_MS + 1000, principal: str = "alice") -> EndedSession:
    return EndedSession(session_id=f"{number:032x}", principal=principal, expires_ms=expires_ms)


def ids(sessions: EndedSessions) -> list[int]:
    return [int(one.session_id, 16) for one in sessions.all()]


def test_graphds_receive_ended_sessions_after_a_restart_too() -> None:
    metad = InProcessMetad()
    metad.heartbeat("s1")
    ended = metad_pb.EndedSession(
        session_id="0123456789abcdef" * 2, principal="alice", expires_ms=metad.now_ms + 60_000
    )
    revision = metad.poll("g1", role=metad_pb.GRAPHD).revision
    metad.report("end_session", ended)
    reply = metad.poll("g1", role=metad_pb.GRAPHD)
    assert reply.revision > revision
    assert list(reply.ended_sessions) == [ended]
    assert not metad.poll("s1").ended_sessions
    metad.report("end_session", ended)
    assert metad.poll("g1", role=metad_pb.GRAPHD).revision == reply.revision
    restarted = InProcessMetad(metad.store, now_ms=metad.now_ms + 1000)
    assert list(restarted.poll("g1", role=metad_pb.GRAPHD).ended_sessions) == [ended]


def test_expired_sessions_are_deleted_with_the_next() -> None:
    store = MemoryStore()
    sessions = EndedSessions(store)
    assert sessions.add(session(1), now_ms=NOW_MS)
    assert sessions.add(session(2, NOW_MS + 5000), now_ms=NOW_MS)
    assert not sessions.add(session(3, NOW_MS), now_ms=NOW_MS)
    assert ids(sessions) == [1, 2]
    assert sessions.add(session(4, NOW_MS + 5000), now_ms=NOW_MS + 1000)
    assert ids(sessions) == ids(EndedSessions(store)) == [2, 4]
    assert len(store.range(keys.ENDED_SESSIONS)) == 2


def test_many_sign_outs_forget_those_of_their_principal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ended_sessions, "MAX_SESSIONS_OF_PRINCIPAL", 2)
    monkeypatch.setattr(ended_sessions, "MAX_SESSIONS", 3)
    store = MemoryStore()
    sessions = EndedSessions(store)
    sessions.add(session(1, principal="bob"), now_ms=NOW_MS)
    for number in (2, 3, 4, 5):
        assert sessions.add(session(number, NOW_MS + 10_000 - number), now_ms=NOW_MS)
    assert ids(sessions) == ids(EndedSessions(store)) == [1, 2, 5]
    with pytest.raises(Conflict, match=r"ended_sessions=3: expected fewer than 3 .*session_s"):
        sessions.add(session(6, principal="carol"), now_ms=NOW_MS)
    assert ids(sessions) == [1, 2, 5]


@pytest.mark.parametrize("session_id", ["", "x" * 32, "0" * 31, "0" * 33, "A" * 32, "0" * 31 + "/"])
def test_only_ids_of_sessions_are_stored(session_id: str) -> None:
    metad = InProcessMetad()
    request = metad_pb.EndedSession(session_id=session_id, principal="a", expires_ms=2**60)
    with pytest.raises(InvalidRequest, match="session_id: expected 32 hexadecimal digits"):
        metad.report("end_session", request)
    nameless = metad_pb.EndedSession(session_id="0" * 32, expires_ms=2**60)
    with pytest.raises(InvalidRequest, match="principal: expected 1 to 256 characters, found 0"):
        metad.report("end_session", nameless)
