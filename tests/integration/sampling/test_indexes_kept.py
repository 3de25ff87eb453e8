"""Indexes are part of a version: backups and repaired images contain them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.kit import conditional
from tests.kit.cluster import LocalCluster
from tests.kit.waiting import HANG_S

import asterism
from asterism import Client, Graph

LIMIT_S = HANG_S
INDEXES = [("brand", "hash"), ("price", "range")]
FILTERS = ("brand == 'a'", "price > 3")


def indexed_samples(graph: Graph) -> list[bytes]:
    """Return samples answered from an index: by weight, uniformly and by a weight table."""
    samples = []
    for where, index in zip(FILTERS, INDEXES, strict=True):
        assert graph.explain.sample_nodes(
            1, "item", where=where, seed=1
        ).filter_plan == "index on {} ({})".format(*index)
        samples += [
            graph.sample_nodes(300, "item", where=where, weighted=weighted, seed=9).nodes.tobytes()
            for weighted in (True, False)
        ]
    return [
        *samples,
        graph.sample_nodes(300, "item", where="price > 3", weight="dear", seed=9).nodes.tobytes(),
    ]


def indexes(client: Client, space: str) -> list[tuple[str, str]]:
    return [(index.column, index.kind) for index in client.manifest(space).indexes]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with (
        LocalCluster(2, 1, folder=tmp_path_factory.mktemp("kept")) as started,
        started.client() as client,
    ):
        conditional.load(client, "shop")
        for on, kind in INDEXES:
            job = client.submit_job(
                "shop", "index", options={"type": "item", "on": on, "kind": kind}
            )
            assert client.wait(job.job_id, timeout_s=LIMIT_S).state == "FINISHED"
        yield started


def test_restored_space_keeps_its_indexes(cluster: LocalCluster, tmp_path: Path) -> None:
    cluster_client = cluster.client()
    expected, manifest = (
        indexed_samples(cluster_client.graph("shop")),
        cluster_client.manifest("shop"),
    )
    assert indexes(cluster_client, "shop") == INDEXES
    cluster_client.backup("shop", tmp_path / "shop", timeout_s=LIMIT_S)
    with asterism.open(tmp_path / "elsewhere") as restored:
        restored.restore(tmp_path / "shop", timeout_s=LIMIT_S)
        assert restored.manifest("shop").digest == manifest.digest
        assert indexes(restored, "shop") == INDEXES
        graph = restored.graph("shop")
        assert indexed_samples(graph) == expected
        assert (
            restored.wait(restored.submit_job("shop", "audit").job_id, timeout_s=LIMIT_S).state
            == "FINISHED"
        )
        for client in (restored, cluster_client):
            client.graph("shop").upsert_nodes(
                np.array([900]),
                "item",
                weights=np.array([3.0]),
                features={"price": np.array([7.5], np.float32)},
            )
            client.graph("shop").build(timeout_s=LIMIT_S)
            assert indexes(client, "shop") == INDEXES
        assert indexed_samples(graph) == indexed_samples(cluster_client.graph("shop")) != expected
        assert (
            900 in graph.sample_nodes(2000, "item", where="price > 7", weighted=False, seed=1).nodes
        )


@pytest.mark.parametrize("what", ["values", "rows", "bounds"])
def test_damaged_index_is_rebuilt(cluster: LocalCluster, what: str) -> None:
    client = cluster.client()
    graph, manifest = client.graph("shop"), client.manifest("shop")
    expected = indexed_samples(graph)
    cluster.kill("storaged-0")
    build = (
        cluster.folder_of("storaged-0")
        / "spaces"
        / str(manifest.space_id)
        / "builds"
        / str(manifest.job_id)
    )
    files = sorted(file for file in build.glob(f"parts/*/n*.x*.{what}.bin") if file.stat().st_size)
    assert files, sorted({file.name for file in build.glob("parts/*/*.bin")})
    contents = {file: file.read_bytes() for file in files}
    for file, content in contents.items():
        file.unlink()  # it may be a hard link to another version's file
        file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    cluster.restart("storaged-0")
    cluster.wait_ready()
    assert indexed_samples(graph) == expected
    assert client.manifest("shop") == manifest
    assert {file: file.read_bytes() for file in files} == contents
