"""Faults of draws until a time."""

from __future__ import annotations

from tests.law.faults import Mutant, change

KERNEL, DRAW, TIMES = "storaged.kernel.timed", "storaged.draw.timed", "graphkit.times"
EXPAND, GROW = "storaged.draw.expand", "storaged.draw.grow"

MUTANTS: tuple[Mutant, ...] = (
    change(
        "neighbors' times are those of out-edges",
        "tempting",
        EXPAND,
        ("incoming=how.direction == IN)", "incoming=False)"),
        check="an_edge_is_there_once_its_neighbor_is",
    ),
    change(
        "equal times are not seen",
        "pyg-lib, once",
        KERNEL,
        ("u32_at(order, middle)) <= limit:", "u32_at(order, middle)) < limit:"),
        check="the_last_are_the_latest",
    ),
    change(
        "one edge too many is seen",
        "tempting",
        KERNEL,
        ("    return low - start\n", "    return min(low + 1, np.int64(stop)) - start\n"),
        check="the_last_are_the_latest",
    ),
    change(
        "strict is ignored",
        "tempting",
        TIMES,
        ("return _before(times.astype(np.int64), strict)", "return _before(times.astype(np.int64), False)"),
        check="what_is_seen_is_drawn_by_its_law",
    ),
    change(
        "strict is ignored among floats",
        "tempting",
        TIMES,
        ("return keys_of(times) - np.int64(strict)", "return keys_of(times)"),
        check="the_last_are_the_latest",
    ),
    change(
        "negative floats in the order of their bits",
        "classic",
        TIMES,
        ("np.where(bits < 0, bits ^ _BEHIND_ALL, bits)", "bits"),
        check="the_last_are_the_latest",
    ),
    change(
        "the last are the first",
        "tempting",
        KERNEL,
        ("first << np.int64(32) | sizes[first]", "first << np.int64(32) | found"),
        check="the_last_are_the_latest",
    ),
    change(
        "the last of each type, one after another",
        "tempting",
        KERNEL,
        ("if first < 0 or here >= newest:", "if first < 0:"),
        check="the_last_are_the_latest",
    ),
    change(
        "the last from the whole row",
        "tempting",
        DRAW,
        ("how = kernel.LAST if until.last", "how = kernel.UNIFORM if until.last"),
        check="the_last_are_the_latest",
    ),
    change(
        "one time for the whole batch",
        "tempting",
        DRAW,
        ("limits_of(until.times,", "limits_of(np.full_like(until.times, until.times.max(initial=-(1 << 60))),"),
        check="the_last_are_the_latest",
    ),
    change(
        "in-edges by the times of out-edges",
        "tempting",
        DRAW,
        (
            "    side = adjacencies(version, edge_type, direction)\n",
            "    side = adjacencies(version, edge_type, direction)\n    side = replaced(side, when=adjacencies(version, edge_type, 1).when)\n",
        ),
        check="an_edge_is_there_once_its_neighbor_is",
    ),
    change(
        "by weight as if alike",
        "many",
        DRAW,
        ("else kernel.UNIFORM if uniform else kernel.WEIGHTED", "else kernel.UNIFORM"),
        check="what_is_seen_is_drawn_by_its_law",
    ),
    change(
        "what the whole row weighs",
        "tempting",
        KERNEL,
        (
            "masses[t] = f64_at(sums[t, part], starts[t] + sizes[t] - 1)",
            "masses[t] = f64_at(sums[t, part], i64_at(indptr[t, part], rows[i] + 1) - 1)",
        ),
        check="what_is_seen_is_drawn_by_its_law",
    ),
    change(
        "the edge before the point",
        "off by one",
        KERNEL,
        ("if here > point or here == whole:", "if here >= point - 1.0 or here == whole:"),
        check="what_is_seen_is_drawn_by_its_law",
    ),
    change(
        "types by their number of edges",
        "tempting",
        KERNEL,
        ("if how == WEIGHTED and sizes[t] > 0 and", "if how == WEIGHTED and sizes[t] > 9 and"),
        check="what_is_seen_is_drawn_by_its_law",
    ),
    change(
        "shuffle off by one",
        "torch_sparse #385",
        KERNEL,
        ("np.uint64(seen - k))", "np.uint64(seen - k - 1))"),
        check="what_is_seen_is_drawn_by_its_law",
    ),
    change(
        "zero weight picked, in whole rows",
        "cuGraph #4607",
        KERNEL,
        ("part, order, weights) > 0.0:", "part, order, weights) >= 0.0:"),
        check="what_is_seen_is_drawn_by_its_law",
    ),
    change(
        "a race among all again",
        "tempting",
        KERNEL,
        ("marks[spot(marks, np.int64(at), shift)] < 0:", "marks[0] < 9:"),
        check="what_is_seen_is_drawn_by_its_law",
    ),
    change(
        "a tree's time is lost after its first hop",
        "tempting",
        GROW,
        ("None if until is None or front.trees is None", "None if until is None or hop > 0"),
        check="a_seeds_time_holds_for_its_tree",
    ),
    change(
        "times by the place in the front",
        "tempting",
        GROW,
        ("else until.at(front.trees)", "else until.at(np.arange(len(front.ids)) % len(until.times))"),
        check="a_seeds_time_holds_for_its_tree",
    ),
    change(
        "times of others, on several hosts",
        "tempting",
        "graphd.sample",
        ("how.until.at(rows)", 'how.until.times[: len(sections["ids"])]'),
        check="hosts_do_not_matter_to_what_is_seen",
    ),
    change(
        "times of a fanout one start after another",
        "tempting",
        "graphd.until",
        ("np.repeat(self.times, count)", "np.tile(self.times, count)"),
        check="a_nodes_time_holds_for_all_that_is_drawn_from_it",
    ),
    change(
        "times of other trees, on several hosts",
        "tempting",
        "graphd.spread",
        ("self._until.at(front.trees[rows])", "self._until.at(front.trees[rows] * 0)"),
        check="an_edge_is_there_once_its_neighbor_is",
    ),
    change(
        "a race where most is asked for",
        "tempting",
        KERNEL,
        ("refused < REJECTIONS:", "refused < REJECTIONS and 2 * count <= seen:"),
        check="fewer_are_the_first_of_more",
    ),
)
