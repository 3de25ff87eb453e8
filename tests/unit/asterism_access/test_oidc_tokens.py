"""Tests of tokens of an issuer: claims, roles, times, keys, and refused forms."""

from __future__ import annotations

import dataclasses
import hmac
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from tests.kit.issuer import (
    AUDIENCE,
    Issuer,
    SigningKey,
    base64url,
    new_private_key,
    running_issuer,
)

from asterism_access.credentials.jwks import KeyUrl
from asterism_access.credentials.oidc_tokens import TokenVerifier
from asterism_access.principals import Principal, PrincipalKind
from asterism_access.roles import EVERY_SPACE, Role
from asterism_proto.errors import InvalidRequest, Unauthenticated

EC, ED, OTHER = (
    SigningKey(name, name, new_private_key(name)) for name in ("ES256", "EdDSA", "ES384")
)
RSA = SigningKey("RS256", "RS256", new_private_key("RS256"))
NOW_S = 1_800_000_000


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of tokens, as a daemon has them."""

    token_issuer: str
    token_audience: str = AUDIENCE
    token_jwks: str = ""
    token_name_claim: str = "sub"
    token_roles_claim: str = "asterism_roles"
    token_skew_s: float = 60


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with running_issuer() as issuer:
        issuer.publish(EC, ED, RSA)
        issuer.clock = lambda: NOW_S
        yield issuer


@pytest.fixture(scope="module")
def verifier(issuer: Issuer) -> TokenVerifier:
    return TokenVerifier(Settings(issuer.url), clock=lambda: NOW_S)


def refusal(verifier: TokenVerifier, token: str) -> str:
    with pytest.raises(Unauthenticated) as raised:
        verifier.verify(token)
    message = raised.value.message
    assert message.startswith("token: ")
    assert all(part not in message for part in token.split(".") if len(part) > 8)
    return message.removeprefix("token: ")


@pytest.mark.parametrize("key", [EC, ED, RSA], ids=lambda key: key.algorithm)
def test_a_token_names_its_subject(
    verifier: TokenVerifier, issuer: Issuer, key: SigningKey
) -> None:
    claims = issuer.claims()
    verified = verifier.verify(key.sign(claims))
    assert verified.principal == Principal(
        name="alice", kind=PrincipalKind.TOKEN, credential_id="0a1b"
    )
    assert verified.expires_s == claims["exp"] + 60  # type: ignore[operator]  # an int
    assert repr(verifier) == f"TokenVerifier({issuer.url!r})"


def test_audiences_may_be_several(verifier: TokenVerifier, issuer: Issuer) -> None:
    assert verifier.verify(EC.sign(issuer.claims(aud=["a", AUDIENCE]))).principal.name == "alice"


@pytest.mark.parametrize(
    ("stated", "roles"),
    [
        (None, {}),
        ({}, {}),
        ({"shop": "reader", "*": "ADMIN"}, {"shop": Role.READER, EVERY_SPACE: Role.ADMIN}),
        (["shop:reader", "shop:writer", "shop:guest"], {"shop": Role.WRITER}),
        (["*:dba"], {EVERY_SPACE: Role.BUILDER}),
    ],
)
def test_roles_are_read_from_their_claim(
    verifier: TokenVerifier, issuer: Issuer, stated: object, roles: Mapping[str, Role]
) -> None:
    token = EC.sign(issuer.claims(asterism_roles=stated))
    assert verifier.verify(token).principal.roles == roles


@pytest.mark.parametrize(
    "stated",
    [
        "reader",
        7,
        ["reader"],
        [7],
        [":reader"],
        {"shop": "god"},
        {"shop": 4},
        {"": "reader"},
        {"shop": ["reader"]},
        ["a:dba"] * 1001,
    ],
)
def test_other_roles_refuse_the_token(
    verifier: TokenVerifier, issuer: Issuer, stated: object
) -> None:
    token = EC.sign(issuer.claims(asterism_roles=stated))
    assert refusal(verifier, token).startswith("its claim 'asterism_roles': ")


def test_names_of_claims_are_settings(issuer: Issuer) -> None:
    settings = Settings(issuer.url, token_name_claim="email", token_roles_claim="https://a/roles")
    claims = issuer.claims(email="a@b.example", **{"https://a/roles": ["shop:reader"]})
    principal = TokenVerifier(settings, clock=lambda: NOW_S).verify(EC.sign(claims)).principal
    assert (principal.name, principal.roles) == ("a@b.example", {"shop": Role.READER})
    without = TokenVerifier(
        dataclasses.replace(settings, token_roles_claim=""), clock=lambda: NOW_S
    )
    assert without.verify(EC.sign(claims)).principal.roles == {}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"iss": None}, "expected issuer 'http://127.0.0.1"),
        ({"iss": "https://other.example"}, "expected issuer 'http://127.0.0.1"),
        ({"iss": ["https://other.example"]}, "expected issuer 'http://127.0.0.1"),
        ({"aud": None}, "expected audience 'asterism', not None; ask the issuer for"),
        ({"aud": "other"}, "expected audience 'asterism', not 'other'; ask the issuer for"),
        ({"aud": ["other", 7]}, "expected audience 'asterism', not ['other', 7]; ask"),
        ({"aud": []}, "expected audience 'asterism', not []; ask"),
        ({"aud": "asterism "}, "expected audience 'asterism', not 'asterism '"),
        ({"aud": {"asterism": 1}}, "expected audience 'asterism', not {'asterism': 1}"),
        ({"exp": None}, "expected a time of expiry in its claim 'exp'"),
        ({"exp": "9999999999"}, "expected seconds since 1970 in its claim 'exp'"),
        ({"exp": True}, "expected seconds since 1970 in its claim 'exp'"),
        ({"exp": -1}, "expected seconds since 1970 in its claim 'exp'"),
        ({"exp": float("nan")}, "expected seconds since 1970 in its claim 'exp'"),
        ({"exp": float("inf")}, "expected seconds since 1970 in its claim 'exp'"),
        ({"exp": 10**400}, "expected seconds since 1970 in its claim 'exp'"),
        ({"exp": (NOW_S + 60) * 1000}, "expected seconds since 1970 in its claim 'exp'"),
        ({"nbf": "now"}, "expected seconds since 1970 in its claim 'nbf'"),
        ({"iat": []}, "expected seconds since 1970 in its claim 'iat'"),
        ({"sub": None}, "expected in its claim 'sub' a name of 1 to 256 printable characters"),
        ({"sub": ""}, "expected in its claim 'sub' a name of 1 to 256 printable characters"),
        ({"sub": "*"}, "expected in its claim 'sub' a name of 1 to 256 printable characters"),
        ({"sub": "a\nb"}, "expected in its claim 'sub' a name of 1 to 256 printable"),
        ({"sub": 7}, "expected in its claim 'sub' a name of 1 to 256 printable characters"),
    ],
)
def test_other_claims_are_refused(
    verifier: TokenVerifier, issuer: Issuer, changes: Mapping[str, Any], reason: str
) -> None:
    assert refusal(verifier, EC.sign(issuer.claims(**changes))).startswith(reason)


@pytest.mark.parametrize(
    ("claim", "accepted_s", "refused_s", "word"),
    [
        ("exp", NOW_S - 59, NOW_S - 60, "expired at"),
        ("nbf", NOW_S + 60, NOW_S + 61, "not valid before"),
        ("iat", NOW_S + 60, NOW_S + 61, "not valid before"),
    ],
)
def test_times_have_a_skew_of_a_minute(
    verifier: TokenVerifier,
    issuer: Issuer,
    claim: str,
    accepted_s: int,
    refused_s: int,
    word: str,
) -> None:
    assert verifier.verify(EC.sign(issuer.claims(**{claim: accepted_s}))).principal
    assert refusal(verifier, EC.sign(issuer.claims(**{claim: refused_s}))).startswith(word)


def test_ids_of_tokens_are_shown_only_if_they_can_be(
    verifier: TokenVerifier, issuer: Issuer
) -> None:
    for token_id in (None, 7, "a\nb", "x" * 257):
        assert verifier.verify(EC.sign(issuer.claims(jti=token_id))).principal.credential_id == ""


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ({"alg": None}, "expected a signature with a public key (RS256, ES256, EdDSA), not alg="),
        ({"alg": "none"}, "expected a signature with a public key (RS256, ES256, EdDSA), not alg="),
        ({"alg": "None"}, "expected a signature with a public key (RS256, ES256, EdDSA), not alg="),
        ({"alg": "HS256"}, "expected a signature with a public key (RS256, ES256, EdDSA), not alg"),
        ({"alg": ["ES256"]}, "expected a signature with a public key (RS256, ES256, EdDSA), not"),
        ({"alg": "ES256K"}, "expected a signature with a public key (RS256, ES256, EdDSA), not"),
        ({"alg": "RS256"}, "expected a key of the issuer for RS256, not kid='ES256'"),
        ({"alg": "RS256", "kid": "RS256"}, "its signature is not of the issuer's key"),
        ({"kid": "unknown"}, "expected a key of the issuer for ES256, not kid='unknown'"),
        ({"kid": "EdDSA"}, "expected a key of the issuer for ES256, not kid='EdDSA'"),
        ({"kid": 7}, "expected a key id as text, not kid=7"),
        ({"kid": "a\nb"}, r"expected a key id as text, not kid='a\nb'"),
        ({"crit": ["exp"]}, "expected no header 'crit' or 'b64'"),
        ({"b64": False}, "expected no header 'crit' or 'b64'"),
        ({"typ": "logout+jwt"}, "expected an access or id token, not typ='logout+jwt'"),
        ({"typ": 7}, "expected an access or id token, not typ=7"),
    ],
)
def test_other_headers_are_refused(
    verifier: TokenVerifier, issuer: Issuer, header: Mapping[str, object], reason: str
) -> None:
    assert refusal(verifier, EC.sign(issuer.claims(), header)).startswith(reason)


@pytest.mark.parametrize("header", [{"typ": None}, {"typ": "at+JWT"}, {"jku": "http://x/"}])
def test_headers_of_other_issuers_are_accepted(
    verifier: TokenVerifier, issuer: Issuer, header: Mapping[str, object]
) -> None:
    assert verifier.verify(EC.sign(issuer.claims(), header)).principal.name == "alice"


def test_a_token_without_a_key_id_needs_an_only_key(
    verifier: TokenVerifier, issuer: Issuer
) -> None:
    assert verifier.verify(EC.sign(issuer.claims(), {"kid": None})).principal.name == "alice"
    with running_issuer() as other:
        other.publish(EC, SigningKey("b", "ES256", new_private_key("ES256")))
        token = EC.sign(other.claims(), {"kid": None})
        assert "expected a key of the issuer" in refusal(TokenVerifier(Settings(other.url)), token)


def test_a_key_in_the_header_is_not_used(verifier: TokenVerifier, issuer: Issuer) -> None:
    forged = SigningKey("ES256", "ES256", new_private_key("ES256"))
    token = forged.sign(issuer.claims(), {"jwk": forged.jwk()})
    assert refusal(verifier, token).startswith("its signature is not of the issuer's key")


def test_a_public_key_is_no_secret_of_hmac(verifier: TokenVerifier, issuer: Issuer) -> None:
    """The known confusion of algorithms: HMAC keyed with the text of the public key."""
    public = RSA.private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    header = base64url(json.dumps({"alg": "HS256", "kid": "RS256"}).encode())
    signed = f"{header}.{base64url(json.dumps(issuer.claims()).encode())}"
    token = f"{signed}.{base64url(hmac.digest(public, signed.encode(), 'sha256'))}"
    assert "not alg='HS256'" in refusal(verifier, token)


def test_an_unsigned_token_is_refused(verifier: TokenVerifier, issuer: Issuer) -> None:
    signed, _, _ = EC.sign(issuer.claims()).rpartition(".")
    assert refusal(verifier, f"{signed}.") == "expected its signature in base64url without padding"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda token: "a.b", "expected three parts in base64url, joined by '.'"),
        (lambda token: token + ".a", "expected three parts in base64url, joined by '.'"),
        (lambda token: token + "é", "expected three parts in base64url, joined by '.'"),
        (lambda token: token + "A" * 16384, "expected three parts in base64url, joined by '.'"),
        (lambda token: "A" + token, "expected its header"),
        (lambda token: "." + token.split(".", 1)[1], "expected its header in base64url without"),
        (lambda token: base64url(b"[]") + ".e30.AA", "expected its header as a JSON object"),
        (lambda token: base64url(b"[" * 9000) + ".e30.AA", "expected its header as a JSON object"),
        (lambda token: base64url(b"\xff") + ".e30.AA", "expected its header as a JSON object"),
        (lambda token: token + "=", "expected its signature in base64url without padding"),
        (lambda token: token + "==", "expected its signature in base64url without padding"),
        (lambda token: token + "\n", "expected its signature in base64url without padding"),
        (lambda token: token.rpartition(".")[0] + ".+/+/", "expected its signature in base64url"),
    ],
)
def test_other_forms_are_refused(
    verifier: TokenVerifier, issuer: Issuer, change: Callable[[str], str], reason: str
) -> None:
    assert refusal(verifier, change(EC.sign(issuer.claims()))).startswith(reason)


@pytest.mark.parametrize("payload", [b"[]", b"{", b"7", b"\xff", b"[" * 9000, b'{"exp":1e999}'])
def test_signed_content_of_other_forms_is_refused(verifier: TokenVerifier, payload: bytes) -> None:
    assert refusal(verifier, EC.sign(payload)).startswith("expected ")


def test_replaced_keys_of_an_issuer_are_followed() -> None:
    """A token of a new key makes the keys be fetched; one of the removed key is refused then."""
    now = [100.0]
    with running_issuer() as issuer:
        issuer.publish(EC)
        keys = KeyUrl("", issuer.url, lambda: now[0])
        verifier = TokenVerifier(Settings(issuer.url), keys=keys)
        of_old, of_new = EC.sign(issuer.claims()), ED.sign(issuer.claims())
        assert verifier.verify(of_old).principal.name == "alice"
        issuer.publish(ED)
        assert "may have replaced its keys less than a minute ago" in refusal(verifier, of_new)
        revision = verifier.revision
        now[0] += 30
        assert verifier.verify(of_new).principal.name == "alice"
        assert verifier.revision == revision + 1
        assert "expected a key of the issuer for ES256" in refusal(verifier, of_old)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"token_audience": ""}, "token_audience='': expected a value where tokens are accepted"),
        ({"token_name_claim": ""}, "token_name_claim='': expected a value where tokens are"),
        ({"token_issuer": ""}, "token_issuer='': expected a value where tokens are accepted"),
        ({"token_issuer": "example"}, "token_issuer='example': expected an address https://"),
        ({"token_jwks": "/none"}, "token_jwks='/none': expected a readable file (no such file"),
        ({"token_skew_s": -1}, "token_skew_s=-1: expected 0 to 600 seconds"),
        ({"token_skew_s": float("nan")}, "token_skew_s=nan: expected 0 to 600 seconds"),
    ],
)
def test_unusable_settings_are_named(changes: Mapping[str, Any], message: str) -> None:
    settings = dataclasses.replace(Settings("https://issuer.example"), **changes)
    with pytest.raises(InvalidRequest) as raised:
        TokenVerifier(settings)
    assert raised.value.message.startswith(message)
