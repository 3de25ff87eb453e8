"""Faults of metad: jobs, loads, versions and removals.

Each names the test that must fail with it.
"""

from __future__ import annotations

from tests.mutants.mutant import Mutant, change

UNIT = "tests/unit/metad"
HOSTS = "metad.membership"
MACHINE_ATTEMPTS = "metad.jobs.state_machine.host_events"
MACHINE_REQUESTS = "metad.jobs.state_machine.requests"
MACHINE_SCHEDULING = "metad.jobs.state_machine.scheduling"
JOBS_PROGRESS = "metad.jobs.progress"
CATALOG_LOADS = "metad.catalog.loads"
CATALOG_REMOVALS = "metad.catalog.storage_removals"
MAINTENANCE = "metad.maintenance"
ACCESS = "metad.catalog.access"
ACCESS_CHECKS = "metad.catalog.access_validation"
QUOTAS = "metad.quotas"

MUTANTS: tuple[Mutant, ...] = (
    change(
        "lease that ends one tick late",
        "tempting",
        HOSTS,
        ("if end <= now_ms", "if end < now_ms"),
        test=f"{UNIT}/test_maintenance.py::test_idle_metad_looks_when_the_first_lease_ends",
        reason="assert 0.0 == 20.0",
    ),
    change(
        "versions superseded without a drain",
        "tempting",
        HOSTS,
        ("since is None or since > now_ms - self._drain_ms", "since is None or since > now_ms"),
        test=f"{UNIT}/test_catalog.py::test_old_versions_retire_when_surplus_and_unused",
        reason="a request that the graphd began before it heard of a newer o",
    ),
    change(
        "a restarted graphd keeps its routed versions",
        "tempting",
        HOSTS,
        (
            "if not host.online or previous is None or previous.incarnation != host.incarnation:",
            "if not host.online or previous is None:",
        ),
        test=f"{UNIT}/test_catalog.py::test_restarted_graphd_may_route_by_an_older_version",
        reason="assert [2] == [1, 2]",
    ),
    change(
        "output lost whenever a host comes back",
        "tempting",
        MACHINE_ATTEMPTS,
        (
            "task.state is JobState.FINISHED and (task.incarnation != event.incarnation)",
            "task.state is JobState.FINISHED",
        ),
        test=(
            f"{UNIT}/test_state_machine_host_events.py"
            "::test_finished_task_stays_if_its_host_returns_unrestarted"
        ),
        reason="assert <JobState.RUNNING: 2> is <JobState.FINISHED: 3>",
    ),
    change(
        "failures of a recovered job remembered",
        "tempting",
        MACHINE_REQUESTS,
        ("failures=0, losses=0,", "losses=0,"),
        test=f"{UNIT}/test_state_machine_host_events.py::test_failures_before_a_recovery_do_not_count",
        reason="assert (<JobState.FAILED: 4>, 2) == (<JobState.RUNNING: 2>,",
    ),
    change(
        "output of a recovered task believed",
        "tempting",
        MACHINE_REQUESTS,
        ("finished_ms=0, outcome=None)", "finished_ms=0)"),
        test=f"{UNIT}/test_state_machine_host_events.py::test_recovered_task_has_no_outcome",
        reason="assert TaskOutcome(totals=(PartitionStats(part=0, element='E",
    ),
    change(
        "a clock set back stalls a retry",
        "tempting",
        MACHINE_SCHEDULING,
        (
            "return remaining_ms <= 0 or remaining_ms > backoff_ms(transition.policy, task)",
            "return remaining_ms <= 0",
        ),
        test=f"{UNIT}/test_state_machine_kinds.py::test_backoff_does_not_grow_if_the_clock_is_set_back",
        reason="assert [] == [(1, 2)]",
    ),
    change(
        "jobs in the order of their numbers",
        "tempting",
        MACHINE_SCHEDULING,
        ("(job.watermark, job.job_id)", "(job.job_id, job.watermark)"),
        test=f"{UNIT}/test_state_machine_jobs.py::test_waiting_jobs_run_in_the_order_of_their_commits",
        reason="assert [<JobState.RUNNING: 2>, <JobState.QUEUE: 1>] == [<Job",
    ),
    change(
        "declared indexes left out of a version",
        "tempting",
        MACHINE_SCHEDULING,
        ("{*job.declared, *", "{*"),
        test=f"{UNIT}/test_state_machine_kinds.py::test_declared_indexes_are_in_every_version",
        reason="assert () == (Index(element=1, type_id=0, column='id', kind=",
    ),
    change(
        "jobs forgotten from their submission",
        "tempting",
        MACHINE_SCHEDULING,
        ("transition.now_ms - job.finished_ms >=", "transition.now_ms - job.submitted_ms >="),
        test=f"{UNIT}/test_state_machine_jobs.py::test_jobs_are_remembered_from_their_end_on",
        reason="KeyError: 1",
    ),
    change(
        "a job charged with a host's earlier absence",
        "tempting",
        MACHINE_SCHEDULING,
        (
            "max(job.started_ms, host_status.since_ms if host_status else 0)",
            "(host_status.since_ms if host_status else 0)",
        ),
        test=f"{UNIT}/test_state_machine_host_events.py::test_absence_of_a_host_counts_from_the_job_start",
        reason="assert (<JobState.RUNNING: 2>, <JobState.FAILED: 4>) == (<Jo",
    ),
    change(
        "causes overwritten by a timeout",
        "tempting",
        MACHINE_SCHEDULING,
        (
            "elif job.state is JobState.RUNNING and job.ending is None:",
            "elif job.state is JobState.RUNNING:",
        ),
        test=(
            f"{UNIT}/test_state_machine_host_events.py"
            "::test_timeout_of_a_host_does_not_change_a_requested_stop"
        ),
        reason="assert <JobState.FAILED: 4> is <JobState.STOPPED: 5>",
    ),
    change(
        "rows that decrease give a negative rate",
        "tempting",
        JOBS_PROGRESS,
        (
            "task.measured_ms == 0 or elapsed < 0 or rows_done < task.measured_rows",
            "task.measured_ms == 0 or elapsed < 0",
        ),
        test=f"{UNIT}/test_state_machine_kinds.py::test_rate_starts_again_if_rows_decrease",
        reason="== 0.0",
    ),
    change(
        "a remaining time without all tasks",
        "tempting",
        JOBS_PROGRESS,
        (
            "if counted and etas and (len(etas) == len(unfinished)) else None",
            "if counted and etas else None",
        ),
        test=f"{UNIT}/test_state_machine_kinds.py::test_remaining_time_is_unknown_while_a_task_waits",
        reason="assert (True, 18.0) == (True, None)",
    ),
    change(
        "a restart of metad ends the leases of loads",
        "tempting",
        CATALOG_LOADS,
        (
            "if max(_last_seen_ms(load), self._started_ms) < since_ms",
            "if _last_seen_ms(load) < since_ms",
        ),
        test=f"{UNIT}/test_leases.py::test_restart_grants_a_load_a_full_lease[86400.0]",
        reason="assert 3 == 1",
    ),
    change(
        "a host of another space admitted",
        "tempting",
        CATALOG_LOADS,
        ("if load.space_id != space_id:", "if False:"),
        test=f"{UNIT}/test_loads.py::test_hosts_are_admitted_to_registered_chunks_of_their_space",
        reason="Failed: DID NOT RAISE Conflict",
    ),
    change(
        "a seal below the last admission suffices",
        "tempting",
        CATALOG_LOADS,
        ("seal_numbers.get(host, -1) < number", "seal_numbers.get(host, -1) < 0"),
        test=f"{UNIT}/test_loads.py::test_load_is_committed_once_the_last_admission_is_sealed",
        reason="assert 2 == 1",
    ),
    change(
        "abandoned loads forgotten with their blocks",
        "tempting",
        CATALOG_LOADS,
        ("if load.is_purged and load.ended_ms < before_ms", "if load.ended_ms < before_ms"),
        test=f"{UNIT}/test_leases.py::test_records_of_abandoned_loads_go_with_the_last_block",
        reason="NotFound",
    ),
    change(
        "the next load is dead",
        "tempting",
        CATALOG_LOADS,
        ("0 < load_id < self._next", "0 < load_id <= self._next"),
        test=f"{UNIT}/test_leases.py::test_next_load_is_not_dead_yet",
        reason="assert [1, 2] == [1]",
    ),
    change(
        "the last commit repeated",
        "tempting",
        CATALOG_LOADS,
        (
            "committed[bisect_right(committed, after, key=lambda pair: pair[0]):]",
            "committed[max(bisect_right(committed, after, key=lambda pair: pair[0]) - 1, 0):]",
        ),
        test=f"{UNIT}/test_loads.py::test_commits_are_listed_after_the_known_one",
        reason="assert [[1, 2, 3], [1, 2, 3], [2, 3], [3]] == [[1, 2, 3], [2",
    ),
    change(
        "two hosts' fingerprints not compared",
        "tempting",
        CATALOG_LOADS,
        (
            "if fingerprints.setdefault(fingerprint.part, fingerprint) != fingerprint:",
            "if fingerprints.setdefault(fingerprint.part, fingerprint).part != fingerprint.part:",
        ),
        test=f"{UNIT}/test_loads.py::test_different_blocks_of_one_partition_are_not_committed",
        reason="Failed: DID NOT RAISE Corrupt",
    ),
    change(
        "dead loads by the numbers of jobs",
        "tempting",
        "metad.catalog_service",
        (
            "was_given_up(adoptions, 'load_id', load)",
            "was_given_up(adoptions, 'job_id', load)",
        ),
        test=f"{UNIT}/test_position_history.py::test_loads_before_an_adoption_may_be_dead",
        reason="assert [] == [1]",
    ),
    change(
        "a restore of another version continued",
        "tempting",
        "metad.catalog.restores",
        (" and awaited_manifest.digest == record.manifest.digest:", ":"),
        test=f"{UNIT}/test_restores.py::test_a_restore_continues_with_the_same_version_only",
        reason="DID NOT RAISE",
    ),
    change(
        "removals acknowledged by anyone",
        "tempting",
        CATALOG_REMOVALS,
        ("is not None and host in r.hosts", "is not None"),
        test=f"{UNIT}/test_position_history.py::test_removals_are_confirmed_by_their_own_hosts_only",
        reason="== []",
    ),
    change(
        "a recovered job stays cleaned",
        "tempting",
        CATALOG_REMOVALS,
        (
            (
                "            self._cleaned.discard(job_id)\n        return PendingWrite(changes, "
                "apply)"
            ),
            "            pass\n        return PendingWrite(changes, apply)",
        ),
        test=f"{UNIT}/test_position_history.py::test_leftovers_of_a_recovered_job_are_removed_after_its_end",
        reason="assert 0 == 2",
    ),
    change(
        "versions retired by their own age",
        "tempting",
        MAINTENANCE,
        ("now_ms - newer.created_ms >=", "now_ms - manifest.created_ms >="),
        test=f"{UNIT}/test_catalog.py::test_version_is_retired_a_time_after_the_next_one",
        reason="assert [[2], [2]] == [[1, 2], [2]]",
    ),
    change(
        "versions of waiting jobs retired",
        "tempting",
        MAINTENANCE,
        (
            "job.target_version and (not job.state.is_final)",
            "job.target_version and job.state is model.JobState.RUNNING",
        ),
        test=f"{UNIT}/test_pins.py::test_version_that_a_waiting_job_reads_stays",
        reason="assert 1 in [2]",
    ),
    change(
        "a poll of a higher revision waits",
        "tempting",
        "metad.change_feed",
        (
            "while self._revision == known_revision and is_active():",
            "while self._revision <= known_revision and is_active():",
        ),
        test=f"{UNIT}/test_desired_state.py::test_revision_above_the_current_one_is_not_awaited",
        reason="assert [True] == []",
    ),
    change(
        "grants of a dropped space inherited",
        "tempting",
        "metad.catalog.catalog",
        ("self.access.drop(space.space_id), ", ""),
        test=f"{UNIT}/test_access.py::test_a_dropped_space_leaves_nothing_to_its_namesake",
        reason="== [2, 2]",
    ),
    change(
        "limits of a dropped space kept",
        "tempting",
        ACCESS,
        ("**{keys.access_limits_key(space_id, principal): None for principal in limits}", ""),
        test=f"{UNIT}/test_access.py::test_a_dropped_space_leaves_nothing_to_its_namesake",
        reason="== [2, 2]",
    ),
    change(
        "any administrator counts as the last one",
        "tempting",
        ACCESS,
        ("for other in everywhere)) == 1", "for other in everywhere)) >= 1"),
        test=f"{UNIT}/test_access.py::test_the_last_cluster_administrator_may_leave_with_a_notice",
        reason="== ''",
    ),
    change(
        "valid keys make place for new ones",
        "tempting",
        ACCESS,
        ("if (ended_ms := key.ended_ms(now_ms)) is not None", "if (ended_ms := key.created_ms)"),
        test=f"{UNIT}/test_access.py::test_ended_keys_make_place_for_new_ones",
        reason="Failed: DID NOT RAISE",
    ),
    change(
        "a revocation without a new state",
        "tempting",
        ACCESS,
        (
            "self._keys[key_id] = key\n        self._changes += 1",
            "self._keys[key_id] = key",
        ),
        test=f"{UNIT}/test_access.py::test_every_change_reaches_waiting_daemons",
        reason="assert False",
    ),
    change(
        "a whole key shown in an error",
        "tempting",
        ACCESS_CHECKS,
        ('f"key_id: expected', 'f"key_id={key_id}: expected'),
        test=(f"{UNIT}/test_access.py::test_an_unknown_key_is_not_found_and_a_secret_not_shown"),
        reason="key_id",
    ),
    change(
        "hashes of secrets in lists",
        "tempting",
        "metad.access_api",
        (
            "keys=[wire.api_key_to_proto(key, with_hash=False)",
            "keys=[wire.api_key_to_proto(key, with_hash=True)",
        ),
        test=f"{UNIT}/test_access.py::test_the_secret_of_a_key_is_returned_once_and_not_stored",
        reason="lists have no hash",
    ),
    change(
        "an older catalog revives revoked keys",
        "tempting",
        "metad.desired_state",
        (
            (
                "if status is FollowerStatus.AHEAD:\n                return reply\n"
                "            reply.access.CopyFrom(self.access_state())"
            ),
            (
                "reply.access.CopyFrom(self.access_state())\n"
                "            if status is FollowerStatus.AHEAD:\n                return reply"
            ),
        ),
        test=f"{UNIT}/test_access.py::test_a_daemon_ahead_of_the_catalog_gets_no_access_state",
        reason="revoked since",
    ),
    change(
        "keys sent to clients with their routes",
        "tempting",
        "graphd.routing.routing_table",
        ("reply.ClearField('access')", "pass"),
        test=(
            "tests/unit/graphd/test_routing_table.py"
            "::test_clients_get_no_keys_and_grants_with_their_routes"
        ),
        reason="HasField",
    ),
    change(
        "a quota that is reached one later",
        "tempting",
        QUOTAS,
        ("if limit and used >= limit:", "if limit and used > limit:"),
        test=f"{UNIT}/test_quotas.py::test_pins_of_a_principal_in_a_space_are_limited",
        reason="Failed: DID NOT RAISE",
    ),
    change(
        "expired pins count until the next tick",
        "tempting",
        QUOTAS,
        (" and pin.expires_ms > now_ms", ""),
        test=f"{UNIT}/test_quotas.py::test_pins_count_until_they_end_and_over_a_restart",
        reason="QuotaExceeded",
    ),
    change(
        "an identical job counted twice",
        "tempting",
        "metad.jobs.driver",
        ("if _returned_job(commands) not in self._state.jobs:", "if commands:"),
        test=f"{UNIT}/test_quotas.py::test_jobs_in_flight_of_a_principal_are_limited",
        reason="QuotaExceeded",
    ),
    change(
        "a recovered job left to its submitter",
        "tempting",
        MACHINE_REQUESTS,
        ("finished_ms=0, principal=principal,", "finished_ms=0,"),
        test=f"{UNIT}/test_quotas.py::test_a_recovered_job_counts_for_its_recoverer",
        reason="Failed: DID NOT RAISE",
    ),
    change(
        "own limits replaced by general ones",
        "tempting",
        ACCESS,
        (
            "return limits.get(principal) or limits.get(EVERY_PRINCIPAL)",
            "return limits.get(EVERY_PRINCIPAL) or limits.get(principal)",
        ),
        test=f"{UNIT}/test_quotas.py::test_own_limits_replace_those_of_every_principal",
        reason="QuotaExceeded",
    ),
    change(
        "a term that begins after its first write",
        "tempting",
        "metad.catalog.catalog",
        (
            "self.history = CatalogHistory(store, first_revision)",
            "self.history = CatalogHistory(store)",
        ),
        test=f"{UNIT}/test_position_history.py::test_a_copy_that_lacks_one_write_is_older",
        reason="assert not True",
    ),
)
