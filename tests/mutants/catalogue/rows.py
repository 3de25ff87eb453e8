"""Faults of distinct neighbors, probabilities, numbered draws, layers and subgraphs.

Faults of graph labels are here too.
"""

from __future__ import annotations

from tests.mutants.mutant import Mutant, change

PACKED = "storaged.kernels.neighbors.packed"
PACKED_WALK = "storaged.kernels.walks.packed"
SIDES = "asterism_graphkit.operators.direction_merging"
DIFFERENT = "storaged.kernels.neighbors.distinct_node_sampling"
PROBABILITY = "storaged.sampling.neighbors.probabilities"
SUCCESSIVE = "asterism_graphkit.random.successive_probabilities"
KERNEL_PROBABILITY = "storaged.kernels.neighbors.probabilities"
NEIGHBOR = "storaged.sampling.neighbors.sample_neighbors"
NODE = "storaged.sampling.global_sampling.nodes"
NUMBERED = "graphd.operators.negatives"
POSITIVES = "graphd.operators.negative_exclusions"
DRAW_NUMBERED = "storaged.sampling.global_sampling.nodes_by_index"
LAYERS = "asterism_graphkit.operators.layers"
LABELS = "graphd.operators.graph_labels"
UNION = "storaged.kernels.neighbors.edge_type_union_sampling"
EXCLUDING = "asterism_graphkit.random.exclusion"
LAYER = "graphd.operators.layers"
GROWTH = "asterism_graphkit.operators.khop"
INDUCED = "graphd.operators.induced_subgraphs"
BETWEEN = "storaged.kernels.induced.hash_join"
MARKED = "storaged.kernels.induced.bitset_join"
MARKS = "storaged.kernels.induced.bitset"
EMIT = "storaged.kernels.induced.emit"
SAMPLE = "graphd.operators.neighbor_sampling"
WITHOUT = "graphd.operators.without_replacement"
SUBGRAPHS = "graphd.operators.subgraphs"
EXCLUDED = "storaged.sampling.excluded_edge_overlay"
REJECTED = "storaged.sampling.excluded_edge_rejection"

