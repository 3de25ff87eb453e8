"""Removal orders: data that storageds have to remove, kept until each of them has done so."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from enum import Enum

from asterism_proto.errors import Corrupt
from metad.model.catalog import PendingWrite
from metad.model.ids import HostId
from metad.store import keys
from metad.store.port import MetaStore
from metad.wire import storage


class RemovalKind(Enum):
    """The kind of data to remove; the numbers are those of messages."""

    SPACE = 1
    """The folder of a space."""
    BUILD = 2
    """The output of one job."""
    LEFTOVERS = 3
    """Leftovers of a published build: its checkpoint, an unfinished export."""
    LOADS = 4
    """Blocks of loads that were given up by an adoption."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalRequest:
    """An order to storageds to remove something."""

    removal_id: int = 0
    """0 = not assigned yet."""
    kind: RemovalKind
    space_id: int
    job_id: int = 0
    loads: tuple[int, ...] = ()
    reason: str
    hosts: tuple[HostId, ...]
    """The storageds that have not carried it out yet."""
    created_ms: int

    @property
    def target(self) -> tuple[RemovalKind, int, int, tuple[int, ...]]:
        """The data to remove."""
        return (self.kind, self.space_id, self.job_id, self.loads)


class Removals:
    """The orders of a catalog. Not thread-safe: called under the lock of `metad.change_feed`."""

    def __init__(self, store: MetaStore) -> None:
        self._store = store
        self._pending = {
            removal.removal_id: removal
            for removal in (_decode_removal(value) for _, value in store.range(keys.REMOVALS))
        }
        self._next = storage.decode_number(store.get(keys.NEXT_REMOVAL), default=1)
        self._cleaned = {keys.last_number(key) for key, _ in store.range(keys.CLEANED_JOBS)}

    def of_host(self, host: HostId) -> list[RemovalRequest]:
        """Return the orders that a storaged has not carried out yet, by id."""
        return [removal for removal in self._pending.values() if host in removal.hosts]

    def pending(self) -> list[RemovalRequest]:
        """Return all orders, by id."""
        return list(self._pending.values())

    def add(
        self, removals: Iterable[RemovalRequest], *, cleaned: Iterable[int] = ()
    ) -> PendingWrite:
        """Return the step that adds orders, and marks jobs whose leftovers they remove."""
        new_removals = [
            replace(removal, removal_id=self._next + i)
            for i, removal in enumerate(r for r in removals if r.hosts)
        ]
        self._next += len(
            new_removals
        )  # even if the step is not taken: several may be parts of one write
        newly_cleaned = set(cleaned) - self._cleaned
        changes: dict[bytes, bytes | None] = {
            keys.removal(removal.removal_id): _encode_removal(removal) for removal in new_removals
        }
        changes |= {keys.cleaned_job(job_id): b"1" for job_id in newly_cleaned}
        if new_removals:
            changes[keys.NEXT_REMOVAL] = storage.encode_number(self._next)

        def apply() -> None:
            self._pending |= {removal.removal_id: removal for removal in new_removals}
            self._cleaned |= newly_cleaned

        return PendingWrite(changes, apply)

    def is_cleaned(self, job_id: int) -> bool:
        """Return whether the removal of a job's leftovers was ordered."""
        return job_id in self._cleaned

    def cancel_job(self, job_id: int) -> PendingWrite:
        """Return the step that cancels a job's orders, so that it can resume from its leftovers."""
        removal_ids = [r.removal_id for r in self._pending.values() if r.job_id == job_id]
        changes: dict[bytes, bytes | None] = {
            keys.removal(removal_id): None for removal_id in removal_ids
        }
        if job_id in self._cleaned:
            changes[keys.cleaned_job(job_id)] = None

        def apply() -> None:
            for removal_id in removal_ids:
                self._pending.pop(removal_id, None)
            self._cleaned.discard(job_id)

        return PendingWrite(changes, apply)

    def skip_ids(self, first_id: int) -> None:
        """Assign no identifier below ``first_id`` from now on; the store has it already."""
        self._next = max(self._next, first_id)

    def clear_cleaned(self, job_id: int) -> PendingWrite:
        """Return the step that clears the mark of a job's leftovers; the orders stay."""
        if job_id not in self._cleaned:
            return PendingWrite()
        return PendingWrite({keys.cleaned_job(job_id): None}, lambda: self._cleaned.discard(job_id))

    def acknowledge(self, host: HostId, removal_ids: Sequence[int]) -> list[RemovalRequest]:
        """Record durably which orders a storaged has carried out; return those that are new."""
        completed = [
            r
            for removal_id in removal_ids
            if (r := self._pending.get(removal_id)) is not None and host in r.hosts
        ]
        changes: dict[bytes, bytes | None] = {}
        remaining: dict[int, RemovalRequest] = {}
        for removal in completed:
            remaining[removal.removal_id] = replace(
                removal, hosts=tuple(other for other in removal.hosts if other != host)
            )
            changes[keys.removal(removal.removal_id)] = (
                _encode_removal(remaining[removal.removal_id])
                if remaining[removal.removal_id].hosts
                else None
            )
        if changes:
            self._store.write(changes)
            for removal_id, removal in remaining.items():
                if removal.hosts:
                    self._pending[removal_id] = removal
                else:
                    del self._pending[removal_id]
        return completed


def _encode_removal(removal: RemovalRequest) -> bytes:
    return json.dumps({**asdict(removal), "kind": removal.kind.name}, sort_keys=True).encode()


def _decode_removal(value: bytes) -> RemovalRequest:
    try:
        data = json.loads(value)
        hosts = tuple(HostId(host) for host in data["hosts"])
        return RemovalRequest(
            **{
                **data,
                "kind": RemovalKind[data["kind"]],
                "loads": tuple(data["loads"]),
                "hosts": hosts,
            }
        )
    except (ValueError, KeyError, TypeError) as error:
        raise Corrupt(
            f"stored removal order={value[:200]!r}: expected a JSON record ({error}); "
            "restore metad's data folder from a snapshot"
        ) from error
