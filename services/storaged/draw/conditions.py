"""Versions as conditions leave them, made once and kept within a bound on memory."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from weakref import WeakKeyDictionary

from asterism_proto.condition import Tree, parse
from asterism_proto.errors import InvalidRequest
from asterism_proto.meaning import bound
from graphkit.condition import Mask
from storaged.draw.covers import Cover, Covers, cover_of
from storaged.draw.intervals import answers, candidates, conjuncts, runs_of
from storaged.draw.looking import Foreign, edges_that, nodes_that
from storaged.draw.lookup import IN, OUT
from storaged.draw.ranged import Ranges, ranges_of
from storaged.draw.restricted import Piece, bytes_of_edges, bytes_of_nodes, edges_kept, nodes_kept
from storaged.draw.version import EDGE, NODE, Key, Share, Version
from storaged.store.image import EdgeImage, NodeImage, PartImage
from storaged.store.ordered import Ordered

NO_FOREIGN = Foreign()
LOOKING = "every row looked at once"
_LOOK_UP_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Which rows a request is about."""

    text: str
    """The canonical text of a condition."""
    element: int
    """1: nodes; 2: edges."""
    types: tuple[int, ...]
    """Of these types; rows of others are all there."""
    weight: str = ""
    """The weights that the request draws by."""
    both: bool = False
    """Whether edges are followed against their direction too."""


@dataclass(slots=True, eq=False)
class _Kept:
    """What was made of one version for one condition."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    pieces: dict[tuple[int, int], Piece] = field(default_factory=dict)
    """(type, part) -> its rows that satisfy the condition."""
    made: tuple[Mapping[Key, Share], Version] | None = None
    """With these totals the version that the pieces make up."""
    covers: dict[tuple[int, int], Cover] | None = None
    """(type, part) -> the same of an index; empty: no index tells; None: it is not known yet whether one does."""
    covered: tuple[Mapping[Key, Share], Version] | None = None
    """With these totals the version whose global draws take the covers."""
    ranges: dict[int, Ranges] | None = None
    """Of each edge type, what satisfies the condition in the order of each node's edges; empty: no order tells; None: not known yet."""
    used: int = 0

    @property
    def bytes(self) -> int:
        covers = list((self.covers or {}).values())
        return sum(piece.bytes for piece in list(self.pieces.values())) + sum(cover.bytes for cover in covers)


