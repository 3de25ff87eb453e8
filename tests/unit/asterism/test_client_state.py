"""Tests of the versions that a session has seen: replies do not go back."""

from __future__ import annotations

from typing import Any

import pytest

from asterism.client_state import Session
from asterism_proto.errors import Stale
from asterism_proto.framing import Frame
from asterism_proto.v1 import graphd_pb2 as graphd_pb


class VersionTransport:
    """Graphds that reply from given versions in turn; the last one repeats."""

    prices_requests = False
    piece_bytes = 4 << 20

    def __init__(self, *versions: int) -> None:
        self._versions = list(versions)
        self.calls = 0

    def call(self, method: Any, request: Any, timeout_s: float) -> Frame[Any]:
        self.calls += 1
        version = self._versions.pop(0) if len(self._versions) > 1 else self._versions[0]
        return Frame(graphd_pb.SampleNodesReply(version=version))

    def close(self) -> None: ...


def read(session: Session, version: int = 0) -> int:
    head = graphd_pb.SampleNodesRequest(space="g", version=version)
    return session.read("sample_nodes", head).head.version


def test_reply_is_never_older_than_one_seen_before() -> None:
    transport = VersionTransport(3, 2, 2, 3)
    session = Session(transport, 10.0)
    assert [read(session), read(session)] == [3, 3]
    assert transport.calls == 4


def test_reads_of_a_given_version_do_not_count() -> None:
    session = Session(VersionTransport(3, 9, 3, 1, 3), 0.1)
    assert read(session) == 3
    assert read(session, 9) == 9
    assert read(session) == 3
    assert read(session, 1) == 1
    assert read(session) == 3


def test_versions_seen_by_others_are_a_lower_bound() -> None:
    session = Session(VersionTransport(4), 0.05)
    session.note_version("g", 5)
    session.note_version("g", 3)
    assert session.newest_versions() == {"g": 5}
    with pytest.raises(Stale, match="5"):
        read(session)
    session.forget("g")
    assert read(session) == 4
