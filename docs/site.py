"""Changes to pages for the site: the same files are also read in the repository."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

FENCE = re.compile(r"^(```\w+) .+$", re.MULTILINE)
"""A block's language, and words after it that say how tests run it."""
CHINESE_BREAK = re.compile(r"(?<=[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef])\n *(?=[\u4e00-\u9fff])")
"""A line break between two Chinese characters, which a browser shows as a space."""


def on_config(config: Any) -> Any:
    """Return the configuration with the version of this checkout, which each page shows."""
    package = Path(config.config_file_path).parent / "client/asterism/__init__.py"
    version = re.search(r'^__version__ = "(.+)"$', package.read_text(), re.MULTILINE)
    assert version is not None
    config.copyright = f"Asterism {version[1]}"
    return config


def is_chinese(page: Any) -> bool:
    """Return whether a page of the site is in Chinese."""
    return str(page.file.src_uri).endswith(".zh.md")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return a page without the words for tests, and without spaces in Chinese sentences."""
    markdown = FENCE.sub(r"\1", markdown)
    return CHINESE_BREAK.sub("", markdown) if is_chinese(page) else markdown


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Return the HTML of a page with the language of its text."""
    return (
        output.replace('<html lang="en"', '<html lang="zh-CN"', 1) if is_chinese(page) else output
    )
