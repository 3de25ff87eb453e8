"""The spaces that this storaged holds parts of: their stores, and the versions it serves.

`storaged.app` brings each desired state in; `storaged.api` reads. What the desired state does not name goes.
"""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from asterism_proto.errors import AsterismError, NotFound, Stale
from asterism_proto.schema import Schema
from storaged.draw import Share, Version
from storaged.folders import Folders
from storaged.store.graph import GraphStore
from storaged.store.image import open_part

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A version to serve."""

    version: int
    job_id: int
    digest: str
    totals: Mapping[tuple[int, int, int], Share]
    """(element, type, part) -> share, of every part of the space."""
    images: Mapping[int, str]
    """part -> digest of its image."""


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


@dataclass(slots=True)
class _Held:
    wanted: WantedSpace
    store: GraphStore
    versions: dict[int, Version] = field(default_factory=dict)
    jobs: dict[int, int] = field(default_factory=dict)
    """version -> the job that built it."""
    faults: dict[int, str] = field(default_factory=dict)
    """Versions that can not be served, and why."""
    dropped_loads: set[int] = field(default_factory=set)


class Holdings:
    """What is held here.

    Parameters
    ----------
    folders : Folders
    verify : bool
        Check every byte of an image before it is served.
    """

    def __init__(self, folders: Folders, *, verify: bool) -> None:
        self._folders, self._verify = folders, verify
        self._lock = threading.RLock()
        self._spaces: dict[int, _Held] = {}
        self._refused: dict[int, str] = {}
        """Spaces that can not be opened, and why."""

    def apply(self, wanted: Sequence[WantedSpace]) -> None:
        """Open what is new, let go of what is not wanted any more."""
        with self._lock:
            names = {space.space_id: space for space in wanted}
            for space_id in [space_id for space_id in self._spaces if space_id not in names]:
                self._spaces.pop(space_id).store.close()
                logger.info("space_dropped", extra={"space": space_id})
            if self._folders.spaces.is_dir():
                for folder in self._folders.spaces.iterdir():
                    if folder.name.isdigit() and int(folder.name) not in names:
                        shutil.rmtree(folder, ignore_errors=True)
            self._refused.clear()
            for space in wanted:
                try:
                    self._apply_space(space)
                except AsterismError as error:  # one space's trouble is not the others'
                    self._refused[space.space_id] = f"space {space.name} can not be opened: {error.message}"
                    logger.error("space_refused", extra={"space": space.name, "cause": error.message})

    def _apply_space(self, space: WantedSpace) -> None:
        held = self._spaces.get(space.space_id)
        if held is None:
            path = self._folders.graph(space.space_id)
            path.parent.mkdir(parents=True, exist_ok=True)
            held = self._spaces[space.space_id] = _Held(wanted=space, store=GraphStore.open(path, space.schema))
        held.wanted = space
        for version in [version for version in held.versions if version not in {want.version for want in space.versions}]:
            # Draws under way keep their arrays mapped; files go when the folder is swept.
            del held.versions[version]
            held.jobs.pop(version, None)
        for want in space.versions:
            if want.version not in held.versions:
                self._open(held, want)
        gone = set(space.abandoned_loads) - held.dropped_loads
        if gone:
            held.store.drop_loads(sorted(gone))
            held.dropped_loads |= gone

    def _open(self, held: _Held, want: Wanted) -> None:
        folder = self._folders.build(held.wanted.space_id, want.job_id) / "parts"
        try:
            images = {}
            for part in held.wanted.parts:
                image = open_part(folder / f"p{part:05d}", verify=self._verify)
                if image.digest != want.images.get(part):
                    raise NotFound(
                        f"the image of part {part} has digest {image.digest}, version {want.version} was sealed with {want.images.get(part)}"
                    )
                images[part] = image
        except AsterismError as error:
            held.faults[want.version] = error.message
            logger.error("version_refused", extra={"space": held.wanted.name, "version": want.version, "cause": error.message})
            return
        held.faults.pop(want.version, None)
        held.jobs[want.version] = want.job_id
        held.versions[want.version] = Version(
            space_id=held.wanted.space_id, version=want.version, digest=want.digest, schema=held.wanted.schema, totals=want.totals, parts=images
        )
        logger.info("version_opened", extra={"space": held.wanted.name, "version": want.version, "parts": len(images)})

    def sweep(self, busy: Mapping[int, set[int]]) -> None:
        """Remove what no version, and none of the jobs ``busy`` by space, needs: old builds, leftover checkpoints."""
        with self._lock:
            for space_id, held in self._spaces.items():
                needed = busy.get(space_id, set())
                wanted = needed | {want.job_id for want in held.wanted.versions}
                for folder, keep in ((self._folders.builds(space_id), wanted), (self._folders.space(space_id) / "checkpoints", needed)):
                    if folder.is_dir():
                        for child in folder.iterdir():
                            # A checkpoint under way is called <job>.making until it is whole.
                            job = child.name.removesuffix(".making")
                            if not job.isdigit() or int(job) not in keep:
                                shutil.rmtree(child, ignore_errors=True)

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
            why = f": {held.faults[version]}" if version in held.faults else ""
            raise Stale(f"version {version} of space {space_id} is not held here{why}; held are {sorted(held.versions)}")
        if found.digest != digest:
            raise Stale(f"version {version} of space {space_id} has digest {found.digest} here, the request says {digest or '(none)'}")
        return found

    def versions(self) -> list[tuple[int, int]]:
        """(space, version) of all that can be drawn from."""
        # Without the lock, which `apply` holds while it verifies images: beats ask this, and a lease does not wait.
        return [(space_id, version) for space_id, held in list(self._spaces.items()) for version in list(held.versions)]

    def missing(self) -> list[str]:
        """What should be served and is not, in words."""
        return list(self._refused.values()) + [
            f"version {want.version} of space {held.wanted.name} is not served: {held.faults.get(want.version, 'it is being opened')}"
            for held in list(self._spaces.values())
            for want in held.wanted.versions
            if want.version not in held.versions
        ]

    def close(self) -> None:
        """Close all stores."""
        with self._lock:
            for held in self._spaces.values():
                held.store.close()
            self._spaces.clear()
