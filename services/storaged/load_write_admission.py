"""Loads that may be written on this host: admissions by metad, and seals that end them.

A block is accepted only under an admission: metad has confirmed, since this process started, that
the load is open and the chunk registered. Before a load is committed, it is sealed on every host
that was admitted. Writes in progress end, the fingerprint is taken, and later writes need a new
admission.

Admissions and seals carry numbers from one counter of metad. metad commits a load only if every
host's seal is at least as new as its last admission. Each write is therefore either in the
fingerprint or refused, even if messages are lost or processes restart in between. No state needs to
survive a restart: without an admission, no write is accepted.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from asterism_daemonkit.rpc.call_context import CallContext
from asterism_proto.errors import Unavailable

_MAX_LOADS = 4096
"""Maximum number of loads in memory; others are admitted again at their next write."""

_MAX_ADMISSIONS = 8
"""Maximum number of admissions that one write requests if the load is sealed repeatedly."""

BlockExtent = tuple[int, int, int]
"""(partition, kind, type) of blocks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredChunk:
    """The properties of a registered chunk that its blocks are checked against."""

    is_nodes: bool
    type_id: int
    rows: int
    first_edge_id: int
    """Id of the first edge of the chunk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Permission of metad to write a load."""

    number: int
    is_first: bool
    """True if the host was never admitted to the load before, so it has no blocks of the load."""
    chunk: RegisteredChunk


@dataclass(slots=True)
class _LoadState:
    last_admission: int = 0
    last_seal: int = 0
    writers: int = 0
    users: int = 0
    """Number of calls that refer to this record."""
    chunks: dict[int, RegisteredChunk] = field(default_factory=dict)
    extents: set[BlockExtent] | None = None
    """Extents that have blocks of the load; None if unknown."""

    @property
    def is_open(self) -> bool:
        return self.last_admission > self.last_seal


@dataclass(frozen=True, slots=True)
class LoadSeal:
    """A load without writes in progress."""

    number: int
    """Number of the seal: writes admitted under this number or a lower one have ended."""
    has_writes: bool
    """False if this process was never admitted to the load."""
    extents: frozenset[BlockExtent] | None
    """Extents that have blocks of the load; None if unknown."""


class Admissions:
    """The loads that this process was admitted to. Thread-safe.

    Parameters
    ----------
    request_admission : callable
        ``(space id, load id, chunk, timeout in seconds)``: requests an admission from metad; raises
        Conflict if the load is not open.
    """

    def __init__(self, request_admission: Callable[[int, int, int, float], Admission]) -> None:
        self._request_admission = request_admission
        self._changed = threading.Condition()
        self._loads: dict[tuple[int, int], _LoadState] = {}

    @contextmanager
    def admit_write(
        self, space_id: int, load_id: int, chunk: int, extents: set[BlockExtent], call: CallContext
    ) -> Iterator[RegisteredChunk]:
        """Keep a load open while the block writes to it.

        Raises
        ------
        Conflict
            The load is not open, or belongs to another space.
        InvalidRequest
            The chunk is not registered.
        Unavailable
            metad does not reply, or the load is sealed repeatedly.
        """
        with self._load_state(space_id, load_id) as load:
            registered = self._acquire(load, space_id, load_id, chunk, extents, call)
            try:
                yield registered
            finally:
                with self._changed:
                    load.writers -= 1
                    self._changed.notify_all()

    def _acquire(
        self,
        load: _LoadState,
        space_id: int,
        load_id: int,
        chunk: int,
        extents: set[BlockExtent],
        call: CallContext,
    ) -> RegisteredChunk:
        for _ in range(_MAX_ADMISSIONS):
            with self._changed:
                registered = load.chunks.get(chunk)
                if load.is_open and registered is not None:
                    load.writers += 1
                    if load.extents is not None:
                        load.extents |= extents
                    return registered
            admission = self._request_admission(space_id, load_id, chunk, call.remaining())
            with self._changed:
                if admission.is_first and load.last_admission == 0:
                    load.extents = set()
                load.last_admission = max(load.last_admission, admission.number)
                load.chunks[chunk] = admission.chunk
        raise Unavailable(
            f"load_id={load_id}: is being committed; repeat the write if the commit fails"
        )

    @contextmanager
    def seal(
        self, space_id: int, load_id: int, number: int, call: CallContext
    ) -> Iterator[LoadSeal]:
        """Seal a load up to ``number`` once no write is in progress.

        A ``number`` of 0 means the last admission. A later write is admitted again by metad,
        which then refuses a commit with this seal.

        Raises
        ------
        Unavailable
            The writes in progress do not end before the call's deadline.
        """
        with self._load_state(space_id, load_id) as load:
            with self._changed:
                has_writes = load.last_admission > 0 or number > 0
                load.last_seal = seal_number = max(load.last_seal, number or load.last_admission)
                while load.writers and not load.is_open:
                    if not self._changed.wait(call.remaining()):
                        raise Unavailable(
                            f"load_id={load_id}: expected the writes in progress to end "
                            "before the deadline; commit again"
                        )
                # If the load was admitted again meanwhile, metad refuses this report.
                extents = None if load.extents is None else frozenset(load.extents)
            yield LoadSeal(seal_number, has_writes, extents)

    @contextmanager
    def _load_state(self, space_id: int, load_id: int) -> Iterator[_LoadState]:
        key = space_id, load_id
        with self._changed:
            load = self._loads.setdefault(key, _LoadState())
            load.users += 1
        try:
            yield load
        finally:
            with self._changed:
                load.users -= 1
                if not load.users and not load.last_admission:
                    del self._loads[key]
                if len(self._loads) > _MAX_LOADS:
                    self._evict()

    def _evict(self) -> None:
        """Drop the older half of the loads, except those that a call refers to."""
        for key in list(self._loads)[: _MAX_LOADS // 2]:
            if not self._loads[key].users:
                del self._loads[key]
