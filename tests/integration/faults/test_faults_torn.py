"""Truncated, altered and missing files after an unclean shutdown.

Each damaged file is detected, then rebuilt or refused by name. None is served.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from tests.kit.cluster import LocalCluster
from tests.kit.invariants import assert_settled, edges_of
from tests.kit.waiting import HANG_S, wait_until
from tests.kit.zygote import run

import asterism
from asterism import Client, Graph
from metad.store.rocksdb_store import RocksStore

WAIT_S = HANG_S
POLL_INTERVAL_S = 0.05
"""Seconds between two requests for the readiness of a daemon."""
SCHEMA = {
    "direction": "both",
    "nodes": {"n": {"weighted": True, "features": {"x": {"dtype": "float32", "shape": [64]}}}},
    "edges": {"n:to:n": {"weighted": True}},
}
NODES, EDGES = 500, 3_000
PARTS = 2
"""Partitions of a space, unless a test damages more of them."""
UNAVAILABLE_ERRORS = (asterism.Unavailable, asterism.Stale, asterism.NotFound, asterism.NotReady)

Damage = Callable[[Path], None]


def truncate(path: Path) -> None:
    """Remove the second half of a file."""
    content = path.read_bytes()
    _replace(path, content[: len(content) // 2])


def corrupt_byte(path: Path) -> None:
    """Change one byte in the first half of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 4] ^= 0x40
    _replace(path, bytes(content))


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def _replace(path: Path, content: bytes) -> None:
    path.unlink()  # the file may be a hard link; the other links stay unchanged
    path.write_bytes(content)


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(
        storageds=1,
        faults=True,
        flags={"storaged": ["--concurrent-tasks", "4"], "metad": ["--max-attempts", "1"]},
    ) as running:
        yield running


@pytest.fixture
def client(cluster: LocalCluster) -> Iterator[Client]:
    with cluster.client(timeout_s=5.0) as connected:
        yield connected
        for faults in cluster.faults.values():
            faults.set()
        cluster.wait_ready()
        spaces = [space.name for space in connected.spaces()]
        assert_settled(cluster, connected, spaces)
        for space in spaces:
            connected.drop_space(space)  # a restart in a later test would open it again


def create_filled_spaces(
    client: Client, count: int, *, first_parts: int = PARTS, build: bool = True
) -> list[Graph]:
    """Create spaces of different content, by default each with a published version.

    The first one has ``first_parts`` partitions.
    """
    graphs = []
    for number in range(count):
        name = f"s{time.time_ns()}"
        client.create_space(name, {**SCHEMA, "parts": PARTS if number else first_parts})
        fill(client.graph(name), number)
        graphs.append(client.graph(name))
    assert_jobs_finish(client, [client.submit_job(graph.space).job_id for graph in graphs if build])
    return graphs


def assert_jobs_finish(client: Client, jobs: Sequence[int]) -> None:
    assert all(client.wait(job, timeout_s=WAIT_S).state == "FINISHED" for job in jobs)


def fill(graph: Graph, seed: int) -> None:
    rng = np.random.default_rng(seed)
    load = graph.client.begin_load(graph.space)
    load.write_nodes(
        0,
        "n",
        np.arange(NODES),
        weights=rng.random(NODES),
        features={"x": rng.random((NODES, 64), np.float32)},
    )
    load.write_edges(
        1,
        "to",
        rng.integers(0, NODES, EDGES),
        rng.integers(0, NODES, EDGES),
        weights=rng.random(EDGES),
        ends_known=True,
    )
    load.commit()


def space_folder(cluster: LocalCluster, graph: Graph) -> Path:
    return (
        cluster.folder_of("storaged-0")
        / "spaces"
        / str(graph.client.describe(graph.space).space_id)
    )


def largest(paths: Iterator[Path]) -> Path:
    """Return the largest file of a pattern; some patterns match a single file."""
    return max(paths, key=lambda path: path.stat().st_size)


def readiness_mentions(cluster: LocalCluster, phrases: Sequence[str]) -> bool:
    """Return true if one readiness message of a running storaged contains all phrases."""
    assert cluster["storaged-0"].exit_status() is None, cluster["storaged-0"].tail()
    try:
        return any(
            all(phrase in line for phrase in phrases)
            for line in cluster.missing("storaged-0").split('","')
        )
    except OSError:
        return False


def wait_readiness_mentions(cluster: LocalCluster, phrases: Sequence[str]) -> None:
    """Wait until one readiness message of a running storaged contains all phrases."""
    wait_until(
        lambda: readiness_mentions(cluster, phrases),
        f"readiness names {phrases}",
        poll_interval_s=POLL_INTERVAL_S,
    )


