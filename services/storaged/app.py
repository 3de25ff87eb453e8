"""How a storaged is composed: its folder, what it holds, the builds, the conversation with metad, the doors."""

from __future__ import annotations

import logging
import resource
import shutil
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any, cast

from asterism_proto.errors import Conflict
from asterism_proto.fingerprints import LoadFingerprint
from asterism_proto.indexes import indexes_from_proto
from asterism_proto.methods import BEATS, CATALOG, STORE
from asterism_proto.schema import Schema
from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.v1 import metad_pb2 as meta
from daemonkit.beats import Beats, Report
from daemonkit.calls import Handler, Transport, handlers_of
from daemonkit.followed import FollowedCatalog
from daemonkit.http import HttpDoor
from daemonkit.identity import open_folder
from daemonkit.metrics import Metrics
from daemonkit.ports import clear_ports, report_ports
from daemonkit.server import GrpcServer
from daemonkit.settings import split_address
from daemonkit.stream_door import StreamDoor
from daemonkit.streams import Door
from storaged import orders, work
from storaged.admission import Admission, Admissions, Chunk
from storaged.api import StoreApi
from storaged.build.task import Total
from storaged.cluster import Cluster
from storaged.draw import Share, by_name
from storaged.folders import Folders
from storaged.fork_server import ForkServer
from storaged.holdings import Holdings, Wanted, WantedSpace
from storaged.inventory import highest_ids, inventory_of
from storaged.opening import Opener
from storaged.ownership import Owner
from storaged.pricing import priced
from storaged.quarantine import Quarantine
from storaged.remaking import Remaker
from storaged.scrub import Scrubber
from storaged.settings import StoragedSettings
from storaged.sweeping import Removal, RemovalOrder, Sweeper
from storaged.warm import warm

logger = logging.getLogger(__name__)

_SERVICE = STORE["write_blocks"].service
_INVENTORY_EVERY_S = 2.0
"""How often a metad that is not followed is sent what lies in the folder."""
_ASK_S = 10.0
"""How long a question to metad may take."""
_STATES = {
    orders.QUEUED: pb.QUEUE,
    orders.RUNNING: pb.RUNNING,
    orders.FINISHED: pb.FINISHED,
    orders.FAILED: pb.FAILED,
    orders.STOPPED: pb.STOPPED,
}


