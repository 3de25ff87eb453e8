"""The command in a pseudo-terminal: input passes its line discipline, and output is read.

As a program, ``python -m tests.kit.terminal arguments...`` is the command at the terminal that its
standard output is.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.kit import zygote
from tests.kit.waiting import HANG_S

_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07]*\x07|[()][0-9A-B]|[=>78])")
_SETTINGS = {"TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}
"""A terminal that, like this one, cannot report its cursor position; otherwise xterm."""
_UNSET = ("NO_COLOR", "COLUMNS", "XDG_STATE_HOME")


class Terminal:
    """The command of this checkout in its own pseudo-terminal, so that Ctrl-C is a signal there.

    Parameters
    ----------
    arguments : str
        Arguments of the command.
    home : Path
        Home folder of the user, without settings.
    columns : int
        Width of the terminal.
    cold : bool
        Execute a new interpreter instead of forking one that has the imports.
    """

    def __init__(self, *arguments: str, home: Path, columns: int = 120, cold: bool = False) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        inherited = {k: v for k, v in os.environ.items() if k not in _UNSET}  # noqa: TID251
        environment = inherited | _SETTINGS | {"HOME": str(home)}
        command = ("tests.kit.terminal", *arguments)
        self._process: zygote.ForkedProcess | subprocess.Popen[bytes]
        if not cold and zygote.ZYGOTE.can_fork(environment):
            self._process = zygote.ZYGOTE.fork(command, environment=environment, output=slave)
        else:
            self._process = subprocess.Popen(
                [sys.executable, "-m", *command],
                cwd=zygote.ROOT,
                env=environment,
                stdin=slave,
                stdout=slave,
                stderr=slave,
                start_new_session=True,
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
        return self._process.wait()

    def _read(self, seconds: float) -> bool:
        if not select.select([self._master], [], [], seconds)[0]:
            return False
        with contextlib.suppress(OSError):  # the other end may be closed
            data = os.read(self._master, 1 << 16)
            self.raw += data.decode(errors="replace")
            return bool(data)
        return False


def _take_terminal() -> None:
    """Make standard output the controlling terminal of this session, and all standard streams."""
    os.dup2(1, 0)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    # In a shell's own terminal Ctrl-C reaches programs. Background processes, such as tests, may
    # ignore it, and so would their children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # A forked process has the streams of its parent, which are buffered like those of a file.
    for stream in (sys.stdout, sys.stderr):
        assert isinstance(stream, io.TextIOWrapper)
        stream.reconfigure(line_buffering=True)


if __name__ == "__main__":
    from asterism.cli import main

    _take_terminal()
    main()
