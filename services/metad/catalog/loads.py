"""Loads: sets of chunks that become visible together, with their durable manifests."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace

from asterism_model.elements import Element
from asterism_model.load_fingerprints import PartFingerprint
from asterism_proto.errors import Conflict, Corrupt, InvalidRequest, NotFound
from metad.catalog.spaces import Spaces
from metad.model.catalog import Chunk, LoadRecord, LoadState, NewChunk, PendingWrite, Seal, Space
from metad.model.ids import HostId, LoadId, SpaceId
from metad.store import keys
from metad.store.port import MetaStore
from metad.wire import record_encoding

_SEEN_INTERVAL_MS = 60_000
"""Milliseconds between two stored times of a client's last contact.

Other writes of the load store it as well."""


class Loads:
    """All loads. Open loads are in memory with their chunks; of others, only what builds need.

    Parameters
    ----------
    store : MetaStore
    spaces : Spaces
    first_admission : int, default 0
        Admission number to start after.
    now_ms : int, default 0
        Start time of this process in milliseconds since 1970.
    """

    def __init__(
        self, store: MetaStore, spaces: Spaces, *, first_admission: int = 0, now_ms: int = 0
    ) -> None:
        self._store = store
        self._started_ms = now_ms
        """Start time of this process, in milliseconds since 1970.

        The wall clock may have been set in the meantime, so earlier times do not end a lease."""
        self._spaces = spaces
        self._admission = first_admission
        """Number of the last admission; above those of every earlier start."""
        self._admitted: dict[LoadId, dict[HostId, int]] = {}
        """Open load -> host that may have written it -> number of its last admission."""
        self._next = record_encoding.decode_number(store.get(keys.NEXT_LOAD), default=1)
        self._open: dict[LoadId, LoadRecord] = {}
        self._chunks: dict[LoadId, dict[int, Chunk]] = {}
        self._committed: dict[SpaceId, list[tuple[int, LoadId]]] = {}
        self._last_delete: dict[SpaceId, int] = {}
        """Space -> newest commit that deletes nodes."""
        self._abandoned: dict[LoadId, LoadRecord] = {}
        """Abandoned loads that still have a stored record."""
        self._by_resume_key: dict[tuple[SpaceId, str, str], LoadId] = {}
        """(space, resume key, source) -> committed load, for loads with a resume key."""
        for _, value in store.range(keys.LOADS):
            self._index_load(record_encoding.decode_load(value))
        for committed in self._committed.values():
            committed.sort()
        for load_id in self._open:
            self._chunks[load_id] = {chunk.index: chunk for chunk in self._stored_chunks(load_id)}
        for load_id, load in self._open.items():
            # Admissions of an earlier process are not stored, so any host of the space may have
            # written.
            space = spaces.get(load.space_id)
            hosts = (
                {host for replicas in space.parts for host in replicas}
                if space is not None
                else set()
            )
            self._admitted[load_id] = dict.fromkeys(hosts, first_admission)

    def begin(
        self, space: Space, *, source: str, resume_key: str, now_ms: int
    ) -> tuple[LoadRecord, list[Chunk]]:
        """Begin a load, or return the load with this resume key, with its registered chunks.

        With a resume key, a load committed from an equal source takes precedence. Otherwise the
        open load of the space with that key is resumed, from whatever source it was begun. A client
        that resumes sends all chunks again, so the load takes the new source."""
        if resume_key:
            committed_id = self._by_resume_key.get((space.space_id, resume_key, source))
            if committed_id is not None:
                load = self.get(committed_id)
                return load, self.chunks(load)
            for load in self._open.values():
                if load.space_id == space.space_id and load.resume_key == resume_key:
                    return self._resume(load, source, now_ms), self.chunks(load)
        load = LoadRecord(
            load_id=LoadId(self._next),
            space_id=space.space_id,
            space=space.name,
            state=LoadState.OPEN,
            commit=0,
            source=source,
            resume_key=resume_key,
            created_ms=now_ms,
            rejected=0,
            seen_ms=now_ms,
        )
        self._store.write(
            {
                keys.load_key(load.load_id): record_encoding.encode_load(load),
                keys.NEXT_LOAD: record_encoding.encode_number(self._next + 1),
            }
        )
        self._next += 1
        self._index_load(load)
        return load, []

    def _resume(self, load: LoadRecord, source: str, now_ms: int) -> LoadRecord:
        load = replace(load, source=source, seen_ms=now_ms)
        self._store.write({keys.load_key(load.load_id): record_encoding.encode_load(load)})
        self._open[load.load_id] = load
        return load

    def import_loads(
        self, space: Space, loads: Sequence[tuple[LoadRecord, tuple[Chunk, ...]]]
    ) -> PendingWrite:
        """Return the write that copies committed loads and chunks into a space under new load ids.

        Commit numbers are kept."""
        adopted = [
            replace(load, load_id=LoadId(self._next + i), space_id=space.space_id, space=space.name)
            for i, (load, _) in enumerate(loads)
        ]
        changes: dict[bytes, bytes | None] = {
            keys.NEXT_LOAD: record_encoding.encode_number(self._next + len(adopted))
        }
        for load, (_, chunks) in zip(adopted, loads, strict=True):
            changes[keys.load_key(load.load_id)] = record_encoding.encode_load(load)
            changes |= {
                keys.chunk_key(load.load_id, chunk.index): record_encoding.encode_chunk(chunk)
                for chunk in chunks
            }

        def apply() -> None:
            self._next += len(adopted)
            for load in adopted:
                self._index_load(load)

        return PendingWrite(changes, apply)

    def get(self, load_id: int) -> LoadRecord:
        """Return a load.

        Raises
        ------
        NotFound
            If it does not exist; the message gives the newest id.
        """
        load = self._open.get(LoadId(load_id))
        if load is None:
            value = self._store.get(keys.load_key(load_id)) if load_id else None
            if value is None:
                newest = f"the newest is {self._next - 1}" if self._next > 1 else "there are none"
                raise NotFound(f"load {load_id} does not exist; {newest}")
            load = record_encoding.decode_load(value)
        return load

    def chunks(self, load: LoadRecord) -> list[Chunk]:
        """Return the chunks of a load, by index."""
        open_chunks = self._chunks.get(load.load_id)
        if open_chunks is None:
            return self._stored_chunks(load.load_id)
        return [open_chunks[index] for index in sorted(open_chunks)]

    def register_chunks(
        self, load_id: int, chunks: Sequence[NewChunk], written: Iterable[int], *, now_ms: int
    ) -> list[Chunk]:
        """Record chunks and acknowledgements durably; return the call's chunks with their bases.

        Registering the same chunk again gives the same result. Different content under a registered
        index is a Conflict, even if the chunk is not yet written: an interrupted write may have
        left blocks at partitions that the new content would not overwrite."""
        load = self.get(load_id)
        known_chunks = self._writable_chunks(load)
        changed_chunks, pending_write = self._register_step(load, known_chunks, chunks, written)
        lease_write = self._renew_lease(load, now_ms)
        if changed_chunks or lease_write.changes:
            self._store.write({**pending_write.changes, **lease_write.changes})
            pending_write.apply()
            lease_write.apply()
        return [
            changed_chunks.get(new_chunk.index) or known_chunks[new_chunk.index]
            for new_chunk in chunks
        ]

    def _renew_lease(self, load: LoadRecord, now_ms: int) -> PendingWrite:
        """Return the write that extends the lease of an open load after a request of its client."""
        if load.state is not LoadState.OPEN or now_ms - _last_seen_ms(load) < _SEEN_INTERVAL_MS:
            return PendingWrite()
        load = replace(load, seen_ms=now_ms)
        return PendingWrite(
            {keys.load_key(load.load_id): record_encoding.encode_load(load)},
            lambda: self._open.update({load.load_id: load}),
        )

    def _writable_chunks(self, load: LoadRecord) -> dict[int, Chunk]:
        if load.state is LoadState.ABANDONED:
            raise Conflict(f"load {load.load_id} is abandoned; begin another load")
        return (
            self._chunks[load.load_id]
            if load.state is LoadState.OPEN
            else {chunk.index: chunk for chunk in self.chunks(load)}
        )

    def _register_step(
        self,
        load: LoadRecord,
        known_chunks: dict[int, Chunk],
        chunks: Sequence[NewChunk],
        written: Iterable[int],
    ) -> tuple[dict[int, Chunk], PendingWrite]:
        """Return the chunks that a call changes, by index, and the write that stores them."""
        new_chunks = self._new_chunks(load, known_chunks, chunks)
        assigned_bases, bases_write = self._spaces.allocate_edge_ids(
            load.space_id,
            [
                (new_chunk.type_id, new_chunk.rows)
                for new_chunk in new_chunks
                if new_chunk.element is Element.EDGE
            ],
        )
        remaining_bases = iter(assigned_bases)
        changed_chunks = {
            new_chunk.index: _registered_chunk(
                new_chunk, next(remaining_bases) if new_chunk.element is Element.EDGE else 0
            )
            for new_chunk in new_chunks
        }
        for index in written:
            chunk = changed_chunks.get(index) or known_chunks.get(index)
            if chunk is None:
                raise InvalidRequest(
                    f"chunk {index} of load {load.load_id} is reported as written, but was never "
                    "registered"
                )
            if not chunk.written:
                changed_chunks[index] = replace(chunk, written=True)

        def apply() -> None:
            bases_write.apply()
            if changed_chunks:
                self._chunks[load.load_id].update(changed_chunks)

        return changed_chunks, PendingWrite(
            {
                **bases_write.changes,
                **{
                    keys.chunk_key(load.load_id, i): record_encoding.encode_chunk(chunk)
                    for i, chunk in changed_chunks.items()
                },
            },
            apply,
        )

    def _new_chunks(
        self, load: LoadRecord, known_chunks: dict[int, Chunk], chunks: Sequence[NewChunk]
    ) -> list[NewChunk]:
        """Return the chunks that are new; refuse those that differ from the registered content."""
        space = self._spaces.get(load.space_id)
        assert space is not None  # dropping a space drops its loads
        new_chunks: dict[int, NewChunk] = {}
        for new_chunk in chunks:
            _check_chunk(new_chunk, space)
            existing = new_chunks.get(new_chunk.index) or known_chunks.get(new_chunk.index)
            if existing is not None and _is_same_chunk(existing, new_chunk):
                continue
            if new_chunk.index in new_chunks:
                raise InvalidRequest(
                    f"chunk {new_chunk.index} of load {load.load_id} is registered twice in "
                    "one call, with different contents"
                )
            if load.state is not LoadState.OPEN:
                raise Conflict(
                    f"load {load.load_id} is committed (number {load.commit}) and accepts no "
                    f"chunk {new_chunk.index}; begin another load"
                )
            if existing is not None:
                raise Conflict(
                    f"chunk {new_chunk.index} of load {load.load_id} is registered already with "
                    f"other content ({existing.rows} rows, digest {existing.digest!r}; now "
                    f"{new_chunk.rows} rows, digest {new_chunk.digest!r}): the source has "
                    "changed since; abandon the load and load the data again"
                )
            new_chunks[new_chunk.index] = new_chunk
        return list(new_chunks.values())

    def admit(
        self, load_id: int, *, space_id: int, host: HostId, index: int
    ) -> tuple[int, bool, Chunk]:
        """Allow a host to write blocks of a chunk of an open load.

        Returns
        -------
        int
            Number of the admission.
        bool
            True if the host was never admitted to the load before.
        Chunk
            The registered chunk.

        Raises
        ------
        Conflict
            If the load is not open, or belongs to another space.
        InvalidRequest
            If the chunk was not registered, or the host holds no partition of the space.
        """
        load = self.get(load_id)
        if load.space_id != space_id:
            raise Conflict(
                f"load {load_id} belongs to space {load.space_id}, not to space {space_id}"
            )
        if load.state is not LoadState.OPEN:
            state_text = (
                f"committed (number {load.commit})"
                if load.state is LoadState.COMMITTED
                else "abandoned"
            )
            raise Conflict(
                f"load {load_id} is {state_text} and accepts no more writes; begin another load"
            )
        space = self._spaces.get(load.space_id)
        if space is None or not any(host in hosts for hosts in space.parts):
            raise InvalidRequest(
                f"host {host}: expected a host with partitions of space {load.space!r}"
            )
        chunk = self._chunks[load.load_id].get(index)
        if chunk is None:
            raise InvalidRequest(
                f"chunk {index} of load {load_id} was never registered; register it before the "
                "write"
            )
        self._admission += 1
        admitted = self._admitted.setdefault(load.load_id, {})
        is_first = host not in admitted
        admitted[host] = self._admission
        return self._admission, is_first, chunk

    def unsealed_hosts(self, load_id: int, seals: Iterable[Seal] = ()) -> tuple[list[HostId], int]:
        """Return the hosts to seal before a commit, and the number to seal them under."""
        seal_numbers = {seal.host: seal.number for seal in seals}
        admitted = self._admitted.get(LoadId(load_id), {})
        return sorted(
            host for host, number in admitted.items() if seal_numbers.get(host, -1) < number
        ), self._admission

    def commit(
        self,
        load_id: int,
        *,
        rejected: int,
        written: Iterable[int],
        resolved_commit: int,
        deletes: bool,
        seals: Sequence[Seal] = (),
    ) -> LoadRecord:
        """Commit a load under the next commit number. Idempotent.

        By now every partition knows which nodes the load revives that were deleted up to commit
        ``resolved_commit``. If nodes were deleted since then, or a host that may write is not
        sealed, the load stays open."""
        load = self.get(load_id)
        if load.state is LoadState.COMMITTED:
            return load
        known_chunks = self._writable_chunks(load)
        changed_chunks, registration = self._register_step(load, known_chunks, (), written)
        for index in sorted(known_chunks):
            if not (changed_chunks.get(index) or known_chunks[index]).written:
                raise InvalidRequest(
                    f"load {load_id} cannot be committed: some partitions have not written chunk "
                    f"{index} yet"
                )
        if (
            self._last_delete.get(load.space_id, 0) > resolved_commit
            or self.unsealed_hosts(load_id, seals)[0]
        ):
            return load
        fingerprint = _combined_fingerprint(load, seals)
        number, commit_write = self._spaces.next_commit(load.space_id)
        load = replace(
            load,
            state=LoadState.COMMITTED,
            commit=number,
            rejected=rejected,
            deletes=deletes,
            fingerprint=fingerprint,
        )
        self._close_load(
            load, PendingWrite({**registration.changes, **commit_write.changes}, commit_write.apply)
        )
        return load

    def abandon(self, load_id: int, *, now_ms: int) -> LoadRecord:
        """Abandon an open load. Idempotent; a committed load is a Conflict."""
        load = self.get(load_id)
        if load.state is LoadState.COMMITTED:
            raise Conflict(
                f"load {load_id} is committed (number {load.commit}) and cannot be "
                "abandoned; delete what it wrote with another load"
            )
        if load.state is LoadState.OPEN:
            load = replace(load, state=LoadState.ABANDONED, ended_ms=now_ms)
            self._close_load(
                load,
                PendingWrite(
                    {keys.chunk_key(load_id, index): None for index in self._chunks[load.load_id]}
                ),
            )
        return load

    def expired(self, since_ms: int) -> list[LoadRecord]:
        """Return the open loads without a request since a time.

        Every load gets a full lease after a start of metad."""
        return [
            load
            for load in self._open.values()
            if max(_last_seen_ms(load), self._started_ms) < since_ms
        ]

    def mark_purged(self, load_id: LoadId) -> None:
        """Record that no storaged holds blocks of an abandoned load any more."""
        load = replace(self._abandoned[load_id], is_purged=True)
        self._store.write({keys.load_key(load_id): record_encoding.encode_load(load)})
        self._abandoned[load_id] = load

    def forget_abandoned(self, before_ms: int) -> None:
        """Delete the records of purged loads that were abandoned before a time."""
        purged_ids = [
            load.load_id
            for load in self._abandoned.values()
            if load.is_purged and load.ended_ms < before_ms
        ]
        if purged_ids:
            self._store.write({keys.load_key(load_id): None for load_id in purged_ids})
            for load_id in purged_ids:
                del self._abandoned[load_id]

    def dead_loads(self, space_id: SpaceId, load_ids: Iterable[int]) -> list[LoadId]:
        """Return those of a storaged's loads of a space that are neither open nor committed.

        Load ids that this catalog has not assigned yet are left out: the catalog may be a restored
        older copy that does not know them."""
        alive = {load_id for _, load_id in self._committed.get(space_id, ())} | set(self._open)
        return sorted(
            LoadId(load_id)
            for load_id in set(load_ids)
            if load_id not in alive and 0 < load_id < self._next
        )

    def _close_load(self, load: LoadRecord, pending_write: PendingWrite) -> None:
        self._store.write(
            {
                **pending_write.changes,
                keys.load_key(load.load_id): record_encoding.encode_load(load),
            }
        )
        pending_write.apply()
        del self._open[load.load_id]
        del self._chunks[load.load_id]
        self._admitted.pop(load.load_id, None)
        self._index_load(load)

    def skip_ids(self, first_id: int) -> None:
        """Assign no identifier below ``first_id`` from now on; the store has it already."""
        self._next = max(self._next, first_id)

    def drop(self, space_id: SpaceId) -> PendingWrite:
        """Return the write that deletes all loads of a space."""
        changes: dict[bytes, bytes | None] = {}
        open_ids = [load_id for load_id, load in self._open.items() if load.space_id == space_id]
        abandoned_ids = [
            load_id for load_id, load in self._abandoned.items() if load.space_id == space_id
        ]
        for load_id in [
            *open_ids,
            *abandoned_ids,
            *(load_id for _, load_id in self._committed.get(space_id, ())),
        ]:
            changes[keys.load_key(load_id)] = None
            changes |= {key: None for key, _ in self._store.range(keys.chunks_prefix(load_id))}

        def apply() -> None:
            for load_id in open_ids:
                del self._open[load_id]
                del self._chunks[load_id]
                self._admitted.pop(load_id, None)
            for load_id in abandoned_ids:
                del self._abandoned[load_id]
            self._committed.pop(space_id, None)
            self._last_delete.pop(space_id, None)
            self._by_resume_key = {
                name: load_id
                for name, load_id in self._by_resume_key.items()
                if name[0] != space_id
            }

        return PendingWrite(changes, apply)

    def open_ids(self) -> list[LoadId]:
        """Return the ids of all open loads."""
        return sorted(self._open)

    def open_in_space(self, space_id: SpaceId) -> list[LoadId]:
        """Return the ids of the open loads of a space."""
        return sorted(load.load_id for load in self._open.values() if load.space_id == space_id)

    def unpurged_in_space(self, space_id: SpaceId) -> list[LoadId]:
        """Return the abandoned loads of a space that some storaged may still hold blocks of."""
        return sorted(
            load.load_id
            for load in self._abandoned.values()
            if load.space_id == space_id and not load.is_purged
        )

    def committed_up_to(self, space_id: SpaceId, watermark: int) -> list[tuple[int, LoadId]]:
        """Return (commit number, load id) of a space up to a commit watermark, in commit order."""
        return [pair for pair in self._committed.get(space_id, ()) if pair[0] <= watermark]

    def committed_after(self, space_id: SpaceId, after: int) -> list[tuple[int, LoadId]]:
        """Return (commit number, load id) of a space after a commit, in commit order."""
        committed = self._committed.get(space_id, [])
        return committed[bisect_right(committed, after, key=lambda pair: pair[0]) :]

    def _stored_chunks(self, load_id: LoadId) -> list[Chunk]:
        return [
            record_encoding.decode_chunk(value)
            for _, value in self._store.range(keys.chunks_prefix(load_id))
        ]

    def _index_load(self, load: LoadRecord) -> None:
        match load.state:
            case LoadState.OPEN:
                self._open[load.load_id] = load
                self._chunks[load.load_id] = {}
            case LoadState.COMMITTED:
                self._committed.setdefault(load.space_id, []).append((load.commit, load.load_id))
                if load.deletes:
                    self._last_delete[load.space_id] = max(
                        load.commit, self._last_delete.get(load.space_id, 0)
                    )
                if load.resume_key:
                    self._by_resume_key[load.space_id, load.resume_key, load.source] = load.load_id
            case LoadState.ABANDONED:
                self._abandoned[load.load_id] = load


def _check_chunk(chunk: NewChunk, space: Space) -> None:
    types = space.schema.node_types if chunk.element is Element.NODE else space.schema.edge_types
    if chunk.type_id >= len(types):
        raise InvalidRequest(
            f"chunk {chunk.index}: {chunk.element.name.lower()} type {chunk.type_id}: expected "
            f"one of the {len(types)} types of space {space.name!r}, numbered from 0"
        )
    if chunk.rows < 0:
        raise InvalidRequest(f"chunk {chunk.index}: rows={chunk.rows}: expected 0 or more")
    if not chunk.digest:
        raise InvalidRequest(
            f"chunk {chunk.index}: expected a digest, which identifies the content of a chunk"
        )


def _combined_fingerprint(load: LoadRecord, seals: Sequence[Seal]) -> tuple[PartFingerprint, ...]:
    """Return the fingerprint of a load on each partition, merged over all hosts.

    Raises
    ------
    Corrupt
        If two hosts hold different fingerprints of a partition.
    """
    fingerprints: dict[int, PartFingerprint] = {}
    for seal in seals:
        for fingerprint in seal.parts:
            if fingerprints.setdefault(fingerprint.part, fingerprint) != fingerprint:
                raise Corrupt(
                    f"load {load.load_id}, partition {fingerprint.part}: host {seal.host} has "
                    f"{fingerprint}, another one {fingerprints[fingerprint.part]}; abandon the "
                    "load and write it again"
                )
    return tuple(fingerprints[part] for part in sorted(fingerprints))


def _last_seen_ms(load: LoadRecord) -> int:
    return load.seen_ms or load.created_ms


def _is_same_chunk(old: NewChunk, new: NewChunk) -> bool:
    return (old.element, old.type_id, old.rows, old.digest) == (
        new.element,
        new.type_id,
        new.rows,
        new.digest,
    )


def _registered_chunk(new_chunk: NewChunk, base: int) -> Chunk:
    return Chunk(
        index=new_chunk.index,
        element=new_chunk.element,
        type_id=new_chunk.type_id,
        rows=new_chunk.rows,
        digest=new_chunk.digest,
        base=base,
        written=False,
    )
