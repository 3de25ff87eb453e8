"""Tests of API keys: their form, hash and comparison, and what they show."""

from __future__ import annotations

import hashlib

import pytest

from asterism_access.credentials import api_keys
from asterism_proto.errors import Unauthenticated


def test_a_new_key_is_parsed_to_what_it_was() -> None:
    key = api_keys.generate()
    assert api_keys.parse(key.text) == key
    assert key.text == f"ak_{key.key_id}_{key.secret}"
    assert (len(key.key_id), len(key.secret)) == (12, 43)
    assert key.hash == hashlib.sha256(key.secret.encode()).digest()


def test_keys_differ_and_no_id_looks_like_an_option() -> None:
    keys = [api_keys.generate() for _ in range(200)]
    assert len({key.key_id for key in keys}) == len({key.secret for key in keys}) == 200
    assert all(key.key_id.isalnum() for key in keys)


def test_a_key_matches_its_own_hash_only() -> None:
    key, other = api_keys.generate(), api_keys.generate()
    assert key.matches(hashlib.sha256(key.secret.encode()).digest())
    assert not key.matches(other.hash)
    assert not key.matches(key.hash[:-1])
    assert not key.matches(b"")


def test_hashes_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    key, compared = api_keys.generate(), []
    monkeypatch.setattr(api_keys.hmac, "compare_digest", lambda *pair: compared.append(pair))
    assert not key.matches(b"stored")
    assert compared == [(key.hash, b"stored")]


def test_a_key_does_not_show_its_secret_or_hash() -> None:
    key = api_keys.generate()
    assert repr(key) == f"ApiKeySecret(key_id={key.key_id!r})"


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "",
        lambda text: text[:-1],
        lambda text: text + "A",
        lambda text: text + "\n",
        lambda text: text.replace("ak_", "AK_"),
        lambda text: text[:15] + "." + text[16:],
        lambda text: text[:20] + "é" + text[21:],
        lambda text: text[:20] + "٣" + text[21:],  # a digit of another script
    ],
)
def test_other_forms_are_refused_without_being_shown(change: object) -> None:
    assert callable(change)
    key = api_keys.generate()
    with pytest.raises(Unauthenticated) as raised:
        api_keys.parse(change(key.text))
    assert raised.value.message == (
        "api_key: expected 'ak_', a key id of 12 characters, '_' and a secret of 43 characters; "
        "copy the whole key"
    )
