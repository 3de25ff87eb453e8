"""The page for users of PGLBox: its code runs unchanged, and it lists every key."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from asterism.pglbox import IGNORED, KEYS


def test_the_code_of_the_page_runs(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    program = "\n".join(
        re.findall(
            r"^```python\n(.*?)^```$",
            (root / "docs/pglbox.md").read_text(),
            re.MULTILINE | re.DOTALL,
        )
    )
    names: dict[str, Any] = {}
    try:
        exec(compile(program, "docs/pglbox.md", "exec"), names)
    finally:
        if "client" in names:
            names["client"].close()
    assert len(names["seen"]) == 60
    assert (tmp_path / "box.db").is_dir()


def test_the_page_has_every_key_once(root: Path) -> None:
    page = (root / "docs/pglbox.md").read_text()
    used, ignored = (
        page.split("## Keys")[1].split("## Routine training")[0].split("### Ignored keys")
    )
    rows = re.findall(r"^\| (`.*?) \|", used, re.MULTILINE)
    assert sorted(key for row in rows for key in re.findall(r"`(\w+)`", row)) == sorted(KEYS)
    documented = {
        key: label
        for label, keys in re.findall(r"^\* ([^:`]+): (`(?:.|\n(?=  ))*)", ignored, re.MULTILINE)
        for key in re.findall(r"`(\w+)`", keys)
    }
    assert documented == dict(IGNORED)
