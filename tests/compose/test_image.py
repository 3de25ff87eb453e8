"""The image: its size, the reuse of its layers, and what was removed from its packages."""

from __future__ import annotations

import json
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kit.compose import BUILD_S, sole_build

pytestmark = [pytest.mark.compose, pytest.mark.timeout(7200)]

MAX_MB = 500
READS = """
import io, pyarrow as pa, pyarrow.compute as pc
from pyarrow import csv, parquet
table = csv.read_csv(io.BytesIO(b"a,b\\n1,x\\n2,y\\n"))
file = io.BytesIO()
parquet.write_table(table, file)
assert parquet.read_table(file).equals(table)
assert pc.sum(table["a"]).as_py() == 3
import bz2, ctypes.util, curses, lzma, readline, sqlite3, ssl, zoneinfo
assert ssl.create_default_context() and zoneinfo.ZoneInfo("Europe/Berlin")
import s3fs, botocore.session
botocore.session.get_session().create_client("s3", region_name="us-east-1")
import pymetis, asterism.export, asterism.ingest
print("ok")
"""

Build = Callable[[Path], dict[str, Any]]


@pytest.fixture(scope="module")
def build(root: Path, compose_command: list[str]) -> Iterator[Build]:
    """Return a function that builds the image of a folder and returns its description."""
    assert compose_command  # an engine runs
    tags: list[str] = []

    def build_image(folder: Path) -> dict[str, Any]:
        tags.append(f"asterism-test-{uuid.uuid4().hex[:12]}")
        with sole_build(root):
            docker(
                "build", "--network", "host", "-q", "-t", tags[-1], str(folder), timeout_s=BUILD_S
            )
        [description] = json.loads(docker("image", "inspect", tags[-1]))
        assert isinstance(description, dict)
        return description | {"tag": tags[-1]}

    yield build_image
    for tag in tags:
        docker("image", "rm", tag)


def docker(*arguments: str, timeout_s: float = 600) -> str:
    """Return the output of a command of Docker."""
    completed = subprocess.run(
        ["docker", *arguments], capture_output=True, text=True, timeout=timeout_s, check=False
    )
    assert completed.returncode == 0, completed.stderr[-4000:]
    return completed.stdout


def test_image_is_at_most_500_mb(root: Path, build: Build) -> None:
    assert build(root)["Size"] <= MAX_MB * 1_000_000


def test_changed_client_adds_only_the_last_layer(root: Path, build: Build, tmp_path: Path) -> None:
    """The packages that Asterism depends on are not installed again, nor kernels compiled."""
    for name in ("proto", "client", "services", ".docker"):
        shutil.copytree(
            root / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyc")
        )
    for name in ("Dockerfile", ".dockerignore", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(root / name, tmp_path / name)
    before = build(tmp_path)["RootFS"]["Layers"]
    with (tmp_path / "client/asterism/__init__.py").open("a") as source:
        source.write("# changed\n")
    after = build(tmp_path)["RootFS"]["Layers"]
    assert after[:-1] == before[:-1]
    assert after[-1] != before[-1]


def test_packages_of_the_image_still_read_files(root: Path, build: Build) -> None:
    tag = build(root)["tag"]
    assert docker("run", "--rm", tag, "python", "-c", READS) == "ok\n"


def test_kernels_of_the_image_are_complete(root: Path, build: Build) -> None:
    tag = build(root)["tag"]
    assert docker("run", "--rm", tag, "asterism", "warm") == "all kernels are compiled\n"
