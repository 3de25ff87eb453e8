"""Composition of a storaged: folder, local spaces, tasks, link to metad, and endpoints."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast

from asterism_access.guard import AccessGuard
from asterism_daemonkit.access_cache import AccessCache
from asterism_daemonkit.access_control import AccessControl
from asterism_daemonkit.catalog_position import CatalogPositionStore
from asterism_daemonkit.daemon_identity import open_folder
from asterism_daemonkit.exposure import log_insecure
from asterism_daemonkit.heartbeat import HeartbeatClient, HeartbeatPayload
from asterism_daemonkit.host_resources import ResourceMeter
from asterism_daemonkit.listening import split_address
from asterism_daemonkit.metrics import Metrics
from asterism_daemonkit.ports_file import clear_ports, write_ports
from asterism_daemonkit.rpc.call_context import Handler
from asterism_daemonkit.rpc.connection_limits import raise_file_limit
from asterism_daemonkit.rpc.grpc_server import GrpcServer
from asterism_daemonkit.rpc.interceptor_chain import HandlerChecks
from asterism_daemonkit.rpc.tcp_client import TcpEndpoint
from asterism_daemonkit.rpc.tcp_server import TcpServer
from asterism_daemonkit.tls import DaemonTls
from asterism_graphkit.compile.activity import ACTIVITY
from asterism_io.control_groups import available_cores
from asterism_model.indexes import indexes_from_proto
from asterism_model.load_fingerprints import LoadFingerprint
from asterism_model.partition_stats import PartitionStats, totals_by_weight_name
from asterism_model.schema import Schema
from asterism_model.storage_removals import RemovalRequest
from asterism_proto.errors import Conflict
from asterism_proto.methods import CATALOG, HEARTBEATS, STORE
from asterism_proto.transport import Transport
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from storaged.api.service import StoreService
from storaged.cluster_identity import ClusterIdentity
from storaged.kernel_warmup import compile_kernels
from storaged.load_write_admission import Admission, Admissions, RegisteredChunk
from storaged.local_spaces import DesiredSpace, DesiredVersion, LocalSpaces
from storaged.maintenance.folder_inventory import collect_inventory, highest_ids
from storaged.maintenance.garbage_collector import GarbageCollector
from storaged.maintenance.image_repair import ImageRepairer
from storaged.maintenance.scrub import Scrubber
from storaged.paths import DataPaths
from storaged.pricing import with_price_checks
from storaged.quarantine import Quarantine
from storaged.settings import StoragedSettings
from storaged.store.database_identity import DatabaseOwner
from storaged.tasks import task_assignments, task_runner
from storaged.tasks.fork_server import ForkServer
from storaged.version_loader import VersionLoader

if TYPE_CHECKING:  # imported when a port opens: an embedded storaged has none, and starts sooner
    from asterism_daemonkit.http.server import HttpServer

logger = logging.getLogger(__name__)

_SERVICE = STORE["write_blocks"].service
_INVENTORY_INTERVAL_S = 2.0
"""Seconds between two inventories sent to a metad that is not followed."""
_CALL_TIMEOUT_S = 10.0
"""Timeout of a call to metad in seconds."""
_STATES = {
    task_assignments.QUEUED: common_pb.QUEUE,
    task_assignments.RUNNING: common_pb.RUNNING,
    task_assignments.FINISHED: common_pb.FINISHED,
    task_assignments.FAILED: common_pb.FAILED,
    task_assignments.STOPPED: common_pb.STOPPED,
}


class Storaged:
    """One storaged; its ports are closed until `open_ports`.

    Parameters
    ----------
    settings : StoragedSettings
    metad : Transport
        Carries calls to metad.
    fenced : bool
        Refuse a copied folder while a storaged on the original is online. Default True.
    fork_server : ForkServer, optional
        Starts the processes of tasks. By default, a new one is started at the first write or task.
    compile_ahead : bool
        Compile all kernels at the start, and be ready afterwards. Otherwise a kernel is compiled
        when it is first called. Default True.
    tls : DaemonTls, optional
        Certificates of the ports. Default: the ports are not encrypted.
    access_control : AccessControl, optional
        Authenticates callers; handlers then check their roles. Default: every caller may do
        everything.
    """

    def __init__(
        self,
        settings: StoragedSettings,
        metad: Transport,
        *,
        fenced: bool = True,
        fork_server: ForkServer | None = None,
        compile_ahead: bool = True,
        tls: DaemonTls | None = None,
        access_control: AccessControl | None = None,
    ) -> None:
        self._tls = tls
        self._access = AccessCache()
        self._authenticate = (
            None if access_control is None else access_control.authenticate(self._access.state)
        )
        self._space_names: dict[int, str] = {}
        raise_file_limit()  # every array of an image is mapped
        self._settings, self._compile_ahead = settings, compile_ahead
        self._paths = DataPaths(settings.data)
        self._cluster = ClusterIdentity(self._paths.cluster)
        self._cluster.check_identity()
        self._identity = open_folder(settings.data, "storaged", fenced=fenced)
        self._was_clean = self._paths.clean_marker.exists()
        self._paths.clean_marker.unlink(missing_ok=True)
        self._metad = metad
        self._catalog_position = CatalogPositionStore(self._paths.position)
        self._quarantine = Quarantine(
            self._paths,
            grace_s=settings.quarantine_grace_s,
            limit_bytes=settings.quarantine_limit_mib << 20,
            free_bytes=settings.quarantine_free_mib << 20,
        )
        self._local_spaces = LocalSpaces(self._paths, self._quarantine, owner=self._owner)
        self._highest = highest_ids(self._paths, self._local_spaces)
        self._reporting = threading.Lock()
        self._reported_s = -_INVENTORY_INTERVAL_S
        self._fork_server = fork_server or ForkServer()
        self._task_runner = task_runner.TaskRunner(
            paths=self._paths,
            store=self._local_spaces.store,
            host=self._identity.uuid,
            served_jobs=self._local_spaces.served_jobs,
            fingerprints=self._fingerprints,
            memory_limit_mib=settings.memory_limit_mib,
            concurrent=settings.concurrent_tasks,
            addresses=settings.addresses(),
            remote_timeout_s=settings.remote_timeout_s,
            s3_ca=settings.s3_ca,
            on_change=self._task_changed,
            fork_server=self._fork_server,
        )
        self._image_repairer = ImageRepairer(
            start_task=self._start_task,
            is_desired=self._local_spaces.is_desired,
            list_commits=self._commits,
            paths=self._paths,
        )
        self._version_loader = VersionLoader(
            self._local_spaces,
            self._paths,
            verify=settings.verify_images or not self._was_clean,
            verify_bytes=settings.verify_open_mib << 20,
            retry_s=settings.open_retry_s,
            on_change=self._send_heartbeat,
            start_repair=self._image_repairer.start,
            on_verified=lambda space, desired: self._scrubber.note_verified(space, desired),
        )
        self._scrubber = Scrubber(
            self._local_spaces,
            self._paths,
            interval_s=settings.scrub_interval_s,
            mib_per_s=settings.scrub_mib_per_s,
            on_damage=self._version_loader.reload,
        )
        self._garbage_collector = GarbageCollector(
            self._local_spaces,
            self._paths,
            quarantine=self._quarantine,
            is_following=lambda: not self._catalog_fault(),
            busy_jobs=lambda space_id: (
                self._task_runner.busy_jobs(space_id) | self._image_repairer.busy_jobs(space_id)
            ),
            query_dead_loads=self._dead_loads,
            interval_s=settings.sweep_interval_s,
            on_change=self._send_heartbeat,
        )
        self.metrics = Metrics("storaged")
        self._add_gauges()
        self._resource_meter = ResourceMeter(settings.data)
        admissions = Admissions(self._admit)
        service = StoreService(
            self._local_spaces,
            self._stream_endpoint,
            filter_cache_bytes=settings.conditions_mib << 20,
            admissions=admissions,
        )
        self.handlers: dict[str, Handler] = with_price_checks(
            service.handlers, settings.limits, self._local_spaces.version
        )
        # Roles are checked before prices, which read the version that is named.
        self._checks = HandlerChecks(
            settings,
            metrics=self.metrics,
            daemon="storaged",
            guard=None if access_control is None else AccessGuard(space_name=self._space_name),
            state=self._access.state,
            space_name=self._space_name,
        )
        self.handlers = self._checks.wrap_all(STORE, self.handlers)
        self._heartbeats = HeartbeatClient(
            metad=metad,
            role=metad_pb.STORAGED,
            identity=self._identity,
            address=settings.advertised_address(split_address(settings.listen)[1]),
            http_address=settings.http_listen,
            on_poll=self._apply_desired_state,
            payload=self._report,
            interval_s=settings.heartbeat_interval_s,
            poll_wait_s=settings.poll_wait_s,
            cluster=lambda: self._cluster.cluster_id,
            followed_catalog=self._catalog_position,
            on_lease=self._task_runner.set_lease,
            on_refused=self._report_inventory,
        )
        self._kernels_ready = threading.Event()
        self._compile_fault = ""
        self._stopping = threading.Event()
        self._grpc: GrpcServer | None = None
        self._stream: TcpServer | None = None
        self._http: HttpServer | None = None
        self.grpc_port = self.http_port = 0
        self._insecure: list[str] = []

    def _add_gauges(self) -> None:
        self.metrics.add_gauge(
            "versions_loaded",
            "Number of versions that are loaded.",
            lambda: len(self._local_spaces.versions()),
        )
        self.metrics.add_gauge(
            "unreferenced_folders",
            "Folders that nothing refers to and no order removes.",
            lambda: len(self._garbage_collector.unreferenced),
        )
        self.metrics.add_gauge(
            "quarantine_bytes",
            "Bytes of quarantined folders.",
            lambda: sum(e.bytes for e in self._quarantine.entries()),
        )
        self.metrics.add_gauge(
            "catalog_position_writes",
            "Number of times that the followed position was written.",
            lambda: self._catalog_position.writes,
        )
        self.metrics.add_gauge(
            "scrub_read_bytes",
            "Bytes of served images that were checked again.",
            lambda: self._scrubber.bytes_read,
        )
        self.metrics.add_gauge(
            "scrub_damaged_versions",
            "Number of served versions that were found damaged.",
            lambda: self._scrubber.versions_damaged,
        )
        self.metrics.add_gauge(
            "tasks_running", "Build tasks on this host.", lambda: len(self._task_runner.progress())
        )

    @property
    def address(self) -> str:
        """Address at which graphds reach this storaged, as reported to metad."""
        return self._heartbeats.address

    def start(self) -> None:
        """Start the threads that compile kernels and talk to metad; open no port."""
        if self._compile_ahead:
            threading.Thread(target=self._compile_kernels, name="warm", daemon=True).start()
        else:
            self._kernels_ready.set()
        self._version_loader.start()
        self._scrubber.start()
        self._garbage_collector.start()
        self._heartbeats.start()

    def ready(self) -> list[str]:
        """Return a message for each reason why calls cannot be served yet; empty when ready."""
        fault = self._catalog_fault()
        missing = (
            [fault]
            if fault
            else []
            if self._heartbeats.has_desired_state()
            else ["no reply from metad yet"]
        )
        if self._authenticate is not None:
            missing += self._access.missing()
        if not self._kernels_ready.is_set():
            missing.append(self._compile_fault or ACTIVITY.describe())
        return missing + self._local_spaces.unready()

    def _catalog_fault(self) -> str:
        """Return why metad's desired state is not followed; empty if it is."""
        refusal, fault = self._heartbeats.fault, self._cluster.fault or self._catalog_position.fault
        if refusal is not None and not fault:
            foreign = isinstance(refusal, Conflict) and "cluster" in refusal.message
            prefix = (
                f"data={str(self._settings.data)!r}: "
                f"{'the folder is a copy: ' if self._identity.is_copy else ''}"
            )
            fault = (
                self._cluster.mismatch_error(f"metad rejects it ({refusal.message})")
                if foreign
                else prefix + refusal.message
            )
        return fault

    def open_ports(self) -> None:
        """Open the binary RPC, gRPC and HTTP endpoints."""
        from asterism_daemonkit.http.server import HttpServer
        from asterism_daemonkit.http.turns import HttpTurns

        settings = self._settings
        self._insecure = settings.insecure_addresses()
        log_insecure(self._insecure, settings)
        limits = settings.connection_limits()
        clear_ports(settings.ports_file)
        if stream_address := settings.stream_address():
            self._stream = TcpServer(
                address=stream_address,
                methods=STORE,
                handlers=self.handlers,
                workers=settings.grpc_workers,
                queue=settings.grpc_queue,
                cores=available_cores(),
                metrics=self.metrics,
                tls=self._tls,
                share_of=self._checks.share_of,
                authenticate=self._checks.counting("stream", self._authenticate),
                limits=limits,
            )
            self._stream.start()
        self._grpc = GrpcServer(
            address=settings.listen,
            services={_SERVICE: (STORE, self.handlers)},
            workers=settings.grpc_workers,
            queue=settings.grpc_queue,
            cores=available_cores(),
            metrics=self.metrics,
            tls=self._tls,
            share_of=self._checks.share_of,
            authenticate=self._checks.counting("grpc", self._authenticate),
            limits=limits,
        )
        self.grpc_port = self._grpc.start()
        self._http = HttpServer(
            address=settings.http_listen,
            daemon="storaged",
            status=self.status,
            ready=self.ready,
            flags=settings.flags(),
            metrics=self.metrics,
            allowed_hosts=settings.allowed_hosts(),
            tls=self._tls,
            authenticate=self._authenticate,
            refused_credentials=self._checks.refused_credentials,
            turns=HttpTurns(self._checks.share_of, cores=available_cores()),
            limits=limits,
        )
        self.http_port = self._http.start()
        self._heartbeats.address = settings.advertised_address(self.grpc_port)
        self._heartbeats.http_address = f"{split_address(settings.http_listen)[0]}:{self.http_port}"
        self._heartbeats.send_now()
        stream_ports = {"stream": self._stream.port} if self._stream is not None else {}
        write_ports(settings.ports_file, grpc=self.grpc_port, http=self.http_port, **stream_ports)
        threading.Thread(target=self._serve_when_ready, name="readiness", daemon=True).start()

    def stop(self) -> None:
        """Close the endpoints, drain calls, stop tasks, and leave the folder clean."""
        self._stopping.set()
        if self._grpc is not None:
            self._grpc.set_serving(False)
            self._grpc.stop(self._settings.stop_grace_s)
        if self._stream is not None:
            self._stream.stop(self._settings.stop_grace_s)
        if self._http is not None:
            self._http.stop()
        self._checks.close()
        self._heartbeats.stop()
        self._scrubber.stop()
        self._version_loader.stop()
        self._task_runner.stop()
        self._garbage_collector.stop()
        self._quarantine.close()
        # The folder stays unclean if images that were due for verification were not verified, or
        # were found damaged.
        verified = self._was_clean and not self._scrubber.versions_damaged
        verified = verified or (
            self._heartbeats.has_desired_state() and not self._local_spaces.unserved_reasons()
        )
        self._local_spaces.close()
        if verified:
            self._paths.clean_marker.touch()
        self._identity.release()

    def status(self) -> dict[str, Any]:
        """Return the state shown at /status: versions, builds, quarantine and lease."""
        return {
            "uuid": self._identity.uuid,
            "address": self.address,
            "insecure": self._insecure,
            "versions": [
                {"space": space_id, "version": version}
                for space_id, version in self._local_spaces.versions()
            ],
            "builds": [
                {
                    "task": p.task_id,
                    "attempt": p.attempt,
                    "state": p.state,
                    "phase": p.phase,
                    "rows_done": p.rows_done,
                    "rows_total": p.rows_total,
                }
                for p in self._task_runner.progress()
            ],
            "catalog": _position_fields(self._catalog_position.position),
            "unreferenced": list(self._garbage_collector.unreferenced),
            "quarantine": [asdict(entry) for entry in self._quarantine.entries()],
            "leased": self._heartbeats.has_lease(),
            "lease_left_s": round(self._heartbeats.lease_remaining_s(), 3),
        }

    def _space_name(self, space_id: int) -> str:
        return self._space_names.get(space_id, "")

    def _owner(self, space_id: int) -> DatabaseOwner:
        return DatabaseOwner(
            cluster=self._cluster.cluster_id, host=self._identity.uuid, space_id=space_id
        )

    def _stream_endpoint(self) -> TcpEndpoint:
        return (
            TcpEndpoint()
            if self._stream is None
            else TcpEndpoint(self._stream.port, self._stream.key, self._stream.socket_name)
        )

    def _send_heartbeat(self) -> None:
        self._heartbeats.send_now()

    def _task_changed(self) -> None:
        self._heartbeats.send_now()
        self._garbage_collector.recheck()

    def _apply_desired_state(self, reply: metad_pb.PollReply) -> None:
        """Apply a complete desired state.

        Tasks are withdrawn first, because the files they use may be removed.
        """
        self._cluster.check(reply.cluster)
        if reply.adopted:
            # metad requests removal of the data that was given up, before its catalog is followed.
            self._send_inventory()
        self._catalog_position.follow(reply.position)
        self._access.follow(reply)
        self._space_names = {route.space.space_id: route.space.name for route in reply.spaces}
        schemas = {
            route.space.space_id: Schema.from_proto(route.space.schema) for route in reply.spaces
        }
        desired_spaces = {
            route.space.space_id: self._desired_space(route, schemas[route.space.space_id], reply)
            for route in reply.spaces
        }
        routes = {route.space.space_id: route for route in reply.spaces}
        assignments = [
            _task_assignment(
                task_order, desired_spaces[task_order.space_id], routes[task_order.space_id]
            )
            for task_order in reply.task_assignments
            if task_order.space_id in desired_spaces
        ]
        with self._local_spaces.lock:
            self._task_runner.withdraw(assignments)
            self._local_spaces.apply(list(desired_spaces.values()))
            self._task_runner.apply(assignments)
            self._garbage_collector.set_removals(
                [RemovalRequest.from_proto(removal) for removal in reply.removals]
            )
        self._highest = highest_ids(self._paths, self._local_spaces)
        self._version_loader.wake()
        self._garbage_collector.wake()
        self._heartbeats.send_now()

    def _report_inventory(self) -> None:
        """Send the inventory of the folder to a metad that is not followed.

        It can then report the data that an adoption would give up.
        """
        with self._reporting:
            now = time.monotonic()
            if now - self._reported_s < _INVENTORY_INTERVAL_S:
                return
            self._reported_s = now
            self._send_inventory()

    def _send_inventory(self) -> None:
        spaces = collect_inventory(self._paths, self._local_spaces)
        self._highest = highest_ids(self._paths, self._local_spaces)
        request = metad_pb.Inventory(
            uuid=self._identity.uuid,
            cluster=self._cluster.cluster_id,
            followed_position=self._catalog_position.position,
            highest_ids=self._highest,
            spaces=spaces,
        )
        self._metad.call(HEARTBEATS["report_inventory"], request, _CALL_TIMEOUT_S)

    def _dead_loads(self, space_id: int, loads: Sequence[int]) -> Sequence[int]:
        request = metad_pb.FindDeadLoadsRequest(
            uuid=self._identity.uuid,
            space_id=space_id,
            loads=loads,
            cluster=self._cluster.cluster_id,
        )
        reply = (
            self._metad.call(HEARTBEATS["find_dead_loads"], request, _CALL_TIMEOUT_S)
            if loads
            else metad_pb.FindDeadLoadsReply()
        )
        return list(cast(metad_pb.FindDeadLoadsReply, reply).loads)

    def _admit(self, space_id: int, load_id: int, chunk: int, timeout_s: float) -> Admission:
        """Request metad's permission to write a chunk of a load."""
        if fault := self._catalog_fault():
            raise Conflict(fault)
        request = metad_pb.AdmitLoadRequest(
            uuid=self._identity.uuid,
            cluster=self._cluster.cluster_id,
            space_id=space_id,
            load_id=load_id,
            chunk=chunk,
        )
        reply = cast(
            metad_pb.AdmitLoadReply,
            self._metad.call(HEARTBEATS["admit_load"], request, min(timeout_s, _CALL_TIMEOUT_S)),
        )
        self._fork_server.prepare()  # A load is followed by a build.
        registration = reply.chunk
        registered = RegisteredChunk(
            is_nodes=registration.element == common_pb.NODE,
            type_id=registration.type_id,
            rows=registration.rows,
            first_edge_id=registration.first_edge_id,
        )
        return Admission(number=reply.number, is_first=reply.first_admission, chunk=registered)

    def _fingerprints(
        self, space_id: int, watermark: int, parts: Sequence[int]
    ) -> Sequence[LoadFingerprint]:
        """Return the fingerprints of the committed loads of some partitions, in commit order.

        metad's catalog keeps them; they are fetched page by page.
        """
        request = metad_pb.ListFingerprintsRequest(
            uuid=self._identity.uuid,
            cluster=self._cluster.cluster_id,
            space_id=space_id,
            watermark=watermark,
            parts=parts,
        )
        fingerprints: list[LoadFingerprint] = []
        while True:
            reply = cast(
                metad_pb.FingerprintList,
                self._metad.call(HEARTBEATS["list_fingerprints"], request, _CALL_TIMEOUT_S),
            )
            fingerprints += [LoadFingerprint.from_proto(load) for load in reply.loads]
            request.after = reply.next_after
            if not reply.next_after:
                return fingerprints

    def _start_task(
        self, assignment: task_assignments.TaskAssignment
    ) -> task_assignments.TaskHandle:
        # Garbage collection must not take its folder for a leftover meanwhile.
        with self._local_spaces.lock:
            return self._task_runner.start_unassigned(assignment)

    def _commits(self, space: DesiredSpace) -> Sequence[tuple[int, int]]:
        if fault := self._catalog_fault():
            raise Conflict(fault)
        reply = cast(
            metad_pb.CommitList,
            self._metad.call(
                CATALOG["list_commits"],
                metad_pb.ListCommitsRequest(space=space.name),
                _CALL_TIMEOUT_S,
            ),
        )
        return list(zip(reply.commits, reply.loads, strict=True))

    def _desired_space(
        self, route: metad_pb.SpaceRoute, schema: Schema, reply: metad_pb.PollReply
    ) -> DesiredSpace:
        local_parts = tuple(
            part
            for part, hosts in enumerate(route.space.parts)
            if self._identity.uuid in hosts.hosts
        )
        return DesiredSpace(
            space_id=route.space.space_id,
            name=route.space.name,
            schema=schema,
            parts=local_parts,
            versions=tuple(_desired_version(manifest) for manifest in route.versions),
            abandoned_loads=tuple(reply.abandoned_loads),
            kept_jobs=tuple(
                kept_job.job_id
                for kept_job in reply.retained_jobs
                if kept_job.space_id == route.space.space_id
            ),
        )

    def _report(self) -> HeartbeatPayload:
        return HeartbeatPayload(
            # Tasks assigned under an expired lease are reported only once metad has confirmed that
            # they still stand.
            tasks=[_task_report(progress) for progress in self._task_runner.progress()]
            if self._heartbeats.has_lease()
            else [],
            held_versions=[
                metad_pb.HeldVersion(space_id=space_id, version=version)
                for space_id, version in self._local_spaces.versions()
            ],
            free_bytes=shutil.disk_usage(self._settings.data).free,
            held_bytes=self._garbage_collector.held_bytes,
            dropped_loads=self._local_spaces.dropped_loads(),
            completed_removals=self._garbage_collector.removed_ids(),
            highest_ids=self._highest_now(),
            resources=self._resource_meter.measure(self._garbage_collector.space_bytes),
        )

    def _highest_now(self) -> metad_pb.HighestIds:
        """Return the highest ids: of folders at the last inventory, of loads now."""
        highest = self._highest
        return metad_pb.HighestIds(
            space_id=highest.space_id,
            job_id=highest.job_id,
            load_id=max(highest.load_id, self._local_spaces.highest_load()),
        )

    def _compile_kernels(self) -> None:
        try:
            compile_kernels()
        except Exception as error:
            logger.exception("kernel_compilation_failed")
            self._compile_fault = (
                f"kernels cannot be compiled: {error!r}; the log has the traceback"
            )
            return
        self._kernels_ready.set()

    def _serve_when_ready(self) -> None:
        while self.ready() and not self._stopping.is_set():
            time.sleep(0.05)
        if self._grpc is not None and not self._stopping.is_set():
            self._grpc.set_serving(True)
            logger.info("storaged_ready", extra={"address": self.address})


