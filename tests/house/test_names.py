"""What the public package offers is listed, complete, sorted and there."""

from __future__ import annotations

import inspect
import subprocess
import sys

import asterism
from asterism_proto import errors


def test_the_public_names_are_sorted_and_there() -> None:
    assert list(asterism.__all__) == sorted(asterism.__all__)
    assert [name for name in asterism.__all__ if getattr(asterism, name, None) is None] == []


def test_every_error_can_be_caught_by_its_public_name() -> None:
    assert {cls.__name__ for cls in errors.ALL} | {"AsterismError"} <= set(asterism.__all__)
    assert all(getattr(asterism, cls.__name__) is cls for cls in errors.ALL)


def test_every_public_name_has_a_sentence() -> None:
    objects = [getattr(asterism, name) for name in asterism.__all__ if not name.startswith("__")]
    assert [o for o in objects if (inspect.isclass(o) or inspect.isfunction(o)) and not inspect.getdoc(o)] == []


def test_a_trainer_that_imports_the_client_pays_for_no_server() -> None:
    heavy = ("numba", "rocksdict", "fastapi", "pyarrow", "pydantic", "typer", "rich", "standalone", "storaged", "graphd", "metad")
    program = f"import sys, asterism; print(*(name for name in {heavy!r} if name in sys.modules))"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60).stdout
    assert out.split() == []


def test_the_help_of_the_command_loads_neither_arrays_nor_servers() -> None:
    heavy = ("numba", "numpy", "rocksdict", "fastapi", "pyarrow", "pydantic", "grpc", "google.protobuf", "standalone", "storaged", "graphd", "metad")
    program = (
        "import sys\nfrom asterism import cli\ntry:\n    cli.main(['--help'])\nexcept SystemExit as exit:\n    assert not exit.code\n"
        f"print('loaded:', *(name for name in {heavy!r} if name in sys.modules))"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60).stdout
    assert out.splitlines()[-1] == "loaded:"
