"""A real terminal that a program runs in: what is typed goes through its line discipline, and what
it shows is read.
"""

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
# A shell's own terminal leaves Ctrl-C to programs; what runs in the background, as tests may, has
# it ignored, and its children too.
_CONTROLLING = (
    "import fcntl, signal, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "signal.signal(signal.SIGINT, signal.default_int_handler); "
)


class Terminal:
    """A program of this checkout under a pseudo-terminal of its own, so that Ctrl-C is a signal
    there.

    Parameters
    ----------
    program : str
        Python.
    arguments : str
        Of the program.
    home : Path
        The user's folder, where the program finds no settings of others.
    """

    def __init__(self, program: str, *arguments: str, home: Path, columns: int = 120) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        # A terminal that can not say where its cursor is, as the one here; the rest is xterm's.
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
        """Everything that was shown, with colours and movements."""
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
        """What was shown since the last key, once it has the pattern; AssertionError where it has
        it not in time.
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
        """What was shown since the last key, without colours and movements, and without the blanks
        that it ends with.
        """
        return (
            _ESCAPES.sub("", self.raw[self._output :])
            .replace("\r", "")
            .replace(" \x08", "")
            .rstrip()
        )

    def wait_exit_code(self, seconds: float = HANG_S) -> int:
        """The exit code, once the program has ended."""
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
        with contextlib.suppress(OSError):  # the other end is closed
            data = os.read(self._master, 1 << 16)
            self.raw += data.decode(errors="replace")
            return bool(data)
        return False
