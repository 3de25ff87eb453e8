"""Ports file, in which a daemon reports the ports that it listens on."""

from __future__ import annotations

import json
import os
from pathlib import Path


def clear_ports(path: str) -> None:
    """Remove the ports file of an earlier process; ``path`` may be empty."""
    if path:
        Path(path).unlink(missing_ok=True)


def write_ports(path: str, **ports: int) -> None:
    """Write the open ports and the process id as one JSON object, atomically.

    ``path`` may be empty; then nothing is written."""
    if not path:
        return
    target = Path(path)
    temporary = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    temporary.write_text(json.dumps({**ports, "pid": os.getpid()}))
    os.replace(temporary, target)
