"""Tests of the README: its examples run, its links resolve, its commands exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.kit import pyg_env
from tests.kit.waiting import HANG_S

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    str(path.relative_to(ROOT))
    for pattern in ("*.md", "docs/*.md", "docs/notes/*.md")
    for path in ROOT.glob(pattern)
)


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", path.read_text(), re.MULTILINE | re.DOTALL)


def test_the_example_of_the_readme_runs(root: Path, tmp_path: Path) -> None:
    (program,) = blocks(root / "README.md", "python")
    program += (
        "\nassert bought.nodes.shape == (32, 10)\nassert len(prices['price']) == 256\nassert "
        "items.version == 1\nclient.close()\n"
    )
    completed = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr


@pytest.mark.pyg
def test_the_training_loop_of_the_readme_runs(root: Path, pyg_python: Path, tmp_path: Path) -> None:
    (loop,) = blocks(root / "README.md", "python torch")
    program = tmp_path / "loop.py"
    program.write_text(
        f"import os\nos.chdir({str(tmp_path)!r})\n{loop}"
        "assert batch.x.shape[1] == 64\nassert batch.edge_index.shape[1] > 0\n"
        "assert torch.isfinite(loss)\nassert client.graph('demo').version is None\n"
        "client.close()\n"
    )
    pyg_env.run(pyg_python, program, home=tmp_path, timeout_s=HANG_S)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_link_in_a_document_leads_to_a_file(root: Path, document: str) -> None:
    path = root / document
    targets = [
        target.partition("#")[0]
        for target in re.findall(r"\]\(([^)]+)\)", path.read_text())
        if "://" not in target
    ]
    assert [target for target in targets if target and not (path.parent / target).exists()] == []


def test_every_target_that_the_readme_names_is_in_the_makefile(root: Path) -> None:
    mentioned = set(
        re.findall(r"(?:^|`)make ([a-z-]+)", (root / "README.md").read_text(), re.MULTILINE)
    )
    defined = set(re.findall(r"^([a-z-]+):", (root / "Makefile").read_text(), re.MULTILINE))
    assert {"demo", "test"} <= mentioned <= defined


def test_the_error_table_of_the_protocol_is_the_tree(root: Path) -> None:
    from asterism_proto.errors import ALL

    rows = re.findall(
        r"^\| `(\w+)`[^|]*\| ([A-Z_]+) \| (\d+) \| (\w+) \|",
        (root / "docs/protocol.md").read_text(),
        re.MULTILINE,
    )
    assert {name: (code, int(status), retry) for name, code, status, retry in rows} == {
        c.__name__: (c.code, c.http, c.retry.value) for c in ALL
    }


def test_the_command_page_lists_the_exit_codes(root: Path) -> None:
    from asterism.cli.exit_codes import ExitCode

    page = (root / "docs/command.md").read_text()
    listed = re.findall(r"^\| (\d+) \|", page[page.index("| code | means |") :], re.MULTILINE)
    assert [int(code) for code in listed] == [code.value for code in ExitCode]


def test_the_makefile_names_tests_that_exist(root: Path) -> None:
    expanded = subprocess.run(
        ["make", "--dry-run", "--always-make", "test-bounds"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG_S,
    ).stdout
    paths = set(re.findall(r"(?<=\s)tests/[\w/.]+", expanded))
    assert len(paths) > 20
    assert {path for path in paths if not (root / path).exists()} == set()
