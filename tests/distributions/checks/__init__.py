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
    fewer_different_neighbors_are_the_first_of_more,
)
from tests.distributions.checks.filters import (
    conditions_leave_the_weights_among_what_satisfies_them,
    conditions_leave_the_weights_of_edges_and_neighbors,
    hosts_do_not_matter_under_conditions,
    indexes_leave_the_weights_among_what_satisfies_conditions,
    times_of_what_a_condition_leaves_are_in_order,
)
from tests.distributions.checks.global_draws import (
    a_single_draw_follows_the_shares,
    hosts_and_ranges_do_not_matter,
    hosts_do_not_matter_to_neighbors_edges_and_races,
    ids_beside_thresholds_are_those_of_rows,
    neighboring_draws_are_independent,
    nodes_follow_their_weights,
    parts_are_multinomial,
    streams_are_not_lagged,
)
from tests.distributions.checks.hgt import (
    layers_by_budgets_follow_their_distribution,
    layers_by_budgets_have_all_edges_among_them,
    layers_by_budgets_have_streams_of_their_own,
    what_lost_in_a_layer_is_drawn_in_the_next_like_others,
)
from tests.distributions.checks.indexed import (
    hosts_do_not_matter_to_ranges,
    range_draws_follow_their_distribution,
    range_draws_without_replacement_follow_their_distribution,
)
from tests.distributions.checks.labor import (
    labor_keeps_edges_by_one_variate_a_node,
    labor_probabilities_are_the_papers,
    labor_variates_are_of_a_hop_unless_layers_depend,
    labor_variates_of_a_node_are_its_types,
)
from tests.distributions.checks.layers import (
    candidates_count_what_their_edges_weigh,
    layers_follow_what_candidates_count,
    layers_without_replacement_are_successive_draws,
)
from tests.distributions.checks.neighborhoods import (
    distinct_neighbors_are_successive_draws,
    neighbors_follow_their_weights,
    races_are_successive_draws,
    too_many_rejections_do_not_bias,
    unions_without_replacement_are_successive_draws,
    whole_neighborhoods_come_in_order,
)
from tests.distributions.checks.packed_walks import (
    packed_coins_have_64_bits,
    packed_rows_draw_what_tables_do,
)
from tests.distributions.checks.probabilities import (
    answers_carry_their_probabilities,
    every_order_has_its_probability,
    inverse_probabilities_estimate_totals,
    shares_of_all_parts_are_probabilities,
)
from tests.distributions.checks.rows import (
    graph_labels_are_alike,
    negatives_are_no_edges,
    negatives_follow_what_is_left,
    negatives_of_a_hair_are_raced_for,
    nodes_like_others_are_of_their_types,
    numbered_draws_are_those_of_the_stream,
)
from tests.distributions.checks.tables import (
    coins_have_64_bits,
    rows_come_from_64_bits,
    sums_are_compensated,
    tables_are_exact,
    unions_are_exact,
)
from tests.distributions.checks.temporal import (
    a_nodes_time_holds_for_all_that_is_drawn_from_it,
    a_seeds_time_holds_for_its_tree,
    an_edge_is_there_once_its_neighbor_is,
    fewer_are_the_first_of_more,
    hosts_do_not_matter_to_what_is_seen,
    the_last_are_the_latest,
    visible_edges_are_drawn_by_their_distribution,
)
from tests.distributions.checks.visits import (
    many_visits_are_ranked_as_few_are,
    pageranks_are_pushed_in_rounds,
    visits_are_counted_as_walks_make_them,
)
from tests.distributions.checks.walk_paths import (
    ego_subgraphs_have_all_edges_among_what_is_grown,
    fanouts_draw_for_each_place_by_itself,
    induced_subgraphs_have_every_edge_of_long_rows,
    layers_pool_what_their_nodes_lead_to,
    subgraphs_draw_for_each_node_and_hop_by_itself,
    walks_back_take_each_of_parallel_edges_by_its_weight,
    walks_follow_their_steps,
    walks_with_p_and_q_are_node2vecs,
)

__all__ = ["CHECKS", "Rejected", "require_counts", "require_independent"]

CHECKS: tuple[Callable[[float], None], ...] = (
    tables_are_exact,
    sums_are_compensated,
    rows_come_from_64_bits,
    coins_have_64_bits,
    unions_are_exact,
    packed_coins_have_64_bits,
    packed_rows_draw_what_tables_do,
    ids_beside_thresholds_are_those_of_rows,
    every_order_has_its_probability,
    shares_of_all_parts_are_probabilities,
    whole_neighborhoods_come_in_order,
    pageranks_are_pushed_in_rounds,
    candidates_count_what_their_edges_weigh,
    layers_follow_what_candidates_count,
    layers_without_replacement_are_successive_draws,
    labor_probabilities_are_the_papers,
    labor_keeps_edges_by_one_variate_a_node,
    labor_variates_are_of_a_hop_unless_layers_depend,
    labor_variates_of_a_node_are_its_types,
    layers_by_budgets_follow_their_distribution,
    layers_by_budgets_have_streams_of_their_own,
    what_lost_in_a_layer_is_drawn_in_the_next_like_others,
    layers_by_budgets_have_all_edges_among_them,
    walks_follow_their_steps,
    walks_with_p_and_q_are_node2vecs,
    walks_back_take_each_of_parallel_edges_by_its_weight,
    ego_subgraphs_have_all_edges_among_what_is_grown,
    induced_subgraphs_have_every_edge_of_long_rows,
    numbered_draws_are_those_of_the_stream,
    nodes_like_others_are_of_their_types,
    negatives_follow_what_is_left,
    negatives_are_no_edges,
    graph_labels_are_alike,
    negatives_of_a_hair_are_raced_for,
    fewer_different_neighbors_are_the_first_of_more,
    hosts_and_ranges_do_not_matter,
    hosts_do_not_matter_to_neighbors_edges_and_races,
    conditions_leave_the_weights_among_what_satisfies_them,
    conditions_leave_the_weights_of_edges_and_neighbors,
    indexes_leave_the_weights_among_what_satisfies_conditions,
    hosts_do_not_matter_under_conditions,
    range_draws_follow_their_distribution,
    range_draws_without_replacement_follow_their_distribution,
    hosts_do_not_matter_to_ranges,
    the_last_are_the_latest,
    fewer_are_the_first_of_more,
    a_seeds_time_holds_for_its_tree,
    hosts_do_not_matter_to_what_is_seen,
    an_edge_is_there_once_its_neighbor_is,
    a_nodes_time_holds_for_all_that_is_drawn_from_it,
    times_of_what_a_condition_leaves_are_in_order,
    visible_edges_are_drawn_by_their_distribution,
    streams_are_not_lagged,
    answers_carry_their_probabilities,
    a_single_draw_follows_the_shares,
    parts_are_multinomial,
    neighbors_follow_their_weights,
    distinct_neighbors_are_successive_draws,
    unions_without_replacement_are_successive_draws,
    different_neighbors_are_successive_draws,
    different_neighbors_of_unions_are_successive_draws,
    both_sides_with_replacement_follow_their_weights,
    both_sides_without_replacement_are_successive_draws,
    neighboring_draws_are_independent,
    nodes_follow_their_weights,
    races_are_successive_draws,
    too_many_rejections_do_not_bias,
    inverse_probabilities_estimate_totals,
    fanouts_draw_for_each_place_by_itself,
    layers_pool_what_their_nodes_lead_to,
    subgraphs_draw_for_each_node_and_hop_by_itself,
    visits_are_counted_as_walks_make_them,
    many_visits_are_ranked_as_few_are,
)
