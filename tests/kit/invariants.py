"""Invariants of a cluster under any faults, checked during a test and after it.

`ConsistencyMonitor` sends the same requests to every version throughout a test. A result that
differs from the first one of its version is torn, mixed or changed. `assert_settled` checks the
final state.
"""

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
"""Largest total variation distance between a published distribution and its weights."""
_INTERVAL_S = 0.05


def edges_of(graph: Graph, etype: str, *, version: int | None = None) -> list[tuple[int, int, int]]:
    """Return (src, dst, edge id) of every edge of a version, sorted."""
    batches = [
        np.stack((batch.src, batch.dst, batch.edge_ids), axis=1)
        for batch in graph.scan_edges(etype, version=version)
    ]
    return sorted(map(tuple, np.concatenate(batches).tolist())) if batches else []


class ConsistencyMonitor:
    """Samples from a graph space continuously, and compares results of each version.

    Parameters
    ----------
    cluster : LocalCluster
    space : str
        Graph space with nodes and edges of positive weight.
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
        """Number of requests with a result."""

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
                continue  # a typed error is not a wrong result
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
    """Check the state of jobs, versions, processes and files once nothing is under way."""
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
    except FileNotFoundError as error:  # removed during the scan
        return [repr(error)]


def _list_leftovers(cluster: LocalCluster, client: Client) -> list[str]:
    """Return processes and files that are no longer needed."""
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
