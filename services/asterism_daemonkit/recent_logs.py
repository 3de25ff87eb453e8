"""The newest log records of this process, kept in memory for the web pages.

Their number and length are limited. Fields that may hold a secret are left out.
"""

from __future__ import annotations

import logging
from collections import deque

from asterism_daemonkit.rpc.call_context import CallContext
from asterism_proto.v1 import common_pb2 as common_pb

MAX_RECORDS = 200
MAX_CHARS = 500
"""Maximum characters of a record; longer ones are cut."""
_STANDARD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_SECRET_WORDS = ("secret", "password", "passwd", "token", "credential", "authorization", "api_key")
"""A field with one of these words in its name may hold a secret."""


def extra_fields(record: logging.LogRecord) -> dict[str, object]:
    """Return the fields that a log call added to a record."""
    return {key: value for key, value in vars(record).items() if key not in _STANDARD_FIELDS}


class RecentRecords(logging.Handler):
    """Logging handler that keeps the newest records in memory."""

    def __init__(self, max_records: int = MAX_RECORDS) -> None:
        super().__init__()
        self._records: deque[common_pb.LogRecord] = deque(maxlen=max_records)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record."""
        try:
            self._records.append(
                common_pb.LogRecord(
                    time_ms=int(record.created * 1000),
                    level=record.levelname,
                    logger=record.name,
                    text=_text(record),
                )
            )
        except Exception:
            self.handleError(record)

    def newest(self, limit: int = 0) -> list[common_pb.LogRecord]:
        """Return the newest records, newest first; 0: all."""
        records = list(self._records)[::-1]
        return records[:limit] if limit else records


RECENT_RECORDS = RecentRecords()
"""Records of this process; empty until the handler is added to a logger."""


def list_log_records(
    request: common_pb.ListLogRecordsRequest, call: CallContext
) -> common_pb.LogRecordList:
    """Return the newest log records of this process: the handler of every daemon."""
    return common_pb.LogRecordList(records=RECENT_RECORDS.newest(request.limit))


def _text(record: logging.LogRecord) -> str:
    fields = "".join(
        f" {name}={value}"
        for name, value in extra_fields(record).items()
        if not any(word in name.lower() for word in _SECRET_WORDS)
    )
    fault = record.exc_info[1] if record.exc_info else None
    text = f"{record.getMessage()}{fields}" + (f": {fault!r}" if fault is not None else "")
    # A protobuf string takes no lone surrogates, which paths may contain.
    text = text.encode(errors="replace").decode()
    return text if len(text) <= MAX_CHARS else f"{text[:MAX_CHARS]} ..."
