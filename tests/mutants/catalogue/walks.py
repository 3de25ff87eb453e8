"""Faults of node2vec walks by p and q, and of their Bloom filters."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, change

WALK = "graphd.operators.walks"
DRAW_WALK = "storaged.sampling.walks.random_walks"
BIAS = "storaged.kernels.walks.node2vec"
SIEVE = "storaged.kernels.walks.bloom_filter"
BIASED_WALK = "storaged.kernels.walks.node2vec_packed"

MUTANTS: tuple[Mutant, ...] = (
    change(
        "joined taken for not joined elsewhere",
        "tempting",
        WALK,
        (
            "is_accepted = (reply.array('joined', 'uint8') > 0) == (self._params.q > 1.0)",
            "is_accepted = (reply.array('joined', 'uint8') > 0) == (self._params.q < 1.0)",
        ),
        check="biased_walks_follow_node2vec",
    ),
    change(
        "p and q after a restart",
        "tempting",
        WALK,
        (
            (
                "return (np.where(edge_types >= 0, self._nodes[rows, last_step], -1), "
                "self._source_types[edge_types])"
            ),
            "return (self._nodes[rows, last_step], self._source_types[edge_types])",
        ),
        check="biased_walks_follow_node2vec",
    ),
    change(
        "restarts to where the host met the walk",
        "tempting",
        WALK,
        ("sections['starts'] = self._starts[rows]", "sections['starts'] = self.current[rows]"),
        check="walks_follow_step_probabilities",
    ),
    change(
        "a step back by q",
        "tempting",
        DRAW_WALK,
        (
            (
                "return WalkParams(parts=np.int64(version.schema.parts), "
                "shift=np.int64(adjacency_rows.parts_shift(np.int64(version.schema.parts))), "
                "mod=version.schema.placement != 'mix64', "
                "needs_lookup=walk_graph.needs_lookup, length=np.int64(spec.length), "
                "uniform=bool(spec.uniform), restart=np.float64(spec.restart), "
                "biased=spec.is_biased, excess_return=np.float64(_excess_return(spec)), "
                "return_limit=np.float64(1.0 / spec.p / max_bias), "
                "accept_limit=np.float64(min(1.0, away_bias) / max_bias), accept_joined=spec.q "
                "> 1.0"
            ),
            (
                "return WalkParams(parts=np.int64(version.schema.parts), "
                "shift=np.int64(adjacency_rows.parts_shift(np.int64(version.schema.parts))), "
                "mod=version.schema.placement != 'mix64', "
                "needs_lookup=walk_graph.needs_lookup, length=np.int64(spec.length), "
                "uniform=bool(spec.uniform), restart=np.float64(spec.restart), "
                "biased=spec.is_biased, excess_return=np.float64(_excess_return(spec)), "
                "return_limit=np.float64(1.0 / spec.q / max_bias), "
                "accept_limit=np.float64(min(1.0, away_bias) / max_bias), accept_joined=spec.q "
                "> 1.0"
            ),
        ),
        check="biased_walks_follow_node2vec",
    ),
    change(
        "p and q not looked at",
        "tempting",
        DRAW_WALK,
        (
            (
                "return WalkParams(parts=np.int64(version.schema.parts), "
                "shift=np.int64(adjacency_rows.parts_shift(np.int64(version.schema.parts))), "
                "mod=version.schema.placement != 'mix64', "
                "needs_lookup=walk_graph.needs_lookup, length=np.int64(spec.length), "
                "uniform=bool(spec.uniform), restart=np.float64(spec.restart), "
                "biased=spec.is_biased, excess_return=np.float64(_excess_return(spec)), "
                "return_limit=np.float64(1.0 / spec.p / max_bias), "
                "accept_limit=np.float64(min(1.0, away_bias) / max_bias), accept_joined=spec.q "
                "> 1.0"
            ),
            (
                "return WalkParams(parts=np.int64(version.schema.parts), "
                "shift=np.int64(adjacency_rows.parts_shift(np.int64(version.schema.parts))), "
                "mod=version.schema.placement != 'mix64', "
                "needs_lookup=walk_graph.needs_lookup, length=np.int64(spec.length), "
                "uniform=bool(spec.uniform), restart=np.float64(spec.restart), "
                "biased=spec.is_biased, excess_return=np.float64(_excess_return(spec)), "
                "return_limit=np.float64(1.0 / spec.p / max_bias), "
                "accept_limit=np.float64(1.0), accept_joined=spec.q > 1.0"
            ),
        ),
        check="biased_walks_follow_node2vec",
    ),
    change(
        "bias over less than the largest",
        "classic",
        DRAW_WALK,
        ("return max(1.0, 1.0 / spec.q)", "return 1.0"),
        check="returning_walks_weigh_parallel_edges",
    ),
    change(
        "a step back twice over",
        "tempting",
        DRAW_WALK,
        (
            (
                "return WalkParams(parts=np.int64(version.schema.parts), "
                "shift=np.int64(adjacency_rows.parts_shift(np.int64(version.schema.parts))), "
                "mod=version.schema.placement != 'mix64', "
                "needs_lookup=walk_graph.needs_lookup, length=np.int64(spec.length), "
                "uniform=bool(spec.uniform), restart=np.float64(spec.restart), "
                "biased=spec.is_biased, excess_return=np.float64(_excess_return(spec)), "
                "return_limit=np.float64(1.0 / spec.p / max_bias), "
                "accept_limit=np.float64(min(1.0, away_bias) / max_bias), accept_joined=spec.q "
                "> 1.0"
            ),
            (
                "return WalkParams(parts=np.int64(version.schema.parts), "
                "shift=np.int64(adjacency_rows.parts_shift(np.int64(version.schema.parts))), "
                "mod=version.schema.placement != 'mix64', "
                "needs_lookup=walk_graph.needs_lookup, length=np.int64(spec.length), "
                "uniform=bool(spec.uniform), restart=np.float64(spec.restart), "
                "biased=spec.is_biased, excess_return=np.float64(_excess_return(spec) and "
                "_excess_return(spec) + 1.0), return_limit=np.float64(1.0 / spec.p / "
                "max_bias), accept_limit=np.float64(min(1.0, away_bias) / max_bias), "
                "accept_joined=spec.q > 1.0"
            ),
        ),
        check="returning_walks_weigh_parallel_edges",
    ),
    change(
        "a step back is folded away",
        "KnightKing",
        DRAW_WALK,
        (
            (
                "return WalkParams(parts=np.int64(version.schema.parts), "
                "shift=np.int64(adjacency_rows.parts_shift(np.int64(version.schema.parts))), "
                "mod=version.schema.placement != 'mix64', "
                "needs_lookup=walk_graph.needs_lookup, length=np.int64(spec.length), "
                "uniform=bool(spec.uniform), restart=np.float64(spec.restart), "
                "biased=spec.is_biased, excess_return=np.float64(_excess_return(spec)), "
                "return_limit=np.float64(1.0 / spec.p / max_bias), "
                "accept_limit=np.float64(min(1.0, away_bias) / max_bias), accept_joined=spec.q "
                "> 1.0"
            ),
            (
                "return WalkParams(parts=np.int64(version.schema.parts), "
                "shift=np.int64(adjacency_rows.parts_shift(np.int64(version.schema.parts))), "
                "mod=version.schema.placement != 'mix64', "
                "needs_lookup=walk_graph.needs_lookup, length=np.int64(spec.length), "
                "uniform=bool(spec.uniform), restart=np.float64(spec.restart), "
                "biased=spec.is_biased, excess_return=np.float64(0.0), "
                "return_limit=np.float64(1.0 / spec.p / max_bias), "
                "accept_limit=np.float64(min(1.0, away_bias) / max_bias), accept_joined=spec.q "
                "> 1.0"
            ),
        ),
        check="biased_walks_follow_node2vec",
    ),
    change(
        "parallel edges back count once",
        "tempting",
        BIAS,
        ("slot += 1", "slot = end"),
        check="returning_walks_weigh_parallel_edges",
    ),
    change(
        "as if there were an edge back",
        "tempting",
        BIAS,
        (
            "lanes[lane, OUTCOME], remaining = (REJECTED, share * total)",
            "lanes[lane, OUTCOME], remaining = (ACCEPTED, share * total)",
        ),
        check="biased_walks_follow_node2vec",
    ),
    change(
        "edges back alike by weight",
        "tempting",
        BIAS,
        (
            (
                "remaining -= 1.0 if params.uniform or table[table_row, WEIGHTS] == 0 else "
                "np.float64(f32_at(np.uint64(table[table_row, WEIGHTS]), slot))"
            ),
            (
                "remaining -= 1.0 if params.uniform or table[table_row, SUMS] != 0 or "
                "table[table_row, WEIGHTS] == 0 else "
                "np.float64(f32_at(np.uint64(table[table_row, WEIGHTS]), slot))"
            ),
        ),
        check="returning_walks_weigh_parallel_edges",
    ),
    change(
        "a share of one edge",
        "tempting",
        SIEVE,
        ("if slot > indptr[row] and nbr[slot] != nbr[slot - 1]:", "if slot >= indptr[row]:"),
        check="returning_walks_weigh_parallel_edges",
    ),
    change(
        "a sieve of walks that forgets",
        "tempting",
        SIEVE,
        (
            "words[np.int64(bounded(pair, np.uint64(words.shape[0])))] |= pair_mask(pair)",
            "words[np.int64(bounded(pair, np.uint64(words.shape[0])))] = pair_mask(pair)",
        ),
        check="biased_walks_follow_node2vec",
    ),
    change(
        "attempts counted from 0 at every host",
        "tempting",
        BIASED_WALK,
        (
            (
                "lanes[STEP, lane], lanes[PLACE, lane], lanes[ATTEMPT, lane] = "
                "(walkers[STEPS_DONE, walk], walk * params.row_stride + params.first_column, "
                "walkers[ATTEMPTS, walk])"
            ),
            (
                "lanes[STEP, lane], lanes[PLACE, lane], lanes[ATTEMPT, lane] = "
                "(walkers[STEPS_DONE, walk], walk * params.row_stride + params.first_column, 0)"
            ),
        ),
        check="packed_rows_draw_what_tables_do",
    ),
    change(
        "every share falls on an edge back",
        "tempting",
        BIASED_WALK,
        ("if remaining < 0.0:", "if remaining < np.inf:"),
        check="packed_rows_draw_what_tables_do",
    ),
    change(
        "edges back alike in packed rows",
        "tempting",
        BIASED_WALK,
        (
            "remaining -= 1.0 if uniform else np.float64(f32_at(weights_address, slot))",
            (
                "remaining -= 1.0 if uniform | (weights_address > _ZERO) else "
                "np.float64(f32_at(weights_address, slot))"
            ),
        ),
        check="packed_rows_draw_what_tables_do",
    ),
    change(
        "joined to the node that is left",
        "tempting",
        BIASED_WALK,
        (
            "head = np.uint64(lanes[HEAD, i] if returns else lanes[PREVIOUS_HEAD, i])",
            "head = np.uint64(lanes[HEAD, i])",
        ),
        check="packed_rows_draw_what_tables_do",
    ),
    change(
        "who is not joined counts",
        "tempting",
        BIASED_WALK,
        (
            (
                "search_count, unjoined_outcome = (np.int64(0), REJECTED if "
                "params.accept_joined else ACCEPTED)"
            ),
            (
                "search_count, unjoined_outcome = (np.int64(0), ACCEPTED if "
                "params.accept_joined else REJECTED)"
            ),
        ),
        check="packed_rows_draw_what_tables_do",
    ),
    change(
        "a step back draws by q",
        "tempting",
        BIASED_WALK,
        (
            "limit = params.return_limit if neighbor == previous else params.accept_limit",
            "limit = params.accept_limit",
        ),
        check="packed_rows_draw_what_tables_do",
    ),
    change(
        "a node of another type is that of before",
        "tempting",
        BIASED_WALK,
        ("if kind >= 0 and kind != end_types[LOCAL, edge]:", "if kind > end_types.shape[1] + 9:"),
        check="packed_rows_draw_what_tables_do",
    ),
)
