"""`asterism space`: create, list, describe and drop graph spaces, and list their versions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli.confirmation import is_confirmed
from asterism.cli.context import command_context
from asterism.cli.exit_codes import ExitCode
from asterism.cli.help_text import examples
from asterism.cli.options import Space
from asterism.cli.output import format_timestamp, table, to_json_value
from asterism.cli.schema_difference import another_schema
from asterism.cli.schema_files import read_schema
from asterism.cli.tables import sections
from asterism_proto.errors import Conflict

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asterism.records.catalog import SpaceInfo
    from asterism.records.versions import PinInfo, VersionInfo
    from asterism_model.schema import Feature

app = typer.Typer(
    no_args_is_help=True,
    help="Manage graph spaces, each with schema and versions.",
    epilog=examples("asterism space create shop schema.yaml", "asterism space describe shop"),
)


@app.command(
    short_help="Create a space from a schema file.",
    epilog=examples(
        "asterism space create shop schema.yaml --if-not-exists",
        "asterism space create shop data/metadata.json",
    ),
)
def create(
    context: typer.Context,
    space: Space,
    schema: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            exists=True,
            help="YAML or JSON file of the schema, or what `asterism load` takes as SOURCE.",
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
    """Create a space from a schema file, or with the schema of graph files."""
    command = command_context(context)
    parsed_schema = read_schema(schema)
    with command.client(create=True) as client:
        try:
            info = client.create_space(space, parsed_schema, if_not_exists=if_not_exists)
        except Conflict:
            existing = client.describe(space).schema
            if existing != parsed_schema:
                raise another_schema(space, existing, parsed_schema) from None
            raise
    command.output.result(
        info,
        lambda: (
            f"space {info.name} has {info.schema.parts} parts; "
            f"`{command.command_line(f'load {info.name} SOURCE')}` loads files into it"
        ),
    )


@app.command(
    "list",
    epilog=examples(
        "asterism space list --json",
    ),
)
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
        "spaces",
        ("space", "parts", "node types", "edge types", "version", "created (UTC)"),
        rows,
        optional=("created (UTC)", "edge types", "node types"),
    )


@app.command(
    short_help="Show a schema and the counts of a space.",
    epilog=examples(
        "asterism space describe shop",
    ),
)
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
    schema = info.schema
    types: list[tuple[str, str, Any, int]] = [
        ("node", t.name, t, i) for i, t in enumerate(schema.node_types)
    ]
    types += [("edge", t.name, t, i) for i, t in enumerate(schema.edge_types)]
    rows = []
    for element, name, kind, type_id in types:
        features = ", ".join(f"{f.name} {_feature_type(f)}" for f in kind.features)
        count = f"{manifest.count(element.upper(), type_id):,}" if manifest else "-"
        weight = manifest.weight(element.upper(), type_id) if manifest else "-"
        rows.append((element, name, count, weight if kind.weighted else "-", features or "-"))
    head = (
        f"{info.name}: {schema.parts} parts, ids {schema.ids}, placement "
        f"{schema.placement}, direction {schema.direction}"
    )
    history = [
        (v.version, v.watermark, v.job_id, format_timestamp(v.created_ms), v.digest[:12])
        for v in versions
    ]
    return sections(
        head,
        table("types", ("element", "name", "count", "weight", "features"), rows),
        table(
            "versions",
            ("version", "shows commits up to", "job", "published (UTC)", "digest"),
            history,
            optional=("job", "digest"),
        ),
    )


def _feature_type(feature: Feature) -> str:
    """Return the type of a feature as statements name it, such as ``float32[16]``."""
    if feature.kind == "bytes":
        return "bytes"
    if feature.kind == "ragged":
        return f"list<{feature.dtype}>"
    return f"{feature.dtype}{list(feature.shape) if feature.shape else ''}"


@app.command(
    epilog=examples(
        "asterism space versions shop",
        "asterism space versions shop --json | jq '.[].pins[].owner'",
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
            optional=("digest", "job"),
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
        info.watermark,
        info.job_id,
        format_timestamp(info.created_ms),
        info.digest[:12],
        pin_lines or "-",
    )


@app.command(
    epilog=examples(
        "asterism space drop shop --yes",
    )
)
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
    with command.client() as client:
        exists = any(info.name == space for info in client.spaces()) if if_exists else True
        if not yes and exists:
            if not if_exists:
                client.describe(space)  # ask about an existing space only
            if not is_confirmed(command.output, f"Drop the space {space!r} with all its data?"):
                command.output.print_note(f"space {space} is not dropped")
                raise typer.Exit(ExitCode.FAILED)
        client.drop_space(space, if_exists=if_exists)
    command.output.result(
        {"dropped": space},
        lambda: f"space {space} is dropped" if exists else f"space {space} does not exist",
    )
