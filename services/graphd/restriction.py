"""Requests under a condition: the storageds look once which rows satisfy it, draws are then from these alone.

Which part a draw falls on is decided by what satisfies the condition there, so its totals are found out first; they are
exact sums, of one part each, so that they are the same whoever holds it. What a storaged can not tell by itself (features
of edges and of the nodes that they lead to may be kept by others) its owners are asked for, term by term.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from asterism_proto.arrays import Frame
from asterism_proto.condition import Column, Term, Tree, parse, terms
from asterism_proto.errors import Internal, InvalidRequest
from asterism_proto.meaning import bound, kept_near, place_of
from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.v1 import storaged_pb2 as store
from graphd.conditions import Asked, Known
from graphd.requests import weights_of
from graphd.sample import REPLY_BYTES, Sampling
from graphd.totals import EDGE, NODE, Total, Totals

Answers = dict[str, NDArray[Any]]
_ELEMENTS = {NODE: pb.NODE, EDGE: pb.EDGE}


def by(at: Sampling, element: int, types: Iterable[int], head: Any) -> Sampling:
    """A request's surroundings: by the weights that it names, and of the rows that satisfy its condition.

    Parameters
    ----------
    at : Sampling
    element : int
        totals.NODE or totals.EDGE, what the condition is on.
    types : iterable of int
        Those that the request is about.
    head : message
        With ``weight`` and ``where``.

    Raises
    ------
    NotFound, InvalidRequest
        Where a type has no weights of that name, or the condition has no meaning for it.
    """
    wanted = sorted(set(types))
    weighed = at.by(weights_of(element, at.space.schema, wanted, head.weight))
    if not head.where:
        return weighed
    condition, schema = parse(head.where), at.space.schema
    trees = {type_id: bound(condition, schema, element, type_id) for type_id in wanted}
    both = element == EDGE and getattr(head, "direction", pb.OUT) == pb.IN
    asked = Asked(
        space_id=at.space.space_id,
        version=at.version.version,
        digest=at.version.digest,
        text=condition.canonical,
        element=element,
        types=tuple(wanted),
        weight=weighed.weights,
        both=both,
        hosts=tuple(at.space.hosts[host] for host in at.space.host_of_part),
    )
    known = at.conditions.find(asked)
    if known is None:
        known = _find_out(weighed, asked, trees)
        at.conditions.keep(asked, known)
    return replace(weighed, version=replace(weighed.version, totals=known.totals), where=known.where, way=known.way)


def _find_out(at: Sampling, asked: Asked, trees: dict[int, Tree]) -> Known:
    """Ask the storageds what satisfies a condition."""
    space = at.space
    where = store.Where(text=asked.text, element=_ELEMENTS[asked.element], types=asked.types, weight=asked.weight, both=asked.both)
    told = store.At(space_id=space.space_id, version=at.version.version, digest=at.version.digest, where=where)
    words: list[str] = []
    answers: Answers = {}
    if len(space.hosts) > 1 and asked.element == EDGE:
        words, answers = _judged(at, trees, both=asked.both)
    head = [store.RestrictRequest(at=told, parts=space.parts_of(host), terms=words) for host in range(len(space.hosts))]
    replies = at.ask("restrict", [(host, Frame(request, answers)) for host, request in enumerate(head)])
    columns = {name: np.zeros((len(asked.types), space.schema.parts), kind) for name, kind in _COLUMNS.items()}
    for request, reply in zip(head, replies, strict=True):
        for name, column in columns.items():
            found = reply.array(name, _COLUMNS[name], 2)
            if found.shape != (len(asked.types), len(request.parts)):
                raise Internal(f"restrict gave {name} of shape {list(found.shape)} for {len(asked.types)} types in {len(request.parts)} parts")
            column[:, list(request.parts)] = found
    where.counts.extend(columns["counts"].reshape(-1).tolist())
    where.positives.extend(columns["positives"].reshape(-1).tolist())
    where.weights.extend(columns["weights"].reshape(-1).tolist())
    left = {
        (asked.element, type_id, part): Total(
            count=int(columns["counts"][t, part]), positive=int(columns["positives"][t, part]), weight=float(columns["weights"][t, part])
        )
        for t, type_id in enumerate(asked.types)
        for part in range(space.schema.parts)
    }
    totals = at.version.totals
    ways = dict.fromkeys(cast(store.RestrictReply, reply.head).way for reply in replies)
    return Known(totals=Totals(parts=totals.parts, by_share={**totals.by_share, **left}), where=where, way="; ".join(filter(None, ways)))


_COLUMNS = {"counts": "int64", "positives": "int64", "weights": "float64"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """A term that the owners of some rows answer."""

    element: int
    type_id: int
    word: str
    """The term, of these rows' own columns."""


def _judged(at: Sampling, trees: dict[int, Tree], *, both: bool) -> tuple[list[str], Answers]:
    """What owners say of terms that the holders of edges can not judge: the terms, and the answers as Restrict takes them."""
    schema = at.space.schema
    far = ("", "dst", "src") if both else ("", "dst")
    asked: dict[tuple[int, str], _Question] = {}
    for type_id, tree in trees.items():
        edge = schema.edge_types[type_id]
        for term in terms(tree):
            place = place_of(term.left)
            if place in far and not kept_near(edge, term):
                owner = type_id if place == "" else schema.node_type_id(edge.dst_type if place == "dst" else edge.src_type)
                asked[type_id, str(term)] = _Question(element=NODE if place else EDGE, type_id=owner, word=str(_own(term)))
    words = list(dict.fromkeys(word for _, word in asked))
    told: dict[_Question, dict[int, NDArray[Any]]] = {}
    for element, owner in dict.fromkeys((question.element, question.type_id) for question in asked.values()):
        questions = list(dict.fromkeys(q for q in asked.values() if (q.element, q.type_id) == (element, owner)))
        told |= dict(zip(questions, _ask(at, element, owner, [question.word for question in questions]), strict=True))
    answers = {
        f"{type_id}.{words.index(word)}.{part}": array for (type_id, word), question in asked.items() for part, array in told[question].items()
    }
    size = sum(array.nbytes for array in answers.values())
    if size > REPLY_BYTES:
        raise InvalidRequest(
            f"what satisfies {words} takes {size} bytes between storageds, at most {REPLY_BYTES}; "
            "ask for fewer edge types at a time, or under a condition of fewer terms"
        )
    return words, answers


def _ask(at: Sampling, element: int, type_id: int, words: Sequence[str]) -> list[dict[int, NDArray[Any]]]:
    """The answer to each term, by part."""
    space = at.space
    heads = [
        store.JudgeRequest(at=at.at(), element=_ELEMENTS[element], type_id=type_id, parts=space.parts_of(host), terms=words)
        for host in range(len(space.hosts))
    ]
    found: list[dict[int, NDArray[Any]]] = [{} for _ in words]
    for reply in at.ask("judge", [(host, Frame(head)) for host, head in enumerate(heads)]):
        for name, array in reply.arrays.items():
            number, part = name.split(".")
            found[int(number)][int(part)] = array
    return found


def _own(term: Term) -> Term:
    """The term as it is of the rows that it reads."""
    return replace(
        term, left=replace(term.left, of=""), right=tuple(replace(each, of="") if isinstance(each, Column) else each for each in term.right)
    )
