"""The page on training: its code runs unchanged, on a cluster of three storageds.

It uses the real frameworks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kit import dgl_env, pyg_env
from tests.kit.cluster import LocalCluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(storageds=3) as running:
        yield running


def program(root: Path, language: str, address: str) -> str:
    blocks = re.findall(
        rf"^```{language}\n(.*?)^```$",
        (root / "docs/training.md").read_text(),
        re.MULTILINE | re.DOTALL,
    )
    return "\n".join(blocks).replace("localhost:9669", address)


@pytest.mark.pyg
@pytest.mark.dgl
@pytest.mark.tensorflow
def test_the_code_of_the_page_runs(
    root: Path,
    pyg_python: Path,
    dgl_python: Path,
    bolt_python: Path,
    tf_python: Path,
    cluster: LocalCluster,
    tmp_path: Path,
) -> None:
    checks = "assert loss < 1.2, loss  # of 4 classes, by chance 1.39\nassert len(seen) == 2000\n"
    chdir = f"import os\nos.chdir({str(tmp_path)!r})\n"  # the page writes files
    (tmp_path / "page.py").write_text(chdir + program(root, "python", cluster.addresses) + checks)
    pyg_env.run(pyg_python, tmp_path / "page.py", home=tmp_path)
    python_path = os.pathsep.join(str(root / name) for name in ("client", "proto"))
    (tmp_path / "of_dgl.py").write_text(program(root, "python dgl", cluster.addresses))
    dgl_env.run(
        dgl_python,
        tmp_path / "of_dgl.py",
        home=tmp_path,
        extra_environment={"PYTHONPATH": python_path},
    )
    shimmed = "from dgl_shim import dgl\n" + program(root, "python graphbolt", cluster.addresses)
    (tmp_path / "of_graphbolt.py").write_text(shimmed)
    dgl_env.run(
        bolt_python,
        tmp_path / "of_graphbolt.py",
        home=tmp_path,
        extra_environment={"PYTHONPATH": python_path + os.pathsep + str(dgl_env.SCRIPTS)},
    )
    checks = "assert fitted.history['accuracy'][-1] > 0.5\n"
    (tmp_path / "of_tensorflow.py").write_text(
        chdir + program(root, "python tensorflow", cluster.addresses) + checks
    )
    pyg_env.run(tf_python, tmp_path / "of_tensorflow.py", home=tmp_path)
