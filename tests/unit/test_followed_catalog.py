"""The position that a daemon keeps: durable before it is acted on, never that of an older catalog."""

from __future__ import annotations

from pathlib import Path

import pytest

from asterism_proto.errors import Conflict, Corrupt
from asterism_proto.v1 import metad_pb2 as mpb
from daemonkit.followed import FollowedCatalog


def at(revision: int, *, term: str = "t", history: str = "h") -> mpb.CatalogPosition:
    return mpb.CatalogPosition(history=history, term=term, revision=revision)


def test_a_position_outlives_the_daemon_and_is_written_only_when_new(tmp_path: Path) -> None:
    file = tmp_path / "position"
    followed = FollowedCatalog(file)
    assert followed.position is None
    for revision in (5, 5, 6):
        followed.follow(at(revision))
        followed.advance(at(revision))
    assert followed.writes == 2
    assert FollowedCatalog(file).position == at(6)
    assert file.stat().st_size == 1024


def test_a_heartbeat_advances_the_same_term_only(tmp_path: Path) -> None:
    followed = FollowedCatalog(tmp_path / "position")
    followed.follow(at(5))
    for position in (at(9, term="u"), at(9, history="g"), at(4), mpb.CatalogPosition()):
        followed.advance(position)
        assert followed.position == at(5)
    followed.advance(at(7))
    assert FollowedCatalog(tmp_path / "position").position == at(7)


def test_a_write_cut_off_leaves_the_position_before(tmp_path: Path) -> None:
    file = tmp_path / "position"
    followed = FollowedCatalog(file)
    for revision in (5, 6, 7):
        followed.follow(at(revision))
    content = bytearray(file.read_bytes())
    torn = 512 if b'"revision": 7' in content[512:] else 0
    content[torn + 20 : torn + 60] = bytes(40)
    file.write_bytes(content)
    assert FollowedCatalog(file).position == at(6)
    file.write_bytes(b"")
    with pytest.raises(Corrupt, match="prevents an older catalog from giving orders"):
        FollowedCatalog(file)


@pytest.mark.parametrize(
    "reply",
    [
        mpb.PollReply(position=at(9, term="u"), continues=False),
        mpb.PollReply(position=at(4), continues=True),
        mpb.PollReply(),
    ],
    ids=["metad says so", "a lower revision of the same term", "no position"],
)
def test_an_older_catalog_is_refused_with_the_remedy(reply: mpb.PollReply) -> None:
    followed = FollowedCatalog(None)
    followed.follow(at(5))
    with pytest.raises(Conflict, match="asterism metad adopt --dry-run"):
        followed.check(reply, at(5))
    assert followed.fault
    followed.advance(at(9))
    assert followed.position == at(5)
    followed.check(mpb.PollReply(position=at(6), continues=True), at(5))
    assert followed.fault == ""


def test_a_heartbeat_that_overtakes_a_poll_is_no_older_catalog() -> None:
    followed = FollowedCatalog(None)
    followed.follow(at(5))
    asked = followed.position
    followed.advance(at(8))
    reply = mpb.PollReply(position=at(7), continues=True)
    followed.check(reply, asked)
    followed.follow(reply.position)
    assert followed.position == at(8)
