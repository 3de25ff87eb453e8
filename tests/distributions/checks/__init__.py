"""Checks of sampling distributions: functions that raise `Rejected`.
Planted faults belong to `tests.mutants.catalogue`, tests to `test_` modules.

Statistics are chi-square tests on fixed seeds with at least 5 expected per cell. A check rejects
below ALPHA. Some quantities are enumerated instead: the words at which the row map steps, the
distributions of tables, the shares of a union of types, and the probability of every order of a few
samples."""

from __future__ import annotations

from collections.abc import Callable

from tests.distributions.checks.basis import Rejected, require_counts, require_independent
from tests.distributions.checks.bidirectional import (
    both_sides_with_replacement_follow_their_weights,
    both_sides_without_replacement_are_successive_draws,
)
from tests.distributions.checks.distinct_nodes import (
    different_neighbors_are_successive_draws,
    different_neighbors_of_unions_are_successive_draws,
    fewer_distinct_neighbors_are_a_prefix,
)
from tests.distributions.checks.excluded import (
    excluded_edges_leave_successive_draws,
    excluded_edges_leave_the_other_weights,
)
from tests.distributions.checks.excluded_calls import (
    excluded_edges_leave_biased_walks,
    excluded_edges_leave_fanouts,
    excluded_edges_leave_visits,
    excluded_edges_leave_walks,
)
from tests.distributions.checks.filters import (
    filtered_neighbors_are_in_time_order,
    filters_keep_weights_of_edges_and_neighbors,
    filters_keep_weights_of_matching_nodes,
    hosts_do_not_change_filtered_draws,
    indexes_keep_weights_of_matching_nodes,
)
from tests.distributions.checks.five_hosts import (
    edges_without_replacement_are_successive_draws,
    ego_subgraphs_include_nodes_by_their_trees,
    fanouts_carry_the_probability_of_each_step,
    layers_of_every_measure_follow_their_distribution,
)
from tests.distributions.checks.global_sampling import (
    a_single_draw_follows_the_shares,
    alias_ids_match_those_of_rows,
    hosts_and_ranges_do_not_change_draws,
    hosts_do_not_change_neighbors_edges_and_selections,
    neighboring_draws_are_independent,
    nodes_follow_their_weights,
    parts_are_multinomial,
    streams_are_not_lagged,
)
from tests.distributions.checks.hgt import (
    budget_draws_follow_squared_budgets,
    budget_layers_follow_their_distribution,
    budget_layers_have_all_edges_among_their_nodes,
    budget_layers_use_separate_streams,
    nodes_not_drawn_stay_candidates_of_the_next_layer,
)
from tests.distributions.checks.independence import (
    calls_with_one_seed_are_independent,
    single_draws_with_one_seed_are_independent,
)
from tests.distributions.checks.indexed import (
    hosts_do_not_change_index_ranges,
    range_draws_follow_their_distribution,
    range_draws_without_replacement_follow_their_distribution,
)
from tests.distributions.checks.labor import (
    excluded_edges_leave_labor_outcomes,
    labor_keeps_edges_by_one_variate_per_node,
    labor_probabilities_are_the_papers,
    labor_variates_depend_on_the_node_type,
    labor_variates_differ_by_hop_unless_layers_depend,
    labor_weights_estimate_totals_and_means,
)
from tests.distributions.checks.layers import (
    layer_candidates_have_the_weight_of_their_edges,
    layers_follow_candidate_weights,
    layers_without_replacement_are_successive_draws,
)
from tests.distributions.checks.neighborhoods import (
    complete_neighborhoods_are_in_order,
    distinct_neighbors_are_successive_draws,
    exponential_keys_give_successive_draws,
    neighbors_follow_their_weights,
    too_many_rejections_do_not_bias,
    unions_without_replacement_are_successive_draws,
)
from tests.distributions.checks.packed_walks import (
    packed_coins_have_64_bits,
    packed_rows_draw_what_tables_do,
)
from tests.distributions.checks.probabilities import (
    draw_orders_follow_their_probabilities,
    inverse_probabilities_estimate_totals,
    partition_shares_are_probabilities,
    results_carry_their_probabilities,
)
from tests.distributions.checks.rows import (
    draws_by_index_match_the_stream,
    graph_labels_are_equally_likely,
    negatives_are_no_edges,
    negatives_follow_remaining_weights,
    nodes_like_others_have_their_types,
    rare_negatives_use_exponential_keys,
)
from tests.distributions.checks.tables import (
    coins_have_64_bits,
    rows_come_from_64_bits,
    sums_are_compensated,
    tables_are_exact,
    unions_are_exact,
)
from tests.distributions.checks.temporal import (
    edges_appear_with_their_neighbors,
    excluded_edges_leave_visible_ones,
    fewer_are_the_first_of_more,
    hosts_do_not_change_visible_edges,
    last_neighbors_are_the_latest,
    node_times_hold_for_their_draws,
    seed_times_hold_for_their_trees,
    visible_edges_are_drawn_by_their_distribution,
)
from tests.distributions.checks.visits import (
    many_visits_are_ranked_like_few,
    pageranks_are_pushed_in_rounds,
    visit_counts_match_the_walks,
)
from tests.distributions.checks.walk_paths import (
    biased_walks_follow_node2vec,
    ego_subgraphs_have_all_edges_among_their_nodes,
    fanouts_draw_separately_for_each_position,
    induced_subgraphs_have_every_edge_of_long_rows,
    layers_pool_the_neighbors_of_their_nodes,
    returning_walks_weigh_parallel_edges,
    subgraphs_draw_separately_for_each_node_and_hop,
    walks_follow_step_probabilities,
)

