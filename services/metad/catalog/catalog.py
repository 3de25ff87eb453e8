"""The rooms of the catalog together, read from one store."""

from __future__ import annotations

from uuid import uuid4

from asterism_proto.errors import Corrupt
from metad.catalog.loads import Loads
from metad.catalog.model import Space, Step
from metad.catalog.pins import PinRules, Pins
from metad.catalog.restores import Record, Restores
from metad.catalog.spaces import Spaces
from metad.catalog.versions import Versions
from metad.jobs.model import Job
from metad.store import codec, keys
from metad.store.port import MetaStore
from metad.totals import Result

_FORMAT = b"1"


class Catalog:
    """Spaces, loads, versions, restores and pins, and the cluster that they are of.

    Parameters
    ----------
    store : MetaStore
    folder_uuid : str
        Of metad's folder: what the cluster of a catalog is called that was written before catalogs had a name of their own.
    pin_rules : PinRules, optional
    now_ms : int
    """

    def __init__(self, store: MetaStore, *, folder_uuid: str, pin_rules: PinRules | None = None, now_ms: int = 0) -> None:
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
        # Of the catalog, not of metad's folder, whose identity may be lost; and of the clock, for a catalog may be an older state of itself.
        self.start = max(codec.number_from(store.get(keys.START), default=0) + 1, now_ms // 1000)
        """Larger at every start on this catalog."""
        store.write({keys.START: codec.number_to(self.start)})
        self.spaces = Spaces(store)
        self.loads = Loads(store, self.spaces, first_admission=self.start << 32)
        self.versions = Versions(store, self.spaces)
        self.restores = Restores(store, self.spaces, self.loads)
        self.pins = Pins(store, pin_rules or PinRules(), now_ms=now_ms)

    def drop(self, space: Space) -> Step:
        """The end of a space with everything in it."""
        return _together(
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
