"""Kernels are compiled once: ahead with progress, or by the first call that needs them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.kit.waiting import HANG_S

from asterism_proto.errors import Unavailable
from asterism_standalone import kernel_compiler
from asterism_standalone.kernel_compiler import (
    CompileProgress,
    KernelCompiler,
    is_cache_complete,
)

GRAPH = """
direction: both
nodes:
  paper: {files: papers.csv, id: id}
edges:
  paper:cites:paper: {files: cites.csv, src: from, dst: to, weight: times}
"""


def test_compiler_reports_progress_until_the_cache_is_complete() -> None:
    reports: list[CompileProgress] = []
    with KernelCompiler(2) as compiler:
        compiler.wait(reports.append)
    assert is_cache_complete()
    done = [report.steps_done for report in reports]
    assert done == sorted(done)
    assert reports[-1].steps_done == reports[-1].steps_total
    assert not reports[-1].current


def test_one_process_compiles_in_the_background(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Other tests may compile in the background too.
    monkeypatch.setattr(kernel_compiler, "_LOCK", str(tmp_path / "lock"))
    with KernelCompiler(1, background=True) as first, KernelCompiler(1, background=True) as second:
        second.wait(lambda _: None)
        assert second.progress().steps_done == 0
        first.wait(lambda _: None)
        assert first.progress().steps_done == first.progress().steps_total


def test_failed_compilation_names_the_cause() -> None:
    with KernelCompiler(1) as compiler:
        compiler.wait(lambda _: None)
    broken = KernelCompiler(1)
    broken._module = "asterism_standalone.no_such_module"
    with broken, pytest.raises(Unavailable, match=r"cannot be compiled: .*no_such_module"):
        broken.wait(lambda _: None)


@pytest.mark.slow
def test_first_load_on_a_machine_says_that_it_compiles(tmp_path: Path) -> None:
    (tmp_path / "papers.csv").write_text("id\n" + "".join(f"{i}\n" for i in range(50)))
    edges = "".join(f"{i},{(7 * i + 1) % 50},{i % 5 + 1}\n" for i in range(50))
    (tmp_path / "cites.csv").write_text(f"from,to,times\n{edges}")
    (tmp_path / "papers.yaml").write_text(GRAPH)
    cache = tmp_path / "cache"
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}  # noqa: TID251
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    command = [sys.executable, "-m", "asterism.cli", "--path", "graphs"]

    def run(*arguments: str) -> str:
        """Return stderr of a command that succeeds."""
        completed = subprocess.run(
            [*command, *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
        )
        assert completed.returncode == 0, completed.stderr
        return completed.stderr

    assert "compiling kernels" in run("load", "papers", "papers.yaml", "--create", "--build")
    run("sample", "neighbors", "papers", "1", "--type", "cites")
    assert "compiling kernels" not in run("sample", "neighbors", "papers", "1", "--type", "cites")
