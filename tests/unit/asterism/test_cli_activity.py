from __future__ import annotations

import io
import threading

import pytest
from tests.kit.waiting import HANG_S

from asterism.cli.activity import ActivityLine
from asterism.cli.output import Output

LATE_S = HANG_S
"""A delay that no test reaches."""


class Screen(io.StringIO):
    """A terminal in memory, which reports each line that is written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Event()

    def isatty(self) -> bool:
        return True

    def flush(self) -> None:
        self.written.set()

    def wait(self) -> str:
        assert self.written.wait(HANG_S)
        self.written.clear()
        return self.getvalue()


def test_a_long_activity_is_shown_and_then_removed() -> None:
    screen = Screen()
    with ActivityLine("opening graphs", stream=screen, delay_s=0) as line:
        assert screen.wait() == "\r\x1b[Kopening graphs: 0 s"
        assert line.show("compiling kernels")
        while not screen.wait().endswith("\r\x1b[Kcompiling kernels"):
            pass
    assert screen.getvalue().endswith("\r\x1b[K")
    assert "activity" not in {thread.name for thread in threading.enumerate()}


def test_a_short_activity_is_not_shown() -> None:
    screen = Screen()
    with ActivityLine("opening graphs", stream=screen, delay_s=LATE_S):
        pass
    assert screen.getvalue() == ""


def test_a_pipe_has_no_activities() -> None:
    pipe = io.StringIO()
    with ActivityLine("opening graphs", stream=pipe, delay_s=0) as line:
        assert not line.show("compiling kernels")
    assert pipe.getvalue() == ""


def test_other_output_removes_the_activity(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    screen = Screen()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr("asterism.cli.activity._DELAY_S", 0)
    output = Output(as_json=False)
    with output.activity("waiting for localhost:9669"):
        assert output.show_activity("compiling kernels")
        output.result("three nodes", lambda: "three nodes")
        assert not output.show_activity("compiling kernels")
        shown = screen.getvalue()
    assert capsys.readouterr().out == "three nodes\n"
    assert screen.getvalue() == shown, "shown beside the result"
