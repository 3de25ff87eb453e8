"""Public keys of an issuer of tokens, as a JSON Web Key Set (RFC 7517) in a file or at a URL.

Keys at a URL are fetched when the first token comes, again when they are ten minutes old, and when
a token names an unknown key; at most once in 30 seconds. They stay if fetching fails.
"""

from __future__ import annotations

import http.client
import json
import logging
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import get_default_algorithms

from asterism_io.certificate_files import FileReloader, new_context
from asterism_io.loopback import is_loopback_host
from asterism_proto.errors import InvalidRequest, Unavailable

logger = logging.getLogger(__name__)

_RSA = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"})
_BY_CURVE: Mapping[tuple[str, str], frozenset[str]] = {
    ("EC", "P-256"): frozenset({"ES256"}),
    ("EC", "P-384"): frozenset({"ES384"}),
    ("EC", "P-521"): frozenset({"ES512"}),
    ("OKP", "Ed25519"): frozenset({"EdDSA"}),
}
ALGORITHMS = _RSA.union(*_BY_CURVE.values())
"""Signature algorithms that are accepted: those with public keys."""
_PUBLIC_MEMBERS = ("kty", "n", "e", "crv", "x", "y")
_MIN_RSA_BITS = 2048
_MAX_BYTES = 1024 * 1024
_MAX_KEYS = 100
_TIMEOUT_S = 5.0
_WAIT_S = 1.0
"""Seconds that a token of an unknown key waits for another thread's fetch.

Callers without a credential can send such tokens, and must not hold threads for long."""
_MIN_INTERVAL_S = 30.0
"""Seconds between two fetches."""
_MAX_AGE_S = 600.0
"""Age in seconds at which keys are fetched again."""
_LOOK_S = 1.0
"""Seconds between two looks at a file of keys."""
_DISCOVERY_PATH = "/.well-known/openid-configuration"


class IssuerKey:
    """Public key of an issuer.

    Parameters
    ----------
    jwk : mapping
        JSON Web Key; private members are left out.

    Raises
    ------
    ValueError
        If the key is malformed, not for signatures, too weak, or of an unsupported kind.
    """

    def __init__(self, jwk: Mapping[str, Any]) -> None:
        key_id, kind, curve = (jwk.get(name, "") for name in ("kid", "kty", "crv"))
        if not all(isinstance(value, str) for value in (key_id, kind, curve)):
            raise ValueError("kid, kty and crv: expected text")
        fitting = _RSA if kind == "RSA" else _BY_CURVE.get((kind, curve), frozenset())
        if "alg" in jwk:
            fitting &= {str(jwk["alg"])}
        if jwk.get("use", "sig") != "sig" or "verify" not in jwk.get("key_ops", ["verify"]):
            fitting = frozenset()
        if not fitting:
            raise ValueError("expected a public key for signatures")
        public = {name: jwk[name] for name in _PUBLIC_MEMBERS if name in jwk}
        try:
            self._key = jwt.PyJWK(public, min(fitting)).key
        except (jwt.PyJWTError, KeyError, TypeError, AttributeError) as error:
            raise ValueError("expected the members of its kind of key") from error
        if isinstance(self._key, rsa.RSAPublicKey) and self._key.key_size < _MIN_RSA_BITS:
            raise ValueError(f"expected at least {_MIN_RSA_BITS} bits")
        self.key_id = str(key_id)
        """Id of the key; empty if it has none."""
        self.algorithms = fitting
        """Algorithms that the key is for."""
        self.identity = json.dumps([self.key_id, sorted(fitting), public], sort_keys=True)
        """Text that is equal for equal keys."""

    def verify(self, signed: bytes, signature: bytes, algorithm: str) -> bool:
        """Return whether the key signed a text with one of its algorithms."""
        return algorithm in self.algorithms and bool(
            get_default_algorithms()[algorithm].verify(signed, self._key, signature)
        )


class KeySource(Protocol):
    """Keys of one issuer."""

    @property
    def revision(self) -> int:
        """Number that grows when the keys change."""

    def find(self, key_id: str, algorithm: str) -> Sequence[IssuerKey]:
        """Return the keys that a token may be signed with.

        Parameters
        ----------
        key_id : str
            Empty for a token that names none: it may be signed with an only key.
        algorithm : str

        Raises
        ------
        Unavailable
            If no keys could be fetched yet.
        """


