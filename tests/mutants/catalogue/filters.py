"""Faults of sampling under filters."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, change

CONDITIONS = "storaged.sampling.filters.cache"
RESTRICTED = "storaged.sampling.filters.filtered_image"
LOOKING = "storaged.sampling.filters.scan"
RESTRICTION = "graphd.operators.filters"
COVERS = "storaged.sampling.filters.range_cover"
COVERED = "storaged.kernels.global_sampling.index_range_sampling"
INTERVALS = "storaged.sampling.filters.index_ranges"
NEAR = "storaged.kernels.neighbors.index_ranges"
RANGED = "storaged.kernels.neighbors.filtered"
SUCCESSIVE = "storaged.kernels.neighbors.successive"
DRAW_RANGED = "storaged.sampling.neighbors.filtered"

MUTANTS: tuple[Mutant, ...] = (
    change(
        "totals of all rows",
        "stale totals",
        CONDITIONS,
        (
            (
                "return replace(version, parts=parts, totals={**version.totals, **totals}, "
                "named_totals={}, filter_text=row_filter.text, filter_weight=row_filter.weight)"
            ),
            (
                "return replace(version, parts=parts, totals=version.totals, named_totals={}, "
                "filter_text=row_filter.text, filter_weight=row_filter.weight)"
            ),
        ),
        check="hosts_do_not_change_filtered_draws",
    ),
    change(
        "a condition that is not looked at",
        "tempting",
        RESTRICTED,
        (
            "rows = np.flatnonzero(mask).astype(np.uint32)",
            "rows = np.flatnonzero(mask | True).astype(np.uint32)",
        ),
        check="filters_keep_weights_of_matching_nodes",
    ),
    change(
        "columns of a table for its rows",
        "classic",
        RESTRICTED,
        (
            "row_of = EMPTY_U32 if all_rows and positive.size == rows.size else rows[positive]",
            "row_of = positive.astype(np.uint32)",
        ),
        check="filters_keep_weights_of_matching_nodes",
    ),
    change(
        "weights of the first rows",
        "classic",
        RESTRICTED,
        ("positive_weights = weights[positive]", "positive_weights = weights[:positive.size]"),
        check="filters_keep_weights_of_matching_nodes",
    ),
    change(
        "weights of the rows in question, all alike",
        "tempting",
        RESTRICTED,
        (
            "if positive_weights.size and positive_weights.min() == positive_weights.max():",
            "if positive_weights.size and positive_weights.min() <= positive_weights.max():",
        ),
        check="filters_keep_weights_of_matching_nodes",
    ),
    change(
        "uniform draws of all rows",
        "tempting",
        RESTRICTED,
        (
            (
                "image = replace(node, count=rows.size, live=mask.astype(np.uint8), "
                "live_rows=rows, table=table, extra_weights={})"
            ),
            (
                "image = replace(node, count=rows.size, live=mask.astype(np.uint8), "
                "live_rows=node.live_rows, table=table, extra_weights={})"
            ),
        ),
        check="filters_keep_weights_of_matching_nodes",
    ),
    change(
        "rows end where the next one begins",
        "off by one",
        RESTRICTED,
        (
            "indptr = np.searchsorted(slots, side.indptr).astype(np.int64)",
            "indptr = np.searchsorted(slots, side.indptr + 1).astype(np.int64)",
        ),
        check="filtered_neighbors_are_in_time_order",
    ),
    change(
        "alias rows of other edges",
        "classic",
        RESTRICTED,
        ("weights = side.weights[slots]", "weights = side.weights[:slots.size]"),
        check="filtered_neighbors_are_in_time_order",
    ),
    change(
        "the first in-copies",
        "tempting",
        RESTRICTED,
        (
            (
                "image = replace(edge, outgoing=side, incoming=None if incoming is None or "
                "edge.incoming is None else _filter_side(edge.incoming, "
                "np.flatnonzero(incoming)), src_row=edge.src_row[slots], table=table, "
                "extra_weights={}, indexes=())"
            ),
            (
                "image = replace(edge, outgoing=side, incoming=None if incoming is None or "
                "edge.incoming is None else _filter_side(edge.incoming, "
                "np.arange(int(incoming.sum()))), src_row=edge.src_row[slots], table=table, "
                "extra_weights={}, indexes=())"
            ),
        ),
        check="filtered_neighbors_are_in_time_order",
    ),
    change(
        "what is left in the order of slots",
        "tempting",
        RESTRICTED,
        ("ordered = new_slots[side.order]", "ordered = new_slots"),
        check="filtered_neighbors_are_in_time_order",
    ),
    change(
        "times of the first edges",
        "tempting",
        RESTRICTED,
        (
            (
                "filtered = replace(filtered, when=side.when[slots], "
                "order=_filter_time_order(side, slots))"
            ),
            (
                "filtered = replace(filtered, when=side.when[:slots.size], "
                "order=_filter_time_order(side, slots))"
            ),
        ),
        check="filtered_neighbors_are_in_time_order",
    ),
    change(
        "sums in the order of slots",
        "tempting",
        RESTRICTED,
        (
            (
                "running_weight_sums(as_kernel_array(indptr), np.int64(0), "
                "np.int64(indptr.size - 1), as_kernel_array(filtered.order), "
                "as_kernel_array(weights), filtered.time_sums)"
            ),
            (
                "running_weight_sums(as_kernel_array(indptr), np.int64(0), "
                "np.int64(indptr.size - 1), np.sort(filtered.order), as_kernel_array(weights), "
                "filtered.time_sums)"
            ),
        ),
        check="filtered_neighbors_are_in_time_order",
    ),
    change(
        "bits from the other end",
        "classic",
        LOOKING,
        (
            (
                "return np.asarray(in_range & (matches[places >> 3] >> (7 - (places & "
                "7)).astype(np.uint8) & 1).astype(np.bool_))"
            ),
            (
                "return np.asarray(in_range & (matches[places >> 3] >> (places & "
                "7).astype(np.uint8) & 1).astype(np.bool_))"
            ),
        ),
        check="hosts_do_not_change_filtered_draws",
    ),
    change(
        "places by the other division",
        "classic",
        LOOKING,
        ("places = ids // stride", "places = ids % stride"),
        check="hosts_do_not_change_filtered_draws",
    ),
    change(
        "in-copies by the row before",
        "off by one",
        LOOKING,
        (
            (
                "return np.searchsorted(self.side.indptr, np.arange(self.low, self.high), "
                "side='right') - 1"
            ),
            (
                "return np.searchsorted(self.side.indptr, np.arange(self.low, self.high), "
                "side='left') - 1"
            ),
        ),
        check="filters_keep_weights_of_edges_and_neighbors",
    ),
    change(
        "totals in the other order",
        "tempting",
        RESTRICTION,
        (
            "column[:, list(request.parts)] = values",
            "column[:, list(request.parts)] = values[:, ::-1]",
        ),
        check="hosts_do_not_change_filtered_draws",
    ),
    change(
        "totals of all rows beside an index",
        "stale totals",
        CONDITIONS,
        (
            (
                "return replace(weighted_version, range_covers=dict(covers), "
                "totals={**weighted_version.totals, **totals}, named_totals={}, "
                "filter_text=row_filter.text, filter_weight=row_filter.weight)"
            ),
            (
                "return replace(weighted_version, range_covers=dict(covers), "
                "totals=weighted_version.totals, named_totals={}, filter_text=row_filter.text, "
                "filter_weight=row_filter.weight)"
            ),
        ),
        check="hosts_do_not_change_filtered_draws",
    ),
    change(
        "a block is drawn like any other",
        "classic",
        COVERS,
        (
            (
                "alias_thresholds, alias_fractions = "
                "alias_build.pack_thresholds(*alias_build.build(piece_weights))"
            ),
            (
                "alias_thresholds, alias_fractions = "
                "alias_build.pack_thresholds(*alias_build.build(np.ones_like(piece_weights)))"
            ),
        ),
        check="indexes_keep_weights_of_matching_nodes",
    ),
    change(
        "blocks of the run before",
        "off by one",
        COVERS,
        (
            "piece_weights[at_level] = table.sums[starts[at_level] // step]",
            "piece_weights[at_level] = table.sums[np.maximum(starts[at_level] // step - 1, 0)]",
        ),
        check="indexes_keep_weights_of_matching_nodes",
    ),
    change(
        "single rows by the weights of the first ones",
        "tempting",
        COVERS,
        (
            "piece_weights[single] = image.weights[index.rows[starts[single]]]",
            "piece_weights[single] = image.weights[starts[single]]",
        ),
        check="hosts_do_not_change_filtered_draws",
    ),
    change(
        "uniform draws by weight",
        "tempting",
        COVERS,
        ("if uniform:", "if False:"),
        check="indexes_keep_weights_of_matching_nodes",
    ),
    change(
        "one word for a block and for a row of it",
        "lagged",
        COVERED,
        ("w = word(piece_key, number)", "w = word(row_key, number)"),
        check="indexes_keep_weights_of_matching_nodes",
    ),
    change(
        "one word for a part and for a block of it",
        "lagged",
        COVERED,
        ("w = word(piece_key, number)", "w = word(part_key, number)"),
        check="indexes_keep_weights_of_matching_nodes",
    ),
    change(
        "blocks that begin at even rows",
        "off by one",
        COVERED,
        (
            "block_rows[j] += np.uint64(starts[piece])",
            "block_rows[j] += np.uint64(starts[piece] - (starts[piece] & 1))",
        ),
        check="indexes_keep_weights_of_matching_nodes",
    ),
    change(
        "the first row of every block",
        "first neighbour",
        COVERED,
        ("column = bounded(w, piece_rows)", "column = bounded(w, np.uint64(1))"),
        check="indexes_keep_weights_of_matching_nodes",
    ),
    change(
        "places in the order in place of rows",
        "classic",
        COVERED,
        (
            "block_rows[j] = np.uint64(u32_at(np.uint64(row_maps[entries[j]]), block_rows[j]))",
            "block_rows[j] = np.uint64(block_rows[j])",
        ),
        check="indexes_keep_weights_of_matching_nodes",
    ),
    change(
        "a complement of the other end",
        "tempting",
        INTERVALS,
        (
            "return _nonempty(list(zip(ends[::2], ends[1::2], strict=True)))",
            "return _nonempty(list(zip(ends[1::2], ends[2::2], strict=False)))",
        ),
        check="hosts_do_not_change_filtered_draws",
    ),
    change(
        "a run without its last value",
        "off by one",
        NEAR,
        (
            "sizes[s] = _lower_bound(keys, run_starts[s], stop, high, True) - run_starts[s]",
            "sizes[s] = _lower_bound(keys, run_starts[s], stop, high, False) - run_starts[s]",
        ),
        check="range_draws_follow_their_distribution",
    ),
    change(
        "a run without its first value",
        "off by one",
        NEAR,
        (
            "run_starts[s] = _lower_bound(keys, starts[s], stop, low, False)",
            "run_starts[s] = _lower_bound(keys, starts[s], stop, low, True)",
        ),
        check="range_draws_follow_their_distribution",
    ),
    change(
        "down to the right alone",
        "classic",
        NEAR,
        (
            (
                "if remaining >= left_weight and _tree_weight(node + 1, start, size, order, "
                "weights, tree) > 0.0:"
            ),
            "if _tree_weight(node + 1, start, size, order, weights, tree) > 0.0:",
        ),
        check="range_draws_follow_their_distribution",
    ),
    change(
        "down without what the left weighs",
        "classic",
        NEAR,
        ("remaining -= left_weight", "remaining -= 0.0"),
        check="range_draws_follow_their_distribution",
    ),
    change(
        "trees without the last edge of a run",
        "off by one",
        NEAR,
        (
            "low, high = (np.int64(first + degree), np.int64(first + size + degree))",
            "low, high = (np.int64(first + degree), np.int64(first + size + degree - 1))",
        ),
        check="range_draws_follow_their_distribution",
    ),
    change(
        "the first place of every run",
        "first neighbour",
        NEAR,
        ("chosen += np.int64(point >= sums[p])", "chosen += np.int64(point < 0.0)"),
        check="range_draws_follow_their_distribution",
    ),
    change(
        "how far into the row in place of into the piece",
        "tempting",
        NEAR,
        ("remaining = point - sums[chosen - 1] if chosen > 0 else point", "remaining = point"),
        check="range_draws_follow_their_distribution",
    ),
    change(
        "drawn once more in the place of the next",
        "classic",
        RANGED,
        ("masses[chosen] = 0.0", "masses[chosen] *= 1.0"),
        check="range_draws_without_replacement_follow_their_distribution",
    ),
    change(
        "one word for all that differ",
        "lagged",
        RANGED,
        (
            "point = unit_float(word(key, np.uint64(k))) * total",
            "point = unit_float(word(key, np.uint64(0))) * total",
        ),
        check="range_draws_without_replacement_follow_their_distribution",
    ),
    change(
        "one word for all draws of a node",
        "lagged",
        RANGED,
        ("w = word(node_key, np.uint64(k))", "w = word(node_key, np.uint64(0))"),
        check="range_draws_follow_their_distribution",
    ),
    change(
        "a new start after too many repeats",
        "starting over",
        SUCCESSIVE,
        (
            (
                "if weight > 0.0 and hash_keys[find_hash_slot(hash_keys, "
                "np.int64(match_index), shift)] < 0:"
            ),
            (
                "if weight > 0.0 and hash_keys[find_hash_slot(hash_keys, "
                "np.int64(match_index), shift)] < 99:"
            ),
        ),
        check="range_draws_without_replacement_follow_their_distribution",
    ),
    change(
        "slots of the first run",
        "tempting",
        RANGED,
        (
            "offset = np.int64(u32_at(order, runs.starts[run] + offset))",
            "offset = np.int64(u32_at(order, runs.starts[0] + offset))",
        ),
        check="range_draws_follow_their_distribution",
    ),
    change(
        "what was drawn among what is left",
        "tempting",
        RANGED,
        (
            "if drawn_bits[match_index >> 6] >> np.uint64(match_index & 63) & _ONE == _NONE:",
            (
                "if drawn_bits[match_index >> 6] >> np.uint64(match_index & 63) & _ONE != "
                "np.uint64(2):"
            ),
        ),
        check="range_draws_without_replacement_follow_their_distribution",
    ),
    change(
        "the order of the other end",
        "classic",
        DRAW_RANGED,
        (
            "return column_index.outgoing if direction == OUT else column_index.incoming",
            "return column_index.outgoing",
        ),
        check="range_draws_follow_their_distribution",
    ),
    change(
        "uniform draws made by weight",
        "tempting",
        DRAW_RANGED,
        ("weights = side.weights[:0] if self.uniform else side.weights", "weights = side.weights"),
        check="range_draws_follow_their_distribution",
    ),
    change(
        "shares of all edges",
        "stale totals",
        DRAW_RANGED,
        (
            "probability.write_shares(flat, totals, places, count, out)",
            "probability.write_shares(flat, totals * 2, places, count, out)",
        ),
        check="range_draws_follow_their_distribution",
    ),
    change(
        "ranges by the place on a host",
        "tempting",
        DRAW_RANGED,
        (
            "nodes.tags(block_positions, block_ids)",
            "nodes.tags(np.arange(block_ids.size), block_ids)",
        ),
        check="hosts_do_not_change_index_ranges",
    ),
)
