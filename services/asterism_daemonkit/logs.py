"""Logs: a past-tense event with fields, as text or as one JSON object per line.

Example::

logger.info("task_finished", extra={"task": 7, "rows": 10_000})"""

from __future__ import annotations

import json
import logging
import sys
import time

from asterism_daemonkit.recent_logs import RECENT_RECORDS, extra_fields

_PACKAGES = ("asterism_daemonkit", "asterism_standalone", "graphd", "metad", "storaged")


class _TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        time_text = time.strftime("%H:%M:%S", time.localtime(record.created))
        fields = "".join(f" {key}={value}" for key, value in extra_fields(record).items())
        line = (
            f"{time_text}.{int(record.msecs):03d} {record.levelname:<7} {record.name} "
            f"{record.getMessage()}{fields}"
        )
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class _JsonFormatter(logging.Formatter):
    def __init__(self, daemon: str) -> None:
        super().__init__()
        self._daemon = daemon

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": round(record.created, 3),
            "level": record.levelname,
            "daemon": self._daemon,
            "logger": record.name,
            "event": record.getMessage(),
            **extra_fields(record),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class _UnconfiguredHandler(logging.Handler):
    """Handler that prints errors if the program has not configured logging."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.setFormatter(_TextFormatter())

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record on stderr, unless another handler gets it."""
        if not logging.getLogger().handlers and sys.stderr is not None:
            print(self.format(record), file=sys.stderr, flush=True)


_UNCONFIGURED = _UnconfiguredHandler()


def print_errors_only() -> None:
    """Print errors of the daemons inside a program that configures no logging; idempotent.

    Without a handler, Python would print warnings too, and no record with its fields.
    """
    for package in (*_PACKAGES, "asterism_access", "asterism_io"):
        logging.getLogger(package).addHandler(_UNCONFIGURED)


def configure(*, daemon: str, json: bool, level: str) -> None:
    """Send all logs of this process to stderr. Called once, by a daemon's `__main__`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonFormatter(daemon) if json else _TextFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler, RECENT_RECORDS], force=True)
    # Loggers of object stores would reveal the headers of their requests.
    for logger_name in (
        "uvicorn",
        "uvicorn.access",
        "uvicorn.error",
        "numba",
        "asyncio",
        "fsspec",
        "s3fs",
        "aiobotocore",
        "botocore",
        "urllib3",
        "aiohttp",
    ):
        logging.getLogger(logger_name).setLevel(logging.WARNING)


def keep_recent_records() -> None:
    """Keep the records of a process that does not configure its logs as a daemon does.

    If the process has no logging of its own, warnings appear on stderr with their fields, and
    records of level INFO are kept too.
    """
    root = logging.getLogger()
    if RECENT_RECORDS in root.handlers:
        return
    if not root.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setLevel(logging.WARNING)
        handler.setFormatter(_TextFormatter())
        root.addHandler(handler)
        for package in _PACKAGES:
            logging.getLogger(package).setLevel(logging.INFO)
    root.addHandler(RECENT_RECORDS)
