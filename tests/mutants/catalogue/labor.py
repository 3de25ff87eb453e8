"""Faults of layer-neighbor sampling (LABOR)."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, change

LABOR = "asterism_graphkit.operators.labor"
DRAW_LABOR = "storaged.sampling.subgraphs.labor"
KERNEL_LABOR = "storaged.kernels.subgraphs.labor"
LABOR_LABOR = "graphd.operators.labor"

MUTANTS: tuple[Mutant, ...] = (
    change(
        "one stream for all hops of LABOR",
        "Euler",
        LABOR,
        (
            "return key_of(seed, LABOR, node_type, 0 if layer_dependency else hop)",
            "return key_of(seed, LABOR, node_type, 0)",
        ),
        check="labor_variates_differ_by_hop_unless_layers_depend",
    ),
    change(
        "one stream for all node types of LABOR",
        "DGL, by design",
        LABOR,
        (
            "return key_of(seed, LABOR, node_type, 0 if layer_dependency else hop)",
            "return key_of(seed, LABOR, 0, 0 if layer_dependency else hop)",
        ),
        check="labor_variates_depend_on_the_node_type",
    ),
    change(
        "a stream for each edge type of LABOR",
        "tempting",
        DRAW_LABOR,
        (
            (
                "key = labor.variate_key(seed, remote_type, hop, "
                "layer_dependency=labor_options.layer_dependency)"
            ),
            (
                "key = labor.variate_key(seed, edge_type, hop, "
                "layer_dependency=labor_options.layer_dependency)"
            ),
        ),
        check="labor_keeps_edges_by_one_variate_per_node",
    ),
    change(
        "a stream for each kind of storaged",
        "tempting",
        DRAW_LABOR,
        (
            (
                "key = labor.variate_key(seed, remote_type, hop, "
                "layer_dependency=labor_options.layer_dependency)"
            ),
            (
                "key = labor.variate_key(seed + len(version.parts), remote_type, hop, "
                "layer_dependency=labor_options.layer_dependency)"
            ),
        ),
        check="labor_variates_depend_on_the_node_type",
    ),
    change(
        "variates of slots, not of nodes",
        "tempting",
        KERNEL_LABOR,
        (
            (
                "is_kept = unit_float(word(key, np.uint64(neighbors[e - first]))) <= "
                "np.float64(importances[e]) / level"
            ),
            "is_kept = unit_float(word(key, np.uint64(e))) <= np.float64(importances[e]) / level",
        ),
        check="labor_keeps_edges_by_one_variate_per_node",
    ),
    change(
        "as many by weight as uniformly",
        "tempting",
        KERNEL_LABOR,
        (
            (
                "flags[e] = np.uint8(unit_float(word(key, np.uint64(neighbors[e]))) * level <= "
                "np.float64(importances[e]) * _ROUNDING_MARGIN)"
            ),
            (
                "flags[e] = np.uint8(unit_float(word(key, np.uint64(neighbors[e]))) * level <= "
                "1.0 * _ROUNDING_MARGIN)"
            ),
        ),
        check="labor_keeps_edges_by_one_variate_per_node",
    ),
    change(
        "kept for certain a little too early",
        "tempting",
        KERNEL_LABOR,
        (
            "keep_all = bool(fanout < 0 or degree <= fanout)",
            "keep_all = bool(fanout < 0 or degree <= fanout + 1)",
        ),
        check="labor_variates_depend_on_the_node_type",
    ),
    change(
        "weights of what storageds keep not normalised",
        "tempting",
        KERNEL_LABOR,
        (
            (
                "out[i] = np.float32(_inverse(weights, edges[i], 1.0 if no_importances else "
                "np.float64(importances[edges[i]]), level) * (count / total))"
            ),
            (
                "out[i] = np.float32(_inverse(weights, edges[i], 1.0 if no_importances else "
                "np.float64(importances[edges[i]]), level) * 1.0)"
            ),
        ),
        check="labor_keeps_edges_by_one_variate_per_node",
    ),
    change(
        "variates of edges, not of nodes",
        "neighbor sampling",
        KERNEL_LABOR,
        (
            (
                "flags[e] = np.uint8(np.int64(word(key, np.uint64(neighbors[e])) >> _S12) <= "
                "threshold)"
            ),
            (
                "flags[e] = np.uint8(np.int64(word(key, np.uint64(neighbors[e] + 64 * size)) "
                ">> _S12) <= threshold)"
            ),
        ),
        (
            (
                "flags[e] = np.uint8(unit_float(word(key, np.uint64(neighbors[e]))) * level <= "
                "np.float64(importances[e]) * _ROUNDING_MARGIN)"
            ),
            (
                "flags[e] = np.uint8(unit_float(word(key, np.uint64(neighbors[e] + 64 * "
                "size))) * level <= np.float64(importances[e]) * _ROUNDING_MARGIN)"
            ),
        ),
        (
            (
                "is_kept = unit_float(word(key, np.uint64(neighbors[e - first]))) <= "
                "np.float64(importances[e]) / level"
            ),
            (
                "is_kept = unit_float(word(key, np.uint64(neighbors[e - first] + 64 * "
                "importances.shape[0]))) <= np.float64(importances[e]) / level"
            ),
        ),
        check="labor_variates_differ_by_hop_unless_layers_depend",
    ),
    change(
        "as many in expectation, not as exact",
        "Balin 2023, between (10) and (11)",
        LABOR,
        ("while max_weight >= level:", ("level = total / np.float64(fanout)\n    while False:")),
        check="labor_probabilities_are_the_papers",
    ),
    change(
        "kept by the levels of the step before",
        "tempting",
        KERNEL_LABOR,
        (
            (
                "level = solve_level(row_weights, row_importances, squares, ratios, fanout, "
                "levels[i], stop)"
            ),
            "level = levels[i]",
        ),
        check="labor_keeps_edges_by_one_variate_per_node",
    ),
    change(
        "the degree counts edges of weight 0",
        "DGL",
        LABOR,
        ("positive += np.int64(weight > 0.0)", "positive += 1"),
        ("degree += np.int64(weight > 0.0)", "degree += 1"),
        check="labor_probabilities_are_the_papers",
    ),
    change(
        "the first of Newton's steps is the last",
        "tempting",
        LABOR,
        (
            (
                "uncertain += np.int64(importances[e] < level)\n"
                "        if uncertain == 0 or uncertain >= previous_count:"
            ),
            ("uncertain += np.int64(importances[e] < level)\n        if uncertain >= 0:"),
        ),
        check="labor_probabilities_are_the_papers",
    ),
    change(
        "weights not squared",
        "tempting",
        LABOR,
        (
            "ratios[e] = weight * weight / importances[e] if weight > 0.0 else 0.0",
            "ratios[e] = weight / importances[e] if weight > 0.0 else 0.0",
        ),
        check="labor_probabilities_are_the_papers",
    ),
    change(
        "the last of the importances",
        "tempting",
        KERNEL_LABOR,
        (
            "largest[neighbor_index] = max(largest[neighbor_index], importance)",
            "largest[neighbor_index] = importance",
        ),
        check="labor_probabilities_are_the_papers",
    ),
    change(
        "the last host's importances",
        "tempting",
        LABOR,
        (
            "largest[local_ids[i]] = max(largest[local_ids[i]], values[i])",
            "largest[local_ids[i]] = values[i]",
        ),
        check="labor_keeps_edges_by_one_variate_per_node",
    ),
    change(
        "one host's importances for another's neighbors",
        "tempting",
        LABOR_LABOR,
        (
            (
                "return {f'levels.{edge_type}': self._levels[host], "
                "f'importances.{edge_type}': importances[self._indices[host]]}"
            ),
            (
                "return {f'levels.{edge_type}': self._levels[host], "
                "f'importances.{edge_type}': importances[:len(self._indices[host])]}"
            ),
        ),
        check="labor_keeps_edges_by_one_variate_per_node",
    ),
    change(
        "importances replaced, not multiplied",
        "tempting",
        LABOR,
        (
            "importances[t] = min(largest[t] if is_first else importances[t] * largest[t], _MOST)",
            "importances[t] = min(largest[t], _MOST)",
        ),
        check="labor_probabilities_are_the_papers",
    ),
    change(
        "weights count in every step",
        "tempting",
        DRAW_LABOR,
        (
            (
                "kernel.update_importances("
                "spans, self._uniform, importances is None, state, largest, stop.flag)"
            ),
            "kernel.update_importances(spans, self._uniform, True, state, largest, stop.flag)",
        ),
        check="labor_probabilities_are_the_papers",
    ),
    change(
        "one step too few",
        "tempting",
        LABOR,
        (
            "if 0 < steps <= step or expected >= (1 - _CONVERGED) * previous_expected:",
            "if 0 < steps <= step + 1 or expected >= (1 - _CONVERGED) * previous_expected:",
        ),
        check="labor_probabilities_are_the_papers",
    ),
    change(
        "nodes of few edges forget what they were",
        "tempting",
        LABOR,
        (
            "return min(previous_level, min_importance) if degree > 0 else previous_level",
            "return min_importance if degree > 0 else previous_level",
        ),
        check="labor_probabilities_are_the_papers",
    ),
    change(
        "kept weights not divided by their probability",
        "tempting",
        KERNEL_LABOR,
        ("return weight / (1.0 if importance >= level else importance / level)", "return weight"),
        check="labor_weights_estimate_totals_and_means",
    ),
    change(
        "certain edges above the level weigh less",
        "tempting",
        KERNEL_LABOR,
        (
            "return weight / (1.0 if importance >= level else importance / level)",
            "return weight / (importance / level)",
        ),
        check="labor_keeps_edges_by_one_variate_per_node",
    ),
)
