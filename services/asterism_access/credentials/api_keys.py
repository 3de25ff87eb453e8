"""API keys: ``ak_<key id>_<secret>``. The catalog keeps the SHA-256 of a secret only.

A secret has 256 random bits, so that a fast hash without salt protects it.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import string
from dataclasses import dataclass, field

from asterism_proto.errors import Unauthenticated

PREFIX = "ak_"
KEY_ID_CHARS = 12
SECRET_CHARS = 43
_SECRET_BYTES = 32
_ID_ALPHABET = string.ascii_letters + string.digits
"""Characters of new key ids: without ``-``, so that none looks like an option of a command."""
_FORM = re.compile(rf"ak_([A-Za-z0-9_-]{{{KEY_ID_CHARS}}})_([A-Za-z0-9_-]{{{SECRET_CHARS}}})")


@dataclass(frozen=True, slots=True)
class ApiKeySecret:
    """An API key with its secret. Its representation shows the key id only."""

    key_id: str
    """Public part, url-safe characters."""
    secret: str = field(repr=False)
    hash: bytes = field(repr=False)
    """SHA-256 of the secret, shape (32,)."""

    @property
    def text(self) -> str:
        """The whole key, as clients send it."""
        return f"{PREFIX}{self.key_id}_{self.secret}"

    def matches(self, secret_hash: bytes) -> bool:
        """Return whether a hash is that of the secret, in a time that does not depend on it."""
        return hmac.compare_digest(self.hash, secret_hash)


def generate() -> ApiKeySecret:
    """Return a new random key."""
    key_id = "".join(secrets.choice(_ID_ALPHABET) for _ in range(KEY_ID_CHARS))
    return _with_hash(key_id, secrets.token_urlsafe(_SECRET_BYTES))


def parse(text: str) -> ApiKeySecret:
    """Return the parts of an API key.

    Raises
    ------
    Unauthenticated
        If the text does not have the form of a key. The message does not show the text.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise Unauthenticated(
            f"api_key: expected 'ak_', a key id of {KEY_ID_CHARS} characters, '_' and a secret of "
            f"{SECRET_CHARS} characters; copy the whole key"
        )
    return _with_hash(match[1], match[2])


def _with_hash(key_id: str, secret: str) -> ApiKeySecret:
    return ApiKeySecret(key_id, secret, hashlib.sha256(secret.encode("ascii")).digest())
