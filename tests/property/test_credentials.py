"""Mangled credentials are refused as Unauthenticated, without being shown.

Every bit of a key, a ticket and a token of each kind is flipped, and Hypothesis mangles them too.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.issuer import AUDIENCE, Issuer, SigningKey, new_private_key

from asterism_access.authentication import Authenticator
from asterism_access.credentials import api_keys
from asterism_access.credentials.cluster_key import ClusterKey
from asterism_access.credentials.oidc_tokens import TokenVerifier
from asterism_access.principals import Principal, PrincipalKind
from asterism_access.roles import Role
from asterism_proto.errors import Unauthenticated
from asterism_proto.v1.metad_pb2 import AccessState, ApiKey

ISSUER = "https://issuer.example"
KINDS = ("api_key", "daemon", "client", "root", "RS256", "PS256", "ES256", "EdDSA")


@dataclass(frozen=True)
class Settings:
    """Settings of tokens, as a daemon has them."""

    token_jwks: str
    token_issuer: str = ISSUER
    token_audience: str = AUDIENCE
    token_name_claim: str = "sub"
    token_roles_claim: str = "asterism_roles"
    token_skew_s: float = 60


@dataclass(frozen=True)
class Cluster:
    """An authenticator, and a valid credential of each kind."""

    authenticator: Authenticator
    credentials: Mapping[str, str]

    def refusal(self, credential: str) -> str:
        with pytest.raises(Unauthenticated) as raised:
            self.authenticator.authenticate(f"Bearer {credential}")
        return raised.value.message


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    folder = tmp_path_factory.mktemp("credentials")
    key_file, jwks = folder / "cluster.key", folder / "keys.json"
    key_file.write_bytes(base64.b64encode(b"k" * 32))
    key_file.chmod(0o600)
    cluster_key = ClusterKey(str(key_file))
    api_key = api_keys.generate()
    signing = [SigningKey(name, name, new_private_key(name)) for name in KINDS[4:]]
    jwks.write_text(json.dumps({"keys": [key.jwk() for key in signing]}))
    alice = Principal(name="alice", kind=PrincipalKind.API_KEY, roles={"shop": Role.READER})
    claims = Issuer(ISSUER).claims(asterism_roles={"shop": "reader"})
    stored = ApiKey(key_id=api_key.key_id, principal="alice", secret_hash=api_key.hash)
    state = AccessState(keys=[stored])
    return Cluster(
        Authenticator(
            cluster_key,
            TokenVerifier(Settings(str(jwks))),
            lambda: state,
            accepts_client_tickets=True,
        ),
        {
            "api_key": api_key.text,
            "daemon": cluster_key.daemon_ticket("graphd"),
            "client": cluster_key.client_ticket(alice, {7: "shop"}),
            "root": cluster_key.root_ticket(3600),
            **{key.algorithm: key.sign(claims) for key in signing},
        },
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_credential_with_a_flipped_bit_is_refused(cluster: Cluster, kind: str) -> None:
    credential = cluster.credentials[kind]
    content = credential.encode()
    cluster.authenticator.authenticate(f"Bearer {credential}")
    for i in range(len(content)):
        for bit in range(8):
            flipped = bytearray(content)
            flipped[i] ^= 1 << bit
            message = cluster.refusal(flipped.decode("latin-1"))
            assert credential[-20:] not in message
    assert cluster.authenticator.authenticate(f"Bearer {credential}").name


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_a_mangled_credential_is_refused(cluster: Cluster, kind: str, data: st.DataObject) -> None:
    credential = cluster.credentials[kind]
    size = len(credential)
    first, end = sorted(data.draw(st.tuples(st.integers(0, size), st.integers(0, size))))
    text = st.text(st.characters() | st.sampled_from("._-=Aa0 \n"), max_size=50)
    mangled = credential[:first] + data.draw(text) + credential[end:]
    if mangled.strip(" ") != credential:
        message = cluster.refusal(mangled)
        assert credential[size // 2 :] not in message


@pytest.mark.parametrize("kinds", [(a, b) for a in KINDS for b in KINDS if a != b])
def test_parts_of_two_credentials_make_none(cluster: Cluster, kinds: tuple[str, str]) -> None:
    one, two = (cluster.credentials[kind] for kind in kinds)
    for separator in "._":
        head, tail = one.rpartition(separator)[0], two.rpartition(separator)[2]
        cluster.refusal(f"{head}{separator}{tail}")
    cluster.refusal(one + two)
    cluster.refusal(f"{one} {two}")


@given(text=st.text(max_size=200))
def test_any_text_is_refused(cluster: Cluster, text: str) -> None:
    for prefix in ("", "ak_", "tk_", "a.b."):
        cluster.refusal(prefix + text)
    with pytest.raises(Unauthenticated):
        cluster.authenticator.authenticate(text)
