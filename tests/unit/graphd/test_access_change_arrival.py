"""Tests of the effects of access changes that a graphd waits for."""

from __future__ import annotations

import pytest

from asterism_proto.transport import Content
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from graphd.routing.access_change_arrival import expected_access

KEY = metad_pb.ApiKey(key_id="k1", principal="alice")
REVOKED_KEY = metad_pb.ApiKey(key_id="k1", principal="alice", revoked_ms=5)
GRANT = metad_pb.RoleGrant(principal="alice", space="graph", role=metad_pb.WRITER)
LIMITS = metad_pb.AccessLimits(principal="alice", space="graph", pins=2)
NO_LIMITS = metad_pb.AccessLimits(principal="alice", space="graph")


def state(*records: metad_pb.ApiKey | metad_pb.RoleGrant | metad_pb.AccessLimits) -> Content:
    """Return an access state with these records, and some of another principal."""
    return metad_pb.AccessState(
        keys=[r for r in records if isinstance(r, metad_pb.ApiKey)]
        + [metad_pb.ApiKey(key_id="k2", principal="bob")],
        grants=[r for r in records if isinstance(r, metad_pb.RoleGrant)]
        + [metad_pb.RoleGrant(principal="bob", space="graph", role=metad_pb.READER)],
        limits=[r for r in records if isinstance(r, metad_pb.AccessLimits)]
        + [metad_pb.AccessLimits(principal="bob", space="graph", pins=9)],
    )


@pytest.mark.parametrize(
    ("request_", "reply", "before", "after"),
    [
        pytest.param(
            metad_pb.CreateApiKeyRequest(principal="alice"),
            metad_pb.CreateApiKeyReply(key=KEY, secret="s"),
            state(),
            state(KEY),
            id="created key",
        ),
        pytest.param(
            metad_pb.RevokeApiKeyRequest(key_id="k1"),
            REVOKED_KEY,
            state(KEY),
            state(REVOKED_KEY),
            id="revoked key",
        ),
        pytest.param(
            metad_pb.RevokeApiKeyRequest(key_id="k1"),
            REVOKED_KEY,
            state(KEY),
            state(),
            id="revoked key that is forgotten",
        ),
        pytest.param(
            GRANT,
            GRANT,
            state(metad_pb.RoleGrant(principal="alice", space="graph", role=metad_pb.READER)),
            state(GRANT),
            id="granted role",
        ),
        pytest.param(
            metad_pb.RevokeRoleRequest(principal="alice", space="graph"),
            metad_pb.RevokeRoleReply(),
            state(GRANT),
            state(metad_pb.RoleGrant(principal="alice", space="*", role=metad_pb.WRITER)),
            id="revoked role",
        ),
        pytest.param(LIMITS, LIMITS, state(), state(LIMITS), id="limits"),
        pytest.param(NO_LIMITS, NO_LIMITS, state(LIMITS), state(), id="removed limits"),
    ],
)
def test_a_change_is_expected_in_the_state(
    request_: Content, reply: Content, before: Content, after: Content
) -> None:
    is_visible = expected_access(request_, reply)
    assert is_visible is not None
    assert isinstance(before, metad_pb.AccessState)
    assert isinstance(after, metad_pb.AccessState)
    assert not is_visible(before)
    assert is_visible(after)


def test_other_calls_change_no_access_state() -> None:
    assert expected_access(metad_pb.ListGrantsRequest(), metad_pb.RoleGrantList()) is None
    assert expected_access(common_pb.Empty(), metad_pb.SpaceList()) is None
