"""Tests of the output of commands: JSON numbers, notes, and progress without a terminal."""

from __future__ import annotations

import json

import numpy as np
import pytest

from asterism.cli.output import Output, to_json_value
from asterism.cli.progress import ProgressLines, ProgressTexts, RateMeter


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_float32_is_the_shortest_number_in_json() -> None:
    values = np.array([[26.79, 16.1], [0.1, -1e-9]], np.float32)
    assert json.dumps(to_json_value(values)) == "[[26.79, 16.1], [0.1, -1e-09]]"
    assert json.dumps(to_json_value(np.float32(26.79))) == "26.79"
    assert to_json_value(np.array([26.79], np.float64)) == [26.79]
    assert to_json_value(np.array([3], np.int64)) == [3]


def test_the_shortest_number_denotes_the_same_float32() -> None:
    values = np.random.default_rng(0).standard_normal(2000).astype(np.float32)
    values[:4] = np.array([3.4028235e38, 1.1754944e-38, 1e-45, 1 / 3], np.float32)
    assert (np.array(to_json_value(values)).astype(np.float32) == values).all()


def test_progress_off_a_terminal_is_a_line_each_ten_seconds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = Clock()
    meter = RateMeter(ProgressLines(clock), clock)
    for second in range(25):
        clock.now = 100.0 + second
        meter.update("load shop", 1000 * second, 100_000, phase="nodes")
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "load shop nodes: 10,000/100,000, 1,000 rows/s, 90 s left",
        "load shop nodes: 20,000/100,000, 1,000 rows/s, 80 s left",
    ]


def test_a_new_note_is_printed_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    lines = ProgressLines(clock)
    for note in ("", "waits for a:1", "waits for a:1", ""):
        lines.show(
            "build", 5, 9, ProgressTexts(name="build", rows="5/9", rate="", left="", note=note)
        )
    assert capsys.readouterr().err == "build: 5/9, waits for a:1\n"


@pytest.mark.parametrize("as_json", [False, True])
def test_a_command_that_ends_soon_prints_no_progress(
    as_json: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    with Output(as_json=as_json).progress() as update:
        update("load shop", 5, 9)
    assert capsys.readouterr() == ("", "")


def test_results_and_notes_are_single_lines(capsys: pytest.CaptureFixture[str]) -> None:
    sentence = "version 1 is published " * 10 + "[end]"
    output = Output(as_json=False)
    output.result(None, lambda: sentence)
    output.print_note(sentence)
    assert capsys.readouterr() == (f"{sentence}\n", f"{sentence}\n")
