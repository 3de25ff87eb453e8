"""Tests of the settings of the audit log."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pydantic_settings import SettingsConfigDict

from asterism_access.audit_log import read_audit_log
from asterism_access.principals import LOCAL
from asterism_daemonkit.audit_settings import AuditSettings
from asterism_daemonkit.settings import DaemonSettings
from asterism_proto.errors import InvalidRequest


class AuditedSettings(AuditSettings, DaemonSettings):
    """Settings of a daemon with an audit log."""

    model_config = SettingsConfigDict(env_prefix="ASTERISM_AUDITED_", frozen=True, extra="forbid")


def test_settings_open_a_log_that_reports_its_records(tmp_path: Path) -> None:
    assert AuditedSettings.read([]).open_audit_log() is None
    settings = AuditedSettings.read(
        ["--audit-file", str(tmp_path / "audit"), "--audit-max-mib", "1", "--audit-files", "2"]
    )
    written: list[bool] = []
    log = settings.open_audit_log(written.append)
    assert log is not None
    log.record(LOCAL, method="DropSpace", deadline=time.monotonic() + 600)
    log.close()
    assert written == [True]
    assert len(list(read_audit_log(tmp_path / "audit"))) == 1


@pytest.mark.parametrize(
    ("flag", "value"), [("--audit-max-mib", "0"), ("--audit-files", "0"), ("--audit-files", "1001")]
)
def test_numbers_out_of_range_are_refused_by_name(flag: str, value: str) -> None:
    with pytest.raises(InvalidRequest, match=flag[2:].replace("-", "_")):
        AuditedSettings.read([flag, value])


def test_a_file_that_cannot_be_written_stops_the_start(tmp_path: Path) -> None:
    settings = AuditedSettings.read(["--audit-file", str(tmp_path)])
    with pytest.raises(InvalidRequest, match="audit_file="):
        settings.open_audit_log()
