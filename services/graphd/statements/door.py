"""What graphd is asked in statements: text is read, values are bound, calls are made, a table comes back."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from asterism.client import Client
from asterism.graph import Graph
from asterism_proto.arrays import Frame
from asterism_proto.errors import InvalidRequest, NotFound
from asterism_proto.methods import GRAPH
from asterism_proto.v1 import graphd_pb2 as wire
from daemonkit.calls import Call, Handler
from graphd.route import Space
from graphd.statements import catalog, explaining, gremlin, records
from graphd.statements.binding import MOST_PARAMETERS, Bindings, Given
from graphd.statements.faults import placed, wrong
from graphd.statements.reading import read
from graphd.statements.records import Draw, Statement
from graphd.statements.running import Ran, run
from graphd.statements.table import Column, Table
from graphd.statements.transport import Inside, NotMade
from graphd.statements.traversing import Traversal

_GRAPH = GRAPH["query"].service
MOST_STATEMENTS = 100
"""In one query."""
_FEW_WORDS = 64


@dataclass(slots=True, kw_only=True)
class _Session:
    """A query while it runs."""

    bindings: Bindings
    client: Client
    inside: Inside
    space_of: Callable[[str, Call], Space]
    space: str
    version: int | None
    seed: int | None
    changed: list[str] = field(default_factory=list)

    def run(self, statement: Statement) -> Ran:
        """What a statement gives; where it is to be explained, the requests that it stands for."""
        try:
            return self._run(statement)
        except NotMade:
            plan, table = self.plan(statement)
            return Ran(table=table, kind="explain", plan=plan)
        except (InvalidRequest, NotFound) as error:
            if error.place is not None:
                raise
            said = error.message.replace("say ntype, one or per node", "say which with ON, behind the nodes")
            raise placed(type(error), self.bindings.text, statement.at, said) from error

    def traverse(self) -> Ran:
        """What a query in Euler's GQL gives, of one version."""
        steps, graph = gremlin.read(self.bindings.text), self.graph(0)
        traversal = Traversal(graph.at(self.version or self.newest() or graph.manifest().version), self.bindings, self.seed)
        table = traversal.run(steps)
        seed = traversal.seed if traversal.drawn else None
        return Ran(table=table, kind="euler", version=traversal.graph.version or 0, seed=seed)

    def newest(self) -> int | None:
        """The version that is current; None: none is."""
        newest = max(self.space_of(self.space, self.inside.query).current, self.client.session.newest().get(self.space, 0))
        return newest or None

    def plan(self, statement: Statement, version: int = 0) -> tuple[str, Table]:
        """What a statement does, of the calls that it made or began with."""
        schema = self.client.session.schema(self.space) if self.space and self.client.session.knows(self.space) else None
        return explaining.plan(statement.body, self.inside, schema, version)

    def _run(self, statement: Statement) -> Ran:
        body, bindings, client = statement.body, self.bindings, self.client
        match body:
            case Draw():
                graph = self.graph(statement.at)
                return run(body, graph, bindings, seed=self.seed, version=self.version or self.current(body))
            case records.Use():
                return self._use(body)
            case records.Show():
                return catalog.show(body, client, bindings, lambda: self.named(statement.at))
            case records.Describe():
                return catalog.describe(body, client, bindings, lambda: self.named(statement.at))
            case records.SubmitJob():
                return catalog.submit(body, client, bindings, self.named(statement.at))
            case records.EndJob():
                return catalog.end(body, client, bindings, lambda: self.named(statement.at))
            case records.CreateSpace():
                ran = catalog.create(body, client, bindings)
            case records.DropSpace():
                ran = catalog.drop(body, client, bindings)
                self.space = "" if self.space == body.name.text else self.space
        client.session.forget(body.name.text)
        self.changed.append(body.name.text)
        return ran

    def _use(self, body: records.Use) -> Ran:
        try:
            self.learn(body.space.text)
        except NotFound as error:
            raise placed(NotFound, self.bindings.text, body.space.at, error.message) from None
        if not self.inside.explaining:
            self.space = body.space.text
        return Ran(table=Table(), kind="use")

    def graph(self, at: int) -> Graph:
        """The graph of the space that statements are about."""
        self.named(at)
        return Graph(self.client.session, self.space, self.client)

    def named(self, at: int) -> str:
        """The space that statements are about; InvalidRequest where none was said."""
        if not self.space:
            raise wrong(self.bindings.text, at, "a statement about no space", ["USE before it, or a query that says its space"])
        if not self.client.session.knows(self.space):
            self.learn(self.space)
        return self.space

    def current(self, draw: Draw) -> int | None:
        """The version that is read where none is named, of what no call says it of; None: the first call finds out."""
        return self.newest() if draw.kind == "fetch" else None

    def learn(self, space: str) -> None:
        """Look for a space, and know its schema; NotFound where there is none."""
        self.client.session.know(space, self.space_of(space, self.inside.query).schema)


