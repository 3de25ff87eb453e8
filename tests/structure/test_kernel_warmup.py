"""Every kernel is compiled ahead of its first call, by `asterism warm` and at the start."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.kit import uncompiled_kernels
from tests.kit.waiting import HANG_S

from asterism_graphkit.compile.jit import INTERPRETED


@pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")
def test_every_kernel_is_compiled_ahead() -> None:
    """All that are found in the services; one without a step of the warm-up is named."""
    run = subprocess.run(
        [sys.executable, "-m", uncompiled_kernels.__name__],
        capture_output=True,
        text=True,
        timeout=10 * HANG_S,
    )
    assert run.returncode == 0, run.stderr
    count, *uncompiled = run.stdout.split()
    assert uncompiled == []
    assert int(count) > 300
