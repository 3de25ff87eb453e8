"""Tests of planting: changes in a process, and mutants that are refused."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.kit.cluster import LocalCluster
from tests.kit.waiting import HANG_S
from tests.mutants import catalogue, planting
from tests.mutants.mutant import Mutant, change

SOURCE = """
from dataclasses import dataclass
from functools import cache, wraps

LIMIT = 1  # a comment


def decorated(function):
    @wraps(function)
    def wrapper(*args):
        return function(*args)

    return wrapper


@decorated
def sign(value):
    return 1 if value > 0 else -1


@cache
def squared(value):
    return value * value


@dataclass(frozen=True, slots=True)
class Pair:
    first: int
    second: int

    @property
    def total(self):
        return self.first + self.second

    @classmethod
    def of(cls, value):
        return cls(value, value)
"""
NAME = "planted_module"


def clear_caches() -> None:
    """Clear the caches of sources."""
    for cached in (
        planting.plain_source,
        planting.needs_interpreted_kernels,
        planting._kernel_sources,
    ):
        cached.cache_clear()


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """Return a module in its own tree of sources."""
    (tmp_path / "services").mkdir()
    (tmp_path / "services" / f"{NAME}.py").write_text(SOURCE)
    monkeypatch.setattr(planting, "ROOT", tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path / "services"))
    clear_caches()
    yield importlib.import_module(NAME)
    del sys.modules[NAME]
    clear_caches()


def test_functions_that_are_imported_already_get_the_changed_code(module: ModuleType) -> None:
    sign, pair = module.sign, module.Pair(2, 3)
    assert (sign(0), module.squared(3), pair.total, module.Pair.of(1).second) == (-1, 9, 5, 1)
    mutant = change(
        "all four",
        "nowhere",
        NAME,
        ("value > 0", "value >= 0"),
        ("value * value", "value + value"),
        ("self.first + self.second", "self.first - self.second"),
        ("cls(value, value)", "cls(value, -value)"),
    )
    planting.plant([mutant])
    assert (sign(0), module.squared(3), pair.total, module.Pair.of(1).second) == (1, 6, -1, -1)


def test_mutants_of_one_module_are_planted_together(module: ModuleType) -> None:
    planting.plant(
        [
            change("one", "nowhere", NAME, ("value > 0", "value >= 0")),
            change("other", "nowhere", NAME, ("value * value", "value + value")),
        ]
    )
    assert (module.sign(0), module.squared(3)) == (1, 6)


@pytest.mark.parametrize(
    ("text", "times"),
    [("value > 1", 0), ("def ", 6)],
)
def test_mutant_that_does_not_fit_the_source_is_refused(
    module: ModuleType, text: str, times: int
) -> None:
    with pytest.raises(LookupError, match=f"mutant 'old': '{text}' is {times} times in {NAME}"):
        planting.plant([change("old", "nowhere", NAME, (text, "0"))])


def test_change_of_a_constant_that_is_imported_is_refused(module: ModuleType) -> None:
    with pytest.raises(TypeError, match="more than the bodies of functions"):
        planting.plant([change("limit", "nowhere", NAME, ("LIMIT = 1", "LIMIT = 2"))])


def test_compiled_kernels_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planting, "_kernels_are_interpreted", lambda: False)
    with pytest.raises(TypeError, match="NUMBA_DISABLE_JIT=1"):
        planting.plant([catalogue.find_mutant("reservoir off by one")])


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        ("storaged.kernels.neighbors.with_replacement", True),
        ("asterism_graphkit.random.alias_draw", True),
        ("graphd.operators.walks", False),
        ("storaged.store.image_writer", False),
        ("asterism_daemonkit.heartbeat", False),
    ],
)
def test_kernels_are_interpreted_only_for_what_they_import(module: str, expected: bool) -> None:
    assert planting.needs_interpreted_kernels(module) is expected


def test_every_mutant_fits_the_sources() -> None:
    for mutant in catalogue.all_mutants():
        planting.check_mutants([mutant])


def test_names_of_mutants_differ() -> None:
    names = [mutant.name for mutant in catalogue.all_mutants()]
    assert len(set(names)) == len(names)


def test_every_mutant_names_one_thing_that_rejects_it() -> None:
    for group in catalogue.GROUPS:
        for mutant in catalogue.mutants_of(group):
            assert bool(mutant.check) != bool(mutant.test), mutant.name


@pytest.fixture
def stale_mutant(monkeypatch: pytest.MonkeyPatch) -> Mutant:
    mutant = change("old", "nowhere", "graphd.routing.totals", ("of last year", ""))
    monkeypatch.setattr(catalogue, "all_mutants", lambda: (mutant,))
    return mutant


@pytest.mark.parametrize("name", ["old", "unknown"])
def test_cluster_refuses_mutants_that_do_not_fit(
    stale_mutant: Mutant, name: str, tmp_path: Path
) -> None:
    with pytest.raises(LookupError, match=f"mutant {name!r}"):
        LocalCluster(1, 1, folder=tmp_path, mutants=[name])


def test_cluster_refuses_roles_that_do_not_import_the_module(tmp_path: Path) -> None:
    mutants = {"metad": ["births settled by one host"]}
    with pytest.raises(ValueError, match=r"expected roles of \['graphd'\], found \['metad'\]"):
        LocalCluster(1, 1, folder=tmp_path, mutants=mutants)


def test_only_daemons_that_import_the_module_get_the_mutant(tmp_path: Path) -> None:
    cluster = LocalCluster(1, 1, folder=tmp_path, mutants=["stale totals"])
    planted = {
        name: daemon.environment.get(planting.VARIABLE) for name, daemon in cluster.daemons.items()
    }
    cluster.close()
    assert planted == {"metad": None, "storaged-0": "stale totals", "graphd-0": None}


def test_interpreter_ends_where_no_mutant_is_planted(root: Path) -> None:
    # The child inherits this environment.
    environment = {
        **os.environ,  # noqa: TID251
        "PYTHONPATH": str(planting.STARTUP_FOLDER),
        planting.VARIABLE: "unknown",
    }
    completed = subprocess.run(
        [sys.executable, "-c", "print('started')"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert completed.returncode != 0
    assert completed.stdout == ""
    assert "mutant 'unknown'" in completed.stderr


def test_documentation_counts_the_mutants(root: Path) -> None:
    text = (root / "docs/notes/correctness.md").read_text()
    for group in catalogue.GROUPS:
        mutants = catalogue.mutants_of(group)
        by_check = sum(bool(mutant.check) for mutant in mutants)
        row = f"| `{group}` | {len(mutants)} | {by_check} | {len(mutants) - by_check} |"
        assert row in text
    total = sum(len(catalogue.mutants_of(group)) for group in catalogue.GROUPS)
    assert f"\n{total} faults are planted in turn" in text


def test_documentation_lists_every_catalogue(root: Path) -> None:
    rows = re.findall(r"^\| (`[a-z`, ]+`) \|", (root / "docs/testing.md").read_text(), re.MULTILINE)
    names = [name for row in rows for name in re.findall(r"`([a-z]+)`", row)]
    assert set(catalogue.GROUPS) <= set(names)
    assert len(names) == len(set(names))
