"""Every method of every service is allowed or refused as the table of requirements says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.kit.access import AccessCluster, call_as
from tests.kit.waiting import HANG_S

from asterism_access.principals import LOCAL, Principal, PrincipalKind
from asterism_access.requirements import REQUIREMENTS, Scope
from asterism_access.roles import EVERY_SPACE, Role
from asterism_daemonkit.rpc.grpc_client import RemoteTransport
from asterism_daemonkit.rpc.transports import LocalTransport
from asterism_proto.errors import AsterismError, Forbidden
from asterism_proto.framing import Frame
from asterism_proto.methods import ACCESS, CATALOG, GRAPH, HEARTBEATS, STORE, Method
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb

GHOST = "ghost"
"""Name of a space that does not exist: allowed calls of its methods fail without effect."""
TARGETS = [
    *(("graphd", method) for table in (GRAPH, CATALOG, ACCESS) for method in table.values()),
    *(("metad", method) for table in (CATALOG, ACCESS, HEARTBEATS) for method in table.values()),
    *(("storaged", method) for method in STORE.values()),
]


def _user(name: str, roles: dict[str, Role]) -> Principal:
    return Principal(name=name, kind=PrincipalKind.API_KEY, roles=roles)


PRINCIPALS = {
    "none": _user("none", {}),
    **{f"{role.name.lower()}": _user(role.name, {"shop": role, GHOST: role}) for role in Role},
    "admin of another": _user("other", {"bank": Role.ADMIN}),
    "reader everywhere": _user("reader", {EVERY_SPACE: Role.READER}),
    "cluster admin": _user("root", {EVERY_SPACE: Role.ADMIN}),
    "daemon": Principal(name="graphd", kind=PrincipalKind.DAEMON),
    "process": LOCAL,
}


def _is_allowed(method: Method, principal: Principal) -> bool:
    """Return whether a principal may call a method on ``shop``, as the table says."""
    requirement = REQUIREMENTS[method.path]
    match requirement.scope:
        case Scope.VISIBLE | Scope.INNER:
            return True
        case Scope.DAEMON:
            return principal.is_trusted
        case Scope.CLUSTER:
            return principal.is_cluster_admin
        case _:
            return principal.has_role("shop", requirement.role)


def _request(cluster: AccessCluster, method: Method) -> Any:
    """Return a request of a method about the space ``shop``, or about a space without effect."""
    requirement = REQUIREMENTS[method.path]
    head = method.request()
    metad = LocalTransport(cluster.metad.handlers)
    match requirement.scope:
        case Scope.SPACE:
            head.space = GHOST
        case Scope.SPACE_ID:
            space_id = cluster.space_id("shop")
            if "version_ref" in method.request.DESCRIPTOR.fields_by_name:
                head.version_ref.space_id = space_id
            else:
                head.space_id = space_id
        case Scope.LOAD:
            begin = metad_pb.BeginLoadRequest(space="shop", source="test")
            load = metad.call(CATALOG["begin_load"], begin, 10)
            assert isinstance(load, metad_pb.Load)
            head.load_id = load.load_id
        case Scope.JOB:
            page = metad.call(CATALOG["list_jobs"], metad_pb.ListJobsRequest(space="shop"), 10)
            assert isinstance(page, metad_pb.JobList)
            head.job_id = page.jobs[0].job_id
        case Scope.PIN:
            request = metad_pb.PinVersionRequest(space="shop", owner="test")
            pin = metad.call(CATALOG["pin_version"], request, 10)
            assert isinstance(pin, metad_pb.Pin)
            head.pin_id = pin.pin_id
    return Frame(head, {}) if method.is_framed else head


@pytest.mark.parametrize(
    ("daemon", "method"), TARGETS, ids=[f"{d}-{m.service[12:]}.{m.name}" for d, m in TARGETS]
)
def test_each_method_takes_the_roles_of_the_table(
    cluster: AccessCluster, daemon: str, method: Method
) -> None:
    handler = cluster.handlers()[daemon][method.path]
    results = {}
    for name, principal in PRINCIPALS.items():
        try:
            handler(_request(cluster, method), call_as(principal))
            results[name] = True
        except AsterismError as error:
            results[name] = not isinstance(error, Forbidden)
        except (KeyError, AssertionError, ValueError):  # the handler ran; its request is incomplete
            results[name] = True
    expected = {name: _is_allowed(method, principal) for name, principal in PRINCIPALS.items()}
    assert results == expected


@pytest.mark.parametrize("daemon", ["graphd", "metad", "storaged"])
def test_every_method_needs_a_credential(cluster: AccessCluster, daemon: str) -> None:
    port = getattr(cluster, daemon).grpc_port
    transport, results = RemoteTransport(f"127.0.0.1:{port}"), {}
    for name, method in TARGETS:
        if name == daemon:
            request = method.request()
            try:
                transport.call(method, Frame(request, {}) if method.is_framed else request, HANG_S)
                results[method.name] = "allowed"
            except AsterismError as error:
                results[method.name] = type(error).__name__
    transport.close()
    assert set(results.values()) == {"Unauthenticated"}, results


def test_roles_in_one_space_show_nothing_of_another(cluster: AccessCluster) -> None:
    """A refusal is the same for a space of others and for one that does not exist."""
    reader = call_as(_user("alice", {"shop": Role.READER}))
    for name in ("describe_space", "list_versions", "get_manifest", "drop_space"):
        handler = cluster.graphd.handlers[CATALOG[name].path]
        texts = set()
        for space in ("bank", "nowhere"):
            with pytest.raises(Forbidden) as refused:
                handler(CATALOG[name].request(space=space), reader)
            texts.add(refused.value.message.replace(space, "x"))
        assert len(texts) == 1
    listed = cluster.graphd.handlers[CATALOG["list_spaces"].path](common_pb.Empty(), reader)
    assert [space.name for space in listed.spaces] == ["shop"]


@pytest.mark.parametrize(
    "statement",
    [
        "USE bank",
        "DESCRIBE SPACE bank",
        "USE shop; USE bank; SHOW JOBS",
        "DROP SPACE IF EXISTS bank",
    ],
)
def test_statements_have_the_rights_of_their_caller(cluster: AccessCluster, statement: str) -> None:
    query = cluster.graphd.handlers[GRAPH["query"].path]
    request = Frame(GRAPH["query"].request(statement=statement))
    with pytest.raises(Forbidden, match=r"space='bank': not found, or 'alice' has no role there"):
        query(request, call_as(_user("alice", {"shop": Role.ADMIN})))
    names = query(
        Frame(GRAPH["query"].request(statement="SHOW SPACES")),
        call_as(_user("alice", {"shop": Role.READER})),
    )
    assert b"bank" not in names.head.SerializeToString() + b"".join(
        np.asarray(array).tobytes() for array in names.arrays.values()
    )
