"""Tests of option groups as records, and of former names that set the same values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from asterism.cli.typer_signatures import FormerName, expand_option_groups


@dataclass(frozen=True, slots=True, kw_only=True)
class Paging:
    page: Annotated[int, typer.Option(min=1)]
    size: Annotated[int, typer.Option("--page-size", max=100), FormerName("--limit")] = 10


def parse(*arguments: str) -> Any:
    """Return the values that a command receives, or its exit code."""
    received: list[Any] = []

    @expand_option_groups
    def command(
        context: typer.Context,
        name: str,
        *,
        paging: Paging,
        order: Annotated[str, typer.Option(), FormerName("--newest", value="descending")] = "any",
        check: Annotated[
            bool, typer.Option("--check/--no-check"), FormerName("--unsafe", value=False)
        ] = True,
    ) -> None:
        """Do something."""
        assert context.params["name"] == name
        received.append((name, paging, order, check))

    app = typer.Typer()
    app.command()(command)
    result = CliRunner().invoke(app, arguments)
    return received[0] if received else result.exit_code


@pytest.mark.parametrize(
    ("arguments", "paging", "order", "check"),
    [
        ("--page 2", Paging(page=2), "any", True),
        ("--page 2 --page-size 5", Paging(page=2, size=5), "any", True),
        ("--page 2 --limit 5", Paging(page=2, size=5), "any", True),
        ("--page 2 --newest", Paging(page=2), "descending", True),
        ("--page 2 --order x --unsafe", Paging(page=2), "x", False),
    ],
)
def test_a_command_receives_groups_as_records(
    arguments: str, paging: Paging, order: str, check: bool
) -> None:
    assert parse("a", *arguments.split()) == ("a", paging, order, check)


@pytest.mark.parametrize(
    "arguments", ["", "--page 0", "--page 1 --page-size 101", "--page 1 --limit 101"]
)
def test_constraints_of_grouped_options_are_checked(arguments: str) -> None:
    assert parse("a", *arguments.split()) == 2
