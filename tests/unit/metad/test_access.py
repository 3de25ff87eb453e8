"""Tests of API keys, role grants and access limits in the catalog, and of their limits."""

from __future__ import annotations

import hashlib
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.kit.metad import InProcessMetad, generate_api_key
from tests.kit.waiting import HANG_S

from asterism_access.roles import Role
from asterism_proto.errors import Conflict, Corrupt, InvalidRequest, NotFound, NotReady, Unavailable
from asterism_proto.v1 import metad_pb2 as metad_pb
from metad.catalog.access import NO_ADMIN_NOTICE, AccessBounds, AccessRecords
from metad.catalog.spaces import Spaces
from metad.model.access import AccessLimits, RoleGrant
from metad.store import keys
from metad.store.memory_store import MemoryStore
from metad.store.port import Changes

READER, WRITER, ADMIN = metad_pb.READER, metad_pb.WRITER, metad_pb.ADMIN


@pytest.fixture
def metad() -> InProcessMetad:
    """Return a metad with two graph spaces."""
    metad = InProcessMetad()
    metad.heartbeat("s1")
    for name in ("graph", "other"):
        metad.create(name)
    return metad


def restarted(metad: InProcessMetad) -> InProcessMetad:
    """Return another metad on the same store."""
    return InProcessMetad(metad.store, now_ms=metad.now_ms + 1000)


def create_key(metad: InProcessMetad, principal: str = "alice", **fields: Any) -> Any:
    return metad.access(
        "create_api_key", metad_pb.CreateApiKeyRequest(principal=principal, **fields)
    )


def revoke_key(metad: InProcessMetad, key_id: str) -> Any:
    return metad.access("revoke_api_key", metad_pb.RevokeApiKeyRequest(key_id=key_id))


def listed_keys(metad: InProcessMetad, principal: str = "") -> list[metad_pb.ApiKey]:
    return list(
        metad.access("list_api_keys", metad_pb.ListApiKeysRequest(principal=principal)).keys
    )


def grant(metad: InProcessMetad, principal: str, space: str, role: Any) -> Any:
    return metad.access(
        "grant_role", metad_pb.RoleGrant(principal=principal, space=space, role=role)
    )


def revoke_role(metad: InProcessMetad, principal: str, space: str) -> str:
    request = metad_pb.RevokeRoleRequest(principal=principal, space=space)
    return str(metad.access("revoke_role", request).notice)


def grants(metad: InProcessMetad, principal: str = "", space: str = "") -> list[tuple[Any, ...]]:
    request = metad_pb.ListGrantsRequest(principal=principal, space=space)
    return [(g.principal, g.space, g.role) for g in metad.access("list_grants", request).grants]


def limits(metad: InProcessMetad, principal: str = "", space: str = "") -> list[Any]:
    request = metad_pb.ListGrantsRequest(principal=principal, space=space)
    return list(metad.access("list_access_limits", request).limits)


def access_state(metad: InProcessMetad) -> metad_pb.AccessState:
    return metad.poll("s1").access


# API keys.


