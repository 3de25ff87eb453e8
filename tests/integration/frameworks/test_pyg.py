"""The PyG and PyTorch adapters, in an environment with both libraries.

Each test of a module in `tests/kit/pyg` is one test here.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.kit import pyg_env
from tests.kit.pyg_env import Outcomes

# The first requested test of these modules runs all of them together.
pytestmark = [pytest.mark.pyg, pytest.mark.timeout(3000)]
LOADERS = (
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
COMPARED = ("saints.py", "budgets_in_memory.py")
"""Modules that compare with PyG's samplers in torch-sparse."""
EXAMPLES = ("learning.py", "walking.py", "routing.py", "linking.py", "tasting.py")


@pytest.fixture(scope="module")
def has_torch_sparse(pyg_python: Path, tmp_path_factory: pytest.TempPathFactory) -> bool:
    """Return whether the environment has torch-sparse, in which PyG has some of its samplers."""
    program = "import importlib.util as u; print(u.find_spec('torch_sparse') is not None)"
    home = tmp_path_factory.mktemp("torch_sparse")
    return pyg_env.run(pyg_python, "-c", program, home=home).strip() == "True"


@pytest.fixture(scope="module")
def outcomes(
    pyg_python: Path,
    shared: Path,
    has_torch_sparse: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> Outcomes:
    """Run all modules in one process, so that they share its imports and its daemons' zygote."""
    modules = [*LOADERS, *EXAMPLES, "objects.py", *(COMPARED if has_torch_sparse else ())]
    more = [str(pyg_env.SCRIPTS / name) for name in modules[1:]]
    return pyg_env.run_tests(
        pyg_python, modules[0], *more, home=tmp_path_factory.mktemp("pyg"), timeout_s=2700.0
    )


@pytest.mark.parametrize(
    "name", [name for module in LOADERS for name in pyg_env.list_tests(module)]
)
def test_loaders_and_epochs(outcomes: Outcomes, name: str) -> None:
    outcomes.require(name)


@pytest.mark.parametrize("name", pyg_env.list_tests("objects.py"))
def test_pygs_objects_in_a_space(outcomes: Outcomes, name: str) -> None:
    outcomes.require(name)


@pytest.mark.parametrize("module", EXAMPLES)
def test_examples_learn_from_a_cluster(outcomes: Outcomes, module: str) -> None:
    (name,) = pyg_env.list_tests(module)
    outcomes.require(name)


@pytest.mark.parametrize("name", pyg_env.list_tests("saints.py"))
def test_graphsaint_batches_match_pyg(
    has_torch_sparse: bool, outcomes: Outcomes, name: str
) -> None:
    if not has_torch_sparse:
        pytest.skip(
            "PyG has GraphSAINT's samplers in torch-sparse, which its environment has not: "
            "its index has no wheel of it"
        )
    outcomes.require(name)


def test_hgt_sampling_matches_torch_sparse_distribution(
    has_torch_sparse: bool, outcomes: Outcomes
) -> None:
    if not has_torch_sparse:
        pytest.skip(
            "without torch_sparse, PyG's own distribution is not available; `make pyg-env` "
            "compiles it"
        )
    (name,) = pyg_env.list_tests("budgets_in_memory.py")
    outcomes.require(name)


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
        "import asterism, sys; from importlib.metadata import version; "
        "print(asterism.__file__, version('torch_geometric'), 'torch' in sys.modules)"
    )
    home, pyg, heavy = pyg_env.run(pyg_python, "-c", program, home=tmp_path).split()[-3:]
    assert Path(home) == root / "client/asterism/__init__.py"
    assert (pyg.split(".")[0], heavy) == ("2", "False")
