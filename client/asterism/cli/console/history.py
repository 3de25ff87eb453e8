"""What was typed, kept from one console to the next: nothing that looks like a secret, and nothing
that begins with a blank.
"""

from __future__ import annotations

import re
from pathlib import Path

_SECRET = re.compile(
    r"pass(word|wd|phrase)|secret|token|credential|api_?key|access_?key|private_?key", re.IGNORECASE
)


def history_path(state_home: Path | None) -> Path:
    """Where it is kept: in ``asterism/`` of the folder that programs keep their state in."""
    # A folder that is not absolute counts for nothing, as the specification of these folders has
    # it.
    state_folder = (
        state_home
        if state_home is not None and state_home.is_absolute()
        else Path.home() / ".local" / "state"
    )
    return state_folder / "asterism" / "history"


def may_be_stored(text: str) -> bool:
    """Whether what was typed may be kept."""
    return bool(text.strip()) and not text[0].isspace() and _SECRET.search(text) is None


def prepare_file(path: Path) -> Path | None:
    """A file that only its owner reads; None where there can be none."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.touch(mode=0o600, exist_ok=True)
        path.chmod(0o600)
    except OSError:
        return None
    return path
