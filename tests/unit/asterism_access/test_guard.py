"""Tests of the guard of handlers."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import pytest

from asterism_access.guard import AccessGuard
from asterism_access.principals import LOCAL, Principal, PrincipalKind
from asterism_access.roles import EVERY_SPACE, Role
from asterism_proto.errors import Forbidden, NotFound
from asterism_proto.framing import Frame
from asterism_proto.methods import ACCESS, CATALOG, GRAPH, HEARTBEATS, STORE, Method
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from asterism_proto.v1 import storaged_pb2 as storaged_pb

SPACES = {1: "shop", 2: "bank"}


@dataclass(frozen=True)
class Call:
    principal: Principal

    def remaining(self) -> float:
        return 1.0


DROPPED_ID = 9
"""Id of a space that was dropped; a load, job and pin of it have this number too."""


def _space_of(number: int, call: object) -> int:
    if number not in SPACES and number != DROPPED_ID:
        raise NotFound(f"id={number}: not found")
    return number


GUARD = AccessGuard(
    space_name=lambda number: SPACES.get(number, ""),
    space_of_load=_space_of,
    space_of_job=_space_of,
    space_of_pin=_space_of,
)


def alice(**roles: Role) -> Principal:
    return Principal(name="alice", kind=PrincipalKind.API_KEY, roles=roles)


DAEMON = Principal(name="graphd", kind=PrincipalKind.DAEMON)
ADMIN = Principal(name="eve", kind=PrincipalKind.API_KEY, roles={EVERY_SPACE: Role.ADMIN})


def call(method: Method, request: Any, principal: Principal, reply: Any = None) -> Any:
    """Call a method with a handler that returns a reply, by default an empty one."""
    answer = common_pb.Empty() if reply is None else reply
    handler = GUARD.wrap(method, lambda request, call: answer)
    return handler(request, Call(principal))


def refusal(method: Method, request: Any, principal: Principal) -> str:
    with pytest.raises(Forbidden) as refused:
        call(method, request, principal)
    return refused.value.message


def test_a_method_without_a_requirement_is_refused() -> None:
    unknown = replace(GRAPH["write"], name="Unknown")
    assert "/asterism.v1.Graph/Unknown" in refusal(unknown, Frame(None), LOCAL)


def test_a_refusal_does_not_reveal_whether_a_space_exists() -> None:
    method = CATALOG["describe_space"]
    texts = [
        refusal(method, metad_pb.SpaceRequest(space=name), alice(shop=Role.ADMIN)).replace(
            name, "x"
        )
        for name in ("bank", "none")
    ]
    assert set(texts) == {
        "space='x': not found, or 'alice' has no role there; SHOW ROLES lists yours"
    }


def test_a_lower_role_is_named_with_the_one_that_is_needed() -> None:
    request = Frame(graphd_pb.WriteRequest(space="shop"))
    message = refusal(GRAPH["write"], request, alice(shop=Role.READER))
    assert message.startswith("space='shop': expected the role writer or a higher one, but 'alice'")
    assert call(GRAPH["write"], request, alice(shop=Role.WRITER)) == common_pb.Empty()


@pytest.mark.parametrize(
    ("method", "request_type", "field"),
    [
        (CATALOG["get_load"], metad_pb.LoadRequest, "load_id"),
        (CATALOG["get_job"], metad_pb.JobRequest, "job_id"),
        (CATALOG["renew_pin"], metad_pb.PinRequest, "pin_id"),
    ],
)
def test_ids_are_checked_in_their_own_space(method: Method, request_type: Any, field: str) -> None:
    reader = alice(shop=Role.READER)
    assert call(method, request_type(**{field: 1}), reader) == common_pb.Empty()
    texts = {
        re.sub(r"\d", "N", refusal(method, request_type(**{field: number}), reader))
        for number in (2, 3)
    }
    assert texts == {
        f"{field}=N: not found, or 'alice' has no role in its space; SHOW ROLES lists yours"
    }
    assert call(method, request_type(**{field: 3}), ADMIN) == common_pb.Empty()


def test_ids_of_a_dropped_space_need_a_role_in_every_space() -> None:
    request = metad_pb.JobRequest(job_id=DROPPED_ID)
    refusal(CATALOG["get_job"], request, alice(shop=Role.ADMIN, bank=Role.ADMIN))
    assert call(CATALOG["get_job"], request, alice(**{EVERY_SPACE: Role.READER})) is not None
    refusal(CATALOG["stop_job"], request, alice(**{EVERY_SPACE: Role.READER}))


def test_a_commit_must_name_the_space_of_its_load() -> None:
    both = alice(shop=Role.WRITER, bank=Role.WRITER)
    method = CATALOG["commit_load"]
    assert call(method, metad_pb.CommitLoadRequest(load_id=1, space="shop"), both) is not None
    refusal(method, metad_pb.CommitLoadRequest(load_id=1, space="bank"), both)


def test_storage_calls_are_checked_by_space_id() -> None:
    ref = storaged_pb.VersionRef(space_id=1)
    read = Frame(storaged_pb.WalkRequest(version_ref=ref))
    write = Frame(storaged_pb.WriteBlocksRequest(space_id=1))
    ticket = Principal(name="alice", kind=PrincipalKind.TICKET, roles_by_id={1: Role.READER})
    for reader in (ticket, alice(shop=Role.READER)):
        assert call(STORE["walk"], read, reader) is not None
        assert "expected the role writer" in refusal(STORE["write_blocks"], write, reader)
    for other in (replace(ticket, roles_by_id={2: Role.ADMIN}), alice(bank=Role.ADMIN), alice()):
        assert refusal(STORE["walk"], read, other).startswith("space_id=1: not found, or 'alice'")
    assert call(STORE["walk"], read, ADMIN) is not None
    assert call(STORE["write_blocks"], write, DAEMON) is not None


def test_a_role_in_every_space_holds_for_unknown_space_ids() -> None:
    read = Frame(storaged_pb.WalkRequest(version_ref=storaged_pb.VersionRef(space_id=9)))
    everywhere = Principal(name="bob", kind=PrincipalKind.TICKET, roles={EVERY_SPACE: Role.READER})
    assert call(STORE["walk"], read, everywhere) is not None


def test_only_daemons_call_what_belongs_to_daemons() -> None:
    assert call(HEARTBEATS["poll"], metad_pb.PollRequest(), DAEMON) is not None
    assert "expected a daemon" in refusal(HEARTBEATS["poll"], metad_pb.PollRequest(), ADMIN)
    refusal(STORE["list_log_records"], common_pb.ListLogRecordsRequest(), ADMIN)


def test_only_cluster_administrators_change_the_cluster() -> None:
    request = metad_pb.CreateSpaceRequest(name="shop")
    assert call(CATALOG["create_space"], request, ADMIN) is not None
    message = refusal(CATALOG["create_space"], request, alice(shop=Role.ADMIN))
    assert message.startswith("principal='alice': expected an administrator of the cluster for")


def test_a_grant_for_every_space_needs_a_cluster_administrator() -> None:
    request = metad_pb.RoleGrant(principal="bob", space=EVERY_SPACE, role=metad_pb.READER)
    refusal(ACCESS["grant_role"], request, alice(shop=Role.ADMIN))
    assert call(ACCESS["grant_role"], request, ADMIN) is not None


def test_lists_have_only_visible_spaces() -> None:
    reader = alice(shop=Role.READER)
    spaces = metad_pb.SpaceList(
        spaces=[common_pb.Space(space_id=key, name=name) for key, name in SPACES.items()]
    )
    shown = call(CATALOG["list_spaces"], common_pb.Empty(), reader, spaces)
    assert [space.name for space in shown.spaces] == ["shop"]
    pins = metad_pb.PinList(pins=[metad_pb.Pin(space=name) for name in SPACES.values()])
    shown = call(CATALOG["list_pins"], metad_pb.ListPinsRequest(), reader, pins)
    assert [pin.space for pin in shown.pins] == ["shop"]
    refusal(CATALOG["list_pins"], metad_pb.ListPinsRequest(space="bank"), reader)
    usage = [metad_pb.SpaceUsage(space_id=key, bytes=5) for key in (1, 2, 3)]
    hosts = metad_pb.HostList(
        hosts=[metad_pb.Host(resources=metad_pb.HostResources(spaces=usage)), metad_pb.Host()]
    )
    shown = call(CATALOG["list_hosts"], common_pb.Empty(), reader, hosts)
    assert [entry.space_id for entry in shown.hosts[0].resources.spaces] == [1]
    assert len(shown.hosts) == 2


def test_job_pages_and_counts_have_only_visible_spaces() -> None:
    jobs = [common_pb.Job(job_id=n, space="shop" if n % 2 else "bank") for n in range(9, 0, -1)]

    def list_jobs(request: metad_pb.ListJobsRequest, call: object) -> metad_pb.JobList:
        if request.space == "gone":
            raise NotFound("space='gone': not found")
        matching = [job for job in jobs if job.space == request.space]
        rest = [job for job in matching if not request.before or job.job_id < request.before]
        page = rest[: request.limit]
        more = len(rest) > len(page)
        return metad_pb.JobList(
            jobs=page, next_before=page[-1].job_id if more else 0, total=len(matching)
        )

    handler = GUARD.wrap(CATALOG["list_jobs"], list_jobs)
    reader = Call(alice(shop=Role.READER, gone=Role.READER))
    shown: list[int] = []
    request = metad_pb.ListJobsRequest(limit=2)
    while True:
        page = handler(request, reader)
        assert page.total == 5
        shown += [job.job_id for job in page.jobs]
        if not page.next_before:
            break
        request.before = page.next_before
    assert shown == [9, 7, 5, 3, 1]
    with pytest.raises(Forbidden):
        handler(metad_pb.ListJobsRequest(space="bank"), reader)


def test_grants_of_others_are_shown_to_administrators_only() -> None:
    def grants() -> metad_pb.RoleGrantList:
        pairs = [("alice", "shop"), ("bob", "shop"), ("bob", "bank"), ("carol", "*")]
        return metad_pb.RoleGrantList(
            grants=[metad_pb.RoleGrant(principal=name, space=space) for name, space in pairs]
        )

    def shown(principal: Principal) -> list[tuple[str, str]]:
        reply = call(ACCESS["list_grants"], metad_pb.ListGrantsRequest(), principal, grants())
        return [(grant.principal, grant.space) for grant in reply.grants]

    assert shown(alice(shop=Role.BUILDER)) == [("alice", "shop")]
    assert shown(alice(shop=Role.ADMIN)) == [("alice", "shop"), ("bob", "shop")]
    assert len(shown(ADMIN)) == 4


def test_routes_have_only_visible_spaces_and_no_state_of_daemons() -> None:
    def routes() -> Frame[graphd_pb.GetRoutesReply]:
        state = metad_pb.PollReply(
            revision=7,
            spaces=[metad_pb.SpaceRoute(space=common_pb.Space(name=n)) for n in SPACES.values()],
            storaged=[metad_pb.Host(uuid="u", address="h:1")],
            abandoned_loads=[4],
            access=metad_pb.AccessState(keys=[metad_pb.ApiKey(key_id="k", secret_hash=b"h")]),
        )
        return Frame(graphd_pb.GetRoutesReply(revision=7, desired_state=state))

    request = Frame(graphd_pb.GetRoutesRequest())
    state = call(GRAPH["get_routes"], request, alice(bank=Role.READER), routes()).head.desired_state
    assert [route.space.name for route in state.spaces] == ["bank"]
    assert [host.address for host in state.storaged] == ["h:1"]
    assert not state.abandoned_loads
    assert not state.HasField("access")
    unchanged = Frame(graphd_pb.GetRoutesReply(revision=7))
    reply = call(GRAPH["get_routes"], request, alice(), unchanged)
    assert not reply.head.HasField("desired_state")


def test_the_process_itself_and_daemons_pass_unfiltered() -> None:
    spaces = metad_pb.SpaceList(spaces=[common_pb.Space(name="bank")])
    for principal in (LOCAL, DAEMON, ADMIN):
        assert call(CATALOG["list_spaces"], common_pb.Empty(), principal, spaces) is spaces
        assert len(spaces.spaces) == 1
