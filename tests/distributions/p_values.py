"""Program that prints sample sizes and p-values of the checks as a table of Markdown.

python -m tests.distributions.p_values            # every check, as `make test` runs it
python -m tests.distributions.p_values neighbors  # checks with the word in their names
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence

from tests.distributions import checks
from tests.distributions.checks.basis import Statistic, recording

SCALE = 3.0
"""Size of the checks: that of `test_checks`."""
HEADER = (
    "| check | statistics | samples | degrees of freedom | smallest p | median p |\n"
    "| --- | --- | --- | --- | --- | --- |"
)


def main(words: Sequence[str]) -> int:
    """Print a row for each check; return 1 if one rejects the sampler."""
    all_tests: list[Statistic] = []
    rejections = []
    print(HEADER)
    for check in checks.CHECKS:
        if not all(word in check.__name__ for word in words):
            continue
        with recording() as tests:
            try:
                check(SCALE)
            except checks.Rejected as rejection:
                rejections.append(f"{check.__name__}: {rejection}")
        all_tests += tests
        print(row(f"`{check.__name__}`", tests), flush=True)
    samples = sum(test.samples for test in all_tests)
    smallest = min((test.p for test in all_tests), default=1.0)
    print(f"| all | {len(all_tests):,} | {samples:,} | | {smallest:.2g} | |")
    for text in rejections:
        print(f"rejected by {text}", file=sys.stderr)
    return int(bool(rejections))


def row(name: str, tests: Sequence[Statistic]) -> str:
    """Return the row of some chi-square tests; without any, a check enumerates outcomes."""
    if not tests:
        return f"| {name} | exact | | | | |"
    p_values = [test.p for test in tests]
    degrees = sorted({test.degrees for test in tests})
    shown_degrees = f"{degrees[0]:,}" + (f" - {degrees[-1]:,}" if len(degrees) > 1 else "")
    samples = sum(test.samples for test in tests)
    return (
        f"| {name} | {len(tests):,} | {samples:,} | {shown_degrees} | {min(p_values):.2g} | "
        f"{statistics.median(p_values):.2f} |"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
