"""The rooms of the catalog together, read from one store."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import uuid4

from asterism_proto.errors import Conflict, Corrupt
from metad.catalog.history import History
from metad.catalog.loads import Loads
from metad.catalog.model import Space, Step
from metad.catalog.pins import PinRules, Pins
from metad.catalog.removals import Removal, RemovalKind, Removals
from metad.catalog.restores import Record, Restores
from metad.catalog.spaces import Spaces, hosts_of
from metad.catalog.versions import Versions
from metad.jobs.model import Job
from metad.store import codec, keys
from metad.store.port import MetaStore
from metad.store.revised import RevisedStore
from metad.totals import Result

_FORMAT = b"1"


class Catalog:
    """Spaces, loads, versions, restores and pins, and the cluster that they are of.

    Parameters
    ----------
    store : MetaStore
    folder_uuid : str
        Of metad's folder: what the cluster of a catalog is called that was written before catalogs had a name of their own.
    moved : bool
        Take over a catalog of another folder.
    pin_rules : PinRules, optional
    now_ms : int
    """

    def __init__(self, store: MetaStore, *, folder_uuid: str, moved: bool = True, pin_rules: PinRules | None = None, now_ms: int = 0) -> None:
        wrote = store.get(keys.FORMAT)
        if wrote is not None and wrote != _FORMAT:
            raise Corrupt(
                f"the catalog is of format {wrote.decode(errors='replace')}, this metad reads {_FORMAT.decode()}; start the release that wrote it"
            )
        named = store.get(keys.CLUSTER)
        if named is None:
            # An empty catalog is a new cluster, whatever lies beside it: storageds of the old one must not take it for theirs.
            named = uuid4().hex.encode() if wrote is None else folder_uuid.encode()
            store.write({keys.FORMAT: _FORMAT, keys.CLUSTER: named})
        self.cluster = named.decode()
        folder = (store.get(keys.FOLDER) or b"").decode()
        if folder and folder != folder_uuid and not moved:
            raise Conflict(
                f"the catalog of cluster {self.cluster} belongs to the metad folder with uuid {folder}, not to this one with uuid {folder_uuid}; "
                "put this folder's own catalog back; if this one is here on purpose, remove identity.json of this folder, and start metad again"
            )
        if folder != folder_uuid:
            store.write({keys.FOLDER: folder_uuid.encode()})
        # Of the catalog, not of metad's folder, whose identity may be lost; and of the clock, for a catalog may be an older state of itself.
        self.start = max(codec.number_from(store.get(keys.START), default=0) + 1, now_ms // 1000)
        """Larger at every start on this catalog."""
        self.store = store = store if isinstance(store, RevisedStore) else RevisedStore(store)
        store.write({keys.START: codec.number_to(self.start)})
        self.history = History(store)
        self.removals = Removals(store)
        self.spaces = Spaces(store)
        self.loads = Loads(store, self.spaces, first_admission=self.start << 32, now_ms=now_ms)
        self.versions = Versions(store, self.spaces)
        self.restores = Restores(store, self.spaces, self.loads)
        self.pins = Pins(store, pin_rules or PinRules(), now_ms=now_ms)

    def drop(self, space: Space, *, now_ms: int) -> Step:
        """The end of a space with everything in it, and the orders to remove its data."""
        removal = Removal(
            kind=RemovalKind.SPACE,
            space_id=space.space_id,
            reason=f"space {space.name} was dropped",
            hosts=tuple(sorted(hosts_of(space))),
            created_ms=now_ms,
        )
        return _together(
            self.removals.order([removal]),
            self.pins.drop(space.space_id),
            self.restores.end(space.space_id),
            self.versions.drop(space.space_id),
            self.loads.drop(space.space_id),
            self.spaces.drop(space),
        )

    def publish(self, space: Space, job: Job, result: Result, *, now_ms: int) -> Step:
        """What a finished job made, as the current version of its space; of a restore, the version that the space waits for."""
        awaited = self.restores.awaited(space.space_id)
        return _together(self.versions.publish(space, job, result, now_ms=now_ms, origin=awaited), self.restores.end(space.space_id))

    def retire(self, space: Space, versions: list[int], *, now_ms: int) -> Step:
        """The end of old versions, and the orders to remove what their jobs built."""
        removals = [
            Removal(
                kind=RemovalKind.BUILD,
                space_id=space.space_id,
                job_id=manifest.job_id,
                reason=f"version {manifest.version} of space {space.name} was retired",
                hosts=tuple(sorted(hosts_of(space))),
                created_ms=now_ms,
            )
            for manifest in self.versions.served(space.space_id)
            if manifest.version in versions
        ]
        return _together(self.versions.retire(space.space_id, versions), self.removals.order(removals))

    def adopt(self, over: Mapping[str, int], highest: int, *, cluster: str) -> None:
        """Record that this catalog is the one to follow, over positions of these histories; skip every identifier they used."""
        self.history.adopt(over, highest, {keys.CLUSTER: cluster.encode()})
        self.cluster = cluster
        first = self.history.position.revision
        self.spaces.skip_ids(first)
        self.loads.skip_ids(first)
        self.pins.skip_ids(first)
        self.removals.skip_ids(first)

    def record(self, space: Space, version: int) -> Record:
        """All that is known of a space up to a version: what a backup keeps."""
        self.restores.check_none(space)
        manifest = self.versions.get(space, version)
        loads = [self.loads.get(load_id) for _, load_id in self.loads.committed_up_to(space.space_id, manifest.cut)]
        return Record(
            space=space,
            manifest=manifest,
            loads=tuple((load, tuple(self.loads.chunks(load))) for load in loads),
            last_commit=self.spaces.last_commit(space.space_id),
            next_edge_ids=self.spaces.next_edge_ids(space),
        )


def _together(*steps: Step) -> Step:
    changes: dict[bytes, bytes | None] = {}
    for step in steps:
        changes |= step.changes

    def apply() -> None:
        for step in steps:
            step.apply()

    return Step(changes, apply)
