"""Handlers for filters: rows that match terms, and totals of rows that match a filter."""

from __future__ import annotations

import numpy as np

from asterism_daemonkit.rpc.call_context import CallContext
from asterism_model.filters.syntax import Term, parse
from asterism_proto.errors import InvalidRequest
from asterism_proto.framing import Frame
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from storaged import sampling
from storaged.api.decoding import Sections
from storaged.api.version_resolution import RequestVersions, decode_row_filter


def evaluate_terms(
    versions: RequestVersions, request: Frame[storaged_pb.EvaluateTermsRequest], call: CallContext
) -> Frame[storaged_pb.EvaluateTermsReply]:
    """Return which local rows match terms of a filter."""
    head = request.head
    version, sections = versions.unfiltered(request), Sections()
    for number, text in enumerate(head.terms):
        term = _parse_term(text)
        for part in head.parts:
            sections[f"{number}.{part}"] = sampling.evaluate_term(
                version, part, head.element, head.type_id, term, call.remaining
            )
    return Frame(storaged_pb.EvaluateTermsReply(), sections)


def filter_rows(
    versions: RequestVersions, request: Frame[storaged_pb.FilterRowsRequest], call: CallContext
) -> Frame[storaged_pb.FilterRowsReply]:
    """Find the rows that match a filter, cache them, and return their totals."""
    head = request.head
    if not head.version_ref.HasField("where"):
        raise InvalidRequest("filter_rows: version_ref.where: missing; expected a filter")
    unfiltered = versions.unfiltered(request)
    where, parts = decode_row_filter(head.version_ref.where), list(head.parts)
    totals = versions.filters.filtered_totals(
        unfiltered, where, parts, call.remaining, _decode_matches(request)
    )
    rows = [[totals[where.element, type_id, part] for part in parts] for type_id in where.types]
    shape = (len(where.types), len(parts))
    sections: Sections = {
        "counts": np.array([[total.count for total in row] for row in rows], np.int64).reshape(
            shape
        ),
        "positives": np.array(
            [[total.positive for total in row] for row in rows], np.int64
        ).reshape(shape),
        "weights": np.array([[total.weight for total in row] for row in rows], np.float64).reshape(
            shape
        ),
    }
    plan = versions.filters.describe_plan(unfiltered, where)
    return Frame(storaged_pb.FilterRowsReply(plan=plan), sections)


def _decode_matches(request: Frame[storaged_pb.FilterRowsRequest]) -> sampling.RemoteMatches:
    """Return the matches of terms that were found by other storageds."""
    head = request.head
    matches = {}
    for name, array in request.arrays.items():
        edge_type, number, part = (
            int(field) if field.isdecimal() else -1 for field in (*name.split("."), "", "")[:3]
        )
        if (
            not 0 <= number < len(head.terms)
            or edge_type < 0
            or part < 0
            or array.ndim != 1
            or array.dtype not in (np.uint8, np.int64)
        ):
            raise InvalidRequest(
                f"filter_rows: array {name!r}: expected the result of one of {len(head.terms)} "
                "terms"
            )
        matches[edge_type, str(head.terms[number]), part] = array
    return sampling.RemoteMatches(found=matches)


def _parse_term(text: str) -> Term:
    tree = parse(text).predicate
    if not isinstance(tree, Term):
        raise InvalidRequest(f"evaluate_terms: {text!r}: expected a single term")
    return tree
