"""Runner that plants every mutant of the catalogue and checks that it is rejected.

    python -m tests.mutants            # prints a table; exit status 1 when a mutant survives or the
                                       # sampler itself is rejected
    python -m tests.mutants floyd      # mutants with the word in their names
    python -m tests.mutants --of rows  # mutants of tests/mutants/catalogue/rows.py
    python -m tests.mutants --serve    # groups named on standard input, one a line; each report
                                       # ends with a line of `END` and the exit status

A mutant names the check of `tests.distributions.checks` that must reject it, or a test that must
fail. The same checks must accept the sampler without a fault; the tests run without one in the
suite. A change that no longer fits the source is an error, so that no mutant becomes ineffective
unnoticed."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import TextIO

from tests.kit.waiting import HANG_S
from tests.mutants import END, runner
from tests.mutants.catalogue import GROUPS, mutants_of
from tests.mutants.mutant import Mutant

_STAGE_S = 6 * HANG_S
_prepared_checks: set[str] = set()
"""Names of checks that have run in this process with all kernels compiled."""


def main(terms: Sequence[str]) -> int:
    """Print a line per mutant and return the exit status.

    Returns
    -------
    int
        0 when every mutant is rejected, and the checks that did so accept the sampler itself.
    """
    if terms[:1] == ["--serve"]:
        return _serve()
    groups = GROUPS
    if terms[:1] == ["--of"]:
        groups, terms = (terms[1],), terms[2:]
    mutants = [
        mutant
        for group in groups
        for mutant in mutants_of(group)
        if all(term.lower() in mutant.name.lower() for term in terms)
    ]
    # One process each: checks ignore warnings that tests turn into errors.
    stages = (partial(stage, mutants) for stage in (_run_tests, _run_checks))
    return int(sum(runner.call_in_child(stage, _STAGE_S) for stage in stages) > 0)


def _serve() -> int:
    """Run groups with what earlier ones have imported and loaded; return 0."""
    for line in sys.stdin:
        mutants = mutants_of(line.strip())
        try:
            status = int(_run_tests(mutants) + _run_checks(mutants) > 0)
        except RuntimeError as error:
            print(error)
            status = 1
        print(f"{END}{status}", flush=True)
    return 0


def _run_tests(mutants: Sequence[Mutant]) -> int:
    """Print a row per mutant that a test must reject; return the number of failures."""
    mutants = [mutant for mutant in mutants if mutant.test]
    if not mutants:
        return 0
    node_ids = [mutant.test for mutant in mutants]
    runner.prepare_tests(node_ids)
    output = sys.stdout  # pytest has another one
    failures: list[bool] = []

    def evaluate(items: Mapping[str, runner.Items]) -> None:
        failures.extend(_print_mutant(mutant, items[mutant.test], output) for mutant in mutants)

    runner.run_with_items(node_ids, evaluate)
    return sum(failures)


def _run_checks(mutants: Sequence[Mutant]) -> int:
    """Print a row per mutant that a check must reject, and two for the unchanged sampler."""
    mutants = [mutant for mutant in mutants if mutant.check]
    if not mutants:
        return 0
    _import_checks()
    start = time.perf_counter()
    verdict = runner.load_kernels({mutant.check for mutant in mutants} - _prepared_checks)
    text = f"rejected by {verdict.rejected_by}: {verdict.reason}"
    subject = f"{'(the sampler itself, compiled)':<65}"
    _print_row(not verdict.rejected_by, subject, start, text if verdict.rejected_by else "accepted")
    if verdict.rejected_by:
        return 1
    _prepared_checks.update(mutant.check for mutant in mutants)
    failures = sum(_print_mutant(mutant) for mutant in mutants)
    start = time.perf_counter()
    is_accepted, text = runner.evaluate_sampler(mutants)
    _print_row(is_accepted, f"{'(the sampler itself, interpreted)':<65}", start, text)
    return failures + (not is_accepted)


_import_checks = cache(runner.prepare_checks)


def _print_mutant(mutant: Mutant, items: runner.Items = (), output: TextIO | None = None) -> bool:
    start = time.perf_counter()
    is_rejected, text = runner.evaluate_mutant(mutant, items)
    _print_row(is_rejected, f"{mutant.name:<42}{mutant.met:<23}", start, text, output)
    return not is_rejected


def _print_row(
    is_right: bool, subject: str, start: float, text: str, output: TextIO | None = None
) -> None:
    shown = " ".join(text.split())[:140] if is_right else text
    seconds = time.perf_counter() - start
    print(
        f"{'ok' if is_right else 'WRONG':<6}{subject}{seconds:4.1f} s  {shown}",
        file=output,
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
