"""Tests of bounds-checked kernels: each index is within its array, or raises IndexError."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from asterism_graphkit.compile.bounds_checks import ExtentTable

KERNELS = """
import numpy as np
from asterism_graphkit.compile.jit import (
    CHECK_BOUNDS,
    addresses_of,
    copy_at,
    inlined,
    kernel,
    register,
    register_at,
    u64_at,
    view_at,
)

NONE = np.zeros(0)
OWN = np.arange(3, dtype=np.uint64)

@inlined
def step(values, at):
    return values[at]

@kernel
def indexed(values, at):
    return step(values, at)

@kernel
def read(addresses, at):
    return np.float64(u64_at(addresses[0], at))

@kernel
def viewed(addresses, size):
    return view_at(addresses[0], size, NONE).sum()

@kernel
def copied(addresses, size):
    out = np.zeros(10)
    if CHECK_BOUNDS:
        register(out)
    copy_at(np.uint64(out.ctypes.data), addresses[0], np.int64(8 * size))
    return out.sum()

@kernel
def constant(addresses, at):
    own = np.uint64(OWN.ctypes.data)
    if CHECK_BOUNDS:
        register_at(own, 8 * OWN.size)
    return np.float64(u64_at(own, at))

values = np.ones(10)
addresses = addresses_of([values])
inside = [
    (indexed, values, 9),
    (read, addresses, 9),
    (viewed, addresses, 10),
    (copied, addresses, 10),
    (constant, addresses, 2),
]
outside = [
    (indexed, values, 10),
    (read, addresses, 10),
    (read, addresses, -1),
    (viewed, addresses, 11),
    (copied, addresses, 11),
]
outside += [(constant, addresses, 3)]
nowhere = np.zeros(1, np.uint64)
outside += [(read, nowhere, 0), (viewed, nowhere, 1)]
for run, of, at in inside:
    run(of, at)
for run, of, at in outside:
    try:
        run(of, at)
    except IndexError:
        continue
    raise SystemExit(f"{run.__name__} at {at} passed")
print(
    CHECK_BOUNDS,
    sorted(
        path.name.split(".")[1].split("-")[0]
        for path in __import__("pathlib").Path("__pycache__").glob("*-checked.nbi")
    ),
)
"""


@pytest.mark.parametrize("interpreted", [False, True])
def test_checking_build_refuses_out_of_bounds_access(tmp_path: Path, *, interpreted: bool) -> None:
    (tmp_path / "kernels.py").write_text(KERNELS)
    environment = {
        **os.environ,  # noqa: TID251
        "ASTERISM_CHECK_BOUNDS": "1",
        "NUMBA_DISABLE_JIT": str(int(interpreted)),
    }  # environment of a child with two more switches
    command = [
        sys.executable,
        "-c",
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import kernels",
    ]
    completed = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    names = [] if interpreted else ["constant", "copied", "indexed", "read", "step", "viewed"]
    assert completed.stdout == f"True {names}\n"


def test_extents_end_with_their_arrays() -> None:
    extents = ExtentTable()
    live, freed = np.zeros(4), np.zeros(4)
    base = freed.ctypes.data
    extents.register([live, freed])
    assert extents.contains(base, 0, 32)
    assert not extents.contains(base, 0, 33)
    assert not extents.contains(base, -8, 8)
    del freed
    extents.register([live])
    assert not extents.contains(base, 0, 8)
    assert extents.contains(live.ctypes.data, 24, 8)


def test_a_view_and_its_array_are_one_extent() -> None:
    extents, array = ExtentTable(), np.zeros(10)
    extents.register([array, array[3:5]])
    assert extents.contains(array[3:].ctypes.data, 0, 56)
    assert not extents.contains(array[3:].ctypes.data, 0, 57)
