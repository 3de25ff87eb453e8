"""Tests of the text of sessions: signature, expiry, and what it does not contain."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from asterism_access.credentials import api_keys, session_tokens
from asterism_access.credentials.session_tokens import (
    MAX_SESSION_CHARS,
    SessionContent,
    sign,
    verify,
)
from asterism_access.credentials.signatures import base64_text, signature
from asterism_access.credentials.tickets import Ticket, TicketKind
from asterism_access.credentials.tickets import sign as sign_ticket
from asterism_access.credentials.tickets import verify as verify_ticket
from asterism_access.principals import PrincipalKind
from asterism_access.roles import Role
from asterism_proto.errors import InvalidRequest, Unauthenticated

NOW_S = 1_800_000_000.0
KEY, OTHER_KEY = b"k" * 32, b"o" * 32
SESSION = SessionContent(
    name="alice",
    kind=PrincipalKind.TOKEN,
    credential_id="jti",
    roles={"shop": Role.WRITER},
    expires_s=int(NOW_S) + 60,
    session_id="s1",
)


def message_of(text: str, keys: list[bytes], now_s: float = NOW_S) -> str:
    with pytest.raises(Unauthenticated) as raised:
        verify(text, keys, now_s)
    assert text not in raised.value.message
    return raised.value.message


def payload_of(text: str) -> dict[str, Any]:
    payload: dict[str, Any] = json.loads(base64.urlsafe_b64decode(text[3:-44] + "=="))
    return payload


def signed(payload: object) -> str:
    """Return a text with a valid signature over any payload."""
    head = "ss_" + base64_text(json.dumps(payload).encode())
    return f"{head}_{signature(head, KEY)}"


def test_a_session_is_read_as_it_was_signed() -> None:
    text = sign(SESSION, KEY)
    assert verify(text, [OTHER_KEY, KEY], NOW_S).session == SESSION
    assert message_of(text, [OTHER_KEY]) == (
        "session: its signature is not of a key of this cluster; sign in"
    )


def test_a_session_ends_at_its_expiry() -> None:
    text = sign(SESSION, KEY)
    assert verify(text, [KEY], SESSION.expires_s - 0.1).session == SESSION
    assert message_of(text, [KEY], SESSION.expires_s) == (
        "session: expired at 2027-01-15T08:01:00Z; sign in"
    )


@pytest.mark.parametrize(
    "text", ["", "ss_", "ss_x_y", "tk_" + "A" * 80, "ss_" + "é" * 80, "ss_" + "A" * 5000]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(Unauthenticated, match="expected one that this cluster began; sign in"):
        verify(text, [KEY], NOW_S)


def test_every_changed_character_is_refused() -> None:
    text = sign(SESSION, KEY)
    for at in range(len(text)):
        changed = text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :]
        with pytest.raises(Unauthenticated):
            verify(changed, [KEY], NOW_S)


def test_a_ticket_is_no_session_and_a_session_no_ticket() -> None:
    ticket = sign_ticket(Ticket(name="root", kind=TicketKind.ROOT, expires_s=int(NOW_S) + 60), KEY)
    text = sign(SESSION, KEY)
    for forged in (ticket, "ss_" + ticket.removeprefix("tk_")):
        message_of(forged, [KEY])
    for forged in (text, "tk_" + text.removeprefix("ss_")):
        with pytest.raises(Unauthenticated):
            verify_ticket(forged, [KEY], NOW_S)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "daemon"},
        {"kind": "local"},
        {"kind": "anonymous"},
        {"exp": 1e999},
        {"exp": "x"},
        {"roles": {"shop": 9}},
        {"roles": []},
        {"more": 1},
    ],
)
def test_payloads_of_other_releases_are_refused(change: dict[str, object]) -> None:
    payload = payload_of(sign(SESSION, KEY))
    assert verify(signed(payload), [KEY], NOW_S).session == SESSION
    assert "expected the fields of this release" in message_of(signed(payload | change), [KEY])


def test_no_part_of_a_session_is_secret_but_its_signature() -> None:
    key = api_keys.generate()
    session = SessionContent(
        name="alice",
        kind=PrincipalKind.API_KEY,
        credential_id=key.key_id,
        expires_s=int(NOW_S) + 60,
        session_id="s1",
    )
    text = sign(session, KEY)
    assert payload_of(text) == {
        "name": "alice",
        "kind": "api_key",
        "credential": key.key_id,
        "roles": {},
        "exp": int(NOW_S) + 60,
        "id": "s1",
    }
    verified = verify(text, [KEY], NOW_S)
    assert verified.csrf_token not in text
    assert verified.csrf_token not in repr(verified)


def test_the_token_of_changes_is_of_one_session_and_key() -> None:
    text = sign(SESSION, KEY)
    token = verify(text, [KEY], NOW_S).csrf_token
    assert token == verify(text, [OTHER_KEY, KEY], NOW_S).csrf_token
    others = [
        verify(sign(SESSION, OTHER_KEY), [OTHER_KEY], NOW_S).csrf_token,
        verify(signed(payload_of(text) | {"id": "s2"}), [KEY], NOW_S).csrf_token,
        signature(text, KEY),
    ]
    assert token not in others


def test_signatures_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[bytes] = []

    def compare(expected: bytes, given: bytes) -> bool:
        compared.append(given)
        return expected == given

    monkeypatch.setattr(session_tokens.hmac, "compare_digest", compare)
    text = sign(SESSION, KEY)
    verify(text, [KEY, OTHER_KEY], NOW_S)
    assert compared == [text[-43:].encode()] * 2


def test_a_session_fits_into_a_cookie() -> None:
    roles = {f"space-number-{i}": Role.READER for i in range(200)}
    many = SessionContent(
        name="alice",
        kind=PrincipalKind.TOKEN,
        credential_id="",
        roles=roles,
        expires_s=1,
        session_id="s1",
    )
    with pytest.raises(InvalidRequest, match=f"fewer than 200 roles.*{MAX_SESSION_CHARS}"):
        sign(many, KEY)
