"""Incremental builds on real processes: unchanged units are shared and counted in the job.

Shared files survive the removal of the version that they came from.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.kit.cluster import LocalCluster
from tests.kit.waiting import wait_until

from asterism import Client

FLAGS = {
    "metad": [
        "--keep-versions",
        "1",
        "--retire-after-s",
        "0.2",
        "--lease-s",
        "2",
        "--heartbeat-interval-s",
        "0.2",
    ],
    "storaged": ["--sweep-interval-s", "0.5", "--quarantine-grace-s", "0"],
}
SCHEMA = {
    "parts": 2,
    "direction": "both",
    "nodes": {"n": {"weighted": True, "features": {"at": "int64"}}},
    "edges": {"n:to:n": {"weighted": True}, "n:by:n": {}},
}
NODES = 500
IDS = np.arange(NODES)


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(storageds=2, flags=FLAGS) as running:
        yield running


@pytest.fixture(scope="module")
def client(cluster: LocalCluster) -> Iterator[Client]:
    with cluster.client() as connected:
        yield connected


def images(cluster: LocalCluster, space_id: int, job_id: int) -> dict[tuple[str, str], Path]:
    paths = cluster.folder.glob(f"storaged-*/spaces/{space_id}/builds/{job_id}/parts/*/*.bin")
    return {(path.parent.name, path.name): path for path in paths}


def job_view(cluster: LocalCluster, job_id: int) -> dict[str, Any]:
    return dict(cluster.get("metad", f"/api/v1/jobs/{job_id}"))


def test_rebuild_links_unchanged_files_and_outlives_its_source(
    cluster: LocalCluster, client: Client
) -> None:
    space = client.create_space("shared", SCHEMA)
    graph = client.graph("shared")
    rng = np.random.default_rng(1)
    graph.upsert_nodes(IDS, "n", weights=rng.random(NODES, np.float32), features={"at": IDS})
    graph.upsert_edges(IDS, (IDS + 1) % NODES, "to", weights=rng.random(NODES, np.float32))
    first = graph.build()
    assert [
        (u.part, u.linked) for task in first.tasks if task.result for u in task.result.units
    ] == [(0, 0), (1, 0)]
    before = images(cluster, space.space_id, first.job_id)
    inodes = {key: path.stat().st_ino for key, path in before.items()}
    sampled = graph.sample_nodes(200, "n", seed=3)

    graph.upsert_edges(IDS, (IDS + 7) % NODES, "by")
    second = graph.build()
    units = sorted(
        (u for task in second.tasks if task.result for u in task.result.units), key=lambda u: u.part
    )
    assert [(u.part, u.linked, u.built) for u in units] == [(0, 6, 3), (1, 6, 3)]
    assert all(u.bytes_linked > u.bytes_built > 0 for u in units)
    unit_views = [
        view
        for task in job_view(cluster, second.job_id)["tasks"]
        for view in task["result"]["units"]
    ]
    assert sorted(
        (view["part"], view["linked"], view["built"], view["bytes_linked"]) for view in unit_views
    ) == [(u.part, u.linked, u.built, u.bytes_linked) for u in units]
    after = images(cluster, space.space_id, second.job_id)
    shared = {key for key, path in after.items() if inodes.get(key) == path.stat().st_ino}
    assert {name for _, name in shared} >= {
        "n0.weights.bin",
        "n0.c0.values.bin",
        "e0.out.nbr.bin",
        "e0.in.hot.bin",
    }
    assert not any(name.startswith("e1.") for _, name in shared)

    wait_until(  # metad keeps one version
        lambda: not any(path.exists() for path in before.values()), "the older version is gone"
    )
    for name in ("storaged-0", "storaged-1"):
        cluster.kill(name)  # the restart verifies every byte of the images
        cluster.restart(name)
    cluster.wait_ready()
    resampled = graph.sample_nodes(200, "n", seed=3)
    assert resampled.version == second.version
    assert np.array_equal(resampled.nodes, sampled.nodes)
    unlinked_job = client.wait(client.submit_job("shared", options={"link": "no"}).job_id)
    assert [
        (u.linked, u.built) for task in unlinked_job.tasks if task.result for u in task.result.units
    ] == [(0, 9), (0, 9)]
    assert not any(
        key in after and path.samefile(after[key])
        for key, path in images(cluster, space.space_id, unlinked_job.job_id).items()
        if after[key].exists()
    )
    neighbors = graph.neighbors(IDS[:50], "by")
    assert set(np.asarray(neighbors.nodes).tolist()) == set(((IDS[:50] + 7) % NODES).tolist())
