"""Restores: spaces that were made of a backup and wait for their data, each with the version that is to come out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from asterism_proto.errors import NotReady
from metad.catalog.loads import Loads
from metad.catalog.model import Chunk, Load, Manifest, Space, Step
from metad.catalog.spaces import Spaces
from metad.ids import HostId, SpaceId
from metad.store import codec, keys
from metad.store.port import MetaStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """All that the catalog knows of a space up to one version."""

    space: Space
    manifest: Manifest
    loads: tuple[tuple[Load, tuple[Chunk, ...]], ...]
    """Committed up to the manifest's cut, in commit order."""
    last_commit: int
    next_edge_ids: tuple[int, ...]
    """By edge type."""


class Restores:
    """The spaces under way from a backup."""

    def __init__(self, store: MetaStore, spaces: Spaces, loads: Loads) -> None:
        self._store, self._spaces, self._loads = store, spaces, loads
        self._awaited: dict[SpaceId, Manifest] = {
            SpaceId(keys.last_number(key)): codec.manifest_from(value) for key, value in store.range(keys.RESTORES)
        }

    def awaited(self, space_id: int) -> Manifest | None:
        """The version that a space waits for; None where it waits for none."""
        return self._awaited.get(SpaceId(space_id))

    def check_none(self, space: Space) -> None:
        """NotReady where a space still waits for its data."""
        manifest = self.awaited(space.space_id)
        if manifest is not None:
            raise NotReady(
                f"space {space.name!r} is being restored to version {manifest.version}: run `asterism restore` again to go on, "
                "or drop it; until then it takes no load and no other job"
            )

    def begin(self, name: str, record: Record, *, storageds: Sequence[HostId], now_ms: int) -> Space:
        """A space of a record, in one write; the one that waits for the same version where there is one."""
        known = next((space for space in self._spaces.all() if space.name == name), None)
        if known is not None:
            awaited = self.awaited(known.space_id)
            if awaited is not None and awaited.digest == record.manifest.digest:
                return known
        space, made = self._spaces.adopt(
            name,
            record.space.schema,
            last_commit=record.last_commit,
            next_edge_ids=record.next_edge_ids,
            storageds=storageds,
            now_ms=now_ms,
        )
        loaded = self._loads.adopt(space, record.loads)
        self._store.write({**made.changes, **loaded.changes, keys.restore(space.space_id): codec.manifest_to(record.manifest)})
        made.apply()
        loaded.apply()
        self._awaited[space.space_id] = record.manifest
        return space

    def end(self, space_id: SpaceId) -> Step:
        """A space that waits no more: it has its data, or is dropped."""
        if space_id not in self._awaited:
            return Step()

        def apply() -> None:
            self._awaited.pop(space_id, None)

        return Step({keys.restore(space_id): None}, apply)
