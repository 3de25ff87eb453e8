"""What the site needs of pages that are also read as files."""

from __future__ import annotations

import re
from typing import Any

FENCE = re.compile(r"^(```\w+) .+$", re.MULTILINE)
"""A block's language, and words after it that say how tests run it."""


def on_page_markdown(markdown: str, **_: Any) -> str:
    """A page without the words for tests."""
    return FENCE.sub(r"\1", markdown)
