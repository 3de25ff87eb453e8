"""Flips of single bits in a cluster's files.

Each flip is detected, repaired or harmless, and no result changes. Real daemons read the files: at
the start after a kill or a clean stop, and while the files are open.
"""

from __future__ import annotations

import random
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from tests.kit.cluster import LocalCluster
from tests.kit.invariants import edges_of
from tests.kit.storage_faults import flip
from tests.kit.waiting import HANG_S, wait_until

import asterism
from asterism import Client, Graph
from asterism.records.catalog import Job

SCHEMA = {
    "parts": 1,
    "direction": "both",
    "nodes": {"n": {"weighted": True, "features": {"x": {"dtype": "float32", "shape": [32]}}}},
    "edges": {"n:to:n": {"weighted": True}},
}
NODES, EDGES = 300, 1_000
UNCLEAN, CLEAN, OPEN = "after a kill", "after a clean stop", "while open"
MOMENTS = (UNCLEAN, CLEAN, OPEN)
DETECTED, REPAIRED, HARMLESS = "detected", "repaired", "harmless"
TYPED_ERRORS = (
    asterism.Unavailable,
    asterism.Stale,
    asterism.NotFound,
    asterism.NotReady,
    asterism.Corrupt,
    asterism.Conflict,
)
IMAGE, DATABASE = "image", "graph"
SPACE_FILES = {
    "image: array": "builds/*/parts/p00000/*.bin",
    "image: manifest": "builds/*/parts/p00000/manifest.json",
    "graph: SST": "graph/*.sst",
    "graph: blob": "graph/*.blob",
    "graph: log": "graph/*.log",
    "graph: MANIFEST": "graph/MANIFEST-*",
    "graph: CURRENT": "graph/CURRENT",
    "graph: OPTIONS": "graph/OPTIONS-*",
    "tables: SST": "builds/*/stat/*.sst",
}
"""Files of a space in the folder of a storaged, by kind."""
DAEMON_FILES = {
    "catalog: SST": ("metad", "catalog/*.sst"),
    "catalog: log": ("metad", "catalog/*.log"),
    "catalog: MANIFEST": ("metad", "catalog/MANIFEST-*"),
    "catalog: CURRENT": ("metad", "catalog/CURRENT"),
    "identity of metad": ("metad", "identity.json"),
    "identity of storaged": ("storaged-0", "identity.json"),
    "cluster": ("storaged-0", "cluster"),
    "position": ("storaged-0", "position"),
}
"""Files that a daemon reads at its start, by kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flip:
    """A flipped bit and its outcome."""

    kind: str
    moment: str
    file: Path
    bit: int
    outcome: str

    def __str__(self) -> str:
        return f"{self.kind}, {self.moment}, {self.file.name} bit {self.bit}: {self.outcome}"


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    flags = {
        "storaged": [
            "--concurrent-tasks",
            "4",
            "--open-retry-s",
            "0.5",
            "--scrub-interval-s",
            "0.3",
            "--scrub-mib-per-s",
            "1000",
        ],
        "metad": ["--max-attempts", "1"],
    }
    with LocalCluster(storageds=1, flags=flags) as running:
        yield running


@pytest.fixture(scope="module")
def client(cluster: LocalCluster) -> Client:
    return cluster.client(timeout_s=20.0)


def load(graph: Graph, seed: int) -> None:
    rng = np.random.default_rng(seed)
    bulk_load = graph.client.begin_load(graph.space)
    nodes = np.arange(NODES) + NODES * seed
    bulk_load.write_nodes(
        0,
        "n",
        nodes,
        weights=rng.random(NODES),
        features={"x": rng.random((NODES, 32), np.float32)},
    )
    ends = rng.choice(nodes, EDGES), rng.choice(nodes, EDGES)
    bulk_load.write_edges(1, "to", *ends, weights=rng.random(EDGES), ends_known=True)
    bulk_load.commit()


def query_results(graph: Graph, version: int | None = None) -> tuple[object, ...]:
    """Return all data of a space's first load, and samples for a fixed seed."""
    neighbors = graph.sample_neighbors(np.arange(20), "to", 4, seed=3, version=version)
    features = graph.node_features(np.arange(NODES), "x", version=version)["x"].tobytes()
    return edges_of(graph, "to", version=version), neighbors.nodes.tobytes(), features


