"""The completion scripts in the shells themselves, with a program that answers their requests."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.kit.waiting import HANG_S

from asterism.cli.shell_completion import SCRIPTS, Shell

ZSH, FISH = shutil.which("zsh") or "", shutil.which("fish") or ""
ANSWERS = "shop\tversion 3\nuser:buys:item\t\nuser:likes:user\twith spaces\n*\tall\n"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Return a folder with a program that answers requests and records them."""
    file = tmp_path / "asterism"
    file.write_text(
        "#!/bin/sh\n"
        f'printf "%s" "$_TYPER_COMPLETE_ARGS" > {tmp_path}/line\n'
        f"test $_ASTERISM_COMPLETE = complete_fish && cat {tmp_path}/answers\n"
    )
    file.chmod(0o755)
    (tmp_path / "answers").write_text(ANSWERS)
    return tmp_path


@pytest.mark.parametrize(
    ("line", "breaks", "replies"),
    [
        ("asterism sample nodes ", ":=", ["shop", "user:buys:item", "user:likes:user", "*"]),
        ("asterism x --type user:b", ":=", ["shop", "buys:item", "likes:user", "*"]),
        ("asterism x --type=user:b", ":=", ["shop", "buys:item", "likes:user", "*"]),
        ("asterism x --type user:b", "=", ["shop", "user:buys:item", "user:likes:user", "*"]),
    ],
)
def test_bash_offers_the_candidates(
    program: Path, line: str, breaks: str, replies: list[str]
) -> None:
    script = f"""
        {SCRIPTS[Shell.BASH]}
        COMP_WORDBREAKS={breaks!r}
        COMP_LINE={line!r}
        COMP_POINT=${{#COMP_LINE}}
        _asterism asterism
        printf '%s\\n' "${{COMPREPLY[@]}}"
        complete -p asterism
    """
    completed = subprocess.run(
        ["bash", "--norc", "-c", script],
        env={"PATH": f"{program}:{os.defpath}"},
        cwd=program,
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG_S,
    )
    assert completed.stderr == ""
    assert completed.stdout.splitlines() == [
        *replies,
        "complete -o default -F _asterism asterism",
    ]
    assert (program / "line").read_text() == line


@pytest.mark.skipif(not ZSH, reason="zsh is not installed")
def test_zsh_offers_the_candidates(program: Path) -> None:
    script = f"""
        compdef() {{ : }}
        compset() {{ : }}
        _files() {{ print files }}
        _describe() {{ print -rl -- "${{(@P)3}}" }}
        {SCRIPTS[Shell.ZSH]}
        words=(asterism sample nodes '') CURRENT=4 PREFIX=''
        _asterism
    """
    completed = subprocess.run(
        [ZSH, "-f", "-c", script],
        env={"PATH": f"{program}:{os.defpath}"},
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG_S,
    )
    assert completed.stdout.splitlines() == [
        "shop:version 3",
        r"user\:buys\:item:",
        r"user\:likes\:user:with spaces",
        "*:all",
    ]
    assert (program / "line").read_text() == "asterism sample nodes "


@pytest.mark.skipif(not FISH, reason="fish is not installed")
def test_fish_offers_the_candidates(program: Path) -> None:
    script = f"{SCRIPTS[Shell.FISH]}\ncomplete --do-complete 'asterism sample nodes '"
    completed = subprocess.run(
        [FISH, "--no-config", "-c", script],
        env={"PATH": f"{program}:{os.defpath}", "HOME": str(program)},
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG_S,
    )
    assert sorted(completed.stdout.splitlines()) == sorted(
        ANSWERS.replace("\t\n", "\n").splitlines()
    )
    assert (program / "line").read_text() == "asterism sample nodes "
