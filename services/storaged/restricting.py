"""What storaged is asked about conditions: which rows satisfy one, and draws from those alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto.arrays import Frame
from asterism_proto.condition import Term, parse
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import storaged_pb2 as pb
from daemonkit.calls import Call
from storaged import draw
from storaged.requests import check_types

Sections = dict[str, NDArray[Any]]

CONDITIONS_BYTES = 512 << 20
"""Of memory for what satisfies conditions, unless something else is said."""


class Restricting(ABC):
    """Handlers of the Store service, one part of them.

    Parameters
    ----------
    conditions_bytes : int
        Of memory for what satisfies the conditions of requests.
    """

    def __init__(self, conditions_bytes: int = CONDITIONS_BYTES) -> None:
        self._conditions = draw.Conditions(conditions_bytes)

    @abstractmethod
    def _checked(self, request: Frame) -> draw.Version:
        """Return the version that a request names, with all of its rows, after validation of the request."""

    def judge(self, request: Frame, call: Call) -> Frame:
        """Which rows that live here satisfy terms of a condition."""
        head: Any = request.head
        version, sections = self._checked(request), Sections()
        for number, text in enumerate(head.terms):
            term = _term(text)
            for part in head.parts:
                sections[f"{number}.{part}"] = draw.judged(version, part, head.element, head.type_id, term, call.remaining)
        return Frame(pb.JudgeReply(), sections)

    def restrict(self, request: Frame, call: Call) -> Frame:
        """Look which rows satisfy a condition, and keep them."""
        head: Any = request.head
        if not head.at.HasField("where"):
            raise InvalidRequest("restrict: at.where is missing; say which rows are meant")
        whole, where, parts = self._checked(request), _where(head.at.where), list(head.parts)
        found = {}
        for name, array in request.arrays.items():
            edge_type, number, part = (int(word) if word.isdecimal() else -1 for word in (*name.split("."), "", "")[:3])
            if not 0 <= number < len(head.terms) or edge_type < 0 or part < 0 or array.ndim != 1 or array.dtype not in (np.uint8, np.int64):
                raise InvalidRequest(f"restrict: the array {name!r} is no answer to one of {len(head.terms)} terms")
            found[edge_type, str(head.terms[number]), part] = array
        shares = self._conditions.shares(whole, where, parts, call.remaining, draw.Foreign(found=found))
        rows = [[shares[where.element, type_id, part] for part in parts] for type_id in where.types]
        shape = (len(where.types), len(parts))
        sections: Sections = {
            "counts": np.array([[share.count for share in row] for row in rows], np.int64).reshape(shape),
            "positives": np.array([[share.positive for share in row] for row in rows], np.int64).reshape(shape),
            "weights": np.array([[share.weight for share in row] for row in rows], np.float64).reshape(shape),
        }
        return Frame(pb.RestrictReply(way=self._conditions.way(whole, where)), sections)

    def _ranges(self, request: Frame) -> Mapping[int, draw.Ranges]:
        """What satisfies a request's condition in the order of each node's edges, by edge type; none where one of the types has no such order."""
        head: Any = request.head
        if not head.at.HasField("where"):
            return {}
        found = self._conditions.ranges(self._checked(request), _where(head.at.where))
        return found if set(head.edge_types) <= set(found) else {}

    def _restricted(self, whole: draw.Version, asked: pb.Where, call: Call, *, globally: bool = False) -> draw.Version:
        """The version with only those rows that a request is about; ``globally`` as of `storaged.draw.Conditions.version`."""
        where, parts = _where(asked), whole.schema.parts
        columns = list(zip(asked.counts, asked.positives, asked.weights, strict=False))
        if not len(columns) == len(asked.counts) == len(asked.weights) == len(where.types) * parts:
            raise InvalidRequest(f"at.where: {len(columns)} totals of {len(where.types)} types in {parts} parts")
        check_types("at.where.types", where.types, len(whole.schema.node_types if where.element == draw.NODE else whole.schema.edge_types))
        totals = {
            (where.element, type_id, part): draw.Share(count=count, positive=positive, weight=weight)
            for (type_id, part), (count, positive, weight) in zip(((t, p) for t in where.types for p in range(parts)), columns, strict=True)
        }
        return self._conditions.version(whole, where, totals, call.remaining, globally=globally)


def _where(asked: pb.Where) -> draw.Where:
    if asked.element not in (draw.NODE, draw.EDGE) or list(asked.types) != sorted(set(asked.types)):
        raise InvalidRequest(f"at.where: element {asked.element} of types {list(asked.types)}; expected nodes or edges of ascending types")
    return draw.Where(text=asked.text, element=int(asked.element), types=tuple(asked.types), weight=asked.weight, both=asked.both)


def _term(text: str) -> Term:
    tree = parse(text).tree
    if not isinstance(tree, Term):
        raise InvalidRequest(f"judge: {text!r} is not one term")
    return tree
