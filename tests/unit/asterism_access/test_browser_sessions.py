"""Tests of sessions at a daemon: how they begin, and everything that ends them."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from asterism_access import browser_sessions
from asterism_access.authentication import Authenticator
from asterism_access.browser_sessions import ActiveSession, BrowserSessions
from asterism_access.credentials import api_keys
from asterism_access.credentials.cluster_key import ClusterKey
from asterism_access.credentials.session_tokens import SessionContent
from asterism_access.credentials.tickets import Ticket, TicketKind
from asterism_access.credentials.verified_credential import VerifiedCredential
from asterism_access.principals import Principal, PrincipalKind
from asterism_access.roles import EVERY_SPACE, Role
from asterism_proto.errors import Unauthenticated, Unavailable
from asterism_proto.v1.metad_pb2 import AccessState, ApiKey, RoleGrant

NOW_S = 1_800_000_000.0
VALID_S = 3600.0
KEY = api_keys.generate()


class Tokens:
    """Verifier of tokens ``<name>.<seconds>.x`` that claim to write to "shop"."""

    revision = 0

    def verify(self, token: str) -> VerifiedCredential:
        name, seconds, _ = token.split(".")
        principal = Principal(
            name=name, kind=PrincipalKind.TOKEN, roles={"shop": Role.WRITER}, credential_id="jti"
        )
        return VerifiedCredential(principal, NOW_S + int(seconds))


class Cluster:
    """Two daemons with one key file, a clock and a state that tests change."""

    def __init__(self, folder: Path) -> None:
        self.now_s = NOW_S
        self.file = folder / "cluster.key"
        self.write_keys(b"k")
        self.cluster_key = ClusterKey(str(self.file), self.clock)
        self.state: AccessState | None = state_of()
        self.sessions, self.others = self.new_daemon(), self.new_daemon()

    def new_daemon(self, **callbacks: Any) -> BrowserSessions:
        cluster_key = ClusterKey(str(self.file), self.clock)
        authenticator = Authenticator(cluster_key, Tokens(), lambda: self.state, clock=self.clock)
        return BrowserSessions(
            cluster_key, authenticator, valid_s=VALID_S, clock=self.clock, **callbacks
        )

    def clock(self) -> float:
        return self.now_s

    def write_keys(self, *letters: bytes) -> None:
        replacement = self.file.with_name("replacement")
        lines = [base64.b64encode(letter * 32) for letter in letters]
        replacement.write_bytes(b"\n".join(lines))
        replacement.chmod(0o600)
        replacement.replace(self.file)

    def refusal(self, session: ActiveSession) -> str:
        """Return the message with which both daemons refuse a session."""
        messages = set()
        for daemon in (self.sessions, self.others):
            with pytest.raises(Unauthenticated) as raised:
                daemon.find(session.text)
            messages.add(raised.value.message)
        (message,) = messages
        assert session.text not in message
        return message


def state_of(grants: Mapping[str, int] | None = None, **changes: int) -> AccessState:
    """Return a state with `KEY` as a key of alice, and with her roles."""
    key = ApiKey(key_id=KEY.key_id, principal="alice", secret_hash=KEY.hash)
    for field, value in changes.items():
        setattr(key, field, value)
    return AccessState(
        keys=[key],
        grants=[
            RoleGrant(principal="alice", space=space, role=role)  # type: ignore[arg-type]
            for space, role in ({"shop": 1} if grants is None else grants).items()
        ],
    )


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def test_every_daemon_accepts_a_session_with_the_same_token(cluster: Cluster) -> None:
    session = cluster.sessions.start(KEY.text)
    assert session.principal == Principal(
        name="alice",
        kind=PrincipalKind.API_KEY,
        roles={"shop": Role.READER},
        credential_id=KEY.key_id,
    )
    assert session.expires_s == NOW_S + VALID_S
    assert cluster.others.find(session.text) == session
    assert KEY.secret not in session.text
    assert session.text not in repr(session)
    assert session.csrf_token not in repr(session)


def test_roles_of_a_session_are_those_of_now(cluster: Cluster) -> None:
    text = cluster.sessions.start(KEY.text).text
    cluster.state = state_of({"*": 4})
    assert cluster.others.find(text).principal.is_cluster_admin
    cluster.state = state_of({})
    assert dict(cluster.sessions.find(text).principal.roles) == {}


def test_a_revoked_key_ends_its_sessions(cluster: Cluster) -> None:
    session = cluster.sessions.start(KEY.text)
    cluster.state = state_of(revoked_ms=int(1000 * NOW_S))
    assert "revoked at 2027-01-15T08:00:00Z" in cluster.refusal(session)


def test_a_session_ends_with_its_key_or_its_time(cluster: Cluster) -> None:
    session = cluster.sessions.start(KEY.text)
    cluster.now_s = NOW_S + VALID_S
    assert "session: expired" in cluster.refusal(session)
    cluster.now_s = NOW_S
    cluster.state = state_of(expires_ms=int(1000 * NOW_S) + 60_000)
    short = cluster.sessions.start(KEY.text)
    assert short.expires_s == NOW_S + 60
    cluster.now_s += 60
    cluster.refusal(short)
    assert "api_key=" in cluster.refusal(session)


def test_a_key_that_is_gone_or_of_another_ends_its_sessions(cluster: Cluster) -> None:
    session = cluster.sessions.start(KEY.text)
    bobs = ApiKey(key_id=KEY.key_id, principal="bob", secret_hash=KEY.hash)
    for key in (ApiKey(key_id="other", principal="alice"), bobs):
        cluster.state = AccessState(keys=[key])
        assert "expected the id and the secret of a key of this cluster" in cluster.refusal(session)


def test_a_daemon_without_a_state_asks_for_patience(cluster: Cluster) -> None:
    session = cluster.sessions.start(KEY.text)
    cluster.state = None
    with pytest.raises(Unavailable, match="has not received the roles yet"):
        cluster.others.find(session.text)


def test_sign_out_ends_one_session_at_its_daemon(cluster: Cluster) -> None:
    session, second = (cluster.sessions.start(KEY.text) for _ in range(2))
    cluster.sessions.end(session.text)
    cluster.sessions.end(session.text)
    with pytest.raises(Unauthenticated, match="signed out; sign in again"):
        cluster.sessions.find(session.text)
    assert cluster.sessions.find(second.text) == second


def test_a_sign_out_ends_the_session_at_every_daemon(cluster: Cluster) -> None:
    ended: set[str] = set()
    first, other = (
        cluster.new_daemon(
            ended_in_cluster=lambda: ended,
            on_end=lambda session: ended.add(session.session_id),
        )
        for _ in range(2)
    )
    session, second = first.start(KEY.text), first.start(KEY.text)
    first.end(session.text)
    for daemon in (first, other):
        with pytest.raises(Unauthenticated, match="signed out; sign in again"):
            daemon.find(session.text)
        assert daemon.find(second.text) == second


def test_a_daemon_that_reaches_no_other_ends_its_session(cluster: Cluster) -> None:
    def fail(session: SessionContent) -> None:
        raise Unavailable("metad does not respond")

    daemon = cluster.new_daemon(on_end=fail)
    session = daemon.start(KEY.text)
    with pytest.raises(Unavailable, match="metad does not respond"):
        daemon.end(session.text)
    with pytest.raises(Unauthenticated, match="signed out"):
        daemon.find(session.text)


def test_no_session_is_accepted_before_the_ended_are_known(cluster: Cluster) -> None:
    session = cluster.sessions.start(cluster.cluster_key.root_ticket(60))
    daemon = cluster.new_daemon(ended_in_cluster=lambda: None)
    with pytest.raises(Unavailable, match="has not received the ended sessions yet"):
        daemon.find(session.text)


def test_ended_sessions_are_forgotten_when_they_expire(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browser_sessions, "_MAX_ENDED", 5)
    for _ in range(20):
        cluster.sessions.end(cluster.sessions.start(KEY.text).text)
    assert len(cluster.sessions._ended) == len(cluster.sessions._expiries) == 5
    cluster.now_s += VALID_S
    cluster.sessions.end(cluster.sessions.start(KEY.text).text)
    assert len(cluster.sessions._ended) == 1


def test_a_token_has_a_session_with_its_roles_until_it_expires(cluster: Cluster) -> None:
    cluster.state.grants.add(principal="tina", space="bank", role=1)  # type: ignore[arg-type]
    session = cluster.sessions.start("tina.1800.x")
    assert session.expires_s == NOW_S + 1800
    principal = cluster.others.find(session.text).principal
    assert (principal.kind, principal.credential_id) == (PrincipalKind.TOKEN, "jti")
    assert dict(principal.roles) == {"shop": Role.WRITER, "bank": Role.READER}


def test_a_root_ticket_has_a_session_of_an_administrator(cluster: Cluster) -> None:
    session = cluster.sessions.start(cluster.cluster_key.root_ticket(60))
    assert session.principal.is_cluster_admin
    assert NOW_S < session.expires_s <= NOW_S + 100
    assert cluster.others.find(session.text).principal.roles == {EVERY_SPACE: Role.ADMIN}


def test_tickets_of_daemons_and_clients_begin_no_session(cluster: Cluster) -> None:
    with pytest.raises(Unauthenticated, match="tickets of daemons are for daemons"):
        cluster.sessions.start(cluster.cluster_key.daemon_ticket("graphd"))
    client = Ticket(name="alice", kind=TicketKind.CLIENT, expires_s=int(NOW_S) + 60)
    with pytest.raises(Unauthenticated, match="for storageds"):
        cluster.sessions.start(cluster.cluster_key.sign(client))


def test_wrong_credentials_begin_no_session(cluster: Cluster) -> None:
    session = cluster.sessions.start(KEY.text)
    for wrong in ("", "x", "A" * 20_000, session.text, "é", api_keys.generate().text):
        with pytest.raises(Unauthenticated) as raised:
            cluster.sessions.start(wrong)
        assert not wrong or wrong not in raised.value.message or len(wrong) == 1


def test_a_session_is_no_credential_of_a_program(cluster: Cluster) -> None:
    session = cluster.sessions.start(KEY.text)
    authenticator = Authenticator(
        cluster.cluster_key, None, lambda: cluster.state, clock=cluster.clock
    )
    with pytest.raises(Unauthenticated):
        authenticator.authenticate(f"Bearer {session.text}")


def test_a_removed_key_of_the_cluster_ends_sessions(cluster: Cluster) -> None:
    session = cluster.sessions.start(KEY.text)
    for now, keys in enumerate([(b"k", b"n"), (b"n", b"k")], 1):
        cluster.write_keys(*keys)
        cluster.now_s = NOW_S + 10 * now
        assert cluster.others.find(session.text).csrf_token == session.csrf_token
    cluster.write_keys(b"n")
    cluster.now_s += 10
    assert "its signature is not of a key" in cluster.refusal(session)
