"""The demonstration that `make demo` runs, on a small graph."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.kit.waiting import HANG_S


def test_the_demonstration_runs_to_its_end(root: Path, tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    command = [sys.executable, root / "examples/demo.py", "--folder", folder, "--size", "0.05"]
    completed = subprocess.run(
        command, capture_output=True, text=True, timeout=HANG_S, cwd=tmp_path, check=False
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    assert (folder / "partitions").is_dir()
