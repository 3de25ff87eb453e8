"""Versions: manifests of the published versions that are still served."""

from __future__ import annotations

from dataclasses import replace

from asterism_proto.errors import NotFound
from metad.catalog.spaces import Spaces
from metad.model.catalog import Manifest, PendingWrite, Space
from metad.model.ids import SpaceId
from metad.model.jobs import Job
from metad.model.task_outcomes import TaskOutcome
from metad.store import keys
from metad.store.port import MetaStore
from metad.wire import catalog, record_encoding


class Versions:
    """Served versions of each space, ascending."""

    def __init__(self, store: MetaStore, spaces: Spaces) -> None:
        self._spaces = spaces
        self._served: dict[SpaceId, tuple[Manifest, ...]] = {}
        for _, value in store.range(keys.VERSIONS):
            manifest = record_encoding.decode_manifest(value)
            self._served[manifest.space_id] = (*self._served.get(manifest.space_id, ()), manifest)

    def served_versions(self, space_id: SpaceId) -> tuple[Manifest, ...]:
        """Return the served versions of a space, ascending; the last one is current."""
        return self._served.get(space_id, ())

    def current(self, space_id: SpaceId) -> Manifest | None:
        """Return the newest version of a space; None if it has none."""
        manifests = self.served_versions(space_id)
        return manifests[-1] if manifests else None

    def get(self, space: Space, version: int) -> Manifest:
        """Return one version, 0 for the current one; NotFound lists the existing ones."""
        manifests = self.served_versions(space.space_id)
        if not manifests:
            raise NotFound(f"space {space.name!r} has no published version yet; submit a build")
        number = version or space.version
        for manifest in manifests:
            if manifest.version == number:
                return manifest
        available = ", ".join(str(manifest.version) for manifest in manifests)
        raise NotFound(
            f"version {number} of space {space.name!r} does not exist; there are {available}"
        )

    def publish(
        self,
        space: Space,
        job: Job,
        outcome: TaskOutcome,
        *,
        now_ms: int,
        origin: Manifest | None = None,
    ) -> PendingWrite:
        """Return the write that publishes a finished build, or a restore of ``origin``.

        The manifest and the current version of the space change in one write."""
        manifest = catalog.with_digest(
            Manifest(
                space_id=space.space_id,
                version=job.version,
                watermark=job.watermark,
                job_id=job.job_id,
                created_ms=now_ms,
                totals=outcome.totals,
                images=outcome.images,
                digest="",
                indexes=job.indexes,
            )
        )
        if origin is not None:
            original = catalog.original_manifest(origin)
            manifest = replace(
                origin,
                space_id=space.space_id,
                job_id=job.job_id,
                origin_space_id=original.space_id,
                origin_job_id=original.job_id,
            )
        space_write = self._spaces.set_version(space, job.version)

        def apply() -> None:
            space_write.apply()
            self._served[space.space_id] = (*self.served_versions(space.space_id), manifest)

        return PendingWrite(
            {
                **space_write.changes,
                keys.version_key(space.space_id, job.version): record_encoding.encode_manifest(
                    manifest
                ),
            },
            apply,
        )

    def retire(self, space_id: SpaceId, versions: list[int]) -> PendingWrite:
        """Return the write that retires old versions, which storageds then delete."""

        def apply() -> None:
            self._served[space_id] = tuple(
                m for m in self.served_versions(space_id) if m.version not in versions
            )

        return PendingWrite(
            {keys.version_key(space_id, version): None for version in versions}, apply
        )

    def drop(self, space_id: SpaceId) -> PendingWrite:
        """Return the write that deletes the versions of a space."""
        changes: dict[bytes, bytes | None] = {
            keys.version_key(space_id, manifest.version): None
            for manifest in self.served_versions(space_id)
        }

        def apply() -> None:
            self._served.pop(space_id, None)

        return PendingWrite(changes, apply)
