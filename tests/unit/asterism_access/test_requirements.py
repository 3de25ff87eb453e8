"""Tests of the table of what each method requires."""

from __future__ import annotations

import pytest

from asterism_access.requirements import REQUIREMENTS
from asterism_access.roles import Role, parse_role
from asterism_proto.errors import InvalidRequest
from asterism_proto.methods import ACCESS, CATALOG, GRAPH, HEARTBEATS, STORE
from asterism_proto.v1 import metad_pb2 as metad_pb


def test_every_method_of_every_service_has_a_row() -> None:
    methods = {
        method.path
        for table in (GRAPH, CATALOG, ACCESS, STORE, HEARTBEATS)
        for method in table.values()
    }
    assert set(REQUIREMENTS) == methods


def test_roles_have_the_numbers_of_the_wire_and_nebulas_names() -> None:
    assert {role.name: role.value for role in Role} == {
        name: number for name, number in metad_pb.SpaceRole.items() if number
    }
    names = ("guest", "USER", "Dba", " admin ", "reader")
    roles = (Role.READER, Role.WRITER, Role.BUILDER, Role.ADMIN, Role.READER)
    assert [parse_role(name) for name in names] == list(roles)
    with pytest.raises(InvalidRequest, match="role='god': expected reader, writer"):
        parse_role("god")
