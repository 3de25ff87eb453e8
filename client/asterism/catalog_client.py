"""Client of the catalog: graph spaces, versions, hosts, loads and jobs."""

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
from asterism.transport.waiters import THREAD_WAITER, Waiter
from asterism_model.schema import Schema
from asterism_proto.errors import InvalidRequest, NotReady
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb

_FIRST_POLL_S, _MAX_POLL_S = 0.02, 0.5
_POLL_SHARE = 0.05
"""Pause between two polls of a job, as a share of the time waited so far."""


class CatalogClient:
    """Connection to a service, with the calls of its catalog.

    It is the part of `asterism.graph.Client` that does not depend on graphs.

    Parameters
    ----------
    transport : ClientTransport
        Transport of the calls.
    timeout_s : float, default 30
        Timeout of every call in seconds, retries included.
    on_close : callable, optional
        Called by `close`, after the transport is closed.
    waits : Waiter
        Implementation of sleeping and of concurrent calls; threads by default.
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
            raise InvalidRequest(f"timeout_s={timeout_s!r}: expected a number of seconds above 0")
        self.session = Session(transport, timeout_s, waits)
        self._on_close = on_close
        self._pid = os.getpid()

    def __getstate__(self) -> dict[str, Any]:
        return {
            "session": self.session,
            "_on_close": None,
            "_pid": 0,
        }  # A copy in another process must not stop this process's service.

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
        """Close the connection; stop an embedded service, in the process that opened it.

        Examples
        --------
        >>> with asterism.open("shop.db") as client:  # closes it at the end  # doctest: +SKIP
        ...     client.spaces()
        """
        self.session.close()
        if self._on_close is not None and self._pid == os.getpid():
            on_close, self._on_close = self._on_close, None
            on_close()

    @property
    def traffic(self) -> Traffic:
        """Counts of calls, graphd requests, retries, hedges and storaged calls; 0 if embedded."""
        return getattr(self.session.transport, "traffic", Traffic())

    # -- spaces ------------------------------------------------------------------------------------

    def create_space(
        self, name: str, schema: Schema | Mapping[str, Any], *, if_not_exists: bool = False
    ) -> SpaceInfo:
        """Create a graph space.

        Parameters
        ----------
        name : str
            Name of the space.
        schema : Schema or dict
            Schema of the space; a dict is read by ``Schema.from_dict``.
        if_not_exists : bool, default False
            Return an existing space of that name if its schema is equal.

        Returns
        -------
        SpaceInfo
            The space.

        Raises
        ------
        Conflict
            If the space exists (with another schema, if ``if_not_exists``).
        NotReady
            If no storaged is online to hold its partitions.
        InvalidRequest
            If the name or the schema is invalid.

        Examples
        --------
        >>> schema = {"nodes": {"user": {}}, "edges": {"user:follows:user": {}}}  # doctest: +SKIP
        >>> client.create_space("social", schema, if_not_exists=True)  # doctest: +SKIP
        """
        record = schema if isinstance(schema, Schema) else Schema.from_dict(schema)
        request = metad_pb.CreateSpaceRequest(
            name=name, schema=record.to_proto(), if_not_exists=if_not_exists
        )
        return self._remember_space(self.session.catalog("create_space", request))

    def drop_space(self, name: str, *, if_exists: bool = False) -> None:
        """Drop a graph space with everything in it.

        Parameters
        ----------
        name : str
            Name of the space.
        if_exists : bool, default False
            Do nothing if there is no such space.

        Raises
        ------
        NotFound
            If there is no such space, unless ``if_exists``.

        Examples
        --------
        >>> client.drop_space("shop", if_exists=True)  # doctest: +SKIP
        """
        self.session.catalog(
            "drop_space", metad_pb.DropSpaceRequest(space=name, if_exists=if_exists)
        )
        self.session.forget(name)

    def spaces(self) -> list[SpaceInfo]:
        """Return all graph spaces.

        Returns
        -------
        list of SpaceInfo
            Name and schema of each space.

        Raises
        ------
        Unavailable
            If metad does not respond.

        Examples
        --------
        >>> [info.name for info in client.spaces()]  # doctest: +SKIP
        ['papers', 'shop']
        """
        return [
            self._remember_space(space)
            for space in self.session.catalog("list_spaces", common_pb.Empty()).spaces
        ]

    def describe(self, name: str) -> SpaceInfo:
        """Return the description of a graph space.

        Parameters
        ----------
        name : str
            Name of the space.

        Returns
        -------
        SpaceInfo
            Name and schema of the space.

        Raises
        ------
        NotFound
            If there is no such space.

        Examples
        --------
        >>> client.describe("shop").schema.direction  # doctest: +SKIP
        'both'
        """
        return self._remember_space(
            self.session.catalog("describe_space", metad_pb.SpaceRequest(space=name))
        )

    def versions(self, space: str) -> list[VersionInfo]:
        """Return the published versions that are kept, newest first, without their totals.

        Parameters
        ----------
        space : str
            Name of the space.

        Returns
        -------
        list of VersionInfo
            The versions.

        Raises
        ------
        NotFound
            If there is no such space.

        Examples
        --------
        >>> [info.version for info in client.versions("shop")]  # doctest: +SKIP
        [3, 2]
        """
        return [
            VersionInfo.from_proto(version)
            for version in self.session.catalog(
                "list_versions", metad_pb.SpaceRequest(space=space)
            ).versions
        ]

    def manifest(self, space: str, version: int = 0) -> VersionInfo:
        """Return a version with its totals.

        Parameters
        ----------
        space : str
            Name of the space.
        version : int, default 0
            Version number; 0 is the current one.

        Returns
        -------
        VersionInfo
            Digest and totals of the version.

        Raises
        ------
        NotFound
            If there is no such space or version.

        Examples
        --------
        >>> client.manifest("shop").count("NODE", 0)  # doctest: +SKIP
        1000
        """
        return self.session.manifest(
            self.session.catalog(
                "get_manifest",
                metad_pb.ManifestRequest(space=space, version=_number("version", version)),
            ),
            space,
        )

    def pins(self, space: str | None = None) -> list[PinInfo]:
        """Return the pins on versions; see ``Graph.pin``.

        Parameters
        ----------
        space : str, optional
            Name of a space. None: all spaces.

        Returns
        -------
        list of PinInfo
            Version, owner and term of each pin.

        Raises
        ------
        NotFound
            If there is no such space.

        Examples
        --------
        >>> [(pin.owner, pin.version) for pin in client.pins("shop")]  # doctest: +SKIP
        """
        return [
            PinInfo.from_proto(pin)
            for pin in self.session.catalog(
                "list_pins", metad_pb.ListPinsRequest(space=space or "")
            ).pins
        ]

    def hosts(self) -> list[Host]:
        """Return the daemons that metad knows.

        Returns
        -------
        list of Host
            Address and state of each daemon.

        Raises
        ------
        Unavailable
            If metad does not respond.

        Examples
        --------
        >>> [host.address for host in client.hosts() if not host.online]  # doctest: +SKIP
        []
        """
        return [
            Host.from_proto(host)
            for host in self.session.catalog("list_hosts", common_pb.Empty()).hosts
        ]

    # -- loads -------------------------------------------------------------------------------------

    def begin_load(self, space: str, *, source: str = "", resume_key: str = "") -> Load:
        """Begin a load, or resume the one with this ``resume_key``.

        A resumed load is open, or was committed from the same ``source``.

        Parameters
        ----------
        space : str
            Name of the space to write to.
        source : str, default ""
            Description of the origin of the rows. It should change when the rows change.
        resume_key : str, default ""
            Key under which the load is found again. "": always begin a new load. A committed load
            accepts no more rows; its ``commit_number`` is above 0.

        Returns
        -------
        Load
            The load.

        Raises
        ------
        NotFound
            If there is no such space.

        Examples
        --------
        >>> load = client.begin_load("shop", source="day 1")  # doctest: +SKIP
        >>> load.write_nodes(0, "user", np.array([1, 2, 3]))  # doctest: +SKIP
        >>> load.commit()  # doctest: +SKIP
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
        """Submit a job; return an equal job that is queued or running instead, if there is one.

        Parameters
        ----------
        space : str
            Name of the space. Jobs of one space run one after another, jobs of different spaces
            concurrently.
        kind : str, default "build"
            ``"build"`` publishes the committed writes as the next version. ``"audit"`` rereads a
            version on every storaged: checksums, totals, the distribution of every alias table and
            row, and both copies of every edge; it fails with the location of a fault. ``"index"``
            is a build that adds an index for filtered sampling; later builds keep it.
            ``"export-tables"`` writes alias tables to files. ``"compact"`` returns the disk space
            of deleted blocks.
        options : dict of str to str, optional
            Options by kind. ``"export-tables"``: ``format`` (``"parquet"``, ``"csv"`` or
            ``"csv,parquet"``) and ``to``, a folder that every storaged can write to and that the
            setting ``allowed_addresses`` lists, such as ``"s3://bucket/folder"``; without ``to``,
            files go to the folder ``exports`` of each storaged. ``"index"``: ``type``, a node type;
            ``on``, a column; ``kind``, ``"range"`` or ``"hash"`` (strings too); ``drop="yes"``.
            ``"build"`` and ``"index"``: ``link="no"`` rebuilds every partition; by default,
            unchanged data is shared with earlier versions.
        version : int, default 0
            Version that an audit or export reads; 0 is the current one.

        Returns
        -------
        Job
            The job, queued or running.

        Raises
        ------
        InvalidRequest
            If the kind, an option or a value is unknown.
        NotFound
            If there is no such space or version.
        NotReady
            If nothing is committed to build, or nothing is published to read.

        Examples
        --------
        >>> job = client.submit_job("shop", kind="audit")  # doctest: +SKIP
        >>> client.wait(job.job_id).state  # doctest: +SKIP
        'FINISHED'
        """
        return Job.from_proto(
            self.session.catalog(
                "submit_job",
                metad_pb.SubmitJobRequest(
                    space=space,
                    kind=kind,
                    options=_job_options(options or {}),
                    version=_number("version", version),
                ),
            )
        )

    def job(self, job_id: int) -> Job:
        """Return the state of a job.

        Parameters
        ----------
        job_id : int
            Id of the job.

        Returns
        -------
        Job
            The job with its state and progress.

        Raises
        ------
        NotFound
            If there is no such job.

        Examples
        --------
        >>> client.job(12).state  # doctest: +SKIP
        'FINISHED'
        """
        return Job.from_proto(self.session.catalog("get_job", _job_request(job_id)))

    def jobs(
        self, space: str | None = None, states: Iterable[str] = (), limit: int = 50, before: int = 0
    ) -> list[Job]:
        """Return jobs, newest first.

        Parameters
        ----------
        space : str, optional
            Only jobs of this space. None: all.
        states : iterable of str, default ()
            Only jobs in these states, such as ``"RUNNING"``. Empty: all.
        limit : int, default 50
            Maximum number of jobs, up to 1000.
        before : int, default 0
            Only jobs with a smaller id, for paging: the last id of the previous page. 0: from the
            newest.

        Returns
        -------
        list of Job
            The jobs.

        Raises
        ------
        InvalidRequest
            If a state is unknown.

        Examples
        --------
        >>> client.jobs("shop", states=["RUNNING", "QUEUE"])  # doctest: +SKIP
        """
        parsed_states = [parse_job_state(state) for state in validation.names(states)]
        request = metad_pb.ListJobsRequest(
            space=space or "",
            states=parsed_states,
            limit=validation.count("limit", limit),
            before=_number("before", before),
        )
        return [Job.from_proto(job) for job in self.session.catalog("list_jobs", request).jobs]

    def stop_job(self, job_id: int) -> Job:
        """Request that a job stops.

        Parameters
        ----------
        job_id : int
            Id of the job.

        Returns
        -------
        Job
            The job; it may still be running.

        Raises
        ------
        NotFound
            If there is no such job.

        Examples
        --------
        >>> client.wait(client.stop_job(12).job_id).state  # doctest: +SKIP
        'STOPPED'
        """
        return Job.from_proto(self.session.catalog("stop_job", _job_request(job_id)))

    def recover_job(self, job_id: int) -> Job:
        """Resume a failed or stopped job from its progress, with the same input.

        Parameters
        ----------
        job_id : int
            Id of the job.

        Returns
        -------
        Job
            The job.

        Raises
        ------
        NotFound
            If there is no such job.

        Examples
        --------
        >>> client.wait(client.recover_job(12).job_id).state  # doctest: +SKIP
        'FINISHED'
        """
        return Job.from_proto(self.session.catalog("recover_job", _job_request(job_id)))

    def wait(
        self,
        job_id: int,
        *,
        timeout_s: float = 3600.0,
        on_progress: Callable[[Job], None] | None = None,
    ) -> Job:
        """Wait until a job has ended, in any state.

        Parameters
        ----------
        job_id : int
            Id of the job.
        timeout_s : float, default 3600
            Maximum wait in seconds.
        on_progress : callable, optional
            Called with the job at every poll.

        Returns
        -------
        Job
            The ended job; its ``state`` is the outcome.

        Raises
        ------
        Deadline
            If the job has not ended in time; it keeps running.
        NotFound
            If there is no such job.

        Examples
        --------
        >>> client.wait(client.submit_job("shop").job_id, timeout_s=600).version  # doctest: +SKIP
        4
        """
        start = time.monotonic()
        deadline = start + timeout_s
        while True:
            job = self.job(job_id)
            if on_progress is not None:
                on_progress(job)
            if job.ended:
                if job.version:
                    self.session.note_version(job.space, job.version)
                return job
            pause = max(_FIRST_POLL_S, _POLL_SHARE * (time.monotonic() - start))
            self.session.waiter.sleep(min(pause, _MAX_POLL_S, seconds_left(deadline)))

    def _remember_space(self, message: common_pb.Space) -> SpaceInfo:
        return self.session.store_space(SpaceInfo.from_proto(message))


