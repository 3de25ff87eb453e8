"""Tests of rows and bytes of calls as limits count them."""

from __future__ import annotations

import numpy as np

from asterism_access.call_costs import CallCost, actual_cost, expected_cost
from asterism_proto.framing import Frame
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import graphd_pb2 as graphd_pb


def test_a_sample_costs_its_price_before_and_after() -> None:
    head = graphd_pb.SampleNeighborsRequest(space="s", count=10, edge_types=[0], replace=True)
    request = Frame(head, {"nodes": np.arange(100)})
    expected = expected_cost(request)
    assert (expected.rows, expected.exact) == (1000, True)
    assert expected.size > 800 + 1000 * 8
    reply = Frame(graphd_pb.SampleNeighborsReply(), {"neighbors": np.zeros(7, np.int64)})
    actual = actual_cost(request, expected, reply)
    assert actual.rows == 1000
    assert actual.size == head.ByteSize() + 800 + 56


def test_a_read_of_unknown_size_costs_what_it_returned() -> None:
    request = Frame(graphd_pb.NeighborsRequest(space="s", edge_types=[0]), {"nodes": np.arange(2)})
    expected = expected_cost(request)
    assert not expected.exact
    assert expected.rows > 1 << 60
    reply = Frame(graphd_pb.NeighborsReply(), {"offsets": np.arange(3), "neighbors": np.arange(50)})
    assert actual_cost(request, expected, reply).rows == 50


def test_a_write_costs_its_own_rows() -> None:
    request = Frame(
        graphd_pb.WriteRequest(space="s"), {"ids": np.arange(9), "x": np.zeros((9, 4), np.float32)}
    )
    assert expected_cost(request) == CallCost(9, request.head.ByteSize() + 216, False)
    reply = Frame(graphd_pb.WriteReply(rows=9))
    assert actual_cost(request, expected_cost(request), reply).rows == 9


def test_a_message_costs_its_bytes() -> None:
    request = graphd_pb.QueryRequest(statement="SHOW SPACES")
    assert expected_cost(request) == CallCost(0, request.ByteSize())
    reply = common_pb.Space(name="shop")
    cost = actual_cost(request, expected_cost(request), reply)
    assert cost == CallCost(0, request.ByteSize() + reply.ByteSize())
