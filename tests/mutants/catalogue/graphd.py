"""Faults of graphd: totals, routes, dispatch, commits, and the targets of writes.

Each names the test that must fail with it.
"""

from __future__ import annotations

from tests.mutants.mutant import Mutant, change

UNIT = "tests/unit/graphd"
ROUTING_TOTALS = "graphd.routing.totals"
ROUTING_UPDATES = "graphd.routing.routing_table"
ROUTING_DISPATCH = "graphd.routing.dispatch"
ROUTING_COMMITS = "graphd.routing.committed_loads"
LOAD_COMMIT = "graphd.writes.load_commit"
WRITES_SMALL_WRITES = "graphd.writes.group_commit"
WRITES_ROW_WRITES = "graphd.writes.row_writes"

MUTANTS: tuple[Mutant, ...] = (
    change(
        "shares of weighted draws kept for uniform ones",
        "tempting",
        ROUTING_TOTALS,
        (
            "key = (element, tuple(sorted(set(types))), uniform)",
            "key = (element, tuple(sorted(set(types))), True)",
        ),
        test=f"{UNIT}/test_totals.py::test_shares_depend_on_element_and_measure",
        reason="assert [[6.0, 1.0], [6.0, 1.0], [9.0, 0.0]] == [[6, 1], [5,",
    ),
    change(
        "shares of nodes kept for edges",
        "tempting",
        ROUTING_TOTALS,
        (
            "key = (element, tuple(sorted(set(types))), uniform)",
            "key = (0, tuple(sorted(set(types))), uniform)",
        ),
        test=f"{UNIT}/test_totals.py::test_shares_depend_on_element_and_measure",
        reason="assert [[6.0, 1.0], [5.0, 2.0], [6.0, 1.0]] == [[6, 1], [5,",
    ),
    change(
        "named weights hidden by the rows' own",
        "tempting",
        ROUTING_TOTALS,
        (
            "{**self.part_totals, **self.by_weight_name.get(weight_name, {})}",
            "{**self.by_weight_name.get(weight_name, {}), **self.part_totals}",
        ),
        test=f"{UNIT}/test_totals.py::test_named_weights_replace_those_of_their_types",
        reason="assert [6.0, 1.0] == [0.5, 1]",
    ),
    change(
        "rows of all types counted",
        "tempting",
        ROUTING_TOTALS,
        ("not type_ids or type_id in type_ids", "not type_ids or type_ids"),
        test=f"{UNIT}/test_totals.py::test_rows_are_those_of_the_given_types",
        reason="assert [11, 11, 11, 11] == [7, 4, 11, 11]",
    ),
    change(
        "a rebuilt version keeps its totals",
        "tempting",
        ROUTING_UPDATES,
        (
            "if known_version is not None and known_version.digest == manifest.digest else",
            "if known_version is not None else",
        ),
        test=f"{UNIT}/test_routing_table.py::test_version_with_another_digest_is_another_version",
        reason="assert ('d1', 'd1') == ('d1', 'rebuilt')",
    ),
    change(
        "an older catalog taken as unchanged",
        "tempting",
        ROUTING_UPDATES,
        (
            "request.head.known_revision == reply.revision",
            "request.head.known_revision >= reply.revision",
        ),
        test=(
            f"{UNIT}/test_routing_table.py"
            "::test_routes_are_left_out_at_their_own_revision_only[4-True]"
        ),
        reason="assert (3, False) == (3, True)",
    ),
    change(
        "transports of addresses in use closed",
        "tempting",
        ROUTING_DISPATCH,
        ("address not in addresses.values()", "address not in addresses"),
        test=f"{UNIT}/test_dispatch.py::test_transports_of_addresses_in_use_stay_open",
        reason="assert (['storaged-0:9779', 'storaged-1:9779', 'storaged-0:9",
    ),
    change(
        "the last error of a dispatch raised",
        "tempting",
        ROUTING_DISPATCH,
        (
            "first_error = first_error or self._with_host(error, space, host)",
            "first_error = self._with_host(error, space, host)",
        ),
        test=f"{UNIT}/test_dispatch.py::test_first_of_several_errors_is_raised",
        reason="assert (<class 'asterism_proto.errors.Corrupt'>, 'storaged a",
    ),
    change(
        "a stale reply hidden by another error",
        "tempting",
        ROUTING_DISPATCH,
        ("except Stale:\n                    raise\n                ", ""),
        test=f"{UNIT}/test_dispatch.py::test_mistake_of_the_caller_names_no_storaged[Stale]",
        reason="assert (<class 'asterism_proto.errors.Stale'>, 'storaged at",
    ),
    change(
        "excluded edges at the owners of their sources alone",
        "tempting",
        "graphd.routing.excluded_edges",
        ("for ends in (selected.src, selected.dst):", "for ends in (selected.src,):"),
        test=f"{UNIT}/test_excluded_edges.py"
        "::test_excluded_edges_are_as_if_never_written[degrees in]",
        reason="AssertionError",
    ),
    change(
        "walks return over excluded edges",
        "PyG",
        "storaged.sampling.walks.random_walks",
        ("rejects=walk_graph.rejected_slots != ()", "rejects=False"),
        test=f"{UNIT}/test_excluded_edges.py::test_walks_from_hubs_reject_excluded_edges[True]",
        reason="assert not ({(",
    ),
    change(
        "an older reply overwrites newer commits",
        "tempting",
        ROUTING_COMMITS,
        ("if last_commit > self._known.get(space.space_id, ((), 0))[1]:", "if True:"),
        test=f"{UNIT}/test_committed_loads.py::test_late_reply_does_not_replace_newer_commits",
        reason="assert ((11, 12), 2) == ((11, 12, 13, 14), 4)",
    ),
    change(
        "commits after the first of a reply read again",
        "tempting",
        ROUTING_COMMITS,
        ("reply.commits[-1]", "reply.commits[0]"),
        test=f"{UNIT}/test_committed_loads.py::test_commits_are_known_once_each_and_in_order",
        reason="assert ((11, 12, 13), 1) == ((11, 12, 13), 3)",
    ),
    change(
        "revivals resolved once",
        "tempting",
        LOAD_COMMIT,
        ("load.seal_number, bool(load.unsealed_hosts)", "load.seal_number, True"),
        test=f"{UNIT}/test_committed_loads.py::test_revivals_are_resolved_again_after_later_deletes",
        reason="assert [1] == [1, 2, 3]",
    ),
    change(
        "seals of the last round only",
        "tempting",
        LOAD_COMMIT,
        (
            "request.seals.extend(seals.values())",
            "request.seals.extend(seals[host] for host in hosts)",
        ),
        test=f"{UNIT}/test_committed_loads.py::test_unsealed_hosts_are_sealed_with_those_before_kept",
        reason="assert [[('a', 0)], [('b', 5)]] == [[('a', 0)], [('a', 0), (",
    ),
    change(
        "ragged entries sorted across rows",
        "tempting",
        "graphd.routing.split_merge",
        ("row_keys.insert(0, ", "row_keys.append("),
        test=f"{UNIT}/test_split_merge.py::test_chunked_merge_and_sort_match_and_can_be_cut_short",
        reason="assert [35, 56, 89, 152, 180, 209, 214, 225, 2, 80, 82, 100,",
    ),
    change(
        "a write reported as not written is written",
        "tempting",
        WRITES_SMALL_WRITES,
        ("queue.remove(small_write)", "pass"),
        test=f"{UNIT}/test_group_commit.py::test_write_that_expires_in_the_queue_is_not_written",
        reason="assert [[[1]], [[2]]] == [[[1]]]",
    ),
    change(
        "an uncertain group written again",
        "tempting",
        WRITES_SMALL_WRITES,
        (
            (
                "except CommitUncertain as error:\n            _finish(group, error)\n        "
                "except AsterismError as error:"
            ),
            "except AsterismError as error:",
        ),
        test=f"{UNIT}/test_group_commit.py::test_group_with_uncertain_commit_is_not_written_again",
        reason="assert [[[1]], [[2], [3]], [[2]]] == [[[1]], [[2], [3]]]",
    ),
    change(
        "a group ends with its most impatient member",
        "tempting",
        WRITES_SMALL_WRITES,
        (
            "CallContext(max((small_write.call.deadline for small_write in group)))",
            "CallContext(min((small_write.call.deadline for small_write in group)))",
        ),
        test=f"{UNIT}/test_group_commit.py::test_group_has_the_time_of_its_most_patient_writer",
        reason="assert [",
    ),
    change(
        "groups of any size",
        "tempting",
        WRITES_SMALL_WRITES,
        ("if group and size > MAX_BATCH_BYTES:", "if not group and size > MAX_BATCH_BYTES:"),
        test=f"{UNIT}/test_group_commit.py::test_groups_are_bounded_and_large_writes_go_alone",
        reason="assert [[[1]], [[2, 0], [3], [4], [5, 0, 0, 0, 0]]] == [[[1]",
    ),
    change(
        "joined ragged rows begin at 0",
        "tempting",
        WRITES_SMALL_WRITES,
        ("array[1:] + end for", "array[1:] for"),
        test=(
            f"{UNIT}/test_group_commit.py::test_adjacent_writes_of_one_kind_are_one_chunk_in_order"
        ),
        reason="assert [0, 2, 0, 1] == [0, 2, 2, 3]",
    ),
    change(
        "deletes of nodes committed without resolving",
        "tempting",
        WRITES_SMALL_WRITES,
        (
            "any((write_chunk.kind == storaged_pb.NODE_DELETES for write_chunk in write_chunks))",
            "all((write_chunk.kind == storaged_pb.NODE_DELETES for write_chunk in write_chunks))",
        ),
        test=(
            f"{UNIT}/test_group_commit.py"
            "::test_group_that_deletes_nodes_is_resolved_first[kinds1-5]"
        ),
        reason="assert (0, False) == (5, True)",
    ),
    change(
        "node deletes registered as edges",
        "tempting",
        WRITES_SMALL_WRITES,
        ("kind in (storaged_pb.NODES, storaged_pb.NODE_DELETES)", "kind == storaged_pb.NODES"),
        test=(
            f"{UNIT}/test_group_commit.py"
            "::test_group_that_deletes_nodes_is_resolved_first[kinds1-5]"
        ),
        reason="assert [1, 2] == [1, 1]",
    ),
    change(
        "a failed group leaves its load open",
        "tempting",
        WRITES_SMALL_WRITES,
        ("self._abandon(load.load_id)", "pass"),
        test=f"{UNIT}/test_group_commit.py::test_load_of_a_group_that_fails_is_abandoned",
        reason="assert [<class 'asterism_proto.v1.metad_pb2.BeginLoadRequest",
    ),
    change(
        "features of edges at their sources",
        "tempting",
        WRITES_ROW_WRITES,
        ("(eid % schema.parts)", "(sections['src'] % schema.parts)"),
        test=(
            f"{UNIT}/test_row_writes.py::test_edges_go_to_partitions_of_both_ends_and_of_their_ids"
        ),
        reason="assert {0: [0.5], 1: [1.5]} == {5: [0.5], 6: [1.5]}",
    ),
    change(
        "in-copies deleted at the sources",
        "tempting",
        WRITES_ROW_WRITES,
        (
            "IN_EDGE_DELETES, type_id=type_id, parts=context.parts_of_ids(sections['dst'])",
            "IN_EDGE_DELETES, type_id=type_id, parts=context.parts_of_ids(sections['src'])",
        ),
        test=f"{UNIT}/test_row_writes.py::test_edge_deletes_go_to_partitions_of_both_ends",
        reason="assert {0: [40], 1: [-1]} == {2: [40], 3: [-1]}",
    ),
    change(
        "nodes of the load itself unknown",
        "tempting",
        WRITES_ROW_WRITES,
        (
            "type_id=type_id, load_id=context.load_id, loads=context.committed_loads()",
            "type_id=type_id, load_id=0, loads=context.committed_loads()",
        ),
        test=f"{UNIT}/test_row_writes.py::test_lookups_include_nodes_of_the_same_load",
        reason="assert ([0, 1], {0}) == ([0, 1], {6})",
    ),
    change(
        "messages one partition too large",
        "tempting",
        WRITES_ROW_WRITES,
        ("(size + rows) * row_bytes > MESSAGE_BYTES", "size * row_bytes > MESSAGE_BYTES"),
        test=f"{UNIT}/test_row_writes.py::test_runs_of_partitions_fit_a_message[2]",
        reason="assert 4 <= 2",
    ),
    change(
        "revivals written over another chunk",
        "tempting",
        WRITES_ROW_WRITES,
        ("replace(context, chunk=chunk)", "context"),
        test=f"{UNIT}/test_row_writes.py::test_births_at_any_host_reach_every_partition",
        reason="assert {0} == {4}",
    ),
    change(
        "times of nodes at their own partition only",
        "tempting",
        WRITES_ROW_WRITES,
        ("if time and f'f:{time}' in sections:", "if not time and f'f:{time}' in sections:"),
        test=f"{UNIT}/test_row_writes.py::test_times_of_nodes_go_to_every_partition",
        reason="assert {} == {0: [10, 20], 1: [10, 20], 2: [10, 20], 3: [10,",
    ),
    change(
        "filters evicted in the order of their entry",
        "tempting",
        "graphd.routing.filter_totals_cache",
        ("entry = self._entries.pop(key, None)", "entry = self._entries.get(key)"),
        test=f"{UNIT}/test_filter_totals_cache.py::test_least_recently_used_filter_is_evicted",
        reason="assert ['b', 'c', 'd'] == ['a', 'c', 'd']",
    ),
    change(
        "the newest filter evicted",
        "tempting",
        "graphd.routing.filter_totals_cache",
        ("next(iter(self._entries))", "next(reversed(self._entries))"),
        test=f"{UNIT}/test_filter_totals_cache.py::test_least_recently_used_filter_is_evicted",
        reason="== ['a', 'c', 'd']",
    ),
    change(
        "one end's names for both ends of an edge",
        "tempting",
        "graphd.writes.validation",
        (
            "columns = {'src': 'src_names', 'dst': 'dst_names'}",
            "columns = {'src': 'src_names', 'dst': 'src_names'}",
        ),
        test=f"{UNIT}/test_write_validation.py::test_each_end_of_an_edge_has_names_of_its_own",
        reason="InvalidRequest: dst[0] = ",
    ),
    change(
        "shares of edges rounded down",
        "tempting",
        "asterism_model.fanout_fractions",
        (
            "-(-share.numerator * edges // share.denominator)",
            "share.numerator * edges // share.denominator",
        ),
        test=(
            "tests/unit/asterism_model/test_fanout_fractions.py"
            "::test_a_share_is_exact_and_rounded_up[0.1-11-2]"
        ),
        reason="assert 1 == 2",
    ),
    change(
        "shares of edges in floats",
        "tempting",
        "asterism_model.fanout_fractions",
        (
            "-(-share.numerator * edges // share.denominator)",
            "int(-(-float(share) * edges // 1))",
        ),
        test=(
            "tests/unit/asterism_model/test_fanout_fractions.py"
            "::test_a_share_is_exact_and_rounded_up[0.07-100-7]"
        ),
        reason="assert 8 == 7",
    ),
    change(
        "nodes of a share drawn at the positions of their group",
        "tempting",
        "graphd.operators.fanout_sampling",
        (", positions=rows)", ")"),
        test=(
            f"{UNIT}/test_fanout_sampling.py"
            "::test_each_node_has_the_neighbors_of_its_own_count[edge_types0-False-0.34]"
        ),
        reason="Arrays are not equal",
    ),
)
