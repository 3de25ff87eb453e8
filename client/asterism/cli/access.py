"""`asterism access`: API keys, roles in spaces, limits, and the first administrator."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import typer

from asterism.cli.context import command_context
from asterism.cli.help_text import examples
from asterism.cli.output import format_timestamp, table, to_json_value
from asterism.cli.shell_completion import choices, complete_spaces
from asterism.extras import required
from asterism.records.access import ROLES
from asterism_proto.errors import InvalidRequest

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asterism.records.access import AccessLimits, ApiKey, RoleGrant

BOOTSTRAP_S = 3600
"""Seconds for which the ticket of `bootstrap` is valid."""
_DAY_S = 86_400

app = typer.Typer(
    no_args_is_help=True,
    help="Manage API keys, roles in spaces, and limits.",
    epilog=examples(
        "asterism access create-key alice --quiet > alice.key",
        "asterism access grant alice shop reader",
    ),
)

Principal = Annotated[str, typer.Argument(metavar="PRINCIPAL", help="Name of the user or service.")]
GrantSpace = Annotated[
    str,
    typer.Argument(
        metavar="SPACE",
        help="Name of the graph space; '*' for every space.",
        autocompletion=complete_spaces,
    ),
]
OfPrincipal = Annotated[
    str | None, typer.Option("--principal", metavar="NAME", help="Only those of this principal.")
]
InSpace = Annotated[
    str | None,
    typer.Option(
        "--space",
        metavar="SPACE",
        help="Only those in this space.",
        autocompletion=complete_spaces,
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but the secret.")]


@app.command(
    short_help="Create an API key; print its secret once.",
    epilog=examples(
        "asterism access create-key alice --expires-days 90",
        "asterism access create-key trainer --quiet > trainer.key",
    ),
)
def create_key(
    context: typer.Context,
    principal: Principal,
    *,
    expires_days: Annotated[
        float | None,
        typer.Option(
            "--expires-days",
            metavar="DAYS",
            help="Days for which the key is valid. Default: no end.",
        ),
    ] = None,
    description: Annotated[
        str, typer.Option(metavar="TEXT", help="Text for lists, such as the purpose.")
    ] = "",
    quiet: Quiet = False,
) -> None:
    """Create an API key of a principal, and print it. It cannot be shown again.

    The key has the roles that are granted to its principal, also later."""
    command = command_context(context)
    with command.client() as client:
        key = client.create_api_key(
            principal,
            expires_s=None if expires_days is None else expires_days * _DAY_S,
            description=description,
        )
    if quiet and not command.output.as_json:
        print(key.secret)
        return
    command.output.result(
        {**to_json_value(key), "secret": key.secret},
        lambda: (
            f"key {key.key_id} of {principal}, {_validity(key)}; keep the key, which is not shown "
            f"again:\n{key.secret}"
        ),
    )


def _validity(key: ApiKey) -> str:
    """Return until when a new key is valid."""
    return f"valid until {format_timestamp(key.expires_ms)} UTC" if key.expires_ms else "no end"


@app.command(short_help="List API keys.", epilog=examples("asterism access list-keys"))
def list_keys(context: typer.Context, *, principal: OfPrincipal = None) -> None:
    """List API keys, without their secrets."""
    command = command_context(context)
    with command.client(allow_read_only=True) as client:
        keys = client.api_keys(principal)
    now_ms = time.time_ns() // 1_000_000
    command.output.result(keys, lambda: _keys_table(keys, now_ms))


def _keys_table(keys: list[ApiKey], now_ms: int) -> RenderableType:
    rows = [
        (
            key.key_id,
            key.principal,
            _key_state(key, now_ms),
            format_timestamp(key.created_ms),
            format_timestamp(key.expires_ms),
            key.description or "-",
        )
        for key in keys
    ]
    return table(
        "API keys",
        ("key id", "principal", "state", "created (UTC)", "expires (UTC)", "description"),
        rows,
        optional=("created (UTC)", "description", "expires (UTC)"),
    )


def _key_state(key: ApiKey, now_ms: int) -> str:
    if key.revoked_ms:
        return "revoked"
    return "expired" if key.expires_ms and key.expires_ms <= now_ms else "valid"


@app.command(
    short_help="Revoke an API key.", epilog=examples("asterism access revoke-key V1StGXR8Z5jd")
)
def revoke_key(
    context: typer.Context,
    key_id: Annotated[str, typer.Argument(metavar="KEY_ID", help="Id of the key, from list-keys.")],
) -> None:
    """Revoke an API key. Calls with it are refused from then on."""
    command = command_context(context)
    with command.client() as client:
        key = client.revoke_api_key(key_id)
    command.output.result(key, lambda: f"key {key.key_id} of {key.principal} is revoked")


@app.command(
    short_help="Grant a role in a space.",
    epilog=examples(
        "asterism access grant alice shop reader",
        "asterism access grant ops '*' admin",
    ),
)
def grant(
    context: typer.Context,
    principal: Principal,
    space: GrantSpace,
    role: Annotated[
        str,
        typer.Argument(
            metavar="reader|writer|builder|admin",
            help="Role; each has the rights of those before it.",
            autocompletion=choices(*ROLES),
        ),
    ],
) -> None:
    """Grant a role in a space, in the place of the principal's role there.

    A reader samples, a writer also writes, a builder also submits jobs, and an admin also grants
    roles and drops the space. An admin of '*' administers the cluster."""
    command = command_context(context)
    with command.client() as client:
        granted = client.grant(principal, space, role)
    command.output.result(
        granted, lambda: f"{granted.principal} has the role {granted.role} in {_where(space)}"
    )


@app.command(
    short_help="Remove a role in a space.",
    epilog=examples("asterism access revoke alice shop"),
)
def revoke(context: typer.Context, principal: Principal, space: GrantSpace) -> None:
    """Remove a principal's role in a space."""
    command = command_context(context)
    with command.client() as client:
        notice = client.revoke(principal, space)
    command.output.result(
        {"principal": principal, "space": space, "role": None, "notice": notice},
        lambda: f"{principal} has no role of its own in {_where(space)}",
    )
    if notice:
        command.output.print_note(f"note: {notice}")


