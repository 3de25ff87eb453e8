"""Simulated daemons of a metad, which runs in process or as a real daemon.

In process, a test can make its store fail.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from asterism_daemonkit.rpc.transports import LocalTransport
from asterism_model.schema import EdgeType, NodeType, Schema
from asterism_proto.methods import ACCESS, CATALOG, HEARTBEATS
from asterism_proto.transport import Transport
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from metad.app import Components
from metad.model.hosts import DaemonRole, Follower, HighestIds
from metad.settings import MetadSettings
from metad.store.memory_store import MemoryStore
from metad.store.port import MetaStore

SCHEMA = Schema(
    node_types=(NodeType(name="paper"), NodeType(name="author", weighted=True)),
    edge_types=(
        EdgeType(src_type="author", relation="writes", dst_type="paper"),
        EdgeType(src_type="paper", relation="cites", dst_type="paper"),
    ),
    parts=4,
    direction="both",
)


@dataclass(frozen=True, slots=True)
class GeneratedKey:
    """An API key with its secret."""

    key_id: str
    text: str = field(repr=False)
    hash: bytes = field(repr=False)


def generate_api_key() -> GeneratedKey:
    """Return a random API key."""
    key_id, secret = secrets.token_urlsafe(9), secrets.token_urlsafe(32)
    return GeneratedKey(key_id, f"ak_{key_id}_{secret}", hashlib.sha256(secret.encode()).digest())


class MetadClient:
    """Calls of clients and daemons to a metad."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def ask(self, name: str, request: Any) -> Any:
        """Call a method of the catalog service."""
        return self._transport.call(CATALOG[name], request, 10.0)

    def access(self, name: str, request: Any) -> Any:
        """Call a method of the access service."""
        return self._transport.call(ACCESS[name], request, 10.0)

    def heartbeat(
        self,
        uuid: str,
        *tasks: metad_pb.TaskReport,
        incarnation: int = 1,
        role: int = metad_pb.STORAGED,
        **fields: Any,
    ) -> metad_pb.HeartbeatReply:
        """Send the heartbeat of a daemon."""
        request = metad_pb.HeartbeatRequest(
            role=cast(metad_pb.Role, role),
            uuid=uuid,
            incarnation=incarnation,
            address=f"{uuid}:9779",
            tasks=tasks,
            **fields,
        )
        return cast(
            metad_pb.HeartbeatReply, self._transport.call(HEARTBEATS["heartbeat"], request, 10.0)
        )

    def poll(
        self,
        uuid: str,
        *,
        known_revision: int = 0,
        wait_s: float = 0.0,
        incarnation: int = 1,
        role: int = metad_pb.STORAGED,
        **fields: Any,
    ) -> metad_pb.PollReply:
        """Poll the desired state of a daemon."""
        request = metad_pb.PollRequest(
            role=cast(metad_pb.Role, role),
            uuid=uuid,
            incarnation=incarnation,
            known_revision=known_revision,
            wait_s=wait_s,
            **fields,
        )
        return cast(metad_pb.PollReply, self._transport.call(HEARTBEATS["poll"], request, 10.0))

    def report(self, name: str, request: Any) -> Any:
        """Call a method of the daemons' service."""
        return self._transport.call(HEARTBEATS[name], request, 10.0)

    def find_dead_loads(self, uuid: str, *loads: int, space_id: int = 1) -> list[int]:
        """Return the loads of a storaged with blocks that may be removed."""
        request = metad_pb.FindDeadLoadsRequest(uuid=uuid, space_id=space_id, loads=loads)
        return list(
            cast(
                metad_pb.FindDeadLoadsReply,
                self._transport.call(HEARTBEATS["find_dead_loads"], request, 10.0),
            ).loads
        )

    def report_inventory(
        self, uuid: str, spaces: Sequence[metad_pb.InventorySpace], **fields: Any
    ) -> None:
        """Report the inventory of a storaged."""
        self._transport.call(
            HEARTBEATS["report_inventory"],
            metad_pb.Inventory(uuid=uuid, spaces=spaces, **fields),
            10.0,
        )

    def create(
        self, name: str = "graph", schema: Schema = SCHEMA, *, if_not_exists: bool = False
    ) -> common_pb.Space:
        """Create a graph space."""
        return cast(
            common_pb.Space,
            self.ask(
                "create_space",
                metad_pb.CreateSpaceRequest(
                    name=name, schema=schema.to_proto(), if_not_exists=if_not_exists
                ),
            ),
        )

    def begin(
        self, space: str = "graph", *, resume_key: str = "", source: str = "test"
    ) -> metad_pb.Load:
        """Begin a load."""
        return cast(
            metad_pb.Load,
            self.ask(
                "begin_load",
                metad_pb.BeginLoadRequest(space=space, source=source, resume_key=resume_key),
            ),
        )

    def register(
        self, load: metad_pb.Load, *chunks: metad_pb.Chunk, written: Sequence[int] = ()
    ) -> list[metad_pb.Chunk]:
        """Register chunks and return them with their base ids."""
        return list(
            self.ask(
                "register_chunks",
                metad_pb.RegisterChunksRequest(
                    load_id=load.load_id, chunks=chunks, written=written
                ),
            ).chunks
        )

    def commit(self, load: metad_pb.Load, *written: int) -> metad_pb.Load:
        """Commit a load; hosts that must be sealed first hold none of its blocks."""
        request = metad_pb.CommitLoadRequest(load_id=load.load_id, written=written)
        committed = cast(metad_pb.Load, self.ask("commit_load", request))
        if committed.unsealed_hosts:
            request.seals.extend(
                metad_pb.HostSeal(host=host, number=committed.seal_number)
                for host in committed.unsealed_hosts
            )
            committed = cast(metad_pb.Load, self.ask("commit_load", request))
        return committed

    def load(self, space: str = "graph") -> int:
        """Begin and commit a load; return its commit number."""
        return self.commit(self.begin(space)).commit

    def submit(self, space: str = "graph") -> common_pb.Job:
        """Submit a build."""
        return cast(
            common_pb.Job,
            self.ask("submit_job", metad_pb.SubmitJobRequest(space=space, kind="build")),
        )

    def job(self, job_id: int) -> common_pb.Job:
        """Return the current state of a job."""
        return cast(common_pb.Job, self.ask("get_job", metad_pb.JobRequest(job_id=job_id)))

    def build(self, *uuids: str, incarnation: int = 1) -> None:
        """Let the storageds finish all builds assigned to them."""
        for uuid in uuids:
            self.heartbeat(
                uuid,
                *(
                    finished_report(order)
                    for order in self.poll(uuid, incarnation=incarnation).task_assignments
                ),
                incarnation=incarnation,
            )


