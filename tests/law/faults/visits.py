"""Faults of visit counts and of personalised PageRank."""

from __future__ import annotations

from tests.law.faults import Mutant, change

VISITED, VISITS = "graphkit.visits", "graphd.visits"
PUSH, PAGERANK, RANK = "graphkit.push", "graphd.pagerank", "storaged.kernel.push"

MUTANTS: tuple[Mutant, ...] = (
    change(
        "a walk may end before its first traversal",
        "tempting",
        VISITED,
        ("(t > 0 and unit(", "(t >= 0 and unit("),
        check="visits_are_counted_as_walks_make_them",
    ),
    change(
        "a walk ends a traversal late", "tempting", VISITED, ("(t > 0 and unit(", "(t > 1 and unit("), check="visits_are_counted_as_walks_make_them"
    ),
    change(
        "a walk that ended goes on",
        "classic",
        VISITED,
        ("termination):\n                    break\n", "termination):\n                    continue\n"),
        check="visits_are_counted_as_walks_make_them",
    ),
    change(
        "walks of a node end together",
        "tempting",
        VISITED,
        ("np.uint64(first + row)", "np.uint64(first + i)"),
        check="visits_are_counted_as_walks_make_them",
    ),
    change(
        "traversals end by one word",
        "tempting",
        VISITED,
        ("[key_of(seed, TERMINATION, t)", "[key_of(seed, TERMINATION)"),
        check="visits_are_counted_as_walks_make_them",
    ),
    change(
        "ties to the larger id", "DGL", VISITED, ("(ids[at - gap] > node or", "(ids[at - gap] < node or"), check="many_visits_are_ranked_as_few_are"
    ),
    change(
        "fewest visits first",
        "classic",
        VISITED,
        ("times[other] > times[place]", "times[other] < times[place]"),
        check="many_visits_are_ranked_as_few_are",
    ),
    change(
        "of few visits, ties to the larger id",
        "DGL",
        VISITED,
        ("same << 2 * _FIELD | (_FEW - earlier)", "same << 2 * _FIELD | earlier"),
        check="many_visits_are_ranked_as_few_are",
    ),
    change(
        "of few visits, as many as come before",
        "classic",
        VISITED,
        ("same << 2 * _FIELD | (_FEW - earlier)", "(_FEW - earlier)"),
        check="many_visits_are_ranked_as_few_are",
    ),
    change(
        "of few visits, a node once for each",
        "tempting",
        VISITED,
        ("keys[i] >> _FIELD == highest >> _FIELD", "keys[i] == highest"),
        check="many_visits_are_ranked_as_few_are",
    ),
    change(
        "every step is a visit", "tempting", VISITS, ('["nodes"][:, hops::hops]', '["nodes"][:, 1:]'), check="visits_are_counted_as_walks_make_them"
    ),
    change("starts are visits", "tempting", VISITS, ('["nodes"][:, hops::hops]', '["nodes"][:, ::hops]'), check="many_visits_are_ranked_as_few_are"),
    change(
        "alpha goes on, the rest stays",
        "classic",
        PUSH,
        ("(1.0 - alpha) * amount / mass", "alpha * amount / mass"),
        check="pageranks_are_pushed_in_rounds",
    ),
    change(
        "dead ends keep a share only",
        "PPRGo",
        PUSH,
        ("alpha * amount if mass > 0.0 else amount", "alpha * amount"),
        check="pageranks_are_pushed_in_rounds",
    ),
    change(
        "every edge weighs alike",
        "tempting",
        PUSH,
        ("per_weight[i] * np.float64(weights[e]) if weighted", "per_weight[i] if weighted"),
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
        ("> how.epsilon * held.masses[pairs.ids[reached_now]]", "> how.epsilon"),
        check="pageranks_are_pushed_in_rounds",
    ),
    change("lowest scores first", "classic", PAGERANK, ("-scores[some], starts))", "scores[some], starts))"), check="pageranks_are_pushed_in_rounds"),
    change("what the first edge type weighs", "tempting", PAGERANK, ("weighed.sum(axis=1)", "weighed[:, 0]"), check="pageranks_are_pushed_in_rounds"),
    change(
        "a storaged of all parts hands on alpha",
        "classic",
        RANK,
        ("(1.0 - alpha) * amount / mass", "alpha * amount / mass"),
        check="pageranks_are_pushed_in_rounds",
    ),
    change(
        "its dead ends keep a share only",
        "PPRGo",
        RANK,
        ("alpha * amount if mass > 0.0 else amount", "alpha * amount"),
        check="pageranks_are_pushed_in_rounds",
    ),
    change("its bound is without degrees", "tempting", RANK, ("> epsilon * masses[met[i]]", "> epsilon"), check="pageranks_are_pushed_in_rounds"),
    change(
        "its lowest scores first",
        "classic",
        RANK,
        ("return scores[a] > scores[b] or", "return scores[a] < scores[b] or"),
        check="pageranks_are_pushed_in_rounds",
    ),
    change(
        "it sums in the order of arrival",
        "tempting",
        RANK,
        ("_sort(front, size, ids, kinds)", "_sort(front, size * 0, ids, kinds)"),
        check="pageranks_are_pushed_in_rounds",
    ),
)
