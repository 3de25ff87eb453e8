"""The checks of layer-neighbor sampling reject every planted fault of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.kit.waiting import HANG_S


def test_the_checks_reject_every_mutant_of_labor_and_accept_the_sampler() -> None:
    script = Path(__file__).with_name("mutants.py")
    done = subprocess.run([sys.executable, str(script), "--of", "labor"], capture_output=True, text=True, timeout=2 * HANG_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
