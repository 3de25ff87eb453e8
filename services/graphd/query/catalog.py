"""Catalog statements: spaces, hosts, versions and jobs, executed as client calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from asterism.graph import Client
from asterism.records.catalog import Job
from asterism_model.filters.syntax import ColumnOperand
from asterism_model.schema import EdgeType, NodeType, Schema
from asterism_model.schema.index_columns import parse_column
from asterism_proto.errors import AsterismError, Conflict, InvalidRequest, NotFound
from graphd.query import ast
from graphd.query.access_statements import show_access
from graphd.query.ast import quote
from graphd.query.errors import located_error, syntax_error
from graphd.query.execute import StatementResult
from graphd.query.parameters import ParameterBindings
from graphd.query.table import ResultTable, table_from_rows

_SETTINGS = {
    "partition_num": "parts",
    "parts": "parts",
    "ids": "ids",
    "placement": "placement",
    "direction": "direction",
}
_FIXED = {"replica_factor": ("1", 1), "vid_type": ("INT64", "int64", "int", "INT")}
"""Options of Nebula's statements that have a single valid value here."""
_DTYPES = {"float": "float32", "double": "float64", "int": "int64", "string": "bytes"}
"""Names of Nebula's types that differ from NumPy's."""
_PAGE = 1000
"""Number of jobs per request."""
_JOBS = {"stats": "build", "export_tables": "export-tables"}


def show_catalog(
    statement: ast.ShowStatement,
    client: Client,
    bindings: ParameterBindings,
    space: Callable[[], str],
) -> StatementResult:
    """Return a list of the catalog.

    Parameters
    ----------
    statement : ShowStatement
    client : Client
    bindings : ParameterBindings
    space : callable
        Returns the space that statements refer to; raises InvalidRequest if there is none.
    """
    if statement.subject == "JOB":
        return StatementResult(
            table=_job(
                client.job(bindings.nonnegative_integer(statement.job or 0, "a job's number"))
            ),
            kind="show",
        )
    if statement.subject == "CREATE SPACE":
        assert statement.space is not None
        name = statement.space.text
        info = client.describe(name)
        return StatementResult(
            table=table_from_rows(
                {"space": str, "statement": str},
                [(name, create_space_statement(name, info.schema))],
            ),
            kind="show",
        )
    if statement.subject in ("ROLES", "API KEYS"):
        return show_access(statement, client)
    if statement.subject == "HOSTS":
        return StatementResult(table=_hosts(client, statement.role), kind="show")
    if statement.subject == "SPACES":
        return StatementResult(table=_spaces(client), kind="show")
    return StatementResult(table=_SPACE_LISTS[statement.subject](client, space()), kind="show")


def describe_object(
    statement: ast.DescribeStatement,
    client: Client,
    bindings: ParameterBindings,
    space: Callable[[], str],
) -> StatementResult:
    """Return a space, or the columns of a type."""
    try:
        if statement.object_kind == "SPACE":
            info = client.describe(statement.name.text)
            row = (
                info.name,
                info.version,
                info.schema.parts,
                info.schema.ids,
                info.schema.placement,
                info.schema.direction,
            )
            titles: Mapping[str, type] = {
                "name": str,
                "version": int,
                "parts": int,
                "ids": str,
                "placement": str,
                "direction": str,
            }
            return StatementResult(table=table_from_rows(titles, [row]), kind="describe")
        schema = client.session.schema(space())
        schema_type: NodeType | EdgeType
        if statement.object_kind == "TAG":
            schema_type = schema.node_types[schema.node_type_id(statement.name.text)]
        else:
            schema_type = schema.edge_types[schema.edge_type_id(statement.name.text)]
    except NotFound as error:
        raise located_error(NotFound, bindings.text, statement.name.at, error.message) from None
    rows = [
        (
            feature.name,
            feature.kind,
            feature.dtype if feature.kind != "bytes" else "",
            list(feature.shape) or "",
        )
        for feature in schema_type.features
    ]
    rows += [(table.name, "weights", "float32", table.expression) for table in schema_type.tables]
    rows += [(text, "index", "", "") for text in schema_type.index]
    return StatementResult(
        table=table_from_rows({"name": str, "kind": str, "dtype": str, "shape": str}, rows),
        kind="describe",
    )


