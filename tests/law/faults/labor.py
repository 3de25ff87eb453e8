"""Faults of layer-neighbor sampling."""

from __future__ import annotations

from tests.law.faults import Mutant, change

LABOR = "graphkit.labor"
STEPS = "storaged.kernel.importance"

MUTANTS: tuple[Mutant, ...] = (
    change(
        "one stream for all hops of LABOR",
        "Euler",
        LABOR,
        ("0 if layer_dependency else hop", "0"),
        check="labor_variates_are_of_a_hop_unless_layers_depend",
    ),
    change(
        "one stream for all node types of LABOR",
        "DGL, by design",
        LABOR,
        ("LABOR, node_type, ", "LABOR, 0, "),
        check="labor_variates_of_a_node_are_its_types",
    ),
    change(
        "a stream for each edge type of LABOR",
        "tempting",
        "storaged.draw.labor",
        ("(seed, far, hop", "(seed, edge_type, hop"),
        check="labor_keeps_edges_by_one_variate_a_node",
    ),
    change(
        "a stream for each kind of storaged",
        "tempting",
        "storaged.draw.labor",
        ("(seed, far, hop", "(seed + len(version.parts), far, hop"),
        check="labor_variates_of_a_node_are_its_types",
    ),
    change(
        "variates of slots, not of nodes",
        "tempting",
        "storaged.kernel.labor",
        ("unit(word(key, np.uint64(near[e - first]))) <= np", "unit(word(key, np.uint64(e))) <= np"),
        check="labor_keeps_edges_by_one_variate_a_node",
    ),
    change(
        "as many by weight as uniformly",
        "tempting",
        "storaged.kernel.labor",
        ("* level <= np.float64(importances[e])", "* level <= 1.0"),
        check="labor_keeps_edges_by_one_variate_a_node",
    ),
    change(
        "kept for certain a little too early",
        "tempting",
        "storaged.kernel.labor",
        ("fanout < 0 or degree <= fanout)", "fanout < 0 or degree <= fanout + 1)"),
        check="labor_variates_of_a_node_are_its_types",
    ),
    change(
        "weights of what storageds keep not normalised",
        "tempting",
        "storaged.kernel.labor",
        ("* (count / total)", "* 1.0"),
        check="labor_keeps_edges_by_one_variate_a_node",
    ),
    change(
        "variates of edges, not of nodes",
        "neighbor sampling",
        "storaged.kernel.labor",
        ("word(key, np.uint64(near[e])) >> _S12", "word(key, np.uint64(near[e] + 64 * size)) >> _S12"),
        ("word(key, np.uint64(near[e]))) * level", "word(key, np.uint64(near[e] + 64 * size))) * level"),
        ("word(key, np.uint64(near[e - first]))) <=", "word(key, np.uint64(near[e - first] + 64 * importances.shape[0]))) <="),
        check="labor_variates_are_of_a_hop_unless_layers_depend",
    ),
    change(
        "as many in expectation, not as exact",
        "Balin 2023, between (10) and (11)",
        LABOR,
        ("    while most >= level:", "    level = total / np.float64(fanout)\n    while False:"),
        check="labor_probabilities_are_the_papers",
    ),
    change(
        "kept by the levels of the step before",
        "tempting",
        "storaged.kernel.labor",
        ("level = solved(heavy, mine, squares, ratios, fanout, levels[i])", "level = levels[i]"),
        check="labor_keeps_edges_by_one_variate_a_node",
    ),
    change(
        "the degree counts edges of weight 0",
        "DGL",
        LABOR,
        ("            positive += np.int64(weight > 0.0)", "            positive += 1"),
        ("            degree += np.int64(weight > 0.0)", "            degree += 1"),
        check="labor_probabilities_are_the_papers",
    ),
    change(
        "the first of Newton's steps is the last",
        "tempting",
        LABOR,
        (
            "        if uncertain == 0 or uncertain >= rest:\n            break",
            "        if uncertain >= 0:\n            break",
        ),
        check="labor_probabilities_are_the_papers",
    ),
    change(
        "weights not squared",
        "tempting",
        LABOR,
        ("weight * weight / importances[e]", "weight / importances[e]"),
        check="labor_probabilities_are_the_papers",
    ),
    change(
        "the last of the importances",
        "tempting",
        STEPS,
        ("            largest[number] = max(largest[number], asked)", "            largest[number] = asked"),
        check="labor_probabilities_are_the_papers",
    ),
    change(
        "the last host's importances",
        "tempting",
        LABOR,
        ("= max(largest[numbers[i]], asked[i])", "= asked[i]"),
        check="labor_keeps_edges_by_one_variate_a_node",
    ),
    change(
        "one host's importances for another's neighbors",
        "tempting",
        "graphd.labor",
        ("importances[self._numbers[host]]", "importances[: len(self._numbers[host])]"),
        check="labor_keeps_edges_by_one_variate_a_node",
    ),
    change(
        "importances replaced, not multiplied",
        "tempting",
        LABOR,
        ("largest[t] if first else importances[t] * largest[t]", "largest[t]"),
        check="labor_probabilities_are_the_papers",
    ),
    change(
        "weights count in every step",
        "tempting",
        "storaged.draw.labor",
        ("levels, importances is None, largest", "levels, True, largest"),
        check="labor_probabilities_are_the_papers",
    ),
    change("one step too few", "tempting", LABOR, ("0 < steps <= step or", "0 < steps <= step + 1 or"), check="labor_probabilities_are_the_papers"),
    change(
        "nodes of few edges forget what they were",
        "tempting",
        LABOR,
        ("return min(before, least) if degree > 0", "return least if degree > 0"),
        check="labor_probabilities_are_the_papers",
    ),
)
