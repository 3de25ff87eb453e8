"""Tests of authentication: principals and roles by credential, refusals, and the cache."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from asterism_access import authentication
from asterism_access.authentication import Authenticator
from asterism_access.credentials import api_keys
from asterism_access.credentials.cluster_key import ClusterKey
from asterism_access.credentials.tickets import Ticket, TicketKind
from asterism_access.credentials.verified_credential import VerifiedCredential
from asterism_access.principals import Principal, PrincipalKind
from asterism_access.roles import EVERY_SPACE, Role
from asterism_proto.errors import Unauthenticated, Unavailable
from asterism_proto.v1.metad_pb2 import AccessState, ApiKey, RoleGrant

NOW_S = 1_800_000_000.0
KEY = api_keys.generate()
OTHER = api_keys.generate()


class Tokens:
    """Verifier of tokens ``<name>.<claimed role in "shop">.x`` that counts its work."""

    def __init__(self, expires_s: float = NOW_S + 3600) -> None:
        self.expires_s = expires_s
        self.revision = 0
        self.verified = 0

    def verify(self, token: str) -> VerifiedCredential:
        self.verified += 1
        name, role, _ = token.split(".")
        roles = {"shop": Role[role.upper()]} if role else {}
        principal = Principal(name=name, kind=PrincipalKind.TOKEN, roles=roles, credential_id="jti")
        return VerifiedCredential(principal, self.expires_s)


class Cluster:
    """An authenticator with a clock, a state and a key file that tests change."""

    def __init__(self, folder: Path) -> None:
        self.now_s = NOW_S
        self.file = folder / "cluster.key"
        self.write_key(b"k")
        self.cluster_key = ClusterKey(str(self.file), self.clock)
        self.tokens = Tokens()
        self.state: AccessState | None = state_of()
        self.authenticator = self.new_authenticator()

    def new_authenticator(self, *, accepts_client_tickets: bool = False) -> Authenticator:
        return Authenticator(
            self.cluster_key,
            self.tokens,
            lambda: self.state,
            accepts_client_tickets=accepts_client_tickets,
            clock=self.clock,
        )

    def clock(self) -> float:
        return self.now_s

    def write_key(self, letter: bytes) -> None:
        replacement = self.file.with_name("replacement")
        replacement.write_bytes(base64.b64encode(letter * 32))
        replacement.chmod(0o600)
        replacement.replace(self.file)

    def principal(self, credential: str) -> Principal:
        return self.authenticator.authenticate(f"Bearer {credential}")

    def refusal(self, credential: str) -> str:
        with pytest.raises(Unauthenticated) as raised:
            self.principal(credential)
        return raised.value.message


def state_of(grants: Mapping[tuple[str, str], int] | None = None, **changes: int) -> AccessState:
    """Return a state with `KEY` as a key of alice."""
    key = ApiKey(key_id=KEY.key_id, principal="alice", secret_hash=KEY.hash)
    for field, value in changes.items():
        setattr(key, field, value)
    held = {("alice", "shop"): 2, ("alice", "*"): 1} if grants is None else grants
    return AccessState(
        keys=[key],
        grants=[
            RoleGrant(principal=name, space=space, role=role)  # type: ignore[arg-type]  # any number
            for (name, space), role in held.items()
        ],
    )


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def test_keys_and_tokens_are_unavailable_before_the_roles(cluster: Cluster) -> None:
    cluster.state = None
    for credential in (KEY.text, OTHER.text, "bob.reader.x"):
        with pytest.raises(Unavailable, match="has not received the roles yet; try again"):
            cluster.principal(credential)
    assert cluster.tokens.verified == 0
    assert cluster.principal(cluster.cluster_key.daemon_ticket("graphd")).is_trusted
    assert cluster.principal(cluster.cluster_key.root_ticket(60)).is_cluster_admin
    cluster.refusal("ak_short")
    cluster.state = AccessState()
    assert "expected the id and the secret" in cluster.refusal(KEY.text)
    cluster.state = state_of()
    assert cluster.principal(KEY.text).roles["shop"] is Role.WRITER


def test_an_api_key_has_the_granted_roles_of_its_principal(cluster: Cluster) -> None:
    assert cluster.principal(KEY.text) == Principal(
        name="alice",
        kind=PrincipalKind.API_KEY,
        roles={"shop": Role.WRITER, EVERY_SPACE: Role.READER},
        credential_id=KEY.key_id,
    )
    cluster.state = state_of({("bob", "shop"): 4})
    assert dict(cluster.principal(KEY.text).roles) == {}


def test_roles_of_later_releases_grant_nothing(cluster: Cluster) -> None:
    cluster.state = state_of({("alice", "shop"): 9, ("alice", "bank"): 0, ("alice", "a"): 1})
    assert dict(cluster.principal(KEY.text).roles) == {"a": Role.READER}


def test_an_unknown_key_and_a_wrong_secret_read_the_same(cluster: Cluster) -> None:
    wrong_secret = f"ak_{KEY.key_id}_{OTHER.secret}"
    messages = {
        cluster.refusal(text).replace(key_id, "ID")
        for text, key_id in ((wrong_secret, KEY.key_id), (OTHER.text, OTHER.key_id))
    }
    assert messages == {
        "api_key='ID': expected the id and the secret of a key of this cluster; ask an "
        "administrator for another key"
    }


def test_a_key_without_a_stored_hash_is_refused(cluster: Cluster) -> None:
    cluster.state = AccessState(keys=[ApiKey(key_id=KEY.key_id, principal="alice")])
    assert "expected the id and the secret of a key" in cluster.refusal(KEY.text)


def test_revocation_and_expiry_are_said_to_the_holder_only(cluster: Cluster) -> None:
    wrong_secret = f"ak_{KEY.key_id}_{OTHER.secret}"
    cases = {"revoked_ms": "revoked", "expires_ms": "expired"}
    for field, word in cases.items():
        cluster.state = state_of(**{field: int(NOW_S * 1000)})
        assert cluster.refusal(KEY.text) == (
            f"api_key={KEY.key_id!r}: {word} at 2027-01-15T08:00:00Z; ask an administrator for "
            "another key"
        )
        assert "expected the id and the secret of a key" in cluster.refusal(wrong_secret)


def test_a_cached_key_is_refused_from_its_expiry_on(cluster: Cluster) -> None:
    cluster.state = state_of(expires_ms=int((NOW_S + 10) * 1000))
    cluster.now_s = NOW_S + 9.999
    assert cluster.principal(KEY.text) is cluster.principal(KEY.text)
    cluster.now_s = NOW_S + 10
    assert "expired at 2027-01-15T08:00:10Z" in cluster.refusal(KEY.text)


def test_a_cached_key_is_refused_once_it_is_revoked(cluster: Cluster) -> None:
    assert cluster.principal(KEY.text) is cluster.principal(KEY.text)
    cluster.state = state_of(revoked_ms=1)
    assert "revoked at 1970-01-01T00:00:00Z" in cluster.refusal(KEY.text)
    cluster.state = AccessState()
    assert "expected the id and the secret" in cluster.refusal(KEY.text)


def test_an_equal_state_keeps_the_cache(cluster: Cluster) -> None:
    principal = cluster.principal(KEY.text)
    cluster.state = state_of()
    assert cluster.principal(KEY.text) is principal
    cluster.state = state_of({})
    assert cluster.principal(KEY.text) is not principal


def test_a_daemons_ticket_is_trusted(cluster: Cluster) -> None:
    principal = cluster.principal(cluster.cluster_key.daemon_ticket("storaged"))
    assert (principal.name, principal.kind) == ("storaged", PrincipalKind.DAEMON)
    assert principal.is_trusted
    assert principal.credential_id


def test_a_root_ticket_is_of_a_cluster_administrator(cluster: Cluster) -> None:
    principal = cluster.principal(cluster.cluster_key.root_ticket(60))
    assert principal.kind is PrincipalKind.TICKET
    assert principal.is_cluster_admin
    assert not principal.is_trusted


def test_a_clients_ticket_is_accepted_by_storageds_only(cluster: Cluster) -> None:
    alice = cluster.principal(KEY.text)
    ticket = cluster.cluster_key.client_ticket(alice, {7: "shop"})
    storaged = cluster.new_authenticator(accepts_client_tickets=True)
    principal = storaged.authenticate(f"Bearer {ticket}")
    assert (principal.name, principal.kind) == ("alice", PrincipalKind.TICKET)
    assert principal.roles_by_id == {7: Role.WRITER}
    assert principal.roles == {EVERY_SPACE: Role.READER}
    assert cluster.refusal(ticket) == (
        "ticket of 'alice': expected an API key or token; tickets of clients are for storageds"
    )


def test_a_cached_ticket_is_refused_after_its_expiry(cluster: Cluster) -> None:
    ticket = cluster.cluster_key.sign(
        Ticket(name="graphd", kind=TicketKind.DAEMON, expires_s=int(NOW_S) + 60)
    )
    assert cluster.principal(ticket) is cluster.principal(ticket)
    cluster.now_s = NOW_S + 89
    assert cluster.principal(ticket).name == "graphd"
    cluster.now_s = NOW_S + 91
    assert "ticket of 'graphd': expired at 2027-01-15T08:01:00Z" in cluster.refusal(ticket)


def test_a_cached_ticket_is_refused_without_its_key(cluster: Cluster) -> None:
    ticket = cluster.cluster_key.daemon_ticket("graphd")
    assert cluster.principal(ticket).is_trusted
    cluster.write_key(b"n")
    cluster.now_s += 1
    assert "its signature is not of a key of this cluster" in cluster.refusal(ticket)


def test_a_token_joins_claimed_and_granted_roles(cluster: Cluster) -> None:
    assert cluster.principal("alice.reader.x") == Principal(
        name="alice",
        kind=PrincipalKind.TOKEN,
        roles={"shop": Role.WRITER, EVERY_SPACE: Role.READER},
        credential_id="jti",
    )
    assert dict(cluster.principal("bob.admin.x").roles) == {"shop": Role.ADMIN}
    assert dict(cluster.principal("alice.admin.x").roles) == {
        "shop": Role.ADMIN,
        EVERY_SPACE: Role.READER,
    }
    assert dict(cluster.principal("bob..x").roles) == {}


def test_a_cached_token_is_verified_again_after_a_minute(cluster: Cluster) -> None:
    for seconds, verified in ((0, 1), (59, 1), (60, 2), (119, 2), (120, 3)):
        cluster.now_s = NOW_S + seconds
        cluster.principal("alice..x")
        assert cluster.tokens.verified == verified


def test_a_cached_token_is_verified_again_at_expiry_and_new_keys(cluster: Cluster) -> None:
    cluster.tokens.expires_s = NOW_S + 10
    for seconds, revision, verified in ((0, 0, 1), (9, 0, 1), (9, 1, 2), (10, 1, 3)):
        cluster.now_s, cluster.tokens.revision = NOW_S + seconds, revision
        cluster.principal("alice..x")
        assert cluster.tokens.verified == verified


def test_tokens_are_refused_without_an_issuer(cluster: Cluster) -> None:
    authenticator = Authenticator(cluster.cluster_key, None, AccessState)
    with pytest.raises(Unauthenticated, match="token: expected an API key; this cluster accepts"):
        authenticator.authenticate("Bearer a.b.c")


@pytest.mark.parametrize(
    ("authorization", "reason"),
    [
        ("", "expected 'Bearer' and an API key, ticket or token; the call has no credentials"),
        ("Basic secret", "expected 'Bearer', a space, and the credential"),
        (KEY.text, "expected 'Bearer', a space, and the credential"),
        (f"Bearer{KEY.text}", "expected 'Bearer', a space, and the credential"),
        ("Bearer", "expected 'Bearer', a space, and the credential"),
        ("Bearer ", "expected after 'Bearer' an API key (ak_...), a ticket (tk_...), or a token"),
        ("Bearer secret", "expected after 'Bearer' an API key (ak_...), a ticket (tk_...), or a"),
        ("Bearer a.b.c.d", "expected after 'Bearer' an API key (ak_...), a ticket (tk_...), or a"),
        ("Bearer sécret", "expected 'Bearer' and a credential of at most 16384 ASCII characters"),
        ("Bearer \udcff", "expected 'Bearer' and a credential of at most 16384 ASCII characters"),
        ("Bearer " + "a" * 16385, "expected 'Bearer' and a credential of at most 16384 ASCII"),
    ],
    ids=[
        "none",
        "basic",
        "bare key",
        "no space",
        "no credential",
        "blank",
        "word",
        "four parts",
        "accent",
        "surrogate",
        "long",
    ],
)
def test_other_headers_are_refused_without_being_shown(
    cluster: Cluster, authorization: str, reason: str
) -> None:
    with pytest.raises(Unauthenticated) as raised:
        cluster.authenticator.authenticate(authorization)
    assert raised.value.message.startswith(f"authorization: {reason}")
    assert "secret" not in raised.value.message
    assert KEY.secret not in raised.value.message


def test_the_scheme_is_read_in_any_case(cluster: Cluster) -> None:
    for text in (f"bearer {KEY.text}", f"BEARER   {KEY.text} "):
        assert cluster.authenticator.authenticate(text).name == "alice"


def test_the_cache_is_bounded_and_keeps_the_newest(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authentication, "_CACHE_SIZE", 8)
    for i in range(50):
        cluster.principal(f"user{i}..x")
    assert cluster.tokens.verified == 50
    for i in range(44, 50):
        cluster.principal(f"user{i}..x")
    assert cluster.tokens.verified == 50
    cluster.principal("user0..x")
    assert cluster.tokens.verified == 51


def test_refused_credentials_are_not_cached(cluster: Cluster) -> None:
    assert "expected the id and the secret" in cluster.refusal(OTHER.text)
    assert cluster.authenticator._indexed.cache == {}


def test_threads_share_an_authenticator_while_the_state_changes(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authentication, "_CACHE_SIZE", 4)
    states = [state_of({("alice", "shop"): role}) for role in (1, 2, 3)]
    credentials = [KEY.text, *(f"user{i}..x" for i in range(6))]

    def call(i: int) -> str:
        cluster.state = states[i // 10 % 3]
        return cluster.principal(credentials[i % len(credentials)]).name

    with ThreadPoolExecutor(4) as pool:
        names = list(pool.map(call, range(700)))
    assert names == ["alice", *(f"user{i}" for i in range(6))] * 100