def assert_refused(graph: Graph) -> None:
    with pytest.raises(UNAVAILABLE_ERRORS):
        edges_of(graph, "to")


def assert_write_refused(graph: Graph) -> None:
    with pytest.raises((asterism.Unavailable, asterism.Stale)):
        graph.upsert_nodes(np.arange(4), "n", weights=np.ones(4))


def query_results(graph: Graph) -> tuple[object, ...]:
    """Return all edges of the current version, and samples for a fixed seed."""
    nodes = graph.sample_nodes(50, "n", seed=3)
    neighbors = graph.sample_neighbors(np.arange(20), "to", 4, seed=3)
    return (
        edges_of(graph, "to"),
        nodes.nodes.tobytes(),
        neighbors.nodes.tobytes(),
        graph.node_features(np.arange(NODES), "x")["x"].tobytes(),
    )


IMAGE_DAMAGES: list[tuple[str, Damage]] = [
    ("n0.c0.values.bin", corrupt_byte),
    ("manifest.json", truncate),
    ("manifest.json", corrupt_byte),
    ("manifest.json", remove),
    ("e0.in.hot.bin", truncate),
    ("n0.table.hot.bin", remove),
    ("", remove),
]
"""Damage to one file of each partition but the last; the final entry removes an image."""


def test_damaged_images_are_rebuilt_to_published_digests(
    cluster: LocalCluster, client: Client
) -> None:
    graph, undamaged = create_filled_spaces(client, 2, first_parts=len(IMAGE_DAMAGES) + 1)
    expected, published = query_results(graph), client.manifest(graph.space)
    build = space_folder(cluster, graph) / "builds" / str(published.job_id)
    manifests = {path: path.read_bytes() for path in sorted(build.glob("parts/*/manifest.json"))}
    cluster.kill("storaged-0")
    intact = (build / "parts" / f"p{len(IMAGE_DAMAGES):05d}" / "manifest.json").stat()
    for part, (name, damage) in enumerate(IMAGE_DAMAGES):
        damage(build / "parts" / f"p{part:05d}" / name)
    cluster.faults["storaged-0"].set(hold_build_in=["nodes n"])
    cluster["storaged-0"].start()
    phrases = (
        f"version 1 of space {graph.space} is not served: image",
        f"p00000/{IMAGE_DAMAGES[0][0]}: mebibyte 0 does not match its checksum",
        "(parts 0, 1, 2, 3, 4, 5, 6 being rebuilt from the loads up to commit 1)",
    )
    wait_readiness_mentions(cluster, phrases)
    assert_refused(graph)
    assert len(edges_of(undamaged, "to")) == EDGES
    cluster.faults["storaged-0"].set()
    cluster.wait_ready()
    assert query_results(graph) == expected
    assert client.manifest(graph.space) == published
    assert {
        path: path.read_bytes() for path in sorted(build.glob("parts/*/manifest.json"))
    } == manifests
    assert (
        build / "parts" / f"p{len(IMAGE_DAMAGES):05d}" / "manifest.json"
    ).stat().st_mtime_ns == intact.st_mtime_ns, "a whole part was made again"
    # The rebuilt images serve an audit, an export, and the next build, which links them.
    assert_jobs_finish(
        client, [client.submit_job(graph.space, kind).job_id for kind in ("audit", "export-tables")]
    )
    graph.upsert_nodes([0], "n", weights=[1.0])
    assert graph.build(timeout_s=WAIT_S).version == 2
    assert edges_of(graph, "to") == expected[0]


def test_unrepairable_image_is_refused_with_both_causes(
    cluster: LocalCluster, client: Client
) -> None:
    graph, other = create_filled_spaces(client, 2)
    data_folder = space_folder(cluster, graph)
    expected = query_results(graph)
    # If only the loaded data is damaged, the published version is still served, and every build
    # fails.
    cluster.kill("storaged-0")
    blob = largest((data_folder / "graph").glob("*.blob"))
    original = blob.read_bytes()
    corrupt_byte(blob)
    cluster.restart("storaged-0")
    assert query_results(graph) == expected
    graph.upsert_nodes([0], "n", weights=[1.0])
    failed = client.wait(
        client.submit_job(graph.space, options={"link": "no"}).job_id, timeout_s=WAIT_S
    )
    assert (failed.state, client.describe(graph.space).version) == ("FAILED", 1)
    assert "Corrupt: block " in failed.cause
    assert "Blob CRC mismatch" in failed.cause
    # With its images damaged too, the published version cannot be rebuilt.
    cluster.kill("storaged-0")
    for image in data_folder.glob("builds/*/parts/*/e0.out.nbr.bin"):
        corrupt_byte(image)
    cluster["storaged-0"].start()
    phrases = (
        f"version 1 of space {graph.space} is not served: image",
        "e0.out.nbr.bin",
        "could not be rebuilt: Corrupt: block ",
        "Blob CRC mismatch",
    )
    wait_readiness_mentions(cluster, phrases)
    assert_refused(graph)
    assert len(edges_of(other, "to")) == EDGES
    # An operator has restored the file.
    cluster.kill("storaged-0")
    _replace(blob, original)
    cluster.restart("storaged-0")
    assert query_results(graph) == expected
    # The failed job has the damaged file in its checkpoint; a new job takes a new checkpoint.
    assert (
        client.wait(
            client.submit_job(graph.space, options={"link": "no"}).job_id, timeout_s=WAIT_S
        ).version
        == 2
    )


