"""Run the shared cluster test bodies against the compose file's cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kit import bodies
from tests.kit.compose import GRAPHDS, STORAGEDS, ComposeCluster
from tests.kit.waiting import HANG_S, wait_until

pytestmark = [pytest.mark.compose, pytest.mark.timeout(7200)]


@pytest.fixture(scope="module")
def cluster(
    root: Path, compose_command: list[str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ComposeCluster]:
    with ComposeCluster(root, compose_command, tmp_path_factory.mktemp("compose")) as running:
        with running.client() as client:
            bodies.assert_build_published(client, "shop")
        yield running


def test_draws_follow_the_weights(cluster: ComposeCluster) -> None:
    with cluster.client() as client:
        bodies.assert_draws_follow_weights(client.graph("shop"))


def test_reads_give_what_was_loaded(cluster: ComposeCluster) -> None:
    with cluster.client() as client:
        bodies.assert_reads_match_input(client.graph("shop"))


def test_wrong_requests_are_refused_with_the_value(cluster: ComposeCluster) -> None:
    with cluster.client() as client:
        bodies.assert_bad_requests_rejected(client, "shop")


def test_seed_gives_same_bytes_on_all_graphds_and_after_restart(cluster: ComposeCluster) -> None:
    with cluster.client() as client:
        graph = client.graph("shop")
        first = bodies.result_bytes(graph)
        assert all(bodies.result_bytes(graph) == first for _ in range(3)), (
            "calls take turns over the graphds"
        )
        cluster.compose("restart", STORAGEDS[1])
        after_restart = wait_until(
            lambda: bodies.result_bytes(graph),
            "the restarted storaged serves its parts",
            ignored=bodies.asterism.errors.AsterismError,
        )
        assert after_restart == first


def test_a_job_over_http_publishes_what_was_written(cluster: ComposeCluster) -> None:
    with cluster.client() as client:
        graph = client.graph("shop")
        graph.upsert_nodes([bodies.USERS], "user", features={"age": [33]})
        status, job = cluster.ask(
            f"{cluster.metad_url()}/api/v1/jobs", {"space": "shop", "kind": "build"}
        )
        assert status in (200, 201, 202), job
        finished_job = client.wait(int(job["job_id"]), timeout_s=HANG_S)
        assert (finished_job.state, finished_job.kind) == ("FINISHED", "build"), finished_job.cause
        assert client.manifest("shop").count("NODE", 0) == bodies.USERS + 1
        status, job_document = cluster.ask(
            f"{cluster.metad_url()}/api/v1/jobs/{finished_job.job_id}"
        )
        assert (status, job_document["state"]) == (200, "FINISHED")
        assert cluster.ask(f"{cluster.metad_url()}/api/v1/jobs/987654")[0] == 404


def test_the_command_in_the_image_sees_a_ready_cluster(cluster: ComposeCluster) -> None:
    cluster_status = json.loads(
        cluster.compose("exec", "-T", "graphd-0", "asterism", "status", "--json")
    )
    assert cluster_status["ready"] is True
    assert sorted(h["address"] for h in cluster_status["hosts"] if h["role"] == "STORAGED") == [
        f"{name}:9779" for name in STORAGEDS
    ]


def test_a_container_runs_without_root(cluster: ComposeCluster) -> None:
    assert cluster.compose("exec", "-T", "storaged-0", "id", "-u").strip() != "0"


def test_every_container_starts_with_the_kernels_of_the_image(cluster: ComposeCluster) -> None:
    listing = ("sh", "-c", "cd /var/cache/asterism && ls -d */*.nbi && test -w .")
    image = set(
        cluster.compose(
            "run", "--rm", "-T", "--no-deps", "-v", "/var/cache/asterism", "graphd-0", *listing
        ).split()
    )
    assert image
    for name in (*STORAGEDS, *GRAPHDS):
        assert image <= set(cluster.compose("exec", "-T", name, *listing).split()), name
