"""The catalogue of mutants, by subject: each module has the tuple `MUTANTS`.
Planting them belongs to `tests.mutants.planting`, running them to `tests.mutants.runner`.
"""

from __future__ import annotations

import importlib
from functools import cache

from tests.mutants.mutant import Mutant

GROUPS = (
    "draws",
    "rows",
    "walks",
    "labor",
    "hgt",
    "visits",
    "filters",
    "temporal",
    "calls",
    "services",
    "graphd",
    "metad",
    "clients",
    "credentials",
    "files",
    "exports",
)
"""Modules of the catalogue; the mutants of each run in one process."""
_WITH_OTHERS = ("draws", "services")
"""Modules that have further changes, which only tests of clusters plant."""


def mutants_of(group: str) -> tuple[Mutant, ...]:
    """Return the mutants of one module of the catalogue."""
    mutants: tuple[Mutant, ...] = importlib.import_module(f"{__name__}.{group}").MUTANTS
    return mutants


@cache
def all_mutants() -> tuple[Mutant, ...]:
    """Return every mutant, including those that only tests of clusters plant."""
    draws, services = (importlib.import_module(f"{__name__}.{name}") for name in _WITH_OTHERS)
    grouped = [mutant for group in GROUPS for mutant in mutants_of(group)]
    return (*grouped, *draws.NAMED, draws.UNAUDITED, services.SMALL_MESSAGES)


def find_mutant(name: str) -> Mutant:
    """Return the mutant with a name.

    Raises
    ------
    LookupError
        If there is no such mutant.
    """
    for mutant in all_mutants():
        if mutant.name == name:
            return mutant
    raise LookupError(f"mutant {name!r}: expected a name of tests.mutants.catalogue")
