"""The journal of an export: which steps are done, and what they found out. It is what an export
goes on by after it was killed.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Journal:
    """A small file for each step that is done, in a folder.

    Parameters
    ----------
    folder : Path
        Made where it is not there.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def get(self, step: str) -> dict[str, Any] | None:
        """What a step found out; None while it is not done."""
        try:
            facts: dict[str, Any] = json.loads((self._folder / f"{step}.json").read_text())
        except FileNotFoundError:
            return None
        return facts

    def put(self, step: str, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Note that a step is done; give the facts as `get` does."""
        text = json.dumps(facts)
        # Under a name of its own first: whoever looks sees all of it or nothing, however many write
        # it.
        temporary = self._folder / f"{step}.{uuid.uuid4().hex[:8]}"
        with temporary.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(self._folder / f"{step}.json")
        stored_facts: dict[str, Any] = json.loads(text)
        return stored_facts
