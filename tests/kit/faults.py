"""What goes wrong inside a daemon of a test, told by a file that `tests/kit/faultpoints` reads in
the daemon.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

POINTS = Path(__file__).with_name("faultpoints")


class Faults:
    """The faults of one daemon and of what it starts; `tests/kit/faultpoints/sitecustomize.py`
    lists them.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def set(self, **faults: Any) -> None:
        """Let these be the faults from now on; none: everything goes right again."""
        temporary = self._file.with_suffix(".making")
        temporary.write_text(json.dumps(faults))
        temporary.rename(self._file)

    def reached(self) -> list[tuple[int, str]]:
        """(pid, pass) of the builds that were held by now, in their order."""
        file = Path(f"{self._file}.reached")
        lines = file.read_text().splitlines() if file.exists() else []
        return [(int(pid), name) for pid, _, name in (line.partition(" ") for line in lines)]

    def add_to_environment(self, environment: Mapping[str, str]) -> dict[str, str]:
        """What the daemon's process is started with: this environment, and two words."""
        path = os.pathsep.join(filter(None, [str(POINTS), environment.get("PYTHONPATH", "")]))
        return {**environment, "PYTHONPATH": path, "ASTERISM_TEST_FAULTS": str(self._file)}
