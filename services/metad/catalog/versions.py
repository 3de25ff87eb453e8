"""Versions: the manifests of what is published and still served."""

from __future__ import annotations

from dataclasses import replace

from asterism_proto.errors import NotFound
from metad import wire
from metad.catalog.model import Manifest, Space, Step
from metad.catalog.spaces import Spaces
from metad.ids import SpaceId
from metad.jobs.model import Job
from metad.store import codec, keys
from metad.store.port import MetaStore
from metad.totals import Result


class Versions:
    """The served versions of each space, ascending."""

    def __init__(self, store: MetaStore, spaces: Spaces) -> None:
        self._spaces = spaces
        self._served: dict[SpaceId, tuple[Manifest, ...]] = {}
        for _, value in store.range(keys.VERSIONS):
            manifest = codec.manifest_from(value)
            self._served[manifest.space_id] = (*self._served.get(manifest.space_id, ()), manifest)

    def served(self, space_id: SpaceId) -> tuple[Manifest, ...]:
        """Those to serve, ascending; the last is the current one."""
        return self._served.get(space_id, ())

    def current(self, space_id: SpaceId) -> Manifest | None:
        """The newest one, where there is one."""
        served = self.served(space_id)
        return served[-1] if served else None

    def get(self, space: Space, version: int) -> Manifest:
        """One version, 0 for the current one; NotFound says which there are."""
        served = self.served(space.space_id)
        if not served:
            raise NotFound(f"space {space.name!r} has no published version yet; submit a build")
        number = version or space.version
        for manifest in served:
            if manifest.version == number:
                return manifest
        there = ", ".join(str(manifest.version) for manifest in served)
        raise NotFound(f"version {number} of space {space.name!r} is not there; there are {there}")

    def publish(self, space: Space, job: Job, result: Result, *, now_ms: int, origin: Manifest | None = None) -> Step:
        """A finished build as the current version of its space, or what a restore brought back of ``origin``: manifest and space in one step."""
        manifest = wire.sealed(
            Manifest(
                space_id=space.space_id,
                version=job.version,
                cut=job.cut,
                job_id=job.job_id,
                created_ms=now_ms,
                totals=result.totals,
                images=result.images,
                digest="",
                indexes=job.indexes,
            )
        )
        if origin is not None:
            first = wire.original(origin)
            manifest = replace(origin, space_id=space.space_id, job_id=job.job_id, origin_space_id=first.space_id, origin_job_id=first.job_id)
        advance = self._spaces.advance(space, job.version)

        def apply() -> None:
            advance.apply()
            self._served[space.space_id] = (*self.served(space.space_id), manifest)

        return Step({**advance.changes, keys.version(space.space_id, job.version): codec.manifest_to(manifest)}, apply)

    def retire(self, space_id: SpaceId, versions: list[int]) -> Step:
        """The end of old versions: storageds then delete them."""

        def apply() -> None:
            self._served[space_id] = tuple(m for m in self.served(space_id) if m.version not in versions)

        return Step({keys.version(space_id, version): None for version in versions}, apply)

    def drop(self, space_id: SpaceId) -> Step:
        """The end of a space's versions."""
        changes: dict[bytes, bytes | None] = {keys.version(space_id, manifest.version): None for manifest in self.served(space_id)}

        def apply() -> None:
            self._served.pop(space_id, None)

        return Step(changes, apply)
