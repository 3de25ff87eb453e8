"""Tests that memory of results is reused, by page faults of a separate process."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, resource, sys
import numpy as np
from asterism_daemonkit.malloc_tuning import keep_freed_memory

PR_SET_THP_DISABLE = 41  # where all memory is in pages of 2 MiB, few would be counted
assert ctypes.CDLL(None).prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0

def batch():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    kept = [np.ones(3 << 17) for _ in range(6)]
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

if sys.argv[1] == "kept":
    keep_freed_memory()
print(*(batch() for _ in range(4)))
"""


THRESHOLDS = (
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_TRIM_THRESHOLD_",
    "MALLOC_TOP_PAD_",
    "GLIBC_TUNABLES",
)
PAGES = 6 * (3 << 20) // 4096


def count_fresh_pages(mode: str, **environment: str) -> list[int]:
    """Return the fresh pages of each of four batches."""
    # Environment of the child process.
    inherited = {name: value for name, value in os.environ.items() if name not in THRESHOLDS}  # noqa: TID251
    completed = subprocess.run(
        [sys.executable, "-c", PROGRAM, mode],
        capture_output=True,
        text=True,
        check=True,
        env=inherited | environment,
    )
    return [int(count) for count in completed.stdout.split()]


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have other rules")
def test_batches_after_the_first_need_no_fresh_pages() -> None:
    """The measure is minor page faults of a separate process, at 4608 pages per batch.

    Other processes do not affect the count. Three runs gave the same counts: 4596, 0, 0 and 0 where
    memory is kept, 4576 to 4615 per batch where it is not. The bounds, a twentieth and a half of a
    batch, leave pages to other C libraries and interpreters.
    """
    first, *later = count_fresh_pages("kept")
    assert first > PAGES // 2
    assert max(later) <= PAGES // 20
    first, *later = count_fresh_pages("as it is")
    assert min(first, *later) > PAGES // 2


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have other rules")
def test_thresholds_of_the_environment_stay() -> None:
    assert min(count_fresh_pages("kept", MALLOC_MMAP_THRESHOLD_="131072")) > PAGES // 2
