"""What storaged is asked about conditions: which rows satisfy one, and draws from those alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_daemonkit.calls import CallContext
from asterism_model.filters.syntax import Term, parse
from asterism_model.partition_stats import PartitionTotals
from asterism_proto.errors import InvalidRequest
from asterism_proto.framing import Frame
from asterism_proto.v1 import storaged_pb2 as pb
from storaged import sampling
from storaged.requests import check_types

Sections = dict[str, NDArray[Any]]

FILTER_CACHE_BYTES = 512 << 20
"""Of memory for what satisfies conditions, unless something else is said."""


class FilterHandlers(ABC):
    """Handlers of the Store service, one part of them.

    Parameters
    ----------
    filter_cache_bytes : int
        Of memory for what satisfies the conditions of requests.
    """

    def __init__(self, filter_cache_bytes: int = FILTER_CACHE_BYTES) -> None:
        self._filters = sampling.FilterCache(filter_cache_bytes)

    @abstractmethod
    def _validated_version(self, request: Frame) -> sampling.LocalVersion:
        """Return the version that a request names, with all of its rows, after validation of the
        request.
        """

    def judge(self, request: Frame, call: CallContext) -> Frame:
        """Which rows that live here satisfy terms of a condition."""
        head: Any = request.head
        version, sections = self._validated_version(request), Sections()
        for number, text in enumerate(head.terms):
            term = _parse_term(text)
            for part in head.parts:
                sections[f"{number}.{part}"] = sampling.evaluate_term(
                    version, part, head.element, head.type_id, term, call.remaining
                )
        return Frame(pb.JudgeReply(), sections)

    def restrict(self, request: Frame, call: CallContext) -> Frame:
        """Look which rows satisfy a condition, and keep them."""
        head: Any = request.head
        if not head.at.HasField("where"):
            raise InvalidRequest("restrict: at.where is missing; say which rows are meant")
        unfiltered, where, parts = (
            self._validated_version(request),
            _decode_filter(head.at.where),
            list(head.parts),
        )
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
                    f"restrict: the array {name!r} is no answer to one of {len(head.terms)} terms"
                )
            matches[edge_type, str(head.terms[number]), part] = array
        shares = self._filters.filtered_totals(
            unfiltered, where, parts, call.remaining, sampling.RemoteMatches(found=matches)
        )
        rows = [[shares[where.element, type_id, part] for part in parts] for type_id in where.types]
        shape = (len(where.types), len(parts))
        sections: Sections = {
            "counts": np.array([[share.count for share in row] for row in rows], np.int64).reshape(
                shape
            ),
            "positives": np.array(
                [[share.positive for share in row] for row in rows], np.int64
            ).reshape(shape),
            "weights": np.array(
                [[share.weight for share in row] for row in rows], np.float64
            ).reshape(shape),
        }
        return Frame(pb.RestrictReply(way=self._filters.describe_plan(unfiltered, where)), sections)

    def _filter_ranges(self, request: Frame) -> Mapping[int, sampling.IndexRanges]:
        """What satisfies a request's condition in the order of each node's edges, by edge type;
        none where one of the types has no such order.
        """
        head: Any = request.head
        if not head.at.HasField("where"):
            return {}
        ranges = self._filters.index_ranges(
            self._validated_version(request), _decode_filter(head.at.where)
        )
        return ranges if set(head.edge_types) <= set(ranges) else {}

    def _filtered_version(
        self,
        unfiltered: sampling.LocalVersion,
        message: pb.Where,
        call: CallContext,
        *,
        globally: bool = False,
    ) -> sampling.LocalVersion:
        """The version with only those rows that a request is about; ``globally`` as of
        `storaged.sampling.FilterCache.filtered_version`.
        """
        where, parts = _decode_filter(message), unfiltered.schema.parts
        columns = list(zip(message.counts, message.positives, message.weights, strict=False))
        if (
            not len(columns)
            == len(message.counts)
            == len(message.weights)
            == len(where.types) * parts
        ):
            raise InvalidRequest(
                f"at.where: {len(columns)} totals of {len(where.types)} types in {parts} parts"
            )
        check_types(
            "at.where.types",
            where.types,
            len(
                unfiltered.schema.node_types
                if where.element == sampling.NODE
                else unfiltered.schema.edge_types
            ),
        )
        totals = {
            (where.element, type_id, part): PartitionTotals(
                count=count, positive=positive, weight=weight
            )
            for (type_id, part), (count, positive, weight) in zip(
                ((t, p) for t in where.types for p in range(parts)), columns, strict=True
            )
        }
        return self._filters.filtered_version(
            unfiltered, where, totals, call.remaining, for_global_draws=globally
        )


def _decode_filter(message: pb.Where) -> sampling.RowFilter:
    if message.element not in (sampling.NODE, sampling.EDGE) or list(message.types) != sorted(
        set(message.types)
    ):
        raise InvalidRequest(
            f"at.where: element {message.element} of types {list(message.types)}; expected "
            "nodes or edges of ascending types"
        )
    return sampling.RowFilter(
        text=message.text,
        element=int(message.element),
        types=tuple(message.types),
        weight=message.weight,
        both_directions=message.both,
    )


def _parse_term(text: str) -> Term:
    tree = parse(text).predicate
    if not isinstance(tree, Term):
        raise InvalidRequest(f"judge: {text!r} is not one term")
    return tree