class Statements:
    """The handler of `Query`.

    Parameters
    ----------
    handlers : mapping
        Of the Graph and Catalog services in this process, by method path: what statements are made of.
    space_of : callable
        A space by its name; NotFound where there is none.
    """

    def __init__(self, handlers: Mapping[str, Handler], space_of: Callable[[str, Call], Space]) -> None:
        self._handlers = handlers
        self._space_of = space_of

    def query(self, request: Frame, call: Call) -> Frame:
        """Run statements, and give the table of the last one."""
        head: Any = request.head
        begun = time.perf_counter()
        bindings = Bindings(text=head.statement, values=_given(head, request.arrays))
        inside = Inside(handlers=self._handlers, query=call)
        client = Client(inside, timeout_s=call.remaining())
        for name, version in head.seen.items():
            client.session.seen(name, version)
        session = _Session(
            bindings=bindings,
            client=client,
            inside=inside,
            space_of=self._space_of,
            space=head.space,
            version=head.version or None,
            seed=head.seed if head.HasField("seed") else None,
        )
        ran = Ran(table=Table(), kind="nothing")
        stages: list[wire.Stage] = []
        statements = () if head.language == "euler" else self._read(head)
        if head.language == "euler":
            ran = session.traverse()
        read_s = time.perf_counter() - begun
        for statement in statements:
            inside.query.remaining()
            inside.digest, inside.made, inside.explaining = "", [], statement.mode == "EXPLAIN"
            stages, started = [], time.perf_counter()
            ran = session.run(statement)
            if statement.mode == "PROFILE":
                stages = explaining.stages(inside, {"read": read_s, "run": time.perf_counter() - started}, ran.table.rows)
                inside.made = [made for made in inside.made if made.method.service == _GRAPH]
                ran = replace(ran, plan=session.plan(statement, ran.version)[0])
        reply = wire.QueryReply(
            space=session.space,
            version=ran.version,
            digest=inside.digest,
            seed=ran.seed,
            token=ran.token,
            columns=[_column(column) for column in ran.table.columns],
            rows=ran.table.rows,
            kind=ran.kind,
            took_s=time.perf_counter() - begun,
            plan=ran.plan,
            stages=stages,
            changed=session.changed,
        )
        return Frame(reply, ran.table.sections())

    def _read(self, head: Any) -> tuple[Statement, ...]:
        if head.language not in ("", "ngql"):
            raise InvalidRequest(f"language {head.language!r}: expected 'ngql' or 'euler'")
        statements = read(head.statement)
        if len(statements) > MOST_STATEMENTS:
            raise InvalidRequest(f"{len(statements)} statements in one query: expected {MOST_STATEMENTS} at most")
        return statements


def _column(column: Column) -> wire.Column:
    made = _head if column.words is None or len(column.words) <= _FEW_WORDS else _head.__wrapped__
    return made(column.name, column.type, column.words)


@lru_cache(maxsize=1024)
def _head(name: str, kind: str, words: tuple[str, ...] | None) -> wire.Column:
    """What a column is called and holds; statements are asked again and again, and a message takes longer to make than to send."""
    return wire.Column(name=name, type=kind, coded=words is not None, words=words or ())


def _given(head: Any, arrays: Mapping[str, Any]) -> dict[str, Given]:
    """Parameters by their names: those of the head, and arrays."""
    found: dict[str, Given] = {}
    for name, value in head.parameters.items():
        kind = value.WhichOneof("value")
        if kind is None:
            raise InvalidRequest(f"parameter ${name} has no value")
        found[name] = tuple(value.texts.texts) if kind == "texts" else getattr(value, kind)
    found |= {name[1:]: array for name, array in arrays.items() if name.startswith("$")}
    if len(found) > MOST_PARAMETERS:
        raise InvalidRequest(f"{len(found)} parameters: expected {MOST_PARAMETERS} at most")
    return found
