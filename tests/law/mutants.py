"""Plants every fault that samplers in the field have had into ours, and shows that the law suite rejects each.

    python tests/law/mutants.py            # prints a table; exit 1 when a mutant survives or the sampler itself is rejected
    python tests/law/mutants.py floyd      # those whose name contains the word
    python tests/law/mutants.py --of rows  # those of tests/law/faults/rows.py
    python tests/law/mutants.py --of conditions --near  # by those checks alone that look at the same modules of ours

A mutant is a change of a module's source, applied as it is imported; kernels run interpreted, so nothing is compiled.
A change that no longer fits the source is an error: a mutant must not die of old age.
"""

from __future__ import annotations

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
    from tests.law.faults import Mutant

ROOT = Path(__file__).resolve().parents[2]
SCALE = 0.1
"""Of the suite's sizes: enough for faults of this kind."""
GROUPS = ("draws", "rows", "walks", "labor", "hgt", "visits", "conditions", "timed")
"""Modules of `tests.law.faults`: a process of its own tests each."""

NEAREST = {
    "storaged.draw.restricted": "conditional",
    "storaged.draw.conditions": "conditional",
    "storaged.draw.looking": "conditional",
    "storaged.draw.covers": "conditional",
    "storaged.draw.intervals": "conditional",
    "storaged.kernel.covered": "conditional",
    "graphd.restriction": "conditional",
    "storaged.draw.ranged": "ranged",
    "storaged.kernel.near": "ranged",
    "storaged.kernel.ranged": "ranged",
    "storaged.kernel.different": "different",
    "storaged.kernel.union": "different",
    "storaged.kernel.probability": "probabilities",
    "storaged.draw.probability": "probabilities",
    "graphkit.successive": "probabilities",
    "graphkit.excluding": "rows",
    "graphd.numbered": "rows",
    "graphd.positives": "rows",
    "storaged.draw.numbered": "rows",
    "storaged.draw.neighbor": "probabilities",
    "storaged.draw.node": "probabilities",
    "graphd.labels": "rows",
    "graphkit.layers": "layered",
    "graphkit.sides": "sided",
    "graphkit.growth": "paths",
    "graphd.layer": "paths",
    "graphkit.labor": "labor",
    "graphd.labor": "labor",
    "graphkit.hgt": "budgeted",
    "graphd.hgt": "budgeted",
    "graphd.induced": "paths",
    "storaged.kernel.between": "paths",
    "storaged.kernel.marked": "paths",
    "storaged.kernel.marks": "paths",
    "storaged.kernel.sifting": "paths",
    "storaged.kernel.telling": "paths",
    "graphd.walk": "paths",
    "graphd.visits": "visits",
    "graphkit.visits": "visits",
    "graphd.pagerank": "visits",
    "graphkit.push": "visits",
    "storaged.kernel.push": "visits",
    "storaged.draw.walk": "paths",
    "storaged.kernel.bias": "paths",
    "storaged.kernel.sieve": "paths",
    "storaged.kernel.packed": "packed",
    "storaged.kernel.packed_walk": "packed",
    "storaged.kernel.biased_walk": "packed",
    "storaged.draw.labor": "labor",
    "storaged.kernel.labor": "labor",
    "storaged.kernel.importance": "labor",
    "storaged.kernel.distinct": "neighborhoods",
    "storaged.kernel.shuffle": "neighborhoods",
    "storaged.kernel.neighbors": "neighborhoods",
    "graphkit.alias": "tables",
    "graphkit.acceptance": "global_draws",
    "storaged.draw.entries": "global_draws",
    "storaged.kernel.columns": "global_draws",
    "storaged.draw.version": "global_draws",
    "graphkit.rng": "global_draws",
    "storaged.kernel.race": "neighborhoods",
    "storaged.kernel.timed": "timed",
    "storaged.draw.timed": "timed",
    "storaged.draw.expand": "timed",
    "storaged.draw.grow": "timed",
    "graphkit.times": "timed",
    "graphd.sample": "timed",
    "graphd.until": "timed",
    "graphd.spread": "timed",
}
"""The module of `tests.law.checks` that looks at a module of ours: its checks come first, for most faults end there."""


