"""Faults of metad: jobs, loads, versions and removals.

Each names the test that must fail with it.
"""

from __future__ import annotations

from tests.mutants.mutant import Mutant, change

UNIT = "tests/unit/metad"
HOSTS = "metad.membership"
MACHINE_ATTEMPTS = "metad.jobs.state_machine.attempts"
MACHINE_REQUESTS = "metad.jobs.state_machine.requests"
MACHINE_SCHEDULING = "metad.jobs.state_machine.scheduling"
JOBS_PROGRESS = "metad.jobs.progress"
CATALOG_LOADS = "metad.catalog.loads"
CATALOG_REMOVALS = "metad.catalog.removals"
MAINTENANCE = "metad.maintenance"

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
            f"{UNIT}/test_state_machine_attempts.py"
            "::test_finished_task_stays_if_its_host_returns_unrestarted"
        ),
        reason="assert <JobState.RUNNING: 2> is <JobState.FINISHED: 3>",
    ),
    change(
        "failures of a recovered job remembered",
        "tempting",
        MACHINE_REQUESTS,
        ("failures=0, losses=0,", "losses=0,"),
        test=f"{UNIT}/test_state_machine_attempts.py::test_failures_before_a_recovery_do_not_count",
        reason="assert (<JobState.FAILED: 4>, 2) == (<JobState.RUNNING: 2>,",
    ),
    change(
        "output of a recovered task believed",
        "tempting",
        MACHINE_REQUESTS,
        ("finished_ms=0, outcome=None)", "finished_ms=0)"),
        test=f"{UNIT}/test_state_machine_attempts.py::test_recovered_task_has_no_outcome",
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
        test=f"{UNIT}/test_state_machine_attempts.py::test_absence_of_a_host_counts_from_the_job_start",
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
            f"{UNIT}/test_state_machine_attempts.py"
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
        "metad.service",
        (
            "was_given_up(adoptions, 'load_id', load)",
            "was_given_up(adoptions, 'job_id', load)",
        ),
        test=f"{UNIT}/test_history.py::test_loads_before_an_adoption_may_be_dead",
        reason="assert [] == [1]",
    ),
    change(
        "a restore of another version continued",
        "tempting",
        "metad.catalog.restores",
        (
            "if awaited_manifest is not None and awaited_manifest.digest == record.manifest.digest:",
            "if awaited_manifest is not None:",
        ),
        test=f"{UNIT}/test_restores.py::test_a_restore_continues_with_the_same_version_only",
        reason="DID NOT RAISE",
    ),
    change(
        "removals acknowledged by anyone",
        "tempting",
        CATALOG_REMOVALS,
        ("is not None and host in r.hosts", "is not None"),
        test=f"{UNIT}/test_history.py::test_removals_are_confirmed_by_their_own_hosts_only",
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
        test=f"{UNIT}/test_history.py::test_leftovers_of_a_recovered_job_are_removed_after_its_end",
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
)
