"""Verified credentials, and what their kinds have in common: sizes, times and names."""

from __future__ import annotations

import time
from dataclasses import dataclass

from asterism_access.principals import Principal

MAX_CREDENTIAL_CHARS = 16 * 1024
"""Characters of the longest credential that is looked at."""
MAX_NAME_CHARS = 256
"""Characters of the longest name of a principal."""
_LAST_S = 253402300799
"""Seconds of the end of the year 9999."""


@dataclass(frozen=True, slots=True)
class VerifiedCredential:
    """The principal of an accepted credential, and when it is no longer accepted."""

    principal: Principal
    expires_s: float
    """Seconds since 1970; infinity: never."""


def is_principal_name(name: str) -> bool:
    """Return whether a name can be that of a principal: printable, short, and not ``*``."""
    return 0 < len(name) <= MAX_NAME_CHARS and name.isprintable() and name.strip() == name != "*"


def utc_text(seconds: float) -> str:
    """Return a time in UTC, such as ``2026-11-26T21:00:00Z``."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(min(max(seconds, 0), _LAST_S)))
