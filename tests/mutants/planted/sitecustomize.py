"""Startup module that plants mutants in every process with this folder in PYTHONPATH.

The interpreter imports it automatically at its start.

In processes that the zygote forks, `tests.kit.zygote` plants them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

try:
    from tests.mutants import planting

    planting.plant_from_environment()
except Exception as error:  # the interpreter would print the error and start without the mutant
    raise SystemExit(f"no mutant is planted: {error!r}") from error
