"""Faults of HGT sampling."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, change

HGT = "asterism_graphkit.operators.hgt"
HGT_HGT = "graphd.operators.hgt"

MUTANTS: tuple[Mutant, ...] = (
    change(
        "budgets not squared",
        "tempting",
        HGT,
        (
            (
                "candidates, _ = layers.draw(key, np.array([0, node_count], np.int64), "
                "self.budgets() ** 2, min(count, node_count), replace=False, "
                "checkpoint=self._checkpoint)"
            ),
            (
                "candidates, _ = layers.draw(key, np.array([0, node_count], np.int64), "
                "self.budgets(), min(count, node_count), replace=False, "
                "checkpoint=self._checkpoint)"
            ),
        ),
        check="budget_layers_follow_their_distribution",
    ),
    change(
        "square roots of budgets",
        "tempting",
        HGT,
        ("self.budgets() ** 2", "self.budgets() ** 0.5"),
        check="budget_draws_follow_squared_budgets",
    ),
    change(
        "shares not of a degree",
        "tempting",
        HGT,
        (
            "out[e] = _weight(weights, e) / total if total > 0.0 else 0.0",
            "out[e] = _weight(weights, e) if total > 0.0 else 0.0",
        ),
        check="budget_layers_follow_their_distribution",
    ),
    change(
        "a degree over all edge types",
        "tempting",
        HGT,
        ("while stop < end and types[stop] == types[start]:", "while stop < end:"),
        check="budget_layers_follow_their_distribution",
    ),
    change(
        "the last gift alone counts",
        "tempting",
        HGT,
        ("high[c], low[c] = neumaier_add(high[c], low[c], amounts[e])", "high[c] = amounts[e]"),
        check="budget_layers_follow_their_distribution",
    ),
    change(
        "budgets of a layer forgotten in the next",
        "tempting",
        HGT,
        (
            "self._set_sampled(local_ids)",
            ("self._set_sampled(local_ids)\n        self._high[:] = 0"),
        ),
        check="nodes_not_drawn_stay_candidates_of_the_next_layer",
    ),
    change(
        "nodes that are taken drawn again",
        "tempting",
        HGT,
        (
            "return np.where(self._free, self._high + self._low, 0.0)",
            "return self._high + self._low",
        ),
        check="budget_layers_have_all_edges_among_their_nodes",
    ),
    change(
        "layers with replacement",
        "FastGCN",
        HGT,
        (
            (
                "candidates, _ = layers.draw(key, np.array([0, node_count], np.int64), "
                "self.budgets() ** 2, min(count, node_count), replace=False, "
                "checkpoint=self._checkpoint)"
            ),
            (
                "candidates, _ = layers.draw(key, np.array([0, node_count], np.int64), "
                "self.budgets() ** 2, min(count, node_count), replace=True, "
                "checkpoint=self._checkpoint)"
            ),
        ),
        check="budget_layers_have_all_edges_among_their_nodes",
    ),
    change(
        "seeds that give nothing",
        "tempting",
        HGT,
        (
            "self._set_sampled(np.arange(len(self._relabeling), dtype=np.int64))",
            "self._set_sampled(np.zeros(0, np.int64))",
        ),
        check="budget_layers_follow_their_distribution",
    ),
    change(
        "one stream for all layers of budgets",
        "Euler",
        HGT_HGT,
        (
            (
                "frontier = [budget.draw(rng.key_of(params.seed, rng.BUDGET, layer, type_id), "
                "params.counts[type_id][layer] if type_id in params.counts else 0) for "
                "type_id, budget in enumerate(budgets)]"
            ),
            (
                "frontier = [budget.draw(rng.key_of(params.seed, rng.BUDGET, 0, type_id), "
                "params.counts[type_id][layer] if type_id in params.counts else 0) for "
                "type_id, budget in enumerate(budgets)]"
            ),
        ),
        check="nodes_not_drawn_stay_candidates_of_the_next_layer",
    ),
    change(
        "one stream for all node types",
        "tempting",
        HGT_HGT,
        (
            (
                "frontier = [budget.draw(rng.key_of(params.seed, rng.BUDGET, layer, type_id), "
                "params.counts[type_id][layer] if type_id in params.counts else 0) for "
                "type_id, budget in enumerate(budgets)]"
            ),
            (
                "frontier = [budget.draw(rng.key_of(params.seed, rng.BUDGET, layer, 0), "
                "params.counts[type_id][layer] if type_id in params.counts else 0) for "
                "type_id, budget in enumerate(budgets)]"
            ),
        ),
        check="budget_layers_use_separate_streams",
    ),
    change(
        "weights that do not count",
        "PyG, by design",
        HGT_HGT,
        (
            (
                "edge_shares = hgt.edge_shares(edges['indptr'], edges['types'], None if "
                "params.uniform else edges['weights'])"
            ),
            "edge_shares = hgt.edge_shares(edges['indptr'], edges['types'], None)",
        ),
        check="budget_layers_follow_their_distribution",
    ),
    change(
        "only the last layer has given",
        "LADIES",
        HGT_HGT,
        (
            "for layer in range(params.layer_count):",
            (
                "for layer in range(params.layer_count):\n"
                "            [b._high.fill(0) for b in budgets]"
            ),
        ),
        check="nodes_not_drawn_stay_candidates_of_the_next_layer",
    ),
    change(
        "the first type of a layer alone gives",
        "tempting",
        HGT_HGT,
        (
            "nodes = np.concatenate(frontier)",
            (
                "frontier = [frontier[0], *(ids[:0] for ids in frontier[1:])]\n"
                "    nodes = np.concatenate(frontier)"
            ),
        ),
        check="budget_layers_follow_their_distribution",
    ),
)
