"""History of the console: a file of the typed statements.

It omits statements that may contain secrets or begin with a space.
"""

from __future__ import annotations

import re
from pathlib import Path

_SECRET = re.compile(
    r"pass(word|wd|phrase)|secret|token|credential|api_?key|access_?key|private_?key", re.IGNORECASE
)


def history_path(state_home: Path | None) -> Path:
    """Return the path of the history file, in ``asterism/`` of the state folder."""
    # The XDG specification requires a relative state folder to be ignored.
    state_folder = (
        state_home
        if state_home is not None and state_home.is_absolute()
        else Path.home() / ".local" / "state"
    )
    return state_folder / "asterism" / "history"


def may_be_stored(text: str) -> bool:
    """Return whether a statement may be stored."""
    return bool(text.strip()) and not text[0].isspace() and _SECRET.search(text) is None


def prepare_file(path: Path) -> Path | None:
    """Create the file, readable by its owner only; return None if that fails."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.touch(mode=0o600, exist_ok=True)
        path.chmod(0o600)
    except OSError:
        return None
    return path
