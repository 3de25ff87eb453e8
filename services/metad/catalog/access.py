"""API keys, role grants and access limits: who may do what in which space."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

from asterism_access.roles import EVERY_SPACE, Role
from asterism_proto.errors import Conflict, InvalidRequest, NotFound
from metad.catalog.access_validation import (
    check_description,
    check_key_id,
    check_limits,
    check_principal,
    lifetime_ms,
)
from metad.catalog.spaces import Spaces
from metad.model.access import EVERY_PRINCIPAL, AccessLimits, ApiKey, GeneratedApiKey, RoleGrant
from metad.model.catalog import PendingWrite
from metad.model.ids import SpaceId
from metad.store import keys
from metad.store.port import MetaStore
from metad.wire import record_encoding

NO_ADMIN_NOTICE = (
    "no principal is a cluster administrator now; `asterism access bootstrap` signs a root ticket "
    "from the cluster's key file, which can grant the role again"
)
"""Notice after the removal of the last cluster administrator: how to come back."""
_EVERY_SPACE_ID = SpaceId(0)
"""Space id of records that concern every space; no space has it."""

T = TypeVar("T", RoleGrant, AccessLimits)
_BySpace = dict[SpaceId, dict[str, T]]
"""Space id -> principal -> record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessBounds:
    """Maximum numbers of stored records."""

    api_keys: int = 10_000
    grants: int = 100_000
    limits: int = 100_000


