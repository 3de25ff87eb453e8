"""Exports in DGL's chunked format.

Loading one again gives the same space with equal image digests. Interrupted exports resume.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.integration.export.test_export_resumed import failing_graph, graph
from tests.kit.flat_graph import FlatGraph, generate, publish

import asterism
from asterism import Client, export, ingest
from asterism_model.schema import Schema
from asterism_proto.errors import InvalidRequest, Unavailable
from asterism_proto.v1 import metad_pb2 as metad_pb

SCHEMA = Schema.from_dict(
    {
        "parts": 3,
        "direction": "both",
        "nodes": {
            "paper": {
                "features": {
                    "feat": {"dtype": "float32", "shape": [3]},
                    "year": "uint16",
                    "mask": "bool",
                }
            },
            "author": {"weighted": True, "features": {"h": {"dtype": "float64", "shape": [2]}}},
            "empty": {},
        },
        "edges": {
            "paper:cites:paper": {
                "weighted": True,
                "features": {"y": {"dtype": "int64", "shape": [2]}},
            },
            "author:writes:paper": {},
            "author:knows:empty": {},
        },
    }
)


def hetero_graph(*, sparse: bool = False) -> FlatGraph:
    nodes = {"paper": 300, "author": 120, "empty": 0}
    edges = {"paper:cites:paper": 1500, "author:writes:paper": 700, "author:knows:empty": 0}
    return generate(SCHEMA, nodes=nodes, edges=edges, seed=6, sparse=sparse, space="whole")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with asterism.open(tmp_path_factory.mktemp("service")) as client:
        yield client


def image_digests(client: Client, space: str) -> dict[int, str]:
    """Return the digest of each partition's content.

    A version's own digest also covers its space and creation time.
    """
    entry = client.session.catalog("export_space", metad_pb.ExportSpaceRequest(space=space))
    return {image.part: image.digest for image in entry.manifest.images}


@pytest.mark.parametrize("edges", ["csv", "parquet", "numpy"])
def test_space_loaded_from_its_own_chunks_has_equal_digests(
    tmp_path: Path, client: Client, edges: str
) -> None:
    flat = dataclasses.replace(hetero_graph(), space=f"from_{edges}")
    first, _ = publish(client, flat)
    report = export.chunks(first, tmp_path / "out", chunk_rows=97, edges=edges)
    assert (report.nodes, report.edges, report.warnings) == (
        420,
        2200,
        ("node type empty has no nodes",),
    )
    client.create_space(f"to_{edges}", flat.schema)
    ingest.load(client, f"to_{edges}", tmp_path / "out")
    second = client.graph(f"to_{edges}")
    second.build()
    assert image_digests(client, f"to_{edges}") == image_digests(client, f"from_{edges}")


def test_sparse_ids_become_dense_in_order_and_are_saved(tmp_path: Path) -> None:
    flat = hetero_graph(sparse=True)
    export.chunks(flat, tmp_path / "out", chunk_rows=10_000, edges="numpy")
    ids = {name: np.load(tmp_path / f"out/node_ids/{name}.npy") for name in ("paper", "author")}
    for name, stored in ids.items():
        np.testing.assert_array_equal(stored, np.sort(flat.nodes[name].ids))
    stored = flat.edges["author:writes:paper"]
    order = np.argsort(stored.eids)
    ends = np.load(tmp_path / "out/edges/author_writes_paper/0.npy")
    np.testing.assert_array_equal(ids["author"][ends[:, 0]], stored.src[order])
    np.testing.assert_array_equal(ids["paper"][ends[:, 1]], stored.dst[order])
    np.testing.assert_array_equal(
        np.load(tmp_path / "out/edge_ids/author_writes_paper.npy"), stored.eids[order]
    )
    np.testing.assert_array_equal(
        np.load(tmp_path / "out/node_data/paper/mask/0.npy"),
        flat.nodes["paper"].features["mask"][np.argsort(flat.nodes["paper"].ids)],
    )


def test_interrupted_chunks_resume_to_the_same_manifest(tmp_path: Path) -> None:
    with pytest.raises(Unavailable):
        export.chunks(failing_graph(graph(), "user:knows:user"), tmp_path / "out", resume=True)
    export.chunks(graph(), tmp_path / "out", resume=True, memory_limit_mib=64)
    export.chunks(graph(), tmp_path / "whole")

    def manifest(name: str) -> Any:
        return json.loads((tmp_path / name / "manifest.json").read_text())

    assert manifest("out") == manifest("whole")
    assert {path.name for path in tmp_path.iterdir()} == {"out", "whole"}


def test_metadata_has_the_fields_that_dgl_tools_need(tmp_path: Path) -> None:
    export.chunks(hetero_graph(), tmp_path / "out", chunk_rows=200)
    metadata = json.loads((tmp_path / "out/metadata.json").read_text())
    assert metadata["num_nodes_per_type"] == [300, 120, 0]
    assert metadata["num_nodes_per_chunk"] == [[200, 100], [120], [0]]
    assert metadata["num_edges_per_type"] == [1500, 700, 0]
    assert metadata["edges"]["author:writes:paper"]["format"] == {"name": "csv", "delimiter": " "}
    lines = (tmp_path / "out/edges/author_writes_paper/0.csv").read_text().splitlines()
    assert len(lines) == 200
    assert all(field.isdigit() for line in lines for field in line.split(" "))


def test_last_chunk_of_a_single_row_is_written(tmp_path: Path) -> None:
    flat = hetero_graph()
    export.chunks(flat, tmp_path / "out", chunk_rows=299, edges="numpy")
    metadata = json.loads((tmp_path / "out/metadata.json").read_text())
    assert metadata["num_nodes_per_chunk"] == [[299, 1], [120], [0]]
    files = metadata["node_data"]["paper"]["year"]["data"]
    years = np.concatenate([np.load(tmp_path / "out" / name) for name in files])
    order = np.argsort(flat.nodes["paper"].ids)
    np.testing.assert_array_equal(years, flat.nodes["paper"].features["year"][order])


def test_invalid_options_are_refused(tmp_path: Path) -> None:
    for options, message in (({"edges": "xml"}, "xml"), ({"chunk_rows": 0}, "chunk_rows=0")):
        with pytest.raises(InvalidRequest, match=message):
            export.chunks(hetero_graph(), tmp_path / "out", **options)