def _where(space: str) -> str:
    return "every space" if space == "*" else f"space {space}"


@app.command(
    short_help="List roles in spaces.",
    epilog=examples("asterism access grants --space shop"),
)
def grants(context: typer.Context, *, principal: OfPrincipal = None, space: InSpace = None) -> None:
    """List the roles that principals have in spaces."""
    command = command_context(context)
    with command.client(allow_read_only=True) as client:
        rows = client.grants(principal, space)
    command.output.result(rows, lambda: _grants_table(rows))


def _grants_table(rows: list[RoleGrant]) -> RenderableType:
    return table(
        "roles",
        ("principal", "space", "role"),
        [(grant.principal, grant.space, grant.role) for grant in rows],
    )


@app.command(
    short_help="List limits of principals.",
    epilog=examples("asterism access limits --principal alice"),
)
def limits(context: typer.Context, *, principal: OfPrincipal = None, space: InSpace = None) -> None:
    """List the limits of principals; `set-limits` changes them."""
    command = command_context(context)
    with command.client(allow_read_only=True) as client:
        rows = client.access_limits(principal, space)
    command.output.result(rows, lambda: limits_table(rows))


def limits_table(rows: list[AccessLimits]) -> RenderableType:
    """Return a table with a row per principal and space; a dash is no limit."""
    return table(
        "limits",
        (
            "principal",
            "space",
            "calls/s",
            "rows/s",
            "bytes/s",
            "calls at a time",
            "stored bytes",
            "pins",
            "jobs",
            "share",
        ),
        [
            (
                row.principal,
                row.space,
                row.calls_per_s or "-",
                row.rows_per_s or "-",
                row.bytes_per_s or "-",
                row.concurrent_calls or "-",
                row.stored_bytes or "-",
                row.pins or "-",
                row.jobs or "-",
                row.share or 1.0,
            )
            for row in rows
        ],
        optional=("share", "pins", "jobs", "stored bytes", "calls at a time"),
    )


class _LimitValues(TypedDict):
    """Limits by field; 0 is no limit."""

    calls_per_s: float
    rows_per_s: float
    bytes_per_s: float
    concurrent_calls: int
    stored_bytes: int
    pins: int
    jobs: int
    share: float


def _limit(text: str) -> Any:
    """Return the option of a limit; its default of 0 is not shown."""
    return typer.Option(metavar="NUMBER", help=text, show_default=False)


