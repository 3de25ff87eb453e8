"""Runner of DGL scripts in a separate interpreter.

Scripts are in `tests/kit/dgl`; they exchange data through files and output.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.kit.warm_interpreter import WarmInterpreter

SCRIPTS = Path(__file__).parent / "dgl"


def warm(python: Path, home: Path, *modules: str, python_path: str = "") -> WarmInterpreter:
    """Return an interpreter that imports DGL, and other modules, once for several programs.

    ``python_path`` is the module search path of the imports.
    """
    settings = _settings(home) | {"PYTHONPATH": python_path}
    return WarmInterpreter(python, ["dgl_shim", *modules], scripts=SCRIPTS, environment=settings)


def run(
    python: Path | WarmInterpreter,
    script: Path,
    *arguments: object,
    home: Path,
    timeout_s: float = 240.0,
    extra_environment: Mapping[str, str] | None = None,
) -> str:
    """Run a script with DGL and return its output; a failure shows the end of it.

    DGL keeps its settings in ``home``.
    """
    settings = _settings(home) | dict(extra_environment or {})
    if isinstance(python, WarmInterpreter):
        completed = python.run(script, *arguments, environment=settings, timeout_s=timeout_s)
    else:
        command = [
            "env",
            *(f"{key}={value}" for key, value in settings.items()),
            str(python),
            str(script),
            *map(str, arguments),
        ]
        completed = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    assert completed.returncode == 0, (
        f"{script.name} ended with {completed.returncode}:\n{completed.stdout[-4000:]}"
    )
    return completed.stdout


def _settings(home: Path) -> dict[str, str]:
    return {
        "DGLBACKEND": "pytorch",
        "DGL_DIST_DEBUG": "1",
        "HOME": str(home),
        "OMP_NUM_THREADS": "1",  # idle threads of OpenMP spin
    }