BUILD_DAMAGES: list[list[tuple[str, Damage]]] = [
    [
        ("parts/p00000/manifest.json", truncate),
        ("parts/p00001/e0.out.nbr.bin", corrupt_byte),
        ("parts/p00002/n0.weights.bin", remove),
        ("done/p00003.json", truncate),
        ("done/p00004.json", corrupt_byte),
    ],
    [("stat/MANIFEST-*", corrupt_byte)],
    [("stat/CURRENT", remove)],
    [("stat/*.sst", remove)],
]


def test_parts_damaged_before_publication_are_rebuilt(
    cluster: LocalCluster, client: Client
) -> None:
    graphs = create_filled_spaces(
        client, len(BUILD_DAMAGES), first_parts=len(BUILD_DAMAGES[0]), build=False
    )
    cluster.faults["storaged-0"].set(hold_build_in=["nodes n"])
    jobs = [client.submit_job(graph.space).job_id for graph in graphs]
    builds = [
        space_folder(cluster, graph) / "builds" / str(job)
        for graph, job in zip(graphs, jobs, strict=True)
    ]
    cluster.faults["metad"].set(die_before_write_of="1/version/")
    cluster.faults["storaged-0"].set()
    wait_until(
        lambda: (
            {build["state"] for build in cluster.get("storaged-0", "/status")["builds"]}
            == {"finished"}
        ),
        "every build has ended",
    )
    wait_until(lambda: cluster["metad"].exit_status() is not None, "metad has ended")
    manifests = {
        path: path.read_bytes() for build in builds for path in build.glob("parts/*/manifest.json")
    }
    assert len(manifests) == len(BUILD_DAMAGES[0]) + PARTS * (len(BUILD_DAMAGES) - 1)
    cluster.kill("storaged-0")
    for build, damages in zip(builds, BUILD_DAMAGES, strict=True):
        for pattern, damage in damages:
            damage(largest(build.glob(pattern)))
    cluster.faults["metad"].set()
    cluster["storaged-0"].start()
    cluster.restart("metad")
    assert_jobs_finish(client, jobs)
    cluster.wait_ready()
    assert {
        path: path.read_bytes() for build in builds for path in build.glob("parts/*/manifest.json")
    } == manifests
    assert [len(edges_of(graph, "to")) for graph in graphs] == [EDGES] * len(graphs)
    assert_jobs_finish(
        client, [client.submit_job(graph.space, "export-tables").job_id for graph in graphs]
    )


def test_damaged_table_fails_its_export_only(cluster: LocalCluster, client: Client) -> None:
    (graph,) = create_filled_spaces(client, 1)
    expected = query_results(graph)
    for table_file in space_folder(cluster, graph).glob("builds/*/stat/*.sst"):
        corrupt_byte(table_file)
    failed = client.wait(client.submit_job(graph.space, "export-tables").job_id, timeout_s=WAIT_S)
    assert failed.state == "FAILED"
    assert "Corrupt" in failed.cause
    assert ".sst" in failed.cause
    assert query_results(graph) == expected
    # Build all files again and share none with earlier versions.
    client.wait(client.submit_job(graph.space, options={"link": "no"}).job_id, timeout_s=WAIT_S)
    assert_jobs_finish(client, [client.submit_job(graph.space, "export-tables").job_id])


LOG_DAMAGES: list[tuple[str, Damage]] = [
    ("*.log", corrupt_byte),
    ("MANIFEST-*", corrupt_byte),
    ("MANIFEST-*", remove),
    ("CURRENT", remove),
    ("CURRENT", truncate),
]
SST_DAMAGES: list[tuple[str, Damage]] = [("*.sst", truncate), ("*.sst", remove)]
VALUE_DAMAGES: list[tuple[str, Damage]] = [
    ("*.sst", corrupt_byte),
    ("*.blob", truncate),
    ("*.blob", remove),
]
"""Damage to value files, which opening a database does not read."""


