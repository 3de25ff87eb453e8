"""The adapters for PyG and PyTorch, in the environment that has them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.kit import pyg_env


@pytest.mark.pyg
def test_a_trainer_with_pyg_imports_the_client_of_this_checkout(root: Path, pyg_python: Path, tmp_path: Path) -> None:
    program = "import asterism, sys; heavy = 'torch' in sys.modules; import torch_geometric as pyg; print(asterism.__file__, pyg.__version__, heavy)"
    home, pyg, heavy = pyg_env.run(pyg_python, "-c", program, home=tmp_path).split()[-3:]
    assert Path(home) == root / "client/asterism/__init__.py"
    assert (pyg.split(".")[0], heavy) == ("2", "False")
