"""Draws of nodes by number: rows of nodes like others, and nodes that are not some others."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from asterism_proto.arrays import Frame
from asterism_proto.errors import InvalidRequest, NotFound
from asterism_proto.v1 import storaged_pb2 as store
from graphd import read, sample, split
from graphd.distinct import race_winners
from graphd.positives import Positives
from graphd.sample import Global, Ids, Sampling, Sections, Types
from graphd.totals import NODE
from graphkit import rng
from graphkit.excluding import Excluded
from graphkit.split import choose_at
from graphkit.successive import LEAST

ATTEMPTS = 512
"""Of a draw that is left out, before the rest is looked at as a whole. Part of the law: it never depends on the request."""
_TOGETHER = 1 << 16
"""Attempts of all draws at a time, about."""
_NOTHING: dict[str, float] = {"ids": -1, "types": -1, "probabilities": 0.0}


def draw_numbered(sampling: Sampling, what: Global, numbers: Ids, kinds: Types | None = None) -> Sections:
    """The draws of these numbers: sections ids, types, and probabilities where wanted; `what.count` is not looked at.

    Parameters
    ----------
    numbers : int64[k]
    kinds : int32[k], optional
        The one type that each is from, among ``what.types``; left out, each is from all of them together.
    """
    space = sampling.space
    where = np.zeros(len(numbers), np.int32)
    key = rng.key_of(what.seed, rng.PART, NODE)
    lots = [(what.types, None)] if kinds is None else [((int(kind),), np.flatnonzero(kinds == kind)) for kind in np.unique(kinds)]
    for types, at in lots:
        shares = sampling.version.totals.shares(NODE, types, uniform=what.uniform)
        if not shares.total > 0:
            raise NotFound(sample.nothing(sampling, replace(what, types=types)))
        if len(space.hosts) > 1:
            own = slice(None) if at is None else at
            where[own] = space.host_of_part[shares.parts[choose_at(key, numbers[own], shares)]]
    head = store.DrawNumberedRequest(
        at=sampling.at(),
        types=what.types,
        seed=what.seed,
        uniform=what.uniform,
        want_probabilities=what.want_probabilities,
        weight=sampling.weights,
    )
    plan: list[tuple[int, Ids | None]] = [(0, None)]
    if len(space.hosts) > 1:
        plan = [(int(host), np.flatnonzero(where == host)) for host in np.unique(where)] or plan
    asked = []
    for host, rows in plan:
        sections: Sections = {"numbers": split.taken(numbers, rows)}
        if kinds is not None:
            sections["kinds"] = split.taken(kinds, rows)
        asked.append((host, Frame(head, sections)))
    replies = sampling.ask("draw_numbered", asked)
    return split.merged(len(numbers), [(rows, reply.arrays) for (_, rows), reply in zip(plan, replies, strict=True)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Like:
    """How nodes of the same types are drawn; `what.count` of each."""

    what: Global
    lenient: bool
    """Nodes of no type have rows of -1."""


def like(sampling: Sampling, how: Like, nodes: Ids, node_type: int, types: Types | None) -> Sections:
    """``count`` nodes of the type of each node: sections as SampleNodesLikeReply has them.

    Notes
    -----
    Draw k of row i is draw ``i * count + k`` of the draws from its type alone.
    """
    what, n = how.what, how.what.count
    _check_room(len(nodes), what)
    if node_type >= 0:
        types = np.where(nodes >= 0, np.int32(node_type), np.int32(-1))
    elif types is None:
        types = read.node_types(sampling.of_all(), nodes, -1, None)["types"]
    else:
        types = np.where(nodes >= 0, types, np.int32(-1))
    if not how.lenient and (types < 0).any():
        at = int(np.argmax(types < 0))
        raise NotFound(f"nodes[{at}] = {nodes[at]}: version {sampling.version.version} has no such node; leave it out, or ask for rows of -1")
    rows = np.flatnonzero(types >= 0)
    out: Sections = {"ids": np.full((len(nodes), n), -1, np.int64), "types": types}
    if what.want_probabilities:
        out["probabilities"] = np.zeros((len(nodes), n), np.float64)
    if rows.size and n:
        numbers = (rows[:, None] * n + np.arange(n)).reshape(-1)
        of = tuple(int(kind) for kind in np.unique(types[rows]))
        drawn = draw_numbered(sampling, replace(what, types=of), numbers, np.repeat(types[rows], n))
        for name in out.keys() - {"types"}:
            out[name][rows] = drawn[name].reshape(-1, n)
    return out


def negatives(sampling: Sampling, what: Global, rows: int, positives: Positives | None) -> Sections:
    """``count`` nodes for each row, none that the row leaves out: sections as SampleNegativesReply has them.

    Notes
    -----
    Draw k of row i is draw ``i * count + k`` of the stream that `sample.draw` draws, where that is not left out; else the first
    of its further attempts that is not. After ``ATTEMPTS`` it is the first of a race among all that is not left out. So each is
    drawn in proportion to its weight among what its row does not leave out; -1 where that is nothing.
    """
    n = what.count
    _check_room(rows, what)
    drawn = draw_numbered(sampling, what, np.arange(rows * n, dtype=np.int64))
    if positives is not None and rows and n:
        if what.want_probabilities:
            excluded = positives.listed(rows)
            _redraw(sampling, what, excluded, drawn)
            drawn["probabilities"] = np.minimum(drawn["probabilities"] * np.repeat(_over_what_is_left(sampling, what, excluded), n), 1.0)
        else:
            _redraw(sampling, what, positives, drawn)
    return {name: array.reshape(rows, n) for name, array in drawn.items()}


def _redraw(sampling: Sampling, what: Global, excluded: Excluded | Positives, drawn: Sections) -> None:
    """Draw again, in place, what is left out."""
    n, columns = what.count, {name: array.copy() for name, array in drawn.items()}
    ids = columns["ids"]
    further = replace(what, seed=int(rng.key_of(what.seed, rng.NEGATIVE)))
    pending = np.flatnonzero(excluded.refused(np.arange(len(ids), dtype=np.int64) // max(n, 1), ids))
    attempt, together = 0, 1
    while pending.size and attempt < ATTEMPTS:
        together = min(together, max(_TOGETHER // pending.size, 1), ATTEMPTS - attempt)
        numbers = (pending[:, None] * ATTEMPTS + attempt + np.arange(together)).reshape(-1)
        found = draw_numbered(sampling, further, numbers)
        free = ~excluded.refused(np.repeat(pending // n, together), found["ids"]).reshape(-1, together)
        done = free.any(axis=1)
        picks = (np.arange(len(pending)) * together + free.argmax(axis=1))[done]
        for name, column in columns.items():
            column[pending[done]] = found[name][picks]
        pending = pending[~done]
        attempt += together
        together *= 2
    nothing_left = -1
    for place in pending.tolist():
        row = place // n
        won = None if row == nothing_left else _raced(sampling, what, excluded.of_row(row), place)
        nothing_left = row if won is None else -1
        for name, column in columns.items():
            column[place] = _NOTHING[name] if won is None else won[name][0]
    drawn.update(columns)


def _raced(sampling: Sampling, what: Global, left_out: NDArray[np.int64], place: int) -> Sections | None:
    """One node by its weight among those that are not left out, by a race over all parts; None where there is none."""
    shares = sampling.version.totals.shares(NODE, what.types, uniform=what.uniform)
    one = replace(what, seed=int(rng.key_of(what.seed, rng.NEGATIVE, place)), count=1)
    won = race_winners([reply.arrays for reply in sample.ask_but(sampling, one, shares, _taken(what, left_out), 1, race=True)], "ids", 1)
    return won if len(won["ids"]) else None


def _taken(what: Global, left_out: NDArray[np.int64]) -> Sections:
    """Some ids, of whichever of the types they are."""
    return {"ids": np.tile(left_out, len(what.types)), "types": np.repeat(np.array(what.types, np.int32), len(left_out))}


def _over_what_is_left(sampling: Sampling, what: Global, excluded: Excluded) -> NDArray[np.float64]:
    """The weight of everything over the weight of what each row does not leave out, float64[rows]; 1 where that is nothing.

    Where that is little a difference would be rounding, and it is added up anew, once for rows that leave out the same.
    """
    shares = sampling.version.totals.shares(NODE, what.types, uniform=what.uniform)
    known, at = np.unique(excluded.ids, return_inverse=True)
    weights = np.zeros(len(known), np.float64)
    for type_id in what.types:
        weights += read.node_weights(sampling, type_id, known, uniform=what.uniform)  # an id is of one of the types
    left = shares.total - excluded.sums(weights[at])
    little = np.flatnonzero(left < LEAST * shares.total) if not what.uniform else np.zeros(0, np.int64)
    added: dict[bytes, float] = {}
    for row in little.tolist():
        left_out = excluded.of_row(row)
        if left_out.tobytes() not in added:
            added[left_out.tobytes()] = sample.weight_but(sampling, what, shares, _taken(what, left_out))
        left[row] = added[left_out.tobytes()]
    return np.divide(shares.total, left, out=np.ones(len(left)), where=left > 0)


def _check_room(rows: int, what: Global) -> None:
    if not 0 <= what.count <= what.most or rows * what.count > what.most:
        most = what.most // max(what.count, 1)
        raise InvalidRequest(f"{what.count} nodes for each of {rows} rows do not fit into one reply; ask for {most} rows at a time")
