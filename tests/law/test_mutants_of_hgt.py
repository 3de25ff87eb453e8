"""The checks of layers by budgets reject every planted fault of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.kit.waiting import HANG_S


def test_the_checks_reject_every_mutant_of_budgets_and_accept_the_sampler() -> None:
    script = Path(__file__).with_name("mutants.py")
    done = subprocess.run([sys.executable, str(script), "--of", "hgt"], capture_output=True, text=True, timeout=2 * HANG_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
