"""Tests of completion in shells: requests, and candidates from the service."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

import asterism
from asterism.cli.app import run
from asterism.cli.exit_codes import ExitCode
from asterism.cli.shell_completion import SCRIPTS, Shell, prepare_request
from asterism_model.schema import Schema
from asterism_proto.errors import Unavailable

SCHEMA = Schema.from_dict(
    {
        "nodes": {"user": {}, "item": {"weighted": True, "tables": {"popular": "pow(weight, 2)"}}},
        "edges": {"user:buys:item": {}, "user:likes:user": {}, "user:likes:item": {}},
    }
)


class Service:
    """A client of a service with two spaces."""

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def spaces(self) -> list[Any]:
        return [SimpleNamespace(name="shop", version=3), SimpleNamespace(name="papers", version=0)]

    def describe(self, space: str) -> Any:
        assert space == "shop"
        return SimpleNamespace(schema=SCHEMA)

    def versions(self, space: str) -> list[Any]:
        return [SimpleNamespace(version=version, job_id=version + 10) for version in (1, 2, 12)]

    def jobs(self, space: None, states: tuple[str, ...], *, limit: int) -> list[Any]:
        return [SimpleNamespace(job_id=7, kind="build", space="shop", state="RUNNING")]


@pytest.fixture
def addresses(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Make connections reach the service; return the addresses."""
    found: list[str] = []

    def connect(address: str, **options: Any) -> Service:
        found.append(address)
        return Service()

    monkeypatch.setattr(asterism, "connect", connect)
    monkeypatch.delenv("ASTERISM_ADDRESS", raising=False)
    return found


def complete(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> dict[str, str]:
    """Return the candidates at the end of a line, with their descriptions."""
    monkeypatch.setenv("_ASTERISM_COMPLETE", "complete_fish")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
    with pytest.raises(SystemExit) as ended:
        run([])
    assert ended.value.code == 0
    lines = [text for text in capsys.readouterr().out.splitlines() if text]
    return {name: help for name, _, help in (text.partition("\t") for text in lines)}


@pytest.mark.parametrize(
    ("line", "candidates"),
    [
        ("asterism sp", {"space"}),
        ("asterism sample nei", {"neighbors"}),
        ("asterism sample nodes ", {"shop", "papers"}),
        ("asterism sample nodes sh", {"shop"}),
        ("asterism sample nodes shop --type ", {"user", "item"}),
        ("asterism sample edges shop --type b", {"buys"}),
        ("asterism sample edges shop --type ", {"buys", "user:likes:user", "user:likes:item"}),
        ("asterism sample edges shop --type user:b", {"user:buys:item"}),
        ("asterism sample nodes shop --weight ", {"weight", "popular"}),
        ("asterism sample nodes shop --graph-version 1", {"12", "1"}),
        ("asterism sample neighbors shop 1 --direction ", {"out", "in"}),
        ("asterism job show ", {"7"}),
        ("asterism job list --state R", {"RUNNING"}),
        ("asterism job submit shop --kind a", {"audit"}),
        ("asterism export dgl --space s", {"shop"}),
        ("asterism completion ", {"bash", "zsh", "fish"}),
    ],
)
def test_a_line_completes_to_names_of_the_service(
    line: str,
    candidates: set[str],
    addresses: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert set(complete(line, monkeypatch, capsys)) == candidates


def test_candidates_have_descriptions(
    addresses: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spaces = complete("asterism space describe ", monkeypatch, capsys)
    assert spaces == {"papers": "no version yet", "shop": "version 3"}
    assert complete("asterism job stop ", monkeypatch, capsys) == {"7": "build shop RUNNING"}


@pytest.mark.parametrize(
    ("line", "address"),
    [
        ("asterism sample nodes --address db:1 ", "db:1"),
        ("asterism --address db:1 sample nodes ", "db:1"),
        ("asterism sample nodes ", "localhost:9669"),
    ],
)
def test_names_come_from_the_address_on_the_line(
    line: str,
    address: str,
    addresses: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert set(complete(line, monkeypatch, capsys)) == {"shop", "papers"}
    assert addresses == [address]


def test_an_unreachable_service_completes_to_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @contextmanager
    def connect(address: str, **options: Any) -> Any:
        raise Unavailable("no answer")
        yield

    monkeypatch.setattr(asterism, "connect", connect)
    assert complete("asterism sample nodes ", monkeypatch, capsys) == {}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("asterism status --json", "asterism status --json"),
        ("asterism space list --json --p", "asterism --json space list --p"),
        ("asterism space list --address a:1 ", "asterism --address a:1 space list "),
        ("asterism space list --address lo", "asterism space list --address lo"),
        ("asterism sample 'never closed", "asterism sample 'never closed"),
    ],
)
def test_global_options_of_a_request_come_first(line: str, expected: str) -> None:
    environment = {"_ASTERISM_COMPLETE": "complete_fish", "_TYPER_COMPLETE_ARGS": line}
    prepare_request(environment)
    assert environment["_TYPER_COMPLETE_ARGS"] == expected


@pytest.mark.parametrize("shell", Shell)
def test_the_command_prints_the_script_of_a_shell(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["completion", shell.value]) == ExitCode.DONE
    assert capsys.readouterr().out == SCRIPTS[shell].strip() + "\n"
