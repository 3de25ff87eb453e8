"""Statements about spaces, hosts, versions and jobs, as the calls of a client that they stand for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from asterism.catalog import Job
from asterism.client import Client
from asterism_proto.condition import Column
from asterism_proto.declared import column_of
from asterism_proto.errors import AsterismError, Conflict, InvalidRequest, NotFound
from asterism_proto.schema import EdgeType, NodeType, Schema
from graphd.statements import records
from graphd.statements.binding import Bindings
from graphd.statements.faults import placed, wrong
from graphd.statements.running import Ran
from graphd.statements.table import Table, of_records
from graphd.statements.writing import quoted

_SETTINGS = {"partition_num": "parts", "parts": "parts", "ids": "ids", "placement": "placement", "direction": "direction"}
_FIXED = {"replica_factor": ("1", 1), "vid_type": ("INT64", "int64", "int", "INT")}
"""What Nebula's statements say besides, and has one value here."""
_DTYPES = {"float": "float32", "double": "float64", "int": "int64", "string": "bytes"}
"""Nebula's words for types, where they are not NumPy's."""
_PAGE = 1000
"""Jobs that are asked for at a time."""
_JOBS = {"stats": "build", "export_tables": "export-tables"}


def show(what: records.Show, client: Client, bindings: Bindings, space: Callable[[], str]) -> Ran:
    """A list of the catalog.

    Parameters
    ----------
    what : Show
    client : Client
    bindings : Bindings
    space : callable
        Gives the space that statements are about; InvalidRequest where there is none.
    """
    if what.what == "JOB":
        return Ran(table=_job(client.job(bindings.number(what.job or 0, "a job's number"))), kind="show")
    if what.what == "CREATE SPACE":
        assert what.space is not None
        name = what.space.text
        made = client.describe(name)
        return Ran(table=of_records({"space": str, "statement": str}, [(name, created(name, made.schema))]), kind="show")
    if what.what == "HOSTS":
        return Ran(table=_hosts(client, what.role), kind="show")
    if what.what == "SPACES":
        return Ran(table=_spaces(client), kind="show")
    return Ran(table=_OF_A_SPACE[what.what](client, space()), kind="show")


def describe(what: records.Describe, client: Client, bindings: Bindings, space: Callable[[], str]) -> Ran:
    """A space, or the columns of a type."""
    try:
        if what.what == "SPACE":
            info = client.describe(what.name.text)
            row = (info.name, info.version, info.schema.parts, info.schema.ids, info.schema.placement, info.schema.direction)
            titles: Mapping[str, type] = {"name": str, "version": int, "parts": int, "ids": str, "placement": str, "direction": str}
            return Ran(table=of_records(titles, [row]), kind="describe")
        schema = client.session.schema(space())
        owner: NodeType | EdgeType
        if what.what == "TAG":
            owner = schema.node_types[schema.node_type_id(what.name.text)]
        else:
            owner = schema.edge_types[schema.edge_type_id(what.name.text)]
    except NotFound as error:
        raise placed(NotFound, bindings.text, what.name.at, error.message) from None
    rows = [(feature.name, feature.kind, feature.dtype if feature.kind != "bytes" else "", list(feature.shape) or "") for feature in owner.features]
    rows += [(table.name, "weights", "float32", table.expression) for table in owner.tables]
    rows += [(text, "index", "", "") for text in owner.index]
    return Ran(table=of_records({"name": str, "kind": str, "dtype": str, "shape": str}, rows), kind="describe")


def create(what: records.CreateSpace, client: Client, bindings: Bindings) -> Ran:
    """A space that was made."""
    schema = _schema(what, bindings)
    made = client.create_space(what.name.text, schema, if_not_exists=what.if_not_exists)
    return Ran(table=of_records({"name": str, "space_id": int}, [(made.name, made.space_id)]), kind="create")


def drop(what: records.DropSpace, client: Client, bindings: Bindings) -> Ran:
    """A space that is no more."""
    try:
        client.drop_space(what.name.text, if_exists=what.if_exists)
    except NotFound as error:
        raise placed(NotFound, bindings.text, what.name.at, error.message) from None
    return Ran(table=Table(), kind="drop")


def submit(what: records.SubmitJob, client: Client, bindings: Bindings, space: str) -> Ran:
    """A job that was asked for."""
    kind = _JOBS.get(what.kind.text.lower(), what.kind.text.lower())
    options = {key.text: str(bindings.scalar(value)) for key, value in what.settings}
    version = 0 if what.version is None else bindings.number(what.version, "a version")
    try:
        return Ran(table=_jobs([client.submit_job(space, kind, options=options, version=version)]), kind="submit")
    except InvalidRequest as error:
        raise placed(InvalidRequest, bindings.text, what.kind.at, error.message) from None


