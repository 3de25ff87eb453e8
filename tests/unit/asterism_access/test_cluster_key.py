"""Tests of the cluster's key: its file, replacement of keys, and the tickets of daemons."""

from __future__ import annotations

import base64
import logging
import os
from pathlib import Path

import pytest

from asterism_access.credentials.cluster_key import ClusterKey, create_key_file
from asterism_access.credentials.tickets import TicketKind
from asterism_access.principals import LOCAL, Principal, PrincipalKind
from asterism_access.roles import EVERY_SPACE, Role
from asterism_proto.errors import InvalidRequest, Unauthenticated

OLD, NEW = (base64.b64encode(letter * 32).decode() for letter in (b"o", b"n"))


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now_s = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now_s


def write(path: Path, text: str, mode: int = 0o600) -> str:
    replacement = path.with_name("replacement")
    replacement.write_text(text)
    replacement.chmod(mode)
    replacement.replace(path)
    return str(path)


def message_of(path: Path | str) -> str:
    with pytest.raises(InvalidRequest) as raised:
        ClusterKey(str(path))
    return raised.value.message


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "cluster.key"


def test_a_created_file_has_a_key_that_others_cannot_read(file: Path) -> None:
    create_key_file(file)
    assert file.stat().st_mode & 0o777 == 0o600
    key = ClusterKey(str(file))
    assert key.verify(key.daemon_ticket("graphd")).name == "graphd"
    assert repr(key) == f"ClusterKey({str(file)!r})"
    with pytest.raises(InvalidRequest, match="expected a new file in a folder that can be written"):
        create_key_file(file)


def test_comments_and_empty_lines_are_no_keys(file: Path) -> None:
    one = ClusterKey(write(file, f"# of 2026\n\n {OLD} \r\n"))
    assert ClusterKey(write(file, OLD)).verify(one.daemon_ticket("metad")).name == "metad"


@pytest.mark.parametrize("mode", [0o604, 0o602, 0o601, 0o620])
def test_a_file_that_others_can_use_is_refused(file: Path, mode: int) -> None:
    assert message_of(write(file, OLD, mode)) == (
        f"cluster_key_file={str(file)!r}: expected a file that others cannot read or change (mode "
        f"{mode:04o}); run `chmod 600 {file}`"
    )


def test_the_group_may_read_the_file_as_in_kubernetes(file: Path) -> None:
    assert ClusterKey(write(file, OLD, 0o440)).revision == 0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected 1 to 16 keys, not 0"),
        ("# none\n", "expected 1 to 16 keys, not 0"),
        (f"{OLD}\n" * 17, "expected 1 to 16 keys, not 17"),
        (f"{OLD}\n{NEW[:20]}\n", "expected in line 2 at least 32 random bytes in base64"),
        (f"{OLD[:10]}?{OLD[10:]}", "expected in line 1 at least 32 random bytes in base64"),
        ("é" * 60, "expected in line 1 at least 32 random bytes in base64"),
        ("#" * 70000, "expected a file of at most 65536 bytes"),
    ],
)
def test_unusable_content_is_refused_without_being_shown(
    file: Path, text: str, reason: str
) -> None:
    message = message_of(write(file, text))
    assert message.startswith(f"cluster_key_file={str(file)!r}: {reason}")
    assert OLD[:10] not in message
    assert NEW[:10] not in message


def test_what_is_no_file_is_refused_at_once(file: Path) -> None:
    assert "expected a readable file (no such file or directory)" in message_of(file)
    assert "expected a readable file (is a directory)" in message_of(file.parent)
    assert "expected a readable file (embedded null byte)" in message_of("a\0b")
    os.mkfifo(file, 0o600)
    assert "expected a file of at most 65536 bytes" in message_of(file)


