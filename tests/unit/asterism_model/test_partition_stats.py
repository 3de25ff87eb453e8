"""Tests of partition statistics: one record, with one form in messages and one in JSON."""

from __future__ import annotations

import json
import pickle
from dataclasses import fields

import pytest

from asterism_model.elements import Element, element_from_proto
from asterism_model.partition_stats import PartitionStats, PartitionTotals, totals_by_weight_name
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import common_pb2 as common_pb

STATS = PartitionStats(
    part=3,
    element=Element.EDGE,
    type_id=2,
    count=9,
    positive=7,
    weight=4.5,
    weight_name="popular",
    audit_tv=1e-18,
    mix_out=2**64 - 1,
    mix_in=5,
    count_in=8,
    squares=2.25,
    largest=1.5,
)


def test_a_record_has_the_fields_of_its_message() -> None:
    assert {field.name for field in fields(PartitionStats)} == {
        field.name for field in common_pb.PartitionStats.DESCRIPTOR.fields
    }


def test_a_record_survives_messages_json_and_pickle() -> None:
    message = STATS.to_proto()
    assert (message.element, message.mix_out, message.weight_name) == (2, 2**64 - 1, "popular")
    assert PartitionStats.from_proto(message) == STATS
    assert PartitionStats.from_dict(json.loads(json.dumps(STATS.to_dict()))) == STATS
    assert pickle.loads(pickle.dumps(STATS)) == STATS


def test_json_has_the_order_and_the_numbers_of_messages() -> None:
    assert list(STATS.to_dict()) == [
        field.name for field in common_pb.PartitionStats.DESCRIPTOR.fields
    ]
    assert STATS.to_dict()["element"] == 2


def test_an_element_equals_and_prints_as_its_name() -> None:
    assert STATS.element == "EDGE"
    assert f"{STATS.element}" == "EDGE"
    assert repr(STATS).startswith("PartitionStats(part=3, element='EDGE', type_id=2, count=9")
    assert "mix_out" not in repr(STATS)
    assert [element.number for element in Element] == [common_pb.NODE, common_pb.EDGE] == [1, 2]


@pytest.mark.parametrize("number", [0, 3])
def test_an_unknown_element_is_refused(number: int) -> None:
    with pytest.raises(InvalidRequest, match=f"chunk 4: element {number}; expected NODE"):
        element_from_proto("chunk 4", number)
    with pytest.raises(InvalidRequest, match="statistics of partition 1: element"):
        PartitionStats.from_proto(
            common_pb.PartitionStats(part=1, element=common_pb.Element.ValueType(number))
        )


def test_totals_are_grouped_by_the_name_of_their_weights() -> None:
    messages = [
        common_pb.PartitionStats(
            part=0, element="NODE", type_id=1, count=3, positive=2, weight=1.5
        ),
        common_pb.PartitionStats(
            part=1, element="NODE", type_id=1, count=4, positive=4, weight=4, weight_name="weight"
        ),
        common_pb.PartitionStats(part=1, element="NODE", type_id=1, count=4, weight_name="popular"),
    ]
    own, named = totals_by_weight_name(messages)
    assert own == {
        (1, 1, 0): PartitionTotals(count=3, positive=2, weight=1.5),
        (1, 1, 1): PartitionTotals(count=4, positive=4, weight=4.0),
    }
    assert named == {"popular": {(1, 1, 1): PartitionTotals(count=4, positive=0, weight=0.0)}}
