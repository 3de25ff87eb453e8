"""Faults of visit counts and of personalised PageRank."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, change

VISITS = "asterism_graphkit.operators.visit_counts"
VISITS_VISITS = "graphd.operators.visit_counts"
PUSH = "asterism_graphkit.operators.pagerank_push"
PAGERANK = "graphd.operators.pagerank"
KERNEL_PUSH = "storaged.kernels.pagerank"

MUTANTS: tuple[Mutant, ...] = (
    change(
        "a walk may end before its first traversal",
        "tempting",
        VISITS,
        (
            (
                "if end_nodes[row, t] < 0 or (t > 0 and unit_float(word(derive_mixed("
                "keys[t], tag), np.uint64(0))) < termination):"
            ),
            (
                "if end_nodes[row, t] < 0 or (t >= 0 and unit_float(word(derive_mixed("
                "keys[t], tag), np.uint64(0))) < termination):"
            ),
        ),
        check="visit_counts_match_the_walks",
    ),
    change(
        "a walk ends a traversal late",
        "tempting",
        VISITS,
        (
            (
                "if end_nodes[row, t] < 0 or (t > 0 and unit_float(word(derive_mixed("
                "keys[t], tag), np.uint64(0))) < termination):"
            ),
            (
                "if end_nodes[row, t] < 0 or (t > 1 and unit_float(word(derive_mixed("
                "keys[t], tag), np.uint64(0))) < termination):"
            ),
        ),
        check="visit_counts_match_the_walks",
    ),
    change(
        "a walk that ended goes on",
        "classic",
        VISITS,
        (
            (
                "if end_nodes[row, t] < 0 or (t > 0 and unit_float(word(derive_mixed("
                "keys[t], tag), np.uint64(0))) < termination):\n"
                "                    break"
            ),
            (
                "if end_nodes[row, t] < 0 or (t > 0 and unit_float(word(derive_mixed("
                "keys[t], tag), np.uint64(0))) < termination):\n"
                "                    continue"
            ),
        ),
        check="visit_counts_match_the_walks",
    ),
    change(
        "walks of a node end together",
        "tempting",
        VISITS,
        (
            "tag = node_tag(np.uint64(first_walk + row), start_nodes[i], np.int64(0))",
            "tag = node_tag(np.uint64(first_walk + i), start_nodes[i], np.int64(0))",
        ),
        check="visit_counts_match_the_walks",
    ),
    change(
        "traversals end by one word",
        "tempting",
        VISITS,
        (
            (
                "keys = np.array([key_of(seed, TERMINATION, t) for t in "
                "range(end_nodes.shape[1])], np.uint64)"
            ),
            (
                "keys = np.array([key_of(seed, TERMINATION) for t in "
                "range(end_nodes.shape[1])], np.uint64)"
            ),
        ),
        check="visit_counts_match_the_walks",
    ),
    change(
        "ties to the larger id",
        "DGL",
        VISITS,
        (
            (
                "while at >= gap and (ids[at - gap] > node or (typed and ids[at - gap] == node "
                "and (types[at - gap] > node_type))):"
            ),
            (
                "while at >= gap and (ids[at - gap] < node or (typed and ids[at - gap] == node "
                "and (types[at - gap] > node_type))):"
            ),
        ),
        check="many_visits_are_ranked_like_few",
    ),
    change(
        "fewest visits first",
        "classic",
        VISITS,
        (
            (
                "if counts[other] > counts[candidate] or (counts[other] == counts[candidate] "
                "and other < candidate):"
            ),
            (
                "if counts[other] < counts[candidate] or (counts[other] == counts[candidate] "
                "and other < candidate):"
            ),
        ),
        check="many_visits_are_ranked_like_few",
    ),
    change(
        "of few visits, ties to the larger id",
        "DGL",
        VISITS,
        (
            "keys[i] = visits << 2 * _FIELD | _FEW - smaller << _FIELD | i",
            "keys[i] = visits << 2 * _FIELD | smaller << _FIELD | i",
        ),
        check="many_visits_are_ranked_like_few",
    ),
    change(
        "of few visits, as many as come before",
        "classic",
        VISITS,
        (
            "keys[i] = visits << 2 * _FIELD | _FEW - smaller << _FIELD | i",
            "keys[i] = _FEW - smaller << _FIELD | i",
        ),
        check="many_visits_are_ranked_like_few",
    ),
    change(
        "of few visits, a node once for each",
        "tempting",
        VISITS,
        (
            "keys[i] = np.int64(0) if keys[i] >> _FIELD == highest >> _FIELD else keys[i]",
            "keys[i] = np.int64(0) if keys[i] == highest else keys[i]",
        ),
        check="many_visits_are_ranked_like_few",
    ),
    change(
        "every step is a visit",
        "tempting",
        VISITS_VISITS,
        (
            "ends = np.ascontiguousarray(walk_sections['nodes'][:, hops::hops])",
            "ends = np.ascontiguousarray(walk_sections['nodes'][:, 1:])",
        ),
        check="visit_counts_match_the_walks",
    ),
    change(
        "starts are visits",
        "tempting",
        VISITS_VISITS,
        (
            "ends = np.ascontiguousarray(walk_sections['nodes'][:, hops::hops])",
            "ends = np.ascontiguousarray(walk_sections['nodes'][:, ::hops])",
        ),
        check="many_visits_are_ranked_like_few",
    ),
    change(
        "alpha goes on, the rest stays",
        "classic",
        PUSH,
        (
            "out[i] = (1.0 - alpha) * amount / mass if mass > 0.0 else 0.0",
            "out[i] = alpha * amount / mass if mass > 0.0 else 0.0",
        ),
        check="pageranks_are_pushed_in_rounds",
    ),
    change(
        "dead ends keep a share only",
        "PPRGo",
        PUSH,
        (
            "scores[pair] += alpha * amount if mass > 0.0 else amount",
            "scores[pair] += alpha * amount",
        ),
        check="pageranks_are_pushed_in_rounds",
    ),
    change(
        "every edge weighs alike",
        "tempting",
        PUSH,
        (
            (
                "amounts[position] = per_weight[i] * np.float64(weights[e]) if weighted else "
                "per_weight[i]"
            ),
            "amounts[position] = per_weight[i] if weighted else per_weight[i]",
        ),
        check="pageranks_are_pushed_in_rounds",
    ),
    change(
        "what arrives replaces what is held",
        "classic",
        PUSH,
        ("residuals[pair] += amounts[e]", "residuals[pair] = amounts[e]"),
        check="pageranks_are_pushed_in_rounds",
    ),
    change(
        "a bound without degrees",
        "tempting",
        PAGERANK,
        (
            (
                "frontier = arrived[residuals.values[arrived] > params.epsilon * "
                "cache.weight_sums[pairs.ids[arrived]]]"
            ),
            "frontier = arrived[residuals.values[arrived] > params.epsilon]",
        ),
        check="pageranks_are_pushed_in_rounds",
    ),
    change(
        "lowest scores first",
        "classic",
        PAGERANK,
        (
            (
                "order = stable_order([starts, -scores[scored], cache.ids[node_indices], "
                "cache.types[node_indices]], checkpoint)"
            ),
            (
                "order = stable_order([starts, scores[scored], cache.ids[node_indices], "
                "cache.types[node_indices]], checkpoint)"
            ),
        ),
        check="pageranks_are_pushed_in_rounds",
    ),
    change(
        "what the first edge type weighs",
        "tempting",
        PAGERANK,
        ("self.weight_sums[chunk] = sums.sum(axis=1)", "self.weight_sums[chunk] = sums[:, 0]"),
        check="pageranks_are_pushed_in_rounds",
    ),
    change(
        "a storaged of all parts hands on alpha",
        "classic",
        KERNEL_PUSH,
        (
            "per_weight[i] = (1.0 - alpha) * amount / weight_sum if weight_sum > 0.0 else 0.0",
            "per_weight[i] = alpha * amount / weight_sum if weight_sum > 0.0 else 0.0",
        ),
        check="pageranks_are_pushed_in_rounds",
    ),
    change(
        "its dead ends keep a share only",
        "PPRGo",
        KERNEL_PUSH,
        (
            "scores[pair] += alpha * amount if weight_sum > 0.0 else amount",
            "scores[pair] += alpha * amount",
        ),
        check="pageranks_are_pushed_in_rounds",
    ),
    change(
        "its bound is without degrees",
        "tempting",
        KERNEL_PUSH,
        (
            "if residuals[reached[i]] > epsilon * weight_sums[reached[i]]:",
            "if residuals[reached[i]] > epsilon:",
        ),
        check="pageranks_are_pushed_in_rounds",
    ),
    change(
        "its lowest scores first",
        "classic",
        KERNEL_PUSH,
        (
            (
                "return scores[a] > scores[b] or (scores[a] == scores[b] and _precedes(a, b, "
                "ids, kinds))"
            ),
            (
                "return scores[a] < scores[b] or (scores[a] == scores[b] and _precedes(a, b, "
                "ids, kinds))"
            ),
        ),
        check="pageranks_are_pushed_in_rounds",
    ),
    change(
        "it sums in the order of arrival",
        "tempting",
        KERNEL_PUSH,
        ("_sort(frontier, size, ids, kinds)", "_sort(frontier, size * 0, ids, kinds)"),
        check="pageranks_are_pushed_in_rounds",
    ),
)
