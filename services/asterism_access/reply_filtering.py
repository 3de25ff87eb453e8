"""Replies with only what a principal may see, for the methods that every principal may call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from asterism_access.principals import Principal
from asterism_access.roles import EVERY_SPACE, Role
from asterism_proto.errors import NotFound
from asterism_proto.framing import Frame
from asterism_proto.transport import Content
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from asterism_proto.v1 import metad_pb2 as metad_pb

_DEFAULT_JOBS = 50
"""Jobs on a page if the request does not say."""


@dataclass(frozen=True, slots=True)
class ReplyFilter:
    """Principal with its view of replies."""

    principal: Principal
    space_name: Callable[[int], str]
    """Name of the space with an id; empty if it is unknown."""

    def sees(self, space: str) -> bool:
        """Return whether the principal has a role in a space."""
        return self.principal.role_in(space) is not None

    def sees_row(self, row: metad_pb.RoleGrant | metad_pb.AccessLimits) -> bool:
        """Return whether the principal may see a grant or limit.

        It sees its own, and those of the spaces that it administers.
        """
        mine = row.principal == self.principal.name or (
            row.principal == "*" and (row.space == EVERY_SPACE or self.sees(row.space))
        )
        return mine or self.principal.has_role(row.space, Role.ADMIN)


Fetch = Callable[[Any], Content]
"""Function that returns the whole reply to a request."""
Select = Callable[[ReplyFilter, Any, Fetch], Content]
"""Function that returns the visible part of the reply to a request."""


def _keep(rows: Any, is_visible: Callable[[Any], bool]) -> None:
    """Remove the rows of a repeated field that are not visible."""
    kept = [row for row in rows if is_visible(row)]
    if len(kept) < len(rows):
        del rows[:]
        rows.extend(kept)


def _spaces(viewer: ReplyFilter, request: Any, fetch: Fetch) -> Content:
    reply = cast(metad_pb.SpaceList, fetch(request))
    _keep(reply.spaces, lambda space: viewer.sees(space.name))
    return reply


def _pins(viewer: ReplyFilter, request: Any, fetch: Fetch) -> Content:
    reply = cast(metad_pb.PinList, fetch(request))
    _keep(reply.pins, lambda pin: viewer.sees(pin.space))
    return reply


def _hosts(viewer: ReplyFilter, request: Any, fetch: Fetch) -> Content:
    reply = cast(metad_pb.HostList, fetch(request))
    for host in reply.hosts:
        if host.HasField("resources"):
            _keep(
                host.resources.spaces,
                lambda usage: viewer.sees(viewer.space_name(usage.space_id)),
            )
    return reply


def _jobs(viewer: ReplyFilter, request: metad_pb.ListJobsRequest, fetch: Fetch) -> Content:
    """Return a page of the jobs of all visible spaces; its counts reveal nothing of others."""
    if request.space:
        return fetch(request)
    pages = []
    for space in sorted(viewer.principal.roles):
        narrowed = metad_pb.ListJobsRequest()
        narrowed.CopyFrom(request)
        narrowed.space = space
        try:
            pages.append(cast(metad_pb.JobList, fetch(narrowed)))
        except NotFound:  # a grant may outlive its space
            continue
    jobs = sorted((job for page in pages for job in page.jobs), key=lambda job: -job.job_id)
    limit = request.limit or _DEFAULT_JOBS
    has_more = len(jobs) > limit or any(page.next_before for page in pages)
    jobs = jobs[:limit]
    return metad_pb.JobList(
        jobs=jobs,
        next_before=jobs[-1].job_id if has_more and jobs else 0,
        total=sum(page.total for page in pages),
    )


def _grants(viewer: ReplyFilter, request: Any, fetch: Fetch) -> Content:
    reply = cast(metad_pb.RoleGrantList, fetch(request))
    _keep(reply.grants, viewer.sees_row)
    return reply


def _limits(viewer: ReplyFilter, request: Any, fetch: Fetch) -> Content:
    reply = cast(metad_pb.AccessLimitsList, fetch(request))
    _keep(reply.limits, viewer.sees_row)
    return reply


def _routes(viewer: ReplyFilter, request: Any, fetch: Fetch) -> Content:
    """Return routes of the visible spaces, without the state that only daemons need."""
    reply = cast(Frame[graphd_pb.GetRoutesReply], fetch(request))
    if reply.head.HasField("desired_state"):
        state = reply.head.desired_state
        _keep(state.spaces, lambda route: viewer.sees(route.space.name))
        for field in _FIELDS_OF_DAEMONS:
            state.ClearField(field)
    return reply


_FIELDS_OF_DAEMONS = (
    "task_assignments",
    "open_loads",
    "abandoned_loads",
    "retained_jobs",
    "removals",
    "access",
)
FILTERS: Mapping[str, Select] = {
    "list_spaces": _spaces,
    "list_pins": _pins,
    "list_hosts": _hosts,
    "list_jobs": _jobs,
    "list_grants": _grants,
    "list_access_limits": _limits,
    "get_routes": _routes,
}
"""Filters of replies, by handler name."""
