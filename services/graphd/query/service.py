"""Query service: parse text, bind values, make calls, return a table."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from numpy.typing import NDArray

from asterism.calls.validation import NodeTypeRequired
from asterism.graph import Client, Graph
from asterism_daemonkit.rpc.call_context import CallContext, Handler
from asterism_proto.errors import InvalidRequest, NotFound
from asterism_proto.framing import Frame
from asterism_proto.methods import GRAPH
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from graphd.query import access_statements, ast, catalog, euler_parser, explain
from graphd.query.ast import DrawStatement, Statement
from graphd.query.errors import located_error, syntax_error
from graphd.query.euler_execute import EulerTraversal
from graphd.query.execute import StatementResult, execute_draw
from graphd.query.ngql_parser import parse
from graphd.query.parameters import MAX_PARAMETERS, ParameterBindings, ParameterValue
from graphd.query.table import ResultTable, TableColumn
from graphd.query.transport import CallSkipped, QueryTransport
from graphd.routing.routes import SpaceRoute

_GRAPH = GRAPH["query"].service
MAX_STATEMENTS = 100
"""Maximum statements of a query."""
_MAX_CACHED_WORDS = 64


@dataclass(slots=True, kw_only=True)
class _QuerySession:
    """State of a running query."""

    bindings: ParameterBindings
    client: Client
    transport: QueryTransport
    space_of: Callable[[str, CallContext], SpaceRoute]
    space: str
    version: int | None
    seed: int | None
    changed_spaces: list[str] = field(default_factory=list)

    def run(self, statement: Statement) -> StatementResult:
        """Return the result of a statement; under EXPLAIN, the requests that it would make."""
        try:
            return self._run(statement)
        except CallSkipped:
            plan, table = self.plan(statement)
            return StatementResult(table=table, kind="explain", plan=plan)
        except NodeTypeRequired as error:
            message = f"{error.problem}; write ON and the type after the nodes"
            raise located_error(
                InvalidRequest, self.bindings.text, statement.at, message
            ) from error
        except (InvalidRequest, NotFound) as error:
            if error.place is not None:
                raise
            raise located_error(
                type(error), self.bindings.text, statement.at, error.message
            ) from error

    def run_euler(self) -> StatementResult:
        """Return the result of a query in Euler's GQL, at one version."""
        steps, graph = euler_parser.parse_euler(self.bindings.text), self.graph(0)
        traversal = EulerTraversal(
            graph.at(self.version or self.newest_version() or graph.manifest().version),
            self.bindings,
            self.seed,
        )
        table = traversal.run(steps)
        seed = traversal.seed if traversal.draw_count else None
        return StatementResult(
            table=table, kind="euler", version=traversal.graph.version or 0, seed=seed
        )

    def newest_version(self) -> int | None:
        """Return the current version; None if there is none."""
        newest = max(
            self.space_of(self.space, self.transport.parent_call).current_version,
            self.client.session.newest_versions().get(self.space, 0),
        )
        return newest or None

    def plan(self, statement: Statement, version: int = 0) -> tuple[str, ResultTable]:
        """Return the plan of a statement, from the calls that it made or started with."""
        schema = (
            self.client.session.schema(self.space)
            if self.space and self.client.session.has_schema(self.space)
            else None
        )
        return explain.explain_plan(statement.body, self.transport, schema, version)

    def _run(self, statement: Statement) -> StatementResult:
        body, bindings, client = statement.body, self.bindings, self.client
        match body:
            case DrawStatement():
                graph = self.graph(statement.at)
                return execute_draw(
                    body,
                    graph,
                    bindings,
                    seed=self.seed,
                    version=self.version or self.current_version(body),
                )
            case ast.UseStatement():
                return self._use(body)
            case ast.ShowStatement():
                return catalog.show_catalog(
                    body, client, bindings, lambda: self.require_space(statement.at)
                )
            case ast.DescribeStatement():
                return catalog.describe_object(
                    body, client, bindings, lambda: self.require_space(statement.at)
                )
            case ast.SubmitJobStatement():
                return catalog.submit_job(body, client, bindings, self.require_space(statement.at))
            case ast.ControlJobStatement():
                return catalog.control_job(
                    body, client, bindings, lambda: self.require_space(statement.at)
                )
            case ast.GrantRoleStatement():
                return access_statements.grant_role(body, client, bindings)
            case ast.RevokeRoleStatement():
                return access_statements.revoke_role(body, client, bindings)
            case ast.CreateSpaceStatement():
                result = catalog.create_space(body, client, bindings)
            case ast.DropSpaceStatement():
                result = catalog.drop_space(body, client, bindings)
                self.space = "" if self.space == body.name.text else self.space
        client.session.forget(body.name.text)
        self.changed_spaces.append(body.name.text)
        return result

    def _use(self, body: ast.UseStatement) -> StatementResult:
        try:
            self.load_schema(body.space.text)
        except NotFound as error:
            raise located_error(
                NotFound, self.bindings.text, body.space.at, error.message
            ) from None
        if not self.transport.explain_only:
            self.space = body.space.text
        return StatementResult(table=ResultTable(), kind="use")

    def graph(self, position: int) -> Graph:
        """Return the graph of the space that statements refer to."""
        self.require_space(position)
        return Graph(self.client.session, self.space, self.client)

    def require_space(self, position: int) -> str:
        """Return the space that statements refer to; InvalidRequest if none is selected."""
        if not self.space:
            raise syntax_error(
                self.bindings.text,
                position,
                "a statement that needs a space",
                ["USE first, or a query with a space"],
            )
        if not self.client.session.has_schema(self.space):
            self.load_schema(self.space)
        return self.space

    def current_version(self, draw: DrawStatement) -> int | None:
        """Return the version to read if a statement names none and no call resolves one.

        None means that the first call resolves the version.
        """
        return self.newest_version() if draw.kind == "fetch" else None

    def load_schema(self, space: str) -> None:
        """Load the schema of a space; raise NotFound if the space does not exist."""
        self.client.session.store_schema(
            space, self.space_of(space, self.transport.parent_call).schema
        )