def _position_fields(position: metad_pb.CatalogPosition | None) -> dict[str, Any] | None:
    return (
        {"history": position.history, "term": position.term, "revision": position.revision}
        if position is not None
        else None
    )


def _task_assignment(
    message: metad_pb.TaskAssignment, space: DesiredSpace, route: metad_pb.SpaceRoute
) -> task_assignments.TaskAssignment:
    manifest = (
        message.manifest
        if message.HasField("manifest")
        else next((m for m in route.versions if m.version == message.version), None)
    )
    return task_assignments.TaskAssignment(
        task_id=message.task_id,
        job_id=message.job_id,
        attempt=message.attempt,
        kind=message.kind,
        space_id=message.space_id,
        space=space.name,
        schema=space.schema,
        parts=tuple(message.parts),
        watermark=message.watermark,
        loads=tuple(message.loads),
        commits=tuple(message.commits),
        readable_jobs=tuple(desired.job_id for desired in space.versions),
        options=dict(message.options),
        version=message.version,
        indexes=indexes_from_proto(message.indexes),
        published=_published_version(manifest) if manifest is not None else None,
    )


def _published_version(manifest: common_pb.Manifest) -> task_assignments.PublishedVersion:
    return task_assignments.PublishedVersion(
        job_id=manifest.job_id,
        watermark=manifest.watermark,
        digest=manifest.digest,
        images={image.part: image.digest for image in manifest.images},
        totals=tuple(map(PartitionStats.from_proto, manifest.totals)),
    )


def _desired_version(manifest: common_pb.Manifest) -> DesiredVersion:
    totals, named_totals = totals_by_weight_name(manifest.totals)
    return DesiredVersion(
        version=manifest.version,
        job_id=manifest.job_id,
        digest=manifest.digest,
        watermark=manifest.watermark,
        totals=totals,
        named_totals=named_totals,
        images={image.part: image.digest for image in manifest.images},
        indexes=indexes_from_proto(manifest.indexes),
    )


def _task_report(progress: task_assignments.TaskProgress) -> metad_pb.TaskReport:
    return metad_pb.TaskReport(
        task_id=progress.task_id,
        attempt=progress.attempt,
        state=_STATES[progress.state],
        phase=progress.phase,
        rows_done=progress.rows_done,
        rows_total=progress.rows_total,
        cause=progress.cause,
        permanent=progress.permanent,
        totals=[
            PartitionStats.from_dict(total).to_proto()
            for total in progress.result.get("totals", ())
        ],
        images=[common_pb.PartImage(**image) for image in progress.result.get("images", ())],
        result=common_pb.TaskResult(**progress.result.get("made", {})),
    )