def test_the_secret_of_a_key_is_returned_once_and_not_stored(
    metad: InProcessMetad, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        reply = create_key(metad, description="laptop")
    prefix, key_id, secret = reply.secret[:2], reply.key.key_id, reply.secret[16:]
    assert (prefix, reply.secret) == ("ak", f"ak_{key_id}_{secret}")
    assert reply.key == metad_pb.ApiKey(
        key_id=key_id, principal="alice", created_ms=metad.now_ms, description="laptop"
    )
    assert listed_keys(metad) == [reply.key], "lists have no hash"
    stored = b"".join(value for _, value in metad.store.range(b""))
    assert secret.encode() not in stored
    digest = hashlib.sha256(secret.encode()).digest()
    assert digest in stored
    assert [key.secret_hash for key in access_state(metad).keys] == [digest]
    assert secret not in caplog.text
    assert "api_key_created" in caplog.text


def test_keys_are_listed_by_principal_and_age(metad: InProcessMetad) -> None:
    created = []
    for principal in ("bob", "alice", "bob"):
        created.append(create_key(metad, principal).key)
        metad.advance_clock(1)
    assert listed_keys(metad) == created
    assert listed_keys(metad, "bob") == [created[0], created[2]]
    assert listed_keys(metad, "carol") == []


def test_a_revoked_key_stays_listed_with_its_time(metad: InProcessMetad) -> None:
    key = create_key(metad).key
    metad.advance_clock(7)
    revoked = revoke_key(metad, key.key_id)
    assert (revoked.revoked_ms, revoked.secret_hash) == (metad.now_ms, b"")
    revision = metad.poll("s1").revision
    metad.advance_clock(7)
    assert revoke_key(metad, key.key_id) == revoked, "a repeated revocation changes nothing"
    assert metad.poll("s1").revision == revision
    assert listed_keys(restarted(metad)) == [revoked]
    assert access_state(metad).keys[0].revoked_ms == revoked.revoked_ms


def test_a_key_expires_after_its_lifetime(metad: InProcessMetad) -> None:
    assert create_key(metad, expires_s=1.5).key.expires_ms == metad.now_ms + 1500
    assert create_key(metad).key.expires_ms == 0


@pytest.mark.parametrize("expires_s", [-1.0, 0.5, 4e9, float("nan"), float("inf")])
def test_a_lifetime_out_of_bounds_is_refused(metad: InProcessMetad, expires_s: float) -> None:
    with pytest.raises(InvalidRequest, match=r"expires_s=\S+: expected 1 to 3153600000 s"):
        create_key(metad, expires_s=expires_s)
    assert listed_keys(metad) == []


def test_long_or_unprintable_descriptions_are_refused(metad: InProcessMetad) -> None:
    for text in ("x" * 257, "two\nlines"):
        with pytest.raises(InvalidRequest, match=r"description=.*: expected at most 256 printable"):
            create_key(metad, description=text)
    assert create_key(metad, description="ü" * 256).key.description == "ü" * 256


def test_an_unknown_key_is_not_found_and_a_secret_not_shown(metad: InProcessMetad) -> None:
    with pytest.raises(NotFound, match="key_id='AAAAbbbbCC-_': expected the id of an API key"):
        revoke_key(metad, "AAAAbbbbCC-_")
    whole_key = create_key(metad).secret
    for text in (whole_key, whole_key[16:], ""):
        with pytest.raises(InvalidRequest, match=r"^key_id: expected the 12 characters") as refusal:
            revoke_key(metad, text)
        assert not text or text not in str(refusal.value)


def test_ended_keys_make_place_for_new_ones() -> None:
    store = MemoryStore()
    records = AccessRecords(store, Spaces(store), AccessBounds(api_keys=3))

    def create(now_ms: int, expires_s: float = 0) -> str:
        return records.create_key(
            generate_api_key(), "alice", expires_s=expires_s, description="", now_ms=now_ms
        ).key_id

    first, expiring, second = create(1), create(2, expires_s=1), create(3)
    with pytest.raises(Conflict, match="keys=3: expected fewer than 3 valid API keys; revoke"):
        create(1001)
    records.revoke_key(second, now_ms=1500)
    newest = create(1600)
    assert [key.key_id for key in records.api_keys()] == [first, second, newest], (
        "the one that ended first is forgotten"
    )
    assert AccessRecords(store, Spaces(store)).api_keys() == records.api_keys()
    assert expiring not in {key.key_id for key in records.api_keys()}


def test_a_key_id_is_never_reused(metad: InProcessMetad) -> None:
    generated = generate_api_key()
    records = metad.components.catalog.access
    records.create_key(generated, "alice", expires_s=0, description="", now_ms=1)
    with pytest.raises(Conflict, match="exists already; create the key again"):
        records.create_key(generated, "bob", expires_s=0, description="", now_ms=1)
    assert [key.principal for key in records.api_keys()] == ["alice"]


# Names.


@pytest.mark.parametrize("name", ["", "x" * 129, "a\nb", "a\x00", "*", " a", "a\u202eb", "a\u200b"])
def test_names_of_principals_are_checked_everywhere(metad: InProcessMetad, name: str) -> None:
    for call in (
        lambda: create_key(metad, name),
        lambda: grant(metad, name, "graph", READER),
        lambda: revoke_role(metad, name, "graph"),
    ):
        with pytest.raises(
            InvalidRequest, match=r"^principal=.*: expected 1 to 128 printable .*other than '\*'"
        ):
            call()
    if name != "*":
        with pytest.raises(InvalidRequest, match=r"^principal=.* at the ends$"):
            metad.access("set_access_limits", metad_pb.AccessLimits(principal=name, space="graph"))


@pytest.mark.parametrize("name", ["x" * 128, "alice@example.com", "CN=Zoë, O=a/b", "a b", "1/2"])
def test_printable_names_survive_a_restart(metad: InProcessMetad, name: str) -> None:
    grant(metad, name, "graph", WRITER)
    metad.access("set_access_limits", metad_pb.AccessLimits(principal=name, space="*", pins=1))
    metad = restarted(metad)
    assert grants(metad) == [(name, "graph", WRITER)]
    assert [entry.principal for entry in limits(metad)] == [name]


# Grants.


def test_a_grant_replaces_the_role_in_its_space_only(metad: InProcessMetad) -> None:
    grant(metad, "alice", "graph", READER)
    grant(metad, "alice", "other", READER)
    grant(metad, "bob", "*", WRITER)
    reply = grant(metad, "alice", "graph", ADMIN)
    assert (reply.principal, reply.space, reply.role) == ("alice", "graph", ADMIN)
    every = [("bob", "*", WRITER), ("alice", "graph", ADMIN), ("alice", "other", READER)]
    assert grants(metad) == every
    assert grants(metad, principal="alice") == every[1:]
    assert grants(metad, space="graph") == every[1:2]
    assert grants(metad, space="*") == every[:1]
    assert grants(metad, space="unknown") == [], "a list does not say which spaces exist"
    assert grants(restarted(metad)) == every


def test_a_revoked_role_is_gone_and_revoking_again_is_fine(metad: InProcessMetad) -> None:
    grant(metad, "alice", "graph", READER)
    grant(metad, "alice", "*", READER)
    assert revoke_role(metad, "alice", "graph") == ""
    revision = metad.poll("s1").revision
    assert revoke_role(metad, "alice", "graph") == ""
    assert metad.poll("s1").revision == revision
    assert grants(metad) == grants(restarted(metad)) == [("alice", "*", READER)]


def test_roles_in_an_unknown_space_are_refused(metad: InProcessMetad) -> None:
    for call in (
        lambda: grant(metad, "alice", "nowhere", READER),
        lambda: revoke_role(metad, "alice", "nowhere"),
        lambda: metad.access(
            "set_access_limits", metad_pb.AccessLimits(principal="alice", space="nowhere", pins=1)
        ),
    ):
        with pytest.raises(NotFound, match="'nowhere' does not exist; there are graph, other"):
            call()
    with pytest.raises(InvalidRequest, match=r"space='': expected the name of a space, or '\*'"):
        grant(metad, "alice", "", READER)
    for role in (0, 5):
        with pytest.raises(
            InvalidRequest, match=rf"role={role}: expected one of READER \(1\), WRITER \(2\)"
        ):
            grant(metad, "alice", "graph", role)


def test_a_dropped_space_leaves_nothing_to_its_namesake(metad: InProcessMetad) -> None:
    for space in ("graph", "other", "*"):
        grant(metad, "alice", space, ADMIN)
        metad.access(
            "set_access_limits", metad_pb.AccessLimits(principal="alice", space=space, jobs=2)
        )
    metad.ask("drop_space", metad_pb.DropSpaceRequest(space="graph"))
    kept = [("alice", "*", ADMIN), ("alice", "other", ADMIN)]
    assert [len(metad.store.range(prefix)) for prefix in (keys.GRANTS, keys.ACCESS_LIMITS)] == [
        2,
        2,
    ]
    metad.create("graph")
    for current in (metad, restarted(metad)):
        assert grants(current) == kept
        assert [entry.space for entry in limits(current)] == ["*", "other"]
        assert [entry.space for entry in access_state(current).grants] == ["*", "other"]


def test_the_last_cluster_administrator_may_leave_with_a_notice(
    metad: InProcessMetad, caplog: pytest.LogCaptureFixture
) -> None:
    grant(metad, "alice", "*", ADMIN)
    grant(metad, "bob", "*", ADMIN)
    grant(metad, "carol", "*", WRITER)
    grant(metad, "carol", "graph", ADMIN)
    assert revoke_role(metad, "bob", "*") == ""
    with pytest.raises(Conflict, match="'alice' is the last cluster administrator; grant another"):
        grant(metad, "alice", "*", WRITER)
    assert revoke_role(metad, "carol", "*") == revoke_role(metad, "carol", "graph") == ""
    assert revoke_role(metad, "alice", "*") == NO_ADMIN_NOTICE
    assert "asterism access bootstrap" in NO_ADMIN_NOTICE
    assert "cluster_admins_removed" in caplog.text
    assert grants(metad) == []


def test_the_number_of_grants_and_limits_is_bounded(metad: InProcessMetad) -> None:
    records = AccessRecords(
        metad.store, metad.components.catalog.spaces, AccessBounds(grants=2, limits=2)
    )
    for space in ("graph", "*"):
        records.grant(RoleGrant(principal="alice", space=space, role=Role.READER))
        records.set_limits(AccessLimits(principal="*", space=space, pins=1))
    with pytest.raises(Conflict, match="grants=2: expected fewer than 2; remove those"):
        records.grant(RoleGrant(principal="bob", space="graph", role=Role.READER))
    with pytest.raises(Conflict, match="limits=2: expected fewer than 2; remove those"):
        records.set_limits(AccessLimits(principal="alice", space="graph", pins=1))
    assert records.grant(RoleGrant(principal="alice", space="graph", role=Role.WRITER))
    assert records.set_limits(AccessLimits(principal="*", space="graph", pins=2))
    assert AccessBounds() == AccessBounds(api_keys=10_000, grants=100_000, limits=100_000)


# Limits.


def test_limits_are_replaced_and_removed_when_all_are_zero(metad: InProcessMetad) -> None:
    full = metad_pb.AccessLimits(
        principal="*",
        space="*",
        calls_per_s=0.5,
        rows_per_s=1e6,
        bytes_per_s=1e9,
        concurrent_calls=3,
        stored_bytes=1 << 40,
        pins=4,
        jobs=5,
        share=2,
    )
    assert metad.access("set_access_limits", full) == full
    one = metad_pb.AccessLimits(principal="alice", space="graph", pins=1)
    metad.access("set_access_limits", one)
    assert limits(metad) == limits(restarted(metad)) == [full, one]
    assert list(access_state(metad).limits) == [full, one]
    assert limits(metad, principal="alice") == limits(metad, space="graph") == [one]
    one.pins = 2
    metad.access("set_access_limits", one)
    assert limits(metad, principal="alice") == [one]
    unlimited = metad_pb.AccessLimits(principal="*", space="*")
    metad.access("set_access_limits", unlimited)
    metad.access("set_access_limits", unlimited)
    assert limits(metad) == limits(restarted(metad)) == [one]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("calls_per_s", -1.0),
        ("rows_per_s", float("nan")),
        ("bytes_per_s", float("inf")),
        ("concurrent_calls", -1),
        ("stored_bytes", -5),
        ("pins", -1),
        ("jobs", -1),
        ("share", -1.0),
        ("share", 0.0001),
        ("share", 2000.0),
        ("share", float("nan")),
    ],
)
def test_limits_out_of_bounds_are_refused(metad: InProcessMetad, field: str, value: float) -> None:
    request = metad_pb.AccessLimits(principal="alice", space="graph", **{field: value})  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match=rf"{field}={value}: expected"):
        metad.access("set_access_limits", request)
    assert limits(metad) == []