def test_keys_are_replaced_line_by_line_without_a_pause(file: Path, clock: Clock) -> None:
    """The first line signs, and all lines verify; the file is looked at once per second."""
    peer = ClusterKey(write(file.with_name("peer"), OLD))
    key = ClusterKey(write(file, OLD), clock)
    of_old = key.daemon_ticket("graphd")
    for text, fits_peer in ((f"{OLD}\n{NEW}", True), (f"{NEW}\n{OLD}", False)):
        write(file, text)
        clock.now_s += 1
        ticket = key.daemon_ticket("graphd")
        assert key.verify(of_old).name == key.verify(ticket).name == "graphd"
        if fits_peer:
            assert peer.verify(ticket).name == "graphd"
        else:
            with pytest.raises(Unauthenticated, match="not of a key of this cluster"):
                peer.verify(ticket)
    write(file, NEW)
    assert key.revision == 2
    clock.now_s += 1
    assert key.revision == 3
    with pytest.raises(Unauthenticated, match="check that all daemons have the same"):
        key.verify(of_old)


def test_an_unusable_new_file_is_logged_and_the_old_keys_stay(
    file: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    key = ClusterKey(write(file, OLD), clock)
    ticket = key.daemon_ticket("storaged")
    write(file, NEW, 0o644)
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            clock.now_s += 1
            assert key.verify(ticket).name == "storaged"
    assert [record.message for record in caplog.records] == ["cluster_key_not_reloaded"]
    assert NEW not in str(vars(caplog.records[0]))
    file.chmod(0o600)  # the remedy that the log names is enough
    clock.now_s += 1
    assert key.revision == 1
    with pytest.raises(Unauthenticated):
        key.verify(ticket)


def test_a_clock_set_back_does_not_stop_the_looks_at_the_file(file: Path, clock: Clock) -> None:
    key = ClusterKey(write(file, OLD), clock)
    clock.now_s -= 86400
    write(file, NEW)
    assert key.revision == 1


def test_a_daemons_ticket_is_renewed_after_a_minute(file: Path, clock: Clock) -> None:
    key = ClusterKey(write(file, OLD), clock)
    first = key.daemon_ticket("graphd")
    assert key.verify(first).kind is TicketKind.DAEMON
    assert key.verify(first).expires_s == clock.now_s + 300
    assert key.daemon_ticket("storaged") != first
    clock.now_s += 59
    assert key.daemon_ticket("graphd") == first
    clock.now_s += 1
    second = key.daemon_ticket("graphd")
    assert second != first
    assert key.verify(second).expires_s == clock.now_s + 300
    assert key.verify(first).name == "graphd"
    clock.now_s -= 3600
    assert key.daemon_ticket("graphd") != second


def test_a_clients_ticket_has_its_roles_in_the_spaces(file: Path, clock: Clock) -> None:
    key = ClusterKey(write(file, OLD), clock)
    alice = Principal(
        name="alice",
        kind=PrincipalKind.API_KEY,
        roles={"shop": Role.WRITER, EVERY_SPACE: Role.READER},
    )
    ticket = key.verify(key.client_ticket(alice, {1: "shop", 2: "bank"}))
    assert (ticket.name, ticket.kind) == ("alice", TicketKind.CLIENT)
    assert ticket.roles == {EVERY_SPACE: Role.READER}
    assert ticket.roles_by_id == {1: Role.WRITER}  # that in 2 is the one in every space
    assert ticket.expires_s == clock.now_s + 300
    bob = Principal(name="bob", kind=PrincipalKind.TOKEN, roles={"shop": Role.READER})
    ticket = key.verify(key.client_ticket(bob, {1: "shop", 2: "bank"}))
    assert (ticket.roles, ticket.roles_by_id) == ({}, {1: Role.READER})
    ticket = key.verify(key.client_ticket(LOCAL, dict.fromkeys(range(10000), "shop")))
    assert (ticket.roles, ticket.roles_by_id) == ({EVERY_SPACE: Role.ADMIN}, {})


def test_a_root_ticket_is_of_an_administrator(file: Path, clock: Clock) -> None:
    key = ClusterKey(write(file, OLD), clock)
    ticket = key.verify(key.root_ticket(3600))
    assert (ticket.name, ticket.kind) == ("root", TicketKind.ROOT)
    assert ticket.roles == {EVERY_SPACE: Role.ADMIN}
    assert ticket.expires_s == clock.now_s + 3600
