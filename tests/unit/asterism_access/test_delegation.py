"""Tests of calls that a daemon forwards for a principal."""

from __future__ import annotations

import pytest

from asterism_access import delegation
from asterism_access.principals import Principal, PrincipalKind
from asterism_access.roles import Role
from asterism_proto.errors import Forbidden, InvalidRequest

DAEMON = Principal(name="graphd", kind=PrincipalKind.DAEMON)
ALICE = Principal(
    name="älice",
    kind=PrincipalKind.TOKEN,
    roles={"shop": Role.BUILDER, "商店": Role.READER},
    credential_id="t1",
)


def test_a_daemon_forwards_the_whole_principal_in_ascii() -> None:
    text = delegation.to_text(ALICE)
    assert text.isascii()
    forwarded = delegation.from_text(text, forwarder=DAEMON)
    assert forwarded == ALICE
    assert forwarded.is_forwarded
    assert not ALICE.is_forwarded


def test_only_daemons_act_for_others() -> None:
    with pytest.raises(Forbidden, match="expected a daemon of the cluster as the forwarder"):
        delegation.from_text(delegation.to_text(ALICE), forwarder=ALICE)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"name":1}', "[" * 5000])
def test_other_texts_are_invalid(text: str) -> None:
    with pytest.raises(InvalidRequest, match="asterism-on-behalf-of"):
        delegation.from_text(text, forwarder=DAEMON)
