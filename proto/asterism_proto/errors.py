"""Errors of Asterism, as one tree and one table.

    AsterismError              gRPC code            HTTP  retry
     ├─ InvalidRequest         INVALID_ARGUMENT     400   never   the request cannot succeed as
                                                                  written
     ├─ NotFound               NOT_FOUND            404   never   the request names something that
                                                                  does not exist
     ├─ NotReady               FAILED_PRECONDITION  409   later   the request is valid, but too
                                                                  early
     ├─ Conflict               ALREADY_EXISTS       409   never   something of that name exists or
                                                                  is in progress
     ├─ Busy                   RESOURCE_EXHAUSTED   429   later   a queue is full, or memory is
                                                                  short
     │   └─ QuotaExceeded      RESOURCE_EXHAUSTED   429   later   a limit of the caller is reached
     ├─ Unauthenticated        UNAUTHENTICATED      401   never   no credentials, or none that are
                                                                  accepted
     ├─ Forbidden              PERMISSION_DENIED    403   never   the caller's roles do not permit
                                                                  it
     ├─ Unavailable            UNAVAILABLE          503   now     a required daemon does not
                                                                  respond
     │   └─ Deadline           DEADLINE_EXCEEDED    504   never   the deadline of the call has
                                                                  passed
     ├─ Stale                  ABORTED              409   now     made with a version that is not
                                                                  held
     ├─ Corrupt                DATA_LOSS            500   never   the data read differ from the data
                                                                  written
     └─ Internal               INTERNAL             500   never   an internal error; the message
                                                                  has its id in the log

A message describes the problem with the value, and the remedy. `asterism_proto.grpc_status` maps
errors to gRPC statuses and back."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from enum import Enum
from typing import ClassVar

REASON_KEY = "asterism-reason"
"""Trailing metadata key of the class name of an error."""
PLACE_KEY = "asterism-place"
"""Trailing metadata key of the location of an error in a text, as JSON."""
RETRY_AFTER_KEY = "asterism-retry-after-s"
"""Trailing metadata key of the seconds before which a retry is futile, as a decimal number."""
AUTHORIZATION_KEY = "authorization"
"""Metadata key of a request's credentials: ``Bearer`` and an API key, token or ticket."""
ON_BEHALF_KEY = "asterism-on-behalf-of"
"""Metadata key of a forwarded request: the principal that called the forwarding daemon."""
CALLER_KEY = "asterism-caller"
"""Metadata key of a request that names the caller; a server serves callers in turn."""


