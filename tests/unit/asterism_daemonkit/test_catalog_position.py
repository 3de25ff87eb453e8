"""Tests of a daemon's catalog position: durable before use, and never of an older catalog."""

from __future__ import annotations

from pathlib import Path

import pytest

from asterism_daemonkit.catalog_position import CatalogPositionStore
from asterism_proto.errors import Conflict, Corrupt
from asterism_proto.v1 import metad_pb2 as metad_pb


def position_at(revision: int, *, term: str = "t", history: str = "h") -> metad_pb.CatalogPosition:
    return metad_pb.CatalogPosition(history=history, term=term, revision=revision)


def test_position_is_durable_and_written_only_when_new(tmp_path: Path) -> None:
    file = tmp_path / "position"
    catalog = CatalogPositionStore(file)
    assert catalog.position is None
    for revision in (5, 5, 6):
        catalog.follow(position_at(revision))
        catalog.advance(position_at(revision))
    assert catalog.writes == 2
    assert CatalogPositionStore(file).position == position_at(6)
    assert file.stat().st_size == 1024


def test_a_heartbeat_advances_the_same_term_only(tmp_path: Path) -> None:
    catalog = CatalogPositionStore(tmp_path / "position")
    catalog.follow(position_at(5))
    for position in (
        position_at(9, term="u"),
        position_at(9, history="g"),
        position_at(4),
        metad_pb.CatalogPosition(),
    ):
        catalog.advance(position)
        assert catalog.position == position_at(5)
    catalog.advance(position_at(7))
    assert CatalogPositionStore(tmp_path / "position").position == position_at(7)


def test_truncated_write_keeps_the_previous_position(tmp_path: Path) -> None:
    file = tmp_path / "position"
    catalog = CatalogPositionStore(file)
    for revision in (5, 6, 7):
        catalog.follow(position_at(revision))
    content = bytearray(file.read_bytes())
    slot_offset = 512 if b'"revision": 7' in content[512:] else 0
    content[slot_offset + 20 : slot_offset + 60] = bytes(40)
    file.write_bytes(content)
    assert CatalogPositionStore(file).position == position_at(6)
    file.write_bytes(b"")
    with pytest.raises(Corrupt, match="prevents an older catalog from assigning tasks"):
        CatalogPositionStore(file)


@pytest.mark.parametrize(
    "reply",
    [
        metad_pb.PollReply(position=position_at(9, term="u"), contains_position=False),
        metad_pb.PollReply(position=position_at(4), contains_position=True),
        metad_pb.PollReply(),
    ],
    ids=["metad says so", "a lower revision of the same term", "no position"],
)
def test_an_older_catalog_is_refused_with_the_remedy(reply: metad_pb.PollReply) -> None:
    catalog = CatalogPositionStore(None)
    catalog.follow(position_at(5))
    with pytest.raises(Conflict, match="asterism metad adopt --dry-run"):
        catalog.check(reply, position_at(5))
    assert catalog.fault
    catalog.advance(position_at(9))
    assert catalog.position == position_at(5)
    catalog.check(
        metad_pb.PollReply(position=position_at(6), contains_position=True), position_at(5)
    )
    assert catalog.fault == ""


def test_heartbeat_overtaking_a_poll_is_no_older_catalog() -> None:
    catalog = CatalogPositionStore(None)
    catalog.follow(position_at(5))
    followed_position = catalog.position
    catalog.advance(position_at(8))
    reply = metad_pb.PollReply(position=position_at(7), contains_position=True)
    catalog.check(reply, followed_position)
    catalog.follow(reply.position)
    assert catalog.position == position_at(8)
