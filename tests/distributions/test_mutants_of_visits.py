"""The checks of visits and PageRank reject every planted fault of these."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.kit.waiting import HANG_S


def test_every_visit_mutant_is_rejected() -> None:
    script = Path(__file__).with_name("mutants.py")
    completed = subprocess.run([sys.executable, str(script), "--of", "visits"], capture_output=True, text=True, timeout=2 * HANG_S, check=False)
    assert completed.returncode == 0, completed.stdout + completed.stderr