class Conditions:
    """What satisfies the conditions of recent requests.

    Parameters
    ----------
    most_bytes : int
        Of memory for all of them. What was not asked for for the longest time goes first; a condition that has no room by itself is
        refused.

    Notes
    -----
    A draw under a condition is a draw from the version that has only the rows that satisfy it, by tables of their own: what is kept
    decides how long it takes, never what it gives. Where the version has an index that tells what satisfies it, global draws
    take blocks of that and their tables, and those of neighbors the runs of each node's own order, and nothing is looked at; whether
    it has decides what they give, too, but not their law.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._clock = count(1)
        # Weakly: a version that is no longer served takes with it what was made of it, and its files can go.
        self._kept: WeakKeyDictionary[Version, dict[Where, _Kept]] = WeakKeyDictionary()

    def shares(
        self, version: Version, where: Where, parts: Sequence[int], checkpoint: Callable[[], object], foreign: Foreign = NO_FOREIGN
    ) -> dict[Key, Share]:
        """How much satisfies a condition, of each type and part: (element, type, part) -> share.

        Parameters
        ----------
        version : Version
        where : Where
        parts : sequence of int
            Held here.
        checkpoint : callable
            Called between blocks of rows; where it raises, what was looked at so far is kept for the next call.
        foreign : Foreign
            What other hosts know that it takes.

        Raises
        ------
        InvalidRequest
            Where a type is unknown, or what satisfies the condition has no room.
        Stale
            Where somebody's word is missing.
        """
        kept = self._of(version, where)
        with _held(kept.lock, checkpoint):
            covers = self._covers(version, where, kept)
            if covers:
                return {(where.element, type_id, part): covers[type_id, part].share for type_id in where.types for part in parts}
            self._make(version, where, sorted(version.parts), kept, checkpoint, foreign)
            return {(where.element, type_id, part): kept.pieces[type_id, part].share for type_id in where.types for part in parts}

    def way(self, version: Version, where: Where) -> str:
        """How what satisfies a condition is found, in words: by the version's indexes alone, so that every host says the same."""
        condition, words = parse(where.text), []
        for type_id in where.types:
            tree, indexes = bound(condition, version.schema, where.element, type_id), _indexes(version, where.element, type_id)
            whole = next((index for index in indexes if answers(index, tree)), None)
            parts = conjuncts(tree) if where.element == NODE else ()
            some = next((index for each in parts for index in indexes if answers(index, each)), None)
            words.append(f"index on {whole.name}" if whole else f"rows that the index on {some.name} leaves, looked at once" if some else LOOKING)
        return "; ".join(dict.fromkeys(words))

    def version(
        self, version: Version, where: Where, totals: Mapping[Key, Share], checkpoint: Callable[[], object], *, globally: bool = False
    ) -> Version:
        """The version with only those rows that satisfy a condition.

        Parameters
        ----------
        version, where, checkpoint
            As of `shares`.
        totals : mapping
            What satisfies it in each part of the space, of the types of ``where``.
        globally : bool
            For global draws with replacement alone: rows that do not satisfy it may then be there.

        Raises
        ------
        InvalidRequest, Stale
            As `shares`; also where ``totals`` of a part that is held here are not those of `shares`.
        """
        kept = self._of(version, where)
        with _held(kept.lock, checkpoint):
            covers = self._covers(version, where, kept)
            if covers and globally:
                if kept.covered is None or kept.covered[0] != totals:
                    _check_totals(version, where, totals, covers)
                    kept.covered = (dict(totals), _covering(version, where, covers, totals))
                return kept.covered[1]
            if kept.made is None or kept.made[0] != totals:
                self._make(version, where, sorted(version.parts), kept, checkpoint, NO_FOREIGN)
                _check_totals(version, where, totals, covers or kept.pieces)
                kept.made = (dict(totals), _restricted(version, where, kept.pieces, totals))
            return kept.made[1]

    def ranges(self, version: Version, where: Where) -> Mapping[int, Ranges]:
        """What satisfies a condition on edges in the order of each node's edges, by edge type; none unless an index tells of every type."""
        kept = self._of(version, where)
        if kept.ranges is None:  # by whoever comes first, and by others the same
            kept.ranges = ranges_of(version, parse(where.text), where.types) if where.element == EDGE else {}
        return kept.ranges

    def _covers(self, version: Version, where: Where, kept: _Kept) -> Mapping[tuple[int, int], Cover]:
        """The covers of every type and part here; none unless an index tells for every type."""
        if kept.covers is None:
            made: dict[tuple[int, int], Cover] = {}
            condition = parse(where.text)
            for type_id in where.types:
                version.type_name(where.element, type_id)
                tree = bound(condition, version.schema, where.element, type_id)
                place = next((i for i, index in enumerate(_indexes(version, where.element, type_id)) if answers(index, tree)), None)
                if place is None:
                    made = {}
                    break
                for part, image in version.parts.items():
                    weighed = _by(version, where, image)
                    of = weighed.nodes[type_id] if where.element == NODE else weighed.edges[type_id]
                    runs = runs_of(of.indexes[place], of, tree)
                    made[type_id, part] = cover_of(of.indexes[place], of.out if isinstance(of, EdgeImage) else of, runs, where.weight)
            self._room(where, kept, sum(cover.bytes for cover in made.values()))
            kept.covers = made
        return kept.covers

    def _of(self, version: Version, where: Where) -> _Kept:
        with self._lock:
            kept = self._kept.setdefault(version, {}).setdefault(where, _Kept())
            kept.used = next(self._clock)
            return kept

    def _make(self, version: Version, where: Where, parts: Sequence[int], kept: _Kept, checkpoint: Callable[[], object], foreign: Foreign) -> None:
        condition = parse(where.text)
        for type_id in where.types:
            version.type_name(where.element, type_id)
            tree = bound(condition, version.schema, where.element, type_id)
            for part in parts:
                if (type_id, part) not in kept.pieces:
                    make = partial(_nodes if where.element == NODE else _edges, version, where, type_id, part, tree, foreign)
                    kept.pieces[type_id, part] = make(partial(self._room, where, kept), checkpoint)

    def _room(self, where: Where, kept: _Kept, wanted: int) -> None:
        """Make room for so many bytes; InvalidRequest where there is none."""
        own = kept.bytes
        if own + wanted > self._most_bytes:
            raise InvalidRequest(
                f"condition {where.text!r}: what satisfies it takes {own + wanted} bytes or more on this storaged, which keeps {self._most_bytes}; "
                "narrow it, or raise conditions_mib"
            )
        with self._lock:
            others = sorted(
                ((each, of, key) for of in self._kept.values() for key, each in of.items() if each is not kept), key=lambda entry: entry[0].used
            )
            total = own + wanted + sum(each.bytes for each, _, _ in others)
            for each, of, key in others:
                if total <= self._most_bytes:
                    return
                total -= each.bytes
                del of[key]