class InProcessMetad(MetadClient):
    """A metad in this process, with a clock that the test controls."""

    def __init__(
        self,
        store: MetaStore | None = None,
        *,
        uuid: str = "m1",
        now_ms: int = 1_700_000_000_000,
        confirmed: bool = True,
        **settings: Any,
    ) -> None:
        self.store = store or MemoryStore()
        self.now_ms = now_ms
        self.components = Components(
            MetadSettings(**settings),
            store=self.store,
            uuid=uuid,
            clock=lambda: self.now_ms,
            generate_api_key=generate_api_key,
        )
        for host in (
            self.components.cluster.online(DaemonRole.STORAGED) if confirmed else ()
        ):  # as if each had confirmed the catalog; leases do not change
            self.components.followers.record_follower(
                Follower(
                    uuid=host.uuid, role=host.role, cluster="", position=None, highest=HighestIds()
                )
            )
        self.handlers = {
            **self.components.catalog_handlers,
            **self.components.access_handlers,
            **self.components.heartbeats_handlers,
        }
        super().__init__(LocalTransport(self.handlers))

    def advance_clock(self, seconds: float) -> None:
        """Advance the clock, and run the maintenance that is due."""
        self.now_ms += int(seconds * 1000)
        self.components.maintenance.tick()


def edge_chunk(index: int, rows: int = 10, digest: str = "d", type_id: int = 0) -> metad_pb.Chunk:
    """Return a chunk of edges."""
    return metad_pb.Chunk(
        index=index, element=common_pb.EDGE, type_id=type_id, rows=rows, digest=digest
    )


def node_chunk(index: int, rows: int = 10, digest: str = "d", type_id: int = 0) -> metad_pb.Chunk:
    """Return a chunk of nodes."""
    return metad_pb.Chunk(
        index=index, element=common_pb.NODE, type_id=type_id, rows=rows, digest=digest
    )


def finished_report(
    order: metad_pb.TaskAssignment, *, weight_name: str = ""
) -> metad_pb.TaskReport:
    """Return a report of a finished task: three nodes and two edges per partition.

    The copies of the edges agree.
    """
    totals = []
    for part in order.parts:
        totals += [
            common_pb.PartitionStats(
                part=part, element=common_pb.NODE, type_id=t, count=3, positive=3, weight=1.5
            )
            for t in range(2)
        ]
        totals += [
            common_pb.PartitionStats(
                part=part,
                element=common_pb.EDGE,
                type_id=t,
                count=2,
                positive=2,
                weight=2,
                count_in=2,
                mix_out=5,
                mix_in=5,
            )
            for t in range(2)
        ]
    for total in totals:
        total.weight_name = weight_name
    return metad_pb.TaskReport(
        task_id=order.task_id,
        attempt=order.attempt,
        state=common_pb.FINISHED,
        rows_done=10,
        rows_total=10,
        totals=totals,
        images=[common_pb.PartImage(part=part, digest=f"image-{part}") for part in order.parts],
    )
