"""Faults of layers by budgets."""

from __future__ import annotations

from tests.law.faults import Mutant, change

BUDGETS, ROOM = "graphkit.hgt", "graphd.hgt"

MUTANTS: tuple[Mutant, ...] = (
    change("budgets not squared", "tempting", BUDGETS, ("self.measures() ** 2", "self.measures()"), check="layers_by_budgets_follow_their_law"),
    change(
        "shares not of a degree",
        "tempting",
        BUDGETS,
        ("_weight(weights, e) / total if", "_weight(weights, e) if"),
        check="layers_by_budgets_follow_their_law",
    ),
    change(
        "a degree over all edge types",
        "tempting",
        BUDGETS,
        ("while stop < end and types[stop] == types[begin]:", "while stop < end:"),
        check="layers_by_budgets_follow_their_law",
    ),
    change(
        "the last gift alone counts",
        "tempting",
        BUDGETS,
        ("high[c], low[c] = plus(high[c], low[c], given[e])", "high[c] = given[e]"),
        check="layers_by_budgets_follow_their_law",
    ),
    change(
        "budgets of a layer forgotten in the next",
        "tempting",
        BUDGETS,
        ("        self._take(numbers)\n", "        self._take(numbers)\n        self._high[:] = 0\n"),
        check="what_lost_in_a_layer_is_drawn_in_the_next_like_others",
    ),
    change(
        "nodes that are taken drawn again",
        "tempting",
        BUDGETS,
        ("np.where(self._free, self._high + self._low, 0.0)", "self._high + self._low"),
        check="layers_by_budgets_have_all_edges_among_them",
    ),
    change("layers with replacement", "FastGCN", BUDGETS, ("replace=False", "replace=True"), check="layers_by_budgets_have_all_edges_among_them"),
    change(
        "seeds that give nothing",
        "tempting",
        BUDGETS,
        ("self._take(np.arange(len(self._numbering), dtype=np.int64))", "self._take(np.zeros(0, np.int64))"),
        check="layers_by_budgets_follow_their_law",
    ),
    change(
        "one stream for all layers",
        "Euler",
        ROOM,
        ("rng.BUDGET, layer, type_id", "rng.BUDGET, 0, type_id"),
        check="what_lost_in_a_layer_is_drawn_in_the_next_like_others",
    ),
    change(
        "one stream for all node types",
        "tempting",
        ROOM,
        ("rng.BUDGET, layer, type_id", "rng.BUDGET, layer, 0"),
        check="layers_by_budgets_have_streams_of_their_own",
    ),
    change(
        "weights that do not count",
        "PyG, by design",
        ROOM,
        ('None if how.uniform else found["weights"]', "None"),
        check="layers_by_budgets_follow_their_law",
    ),
    change(
        "only the last layer has given",
        "LADIES",
        ROOM,
        (
            "            _give(sampling, how, budgets, fresh)\n",
            "            [b._high.fill(0) for b in budgets]\n            _give(sampling, how, budgets, fresh)\n",
        ),
        check="what_lost_in_a_layer_is_drawn_in_the_next_like_others",
    ),
    change(
        "the first type of a layer alone gives",
        "tempting",
        ROOM,
        ("nodes = np.concatenate(fresh)", "fresh = [fresh[0], *(ids[:0] for ids in fresh[1:])]\n    nodes = np.concatenate(fresh)"),
        check="layers_by_budgets_follow_their_law",
    ),
)