class Retry(Enum):
    """Advice for the caller on repeating a failed request."""

    NEVER = "never"
    LATER = "later"
    NOW = "now"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLocation:
    """Location of an error in a text of the request."""

    line: int
    """Line, counted from 1."""
    column: int
    """Column in characters, counted from 1; one past the last if the text ends too early."""
    expected: tuple[str, ...] = ()
    """Tokens that would be valid at this position."""
    incomplete: bool = False
    """True if the text is cut short, so that more text could make it valid."""

    def to_json(self) -> str:
        """Return the location as one line of ASCII, in the form used on the wire."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> SourceLocation | None:
        """Return the location in a text from the wire; None if it contains none."""
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
    """An error of Asterism.

    Parameters
    ----------
    message : str
        Description with the value and the remedy; by default the first line of the class's
        docstring.
    place : SourceLocation, optional
        Location of the error in a statement or filter.
    """

    code: ClassVar[str] = "UNKNOWN"
    http: ClassVar[int] = 500
    retry: ClassVar[Retry] = Retry.NEVER
    retry_after_s = 0.0
    """Seconds before which a retry is futile; 0: not known. Clients wait at least that long."""

    def __init__(self, message: str = "", place: SourceLocation | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").splitlines()[0])
        self.place = place
        """Location of the error in a statement or filter; None if it is not in one."""

    @property
    def message(self) -> str:
        """Description of the error, with the value and the remedy."""
        return str(self.args[0])


class InvalidRequest(AsterismError):
    """The request cannot succeed as written."""

    code = "INVALID_ARGUMENT"
    http = 400


class NotFound(AsterismError):
    """The request names something that does not exist."""

    code = "NOT_FOUND"
    http = 404


class NotReady(AsterismError):
    """The request is valid, but too early."""

    code = "FAILED_PRECONDITION"
    http = 409
    retry = Retry.LATER


class Conflict(AsterismError):
    """Something of that name exists or is in progress."""

    code = "ALREADY_EXISTS"
    http = 409


class Busy(AsterismError):
    """A queue is full or memory is short; try again in a moment."""

    code = "RESOURCE_EXHAUSTED"
    http = 429
    retry = Retry.LATER


class QuotaExceeded(Busy):
    """A limit of the caller is reached; the message names it and the seconds to wait.

    Parameters
    ----------
    message : str
    place : SourceLocation, optional
    retry_after_s : float
        Seconds until the limit permits the call; 0: not known.
    """

    def __init__(
        self, message: str = "", place: SourceLocation | None = None, retry_after_s: float = 0.0
    ) -> None:
        super().__init__(message, place)
        self.retry_after_s = retry_after_s


class Unauthenticated(AsterismError):
    """The call has no credentials, or credentials that are not accepted.

    Parameters
    ----------
    message : str
    place : SourceLocation, optional
    reason : str
        Reason in one word, such as ``"expired"``, for metrics. It is not sent to the caller.
    """

    code = "UNAUTHENTICATED"
    http = 401

    def __init__(
        self, message: str = "", place: SourceLocation | None = None, *, reason: str = "malformed"
    ) -> None:
        super().__init__(message, place)
        self.reason = reason


class Forbidden(AsterismError):
    """The caller's roles do not permit the call.

    For a space in which the caller has no role, the message is the same if the space does not
    exist.
    """

    code = "PERMISSION_DENIED"
    http = 403


class Unavailable(AsterismError):
    """A required daemon does not respond."""

    code = "UNAVAILABLE"
    http = 503
    retry = Retry.NOW
    never_arrived = False
    """True if the request certainly did not reach the daemon, so any call may be repeated."""


class Deadline(Unavailable):
    """The deadline of the call has passed."""

    code = "DEADLINE_EXCEEDED"
    http = 504
    retry = Retry.NEVER


class Stale(AsterismError):
    """The request was made with a version that is not held here."""

    code = "ABORTED"
    http = 409
    retry = Retry.NOW


class Corrupt(AsterismError):
    """The data read differ from the data written."""

    code = "DATA_LOSS"
    http = 500


class Internal(AsterismError):
    """An internal error of Asterism; the daemon's log has details under the id in the message."""

    code = "INTERNAL"
    http = 500


ALL: tuple[type[AsterismError], ...] = (
    InvalidRequest,
    NotFound,
    NotReady,
    Conflict,
    QuotaExceeded,
    Busy,
    Unauthenticated,
    Forbidden,
    Unavailable,
    Deadline,
    Stale,
    Corrupt,
    Internal,
)
"""All error classes that are sent over the wire."""

BY_REASON = {cls.__name__: cls for cls in ALL}
BY_CODE = {cls.code: cls for cls in ALL}


def parse_retry_after(text: str | None) -> float:
    """Return the seconds in the text from the wire; 0 if it contains no finite number above 0."""
    try:
        seconds = float(text or 0)
    except ValueError:
        return 0.0
    return seconds if 0 < seconds < math.inf else 0.0


def from_status(
    code: str,
    message: str,
    reason: str | None = None,
    place: str | None = None,
    retry_after_s: float = 0.0,
) -> AsterismError:
    """Return the error that a server sent.

    Parameters
    ----------
    code : str
        Name of the gRPC status code, such as ``"NOT_FOUND"``.
    message : str
        Text of the status.
    reason : str, optional
        Class name from the trailing metadata. If it is absent or unknown, the code decides.
    place : str, optional
        Location of the error in a text, from the trailing metadata.
    retry_after_s : float
        Seconds before which a retry is futile; 0: not known.

    Returns
    -------
    AsterismError
    """
    cls = BY_REASON.get(reason or "") or BY_CODE.get(code)
    if cls is None:
        return (
            Unavailable(f"{code}: {message}")
            if code == "CANCELLED"
            else Internal(f"{code}: {message}")
        )
    error = cls(message, SourceLocation.from_json(place) if place else None)
    error.retry_after_s = retry_after_s
    return error
