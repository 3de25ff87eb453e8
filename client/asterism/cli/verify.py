"""`asterism verify`: test the samples of a version against its weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from asterism.cli.context import command_context
from asterism.cli.exit_codes import ExitCode
from asterism.cli.help_text import examples
from asterism.cli.options import GraphVersion, Space, TotalTimeout
from asterism.cli.output import table
from asterism.cli.tables import sections
from asterism.cli.typer_signatures import expand_option_groups

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asterism.verification import Finding, VerificationReport

EXAMPLES = examples(
    "asterism verify shop --draws 1000000 --alpha 1e-6",
    "asterism verify shop --weight popular",
    before="Exits with 1 if samples do not follow their weights.",
)


@expand_option_groups
def verify(
    context: typer.Context,
    space: Space,
    *,
    weights: Annotated[
        list[str] | None,
        typer.Option(
            "--weight",
            metavar="NAME",
            help="Test only this weight column; `weight` is the weight of each type. Repeatable.",
        ),
    ] = None,
    draws: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1000,
            help="Samples of each kind; the smallest detectable bias falls with the square root.",
        ),
    ] = 100_000,
    alpha: Annotated[
        float, typer.Option(metavar="X", help="Probability of any false alarm in the whole report.")
    ] = 1e-3,
    power: Annotated[
        float,
        typer.Option(
            metavar="X", help="Probability of detecting a bias of the size in column `sees`."
        ),
    ] = 0.9,
    buckets: Annotated[
        int, typer.Option(metavar="N", min=1, help="Buckets of rows of equal mass per type.")
    ] = 64,
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Random seed; the same seed repeats the report. Default: random."
        ),
    ] = None,
    graph_version: GraphVersion = None,
    total_timeout: TotalTimeout = 3600.0,
) -> None:
    """Test samples of nodes, edges and neighbors of every type against scanned weights.

    The totals in the manifest are compared with the scanned rows too. The samples are drawn by
    the weight of each type, uniformly, and by every further weight column. Each line is a G
    test: by partition, by bucket of rows, by size of the weight, by position in a request, from
    single samples, by neighbor. `corrected` is the p-value after Holm's correction for the
    number of tests; `sees` is the smallest total variation that would be detected."""
    command = command_context(context)
    with command.client(allow_read_only=True) as client, command.output.progress() as update:
        report = client.verify(
            space,
            weights=weights or None,
            draws=draws,
            alpha=alpha,
            power=power,
            buckets=buckets,
            seed=seed,
            version=graph_version,
            timeout_s=total_timeout,
            on_progress=update,
        )
    command.output.result(
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
    from rich.text import Text

    columns = ("draws of", "test", "draws", "cells", "G", "freedom", "p", "corrected", "sees", "")
    exact = sum(check.passed for check in report.checks)
    verdict = (
        ("draws follow their weights", "green")
        if report.passed
        else ("draws do not follow their weights", "red")
    )
    return sections(
        table(
            f"version {report.version} of {report.space}, {report.digest[:12]}",
            columns,
            [_row(finding) for finding in report.findings],
            optional=("G", "freedom", "cells", "p"),
        ),
        (
            f"{exact} of {len(report.checks)} counts and sums of the manifest equal those "
            f"of {report.scanned:,} scanned rows"
        ),
        *(Text(failure, style="red") for failure in report.failures),
        Text.assemble(
            verdict,
            f": {len(report.findings)} tests at alpha {report.alpha:g} over all "
            f"({report.correction}), power {report.power:g} for column sees; "
            f"{report.seconds:.1f} s, --seed {report.seed} repeats it",
        ),
    )
