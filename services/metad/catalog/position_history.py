"""The history of a catalog: the positions that it contains, and those that were given up.

A position is (history, term, revision). Revisions count the writes of a catalog; a term is a start
of a metad on it, with a random id and the first revision that it wrote. Daemons keep the newest
position that they have acted on. A catalog contains a position if it has that term, and the term
reached that revision before the next one began. This distinguishes a restored copy of a catalog
from the original: the copy lacks the terms or revisions after the copy was taken, and continues
under a term that the original does not have, however many writes it makes.

A catalog that does not contain a daemon's position assigns no tasks to it until it is adopted. An
adoption records, for each history, the revision up to which positions that this catalog lacks are
given up, and moves its own revision and its next identifiers beyond them. An identifier never
exceeds the revision that assigned it, so no identifier of a branch that was given up is reused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from uuid import uuid4

from asterism_proto.errors import Conflict, Corrupt
from metad.model.hosts import CatalogPosition, HighestIds
from metad.store import keys
from metad.store.port import Changes
from metad.store.revisions import RevisionedStore
from metad.wire import record_encoding

_MAX_ID = 1 << 31
"""Upper bound of identifiers: space ids are uint32 in messages."""
MAX_TERMS = 10_000
"""Maximum number of stored terms; a daemon that last followed an older one is adopted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """One adoption of this catalog over other histories."""

    given_up: Mapping[str, int]
    """history -> last revision given up, for positions that this catalog lacks."""
    before: HighestIds
    """Highest identifiers that this catalog itself had assigned before."""
    last: int
    """Largest identifier that was given up."""


@dataclass(frozen=True, slots=True)
class _CatalogTerm:
    name: str
    first_revision: int
    """Revision of the first write in the term."""


