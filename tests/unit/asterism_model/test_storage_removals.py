"""Tests of removal requests: one record, with one form in messages."""

from __future__ import annotations

import pytest

from asterism_model.storage_removals import RemovalKind, RemovalRequest
from asterism_proto.v1 import metad_pb2 as metad_pb


def test_a_removal_order_survives_messages() -> None:
    request = RemovalRequest(
        removal_id=7, kind=RemovalKind.LOADS, space_id=1, loads=(5, 9), reason="given up"
    )
    message = request.to_proto()
    assert message.kind == metad_pb.REMOVE_LOADS
    assert RemovalRequest.from_proto(message) == request
    assert request.target == (RemovalKind.LOADS, 1, 0, (5, 9))


def test_kinds_have_the_numbers_of_messages() -> None:
    assert {kind.value: f"REMOVE_{kind.name}" for kind in RemovalKind} == {
        number: name for name, number in metad_pb.RemovalKind.items() if number
    }
    with pytest.raises(ValueError, match="0 is not a valid RemovalKind"):
        RemovalRequest.from_proto(metad_pb.RemovalOrder())
