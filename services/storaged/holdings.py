"""The spaces that this storaged holds parts of: their stores, and the versions it serves.

`storaged.app` brings each desired state in; `storaged.opening` opens versions, `storaged.sweeping` removes what orders
name; `storaged.api` reads.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from asterism_proto.durable import make_folder
from asterism_proto.errors import AsterismError, Stale
from asterism_proto.indexes import Index
from asterism_proto.schema import Schema
from storaged.draw import Share, Version
from storaged.draw.version import Key
from storaged.folders import Folders, label_space
from storaged.ownership import Owner, claim
from storaged.quarantine import Quarantine
from storaged.store.graph import GraphStore

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A version to serve."""

    version: int
    job_id: int
    digest: str
    cut: int = 0
    """Of the commits that it shows, the last one."""
    totals: Mapping[Key, Share]
    """Of every part of the space."""
    named: Mapping[str, Mapping[Key, Share]]
    """The same of each further weight name."""
    images: Mapping[int, str]
    """part -> digest of its image."""
    indexes: tuple[Index, ...] = ()
    """That its parts have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedSpace:
    """A space that this storaged holds parts of."""

    space_id: int
    name: str
    schema: Schema
    parts: tuple[int, ...]
    """Held here."""
    versions: tuple[Wanted, ...]
    abandoned_loads: tuple[int, ...] = ()
    """Whose blocks are to go, of this space or of another one."""
    kept_jobs: tuple[int, ...] = ()
    """Jobs that are not served, but may go on with what they left."""


@dataclass(slots=True)
class _Held:
    wanted: WantedSpace
    store: GraphStore
    versions: dict[int, Version] = field(default_factory=dict)
    faults: dict[int, str] = field(default_factory=dict)
    """Versions that can not be served, and why."""
    new: frozenset[int] = frozenset()
    """Versions that were published since the space was opened here."""
    dropped_loads: frozenset[int] = frozenset()
    """Of the abandoned loads: those without a block here."""


class Holdings:
    """What is held here.

    Parameters
    ----------
    folders : Folders
    quarantine : Quarantine, optional
        Where folders come back from that are wanted again, as after an older catalog was adopted.
    owner : callable, optional
        Returns the owner of a space's graph database here, which its folder must record.
    """

    def __init__(self, folders: Folders, quarantine: Quarantine | None = None, *, owner: Callable[[int], Owner] | None = None) -> None:
        self._folders, self._quarantine, self._owner = folders, quarantine, owner
        self._highest_load = 0
        self.lock = threading.RLock()
        """Held while a desired state is taken over, orders included, and while it is decided what goes."""
        self._spaces: dict[int, _Held] = {}
        self._refused: dict[int, str] = {}
        """Spaces that can not be opened, and why."""
        self._named: frozenset[int] = frozenset()
        self._opening: tuple[int, int, int] | None = None

    def apply(self, wanted: Sequence[WantedSpace]) -> None:
        """Open the stores of new spaces, let go of what is not wanted any more."""
        with self.lock:
            self._named = frozenset(space.space_id for space in wanted)
            for space_id in [space_id for space_id in self._spaces if space_id not in self._named]:
                self._spaces.pop(space_id).store.close()
                logger.info("space_dropped", extra={"space": space_id})
            refused = {}
            for space in wanted:
                try:
                    self._apply_space(space)
                except (AsterismError, OSError) as error:  # one space's trouble is not the others'
                    cause = error.message if isinstance(error, AsterismError) else str(error)
                    refused[space.space_id] = f"space {space.name} can not be opened: {cause}"
                    logger.error("space_refused", extra={"space": space.name, "cause": cause})
            self._refused = refused

    def _apply_space(self, space: WantedSpace) -> None:
        held = self._spaces.get(space.space_id)
        if held is None:
            path = self._folders.graph(space.space_id)
            self._put_back(path.parent)
            make_folder(path.parent)
            label_space(path.parent, space.name)
            if self._owner is not None:
                claim(path, self._owner(space.space_id))
            held = self._spaces[space.space_id] = _Held(wanted=space, store=GraphStore.open(path, space.schema))
        numbers = {want.version for want in space.versions}
        held.new = (held.new | numbers - {want.version for want in held.wanted.versions}) & numbers
        held.wanted = space
        for want in space.versions:
            self._put_back(self._folders.build(space.space_id, want.job_id))
        digests = {want.version: want.digest for want in space.versions}
        # Draws under way keep their arrays mapped; files go when the folder is swept.
        held.versions = {version: opened for version, opened in held.versions.items() if digests.get(version) == opened.digest}
        held.faults = {version: cause for version, cause in held.faults.items() if version in numbers}
        held.dropped_loads &= frozenset(space.abandoned_loads)

    def _put_back(self, path: Path) -> None:
        if self._quarantine is not None and not path.exists():
            self._quarantine.put_back(path)

    def saw_load(self, load_id: int) -> None:
        """Note that there are blocks of a load."""
        self._highest_load = max(self._highest_load, load_id)

    def highest_load(self) -> int:
        """Return the highest load that was seen in a store, or written since the start; 0 for none."""
        return max([self._highest_load, *(held.store.highest_load for held in list(self._spaces.values()))])

    # -- what is to be opened -------------------------------------------------------------------------------------

    def unopened(self) -> list[tuple[WantedSpace, Wanted]]:
        """The versions that are to be served and are not, newest first."""
        with self.lock:
            found = [(held.wanted, want) for held in self._spaces.values() for want in held.wanted.versions if want.version not in held.versions]
        return sorted(found, key=lambda pair: -pair[1].version)

    def wants(self, space_id: int, want: Wanted) -> bool:
        """Whether a version is still to be served."""
        held = self._spaces.get(space_id)
        return held is not None and any(
            other is want or (other.version, other.digest) == (want.version, want.digest) for other in held.wanted.versions
        )

    def opening(self, space_id: int, version: int, part: int) -> None:
        """Note what is being opened, for whoever asks what is missing."""
        self._opening = (space_id, version, part)

    def opened(self, space_id: int, want: Wanted, images: Version) -> bool:
        """Serve a version from now on; False where it is not wanted any more."""
        with self.lock:
            self._opening = None
            if not self.wants(space_id, want):
                return False
            held = self._spaces[space_id]
            held.versions = {**held.versions, want.version: images}
            held.faults.pop(want.version, None)
            return True

    def refused(self, space_id: int, want: Wanted, cause: str) -> None:
        """Note why a version can not be served."""
        with self.lock:
            self._opening = None
            if self.wants(space_id, want):
                self._spaces[space_id].faults[want.version] = cause

    def withdraw(self, space_id: int, want: Wanted, cause: str) -> bool:
        """Stop serving a version; False where it was not served. Draws under way keep their arrays mapped."""
        with self.lock:
            held = self._spaces.get(space_id)
            if held is None or want.version not in held.versions or not self.wants(space_id, want):
                return False
            held.versions = {version: opened for version, opened in held.versions.items() if version != want.version}
            held.faults[want.version] = cause
            return True

    def served_versions(self) -> list[tuple[WantedSpace, Wanted]]:
        """Return the versions that are served, the newest first."""
        with self.lock:
            found = [(held.wanted, want) for held in self._spaces.values() for want in held.wanted.versions if want.version in held.versions]
        return sorted(found, key=lambda pair: -pair[1].version)

    def wanted_versions(self) -> frozenset[tuple[int, int]]:
        """Return (space, version) of all that is to be served."""
        with self.lock:
            return frozenset((space_id, want.version) for space_id, held in self._spaces.items() for want in held.wanted.versions)

    # -- what is to go --------------------------------------------------------------------------------------------

    @property
    def named(self) -> frozenset[int]:
        """Every space that metad's last word names, those that can not be opened too."""
        return self._named

    def spaces(self) -> list[WantedSpace]:
        """The spaces that are open."""
        with self.lock:
            return [held.wanted for held in self._spaces.values()]

    def undropped(self) -> list[tuple[int, GraphStore, list[int]]]:
        """(space, its store, abandoned loads that may have blocks in it), where there are any."""
        with self.lock:
            found = [(space_id, held, sorted(set(held.wanted.abandoned_loads) - held.dropped_loads)) for space_id, held in self._spaces.items()]
            return [(space_id, held.store, loads) for space_id, held, loads in found if loads]

    def dropped(self, space_id: int, loads: Sequence[int]) -> None:
        """Note that there is no block of these loads any more."""
        with self.lock:
            held = self._spaces.get(space_id)
            if held is not None:
                held.dropped_loads |= frozenset(loads)

    def dropped_loads(self) -> list[int]:
        """The abandoned loads that no space here holds a block of; none while a space can not be looked into."""
        held = list(self._spaces.values())
        if self._refused or not held:
            return []
        return sorted(frozenset.intersection(*(space.dropped_loads for space in held)))

    # -- what there is --------------------------------------------------------------------------------------------

    def space(self, space_id: int) -> WantedSpace:
        """A space; Stale where none of its parts are here."""
        return self._held(space_id).wanted

    def store(self, space_id: int) -> GraphStore:
        """The graph store of a space."""
        return self._held(space_id).store

    def _held(self, space_id: int) -> _Held:
        held = self._spaces.get(space_id)
        if held is None:
            raise Stale(f"no part of space {space_id} is held here; this storaged holds spaces {sorted(self._spaces)}")
        return held

    def version(self, space_id: int, version: int, digest: str) -> Version:
        """A version to draw from; Stale where it is not held, or under another digest."""
        held = self._held(space_id)
        found = held.versions.get(version)
        if found is None:
            named = any(want.version == version for want in held.wanted.versions)
            why = self._why_not(held, version) if named else "metad has not asked for it, or not any more"
            raise Stale(f"version {version} of space {space_id} is not held here: {why}; held are {sorted(held.versions)}")
        if found.digest != digest:
            raise Stale(f"version {version} of space {space_id} has digest {found.digest} here, the request says {digest or '(none)'}")
        return found

    def versions(self) -> list[tuple[int, int]]:
        """(space, version) of all that can be drawn from."""
        # Without the lock, which `apply` holds while it opens stores: beats ask this, and a lease does not wait.
        return [(space_id, version) for space_id, held in list(self._spaces.items()) for version in held.versions]

    def served(self, space_id: int) -> list[int]:
        """The jobs that built what is drawn from in a space, newest version first: none whose images were found damaged."""
        with self.lock:
            held = self._spaces.get(space_id)
            wanted = sorted(held.wanted.versions, key=lambda want: -want.version) if held is not None else []
            return [want.job_id for want in wanted if held is not None and want.version in held.versions]

    def missing(self) -> list[str]:
        """Return what should be served and is not, in words."""
        return self._missing(new=True)

    def unready(self) -> list[str]:
        """Return what is missing, but for new versions that are being opened: what was served before is served meanwhile."""
        return self._missing(new=False)

    def _missing(self, *, new: bool) -> list[str]:
        return list(self._refused.values()) + [
            f"version {want.version} of space {held.wanted.name} is not served: {self._why_not(held, want.version)}"
            for held in list(self._spaces.values())
            for want in held.wanted.versions
            if want.version not in held.versions and (new or want.version in held.faults or want.version not in held.new)
        ]

    def _why_not(self, held: _Held, version: int) -> str:
        match self._opening:
            case (space_id, number, part) if (space_id, number) == (held.wanted.space_id, version):
                return f"part {part} is being opened"
        return held.faults.get(version, "it waits to be opened")

    def close(self) -> None:
        """Close all stores."""
        with self.lock:
            for held in self._spaces.values():
                held.store.close()
            self._spaces = {}
