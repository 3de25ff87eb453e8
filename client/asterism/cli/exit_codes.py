"""Exit codes of the command.

0    success
1    the operation failed: a job ended FAILED or STOPPED, samples do not follow their weights, an
     export is damaged, or there was an internal error
2    wrong usage, or a request that cannot succeed as written
3    something that the command names does not exist
4    temporarily unavailable: not ready, unreachable or busy; retry later
5    the name exists already
6    timeout
7    corrupt data: what was read is not what was written
8    no credentials that are accepted, or a role that does not permit it
130  interrupted from the keyboard
"""

from __future__ import annotations

from enum import IntEnum

from asterism_proto import errors


class ExitCode(IntEnum):
    """Exit code of a command."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    UNAVAILABLE = 4
    CONFLICT = 5
    TIMEOUT = 6
    CORRUPT = 7
    FORBIDDEN = 8
    INTERRUPTED = 130


_BY_ERROR: dict[type[errors.AsterismError], ExitCode] = {
    errors.InvalidRequest: ExitCode.USAGE,
    errors.NotFound: ExitCode.NOT_FOUND,
    errors.NotReady: ExitCode.UNAVAILABLE,
    errors.Conflict: ExitCode.CONFLICT,
    errors.Busy: ExitCode.UNAVAILABLE,
    errors.QuotaExceeded: ExitCode.UNAVAILABLE,
    errors.Unavailable: ExitCode.UNAVAILABLE,
    errors.Deadline: ExitCode.TIMEOUT,
    errors.Stale: ExitCode.UNAVAILABLE,
    errors.Corrupt: ExitCode.CORRUPT,
    errors.Unauthenticated: ExitCode.FORBIDDEN,
    errors.Forbidden: ExitCode.FORBIDDEN,
    errors.Internal: ExitCode.FAILED,
}


def exit_code_of(error: errors.AsterismError) -> ExitCode:
    """Return the exit code of the class of an error, or of its nearest base class."""
    return next(
        (_BY_ERROR[cls] for cls in type(error).__mro__ if cls in _BY_ERROR), ExitCode.FAILED
    )
