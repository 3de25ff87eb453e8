"""No test depends on the machine: not on a port that was free a moment ago."""

from __future__ import annotations

import re
from pathlib import Path

CHOSEN_PORT = re.compile(r"\bfree_ports?\b|randrange\(\s*\d[\d_]{3,},\s*\d[\d_]{3,}\)")


def modules_of(root: Path) -> list[Path]:
    return sorted(path for path in (root / "tests").rglob("*.py") if path != Path(__file__))


def test_no_test_chooses_a_port_beforehand(root: Path) -> None:
    """A port is reserved (`tests.kit.ports`), or a daemon listens on port 0 and reports it (`--ports-file`)."""
    chosen = [
        f"{path.relative_to(root)}:{number}"
        for path in modules_of(root)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if CHOSEN_PORT.search(line)
    ]
    assert chosen == []
