"""Every HTTP route, binary operation and statement is allowed or refused as the tables here say.

A new one without a row fails a test that names it. `test_required_roles` covers gRPC methods.
"""

from __future__ import annotations

import http.client
import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest
from tests.kit.access import AccessCluster
from tests.kit.waiting import HANG_S

from asterism_access.credentials.tickets import Ticket, TicketKind
from asterism_access.roles import EVERY_SPACE, Role
from asterism_daemonkit.rpc.grpc_client import RemoteTransport
from asterism_daemonkit.rpc.tcp_client import TCP_METHODS, TcpTransport
from asterism_proto.errors import AsterismError, Forbidden, Unauthenticated
from asterism_proto.framing import Frame
from asterism_proto.methods import STORE
from graphd.http.sampling import OPERATIONS
from graphd.query.ngql_parser import ngql_grammar

GHOST = "ghost"
"""Name of a space that does not exist: allowed changes of it fail without effect."""


class Needs(Enum):
    """Least right that an entry needs, in the space ``shop`` or `GHOST` if it is a role."""

    NOTHING = "nothing"
    """Not even a credential."""
    PRINCIPAL = "a principal"
    """Any accepted credential; lists have only what the caller may see."""
    READER = Role.READER
    WRITER = Role.WRITER
    BUILDER = Role.BUILDER
    ADMIN = Role.ADMIN
    CLUSTER_ADMIN = "an administrator of the cluster"
    DAEMON = "a daemon of the cluster"


NO_CREDENTIAL = "no credential"
CALLERS: Mapping[str, Mapping[str, Role] | None] = {
    NO_CREDENTIAL: None,
    "no role": {},
    **{role.name.lower(): {"shop": role, GHOST: role} for role in Role},
    "admin of another space": {"bank": Role.ADMIN},
    "reader of every space": {EVERY_SPACE: Role.READER},
    "cluster admin": {EVERY_SPACE: Role.ADMIN},
}
"""Roles by caller; each has a ticket of its own."""


def is_allowed(needs: Needs, roles: Mapping[str, Role] | None) -> bool:
    """Return whether a caller may use an entry."""
    if needs is Needs.NOTHING or roles is None:
        return needs is Needs.NOTHING
    everywhere = roles.get(EVERY_SPACE, 0)
    if needs is Needs.PRINCIPAL:
        return True
    if needs is Needs.CLUSTER_ADMIN:
        return everywhere == Role.ADMIN
    if isinstance(needs.value, Role):
        return max(roles.get("shop", 0), everywhere) >= needs.value
    return False


@dataclass(frozen=True)
class Row:
    """Row of a table: what an entry needs, and a request that has no effect if it is allowed."""

    needs: Needs
    path: str = ""
    """Path of the request, if the route has parameters; ``JOB`` is a finished job of ``shop``."""
    body: Mapping[str, Any] | None = None


@pytest.fixture(scope="module")
def tickets(cluster: AccessCluster) -> dict[str, str]:
    """Return the ticket of each caller; empty for the one without a credential."""
    return {
        name: ""
        if roles is None
        else cluster.key.sign(
            Ticket(
                name=name,
                kind=TicketKind.ROOT,
                roles=roles,
                expires_s=int(time.time() + 10 * HANG_S),
            )
        )
        for name, roles in CALLERS.items()
    }


@pytest.fixture(scope="module")
def job_id(cluster: AccessCluster) -> int:
    """Return the id of a finished job of ``shop``."""
    return cluster.client.jobs(space="shop")[-1].job_id


