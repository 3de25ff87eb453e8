"""Tests of kernels in numba's cache."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.kit.waiting import HANG_S

from asterism_graphkit.compile.jit import CompiledFiles

STEP = """
from asterism_graphkit.compile.jit import inlined
BASE = {base}

@inlined
def step(x):
    return x + {step}
"""
KERNEL = """
from asterism_graphkit.compile.jit import kernel
from steps import BASE, step

@kernel
def run(x):
    return step(x) + BASE
"""
PROGRAM = "import loops; print(loops.run(1), sum(loops.run.stats.cache_hits.values()))"


def run_kernel(folder: Path, base: int, step: int) -> tuple[int, int]:
    """Return the result of the kernel in a separate process, and whether it was cached."""
    (folder / "steps.py").write_text(STEP.format(base=base, step=step))
    return run_program(folder, PROGRAM)


def run_program(folder: Path, program: str) -> tuple[int, int]:
    """Return the two numbers that a program prints."""
    path = os.pathsep.join([str(folder), *sys.path])
    command = [
        "env",
        f"PYTHONPATH={path}",
        "PYTHONDONTWRITEBYTECODE=1",
        sys.executable,
        "-c",
        program,
    ]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert completed.returncode == 0, completed.stderr
    value, hits = completed.stdout.split()
    return int(value), int(hits)


def test_changed_step_or_constant_elsewhere_recompiles_kernel(tmp_path: Path) -> None:
    (tmp_path / "loops.py").write_text(KERNEL)
    assert run_kernel(tmp_path, 10, 1) == (12, 0)
    assert run_kernel(tmp_path, 10, 1) == (12, 1)
    assert run_kernel(tmp_path, 10, 5) == (16, 0)
    assert run_kernel(tmp_path, 20, 5) == (26, 0)
    assert run_kernel(tmp_path, 20, 5) == (26, 1)


def test_a_cached_kernel_is_loaded_without_what_compiles_it(tmp_path: Path) -> None:
    (tmp_path / "loops.py").write_text(KERNEL)
    program = "import sys, loops; print(loops.run(1), int('numba.np.arrayobj' in sys.modules))"
    (tmp_path / "steps.py").write_text(STEP.format(base=10, step=2))
    assert [run_program(tmp_path, program) for _ in range(2)] == [(13, 1), (13, 0)]


def test_step_called_from_python_equals_step_in_kernel(tmp_path: Path) -> None:
    (tmp_path / "loops.py").write_text(KERNEL)
    (tmp_path / "steps.py").write_text(STEP.format(base=10, step=1))
    program = "import loops, steps; print(loops.run(1), steps.step(11) + steps.step(11) - 12)"
    assert run_program(tmp_path, program) == (12, 12)
    # Its code for kernels has no entry point, and is not called.
    bases = {path.name.split(".")[1].split("-")[0] for path in tmp_path.rglob("*.nbc")}
    assert bases == {"run", "step"}
    assert len(list(tmp_path.rglob("steps.step-*-python.nbi"))) == 1


def test_activity_counts_kernels_missing_from_the_cache(tmp_path: Path) -> None:
    (tmp_path / "loops.py").write_text(KERNEL)
    (tmp_path / "steps.py").write_text(STEP.format(base=10, step=1))
    program = """
from asterism_graphkit.compile.activity import ACTIVITY
import loops

