"""The checks reject every planted fault and accept the sampler itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.distributions import mutants
from tests.kit.waiting import HANG_S

SCRIPT = Path(mutants.__file__)


@pytest.mark.parametrize("group", mutants.GROUPS)
def test_every_mutant_is_rejected(group: str) -> None:
    command = [sys.executable, str(SCRIPT), "--of", group]
    completed = subprocess.run(
        command, capture_output=True, text=True, timeout=2 * HANG_S, check=False
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
