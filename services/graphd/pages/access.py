"""Routes of the page of access control: principals, API keys, roles and limits.

All go to the handlers of the Access service with the rights of the caller, which check its roles
and record what it changes.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Annotated, TypeVar, cast

from fastapi import APIRouter, Path, Query, Response
from google.protobuf.message import Message

from asterism_access.roles import EVERY_SPACE, Role, parse_role
from asterism_daemonkit.rpc.call_context import current_principal
from asterism_proto.methods import ACCESS
from asterism_proto.transport import Transport
from asterism_proto.v1 import metad_pb2 as metad_pb
from graphd.pages import views
from graphd.pages.catalog_reader import METAD_TIMEOUT_S

M = TypeVar("M", bound=Message)

MAX_ROWS = 500
"""Rows of each list; a search narrows them down."""
_LIMITS = (
    "calls_per_s",
    "rows_per_s",
    "bytes_per_s",
    "concurrent_calls",
    "stored_bytes",
    "pins",
    "jobs",
    "share",
)
_DAY_S = 86400.0


def router(access: Transport) -> APIRouter:
    """Return the routes.

    Parameters
    ----------
    access : Transport
        Carries calls of the Access service with the rights of the caller of a route.
    """
    api = APIRouter(prefix="/ui/api/access", tags=["pages"])

    def call(name: str, request: Message, reply_type: type[M]) -> M:
        return cast(M, access.call(ACCESS[name], request, METAD_TIMEOUT_S))

    @api.get("")
    def get_access(
        q: Annotated[
            str, Query(max_length=200, description="Only principals and spaces with this text.")
        ] = "",
    ) -> views.AccessView:
        """Return principals, API keys without their secrets, roles and limits.

        Administrators of a space see its roles and limits, and no keys.
        """
        grants = call("list_grants", metad_pb.ListGrantsRequest(), metad_pb.RoleGrantList).grants
        limits = call(
            "list_access_limits", metad_pb.ListGrantsRequest(), metad_pb.AccessLimitsList
        ).limits
        is_admin = current_principal().is_cluster_admin
        keys = (
            call("list_api_keys", metad_pb.ListApiKeysRequest(), metad_pb.ApiKeyList).keys
            if is_admin
            else ()
        )
        principals = [row for row in _principals(keys, grants, limits) if q in row.name]
        key_rows = [_key_row(key) for key in keys if q in key.principal]
        grant_rows = [_grant_row(row) for row in grants if q in row.principal or q in row.space]
        limit_rows = [_limits_row(row) for row in limits if q in row.principal or q in row.space]
        return views.AccessView(
            is_cluster_admin=is_admin,
            principals=principals[:MAX_ROWS],
            keys=key_rows[:MAX_ROWS],
            grants=grant_rows[:MAX_ROWS],
            limits=limit_rows[:MAX_ROWS],
            total=max(len(principals), len(key_rows), len(grant_rows), len(limit_rows)),
        )

    @api.post("/grants")
    def grant_role(new: views.NewGrant) -> views.GrantRow:
        """Set the role of a principal in a space."""
        request = metad_pb.RoleGrant(
            principal=new.principal, space=new.space, role=parse_role(new.role).name
        )
        return _grant_row(call("grant_role", request, metad_pb.RoleGrant))

    @api.post("/grants/revoke")
    def revoke_role(grant: views.GrantName) -> views.RevokedGrant:
        """Remove the role of a principal in a space."""
        request = metad_pb.RevokeRoleRequest(principal=grant.principal, space=grant.space)
        reply = call("revoke_role", request, metad_pb.RevokeRoleReply)
        return views.RevokedGrant(notice=reply.notice)

    @api.post("/limits")
    def set_limits(new: views.NewLimits) -> views.LimitsRow:
        """Set the limits of a principal in a space; without any limit, they are removed."""
        request = metad_pb.AccessLimits(**new.model_dump())
        return _limits_row(call("set_access_limits", request, metad_pb.AccessLimits))

    @api.post("/keys")
    def create_api_key(new: views.NewApiKey, response: Response) -> views.CreatedApiKey:
        """Create an API key. Only this reply has its secret."""
        response.headers["cache-control"] = "no-store"
        request = metad_pb.CreateApiKeyRequest(
            principal=new.principal,
            expires_s=new.expires_days * _DAY_S,
            description=new.description,
        )
        reply = call("create_api_key", request, metad_pb.CreateApiKeyReply)
        return views.CreatedApiKey(key=_key_row(reply.key), secret=reply.secret)

    @api.post("/keys/{key_id}/revoke")
    def revoke_api_key(
        key_id: Annotated[str, Path(description="The 12 characters after ak_.")],
    ) -> views.ApiKeyRow:
        """Revoke an API key; its sessions end too."""
        request = metad_pb.RevokeApiKeyRequest(key_id=key_id)
        return _key_row(call("revoke_api_key", request, metad_pb.ApiKey))

    return api


def _principals(
    keys: Sequence[metad_pb.ApiKey],
    grants: Sequence[metad_pb.RoleGrant],
    limits: Sequence[metad_pb.AccessLimits],
) -> list[views.PrincipalRow]:
    """Return the principals that have a key, a role or limits, by name."""
    now_ms = 1000 * time.time()
    valid_keys = Counter(
        key.principal
        for key in keys
        if not key.revoked_ms and (not key.expires_ms or key.expires_ms > now_ms)
    )
    roles: dict[str, dict[str, int]] = defaultdict(dict)
    for grant in grants:
        roles[grant.principal][grant.space] = grant.role
    names = {key.principal for key in keys} | {entry.principal for entry in limits} | set(roles)
    return [
        views.PrincipalRow(
            name=name,
            valid_keys=valid_keys[name],
            role_everywhere=_role_name(roles[name].get(EVERY_SPACE, 0)),
            spaces=len(roles[name].keys() - {EVERY_SPACE}),
        )
        for name in sorted(names - {"*"})
    ]


def _key_row(key: metad_pb.ApiKey) -> views.ApiKeyRow:
    return views.ApiKeyRow(
        key_id=key.key_id,
        principal=key.principal,
        description=key.description,
        created_ms=key.created_ms,
        expires_ms=key.expires_ms,
        revoked_ms=key.revoked_ms,
    )


def _grant_row(grant: metad_pb.RoleGrant) -> views.GrantRow:
    return views.GrantRow(principal=grant.principal, space=grant.space, role=_role_name(grant.role))


def _limits_row(entry: metad_pb.AccessLimits) -> views.LimitsRow:
    return views.LimitsRow(
        principal=entry.principal,
        space=entry.space,
        limits={name: value for name in _LIMITS if (value := float(getattr(entry, name)))},
    )


def _role_name(role: int) -> str:
    """Return the name of a role; of one that a later release knows, its number."""
    names = {int(known): known.name.lower() for known in Role}
    return names.get(role, str(role) if role else "")
