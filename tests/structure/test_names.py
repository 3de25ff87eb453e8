"""Tests that the public names of the package are listed, complete, sorted and importable."""

from __future__ import annotations

import inspect
import subprocess
import sys

from tests.kit.waiting import HANG_S

import asterism
from asterism_proto import errors


def test_the_public_names_are_sorted_and_there() -> None:
    assert list(asterism.__all__) == sorted(asterism.__all__)
    assert [name for name in asterism.__all__ if getattr(asterism, name, None) is None] == []


def test_every_error_can_be_caught_by_a_public_name() -> None:
    assert asterism.errors is errors
    assert {cls.__name__ for cls in errors.ALL} <= {
        name for name in vars(asterism.errors) if not name.startswith("_")
    }


def test_every_public_object_is_listed() -> None:
    own_names = {
        name
        for name, value in vars(asterism).items()
        if getattr(value, "__module__", "").startswith("asterism") and not name.startswith("_")
    }
    assert own_names <= set(asterism.__all__) | {"GrpcTransport"}


def test_every_public_name_has_a_docstring() -> None:
    objects = [getattr(asterism, name) for name in asterism.__all__ if not name.startswith("__")]
    assert [
        o
        for o in objects
        if (inspect.isclass(o) or inspect.isfunction(o)) and not inspect.getdoc(o)
    ] == []


def test_importing_the_client_imports_no_server() -> None:
    heavy = (
        "numba",
        "rocksdict",
        "fastapi",
        "pyarrow",
        "pydantic",
        "typer",
        "rich",
        "asterism_standalone",
        "storaged",
        "graphd",
        "metad",
        "torch",
        "torch_geometric",
        "dgl",
        "tensorflow",
    )
    program = f"import sys, asterism; print(*(name for name in {heavy!r} if name in sys.modules))"
    out = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=HANG_S
    ).stdout
    assert out.split() == []


def test_the_help_of_the_command_loads_no_server() -> None:
    heavy = (
        "numba",
        "rocksdict",
        "fastapi",
        "pyarrow",
        "asterism_standalone",
        "storaged",
        "graphd",
        "metad",
    )
    program = (
        "import sys\nfrom asterism import cli\ntry:\n    cli.main(['--help'])\nexcept "
        "SystemExit as exit:\n    assert not exit.code\n"
        f"print('loaded:', *(name for name in {heavy!r} if name in sys.modules))"
    )
    out = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=HANG_S
    ).stdout
    assert out.splitlines()[-1] == "loaded:"
