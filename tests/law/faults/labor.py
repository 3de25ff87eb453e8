"""Faults of layer-neighbor sampling."""

from __future__ import annotations

from tests.law.faults import Mutant, change

LABOR = "graphkit.labor"

MUTANTS: tuple[Mutant, ...] = (
    change("one stream for all hops of LABOR", "Euler", LABOR, ("0 if layer_dependency else hop", "0")),
    change("one stream for all node types of LABOR", "DGL, by design", LABOR, ("LABOR, node_type, ", "LABOR, 0, ")),
    change("a stream for each edge type of LABOR", "tempting", "storaged.draw.labor", ("(seed, far, hop", "(seed, edge_type, hop")),
    change("the same with importance steps", "tempting", "graphd.labor", ("how.seed, reach.far, hop", "how.seed, reach.edge_type, hop")),
    change("a stream for each kind of storaged", "tempting", "storaged.draw.labor", ("(seed, far, hop", "(seed + len(version.parts), far, hop")),
    change(
        "variates of slots, not of nodes",
        "tempting",
        "storaged.kernel.labor",
        ("unit(word(key, np.uint64(nbr[e]))) <= weight / level", "unit(word(key, np.uint64(e))) <= weight / level"),
    ),
    change("as many by weight as uniformly", "tempting", "storaged.kernel.labor", ("* level <= np.float64(weights[e])", "* level <= 1.0")),
    change("kept for certain a little too early", "tempting", "storaged.kernel.labor", ("or degree <= fanout:", "or degree <= fanout + 1:")),
    change(
        "weights of what storageds keep not normalised",
        "tempting",
        "storaged.kernel.labor",
        ("* (count / total)", "* 1.0"),
    ),
    change(
        "variates of edges, not of nodes",
        "neighbor sampling",
        LABOR,
        ("variates[numbers[e]] <= probabilities[e]", "unit(word(key, np.uint64(ids[numbers[e]] + 64 * row))) <= probabilities[e]"),
    ),
    change("kept by the number of a batch", "tempting", LABOR, ("unit(word(key, np.uint64(ids[t])))", "unit(word(key, np.uint64(t)))")),
    change(
        "as many in expectation, not as exact",
        "Balin 2023, between (10) and (11)",
        LABOR,
        ("        levels[row] = _solved(near,", "        _solved(near,"),
        ("    while most >= level:", "    level = total / np.float64(fanout)\n    while False:"),
    ),
    change(
        "the degree counts edges of weight 0",
        "DGL",
        LABOR,
        ("            positive += np.int64(weight > 0.0)", "            positive += 1"),
        ("        degree += np.int64(weight > 0.0)", "        degree += 1"),
    ),
    change(
        "the first of Newton's steps is the last",
        "tempting",
        LABOR,
        (
            "        if uncertain == 0 or uncertain >= rest:\n            break",
            "        if uncertain >= 0:\n            break",
        ),
    ),
    change("weights not squared", "tempting", LABOR, ("weight * weight / importances[e]", "weight / importances[e]")),
    change("the last of the importances", "tempting", LABOR, ("= max(largest[numbers[e]], asked)", "= asked")),
    change("importances replaced, not multiplied", "tempting", LABOR, ("largest[t] if first else importances[t] * largest[t]", "largest[t]")),
    change(
        "weights count in every step",
        "tempting",
        LABOR,
        ("        _raise(indptr, of, to, levels, step == 0, largest)", "        _raise(indptr, of, to, levels, True, largest)"),
    ),
    change("one step too few", "tempting", LABOR, ("importance <= step + 1", "importance <= step + 2")),
    change(
        "weights of what is kept not normalised",
        "tempting",
        LABOR,
        ("np.float32(inverse * (np.float64(count - begin) / total))", "np.float32(inverse)"),
    ),
    change(
        "nodes of few edges forget what they were",
        "tempting",
        LABOR,
        ("return min(before, least) if degree > 0", "return least if degree > 0"),
    ),
    change("the last edge that came to a node", "tempting", LABOR, ("            places[i] = seen[t]", "            places[i] = nodes - 1")),
)
