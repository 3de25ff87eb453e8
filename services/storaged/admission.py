"""Loads that may be written on this host: admissions by metad, and the seals that end them.

A block is accepted only under an admission: metad has confirmed, since this process started, that
the load is open and the chunk registered. Before a load is committed it is sealed on every host
that was admitted: writes under way end, the fingerprint is taken, and later writes need a new
admission. Both carry numbers from one counter of metad's, and metad commits a load only where
every host's seal is at least as new as its last admission. So each write is in the fingerprint or
refused, whatever is lost or restarted in between; nothing here needs to survive a restart, for
without an admission nothing is accepted.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from asterism_proto.errors import Unavailable
from daemonkit.calls import Call

_REMEMBERED = 4096
"""The most loads in memory; others are admitted again at their next write."""

_ATTEMPTS = 8
"""The most admissions that one write requests while the load is sealed again and again."""

Extent = tuple[int, int, int]
"""(partition, kind, type) of blocks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """The properties of a registered chunk that its blocks are checked against."""

    nodes: bool
    type_id: int
    rows: int
    base: int
    """The id of its first edge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """metad's permission to write a load."""

    number: int
    first: bool
    """Whether the host was never admitted to the load before, and so holds no block of it."""
    chunk: Chunk


@dataclass(slots=True)
class _Load:
    admitted: int = 0
    sealed: int = 0
    writers: int = 0
    users: int = 0
    """Calls that refer to this record."""
    chunks: dict[int, Chunk] = field(default_factory=dict)
    extents: set[Extent] | None = None
    """The extents that have blocks of it; None if not known."""

    @property
    def open(self) -> bool:
        return self.admitted > self.sealed


@dataclass(frozen=True, slots=True)
class Sealed:
    """A load without writes in progress."""

    number: int
    """All writes that were admitted under this number or a lower one have ended."""
    written: bool
    """False if this process was never admitted to it."""
    extents: frozenset[Extent] | None
    """The extents that have blocks of it; None if not known."""


class Admissions:
    """The loads that this process was admitted to.

    Parameters
    ----------
    ask : callable
        ``(space id, load id, chunk, timeout in seconds)``: asks metad for an admission; raises Conflict
        where the load is not open.
    """

    def __init__(self, ask: Callable[[int, int, int, float], Admission]) -> None:
        self._ask = ask
        self._changed = threading.Condition()
        self._loads: dict[tuple[int, int], _Load] = {}

    @contextmanager
    def writing(self, space_id: int, load_id: int, chunk: int, extents: set[Extent], call: Call) -> Iterator[Chunk]:
        """Keep a load open while blocks of it are written.

        Raises
        ------
        Conflict
            For a load that is not open, or of another space.
        InvalidRequest
            For a chunk that was not registered.
        Unavailable
            Where metad does not answer.
        """
        with self._record(space_id, load_id) as load:
            registered = self._admitted(load, space_id, load_id, chunk, extents, call)
            try:
                yield registered
            finally:
                with self._changed:
                    load.writers -= 1
                    self._changed.notify_all()

    def _admitted(self, load: _Load, space_id: int, load_id: int, chunk: int, extents: set[Extent], call: Call) -> Chunk:
        for _ in range(_ATTEMPTS):
            with self._changed:
                registered = load.chunks.get(chunk)
                if load.open and registered is not None:
                    load.writers += 1
                    if load.extents is not None:
                        load.extents |= extents
                    return registered
            admission = self._ask(space_id, load_id, chunk, call.remaining())
            with self._changed:
                if admission.first and load.admitted == 0:
                    load.extents = set()
                load.admitted = max(load.admitted, admission.number)
                load.chunks[chunk] = admission.chunk
        raise Unavailable(f"load_id={load_id}: is being committed; repeat the write if the commit fails")

    @contextmanager
    def sealing(self, space_id: int, load_id: int, number: int, call: Call) -> Iterator[Sealed]:
        """Seal a load up to ``number`` (0: up to its last admission) once no write is under way.

        A later write is admitted again by metad, which then refuses a commit with this seal.
        """
        with self._record(space_id, load_id) as load:
            with self._changed:
                written = load.admitted > 0 or number > 0
                load.sealed = sealed = max(load.sealed, number or load.admitted)
                while load.writers and not load.open:
                    if not self._changed.wait(call.remaining()):
                        raise Unavailable(f"load_id={load_id}: expected the writes in progress to end before the deadline; commit again")
                # If the load was admitted again meanwhile, metad refuses this report.
                extents = None if load.extents is None else frozenset(load.extents)
            yield Sealed(sealed, written, extents)

    @contextmanager
    def _record(self, space_id: int, load_id: int) -> Iterator[_Load]:
        key = space_id, load_id
        with self._changed:
            load = self._loads.setdefault(key, _Load())
            load.users += 1
        try:
            yield load
        finally:
            with self._changed:
                load.users -= 1
                if not load.users and not load.admitted:
                    del self._loads[key]
                if len(self._loads) > _REMEMBERED:
                    self._forget()

    def _forget(self) -> None:
        """Drop the older half of the loads that no call refers to."""
        for key in list(self._loads)[: _REMEMBERED // 2]:
            if not self._loads[key].users:
                del self._loads[key]