@dataclass(slots=True)
class CatalogHistory:
    """History of one catalog. A start of metad on it begins a new term.

    Not thread-safe: called under the lock of `metad.change_feed`.

    Parameters
    ----------
    store : RevisionedStore
        Store of the catalog.
    first_revision : int
        Revision of the first write of this start of metad; 0 (default) if it is the next write.
    """

    store: RevisionedStore
    first_revision: int = 0
    history_id: str = field(init=False)
    adoptions: list[Adoption] = field(init=False)
    _terms: list[_CatalogTerm] = field(init=False)
    _term_index: dict[str, int] = field(init=False)
    _highest_ids: tuple[bytes | None, HighestIds] | None = field(init=False, default=None)
    """Cache: the stored revision with the highest identifiers at that revision."""

    def __post_init__(self) -> None:
        stored_terms = self.store.range(keys.TERMS)
        self._terms = [_decode_term(value) for _, value in stored_terms]
        self.adoptions = [_decode_adoption(value) for _, value in self.store.range(keys.ADOPTIONS)]
        stored_history = self.store.get(keys.HISTORY)
        self.history_id = stored_history.decode() if stored_history is not None else uuid4().hex
        term_number = keys.last_number(stored_terms[-1][0]) + 1 if stored_terms else 1
        new_term = _CatalogTerm(uuid4().hex, self.first_revision or self.store.revision + 1)
        expired_terms = stored_terms[: max(0, len(stored_terms) + 1 - MAX_TERMS)]
        self.store.write(
            {
                keys.HISTORY: self.history_id.encode(),
                keys.term_key(term_number): f"{new_term.name} {new_term.first_revision}".encode(),
                **{key: None for key, _ in expired_terms},
            }
        )
        self._terms = [*self._terms[len(expired_terms) :], new_term]
        self._term_index = {term.name: index for index, term in enumerate(self._terms)}

    @property
    def position(self) -> CatalogPosition:
        """Newest position of this catalog."""
        return CatalogPosition(
            history=self.history_id, term=self._terms[-1].name, revision=self.store.revision
        )

    def contains(self, position: CatalogPosition) -> bool:
        """Return whether this catalog's history contains a position."""
        index = self._term_index.get(position.term)
        if index is None or position.history != self.history_id:
            return False
        is_last = index + 1 == len(self._terms)
        end = self.store.revision + 1 if is_last else self._terms[index + 1].first_revision
        return self._terms[index].first_revision <= position.revision < end

    def has_given_up(self, position: CatalogPosition) -> bool:
        """Return whether an adoption gave up a position."""
        return any(
            position.revision <= adoption.given_up.get(position.history, -1)
            for adoption in self.adoptions
        )

    def highest_ids(self) -> HighestIds:
        """Return the highest identifiers that were assigned."""
        # Every write changes the revision, so it validates the cache. It is read from the store on
        # each call because heartbeats must fail if the store does.
        revision = self.store.get(keys.REVISION)
        if self._highest_ids is None or self._highest_ids[0] != revision:
            space_id, job_id, load_id = (
                record_encoding.decode_number(self.store.get(key), default=1) - 1
                for key in (keys.NEXT_SPACE, keys.NEXT_JOB, keys.NEXT_LOAD)
            )
            ids = HighestIds(space_id=space_id, job_id=job_id, load_id=load_id)
            self._highest_ids = revision, ids
        return self._highest_ids[1]

    def adoption_records(self) -> tuple[Adoption, ...]:
        """Return the adoptions, with the ranges of identifiers that were given up."""
        return tuple(self.adoptions)

    def adopt(self, given_up: Mapping[str, int], highest_id: int, extra_changes: Changes) -> None:
        """Record durably that positions of these histories, up to these revisions, are given up.

        Parameters
        ----------
        given_up : mapping of str to int
            history -> last revision given up.
        highest_id : int
            Highest identifier that a storaged holds.
        extra_changes : mapping
            Further changes to include in the same write.

        Raises
        ------
        Conflict
            If a daemon reported a revision or an identifier that is out of range.
        """
        last = (
            max(self.store.revision, highest_id, *given_up.values())
            if given_up
            else max(self.store.revision, highest_id)
        )
        if last >= _MAX_ID:
            raise Conflict(
                f"revision={last}: expected less than {_MAX_ID}, the limit of space ids; "
                "stop the daemon that reported this revision or id"
            )
        adoption = Adoption(given_up=dict(given_up), before=self.highest_ids(), last=last)
        number = len(self.store.range(keys.ADOPTIONS)) + 1
        counters = {key: record_encoding.encode_number(last + 1) for key in keys.COUNTERS}
        self.store.write_at(
            {**extra_changes, **counters, keys.adoption_key(number): _encode_adoption(adoption)},
            last + 1,
        )
        self.adoptions.append(adoption)


def was_given_up(adoptions: tuple[Adoption, ...], kind: str, number: int) -> bool:
    """Return whether an identifier was assigned by a branch that was given up.

    ``kind`` is a field of `HighestIds`.
    """
    return any(getattr(adoption.before, kind) < number <= adoption.last for adoption in adoptions)


def _decode_term(value: bytes) -> _CatalogTerm:
    try:
        name, first = value.decode().split(" ")
        return _CatalogTerm(name, int(first))
    except ValueError as error:
        raise Corrupt(
            f"stored term={value[:200]!r}: expected 'NAME REVISION' ({error}); restore "
            "metad's data folder from a snapshot"
        ) from error


def _encode_adoption(adoption: Adoption) -> bytes:
    return json.dumps(asdict(adoption), sort_keys=True).encode()


def _decode_adoption(value: bytes) -> Adoption:
    try:
        data = json.loads(value)
        given_up = {str(history): int(revision) for history, revision in data["given_up"].items()}
        return Adoption(
            given_up=given_up, before=HighestIds(**data["before"]), last=int(data["last"])
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Corrupt(
            f"stored adoption={value[:200]!r}: expected a JSON record ({error}); restore "
            "metad's data folder from a snapshot"
        ) from error
