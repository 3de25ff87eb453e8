"""A connection to an Asterism service: its spaces, versions, hosts, loads and jobs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Self

from asterism.calls import validation
from asterism.calls.loads import Load, begin_load
from asterism.client_state import Session, seconds_left
from asterism.records.catalog import Host, Job, SpaceInfo, parse_job_state
from asterism.records.versions import PinInfo, VersionInfo
from asterism.transport.grpc import ClientTransport
from asterism.transport.retry_budget import Traffic
from asterism.transport.waiting import THREAD_WAITER, Waiter
from asterism_model.schema import Schema
from asterism_proto.errors import InvalidRequest, NotReady
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb

_FIRST_POLL_S, _MAX_POLL_S = 0.02, 0.5


class CatalogClient:
    """The part of `asterism.graph.Client` that needs no graph: the connection, and the calls of
    the catalog.

    It knows nothing of graphs; `asterism.graph.Graph` holds one.

    Parameters
    ----------
    transport, timeout_s, on_close, waits
        As of `asterism.graph.Client`.
    """

    def __init__(
        self,
        transport: ClientTransport,
        *,
        timeout_s: float = 30.0,
        on_close: Callable[[], None] | None = None,
        waits: Waiter = THREAD_WAITER,
    ) -> None:
        if not timeout_s > 0:
            raise InvalidRequest(f"timeout_s {timeout_s!r}: expected a number of seconds above 0")
        self.session = Session(transport, timeout_s, waits)
        self._on_close = on_close
        self._pid = os.getpid()

    def __getstate__(self) -> dict[str, Any]:
        return {
            "session": self.session,
            "_on_close": None,
            "_pid": 0,
        }  # a copy in another process closes what is its own

    def __repr__(self) -> str:
        addresses = ",".join(getattr(self.session.transport, "addresses", ())) or "in this process"
        return f"{type(self).__name__}({addresses!r}, timeout_s={self.session.timeout_s:g})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connection; of an embedded service too, in the process that opened it."""
        self.session.close()
        if self._on_close is not None and self._pid == os.getpid():
            on_close, self._on_close = self._on_close, None
            on_close()

    @property
    def traffic(self) -> Traffic:
        """What was asked by now: calls, requests of graphds, retries, hedges, calls of storageds;
        nothing where the service is in this process.
        """
        return getattr(self.session.transport, "traffic", Traffic())

    # -- spaces ------------------------------------------------------------------------------------

    def create_space(
        self, name: str, schema: Schema | Mapping[str, Any], *, if_not_exists: bool = False
    ) -> SpaceInfo:
        """Make a space.

        Parameters
        ----------
        name : str
            Its name.
        schema : Schema or mapping
            What it holds; a mapping is read by ``Schema.from_dict``.
        if_not_exists : bool
            A space of that name with an equal schema is then given back.

        Raises
        ------
        Conflict
            Where there is one of that name (with another schema).
        NotReady
            Where no storaged is online to hold its parts.
        """
        record = schema if isinstance(schema, Schema) else Schema.from_dict(schema)
        request = metad_pb.CreateSpaceRequest(
            name=name, schema=record.to_proto(), if_not_exists=if_not_exists
        )
        return self._remember_space(self.session.catalog("create_space", request))

    def drop_space(self, name: str, *, if_exists: bool = False) -> None:
        """Remove a space with all that it holds."""
        self.session.catalog(
            "drop_space", metad_pb.DropSpaceRequest(space=name, if_exists=if_exists)
        )
        self.session.forget(name)

    def spaces(self) -> list[SpaceInfo]:
        """All spaces."""
        return [
            self._remember_space(space)
            for space in self.session.catalog("list_spaces", common_pb.Empty()).spaces
        ]

    def describe(self, name: str) -> SpaceInfo:
        """One space; NotFound where there is none of that name."""
        return self._remember_space(
            self.session.catalog("describe_space", metad_pb.SpaceRequest(space=name))
        )

    def versions(self, space: str) -> list[VersionInfo]:
        """The published versions that are held, newest first, without their totals."""
        return [
            VersionInfo.from_proto(version)
            for version in self.session.catalog(
                "list_versions", metad_pb.SpaceRequest(space=space)
            ).versions
        ]

    def manifest(self, space: str, version: int = 0) -> VersionInfo:
        """One version with its totals; 0 is the current one."""
        return self.session.manifest(
            self.session.catalog(
                "get_manifest", metad_pb.ManifestRequest(space=space, version=version)
            ),
            space,
        )

    def pins(self, space: str | None = None) -> list[PinInfo]:
        """Who holds which versions, of one space or of all; see ``Graph.pin``."""
        return [
            PinInfo.from_proto(pin)
            for pin in self.session.catalog(
                "list_pins", metad_pb.ListPinsRequest(space=space or "")
            ).pins
        ]

    def hosts(self) -> list[Host]:
        """The daemons that metad has heard of."""
        return [
            Host.from_proto(host)
            for host in self.session.catalog("list_hosts", common_pb.Empty()).hosts
        ]

    # -- loads -------------------------------------------------------------------------------------

    def begin_load(self, space: str, *, source: str = "", resume_key: str = "") -> Load:
        """Begin a load, or find the one that bears ``resume_key``: committed from this ``source``,
        or open from any.

        Parameters
        ----------
        space : str
            Where it writes to.
        source : str
            Where the rows come from, for people; with what tells them from changed ones.
        resume_key : str
            A name under which the load is found again; empty: always a new one. One that is
            committed already takes nothing more: its ``commit_number`` says so.
        """
        return begin_load(self.session, space, source=source, resume_key=resume_key)

    # -- jobs --------------------------------------------------------------------------------------

    def submit_job(
        self,
        space: str,
        kind: str = "build",
        *,
        options: Mapping[str, str] | None = None,
        version: int = 0,
    ) -> Job:
        """Ask for a job; an equal one that waits or runs is given back instead.

        Parameters
        ----------
        space : str
            What it works on. Jobs of a space run one after the other, those of other spaces beside
            them.
        kind : str
            ``"build"`` publishes what is committed as the next version. ``"audit"`` reads a version
            again on every storaged: checksums, totals, the law of every alias table and row, both
            copies of every edge; it fails with the place where something is wrong. ``"index"`` is a
            build that adds an index, for draws under conditions; later builds keep it.
            ``"export-tables"`` writes alias tables to files. ``"compact"`` gives the disk space of
            deleted blocks back.
        options : mapping of str to str, optional
            Of ``"export-tables"``: ``format`` (``"parquet"``, ``"csv"`` or ``"csv,parquet"``) and
            ``to``, a folder that every storaged can write to and the setting ``allowed_addresses``
            lists, as ``"s3://bucket/folder"``; without it, files go to each storaged's own folder
            ``exports``. Of ``"index"``: ``type``, a node type; ``on``, a column; ``kind``,
            ``"range"`` or ``"hash"`` (texts too); ``drop="yes"``. Of ``"build"`` and ``"index"``:
            ``link="no"`` makes every part anew; without it what did not change is shared with
            versions before.
        version : int
            Which one an audit or an export reads; 0 is the current one.

        Raises
        ------
        InvalidRequest
            For a kind, an option or a value that there is not.
        NotFound
            Where the space or the version is not there.
        NotReady
            Where nothing is committed to build, or published to read.
        """
        return Job.from_proto(
            self.session.catalog(
                "submit_job",
                metad_pb.SubmitJobRequest(
                    space=space, kind=kind, options=dict(options or {}), version=version
                ),
            )
        )

    def job(self, job_id: int) -> Job:
        """How a job stands."""
        return Job.from_proto(self.session.catalog("get_job", metad_pb.JobRequest(job_id=job_id)))

    def jobs(
        self, space: str | None = None, states: Iterable[str] = (), limit: int = 50, before: int = 0
    ) -> list[Job]:
        """Jobs, newest first.

        Parameters
        ----------
        space : str, optional
            Only its jobs.
        states : iterable of str
            Only jobs in these states (``"RUNNING"``, ...); none: all.
        limit : int
            At most so many, up to 1000.
        before : int
            Only jobs with a smaller id: the last one of the page before.
        """
        parsed_states = [parse_job_state(state) for state in validation.names(states)]
        request = metad_pb.ListJobsRequest(
            space=space or "", states=parsed_states, limit=limit, before=before
        )
        return [Job.from_proto(job) for job in self.session.catalog("list_jobs", request).jobs]

    def stop_job(self, job_id: int) -> Job:
        """Ask a job to stop."""
        return Job.from_proto(self.session.catalog("stop_job", metad_pb.JobRequest(job_id=job_id)))

    def recover_job(self, job_id: int) -> Job:
        """Let a failed or stopped job go on from what it has done, with the same input."""
        return Job.from_proto(
            self.session.catalog("recover_job", metad_pb.JobRequest(job_id=job_id))
        )

    def wait(
        self,
        job_id: int,
        *,
        timeout_s: float = 3600.0,
        on_progress: Callable[[Job], None] | None = None,
    ) -> Job:
        """Wait until a job has ended, whichever way; its state says which.

        Parameters
        ----------
        job_id : int
            The job.
        timeout_s : float
            Seconds to wait at most.
        on_progress : callable, optional
            Called with the job at every look.

        Raises
        ------
        Deadline
            Where it has not ended by then; it goes on.
        """
        deadline = time.monotonic() + timeout_s
        pause = _FIRST_POLL_S
        while True:
            job = self.job(job_id)
            if on_progress is not None:
                on_progress(job)
            if job.ended:
                if job.version:
                    self.session.note_version(job.space, job.version)
                return job
            self.session.waiter.sleep(min(pause, seconds_left(deadline)))
            pause = min(pause * 1.5, _MAX_POLL_S)

    def _remember_space(self, message: common_pb.Space) -> SpaceInfo:
        return self.session.store_space(SpaceInfo.from_proto(message))


def build_space(client: CatalogClient, space: str, *, timeout_s: float = 3600.0) -> Job:
    """Build and publish what is committed in a space, and wait for it.

    Raises
    ------
    NotReady
        If the build fails or is stopped; the message has the cause.
    """
    job = client.wait(client.submit_job(space).job_id, timeout_s=timeout_s)
    if job.state != "FINISHED":
        raise NotReady(
            f"build {job.job_id} of space {space!r} ended as {job.state}: "
            f"{job.cause or 'no cause given'}; see recover_job"
        )
    return job
