"""Runner of DGL scripts in a separate interpreter.

Scripts are in `tests/kit/dgl`; they exchange data through files and output.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

SCRIPTS = Path(__file__).parent / "dgl"


def run(
    python: Path,
    script: Path,
    *arguments: object,
    home: Path,
    timeout_s: float = 240.0,
    extra_environment: Mapping[str, str] | None = None,
) -> str:
    """Run a script with DGL and return its output; a failure shows the end of it.

    DGL keeps its settings in ``home``.
    """
    settings = {
        "DGLBACKEND": "pytorch",
        "DGL_DIST_DEBUG": "1",
        "HOME": str(home),
        "OMP_NUM_THREADS": "1",  # idle threads of OpenMP spin
        **(extra_environment or {}),
    }
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
