"""Local operations on torch tensors, in an environment with torch."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.kit import dgl_env


@pytest.mark.dgl
def test_tensor_gather_scatter_match_arrays_with_gradients(
    root: Path, dgl_python: Path, tmp_path: Path
) -> None:
    python_path = os.pathsep.join(str(root / name) for name in ("client", "proto"))
    out = dgl_env.run(
        dgl_python,
        dgl_env.SCRIPTS / "torch_ops.py",
        home=tmp_path,
        extra_environment={"PYTHONPATH": python_path},
    )
    assert out.splitlines()[-1] == "OK"
