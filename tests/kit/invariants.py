"""What holds of a cluster whatever went wrong in it, looked at while it happens and after it.

`ConsistencyMonitor` asks the same questions of every version that it sees, from the start to the
end of a test: an answer that differs from the first one of its version is torn, mixed or changed.
`assert_settled` is what is left when all is over."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from types import TracebackType
from typing import Self

import numpy as np

import asterism
from asterism import Client, Graph
from asterism.records.versions import VersionInfo
from tests.kit.cluster import LocalCluster
from tests.kit.task_processes import find_builds, name_of
from tests.kit.waiting import HANG_S, wait_until

MAX_AUDIT_TV = 1e-9
"""Total variation between a published law and its weights."""
_INTERVAL_S = 0.05


def edges_of(graph: Graph, etype: str, *, version: int | None = None) -> list[tuple[int, int, int]]:
    """(src, dst, edge id) of every edge of a version, sorted."""
    batches = [
        np.stack((batch.src, batch.dst, batch.edge_ids), axis=1)
        for batch in graph.scan_edges(etype, version=version)
    ]
    return sorted(map(tuple, np.concatenate(batches).tolist())) if batches else []


class ConsistencyMonitor:
    """Draws from a space all the time, and remembers what each version said.

    Parameters
    ----------
    cluster : LocalCluster
    space : str
        With nodes and edges of positive weight.
    """

    def __init__(self, cluster: LocalCluster, space: str) -> None:
        self._client = cluster.client(timeout_s=5.0)
        self._graph = self._client.graph(space)
        self._space = space
        self._results: dict[int, tuple[bytes, ...]] = {}
        self._manifests: dict[int, VersionInfo] = {}
        self._newest = 0
        self._faults: list[str] = []
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="witness", daemon=True)
        self.answered_count = 0
        """Requests that were answered."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopped.set()
        self._thread.join(HANG_S)
        assert self._faults == []

    def _run(self) -> None:
        while not self._stopped.wait(_INTERVAL_S):
            try:
                self._check_once()
            except (
                asterism.Unavailable,
                asterism.NotReady,
                asterism.NotFound,
                asterism.Stale,
                asterism.Busy,
            ):
                continue  # an error that says so is no wrong answer
            except Exception as error:
                self._faults.append(repr(error))
                return

    def _check_once(self) -> None:
        edges = self._graph.sample_edges(200, seed=7)
        neighbors = self._graph.sample_neighbors(
            edges.src[:50], self._graph.schema.edge_types[0].name, 3, seed=8, version=edges.version
        )
        response = tuple(
            np.ascontiguousarray(array).tobytes()
            for array in (edges.src, edges.dst, edges.edge_ids, neighbors.nodes)
        )
        if edges.version < self._newest:
            self._faults.append(f"version {edges.version} was answered after {self._newest}")
        if self._results.setdefault(edges.version, response) != response:
            self._faults.append(f"version {edges.version} gave two answers to one request")
        manifest = self._client.manifest(self._space, edges.version)
        if self._manifests.setdefault(edges.version, manifest) != manifest:
            self._faults.append(f"the manifest of version {edges.version} has changed")
        self._newest = max(self._newest, edges.version)
        self.answered_count += 1


def assert_settled(cluster: LocalCluster, client: Client, spaces: Iterable[str] = ()) -> None:
    """Check what must hold once nothing is under way: jobs, versions, processes, files."""
    active_jobs = [job for job in client.jobs() if job.state in ("QUEUE", "RUNNING")]
    assert active_jobs == [], "a job goes on for ever"
    for space in spaces:
        for version in client.versions(space):
            manifest = client.manifest(space, version.version)
            assert manifest.digest == version.digest
            assert max(total.audit_tv for total in manifest.totals) <= MAX_AUDIT_TV, manifest
    wait_until(
        lambda: _find_leftovers(cluster, client) == [],
        lambda: f"nothing is left: {_find_leftovers(cluster, client)}",
        poll_interval_s=0.05,
    )


def _find_leftovers(cluster: LocalCluster, client: Client) -> list[str]:
    try:
        return _list_leftovers(cluster, client)
    except FileNotFoundError as error:  # it goes while it is looked at
        return [repr(error)]


def _list_leftovers(cluster: LocalCluster, client: Client) -> list[str]:
    """Processes and files that nobody needs."""
    live_jobs = {
        str(info.space_id): {str(version.job_id) for version in client.versions(info.name)}
        for info in client.spaces()
    }
    leftovers = [f"process {process.pid}: {name_of(process)}" for process in find_builds(cluster)]
    for name in cluster.daemons:
        if name.startswith("storaged"):
            spaces = cluster.folder_of(name) / "spaces"
            for space in spaces.iterdir() if spaces.is_dir() else ():
                if space.name not in live_jobs:
                    leftovers.append(str(space))
                    continue
                leftovers += [str(path) for path in (space / "checkpoints").glob("*")]
                leftovers += [
                    str(path)
                    for path in (space / "builds").glob("*")
                    if path.name not in live_jobs[space.name]
                ]
                leftovers += [str(path) for path in (space / "builds").glob("*/scratch")]
                leftovers += [
                    str(path)
                    for pattern in ("*.making", "*.tmp", "spool-*", "stat-runs/*")
                    for path in space.rglob(pattern)
                ]
    return leftovers
