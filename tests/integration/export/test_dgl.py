"""The DGL adapter in an environment with real DGL, on real graphs and three storageds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kit import dgl_env
from tests.kit.cluster import LocalCluster
from tests.kit.waiting import HANG_S
from tests.kit.warm_interpreter import WarmInterpreter

from asterism import ingest

SCHEMAS = Path(__file__).parents[3] / "examples/schemas"


def trainer_path(root: Path) -> str:
    """Return the module search path of a trainer that runs the client from its sources."""
    return os.pathsep.join(map(str, (root / "client", root / "proto", root)))


@pytest.fixture
def python_path(root: Path) -> str:
    return trainer_path(root)


@pytest.fixture(scope="module")
def dgl(
    dgl_python: Path, root: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WarmInterpreter]:
    """Import DGL and the client once for the trainers."""
    home = tmp_path_factory.mktemp("dgl")
    with dgl_env.warm(dgl_python, home, "asterism", python_path=trainer_path(root)) as interpreter:
        yield interpreter


@pytest.mark.dgl
def test_dgl_graphs_round_trip_through_a_space(
    dgl: WarmInterpreter, python_path: str, tmp_path: Path
) -> None:
    with LocalCluster(storageds=1) as cluster:
        out = dgl_env.run(
            dgl,
            dgl_env.SCRIPTS / "objects.py",
            cluster.addresses,
            home=tmp_path,
            extra_environment={"PYTHONPATH": python_path},
        )
    assert out.splitlines()[-1] == "OK"


@pytest.fixture(scope="module")
def cluster(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Serve Cora and OpenFlights on three storageds."""
    with LocalCluster(storageds=3) as running:
        client = running.client()
        for space, folder in (("citations", "cora"), ("openflights", "openflights")):
            source, files = SCHEMAS / f"{space}.yaml", shared / "data" / folder
            client.create_space(space, ingest.schema_of(source, root=files))
            ingest.load(
                client,
                space,
                source,
                root=files,
                on_bad_rows="skip",
                rejects=tmp_path_factory.mktemp("rejects") / f"{space}.csv",
            )
            client.graph(space).build(timeout_s=HANG_S)
        yield running


@pytest.mark.dgl
def test_blocks_have_the_graphs_edges_and_full_graph_outputs(
    cluster: LocalCluster, dgl: WarmInterpreter, python_path: str, tmp_path: Path
) -> None:
    out = dgl_env.run(
        dgl,
        dgl_env.SCRIPTS / "blocks.py",
        cluster.addresses,
        home=tmp_path,
        extra_environment={"PYTHONPATH": python_path},
    )
    assert out.splitlines()[-1] == "OK"


@pytest.mark.dgl
def test_blocks_of_links_contain_none_of_them_as_in_dgl(
    cluster: LocalCluster, dgl: WarmInterpreter, python_path: str, tmp_path: Path
) -> None:
    out = dgl_env.run(
        dgl,
        dgl_env.SCRIPTS / "links.py",
        cluster.addresses,
        home=tmp_path,
        extra_environment={"PYTHONPATH": python_path},
    )
    assert out.splitlines()[-1] == "OK"


@pytest.mark.dgl
def test_labor_matches_dgls_frequencies_and_weights(
    cluster: LocalCluster, dgl: WarmInterpreter, python_path: str, tmp_path: Path
) -> None:
    out = dgl_env.run(
        dgl,
        dgl_env.SCRIPTS / "labor.py",
        cluster.addresses,
        home=tmp_path,
        extra_environment={"PYTHONPATH": python_path},
    )
    assert out.splitlines()[-1] == "OK"


@pytest.mark.dgl
def test_graphbolt_pipelines_train_on_exact_edges_and_features(
    cluster: LocalCluster, bolt_python: Path, python_path: str, tmp_path: Path
) -> None:
    out = dgl_env.run(
        bolt_python,
        dgl_env.SCRIPTS / "bolt_pipeline.py",
        cluster.addresses,
        home=tmp_path,
        extra_environment={"PYTHONPATH": python_path},
    )
    assert out.splitlines()[-1] == "OK"


@pytest.mark.dgl
def test_tensor_gather_scatter_match_arrays_with_gradients(
    dgl: WarmInterpreter, python_path: str, tmp_path: Path
) -> None:
    """Run the local operations on torch tensors, which the environment has."""
    out = dgl_env.run(
        dgl,
        dgl_env.SCRIPTS / "torch_ops.py",
        home=tmp_path,
        extra_environment={"PYTHONPATH": python_path},
    )
    assert out.splitlines()[-1] == "OK"


@pytest.mark.dgl
def test_models_learn_as_much_from_smaller_labor_batches(
    cluster: LocalCluster,
    shared: Path,
    root: Path,
    dgl: WarmInterpreter,
    python_path: str,
    tmp_path: Path,
) -> None:
    """Train on the Facebook pages with neighbor sampling and LABOR, two seeds each.

    The accuracies differ by no more than the noise of the initialization. LABOR visits at least a
    sixth fewer pages.
    """
    out = dgl_env.run(
        dgl,
        root / "examples/sharing.py",
        cluster.addresses,
        shared / "data/facebook",
        *("--seeds", 2, "--epochs", 2),
        home=tmp_path,
        timeout_s=HANG_S,
        extra_environment={"PYTHONPATH": python_path},
    )
    lines = [line.rsplit(maxsplit=5) for line in out.splitlines()]
    results = {
        line[0]: (float(line[1]), float(line[4]))
        for line in lines
        if line[0] in ("neighbor sampling", "LABOR-0", "LABOR-1")
    }
    print(out)
    accuracy, visited = results["neighbor sampling"]
    assert accuracy > 0.8
    for name in ("LABOR-0", "LABOR-1"):
        assert abs(results[name][0] - accuracy) < 0.015
        assert results[name][1] < 5 / 6 * visited
    assert results["LABOR-1"][1] < results["LABOR-0"][1]
