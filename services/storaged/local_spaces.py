"""Spaces with partitions on this storaged: their stores, and the versions it serves.

`storaged.app` applies each desired state. `storaged.version_loader` opens versions,
`storaged.maintenance.garbage_collector` removes what metad requests, and `storaged.api` reads.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from asterism_io.durable_files import make_folder
from asterism_model.indexes import Index
from asterism_model.partition_stats import PartitionTotals, TotalsKey
from asterism_model.schema import Schema
from asterism_proto.errors import AsterismError, Stale
from storaged.paths import DataPaths, write_space_label
from storaged.quarantine import Quarantine
from storaged.sampling import LocalVersion
from storaged.store.block_store import BlockStore
from storaged.store.database_identity import DatabaseOwner, claim

logger = logging.getLogger(__name__)

_OPENING_RETRY_S = 0.05
"""Seconds after which a caller may try a space again that is not open yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredVersion:
    """A version to serve."""

    version: int
    job_id: int
    digest: str
    watermark: int = 0
    """Commit watermark: the last commit that the version contains."""
    totals: Mapping[TotalsKey, PartitionTotals]
    """Totals of every partition of the space."""
    named_totals: Mapping[str, Mapping[TotalsKey, PartitionTotals]]
    """Totals for each additional weight name."""
    images: Mapping[int, str]
    """Digest of each partition's image."""
    indexes: tuple[Index, ...] = ()
    """Indexes of the version's partitions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredSpace:
    """A space with partitions on this storaged."""

    space_id: int
    name: str
    schema: Schema
    parts: tuple[int, ...]
    """Partitions held by this storaged."""
    versions: tuple[DesiredVersion, ...]
    abandoned_loads: tuple[int, ...] = ()
    """Abandoned loads with blocks to remove, of this space or of another one."""
    kept_jobs: tuple[int, ...] = ()
    """Jobs that are not served but may be resumed from the files they left."""


@dataclass(slots=True)
class _SpaceState:
    desired: DesiredSpace
    store: BlockStore
    versions: dict[int, LocalVersion] = field(default_factory=dict)
    load_faults: dict[int, str] = field(default_factory=dict)
    """Cause for each version that cannot be served."""
    new: frozenset[int] = frozenset()
    """Versions published since the space was opened here."""
    dropped_loads: frozenset[int] = frozenset()
    """Abandoned loads that have no block here."""


class LocalSpaces:
    """The spaces of this storaged, their stores and their loaded versions.

    Parameters
    ----------
    paths : DataPaths
    quarantine : Quarantine, optional
        Source of folders to restore if they are wanted again, as after the adoption of an older
        catalog.
    owner : callable, optional
        Returns the owner of a space's graph database, which the database's folder must record.
    """

    def __init__(
        self,
        paths: DataPaths,
        quarantine: Quarantine | None = None,
        *,
        owner: Callable[[int], DatabaseOwner] | None = None,
    ) -> None:
        self._paths, self._quarantine, self._owner = paths, quarantine, owner
        self._highest_load = 0
        self.lock = threading.RLock()
        """Lock held while a desired state and its tasks are applied or removals are decided.
        """
        self._spaces: dict[int, _SpaceState] = {}
        self._open_faults: dict[int, str] = {}
        """Error message for each space that cannot be opened."""
        self._desired_ids: frozenset[int] = frozenset()
        self._loading: tuple[int, int, int] | None = None

    def apply(self, desired_spaces: Sequence[DesiredSpace]) -> None:
        """Apply a desired state: open the stores of new spaces and close those no longer wanted.

        A space that cannot be opened does not affect other spaces.
        """
        with self.lock:
            self._desired_ids = frozenset(space.space_id for space in desired_spaces)
            for space_id in [
                space_id for space_id in self._spaces if space_id not in self._desired_ids
            ]:
                self._spaces.pop(space_id).store.close()
                logger.info("space_dropped", extra={"space": space_id})
            faults = {}
            for space in desired_spaces:
                try:
                    self._apply_space(space)
                # The failure of one space leaves other spaces alone.
                except (AsterismError, OSError) as error:
                    cause = error.message if isinstance(error, AsterismError) else str(error)
                    faults[space.space_id] = f"space {space.name} cannot be opened: {cause}"
                    logger.error("space_open_failed", extra={"space": space.name, "cause": cause})
            self._open_faults = faults

    def _apply_space(self, space: DesiredSpace) -> None:
        state = self._spaces.get(space.space_id)
        if state is None:
            path = self._paths.graph(space.space_id)
            self._restore_folder(path.parent)
            make_folder(path.parent)
            write_space_label(path.parent, space.name)
            if self._owner is not None:
                claim(path, self._owner(space.space_id))
            state = self._spaces[space.space_id] = _SpaceState(
                desired=space, store=BlockStore.open(path, space.schema)
            )
        numbers = {desired.version for desired in space.versions}
        state.new = (
            state.new | numbers - {desired.version for desired in state.desired.versions}
        ) & numbers
        state.desired = space
        for desired in space.versions:
            self._restore_folder(self._paths.build(space.space_id, desired.job_id))
        digests = {desired.version: desired.digest for desired in space.versions}
        # Calls in flight keep their arrays mapped; files are deleted by garbage collection.
        state.versions = {
            version: loaded
            for version, loaded in state.versions.items()
            if digests.get(version) == loaded.digest
        }
        state.load_faults = {
            version: cause for version, cause in state.load_faults.items() if version in numbers
        }
        state.dropped_loads &= frozenset(space.abandoned_loads)

    def _restore_folder(self, path: Path) -> None:
        if self._quarantine is not None and not path.exists():
            self._quarantine.restore(path)

    def note_load(self, load_id: int) -> None:
        """Record that blocks of a load exist here."""
        self._highest_load = max(self._highest_load, load_id)

    def highest_load(self) -> int:
        """Return the highest load seen in a store or written since the start; 0 for none."""
        return max(
            [
                self._highest_load,
                *(state.store.highest_load for state in list(self._spaces.values())),
            ]
        )

    # -- versions to load --------------------------------------------------------------------------

    def unloaded_versions(self) -> list[tuple[DesiredSpace, DesiredVersion]]:
        """Return the versions to be served that are not loaded, newest first."""
        with self.lock:
            versions = [
                (state.desired, desired)
                for state in self._spaces.values()
                for desired in state.desired.versions
                if desired.version not in state.versions
            ]
        return sorted(versions, key=lambda pair: -pair[1].version)

    def is_desired(self, space_id: int, desired: DesiredVersion) -> bool:
        """Return whether a version is still to be served."""
        state = self._spaces.get(space_id)
        return state is not None and any(
            other is desired or (other.version, other.digest) == (desired.version, desired.digest)
            for other in state.desired.versions
        )

    def note_loading(self, space_id: int, version: int, part: int) -> None:
        """Record the partition being opened, for reports on missing versions."""
        self._loading = (space_id, version, part)

    def serve(self, space_id: int, desired: DesiredVersion, version: LocalVersion) -> bool:
        """Start serving a version; return False if it is no longer wanted."""
        with self.lock:
            self._loading = None
            if not self.is_desired(space_id, desired):
                return False
            state = self._spaces[space_id]
            state.versions = {**state.versions, desired.version: version}
            state.load_faults.pop(desired.version, None)
            return True

    def note_fault(self, space_id: int, desired: DesiredVersion, cause: str) -> None:
        """Record why a version cannot be served."""
        with self.lock:
            self._loading = None
            if self.is_desired(space_id, desired):
                self._spaces[space_id].load_faults[desired.version] = cause

    def withdraw(self, space_id: int, desired: DesiredVersion, cause: str) -> bool:
        """Stop serving a version; return False if it was not served.

        Calls in flight keep their arrays mapped.
        """
        with self.lock:
            state = self._spaces.get(space_id)
            if (
                state is None
                or desired.version not in state.versions
                or not self.is_desired(space_id, desired)
            ):
                return False
            state.versions = {
                version: loaded
                for version, loaded in state.versions.items()
                if version != desired.version
            }
            state.load_faults[desired.version] = cause
            return True

    def served_versions(self) -> list[tuple[DesiredSpace, DesiredVersion]]:
        """Return the versions that are served, newest first."""
        with self.lock:
            versions = [
                (state.desired, desired)
                for state in self._spaces.values()
                for desired in state.desired.versions
                if desired.version in state.versions
            ]
        return sorted(versions, key=lambda pair: -pair[1].version)

    def desired_versions(self) -> frozenset[tuple[int, int]]:
        """Return (space, version) of every version to be served."""
        with self.lock:
            return frozenset(
                (space_id, desired.version)
                for space_id, state in self._spaces.items()
                for desired in state.desired.versions
            )

    # -- removals ----------------------------------------------------------------------------------

    @property
    def desired_space_ids(self) -> frozenset[int]:
        """Ids of all spaces in metad's last desired state, even those that cannot be opened."""
        return self._desired_ids

    def spaces(self) -> list[DesiredSpace]:
        """Return the open spaces."""
        with self.lock:
            return [state.desired for state in self._spaces.values()]

    def loads_to_drop(self) -> list[tuple[int, BlockStore, list[int]]]:
        """Return (space, store, abandoned loads) where a store may have blocks of such loads."""
        with self.lock:
            candidates = [
                (space_id, state, sorted(set(state.desired.abandoned_loads) - state.dropped_loads))
                for space_id, state in self._spaces.items()
            ]
            return [
                (space_id, state.store, loads) for space_id, state, loads in candidates if loads
            ]

    def note_dropped(self, space_id: int, loads: Sequence[int]) -> None:
        """Record that no block of these loads remains in a space."""
        with self.lock:
            state = self._spaces.get(space_id)
            if state is not None:
                state.dropped_loads |= frozenset(loads)

    def dropped_loads(self) -> list[int]:
        """Return the abandoned loads without blocks here; none while any space is not open."""
        states = list(self._spaces.values())
        if self._open_faults or not states:
            return []
        return sorted(frozenset.intersection(*(space.dropped_loads for space in states)))

    # -- lookups -----------------------------------------------------------------------------------

    def space(self, space_id: int) -> DesiredSpace:
        """Return a space; raise Stale if this storaged holds none of its partitions."""
        return self._space_state(space_id).desired

    def store(self, space_id: int) -> BlockStore:
        """Return the graph store of a space."""
        return self._space_state(space_id).store

    def _space_state(self, space_id: int) -> _SpaceState:
        state = self._spaces.get(space_id)
        if state is None:
            error = Stale(
                self._open_faults.get(space_id)
                or f"space {space_id} has no partition here; this storaged has spaces "
                f"{sorted(self._spaces)}"
            )
            if space_id not in self._open_faults:
                # A caller that has a route has it of metad: the space is about to be opened.
                error.retry_after_s = _OPENING_RETRY_S
            raise error
        return state

    def version(self, space_id: int, version: int, digest: str) -> LocalVersion:
        """Return a loaded version.

        Raises
        ------
        Stale
            The version is not loaded here, or has another digest.
        """
        state = self._space_state(space_id)
        loaded = state.versions.get(version)
        if loaded is None:
            is_desired = any(desired.version == version for desired in state.desired.versions)
            reason = (
                self._unserved_reason(state, version)
                if is_desired
                else "metad has not requested it, or has retired it"
            )
            raise Stale(
                f"version {version} of space {space_id} is not loaded here: {reason}; loaded "
                f"versions: {sorted(state.versions)}"
            )
        if loaded.digest != digest:
            raise Stale(
                f"version {version} of space {space_id} has digest {loaded.digest} here: "
                f"expected {digest or '(none)'}, as in the request"
            )
        return loaded

    def versions(self) -> list[tuple[int, int]]:
        """Return (space, version) of every loaded version."""
        # Without the lock, which `apply` holds while it opens stores: heartbeats call this, and a
        # lease does not wait.
        return [
            (space_id, version)
            for space_id, state in list(self._spaces.items())
            for version in state.versions
        ]

    def served_jobs(self, space_id: int) -> list[int]:
        """Return the jobs that built the loaded versions of a space, newest version first.

        Versions with damaged images are not among them.
        """
        with self.lock:
            state = self._spaces.get(space_id)
            desired_versions = (
                sorted(state.desired.versions, key=lambda want: -want.version)
                if state is not None
                else []
            )
            return [
                desired.job_id
                for desired in desired_versions
                if state is not None and desired.version in state.versions
            ]

    def unserved_reasons(self) -> list[str]:
        """Return a message for each space or version that should be served and is not."""
        return self._missing(new=True)

    def unready(self) -> list[str]:
        """Return the same messages without new versions that are still being opened.

        The versions served before stay available meanwhile.
        """
        return self._missing(new=False)

    def _missing(self, *, new: bool) -> list[str]:
        return list(self._open_faults.values()) + [
            (
                f"version {desired.version} of space {state.desired.name} is not served: "
                f"{self._unserved_reason(state, desired.version)}"
            )
            for state in list(self._spaces.values())
            for desired in state.desired.versions
            if desired.version not in state.versions
            and (new or desired.version in state.load_faults or desired.version not in state.new)
        ]

    def _unserved_reason(self, state: _SpaceState, version: int) -> str:
        match self._loading:
            case (space_id, number, part) if (space_id, number) == (
                state.desired.space_id,
                version,
            ):
                return f"part {part} is being loaded"
        return state.load_faults.get(version, "it waits to be loaded")

    def close(self) -> None:
        """Close all stores."""
        with self.lock:
            for state in self._spaces.values():
                state.store.close()
            self._spaces = {}
