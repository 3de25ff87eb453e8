"""Tests of metad's settings: documented defaults, and consistent times."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from metad.model.jobs import JobPolicy
from metad.settings import MetadSettings


def test_defaults_are_as_documented() -> None:
    documented = {
        "data": "data/metad",
        "listen": "127.0.0.1:9559",
        "http_listen": "127.0.0.1:19559",
        "grpc_workers": 128,
        "stop_grace_s": 5.0,
        "heartbeat_interval_s": 1.9,
        "lease_s": 6.0,
        "tick_s": 0.1,
        "max_attempts": 3,
        "retry_backoff_s": 1.0,
        "retry_backoff_limit_s": 60.0,
        "host_away_limit_s": 600.0,
        "keep_jobs_s": 604800.0,
        "keep_versions": 2,
        "retire_after_s": 60.0,
        "pin_limit_s": 86_400.0,
        "pins_per_space": 1000,
        "keep_builds_s": 86_400.0,
        "load_lease_s": 604_800.0,
    }
    flags = MetadSettings().flags()
    assert {name: flags[name] for name in documented} == documented


def test_job_policy_is_in_milliseconds() -> None:
    assert MetadSettings().job_policy() == JobPolicy()
    rules = MetadSettings(
        retry_backoff_s=0.25, host_away_limit_s=30, keep_jobs_s=60, max_attempts=5
    ).job_policy()
    assert (rules.backoff_ms, rules.away_limit_ms, rules.keep_jobs_ms, rules.max_attempts) == (
        250,
        30_000,
        60_000,
        5,
    )


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"lease_s": 3.0}, "more than three heartbeat intervals"),
        ({"heartbeat_interval_s": 2.0}, "more than three heartbeat intervals"),
        ({"retry_backoff_limit_s": 0.5}, "expected at least retry_backoff_s"),
        ({"host_away_limit_s": 6.0}, "expected more than lease_s"),
        ({"keep_versions": 0}, "greater than or equal to 1"),
        ({"leese_s": 9.0}, "Extra inputs"),
    ],
)
def test_inconsistent_times_are_refused(wrong: dict[str, float], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        MetadSettings(**wrong)  # type: ignore[arg-type]


def test_the_environment_and_flags_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASTERISM_METAD_LEASE_S", "9")
    assert MetadSettings().lease_s == 9.0
    settings = MetadSettings.read(["--data", "/somewhere", "--keep-versions", "3"])
    assert (settings.data, settings.keep_versions, settings.lease_s) == (Path("/somewhere"), 3, 9.0)