def readiness_message(cluster: LocalCluster, name: str) -> str:
    """Return a daemon's readiness message, or a note that it does not reply yet."""
    try:
        return cluster.missing(name)
    except OSError:
        return "does not answer yet"


def storaged_readiness(cluster: LocalCluster) -> str:
    """Return the readiness message of a storaged that must still be running."""
    assert cluster["storaged-0"].exit_status() is None, cluster["storaged-0"].tail()
    return readiness_message(cluster, "storaged-0")


class Round:
    """One round of flips: a space for each kind of file, with one flipped bit each."""

    def __init__(self, cluster: LocalCluster, client: Client, moment: str, seed: int) -> None:
        self.cluster, self.client, self.moment = cluster, client, moment
        self.short_timeout_client = cluster.client(timeout_s=1.0)
        self.random = random.Random(zlib.crc32(f"{moment} {seed}".encode()))
        self.graphs = {kind: self._create_filled_space() for kind in (*SPACE_FILES, "whole")}
        self._assert_jobs_finish(
            {kind: client.submit_job(graph.space).job_id for kind, graph in self.graphs.items()}
        )
        for graph in self.graphs.values():
            load(graph, 1)  # stays in the log
        cluster.wait_ready()
        self.expected = {kind: query_results(graph) for kind, graph in self.graphs.items()}
        self.flips: dict[str, tuple[Path, int]] = {}
        self.builds: dict[str, Job] = {}

    def _create_filled_space(self) -> Graph:
        name = f"s{self.random.getrandbits(60):x}"
        self.client.create_space(name, SCHEMA)
        load(self.client.graph(name), 0)
        return self.client.graph(name)

    def _assert_jobs_finish(self, jobs: dict[str, int]) -> None:
        assert {self.client.wait(job, timeout_s=HANG_S).state for job in jobs.values()} == {
            "FINISHED"
        }

    def folder(self, graph: Graph) -> Path:
        return (
            self.cluster.folder_of("storaged-0")
            / "spaces"
            / str(self.client.describe(graph.space).space_id)
        )

    def run(self) -> list[Flip]:
        """Flip the bits, then check the results now and after the next start."""
        daemon = self.cluster["storaged-0"]
        folders = {kind: self.folder(graph) for kind, graph in self.graphs.items()}
        if self.moment == UNCLEAN:
            self.cluster.kill("storaged-0")
        elif self.moment == CLEAN:
            assert daemon.stop() == 0
        damaged_before = self._damaged_images()
        for kind, pattern in SPACE_FILES.items():
            files = [file for file in sorted(folders[kind].glob(pattern)) if file.stat().st_size]
            if files:  # the log is empty after a clean stop
                file = self.random.choice(files)
                self.flips[kind] = file, self.random.randrange(8 * file.stat().st_size)
                flip(*self.flips[kind])
        if self.moment != OPEN:
            daemon.start()
        else:  # the scrub reads every byte of the two damaged images
            wait_until(
                lambda: self._damaged_images() >= damaged_before + 2,
                "the scrub finds both damaged images",
            )
        wait_until(self._is_settled, "every space is served, or refused with a cause")
        self.builds = self._build_all()
        outcomes = {kind: self._outcome(kind) for kind in self.flips}
        if self.moment == OPEN:
            assert daemon.stop() == 0
            daemon.start()
            wait_until(
                self._is_settled,
                "every space is served, or refused with a cause, after the next start",
            )
            for kind in self.flips:
                outcome = self._outcome(kind, build=False)
                outcomes[kind] = outcome if outcomes[kind] == HARMLESS else outcomes[kind]
        assert query_results(self.graphs["whole"], version=1) == self.expected["whole"]
        for graph in self.graphs.values():
            self.client.drop_space(graph.space)
        self.cluster.wait_ready()
        return [
            Flip(kind=kind, moment=self.moment, file=file, bit=bit, outcome=outcomes[kind])
            for kind, (file, bit) in self.flips.items()
        ]

    def _damaged_images(self) -> int:
        """Return how many served versions the scrub has found damaged."""
        return self.cluster["storaged-0"].log.read_text().count("image_damaged")

    def _is_settled(self) -> bool:
        message = storaged_readiness(self.cluster)
        return not any(
            phrase in message
            for phrase in ("does not answer", "being", "waits to be loaded", "no reply from")
        )

    def _outcome(self, kind: str, *, build: bool = True) -> str:
        """Return the outcome for a space.

        Raises AssertionError if a result differs, or if an error names neither file nor block.
        """
        graph, (file, _) = self.graphs[kind], self.flips[kind]
        message = storaged_readiness(self.cluster)
        if f"space {graph.space} " in message:
            assert f"space {graph.space} cannot be opened: {self.folder(graph)}" in message, message
            with pytest.raises(TYPED_ERRORS):
                query_results(self.short_timeout_client.graph(graph.space))
            return DETECTED
        # The version that was published first, whatever was built later.
        assert query_results(graph, version=1) == self.expected[kind]
        if kind.startswith(IMAGE):
            log = self.cluster["storaged-0"].log.read_text()
            assert f"image file {file}" in log, "nothing has named the file"
            return REPAIRED
        if build and kind.startswith(DATABASE):
            build_job = self.builds[kind]
            if build_job.state == "FAILED":
                assert (
                    file.name in build_job.cause
                    or "block " in build_job.cause
                    or str(self.folder(graph)) in build_job.cause
                ), build_job.cause
                return DETECTED
            assert self._image_manifests(kind) == self._image_manifests("whole")
        if build and kind.startswith("tables"):
            table_export = self.client.wait(
                self.client.submit_job(graph.space, "export-tables", version=1).job_id,
                timeout_s=HANG_S,
            )
            if table_export.state == "FAILED":
                assert ".sst" in table_export.cause or "table" in table_export.cause, (
                    table_export.cause
                )
                return DETECTED
        return HARMLESS

    def _build_all(self) -> dict[str, Job]:
        """Build all open spaces concurrently and return the ended jobs."""
        message = storaged_readiness(self.cluster)
        open_kinds = {
            kind
            for kind, graph in self.graphs.items()
            if f"space {graph.space} cannot be opened" not in message
        }
        kinds = [
            kind
            for kind in self.graphs
            if kind in open_kinds and kind.startswith((DATABASE, "whole"))
        ]
        jobs = {
            kind: self.client.submit_job(self.graphs[kind].space, options={"link": "no"}).job_id
            for kind in kinds
        }
        return {kind: self.client.wait(job, timeout_s=HANG_S) for kind, job in jobs.items()}

    def _image_manifests(self, kind: str) -> list[bytes]:
        """Return the manifests of a build's images; equal manifests mean equal content."""
        build = self.folder(self.graphs[kind]) / "builds" / str(self.builds[kind].job_id)
        return [path.read_bytes() for path in sorted(build.glob("parts/*/manifest.json"))]


