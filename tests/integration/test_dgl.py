"""The adapter for DGL, in the environment that has it, on real graphs in a cluster of three storageds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kit import dgl_env
from tests.kit.cluster import LocalCluster
from tests.kit.waiting import HANG_S

from asterism import ingest

SCHEMAS = Path(__file__).parents[2] / "examples/schemas"


@pytest.fixture
def rooms(root: Path, tmp_path: Path) -> str:
    """Where a trainer finds the package: installed, it has a description; here it is run from its sources."""
    described = tmp_path / "asterism-0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: asterism\nVersion: 0\n")
    return os.pathsep.join(map(str, (root / "client", root / "proto", root, tmp_path)))


@pytest.mark.dgl
def test_graphs_of_dgl_are_read_back_from_a_space_as_they_are(dgl_python: Path, rooms: str, tmp_path: Path) -> None:
    with LocalCluster(storageds=1) as cluster:
        out = dgl_env.run(dgl_python, dgl_env.SCRIPTS / "objects.py", cluster.addresses, home=tmp_path, more={"PYTHONPATH": rooms})
    assert out.splitlines()[-1] == "OK"


@pytest.fixture(scope="module")
def cluster(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Cora and OpenFlights, on three storageds."""
    with LocalCluster(storageds=3) as running:
        client = running.client()
        for space, folder in (("citations", "cora"), ("openflights", "openflights")):
            source, files = SCHEMAS / f"{space}.yaml", shared / "data" / folder
            client.create_space(space, ingest.schema_of(source, root=files))
            ingest.load(client, space, source, root=files, on_bad_rows="skip", rejects=tmp_path_factory.mktemp("rejects") / f"{space}.csv")
            client.graph(space).build(timeout_s=HANG_S)
        yield running


@pytest.mark.dgl
def test_blocks_are_of_the_graphs_edges_and_models_on_all_of_them_compute_what_they_do_on_the_whole_graph(
    cluster: LocalCluster, dgl_python: Path, rooms: str, tmp_path: Path
) -> None:
    out = dgl_env.run(dgl_python, dgl_env.SCRIPTS / "blocks.py", cluster.addresses, home=tmp_path, more={"PYTHONPATH": rooms})
    assert out.splitlines()[-1] == "OK"


@pytest.mark.dgl
def test_labor_keeps_what_dgls_keeps_as_often_with_its_weights(cluster: LocalCluster, dgl_python: Path, rooms: str, tmp_path: Path) -> None:
    out = dgl_env.run(dgl_python, dgl_env.SCRIPTS / "labor.py", cluster.addresses, home=tmp_path, more={"PYTHONPATH": rooms})
    assert out.splitlines()[-1] == "OK"


@pytest.mark.dgl
def test_pipelines_of_graphbolt_train_on_the_graphs_own_edges_and_features_with_its_loader_and_workers(
    cluster: LocalCluster, bolt_python: Path, rooms: str, tmp_path: Path
) -> None:
    out = dgl_env.run(bolt_python, dgl_env.SCRIPTS / "bolt_pipeline.py", cluster.addresses, home=tmp_path, more={"PYTHONPATH": rooms})
    assert out.splitlines()[-1] == "OK"


@pytest.mark.dgl
def test_models_learn_as_much_from_labors_batches_that_meet_fewer_nodes(
    shared: Path, root: Path, dgl_python: Path, rooms: str, tmp_path: Path
) -> None:
    """The example on Facebook's pages, two trainings each: one accuracy but for what a start of a model makes, and a sixth fewer pages at least."""
    with LocalCluster(storageds=3) as served:
        told = ("--seeds", 2, "--epochs", 3)
        files = shared / "data/facebook"
        out = dgl_env.run(
            dgl_python, root / "examples/sharing.py", served.addresses, files, *told, home=tmp_path, timeout_s=HANG_S, more={"PYTHONPATH": rooms}
        )
    lines = [line.rsplit(maxsplit=5) for line in out.splitlines()]
    found = {line[0]: (float(line[1]), float(line[4])) for line in lines if line[0] in ("neighbor sampling", "LABOR-0", "LABOR-1")}
    print(out)
    accuracy, met = found["neighbor sampling"]
    assert accuracy > 0.8
    for name in ("LABOR-0", "LABOR-1"):
        assert abs(found[name][0] - accuracy) < 0.015
        assert found[name][1] < 5 / 6 * met
    assert found["LABOR-1"][1] < found["LABOR-0"][1]
