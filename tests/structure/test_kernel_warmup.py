"""Every kernel is compiled ahead of its first call, by `asterism warm` and at the start."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from tests.kit import uncompiled_kernels
from tests.kit.waiting import HANG_S

from asterism_graphkit.compile.jit import INTERPRETED


@pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")
def test_every_kernel_is_compiled_ahead() -> None:
    """Kernels are found in the services, and their argument types in all calls that read."""
    run = subprocess.run(
        [sys.executable, "-m", uncompiled_kernels.__name__],
        capture_output=True,
        text=True,
        timeout=10 * HANG_S,
    )
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout.splitlines()[-1])
    assert found["uncompiled"] == []
    assert found["later"] == []
    assert found["kernels"] > 300
