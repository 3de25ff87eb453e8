"""The history of a catalog: which positions it contains, and which it was adopted over.

A position is (history, term, revision). Revisions count the writes of a catalog; a term is a start
of a metad on it, with a random id and the first revision that it wrote. Daemons keep the newest
position that they have acted on. A catalog contains a position if it has that term, and the term
reached that revision before the next one began. So a copy of a catalog that is put back is told
from the original: it lacks the terms or the revisions that came after the copy, and it goes on
under a term that the original does not have, however many writes it makes.

A catalog that does not contain a daemon's position orders nothing of it, until it is adopted:
then it records, by history, up to which revision positions that it lacks are given up, and moves
its own revision and its identifiers beyond them. Identifiers are never above the revision that
gave them out, hence none that a branch which was given up has used is ever used again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from uuid import uuid4

from asterism_proto.errors import Conflict, Corrupt
from metad.store import codec, keys
from metad.store.port import Changes
from metad.store.revised import RevisedStore

_LAST_ID = 1 << 31
"""Identifiers of spaces travel as uint32."""
TERMS_KEPT = 10_000
"""A daemon that last followed an earlier start has to be adopted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """A point in a catalog's history."""

    history: str
    term: str
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Highest:
    """The highest identifiers of what a storaged holds; 0 = none."""

    space_id: int = 0
    job_id: int = 0
    load_id: int = 0

    def beyond(self, other: Highest) -> bool:
        """Return whether one of these identifiers is above the other's."""
        return self.space_id > other.space_id or self.job_id > other.job_id or self.load_id > other.load_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """One adoption of this catalog over others."""

    given_up: Mapping[str, int]
    """history -> the last revision whose positions are given up where this catalog lacks them."""
    before: Highest
    """The identifiers that this catalog had given out itself."""
    last: int
    """No identifier that was given up is above it."""


@dataclass(frozen=True, slots=True)
class _Term:
    name: str
    first: int
    """The revision of the write that recorded it."""


@dataclass(slots=True)
class History:
    """The history of one catalog, which begins a term when it is opened.

    Parameters
    ----------
    store : RevisedStore
        The catalog. Not thread-safe: called under the lock of `metad.board`.
    """

    store: RevisedStore
    history: str = field(init=False)
    adoptions: list[Adoption] = field(init=False)
    _terms: list[_Term] = field(init=False)
    _places: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        stored = self.store.range(keys.TERMS)
        self._terms = [_term_from(value) for _, value in stored]
        self.adoptions = [_adoption_from(value) for _, value in self.store.range(keys.ADOPTIONS)]
        known = self.store.get(keys.HISTORY)
        self.history = known.decode() if known is not None else uuid4().hex
        number = keys.last_number(stored[-1][0]) + 1 if stored else 1
        begun = _Term(uuid4().hex, self.store.revision + 1)
        gone = stored[: max(0, len(stored) + 1 - TERMS_KEPT)]
        self.store.write(
            {
                keys.HISTORY: self.history.encode(),
                keys.term(number): f"{begun.name} {begun.first}".encode(),
                **{key: None for key, _ in gone},
            }
        )
        self._terms = [*self._terms[len(gone) :], begun]
        self._places = {term.name: place for place, term in enumerate(self._terms)}

    @property
    def position(self) -> Position:
        """The newest position."""
        return Position(history=self.history, term=self._terms[-1].name, revision=self.store.revision)

    def contains(self, position: Position) -> bool:
        """Return whether the catalog that was at ``position`` has become this one."""
        place = self._places.get(position.term)
        if place is None or position.history != self.history:
            return False
        last = place + 1 == len(self._terms)
        end = self.store.revision + 1 if last else self._terms[place + 1].first
        return self._terms[place].first <= position.revision < end

    def gave_up(self, position: Position) -> bool:
        """Return whether this catalog was adopted over one that was at ``position``."""
        return any(position.revision <= adoption.given_up.get(position.history, -1) for adoption in self.adoptions)

    def highest(self) -> Highest:
        """Return the highest identifiers that were given out."""
        space_id, job_id, load_id = (
            codec.number_from(self.store.get(key), default=1) - 1 for key in (keys.NEXT_SPACE, keys.NEXT_JOB, keys.NEXT_LOAD)
        )
        return Highest(space_id=space_id, job_id=job_id, load_id=load_id)

    def given_up_ids(self) -> tuple[Adoption, ...]:
        """Return the adoptions, whose ranges of identifiers hold what was given up."""
        return tuple(self.adoptions)

    def adopt(self, over: Mapping[str, int], highest: int, also: Changes) -> None:
        """Record an adoption over positions of these histories up to these revisions, durably.

        Parameters
        ----------
        over : mapping
            history -> revision.
        highest : int
            The highest identifier that a storaged holds.
        also : mapping
            Further changes of the same write.

        Raises
        ------
        Conflict
            Where a daemon reported a revision or an identifier that none can have.
        """
        last = max(self.store.revision, highest, *over.values()) if over else max(self.store.revision, highest)
        if last >= _LAST_ID:
            raise Conflict(f"revision={last}: expected less than {_LAST_ID}, for ids of spaces go on after it; end the daemon that reported it")
        adoption = Adoption(given_up=dict(over), before=self.highest(), last=last)
        number = len(self.store.range(keys.ADOPTIONS)) + 1
        counters = {key: codec.number_to(last + 1) for key in keys.COUNTERS}
        self.store.write_at({**also, **counters, keys.adoption(number): _adoption_to(adoption)}, last + 1)
        self.adoptions.append(adoption)


def lost(adoptions: tuple[Adoption, ...], kind: str, number: int) -> bool:
    """Return whether an identifier of a kind (a field of `Highest`) was used by a branch that was given up."""
    return any(getattr(adoption.before, kind) < number <= adoption.last for adoption in adoptions)


def _term_from(value: bytes) -> _Term:
    try:
        name, first = value.decode().split(" ")
        return _Term(name, int(first))
    except ValueError as error:
        raise Corrupt(f"a stored term cannot be read ({error}): {value[:200]!r}; restore the catalog from a snapshot") from error


def _adoption_to(adoption: Adoption) -> bytes:
    return json.dumps(asdict(adoption), sort_keys=True).encode()


def _adoption_from(value: bytes) -> Adoption:
    try:
        data = json.loads(value)
        given_up = {str(history): int(revision) for history, revision in data["given_up"].items()}
        return Adoption(given_up=given_up, before=Highest(**data["before"]), last=int(data["last"]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Corrupt(f"a stored adoption cannot be read ({error}): {value[:200]!r}; restore the catalog from a snapshot") from error
