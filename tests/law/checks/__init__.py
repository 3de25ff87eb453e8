"""The law suite: what draws must obey, each check a function that raises Rejected. `test_law` runs all of them, compiled and
at full size; `mutants` runs them small and interpreted on samplers with a planted fault, which they must reject.

Statistics are chi-square tests on fixed seeds with at least 5 expected per cell; a check rejects below ALPHA. What can be
enumerated is: the row map at the words where it steps, the tables' laws, the shares of a union of types, the probability
of every order of a few draws.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.law.checks.basis import Rejected, require_counts, require_independent
from tests.law.checks.conditional import (
    conditions_leave_the_weights_among_what_satisfies_them,
    conditions_leave_the_weights_of_edges_and_neighbors,
    hosts_do_not_matter_under_conditions,
)
from tests.law.checks.different import (
    different_neighbors_are_successive_draws,
    different_neighbors_of_unions_are_successive_draws,
    fewer_different_neighbors_are_the_first_of_more,
)
from tests.law.checks.global_draws import (
    a_single_draw_follows_the_shares,
    hosts_and_ranges_do_not_matter,
    hosts_do_not_matter_to_neighbors_edges_and_races,
    neighboring_draws_are_independent,
    nodes_follow_their_weights,
    parts_are_multinomial,
    streams_are_not_lagged,
)
from tests.law.checks.layered import (
    candidates_count_what_their_edges_weigh,
    layers_follow_what_candidates_count,
    layers_without_replacement_are_successive_draws,
)
from tests.law.checks.neighborhoods import (
    distinct_neighbors_are_successive_draws,
    neighbors_follow_their_weights,
    races_are_successive_draws,
    too_many_rejections_do_not_bias,
    unions_without_replacement_are_successive_draws,
    whole_neighborhoods_come_in_order,
)
from tests.law.checks.paths import (
    fanouts_draw_for_each_place_by_itself,
    layers_pool_what_their_nodes_lead_to,
    subgraphs_draw_for_each_node_and_hop_by_itself,
    walks_follow_their_steps,
    walks_with_p_and_q_are_node2vecs,
)
from tests.law.checks.probabilities import (
    answers_carry_their_probabilities,
    every_order_has_its_probability,
    inverse_probabilities_estimate_totals,
    shares_of_all_parts_are_probabilities,
)
from tests.law.checks.rows import (
    graph_labels_are_alike,
    negatives_follow_what_is_left,
    negatives_of_a_hair_are_raced_for,
    nodes_like_others_are_of_their_types,
    numbered_draws_are_those_of_the_stream,
)
from tests.law.checks.tables import coins_have_64_bits, rows_come_from_64_bits, sums_are_compensated, tables_are_exact, unions_are_exact

__all__ = ["CHECKS", "Rejected", "require_counts", "require_independent"]

CHECKS: tuple[Callable[[float], None], ...] = (
    tables_are_exact,
    sums_are_compensated,
    rows_come_from_64_bits,
    coins_have_64_bits,
    unions_are_exact,
    every_order_has_its_probability,
    shares_of_all_parts_are_probabilities,
    whole_neighborhoods_come_in_order,
    candidates_count_what_their_edges_weigh,
    layers_follow_what_candidates_count,
    layers_without_replacement_are_successive_draws,
    numbered_draws_are_those_of_the_stream,
    nodes_like_others_are_of_their_types,
    negatives_follow_what_is_left,
    graph_labels_are_alike,
    negatives_of_a_hair_are_raced_for,
    fewer_different_neighbors_are_the_first_of_more,
    hosts_and_ranges_do_not_matter,
    hosts_do_not_matter_to_neighbors_edges_and_races,
    conditions_leave_the_weights_among_what_satisfies_them,
    conditions_leave_the_weights_of_edges_and_neighbors,
    hosts_do_not_matter_under_conditions,
    streams_are_not_lagged,
    answers_carry_their_probabilities,
    a_single_draw_follows_the_shares,
    parts_are_multinomial,
    neighbors_follow_their_weights,
    distinct_neighbors_are_successive_draws,
    unions_without_replacement_are_successive_draws,
    different_neighbors_are_successive_draws,
    different_neighbors_of_unions_are_successive_draws,
    neighboring_draws_are_independent,
    nodes_follow_their_weights,
    races_are_successive_draws,
    too_many_rejections_do_not_bias,
    inverse_probabilities_estimate_totals,
    fanouts_draw_for_each_place_by_itself,
    layers_pool_what_their_nodes_lead_to,
    subgraphs_draw_for_each_node_and_hop_by_itself,
    walks_follow_their_steps,
    walks_with_p_and_q_are_node2vecs,
)
