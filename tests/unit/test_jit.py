"""Kernels in numba's cache."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

STEP = """
from graphkit.jit import inlined
BASE = {base}

@inlined
def step(x):
    return x + {step}
"""
KERNEL = """
from graphkit.jit import kernel
from steps import BASE, step

@kernel
def run(x):
    return step(x) + BASE
"""
PROGRAM = "import loops; print(loops.run(1), sum(loops.run.stats.cache_hits.values()))"


def ran(folder: Path, base: int, step: int) -> tuple[int, int]:
    """What the kernel gives in a process of its own, and whether it came out of the cache."""
    (folder / "steps.py").write_text(STEP.format(base=base, step=step))
    path = os.pathsep.join([str(folder), *sys.path])
    command = ["env", f"PYTHONPATH={path}", "PYTHONDONTWRITEBYTECODE=1", sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    given, hits = done.stdout.split()
    return int(given), int(hits)


def test_a_kernel_is_compiled_anew_when_a_step_or_a_constant_of_another_file_changes(tmp_path: Path) -> None:
    (tmp_path / "loops.py").write_text(KERNEL)
    assert ran(tmp_path, 10, 1) == (12, 0)
    assert ran(tmp_path, 10, 1) == (12, 1)
    assert ran(tmp_path, 10, 5) == (16, 0)
    assert ran(tmp_path, 20, 5) == (26, 0)
    assert ran(tmp_path, 20, 5) == (26, 1)