def end(what: records.EndJob, client: Client, bindings: Bindings, space: Callable[[], str]) -> Ran:
    """A job that was told to stop, or to go on; or all of the space that can go on, newest first."""
    if what.job is None:
        return Ran(table=_jobs(_recovered(client, space())), kind="recover")
    number = bindings.number(what.job, "a job's number")
    job = client.stop_job(number) if what.word == "STOP" else client.recover_job(number)
    return Ran(table=_jobs([job]), kind=what.word.lower())


def created(name: str, schema: Schema) -> str:
    """The statement that makes a space of this schema."""
    owners = [f"TAG `{kind.name}`{_columns(kind)}{_more(kind)}" for kind in schema.node_types]
    for edge in schema.edge_types:
        rules = (" UNIQUE" if edge.multiplicity == "unique" else "") + (" MISSING CREATE" if edge.missing == "create" else "")
        rules += f" TIME `{edge.time}`" if edge.time else ""
        owners.append(f"EDGE `{edge.relation}`{_columns(edge)} FROM `{edge.src_type}` TO `{edge.dst_type}`{_more(edge)}{rules}")
    settings = f"parts = {schema.parts}, ids = {schema.ids}, placement = {schema.placement}, direction = {schema.direction}"
    return f"CREATE SPACE `{name}` ({settings}) " + ", ".join(owners)


def _columns(owner: NodeType | EdgeType) -> str:
    said = []
    for feature in owner.features:
        if feature.kind == "ragged":
            said.append(f"`{feature.name}` LIST<{feature.dtype}>")
        else:
            shape = f"[{', '.join(map(str, feature.shape))}]" if feature.shape else ""
            said.append(f"`{feature.name}` {'bytes' if feature.kind == 'bytes' else feature.dtype}{shape}")
    return f" ({', '.join(said)})" if said else ""


def _more(owner: NodeType | EdgeType) -> str:
    weights = ", ".join(f"`{table.name}` = {quoted(table.expression)}{' OR ZERO' * (table.invalid == 'zero')}" for table in owner.tables)
    label = f" GRAPH LABEL `{owner.graph_label}`" if isinstance(owner, NodeType) and owner.graph_label else ""
    index = _index(owner)
    index += f" TIME `{owner.time}`" if isinstance(owner, NodeType) and owner.time else ""
    return (" WEIGHTED" if owner.weighted else "") + (f" WEIGHTS ({weights})" if weights else "") + label + index


def _index(owner: NodeType | EdgeType) -> str:
    columns = [column_of(text) for text in owner.index]
    told = [f"`{column.name}`" + ("" if column.element is None else f"[{column.element}]") for column in columns]
    return f" INDEX ({', '.join(told)})" if told else ""


def _schema(what: records.CreateSpace, bindings: Bindings) -> Schema:
    """The schema that a statement describes; InvalidRequest with the place of what can not be."""
    said: dict[str, Any] = {"nodes": {}, "edges": {}}
    for key, value in what.settings:
        name, given = key.text.lower(), bindings.scalar(value)
        if name in _FIXED:
            if given not in _FIXED[name]:
                raise wrong(bindings.text, key.at, f"{name} = {given}", [f"{name} = {_FIXED[name][0]}: there is no other here"])
            continue
        if name not in _SETTINGS:
            raise wrong(bindings.text, key.at, name, [*_SETTINGS, *_FIXED])
        said[_SETTINGS[name]] = given.lower() if isinstance(given, str) else given
    for owner in what.owners:
        name = owner.name.text if owner.src is None or owner.dst is None else f"{owner.src.text}:{owner.name.text}:{owner.dst.text}"
        of = said["nodes" if owner.src is None else "edges"]
        if name in of:
            raise wrong(bindings.text, owner.name.at, f"type {name!r} a second time", ["types of different names"])
        of[name] = _owner(owner)
    try:
        return Schema.from_dict(said)
    except AsterismError as error:
        raise placed(InvalidRequest, bindings.text, what.name.at, error.message) from None


def _owner(owner: records.Owner) -> dict[str, Any]:
    features = {}
    for feature in owner.features:
        dtype = _DTYPES.get(feature.dtype.lower(), feature.dtype.lower())
        kind = "ragged" if feature.ragged else "bytes" if dtype == "bytes" else "dense"
        features[feature.name.text] = {"kind": kind, "shape": list(feature.shape)} | ({} if dtype == "bytes" else {"dtype": dtype})
    tables = {name.text: {"expression": text, "invalid": "zero" if zero else "fail"} for name, text, zero in owner.weights}
    said: dict[str, Any] = {"weighted": owner.weighted, "features": features, "tables": tables}
    if owner.index:
        said["index"] = [str(Column(name=name.text, element=place)) for name, place in owner.index]
    if owner.label is not None:
        said["graph_label"] = owner.label.text
    if owner.src is not None:
        said |= {"edges": "unique" if owner.unique else "multi", "missing": owner.missing.lower() or "reject"}
    return said if owner.time is None else said | {"time": owner.time.text}


