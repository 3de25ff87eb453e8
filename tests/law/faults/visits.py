"""Faults of visit counts and of personalised PageRank."""

from __future__ import annotations

from tests.law.faults import Mutant, change

VISITED, VISITS = "graphkit.visits", "graphd.visits"
PUSH, PAGERANK, RANK = "graphkit.push", "graphd.pagerank", "storaged.kernel.push"

MUTANTS: tuple[Mutant, ...] = (
    change("a walk may end before its first traversal", "tempting", VISITED, ("(t > 0 and unit(", "(t >= 0 and unit(")),
    change("a walk ends a traversal late", "tempting", VISITED, ("(t > 0 and unit(", "(t > 1 and unit(")),
    change(
        "a walk that ended goes on",
        "classic",
        VISITED,
        ("termination):\n                    break\n", "termination):\n                    continue\n"),
    ),
    change("walks of a node end together", "tempting", VISITED, ("np.uint64(first + row)", "np.uint64(first + i)")),
    change("traversals end by one word", "tempting", VISITED, ("[key_of(seed, TERMINATION, t)", "[key_of(seed, TERMINATION)")),
    change("ties to the larger id", "DGL", VISITED, ("(ids[at - gap] > node or", "(ids[at - gap] < node or")),
    change("fewest visits first", "classic", VISITED, ("times[other] > times[place]", "times[other] < times[place]")),
    change("of few visits, ties to the larger id", "DGL", VISITED, ("same << 2 * _FIELD | (_FEW - earlier)", "same << 2 * _FIELD | earlier")),
    change("of few visits, as many as come before", "classic", VISITED, ("same << 2 * _FIELD | (_FEW - earlier)", "(_FEW - earlier)")),
    change("of few visits, a node once for each", "tempting", VISITED, ("keys[i] >> _FIELD == highest >> _FIELD", "keys[i] == highest")),
    change("every step is a visit", "tempting", VISITS, ('["nodes"][:, hops::hops]', '["nodes"][:, 1:]')),
    change("starts are visits", "tempting", VISITS, ('["nodes"][:, hops::hops]', '["nodes"][:, ::hops]')),
    change("alpha goes on, the rest stays", "classic", PUSH, ("(1.0 - alpha) * amount / mass", "alpha * amount / mass")),
    change("dead ends keep a share only", "PPRGo", PUSH, ("alpha * amount if mass > 0.0 else amount", "alpha * amount")),
    change("every edge weighs alike", "tempting", PUSH, ("per_weight[i] * np.float64(weights[e]) if weighted", "per_weight[i] if weighted")),
    change("what arrives replaces what is held", "classic", PUSH, ("residuals[pair] += amounts[e]", "residuals[pair] = amounts[e]")),
    change("a bound without degrees", "tempting", PAGERANK, ("> how.epsilon * held.masses[pairs.ids[reached_now]]", "> how.epsilon")),
    change("lowest scores first", "classic", PAGERANK, ("-scores[some], starts))", "scores[some], starts))")),
    change("what the first edge type weighs", "tempting", PAGERANK, ("weighed.sum(axis=1)", "weighed[:, 0]")),
    change("a storaged of all parts hands on alpha", "classic", RANK, ("(1.0 - alpha) * amount / mass", "alpha * amount / mass")),
    change("its dead ends keep a share only", "PPRGo", RANK, ("alpha * amount if mass > 0.0 else amount", "alpha * amount")),
    change("its bound is without degrees", "tempting", RANK, ("> epsilon * masses[met[i]]", "> epsilon")),
    change("its lowest scores first", "classic", RANK, ("return scores[a] > scores[b] or", "return scores[a] < scores[b] or")),
    change(
        "it sums in the order of arrival",
        "tempting",
        RANK,
        ("_sort(front, size, ids, kinds)", "_sort(front, size * 0, ids, kinds)"),
    ),
)
