"""A catalog of ten thousand jobs and a graph space of a thousand partitions.

It has a real metad on its real store, the pages of a graphd, and storageds with simulated
heartbeats.
"""

from __future__ import annotations

import time
from pathlib import Path

from asterism_daemonkit.rpc.transports import LocalTransport
from asterism_model.schema import EdgeType, NodeType, Schema
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from graphd.app import Graphd
from graphd.settings import GraphdSettings
from metad.app import Metad
from metad.model.ids import HostId, JobId, SpaceId, TaskId
from metad.model.jobs import Job, JobState, Task
from metad.settings import MetadSettings
from metad.store import keys
from metad.store.rocksdb_store import RocksStore
from metad.wire import record_encoding
from tests.kit.metad import MetadClient, finished_report

JOBS, PARTS, HOSTS = 10_000, 1_000, 8
SCHEMA = Schema(
    node_types=(NodeType(name="author", weighted=True), NodeType(name="paper")),
    edge_types=(
        EdgeType(src_type="author", relation="writes", dst_type="paper", weighted=True),
        EdgeType(src_type="paper", relation="cites", dst_type="paper"),
    ),
    parts=PARTS,
)
FAILED_CAUSE = (
    "task 7 on s1, attempt 3: <b>part 12</b>: the disk is full; free some and recover the job"
)
"""Text with characters that would be markup if they were not escaped."""


class LargeCatalog:
    """The large catalog, with a graphd that serves its pages.

    Parameters
    ----------
    folder : Path
    """

    def __init__(self, folder: Path) -> None:
        self._settings = MetadSettings(
            data=folder,
            listen="127.0.0.1:0",
            http_listen="127.0.0.1:0",
            stop_grace_s=1,
            lease_s=500,
        )
        first = self._start_metad()
        counter = self._send_heartbeats(first)
        space = counter.create("wide", SCHEMA)
        counter.load("wide")
        job = counter.submit("wide")
        counter.build(*self.hosts)
        assert counter.job(job.job_id).state == common_pb.FINISHED
        first.stop()
        _write_jobs(folder, space.space_id)
        self.metad = self._start_metad()
        self.metad_client = self._send_heartbeats(self.metad)
        to_metad = LocalTransport(self.metad.handlers)
        # It compiles no kernels and receives no change feed: pages query metad.
        self.graphd = Graphd(
            GraphdSettings(listen="127.0.0.1:0", http_listen="127.0.0.1:0", stop_grace_s=1),
            to_metad,
            lambda *_: to_metad,
        )
        self.graphd.open_ports()
        self.address = f"http://127.0.0.1:{self.graphd.http_port}"

    @property
    def hosts(self) -> list[str]:
        """uuids of the storageds, in order."""
        return [f"s{i}" for i in range(HOSTS)]

    def close(self) -> None:
        """Stop both daemons."""
        self.graphd.stop()
        self.metad.stop()

    def _start_metad(self) -> Metad:
        metad = Metad(self._settings)
        metad.start()
        return metad

    def _send_heartbeats(self, metad: Metad) -> MetadClient:
        counter = MetadClient(LocalTransport(metad.handlers))
        for index, uuid in enumerate(self.hosts):
            counter.heartbeat(uuid, free_bytes=(index + 1) << 38, held_bytes=(index + 1) << 33)
        return counter


def _write_jobs(folder: Path, space_id: int) -> None:
    """Write the jobs into metad's store."""
    store = RocksStore(folder / "catalog")
    now_ms = int(time.time() * 1000)
    changes: dict[bytes, bytes | None] = {}
    for job_id in range(2, JOBS + 1):
        state = (
            JobState.FAILED
            if job_id % 50 == 0
            else JobState.STOPPED
            if job_id % 333 == 0
            else JobState.FINISHED
        )
        ended_ms = now_ms - (JOBS - job_id) * 30_000
        task = Task(
            task_id=TaskId(job_id + HOSTS),
            host=HostId(f"s{job_id % HOSTS}"),
            parts=tuple(range(job_id % HOSTS, PARTS, HOSTS)),
            state=state,
            attempt=3 if state is JobState.FAILED else 1,
            rows_done=job_id * 100,
            rows_total=job_id * 100,
            causes=(FAILED_CAUSE,) * 3 if state is JobState.FAILED else (),
            started_ms=ended_ms - 20_000,
            finished_ms=ended_ms,
        )
        job = Job(
            job_id=JobId(job_id),
            space_id=SpaceId(space_id),
            space="wide",
            kind="audit" if job_id % 3 else "compact",
            watermark=1,
            paired=(),
            tasks=(task,),
            submitted_ms=ended_ms - 25_000,
            target_version=1 if job_id % 3 else 0,
            state=state,
            started_ms=ended_ms - 20_000,
            finished_ms=ended_ms,
            cause=FAILED_CAUSE if state is JobState.FAILED else "",
        )
        changes[keys.job_key(job_id)] = record_encoding.encode_job(job)
    changes |= {
        keys.NEXT_JOB: record_encoding.encode_number(JOBS + 1),
        keys.NEXT_TASK: record_encoding.encode_number(JOBS + HOSTS + 1),
    }
    store.write(changes)
    store.close()


def finish_tasks(counter: MetadClient, *uuids: str) -> None:
    """Let storageds finish their assigned tasks."""
    for uuid in uuids:
        counter.heartbeat(
            uuid, *(finished_report(order) for order in counter.poll(uuid).task_assignments)
        )


def report_running(
    counter: MetadClient, uuid: str, *, done: int, total: int
) -> list[metad_pb.TaskAssignment]:
    """Report the assigned tasks of a storaged as running."""
    task_orders = list(counter.poll(uuid).task_assignments)
    counter.heartbeat(
        uuid,
        *(
            metad_pb.TaskReport(
                task_id=o.task_id,
                attempt=o.attempt,
                state=common_pb.RUNNING,
                phase="sweep",
                rows_done=done,
                rows_total=total,
            )
            for o in task_orders
        ),
    )
    return task_orders
