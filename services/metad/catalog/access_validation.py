"""Checks of the values in requests of access control; each error names the argument."""

from __future__ import annotations

import math
import re
from dataclasses import fields

from asterism_proto.errors import InvalidRequest
from metad.model.access import EVERY_PRINCIPAL, AccessLimits

MAX_PRINCIPAL_CHARS = 128
MAX_DESCRIPTION_CHARS = 256
_KEY_ID = re.compile(r"[A-Za-z0-9_-]{12}")
_MAX_EXPIRES_S = 100 * 365 * 86_400.0
_MIN_SHARE, _MAX_SHARE = 0.001, 1000.0
_SHOWN_CHARS = 40
"""Characters of an invalid value that its error shows."""


def check_principal(principal: str, *, every: bool = False) -> None:
    """Raise InvalidRequest unless a name is valid for a principal.

    Parameters
    ----------
    principal : str
    every : bool
        Accept `EVERY_PRINCIPAL` too. Default False.
    """
    if principal == EVERY_PRINCIPAL and every:
        return
    if (
        not 1 <= len(principal) <= MAX_PRINCIPAL_CHARS
        or principal == EVERY_PRINCIPAL
        or not principal.isprintable()
        or principal != principal.strip()
    ):
        exception = "" if every else f", other than {EVERY_PRINCIPAL!r}"
        raise InvalidRequest(
            f"principal={_shortened(principal)}: expected 1 to {MAX_PRINCIPAL_CHARS} printable "
            f"characters without spaces at the ends{exception}"
        )


def check_description(description: str) -> None:
    """Raise InvalidRequest unless a description of an API key is short and printable."""
    if len(description) > MAX_DESCRIPTION_CHARS or not description.isprintable():
        raise InvalidRequest(
            f"description={_shortened(description)}: expected at most {MAX_DESCRIPTION_CHARS} "
            f"printable characters, found {len(description)}"
        )


def lifetime_ms(expires_s: float) -> int:
    """Return the lifetime of a new API key in milliseconds; 0 for a key that never expires."""
    if not (expires_s == 0 or 1 <= expires_s <= _MAX_EXPIRES_S):
        raise InvalidRequest(
            f"expires_s={expires_s:g}: expected 1 to {_MAX_EXPIRES_S:.0f} s from now, or 0 for a "
            "key that never expires"
        )
    return round(expires_s * 1000)


def check_key_id(key_id: str) -> None:
    """Raise InvalidRequest unless a text is the id of an API key.

    The error does not show the text: it may be a whole key, with its secret."""
    if not _KEY_ID.fullmatch(key_id):
        raise InvalidRequest(
            f"key_id: expected the 12 characters after 'ak_' of an API key, found {len(key_id)} "
            "characters; list the keys to see their ids"
        )


def check_limits(limits: AccessLimits) -> None:
    """Raise InvalidRequest unless all values of access limits are in their ranges."""
    check_principal(limits.principal, every=True)
    for field in fields(AccessLimits):
        value = getattr(limits, field.name)
        if isinstance(value, str) or field.name == "share":
            continue
        if not (math.isfinite(value) and value >= 0):
            raise InvalidRequest(
                f"{field.name}={value}: expected a positive number, or 0 for no limit"
            )
    if not (limits.share == 0 or _MIN_SHARE <= limits.share <= _MAX_SHARE):
        raise InvalidRequest(
            f"share={limits.share}: expected {_MIN_SHARE:g} to {_MAX_SHARE:g}, or 0 for 1"
        )


def _shortened(text: str) -> str:
    return repr(text) if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]!r}..."
