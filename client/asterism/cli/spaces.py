"""`asterism space`: create, list, describe and drop graph spaces, and list their versions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli.context import command_context
from asterism.cli.options import Space
from asterism.cli.output import format_timestamp, table, to_json_value
from asterism_proto.errors import InvalidRequest

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asterism.records.catalog import SpaceInfo
    from asterism.records.versions import PinInfo, VersionInfo
    from asterism_model.schema import Schema

app = typer.Typer(
    no_args_is_help=True, help="Manage graph spaces: one graph each, with schema and versions."
)


def read_schema(file: Path) -> Schema:
    """Return the schema in a YAML or JSON file; raise InvalidRequest if there is none."""
    from asterism_model.schema import Schema

    try:
        text = file.read_text()
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"{file}: not a text file; a schema is YAML or JSON") from error
    if file.suffix == ".json":
        import json

        try:
            data: Any = json.loads(text)
        except json.JSONDecodeError as error:
            raise InvalidRequest(f"{file}: not JSON: {error}") from error
    else:
        import yaml

        try:
            data = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise InvalidRequest(f"{file}: not YAML: {error}") from error
    if not isinstance(data, dict):
        raise InvalidRequest(
            f"{file}: expected a mapping with `nodes` and `edges`, found {type(data).__name__}"
        )
    try:
        return Schema.from_dict(data)
    except InvalidRequest as error:
        raise InvalidRequest(f"{file}: {error.message}") from error


@app.command(epilog="Example: asterism space create shop schema.yaml --if-not-exists")
def create(
    context: typer.Context,
    space: Space,
    schema: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="YAML or JSON file of the schema: parts, direction, nodes, edges ...",
        ),
    ],
    *,
    if_not_exists: Annotated[
        bool,
        typer.Option(
            "--if-not-exists", help="Succeed if a space with this name and schema exists."
        ),
    ] = False,
) -> None:
    """Create a space from a schema file."""
    command = command_context(context)
    parsed_schema = read_schema(schema)
    with command.client(create=True) as client:
        info = client.create_space(space, parsed_schema, if_not_exists=if_not_exists)
    command.output.result(
        info,
        lambda: (
            f"space [bold]{info.name}[/bold] has {info.schema.parts} parts; `asterism load "
            f"{info.name} SOURCE` loads files into it"
        ),
    )


@app.command("list", epilog="Example: asterism space list --json")
def list_spaces(context: typer.Context) -> None:
    """List spaces."""
    command = command_context(context)
    with command.client(allow_read_only=True) as client:
        infos = list(client.spaces())
    command.output.result(infos, lambda: spaces_table(infos))


def spaces_table(infos: list[SpaceInfo]) -> RenderableType:
    """Return a table with a row per space."""
    rows = [
        (
            i.name,
            i.schema.parts,
            len(i.schema.node_types),
            len(i.schema.edge_types),
            i.version or "none yet",
            format_timestamp(i.created_ms),
        )
        for i in sorted(infos, key=lambda i: i.name)
    ]
    return table(
        "spaces", ("space", "parts", "node types", "edge types", "version", "created (UTC)"), rows
    )


@app.command(epilog="Example: asterism space describe shop")
def describe(context: typer.Context, space: Space) -> None:
    """Show the schema of a space, and the counts of its current version."""
    command = command_context(context)
    with command.client(allow_read_only=True) as client:
        info = client.describe(space)
        versions = list(client.versions(space))
        manifest = client.manifest(space) if info.version else None
    command.output.result(
        {"space": info, "versions": versions, "current": manifest},
        lambda: _description(info, versions, manifest),
    )


def _description(
    info: SpaceInfo, versions: list[VersionInfo], manifest: VersionInfo | None
) -> RenderableType:
    from rich.console import Group

    schema = info.schema
    types: list[tuple[str, str, Any, int]] = [
        ("node", t.name, t, i) for i, t in enumerate(schema.node_types)
    ]
    types += [("edge", t.name, t, i) for i, t in enumerate(schema.edge_types)]
    rows = []
    for element, name, kind, type_id in types:
        features = ", ".join(
            (
                f"{f.name} {f.dtype if f.kind != 'bytes' else ''}{list(f.shape) if f.shape else ''}"
            ).strip()
            for f in kind.features
        )
        count = manifest.count(element.upper(), type_id) if manifest else "-"
        weight = manifest.weight(element.upper(), type_id) if manifest else "-"
        rows.append((element, name, count, weight if kind.weighted else "-", features or "-"))
    head = (
        f"[bold]{info.name}[/bold]: {schema.parts} parts, ids {schema.ids}, placement "
        f"{schema.placement}, direction {schema.direction}"
    )
    history = [
        (v.version, v.cut, v.job_id, format_timestamp(v.created_ms), v.digest[:12])
        for v in versions
    ]
    return Group(
        head,
        table("types", ("", "name", "count", "weight", "features"), rows),
        table(
            "versions",
            ("version", "shows commits up to", "job", "published (UTC)", "digest"),
            history,
        ),
    )


@app.command(
    epilog=(
        "Examples: asterism space versions shop; asterism space versions shop --json | jq "
        "'.[].pins[].owner'"
    )
)
def versions(context: typer.Context, space: Space) -> None:
    """List the versions that are served, and their pins."""
    command = command_context(context)
    with command.client(allow_read_only=True) as client:
        version_infos, pins = client.versions(space), client.pins(space)
    pins_by_version = {
        info.version: [pin for pin in pins if pin.version == info.version] for info in version_infos
    }
    command.output.result(
        [{**to_json_value(info), "pins": pins_by_version[info.version]} for info in version_infos],
        lambda: table(
            "versions",
            _VERSION_COLUMNS,
            [_version_row(i, pins_by_version[i.version]) for i in version_infos],
        ),
    )


_VERSION_COLUMNS = (
    "version",
    "shows commits up to",
    "job",
    "published (UTC)",
    "digest",
    "pinned by",
)


def _version_row(info: VersionInfo, pins: list[PinInfo]) -> tuple[object, ...]:
    pin_lines = "\n".join(
        f"{pin.owner or 'unknown owner'} until {format_timestamp(pin.expires_ms)}" for pin in pins
    )
    return (
        info.version,
        info.cut,
        info.job_id,
        format_timestamp(info.created_ms),
        info.digest[:12],
        pin_lines or "-",
    )


@app.command(epilog="Example: asterism space drop shop --yes")
def drop(
    context: typer.Context,
    space: Space,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    if_exists: Annotated[
        bool, typer.Option("--if-exists", help="Succeed if the space does not exist.")
    ] = False,
) -> None:
    """Drop a space with all its data."""
    command = command_context(context)
    if not yes and not typer.confirm(f"Drop the space {space!r} with all its data?", err=True):
        raise typer.Abort
    with command.client() as client:
        client.drop_space(space, if_exists=if_exists)
    command.output.result({"dropped": space}, lambda: f"space {space} is dropped")