# Followers and the store.


def test_every_change_reaches_waiting_daemons(metad: InProcessMetad) -> None:
    metad.heartbeat("g1", role=metad_pb.GRAPHD)
    key_id = ""

    def create() -> None:
        nonlocal key_id
        key_id = create_key(metad).key.key_id

    for change in (
        create,
        lambda: grant(metad, "alice", "graph", READER),
        lambda: metad.access(
            "set_access_limits", metad_pb.AccessLimits(principal="alice", space="*", pins=1)
        ),
        lambda: revoke_role(metad, "alice", "graph"),
        lambda: revoke_key(metad, key_id),
    ):
        before = metad.poll("s1")
        change()
        after = [metad.poll("s1"), metad.poll("g1", role=metad_pb.GRAPHD)]
        assert all(reply.revision > before.revision for reply in after)
        assert before.access != after[0].access == after[1].access


def test_the_state_is_read_without_the_lock(metad: InProcessMetad) -> None:
    builder = metad.components.desired_state
    state = builder.access_state()
    lock = metad.components.change_feed.lock
    with ThreadPoolExecutor(1) as threads, lock:  # the lock is released before threads are awaited
        assert threads.submit(builder.access_state).result(HANG_S) is state
        create_key(metad)
        assert builder.access_state() is not state


