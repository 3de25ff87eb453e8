"""Stateful test of access records: the store has them all at any time, each change in one write.

Hypothesis plays administrators, the clock and a metad that is killed between two calls.
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.kit.metad import GeneratedKey

from asterism_access.roles import EVERY_SPACE, Role
from asterism_model.schema import NodeType, Schema
from asterism_proto.errors import Conflict, NotFound
from metad.catalog.access import AccessBounds, AccessRecords
from metad.catalog.spaces import Spaces
from metad.model.access import AccessLimits, RoleGrant
from metad.model.ids import HostId
from metad.store.memory_store import MemoryStore
from metad.store.revisions import RevisionedStore

PRINCIPALS = st.sampled_from(["alice", "bob", "a/b"])
SPACES = st.sampled_from(["graph", "other"])
PLACES = st.sampled_from(["graph", "other", EVERY_SPACE])
ROLES = st.sampled_from(list(Role))
SCHEMA = Schema(node_types=(NodeType(name="n"),), parts=1)
BOUNDS = AccessBounds(api_keys=4, grants=4, limits=4)


class AccessMachine(RuleBasedStateMachine):
    """Rules that change access records, and a model of what they must be."""

    def __init__(self) -> None:
        super().__init__()
        self.store = RevisionedStore(MemoryStore())
        self.now_ms = 1000
        self.grants: dict[tuple[str, str], Role] = {}
        """(space, principal) -> role."""
        self.limits: dict[tuple[str, str], int] = {}
        """(space, principal) -> maximum number of pins."""
        self.ends_ms: dict[str, int] = {}
        """Key id -> end of the key; 0 if it has none."""
        self.names: set[str] = set()
        self.keys_created = 0
        self.open()

    @rule()
    def open(self) -> None:
        """Kill metad, and start it again."""
        self.spaces = Spaces(self.store)
        self.records = AccessRecords(self.store, self.spaces, BOUNDS)

    def change(self, call: Callable[[], object], *, is_change: bool) -> None:
        """Make a change, and check that it is one write, or none."""
        revision, changes = self.store.revision, self.records.changes
        call()
        assert self.store.revision - revision == is_change
        assert self.records.changes - changes == is_change

    @rule(space=SPACES)
    def create_or_drop(self, space: str) -> None:
        if space not in self.names:
            self.spaces.create(
                space, SCHEMA, if_not_exists=False, storageds=[HostId("s1")], now_ms=self.now_ms
            )
            self.names.add(space)
            return
        found = self.spaces.find_by_name(space)
        writes = [self.records.drop(found.space_id), self.spaces.drop(found)]
        self.store.write({key: value for w in writes for key, value in w.changes.items()})
        for write in writes:
            write.apply()
        self.names.remove(space)
        self.grants = {key: role for key, role in self.grants.items() if key[0] != space}
        self.limits = {key: pins for key, pins in self.limits.items() if key[0] != space}

    @rule(principal=PRINCIPALS, space=PLACES, role=ROLES)
    def grant(self, principal: str, space: str, role: Role) -> None:
        key, admins = (space, principal), self.admins()
        is_missing = space not in (*self.names, EVERY_SPACE)
        is_refused = key not in self.grants and len(self.grants) == BOUNDS.grants
        is_last = admins == [principal] and space == EVERY_SPACE and role is not Role.ADMIN
        grant = RoleGrant(principal=principal, space=space, role=role)
        if is_missing or is_refused or is_last:
            self.assert_refused(
                lambda: self.records.grant(grant), NotFound if is_missing else Conflict
            )
            return
        self.change(lambda: self.records.grant(grant), is_change=self.grants.get(key) is not role)
        self.grants[key] = role

    @rule(principal=PRINCIPALS, space=PLACES)
    def revoke(self, principal: str, space: str) -> None:
        if space not in (*self.names, EVERY_SPACE):
            self.assert_refused(lambda: self.records.revoke(principal, space), NotFound)
            return
        had_admin = bool(self.admins())
        notices: list[str] = []
        self.change(
            lambda: notices.append(self.records.revoke(principal, space)[1]),
            is_change=(space, principal) in self.grants,
        )
        self.grants.pop((space, principal), None)
        assert bool(notices[0]) == (had_admin and not self.admins())

    @rule(principal=PRINCIPALS, space=PLACES, pins=st.integers(0, 2))
    def set_limits(self, principal: str, space: str, pins: int) -> None:
        key = (space, principal)
        limits = AccessLimits(principal=principal, space=space, pins=pins)
        is_missing = space not in (*self.names, EVERY_SPACE)
        if is_missing or (pins and key not in self.limits and len(self.limits) == BOUNDS.limits):
            error = NotFound if is_missing else Conflict
            self.assert_refused(lambda: self.records.set_limits(limits), error)
            return
        is_change = self.limits.get(key, 0) != pins
        self.change(lambda: self.records.set_limits(limits), is_change=is_change)
        self.limits.pop(key, None)
        if pins:
            self.limits[key] = pins

    @rule(principal=PRINCIPALS, expires_s=st.sampled_from([0, 1, 5]))
    def create_key(self, principal: str, expires_s: int) -> None:
        self.keys_created += 1
        generated = GeneratedKey(f"key-{self.keys_created:08d}", "text", b"hash")

        def create() -> None:
            self.records.create_key(
                generated, principal, expires_s=expires_s, description="", now_ms=self.now_ms
            )

        if len(self.ends_ms) == BOUNDS.api_keys:
            ended = [(end, key) for key, end in self.ends_ms.items() if 0 < end <= self.now_ms]
            if not ended:
                self.assert_refused(create, Conflict)
                return
            del self.ends_ms[min(ended)[1]]
        self.change(create, is_change=True)
        self.ends_ms[generated.key_id] = self.now_ms + 1000 * expires_s if expires_s else 0

    @rule(number=st.integers(1, 9), step_ms=st.integers(0, 4000))
    def revoke_key(self, number: int, step_ms: int) -> None:
        self.now_ms += step_ms
        key_id = f"key-{number:08d}"
        if key_id not in self.ends_ms:
            self.assert_refused(
                lambda: self.records.revoke_key(key_id, now_ms=self.now_ms), NotFound
            )
            return
        was_revoked = next(
            key.revoked_ms for key in self.records.api_keys() if key.key_id == key_id
        )
        self.change(
            lambda: self.records.revoke_key(key_id, now_ms=self.now_ms),
            is_change=not was_revoked,
        )
        if not was_revoked:
            self.ends_ms[key_id] = min(self.now_ms, self.ends_ms[key_id] or self.now_ms)

    def admins(self) -> list[str]:
        """Return the cluster administrators."""
        return [
            principal
            for (space, principal), role in self.grants.items()
            if space == EVERY_SPACE and role is Role.ADMIN
        ]

    def assert_refused(
        self, call: Callable[[], object], error: type[NotFound] | type[Conflict]
    ) -> None:
        """Check that a call is refused and changes nothing."""
        revision, changes = self.store.revision, self.records.changes
        try:
            call()
        except error:
            assert (self.store.revision, self.records.changes) == (revision, changes)
            return
        raise AssertionError(f"expected {error.__name__}")

    @invariant()
    def records_are_those_of_the_model(self) -> None:
        grants = {(grant.space, grant.principal): grant.role for grant in self.records.grants()}
        limits = {(entry.space, entry.principal): entry.pins for entry in self.records.limits()}
        assert (grants, limits) == (self.grants, self.limits)
        assert {key.key_id for key in self.records.api_keys()} == set(self.ends_ms)

    @invariant()
    def the_store_gives_the_same_state(self) -> None:
        stored = AccessRecords(self.store, self.spaces, BOUNDS)
        for name in ("api_keys", "grants", "limits"):
            assert getattr(stored, name)() == getattr(self.records, name)()


TestAccessRecords = AccessMachine.TestCase
TestAccessRecords.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
