"""Local operations on torch's tensors, in the environment that has torch."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.kit import dgl_env


@pytest.mark.dgl
def test_tensor_gather_scatter_match_arrays_with_gradients(
    root: Path, dgl_python: Path, tmp_path: Path
) -> None:
    dist_info = (
        tmp_path / "asterism-0.dist-info"
    )  # a trainer installs the package; here it is run from its sources
    dist_info.mkdir()
    (dist_info / "METADATA").write_text("Metadata-Version: 2.1\nName: asterism\nVersion: 0\n")
    python_path = (
        os.pathsep.join(str(root / name) for name in ("client", "proto"))
        + os.pathsep
        + str(tmp_path)
    )
    out = dgl_env.run(
        dgl_python,
        dgl_env.SCRIPTS / "torch_ops.py",
        home=tmp_path,
        extra_environment={"PYTHONPATH": python_path},
    )
    assert out.splitlines()[-1] == "OK"