def create_space(
    statement: ast.CreateSpaceStatement, client: Client, bindings: ParameterBindings
) -> StatementResult:
    """Create a space; return its name and id."""
    schema = _schema(statement, bindings)
    space_info = client.create_space(
        statement.name.text, schema, if_not_exists=statement.if_not_exists
    )
    return StatementResult(
        table=table_from_rows(
            {"name": str, "space_id": int}, [(space_info.name, space_info.space_id)]
        ),
        kind="create",
    )


def drop_space(
    statement: ast.DropSpaceStatement, client: Client, bindings: ParameterBindings
) -> StatementResult:
    """Drop a space."""
    try:
        client.drop_space(statement.name.text, if_exists=statement.if_exists)
    except NotFound as error:
        raise located_error(NotFound, bindings.text, statement.name.at, error.message) from None
    return StatementResult(table=ResultTable(), kind="drop")


def submit_job(
    statement: ast.SubmitJobStatement, client: Client, bindings: ParameterBindings, space: str
) -> StatementResult:
    """Submit a job; return it."""
    kind = _JOBS.get(statement.kind.text.lower(), statement.kind.text.lower())
    options = {key.text: str(bindings.scalar(value)) for key, value in statement.settings}
    version = (
        0
        if statement.version is None
        else bindings.nonnegative_integer(statement.version, "a version")
    )
    try:
        return StatementResult(
            table=_jobs([client.submit_job(space, kind, options=options, version=version)]),
            kind="submit",
        )
    except InvalidRequest as error:
        raise located_error(
            InvalidRequest, bindings.text, statement.kind.at, error.message
        ) from None


def control_job(
    statement: ast.ControlJobStatement,
    client: Client,
    bindings: ParameterBindings,
    space: Callable[[], str],
) -> StatementResult:
    """Stop or recover a job, or recover all jobs of the space that can be, newest first."""
    if statement.job is None:
        return StatementResult(table=_jobs(_recover_jobs(client, space())), kind="recover")
    number = bindings.nonnegative_integer(statement.job, "a job's number")
    job = client.stop_job(number) if statement.action == "STOP" else client.recover_job(number)
    return StatementResult(table=_jobs([job]), kind=statement.action.lower())


def create_space_statement(name: str, schema: Schema) -> str:
    """Return the statement that creates a space with this schema."""
    definitions = [
        f"TAG `{node_type.name}`{_columns(node_type)}{_more(node_type)}"
        for node_type in schema.node_types
    ]
    for edge in schema.edge_types:
        rules = (" UNIQUE" if edge.multiplicity == "unique" else "") + (
            " MISSING CREATE" if edge.missing == "create" else ""
        )
        rules += f" TIME `{edge.time}`" if edge.time else ""
        definitions.append(
            f"EDGE `{edge.relation}`{_columns(edge)} FROM `{edge.src_type}` TO "
            f"`{edge.dst_type}`{_more(edge)}{rules}"
        )
    settings = (
        f"parts = {schema.parts}, ids = {schema.ids}, placement = {schema.placement}, "
        f"direction = {schema.direction}"
    )
    return f"CREATE SPACE `{name}` ({settings}) " + ", ".join(definitions)


def _columns(schema_type: NodeType | EdgeType) -> str:
    columns = []
    for feature in schema_type.features:
        if feature.kind == "ragged":
            columns.append(f"`{feature.name}` LIST<{feature.dtype}>")
        else:
            shape = f"[{', '.join(map(str, feature.shape))}]" if feature.shape else ""
            columns.append(
                f"`{feature.name}` {'bytes' if feature.kind == 'bytes' else feature.dtype}{shape}"
            )
    return f" ({', '.join(columns)})" if columns else ""


def _more(schema_type: NodeType | EdgeType) -> str:
    weights = ", ".join(
        f"`{table.name}` = {quote(table.expression)}{' OR ZERO' * (table.invalid == 'zero')}"
        for table in schema_type.tables
    )
    label = (
        f" GRAPH LABEL `{schema_type.graph_label}`"
        if isinstance(schema_type, NodeType) and schema_type.graph_label
        else ""
    )
    index = _index(schema_type)
    index += (
        f" TIME `{schema_type.time}`"
        if isinstance(schema_type, NodeType) and schema_type.time
        else ""
    )
    return (
        (" WEIGHTED" if schema_type.weighted else "")
        + (f" WEIGHTS ({weights})" if weights else "")
        + label
        + index
    )


