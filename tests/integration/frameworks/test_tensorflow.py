"""The TensorFlow adapter, in an environment with TensorFlow.

Each test of a module in `tests/kit/tensorflow` is one test here.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.kit import pyg_env
from tests.kit.pyg_env import TENSORFLOW_SCRIPTS, Outcomes

# The first requested test of a module runs the whole module.
pytestmark = pytest.mark.tensorflow
MODULES = ("batches.py", "operators.py", "euler_operators.py", "dead_ends.py")


@pytest.fixture(scope="module")
def outcomes(tf_python: Path, shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    more = [TENSORFLOW_SCRIPTS / name for name in MODULES[1:]]
    return pyg_env.run_tests(
        tf_python,
        MODULES[0],
        *map(str, more),
        home=tmp_path_factory.mktemp("tensorflow"),
        scripts=TENSORFLOW_SCRIPTS,
    )


@pytest.mark.parametrize(
    "name", [name for module in MODULES for name in pyg_env.list_tests(module, TENSORFLOW_SCRIPTS)]
)
def test_tensorflow(outcomes: Outcomes, name: str) -> None:
    outcomes.require(name)


def test_tensorflow_trainer_imports_client_of_this_checkout(
    root: Path, tf_python: Path, tmp_path: Path
) -> None:
    program = (
        "import asterism, sys; from importlib.metadata import version; "
        "print(asterism.__file__, version('tensorflow-cpu'), 'tensorflow' in sys.modules)"
    )
    home, tf, heavy = pyg_env.run(tf_python, "-c", program, home=tmp_path).split()[-3:]
    assert Path(home) == root / "client/asterism/__init__.py"
    assert (tf.split(".")[0], heavy) == ("2", "False")