@app.command(
    "set-limits",
    short_help="Set the limits of a principal.",
    epilog=examples(
        "asterism access set-limits alice --space shop --calls-per-s 100",
        "asterism access set-limits '*' --concurrent-calls 32 --jobs 2",
        "asterism access set-limits alice --space shop --remove",
    ),
)
def set_limits(
    context: typer.Context,
    principal: Annotated[
        str,
        typer.Argument(
            metavar="PRINCIPAL",
            help="Name of the principal; '*' for each without limits of its own.",
        ),
    ],
    *,
    space: Annotated[
        str,
        typer.Option(
            metavar="SPACE",
            help="Space of the limits. Default: all spaces together.",
            show_default=False,
            autocompletion=complete_spaces,
        ),
    ] = "*",
    calls_per_s: Annotated[float, _limit("Calls per second.")] = 0.0,
    rows_per_s: Annotated[float, _limit("Rows per second.")] = 0.0,
    bytes_per_s: Annotated[float, _limit("Bytes per second.")] = 0.0,
    concurrent_calls: Annotated[int, _limit("Calls at a time.")] = 0,
    stored_bytes: Annotated[int, _limit("Bytes on the disks of all storageds; of '*' only.")] = 0,
    pins: Annotated[int, _limit("Pinned versions.")] = 0,
    jobs: Annotated[int, _limit("Jobs that wait or run.")] = 0,
    share: Annotated[
        float, _limit("Weight of the principal's turns while calls wait. Default: 1.")
    ] = 0.0,
    remove: Annotated[bool, typer.Option("--remove", help="Remove all limits there.")] = False,
) -> None:
    """Set the limits of a principal in a space, in the place of all its limits there."""
    command = command_context(context)
    values = _LimitValues(
        calls_per_s=calls_per_s,
        rows_per_s=rows_per_s,
        bytes_per_s=bytes_per_s,
        concurrent_calls=concurrent_calls,
        stored_bytes=stored_bytes,
        pins=pins,
        jobs=jobs,
        share=share,
    )
    if any(values.values()) == remove:
        raise InvalidRequest(
            "set-limits: expected at least one limit, or --remove alone; for example "
            "--calls-per-s 100"
        )
    with command.client() as client:
        row = client.set_access_limits(principal, space, **values)
    command.output.result(
        row,
        lambda: (
            f"{principal} has no limits of its own in {_where(space)}"
            if remove
            else limits_table([row])
        ),
    )


@app.command(
    short_help="Sign a ticket for the first administrator.",
    epilog=examples(
        "asterism access bootstrap --cluster-key-file cluster.key --quiet > root.ticket",
        "asterism access grant ops '*' admin --api-key-file root.ticket",
    ),
)
def bootstrap(
    context: typer.Context,
    *,
    cluster_key_file: Annotated[
        Path,
        typer.Option(metavar="FILE", help="Key of the cluster, which its daemons have too."),
    ],
    principal: Annotated[
        str, typer.Option(metavar="NAME", help="Name of the caller in the audit log.")
    ] = "root",
    quiet: Quiet = False,
) -> None:
    """Sign a ticket that permits everything for one hour, and print it.

    Nothing is sent to the service. Use the ticket as an API key, to create API keys and grant
    roles."""
    command = command_context(context)
    with required("server", "asterism access bootstrap"):
        from asterism_access.credentials.cluster_key import ClusterKey

    ticket = ClusterKey(str(cluster_key_file)).root_ticket(BOOTSTRAP_S, principal)
    if quiet and not command.output.as_json:
        print(ticket)
        return
    command.output.result(
        {"principal": principal, "valid_s": BOOTSTRAP_S, "secret": ticket},
        lambda: f"ticket of {principal}, valid for one hour; use it as an API key:\n{ticket}",
    )


@app.command(
    "create-cluster-key",
    short_help="Create the key file of a cluster.",
    epilog=examples("asterism access create-cluster-key cluster.key"),
)
def create_cluster_key(
    context: typer.Context,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="New file, which only its owner can read.")
    ],
    *,
    if_missing: Annotated[
        bool, typer.Option("--if-missing", help="Keep the file if it exists and has a key.")
    ] = False,
) -> None:
    """Create a file with a random key, for the setting cluster_key_file of all daemons.

    Nothing is sent to the service, and the key is not printed."""
    command = command_context(context)
    with required("server", "asterism access create-cluster-key"):
        from asterism_access.credentials.cluster_key import ClusterKey, create_key_file

    is_kept = if_missing and file.exists()
    if is_kept:
        ClusterKey(str(file))  # it has a key, and others cannot read it
    else:
        create_key_file(file)
    command.output.result(
        {"file": str(file), "created": not is_kept},
        lambda: f"{file} {'has a key already' if is_kept else 'has a new key'}",
    )