class Storaged:
    """One storaged, without its doors until `open_ports`.

    Parameters
    ----------
    settings : StoragedSettings
        What it was told.
    metad : Transport
        Carries calls to metad.
    fenced : bool
        Whether a copied folder is refused while a storaged on the original is online.
    fork_server : ForkServer, optional
        Starts the processes of tasks; None: one that is started at the first write or task.
    """

    def __init__(self, settings: StoragedSettings, metad: Transport, *, fenced: bool = True, fork_server: ForkServer | None = None) -> None:
        _allow_files()
        self._settings = settings
        self._folders = Folders(settings.data)
        self._cluster = Cluster(self._folders.cluster)
        self._cluster.check_identity()
        self._identity = open_folder(settings.data, "storaged", fenced=fenced)
        self._was_clean = self._folders.clean.exists()
        self._folders.clean.unlink(missing_ok=True)
        self._metad = metad
        self._followed = FollowedCatalog(self._folders.position)
        self._quarantine = Quarantine(
            self._folders,
            grace_s=settings.quarantine_grace_s,
            limit_bytes=settings.quarantine_limit_mib << 20,
            free_bytes=settings.quarantine_free_mib << 20,
        )
        self._holdings = Holdings(self._folders, self._quarantine, owner=self._owner)
        self._highest = highest_ids(self._folders, self._holdings)
        self._reporting = threading.Lock()
        self._reported_s = -_INVENTORY_EVERY_S
        self._fork_server = fork_server or ForkServer()
        self._work = work.Work(
            folders=self._folders,
            store=self._holdings.store,
            host=self._identity.uuid,
            served=self._holdings.served,
            fingerprints=self._fingerprints,
            memory_limit_mib=settings.memory_limit_mib,
            concurrent=settings.concurrent_tasks,
            addresses=settings.addresses(),
            remote_timeout_s=settings.remote_timeout_s,
            changed=self._build_changed,
            fork_server=self._fork_server,
        )
        self._remaker = Remaker(begin=self._begin, wants=self._holdings.wants, commits=self._commits, folders=self._folders)
        self._opener = Opener(
            self._holdings,
            self._folders,
            verify=settings.verify_images or not self._was_clean,
            verify_bytes=settings.verify_open_mib << 20,
            retry_s=settings.open_retry_s,
            changed=self._poke,
            remake=self._remaker.start,
            verified=lambda space, want: self._scrubber.verified(space, want),
        )
        self._scrubber = Scrubber(
            self._holdings,
            self._folders,
            interval_s=settings.scrub_interval_s,
            mib_per_s=settings.scrub_mib_per_s,
            damaged=self._opener.reopen,
        )
        self._sweeper = Sweeper(
            self._holdings,
            self._folders,
            quarantine=self._quarantine,
            follows=lambda: not self._unfollowed(),
            busy=lambda space_id: self._work.busy(space_id) | self._remaker.busy(space_id),
            dead_loads=self._dead_loads,
            interval_s=settings.sweep_interval_s,
            changed=self._poke,
        )
        self.metrics = Metrics("storaged")
        self._add_gauges()
        admissions = Admissions(self._admit)
        api = StoreApi(self._holdings, self._stream_door, conditions_bytes=settings.conditions_mib << 20, admissions=admissions)
        self.handlers: dict[str, Handler] = priced(handlers_of(STORE, api), settings.limits, self._holdings.version)
        self._beats = Beats(
            metad=metad,
            role=meta.STORAGED,
            identity=self._identity,
            address=settings.reachable_at(split_address(settings.listen)[1]),
            http_address=settings.http_listen,
            on_poll=self._hear,
            report=self._report,
            interval_s=settings.heartbeat_interval_s,
            poll_wait_s=settings.poll_wait_s,
            cluster=lambda: self._cluster.known,
            followed=self._followed,
            on_lease=self._work.allow,
            on_refused=self._report_inventory,
        )
        self._compiled = threading.Event()
        self._compile_fault = ""
        self._stopping = threading.Event()
        self._grpc: GrpcServer | None = None
        self._stream: StreamDoor | None = None
        self._http: HttpDoor | None = None
        self.grpc_port = self.http_port = 0

    def _add_gauges(self) -> None:
        self.metrics.gauge("versions_held", "Versions that draws are answered from.", lambda: len(self._holdings.versions()))
        self.metrics.gauge("unreferenced_folders", "Folders that nothing refers to and no order removes.", lambda: len(self._sweeper.unreferenced))
        self.metrics.gauge("quarantine_bytes", "What quarantined folders take.", lambda: sum(e.bytes for e in self._quarantine.entries()))
        self.metrics.gauge("catalog_positions_written", "How often the followed position was written down.", lambda: self._followed.writes)
        self.metrics.gauge("scrub_read_bytes", "Bytes of images that were checked again while they were served.", lambda: self._scrubber.bytes_read)
        self.metrics.gauge(
            "scrub_damaged_versions", "Versions that were found damaged while they were served.", lambda: self._scrubber.versions_damaged
        )
        self.metrics.gauge("builds_here", "Build orders on this host.", lambda: len(self._work.progress()))

    @property
    def address(self) -> str:
        """Where graphds reach it, as metad is told."""
        return self._beats.address

    def start(self) -> None:
        """Begin to talk to metad, and compile; opens no port."""
        threading.Thread(target=self._warm, name="warm", daemon=True).start()
        self._opener.start()
        self._scrubber.start()
        self._sweeper.start()
        self._beats.start()

    def ready(self) -> list[str]:
        """What is missing before it can answer; empty when it can."""
        fault = self._unfollowed()
        missing = [fault] if fault else [] if self._beats.heard() else ["metad has not answered yet"]
        if not self._compiled.is_set():
            missing.append(self._compile_fault or "kernels are being compiled")
        return missing + self._holdings.unready()

    def _unfollowed(self) -> str:
        """Return why metad's desired state is not followed; empty where it is."""
        refusal, fault = self._beats.fault, self._cluster.fault or self._followed.fault
        if refusal is not None and not fault:
            foreign = isinstance(refusal, Conflict) and "cluster" in refusal.message
            where = f"data={str(self._settings.data)!r}: {'the folder is a copy: ' if self._identity.copied else ''}"
            fault = self._cluster.other(f"metad refuses it ({refusal.message})") if foreign else where + refusal.message
        return fault

    def open_ports(self) -> None:
        """Open the stream, gRPC and HTTP doors."""
        settings = self._settings
        clear_ports(settings.ports_file)
        if settings.stream_listen:
            self._stream = StreamDoor(
                address=settings.stream_listen,
                methods=STORE,
                handlers=self.handlers,
                workers=settings.grpc_workers,
                queue=settings.grpc_queue,
                metrics=self.metrics,
            )
            self._stream.start()
        self._grpc = GrpcServer(
            address=settings.listen,
            services={_SERVICE: (STORE, self.handlers)},
            workers=settings.grpc_workers,
            queue=settings.grpc_queue,
            metrics=self.metrics,
        )
        self.grpc_port = self._grpc.start()
        self._http = HttpDoor(
            address=settings.http_listen,
            daemon="storaged",
            status=self.status,
            ready=self.ready,
            flags=settings.flags(),
            metrics=self.metrics,
            hostnames=settings.hostnames(),
        )
        self.http_port = self._http.start()
        self._beats.address = settings.reachable_at(self.grpc_port)
        self._beats.http_address = f"{split_address(settings.http_listen)[0]}:{self.http_port}"
        self._beats.poke()
        stream = {"stream": self._stream.port} if self._stream is not None else {}
        report_ports(settings.ports_file, grpc=self.grpc_port, http=self.http_port, **stream)
        threading.Thread(target=self._serve_when_ready, name="readiness", daemon=True).start()

    def stop(self) -> None:
        """Close the doors, let calls under way end, reap builds, leave the folder clean."""
        self._stopping.set()
        if self._grpc is not None:
            self._grpc.set_serving(False)
            self._grpc.stop(self._settings.stop_grace_s)
        if self._stream is not None:
            self._stream.stop(self._settings.stop_grace_s)
        if self._http is not None:
            self._http.stop()
        self._beats.stop()
        self._scrubber.stop()
        self._opener.stop()
        self._work.stop()
        self._sweeper.stop()
        self._quarantine.close()
        # Images that were to be verified and were not, or were found damaged, keep the folder unclean.
        verified = self._was_clean and not self._scrubber.versions_damaged
        verified = verified or (self._beats.heard() and not self._holdings.missing())
        self._holdings.close()
        if verified:
            self._folders.clean.touch()
        self._identity.release()

    def status(self) -> dict[str, Any]:
        """What it holds and builds."""
        return {
            "uuid": self._identity.uuid,
            "address": self.address,
            "versions": [{"space": space_id, "version": version} for space_id, version in self._holdings.versions()],
            "builds": [
                {"task": p.task_id, "attempt": p.attempt, "state": p.state, "phase": p.phase, "rows_done": p.rows_done, "rows_total": p.rows_total}
                for p in self._work.progress()
            ],
            "catalog": _position(self._followed.position),
            "unreferenced": list(self._sweeper.unreferenced),
            "quarantine": [asdict(entry) for entry in self._quarantine.entries()],
            "leased": self._beats.leased(),
            "lease_left_s": round(self._beats.lease_left(), 3),
        }

    def _owner(self, space_id: int) -> Owner:
        return Owner(cluster=self._cluster.known, host=self._identity.uuid, space_id=space_id)

    def _stream_door(self) -> Door:
        return Door() if self._stream is None else Door(self._stream.port, self._stream.key, self._stream.local)

    def _poke(self) -> None:
        self._beats.poke()

    def _build_changed(self) -> None:
        self._beats.poke()
        self._sweeper.nudge()

    def _hear(self, reply: meta.PollReply) -> None:
        """Take over the whole desired state: orders are withdrawn first, for what they use may be removed."""
        self._cluster.check(reply.cluster)
        if reply.adopted:
            self._send_inventory()  # metad orders away what was given up, before its catalog is followed
        self._followed.follow(reply.position)
        schemas = {route.space.space_id: Schema.from_proto(route.space.schema) for route in reply.spaces}
        wanted = {route.space.space_id: self._wanted(route, schemas[route.space.space_id], reply) for route in reply.spaces}
        routes = {route.space.space_id: route for route in reply.spaces}
        ordered = [_order(order, wanted[order.space_id], routes[order.space_id]) for order in reply.orders if order.space_id in wanted]
        with self._holdings.lock:
            self._work.withdraw(ordered)
            self._holdings.apply(list(wanted.values()))
            self._work.apply(ordered)
            self._sweeper.order([_removal(removal) for removal in reply.removals])
        self._highest = highest_ids(self._folders, self._holdings)
        self._opener.wake()
        self._sweeper.wake()
        self._beats.poke()

    def _report_inventory(self) -> None:
        """Let a metad that is not followed know what lies here, so that it can say what an adoption would give up."""
        with self._reporting:
            now = time.monotonic()
            if now - self._reported_s < _INVENTORY_EVERY_S:
                return
            self._reported_s = now
            self._send_inventory()

    def _send_inventory(self) -> None:
        spaces = inventory_of(self._folders, self._holdings)
        self._highest = highest_ids(self._folders, self._holdings)
        request = meta.Inventory(
            uuid=self._identity.uuid, cluster=self._cluster.known, followed=self._followed.position, highest=self._highest, spaces=spaces
        )
        self._metad.call(BEATS["report_inventory"], request, _ASK_S)

    def _dead_loads(self, space_id: int, loads: Sequence[int]) -> Sequence[int]:
        request = meta.LoadsHeld(uuid=self._identity.uuid, space_id=space_id, loads=loads, cluster=self._cluster.known)
        reply = self._metad.call(BEATS["find_dead_loads"], request, _ASK_S) if loads else meta.DeadLoads()
        return list(cast(meta.DeadLoads, reply).loads)

    def _admit(self, space_id: int, load_id: int, chunk: int, timeout_s: float) -> Admission:
        """Ask metad whether a chunk of a load may be written."""
        if fault := self._unfollowed():
            raise Conflict(fault)
        request = meta.AdmitLoadRequest(uuid=self._identity.uuid, cluster=self._cluster.known, space_id=space_id, load_id=load_id, chunk=chunk)
        reply = cast(meta.AdmitLoadReply, self._metad.call(BEATS["admit_load"], request, min(timeout_s, _ASK_S)))
        self._fork_server.prepare()  # a load is followed by a build
        given = reply.chunk
        registered = Chunk(nodes=given.element == pb.NODE, type_id=given.type_id, rows=given.rows, base=given.base)
        return Admission(number=reply.number, first=reply.first, chunk=registered)

    def _fingerprints(self, space_id: int, cut: int, parts: Sequence[int]) -> Sequence[LoadFingerprint]:
        """Ask metad what committed loads wrote to some partitions, in commit order."""
        request = meta.ListFingerprintsRequest(uuid=self._identity.uuid, cluster=self._cluster.known, space_id=space_id, cut=cut, parts=parts)
        found: list[LoadFingerprint] = []
        while True:
            reply = cast(meta.FingerprintList, self._metad.call(BEATS["list_fingerprints"], request, _ASK_S))
            found += [LoadFingerprint.from_proto(load) for load in reply.loads]
            request.after = reply.next_after
            if not reply.next_after:
                return found

    def _begin(self, order: orders.Order) -> orders.Run:
        with self._holdings.lock:  # nobody decides meanwhile that its folder is a leftover
            return self._work.begin(order)

    def _commits(self, space: WantedSpace) -> Sequence[tuple[int, int]]:
        if fault := self._unfollowed():
            raise Conflict(fault)
        reply = cast(meta.CommitList, self._metad.call(CATALOG["list_commits"], meta.ListCommitsRequest(space=space.name), _ASK_S))
        return list(zip(reply.commits, reply.loads, strict=True))

    def _wanted(self, route: meta.SpaceRoute, schema: Schema, reply: meta.PollReply) -> WantedSpace:
        mine = tuple(part for part, hosts in enumerate(route.space.parts) if self._identity.uuid in hosts.hosts)
        return WantedSpace(
            space_id=route.space.space_id,
            name=route.space.name,
            schema=schema,
            parts=mine,
            versions=tuple(_version(manifest) for manifest in route.versions),
            abandoned_loads=tuple(reply.abandoned_loads),
            kept_jobs=tuple(kept.job_id for kept in reply.kept_jobs if kept.space_id == route.space.space_id),
        )

    def _report(self) -> Report:
        return Report(
            # What was ordered under a lease that is over is reported only once metad has said that it still stands.
            tasks=[_task_report(progress) for progress in self._work.progress()] if self._beats.leased() else [],
            held=[meta.HeldVersion(space_id=space_id, version=version) for space_id, version in self._holdings.versions()],
            free_bytes=shutil.disk_usage(self._settings.data).free,
            held_bytes=self._sweeper.held_bytes,
            dropped_loads=self._holdings.dropped_loads(),
            removed=self._sweeper.removed(),
            highest=self._highest_now(),
        )

    def _highest_now(self) -> meta.HighestIds:
        """Return the highest identifiers of what is here: folders as of the last inventory, loads as of now."""
        highest = self._highest
        return meta.HighestIds(space_id=highest.space_id, job_id=highest.job_id, load_id=max(highest.load_id, self._holdings.highest_load()))

    def _warm(self) -> None:
        try:
            warm()
        except Exception as error:
            logger.exception("kernels_failed")
            self._compile_fault = f"kernels can not be compiled: {error!r}; the log has the story"
            return
        self._compiled.set()

    def _serve_when_ready(self) -> None:
        while self.ready() and not self._stopping.is_set():
            time.sleep(0.05)
        if self._grpc is not None and not self._stopping.is_set():
            self._grpc.set_serving(True)
            logger.info("storaged_ready", extra={"address": self.address})


