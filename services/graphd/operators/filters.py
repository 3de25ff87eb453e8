"""Filters: storageds find the matching rows once, and sampling uses these rows alone.

The share of each partition depends on its matching rows, so their totals are computed first. Each
total is an exact sum over one partition, so it does not depend on the host. A storaged may lack the
columns for a term: features of edges and of remote end nodes may be on other hosts. The owners of
these rows evaluate the term."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from asterism_model.elements import EDGE, NODE
from asterism_model.filters.binding import bind, column_location, reads_edge_columns
from asterism_model.filters.syntax import ColumnOperand, Predicate, Term, iter_terms, parse
from asterism_model.partition_stats import PartitionTotals
from asterism_proto.errors import Internal, InvalidRequest
from asterism_proto.framing import Frame
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from graphd.operators.request_context import REPLY_BYTES, RequestContext
from graphd.operators.schema_checks import resolve_weight_name
from graphd.routing.filter_totals_cache import FilteredTotals, FilterKey
from graphd.routing.totals import VersionTotals

TermResults = dict[str, NDArray[Any]]
_ELEMENTS = {NODE: common_pb.NODE, EDGE: common_pb.EDGE}


class RowFields(Protocol):
    """Fields of a request for filtered rows, with named weights."""

    weight: str
    where: str


def with_filter(
    context: RequestContext, element: int, types: Iterable[int], head: RowFields
) -> RequestContext:
    """Return a context with the weights and the filter that a request names.

    Parameters
    ----------
    context : RequestContext
    element : int
        NODE or EDGE: the rows that the filter applies to.
    types : iterable of int
        Types that the request selects from.
    head : RowFields
        Fields of the request.

    Raises
    ------
    NotFound, InvalidRequest
        If a type has no weights of that name, or the filter is invalid for it.
    """
    type_ids = sorted(set(types))
    weighted_context = context.with_weights(
        resolve_weight_name(element, context.space.schema, type_ids, head.weight)
    )
    if not head.where:
        return weighted_context
    parsed_filter, schema = parse(head.where), context.space.schema
    predicates = {type_id: bind(parsed_filter, schema, element, type_id) for type_id in type_ids}
    both_directions = element == EDGE and getattr(head, "direction", common_pb.OUT) == common_pb.IN
    key = FilterKey(
        space_id=context.space.space_id,
        version=context.version.version,
        digest=context.version.digest,
        text=parsed_filter.canonical,
        element=element,
        types=tuple(type_ids),
        weight_name=weighted_context.weight_name,
        both_directions=both_directions,
        hosts=tuple(context.space.hosts[host] for host in context.space.host_of_part),
    )
    entry = context.filter_cache.get(key)
    if entry is None:
        entry = _count_matches(weighted_context, key, predicates)
        context.filter_cache.put(key, entry)
    return replace(
        weighted_context,
        version=replace(weighted_context.version, totals=entry.totals),
        row_filter=entry.row_filter,
        filter_plan=entry.plan,
    )


def _count_matches(
    context: RequestContext, key: FilterKey, predicates: dict[int, Predicate]
) -> FilteredTotals:
    """Let the storageds find the rows that match a filter; return their totals."""
    space = context.space
    where = storaged_pb.RowFilter(
        expression=key.text,
        element=_ELEMENTS[key.element],
        types=key.types,
        weight=key.weight_name,
        both_directions=key.both_directions,
    )
    version_ref = storaged_pb.VersionRef(
        space_id=space.space_id,
        version=context.version.version,
        digest=context.version.digest,
        where=where,
    )
    term_texts: list[str] = []
    term_results: TermResults = {}
    if len(space.hosts) > 1 and key.element == EDGE:
        term_texts, term_results = _evaluate_remote_terms(
            context, predicates, both_directions=key.both_directions
        )
    requests = [
        storaged_pb.FilterRowsRequest(
            version_ref=version_ref, parts=space.parts_of(host), terms=term_texts
        )
        for host in range(len(space.hosts))
    ]
    replies = context.dispatch(
        "filter_rows",
        [(host, Frame(request, term_results)) for host, request in enumerate(requests)],
    )
    columns = {
        name: np.zeros((len(key.types), space.schema.parts), dtype)
        for name, dtype in _COLUMNS.items()
    }
    for request, reply in zip(requests, replies, strict=True):
        for name, column in columns.items():
            values = reply.array(name, _COLUMNS[name], 2)
            if values.shape != (len(key.types), len(request.parts)):
                raise Internal(
                    f"filter_rows returned {name} of shape {list(values.shape)} for "
                    f"{len(key.types)} types in {len(request.parts)} parts"
                )
            column[:, list(request.parts)] = values
    where.counts.extend(columns["counts"].reshape(-1).tolist())
    where.positives.extend(columns["positives"].reshape(-1).tolist())
    where.weights.extend(columns["weights"].reshape(-1).tolist())
    filtered_totals = {
        (key.element, type_id, part): PartitionTotals(
            count=int(columns["counts"][t, part]),
            positive=int(columns["positives"][t, part]),
            weight=float(columns["weights"][t, part]),
        )
        for t, type_id in enumerate(key.types)
        for part in range(space.schema.parts)
    }
    totals = context.version.totals
    plans = dict.fromkeys(cast(storaged_pb.FilterRowsReply, reply.head).plan for reply in replies)
    return FilteredTotals(
        totals=VersionTotals(
            parts=totals.parts, part_totals={**totals.part_totals, **filtered_totals}
        ),
        row_filter=where,
        plan="; ".join(filter(None, plans)),
    )


_COLUMNS = {"counts": "int64", "positives": "int64", "weights": "float64"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _RemoteTerm:
    """Term of a filter that the owners of remote rows evaluate."""

    element: int
    type_id: int
    text: str
    """Text of the term with columns of these rows."""


def _evaluate_remote_terms(
    context: RequestContext, predicates: dict[int, Predicate], *, both_directions: bool
) -> tuple[list[str], TermResults]:
    """Evaluate the terms that the hosts of edges cannot; return terms and results.

    The results are sections in the format of FilterRows.
    """
    schema = context.space.schema
    remote_ends = ("", "dst", "src") if both_directions else ("", "dst")
    remote_terms: dict[tuple[int, str], _RemoteTerm] = {}
    for type_id, predicate in predicates.items():
        edge = schema.edge_types[type_id]
        for term in iter_terms(predicate):
            end = column_location(term.left)
            if end in remote_ends and not reads_edge_columns(edge, term):
                owner_type = (
                    type_id
                    if end == ""
                    else schema.node_type_id(edge.dst_type if end == "dst" else edge.src_type)
                )
                remote_terms[type_id, str(term)] = _RemoteTerm(
                    element=NODE if end else EDGE, type_id=owner_type, text=str(_without_end(term))
                )
    term_texts = list(dict.fromkeys(text for _, text in remote_terms))
    results_by_term: dict[_RemoteTerm, dict[int, NDArray[Any]]] = {}
    for element, owner_type in dict.fromkeys(
        (remote_term.element, remote_term.type_id) for remote_term in remote_terms.values()
    ):
        type_terms = list(
            dict.fromkeys(
                q for q in remote_terms.values() if (q.element, q.type_id) == (element, owner_type)
            )
        )
        results_by_term |= dict(
            zip(
                type_terms,
                _evaluate_terms(
                    context, element, owner_type, [remote_term.text for remote_term in type_terms]
                ),
                strict=True,
            )
        )
    term_results = {
        f"{type_id}.{term_texts.index(text)}.{part}": array
        for (type_id, text), remote_term in remote_terms.items()
        for part, array in results_by_term[remote_term].items()
    }
    size = sum(array.nbytes for array in term_results.values())
    if size > REPLY_BYTES:
        raise InvalidRequest(
            f"the rows that match {term_texts} take {size:,} bytes between storageds: expected "
            f"at most {REPLY_BYTES:,}; use fewer edge types at a time, or a filter of fewer terms"
        )
    return term_texts, term_results


def _evaluate_terms(
    context: RequestContext, element: int, type_id: int, term_texts: Sequence[str]
) -> list[dict[int, NDArray[Any]]]:
    """Return the result of each term, by partition."""
    space = context.space
    requests = [
        storaged_pb.EvaluateTermsRequest(
            version_ref=context.version_ref(),
            element=_ELEMENTS[element],
            type_id=type_id,
            parts=space.parts_of(host),
            terms=term_texts,
        )
        for host in range(len(space.hosts))
    ]
    results: list[dict[int, NDArray[Any]]] = [{} for _ in term_texts]
    for reply in context.dispatch(
        "evaluate_terms", [(host, Frame(request)) for host, request in enumerate(requests)]
    ):
        for name, array in reply.arrays.items():
            index, part = name.split(".")
            results[int(index)][int(part)] = array
    return results


def _without_end(term: Term) -> Term:
    """Return a term that reads its columns from the row itself."""
    return replace(
        term,
        left=replace(term.left, endpoint=""),
        right=tuple(
            replace(operand, endpoint="") if isinstance(operand, ColumnOperand) else operand
            for operand in term.right
        ),
    )
