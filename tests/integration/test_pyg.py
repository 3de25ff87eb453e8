"""The adapters for PyG and PyTorch, in the environment that has them: each test of a module of `tests/kit/pyg` is one here."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.kit import pyg_env
from tests.kit.pyg_env import Outcomes

# The tests of a module are run together, by the first of them that is asked for.
pytestmark = [pytest.mark.pyg, pytest.mark.timeout(960)]


@pytest.fixture(scope="module")
def loaders(pyg_python: Path, shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    return pyg_env.outcomes(pyg_python, "loaders.py", home=tmp_path_factory.mktemp("loaders"))


@pytest.fixture(scope="module")
def batches(pyg_python: Path, shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    return pyg_env.outcomes(pyg_python, "batches.py", home=tmp_path_factory.mktemp("batches"))


@pytest.fixture(scope="module")
def objects(pyg_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    return pyg_env.outcomes(pyg_python, "objects.py", home=tmp_path_factory.mktemp("objects"))


@pytest.mark.parametrize("name", pyg_env.names("loaders.py"))
def test_pygs_loaders(loaders: Outcomes, name: str) -> None:
    loaders.require(name)


@pytest.mark.parametrize("name", pyg_env.names("batches.py"))
def test_epochs_of_batches(batches: Outcomes, name: str) -> None:
    batches.require(name)


@pytest.mark.parametrize("name", pyg_env.names("objects.py"))
def test_pygs_objects_in_a_space(objects: Outcomes, name: str) -> None:
    objects.require(name)


@pytest.mark.parametrize("module", ["learning.py", "walking.py"])
def test_examples_learn_from_a_cluster(pyg_python: Path, shared: Path, tmp_path: Path, module: str) -> None:
    (name,) = pyg_env.names(module)
    pyg_env.outcomes(pyg_python, module, home=tmp_path).require(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", pyg_env.names("learning_slow.py"))
def test_learning_over_several_seeds(pyg_python: Path, shared: Path, tmp_path: Path, name: str) -> None:
    ended = pyg_env.outcomes(pyg_python, "learning_slow.py", "-s", home=tmp_path)
    print(ended.output)
    ended.require(name)


def test_a_trainer_with_pyg_imports_the_client_of_this_checkout(root: Path, pyg_python: Path, tmp_path: Path) -> None:
    program = "import asterism, sys; heavy = 'torch' in sys.modules; import torch_geometric as pyg; print(asterism.__file__, pyg.__version__, heavy)"
    home, pyg, heavy = pyg_env.run(pyg_python, "-c", program, home=tmp_path).split()[-3:]
    assert Path(home) == root / "client/asterism/__init__.py"
    assert (pyg.split(".")[0], heavy) == ("2", "False")
