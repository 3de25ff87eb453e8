"""Files that are torn, altered or gone after an unclean end: each is found out, and made again or refused by its name, and none is served."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from tests.kit.cluster import LocalCluster
from tests.kit.invariants import edges_of, settled
from tests.kit.waiting import HANG_S

import asterism
from asterism import Client, Graph
from metad.store.rocks import RocksStore

WAIT_S = HANG_S
SCHEMA = {
    "parts": 8,
    "direction": "both",
    "nodes": {"n": {"weighted": True, "features": {"x": {"dtype": "float32", "shape": [64]}}}},
    "edges": {"n:to:n": {"weighted": True}},
}
NODES, EDGES = 500, 3_000
AWAY = (asterism.Unavailable, asterism.Stale, asterism.NotFound, asterism.NotReady)

Damage = Callable[[Path], None]


def torn(path: Path) -> None:
    """Its second half is gone."""
    content = path.read_bytes()
    _replace(path, content[: len(content) // 2])


def altered(path: Path) -> None:
    """A byte in its first half is another one."""
    content = bytearray(path.read_bytes())
    content[len(content) // 4] ^= 0x40
    _replace(path, bytes(content))


def gone(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def _replace(path: Path, content: bytes) -> None:
    path.unlink()  # it may be a hard link: the others stay as they are
    path.write_bytes(content)


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(storageds=1, faults=True, flags={"storaged": ["--concurrent-tasks", "4"], "metad": ["--max-attempts", "1"]}) as running:
        yield running


@pytest.fixture
def client(cluster: LocalCluster) -> Iterator[Client]:
    with cluster.client(timeout_s=5.0) as connected:
        yield connected
        for faults in cluster.faults.values():
            faults.set()
        cluster.wait_ready()
        settled(cluster, connected, [space.name for space in connected.spaces()])


def filled(client: Client, count: int, *, build: bool = True) -> list[Graph]:
    """Spaces of different content, each with a published version unless it is not to be built."""
    found = []
    for number in range(count):
        name = f"s{time.time_ns()}"
        client.create_space(name, SCHEMA)
        fill(client.graph(name), number)
        found.append(client.graph(name))
    done(client, [client.submit_job(graph.space).job_id for graph in found if build])
    return found


def done(client: Client, jobs: Sequence[int]) -> None:
    assert all(client.wait(job, timeout_s=WAIT_S).state == "FINISHED" for job in jobs)


def fill(graph: Graph, seed: int) -> None:
    rng = np.random.default_rng(seed)
    load = graph.client.begin_load(graph.space)
    load.write_nodes(0, "n", np.arange(NODES), weights=rng.random(NODES), features={"x": rng.random((NODES, 64), np.float32)})
    load.write_edges(1, "to", rng.integers(0, NODES, EDGES), rng.integers(0, NODES, EDGES), weights=rng.random(EDGES), ends_known=True)
    load.commit()


def until(holds: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def folder(cluster: LocalCluster, graph: Graph) -> Path:
    return cluster.folder_of("storaged-0") / "spaces" / str(graph.client.describe(graph.space).space_id)


def only(found: Iterator[Path]) -> Path:
    """The largest file of a pattern; of some there is just one."""
    return max(found, key=lambda path: path.stat().st_size)


def lacks(cluster: LocalCluster, words: Sequence[str]) -> bool:
    """Whether one of the things that a running storaged says it is missing has all of these words in it."""
    assert cluster["storaged-0"].ended() is None, cluster["storaged-0"].tail()
    try:
        return any(all(word in line for word in words) for line in cluster.missing("storaged-0").split('","'))
    except OSError:
        return False


def assert_refused(graph: Graph) -> None:
    with pytest.raises(AWAY):
        edges_of(graph, "to")


def answers(graph: Graph) -> tuple[object, ...]:
    """What a version says: all its edges, and draws of a seed."""
    nodes = graph.sample_nodes(50, "n", seed=3)
    near = graph.sample_neighbors(np.arange(20), "to", 4, seed=3)
    return edges_of(graph, "to"), nodes.nodes.tobytes(), near.nodes.tobytes(), graph.node_features(np.arange(NODES), "x")["x"].tobytes()


IMAGES: list[tuple[str, Damage]] = [
    ("n0.c0.values.bin", altered),
    ("manifest.json", torn),
    ("manifest.json", altered),
    ("manifest.json", gone),
    ("e0.in.hot.bin", torn),
    ("n0.table.hot.bin", gone),
    ("", gone),
]
"""A file of each part but the last; of one, all."""


def test_damaged_images_are_not_served_until_they_are_made_again_to_the_digests_that_were_published(cluster: LocalCluster, client: Client) -> None:
    graph, whole = filled(client, 2)
    expected, sealed = answers(graph), client.manifest(graph.space)
    build = folder(cluster, graph) / "builds" / str(sealed.job_id)
    manifests = {path: path.read_bytes() for path in sorted(build.glob("parts/*/manifest.json"))}
    cluster.kill("storaged-0")
    intact = (build / "parts" / f"p{len(IMAGES):05d}" / "manifest.json").stat()
    for part, (name, damage) in enumerate(IMAGES):
        damage(build / "parts" / f"p{part:05d}" / name)
    cluster.faults["storaged-0"].set(hold_build_in=["nodes n"])
    cluster["storaged-0"].start()
    words = (
        f"version 1 of space {graph.space} is not served: image",
        f"p00000/{IMAGES[0][0]}: mebibyte 0 is not what was written",
        "(parts 0, 1, 2, 3, 4, 5, 6 being made again from the loads up to commit 1)",
    )
    until(lambda: lacks(cluster, words), "it serves, or says nothing")
    assert_refused(graph)
    assert len(edges_of(whole, "to")) == EDGES
    cluster.faults["storaged-0"].set()
    cluster.wait_ready()
    assert answers(graph) == expected
    assert client.manifest(graph.space) == sealed
    assert {path: path.read_bytes() for path in sorted(build.glob("parts/*/manifest.json"))} == manifests
    assert (build / "parts" / f"p{len(IMAGES):05d}" / "manifest.json").stat().st_mtime_ns == intact.st_mtime_ns, "a whole part was made again"
    # What was made again is as good as new: for an audit, an export, and the next build, which links it.
    done(client, [client.submit_job(graph.space, kind).job_id for kind in ("audit", "export-tables")])
    graph.upsert_nodes([0], "n", weights=[1.0])
    assert graph.build(timeout_s=WAIT_S).version == 2
    assert edges_of(graph, "to") == expected[0]


def test_an_image_that_can_not_be_made_again_is_refused_with_both_causes_and_with_it_its_version_alone(cluster: LocalCluster, client: Client) -> None:
    graph, other = filled(client, 2)
    here = folder(cluster, graph)
    expected = answers(graph)
    # While only what was loaded is damaged, what is published is served, and no build makes anything of it.
    cluster.kill("storaged-0")
    blob = only((here / "graph").glob("*.blob"))
    kept = blob.read_bytes()
    altered(blob)
    cluster.restart("storaged-0")
    assert answers(graph) == expected
    graph.upsert_nodes([0], "n", weights=[1.0])
    failed = client.wait(client.submit_job(graph.space, options={"link": "no"}).job_id, timeout_s=WAIT_S)
    assert (failed.state, client.describe(graph.space).version) == ("FAILED", 1)
    assert "Corrupt: block " in failed.cause
    assert "Blob CRC mismatch" in failed.cause
    # With its images damaged too there is nothing to make that one of.
    cluster.kill("storaged-0")
    for image in here.glob("builds/*/parts/*/e0.out.nbr.bin"):
        altered(image)
    cluster["storaged-0"].start()
    words = (
        f"version 1 of space {graph.space} is not served: image",
        "e0.out.nbr.bin",
        "could not be made again: Corrupt: block ",
        "Blob CRC mismatch",
    )
    until(lambda: lacks(cluster, words), "it serves, or says nothing")
    assert_refused(graph)
    assert len(edges_of(other, "to")) == EDGES
    # An operator has brought the file back.
    cluster.kill("storaged-0")
    _replace(blob, kept)
    cluster.restart("storaged-0")
    assert answers(graph) == expected
    # The failed job has the damaged file in its checkpoint; another one takes its own.
    assert client.wait(client.submit_job(graph.space, options={"link": "no"}).job_id, timeout_s=WAIT_S).version == 2


BUILT: list[list[tuple[str, Damage]]] = [
    [
        ("parts/p00000/manifest.json", torn),
        ("parts/p00001/e0.out.nbr.bin", altered),
        ("parts/p00002/n0.weights.bin", gone),
        ("done/p00003.json", torn),
        ("done/p00004.json", altered),
    ],
    [("stat/MANIFEST-*", altered)],
    [("stat/CURRENT", gone)],
    [("stat/*.sst", gone)],
]


def test_parts_that_are_damaged_between_their_end_and_their_publication_are_built_again(cluster: LocalCluster, client: Client) -> None:
    graphs = filled(client, len(BUILT), build=False)
    cluster.faults["storaged-0"].set(hold_build_in=["nodes n"])
    jobs = [client.submit_job(graph.space).job_id for graph in graphs]
    builds = [folder(cluster, graph) / "builds" / str(job) for graph, job in zip(graphs, jobs, strict=True)]
    cluster.faults["metad"].set(die_before_write_of="1/version/")
    cluster.faults["storaged-0"].set()
    until(lambda: {build["state"] for build in cluster.get("storaged-0", "/status")["builds"]} == {"finished"}, "a build does not end")
    until(lambda: cluster["metad"].ended() is not None, "metad has published")
    manifests = {path: path.read_bytes() for build in builds for path in build.glob("parts/*/manifest.json")}
    assert len(manifests) == len(BUILT) * SCHEMA["parts"]
    cluster.kill("storaged-0")
    for build, damages in zip(builds, BUILT, strict=True):
        for pattern, damage in damages:
            damage(only(build.glob(pattern)))
    cluster.faults["metad"].set()
    cluster["storaged-0"].start()
    cluster.restart("metad")
    done(client, jobs)
    cluster.wait_ready()
    assert {path: path.read_bytes() for build in builds for path in build.glob("parts/*/manifest.json")} == manifests
    assert [len(edges_of(graph, "to")) for graph in graphs] == [EDGES] * len(graphs)
    done(client, [client.submit_job(graph.space, "export-tables").job_id for graph in graphs])


def test_a_damaged_table_of_a_version_is_not_exported_and_the_version_is_served(cluster: LocalCluster, client: Client) -> None:
    (graph,) = filled(client, 1)
    expected = answers(graph)
    for run in folder(cluster, graph).glob("builds/*/stat/*.sst"):
        altered(run)
    failed = client.wait(client.submit_job(graph.space, "export-tables").job_id, timeout_s=WAIT_S)
    assert failed.state == "FAILED"
    assert "Corrupt" in failed.cause
    assert ".sst" in failed.cause
    assert answers(graph) == expected
    # Made anew, and shared with nothing before.
    client.wait(client.submit_job(graph.space, options={"link": "no"}).job_id, timeout_s=WAIT_S)
    done(client, [client.submit_job(graph.space, "export-tables").job_id])


LOGGED: list[tuple[str, Damage]] = [("*.log", altered), ("MANIFEST-*", altered), ("MANIFEST-*", gone), ("CURRENT", gone), ("CURRENT", torn)]
FLUSHED: list[tuple[str, Damage]] = [("*.sst", torn), ("*.sst", gone)]
UNREAD: list[tuple[str, Damage]] = [("*.sst", altered), ("*.blob", torn), ("*.blob", gone)]
"""Values, which opening a database does not read."""


@pytest.mark.parametrize("damages", [LOGGED, FLUSHED], ids=["the log", "its files"])
def test_damaged_graph_databases_are_refused_and_with_each_its_space_alone(
    cluster: LocalCluster, client: Client, damages: list[tuple[str, Damage]]
) -> None:
    *graphs, other = filled(client, len(damages) + 1)
    expected = [edges_of(graph, "to") for graph in graphs]
    databases = [folder(cluster, graph) / "graph" for graph in graphs]
    for graph in graphs if damages is LOGGED else ():
        fill(graph, 7)  # a build's checkpoint has brought what was there before from the log to files
    cluster.kill("storaged-0")
    for database, (pattern, damage) in zip(databases, damages, strict=True):
        shutil.copytree(database, database.with_name("whole"))
        damage(only(database.glob(pattern)))
    cluster["storaged-0"].start()
    for graph, database in zip(graphs, databases, strict=True):
        words = (f"space {graph.space} can not be opened", str(database))
        until(lambda words=words: lacks(cluster, words), f"it opens {database}, or does not say {words}")  # type: ignore[misc]
    for graph in graphs:
        # Nobody takes it for an older state, or for an empty one.
        assert_refused(graph)
        with pytest.raises((asterism.Unavailable, asterism.Stale)):
            graph.upsert_nodes(np.arange(4), "n", weights=np.ones(4))
    assert len(edges_of(other, "to")) == EDGES
    cluster.kill("storaged-0")
    for database in databases:
        shutil.rmtree(database)
        database.with_name("whole").rename(database)
    cluster.restart("storaged-0")
    assert [edges_of(graph, "to") for graph in graphs] == expected


def test_damaged_values_fail_builds_by_the_name_of_what_is_damaged_and_what_is_published_is_served(cluster: LocalCluster, client: Client) -> None:
    graphs = filled(client, len(UNREAD))
    expected = [edges_of(graph, "to") for graph in graphs]
    databases = [folder(cluster, graph) / "graph" for graph in graphs]
    cluster.kill("storaged-0")
    for database, (pattern, damage) in zip(databases, UNREAD, strict=True):
        damage(only(database.glob(pattern)))
    cluster.restart("storaged-0")
    jobs = [client.submit_job(graph.space, options={"link": "no"}).job_id for graph in graphs]
    for job, (pattern, _) in zip(jobs, UNREAD, strict=True):
        failed = client.wait(job, timeout_s=WAIT_S)
        assert failed.state == "FAILED"
        assert ("block " in failed.cause and " of load " in failed.cause) or pattern[1:] in failed.cause, failed.cause
    assert [edges_of(graph, "to") for graph in graphs] == expected
    for graph in graphs:
        client.drop_space(graph.space)  # what they were to go on from is of no use


def test_damaged_catalogs_are_refused_by_metad_by_the_name_of_the_folder_and_the_rest_is_served_meanwhile(
    cluster: LocalCluster, client: Client, tmp_path: Path
) -> None:
    (graph,) = filled(client, 1)
    expected = answers(graph)
    cluster.kill("metad")
    damages: list[tuple[str, Damage]] = [*LOGGED, *FLUSHED]
    places = [tmp_path / str(number) for number in range(len(damages))]
    for place, (pattern, damage) in zip(places, damages, strict=True):
        shutil.copytree(cluster.folder_of("metad"), place)
        if pattern == "*.sst":
            cleanly_ended(place)
        damage(only((place / "catalog").glob(pattern)))
    with ThreadPoolExecutor(4) as pool:
        ends = list(pool.map(started, places))
    for place, ended in zip(places, ends, strict=True):
        assert ended.returncode == 2, (place, ended.stderr)
        said = ended.stderr.splitlines()[-1]
        assert said.startswith("metad: ")
        assert str(place / "catalog") in said
        assert "Traceback" not in ended.stderr
    assert answers(graph) == expected
    cluster.restart("metad")
    assert answers(graph) == expected


def started(data: Path) -> subprocess.CompletedProcess[str]:
    """A metad on a folder, at its end."""
    command = [sys.executable, "-m", "metad", "--data", str(data), "--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"]
    return subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=False)


def cleanly_ended(data: Path) -> None:
    """Have what is in a catalog's log in files of its own."""
    RocksStore(data / "catalog").close()