def _allow_files() -> None:
    """Let this process open as many files as the host allows: every array of an image is a mapped one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _position(position: meta.CatalogPosition | None) -> dict[str, Any] | None:
    return {"history": position.history, "term": position.term, "revision": position.revision} if position is not None else None


def _removal(order: meta.RemovalOrder) -> RemovalOrder:
    return RemovalOrder(
        removal_id=order.removal_id,
        kind=Removal(order.kind),
        space_id=order.space_id,
        job_id=order.job_id,
        loads=tuple(order.loads),
        reason=order.reason,
    )


def _order(order: meta.TaskOrder, space: WantedSpace, route: meta.SpaceRoute) -> orders.Order:
    read = order.manifest if order.HasField("manifest") else next((m for m in route.versions if m.version == order.version), None)
    return orders.Order(
        task_id=order.task_id,
        job_id=order.job_id,
        attempt=order.attempt,
        kind=order.kind,
        space_id=order.space_id,
        space=space.name,
        schema=space.schema,
        parts=tuple(order.parts),
        cut=order.cut,
        loads=tuple(order.loads),
        commits=tuple(order.commits),
        beside=tuple(want.job_id for want in space.versions),
        options=dict(order.options),
        version=order.version,
        indexes=indexes_from_proto(order.indexes),
        sealed=_sealed(read) if read is not None else None,
    )


def _sealed(manifest: pb.Manifest) -> orders.Sealed:
    return orders.Sealed(
        job_id=manifest.job_id,
        cut=manifest.cut,
        digest=manifest.digest,
        images={image.part: image.digest for image in manifest.images},
        totals=tuple(Total(**{field.name: getattr(total, field.name) for field in fields(Total)}) for total in manifest.totals),
    )


def _version(manifest: pb.Manifest) -> Wanted:
    totals, named = by_name(
        (t.weight_name, (t.element, t.type_id, t.part), Share(count=t.count, positive=t.positive, weight=t.weight)) for t in manifest.totals
    )
    return Wanted(
        version=manifest.version,
        job_id=manifest.job_id,
        digest=manifest.digest,
        cut=manifest.cut,
        totals=totals,
        named=named,
        images={image.part: image.digest for image in manifest.images},
        indexes=indexes_from_proto(manifest.indexes),
    )


def _task_report(progress: orders.Progress) -> meta.TaskReport:
    return meta.TaskReport(
        task_id=progress.task_id,
        attempt=progress.attempt,
        state=_STATES[progress.state],
        phase=progress.phase,
        rows_done=progress.rows_done,
        rows_total=progress.rows_total,
        cause=progress.cause,
        permanent=progress.permanent,
        totals=[pb.Total(**total) for total in progress.result.get("totals", ())],
        images=[pb.PartImage(**image) for image in progress.result.get("images", ())],
        result=pb.TaskResult(**progress.result.get("made", {})),
    )
