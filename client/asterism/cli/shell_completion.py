"""Completion in shells: scripts for bash, zsh and fish, and candidates from the service.

A script passes the line up to the cursor to the command in variables of the environment. The
command prints a candidate per line, with its description after a tab.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, MutableMapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from asterism.cli.context import DEFAULT_ADDRESS
from asterism.cli.global_options import OPTIONS_WITH_VALUE, hoist_global_options
from asterism.cli.help_text import examples
from asterism.extras import MissingExtra
from asterism.transport.credentials import CredentialFile
from asterism.transport.tls import ENVIRONMENT as TLS_VARIABLES
from asterism.transport.tls import tls_from
from asterism_proto.errors import AsterismError

if TYPE_CHECKING:
    from asterism import Client
    from asterism_model.schema import EdgeType, NodeType, Schema

Candidates = list[tuple[str, str]]
"""Candidates with their descriptions."""

_TIMEOUT_S = 2.0
"""Seconds that a key press may wait for the service."""
_MAX_JOBS = 20
_REQUEST = "_ASTERISM_COMPLETE"
_LINE = "_TYPER_COMPLETE_ARGS"
_CALL = f"env {_REQUEST}=complete_fish _TYPER_COMPLETE_FISH_ACTION=get-args {_LINE}"
"""Call of typer's protocol for fish, which has descriptions; the scripts of all shells use it."""
_BASH = f"""
_asterism() {{
    local line=${{COMP_LINE:0:COMP_POINT}} candidate word
    COMPREPLY=()
    while IFS=$'\\t' read -r candidate _; do
        [[ -n $candidate ]] && COMPREPLY+=("$candidate")
    done < <({_CALL}="$line" "$1" 2>/dev/null)
    # Bash ends words at colons, so it replaces the text after the last one only.
    word=${{line##*[[:space:]]}}
    [[ $word == -*=* ]] && word=${{word#*=}}
    if [[ $word == *:* && $COMP_WORDBREAKS == *:* ]]; then
        COMPREPLY=("${{COMPREPLY[@]#"${{word%:*}}:"}}")
    fi
}}
complete -o default -F _asterism asterism
"""
_ZSH = f"""
#compdef asterism
_asterism() {{
    local candidate description colon='\\:'
    local -a candidates
    while IFS=$'\\t' read -r candidate description; do
        [[ -n $candidate ]] && candidates+=("${{candidate//:/$colon}}:$description")
    done < <({_CALL}="${{words[1,CURRENT]}}" "${{words[1]}}" 2>/dev/null)
    [[ $PREFIX == -*=* ]] && compset -P '*='
    if (( $#candidates )); then
        _describe -V 'asterism' candidates
    else
        _files
    fi
}}
compdef _asterism asterism
"""
_FISH = f"""
function __asterism_complete
    set -l line (commandline -cp)
    set -g __asterism_candidates ({_CALL}="$line" asterism 2>/dev/null | string match -r '.+')
    test (count $__asterism_candidates) -gt 0
end
complete --command asterism --no-files --condition __asterism_complete \\
    --arguments '$__asterism_candidates'
"""