seen = []
ACTIVITY.listeners.append(lambda: seen.append(ACTIVITY.current))
loops.run(1)
assert seen in ([], ["loops.run", "steps.step", "loops.run", ""]), seen
print(ACTIVITY.compiled, len(seen))
"""
    assert run_program(tmp_path, program) == (2, 4)
    assert run_program(tmp_path, program) == (0, 0)


def test_code_is_listed_only_after_it_is_written(tmp_path: Path) -> None:
    reader, loaded = CompiledFiles(str(tmp_path), "run", "new"), []

    class Watched(CompiledFiles):
        def _save_data(self, name: str, data: Any) -> None:
            loaded.append(reader.load("int64"))
            super()._save_data(name, data)
            loaded.append(reader.load("int64"))

    CompiledFiles(str(tmp_path), "run", "old").save("int64", "of older steps")
    Watched(str(tmp_path), "run", "new").save("int64", "of newer steps")
    assert set(loaded) <= {None, "of newer steps"}
    assert reader.load("int64") == "of newer steps"
    assert len(list(tmp_path.glob("*.nbc"))) == 1


def test_unreadable_lists_and_files_are_replaced(tmp_path: Path) -> None:
    CompiledFiles(str(tmp_path), "run", "old").save("int64", "of older steps")
    (index,) = tmp_path.glob("*.nbi")
    version = pickle.loads(index.read_bytes())
    # Protocol 0 names the class by its module, which exists no longer.
    index.write_bytes(pickle.dumps(version) + b"cmoved.kernels\nParams\n.")
    files = CompiledFiles(str(tmp_path), "run", "new")
    assert files.load("int64") is None
    files.save("int64", "of new steps")
    files.finish()
    assert CompiledFiles(str(tmp_path), "run", "new").load("int64") == "of new steps"
    (code,) = tmp_path.glob("*.nbc")
    code.write_bytes(code.read_bytes()[:-3])
    again = CompiledFiles(str(tmp_path), "run", "new")
    assert again.load("int64") is None
    again.finish()


def test_one_of_concurrent_processes_compiles_the_kernel(tmp_path: Path) -> None:
    (tmp_path / "loops.py").write_text(KERNEL)
    (tmp_path / "steps.py").write_text(STEP.format(base=10, step=1))
    command = [
        "env",
        f"PYTHONPATH={os.pathsep.join([str(tmp_path), *sys.path])}",
        sys.executable,
        "-c",
        f"import loops; input()\n{PROGRAM}",
    ]
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    outputs = [process.communicate(timeout=HANG_S)[0].split() for process in processes]
    assert [int(value) for value, _ in outputs] == [12, 12, 12]
    assert sorted(int(hits) for _, hits in outputs) == [0, 1, 1]


def test_kernel_that_does_not_compile_leaves_no_lock(tmp_path: Path) -> None:
    (tmp_path / "loops.py").write_text(KERNEL)
    (tmp_path / "steps.py").write_text(STEP.format(base=10, step=1))
    program = """
import loops, numba
try:
    loops.run("text")
except numba.errors.TypingError:
    print(loops.run._cache._cache_file._lock)
"""
    command = [
        "env",
        f"PYTHONPATH={os.pathsep.join([str(tmp_path), *sys.path])}",
        sys.executable,
        "-c",
        program,
    ]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert completed.stdout == "None\n", completed.stderr


def test_concurrent_compilers_do_not_mix_up_code(tmp_path: Path) -> None:
    class Blind(CompiledFiles):
        """Cache state when both processes have started before either has listed files."""

        def _load_index(self) -> dict[Any, str]:
            return {}

    other = Blind(str(tmp_path), "run", "stamp")

    class First(Blind):
        def _save_data(self, name: str, data: Any) -> None:
            other.save("int32", "of int32")
            super()._save_data(name, data)

    First(str(tmp_path), "run", "stamp").save("int64", "of int64")
    reader = CompiledFiles(str(tmp_path), "run", "stamp")
    assert reader.load("int64") in (None, "of int64")
    assert reader.load("int32") in (None, "of int32")
    assert "of int64" in (reader.load("int64"), reader.load("int32"))


def test_changed_step_in_sibling_package_recompiles_kernel(tmp_path: Path) -> None:
    """A kernel of ``server.kernels.walks`` compiles with steps of ``server.kernels``."""
    package = tmp_path / "server" / "kernels"
    (package / "walks").mkdir(parents=True)
    (package / "walks" / "loops.py").write_text(KERNEL.replace("from steps", "from ..steps"))
    program = PROGRAM.replace("import loops", "from server.kernels.walks import loops")
    outputs = []
    for step in (1, 1, 5):
        (package / "steps.py").write_text(STEP.format(base=10, step=step))
        outputs.append(run_program(tmp_path, program))
    assert outputs == [(12, 0), (12, 1), (16, 0)]
