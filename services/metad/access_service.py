"""Operations of metad on API keys, role grants, access limits and ended sessions.

Every operation takes the lock of the change feed. A change is durable, and visible to daemons,
before the operation returns."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from metad.catalog.catalog import Catalog
from metad.change_feed import ChangeFeed
from metad.clock import Clock
from metad.follower_positions import Followers
from metad.model.access import (
    AccessLimits,
    ApiKey,
    ApiKeyGenerator,
    EndedSession,
    RoleGrant,
)

logger = logging.getLogger(__name__)


class AccessService:
    """Operations on API keys, role grants, access limits and ended sessions.

    Parameters
    ----------
    change_feed, catalog, followers, clock
        Components of the metad.
    generate_api_key : callable
        Returns an API key with random parts.
    """

    def __init__(
        self,
        *,
        change_feed: ChangeFeed,
        catalog: Catalog,
        followers: Followers,
        clock: Clock,
        generate_api_key: ApiKeyGenerator,
    ) -> None:
        self._change_feed = change_feed
        self._access = catalog.access
        self._ended_sessions = catalog.ended_sessions
        self._followers = followers
        self._clock = clock
        self._generate_api_key = generate_api_key

    def create_api_key(
        self, principal: str, *, expires_s: float, description: str
    ) -> tuple[ApiKey, str]:
        """Create an API key; return it and its text, which cannot be read again."""
        with self._change():
            generated = self._generate_api_key()
            key = self._access.create_key(
                generated,
                principal,
                expires_s=expires_s,
                description=description,
                now_ms=self._clock(),
            )
        logger.info("api_key_created", extra={"key_id": key.key_id, "principal": principal})
        return key, generated.text

    def api_keys(self, principal: str = "") -> list[ApiKey]:
        """Return the API keys of a principal, or all, the oldest first."""
        with self._change_feed.lock:
            return self._access.api_keys(principal)

    def revoke_api_key(self, key_id: str) -> ApiKey:
        """Revoke an API key. A key that is revoked already is not an error."""
        with self._change():
            key, is_changed = self._access.revoke_key(key_id, now_ms=self._clock())
        if is_changed:
            logger.info("api_key_revoked", extra={"key_id": key_id, "principal": key.principal})
        return key

    def grant_role(self, grant: RoleGrant) -> RoleGrant:
        """Set the role of a principal in a space, or in every space."""
        with self._change():
            is_changed = self._access.grant(grant)
        if is_changed:
            logger.info(
                "role_granted",
                extra={
                    "principal": grant.principal,
                    "space": grant.space,
                    "role": grant.role.name.lower(),
                },
            )
        return grant

    def revoke_role(self, principal: str, space: str) -> str:
        """Remove the role of a principal in a space, or that in every space.

        A principal without that role is not an error. The returned notice says how to come back if
        no cluster administrator is left; else it is empty."""
        with self._change():
            grant, notice = self._access.revoke(principal, space)
        if grant is not None:
            logger.info("role_revoked", extra={"principal": principal, "space": space})
        if notice:
            logger.warning("cluster_admins_removed", extra={"remedy": notice})
        return notice

    def grants(self, principal: str = "", space: str = "") -> list[RoleGrant]:
        """Return the grants of a principal and a space, or all.

        A space that does not exist has no grants: callers may not know which spaces exist."""
        with self._change_feed.lock:
            return self._access.grants(principal, space)

    def set_limits(self, limits: AccessLimits) -> AccessLimits:
        """Set the limits of a principal in a space; limits that limit nothing are removed."""
        with self._change():
            is_changed = self._access.set_limits(limits)
        if is_changed:
            logger.info(
                "access_limits_set", extra={"principal": limits.principal, "space": limits.space}
            )
        return limits

    def limits(self, principal: str = "", space: str = "") -> list[AccessLimits]:
        """Return the limits of a principal and a space, or all."""
        with self._change_feed.lock:
            return self._access.limits(principal, space)

    def end_session(self, session: EndedSession) -> None:
        """Make a sign-out known to all graphds."""
        with self._change_feed.lock:
            self._followers.check_writable()
            if self._ended_sessions.add(session, now_ms=self._clock()):
                self._change_feed.advance()

    @contextmanager
    def _change(self) -> Iterator[None]:
        """Hold the lock for a change, and wake the daemons if there was one."""
        with self._change_feed.lock:
            self._followers.check_writable()
            changes = self._access.changes
            yield
            if self._access.changes != changes:
                self._change_feed.advance()
