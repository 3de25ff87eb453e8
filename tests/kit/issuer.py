"""An issuer of tokens as OpenID Connect has them: an HTTP server in this process, and its keys."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

AUDIENCE = "asterism"
PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


def new_private_key(algorithm: str) -> PrivateKey:
    """Return a new private key for an algorithm of tokens."""
    match algorithm:
        case "ES256":
            return ec.generate_private_key(ec.SECP256R1())
        case "ES384":
            return ec.generate_private_key(ec.SECP384R1())
        case "ES512":
            return ec.generate_private_key(ec.SECP521R1())
        case "EdDSA":
            return ed25519.Ed25519PrivateKey.generate()
        case _:
            return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@dataclass
class SigningKey:
    """Key with which an issuer signs."""

    key_id: str
    algorithm: str
    private: PrivateKey

    def jwk(self, **members: object) -> dict[str, Any]:
        """Return the public key as a JSON Web Key; a member of None is left out."""
        public = self.private.public_key()
        if isinstance(public, rsa.RSAPublicKey):
            jwk = RSAAlgorithm.to_jwk(public, as_dict=True)
        elif isinstance(public, ec.EllipticCurvePublicKey):
            jwk = ECAlgorithm.to_jwk(public, as_dict=True)
        else:
            jwk = OKPAlgorithm.to_jwk(public, as_dict=True)
        stated = {"kid": self.key_id, "use": "sig", "alg": self.algorithm, **members}
        return {
            name: value
            for name, value in {**jwk, "key_ops": None, **stated}.items()
            if value is not None
        }

    def sign(
        self, claims: Mapping[str, object] | bytes, header: Mapping[str, object] | None = None
    ) -> str:
        """Return a token with exactly these claims, and members of the header replaced."""
        payload = claims if isinstance(claims, bytes) else json.dumps(claims).encode()
        stated = {"alg": self.algorithm, "kid": self.key_id, "typ": "JWT", **(header or {})}
        encoded = json.dumps({k: v for k, v in stated.items() if v is not None}).encode()
        signed = f"{base64url(encoded)}.{base64url(payload)}"
        algorithm = jwt.get_algorithm_by_name(self.algorithm)
        return f"{signed}.{base64url(algorithm.sign(signed.encode(), self.private))}"


@dataclass
class Issuer:
    """An issuer at an address of this host.

    Its documents can be replaced, its answers delayed, and its requests are listed.
    """

    url: str
    documents: dict[str, Any] = field(default_factory=dict)
    """Answer by path: an object for JSON, bytes, or an int for a status without content."""
    requests: list[str] = field(default_factory=list)
    """Paths of the requests so far."""
    pace_s: float = 0.0
    """Seconds between the bytes of an answer."""
    clock: Callable[[], float] = time.time
    """Source of the times in claims, in seconds since 1970."""

    def publish(self, *keys: SigningKey | Mapping[str, object]) -> None:
        """Replace the published keys."""
        self.documents["/keys"] = {
            "keys": [key.jwk() if isinstance(key, SigningKey) else dict(key) for key in keys]
        }

    def claims(self, **changes: object) -> dict[str, object]:
        """Return the claims of a valid token of alice; one of None is left out."""
        now = int(self.clock())
        claims: dict[str, object] = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": "alice",
            "exp": now + 3600,
            "iat": now,
            "jti": "0a1b",
        }
        return {k: v for k, v in {**claims, **changes}.items() if v is not None}


@contextmanager
def running_issuer(tls: ssl.SSLContext | None = None) -> Iterator[Issuer]:
    """Yield an issuer that listens on 127.0.0.1, with discovery and no keys yet."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    scheme = "http" if tls is None else "https"
    issuer = Issuer(f"{scheme}://127.0.0.1:{server.server_address[1]}")
    issuer.documents["/.well-known/openid-configuration"] = {
        "issuer": issuer.url,
        "jwks_uri": f"{issuer.url}/keys",
    }
    _Handler.issuers[server] = issuer
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="issuer")
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        del _Handler.issuers[server]


def base64url(content: bytes) -> str:
    """Return base64url without padding."""
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


class _Handler(BaseHTTPRequestHandler):
    issuers: dict[object, Issuer] = {}  # noqa: RUF012  # one for all handlers, which servers make

    def do_GET(self) -> None:
        issuer = self.issuers[self.server]
        issuer.requests.append(self.path)
        document = issuer.documents.get(self.path, 404)
        if isinstance(document, int):
            self.send_response(document)
            self.send_header("Location", f"{issuer.url}/keys")
            self.end_headers()
            return
        content = document if isinstance(document, bytes) else json.dumps(document).encode()
        self.send_response(200)
        self.end_headers()
        if not issuer.pace_s:
            self.wfile.write(content)
            return
        pause = threading.Event()
        for i in range(len(content)):
            try:
                self.wfile.write(content[i : i + 1])
            except OSError:
                return  # the caller hung up
            pause.wait(issuer.pace_s)

    def log_message(self, format: str, *arguments: object) -> None:
        """Write nothing."""
