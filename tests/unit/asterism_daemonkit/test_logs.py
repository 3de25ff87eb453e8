"""Tests of logs on standard error."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from asterism_daemonkit.logs import _PACKAGES, keep_recent_records
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
