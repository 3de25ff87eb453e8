"""Operations of metad on records, called by both the gRPC and the HTTP API.

Every operation takes the lock of the change feed, so its reads are consistent and its writes are
exclusive."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from asterism_access.principals import LOCAL, Principal
from asterism_io.remote_folder_addresses import AllowedAddresses
from asterism_model.schema import Schema
from asterism_proto.errors import InvalidRequest, NotFound
from metad.catalog.catalog import Catalog
from metad.catalog.position_history import was_given_up
from metad.catalog.spaces import parts_of_host
from metad.change_feed import ChangeFeed
from metad.clock import Clock
from metad.follower_positions import Followers
from metad.jobs import state_machine
from metad.jobs.driver import Driver
from metad.membership import ClusterMembership
from metad.model.catalog import (
    Chunk,
    LoadRecord,
    LoadState,
    Manifest,
    NewChunk,
    Pin,
    Seal,
    Space,
    SpaceRecord,
)
from metad.model.hosts import Host
from metad.model.ids import HostId, LoadId, SpaceId
from metad.model.job_kinds import address_options
from metad.model.jobs import Job, JobState
from metad.quotas import Quotas, charged_name

_DEFAULT_PAGE, _MAX_PAGE = 50, 1000
_FINGERPRINTS_PER_PAGE = 1000
"""Loads per page of fingerprints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPage:
    """A page of jobs, newest first."""

    jobs: tuple[Job, ...]
    next_before: int
    """Job id to pass as ``before`` for the next page; 0 if there are no more."""
    total: int
    """Number of matching jobs on all pages."""