class AccessRecords:
    """All API keys, role grants and access limits.

    Grants and limits are stored by space id, so a later space with the name of a dropped one does
    not inherit them. Not thread-safe: called under the lock of `metad.change_feed`.

    Parameters
    ----------
    store : MetaStore
    spaces : Spaces
    bounds : AccessBounds, optional
    """

    def __init__(
        self, store: MetaStore, spaces: Spaces, bounds: AccessBounds | None = None
    ) -> None:
        self._store = store
        self._spaces = spaces
        self._bounds = bounds or AccessBounds()
        self._keys = {
            key.key_id: key
            for key in (
                record_encoding.decode_api_key(value) for _, value in store.range(keys.API_KEYS)
            )
        }
        self._grants: _BySpace[RoleGrant] = {}
        for stored_key, value in store.range(keys.GRANTS):
            _put(
                self._grants,
                SpaceId(keys.space_number(stored_key)),
                record_encoding.decode_grant(value),
            )
        self._limits: _BySpace[AccessLimits] = {}
        for stored_key, value in store.range(keys.ACCESS_LIMITS):
            limits = record_encoding.decode_access_limits(value)
            _put(self._limits, SpaceId(keys.space_number(stored_key)), limits)
        self._changes = 0

    @property
    def changes(self) -> int:
        """Number of changes since the start; equal numbers mean equal records."""
        return self._changes

    # API keys.

    def create_key(
        self,
        generated: GeneratedApiKey,
        principal: str,
        *,
        expires_s: float,
        description: str,
        now_ms: int,
    ) -> ApiKey:
        """Store a generated API key without its secret.

        If the maximum number of keys is stored, the one that ended first is deleted.

        Parameters
        ----------
        generated : GeneratedApiKey
        principal : str
            Principal that calls with this key are made by.
        expires_s : float
            Seconds from now until the key expires; 0 for never.
        description : str
        now_ms : int

        Raises
        ------
        InvalidRequest
            If the principal, the lifetime or the description is out of bounds.
        Conflict
            If the maximum number of keys is stored, and all are valid.
        """
        check_principal(principal)
        check_description(description)
        lifetime = lifetime_ms(expires_s)
        if generated.key_id in self._keys:
            raise Conflict(f"key_id={generated.key_id!r}: exists already; create the key again")
        key = ApiKey(
            key_id=generated.key_id,
            principal=principal,
            secret_hash=generated.hash,
            created_ms=now_ms,
            expires_ms=now_ms + lifetime if lifetime else 0,
            description=description,
        )
        surplus = self._surplus_keys(now_ms)
        self._store.write(
            {
                keys.api_key_key(key.key_id): record_encoding.encode_api_key(key),
                **{keys.api_key_key(key_id): None for key_id in surplus},
            }
        )
        for key_id in surplus:
            del self._keys[key_id]
        self._keys[key.key_id] = key
        self._changes += 1
        return key

    def _surplus_keys(self, now_ms: int) -> list[str]:
        """Return the ended keys to delete before a key is added."""
        count = len(self._keys) + 1 - self._bounds.api_keys
        if count <= 0:
            return []
        ended = sorted(
            (ended_ms, key.key_id)
            for key in self._keys.values()
            if (ended_ms := key.ended_ms(now_ms)) is not None
        )
        if len(ended) < count:
            raise Conflict(
                f"keys={len(self._keys)}: expected fewer than {self._bounds.api_keys} valid API "
                "keys; revoke those that are no longer used"
            )
        return [key_id for _, key_id in ended[:count]]

    def api_keys(self, principal: str = "") -> list[ApiKey]:
        """Return the API keys of a principal, or all, the oldest first."""
        return sorted(
            (key for key in self._keys.values() if principal in ("", key.principal)),
            key=lambda key: (key.created_ms, key.key_id),
        )

    def revoke_key(self, key_id: str, *, now_ms: int) -> tuple[ApiKey, bool]:
        """Revoke a key, and return it and whether it was not revoked before.

        Raises
        ------
        InvalidRequest
            If the text is not the id of a key.
        NotFound
            If there is no such key.
        """
        check_key_id(key_id)
        key = self._keys.get(key_id)
        if key is None:
            raise NotFound(
                f"key_id={key_id!r}: expected the id of an API key; list the keys to see their ids"
            )
        if key.revoked_ms:
            return key, False
        key = replace(key, revoked_ms=now_ms)
        self._store.write({keys.api_key_key(key_id): record_encoding.encode_api_key(key)})
        self._keys[key_id] = key
        self._changes += 1
        return key, True

    # Grants.

    def grant(self, grant: RoleGrant) -> bool:
        """Set the role of a principal in a space; return whether that changed anything.

        Raises
        ------
        InvalidRequest
            If the principal's name is out of bounds.
        NotFound
            If the space does not exist.
        Conflict
            If there are too many grants, or no cluster administrator would be left.
        """
        check_principal(grant.principal)
        space_id = self._space_id(grant.space)
        former = self._grants.get(space_id, {}).get(grant.principal)
        if former == grant:
            return False
        if former is None:
            _check_count("grants", self._grants, self._bounds.grants)
        elif self._is_last_admin(former):
            raise Conflict(
                f"role={grant.role.name}: {grant.principal!r} is the last cluster administrator; "
                "grant another principal ADMIN in space '*' first, or revoke the role"
            )
        self._store.write(
            {keys.grant_key(space_id, grant.principal): record_encoding.encode_grant(grant)}
        )
        _put(self._grants, space_id, grant)
        self._changes += 1
        return True

    def revoke(self, principal: str, space: str) -> tuple[RoleGrant | None, str]:
        """Remove the role of a principal in a space.

        Returns
        -------
        RoleGrant or None
            The removed grant; None if there was none.
        str
            `NO_ADMIN_NOTICE` if no cluster administrator is left; else empty.
        """
        check_principal(principal)
        space_id = self._space_id(space)
        grant = self._grants.get(space_id, {}).get(principal)
        if grant is None:
            return None, ""
        notice = NO_ADMIN_NOTICE if self._is_last_admin(grant) else ""
        self._store.write({keys.grant_key(space_id, principal): None})
        _remove(self._grants, space_id, principal)
        self._changes += 1
        return grant, notice

    def grants(self, principal: str = "", space: str = "") -> list[RoleGrant]:
        """Return the grants of a principal and a space, or all; those of every space first."""
        return _matching(self._grants, principal, space)

    def _is_last_admin(self, grant: RoleGrant) -> bool:
        everywhere = self._grants.get(_EVERY_SPACE_ID, {}).values()
        return (
            grant.space == EVERY_SPACE
            and grant.role is Role.ADMIN
            and sum(other.role is Role.ADMIN for other in everywhere) == 1
        )

    # Limits.

    def set_limits(self, limits: AccessLimits) -> bool:
        """Set the limits of a principal in a space; return whether that changed anything.

        Limits that limit nothing are removed.

        Raises
        ------
        InvalidRequest
            If a value is out of bounds.
        NotFound
            If the space does not exist.
        Conflict
            If there are too many limits.
        """
        check_limits(limits)
        space_id = self._space_id(limits.space)
        former = self._limits.get(space_id, {}).get(limits.principal)
        new = None if limits.is_unlimited else limits
        if former == new:
            return False
        if former is None:
            _check_count("limits", self._limits, self._bounds.limits)
        key = keys.access_limits_key(space_id, limits.principal)
        self._store.write(
            {key: record_encoding.encode_access_limits(new) if new is not None else None}
        )
        if new is None:
            _remove(self._limits, space_id, limits.principal)
        else:
            _put(self._limits, space_id, new)
        self._changes += 1
        return True

    def limits(self, principal: str = "", space: str = "") -> list[AccessLimits]:
        """Return the limits of a principal and a space, or all; those of all spaces first."""
        return _matching(self._limits, principal, space)

    def limits_in(self, principal: str, space_id: SpaceId) -> AccessLimits | None:
        """Return the limits of a principal in one space: its own, else those of every principal."""
        limits = self._limits.get(space_id, {})
        return limits.get(principal) or limits.get(EVERY_PRINCIPAL)

    def total_limits(self, principal: str) -> AccessLimits | None:
        """Return the limits of a principal in all spaces together."""
        return self.limits_in(principal, _EVERY_SPACE_ID)

    # Spaces.

    def drop(self, space_id: SpaceId) -> PendingWrite:
        """Return the write that deletes the grants and limits of a space."""
        grants, limits = self._grants.get(space_id, {}), self._limits.get(space_id, {})
        if not grants and not limits:
            return PendingWrite()
        changes: dict[bytes, bytes | None] = {
            **{keys.grant_key(space_id, principal): None for principal in grants},
            **{keys.access_limits_key(space_id, principal): None for principal in limits},
        }

        def apply() -> None:
            self._grants.pop(space_id, None)
            self._limits.pop(space_id, None)
            self._changes += 1

        return PendingWrite(changes, apply)

    def _space_id(self, space: str) -> SpaceId:
        if space == EVERY_SPACE:
            return _EVERY_SPACE_ID
        if not space:
            raise InvalidRequest(
                f"space='': expected the name of a space, or {EVERY_SPACE!r} for every space"
            )
        return self._spaces.find_by_name(space).space_id


def _put(records: _BySpace[T], space_id: SpaceId, record: T) -> None:
    records.setdefault(space_id, {})[record.principal] = record


def _remove(records: _BySpace[T], space_id: SpaceId, principal: str) -> None:
    del records[space_id][principal]
    if not records[space_id]:
        del records[space_id]


def _matching(records: _BySpace[T], principal: str, space: str) -> list[T]:
    """Return the records that match, by space id and principal; empty texts match all."""
    matching: list[T] = []
    for space_id in sorted(records):
        of_space = records[space_id]
        if principal:
            found = [of_space[principal]] if principal in of_space else []
        else:
            found = [of_space[name] for name in sorted(of_space)]
        matching += [record for record in found if space in ("", record.space)]
    return matching


def _check_count(name: str, records: _BySpace[T], maximum: int) -> None:
    count = sum(map(len, records.values()))
    if count >= maximum:
        raise Conflict(
            f"{name}={count}: expected fewer than {maximum}; remove those that are no longer used"
        )
