"""Tests of frames and of the messages in their heads."""

from __future__ import annotations

import pytest

from asterism_proto.framing import Frame
from asterism_proto.methods import GRAPH, SAMPLING_METHODS
from asterism_proto.v1 import graphd_pb2 as graphd_pb


def test_frame_is_typed_by_its_head() -> None:
    frame = Frame(graphd_pb.SampleNodesReply(version=3))
    assert frame.with_head(graphd_pb.SampleNodesReply) is frame


def test_head_of_another_type_is_refused() -> None:
    with pytest.raises(TypeError, match="expected SampleEdgesReply, found SampleNodesReply"):
        Frame(graphd_pb.SampleNodesReply()).with_head(graphd_pb.SampleEdgesReply)


def test_sampling_methods_have_a_seed_and_return_a_digest() -> None:
    for name in SAMPLING_METHODS:
        assert "seed" in GRAPH[name].request.DESCRIPTOR.fields_by_name, name
        assert "digest" in GRAPH[name].reply.DESCRIPTOR.fields_by_name, name
