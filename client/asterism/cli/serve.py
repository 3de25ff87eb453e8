"""`asterism serve`: the whole service in one process, with open ports."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from asterism.cli.context import command_context
from asterism.cli.help_text import examples
from asterism.cli.warm import compile_kernels
from asterism.extras import required
from asterism.transport.credentials import is_loopback
from asterism_io.termination_signals import TerminationSignals
from asterism_io.tls_options import TlsOptions
from asterism_proto.errors import InvalidRequest

EXAMPLES = examples(
    "asterism serve data/ --tls-cert host.pem --tls-key host.key",
    "asterism serve data/ --cluster-key-file cluster.key",
    "asterism serve data/ --listen 0.0.0.0:9669 --insecure",
)


def serve(
    context: typer.Context,
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH",
            file_okay=False,
            help="Data folder; created if it is missing.",
        ),
    ],
    *,
    listen: Annotated[
        str,
        typer.Option(metavar="HOST:PORT", help="Address of the gRPC endpoint; port 0 picks one."),
    ] = "127.0.0.1:9669",
    http_listen: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT",
            help="Address of the HTTP endpoint (pages, health, metrics, API); port 0 picks one.",
        ),
    ] = "127.0.0.1:19669",
    http_name: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Host name that the HTTP endpoint accepts, besides those of this machine (.NAME: "
            "the domain; *: any). Repeatable.",
        ),
    ] = None,
    allow_address: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS",
            help="Folder that jobs may read and write (file:///srv/exports, s3://bucket/prefix; "
            "*: any). Repeatable. Default: local folders if both ports listen on the loopback "
            "interface and there is no --http-name; otherwise none.",
        ),
    ] = None,
    tls_client_auth: Annotated[
        Literal["none", "required"],
        typer.Option(
            help="With --tls-cert and --tls-key, both endpoints use TLS. required: they also "
            "demand a certificate of each client, signed by an authority in --tls-ca."
        ),
    ] = "none",
    cluster_key_file: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="Turn access control on with the key in this file (`asterism access "
            "create-cluster-key` makes one): every caller needs an API key or a ticket.",
        ),
    ] = "",
    audit_file: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="Record changes and refused calls in this file, as JSON lines; it is rotated.",
        ),
    ] = "",
    token_issuer: Annotated[
        str,
        typer.Option(
            metavar="URL",
            show_default=False,
            help="With --cluster-key-file, accept tokens of this OpenID Connect issuer too.",
        ),
    ] = "",
    token_audience: Annotated[
        str,
        typer.Option(
            metavar="NAME", show_default=False, help="Audience of the tokens of --token-issuer."
        ),
    ] = "",
    setting: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Another setting of one process, such as http_connections=200 or "
            "token_name_claim=email; docs/settings.md has all. Repeatable.",
        ),
    ] = None,
    insecure: Annotated[
        bool,
        typer.Option(
            "--insecure",
            envvar="ASTERISM_INSECURE",
            help="Listen on other addresses than loopback ones even without TLS and "
            "--cluster-key-file: everyone who reaches a port may do everything.",
        ),
    ] = False,
) -> None:
    """Serve a folder until SIGTERM or Ctrl-C: metad, storaged and graphd in one process."""
    command = command_context(context)
    output, tls_files = command.output, command.tls_arguments or TlsOptions()
    for option, address in (("--listen", listen), ("--http-listen", http_listen)):
        check_listen_address(option, address)
    with output.activity("starting"), required("server", "asterism serve"):
        from asterism_standalone.settings import StandaloneSettings

    allowed = allowed_addresses(
        allow_address or (), listen=listen, http_listen=http_listen, http_names=http_name or ()
    )
    settings = StandaloneSettings.of(
        {
            "allowed_addresses": allowed,
            "tls_cert": tls_files.cert,
            "tls_key": tls_files.key,
            "tls_ca": tls_files.ca,
            "tls_client_auth": tls_client_auth,
            "cluster_key_file": cluster_key_file,
            "insecure": insecure,
            "audit_file": audit_file,
            "token_issuer": token_issuer,
            "token_audience": token_audience,
            **more_settings(setting or ()),
        }
    )
    # What is wrong is reported before kernels are compiled and the folder is opened.
    exposed = settings.insecure_addresses(listen=listen, http_listen=http_listen)
    settings.tls()
    settings.access_control()
    compile_kernels(output, feature="asterism serve")
    termination = TerminationSignals()
    with output.activity(f"opening {path}"):
        with required("server", "asterism serve"):
            from asterism_standalone import app as standalone
        service = standalone.Standalone(path, settings)
    try:
        service.start(on_wait=lambda missing: output.print_note(f"waiting: {missing}"))
        ports = service.open_ports(
            listen=listen, http_listen=http_listen, http_names=http_name or ()
        )
        output.result(
            {"path": str(path), "address": ports.address, "http_address": ports.http_address},
            lambda: (
                f"Asterism serves {path}\n  gRPC  {ports.address}\n  pages "
                f"{'https' if settings.tls_cert else 'http'}://{ports.http_address}/ui\n"
                "  stop  Ctrl-C"
            ),
        )
        if exposed:
            output.print_note(
                f"warning: other hosts reach {', '.join(exposed)} without complete protection, as "
                "--insecure permits"
            )
        termination.wait()
        output.print_note("stopping")
    finally:
        service.stop()


def check_listen_address(option: str, address: str) -> None:
    """Raise InvalidRequest unless an option is ``host:port``, before anything is started."""
    host, _, port = address.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise InvalidRequest(
            f"{option}={address!r}: expected host:port, such as 127.0.0.1:9669; port 0 picks one"
        )


def more_settings(texts: Sequence[str]) -> dict[str, str]:
    """Return the settings in texts ``name=value``; InvalidRequest for another text."""
    settings: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise InvalidRequest(
                f"--setting={text!r}: expected NAME=VALUE, such as http_connections=200"
            )
        settings[name] = value
    return settings


def allowed_addresses(
    addresses: Sequence[str], *, listen: str, http_listen: str, http_names: Sequence[str]
) -> str:
    """Return the setting ``allowed_addresses`` of a served folder.

    Only processes of this host can connect to a loopback interface. By default these processes may
    name local folders. An additional name of the HTTP port implies a proxy that forwards requests
    from other hosts; in that case no folder is allowed by default."""
    local = not http_names and is_loopback(listen) and is_loopback(http_listen)
    return ",".join(addresses) if addresses else "file:///" if local else ""
