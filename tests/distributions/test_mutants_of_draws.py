"""The law suite rejects every planted fault of tables, words, global draws and neighbors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.kit.waiting import HANG_S


def test_every_draw_mutant_is_rejected() -> None:
    script = Path(__file__).with_name("mutants.py")
    completed = subprocess.run([sys.executable, str(script), "--of", "draws"], capture_output=True, text=True, timeout=2 * HANG_S, check=False)
    assert completed.returncode == 0, completed.stdout + completed.stderr