def state(client: Client, graph: Graph) -> object:
    """Return the catalog's description of all spaces, and the data of one graph."""
    spaces = sorted(space.name for space in client.spaces())
    return (
        spaces,
        [
            (version, client.manifest(graph.space, version.version))
            for version in client.versions(graph.space)
        ],
        query_results(graph),
    )


def flip_and_restart(
    cluster: LocalCluster, client: Client, graph: Graph, kind: str, moment: str, seed: int
) -> Flip | None:
    """Flip a bit in a file that a daemon reads at its start, and start the daemon.

    If the flip is detected, the original file is restored. Returns None if there is no such file: a
    clean stop leaves no log.
    """
    name, pattern = DAEMON_FILES[kind]
    daemon, folder = cluster[name], cluster.folder_of(name)
    rng = random.Random(zlib.crc32(f"{kind} {moment} {seed}".encode()))
    expected = state(client, graph)

    if moment == UNCLEAN:
        cluster.kill(name)
    else:
        assert daemon.stop() == 0
    files = [path for path in folder.glob(pattern) if path.stat().st_size]
    if not files:
        cluster.restart(name)
        return None
    file = max(files, key=lambda path: path.stat().st_size)
    originals = {path: path.read_bytes() for path in file.parent.iterdir() if path.is_file()}
    bit = rng.randrange(8 * file.stat().st_size)
    flip(file, bit)
    daemon.start()
    wait_until(
        lambda: (
            daemon.exit_status() is not None
            or "belongs to the cluster" in readiness_message(cluster, name)
            or cluster.all_ready()
        ),
        f"{name} starts, or ends",
    )
    outcome = HARMLESS
    if daemon.exit_status() is not None:
        assert daemon.exit_status() == 2, daemon.tail()
        assert (
            str(file if file.name in ("identity.json", "cluster", "position") else file.parent)
            in daemon.log.read_text().splitlines()[-1]
        )
        outcome = DETECTED
    elif not cluster.all_ready():
        outcome = DETECTED
        cluster.kill(name)
    if outcome == DETECTED:
        for path in {path for path in file.parent.iterdir() if path.is_file()} - originals.keys():
            path.unlink()
        for path, content in originals.items():
            path.write_bytes(content)
        daemon.start()
    cluster.wait_ready()
    assert state(client, graph) == expected
    return Flip(kind=kind, moment=moment, file=file, bit=bit, outcome=outcome)


