"""What holds of a cluster whatever went wrong in it, looked at while it happens and after it.

`Witness` asks the same questions of every version that it sees, from the start to the end of a test: an answer that
differs from the first one of its version is torn, mixed or changed. `settled` is what is left when all is over.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Self

import numpy as np

import asterism
from asterism import Client, Graph
from asterism.versions import VersionInfo
from tests.kit.cluster import LocalCluster
from tests.kit.task_processes import builds, name_of
from tests.kit.waiting import HANG_S

AUDITED = 1e-9
"""Total variation between a published law and its weights."""
LEFT_S = HANG_S
_EVERY_S = 0.05


def edges_of(graph: Graph, etype: str, *, version: int | None = None) -> list[tuple[int, int, int]]:
    """(src, dst, edge id) of every edge of a version, sorted."""
    found = [np.stack((batch.src, batch.dst, batch.edge_ids), axis=1) for batch in graph.scan_edges(etype, version=version)]
    return sorted(map(tuple, np.concatenate(found).tolist())) if found else []


class Witness:
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
        self._answers: dict[int, tuple[bytes, ...]] = {}
        self._manifests: dict[int, VersionInfo] = {}
        self._newest = 0
        self._faults: list[str] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="witness", daemon=True)
        self.answered = 0
        """Requests that were answered."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._over.set()
        self._thread.join(HANG_S)
        assert self._faults == []

    def _run(self) -> None:
        while not self._over.wait(_EVERY_S):
            try:
                self._ask()
            except (asterism.Unavailable, asterism.NotReady, asterism.NotFound, asterism.Stale, asterism.Busy):
                continue  # an error that says so is no wrong answer
            except Exception as error:
                self._faults.append(repr(error))
                return

    def _ask(self) -> None:
        edges = self._graph.sample_edges(200, seed=7)
        near = self._graph.sample_neighbors(edges.src[:50], self._graph.schema.edge_types[0].name, 3, seed=8, version=edges.version)
        answer = tuple(np.ascontiguousarray(array).tobytes() for array in (edges.src, edges.dst, edges.edge_ids, near.nodes))
        if edges.version < self._newest:
            self._faults.append(f"version {edges.version} was answered after {self._newest}")
        if self._answers.setdefault(edges.version, answer) != answer:
            self._faults.append(f"version {edges.version} gave two answers to one request")
        manifest = self._client.manifest(self._space, edges.version)
        if self._manifests.setdefault(edges.version, manifest) != manifest:
            self._faults.append(f"the manifest of version {edges.version} has changed")
        self._newest = max(self._newest, edges.version)
        self.answered += 1


def settled(cluster: LocalCluster, client: Client, spaces: Iterable[str] = ()) -> None:
    """Check what must hold once nothing is under way: jobs, versions, processes, files."""
    unfinished = [job for job in client.jobs() if job.state in ("QUEUE", "RUNNING")]
    assert unfinished == [], "a job goes on for ever"
    for space in spaces:
        for version in client.versions(space):
            manifest = client.manifest(space, version.version)
            assert manifest.digest == version.digest
            assert max(total.audit_tv for total in manifest.totals) <= AUDITED, manifest
    end = time.monotonic() + LEFT_S
    while (left := _looked(cluster, client)) and time.monotonic() < end:
        time.sleep(0.05)
    assert left == [], "this should have gone"


def _looked(cluster: LocalCluster, client: Client) -> list[str]:
    try:
        return _left_over(cluster, client)
    except FileNotFoundError as error:  # it goes while it is looked at
        return [repr(error)]


def _left_over(cluster: LocalCluster, client: Client) -> list[str]:
    """Processes and files that nobody needs."""
    kept = {str(described.space_id): {str(version.job_id) for version in client.versions(described.name)} for described in client.spaces()}
    left = [f"process {process.pid}: {name_of(process)}" for process in builds(cluster)]
    for name in cluster.daemons:
        if name.startswith("storaged"):
            spaces = cluster.folder_of(name) / "spaces"
            for space in spaces.iterdir() if spaces.is_dir() else ():
                if space.name not in kept:
                    left.append(str(space))
                    continue
                left += [str(path) for path in (space / "checkpoints").glob("*")]
                left += [str(path) for path in (space / "builds").glob("*") if path.name not in kept[space.name]]
                left += [str(path) for path in (space / "builds").glob("*/scratch")]
                left += [str(path) for pattern in ("*.making", "*.tmp", "spool-*", "stat-runs/*") for path in space.rglob(pattern)]
    return left
