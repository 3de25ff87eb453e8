"""The adapter for DGL, in the environment that has it, on real graphs in a cluster of three storageds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.kit import dgl_env
from tests.kit.cluster import LocalCluster

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


@pytest.mark.dgl
def test_blocks_are_of_the_graphs_edges_and_models_on_all_of_them_compute_what_they_do_on_the_whole_graph(
    shared: Path, dgl_python: Path, rooms: str, tmp_path: Path
) -> None:
    with LocalCluster(storageds=3) as cluster:
        client = cluster.client()
        for space, folder in (("citations", "cora"), ("openflights", "openflights")):
            source, files = SCHEMAS / f"{space}.yaml", shared / "data" / folder
            client.create_space(space, ingest.schema_of(source, root=files))
            ingest.load(client, space, source, root=files, on_bad_rows="skip", rejects=tmp_path / f"{space}.csv")
            client.graph(space).build(timeout_s=120)
        script = dgl_env.SCRIPTS / "blocks.py"
        out = dgl_env.run(dgl_python, script, cluster.addresses, home=tmp_path, more={"PYTHONPATH": rooms})
    assert out.splitlines()[-1] == "OK"
