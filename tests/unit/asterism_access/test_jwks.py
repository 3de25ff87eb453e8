"""Tests of the keys of issuers: accepted keys, files, and keys at addresses."""

from __future__ import annotations

import json
import logging
import ssl
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from tests.kit.certificates import Authority
from tests.kit.issuer import Issuer, SigningKey, new_private_key, running_issuer

from asterism_access.credentials import jwks
from asterism_access.credentials.jwks import ALGORITHMS, IssuerKey, KeyFile, KeyUrl, key_source
from asterism_proto.errors import InvalidRequest, Unavailable

RSA = new_private_key("RS256")
ONE, TWO = (SigningKey(name, "ES256", new_private_key("ES256")) for name in ("one", "two"))


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with running_issuer() as issuer:
        issuer.publish(ONE)
        yield issuer


@pytest.fixture
def clock() -> Clock:
    return Clock()


def ids(found: object) -> list[str]:
    assert isinstance(found, list)
    return [key.key_id for key in found]


@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
def test_a_key_verifies_what_it_signed_and_nothing_else(algorithm: str) -> None:
    private = RSA if algorithm[:2] in ("RS", "PS") else new_private_key(algorithm)
    signing = SigningKey("a", algorithm, private)
    signed, _, signature = signing.sign({}).rpartition(".")
    key = IssuerKey(signing.jwk())
    content = jwks.jwt.utils.base64url_decode(signature)
    assert key.algorithms == {algorithm}
    assert key.verify(signed.encode(), content, algorithm)
    assert not key.verify(signed.encode() + b" ", content, algorithm)
    assert not key.verify(signed.encode(), content[:-1], algorithm)
    assert not key.verify(signed.encode(), b"", algorithm)
    assert not any(
        key.verify(signed.encode(), content, other)
        for other in (*ALGORITHMS, "HS256", "none")
        if other != algorithm
    )


def test_a_key_without_an_algorithm_is_for_those_of_its_kind() -> None:
    of_rsa = IssuerKey(SigningKey("a", "RS256", RSA).jwk(alg=None))
    assert of_rsa.algorithms == {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}
    assert IssuerKey(ONE.jwk(alg=None, use=None, kid=None)).algorithms == {"ES256"}


def weak() -> dict[str, Any]:
    private = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    return SigningKey("a", "RS256", private).jwk()


@pytest.mark.parametrize(
    "jwk",
    [
        {},
        {"kty": "oct", "k": "c2VjcmV0", "alg": "HS256"},
        ONE.jwk(kty="oct", k="c2VjcmV0"),
        ONE.jwk(alg="HS256"),
        ONE.jwk(alg="RS256"),
        ONE.jwk(use="enc"),
        ONE.jwk(key_ops=["sign"]),
        ONE.jwk(kid=7),
        ONE.jwk(kty=["EC"]),
        ONE.jwk(crv="P-384"),
        ONE.jwk(crv="secp256k1", alg="ES256K"),
        ONE.jwk(x=None),
        ONE.jwk(x=7),
        ONE.jwk(x="AAAA"),
        ONE.jwk(y=ONE.jwk()["x"]),
        SigningKey("a", "RS256", RSA).jwk(n=None),
        SigningKey("a", "RS256", RSA).jwk(n="!"),
        SigningKey("a", "EdDSA", new_private_key("EdDSA")).jwk(x="AAAA"),
        weak(),
    ],
)
def test_other_keys_are_refused(jwk: Mapping[str, Any]) -> None:
    with pytest.raises(ValueError, match="expected"):
        IssuerKey(jwk)


def test_unusable_keys_of_a_set_are_left_out(issuer: Issuer, clock: Clock) -> None:
    issuer.publish({"kty": "future"}, ONE, ONE.jwk(use="enc"))
    keys = KeyUrl("", issuer.url, clock)
    assert ids(keys.find("one", "ES256")) == ["one"]
    assert ids(keys.find("", "ES256")) == ["one"]


