"""Faults injected into a daemon, through a file that `tests/kit/faultpoints` reads there."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

POINTS = Path(__file__).with_name("faultpoints")


class Faults:
    """Faults of one daemon and of its child processes.

    `tests/kit/faultpoints/sitecustomize.py` lists them.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def set(self, **faults: Any) -> None:
        """Replace the current faults; without arguments, remove all faults."""
        temporary = self._file.with_suffix(".making")
        temporary.write_text(json.dumps(faults))
        temporary.rename(self._file)

    def reached(self) -> list[tuple[int, str]]:
        """Return (pid, pass) of the builds that were held so far, in order."""
        file = Path(f"{self._file}.reached")
        lines = file.read_text().splitlines() if file.exists() else []
        return [(int(pid), name) for pid, _, name in (line.partition(" ") for line in lines)]

    def add_to_environment(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return an environment for the daemon's process, extended by two variables."""
        path = os.pathsep.join(filter(None, [str(POINTS), environment.get("PYTHONPATH", "")]))
        return {**environment, "PYTHONPATH": path, "ASTERISM_TEST_FAULTS": str(self._file)}
