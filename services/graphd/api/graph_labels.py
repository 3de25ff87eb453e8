"""Graph labels: sampling of a version's labels, and the nodes of given labels."""

from __future__ import annotations

from asterism_proto.framing import Frame
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from graphd.api.replies import read_reply, sample_reply
from graphd.operators import graph_labels
from graphd.operators.call_seeds import Operator, call_seed
from graphd.operators.request_context import RequestContext


def sample_graph_labels(
    context: RequestContext,
    request: Frame[graphd_pb.SampleGraphLabelsRequest],
    cache: graph_labels.GraphLabelCache,
) -> Frame[graphd_pb.SampleGraphLabelsReply]:
    """Sample graph labels."""
    head = request.head
    seed = call_seed(head.seed, Operator.LABELS, weighted=False)
    sections = graph_labels.sample_labels(context, cache, seed, head.count)
    return sample_reply(context, graphd_pb.SampleGraphLabelsReply, sections)


def graph_nodes(
    context: RequestContext, request: Frame[graphd_pb.GraphNodesRequest]
) -> Frame[graphd_pb.GraphNodesReply]:
    """Read the nodes of graphs."""
    sections = graph_labels.label_nodes(context, *_labels(request))
    return read_reply(context, graphd_pb.GraphNodesReply, sections)


def check_labels(request: Frame[graphd_pb.GraphNodesRequest]) -> None:
    """Raise InvalidRequest if the labels are missing."""
    _labels(request)


def _labels(request: Frame[graphd_pb.GraphNodesRequest]) -> graph_labels.ByteStrings:
    return request.array("labels.indptr", "int64"), request.array("labels.values", "uint8")
