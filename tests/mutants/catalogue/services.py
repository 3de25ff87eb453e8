"""Faults of services around the samplers: writes, merged replies, leases, files, retries.

Each names the test that must fail with it."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, change

UNIT = "tests/unit"
CLIENT_REQUESTS = "tests/integration/requests/test_client_requests.py"
SMALL_WRITES = "graphd.writes.group_commit"
SMALL_WRITE_TESTS = f"{UNIT}/graphd/test_group_commit.py"
ROW_WRITES = "graphd.writes.row_writes"
ROW_WRITE_TESTS = f"{UNIT}/graphd/test_row_writes.py"

SMALL_MESSAGES = change(
    "rows for every partition in small messages",
    "so that few rows take several messages",
    ROW_WRITES,
    ("step = max(1, MESSAGE_BYTES // max(", "step = max(1, 64 // max("),
)
"""Change that divides messages after 64 bytes instead of megabytes; it is no mutant.

`tests.integration.faults.test_planted_slips` plants it in a cluster, with and without mutants."""

MUTANTS: tuple[Mutant, ...] = (
    change(
        "a write sent again after a lost answer",
        "classic",
        "asterism.transport.grpc",
        (
            (
                "not self._is_permanent(error) and (method.path not in "
                "NON_IDEMPOTENT_METHODS or (isinstance(error, Unavailable) and "
                "error.never_arrived))"
            ),
            "not self._is_permanent(error)",
        ),
        test=f"{CLIENT_REQUESTS}::test_a_write_with_a_lost_answer_is_not_sent_again",
        reason="== ['write']",
    ),
    change(
        "rows of weight 0 as available",
        "tempting",
        "graphd.routing.totals",
        ("total.count if uniform else total.positive", "total.count"),
        test=f"{UNIT}/graphd/test_totals.py::test_weighted_draws_reach_rows_with_weight_only",
        reason="assert 7 == 5",
    ),
    change(
        "single writes of other columns in one chunk",
        "tempting",
        SMALL_WRITES,
        (
            ("return (small_write.kind, small_write.type_id, tuple(sorted(small_write.sections)))"),
            "return (small_write.kind, small_write.type_id, ())",
        ),
        test=f"{SMALL_WRITE_TESTS}::test_adjacent_writes_of_other_columns_are_chunks_of_their_own",
        reason="[[1, 2, 3]]",
    ),
    change(
        "edge ids counted by writes",
        "classic",
        SMALL_WRITES,
        ("first_edge_id += small_write.rows", "first_edge_id += 1"),
        test=f"{SMALL_WRITE_TESTS}::test_each_write_of_a_batch_gets_the_id_of_its_first_edge",
        reason="assert [100, 101,",
    ),
    change(
        "edge ids of the first chunk for all chunks",
        "classic",
        SMALL_WRITES,
        (
            "space, load.load_id, i, load.chunks[i].first_edge_id, write_chunk, call",
            "space, load.load_id, i, load.chunks[0].first_edge_id, write_chunk, call",
        ),
        test=f"{SMALL_WRITE_TESTS}::test_each_write_of_a_batch_gets_the_id_of_its_first_edge",
        reason="assert [100, 100] ==",
    ),
    change(
        "norms that change those they extend",
        "tempting",
        "asterism.saint",
        (
            "(base.node_counts.copy(), base.edge_counts.copy(), base.batches)",
            "(base.node_counts, base.edge_counts, base.batches)",
        ),
        test=f"{UNIT}/asterism/test_saint.py::test_norms_that_are_extended_stay_as_they_were",
        reason="assert ([2, 2, 2, 2], [2, 2, 2, 2])",
    ),
    change(
        "rows without an answer not cleared",
        "tempting",
        "graphd.routing.split_merge",
        ("(buffer_pool.empty if is_complete else np.zeros)", "buffer_pool.empty"),
        test=f"{UNIT}/graphd/test_split_merge.py::test_rows_that_no_host_answered_are_zero",
        reason="[7, 7]",
    ),
    change(
        "births settled by one host",
        "tempting",
        ROW_WRITES,
        (
            "[(host, Frame(request)) for host in hosts]",
            "[(host, Frame(request)) for host in hosts[:1]]",
        ),
        test=f"{ROW_WRITE_TESTS}::test_births_at_any_host_reach_every_partition",
        reason="[0, 10, 20]",
    ),
    change(
        "tombstones of the first message only",
        "classic",
        ROW_WRITES,
        ("range(0, context.space.schema.parts, step)", "range(0, step, step)"),
        test=f"{ROW_WRITE_TESTS}::test_node_deletes_reach_every_partition_once[1]",
        reason="assert dispatcher.ids_by_part() ==",
    ),
    change(
        "a lease from the answer on",
        "classic",
        "asterism_daemonkit.heartbeat",
        ("lease_end=sent_at + reply.lease_s", "lease_end=time.monotonic() + reply.lease_s"),
        test=f"{UNIT}/asterism_daemonkit/test_heartbeat.py::test_lease_ends_before_metad_ends_it",
        reason="<= metad.arrived_at + metad.lease_s",
    ),
    change(
        "an image file that is not synced",
        "classic",
        "storaged.store.image_writer",
        ("        os.fsync(file.fileno())\n", ""),
        test=(
            "tests/integration/faults/test_durability.py"
            "::test_acknowledged_data_is_synced_with_all_its_names"
        ),
        reason="not synced after it was written",
    ),
)
