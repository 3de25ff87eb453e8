"""Faults of sampling with temporal filters."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, change

EXPAND = "storaged.sampling.subgraphs.expand"
TIMED = "storaged.kernels.neighbors.temporal"
SUCCESSIVE = "storaged.kernels.neighbors.successive"
TIMES = "asterism_graphkit.arrays.time_keys"
DRAW_TIMED = "storaged.sampling.neighbors.temporal"
GROW = "storaged.sampling.subgraphs.khop"
SAMPLE = "graphd.operators.neighbor_sampling"
UNTIL = "graphd.operators.temporal_filters"
SPREAD = "graphd.operators.subgraph_hop_dispatch"

MUTANTS: tuple[Mutant, ...] = (
    change(
        "neighbors' times are those of out-edges",
        "tempting",
        EXPAND,
        (
            (
                "if temporal_filter is not None and edge_time_dtype(version.schema, edge_type, "
                "incoming=expansion.direction == IN):"
            ),
            (
                "if temporal_filter is not None and edge_time_dtype(version.schema, edge_type, "
                "incoming=False):"
            ),
        ),
        check="edges_appear_with_their_neighbors",
    ),
    change(
        "equal times are not seen",
        "pyg-lib, once",
        TIMED,
        (
            "if i64_at(times, u32_at(order, middle)) <= limit:",
            "if i64_at(times, u32_at(order, middle)) < limit:",
        ),
        check="last_neighbors_are_the_latest",
    ),
    change(
        "one edge too many is seen",
        "tempting",
        TIMED,
        ("return low - start", "return min(low + 1, np.int64(stop)) - start"),
        check="last_neighbors_are_the_latest",
    ),
    change(
        "strict is ignored",
        "tempting",
        TIMES,
        (
            "return _before(times.astype(np.int64), strict)",
            "return _before(times.astype(np.int64), False)",
        ),
        check="visible_edges_are_drawn_by_their_distribution",
    ),
    change(
        "strict is ignored among floats",
        "tempting",
        TIMES,
        ("return encode_times(times) - np.int64(strict)", "return encode_times(times)"),
        check="last_neighbors_are_the_latest",
    ),
    change(
        "negative floats in the order of their bits",
        "classic",
        TIMES,
        ("return np.where(bits < 0, bits ^ _AFTER_ALL, bits)", "return bits"),
        check="last_neighbors_are_the_latest",
    ),
    change(
        "the last are the first",
        "tempting",
        TIMED,
        (
            "draws[num_found] = latest_type << np.int64(32) | sizes[latest_type]",
            "draws[num_found] = latest_type << np.int64(32) | num_found",
        ),
        check="last_neighbors_are_the_latest",
    ),
    change(
        "the last of each type, one after another",
        "tempting",
        TIMED,
        ("if latest_type < 0 or time >= latest_time:", "if latest_type < 0:"),
        check="last_neighbors_are_the_latest",
    ),
    change(
        "the last from the whole row",
        "tempting",
        DRAW_TIMED,
        (
            (
                "strategy = kernel.LAST if temporal_filter.last else kernel.UNIFORM if uniform "
                "else kernel.WEIGHTED"
            ),
            (
                "strategy = kernel.UNIFORM if temporal_filter.last else kernel.UNIFORM if "
                "uniform else kernel.WEIGHTED"
            ),
        ),
        check="last_neighbors_are_the_latest",
    ),
    change(
        "one time for the whole batch",
        "tempting",
        DRAW_TIMED,
        (
            (
                "return as_kernel_array(limit_keys(temporal_filter.times, "
                "strict=temporal_filter.strict, is_float=_has_float_times(version, edge_type, "
                "direction)))"
            ),
            (
                "return as_kernel_array(limit_keys(np.full_like(temporal_filter.times, "
                "temporal_filter.times.max(initial=-(1 << 60))), "
                "strict=temporal_filter.strict, is_float=_has_float_times(version, edge_type, "
                "direction)))"
            ),
        ),
        check="last_neighbors_are_the_latest",
    ),
    change(
        "in-edges by the times of out-edges",
        "tempting",
        DRAW_TIMED,
        (
            "table = address_table(version, edge_type, direction)",
            (
                "table = address_table(version, edge_type, direction).copy()\n"
                "    table[:, adjacency_rows.WHEN] = address_table(version, edge_type, 1)[:, "
                "adjacency_rows.WHEN]"
            ),
        ),
        check="edges_appear_with_their_neighbors",
    ),
    change(
        "by weight as if alike",
        "many",
        DRAW_TIMED,
        (
            (
                "strategy = kernel.LAST if temporal_filter.last else kernel.UNIFORM if uniform "
                "else kernel.WEIGHTED"
            ),
            "strategy = kernel.LAST if temporal_filter.last else kernel.UNIFORM",
        ),
        check="visible_edges_are_drawn_by_their_distribution",
    ),
    change(
        "what the whole row weighs",
        "tempting",
        TIMED,
        (
            "masses[t] = f64_at(sums, starts[t] + sizes[t] - 1)",
            "masses[t] = f64_at(sums, i64_at(indptr, rows[i] + 1) - 1)",
        ),
        check="visible_edges_are_drawn_by_their_distribution",
    ),
    change(
        "the edge before the point",
        "off by one",
        TIMED,
        (
            "if running_sum > point or running_sum == total:",
            "if running_sum >= point - 1.0 or running_sum == total:",
        ),
        check="visible_edges_are_drawn_by_their_distribution",
    ),
    change(
        "types by their number of edges",
        "tempting",
        TIMED,
        (
            "if strategy == WEIGHTED and sizes[t] > 0 and (sums > 0):",
            "if strategy == WEIGHTED and sizes[t] > 9 and (sums > 0):",
        ),
        check="visible_edges_are_drawn_by_their_distribution",
    ),
    change(
        "shuffle off by one",
        "torch_sparse #385",
        SUCCESSIVE,
        (
            "chosen = k + np.int64(bounded(word(key, np.uint64(k)), np.uint64(match_count - k)))",
            (
                "chosen = k + np.int64(bounded(word(key, np.uint64(k)), "
                "np.uint64(match_count - k - 1)))"
            ),
        ),
        check="visible_edges_are_drawn_by_their_distribution",
    ),
    change(
        "zero weight picked, in rows by time",
        "cuGraph #4607",
        TIMED,
        (
            (
                "if strategy == UNIFORM or match_weight(tables, part, np.int64(edge_index), "
                "runs) > 0.0:"
            ),
            (
                "if strategy == UNIFORM or match_weight(tables, part, np.int64(edge_index), "
                "runs) >= 0.0:"
            ),
        ),
        check="visible_edges_are_drawn_by_their_distribution",
    ),
    change(
        "a race among all again",
        "tempting",
        SUCCESSIVE,
        (
            (
                "if weight > 0.0 and hash_keys[find_hash_slot(hash_keys, "
                "np.int64(match_index), shift)] < 0:"
            ),
            "if weight > 0.0 and hash_keys[0] < 9:",
        ),
        check="visible_edges_are_drawn_by_their_distribution",
    ),
    change(
        "a tree's time is lost after its first hop",
        "tempting",
        GROW,
        (
            (
                "tree_filter = None if temporal_filter is None or frontier.trees is None else "
                "temporal_filter.for_places(frontier.trees)"
            ),
            (
                "tree_filter = None if temporal_filter is None or hop > 0 else "
                "temporal_filter.for_places(frontier.trees)"
            ),
        ),
        check="seed_times_hold_for_their_trees",
    ),
    change(
        "times by the place in the front",
        "tempting",
        GROW,
        (
            (
                "tree_filter = None if temporal_filter is None or frontier.trees is None else "
                "temporal_filter.for_places(frontier.trees)"
            ),
            (
                "tree_filter = None if temporal_filter is None or frontier.trees is None else "
                "temporal_filter.for_places(np.arange(len(frontier.ids)) % "
                "len(temporal_filter.times))"
            ),
        ),
        check="seed_times_hold_for_their_trees",
    ),
    change(
        "times of others, on several hosts",
        "tempting",
        SAMPLE,
        (
            "sections['times'] = params.temporal_filter.times_at(rows)",
            "sections['times'] = params.temporal_filter.times[:len(sections['ids'])]",
        ),
        check="hosts_do_not_change_visible_edges",
    ),
    change(
        "times of a fanout one start after another",
        "tempting",
        UNTIL,
        (
            "return TemporalFilter(times=np.repeat(self.times, count), head=self.head)",
            "return TemporalFilter(times=np.tile(self.times, count), head=self.head)",
        ),
        check="node_times_hold_for_their_draws",
    ),
    change(
        "times of other trees, on several hosts",
        "tempting",
        SPREAD,
        (
            "sections[f'times.{type_id}'] = self._temporal_filter.times_at(frontier.trees[rows])",
            (
                "sections[f'times.{type_id}'] = "
                "self._temporal_filter.times_at(frontier.trees[rows] * 0)"
            ),
        ),
        check="edges_appear_with_their_neighbors",
    ),
    change(
        "a race where most is asked for",
        "tempting",
        TIMED,
        (
            "while num_found < count and rejections < REJECTIONS:",
            (
                "while num_found < count and rejections < REJECTIONS and (2 * count <= "
                "runs.sizes.sum()):"
            ),
        ),
        check="fewer_are_the_first_of_more",
    ),
)