def test_polls_share_one_state_until_it_changes(metad: InProcessMetad) -> None:
    builder = metad.components.desired_state
    state = builder.access_state()
    metad.load()
    metad.submit()
    assert builder.access_state() is state
    metad.poll("s1").access.keys.add(key_id="spoilt")
    assert access_state(metad) == state == metad_pb.AccessState()
    create_key(metad)
    assert builder.access_state() is not state


def test_a_daemon_ahead_of_the_catalog_gets_no_access_state(metad: InProcessMetad) -> None:
    create_key(metad)
    ahead = metad_pb.CatalogPosition(history="newer", term="t", revision=99)
    reply = metad.poll("s1", followed_position=ahead)
    assert not reply.contains_position
    assert not reply.HasField("access"), "an older catalog may have keys that were revoked since"


def test_an_older_catalog_refuses_changes(metad: InProcessMetad) -> None:
    metad.poll(
        "s1", followed_position=metad_pb.CatalogPosition(history="newer", term="t", revision=99)
    )
    with pytest.raises(NotReady, match="the catalog is older"):
        create_key(metad)
    with pytest.raises(NotReady, match="the catalog is older"):
        grant(metad, "alice", "graph", READER)


class FailingStore(MemoryStore):
    """Store that can refuse all writes."""

    is_full = False

    def write(self, changes: Changes) -> None:
        if self.is_full:
            raise Unavailable("the disk is full")
        super().write(changes)