class CatalogService:
    """Operations on spaces, loads, jobs, hosts, versions and pins."""

    def __init__(
        self,
        *,
        change_feed: ChangeFeed,
        catalog: Catalog,
        cluster: ClusterMembership,
        driver: Driver,
        followers: Followers,
        addresses: AllowedAddresses,
        clock: Clock,
    ) -> None:
        self._change_feed = change_feed
        self._followers = followers
        self._catalog = catalog
        self._cluster = cluster
        self._driver = driver
        self._addresses = addresses
        self._clock = clock
        self._quotas = Quotas(
            access=catalog.access,
            pins=catalog.pins,
            jobs=lambda: driver.state.jobs.values(),
            stored_bytes=cluster.stored_bytes,
        )

    # Spaces.

    def create_space(self, name: str, schema: Schema, *, if_not_exists: bool) -> Space:
        """Create a space, or return the equal existing one if ``if_not_exists``."""
        with self._change_feed.lock:
            self._followers.check_writable()
            is_new_name = not self._catalog.spaces.has_name(name)
            storageds = self._followers.wait_for_storageds() if is_new_name else []
            space, is_new = self._catalog.spaces.create(
                name, schema, if_not_exists=if_not_exists, storageds=storageds, now_ms=self._clock()
            )
            if is_new:
                self._change_feed.advance()
            return space

    def space(self, name: str) -> Space:
        """Return the space of this name."""
        with self._change_feed.lock:
            return self._catalog.spaces.find_by_name(name)

    def spaces(self) -> list[Space]:
        """Return all spaces, by id."""
        with self._change_feed.lock:
            return self._catalog.spaces.all()

    def describe_spaces(self, name: str = "") -> list[tuple[Space, Manifest | None]]:
        """Return one space, or all by id, each with the manifest of its current version."""
        with self._change_feed.lock:
            spaces = (
                [self._catalog.spaces.find_by_name(name)] if name else self._catalog.spaces.all()
            )
            return [
                (space, self._catalog.versions.get(space, 0) if space.version else None)
                for space in spaces
            ]

    def export_space(self, name: str, version: int) -> SpaceRecord:
        """Return everything known of a space up to a version; 0 is the current one."""
        with self._change_feed.lock:
            return self._catalog.space_record(self._catalog.spaces.find_by_name(name), version)

    def import_space(self, name: str, record: SpaceRecord, *, address: str = "") -> Space:
        """Create a space from a record; it waits for its data.

        ``address`` is the folder that the data will come from; it must be an allowed address.
        QuotaExceeded if all spaces together have their maximum size."""
        if address:
            self._addresses.check("from", address)
        with self._change_feed.lock:
            self._followers.check_writable()
            self._quotas.check_stored_bytes(None)
            storageds = self._followers.wait_for_storageds()
            space = self._catalog.restores.begin(
                name or record.space.name, record, storageds=storageds, now_ms=self._clock()
            )
            self._change_feed.advance()
            return space

    def drop_space(self, name: str, *, if_exists: bool) -> None:
        """Delete a space with its loads, its versions and its jobs."""
        with self._change_feed.lock:
            self._followers.check_writable()
            try:
                space = self._catalog.spaces.find_by_name(name)
            except NotFound:
                if if_exists:
                    return
                raise
            self._driver.drop_space(space)

    # Loads.

    def begin_load(
        self, space: str, *, source: str, resume_key: str, chunks: Sequence[NewChunk] = ()
    ) -> tuple[LoadRecord, list[Chunk]]:
        """Begin a load, or return the one to resume, with all its registered chunks.

        A load with this resume key is resumed if it is open or was committed from an equal source.
        ``chunks`` are registered in the same call. QuotaExceeded if the space has its maximum
        size."""
        with self._change_feed.lock:
            self._followers.check_writable()
            loads, target_space = self._catalog.loads, self._catalog.spaces.find_by_name(space)
            self._catalog.restores.check_not_restoring(target_space)
            self._quotas.check_stored_bytes(target_space)
            load, registered = loads.begin(
                target_space, source=source, resume_key=resume_key, now_ms=self._clock()
            )
            if chunks:
                loads.register_chunks(load.load_id, chunks, (), now_ms=self._clock())
                registered = loads.chunks(load)
            return load, registered

    def register_chunks(
        self, load_id: int, chunks: Sequence[NewChunk], written: Iterable[int]
    ) -> list[Chunk]:
        """Record chunks and acknowledgements; return the chunks with their edge id bases.

        QuotaExceeded if there are chunks, and the space has its maximum size."""
        with self._change_feed.lock:
            self._followers.check_writable()
            if chunks:
                load = self._catalog.loads.get(load_id)
                self._quotas.check_stored_bytes(self._catalog.spaces.get(load.space_id))
            return self._catalog.loads.register_chunks(
                load_id, chunks, written, now_ms=self._clock()
            )

    def commit_load(
        self,
        load_id: int,
        *,
        rejected: int,
        written: Iterable[int],
        resolved_commit: int = 0,
        deletes: bool = False,
        seals: Sequence[Seal] = (),
    ) -> tuple[LoadRecord, list[HostId], int]:
        """Commit a load, or return the hosts to seal first and the number to seal them under.

        The load stays open if nodes were deleted after commit ``resolved_commit``, or if hosts have
        to be sealed."""
        with self._change_feed.lock:
            self._followers.check_writable()
            loads = self._catalog.loads
            load = loads.commit(
                load_id,
                rejected=rejected,
                written=written,
                resolved_commit=resolved_commit,
                deletes=deletes,
                seals=seals,
            )
            return (load, *loads.unsealed_hosts(load_id, seals))

    def admit_load(
        self, load_id: int, *, space_id: int, host: HostId, chunk: int
    ) -> tuple[int, bool, Chunk]:
        """Admit a storaged to write blocks of an open load.

        Returns
        -------
        int
            Number of the admission.
        bool
            True if it is the host's first admission to the load.
        Chunk
            The registered chunk.
        """
        with self._change_feed.lock:
            self._followers.check_writable()
            return self._catalog.loads.admit(load_id, space_id=space_id, host=host, index=chunk)

    def fingerprints(
        self, space_id: int, *, after: int, watermark: int
    ) -> tuple[list[LoadRecord], int]:
        """Return a page of a space's committed loads with fingerprints, in commit order.

        The second value is the commit to continue after, 0 at the end."""
        with self._change_feed.lock:
            pairs = [
                pair
                for pair in self._catalog.loads.committed_after(SpaceId(space_id), after)
                if pair[0] <= watermark
            ]
            loads = [
                self._catalog.loads.get(load_id) for _, load_id in pairs[:_FINGERPRINTS_PER_PAGE]
            ]
        return loads, loads[-1].commit if len(pairs) > _FINGERPRINTS_PER_PAGE else 0

    def abandon_load(self, load_id: int) -> LoadRecord:
        """Abandon a load, and have its blocks removed."""
        with self._change_feed.lock:
            self._followers.check_writable()
            was_open = self._catalog.loads.get(load_id).state is LoadState.OPEN
            load = self._catalog.loads.abandon(load_id, now_ms=self._clock())
            if was_open:
                self._change_feed.advance()
            return load

    def load(self, load_id: int) -> tuple[LoadRecord, list[Chunk]]:
        """Return a load with its chunks."""
        with self._change_feed.lock:
            load = self._catalog.loads.get(load_id)
            return load, self._catalog.loads.chunks(load)

    def dead_loads(self, space_id: int, loads: Iterable[int]) -> list[LoadId]:
        """Return those of a storaged's loads that are neither open nor committed."""
        with self._change_feed.lock:
            adoptions = (
                self._catalog.history.adoption_records()
            )  # removed by a removal request instead, after a copy was taken
            return self._catalog.loads.dead_loads(
                SpaceId(space_id),
                [load for load in loads if not was_given_up(adoptions, "load_id", load)],
            )

    def commits(self, space: str, *, after: int) -> list[tuple[int, LoadId]]:
        """Return (commit number, load id) of a space's committed loads after a commit, in order."""
        with self._change_feed.lock:
            return self._catalog.loads.committed_after(
                self._catalog.spaces.find_by_name(space).space_id, after
            )

    # Jobs.

    def submit_job(
        self,
        space: str,
        kind: str,
        *,
        options: Mapping[str, str] | None = None,
        version: int = 0,
        principal: Principal = LOCAL,
    ) -> Job:
        """Submit a job on the current data, or return the identical one in flight.

        The job works on the loads committed by now and on published versions. QuotaExceeded if
        ``principal`` has its maximum number of jobs in flight."""
        for key, address in address_options(kind, options or {}).items():
            self._addresses.check(key, address)
        with self._change_feed.lock:
            self._followers.check_writable()
            target_space = self._catalog.spaces.find_by_name(space)
            return self._driver.submit(
                target_space,
                kind,
                options=options,
                version=version,
                principal=charged_name(principal),
                check_quota=lambda: self._quotas.check_jobs(
                    principal, target_space.space_id, target_space.name
                ),
            )

    def job(self, job_id: int) -> Job:
        """Return one job."""
        return state_machine.find_job(self._driver.state, job_id)

    def jobs(
        self,
        *,
        space: str = "",
        states: Iterable[JobState] = (),
        kinds: Iterable[str] = (),
        limit: int = 0,
        before: int = 0,
        include_dropped: bool = True,
    ) -> JobPage:
        """Return a page of jobs, newest first.

        A dropped space may have had the name ``space`` too: its jobs are returned if
        ``include_dropped``."""
        if limit < 0 or limit > _MAX_PAGE:
            raise InvalidRequest(
                f"limit {limit}: expected 1 to {_MAX_PAGE}, or 0 for {_DEFAULT_PAGE}"
            )
        if before < 0:
            raise InvalidRequest(f"before {before}: expected a job id, or 0 for the newest")
        state_filter, kind_filter = frozenset(states), frozenset(kinds)
        space_id = 0 if include_dropped or not space else self.space(space).space_id
        matching = [
            job
            for job in reversed(self._driver.state.jobs.values())
            if (not space or job.space == space)
            and (not space_id or job.space_id == space_id)
            and (not state_filter or job.state in state_filter)
            and (not kind_filter or job.kind in kind_filter)
        ]
        page = [job for job in matching if not before or job.job_id < before]
        if (
            not page
            and space
            and not any(job.space == space for job in self._driver.state.jobs.values())
        ):
            self.space(space)
        limit = limit or _DEFAULT_PAGE
        return JobPage(
            jobs=tuple(page[:limit]),
            next_before=page[limit - 1].job_id if len(page) > limit else 0,
            total=len(matching),
        )

    def stop_job(self, job_id: int) -> Job:
        """Request that a job stop."""
        with self._change_feed.lock:
            return self._driver.stop(job_id)

    def recover_job(self, job_id: int, *, principal: Principal = LOCAL) -> Job:
        """Resume a failed or stopped job as one of ``principal``.

        QuotaExceeded if that principal has its maximum number of jobs in flight."""
        with self._change_feed.lock:
            self._followers.check_writable()
            return self._driver.recover(
                job_id,
                principal=charged_name(principal),
                check_quota=lambda job: self._quotas.check_jobs(principal, job.space_id, job.space),
            )

    # Hosts and versions.

    def hosts(self) -> list[tuple[Host, int]]:
        """Return all known daemons by role and uuid, each with its number of partitions."""
        with self._change_feed.lock:
            spaces = self._catalog.spaces.all()
            hosts = sorted(
                self._cluster.hosts.values(), key=lambda host: (host.role.value, host.uuid)
            )
            return [
                (host, sum(len(parts_of_host(space, host.uuid)) for space in spaces))
                for host in hosts
            ]

    def versions(self, space: str) -> list[Manifest]:
        """Return the served versions of a space, newest first."""
        with self._change_feed.lock:
            return list(
                reversed(
                    self._catalog.versions.served_versions(
                        self._catalog.spaces.find_by_name(space).space_id
                    )
                )
            )

    def manifest(self, space: str, version: int) -> Manifest:
        """Return one version of a space; 0 is the current one."""
        with self._change_feed.lock:
            return self._catalog.versions.get(self._catalog.spaces.find_by_name(space), version)

    # Pins.

    def pin(
        self, space: str, version: int, *, term_s: float, owner: str, principal: Principal = LOCAL
    ) -> Pin:
        """Pin a version; 0 is the current one.

        QuotaExceeded if ``principal`` has its maximum number of pins."""
        with self._change_feed.lock:
            pinned_space = self._catalog.spaces.find_by_name(space)
            manifest = self._catalog.versions.get(pinned_space, version)
            self._quotas.check_pins(
                principal, pinned_space.space_id, pinned_space.name, now_ms=self._clock()
            )
            pin = self._catalog.pins.create(
                pinned_space,
                manifest,
                term_s=term_s,
                owner=owner,
                now_ms=self._clock(),
                principal=charged_name(principal),
            )
            self._change_feed.wake_waiters()  # its end may be the next one to wait for
            return pin

    def renew_pin(self, pin_id: int) -> Pin:
        """Grant a pin a full term from now."""
        with self._change_feed.lock:
            return self._catalog.pins.renew(pin_id, now_ms=self._clock())

    def release_pin(self, pin_id: int) -> None:
        """End a pin. A pin that has ended already is not an error."""
        with self._change_feed.lock:
            self._catalog.pins.release(pin_id)

    def pins(self, space: str = "") -> list[Pin]:
        """Return the pins of a space, or all, by id."""
        with self._change_feed.lock:
            return (
                self._catalog.pins.of_space(self._catalog.spaces.find_by_name(space).space_id)
                if space
                else self._catalog.pins.all()
            )