def test_an_id_names_the_keys_that_fit_the_algorithm(issuer: Issuer, clock: Clock) -> None:
    same_id = SigningKey("one", "EdDSA", new_private_key("EdDSA"))
    issuer.publish(ONE, TWO, same_id)
    keys = KeyUrl("", issuer.url, clock)
    assert [key.algorithms for key in keys.find("one", "EdDSA")] == [{"EdDSA"}]
    assert ids(keys.find("two", "ES256")) == ["two"]
    assert ids(keys.find("two", "EdDSA")) == ids(keys.find("three", "ES256")) == []
    assert ids(keys.find("", "EdDSA")) == ["one"]
    assert ids(keys.find("", "ES256")) == []


def test_keys_are_fetched_again_for_an_unknown_id(issuer: Issuer, clock: Clock) -> None:
    """At most once in 30 seconds, and through the issuer's configuration each time."""
    keys = KeyUrl("", issuer.url, clock)
    assert ids(keys.find("one", "ES256")) == ["one"]
    issuer.publish(TWO)
    for seconds, found, fetches in ((0, [], 1), (29, [], 1), (30, ["two"], 2), (50, ["two"], 2)):
        clock.now_s = 100 + seconds
        assert ids(keys.find("two", "ES256")) == found
        assert issuer.requests.count("/keys") == fetches
    assert ids(keys.find("one", "ES256")) == []
    assert keys.revision == 2


def test_keys_are_fetched_again_when_they_are_old(issuer: Issuer, clock: Clock) -> None:
    keys = KeyUrl(f"{issuer.url}/keys", "https://issuer.example", clock)
    for seconds, fetches in ((0, 1), (600, 1), (601, 2), (700, 2)):
        clock.now_s = 100 + seconds
        assert ids(keys.find("one", "ES256")) == ["one"]
        assert issuer.requests == ["/keys"] * fetches
    assert keys.revision == 1
    issuer.publish(TWO)
    clock.now_s = 2000
    assert ids(keys.find("one", "ES256")) == []


def test_threads_wait_for_one_fetch(issuer: Issuer, clock: Clock) -> None:
    issuer.pace_s = 0.001
    keys = KeyUrl(f"{issuer.url}/keys", issuer.url, clock)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: ids(keys.find("one", "ES256")), range(4)))
    assert found == [["one"]] * 4
    assert issuer.requests == ["/keys"]


def test_the_order_of_keys_is_no_change(issuer: Issuer, clock: Clock) -> None:
    keys = KeyUrl(f"{issuer.url}/keys", issuer.url, clock)
    for published, revision in (((ONE, TWO), 1), ((TWO, ONE), 1), ((TWO,), 2)):
        issuer.publish(*published)
        clock.now_s += 1000
        assert ids(keys.find("two", "ES256")) == ["two"]
        assert keys.revision == revision


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (500, "HTTP status 500"),
        (302, "HTTP status 302"),
        (b"<html>", "the key set is not a JSON object"),
        (b"[" * 5000, "the key set is not a JSON object"),
        (b"[]", "the key set is not a JSON object"),
        ({}, "the key set has no list `keys` of at most 100 keys"),
        ({"keys": [{}] * 101}, "the key set has no list `keys` of at most 100 keys"),
        ({"keys": []}, "the key set has no key for RSA, ECDSA or Ed25519 signatures"),
        ({"keys": [7, {"kty": "oct"}]}, "the key set has no key for RSA, ECDSA or Ed25519"),
        (b" " * (1 << 20) + b"{}", "the key set has more than 1048576 bytes"),
    ],
)
def test_keys_stay_if_fetching_fails(
    issuer: Issuer,
    clock: Clock,
    caplog: pytest.LogCaptureFixture,
    document: object,
    reason: str,
) -> None:
    keys = KeyUrl(f"{issuer.url}/{'keys'}", issuer.url, clock)
    keys.find("one", "ES256")
    issuer.documents["/keys"] = document
    clock.now_s += 1000
    with caplog.at_level(logging.WARNING):
        assert ids(keys.find("one", "ES256")) == ["one"]
    assert [record.message for record in caplog.records] == ["token_keys_not_fetched"]
    assert reason in caplog.records[0].__dict__["reason"]
    with pytest.raises(Unavailable) as raised:
        KeyUrl(f"{issuer.url}/keys", issuer.url, clock).find("one", "ES256")
    assert reason in raised.value.message
    assert raised.value.message.startswith(
        f"token_issuer={issuer.url!r}: expected its keys, which cannot be fetched ("
    )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"issuer": "https://other.example"}, "is of another issuer; write token_issuer as there"),
        ({"jwks_uri": None}, "has no jwks_uri"),
        (
            {"jwks_uri": "http://example.com/keys"},
            "jwks_uri='http://example.com/keys': expected an",
        ),
        ({"jwks_uri": "file:///etc/passwd"}, "jwks_uri='file:///etc/passwd': expected an address"),
    ],
)
def test_an_unfitting_configuration_is_refused(
    issuer: Issuer, change: Mapping[str, object], reason: str
) -> None:
    issuer.documents["/.well-known/openid-configuration"].update(change)
    with pytest.raises(Unavailable) as raised:
        KeyUrl("", issuer.url).find("one", "ES256")
    assert reason in raised.value.message
    assert "/keys" not in issuer.requests


