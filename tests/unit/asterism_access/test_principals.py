"""Tests of principals and their roles."""

from __future__ import annotations

from asterism_access.principals import LOCAL, Principal, PrincipalKind
from asterism_access.roles import EVERY_SPACE, Role


def alice(**roles: Role) -> Principal:
    return Principal(name="alice", kind=PrincipalKind.API_KEY, roles=roles)


def test_a_role_has_the_rights_of_lower_ones_in_its_space_only() -> None:
    principal = alice(shop=Role.WRITER)
    assert principal.has_role("shop", Role.READER)
    assert principal.has_role("shop", Role.WRITER)
    assert not principal.has_role("shop", Role.BUILDER)
    assert principal.role_in("bank") is None
    assert not principal.is_cluster_admin


def test_a_grant_for_every_space_adds_to_those_of_a_space() -> None:
    principal = Principal(
        name="a", kind=PrincipalKind.TOKEN, roles={EVERY_SPACE: Role.READER, "shop": Role.ADMIN}
    )
    assert principal.role_in("shop") is Role.ADMIN
    assert principal.role_in("bank") is Role.READER
    assert not principal.is_cluster_admin
    everywhere = Principal(name="b", kind=PrincipalKind.API_KEY, roles={EVERY_SPACE: Role.ADMIN})
    assert everywhere.is_cluster_admin


def test_the_process_itself_may_do_everything() -> None:
    assert LOCAL.is_trusted
    assert LOCAL.is_cluster_admin
    assert LOCAL.has_role("any", Role.ADMIN)