def build_space(client: CatalogClient, space: str, *, timeout_s: float = 3600.0) -> Job:
    """Build and publish the committed writes of a space, and wait for the job.

    Parameters
    ----------
    client : CatalogClient
        Client to submit with.
    space : str
        Name of the space.
    timeout_s : float, default 3600
        Maximum wait in seconds.

    Returns
    -------
    Job
        The finished job.

    Raises
    ------
    NotReady
        If the build fails or is stopped; the message has the cause.
    Deadline
        If the build has not ended in time; it keeps running.
    """
    job = client.wait(client.submit_job(space).job_id, timeout_s=timeout_s)
    if job.state != "FINISHED":
        raise NotReady(
            f"build {job.job_id} of space {space!r} ended as {job.state}: "
            f"{job.cause or 'no cause given'}; continue it with recover_job({job.job_id})"
        )
    return job


def _number(argument: str, value: int) -> int:
    """Return the number of a job or version after checking its range."""
    return validation.count(argument, value, maximum=validation.MAX_ID)


def _job_request(job_id: int) -> metad_pb.JobRequest:
    return metad_pb.JobRequest(job_id=_number("job_id", job_id))


def _job_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a job; InvalidRequest for the first that is not a string."""
    for name, value in options.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise InvalidRequest(f"options[{name!r}]={value!r:.80}: expected names and strings")
    return dict(options)
