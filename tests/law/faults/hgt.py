"""Faults of layers by budgets."""

from __future__ import annotations

from tests.law.faults import Mutant, change

BUDGETS, ROOM = "graphkit.hgt", "graphd.hgt"

MUTANTS: tuple[Mutant, ...] = (
    change("budgets not squared", "tempting", BUDGETS, ("self.measures() ** 2", "self.measures()")),
    change("shares not of a degree", "tempting", BUDGETS, ("_weight(weights, e) / total if", "_weight(weights, e) if")),
    change("a degree over all edge types", "tempting", BUDGETS, ("while stop < end and types[stop] == types[begin]:", "while stop < end:")),
    change("the last gift alone counts", "tempting", BUDGETS, ("high[c], low[c] = plus(high[c], low[c], given[e])", "high[c] = given[e]")),
    change(
        "budgets of a layer forgotten in the next",
        "tempting",
        BUDGETS,
        ("        self._take(numbers)\n", "        self._take(numbers)\n        self._high[:] = 0\n"),
    ),
    change("nodes that are taken drawn again", "tempting", BUDGETS, ("np.where(self._free, self._high + self._low, 0.0)", "self._high + self._low")),
    change("layers with replacement", "FastGCN", BUDGETS, ("replace=False", "replace=True")),
    change(
        "seeds that give nothing",
        "tempting",
        BUDGETS,
        ("self._take(np.arange(len(self._numbering), dtype=np.int64))", "self._take(np.zeros(0, np.int64))"),
    ),
    change("one stream for all layers", "Euler", ROOM, ("rng.BUDGET, layer, type_id", "rng.BUDGET, 0, type_id")),
    change("one stream for all node types", "tempting", ROOM, ("rng.BUDGET, layer, type_id", "rng.BUDGET, layer, 0")),
    change("weights that do not count", "PyG, by design", ROOM, ('None if how.uniform else found["weights"]', "None")),
    change(
        "only the last layer has given",
        "LADIES",
        ROOM,
        (
            "            _give(sampling, how, budgets, fresh)\n",
            "            [b._high.fill(0) for b in budgets]\n            _give(sampling, how, budgets, fresh)\n",
        ),
    ),
    change(
        "the first type of a layer alone gives",
        "tempting",
        ROOM,
        ("nodes = np.concatenate(fresh)", "fresh = [fresh[0], *(ids[:0] for ids in fresh[1:])]\n    nodes = np.concatenate(fresh)"),
    ),
)
