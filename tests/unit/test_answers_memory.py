"""Memory that answers were in is used again: counted by the system, in a process of its own."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, resource, sys
import numpy as np
from standalone.memory import keep_freed

PR_SET_THP_DISABLE = 41  # where all memory is in pages of 2 MiB, few would be counted
assert ctypes.CDLL(None).prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0

def batch():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    kept = [np.ones(3 << 17) for _ in range(6)]
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

if sys.argv[1] == "kept":
    keep_freed()
print(*(batch() for _ in range(4)))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have other rules")
def test_batches_after_the_first_need_no_fresh_pages() -> None:
    pages = 6 * (3 << 20) // 4096
    for how, fewest, most in (("kept", 0, pages // 20), ("as it is", pages // 2, 2 * pages)):
        ran = subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=True)
        first, *later = map(int, ran.stdout.split())
        assert first > pages // 2
        assert fewest <= max(later) <= most, (how, later)
