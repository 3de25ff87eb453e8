"""A pseudo-terminal for programs: input passes its line discipline, and output is read."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.kit.waiting import HANG_S

_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07]*\x07|[()][0-9A-B]|[=>78])")
# In a shell's own terminal Ctrl-C reaches programs. Background processes, such as tests, may ignore
# it, and so would their children.
_CONTROLLING = (
    "import fcntl, signal, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "signal.signal(signal.SIGINT, signal.default_int_handler); "
)


class Terminal:
    """A program of this checkout in its own pseudo-terminal, so that Ctrl-C is a signal there.

    Parameters
    ----------
    program : str
        Python code to run.
    arguments : str
        Arguments of the program.
    home : Path
        Home folder of the user, without settings.
    """

    def __init__(self, program: str, *arguments: str, home: Path, columns: int = 120) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        # A terminal that, like this one, cannot report its cursor position; otherwise xterm.
        settings = [
            "-u",
            "NO_COLOR",
            "-u",
            "COLUMNS",
            "-u",
            "XDG_STATE_HOME",
            "TERM=xterm",
            "PROMPT_TOOLKIT_NO_CPR=1",
            f"HOME={home}",
        ]
        command = ["env", *settings, sys.executable, "-c", _CONTROLLING + program, *arguments]
        self._process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
        )
        os.close(slave)
        self.raw = ""
        """All output, with colors and cursor movements."""
        self._output = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait(HANG_S)
        os.close(self._master)

    def type(self, text: str) -> None:
        """Press keys; ``\\r`` is Enter, ``\\t`` Tab, ``\\x03`` Ctrl-C, ``\\x04`` Ctrl-D."""
        self._output = len(self.raw)
        os.write(self._master, text.encode())

    def wait_for_text(self, pattern: str, seconds: float = HANG_S) -> str:
        """Wait for a pattern in the output since the last key, and return the output.

        Raises AssertionError after the timeout.
        """
        deadline = time.monotonic() + seconds
        while not (match := re.search(pattern, self.text)):
            assert time.monotonic() < deadline, (
                f"no {pattern!r} within {seconds} s, but:\n{self.text}"
            )
            if not self._read(0.05) and self._process.poll() is not None and not self._read(0.05):
                raise AssertionError(
                    f"it ended with {self._process.returncode} and shows no {pattern!r}, "
                    f"but:\n{self.text}"
                )
        return match[0]

    @property
    def text(self) -> str:
        """Output since the last key, without colors, cursor movements and trailing blanks."""
        return (
            _ESCAPES.sub("", self.raw[self._output :])
            .replace("\r", "")
            .replace(" \x08", "")
            .rstrip()
        )

    def wait_exit_code(self, seconds: float = HANG_S) -> int:
        """Wait for the end of the program and return its exit code."""
        deadline = time.monotonic() + seconds
        while self._process.poll() is None:
            assert time.monotonic() < deadline, (
                f"it goes on after {seconds} s, and shows:\n{self.text}"
            )
            self._read(0.05)
        while self._read(0.05):
            pass
        return self._process.returncode

    def _read(self, seconds: float) -> bool:
        if not select.select([self._master], [], [], seconds)[0]:
            return False
        with contextlib.suppress(OSError):  # the other end may be closed
            data = os.read(self._master, 1 << 16)
            self.raw += data.decode(errors="replace")
            return bool(data)
        return False
