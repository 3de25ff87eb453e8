"""Tests of help texts: examples, words for values, and lines that fit 80 columns."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer.main

from asterism.cli.app import app, run
from asterism.cli.exit_codes import ExitCode


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the path of every command that is not a group."""
    subcommands = getattr(command, "commands", None)
    if subcommands is None:
        yield path, command
    for name, subcommand in (subcommands or {}).items():
        yield from commands(subcommand, (*path, name))


COMMANDS = dict(commands(typer.main.get_command(app)))
GROUPS = (
    (),
    ("space",),
    ("job",),
    ("sample",),
    ("export",),
    ("metad",),
    ("access",),
    ("certificates",),
)


def help_of(path: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> str:
    assert run([*path, "--help"]) == ExitCode.DONE
    return capsys.readouterr().out


def example_lines(text: str) -> list[str]:
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.strip() in ("Example:", "Examples:"))
    return [line.strip() for line in lines[start + 1 :] if line.strip()]


@pytest.mark.parametrize("path", [*GROUPS, *COMMANDS], ids=" ".join)
def test_help_names_no_types_and_fits_80_columns(
    path: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = help_of(path, capsys)
    for word in (
        "<bool>",
        "<int",
        "<str",
        "list[",
        "<float",
        "<path",
        "BOOLEAN",
        "INTEGER",
        "x>=",
        "<=x",
        "╭",
    ):
        assert word not in text
    examples = example_lines(text)
    assert "{" not in text.splitlines()[0]
    lines = [line for line in text.splitlines() if line.strip() not in examples]
    assert max(map(len, lines)) <= 80
    assert not any(line.startswith("  ") and line.endswith("...") for line in lines)


@pytest.mark.parametrize("path", [*GROUPS, *COMMANDS], ids=" ".join)
def test_every_command_has_examples_of_itself(
    path: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = example_lines(help_of(path, capsys))
    assert any(" ".join(["asterism", *path]) in line for line in lines)


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_options_in_examples_exist(
    path: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    own = " ".join(["asterism", *path])
    program: Any = typer.main.get_command(app)
    options = {opt for p in (*COMMANDS[path].params, *program.params) for opt in p.opts}
    options |= {opt for p in COMMANDS[path].params for opt in p.secondary_opts}
    for line in example_lines(help_of(path, capsys)):
        if own in line:
            words = shlex.split(line.partition(own)[2].split("|")[0], comments=True)
            assert {word for word in words if word.startswith("-") and word != "-1"} <= options


def test_short_help_works_for_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["space", "list", "-h"]) == ExitCode.DONE
    assert "Usage: asterism space list" in capsys.readouterr().out


def test_a_group_without_command_prints_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == ExitCode.USAGE
    out, err = capsys.readouterr()
    assert out.startswith("Usage: asterism [OPTIONS] COMMAND")
    assert err == ""