def test_an_issuer_that_does_not_answer_is_unavailable(clock: Clock) -> None:
    with running_issuer() as issuer:
        pass
    keys = KeyUrl("", issuer.url, clock)
    for _ in range(2):
        with pytest.raises(Unavailable, match=r"cannot be fetched \(http://127.*refused\)"):
            keys.find("one", "ES256")


def test_an_answer_that_takes_too_long_is_given_up(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one in which no pause is as long as the timeout."""
    monkeypatch.setattr(jwks, "_TIMEOUT_S", 0.2)
    issuer.pace_s = 0.01
    with pytest.raises(Unavailable, match="timed out"):
        KeyUrl(f"{issuer.url}/keys", issuer.url).find("one", "ES256")


def test_the_certificate_of_an_issuer_is_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority(tmp_path)
    certificate = authority.issue("issuer")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.cert, certificate.key)
    with running_issuer(context) as issuer:
        issuer.publish(ONE)
        with pytest.raises(Unavailable, match="CERTIFICATE_VERIFY_FAILED"):
            KeyUrl("", issuer.url).find("one", "ES256")
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
        assert ids(KeyUrl("", issuer.url).find("one", "ES256")) == ["one"]


@pytest.mark.parametrize(
    "address",
    [
        "http://example.com/keys",
        "ftp://127.0.0.1/keys",
        "file:///keys.json",
        "https://",
        "https://user:secret@example.com/keys",
        "https://example.com:port/keys",
        "https://[::1/keys",
        "https://exa mple.com/keys",
        "http://127.0.0.1.example.com/keys",
    ],
)
def test_addresses_without_tls_are_refused(address: str) -> None:
    for source in (
        lambda: key_source(address, "https://issuer.example"),
        lambda: key_source("", address),
    ):
        with pytest.raises(InvalidRequest, match="expected an address https://"):
            source()
    for near in ("http://127.0.0.1:1/", "http://[::1]:1/", "http://localhost:1/"):
        assert isinstance(key_source(near, ""), KeyUrl)


def test_a_file_of_keys_is_read_again_after_changes(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "keys.json"
    file.write_text(json.dumps({"keys": [ONE.jwk()]}))
    assert isinstance(key_source(str(file), "https://issuer.example"), KeyFile)
    keys = KeyFile(str(file), clock)
    assert ids(keys.find("one", "ES256")) == ["one"]
    file.write_text(json.dumps({"keys": [TWO.jwk(), ONE.jwk()]}))
    assert keys.revision == 0
    clock.now_s += 1
    assert keys.revision == 1
    assert ids(keys.find("two", "ES256")) == ["two"]
    with caplog.at_level(logging.WARNING):
        file.write_text("{}")
        clock.now_s += 1
        assert ids(keys.find("two", "ES256")) == ["two"]
    assert [record.message for record in caplog.records] == ["token_keys_not_reloaded"]


@pytest.mark.parametrize(
    ("write", "reason"),
    [
        (lambda path: None, "expected a readable file (no such file or directory)"),
        (lambda path: path.mkdir(), "expected a readable file (is a directory)"),
        (lambda path: path.write_text("[]"), "expected the public keys of the issuer (the key set"),
    ],
)
def test_an_unusable_file_of_keys_is_refused(
    tmp_path: Path, write: Callable[[Path], object], reason: str
) -> None:
    file = tmp_path / "keys.json"
    write(file)
    with pytest.raises(InvalidRequest) as raised:
        key_source(str(file), "https://issuer.example")
    assert raised.value.message.startswith(f"token_jwks={str(file)!r}: {reason}")
