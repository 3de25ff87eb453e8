"""The checks of epochs and clusters reject every planted fault of these."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_the_checks_reject_every_mutant_of_epochs_and_accept_the_cursor() -> None:
    script = Path(__file__).with_name("mutants.py")
    done = subprocess.run([sys.executable, str(script), "--of", "epochs", "--near"], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
