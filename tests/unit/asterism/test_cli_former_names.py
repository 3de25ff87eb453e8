"""Tests that former names of options, now hidden, equal the new ones."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer.main

from asterism import export, ingest
from asterism.cli.app import app, run
from asterism.cli.context import CommandContext
from asterism.cli.exit_codes import ExitCode
from asterism_proto.errors import Conflict

SAMPLE_COMMANDS = {
    "nodes": "shop",
    "edges": "shop",
    "neighbors": "shop 1 --type buys",
    "fanout": "shop 1 --hop buys=2",
    "like": "shop 1",
    "negatives": "shop 1",
    "labels": "shop",
    "walk": "shop 1",
    "pinsage": "shop 1",
    "pairs": "shop a2b",
    "subgraph": "shop 1 --fanout 2",
    "ego": "shop 1 --fanout 2",
    "induced": "shop 1",
    "labor": "shop 1 --fanout 2",
    "hgt": "shop 1 --count 2",
    "layer": "shop 1",
    "adjacency": "shop --rows 1 --cols 2",
    "top": "shop 1",
    "pagerank": "shop 1",
    "all": "shop 1",
    "degrees": "shop 1 --type buys",
    "graphs": "shop a",
}
EXPORTS = {
    "dgl": "--space shop --out o --parts 2",
    "assignment": "--space shop --out o --parts 2",
    "chunks": "--space shop --out o",
}
JOBS = {
    "submit": "shop --wait",
    "index": "shop item price --wait",
    "recover": "7 --wait",
    "wait": "7",
}
RENAMES = [
    *(
        (f"sample {name} {rest}", "--at 3", "--graph-version 3")
        for name, rest in SAMPLE_COMMANDS.items()
    ),
    *((f"export {name} {rest}", "--at 3", "--graph-version 3") for name, rest in EXPORTS.items()),
    *((f"job {name} {rest}", "--within 5", "--total-timeout 5") for name, rest in JOBS.items()),
    ("job submit shop --wait", "--at 3", "--graph-version 3"),
    ("backup shop a", "--at 3", "--graph-version 3"),
    ("backup shop a", "--within 5", "--total-timeout 5"),
    ("restore a", "--within 5", "--total-timeout 5"),
    ("restore a", "--as shop2", "--name shop2"),
    ("verify shop", "--at 3", "--graph-version 3"),
    ("verify shop", "--within 5", "--total-timeout 5"),
    ("load shop .", "--again", "--force"),
    ("export chunks --space shop --out o", "--edges numpy", "--edge-format numpy"),
    *(
        (f"sample {name} {SAMPLE_COMMANDS[name]}", "--distinct", "--no-replace")
        for name in ("nodes", "edges", "neighbors", "fanout", "layer")
    ),
    *(
        (f"sample {name} {SAMPLE_COMMANDS[name]}", former, new)
        for name in ("subgraph", "ego")
        for former, new in (("--repeats", "--replace"), ("--every", "--expand-all-hops"))
    ),
    ("sample neighbors shop 1 --type buys", "--until 7", "--seed-time 7"),
    ("sample subgraph shop 1 --fanout 2", "--until 7", "--seed-time 7"),
    ("sample neighbors shop 1 --type buys --seed-time 7", "--last", "--strategy last"),
    ("sample subgraph shop 1 --fanout 2 --seed-time 7", "--last", "--strategy last"),
    ("sample walk shop 1", "--distinct", "--first-step distinct"),
    ("sample pairs shop a2b", "--independent", "--first-step independent"),
    ("sample pairs shop a2b", "--excluded a2b", "--exclude-pairs a2b"),
    ("sample labor shop 1 --fanout 2", "--first", "--no-expand-all-hops"),
    ("sample labor shop 1 --fanout 2", "--same", "--layer-dependency"),
    ("sample ego shop 1 --fanout 2", "--merged", "--union"),
    ("sample ego shop 1 --fanout 2", "--among a --among b", "--induced-type a --induced-type b"),
    ("sample hgt shop 1 --count 2", "--among a --among b", "--induced-type a --induced-type b"),
    ("sample negatives shop 1", "--but a --but b", "--exclude a --exclude b"),
    ("sample like shop 1", "--unknown none", "--on-unknown none"),
]
PGLBOX = ("sample pglbox shop {config}", "--at 3", "--graph-version 3")
DELIBERATELY_HIDDEN = {("console", "--state-home")}


class Recorder:
    """A client and a graph that record calls; calls that need a service fail."""

    schema = SimpleNamespace(has_string_ids=False)

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def graph(self, space: str) -> Recorder:
        return self

    def submit_job(self, *arguments: Any, **options: Any) -> SimpleNamespace:
        self.calls.append(("submit_job", arguments, options))
        return SimpleNamespace(job_id=7)

    def recover_job(self, job_id: int) -> SimpleNamespace:
        return SimpleNamespace(job_id=job_id)

    def __getattr__(self, name: str) -> Any:
        def record(*arguments: Any, **options: Any) -> None:
            for volatile in ("progress", "on_progress"):
                options.pop(volatile, None)
            self.calls.append((name, arguments, options))
            raise Conflict("recorded")

        return record


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    recorder = Recorder()

    @contextmanager
    def client(self: CommandContext, **options: Any) -> Iterator[Recorder]:
        yield recorder

    monkeypatch.setattr(CommandContext, "client", client)
    for module, name in ((ingest, "load"), *((export, name) for name in EXPORTS)):
        monkeypatch.setattr(module, name, getattr(recorder, f"{module.__name__}.{name}"))
    return recorder


def recorded(recorder: Recorder, command: str, options: str = "") -> list[Any]:
    recorder.calls.clear()
    assert run(["--json", *shlex.split(f"{command} {options}")]) == ExitCode.CONFLICT
    return list(recorder.calls)


@pytest.mark.parametrize(("command", "former", "new"), RENAMES)
def test_a_former_name_of_an_option_works_like_the_new_one(
    recorder: Recorder, command: str, former: str, new: str
) -> None:
    by_new_name = recorded(recorder, command, new)
    assert by_new_name != recorded(recorder, command)
    assert recorded(recorder, command, former) == by_new_name


def options_of(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, str, Any]]:
    """Yield the path, the spelling and the parameter of every option of a tree of commands."""
    for name, subcommand in getattr(command, "commands", {}).items():
        yield from options_of(subcommand, (*path, name))
    for parameter in command.params:
        for spelling in (*parameter.opts, *parameter.secondary_opts):
            if spelling.startswith("-"):
                yield " ".join(path), spelling, parameter


def path_of(command: str) -> str:
    """Return the names of a command without its arguments."""
    names = command.split()
    return " ".join(names[:2] if names[0] in ("sample", "export", "job") else names[:1])


def former_names() -> set[tuple[str, str]]:
    return {(path_of(command), former.split()[0]) for command, former, _ in [*RENAMES, PGLBOX]}


def test_every_hidden_option_is_a_former_name() -> None:
    hidden = {
        (path, spelling)
        for path, spelling, parameter in options_of(typer.main.get_command(app))
        if parameter.hidden
    }
    assert hidden - DELIBERATELY_HIDDEN == former_names()


@pytest.mark.parametrize("path", sorted({path for path, _ in former_names()}))
def test_help_and_completion_do_not_list_former_names(
    path: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert run([*path.split(), "--help"]) == ExitCode.DONE
    shown = set(capsys.readouterr().out.replace("/", " ").replace(",", " ").split())
    command: Any = typer.main.get_command(app)
    for name in path.split():
        command = command.commands[name]
    context = command.make_context(path, [], resilient_parsing=True)
    completed = {item.value for item in command.shell_complete(context, "--")}
    visible = {
        spelling
        for _, spelling, parameter in options_of(command)
        if not parameter.hidden and spelling.startswith("--")
    }
    former = {spelling for at, spelling in former_names() if at == path}
    assert not former & (shown | completed)
    assert visible <= completed


def test_the_limits_of_an_option_hold_for_its_former_name(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["sample", "nodes", "shop", "--at", "0"]) == ExitCode.USAGE
    assert "--at" in capsys.readouterr().err


def test_a_former_name_of_pglbox_works_like_the_new_one(recorder: Recorder, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("")
    command, former, new = PGLBOX
    by_new_name = recorded(recorder, command.format(config=config), new)
    assert by_new_name[0][0] == "at"
    assert recorded(recorder, command.format(config=config), former) == by_new_name