class KeyFile:
    """Keys in a file, read again within a second after it changes.

    Raises
    ------
    InvalidRequest
        If the file cannot be read, or has no usable key.
    """

    def __init__(self, path: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._files = FileReloader(
            [path],
            lambda: _read_keys(path),
            events="token_keys",
            interval_s=_LOOK_S,
            clock=clock,
        )

    @property
    def revision(self) -> int:
        """Number that grows when the keys change."""
        return self._files.current()[1]

    def find(self, key_id: str, algorithm: str) -> Sequence[IssuerKey]:
        """Return the keys that a token may be signed with; see `KeySource`."""
        return _fitting(self._files.current()[0], key_id, algorithm)


class KeyUrl:
    """Keys at a URL.

    Parameters
    ----------
    url : str
        Address of the keys; empty: the one in the issuer's OpenID configuration.
    issuer : str
        Name of the issuer in tokens, and without ``url`` the address of the configuration.
    clock : callable
        Returns monotonic seconds.

    Raises
    ------
    InvalidRequest
        If the address cannot be used: it is not https, nor http on this host.
    """

    def __init__(self, url: str, issuer: str, clock: Callable[[], float] = time.monotonic) -> None:
        if url:
            _check_url(url, "token_jwks")
        else:
            _check_url(issuer, "token_issuer")
        self._url = url
        self._issuer = issuer
        self._clock = clock
        self._lock = threading.Lock()
        self._keys: tuple[IssuerKey, ...] = ()
        self._revision = 0
        self._tried_s: float | None = None
        self._fault = ""

    @property
    def revision(self) -> int:
        """Number that grows when the keys change."""
        return self._revision

    def find(self, key_id: str, algorithm: str) -> Sequence[IssuerKey]:
        """Return the keys that a token may be signed with; see `KeySource`."""
        if self._tried_s is not None and self._clock() - self._tried_s > _MAX_AGE_S:
            self._fetch(wait_s=0)
        found = _fitting(self._keys, key_id, algorithm)
        if not found:
            self._fetch(wait_s=_WAIT_S if self._keys else 2 * _TIMEOUT_S)
            found = _fitting(self._keys, key_id, algorithm)
        if not self._keys:
            raise Unavailable(
                f"token_issuer={self._issuer!r}: expected its keys, which cannot be fetched "
                f"({self._fault}); try again later, or use an API key"
            )
        return found

    def _fetch(self, wait_s: float) -> None:
        """Fetch the keys, unless another thread does so for longer, or they were fetched lately."""
        if not self._lock.acquire(timeout=wait_s):
            return
        try:
            if self._tried_s is not None and self._clock() - self._tried_s < _MIN_INTERVAL_S:
                return
            try:
                keys = _parse_keys(_download(self._url or self._discovered_url()))
            except _UnusableKeys as error:
                self._fault = str(error)
                logger.warning(
                    "token_keys_not_fetched",
                    extra={"issuer": self._issuer, "reason": self._fault},
                )
            else:
                if {key.identity for key in keys} != {key.identity for key in self._keys}:
                    self._keys = keys
                    self._revision += 1
                    logger.info(
                        "token_keys_fetched", extra={"issuer": self._issuer, "keys": len(keys)}
                    )
            self._tried_s = self._clock()
        finally:
            self._lock.release()

    def _discovered_url(self) -> str:
        address = self._issuer.rstrip("/") + _DISCOVERY_PATH
        configuration = _json_object(_download(address), "OpenID configuration")
        if configuration.get("issuer") != self._issuer:
            raise _UnusableKeys(
                f"the configuration at {address} is of another issuer; write token_issuer as there"
            )
        url = configuration.get("jwks_uri")
        if not isinstance(url, str):
            raise _UnusableKeys(f"the configuration at {address} has no jwks_uri")
        try:
            _check_url(url, "jwks_uri")
        except InvalidRequest as error:
            raise _UnusableKeys(error.message) from error
        return url


class _UnusableKeys(Exception):
    """Keys that cannot be fetched or read; the text is the reason."""


def key_source(jwks: str, issuer: str) -> KeySource:
    """Return the keys that settings name.

    Parameters
    ----------
    jwks : str
        File or URL; empty: the URL in the issuer's configuration.
    issuer : str

    Raises
    ------
    InvalidRequest
        If the file or address cannot be used.
    """
    return KeyFile(jwks) if jwks and "://" not in jwks else KeyUrl(jwks, issuer)


def _fitting(keys: Sequence[IssuerKey], key_id: str, algorithm: str) -> Sequence[IssuerKey]:
    fitting = [key for key in keys if algorithm in key.algorithms]
    if key_id:
        return [key for key in fitting if key.key_id == key_id]
    return fitting if len(fitting) == 1 else []


def _read_keys(path: str) -> tuple[IssuerKey, ...]:
    try:
        with open(path, "rb") as file:
            return _parse_keys(file.read(_MAX_BYTES + 1))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidRequest(
            f"token_jwks={path!r}: expected a readable file ({reason.lower()})"
        ) from error
    except _UnusableKeys as error:
        raise InvalidRequest(
            f"token_jwks={path!r}: expected the public keys of the issuer ({error})"
        ) from error


def _parse_keys(content: bytes) -> tuple[IssuerKey, ...]:
    """Return the usable keys of a key set. Others are left out, as RFC 7517 requires."""
    entries = _json_object(content, "key set").get("keys")
    if not isinstance(entries, list) or len(entries) > _MAX_KEYS:
        raise _UnusableKeys(f"the key set has no list `keys` of at most {_MAX_KEYS} keys")
    keys = []
    for entry in entries:
        try:
            keys.append(IssuerKey(entry if isinstance(entry, dict) else {}))
        except (ValueError, TypeError) as error:
            logger.debug("token_key_left_out", extra={"reason": str(error)})
    if not keys:
        raise _UnusableKeys("the key set has no key for RSA, ECDSA or Ed25519 signatures")
    return tuple(keys)


def _json_object(content: bytes, name: str) -> Mapping[str, Any]:
    if len(content) > _MAX_BYTES:
        raise _UnusableKeys(f"the {name} has more than {_MAX_BYTES} bytes")
    try:
        data = json.loads(content)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise _UnusableKeys(f"the {name} is not a JSON object")
    return data


def _check_url(url: str, name: str) -> None:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        host, parts = "", urlsplit("")
    is_private = parts.scheme == "https" or (parts.scheme == "http" and is_loopback_host(host))
    if not host or not is_private or "@" in parts.netloc or not url.isascii() or " " in url:
        raise InvalidRequest(
            f"{name}={url!r}: expected an address https://... without a password (http for this "
            "host only)"
        )


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *arguments: object, **more: object) -> None:
        """Refuse: the address of keys is that of the settings or the configuration."""


def _download(url: str) -> bytes:
    """Return the content of a URL, with `_MAX_BYTES` + 1 bytes if it is longer."""
    context = new_context(ssl.PROTOCOL_TLS_CLIENT)
    context.load_default_certs()
    handlers: list[urllib.request.BaseHandler] = [
        _NoRedirects(),
        urllib.request.HTTPSHandler(context=context),
    ]
    if is_loopback_host(urlsplit(url).hostname or ""):
        handlers.append(urllib.request.ProxyHandler({}))
    request = urllib.request.Request(url, headers={"Accept": "application/json"})
    ends_s = time.monotonic() + _TIMEOUT_S
    content = bytearray()
    try:
        with urllib.request.build_opener(*handlers).open(request, timeout=_TIMEOUT_S) as response:
            while len(content) <= _MAX_BYTES and (part := response.read1(65536)):
                content += part
                if time.monotonic() > ends_s:
                    raise TimeoutError("timed out")
    except urllib.error.HTTPError as error:
        error.close()
        raise _UnusableKeys(f"{url}: HTTP status {error.code}") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise _UnusableKeys(f"{url}: {reason}") from error
    return bytes(content[: _MAX_BYTES + 1])
