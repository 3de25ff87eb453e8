"""Tests of tickets: content, signature, expiry, and refused forms."""

from __future__ import annotations

import base64
import dataclasses
import hmac
import json
from typing import Any

import pytest

from asterism_access.credentials import tickets
from asterism_access.credentials.tickets import MAX_TICKET_CHARS, Ticket, TicketKind, sign, verify
from asterism_access.roles import EVERY_SPACE, Role
from asterism_proto.errors import InvalidRequest, Unauthenticated

KEY, OTHER_KEY = b"k" * 32, b"o" * 32
NOW_S = 1_800_000_000
TICKET = Ticket(
    name="alice@shop",
    kind=TicketKind.CLIENT,
    roles={EVERY_SPACE: Role.READER, "商店": Role.ADMIN},
    roles_by_id={7: Role.WRITER},
    expires_s=NOW_S + 300,
    ticket_id="0a1b",
)


def message_of(text: str, keys: list[bytes], now_s: float = NOW_S) -> str:
    with pytest.raises(Unauthenticated) as raised:
        verify(text, keys, now_s)
    return raised.value.message


def signed(payload: Any, key: bytes = KEY) -> str:
    """Return a ticket of any payload, as another release may make it."""
    encoded = base64.urlsafe_b64encode(json.dumps(payload).encode()).rstrip(b"=")
    text = f"tk_{encoded.decode()}"
    signature = base64.urlsafe_b64encode(hmac.digest(key, text.encode(), "sha256")).rstrip(b"=")
    return f"{text}_{signature.decode()}"


def fields(**changes: Any) -> dict[str, Any]:
    return {
        "name": "a",
        "kind": "client",
        "roles": {"*": 1},
        "roles_by_id": {"7": 2},
        "exp": NOW_S,
        "id": "",
        **changes,
    }


@pytest.mark.parametrize("kind", TicketKind)
def test_a_signed_ticket_is_read_as_it_was(kind: TicketKind) -> None:
    ticket = dataclasses.replace(TICKET, kind=kind)
    assert verify(sign(ticket, KEY), [KEY], NOW_S) == ticket


def test_the_form_of_tickets_is_the_documented_one() -> None:
    assert verify(signed(fields()), [KEY], NOW_S) == Ticket(
        name="a",
        kind=TicketKind.CLIENT,
        roles={"*": Role.READER},
        roles_by_id={7: Role.WRITER},
        expires_s=NOW_S,
    )


def test_any_of_several_keys_may_have_signed() -> None:
    text = sign(TICKET, KEY)
    for keys in ([KEY, OTHER_KEY], [OTHER_KEY, KEY]):
        assert verify(text, keys, NOW_S) == TICKET
    for keys in ([OTHER_KEY], [OTHER_KEY, OTHER_KEY]):
        assert message_of(text, keys).startswith("ticket: its signature is not of a key of this")


def test_signatures_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """With every key, also after one that fits."""
    compared: list[bytes] = []

    def compare(expected: bytes, given: bytes) -> bool:
        compared.append(given)
        return expected == given

    monkeypatch.setattr(tickets.hmac, "compare_digest", compare)
    text = sign(TICKET, KEY)
    assert verify(text, [KEY, OTHER_KEY], NOW_S) == TICKET
    assert compared == [text[-43:].encode()] * 2


def test_a_ticket_is_accepted_until_its_expiry_and_a_skew() -> None:
    text = sign(TICKET, KEY)
    assert verify(text, [KEY], TICKET.expires_s + 30) == TICKET
    assert message_of(text, [KEY], TICKET.expires_s + 30.5) == (
        "ticket of 'alice@shop': expired at 2027-01-15T08:05:00Z; get another, and check the "
        "clocks of the hosts"
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tk_",
        "tk__",
        "_" * 44,
        sign(TICKET, KEY)[3:],
        sign(TICKET, KEY).replace("tk_", "TK_"),
        sign(TICKET, KEY)[:-44] + "." + sign(TICKET, KEY)[-43:],
        sign(TICKET, KEY) + "é",
        "tk_" + "A" * MAX_TICKET_CHARS + "_" + "A" * 43,
    ],
)
def test_other_forms_are_refused_without_being_shown(text: str) -> None:
    assert message_of(text, [KEY]) == "ticket: expected 'tk_', a payload, '_' and a signature"


@pytest.mark.parametrize(
    "payload",
    [
        [],
        None,
        7,
        {},
        fields(kind="king"),
        fields(exp="soon"),
        fields(exp=float("inf")),
        fields(exp=10**400),
        fields(roles=[]),
        fields(roles={"a": 9}),
        fields(roles_by_id={"x": 1}),
        fields(spaces_of_a_later_release=[]),
        {name: value for name, value in fields().items() if name != "id"},
    ],
)
def test_fields_of_other_releases_are_refused(payload: Any) -> None:
    assert message_of(signed(payload), [KEY]) == (
        "ticket: expected the fields of this release; run one release on all daemons"
    )


@pytest.mark.parametrize("name", ["", "*", "a\nb", " a", "x" * 257])
def test_names_that_no_principal_has_are_not_signed(name: str) -> None:
    with pytest.raises(InvalidRequest, match=r"principal=.*: expected 1 to 256 printable"):
        sign(dataclasses.replace(TICKET, name=name), KEY)


def test_a_ticket_for_too_many_spaces_is_refused_when_signed() -> None:
    roles = dict.fromkeys(range(2000), Role.READER)
    with pytest.raises(InvalidRequest, match="expected roles in fewer spaces than 2002, for a"):
        sign(dataclasses.replace(TICKET, roles_by_id=roles), KEY)