class QueryService:
    """Handler of `Query`.

    Parameters
    ----------
    handlers : mapping
        Handlers of the Graph and Catalog services in this process, by method path. Statements
        are executed with them.
    space_of : callable
        Returns a space by name; raises NotFound if it does not exist.
    """

    def __init__(
        self, handlers: Mapping[str, Handler], space_of: Callable[[str, CallContext], SpaceRoute]
    ) -> None:
        self._handlers = handlers
        self._space_of = space_of

    def query(
        self, request: Frame[graphd_pb.QueryRequest], call: CallContext
    ) -> Frame[graphd_pb.QueryReply]:
        """Run statements and return the table of the last one."""
        head = request.head
        query_started = time.perf_counter()
        bindings = ParameterBindings(
            text=head.statement, values=_parameter_values(head, request.arrays)
        )
        transport = QueryTransport(handlers=self._handlers, parent_call=call)
        client = Client(transport, timeout_s=call.remaining())
        for name, version in head.seen_versions.items():
            client.session.note_version(name, version)
        session = _QuerySession(
            bindings=bindings,
            client=client,
            transport=transport,
            space_of=self._space_of,
            space=head.space,
            version=head.version or None,
            seed=head.seed if head.HasField("seed") else None,
        )
        result = StatementResult(table=ResultTable(), kind="nothing")
        stages: list[graphd_pb.Stage] = []
        statements = () if head.language == "euler" else self._read(head)
        if head.language == "euler":
            result = session.run_euler()
        read_s = time.perf_counter() - query_started
        for statement in statements:
            transport.parent_call.remaining()
            transport.digest, transport.calls, transport.explain_only = (
                "",
                [],
                statement.mode == "EXPLAIN",
            )
            stages, started = [], time.perf_counter()
            result = session.run(statement)
            if statement.mode == "PROFILE":
                stages = explain.profile_stages(
                    transport,
                    {"read": read_s, "run": time.perf_counter() - started},
                    result.table.rows,
                )
                transport.calls = [
                    recorded for recorded in transport.calls if recorded.method.service == _GRAPH
                ]
                result = replace(result, plan=session.plan(statement, result.version)[0])
        reply = graphd_pb.QueryReply(
            space=session.space,
            version=result.version,
            digest=transport.digest,
            seed=result.seed,
            token=result.token,
            columns=[_column(column) for column in result.table.columns],
            rows=result.table.rows,
            kind=result.kind,
            took_s=time.perf_counter() - query_started,
            plan=result.plan,
            stages=stages,
            changed_spaces=session.changed_spaces,
        )
        return Frame(reply, result.table.sections())

    def _read(self, head: graphd_pb.QueryRequest) -> tuple[Statement, ...]:
        if head.language not in ("", "ngql"):
            raise InvalidRequest(f"language {head.language!r}: expected 'ngql' or 'euler'")
        statements = parse(head.statement)
        if len(statements) > MAX_STATEMENTS:
            raise InvalidRequest(
                f"{len(statements)} statements in one query: expected {MAX_STATEMENTS} at most"
            )
        return statements


def _column(column: TableColumn) -> graphd_pb.Column:
    build = (
        _column_message
        if column.vocabulary is None or len(column.vocabulary) <= _MAX_CACHED_WORDS
        else _column_message.__wrapped__
    )
    return build(column.name, column.type, column.vocabulary)


@lru_cache(maxsize=1024)
def _column_message(name: str, kind: str, vocabulary: tuple[str, ...] | None) -> graphd_pb.Column:
    """Return the name and type of a column as a message.

    Results are cached: statements repeat, and building a message takes longer than sending it.
    """
    return graphd_pb.Column(
        name=name, type=kind, dictionary_encoded=vocabulary is not None, dictionary=vocabulary or ()
    )


def _parameter_values(
    head: graphd_pb.QueryRequest, arrays: Mapping[str, NDArray[Any]]
) -> dict[str, ParameterValue]:
    """Return parameters by name, from the head and from arrays."""
    values: dict[str, ParameterValue] = {}
    for name, value in head.parameters.items():
        kind = value.WhichOneof("value")
        if kind is None:
            raise InvalidRequest(f"parameter ${name} has no value")
        values[name] = tuple(value.texts.texts) if kind == "texts" else getattr(value, kind)
    values |= {name[1:]: array for name, array in arrays.items() if name.startswith("$")}
    if len(values) > MAX_PARAMETERS:
        raise InvalidRequest(f"{len(values)} parameters: expected {MAX_PARAMETERS} at most")
    return values
