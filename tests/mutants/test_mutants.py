"""Tests that each mutant is rejected, and that the checks accept the unchanged sampler."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.waiting import HANG_S
from tests.mutants.catalogue import GROUPS


@pytest.mark.parametrize("group", GROUPS)
def test_every_mutant_is_rejected(group: str, root: Path) -> None:
    command = [sys.executable, "-m", "tests.mutants", "--of", group]
    completed = subprocess.run(
        command, cwd=root, capture_output=True, text=True, timeout=2 * HANG_S, check=False
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
