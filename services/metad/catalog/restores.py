"""Restores: spaces created from a backup that wait for data, with the version to produce."""

from __future__ import annotations

from collections.abc import Sequence

from asterism_proto.errors import NotReady
from metad.catalog.loads import Loads
from metad.catalog.spaces import Spaces
from metad.model.catalog import Manifest, PendingWrite, Space, SpaceRecord
from metad.model.ids import HostId, SpaceId
from metad.store import keys
from metad.store.port import MetaStore
from metad.wire import record_encoding


class Restores:
    """Spaces that are being restored from a backup."""

    def __init__(self, store: MetaStore, spaces: Spaces, loads: Loads) -> None:
        self._store, self._spaces, self._loads = store, spaces, loads
        self._manifests: dict[SpaceId, Manifest] = {
            SpaceId(keys.last_number(key)): record_encoding.decode_manifest(value)
            for key, value in store.range(keys.RESTORES)
        }

    def awaited_manifest(self, space_id: int) -> Manifest | None:
        """Return the manifest that a space waits for; None if it is not being restored."""
        return self._manifests.get(SpaceId(space_id))

    def check_not_restoring(self, space: Space) -> None:
        """Raise NotReady if a space still waits for its data."""
        manifest = self.awaited_manifest(space.space_id)
        if manifest is not None:
            raise NotReady(
                f"space {space.name!r} is being restored to version {manifest.version}, and "
                "accepts no loads and no other jobs until then; run `asterism restore` again to "
                "continue, or drop the space"
            )

    def begin(
        self, name: str, record: SpaceRecord, *, storageds: Sequence[HostId], now_ms: int
    ) -> Space:
        """Create a space from a record in one write.

        A space of this name that already waits for the same version is returned instead."""
        existing = next((space for space in self._spaces.all() if space.name == name), None)
        if existing is not None:
            awaited_manifest = self.awaited_manifest(existing.space_id)
            if awaited_manifest is not None and awaited_manifest.digest == record.manifest.digest:
                return existing
        space, space_write = self._spaces.create_from_record(
            name,
            record.space.schema,
            last_commit=record.last_commit,
            next_edge_ids=record.next_edge_ids,
            storageds=storageds,
            now_ms=now_ms,
        )
        loads_write = self._loads.import_loads(space, record.loads)
        self._store.write(
            {
                **space_write.changes,
                **loads_write.changes,
                keys.restore_key(space.space_id): record_encoding.encode_manifest(record.manifest),
            }
        )
        space_write.apply()
        loads_write.apply()
        self._manifests[space.space_id] = record.manifest
        return space

    def end(self, space_id: SpaceId) -> PendingWrite:
        """Return the write that ends a restore: the space has its data, or is dropped."""
        if space_id not in self._manifests:
            return PendingWrite()

        def apply() -> None:
            self._manifests.pop(space_id, None)

        return PendingWrite({keys.restore_key(space_id): None}, apply)
