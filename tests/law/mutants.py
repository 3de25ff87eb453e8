"""Plants every fault that samplers in the field have had into ours, and shows that the law suite rejects each.

    python tests/law/mutants.py            # prints a table; exit 1 when a mutant survives or the sampler itself is rejected
    python tests/law/mutants.py floyd      # those whose name contains the word

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
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SCALE = 0.1
"""Of the suite's sizes: enough for faults of this kind."""


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A fault: where it was met, and the change of our source that plants it."""

    name: str
    met: str
    module: str
    changes: tuple[tuple[str, str], ...]


def change(name: str, met: str, module: str, *changes: tuple[str, str]) -> Mutant:
    return Mutant(name=name, met=met, module=module, changes=changes)


ALIAS, ACCEPTANCE, RNG = "graphkit.alias", "graphkit.acceptance", "graphkit.rng"
COLUMNS, NEIGHBORS, DISTINCT, RACE = (f"storaged.kernel.{room}" for room in ("columns", "neighbors", "distinct", "race"))
DIFFERENT = "storaged.kernel.different"
PROBABILITY = "storaged.kernel.probability"
VERSION, ENTRIES = "storaged.draw.version", "storaged.draw.entries"
NUMBERED, LAYERS = "graphd.numbered", "graphkit.layers"

SHUFFLED = "chosen = k + np.int64(below(word(key, np.uint64(k)), np.uint64(degree - k)))"
DRAWN = "column = below(w, degree)"
OF_POSITION = "own = derive(key, np.uint64(positions[node]))"

MUTANTS: tuple[Mutant, ...] = (
    change(
        "reservoir off by one",
        "Nebula #6091",
        DISTINCT,
        (SHUFFLED, SHUFFLED.replace("chosen = k +", "chosen = k + 1 +").replace("degree - k)", "degree - k - 1)")),
    ),
    change("Floyd off by one", "torch_sparse #385", DISTINCT, (SHUFFLED, SHUFFLED.replace("degree - k)", "degree - k - 1)"))),
    change(
        "first neighbor never picked",
        "DGL #1928",
        NEIGHBORS,
        (DRAWN, "column = np.uint64(max(int(below(w, degree)), min(1, int(degree) - 1)))"),
    ),
    change(
        "zero weight picked, in whole rows",
        "cuGraph #4607",
        DISTINCT,
        ("f32_at(row_weights, j) > np.float32(0.0)", "f32_at(row_weights, j) >= np.float32(0.0)"),
    ),
    change(
        "zero weight picked, by tables", "cuGraph #4607", ALIAS, ("scaled = np.rint(prob * _TWO64)", "scaled = np.rint(max(prob, 1e-3) * _TWO64)")
    ),
    change("zero weight picked, in a race", "cuGraph #4607", RACE, ("if not weight > 0.0:\n            continue", "weight = max(weight, 0.5)")),
    change(
        "the light half dropped",
        "passes DGL's own test",
        ALIAS,
        ("scaled = np.rint(prob * _TWO64)", "scaled = np.rint(prob * _TWO64) if prob >= 0.5 else 0.0"),
    ),
    change(
        "alias and probability swapped", "classic", ACCEPTANCE, ("taken = led ^ ((column ^ led) & kept)", "taken = column ^ ((column ^ led) & kept)")
    ),
    change(
        "unpaired columns lead to outcome 0",
        "PecanPy",
        ALIAS,
        (
            "    if open_row >= 0:\n        prob[open_row] = 1.0\n        alias[open_row] = open_row\n",
            "    if open_row >= 0:\n        prob[open_row] = max(high - 0.01, 0.0)\n        alias[open_row] = 0\n",
        ),
    ),
    change(
        "stale totals",
        "Euler",
        VERSION,
        ("float(share.count if uniform else share.weight)", "float(share.count if uniform else share.weight * (1 + 0.5 * (part == 0)))"),
    ),
    change(
        "floor, and the rest to parts alike",
        "Euler",
        ENTRIES,
        (
            "    return drawn(entries.shares.hot, entries.shares.cold)\n",
            "    measure, k = entries.shares.measure, entries.shares.measure.size\n"
            "    exact = np.floor(count * measure / measure.sum()).astype(int)\n"
            "    rest = np.random.default_rng(int(part_key)).integers(0, k, count - exact.sum())\n"
            "    chosen = np.random.default_rng(int(part_key) + start).permutation(np.r_[np.repeat(np.arange(k), exact), rest])\n"
            "    cold = settled(np.zeros(k, np.uint32))\n"
            "    of_entry = [drawn(settled(np.full(k, e, np.uint64)), cold) if entries.local[e] else None for e in range(k)]\n"
            "    pairs = [(of_entry[e][0][i], of_entry[e][1][i]) for i, e in enumerate(chosen) if of_entry[e] is not None]\n"
            "    values = settled(np.array([value for value, _ in pairs], np.int64))\n"
            "    return values, settled(np.array([tag for _, tag in pairs], np.int32))\n",
        ),
    ),
    change(
        "float32 prefix sums over a union",
        "Euler",
        NEIGHBORS,
        ("reached += measures[t, i]", "reached = np.float32(np.float32(reached) + np.float32(measures[t, i]))"),
    ),
    change(
        "float32 sums of rows",
        "Euler",
        ALIAS,
        ("            t: float = s + x\n", "            t: float = np.float32(s + x)\n"),
        ("error += (s - t) + x if s >= x else (x - t) + s", "error += 0.0"),
    ),
    change(
        "rows from 32 bits, globally",
        "many",
        COLUMNS,
        ("column = below(w, sizes[entry])", "column = ((w >> np.uint64(32)) * sizes[entry]) >> np.uint64(32)"),
    ),
    change(
        "rows from 32 bits, in neighborhoods",
        "many",
        NEIGHBORS,
        (DRAWN, "column = ((w >> np.uint64(32)) * degree) >> np.uint64(32)"),
    ),
    change("coins of 32 bits", "many", ACCEPTANCE, ("if high == threshold and (coin & _LOW) < np.uint64(u32_at(cold, column)):", "if high < 0:")),
    change(
        "answers grouped by part",
        "unshuffled shards",
        ENTRIES,
        (
            "    return settled(out[:held]), settled(out_tags[:held])\n",
            "    order = np.argsort(out[:held] % max(int(offsets.max()) + 1, 1), kind='stable')\n"
            "    return settled(out[:held][order]), settled(out_tags[:held][order])\n",
        ),
    ),
    change(
        "the same stream on every worker",
        "Euler",
        COLUMNS,
        ("w = word(row_key, at)", "w = word(row_key, start + np.uint64(made))"),
    ),
    change("one stream for every position", "Euler", NEIGHBORS, (OF_POSITION, "own = key")),
    change(
        "streams of neighboring seeds lag",
        "seed + k * constant",
        RNG,
        ("key = np.uint64(mix64(np.uint64(seed & 0xFFFFFFFFFFFFFFFF)))", "key = np.uint64(seed & 0xFFFFFFFF) * GOLDEN"),
        ("key = np.uint64(derive(key, np.uint64(tag)))", "key = key + (np.uint64(tag) << np.uint64(40))"),
    ),
    change(
        "streams of neighboring positions lag",
        "seed + k * constant",
        NEIGHBORS,
        (OF_POSITION, "own = key + np.uint64(positions[node]) * np.uint64(0x9E3779B97F4A7C15)"),
    ),
    change(
        "starting over after too many rejections",
        "tempting",
        DISTINCT,
        (
            "    found = np.int64(drawn)\n    if drawn < count:\n",
            "    found = np.int64(drawn)\n    if drawn < count:\n        touched[used[:drawn]] = -1\n        drawn = found = np.int64(0)\n",
        ),
    ),
    change(
        "rejected draws taken with replacement",
        "tempting",
        DISTINCT,
        (
            "if (touched[there] if direct else marks[there]) >= 0:\n",
            "if (touched[there] if direct else marks[there]) >= 0 and refused < 1:\n",
        ),
    ),
    change("a race by -log(u) * w", "classic", RACE, ("return -log(unit(w)) / weight", "return -log(unit(w)) * weight")),
    change(
        "a union's types alike",
        "many",
        NEIGHBORS,
        ("total += measures[t, i]\n", "total += measures[t, i] > 0.0\n"),
        ("reached += measures[t, i]", "reached += measures[t, i] > 0.0"),
    ),
    change(
        "parallel edges as neighbors of their own",
        "PGL",
        DIFFERENT,
        ("spot(marks, np.int64(nbr[slot]), shift)", "spot(marks, slot, shift)"),
    ),
    change(
        "the first of parallel edges stands for all", "tempting", DIFFERENT, ("                if at < first:", "                if first == np.inf:")
    ),
    change(
        "drawn neighbors race again",
        "classic",
        DIFFERENT,
        (" and marks[spot(marks, node, shift)] < 0:", ":"),
    ),
    change(
        "zero weight picked, among different neighbors", "cuGraph #4607", DIFFERENT, ("if weight > 0.0:", "if (weight := max(weight, 0.5)) > 0.0:")
    ),
    change("alias and probability swapped, among different neighbors", "classic", DIFFERENT, ("if high > threshold or", "if high < threshold or")),
    change("unconditional without replacement", "tempting", "storaged.draw.probability", ("    if replace:\n", "    if True:\n")),
    change(
        "the same, globally", "tempting", "graphkit.successive", ("out[k] = min(shares[k] / (high + low), 1.0)", "out[k] = shares[k] / shares.sum()")
    ),
    change("what is left by subtraction only", "tempting", PROBABILITY, ("if rests[i] < LEAST * totals[i]:", "if rests[i] < 0.0:")),
    change(
        "drawn edges left in the rest",
        "classic",
        PROBABILITY,
        ("if met < size and drawn[met] == slot:", "if met < size and drawn[size - 1] == slot:"),
    ),
    change(
        "whole rows with probabilities of draws",
        "tempting",
        PROBABILITY,
        ("1.0 if degrees[i] <= count else min(weight / (high + low), 1.0)", "min(weight / (high + low), 1.0)"),
    ),
    change(
        "probabilities within a union's type",
        "many",
        "storaged.draw.neighbor",
        (
            "totals=settled(_sums(rows, sides, uniform=law.uniform))",
            "totals=settled(_sums(rows, sides[:1], uniform=law.uniform))",
        ),
    ),
    change(
        "probabilities within a part",
        "many",
        "storaged.draw.node",
        ("shares_of(decisive, of_entry, rows, entries.shares.total)", "shares_of(decisive, of_entry, rows, float(entries.shares.measure[0]))"),
    ),
    change("positives among negatives", "many", NUMBERED, ("if excluded is not None and excluded.ids.size:", "if False:")),
    change("one more try, whatever comes of it", "tempting", NUMBERED, ("free = ~excluded.refused(", "free = True | excluded.refused(")),
    change(
        "further attempts shared by all draws",
        "tempting",
        NUMBERED,
        ("(pending[:, None] * ATTEMPTS + attempt + np.arange(together))", "(pending[:, None] * 0 + attempt + np.arange(together))"),
    ),
    change("negatives given up after many attempts", "tempting", NUMBERED, ("for place in pending.tolist():", "for place in []:")),
    change(
        "draws by number keyed by their place",
        "tempting",
        "storaged.draw.numbered",
        ("numbers=numbers[at], uniform", "numbers=at, uniform"),
    ),
    change("rows of one type alike", "Euler", NUMBERED, ("(rows[:, None] * n + np.arange(n))", "(rows[:, None] * 0 + np.arange(n))")),
    change("a layer's candidates alike", "many", LAYERS, ("np.float64(weights[e]) if weights.shape[0] > 0 else 1.0", "1.0")),
    change("squares of edges, not of nodes", "tempting", LAYERS, ("if row_of[c] != row:", "if True:")),
    change("roots of nothing", "tempting", LAYERS, ("if measure == SQRT:", "if measure == -SQRT:")),
    change(
        "one stream for all layers",
        "Euler",
        LAYERS,
        (
            "own, start = derive(key, np.uint64(layer)), starts[layer]\n        n = np.uint64(",
            "own, start = key, starts[layer]\n        n = np.uint64(",
        ),
    ),
    change(
        "a layer without replacement by -log(u) * w",
        "classic",
        LAYERS,
        ("-log(unit(word(own, np.uint64(c)))) / measures[start + c]", "-log(unit(word(own, np.uint64(c)))) * measures[start + c]"),
    ),
    change(
        "labels drawn by their parts",
        "tempting",
        "graphd.labels",
        ("split.gathered(indptr, values, rows[starts])", "split.gathered(indptr, values, rows)"),
    ),
    change("probabilities without the rest", "tempting", LAYERS, ("for c in range(drawn, positive):", "for c in range(0):")),
)


UNAUDITED = change(
    "tables are not audited",
    "so that a mutant gets past the build",
    "storaged.build.table",
    ("if not out[0] <= MAX_DISTANCE:", "if not out[0] <= 1.0:"),
)
"""No mutant: what `tests.integration.test_verify_mutants` plants beside one, for a build would refuse its tables."""


NAMED: tuple[Mutant, ...] = (
    change(
        "nodes by name from the rows' own table",
        "tempting",
        "storaged.store.image",
        ("weights=node.named[weights].weights, table=node.named[weights].table)", "weights=node.named[weights].weights)"),
    ),
    change(
        "neighbors by name from the rows' own alias rows",
        "tempting",
        "storaged.store.image",
        ("hot=named.hot, cold=named.cold)", "hot=side.hot, cold=side.cold)"),
    ),
)
"""Faults of draws by further weights alone, which `tests.integration.test_verify_mutants` plants too."""


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
    return _Planter(next(mutant for mutant in (*MUTANTS, *NAMED, UNAUDITED) if mutant.name == name))


def verdict(mutant: Mutant | None) -> tuple[str, str]:
    """(check, why) of the first check that rejects a sampler; ("", "") where all of them accept it."""
    for name in [n for n in sys.modules if n.split(".")[0] in ("graphkit", "storaged", "graphd") or n.startswith(("tests.kit", "tests.law.checks"))]:
        del sys.modules[name]
    planters = [] if mutant is None else [_Planter(mutant)]
    sys.meta_path[:0] = planters
    try:
        checks = importlib.import_module("tests.law.checks")
        for check in checks.CHECKS:
            try:
                check(SCALE)
            except checks.Rejected as rejection:
                return check.__name__, str(rejection)
    finally:
        del sys.meta_path[: len(planters)]
    return "", ""


def main(words: Sequence[str]) -> int:
    """Print a line per mutant; 0 when the sampler is accepted and every mutant rejected."""
    sys.path[:0] = [str(ROOT), *(str(ROOT / room) for room in ("services", "client", "proto"))]
    numba_config = importlib.import_module("numba").config
    numba_config.DISABLE_JIT = True
    wrong = 0
    for mutant in (None, *(m for m in MUTANTS if all(w.lower() in m.name.lower() for w in words))):
        start = time.perf_counter()
        check, why = verdict(mutant)
        right = bool(check) == (mutant is not None)
        wrong += not right
        name, met = ("(the sampler itself)", "") if mutant is None else (mutant.name, mutant.met)
        said = f"rejected by {check}: {why}" if check else "accepted"
        print(f"{'ok' if right else 'WRONG':<6}{name:<42}{met:<23}{time.perf_counter() - start:4.1f} s  {said[:140]}", flush=True)
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