def test_a_refused_write_changes_nothing() -> None:
    store = FailingStore()
    metad = InProcessMetad(store)
    metad.heartbeat("s1")
    metad.create()
    key_id = create_key(metad).key.key_id
    grant(metad, "alice", "graph", READER)
    before = metad.poll("s1")
    store.is_full = True
    for change in (
        lambda: create_key(metad),
        lambda: revoke_key(metad, key_id),
        lambda: grant(metad, "alice", "graph", ADMIN),
        lambda: revoke_role(metad, "alice", "graph"),
        lambda: metad.access(
            "set_access_limits", metad_pb.AccessLimits(principal="alice", space="*", pins=1)
        ),
        lambda: metad.ask("drop_space", metad_pb.DropSpaceRequest(space="graph")),
    ):
        with pytest.raises(Unavailable):
            change()
    store.is_full = False
    after = metad.poll("s1")
    assert (after.access, after.revision) == (before.access, before.revision)


def test_a_catalog_of_an_earlier_release_has_no_keys_or_grants(metad: InProcessMetad) -> None:
    metad.load()
    metad.submit()
    prefixes = (keys.API_KEYS, keys.GRANTS, keys.ACCESS_LIMITS)
    assert not any(metad.store.range(prefix) for prefix in prefixes)
    metad = restarted(metad)
    assert access_state(metad) == metad_pb.AccessState()
    grant(metad, "alice", "graph", READER)
    assert grants(restarted(metad)) == [("alice", "graph", READER)]


def test_a_stored_role_that_does_not_exist_is_corrupt(metad: InProcessMetad) -> None:
    grant(metad, "alice", "graph", READER)
    ((key, _),) = metad.store.range(keys.GRANTS)
    damaged = metad_pb.RoleGrant(principal="alice", space="graph", role=9)  # type: ignore[arg-type]
    metad.store.write({key: damaged.SerializeToString()})
    with pytest.raises(Corrupt, match=r"a stored RoleGrant .*role=9.*restore the catalog from a"):
        restarted(metad)


def test_a_copy_of_the_catalog_has_the_records_of_its_moment(metad: InProcessMetad) -> None:
    create_key(metad)
    grant(metad, "alice", "graph", ADMIN)
    copy = MemoryStore()
    copy.write(dict(metad.store.range(b"")))
    before = access_state(metad)
    revoke_role(metad, "alice", "graph")
    assert access_state(InProcessMetad(copy)) == before


def test_an_adopted_copy_of_the_catalog_sends_its_own_records(metad: InProcessMetad) -> None:
    key = create_key(metad).key
    copy = MemoryStore()
    copy.write(dict(metad.store.range(b"")))
    before = access_state(metad)
    revoke_key(metad, key.key_id)
    followed_position = metad.poll("g1", role=metad_pb.GRAPHD).position
    older = InProcessMetad(copy, now_ms=metad.now_ms)

    def poll() -> metad_pb.PollReply:
        return older.poll("g1", role=metad_pb.GRAPHD, followed_position=followed_position)

    assert not poll().HasField("access")
    older.ask("adopt_catalog", metad_pb.AdoptCatalogRequest())
    reply = poll()
    assert (reply.adopted, reply.access) == (True, before)
    assert revoke_key(older, key.key_id).revoked_ms
