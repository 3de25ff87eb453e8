"""Exit codes: what a script can tell from a command that ended.

0    it is done
1    the operation failed: a job ended FAILED or STOPPED, draws that do not follow their weights, a
     damaged export, a fault of Asterism's own
2    wrong usage, or a request that can not succeed as written
3    what the command names is not there
4    not now: not ready, not reachable, too busy; try again later
5    something of that name is there already
6    time ran out
7    what was read is not what was written
130  interrupted from the keyboard
"""

from __future__ import annotations

from enum import IntEnum

from asterism_proto import errors


class ExitCode(IntEnum):
    """How a command ended."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    UNAVAILABLE = 4
    CONFLICT = 5
    TIMEOUT = 6
    CORRUPT = 7
    INTERRUPTED = 130


_BY_ERROR: dict[type[errors.AsterismError], ExitCode] = {
    errors.InvalidRequest: ExitCode.USAGE,
    errors.NotFound: ExitCode.NOT_FOUND,
    errors.NotReady: ExitCode.UNAVAILABLE,
    errors.Conflict: ExitCode.CONFLICT,
    errors.Busy: ExitCode.UNAVAILABLE,
    errors.Unavailable: ExitCode.UNAVAILABLE,
    errors.Deadline: ExitCode.TIMEOUT,
    errors.Stale: ExitCode.UNAVAILABLE,
    errors.Corrupt: ExitCode.CORRUPT,
    errors.Internal: ExitCode.FAILED,
}


def exit_code_of(error: errors.AsterismError) -> ExitCode:
    """The exit code of an error's class, or of the nearest class above it."""
    return next(
        (_BY_ERROR[cls] for cls in type(error).__mro__ if cls in _BY_ERROR), ExitCode.FAILED
    )
