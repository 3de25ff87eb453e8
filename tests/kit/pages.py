"""Documentation pages as programs: their code blocks, by kind, and a runner for them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.kit.pyg_env import ROOT, SOURCES
from tests.kit.waiting import HANG_S

BLOCK = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
KINDS = {
    "python": "runs, one block after the other, in one process",
    "python torch": "runs with PyG and torch",
    "python dgl": "runs with DGL",
    "python graphbolt": "runs with GraphBolt",
    "python tensorflow": "runs with TensorFlow",
    "python shown": "does not run: it needs machines that a test has not",
    "sh": "runs, with the command at hand",
    "sh shown": "does not run",
    "yaml": "is read",
    "text": "is no code",
}
"""Allowed text after the fence of a block.

``file=NAME`` after it writes the block to a file.
"""
_CHILD = """
import json, sys
names = {"__name__": "__main__"}
for line in sys.stdin:
    block = json.loads(line)
    exec(compile("\\n" * block["line"] + block["code"], block["page"], "exec"), names)
    print("\\0", flush=True)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A block of code."""

    kind: str
    file: str
    """File that the block is written to; "" for none."""
    code: str
    line: int
    """Line of the fence in the page, from 0."""


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page, in order."""
    text = page.read_text()
    page_blocks = []
    for match in BLOCK.finditer(text):
        kind, _, file = match[1].partition("file=")
        page_blocks.append(
            Block(
                kind=kind.strip(),
                file=file.strip(),
                code=match[2],
                line=text[: match.start()].count("\n") + 1,
            )
        )
    return page_blocks


class Runner:
    """Runs blocks in a folder; blocks for the same Python share one process.

    Parameters
    ----------
    page : Path
        The page, shown in failures.
    folder : Path
        Working directory of the blocks.
    pythons : mapping
        Interpreter of each kind of block.
    replacements : mapping
        Texts of the page and their replacements when it runs, such as addresses and sizes.
    """

    def __init__(
        self,
        page: Path,
        folder: Path,
        pythons: Mapping[str, Path],
        replacements: Mapping[str, str],
        environment: Mapping[str, str],
    ) -> None:
        self._page, self._folder, self._pythons, self._replacements = (
            page,
            folder,
            pythons,
            replacements,
        )
        command = folder / "bin"
        command.mkdir()
        (command / "asterism").write_text(
            f'#!/bin/sh\nexec "{sys.executable}" -m asterism.cli "$@"\n'
        )
        (command / "asterism").chmod(0o755)
        path = os.pathsep.join([str(command), os.defpath])
        self._environment = {
            "PATH": path,
            "HOME": str(folder),
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join(SOURCES),
            **environment,
        }
        self._children: dict[str, subprocess.Popen[str]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for child in self._children.values():
            child.kill()
            child.communicate()

    def run(self, block: Block) -> str:
        """Run a block and return its output; AssertionError includes the output of a failure."""
        code = block.code
        for text, replacement in self._replacements.items():
            code = code.replace(text, replacement)
        if block.file:
            (self._folder / block.file).write_text(code)
        if block.kind == "sh":
            return self._shell(code, block)
        return self._python(code, block) if block.kind in self._pythons else ""

    def _shell(self, code: str, block: Block) -> str:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", code],
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
        )
        assert done.returncode == 0, (
            f"{self._page}:{block.line}: ended with {done.returncode}\n{done.stdout}{done.stderr}"
        )
        return done.stdout

    def _python(self, code: str, block: Block) -> str:
        child = self._children.get(block.kind)
        if child is None:
            child = self._children[block.kind] = subprocess.Popen(
                [self._pythons[block.kind], "-c", _CHILD],
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(
            json.dumps({"code": code, "line": block.line, "page": str(self._page)}) + "\n"
        )
        child.stdin.flush()
        output = []
        for line in child.stdout:
            if line == "\0\n":
                return "".join(output)
            output.append(line)
        raise AssertionError(
            f"{self._page}:{block.line}: the block fails\n{''.join(output)[-4000:]}"
        )


def all_pages() -> list[Path]:
    """Return every page with blocks, and the README, in all languages."""
    return [ROOT / "README.md", ROOT / "README.zh.md", *sorted((ROOT / "docs").rglob("*.md"))]


def is_translation(page: Path) -> bool:
    """Return whether a page is the Chinese version of another, with the same code."""
    return page.name.endswith(".zh.md")
