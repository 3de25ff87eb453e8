"""The catalog: spaces, loads, versions, restores, pins, removals and access over one store."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import uuid4

from asterism_model.storage_removals import RemovalKind, RemovalRequest
from asterism_proto.errors import Conflict, Corrupt
from metad.catalog.access import AccessRecords
from metad.catalog.ended_sessions import EndedSessions
from metad.catalog.loads import Loads
from metad.catalog.pins import PinLimits, Pins
from metad.catalog.position_history import CatalogHistory
from metad.catalog.restores import Restores
from metad.catalog.spaces import Spaces, space_hosts
from metad.catalog.storage_removals import Removals
from metad.catalog.versions import Versions
from metad.model.catalog import PendingRemoval, PendingWrite, Space, SpaceRecord
from metad.model.jobs import Job
from metad.model.task_outcomes import TaskOutcome
from metad.store import keys
from metad.store.port import MetaStore
from metad.store.revisions import RevisionedStore
from metad.wire import record_encoding

_FORMAT = b"1"


class Catalog:
    """Spaces, loads, versions, restores, pins, removals and access, and their cluster's id.

    Parameters
    ----------
    store : MetaStore
    folder_uuid : str
        UUID of metad's data folder. It becomes the cluster id of a catalog that was written before
        catalogs had a cluster id of their own.
    accept_other_folder : bool, default True
        Accept a catalog that belongs to another data folder, and bind it to this one.
    pin_limits : PinLimits, optional
    now_ms : int
        Current time in milliseconds since 1970.

    Raises
    ------
    Corrupt
        If the catalog has another storage format.
    Conflict
        If the catalog belongs to another folder and ``accept_other_folder`` is False.
    """

    def __init__(
        self,
        store: MetaStore,
        *,
        folder_uuid: str,
        accept_other_folder: bool = True,
        pin_limits: PinLimits | None = None,
        now_ms: int = 0,
    ) -> None:
        stored_format = store.get(keys.FORMAT)
        if stored_format is not None and stored_format != _FORMAT:
            raise Corrupt(
                f"catalog format {stored_format.decode(errors='replace')}: expected "
                f"{_FORMAT.decode()}; start the release that wrote the catalog"
            )
        cluster_id = store.get(keys.CLUSTER)
        if cluster_id is None:
            # An empty catalog is always a new cluster. Storageds of an earlier cluster must not
            # take it for their own.
            cluster_id = uuid4().hex.encode() if stored_format is None else folder_uuid.encode()
            store.write({keys.FORMAT: _FORMAT, keys.CLUSTER: cluster_id})
        self.cluster = cluster_id.decode()
        folder = (store.get(keys.FOLDER) or b"").decode()
        if folder and folder != folder_uuid and not accept_other_folder:
            raise Conflict(
                f"the catalog of cluster {self.cluster} belongs to the metad folder with uuid "
                f"{folder}, not to this one with uuid {folder_uuid}; put this folder's own "
                "catalog back; if the catalog was moved here on purpose, remove identity.json "
                "from this folder and start metad again"
            )
        if folder != folder_uuid:
            store.write({keys.FOLDER: folder_uuid.encode()})
        # Stored in the catalog, because the identity in metad's folder may be lost. At least the
        # clock in seconds, because the catalog may be a restored older copy of itself.
        self.start_number = max(
            record_encoding.decode_number(store.get(keys.START), default=0) + 1, now_ms // 1000
        )
        """Number of this start; larger at every start on this catalog."""
        self.store = store = store if isinstance(store, RevisionedStore) else RevisionedStore(store)
        # The write of the start belongs to the new term. In the previous one, a copy of the catalog
        # would pass for containing the first write that it lacks.
        first_revision = store.revision + 1
        store.write({keys.START: record_encoding.encode_number(self.start_number)})
        self.history = CatalogHistory(store, first_revision)
        self.removals = Removals(store)
        self.spaces = Spaces(store)
        self.loads = Loads(
            store, self.spaces, first_admission=self.start_number << 32, now_ms=now_ms
        )
        self.versions = Versions(store, self.spaces)
        self.restores = Restores(store, self.spaces, self.loads)
        self.pins = Pins(store, pin_limits or PinLimits(), now_ms=now_ms)
        self.access = AccessRecords(store, self.spaces)
        self.ended_sessions = EndedSessions(store)

    def drop(self, space: Space, *, now_ms: int) -> PendingWrite:
        """Return the write that deletes a space and requests removal of its data."""
        removal = PendingRemoval(
            request=RemovalRequest(
                kind=RemovalKind.SPACE,
                space_id=space.space_id,
                reason=f"space {space.name} was dropped",
            ),
            hosts=tuple(sorted(space_hosts(space))),
            created_ms=now_ms,
        )
        return _combined(
            self.removals.add([removal]),
            self.pins.drop(space.space_id),
            self.access.drop(space.space_id),
            self.restores.end(space.space_id),
            self.versions.drop(space.space_id),
            self.loads.drop(space.space_id),
            self.spaces.drop(space),
        )

    def publish(self, space: Space, job: Job, outcome: TaskOutcome, *, now_ms: int) -> PendingWrite:
        """Return the write that publishes the outcome of a finished job as the current version.

        For a restore job, the published version is the one that the space waits for."""
        origin = self.restores.awaited_manifest(space.space_id)
        return _combined(
            self.versions.publish(space, job, outcome, now_ms=now_ms, origin=origin),
            self.restores.end(space.space_id),
        )

    def retire(self, space: Space, versions: list[int], *, now_ms: int) -> PendingWrite:
        """Return the write that retires old versions and requests removal of their builds."""
        removals = [
            PendingRemoval(
                request=RemovalRequest(
                    kind=RemovalKind.BUILD,
                    space_id=space.space_id,
                    job_id=manifest.job_id,
                    reason=f"version {manifest.version} of space {space.name} was retired",
                ),
                hosts=tuple(sorted(space_hosts(space))),
                created_ms=now_ms,
            )
            for manifest in self.versions.served_versions(space.space_id)
            if manifest.version in versions
        ]
        return _combined(
            self.versions.retire(space.space_id, versions), self.removals.add(removals)
        )

    def adopt(self, given_up: Mapping[str, int], highest_id: int, *, cluster: str) -> None:
        """Make this catalog the one to follow, over the given positions of other histories.

        Every identifier that those histories used is skipped. ``cluster`` becomes the cluster id.
        """
        self.history.adopt(given_up, highest_id, {keys.CLUSTER: cluster.encode()})
        self.cluster = cluster
        first_id = self.history.position.revision
        self.spaces.skip_ids(first_id)
        self.loads.skip_ids(first_id)
        self.pins.skip_ids(first_id)
        self.removals.skip_ids(first_id)

    def space_record(self, space: Space, version: int) -> SpaceRecord:
        """Return everything known of a space up to a version, as a backup keeps it."""
        self.restores.check_not_restoring(space)
        manifest = self.versions.get(space, version)
        loads = [
            self.loads.get(load_id)
            for _, load_id in self.loads.committed_up_to(space.space_id, manifest.watermark)
        ]
        return SpaceRecord(
            space=space,
            manifest=manifest,
            loads=tuple((load, tuple(self.loads.chunks(load))) for load in loads),
            last_commit=self.spaces.last_commit(space.space_id),
            next_edge_ids=self.spaces.next_edge_ids(space),
        )


def _combined(*pending_writes: PendingWrite) -> PendingWrite:
    changes: dict[bytes, bytes | None] = {}
    for pending_write in pending_writes:
        changes |= pending_write.changes

    def apply() -> None:
        for pending_write in pending_writes:
            pending_write.apply()

    return PendingWrite(changes, apply)
