"""The law suite rejects every planted fault of tables, words, global draws and neighbors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.kit.waiting import HANG_S


def test_the_suite_rejects_every_mutant_of_draws_and_accepts_the_sampler() -> None:
    script = Path(__file__).with_name("mutants.py")
    done = subprocess.run([sys.executable, str(script), "--of", "draws"], capture_output=True, text=True, timeout=2 * HANG_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
