"""Daemons that beat by hand, at a metad without doors over a store that a test can take away, or at
a real one's doors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from asterism_daemonkit.calls import LocalTransport
from asterism_model.schema import EdgeType, NodeType, Schema
from asterism_proto.methods import CATALOG, HEARTBEATS
from asterism_proto.transport import Transport
from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.v1 import metad_pb2 as mpb
from metad.app import Components
from metad.model.hosts import Follower, HighestIds, Role
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


class MetadClient:
    """What clients and daemons ask of a metad."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def ask(self, name: str, request: Any) -> Any:
        """A call of the catalog."""
        return self._transport.call(CATALOG[name], request, 10.0)

    def heartbeat(
        self,
        uuid: str,
        *tasks: mpb.TaskReport,
        incarnation: int = 1,
        role: int = mpb.STORAGED,
        **fields: Any,
    ) -> mpb.BeatReply:
        """A daemon's word."""
        request = mpb.BeatRequest(
            role=cast(mpb.Role, role),
            uuid=uuid,
            incarnation=incarnation,
            address=f"{uuid}:9779",
            tasks=tasks,
            **fields,
        )
        return cast(mpb.BeatReply, self._transport.call(HEARTBEATS["beat"], request, 10.0))

    def poll(
        self,
        uuid: str,
        *,
        known_revision: int = 0,
        wait_s: float = 0.0,
        incarnation: int = 1,
        role: int = mpb.STORAGED,
        **fields: Any,
    ) -> mpb.PollReply:
        """The desired state of a daemon."""
        request = mpb.PollRequest(
            role=cast(mpb.Role, role),
            uuid=uuid,
            incarnation=incarnation,
            known_revision=known_revision,
            wait_s=wait_s,
            **fields,
        )
        return cast(mpb.PollReply, self._transport.call(HEARTBEATS["poll"], request, 10.0))

    def report(self, name: str, request: Any) -> Any:
        """A call of the daemons' service."""
        return self._transport.call(HEARTBEATS[name], request, 10.0)

    def find_dead_loads(self, uuid: str, *loads: int, space_id: int = 1) -> list[int]:
        """Which of the loads that a storaged holds blocks of may go."""
        request = mpb.LoadsHeld(uuid=uuid, space_id=space_id, loads=loads)
        return list(
            cast(
                mpb.DeadLoads, self._transport.call(HEARTBEATS["find_dead_loads"], request, 10.0)
            ).loads
        )

    def report_inventory(
        self, uuid: str, spaces: Sequence[mpb.InventorySpace], **fields: Any
    ) -> None:
        """Report what a storaged holds."""
        self._transport.call(
            HEARTBEATS["report_inventory"], mpb.Inventory(uuid=uuid, spaces=spaces, **fields), 10.0
        )

    def create(
        self, name: str = "graph", schema: Schema = SCHEMA, *, if_not_exists: bool = False
    ) -> pb.Space:
        """A space."""
        return cast(
            pb.Space,
            self.ask(
                "create_space",
                mpb.CreateSpaceRequest(
                    name=name, schema=schema.to_proto(), if_not_exists=if_not_exists
                ),
            ),
        )

    def begin(
        self, space: str = "graph", *, resume_key: str = "", source: str = "test"
    ) -> mpb.Load:
        """A load."""
        return cast(
            mpb.Load,
            self.ask(
                "begin_load",
                mpb.BeginLoadRequest(space=space, source=source, resume_key=resume_key),
            ),
        )

    def register(
        self, load: mpb.Load, *chunks: mpb.Chunk, written: Sequence[int] = ()
    ) -> list[mpb.Chunk]:
        """Chunks with their bases."""
        return list(
            self.ask(
                "register_chunks",
                mpb.RegisterChunksRequest(load_id=load.load_id, chunks=chunks, written=written),
            ).chunks
        )

    def commit(self, load: mpb.Load, *written: int) -> mpb.Load:
        """A load's commit; hosts that have to be sealed before hold nothing of it."""
        request = mpb.CommitLoadRequest(load_id=load.load_id, written=written)
        committed = cast(mpb.Load, self.ask("commit_load", request))
        if committed.unsealed:
            request.seals.extend(
                mpb.HostSeal(host=host, number=committed.seal) for host in committed.unsealed
            )
            committed = cast(mpb.Load, self.ask("commit_load", request))
        return committed

    def load(self, space: str = "graph") -> int:
        """A load that is begun and committed; its commit number."""
        return self.commit(self.begin(space)).commit

    def submit(self, space: str = "graph") -> pb.Job:
        """A build."""
        return cast(pb.Job, self.ask("submit_job", mpb.SubmitJobRequest(space=space, kind="build")))

    def job(self, job_id: int) -> pb.Job:
        """A job as it is."""
        return cast(pb.Job, self.ask("get_job", mpb.JobRequest(job_id=job_id)))

    def build(self, *uuids: str, incarnation: int = 1) -> None:
        """Let the storageds finish whatever they are ordered to build."""
        for uuid in uuids:
            self.heartbeat(
                uuid,
                *(
                    finished_report(order)
                    for order in self.poll(uuid, incarnation=incarnation).orders
                ),
                incarnation=incarnation,
            )


class InProcessMetad(MetadClient):
    """A metad that is asked in process; its time is a number that the test moves."""

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
            MetadSettings(**settings), store=self.store, uuid=uuid, clock=lambda: self.now_ms
        )
        for host in (
            self.components.cluster.online(Role.STORAGED) if confirmed else ()
        ):  # as if each had confirmed the catalog; its lease is as it was
            self.components.followers.record_follower(
                Follower(
                    uuid=host.uuid, role=host.role, cluster="", position=None, highest=HighestIds()
                )
            )
        super().__init__(
            LocalTransport(
                {**self.components.catalog_handlers, **self.components.heartbeats_handlers}
            )
        )

    def advance_clock(self, seconds: float) -> None:
        """Time goes by, and upkeep does what is due."""
        self.now_ms += int(seconds * 1000)
        self.components.maintenance.tick()


def edge_chunk(index: int, rows: int = 10, digest: str = "d", type_id: int = 0) -> mpb.Chunk:
    """A chunk of edges."""
    return mpb.Chunk(index=index, element=pb.EDGE, type_id=type_id, rows=rows, digest=digest)


def node_chunk(index: int, rows: int = 10, digest: str = "d", type_id: int = 0) -> mpb.Chunk:
    """A chunk of nodes."""
    return mpb.Chunk(index=index, element=pb.NODE, type_id=type_id, rows=rows, digest=digest)


def finished_report(order: mpb.TaskOrder, *, weight_name: str = "") -> mpb.TaskReport:
    """A storaged's word that an order is done: three nodes and two edges in each part, copies
    agreeing.
    """
    totals = []
    for part in order.parts:
        totals += [
            pb.Total(part=part, element=pb.NODE, type_id=t, count=3, positive=3, weight=1.5)
            for t in range(2)
        ]
        totals += [
            pb.Total(
                part=part,
                element=pb.EDGE,
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
    return mpb.TaskReport(
        task_id=order.task_id,
        attempt=order.attempt,
        state=pb.FINISHED,
        rows_done=10,
        rows_total=10,
        totals=totals,
        images=[pb.PartImage(part=part, digest=f"image-{part}") for part in order.parts],
    )