def mutants_of(group: str) -> tuple[Mutant, ...]:
    """The mutants of one module of `tests.law.faults`."""
    found: tuple[Mutant, ...] = importlib.import_module(f"tests.law.faults.{group}").MUTANTS
    return found


class _Planter(importlib.abc.MetaPathFinder):
    """Imports one module with its source changed, and leaves all others alone."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._mutant.module:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None:
            return None
        spec.loader = _Loader(fullname, spec.origin, self._mutant)
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, fullname: str, path: str, mutant: Mutant) -> None:
        super().__init__(fullname, path)
        self._mutant = mutant

    def get_code(self, fullname: str) -> Any:
        source = self.get_data(self.path).decode()
        for old, new in self._mutant.changes:
            if source.count(old) != 1:
                raise LookupError(f"mutant {self._mutant.name!r}: {old!r} is {source.count(old)} times in {self._mutant.module}, not once")
            source = source.replace(old, new)
        return compile(source, self.path, "exec")


def planter(name: str) -> importlib.abc.MetaPathFinder:
    """What plants the mutant of this name, put at the head of ``sys.meta_path``."""
    draws = importlib.import_module("tests.law.faults.draws")
    known = [*(mutant for group in GROUPS for mutant in mutants_of(group)), *draws.NAMED, draws.UNAUDITED]
    return _Planter(next(mutant for mutant in known if mutant.name == name))


def verdict(mutant: Mutant | None, near: Collection[str] = ()) -> tuple[str, str]:
    """(check, why) of the first check that rejects a sampler; ("", "") where all of them (of these modules, where any are named) accept it."""
    for name in [n for n in sys.modules if n.split(".")[0] in ("graphkit", "storaged", "graphd") or n.startswith(("tests.kit", "tests.law.checks"))]:
        del sys.modules[name]
    planters = [] if mutant is None else [_Planter(mutant)]
    sys.meta_path[:0] = planters
    try:
        checks = importlib.import_module("tests.law.checks")
        AsterismError = importlib.import_module("asterism_proto.errors").AsterismError
        nearest = "" if mutant is None else f"tests.law.checks.{NEAREST.get(mutant.module)}"
        for check in sorted(checks.CHECKS, key=lambda check: check.__module__ != nearest):
            if near and check.__module__ not in near:
                continue
            try:
                check(SCALE)
            except checks.Rejected as rejection:
                return check.__name__, str(rejection)
            except AsterismError as error:  # a host that refuses what another one claims has noticed the fault too
                return check.__name__, f"{type(error).__name__}: {error.message}"
    finally:
        del sys.meta_path[: len(planters)]
    return "", ""


def main(words: Sequence[str]) -> int:
    """Print a line per mutant; 0 when the sampler is accepted and every mutant rejected."""
    sys.path[:0] = [str(ROOT), *(str(ROOT / room) for room in ("services", "client", "proto"))]
    numba_config = importlib.import_module("numba").config
    numba_config.DISABLE_JIT = True
    wrong, groups = 0, GROUPS
    if words[:1] == ["--of"]:
        groups, words = (words[1],), words[2:]
    only = words[:1] == ["--near"]
    words = words[only:]
    known = [mutant for group in groups for mutant in mutants_of(group)]
    near = {f"tests.law.checks.{NEAREST[mutant.module]}" for mutant in known} if only else set()
    for mutant in (None, *(m for m in known if all(w.lower() in m.name.lower() for w in words))):
        start = time.perf_counter()
        check, why = verdict(mutant, near)
        right = bool(check) == (mutant is not None)
        wrong += not right
        name, met = ("(the sampler itself)", "") if mutant is None else (mutant.name, mutant.met)
        said = f"rejected by {check}: {why}" if check else "accepted"
        print(f"{'ok' if right else 'WRONG':<6}{name:<42}{met:<23}{time.perf_counter() - start:4.1f} s  {said[:140]}", flush=True)
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
