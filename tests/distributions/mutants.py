"""Plants every fault that samplers in the field have had into ours, and shows that the law suite
rejects each.

    python tests/distributions/mutants.py            # prints a table; exit status 1 when a mutant
                                                     survives or the sampler itself is rejected
    python tests/distributions/mutants.py floyd      # those whose name contains the word
    python tests/distributions/mutants.py --of rows  # those of tests/distributions/faults/rows.py

Each mutant names the check of `tests.distributions.checks` that must reject it. The same checks
must accept the sampler without a fault. A mutant is a change of a module's source, as `ast.unparse`
prints it, applied when it is imported; kernels run interpreted, so nothing is compiled. A change
that no longer fits the source is an error: a mutant must not die of old age."""

from __future__ import annotations

import ast
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.distributions.faults import Mutant

ROOT = Path(__file__).resolve().parents[2]
SCALE = 0.1
"""Of the suite's sizes: enough for faults of this kind."""
GROUPS = ("draws", "rows", "walks", "labor", "hgt", "visits", "filters", "temporal")
"""Modules of `tests.distributions.faults`: a process of its own tests each."""


def mutants_of(group: str) -> tuple[Mutant, ...]:
    """The mutants of one module of `tests.distributions.faults`."""
    mutants: tuple[Mutant, ...] = importlib.import_module(
        f"tests.distributions.faults.{group}"
    ).MUTANTS
    return mutants


class _MutantFinder(importlib.abc.MetaPathFinder):
    """Imports one module with its source changed, and leaves all others alone."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._mutant.module:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None:
            return None
        spec.loader = _MutantLoader(fullname, spec.origin, self._mutant)
        return spec


class _MutantLoader(importlib.machinery.SourceFileLoader):
    def __init__(self, fullname: str, path: str, mutant: Mutant) -> None:
        super().__init__(fullname, path)
        self._mutant = mutant

    def get_code(self, fullname: str) -> Any:
        # As `ast.unparse` prints it: a change of layout or of a comment does not touch a mutant.
        source = ast.unparse(ast.parse(self.get_data(self.path).decode()))
        for old, new in self._mutant.changes:
            if source.count(old) != 1:
                raise LookupError(
                    f"mutant {self._mutant.name!r}: {old!r} is {source.count(old)} times in "
                    f"{self._mutant.module}, not once"
                )
            source = source.replace(old, new)
        return compile(source, self.path, "exec")


def mutant_finder(name: str) -> importlib.abc.MetaPathFinder:
    """What plants the mutant of this name, put at the head of ``sys.meta_path``."""
    draws = importlib.import_module("tests.distributions.faults.draws")
    all_mutants = [
        *(mutant for group in GROUPS for mutant in mutants_of(group)),
        *draws.NAMED,
        draws.UNAUDITED,
    ]
    return _MutantFinder(next(mutant for mutant in all_mutants if mutant.name == name))


def first_rejection(mutant: Mutant | None, names: Collection[str] = ()) -> tuple[str, str]:
    """Return (check, reason) of the first check (of these names, where any are given) that rejects
    a sampler, or ("", "").
    """
    for name in [
        n
        for n in sys.modules
        if n.split(".")[0] in ("asterism_graphkit", "storaged", "graphd")
        or n.startswith(("tests.kit", "tests.distributions.checks"))
    ]:
        del sys.modules[name]
    finders = [] if mutant is None else [_MutantFinder(mutant)]
    sys.meta_path[:0] = finders
    try:
        checks = importlib.import_module("tests.distributions.checks")
        AsterismError = importlib.import_module("asterism_proto.errors").AsterismError
        for check in checks.CHECKS:
            if names and check.__name__ not in names:
                continue
            try:
                check(SCALE)
            except checks.Rejected as rejection:
                return check.__name__, str(rejection)
            except (
                AsterismError
            ) as error:  # a host that refuses what another one claims has noticed the fault too
                return check.__name__, f"{type(error).__name__}: {error.message}"
    finally:
        del sys.meta_path[: len(finders)]
    return "", ""


def evaluate_mutant(mutant: Mutant) -> tuple[bool, str]:
    """Return whether the check that a mutant names rejects it, and a line that says so. Where it
    does not, the line names the check that does.
    """
    check, reason = first_rejection(mutant, (mutant.check,)) if mutant.check else ("", "")
    if check:
        return True, f"rejected by {check}: {reason}"
    check, reason = first_rejection(mutant)
    return (
        False,
        f"accepted by {mutant.check or '(no check)'}, rejected by {check or '(none)'}: {reason}",
    )


def main(terms: Sequence[str]) -> int:
    """Print a line per mutant; return 0 when every mutant is rejected and the checks that did so
    accept the sampler itself.
    """
    sys.path[:0] = [str(ROOT), *(str(ROOT / folder) for folder in ("services", "client", "proto"))]
    numba_config = importlib.import_module("numba").config
    numba_config.DISABLE_JIT = True
    groups = GROUPS
    if terms[:1] == ["--of"]:
        groups, terms = (terms[1],), terms[2:]
    mutants = [
        m
        for group in groups
        for m in mutants_of(group)
        if all(w.lower() in m.name.lower() for w in terms)
    ]
    failures = 0
    for mutant in mutants:
        start = time.perf_counter()
        is_rejected, line = evaluate_mutant(mutant)
        failures += not is_rejected
        print(
            (
                f"{'ok' if is_rejected else 'WRONG':<6}{mutant.name:<42}{mutant.met:<23}"
                f"{time.perf_counter() - start:4.1f} s  {line[:140]}"
            ),
            flush=True,
        )
    start = time.perf_counter()
    check, reason = first_rejection(None, {mutant.check for mutant in mutants})
    line = f"rejected by {check}: {reason}" if check else "accepted"
    print(
        f"{'WRONG' if check else 'ok':<6}{'(the sampler itself)':<65}"
        f"{time.perf_counter() - start:4.1f} s  {line}"
    )
    return min(failures + bool(check), 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
