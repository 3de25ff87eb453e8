"""Every error that crosses a door, as one tree and one table.

    AsterismError              gRPC code            HTTP  retry
     ├─ InvalidRequest         INVALID_ARGUMENT     400   never   the request can not succeed as
                                                                  written
     ├─ NotFound               NOT_FOUND            404   never   what it names is not there
     ├─ NotReady               FAILED_PRECONDITION  409   later   the right question, too early
     ├─ Conflict               ALREADY_EXISTS       409   never   something of that name is there or
                                                                  under way
     ├─ Busy                   RESOURCE_EXHAUSTED   429   later   a queue is full, or memory is
                                                                  short
     ├─ Unavailable            UNAVAILABLE          503   now     a daemon that is needed does not
                                                                  answer
     │   └─ Deadline           DEADLINE_EXCEEDED    504   never   the caller's time is up
     ├─ Stale                  ABORTED              409   now     made with a version that is not
                                                                  held
     ├─ Corrupt                DATA_LOSS            500   never   what was read is not what was
                                                                  written
     └─ Internal               INTERNAL             500   never   a fault of ours; the message
                                                                  carries its id in the log

A message says what was wrong, with the value, and what to do. `asterism_proto.grpc_status` maps
errors to gRPC statuses and back."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import Enum
from typing import ClassVar

REASON_KEY = "asterism-reason"
"""Trailing metadata key that names the class of an error."""
PLACE_KEY = "asterism-place"
"""Trailing metadata key of where in a text an error is, as JSON."""
CALLER_KEY = "asterism-caller"
"""Metadata key of a request, by which a server tells callers apart: they take turns."""


class Retry(Enum):
    """What a caller may do about an error."""

    NEVER = "never"
    LATER = "later"
    NOW = "now"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLocation:
    """Where in a text that was sent something is wrong."""

    line: int
    """From 1."""
    column: int
    """Characters from 1; one past the last where something is missing at the end."""
    expected: tuple[str, ...] = ()
    """What may stand there."""
    incomplete: bool = False
    """Whether more of the text could make it right: it is cut short, not wrong."""

    def to_json(self) -> str:
        """As it travels: one line of ASCII."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> SourceLocation | None:
        """What came; None where it is none."""
        try:
            data = json.loads(text)
            return cls(
                line=int(data["line"]),
                column=int(data["column"]),
                expected=tuple(map(str, data["expected"])),
                incomplete=bool(data["incomplete"]),
            )
        except (ValueError, KeyError, TypeError):
            return None


Place = SourceLocation
"""Name of `SourceLocation` in earlier releases."""


class AsterismError(Exception):
    """Something went wrong in Asterism."""

    code: ClassVar[str] = "UNKNOWN"
    http: ClassVar[int] = 500
    retry: ClassVar[Retry] = Retry.NEVER

    def __init__(self, message: str = "", place: SourceLocation | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").splitlines()[0])
        self.place = place
        """Where in a statement or condition it is, where it is in one."""

    @property
    def message(self) -> str:
        """What was wrong, with the value, and what to do."""
        return str(self.args[0])


class InvalidRequest(AsterismError):
    """The request can not succeed as written."""

    code = "INVALID_ARGUMENT"
    http = 400


class NotFound(AsterismError):
    """What the request names is not there."""

    code = "NOT_FOUND"
    http = 404


class NotReady(AsterismError):
    """The right question, asked too early."""

    code = "FAILED_PRECONDITION"
    http = 409
    retry = Retry.LATER


class Conflict(AsterismError):
    """Something of that name is there or under way."""

    code = "ALREADY_EXISTS"
    http = 409


class Busy(AsterismError):
    """A queue is full or memory is short; try again in a moment."""

    code = "RESOURCE_EXHAUSTED"
    http = 429
    retry = Retry.LATER


class Unavailable(AsterismError):
    """A daemon that is needed does not answer."""

    code = "UNAVAILABLE"
    http = 503
    retry = Retry.NOW
    never_arrived = False
    """Whether the request certainly did not reach the daemon, so that any call may be repeated."""


class Deadline(Unavailable):
    """The caller's time is up."""

    code = "DEADLINE_EXCEEDED"
    http = 504
    retry = Retry.NEVER


class Stale(AsterismError):
    """The request was made with a version that is not held here."""

    code = "ABORTED"
    http = 409
    retry = Retry.NOW


class Corrupt(AsterismError):
    """What was read is not what was written."""

    code = "DATA_LOSS"
    http = 500


class Internal(AsterismError):
    """A fault of Asterism's own; its log has the story under the id in the message."""

    code = "INTERNAL"
    http = 500


ALL: tuple[type[AsterismError], ...] = (
    InvalidRequest,
    NotFound,
    NotReady,
    Conflict,
    Busy,
    Unavailable,
    Deadline,
    Stale,
    Corrupt,
    Internal,
)
"""Every class that crosses a door."""

BY_REASON = {cls.__name__: cls for cls in ALL}
BY_CODE = {cls.code: cls for cls in ALL}


def from_status(
    code: str, message: str, reason: str | None = None, place: str | None = None
) -> AsterismError:
    """Give back the error that a server sent.

    Parameters
    ----------
    code : str
        Name of the gRPC status code, such as ``"NOT_FOUND"``.
    message : str
        Its text.
    reason : str, optional
        The class name from the trailing metadata; where it is absent or unknown the code decides.
    place : str, optional
        Where in a text it is, from the trailing metadata.
    """
    cls = BY_REASON.get(reason or "") or BY_CODE.get(code)
    if cls is None:
        return (
            Unavailable(f"{code}: {message}")
            if code == "CANCELLED"
            else Internal(f"{code}: {message}")
        )
    return cls(message, SourceLocation.from_json(place) if place else None)