__all__ = ["CHECKS", "Rejected", "require_counts", "require_independent"]

CHECKS: tuple[Callable[[float], None], ...] = (
    budget_draws_follow_squared_budgets,
    tables_are_exact,
    sums_are_compensated,
    rows_come_from_64_bits,
    coins_have_64_bits,
    unions_are_exact,
    packed_coins_have_64_bits,
    packed_rows_draw_what_tables_do,
    alias_ids_match_those_of_rows,
    draw_orders_follow_their_probabilities,
    partition_shares_are_probabilities,
    complete_neighborhoods_are_in_order,
    pageranks_are_pushed_in_rounds,
    layer_candidates_have_the_weight_of_their_edges,
    layers_follow_candidate_weights,
    layers_without_replacement_are_successive_draws,
    labor_probabilities_are_the_papers,
    labor_keeps_edges_by_one_variate_per_node,
    labor_variates_differ_by_hop_unless_layers_depend,
    labor_variates_depend_on_the_node_type,
    labor_weights_estimate_totals_and_means,
    budget_layers_follow_their_distribution,
    budget_layers_use_separate_streams,
    nodes_not_drawn_stay_candidates_of_the_next_layer,
    budget_layers_have_all_edges_among_their_nodes,
    walks_follow_step_probabilities,
    biased_walks_follow_node2vec,
    returning_walks_weigh_parallel_edges,
    ego_subgraphs_have_all_edges_among_their_nodes,
    induced_subgraphs_have_every_edge_of_long_rows,
    draws_by_index_match_the_stream,
    nodes_like_others_have_their_types,
    negatives_follow_remaining_weights,
    negatives_are_no_edges,
    graph_labels_are_equally_likely,
    rare_negatives_use_exponential_keys,
    fewer_distinct_neighbors_are_a_prefix,
    hosts_and_ranges_do_not_change_draws,
    hosts_do_not_change_neighbors_edges_and_selections,
    filters_keep_weights_of_matching_nodes,
    filters_keep_weights_of_edges_and_neighbors,
    indexes_keep_weights_of_matching_nodes,
    hosts_do_not_change_filtered_draws,
    range_draws_follow_their_distribution,
    range_draws_without_replacement_follow_their_distribution,
    hosts_do_not_change_index_ranges,
    last_neighbors_are_the_latest,
    fewer_are_the_first_of_more,
    seed_times_hold_for_their_trees,
    hosts_do_not_change_visible_edges,
    edges_appear_with_their_neighbors,
    node_times_hold_for_their_draws,
    filtered_neighbors_are_in_time_order,
    visible_edges_are_drawn_by_their_distribution,
    streams_are_not_lagged,
    results_carry_their_probabilities,
    a_single_draw_follows_the_shares,
    parts_are_multinomial,
    neighbors_follow_their_weights,
    excluded_edges_leave_the_other_weights,
    excluded_edges_leave_successive_draws,
    excluded_edges_leave_walks,
    excluded_edges_leave_biased_walks,
    excluded_edges_leave_fanouts,
    excluded_edges_leave_visits,
    excluded_edges_leave_labor_outcomes,
    excluded_edges_leave_visible_ones,
    distinct_neighbors_are_successive_draws,
    unions_without_replacement_are_successive_draws,
    different_neighbors_are_successive_draws,
    different_neighbors_of_unions_are_successive_draws,
    both_sides_with_replacement_follow_their_weights,
    both_sides_without_replacement_are_successive_draws,
    neighboring_draws_are_independent,
    nodes_follow_their_weights,
    exponential_keys_give_successive_draws,
    too_many_rejections_do_not_bias,
    inverse_probabilities_estimate_totals,
    fanouts_draw_separately_for_each_position,
    layers_pool_the_neighbors_of_their_nodes,
    subgraphs_draw_separately_for_each_node_and_hop,
    visit_counts_match_the_walks,
    many_visits_are_ranked_like_few,
    calls_with_one_seed_are_independent,
    single_draws_with_one_seed_are_independent,
    layers_of_every_measure_follow_their_distribution,
    edges_without_replacement_are_successive_draws,
    fanouts_carry_the_probability_of_each_step,
    ego_subgraphs_include_nodes_by_their_trees,
)
