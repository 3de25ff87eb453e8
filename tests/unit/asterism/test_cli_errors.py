"""Tests of errors of the command: JSON documents, options instead of arguments, interruptions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import typer.main

from asterism.cli.app import app, run
from asterism.cli.context import CommandContext
from asterism.cli.error_wording import in_options, option_spellings
from asterism.cli.exit_codes import ExitCode
from asterism.cli.interruption import CommandInterrupted, advice_on_interrupt
from asterism_proto.errors import Corrupt, InvalidRequest, NotFound, SourceLocation


def fail_with(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make each command that needs a service fail."""

    @contextmanager
    def client(self: CommandContext, **options: Any) -> Iterator[Any]:
        raise error
        yield

    monkeypatch.setattr(CommandContext, "client", client)


@pytest.mark.parametrize(
    ("arguments", "error", "code", "document"),
    [
        (
            ["space", "describe", "shp", "--json"],
            NotFound("space 'shp' does not exist; there is shop"),
            ExitCode.NOT_FOUND,
            {"error": "NotFound", "message": "space 'shp' does not exist; there is shop"},
        ),
        (
            ["--json", "sample", "nodes", "shop"],
            InvalidRequest("line 1, column 3:\n  a >\n    ^", SourceLocation(line=1, column=3)),
            ExitCode.USAGE,
            {"error": "InvalidRequest", "message": "line 1, column 3: a > ^", "column": 3},
        ),
        (["status", "--json"], CommandInterrupted("interrupted; go on"), ExitCode.INTERRUPTED, {}),
        (["status", "--json"], KeyboardInterrupt(), ExitCode.INTERRUPTED, {"error": "Interrupted"}),
        (
            ["status", "--json"],
            FileNotFoundError(2, "No such file", "x.csv"),
            ExitCode.FAILED,
            {"error": "FileNotFoundError", "message": "x.csv: No such file"},
        ),
    ],
)
def test_errors_are_json_on_standard_error(
    arguments: list[str],
    error: BaseException,
    code: ExitCode,
    document: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fail_with(error, monkeypatch)
    assert run(arguments) == code
    out, err = capsys.readouterr()
    shown = json.loads(err)
    assert out == ""
    assert err.count("\n") == 1
    assert shown["exit_code"] == code
    assert {key: shown[key] for key in document} == document


@pytest.mark.parametrize(
    "arguments", [["--json", "frobnicate"], ["space", "list", "--json", "--frob"]]
)
def test_a_usage_error_is_json_too(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == ExitCode.USAGE
    out, err = capsys.readouterr()
    shown = json.loads(err)
    assert (out, shown["error"], shown["exit_code"]) == ("", "UsageError", 2)
    assert arguments[-1] in shown["message"]


def test_json_after_two_dashes_is_an_argument(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["frobnicate", "--", "--json"]) == ExitCode.USAGE
    assert capsys.readouterr().err.startswith("asterism: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sample", "nodes", "shop", "-n", "abc"], "--count='abc': expected an integer"),
        (["--timeout", "soon", "status"], "--timeout='soon': expected a number"),
        (["job", "show", "x"], "JOB='x': expected an integer"),
        (
            ["verify", "shop", "--draws", "9"],
            "--draws='9': expected a value greater than or equal to 1000",
        ),
        (["completion", "tcsh"], "shell='tcsh': expected one of 'bash', 'zsh', 'fish'"),
        (["sample", "nodes", "-n"], "Option '-n' requires an argument"),
        (["job", "submit", "shop", "--kind", "index"], "use `asterism job index SPACE TYPE"),
        (["serve", "x", "--listen", "here"], "--listen='here': expected host:port"),
        (["serve", "x", "--http-listen", "a:99999"], "--http-listen='a:99999': expected host:port"),
    ],
)
def test_usage_errors_name_option_value_and_expectation(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == ExitCode.USAGE
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "end"),
    [
        (["sample", "nodes", "-n"], "; see `asterism sample nodes --help`\n"),
        (["smaple"], "Did you mean 'sample'? See `asterism --help`\n"),
    ],
)
def test_usage_errors_name_the_help_of_the_command(
    arguments: list[str], end: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == ExitCode.USAGE
    assert capsys.readouterr().err.endswith(end)


def command_at(*path: str) -> Any:
    command: Any = typer.main.get_command(app)
    for name in path:
        command = command.commands[name]
    return command


@pytest.mark.parametrize(
    ("path", "message", "expected"),
    [
        (
            ("load",),
            "a.csv, row 3: missing; leave such rows out with on_bad_rows='skip'",
            "a.csv, row 3: missing; leave such rows out with --on-bad-rows skip",
        ),
        (
            ("export", "dgl"),
            "out='p/': expected no export; pass overwrite=True",
            "--out='p/': expected no export; pass --overwrite",
        ),
        (
            ("job", "wait"),
            "the time given is up; ask with a longer timeout_s",
            "the time given is up; ask with a longer --total-timeout",
        ),
        (
            ("sample", "nodes"),
            "timeout_s=3: expected more",
            "--timeout=3: expected more",
        ),
        (("sample", "nodes"), "n=-1: expected an integer", "--count=-1: expected an integer"),
        (("sample", "nodes"), "replace=True: too few", "--replace: too few"),
        (("sample", "nodes"), "pass replace=False", "pass --no-replace"),
        (("sample", "nodes"), "or weighted=False", "or --uniform"),
        (("export", "dgl"), "or resume=False", "or no --resume"),
        (("sample", "walk"), "walks=None: expected a number", "--walks: expected a number"),
        (("restore",), "address='x': expected a backup", "address='x': expected a backup"),
        (("sample", "nodes"), "version=9: there is 1", "--graph-version=9: there is 1"),
        (("space", "list"), "overwrite=True, on_bad_rows", "overwrite=True, on_bad_rows"),
        (("sample", "nodes"), "no feature 'seed_time'", "no feature 'seed_time'"),
    ],
)
def test_messages_name_options_instead_of_arguments(
    path: tuple[str, ...], message: str, expected: str
) -> None:
    assert in_options(message, option_spellings(command_at(*path), command_at())) == expected


def test_the_option_of_the_failed_command_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fail_with(Corrupt("timeout_s=5: too short"), monkeypatch)
    assert run(["job", "wait", "7"]) == ExitCode.CORRUPT
    assert capsys.readouterr().err == "asterism: --total-timeout=5: too short\n"
    assert run(["status"]) == ExitCode.CORRUPT
    assert capsys.readouterr().err == "asterism: --timeout=5: too short\n"


def test_an_interruption_says_how_to_resume(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with (
        pytest.raises(CommandInterrupted, match="go on"),
        advice_on_interrupt(lambda: "interrupted; go on"),
    ):
        raise KeyboardInterrupt
    fail_with(KeyboardInterrupt(), monkeypatch)
    assert run(["status"]) == ExitCode.INTERRUPTED
    assert capsys.readouterr().err == "asterism: interrupted\n"