def send(
    port: int, verb: str, path: str, ticket: str, body: Mapping[str, Any] | None
) -> tuple[int, str, bytes]:
    """Return the status, media type and body of a request of HTTP."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=HANG_S)
    headers = {"authorization": f"Bearer {ticket}"} if ticket else {}
    data = None
    if body is not None:
        headers["content-type"] = "application/json"
        data = json.dumps(body)
    try:
        connection.request(verb, path, data, headers)
        reply = connection.getresponse()
        return reply.status, reply.getheader("content-type", ""), reply.read()
    finally:
        connection.close()


def assert_allowed_as_stated(
    needs: Needs, request: str, statuses: Mapping[str, int], contents: Mapping[str, bytes]
) -> None:
    """Check the status of each caller, and that no caller sees a space that it did not name."""
    refused = {401: "unauthenticated", 403: "forbidden"}
    results = {name: refused.get(status, "allowed") for name, status in statuses.items()}
    assert results == {
        name: "allowed"
        if is_allowed(needs, roles)
        else "unauthenticated"
        if roles is None
        else "forbidden"
        for name, roles in CALLERS.items()
    }
    for name, content in contents.items():
        roles = CALLERS[name] or {}
        for space in {"shop", "bank"} - roles.keys():
            if EVERY_SPACE not in roles and space not in request:
                assert re.search(rf"\b{space}\b".encode(), content) is None, (name, content)


# HTTP.

PROBES = {f"GET /{name}": Row(Needs.NOTHING) for name in ("healthz", "readyz", "metrics")}
"""Routes that are public."""
EVERY_DAEMON = {
    **PROBES,
    **{
        route: Row(Needs.PRINCIPAL)
        for route in ("GET /status", "GET /flags", "GET /", "GET /docs", "GET /openapi.json")
    },
    "HEAD /openapi.json": Row(Needs.PRINCIPAL),
    "GET /docs/{name}": Row(Needs.PRINCIPAL, "/docs/x"),
}
JOBS = {
    "GET /api/v1/jobs": Row(Needs.PRINCIPAL),
    "GET /api/v1/jobs/{job_id}": Row(Needs.READER, "/api/v1/jobs/JOB"),
    "POST /api/v1/jobs": Row(Needs.BUILDER, body={"space": GHOST}),
    "POST /api/v1/jobs/{job_id}/stop": Row(Needs.BUILDER, "/api/v1/jobs/JOB/stop"),
    "POST /api/v1/jobs/{job_id}/recover": Row(Needs.BUILDER, "/api/v1/jobs/JOB/recover"),
}
SPACE_PAGES = {
    "": "",
    "/node-types": "",
    "/node": "?type=n&id=1",
    "/neighborhood": "?type=n&id=1",
    "/parts": "",
    "/versions": "",
    "/versions/{version}/weights": "?element=node&type_id=0",
    "/versions/{version}/audit": "?element=node&type_id=0",
    "/versions/{version}/spread": "?element=node&type_id=0",
}
"""Data of the pages of a space: end of the path, and a query."""
PAGES = {
    **{
        f"GET /ui/api/{name}": Row(Needs.PRINCIPAL)
        for name in ("overview", "hosts", "rates", "spaces", "jobs")
    },
    "GET /ui": Row(Needs.PRINCIPAL),
    "GET /ui/{address:path}": Row(Needs.PRINCIPAL, "/ui/spaces"),
    "GET /ui/static/{name:path}": Row(Needs.PRINCIPAL, "/ui/static/x"),
    "GET /ui/api/logs": Row(Needs.CLUSTER_ADMIN),
    **{
        f"GET /ui/api/spaces/{{name}}{end}": Row(
            Needs.READER, f"/ui/api/spaces/shop{end.format(version=1)}{query}"
        )
        for end, query in SPACE_PAGES.items()
    },
    "POST /ui/api/completions": Row(Needs.PRINCIPAL, body={"statement": "USE "}),
    "GET /ui/api/jobs/{job_id}": Row(Needs.READER, "/ui/api/jobs/JOB"),
    "POST /ui/api/jobs": Row(Needs.BUILDER, body={"space": GHOST}),
    "POST /ui/api/jobs/{job_id}/stop": Row(Needs.BUILDER, "/ui/api/jobs/JOB/stop"),
    "POST /ui/api/jobs/{job_id}/recover": Row(Needs.BUILDER, "/ui/api/jobs/JOB/recover"),
    "GET /ui/sign-in": Row(Needs.NOTHING),
    "POST /ui/api/sign-in": Row(Needs.NOTHING, body={}),
    "POST /ui/api/sign-out": Row(Needs.PRINCIPAL, body={}),
    "GET /ui/api/session": Row(Needs.PRINCIPAL),
    "GET /ui/api/access": Row(Needs.PRINCIPAL),
    "POST /ui/api/access/grants": Row(
        Needs.ADMIN, body={"principal": "eve", "space": GHOST, "role": "reader"}
    ),
    "POST /ui/api/access/grants/revoke": Row(
        Needs.ADMIN, body={"principal": "eve", "space": GHOST}
    ),
    "POST /ui/api/access/limits": Row(
        Needs.CLUSTER_ADMIN, body={"principal": "eve", "space": GHOST, "jobs": 1}
    ),
    "POST /ui/api/access/keys": Row(Needs.CLUSTER_ADMIN, body={"principal": "e v e"}),
    "POST /ui/api/access/keys/{key_id}/revoke": Row(
        Needs.CLUSTER_ADMIN, "/ui/api/access/keys/abcdefghijkl/revoke"
    ),
}
FIELDS: Mapping[str, Any] = {
    **dict.fromkeys(("n", "k", "walks"), 1),
    **{key: [1] for key in ("src", "nodes", "seeds", "pairs", "fanouts", "counts")},
    "metapath": ["e"],
}
"""Values of the fields that requests of sampling require."""
SAMPLING = (
    "sample-nodes",
    "sample-nodes-like",
    "sample-negatives",
    "sample-edges",
    "sample-neighbors",
    "sample-fanout",
    "random-walk",
    "sample-pinsage",
    "personalized-pagerank",
    "sample-layer",
    "sample-layers",
    "sample-subgraph",
    "sample-ego-subgraphs",
    "sample-labor",
    "sample-hgt",
    "sample-graph-labels",
)


def sampling_body(name: str) -> dict[str, Any]:
    """Return a request of a sampling operation, with the required fields only."""
    operation = next(one for one in OPERATIONS if one.path.endswith(f"/{name}"))
    required = operation.request.model_json_schema().get("required", [])
    return {field: FIELDS[field] for field in required}


GRAPHD = {
    **EVERY_DAEMON,
    **JOBS,
    **PAGES,
    **{
        f"POST /api/v1/spaces/{{space}}/{name}": Row(
            Needs.READER, f"/api/v1/spaces/shop/{name}", sampling_body(name)
        )
        for name in SAMPLING
    },
    "POST /query": Row(Needs.PRINCIPAL, body={"statement": "SHOW SPACES"}),
    "POST /verify": Row(Needs.READER, body={"space": "shop", "draws": 1000}),
}
METAD = {
    **EVERY_DAEMON,
    **JOBS,
    "GET /api/v1/hosts": Row(Needs.PRINCIPAL),
    "GET /api/v1/spaces": Row(Needs.PRINCIPAL),
    "POST /api/v1/spaces": Row(
        Needs.CLUSTER_ADMIN, body={"name": "shop", "schema": {"nodes": {"other": {}}}}
    ),
    "GET /api/v1/spaces/{name}": Row(Needs.READER, "/api/v1/spaces/shop"),
    "DELETE /api/v1/spaces/{name}": Row(Needs.ADMIN, f"/api/v1/spaces/{GHOST}"),
    **{
        f"GET /api/v1/spaces/{{name}}/versions{end}": Row(
            Needs.READER, f"/api/v1/spaces/shop/versions{end.format(version=1)}"
        )
        for end in ("", "/{version}", "/{version}/weight-stats", "/{version}/hygiene")
    },
}
ROUTES = {"graphd": GRAPHD, "metad": METAD, "storaged": EVERY_DAEMON}


def routes_of(routes: Iterable[Any]) -> Iterator[str]:
    """Yield the verb and path of each route of an application, of included routers too."""
    for route in routes:
        if hasattr(route, "effective_candidates"):
            yield from routes_of(route.effective_candidates())
        else:
            for verb in route.methods or ("mounted",):
                yield f"{verb} {route.path}"


@pytest.mark.parametrize("daemon", ROUTES)
def test_every_route_has_a_row(cluster: AccessCluster, daemon: str) -> None:
    server = getattr(cluster, daemon)._http
    assert sorted(set(routes_of(server.app.routes))) == sorted(ROUTES[daemon])


@pytest.mark.parametrize(
    ("daemon", "route"), [(daemon, route) for daemon, rows in ROUTES.items() for route in rows]
)
def test_each_route_takes_the_callers_of_its_row(
    cluster: AccessCluster, tickets: Mapping[str, str], job_id: int, daemon: str, route: str
) -> None:
    row = ROUTES[daemon][route]
    verb, _, path = route.partition(" ")
    path = (row.path or path).replace("JOB", str(job_id))
    statuses, contents = {}, {}
    for name, ticket in tickets.items():
        status, media_type, content = send(
            getattr(cluster, daemon).http_port, verb, path, ticket, row.body
        )
        assert status != 422, content
        statuses[name] = status
        if media_type == "application/json" and "openapi" not in path:
            contents[name] = content
    assert_allowed_as_stated(row.needs, f"{path} {row.body}", statuses, contents)


# Statements, over HTTP, where the reply of a refusal has its status.

IN_SHOP = "USE shop; "
STATEMENTS = {
    "use: USE": (Needs.READER, "USE shop"),
    "show: SHOW SPACES": (Needs.PRINCIPAL, "SHOW SPACES"),
    **{
        f"show: SHOW {subject}": (Needs.READER, f"{IN_SHOP}SHOW {subject}")
        for subject in ("PARTS", "STATS", "VERSIONS", "JOBS", "TAGS", "EDGES", "PINS")
    },
    "show: SHOW HOSTS": (Needs.PRINCIPAL, "SHOW HOSTS"),
    "show: SHOW HOSTS GRAPH": (Needs.PRINCIPAL, "SHOW HOSTS GRAPH"),
    "show: SHOW HOSTS STORAGE": (Needs.PRINCIPAL, "SHOW HOSTS STORAGE"),
    "show: SHOW JOB": (Needs.READER, "SHOW JOB {job}"),
    "show: SHOW CREATE SPACE": (Needs.READER, "SHOW CREATE SPACE shop"),
    "show: SHOW ROLES": (Needs.PRINCIPAL, "SHOW ROLES"),
    "show: SHOW ROLES ON": (Needs.PRINCIPAL, "SHOW ROLES ON bank"),
    "show: SHOW ROLES IN": (Needs.PRINCIPAL, "SHOW ROLES IN bank"),
    "show: SHOW API KEYS": (Needs.CLUSTER_ADMIN, "SHOW API KEYS"),
    "describe: SPACE": (Needs.READER, "DESCRIBE SPACE shop"),
    "describe: TAG": (Needs.READER, f"{IN_SHOP}DESC TAG n"),
    "describe: EDGE": (Needs.READER, f"{IN_SHOP}DESC EDGE e"),
    "create: CREATE SPACE": (Needs.CLUSTER_ADMIN, "CREATE SPACE shop TAG other"),
    "drop: DROP SPACE": (Needs.ADMIN, f"DROP SPACE {GHOST}"),
    "submit: SUBMIT JOB": (Needs.BUILDER, f"{IN_SHOP}SUBMIT JOB nonsense"),
    "submit: SUBMIT JOB VERSION": (Needs.BUILDER, f"{IN_SHOP}SUBMIT JOB audit VERSION 999"),
    "submit: SUBMIT JOB WITH": (Needs.BUILDER, f"{IN_SHOP}SUBMIT JOB build WITH (x = 1)"),
    "submit: SUBMIT JOB VERSION WITH": (
        Needs.BUILDER,
        f"{IN_SHOP}SUBMIT JOB audit VERSION 999 WITH (x = 1)",
    ),
    "stop: STOP JOB": (Needs.BUILDER, "STOP JOB {job}"),
    "recover: RECOVER JOB": (Needs.BUILDER, "RECOVER JOB {job}"),
    "grant: GRANT ROLE ON TO": (Needs.ADMIN, f"GRANT ROLE reader ON {GHOST} TO eve"),
    "revoke: REVOKE ROLE ON FROM": (Needs.ADMIN, f"REVOKE ROLE ON {GHOST} FROM eve"),
    "vertices: SAMPLE VERTICES": (Needs.READER, f"{IN_SHOP}SAMPLE 1 VERTICES ON n"),
    "edges: SAMPLE EDGES": (Needs.READER, f"{IN_SHOP}SAMPLE 1 EDGES ON e"),
    "neighbors: SAMPLE NEIGHBORS": (
        Needs.READER,
        f"{IN_SHOP}SAMPLE 1 NEIGHBORS FROM 1 ON n OVER e",
    ),
    "top: TOP NEIGHBORS": (Needs.READER, f"{IN_SHOP}TOP 1 NEIGHBORS FROM 1 ON n OVER e"),
    "layer: SAMPLE LAYER": (Needs.READER, f"{IN_SHOP}SAMPLE LAYER 1 FROM 1 ON n OVER e"),
    "layers: SAMPLE LAYERS": (Needs.READER, f"{IN_SHOP}SAMPLE LAYERS [1] FROM 1 ON n OVER e"),
    "negatives: SAMPLE NEGATIVES": (Needs.READER, f"{IN_SHOP}SAMPLE 1 NEGATIVES FROM 1 ON n"),
    "walk: WALK": (Needs.READER, f"{IN_SHOP}WALK 1 STEP FROM 1 ON n OVER e"),
    "go: GO": (Needs.READER, f"{IN_SHOP}GO FROM 1 ON n OVER e"),
    "fetch: FETCH PROP ON": (Needs.READER, f"{IN_SHOP}FETCH PROP ON n 1"),
    "mode: EXPLAIN": (Needs.READER, f"{IN_SHOP}EXPLAIN SAMPLE 1 VERTICES ON n"),
    "mode: PROFILE": (Needs.READER, f"{IN_SHOP}PROFILE SAMPLE 1 VERTICES ON n"),
}
"""Statement of each form of the grammar, with what it needs."""


def statement_forms() -> set[str]:
    """Return the forms of statements: rules of the grammar with their keywords."""
    rules = ngql_grammar()._parser.rules
    bodies = {"mode", *(str(r.expansion[0].name) for r in rules if r.origin.name == "_body")}
    return {
        f"{rule.origin.name}: {' '.join(s.name for s in rule.expansion if s.name.isupper())}"
        for rule in rules
        if rule.origin.name in bodies
    }


def test_every_form_of_a_statement_has_a_row() -> None:
    assert sorted(statement_forms()) == sorted(STATEMENTS)


def query(port: int, ticket: str, **body: Any) -> tuple[int, bytes]:
    """Return the status and body of a query."""
    status, _, content = send(port, "POST", "/query", ticket, body)
    return status, content


@pytest.mark.parametrize("form", STATEMENTS)
def test_each_statement_takes_the_callers_of_its_row(
    cluster: AccessCluster, tickets: Mapping[str, str], job_id: int, form: str
) -> None:
    needs, text = STATEMENTS[form]
    statement = text.format(job=job_id)
    replies = {
        name: query(cluster.graphd.http_port, ticket, statement=statement)
        for name, ticket in tickets.items()
    }
    assert not any(b"syntax" in content for _, content in replies.values())
    assert_allowed_as_stated(
        needs,
        statement,
        {name: status for name, (status, _) in replies.items()},
        {name: content for name, (_, content) in replies.items()},
    )


def test_queries_of_euler_need_a_reader(cluster: AccessCluster, tickets: Mapping[str, str]) -> None:
    statuses = {
        name: query(
            cluster.graphd.http_port,
            ticket,
            space="shop",
            language="euler",
            statement="sampleN(n, 1).as(x)",
        )[0]
        for name, ticket in tickets.items()
    }
    assert_allowed_as_stated(Needs.READER, "shop", statuses, {})


# Operations of the binary endpoint.

OPERATIONS_OF_DAEMONS = ("list_revivals", "read_revivals")
BINARY = {
    **dict.fromkeys(
        (
            "exists",
            "draw_nodes",
            "draw_nodes_by_number",
            "draw_edges",
            "draw_neighbors",
            "expand",
            "sample_k_hop",
            "read_neighbors",
            "read_degrees",
            "read_induced_edges",
            "read_node_types",
            "read_graph_labels",
            "read_nodes_by_label",
            "walk",
            "has_edge",
            "evaluate_terms",
            "filter_rows",
            "read_node_features",
            "read_edge_features",
            "read_nodes",
            "read_nodes_at",
            "read_edges_at",
            "read_edges",
            "read_weight_histogram",
            "push_pagerank",
            "update_importance",
        ),
        Needs.READER,
    ),
    "seal_load": Needs.WRITER,
    **dict.fromkeys(OPERATIONS_OF_DAEMONS, Needs.DAEMON),
}


@pytest.fixture(scope="module")
def endpoints(cluster: AccessCluster, tickets: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Return a transport of each caller to the binary endpoint, which daemons may find."""
    address = cluster.storaged.address
    daemon = RemoteTransport(address, credentials=lambda: cluster.key.daemon_ticket("graphd"))
    callers = {**tickets, "daemon": cluster.key.daemon_ticket("graphd")}

    def transport(ticket: str) -> TcpTransport:
        return TcpTransport(address, daemon, credentials=lambda: ticket)

    transports = {name: transport(ticket) for name, ticket in callers.items()}
    yield transports
    for one in transports.values():
        one.close()


def test_every_binary_operation_has_a_row() -> None:
    served = {name for name, method in STORE.items() if method.path in TCP_METHODS}
    assert sorted(served) == sorted(BINARY)


@pytest.mark.parametrize("name", BINARY)
def test_each_binary_operation_takes_the_callers_of_its_row(
    cluster: AccessCluster, endpoints: Mapping[str, Any], name: str
) -> None:
    method = STORE[name]
    head = method.request()
    place = head.version_ref if "version_ref" in head.DESCRIPTOR.fields_by_name else head
    place.space_id = cluster.space_id("shop")
    results = {}
    for caller, transport in endpoints.items():
        try:
            transport.call(method, Frame(head, {}), HANG_S)
            results[caller] = "allowed"
        except (Forbidden, Unauthenticated) as error:
            results[caller] = type(error).__name__
        except AsterismError:  # its arrays are missing, or it names no version
            results[caller] = "allowed"
    expected = {
        caller: "allowed" if is_allowed(BINARY[name], roles) else "Forbidden"
        for caller, roles in CALLERS.items()
    }
    assert results == {**expected, NO_CREDENTIAL: "Unauthenticated", "daemon": "allowed"}
