"""Progress bars of the command on a real terminal: rows, rows per second, remaining time."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

from tests.kit.large_graph import LargeGraph
from tests.kit.waiting import HANG_S

from asterism import export


def terminal_output(*arguments: object, columns: int = 80) -> str:
    """Return the output of the command on a terminal of the given width."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    program = [sys.executable, "-c", "from asterism.cli import main; main()", *map(str, arguments)]
    command = ["env", "-u", "COLUMNS", "TERM=xterm", "NO_COLOR=1", *program]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=slave
    ) as process:
        os.close(slave)
        output = b""
        try:
            while piece := os.read(master, 1 << 16):
                output += piece
        except OSError:  # the other end is closed
            pass
        assert process.wait(HANG_S) == 0, output[-2000:]
    os.close(master)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", output.decode())


def test_progress_bars_show_rows_per_second_and_time_left(tmp_path: Path) -> None:
    export.dgl(
        LargeGraph(nodes=60_000, edges=4_000_000, sparse=False),
        tmp_path / "dgl",
        parts=16,
        workers=1,
    )
    output = terminal_output("export", "pyg", tmp_path / "dgl", tmp_path / "pyg")
    bars = re.findall(
        r"pyg parts \S+ +([\d,]+)/4,000,000 +([\d,]+) rows/s +([\d,]+) s left", output
    )
    assert len(bars) > 2, output[-2000:]
    rows = [int(bar[0].replace(",", "")) for bar in bars]
    assert rows == sorted(rows)
    assert re.search(r"4,000,000/4,000,000 +[\d,]+ rows/s", output), output[-2000:]
    output = terminal_output("export", "verify", tmp_path / "dgl")
    assert re.search(r"verify bytes \S+ +[\d,]+/[\d,]+ +[\d,]+ bytes/s", output), output[-2000:]
    assert "…" not in output
