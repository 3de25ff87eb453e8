"""Faults of clients: leases, versions seen, chunks, retries, hedges, keys and tickets.

Each names the test that must fail with it.
"""

from __future__ import annotations

from tests.mutants.mutant import Mutant, change

UNIT = "tests/unit/asterism"
TRANSPORT_RETRY_BUDGET = "asterism.transport.retry_budget"
CLIENT_STATE = "asterism.client_state"
CALLS_PINS = "asterism.calls.pins"
CALLS_LOADS = "asterism.calls.loads"
CREDENTIALS = "asterism.transport.credentials"

MUTANTS: tuple[Mutant, ...] = (
    change(
        "reverse edges in the direction of the edges",
        "tempting",
        "asterism.calls.excluded_edges",
        (
            "_entries(reverse[edge_type], dst_ids, src_ids, None)",
            "_entries(reverse[edge_type], src_ids, dst_ids, None)",
        ),
        test=f"{UNIT}/test_excluded_edges.py::test_reverse_edges_have_no_edge_ids",
        reason="(1, 1, 3, -1) != (1, 3, 1, -1)",
    ),
    change(
        "a token not yet earned",
        "tempting",
        TRANSPORT_RETRY_BUDGET,
        ("if wait > max_wait_s:", "if wait < 0:"),
        test=f"{UNIT}/test_waiters.py::test_reservation_waits_for_all_earlier_ones",
        reason="assert 0.4 is None",
    ),
    change(
        "an older version answered",
        "tempting",
        CLIENT_STATE,
        ("if pinned or reply_version >= floor:", "if pinned or reply_version >= 0:"),
        test=f"{UNIT}/test_client_state.py::test_reply_is_never_older_than_one_seen_before",
        reason="assert [3, 2] == [3, 3]",
    ),
    change(
        "the version of a pinned read remembered",
        "tempting",
        CLIENT_STATE,
        (
            "if not pinned:\n            self.note_version",
            "if True:\n            self.note_version",
        ),
        test=f"{UNIT}/test_client_state.py::test_reads_of_a_given_version_do_not_count",
        reason="Stale",
    ),
    change(
        "an older version remembered",
        "tempting",
        CLIENT_STATE,
        (
            "self._newest[space] = max(version, self._newest.get(space, 0))",
            "self._newest[space] = version",
        ),
        test=f"{UNIT}/test_client_state.py::test_versions_seen_by_others_are_a_lower_bound",
        reason="assert {'g': 3} == {'g': 5}",
    ),
    change(
        "a dropped space's versions expected",
        "tempting",
        CLIENT_STATE,
        ("self._newest.pop(space, None)", "pass"),
        test=f"{UNIT}/test_client_state.py::test_versions_seen_by_others_are_a_lower_bound",
        reason="Stale",
    ),
    change(
        "epochs in one order",
        "tempting",
        "asterism.calls.epoch_cursor",
        (
            "permutations.key_of(self.seed, permutations.EPOCH, self.epoch)",
            "permutations.key_of(self.seed, permutations.EPOCH, 0)",
        ),
        test=f"{UNIT}/test_epoch_cursor.py::test_orders_differ_by_epoch_and_seed",
        reason="assert 3 == 9",
    ),
    change(
        "a lease of a pin from the answer on",
        "tempting",
        CALLS_PINS,
        (
            "self._expires_at, pause = (requested_at + self.pin.term_s, self.pin.term_s / 3)",
            "self._expires_at, pause = (time.monotonic() + self.pin.term_s, self.pin.term_s / 3)",
        ),
        test=f"{UNIT}/test_pins.py::test_lease_ends_a_term_after_its_request",
        reason="+ 0.3)",
    ),
    change(
        "a first lease of a pin from the answer on",
        "tempting",
        CALLS_PINS,
        (
            "self._lease = Lease(self._session, pin, requested_at)",
            "self._lease = Lease(self._session, pin, time.monotonic())",
        ),
        test=f"{UNIT}/test_pins.py::test_lease_ends_a_term_after_its_request",
        reason="+ 0.3)",
    ),
    change(
        "a pin that metad ended still held",
        "tempting",
        CALLS_PINS,
        ("self._lost = error\n                return", "return"),
        test=f"{UNIT}/test_pins.py::test_lost_lease_stops_every_call_before_sending",
        reason="Regex pattern did not match.",
    ),
    change(
        "a pin not renewed still held",
        "tempting",
        CALLS_PINS,
        ("if late > 0:", "if late > 3600:"),
        test=f"{UNIT}/test_pins.py::test_lease_recovers_when_renewal_succeeds_again",
        reason="Failed: DID NOT RAISE Exception",
    ),
    change(
        "edge ids of a piece from the chunk's start",
        "tempting",
        CALLS_LOADS,
        ("first_edge_id=chunk.first_edge_id + start", "first_edge_id=chunk.first_edge_id"),
        test=f"{UNIT}/test_loads.py::test_pieces_of_a_chunk_have_own_numbers_and_edge_ids",
        reason="assert [(0, 100), (1, 100), (2, 100)] == [(0, 100), (1, 102)",
    ),
    change(
        "pieces of all chunks numbered alike",
        "tempting",
        CALLS_LOADS,
        ("chunk=index * PIECES + number", "chunk=index + number"),
        test=f"{UNIT}/test_loads.py::test_pieces_of_a_chunk_have_own_numbers_and_edge_ids",
        reason="assert [(-765, 100), (-764, 102), (-763, 104)] == [(0, 100),",
    ),
    change(
        "a chunk of other content taken as written",
        "tempting",
        CALLS_LOADS,
        (
            "if existing is not None and existing.digest == chunk.digest:",
            "if existing is not None:",
        ),
        test=f"{UNIT}/test_loads.py::test_other_content_of_a_chunk_is_registered_too",
        reason="assert 1 == 2",
    ),
    change(
        "acknowledgements lost with a failed call",
        "tempting",
        CALLS_LOADS,
        (
            "written=self._unreported_chunks, space=self.space)",
            (
                "written=[self._unreported_chunks.pop() for _ in "
                "tuple(self._unreported_chunks)], space=self.space)"
            ),
        ),
        test=f"{UNIT}/test_loads.py::test_acknowledgements_are_sent_again_after_a_failure",
        reason="assert [[0], []] == [[0], [0]]",
    ),
    change(
        "time that fills the budget twice",
        "tempting",
        "asterism.transport.retry_budget",
        ("self._refilled_at = now", "pass"),
        test=f"{UNIT}/test_waiters.py::test_time_fills_the_budget_once",
        reason="[True, True, True] == [True, False, False]",
    ),
    change(
        "the first failure of a hedged request",
        "tempting",
        "asterism.transport.hedging",
        ("return (answered or completed)[0]", "return completed[0]"),
        test=f"{UNIT}/test_hedging.py::test_final_reply_counts_before_a_transient_failure",
        reason="assert 0 == 1",
    ),
    change(
        "a digest of bytes alone",
        "tempting",
        "asterism.calls.loads",
        (
            "state.update(f'|{name}|{array.dtype.str}|{array.shape}|'.encode())",
            "state.update(f'|{name}|'.encode())",
        ),
        test=f"{UNIT}/test_loads.py::test_digest_distinguishes_all_written_content",
        reason="assert 8 == 9",
    ),
    change(
        "a key in every pickle",
        "tempting",
        CREDENTIALS,
        ("isinstance(self._source, str | _MissingKey)", "isinstance(self._source, _MissingKey)"),
        test=f"{UNIT}/test_client_credentials.py::test_other_pickles_read_the_environment_again",
        reason="DID NOT RAISE",
    ),
    change(
        "a token that is asked for once",
        "tempting",
        CREDENTIALS,
        ("if text != self._sent[0] or not text:", "if not self._sent[0]:"),
        test=f"{UNIT}/test_client_credentials.py::test_a_function_gives_a_token_for_each_request",
        reason="At index 1 diff: 'Bearer one' != 'Bearer two'",
    ),
    change(
        "a refused ticket that stays",
        "tempting",
        "graphd.direct_client",
        ("if self._ticket == refused:", "if not self._ticket:"),
        test="tests/unit/graphd/test_direct_client.py::test_a_refused_ticket_is_replaced_once",
        reason="Unauthenticated",
    ),
    change(
        "a ticket that is renewed with every route",
        "tempting",
        "graphd.direct_client",
        ("if not self._ticket or time.monotonic() >= self._renew_ticket_at:", "if True:"),
        test="tests/unit/graphd/test_direct_client.py::"
        "test_a_ticket_is_renewed_at_half_of_its_validity",
        reason="assert 'two' == 'one'",
    ),
)
