"""Faults of alias tables, random words, global sampling and neighbor sampling."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, change

SHUFFLE = "storaged.kernels.neighbors.fisher_yates"
NEIGHBORS = "storaged.kernels.neighbors.with_replacement"
DISTINCT = "storaged.kernels.neighbors.distinct_edge_sampling"
ALIAS = "asterism_graphkit.random.alias_build"
RACE = "storaged.kernels.exponential_keys"
ACCEPTANCE = "asterism_graphkit.random.alias_draw"
VERSION = "storaged.sampling.version"
ENTRIES = "storaged.sampling.global_sampling.draw_assignment"
COLUMNS = "storaged.kernels.global_sampling.row_sampling"
RNG = "asterism_graphkit.random.rng"
SPLIT = "asterism_graphkit.random.partition_choice"
NEIGHBOR = "storaged.sampling.neighbors.sample_neighbors"
IMAGE = "storaged.store.image"
TABLE = "storaged.build.alias_table"

MUTANTS: tuple[Mutant, ...] = (
    change(
        "reservoir off by one",
        "Nebula #6091",
        SHUFFLE,
        (
            (
                "positions[k] = np.int64(bounded_short(word(key, k_th), np.uint64(degree) - "
                "k_th) + k_th)"
            ),
            (
                "positions[k] = np.int64(bounded_short(word(key, k_th), np.uint64(degree) - "
                "k_th - np.uint64(1)) + k_th + np.uint64(1))"
            ),
        ),
        check="distinct_neighbors_are_successive_draws",
    ),
    change(
        "Floyd off by one",
        "torch_sparse #385",
        SHUFFLE,
        (
            (
                "positions[k] = np.int64(bounded_short(word(key, k_th), np.uint64(degree) - "
                "k_th) + k_th)"
            ),
            (
                "positions[k] = np.int64(bounded_short(word(key, k_th), np.uint64(degree) - "
                "k_th - np.uint64(1)) + k_th)"
            ),
        ),
        check="distinct_neighbors_are_successive_draws",
    ),
    change(
        "first neighbor never picked",
        "DGL #1928",
        NEIGHBORS,
        (
            "column = bounded(w, degree)",
            "column = np.uint64(max(int(bounded(w, degree)), min(1, int(degree) - 1)))",
        ),
        check="neighbors_follow_their_weights",
    ),
    change(
        "zero weight picked, in whole rows",
        "cuGraph #4607",
        DISTINCT,
        (
            "if row.weights == 0 or f32_at(row.weights, j) > np.float32(0.0):",
            "if row.weights == 0 or f32_at(row.weights, j) >= np.float32(0.0):",
        ),
        check="complete_neighborhoods_are_in_order",
    ),
    change(
        "zero weight picked, by tables",
        "cuGraph #4607",
        ALIAS,
        ("scaled = np.rint(prob * _TWO64)", "scaled = np.rint(max(prob, 0.001) * _TWO64)"),
        check="tables_are_exact",
    ),
    change(
        "zero weight picked, in a race",
        "cuGraph #4607",
        RACE,
        (("if not weight > 0.0:\n            continue"), "weight = max(weight, 0.5)"),
        check="exponential_keys_give_successive_draws",
    ),
    change(
        "the light half dropped",
        "passes DGL's own test",
        ALIAS,
        (
            "scaled = np.rint(prob * _TWO64)",
            "scaled = np.rint(prob * _TWO64) if prob >= 0.5 else 0.0",
        ),
        check="tables_are_exact",
    ),
    change(
        "alias and probability swapped",
        "classic",
        ACCEPTANCE,
        (
            "return alias_column ^ (column ^ alias_column) & keep_mask",
            "return column ^ (column ^ alias_column) & keep_mask",
        ),
        check="streams_are_not_lagged",
    ),
    change(
        "unpaired columns lead to outcome 0",
        "PecanPy",
        ALIAS,
        (
            ("prob[open_row] = 1.0\n        alias[open_row] = open_row"),
            ("prob[open_row] = max(high - 0.01, 0.0)\n        alias[open_row] = 0"),
        ),
        check="tables_are_exact",
    ),
    change(
        "stale totals",
        "Euler",
        VERSION,
        (
            (
                "totals = {(type_id, part): float(part_totals.count if uniform else "
                "part_totals.weight) for (kind, type_id, part), part_totals in "
                "self.totals.items() if kind == element}"
            ),
            (
                "totals = {(type_id, part): float(part_totals.count if uniform else "
                "part_totals.weight * (1 + 0.5 * (part == 0))) for (kind, type_id, part), "
                "part_totals in self.totals.items() if kind == element}"
            ),
        ),
        check="nodes_follow_their_weights",
    ),
    change(
        "floor, and the rest to parts alike",
        "Euler",
        ENTRIES,
        (
            "return _draw_from_tables(*alias_table, table, params, draw_indices, want_tags)",
            (
                "def draw(*alias_table):\n"
                "        return _draw_from_tables(*alias_table, table, params, draw_indices, "
                "want_tags)\n"
                "    measure, k = (entries.shares.measure, "
                "entries.shares.measure.size)\n"
                "    exact = np.floor(count * measure / measure.sum()).astype(int)\n"
                "    rest = np.random.default_rng(int(part_key)).integers(0, k, count - "
                "exact.sum())\n"
                "    chosen = np.random.default_rng(int(part_key) + "
                "start).permutation(np.r_[np.repeat(np.arange(k), exact), rest])\n"
                "    alias_fraction = as_kernel_array(np.zeros(k, np.uint32))\n"
                "    of_entry = [draw(as_kernel_array(np.full(k, e, np.uint64)), "
                "alias_fraction) if entries.local[e] else None for e in range(k)]\n"
                "    pairs = [(of_entry[e][0][i], e) for i, e in enumerate(chosen) if "
                "of_entry[e] is not None]\n"
                "    values = as_kernel_array(np.array([value for value, _ in pairs], np.int64))\n"
                "    return (values, as_kernel_array(np.array([table[columns.TAG, e] for _, "
                "e in pairs] if want_tags else [], np.int32)))"
            ),
        ),
        check="a_single_draw_follows_the_shares",
    ),
    change(
        "float32 prefix sums over a union",
        "Euler",
        NEIGHBORS,
        (
            "cumulative += measures[t, i]",
            "cumulative = np.float32(np.float32(cumulative) + np.float32(measures[t, i]))",
        ),
        check="unions_are_exact",
    ),
    change(
        "float32 sums of rows",
        "Euler",
        ALIAS,
        (
            ("t: float = s + x\n            error += s - t + x if s >= x else x - t + s"),
            ("t: float = np.float32(s + x)\n            error += 0.0"),
        ),
        check="tables_are_exact",
    ),
    change(
        "rows from 32 bits, globally",
        "many",
        COLUMNS,
        (
            "column = bounded_short(w, np.uint64(sizes[entry]))",
            "column = (w >> np.uint64(32)) * np.uint64(sizes[entry]) >> np.uint64(32)",
        ),
        check="rows_come_from_64_bits",
    ),
    change(
        "rows from 32 bits, in neighborhoods",
        "many",
        NEIGHBORS,
        ("column = bounded(w, degree)", "column = (w >> np.uint64(32)) * degree >> np.uint64(32)"),
        check="rows_come_from_64_bits",
    ),
    change(
        "coins of 32 bits",
        "many",
        ACCEPTANCE,
        (
            (
                "if needs_low_bits(entry, coin) and coin & _LOW < "
                "np.uint64(u32_at(fraction_address, column)):"
            ),
            "if coin < _LOW and coin > _LOW:",
        ),
        check="coins_have_64_bits",
    ),
    change(
        "answers grouped by part",
        "unshuffled shards",
        ENTRIES,
        (
            "return (as_kernel_array(out[:local_count]), as_kernel_array(out_tags[:local_count]))",
            (
                "order = np.argsort(out[:local_count] % max(int(table[columns.OFFSET].max()) + 1, "
                "1), kind='stable')\n"
                "    return (as_kernel_array(out[:local_count][order]), "
                "as_kernel_array(out_tags[:local_count][order[:out_tags.size]]))"
            ),
        ),
        check="hosts_and_ranges_do_not_change_draws",
    ),
    change(
        "the same stream on every worker",
        "Euler",
        COLUMNS,
        (
            "_hash(row_key, draw_numbers, _ZERO, size, words)",
            (
                "for j in range(size):\n"
                "            words[j] = word(row_key, start + np.uint64(num_drawn + j))"
            ),
        ),
        check="hosts_and_ranges_do_not_change_draws",
    ),
    change(
        "one stream for every position",
        "Euler",
        NEIGHBORS,
        ("node_key = derive_mixed(key, np.uint64(tags[node]))", "node_key = key"),
        check="neighbors_follow_their_weights",
    ),
    change(
        "streams of neighboring seeds lag",
        "seed + k * constant",
        RNG,
        ("key = mix64(path[0])", "key = (path[0] & np.uint64(4294967295)) * GOLDEN"),
        ("key = derive(key, path[i])", "key = key + (path[i] << np.uint64(40))"),
        check="streams_are_not_lagged",
    ),
    change(
        "streams of neighboring positions lag",
        "seed + k * constant",
        NEIGHBORS,
        (
            "node_key = derive_mixed(key, np.uint64(tags[node]))",
            "node_key = key + np.uint64(tags[node]) * np.uint64(11400714819323198485)",
        ),
        check="rows_come_from_64_bits",
    ),
    change(
        "starting over after too many rejections",
        "tempting",
        DISTINCT,
        (
            "if num_drawn < count:",
            (
                "if num_drawn < count:\n"
                "        direct_table[used_buckets[:num_drawn]] = -1\n"
                "        num_drawn = num_found = np.int64(0)"
            ),
        ),
        check="distinct_neighbors_are_successive_draws",
    ),
    change(
        "rejected draws taken with replacement",
        "tempting",
        DISTINCT,
        (
            "if direct_table[bucket] != 0 if direct else hash_keys[bucket] >= 0:",
            (
                "if (direct_table[bucket] != 0 if direct else hash_keys[bucket] >= 0) and "
                "rejections < 1:"
            ),
        ),
        check="distinct_neighbors_are_successive_draws",
    ),
    change(
        "a race by -log(u) * w",
        "classic",
        RACE,
        ("return -log(unit_float(w)) / weight", "return -log(unit_float(w)) * weight"),
        check="exponential_keys_give_successive_draws",
    ),
    change(
        "a union's types alike",
        "many",
        NEIGHBORS,
        ("total += measures[t, i]", "total += measures[t, i] > 0.0"),
        ("cumulative += measures[t, i]", "cumulative += measures[t, i] > 0.0"),
        check="neighbors_follow_their_weights",
    ),
    change(
        "an id before its threshold",
        "tempting",
        ENTRIES,
        (
            (
                "return EntryAddresses(threshold_addresses=as_kernel_array(np.where(has_ids, "
                "id_table_addresses, threshold_addresses)), "
                "rows_of=as_kernel_array(np.where(has_ids, np.uint64(0), rows_of)), "
                "ids=as_kernel_array(np.where(has_ids, id_table_addresses + np.uint64(8), "
                "ids)), shifts=as_kernel_array(np.where(has_ids, np.uint64(4), np.uint64(3))))"
            ),
            (
                "return EntryAddresses(threshold_addresses=as_kernel_array(np.where(has_ids, "
                "id_table_addresses, threshold_addresses)), "
                "rows_of=as_kernel_array(np.where(has_ids, np.uint64(0), rows_of)), "
                "ids=as_kernel_array(np.where(has_ids, id_table_addresses - np.uint64(8), "
                "ids)), shifts=as_kernel_array(np.where(has_ids, np.uint64(4), np.uint64(3))))"
            ),
        ),
        check="alias_ids_match_those_of_rows",
    ),
    change(
        "ids of rows beside columns",
        "tempting",
        ENTRIES,
        (
            (
                "return EntryAddresses(threshold_addresses=as_kernel_array(np.where(has_ids, "
                "id_table_addresses, threshold_addresses)), "
                "rows_of=as_kernel_array(np.where(has_ids, np.uint64(0), rows_of)), "
                "ids=as_kernel_array(np.where(has_ids, id_table_addresses + np.uint64(8), "
                "ids)), shifts=as_kernel_array(np.where(has_ids, np.uint64(4), np.uint64(3))))"
            ),
            (
                "return EntryAddresses(threshold_addresses=as_kernel_array(np.where(has_ids, "
                "id_table_addresses, threshold_addresses)), rows_of=rows_of, "
                "ids=as_kernel_array(np.where(has_ids, id_table_addresses + np.uint64(8), "
                "ids)), shifts=as_kernel_array(np.where(has_ids, np.uint64(4), np.uint64(3))))"
            ),
        ),
        check="alias_ids_match_those_of_rows",
    ),
    change(
        "two draws from one word",
        "tempting",
        COLUMNS,
        (
            "words[j] = word(key, draw_numbers[begin + j])",
            "words[j] = word(key, draw_numbers[begin + j] >> np.uint64(1))",
        ),
        check="neighboring_draws_are_independent",
    ),
    change(
        "parts in proportion, in random order",
        "tempting",
        SPLIT,
        (
            (
                "_choose_entries(np.uint64(key), np.uint64(start), shares.alias_threshold, "
                "shares.alias_fraction, out)"
            ),
            (
                "points = (np.arange(count) + 0.5) / count * shares.total\n"
                "    out[:] = np.random.default_rng(int(key) + "
                "start).permutation(np.searchsorted(np.cumsum(shares.measure), points))"
            ),
        ),
        check="parts_are_multinomial",
    ),
    change(
        "sums that lose small weights",
        "tempting",
        ALIAS,
        (
            "return float(_sum(as_kernel_array(np.asarray(weights, np.float64))))",
            "return float(np.add.accumulate(np.asarray(weights, np.float64))[-1])",
        ),
        check="sums_are_compensated",
    ),
    change(
        "the rest alike after too many rejections",
        "tempting",
        DISTINCT,
        (
            "edge_key = exponential_key(word(key, np.uint64(j)), weight)",
            "edge_key = exponential_key(word(key, np.uint64(j)), 1.0)",
        ),
        check="too_many_rejections_do_not_bias",
    ),
    change(
        "a union's types race by the same words",
        "lagged",
        NEIGHBOR,
        (
            "[_keys(params.selection_key(edge_type), tags) for edge_type in union]",
            "[_keys(params.selection_key(0), tags) for edge_type in union]",
        ),
        check="unions_without_replacement_are_successive_draws",
    ),
    change(
        "neighbors by their place on a host",
        "tempting",
        NEIGHBORS,
        (
            "node_key = derive_mixed(key, np.uint64(tags[node]))",
            "node_key = derive_mixed(key, np.uint64(node))",
        ),
        check="hosts_do_not_change_neighbors_edges_and_selections",
    ),
)

UNAUDITED = change(
    "tables are not audited",
    "so that a mutant gets past the build",
    TABLE,
    ("if not out[0] <= MAX_DISTANCE:", "if not out[0] <= 1.0:"),
)
"""Change that disables audits; it is no mutant.

