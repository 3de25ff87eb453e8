"""Tests of the log records that a daemon keeps for the web pages."""

from __future__ import annotations

import logging

from asterism_daemonkit.recent_logs import MAX_CHARS, RecentRecords


def logger_with(handler: logging.Handler) -> logging.Logger:
    logger = logging.getLogger("storaged.test")
    logger.handlers[:] = [handler]
    logger.setLevel(logging.INFO)
    return logger


def test_the_newest_records_come_first_and_are_limited() -> None:
    kept = RecentRecords(max_records=3)
    logger = logger_with(kept)
    for number in range(5):
        logger.info("task_finished", extra={"task": number})
    assert [record.text for record in kept.newest()] == [
        "task_finished task=4",
        "task_finished task=3",
        "task_finished task=2",
    ]
    assert len(kept.newest(1)) == 1
    (newest,) = kept.newest(1)
    assert (newest.level, newest.logger) == ("INFO", "storaged.test")


def test_fields_that_may_hold_a_secret_are_left_out() -> None:
    kept = RecentRecords()
    fields = {"address": "s3://bucket", "secret_key": "abc", "sessionToken": "def"}
    logger_with(kept).warning("backup_failed", extra=fields)
    assert [record.text for record in kept.newest()] == ["backup_failed address=s3://bucket"]


def test_long_texts_and_odd_characters_are_kept_within_limits() -> None:
    kept = RecentRecords()
    logger = logger_with(kept)
    logger.error("x" * 10_000)
    logger.error("path_refused", extra={"path": "\udc80"})
    odd, long = kept.newest()
    assert odd.text == "path_refused path=?"
    assert len(long.text) <= MAX_CHARS + 4


def test_an_exception_is_kept_with_its_record() -> None:
    kept = RecentRecords()
    logger = logger_with(kept)
    try:
        raise ValueError("disk")
    except ValueError:
        logger.exception("task_crashed")
    assert kept.newest()[0].text == "task_crashed: ValueError('disk')"
