"""Signatures of tickets and sessions: HMAC-SHA256 in base64url without padding.

Each kind of text begins with a prefix of its own, which is signed too, so that none passes for
another.
"""

from __future__ import annotations

import base64
import hmac

SIGNATURE_CHARS = 43
"""Characters of a signature."""


def signature(signed: str, key: bytes) -> str:
    """Return the signature of a text."""
    return base64_text(hmac.digest(key, signed.encode("ascii"), "sha256"))


def base64_text(content: bytes) -> str:
    """Return bytes in base64url without padding."""
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode("ascii")


def base64_content(text: str) -> bytes:
    """Return the bytes of a text in base64url without padding; ValueError if it is none."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