`tests.integration.jobs.test_verify_mutants` plants it together with a mutant, because builds reject
tables that fail their audit.
"""

NAMED: tuple[Mutant, ...] = (
    change(
        "nodes by name from the rows' own table",
        "tempting",
        IMAGE,
        (
            (
                "return replace(image, nodes=tuple((replace(node, "
                "weights=node.extra_weights[weight_name].weights, "
                "table=node.extra_weights[weight_name].table) if weight_name in "
                "node.extra_weights else node for node in image.nodes)), "
                "edges=tuple((_edges_with_weights(edge, edge.extra_weights[weight_name]) if "
                "weight_name in edge.extra_weights else edge for edge in image.edges)))"
            ),
            (
                "return replace(image, nodes=tuple((replace(node, "
                "weights=node.extra_weights[weight_name].weights) if weight_name in "
                "node.extra_weights else node for node in image.nodes)), "
                "edges=tuple((_edges_with_weights(edge, edge.extra_weights[weight_name]) if "
                "weight_name in edge.extra_weights else edge for edge in image.edges)))"
            ),
        ),
    ),
    change(
        "neighbors by name from the rows' own alias rows",
        "tempting",
        IMAGE,
        (
            (
                "return replace(side, weights=weights.weights, sums=weights.sums, "
                "hot=weights.hot, cold=weights.cold, packed=weights.packed, "
                "time_sums=weights.time_sums)"
            ),
            (
                "return replace(side, weights=weights.weights, sums=weights.sums, "
                "hot=side.hot, cold=side.cold, packed=side.packed, time_sums=weights.time_sums)"
            ),
        ),
    ),
)
"""Faults of sampling by weight tables only.

`tests.integration.jobs.test_verify_mutants` plants them too.
"""