class Shell(StrEnum):
    """Shell that can complete the command."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


SCRIPTS = {Shell.BASH: _BASH, Shell.ZSH: _ZSH, Shell.FISH: _FISH}
EXAMPLES = examples(
    "source <(asterism completion bash)    # or in ~/.bashrc",
    "source <(asterism completion zsh)     # or in ~/.zshrc, after compinit",
    "asterism completion fish > ~/.config/fish/completions/asterism.fish",
)


def completion(
    shell: Annotated[Shell, typer.Argument(metavar="bash|zsh|fish", help="The shell.")],
) -> None:
    """Print the script that makes a shell complete this command.

    It completes commands, options, and the names of spaces, types, versions and jobs of the
    service at --address, ASTERISM_ADDRESS or --path.
    """
    print(SCRIPTS[shell].strip())


def prepare_request(environment: MutableMapping[str, str]) -> None:
    """Move the global options of a line that is to be completed before its command."""
    line = environment.get(_LINE, "")
    if not line or _REQUEST not in environment:
        return
    try:
        program, *words = shlex.split(line)
    except ValueError:  # within quotes
        return
    incomplete = "" if line.endswith(" ") or not words else words.pop()
    if words and words[-1] in OPTIONS_WITH_VALUE:
        return  # the value of a global option is completed
    complete = shlex.join([program, *hoist_global_options(words)])
    environment[_LINE] = f"{complete} {shlex.quote(incomplete) if incomplete else ''}"


def choices(*values: str) -> Callable[[str], list[str]]:
    """Return a completion of fixed values."""

    def complete(incomplete: str) -> list[str]:
        return [value for value in values if value.startswith(incomplete)]

    return complete


def complete_spaces(context: typer.Context) -> Candidates:
    """Return the graph spaces, with their current versions."""

    def candidates(client: Client) -> Candidates:
        return [
            (info.name, f"version {info.version}" if info.version else "no version yet")
            for info in sorted(client.spaces(), key=lambda info: info.name)
        ]

    return _ask_service(context, candidates)


def complete_jobs(context: typer.Context) -> Candidates:
    """Return the newest jobs, with kind, space and state."""

    def candidates(client: Client) -> Candidates:
        jobs = client.jobs(None, (), limit=_MAX_JOBS)
        return [(str(job.job_id), f"{job.kind} {job.space} {job.state}") for job in jobs]

    return _ask_service(context, candidates)


def complete_versions(context: typer.Context) -> Candidates:
    """Return the versions of the space on the line, newest first."""

    def candidates(client: Client) -> Candidates:
        versions = sorted(client.versions(_space(context)), key=lambda info: -info.version)
        return [(str(info.version), f"job {info.job_id}") for info in versions]

    return _ask_service(context, candidates)


def complete_node_types(context: typer.Context) -> Candidates:
    """Return the node types of the space on the line."""
    return _ask_schema(
        context, lambda schema: [(node_type.name, "node type") for node_type in schema.node_types]
    )


def complete_edge_types(context: typer.Context, incomplete: str) -> Candidates:
    """Return the edge types of the space on the line: relations, full names after a colon."""

    def candidates(schema: Schema) -> Candidates:
        relations = [edge_type.relation for edge_type in schema.edge_types]
        return [
            (
                edge_type.relation
                if ":" not in incomplete and relations.count(edge_type.relation) == 1
                else edge_type.name,
                edge_type.name,
            )
            for edge_type in schema.edge_types
        ]

    return _ask_schema(context, candidates)


def complete_types(context: typer.Context, incomplete: str) -> Candidates:
    """Return the node types and the edge types of the space on the line."""
    return [*complete_node_types(context), *complete_edge_types(context, incomplete)]


def complete_weights(context: typer.Context) -> Candidates:
    """Return the weight columns of the space on the line."""

    def candidates(schema: Schema) -> Candidates:
        types: list[NodeType | EdgeType] = [*schema.node_types, *schema.edge_types]
        named = {table.name: table.expression for kind in types for table in kind.tables}
        return [("weight", "weight of each type"), *named.items()]

    return _ask_schema(context, candidates)


class _NoSpace(Exception):
    """Raised if the line names no space."""


def _space(context: typer.Context) -> str:
    # A line that ends with the name of an option is not parsed to the end.
    for space in (context.params.get("space"), *context.args):
        if isinstance(space, str):
            return space
    raise _NoSpace


def _ask_service(context: typer.Context, candidates: Callable[[Client], Candidates]) -> Candidates:
    """Return candidates from the service on the line; none if it does not answer."""
    options = context.find_root().params
    path, address = options.get("path"), options.get("address")
    key_file = options.get("api_key_file")
    try:
        import asterism

        with (
            asterism.open(path, mode="r", timeout_s=_TIMEOUT_S)
            if path is not None
            else asterism.connect(
                address or DEFAULT_ADDRESS,
                timeout_s=_TIMEOUT_S,
                tls=tls_from({field: options.get(f"tls_{field}") for field in TLS_VARIABLES})
                or False,
                api_key=None if key_file is None else CredentialFile(key_file),
            )
        ) as client:
            return candidates(client)
    except (AsterismError, MissingExtra, OSError, _NoSpace):
        return []


def _ask_schema(context: typer.Context, candidates: Callable[[Schema], Candidates]) -> Candidates:
    """Return candidates from the schema of the space on the line."""
    return _ask_service(context, lambda client: candidates(client.describe(_space(context)).schema))