def _recovered(client: Client, space: str) -> list[Job]:
    """The jobs that go on: of those that failed or were stopped, all that a later one does not make needless."""
    found: list[Job] = []
    page = client.jobs(space, ("FAILED", "STOPPED"), limit=_PAGE)
    while page:
        for job in page:
            try:
                found.append(client.recover_job(job.job_id))
            except Conflict:  # of each by itself: others go on
                continue
        page = client.jobs(space, ("FAILED", "STOPPED"), limit=_PAGE, before=page[-1].job_id) if len(page) == _PAGE else []
    return found


# -- lists --


def _spaces(client: Client) -> Table:
    rows = [(one.name, one.version, len(one.schema.node_types), len(one.schema.edge_types), one.schema.parts) for one in client.spaces()]
    return of_records({"name": str, "version": int, "tags": int, "edges": int, "parts": int}, sorted(rows))


def _hosts(client: Client, role: str) -> Table:
    roles = {"STORAGE": ("STORAGED",), "GRAPH": ("GRAPHD",)}.get(role, ("STORAGED", "GRAPHD"))
    rows = [
        (host.address, host.role, "ONLINE" if host.online else "OFFLINE", host.parts, host.free_bytes, host.http_address, host.uuid)
        for host in client.hosts()
        if host.role in roles
    ]
    return of_records({"host": str, "role": str, "status": str, "parts": int, "free_bytes": int, "http": str, "uuid": str}, rows)


def _parts(client: Client, space: str) -> Table:
    addresses = {host.uuid: host.address for host in client.hosts()}
    hosts = client.describe(space).hosts
    rows = [(part, ", ".join(addresses.get(uuid, uuid) for uuid in of)) for part, of in enumerate(hosts)]
    return of_records({"part": int, "hosts": str}, rows)


def _stats(client: Client, space: str) -> Table:
    info, schema = client.manifest(space), client.session.schema(space)
    tags, edges = [kind.name for kind in schema.node_types], [kind.name for kind in schema.edge_types]
    rows = [
        (word, name, info.count(element, at), info.weight(element, at))
        for word, element, names in (("Tag", "NODE", tags), ("Edge", "EDGE", edges))
        for at, name in enumerate(names)
    ]
    rows += [("Space", word, sum(row[2] for row in rows if row[0] == kind), 0.0) for word, kind in (("vertices", "Tag"), ("edges", "Edge"))]
    return of_records({"type": str, "name": str, "count": int, "weight": float}, rows)


def _versions(client: Client, space: str) -> Table:
    rows = [(one.version, one.cut, one.job_id, one.created_ms, one.digest) for one in client.versions(space)]
    return of_records({"version": int, "cut": int, "job": int, "created_ms": int, "digest": str}, rows)


def _types(client: Client, space: str, *, edges: bool) -> Table:
    schema = client.session.schema(space)
    owners: Sequence[NodeType | EdgeType] = schema.edge_types if edges else schema.node_types
    rows = [
        (owner.name, owner.weighted, ", ".join(feature.name for feature in owner.features), ", ".join(table.name for table in owner.tables))
        for owner in owners
    ]
    return of_records({"name": str, "weighted": bool, "features": str, "weights": str}, rows)


def _pins(client: Client, space: str) -> Table:
    rows = [(pin.pin_id, pin.version, pin.owner, pin.expires_ms) for pin in client.pins(space)]
    return of_records({"pin": int, "version": int, "owner": str, "expires_ms": int}, rows)


def _jobs(jobs: Sequence[Job]) -> Table:
    rows = [
        (job.job_id, job.kind, job.space, job.state, job.rows_done, job.rows_total, job.version, job.submitted_ms, job.finished_ms, job.cause)
        for job in jobs
    ]
    numbers = {"rows_done": int, "rows_total": int, "version": int, "submitted_ms": int, "finished_ms": int}
    return of_records({"job": int, "kind": str, "space": str, "state": str, **numbers, "cause": str}, rows)


def _job(job: Job) -> Table:
    """A row for the job, and one for each of its tasks."""
    rows = [(job.job_id, job.kind, "", job.state, job.ending, job.rows_done, job.rows_total, job.cause)]
    for task in job.tasks:
        causes = "; ".join(task.causes)
        rows.append((job.job_id, f"task {task.task_id}", task.host, task.state, task.phase, task.rows_done, task.rows_total, causes))
    titles = {"job": int, "what": str, "host": str, "state": str, "phase": str, "rows_done": int, "rows_total": int, "cause": str}
    return of_records(titles, rows)


_OF_A_SPACE: Mapping[str, Callable[[Client, str], Table]] = {
    "PARTS": _parts,
    "STATS": _stats,
    "VERSIONS": _versions,
    "TAGS": lambda client, space: _types(client, space, edges=False),
    "EDGES": lambda client, space: _types(client, space, edges=True),
    "PINS": _pins,
    "JOBS": lambda client, space: _jobs(client.jobs(space)),
}
