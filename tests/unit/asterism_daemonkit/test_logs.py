"""Tests of logs on standard error."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from asterism_daemonkit.logs import _PACKAGES, keep_recent_records, print_errors_only
from asterism_daemonkit.recent_logs import RECENT_RECORDS


@pytest.fixture(autouse=True)
def levels_of_packages() -> Iterator[None]:
    """Restore the levels of packages."""
    levels = {name: logging.getLogger(name).level for name in _PACKAGES}
    yield
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def test_a_process_without_logs_shows_warnings_with_fields(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root, logger = logging.getLogger(), logging.getLogger("graphd.toy")
    monkeypatch.setattr(root, "handlers", [])  # without those of pytest
    keep_recent_records()
    keep_recent_records()  # once is enough
    logger.warning("http_request_invalid", extra={"cause": "not HTTP/1.1"})
    logger.info("call_ended")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("WARNING graphd.toy http_request_invalid cause=not HTTP/1.1")
    assert root.handlers.count(RECENT_RECORDS) == 1


def test_a_program_without_logging_shows_errors_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root, logger = logging.getLogger(), logging.getLogger("metad.toy")
    monkeypatch.setattr(root, "handlers", [])
    packages = [logging.getLogger(name) for name in (*_PACKAGES, "asterism_access", "asterism_io")]
    for package in packages:
        monkeypatch.setattr(package, "handlers", [])
    print_errors_only()
    print_errors_only()
    logger.warning("lease_expired", extra={"seconds": 3})
    logger.error("poll_failed", extra={"cause": "no memory"})
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("ERROR   metad.toy poll_failed cause=no memory")
    monkeypatch.setattr(root, "handlers", [logging.NullHandler()])
    logger.error("poll_failed")
    assert capsys.readouterr().err == "", "handlers of the program get it"
