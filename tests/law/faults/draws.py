"""Faults of tables, random words, global draws and neighbors."""

from __future__ import annotations

from tests.law.faults import Mutant, change

ALIAS, ACCEPTANCE, RNG = "graphkit.alias", "graphkit.acceptance", "graphkit.rng"
COLUMNS, NEIGHBORS, DISTINCT, SHUFFLE, RACE = (f"storaged.kernel.{room}" for room in ("columns", "neighbors", "distinct", "shuffle", "race"))
VERSION, ENTRIES = "storaged.draw.version", "storaged.draw.entries"

SHUFFLED = "used[k] = np.int64(below_short(word(key, k_th), np.uint64(degree) - k_th) + k_th)"
ONE_LESS = ("degree) - k_th)", "degree) - k_th - np.uint64(1))")
OF_ENTRIES = (
    "            reads.ids,\n            reads.shifts,\n            scales,\n"
    "            offsets,\n            out,\n            out_tags,\n        )\n    )\n"
)
DRAWN = "column = below(w, degree)"
OF_POSITION = "own = derive(key, np.uint64(positions[node]))"

MUTANTS: tuple[Mutant, ...] = (
    change(
        "reservoir off by one",
        "Nebula #6091",
        SHUFFLE,
        (SHUFFLED, SHUFFLED.replace("+ k_th)", "+ k_th + np.uint64(1))").replace(*ONE_LESS)),
        check="distinct_neighbors_are_successive_draws",
    ),
    change(
        "Floyd off by one", "torch_sparse #385", SHUFFLE, (SHUFFLED, SHUFFLED.replace(*ONE_LESS)), check="distinct_neighbors_are_successive_draws"
    ),
    change(
        "first neighbor never picked",
        "DGL #1928",
        NEIGHBORS,
        (DRAWN, "column = np.uint64(max(int(below(w, degree)), min(1, int(degree) - 1)))"),
        check="neighbors_follow_their_weights",
    ),
    change(
        "zero weight picked, in whole rows",
        "cuGraph #4607",
        DISTINCT,
        ("f32_at(row_weights, j) > np.float32(0.0)", "f32_at(row_weights, j) >= np.float32(0.0)"),
        check="whole_neighborhoods_come_in_order",
    ),
    change(
        "zero weight picked, by tables",
        "cuGraph #4607",
        ALIAS,
        ("scaled = np.rint(prob * _TWO64)", "scaled = np.rint(max(prob, 1e-3) * _TWO64)"),
        check="tables_are_exact",
    ),
    change(
        "zero weight picked, in a race",
        "cuGraph #4607",
        RACE,
        ("if not weight > 0.0:\n            continue", "weight = max(weight, 0.5)"),
        check="races_are_successive_draws",
    ),
    change(
        "the light half dropped",
        "passes DGL's own test",
        ALIAS,
        ("scaled = np.rint(prob * _TWO64)", "scaled = np.rint(prob * _TWO64) if prob >= 0.5 else 0.0"),
        check="tables_are_exact",
    ),
    change(
        "alias and probability swapped",
        "classic",
        ACCEPTANCE,
        ("return led ^ ((column ^ led) & kept)", "return column ^ ((column ^ led) & kept)"),
        check="streams_are_not_lagged",
    ),
    change(
        "unpaired columns lead to outcome 0",
        "PecanPy",
        ALIAS,
        (
            "    if open_row >= 0:\n        prob[open_row] = 1.0\n        alias[open_row] = open_row\n",
            "    if open_row >= 0:\n        prob[open_row] = max(high - 0.01, 0.0)\n        alias[open_row] = 0\n",
        ),
        check="tables_are_exact",
    ),
    change(
        "stale totals",
        "Euler",
        VERSION,
        ("float(share.count if uniform else share.weight)", "float(share.count if uniform else share.weight * (1 + 0.5 * (part == 0)))"),
        check="nodes_follow_their_weights",
    ),
    change(
        "floor, and the rest to parts alike",
        "Euler",
        ENTRIES,
        (
            "    return drawn(entries.shares.hot, entries.shares.cold)\n",
            "    measure, k = entries.shares.measure, entries.shares.measure.size\n"
            "    exact = np.floor(count * measure / measure.sum()).astype(int)\n"
            "    rest = np.random.default_rng(int(part_key)).integers(0, k, count - exact.sum())\n"
            "    chosen = np.random.default_rng(int(part_key) + start).permutation(np.r_[np.repeat(np.arange(k), exact), rest])\n"
            "    cold = settled(np.zeros(k, np.uint32))\n"
            "    of_entry = [drawn(settled(np.full(k, e, np.uint64)), cold) if entries.local[e] else None for e in range(k)]\n"
            "    pairs = [(of_entry[e][0][i], e) for i, e in enumerate(chosen) if of_entry[e] is not None]\n"
            "    values = settled(np.array([value for value, _ in pairs], np.int64))\n"
            "    return values, settled(np.array([tags[e] for _, e in pairs] if tags.size else [], np.int32))\n",
        ),
        check="a_single_draw_follows_the_shares",
    ),
    change(
        "float32 prefix sums over a union",
        "Euler",
        NEIGHBORS,
        ("reached += measures[t, i]", "reached = np.float32(np.float32(reached) + np.float32(measures[t, i]))"),
        check="unions_are_exact",
    ),
    change(
        "float32 sums of rows",
        "Euler",
        ALIAS,
        ("            t: float = s + x\n", "            t: float = np.float32(s + x)\n"),
        ("error += (s - t) + x if s >= x else (x - t) + s", "error += 0.0"),
        check="tables_are_exact",
    ),
    change(
        "rows from 32 bits, globally",
        "many",
        COLUMNS,
        ("column = below_short(w, sizes[entry])", "column = ((w >> np.uint64(32)) * sizes[entry]) >> np.uint64(32)"),
        check="rows_come_from_64_bits",
    ),
    change(
        "rows from 32 bits, in neighborhoods",
        "many",
        NEIGHBORS,
        (DRAWN, "column = ((w >> np.uint64(32)) * degree) >> np.uint64(32)"),
        check="rows_come_from_64_bits",
    ),
    change(
        "coins of 32 bits",
        "many",
        ACCEPTANCE,
        ("if undecided(row, coin) and (coin & _LOW) < np.uint64(u32_at(cold, column)):", "if coin < _LOW and coin > _LOW:"),
        check="coins_have_64_bits",
    ),
    change(
        "answers grouped by part",
        "unshuffled shards",
        ENTRIES,
        (
            OF_ENTRIES + "    return settled(out[:held]), settled(out_tags[:held])\n",
            OF_ENTRIES + "    order = np.argsort(out[:held] % max(int(offsets.max()) + 1, 1), kind='stable')\n"
            "    return settled(out[:held][order]), settled(out_tags[:held][order[: out_tags.size]])\n",
        ),
        check="hosts_and_ranges_do_not_matter",
    ),
    change(
        "the same stream on every worker",
        "Euler",
        COLUMNS,
        (
            "        _hash(row_key, drawn, _ZERO, size, words)\n",
            "        for j in range(size):\n            words[j] = word(row_key, start + np.uint64(made + j))\n",
        ),
        check="hosts_and_ranges_do_not_matter",
    ),
    change("one stream for every position", "Euler", NEIGHBORS, (OF_POSITION, "own = key"), check="neighbors_follow_their_weights"),
    change(
        "streams of neighboring seeds lag",
        "seed + k * constant",
        RNG,
        ("key = mix64(path[0])", "key = (path[0] & np.uint64(0xFFFFFFFF)) * GOLDEN"),
        ("key = derive(key, path[i])", "key = key + (path[i] << np.uint64(40))"),
        check="streams_are_not_lagged",
    ),
    change(
        "streams of neighboring positions lag",
        "seed + k * constant",
        NEIGHBORS,
        (OF_POSITION, "own = key + np.uint64(positions[node]) * np.uint64(0x9E3779B97F4A7C15)"),
        check="rows_come_from_64_bits",
    ),
    change(
        "starting over after too many rejections",
        "tempting",
        DISTINCT,
        (
            "    found = np.int64(drawn)\n    if drawn < count:\n",
            "    found = np.int64(drawn)\n    if drawn < count:\n        touched[used[:drawn]] = -1\n        drawn = found = np.int64(0)\n",
        ),
        check="distinct_neighbors_are_successive_draws",
    ),
    change(
        "rejected draws taken with replacement",
        "tempting",
        DISTINCT,
        (
            "if touched[there] != 0 if direct else marks[there] >= 0:\n",
            "if (touched[there] != 0 if direct else marks[there] >= 0) and refused < 1:\n",
        ),
        check="distinct_neighbors_are_successive_draws",
    ),
    change(
        "a race by -log(u) * w",
        "classic",
        RACE,
        ("return -log(unit(w)) / weight", "return -log(unit(w)) * weight"),
        check="races_are_successive_draws",
    ),
    change(
        "a union's types alike",
        "many",
        NEIGHBORS,
        ("total += measures[t, i]\n", "total += measures[t, i] > 0.0\n"),
        ("reached += measures[t, i]", "reached += measures[t, i] > 0.0"),
        check="neighbors_follow_their_weights",
    ),
    change(
        "an id before its threshold",
        "tempting",
        ENTRIES,
        ("ids=settled(np.where(has, keyed + np.uint64(8), ids))", "ids=settled(np.where(has, keyed - np.uint64(8), ids))"),
        check="ids_beside_thresholds_are_those_of_rows",
    ),
    change(
        "ids of rows beside columns",
        "tempting",
        ENTRIES,
        ("rows_of=settled(np.where(has, np.uint64(0), rows_of))", "rows_of=rows_of"),
        check="ids_beside_thresholds_are_those_of_rows",
    ),
    change(
        "two draws from one word",
        "tempting",
        COLUMNS,
        ("words[j] = word(key, drawn[begin + j])", "words[j] = word(key, drawn[begin + j] >> np.uint64(1))"),
        check="neighboring_draws_are_independent",
    ),
    change(
        "parts in proportion, in random order",
        "tempting",
        "graphkit.split",
        (
            "    _choose(np.uint64(key), np.uint64(start), shares.hot, shares.cold, out)\n",
            "    points = (np.arange(count) + 0.5) / count * shares.total\n"
            "    out[:] = np.random.default_rng(int(key) + start).permutation(np.searchsorted(np.cumsum(shares.measure), points))\n",
        ),
        check="parts_are_multinomial",
    ),
    change(
        "sums that lose small weights",
        "tempting",
        ALIAS,
        ("return float(_sum(settled(np.asarray(weights, np.float64))))", "return float(np.add.accumulate(np.asarray(weights, np.float64))[-1])"),
        check="sums_are_compensated",
    ),
    change(
        "the rest alike after too many rejections",
        "tempting",
        DISTINCT,
        ("arrives = arrival(word(key, np.uint64(j)), weight)", "arrives = arrival(word(key, np.uint64(j)), 1.0)"),
        check="too_many_rejections_do_not_bias",
    ),
    change(
        "a union's types race by the same words",
        "lagged",
        "storaged.draw.neighbor",
        ("race_keys = _keys(law.race_key(union[mine]), positions)", "race_keys = _keys(law.race_key(0), positions)"),
        check="unions_without_replacement_are_successive_draws",
    ),
    change(
        "neighbors by their place on a host",
        "tempting",
        NEIGHBORS,
        (OF_POSITION, "own = derive(key, np.uint64(node))"),
        check="hosts_do_not_matter_to_neighbors_edges_and_races",
    ),
)


UNAUDITED = change(
    "tables are not audited",
    "so that a mutant gets past the build",
    "storaged.build.table",
    ("if not out[0] <= MAX_DISTANCE:", "if not out[0] <= 1.0:"),
)
"""No mutant: what `tests.integration.test_verify_mutants` plants beside one, for a build would refuse its tables."""


NAMED: tuple[Mutant, ...] = (
    change(
        "nodes by name from the rows' own table",
        "tempting",
        "storaged.store.image",
        ("weights=node.named[weights].weights, table=node.named[weights].table)", "weights=node.named[weights].weights)"),
    ),
    change(
        "neighbors by name from the rows' own alias rows",
        "tempting",
        "storaged.store.image",
        ("hot=named.hot, cold=named.cold, packed=named.packed", "hot=side.hot, cold=side.cold, packed=side.packed"),
    ),
)
"""Faults of draws by further weights alone, which `tests.integration.test_verify_mutants` plants too."""