MUTANTS: tuple[Mutant, ...] = (
    change(
        "excluded edges are drawn at nodes of many edges",
        "PyG",
        REJECTED,
        ("accepted &= ~is_rejected", "accepted &= True"),
        check="excluded_edges_leave_the_other_weights",
    ),
    change(
        "copied rows keep excluded edges",
        "PyG",
        EXCLUDED,
        (
            "as_kernel_array(entries.eids[order])",
            "as_kernel_array(entries.eids[order] + 100)",
        ),
        check="excluded_edges_leave_the_other_weights",
    ),
    change(
        "rejected draws count",
        "tempting",
        NEIGHBOR,
        (
            "order = np.argsort(~accepted, axis=1, kind='stable')[is_done, :params.count]",
            "order = np.argsort(np.zeros(accepted.shape), axis=1, kind='stable')[is_done, "
            ":params.count]",
        ),
        check="excluded_edges_leave_successive_draws",
    ),
    change(
        "walks draw excluded edges at nodes of many edges",
        "PyG",
        "storaged.sampling.walks.random_walks",
        ("if version.rejected is not None:", "if False:"),
        check="excluded_edges_leave_walks",
    ),
    change(
        "edges of node 0 not excluded",
        "tempting",
        EXCLUDED,
        ("(local >= 0) & (remote >= 0)", "(local > 0) & (remote >= 0)"),
        check="excluded_edges_leave_biased_walks",
    ),
    change(
        "first node copied alone",
        "tempting",
        EXCLUDED,
        (
            "kept_ids[node_type] = type_ids[~rejects]",
            "kept_ids[node_type] = type_ids[~rejects][:1]",
        ),
        check="excluded_edges_leave_fanouts",
    ),
    change(
        "an edge id excludes parallel edges",
        "DGL",
        EXCLUDED,
        (
            "remote=remote[exists], eids=eids[exists]",
            "remote=remote[exists], eids=np.full_like(eids[exists], -1)",
        ),
        check="excluded_edges_leave_visits",
    ),
    change(
        "weights of copied rows shifted",
        "tempting",
        EXCLUDED,
        ("columns.weights[:size]", "columns.weights[columns.weights.size - size:]"),
        check="excluded_edges_leave_labor_outcomes",
    ),
    change(
        "copied rows not in order of time",
        "tempting",
        EXCLUDED,
        ("np.lexsort((np.arange(when.size), when, rows))", "np.arange(when.size)"),
        check="excluded_edges_leave_visible_ones",
    ),
    change(
        "alias and column swapped, packed",
        "classic",
        PACKED,
        (
            "neighbor = (second_word & keep_mask | second_word >> _S32 & ~keep_mask) & _LOW",
            "neighbor = (second_word >> _S32 & keep_mask | second_word & ~keep_mask) & _LOW",
        ),
        check="packed_coins_have_64_bits",
    ),
    change(
        "coins of 32 bits, packed",
        "many",
        PACKED,
        ("if high == threshold:", "if high < 0:"),
        check="packed_coins_have_64_bits",
    ),
    change(
        "the mark for no neighbor is a node",
        "cuGraph #4607",
        PACKED,
        (
            "return np.int64(neighbor) if neighbor != _NO_NEIGHBOR else np.int64(-1)",
            "return np.int64(neighbor)",
        ),
        check="packed_rows_draw_what_tables_do",
    ),
    change(
        "the neighbor of one, the edge of another",
        "tempting",
        PACKED,
        (
            (
                "slots[out_pos + np.uint64(i)] = np.int64(starts[buffer_pos + np.uint64(i)] + "
                "(alias_entry & _LOW))"
            ),
            "slots[out_pos + np.uint64(i)] = slots[out_pos + np.uint64(i)]",
        ),
        check="packed_rows_draw_what_tables_do",
    ),
    change(
        "the first draws of a node again",
        "classic",
        PACKED,
        (
            (
                "records[buffer_pos + np.uint64(k)] = base + (start + "
                "bounded_short(word(node_key, np.uint64(begin + k)), degree) << _FOURS)"
            ),
            (
                "records[buffer_pos + np.uint64(k)] = base + (start + "
                "bounded_short(word(node_key, np.uint64(k)), degree) << _FOURS)"
            ),
        ),
        ("w = word(node_key, np.uint64(begin + k))", "w = word(node_key, np.uint64(k))"),
        check="packed_rows_draw_what_tables_do",
    ),
    change(
        "nodes drawn together draw the same",
        "tempting",
        PACKED,
        (
            (
                "_hash_and_prefetch(derive_mixed(key, np.uint64(tags[node])), begin, start, "
                "degree, base, buffer_pos, block_size, records, coins)"
            ),
            (
                "_hash_and_prefetch(derive_mixed(key, np.uint64(tags[first])), begin, start, "
                "degree, base, buffer_pos, block_size, records, coins)"
            ),
        ),
        check="packed_rows_draw_what_tables_do",
    ),
    change(
        "packed walks take one word",
        "Euler",
        PACKED_WALK,
        (
            "key = keys[SLOT_KEY, step] + node_offset(",
            "key = keys[SLOT_KEY, 0] + node_offset(",
        ),
        check="packed_rows_draw_what_tables_do",
    ),
    change(
        "packed walks close up over one that goes on",
        "tempting",
        PACKED_WALK,
        (
            (
                "state[_NODES + live], state[_WALKS + live], state[_PLACES + live], "
                "state[_TAGS + live] = (node, walk, out_pos + _ONE, tag)"
            ),
            (
                "state[_NODES + live], state[_WALKS + live], state[_PLACES + live], "
                "state[_TAGS + live] = (node, walk, out_pos + _ONE, state[_TAGS])"
            ),
        ),
        check="packed_rows_draw_what_tables_do",
    ),
    change(
        "packed walks go on elsewhere",
        "tempting",
        PACKED_WALK,
        (
            "live += np.uint64((node >= 0) & local_parts[part]) & continues",
            "live += np.uint64(node >= 0) & continues",
        ),
        check="packed_rows_draw_what_tables_do",
    ),
    change(
        "half of the draws on either side",
        "Euler",
        SIDES,
        (
            "out_share = out_weight / (out_weight + in_weight)",
            (
                "out_share = 0.5 if out_weight * in_weight > 0.0 else out_weight / (out_weight "
                "+ in_weight)"
            ),
        ),
        check="both_sides_with_replacement_follow_their_weights",
    ),
    change(
        "sides by what their draws weigh",
        "tempting",
        SIDES,
        (
            "remaining[side, k] = weights[side, i, k] / probabilities[side, i, k]",
            "remaining[side, k] = weights[side, i, k]",
        ),
        check="both_sides_without_replacement_are_successive_draws",
    ),
    change(
        "one side, then the other",
        "tempting",
        SIDES,
        (
            (
                "side = 0 if b == sizes[1] or (a < sizes[0] and arrival_times[0, a] <= "
                "arrival_times[1, b]) else 1"
            ),
            "side = 0 if b == sizes[1] or (a < sizes[0] and a >= 0) else 1",
        ),
        check="both_sides_without_replacement_are_successive_draws",
    ),
    change(
        "what is given whole in the order of its edges",
        "tempting",
        SIDES,
        (
            "order[side, :size] = np.argsort(arrival_times[side, :size], kind='mergesort')",
            "order[side, :size] = np.arange(size)",
        ),
        check="both_sides_without_replacement_are_successive_draws",
    ),
    change(
        "a side's clock that stands still",
        "classic",
        SIDES,
        (
            "elapsed += -log(unit_float(word(side_key, np.uint64(k)))) / remaining[side, k]",
            "elapsed = -log(unit_float(word(side_key, np.uint64(k)))) / remaining[side, k]",
        ),
        check="both_sides_without_replacement_are_successive_draws",
    ),
    change(
        "probabilities within a side",
        "tempting",
        SIDES,
        (
            "remaining_total = remaining[0, a] + remaining[1, b]",
            "remaining_total = max(remaining[0, a], remaining[1, b])",
        ),
        check="both_sides_without_replacement_are_successive_draws",
    ),
    change(
        "parallel edges as neighbors of their own",
        "PGL",
        DIFFERENT,
        (
            "bucket = find_hash_slot(hash_keys, neighbor, shift)",
            "bucket = find_hash_slot(hash_keys, slot, shift)",
        ),
        check="different_neighbors_are_successive_draws",
    ),
    change(
        "the first of parallel edges for all",
        "tempting",
        DIFFERENT,
        ("if edge_key < min_key:", "if min_key == np.inf:"),
        check="different_neighbors_are_successive_draws",
    ),
    change(
        "drawn neighbors race again",
        "classic",
        DIFFERENT,
        (
            (
                "if min_key < np.inf and (not (size == slots.shape[0] and min_key > keys[0])) "
                "and (hash_keys[find_hash_slot(hash_keys, node, shift)] < 0):"
            ),
            "if min_key < np.inf and (not (size == slots.shape[0] and min_key > keys[0])):",
        ),
        check="different_neighbors_are_successive_draws",
    ),
    change(
        "zero weight picked, different neighbors",
        "cuGraph #4607",
        DIFFERENT,
        ("if weight > 0.0:", "if (weight := max(weight, 0.5)) > 0.0:"),
        check="different_neighbors_are_successive_draws",
    ),
    change(
        "alias swapped, different neighbors",
        "classic",
        DIFFERENT,
        (
            (
                "if high > threshold or (high == threshold and coin & _LOW >= "
                "np.uint64(u32_at(alias_fraction, column))):"
            ),
            (
                "if high < threshold or (high == threshold and coin & _LOW >= "
                "np.uint64(u32_at(alias_fraction, column))):"
            ),
        ),
        check="different_neighbors_are_successive_draws",
    ),
    change(
        "unconditional without replacement",
        "tempting",
        PROBABILITY,
        ("if replace:", "if True:"),
        check="draw_orders_follow_their_probabilities",
    ),
    change(
        "the same, globally",
        "tempting",
        SUCCESSIVE,
        ("out[k] = min(shares[k] / (high + low), 1.0)", "out[k] = shares[k] / shares.sum()"),
        check="partition_shares_are_probabilities",
    ),
    change(
        "what is left by subtraction only",
        "tempting",
        KERNEL_PROBABILITY,
        ("if remaining[i] < MIN_REMAINING_SHARE * totals[i]:", "if remaining[i] < 0.0:"),
        check="draw_orders_follow_their_probabilities",
    ),
    change(
        "drawn edges left in the rest",
        "classic",
        KERNEL_PROBABILITY,
        (
            "if drawn_bits[offset >> 6] >> np.uint64(offset & 63) & _ONE != _NONE:",
            "if drawn_bits[offset >> 6] >> np.uint64(offset & 63) & _ONE == np.uint64(2):",
        ),
        check="draw_orders_follow_their_probabilities",
    ),
    change(
        "whole rows with probabilities of draws",
        "tempting",
        KERNEL_PROBABILITY,
        (
            (
                "out[out_rows[i] * count + k] = 1.0 if degrees[i] <= count else min(weight / "
                "(high + low), 1.0)"
            ),
            "out[out_rows[i] * count + k] = min(weight / (high + low), 1.0)",
        ),
        check="results_carry_their_probabilities",
    ),
    change(
        "probabilities within a union's type",
        "many",
        NEIGHBOR,
        (
            (
                "draws = UnionDraws(count=params.count, rows=rows, "
                "places=as_kernel_array(nodes.places[node_indices] if nodes.places.size else "
                "node_indices), sources=[EdgeSource(indptr=side.indptr, weights=_F32 if "
                "params.uniform else side.weights) for side in sides], "
                "totals=as_kernel_array(_total_weights(rows, sides, uniform=params.uniform)), "
                "degrees=as_kernel_array(_total_weights(rows, sides, uniform=True)), "
                "type_indices=as_kernel_array(type_indices.reshape(-1, "
                "params.count)[node_indices].reshape(-1)) if type_indices.size else "
                "type_indices, slots=as_kernel_array(slots.reshape(-1, "
                "params.count)[node_indices].reshape(-1)))"
            ),
            (
                "draws = UnionDraws(count=params.count, rows=rows, "
                "places=as_kernel_array(nodes.places[node_indices] if nodes.places.size else "
                "node_indices), sources=[EdgeSource(indptr=side.indptr, weights=_F32 if "
                "params.uniform else side.weights) for side in sides], "
                "totals=as_kernel_array(_total_weights(rows, sides[:1], "
                "uniform=params.uniform)), degrees=as_kernel_array(_total_weights(rows, sides, "
                "uniform=True)), type_indices=as_kernel_array(type_indices.reshape(-1, "
                "params.count)[node_indices].reshape(-1)) if type_indices.size else "
                "type_indices, slots=as_kernel_array(slots.reshape(-1, "
                "params.count)[node_indices].reshape(-1)))"
            ),
        ),
        check="results_carry_their_probabilities",
    ),
    change(
        "probabilities within a part",
        "many",
        NODE,
        (
            (
                "return NodeDraws(ids=read_ids(entries, entry_indices, rows), types=None if "
                "entries.is_single_type else entries.shares.types[entry_indices], "
                "probabilities=row_shares(weight_addresses, entry_indices, rows, "
                "entries.shares.total))"
            ),
            (
                "return NodeDraws(ids=read_ids(entries, entry_indices, rows), types=None if "
                "entries.is_single_type else entries.shares.types[entry_indices], "
                "probabilities=row_shares(weight_addresses, entry_indices, rows, "
                "float(entries.shares.measure[0])))"
            ),
        ),
        check="partition_shares_are_probabilities",
    ),
    change(
        "positives among negatives",
        "many",
        NUMBERED,
        ("if exclusions is not None and rows and n:", "if False:"),
        check="negatives_follow_remaining_weights",
    ),
    change(
        "true edges among negatives",
        "PyG",
        POSITIVES,
        (
            (
                "out = np.zeros(len(ids), np.bool_) if self.listed is None else "
                "self.listed.excluded_mask(rows, ids, checkpoint)\n"
                "        if self.neighbors is not None:"
            ),
            (
                "out = np.zeros(len(ids), np.bool_) if self.listed is None else "
                "self.listed.excluded_mask(rows, ids, checkpoint)\n"
                "        if False:"
            ),
        ),
        check="negatives_are_no_edges",
    ),
    change(
        "neighbors of one source for another",
        "tempting",
        POSITIVES,
        (
            (
                "sources, targets, end_types = (self.sources[rows[candidates]], "
                "ids[candidates], self._end_types)"
            ),
            (
                "sources, targets, end_types = (self.sources[rows[candidates] * 0], "
                "ids[candidates], self._end_types)"
            ),
        ),
        check="negatives_are_no_edges",
    ),
    change(
        "one more try, whatever comes of it",
        "tempting",
        NUMBERED,
        (
            (
                "is_allowed = ~exclusions.excluded_mask(np.repeat(pending // n, "
                "attempts_per_round), candidates['ids'], checkpoint)"
                ".reshape(-1, attempts_per_round)"
            ),
            (
                "is_allowed = True | exclusions.excluded_mask(np.repeat(pending // n, "
                "attempts_per_round), candidates['ids'], checkpoint)"
                ".reshape(-1, attempts_per_round)"
            ),
        ),
        check="negatives_follow_remaining_weights",
    ),
    change(
        "further attempts shared by all draws",
        "tempting",
        NUMBERED,
        (
            (
                "indices = (pending[:, None] * MAX_ATTEMPTS + attempt + "
                "np.arange(attempts_per_round)).reshape(-1)"
            ),
            (
                "indices = (pending[:, None] * 0 + attempt + "
                "np.arange(attempts_per_round)).reshape(-1)"
            ),
        ),
        check="negatives_follow_remaining_weights",
    ),
    change(
        "negatives given up after many attempts",
        "tempting",
        NUMBERED,
        ("for position in pending.tolist():", "for position in []:"),
        check="rare_negatives_use_exponential_keys",
    ),
    change(
        "draws by number keyed by their place",
        "tempting",
        DRAW_NUMBERED,
        (
            (
                "draws = draw_local_nodes(entries, source_seed, 0, places.size, "
                "draw_indices=draw_indices[places], uniform=uniform, "
                "want_probabilities=want_probabilities)"
            ),
            (
                "draws = draw_local_nodes(entries, source_seed, 0, places.size, "
                "draw_indices=places, uniform=uniform, want_probabilities=want_probabilities)"
            ),
        ),
        check="draws_by_index_match_the_stream",
    ),
    change(
        "rows of one type alike",
        "Euler",
        NUMBERED,
        (
            "numbers = (rows[:, None] * n + np.arange(n)).reshape(-1)",
            "numbers = (rows[:, None] * 0 + np.arange(n)).reshape(-1)",
        ),
        check="nodes_like_others_have_their_types",
    ),
    change(
        "a layer's candidates alike",
        "many",
        LAYERS,
        ("weight = np.float64(weights[e]) if weights.shape[0] > 0 else 1.0", "weight = 1.0"),
        check="layer_candidates_have_the_weight_of_their_edges",
    ),
    change(
        "squares of edges, not of nodes",
        "tempting",
        LAYERS,
        ("if row_of[c] != row:", "if True:"),
        check="layer_candidates_have_the_weight_of_their_edges",
    ),
    change(
        "roots of nothing",
        "tempting",
        LAYERS,
        ("if measure == SQRT:", "if measure == -SQRT:"),
        check="layer_candidates_have_the_weight_of_their_edges",
    ),
    change(
        "one stream for all layers",
        "Euler",
        LAYERS,
        (
            "layer_key, start = (derive(key, np.uint64(layer)), starts[i])",
            "layer_key, start = (key, starts[i])",
        ),
        check="layers_follow_candidate_weights",
    ),
    change(
        "a distinct layer by -log(u) * w",
        "classic",
        LAYERS,
        (
            "return -log(unit_float(word(layer_key, np.uint64(candidate)))) / measure",
            "return -log(unit_float(word(layer_key, np.uint64(candidate)))) * measure",
        ),
        check="layers_without_replacement_are_successive_draws",
    ),
    change(
        "labels drawn by their parts",
        "tempting",
        LABELS,
        (
            "return split_merge.gather_ragged(indptr, values, rows[starts])",
            "return split_merge.gather_ragged(indptr, values, rows)",
        ),
        check="graph_labels_are_equally_likely",
    ),
    change(
        "probabilities without the rest",
        "tempting",
        LAYERS,
        ("for c in range(draw_count, positive):", "for c in range(0):"),
        check="layers_without_replacement_are_successive_draws",
    ),
    change(
        "neighbors of each type by themselves",
        "tempting",
        UNION,
        ("if remote_types[t] != remote_types[lead_type]:", "if t != lead_type:"),
        check="different_neighbors_of_unions_are_successive_draws",
    ),
    change(
        "equal ids of two types as one neighbor",
        "tempting",
        UNION,
        (
            "types = remote_types.shape[0]\n    keys",
            "types = remote_types.shape[0]\n"
            "    remote_types = np.zeros_like(remote_types)\n"
            "    keys",
        ),
        check="different_neighbors_of_unions_are_successive_draws",
    ),
    change(
        "the first of parallel edges, of a union",
        "tempting",
        UNION,
        ("if edge_key < min_key:", "if min_key == np.inf:"),
        check="different_neighbors_of_unions_are_successive_draws",
    ),
    change(
        "zero weight picked, different over a union",
        "cuGraph #4607",
        UNION,
        ("if weight > 0.0:", "if (weight := max(weight, 0.5)) > 0.0:"),
        check="different_neighbors_of_unions_are_successive_draws",
    ),
    change(
        "probabilities as if nothing were left out",
        "tempting",
        NUMBERED,
        (
            ("if exclusions is not None and rows and n:\n        if draw.want_probabilities:"),
            ("if exclusions is not None and rows and n:\n        if False:"),
        ),
        check="negatives_follow_remaining_weights",
    ),
    change(
        "what negatives leave by subtraction only",
        "tempting",
        NUMBERED,
        (
            (
                "imprecise_rows = np.flatnonzero(remaining < MIN_REMAINING_SHARE * "
                "shares.total) if not draw.uniform else np.zeros(0, np.int64)"
            ),
            (
                "imprecise_rows = np.flatnonzero(remaining < 0.0) if not draw.uniform else "
                "np.zeros(0, np.int64)"
            ),
        ),
        check="rare_negatives_use_exponential_keys",
    ),
    change(
        "a node that is left out twice weighs twice",
        "tempting",
        EXCLUDING,
        ("if at == indptr[row] or excluded_ids[at] != excluded_ids[at - 1]:", "if True:"),
        check="negatives_follow_remaining_weights",
    ),
    change(
        "one stream for all hops of layers",
        "Euler",
        LAYER,
        (
            (
                "chosen, probabilities = layers.draw(rng.key_of(params.seed, rng.LAYER, "
                "params.hop), starts, measures, params.count, replace=params.replace, "
                "checkpoint=context.call.remaining)"
            ),
            (
                "chosen, probabilities = layers.draw(rng.key_of(params.seed, rng.LAYER, 0), "
                "starts, measures, params.count, replace=params.replace, "
                "checkpoint=context.call.remaining)"
            ),
        ),
        check="layers_pool_the_neighbors_of_their_nodes",
    ),
    change(
        "one stream for all hops of subgraphs",
        "Euler",
        GROWTH,
        ("return (hop + 1) * _TYPES + edge_type + 1", "return _TYPES + edge_type + 1"),
        check="subgraphs_draw_separately_for_each_node_and_hop",
    ),
    change(
        "edges between components",
        "tempting",
        INDUCED,
        (
            (
                "groups = None if local.groups is None or remote.groups is None else "
                "(local.groups, remote.groups)"
            ),
            "groups = None",
        ),
        check="ego_subgraphs_have_all_edges_among_their_nodes",
    ),
    change(
        "roots where they were grown",
        "tempting",
        INDUCED,
        ("seeds[rows] = new_indices[sample['seeds'][rows]]", "pass"),
        check="ego_subgraphs_have_all_edges_among_their_nodes",
    ),
    change(
        "components but one edge short",
        "tempting",
        BETWEEN,
        ("for edge in range(degree):", "for edge in range(degree - 1):"),
        check="ego_subgraphs_have_all_edges_among_their_nodes",
    ),
    change(
        "a sieve that forgets",
        "tempting",
        BETWEEN,
        (
            "bloom_words[np.int64(bit >> _S6)] |= _ONE << (bit & _LOW6)",
            "bloom_words[np.int64(bit >> _S6)] = _ONE << (bit & _LOW6)",
        ),
        check="ego_subgraphs_have_all_edges_among_their_nodes",
    ),
    change(
        "components but one edge short, by bits",
        "tempting",
        MARKS,
        (
            (
                "count += compress_members(address + _NARROW * edge, edge, bitset.base_id, "
                "bitset.words, edges, bit_positions, count)\n"
                "    for edge in range(vector_size, size):"
            ),
            (
                "count += compress_members(address + _NARROW * edge, edge, bitset.base_id, "
                "bitset.words, edges, bit_positions, count)\n"
                "    for edge in range(vector_size + ONE, size):"
            ),
        ),
        check="induced_subgraphs_have_every_edge_of_long_rows",
    ),
    change(
        "edges sixteen at a time, each by its place among them",
        "tempting",
        MARKS,
        (
            (
                "count += compress_members(address + _NARROW * edge, edge, bitset.base_id, "
                "bitset.words, edges, bit_positions, count)"
            ),
            (
                "count += compress_members(address + _NARROW * edge, np.uint64(0), "
                "bitset.base_id, bitset.words, edges, bit_positions, count)"
            ),
        ),
        check="induced_subgraphs_have_every_edge_of_long_rows",
    ),
    change(
        "ids of edges by the place beside their neighbors",
        "tempting",
        MARKED,
        (
            "out.eids[out_pos + j] = np.int64(eids[j])",
            "out.eids[out_pos + j] = np.int64(buffers.bit_positions[j])",
        ),
        check="induced_subgraphs_have_every_edge_of_long_rows",
    ),
    change(
        "ranks that restart in every word",
        "tempting",
        MARKS,
        (
            "bitset.word_ranks[bitset.touched_words[k]] = rank",
            "bitset.word_ranks[bitset.touched_words[k]] = first",
        ),
        check="ego_subgraphs_have_all_edges_among_their_nodes",
    ),
    change(
        "rows side by side, each by the edges of the first one",
        "tempting",
        EMIT,
        (
            (
                "part, slot = (rows.partitions[i], rows.starts[i] + np.int64(edge) - "
                "buffers.row_offsets[owner])"
            ),
            "part, slot = (rows.partitions[i], rows.starts[i] + np.int64(edge))",
        ),
        check="induced_subgraphs_have_every_edge_of_long_rows",
    ),
    change(
        "rows side by side, with what is copied after them",
        "tempting",
        MARKED,
        (
            "filled, count = (filled + degree, count + 1)",
            "filled, count = (filled + (degree + 15 & ~np.int64(15)), count + 1)",
        ),
        check="induced_subgraphs_have_every_edge_of_long_rows",
    ),
    change(
        "a group's rows by the targets of the one before",
        "tempting",
        MARKED,
        ("group = np.int64(row_groups[i])", "group += np.int64(1)"),
        check="ego_subgraphs_have_all_edges_among_their_nodes",
    ),
    change(
        "one stream for all edge types",
        "Euler",
        GROWTH,
        ("return (hop + 1) * _TYPES + edge_type + 1", "return (hop + 1) * _TYPES + 1"),
        check="subgraphs_draw_separately_for_each_node_and_hop",
    ),
    change(
        "more rejections where more is asked for",
        "tempting",
        DIFFERENT,
        (
            "while num_found < slots.shape[0] and rejections < REJECTIONS:",
            "while num_found < slots.shape[0] and rejections < 2 * slots.shape[0]:",
        ),
        check="fewer_distinct_neighbors_are_a_prefix",
    ),
    change(
        "probabilities given the later draws",
        "tempting",
        KERNEL_PROBABILITY,
        ("for k in range(count - 1, -1, -1):", "for k in range(count):"),
        check="inverse_probabilities_estimate_totals",
    ),
    change(
        "a node that is drawn twice draws once",
        "tempting",
        "graphd.operators.fanout_sampling",
        (
            (
                "sections = sample_hop(context, replace(hop, "
                "temporal_filter=temporal_filter), nodes, node_type, types)"
            ),
            (
                "sections = neighbor_sampling.sample_neighbors(context, replace(hop, "
                "temporal_filter=temporal_filter), nodes, node_type, types, np.unique(nodes, "
                "return_inverse=True)[1] if h else None)"
            ),
        ),
        check="fanouts_draw_separately_for_each_position",
    ),
    change(
        "distinct rows in the order of their ids",
        "tempting",
        WITHOUT,
        (
            "return np.flatnonzero(is_first_position).astype(np.int64)",
            "return order[is_first].astype(np.int64)",
        ),
        check="edges_without_replacement_are_successive_draws",
    ),
    change(
        "the rest of distinct rows in the order of their ids",
        "tempting",
        WITHOUT,
        (
            "keys = [merged['keys'], merged[id_section], merged['types']]",
            "keys = [merged[id_section], merged['types']]",
        ),
        check="edges_without_replacement_are_successive_draws",
    ),
    change(
        "layers by weight where uniform ones are requested",
        "tempting",
        LAYER,
        ("None if params.uniform else edges['weights']", "edges['weights']"),
        check="layers_of_every_measure_follow_their_distribution",
    ),
    change(
        "fanouts with replacement in any case",
        "tempting",
        SAMPLE,
        (
            "count=params.count, replace=params.replace, uniform=params.uniform",
            "count=params.count, replace=True, uniform=params.uniform",
        ),
        check="fanouts_carry_the_probability_of_each_step",
    ),
    change(
        "the first hop's counts in every hop",
        "tempting",
        SUBGRAPHS,
        ("count=fanout.counts[hop]", "count=fanout.counts[0]"),
        check="ego_subgraphs_include_nodes_by_their_trees",
    ),
)