@pytest.mark.parametrize("damages", [LOG_DAMAGES, SST_DAMAGES], ids=["the log", "its files"])
def test_damaged_database_makes_only_its_space_unavailable(
    cluster: LocalCluster, client: Client, damages: list[tuple[str, Damage]]
) -> None:
    *graphs, other = create_filled_spaces(client, len(damages) + 1)
    expected = [edges_of(graph, "to") for graph in graphs]
    databases = [space_folder(cluster, graph) / "graph" for graph in graphs]
    for graph in graphs if damages is LOG_DAMAGES else ():
        fill(graph, 7)  # the checkpoint of a build has moved earlier data from the log to files
    cluster.kill("storaged-0")
    for database, (pattern, damage) in zip(databases, damages, strict=True):
        shutil.copytree(database, database.with_name("whole"))
        damage(largest(database.glob(pattern)))
    cluster["storaged-0"].start()
    for graph, database in zip(graphs, databases, strict=True):
        wait_readiness_mentions(cluster, (f"space {graph.space} cannot be opened", str(database)))
    # The damaged space must not be served in an older state or as empty.
    with ThreadPoolExecutor(2 * len(graphs)) as pool:  # each call lasts as long as its time limit
        for refused in [
            pool.submit(check, graph)
            for check in (assert_refused, assert_write_refused)
            for graph in graphs
        ]:
            refused.result()
    assert len(edges_of(other, "to")) == EDGES
    cluster.kill("storaged-0")
    for database in databases:
        shutil.rmtree(database)
        database.with_name("whole").rename(database)
    cluster.restart("storaged-0")
    assert [edges_of(graph, "to") for graph in graphs] == expected


def test_damaged_values_fail_builds_and_name_the_damage(
    cluster: LocalCluster, client: Client
) -> None:
    graphs = create_filled_spaces(client, len(VALUE_DAMAGES))
    expected = [edges_of(graph, "to") for graph in graphs]
    databases = [space_folder(cluster, graph) / "graph" for graph in graphs]
    cluster.kill("storaged-0")
    for database, (pattern, damage) in zip(databases, VALUE_DAMAGES, strict=True):
        damage(largest(database.glob(pattern)))
    cluster.restart("storaged-0")
    jobs = [client.submit_job(graph.space, options={"link": "no"}).job_id for graph in graphs]
    for job, (pattern, _) in zip(jobs, VALUE_DAMAGES, strict=True):
        failed = client.wait(job, timeout_s=WAIT_S)
        assert failed.state == "FAILED"
        assert ("block " in failed.cause and " of load " in failed.cause) or pattern[
            1:
        ] in failed.cause, failed.cause
    assert [edges_of(graph, "to") for graph in graphs] == expected
    for graph in graphs:
        client.drop_space(graph.space)  # the data that they would resume from is not usable


def test_metad_refuses_damaged_catalogs_and_names_the_folder(
    cluster: LocalCluster, client: Client, tmp_path: Path
) -> None:
    (graph,) = create_filled_spaces(client, 1)
    expected = query_results(graph)
    cluster.kill("metad")
    damages: list[tuple[str, Damage]] = [*LOG_DAMAGES, *SST_DAMAGES]
    copies = [tmp_path / str(number) for number in range(len(damages))]
    for copied, (pattern, damage) in zip(copies, damages, strict=True):
        shutil.copytree(cluster.folder_of("metad"), copied)
        if pattern == "*.sst":
            flush_catalog(copied)
        damage(largest((copied / "catalog").glob(pattern)))
    with ThreadPoolExecutor(4) as pool:
        processes = list(pool.map(run_metad, copies))
    for copied, process in zip(copies, processes, strict=True):
        assert process.returncode == 2, (copied, process.stderr)
        last_line = process.stderr.splitlines()[-1]
        assert last_line.startswith("metad: ")
        assert str(copied / "catalog") in last_line
        assert "Traceback" not in process.stderr
    assert query_results(graph) == expected
    cluster.restart("metad")
    assert query_results(graph) == expected


def run_metad(data: Path) -> subprocess.CompletedProcess[str]:
    """Run a metad on a folder until it exits."""
    ports = ("--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0")
    return run("metad", "--data", data, *ports)


def flush_catalog(data: Path) -> None:
    """Write the contents of a catalog's log to SST files."""
    RocksStore(data / "catalog").close()