def _nodes(
    version: Version,
    where: Where,
    type_id: int,
    part: int,
    tree: Tree,
    foreign: Foreign,
    room: Callable[[int], None],
    checkpoint: Callable[[], object],
) -> Piece:
    image = version.image(part)
    among = candidates(image.nodes[type_id].indexes, image.nodes[type_id], tree)
    mask = nodes_that(version, image, type_id, tree, checkpoint, among)
    node = _by(version, where, image).nodes[type_id]
    room(bytes_of_nodes(node, int(mask.sum())))
    return nodes_kept(node, mask)


def _edges(
    version: Version,
    where: Where,
    type_id: int,
    part: int,
    tree: Tree,
    foreign: Foreign,
    room: Callable[[int], None],
    checkpoint: Callable[[], object],
) -> Piece:
    image = version.image(part)
    out = edges_that(version, image, type_id, OUT, tree, foreign, checkpoint)
    into: Mask | None = None
    if where.both and image.edges[type_id].into is not None:
        into = edges_that(version, image, type_id, IN, tree, foreign, checkpoint)
    edge = _by(version, where, image).edges[type_id]
    room(bytes_of_edges(edge, max(int(out.sum()), 0 if into is None else int(into.sum())), both=into is not None))
    return edges_kept(edge, out, into)


def _by(version: Version, where: Where, image: PartImage) -> PartImage:
    """The part with the weights that the request draws by."""
    return version.weighed(where.weight, where.element, where.types).image(image.part)


def _indexes(version: Version, element: int, type_id: int) -> tuple[Ordered, ...]:
    """The indexes of a type: every part has the same."""
    types = ((image.nodes if element == NODE else image.edges)[type_id] for image in version.parts.values())
    return next((of.indexes for of in types), ())


def _covering(version: Version, where: Where, covers: Covers, totals: Mapping[Key, Share]) -> Version:
    weighed = version.weighed(where.weight, where.element, where.types)
    return replace(weighed, covers=dict(covers), totals={**weighed.totals, **totals}, named={}, condition=where.text, restricted_by=where.weight)


def _restricted(version: Version, where: Where, pieces: Mapping[tuple[int, int], Piece], totals: Mapping[Key, Share]) -> Version:
    parts = {}
    for part, image in version.parts.items():
        nodes, edges = list(image.nodes), list(image.edges)
        for type_id in where.types:
            made = pieces[type_id, part].image
            if isinstance(made, NodeImage):
                nodes[type_id] = made
            elif isinstance(made, EdgeImage):
                edges[type_id] = made
        parts[part] = replace(image, nodes=tuple(nodes), edges=tuple(edges))
    return replace(version, parts=parts, totals={**version.totals, **totals}, named={}, condition=where.text, restricted_by=where.weight)


def _check_totals(version: Version, where: Where, totals: Mapping[Key, Share], found: Mapping[tuple[int, int], Piece | Cover]) -> None:
    """InvalidRequest where totals of a request cannot be right: draws would fall on rows that are not there.

    Those of parts that are held here are known, and have to be the same; those of others have to be possible.
    """
    for key, share in totals.items():
        _, type_id, part = key
        place = f"at.where={where.text!r}: type {type_id}, part {part}: count={share.count}, positive={share.positive}, weight={share.weight}"
        most = version.totals[key].count if key in version.totals else 0
        weighs = math.isfinite(share.weight) and share.weight >= 0 and (share.weight > 0) == (share.positive > 0)
        if not (0 <= share.positive <= share.count <= most and weighs):
            raise InvalidRequest(
                f"{place}: expected 0 <= positive <= count <= {most}, and a finite weight that is 0 where positive is 0 and above 0 elsewhere"
            )
        if part in version.parts and share != found[type_id, part].share:
            own = found[type_id, part].share
            raise InvalidRequest(
                f"{place}: this host found count={own.count}, positive={own.positive}, weight={own.weight}; ask again what satisfies it (Restrict)"
            )


@contextmanager
def _held(lock: threading.Lock, checkpoint: Callable[[], object]) -> Iterator[None]:
    """Hold a lock; whoever holds it may take its time, and who waits may have less."""
    while not lock.acquire(timeout=_LOOK_UP_S):
        checkpoint()
    try:
        yield
    finally:
        lock.release()
