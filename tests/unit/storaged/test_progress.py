"""Tests of progress lines of a task's process: the last line has the complete progress."""

from __future__ import annotations

import io
import json

from tests.kit.waiting import wait_until

from storaged.build.progress import ProgressReporter


def lines(out: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_work_that_ends_between_reports_is_reported() -> None:
    out = io.StringIO()
    with ProgressReporter(out, interval_s=3600.0) as progress:
        progress.add_total(7)
        progress.phase("seal")
        progress.step(7)
    assert lines(out)[-1] == {"phase": "seal", "rows_done": 7, "rows_total": 7}


def test_progress_never_exceeds_the_total_rows() -> None:
    out = io.StringIO()
    with ProgressReporter(out, interval_s=3600.0) as progress:
        progress.add_total(3)
        progress.step(5)
    assert lines(out)[-1] == {"phase": "plan", "rows_done": 3, "rows_total": 3}


def test_progress_lines_appear_during_the_work() -> None:
    out = io.StringIO()
    with ProgressReporter(out, interval_s=0.001) as progress:
        progress.add_total(2)
        progress.step(1)
        wait_until(
            lambda: {"phase": "plan", "rows_done": 1, "rows_total": 2} in lines(out),
            "a line appears",
        )
        progress.step(1)
    assert lines(out)[-1] == {"phase": "plan", "rows_done": 2, "rows_total": 2}
