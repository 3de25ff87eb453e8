"""`asterism verify`: hold a version's draws against its weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from asterism.cli.context import command_context
from asterism.cli.exit_codes import ExitCode
from asterism.cli.output import table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asterism.verification import Finding, VerificationReport

EXAMPLES = (
    "Exit code 1 where a draw does not follow its weights. Examples: asterism verify shop "
    "--draws 1000000 --alpha 1e-6; "
    "asterism verify shop --weight popular"
)


def verify(
    context: typer.Context,
    space: Annotated[str, typer.Argument(metavar="SPACE", help="The space to draw from.")],
    *,
    weight: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help=(
                "Look at these weights only: a table's, or `weight`, the rows' own. May be "
                "repeated."
            ),
        ),
    ] = None,
    draws: Annotated[
        int,
        typer.Option(
            min=1000,
            help="Draws of each kind; the smallest bias that is seen falls with the square root.",
        ),
    ] = 100_000,
    alpha: Annotated[
        float, typer.Option(help="The chance of any false alarm in the whole report.")
    ] = 1e-3,
    power: Annotated[
        float, typer.Option(help="With which a bias of the size shown as `sees` would be found.")
    ] = 0.9,
    buckets: Annotated[int, typer.Option(min=1, help="Runs of rows of equal mass per type.")] = 64,
    seed: Annotated[int | None, typer.Option(help="Repeat a run.")] = None,
    at: Annotated[
        int | None, typer.Option("--at", min=1, metavar="VERSION", help="Verify this version.")
    ] = None,
    within: Annotated[
        float,
        typer.Option("--within", min=0.1, metavar="SECONDS", help="How long all of it may take."),
    ] = 3600.0,
) -> None:
    """Draw nodes, edges and neighbors of every type, and compare with the weights that scans read
    and the sealed totals.

    By the rows' own weights, uniformly, and by every table of further weights. Each line is a G
    test: by parts, by runs of rows, by size of the weight, by place in a request, from single
    draws, by neighbor. `corrected` is the p-value after Holm's correction for the number of tests;
    `sees` is the total variation from which on a bias would have been found."""
    session = command_context(context)
    with session.client(allow_read_only=True) as client, session.output.progress() as update:
        report = client.verify(
            space,
            weights=weight or None,
            draws=draws,
            alpha=alpha,
            power=power,
            buckets=buckets,
            seed=seed,
            version=at,
            timeout_s=within,
            on_progress=update,
        )
    session.output.result(
        {"passed": report.passed, "failures": report.failures, "report": report},
        lambda: _render_report(report),
    )
    if not report.passed:
        raise typer.Exit(ExitCode.FAILED)


def _row(finding: Finding) -> tuple[object, ...]:
    detectable = "-" if finding.detectable is None else f"{finding.detectable:.2%}"
    cells = (
        f"{finding.draws:,}",
        finding.cells,
        f"{finding.statistic:,.1f}",
        finding.freedom,
        f"{finding.p:.2g}",
        f"{finding.adjusted:.2g}",
        detectable,
    )
    return (finding.subject, finding.test, *cells, "ok" if finding.passed else "WRONG")


def _render_report(report: VerificationReport) -> RenderableType:
    from rich.console import Group
    from rich.markup import escape

    columns = ("draws of", "test", "draws", "cells", "G", "freedom", "p", "corrected", "sees", "")
    exact = sum(check.passed for check in report.checks)
    verdict = (
        "[green]draws follow their weights[/green]"
        if report.passed
        else "[red]draws do not follow their weights[/red]"
    )
    return Group(
        table(
            f"version {report.version} of {report.space}, {report.digest[:12]}",
            columns,
            [_row(finding) for finding in report.findings],
        ),
        (
            f"{exact} of {len(report.checks)} counts and sums of the manifest are what "
            f"{report.scanned:,} scanned rows give"
        ),
        *(f"[red]{escape(failure)}[/red]" for failure in report.failures),
        f"{verdict}: {len(report.findings)} tests at alpha {report.alpha:g} over all "
        f"({report.correction}), power {report.power:g} for what they see; "
        f"{report.seconds:.1f} s, --seed {report.seed} repeats it",
    )
