"""The PyG and PyTorch adapters, in an environment with both libraries.

Each test of a module in `tests/kit/pyg` is one test here.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.kit import pyg_env
from tests.kit.pyg_env import Outcomes
from tests.kit.waiting import HANG_S

# The first requested test of these modules runs all of them together.
pytestmark = [pytest.mark.pyg, pytest.mark.timeout(1800)]
MODULES = (
    "loaders.py",
    "timed.py",
    "nodetimes.py",
    "budgets.py",
    "subgraphs.py",
    "orders.py",
    "batches.py",
    "clusters.py",
    "saintbatches.py",
    "linkbatches.py",
)


@pytest.fixture(scope="module")
def loader_outcomes(
    pyg_python: Path, shared: Path, tmp_path_factory: pytest.TempPathFactory
) -> Outcomes:
    more = [str(pyg_env.SCRIPTS / name) for name in MODULES[1:]]
    return pyg_env.run_tests(
        pyg_python, MODULES[0], *more, home=tmp_path_factory.mktemp("pyg"), timeout_s=1440.0
    )


@pytest.mark.parametrize(
    "name", [name for module in MODULES for name in pyg_env.list_tests(module)]
)
def test_loaders_and_epochs(loader_outcomes: Outcomes, name: str) -> None:
    loader_outcomes.require(name)


@pytest.fixture(scope="module")
def object_outcomes(pyg_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    return pyg_env.run_tests(pyg_python, "objects.py", home=tmp_path_factory.mktemp("objects"))


@pytest.mark.parametrize("name", pyg_env.list_tests("objects.py"))
def test_pygs_objects_in_a_space(object_outcomes: Outcomes, name: str) -> None:
    object_outcomes.require(name)


def test_hgt_sampling_matches_torch_sparse_distribution(pyg_python: Path, tmp_path: Path) -> None:
    has_torch_sparse = pyg_env.run(
        pyg_python,
        "-c",
        "import importlib.util as u; print(u.find_spec('torch_sparse') is not None)",
        home=tmp_path,
    ).strip()
    if has_torch_sparse != "True":
        pytest.skip(
            "without torch_sparse, PyG's own distribution is not available; `make pyg-env` "
            "compiles it"
        )
    assert (
        pyg_env.run(
            pyg_python, pyg_env.SCRIPTS / "budgets_in_memory.py", home=tmp_path, timeout_s=HANG_S
        ).split()[-1]
        == "OK"
    )


@pytest.mark.parametrize(
    "module", ["learning.py", "walking.py", "routing.py", "linking.py", "tasting.py"]
)
def test_examples_learn_from_a_cluster(
    pyg_python: Path, shared: Path, tmp_path: Path, module: str
) -> None:
    (name,) = pyg_env.list_tests(module)
    pyg_env.run_tests(pyg_python, module, home=tmp_path).require(name)


@pytest.mark.slow
@pytest.mark.parametrize("module", ["learning_slow.py", "linking_slow.py"])
def test_learning_over_several_seeds(
    pyg_python: Path, shared: Path, tmp_path: Path, module: str
) -> None:
    outcomes = pyg_env.run_tests(pyg_python, module, "-s", home=tmp_path)
    print(outcomes.output)
    (name,) = pyg_env.list_tests(module)
    outcomes.require(name)


def test_pyg_trainer_imports_client_of_this_checkout(
    root: Path, pyg_python: Path, tmp_path: Path
) -> None:
    program = (
        "import asterism, sys; heavy = 'torch' in sys.modules; import torch_geometric as "
        "pyg; print(asterism.__file__, pyg.__version__, heavy)"
    )
    home, pyg, heavy = pyg_env.run(pyg_python, "-c", program, home=tmp_path).split()[-3:]
    assert Path(home) == root / "client/asterism/__init__.py"
    assert (pyg.split(".")[0], heavy) == ("2", "False")


@pytest.fixture(scope="module")
def saint_outcomes(pyg_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    home = tmp_path_factory.mktemp("saints")
    if "True" not in pyg_env.run(
        pyg_python,
        "-c",
        "import torch_geometric.typing as t; print(t.WITH_TORCH_SPARSE)",
        home=home,
    ):
        pytest.skip(
            "PyG has GraphSAINT's samplers in torch-sparse, which its environment has not: "
            "its index has no wheel of it"
        )
    return pyg_env.run_tests(pyg_python, "saints.py", home=home)


@pytest.mark.parametrize("name", pyg_env.list_tests("saints.py"))
def test_graphsaint_batches_match_pyg(saint_outcomes: Outcomes, name: str) -> None:
    saint_outcomes.require(name)
