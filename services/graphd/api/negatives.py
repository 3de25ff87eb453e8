"""Negative sampling: nodes per row, with some nodes excluded from each row."""

from __future__ import annotations

from collections.abc import Sequence

from asterism_model.elements import NODE
from asterism_proto.errors import InvalidRequest
from asterism_proto.framing import Frame
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from graphd.api.decoding import decode_seed
from graphd.api.replies import sample_reply
from graphd.operators import global_sampling, negatives
from graphd.operators.call_seeds import Operator
from graphd.operators.filters import with_filter
from graphd.operators.negative_exclusions import RowExclusions
from graphd.operators.request_context import RequestContext
from graphd.operators.schema_checks import check_types


def check_counts(request: Frame[graphd_pb.SampleNegativesRequest]) -> None:
    """Raise InvalidRequest if a count is negative."""
    head = request.head
    if head.rows < 0 or head.count < 0:
        raise InvalidRequest(f"{head.count} nodes for each of {head.rows} rows: expected 0 or more")


def sample_negatives(
    context: RequestContext, request: Frame[graphd_pb.SampleNegativesRequest]
) -> Frame[graphd_pb.SampleNegativesReply]:
    """Sample nodes that are not excluded from a row."""
    head, schema = request.head, context.space.schema
    types: Sequence[int] = sorted(set(head.types)) or range(len(schema.node_types))
    check_types("node", schema, types)
    exclusions = RowExclusions.from_request(context, request, types)
    draw = global_sampling.GlobalDraw(
        element=NODE,
        types=tuple(types),
        seed=decode_seed(head, Operator.NEGATIVES, types=types),
        count=head.count,
        uniform=head.uniform,
        distinct=False,
        want_probabilities=head.want_probabilities,
    )
    sections = negatives.sample_negatives(
        with_filter(context, NODE, draw.types, head), draw, head.rows, exclusions
    )
    return sample_reply(context, graphd_pb.SampleNegativesReply, sections)
