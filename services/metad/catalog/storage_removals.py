"""Removal requests: data that storageds have to remove, kept until each has done so."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace

from asterism_model.storage_removals import RemovalKind, RemovalRequest
from asterism_proto.errors import Corrupt
from metad.model.catalog import PendingRemoval, PendingWrite
from metad.model.ids import HostId
from metad.store import keys
from metad.store.port import MetaStore
from metad.wire import record_encoding


class Removals:
    """Pending removal requests of a catalog.

    Not thread-safe: called under the lock of `metad.change_feed`."""

    def __init__(self, store: MetaStore) -> None:
        self._store = store
        self._pending = {
            removal.request.removal_id: removal
            for removal in (_decode_removal(value) for _, value in store.range(keys.REMOVALS))
        }
        self._next = record_encoding.decode_number(store.get(keys.NEXT_REMOVAL), default=1)
        self._cleaned = {keys.last_number(key) for key, _ in store.range(keys.CLEANED_JOBS)}

    def of_host(self, host: HostId) -> list[PendingRemoval]:
        """Return the requests that a storaged has not carried out yet, by id."""
        return [removal for removal in self._pending.values() if host in removal.hosts]

    def pending(self) -> list[PendingRemoval]:
        """Return all pending requests, by id."""
        return list(self._pending.values())

    def add(
        self, removals: Iterable[PendingRemoval], *, cleaned: Iterable[int] = ()
    ) -> PendingWrite:
        """Return the write that adds requests, and marks the jobs in ``cleaned`` as cleaned.

        A job is cleaned once removal of its leftovers was requested."""
        new_removals = [
            replace(removal, request=replace(removal.request, removal_id=self._next + i))
            for i, removal in enumerate(r for r in removals if r.hosts)
        ]
        self._next += len(
            new_removals
        )  # skipped even if the write is dropped: one write may combine several
        newly_cleaned = set(cleaned) - self._cleaned
        changes: dict[bytes, bytes | None] = {
            keys.removal_key(removal.request.removal_id): _encode_removal(removal)
            for removal in new_removals
        }
        changes |= {keys.cleaned_job_key(job_id): b"1" for job_id in newly_cleaned}
        if new_removals:
            changes[keys.NEXT_REMOVAL] = record_encoding.encode_number(self._next)

        def apply() -> None:
            self._pending |= {removal.request.removal_id: removal for removal in new_removals}
            self._cleaned |= newly_cleaned

        return PendingWrite(changes, apply)

    def is_cleaned(self, job_id: int) -> bool:
        """Return whether removal of a job's leftovers was requested."""
        return job_id in self._cleaned

    def cancel_job(self, job_id: int) -> PendingWrite:
        """Return the write that cancels a job's requests, so it can resume from its leftovers."""
        removal_ids = [
            removal_id
            for removal_id, removal in self._pending.items()
            if removal.request.job_id == job_id
        ]
        changes: dict[bytes, bytes | None] = {
            keys.removal_key(removal_id): None for removal_id in removal_ids
        }
        if job_id in self._cleaned:
            changes[keys.cleaned_job_key(job_id)] = None

        def apply() -> None:
            for removal_id in removal_ids:
                self._pending.pop(removal_id, None)
            self._cleaned.discard(job_id)

        return PendingWrite(changes, apply)

    def skip_ids(self, first_id: int) -> None:
        """Assign no identifier below ``first_id`` from now on; the store has it already."""
        self._next = max(self._next, first_id)

    def clear_cleaned(self, job_id: int) -> PendingWrite:
        """Return the write that clears the mark of a job's leftovers; the requests stay."""
        if job_id not in self._cleaned:
            return PendingWrite()
        return PendingWrite(
            {keys.cleaned_job_key(job_id): None}, lambda: self._cleaned.discard(job_id)
        )

    def acknowledge(self, host: HostId, removal_ids: Sequence[int]) -> list[PendingRemoval]:
        """Record durably which requests a storaged has carried out; return those that are new."""
        completed = [
            r
            for removal_id in removal_ids
            if (r := self._pending.get(removal_id)) is not None and host in r.hosts
        ]
        changes: dict[bytes, bytes | None] = {}
        remaining: dict[int, PendingRemoval] = {}
        for removal in completed:
            hosts = tuple(other for other in removal.hosts if other != host)
            removal_id = removal.request.removal_id
            remaining[removal_id] = replace(removal, hosts=hosts)
            changes[keys.removal_key(removal_id)] = (
                _encode_removal(remaining[removal_id]) if hosts else None
            )
        if changes:
            self._store.write(changes)
            for removal_id, removal in remaining.items():
                if removal.hosts:
                    self._pending[removal_id] = removal
                else:
                    del self._pending[removal_id]
        return completed


def _encode_removal(removal: PendingRemoval) -> bytes:
    data = {
        **asdict(removal.request),
        "kind": removal.request.kind.name,
        "hosts": removal.hosts,
        "created_ms": removal.created_ms,
    }
    return json.dumps(data, sort_keys=True).encode()


def _decode_removal(value: bytes) -> PendingRemoval:
    try:
        data = {**json.loads(value)}
        hosts = tuple(HostId(host) for host in data.pop("hosts"))
        created_ms = data.pop("created_ms")
        request = RemovalRequest(
            **{**data, "kind": RemovalKind[data["kind"]], "loads": tuple(data["loads"])}
        )
        return PendingRemoval(request=request, hosts=hosts, created_ms=created_ms)
    except (ValueError, KeyError, TypeError) as error:
        raise Corrupt(
            f"stored removal order={value[:200]!r}: expected a JSON record ({error}); "
            "restore metad's data folder from a snapshot"
        ) from error