def _index(schema_type: NodeType | EdgeType) -> str:
    columns = [parse_column(text) for text in schema_type.index]
    texts = [
        f"`{column.name}`" + ("" if column.element is None else f"[{column.element}]")
        for column in columns
    ]
    return f" INDEX ({', '.join(texts)})" if texts else ""


def _schema(statement: ast.CreateSpaceStatement, bindings: ParameterBindings) -> Schema:
    """Return the schema of a statement; InvalidRequest has the position of an error."""
    document: dict[str, Any] = {"nodes": {}, "edges": {}}
    for key, value in statement.settings:
        name, setting = key.text.lower(), bindings.scalar(value)
        if name in _FIXED:
            if setting not in _FIXED[name]:
                raise syntax_error(
                    bindings.text,
                    key.at,
                    f"{name} = {setting}",
                    [f"{name} = {_FIXED[name][0]}, the only value here"],
                )
            continue
        if name not in _SETTINGS:
            raise syntax_error(bindings.text, key.at, name, [*_SETTINGS, *_FIXED])
        document[_SETTINGS[name]] = setting.lower() if isinstance(setting, str) else setting
    for definition in statement.owners:
        name = (
            definition.name.text
            if definition.src is None or definition.dst is None
            else f"{definition.src.text}:{definition.name.text}:{definition.dst.text}"
        )
        group = document["nodes" if definition.src is None else "edges"]
        if name in group:
            raise syntax_error(
                bindings.text,
                definition.name.at,
                f"type {name!r} twice",
                ["types of different names"],
            )
        group[name] = _owner(definition)
    try:
        return Schema.from_dict(document)
    except AsterismError as error:
        raise located_error(
            InvalidRequest, bindings.text, statement.name.at, error.message
        ) from None


def _owner(definition: ast.TypeDefinition) -> dict[str, Any]:
    features = {}
    for feature in definition.features:
        dtype = _DTYPES.get(feature.dtype.lower(), feature.dtype.lower())
        kind = "ragged" if feature.ragged else "bytes" if dtype == "bytes" else "dense"
        features[feature.name.text] = {"kind": kind, "shape": list(feature.shape)} | (
            {} if dtype == "bytes" else {"dtype": dtype}
        )
    tables = {
        name.text: {"expression": text, "invalid": "zero" if zero else "fail"}
        for name, text, zero in definition.weights
    }
    document: dict[str, Any] = {
        "weighted": definition.weighted,
        "features": features,
        "tables": tables,
    }
    if definition.index:
        document["index"] = [
            str(ColumnOperand(name=name.text, element=element))
            for name, element in definition.index
        ]
    if definition.label is not None:
        document["graph_label"] = definition.label.text
    if definition.src is not None:
        document |= {
            "edges": "unique" if definition.unique else "multi",
            "missing": definition.missing.lower() or "reject",
        }
    return document if definition.time is None else document | {"time": definition.time.text}


def _recover_jobs(client: Client, space: str) -> list[Job]:
    """Recover the failed and stopped jobs that no later job supersedes; return them."""
    recovered: list[Job] = []
    page = client.jobs(space, ("FAILED", "STOPPED"), limit=_PAGE)
    while page:
        for job in page:
            try:
                recovered.append(client.recover_job(job.job_id))
            except Conflict:  # one job that cannot be recovered does not prevent the rest
                continue
        page = (
            client.jobs(space, ("FAILED", "STOPPED"), limit=_PAGE, before=page[-1].job_id)
            if len(page) == _PAGE
            else []
        )
    return recovered


# -- lists --


def _spaces(client: Client) -> ResultTable:
    rows = [
        (
            space.name,
            space.version,
            len(space.schema.node_types),
            len(space.schema.edge_types),
            space.schema.parts,
        )
        for space in client.spaces()
    ]
    return table_from_rows(
        {"name": str, "version": int, "tags": int, "edges": int, "parts": int}, sorted(rows)
    )


def _hosts(client: Client, role: str) -> ResultTable:
    roles = {"STORAGE": ("STORAGED",), "GRAPH": ("GRAPHD",)}.get(role, ("STORAGED", "GRAPHD"))
    rows = [
        (
            host.address,
            host.role,
            "ONLINE" if host.online else "OFFLINE",
            host.parts,
            host.free_bytes,
            host.http_address,
            host.uuid,
        )
        for host in client.hosts()
        if host.role in roles
    ]
    return table_from_rows(
        {
            "host": str,
            "role": str,
            "status": str,
            "parts": int,
            "free_bytes": int,
            "http": str,
            "uuid": str,
        },
        rows,
    )