def flip_each_daemon_file(
    cluster: LocalCluster, client: Client, graph: Graph, seed: int
) -> list[Flip]:
    """Flip a bit in each kind of file at each moment, one after another."""
    assert cluster["metad"].stop() == 0
    cluster.restart("metad")  # creates SST files for the catalog
    results = [
        flip_and_restart(cluster, client, graph, kind, moment, seed)
        for kind in DAEMON_FILES
        for moment in (UNCLEAN, CLEAN)
    ]
    return [result for result in results if result is not None]


def outcome_table(flips: list[Flip]) -> str:
    """Return the outcomes as a Markdown table."""
    lines = [
        "| file | moment | bits | detected | repaired | harmless |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    counters: dict[tuple[str, str], Counter[str]] = {}
    for result in flips:
        counters.setdefault((result.kind, result.moment), Counter())[result.outcome] += 1
    for (kind, moment), outcomes in sorted(counters.items()):
        counts = " | ".join(str(outcomes[outcome]) for outcome in (DETECTED, REPAIRED, HARMLESS))
        lines.append(f"| {kind} | {moment} | {outcomes.total()} | {counts} |")
    return "\n".join(lines)


def test_flipped_space_bits_change_no_result(cluster: LocalCluster, client: Client) -> None:
    flips = [result for moment in MOMENTS for result in Round(cluster, client, moment, 0).run()]
    print(outcome_table(flips), *flips, sep="\n")
    assert len(flips) >= 24
    assert {result.outcome for result in flips if result.kind.startswith(IMAGE)} == {REPAIRED}


def test_flipped_catalog_and_identity_bits_change_no_result(
    cluster: LocalCluster, client: Client
) -> None:
    client.create_space("kept", SCHEMA)
    graph = client.graph("kept")
    load(graph, 0)
    graph.build(timeout_s=HANG_S)
    flips = flip_each_daemon_file(cluster, client, graph, 0)
    print(outcome_table(flips), *flips, sep="\n")
    assert DETECTED in {result.outcome for result in flips}


@pytest.mark.slow
def test_many_flipped_bits_change_no_result(cluster: LocalCluster, client: Client) -> None:
    flips: list[Flip] = []
    for seed in range(1, 7):
        flips += [
            result for moment in MOMENTS for result in Round(cluster, client, moment, seed).run()
        ]
    client.create_space("long", SCHEMA)
    graph = client.graph("long")
    load(graph, 0)
    graph.build(timeout_s=HANG_S)
    for seed in range(1, 5):
        flips += flip_each_daemon_file(cluster, client, graph, seed)
    print(outcome_table(flips))
    assert len(flips) >= 200