def _parts(client: Client, space: str) -> ResultTable:
    addresses = {host.uuid: host.address for host in client.hosts()}
    hosts = client.describe(space).hosts
    rows = [
        (part, ", ".join(addresses.get(uuid, uuid) for uuid in uuids))
        for part, uuids in enumerate(hosts)
    ]
    return table_from_rows({"part": int, "hosts": str}, rows)


def _stats(client: Client, space: str) -> ResultTable:
    info, schema = client.manifest(space), client.session.schema(space)
    tags, edges = (
        [kind.name for kind in schema.node_types],
        [kind.name for kind in schema.edge_types],
    )
    rows = [
        (label, name, info.count(element, type_id), info.weight(element, type_id))
        for label, element, names in (("Tag", "NODE", tags), ("Edge", "EDGE", edges))
        for type_id, name in enumerate(names)
    ]
    rows += [
        ("Space", label, sum(row[2] for row in rows if row[0] == kind), 0.0)
        for label, kind in (("vertices", "Tag"), ("edges", "Edge"))
    ]
    return table_from_rows({"type": str, "name": str, "count": int, "weight": float}, rows)


def _versions(client: Client, space: str) -> ResultTable:
    rows = [
        (version.version, version.watermark, version.job_id, version.created_ms, version.digest)
        for version in client.versions(space)
    ]
    return table_from_rows(
        {"version": int, "watermark": int, "job": int, "created_ms": int, "digest": str}, rows
    )


def _types(client: Client, space: str, *, edges: bool) -> ResultTable:
    schema = client.session.schema(space)
    schema_types: Sequence[NodeType | EdgeType] = schema.edge_types if edges else schema.node_types
    rows = [
        (
            schema_type.name,
            schema_type.weighted,
            ", ".join(feature.name for feature in schema_type.features),
            ", ".join(table.name for table in schema_type.tables),
        )
        for schema_type in schema_types
    ]
    return table_from_rows({"name": str, "weighted": bool, "features": str, "weights": str}, rows)


def _pins(client: Client, space: str) -> ResultTable:
    rows = [(pin.pin_id, pin.version, pin.owner, pin.expires_ms) for pin in client.pins(space)]
    return table_from_rows({"pin": int, "version": int, "owner": str, "expires_ms": int}, rows)


def _jobs(jobs: Sequence[Job]) -> ResultTable:
    rows = [
        (
            job.job_id,
            job.kind,
            job.space,
            job.state,
            job.rows_done,
            job.rows_total,
            job.version,
            job.submitted_ms,
            job.finished_ms,
            job.cause,
        )
        for job in jobs
    ]
    numbers = {
        "rows_done": int,
        "rows_total": int,
        "version": int,
        "submitted_ms": int,
        "finished_ms": int,
    }
    return table_from_rows(
        {"job": int, "kind": str, "space": str, "state": str, **numbers, "cause": str}, rows
    )


def _job(job: Job) -> ResultTable:
    """Return a row for the job, and one for each of its tasks."""
    rows = [
        (job.job_id, job.kind, "", job.state, job.ending, job.rows_done, job.rows_total, job.cause)
    ]
    for task in job.tasks:
        causes = "; ".join(task.causes)
        rows.append(
            (
                job.job_id,
                f"task {task.task_id}",
                task.host,
                task.state,
                task.phase,
                task.rows_done,
                task.rows_total,
                causes,
            )
        )
    titles = {
        "job": int,
        "what": str,
        "host": str,
        "state": str,
        "phase": str,
        "rows_done": int,
        "rows_total": int,
        "cause": str,
    }
    return table_from_rows(titles, rows)


_SPACE_LISTS: Mapping[str, Callable[[Client, str], ResultTable]] = {
    "PARTS": _parts,
    "STATS": _stats,
    "VERSIONS": _versions,
    "TAGS": lambda client, space: _types(client, space, edges=False),
    "EDGES": lambda client, space: _types(client, space, edges=True),
    "PINS": _pins,
    "JOBS": lambda client, space: _jobs(client.jobs(space)),
}
