"""Exports read by DGL: loaded partition by partition, then served by real DGL servers."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.kit import dgl_env
from tests.kit.communities import communities
from tests.kit.flat_graph import FlatEdges, FlatGraph, FlatNodes, generate, publish
from tests.kit.partitions import assert_partition, read_dump, write_input
from tests.kit.warm_interpreter import WarmInterpreter

import asterism
from asterism import Client, export
from asterism_model.schema import Schema
from asterism_proto.framing import DTYPES

pytestmark = pytest.mark.dgl

SCHEMA = Schema.from_dict(
    {
        "parts": 3,
        "nodes": {
            "paper": {
                "features": {
                    "feat": {"dtype": "float32", "shape": [5]},
                    "year": "int32",
                    "mask": "bool",
                    "half": "float16",
                }
            },
            "author": {"weighted": True, "features": {"h": {"dtype": "float64", "shape": [2, 2]}}},
            "inst": {},
        },
        "edges": {
            "paper:cites:paper": {
                "weighted": True,
                "features": {"y": {"dtype": "int64", "shape": [2]}},
            },
            "author:writes:paper": {"weighted": True},
            "author:affiliated:inst": {},
        },
    }
)
NODES = {"paper": 900, "author": 400, "inst": 40}
EDGES = {"paper:cites:paper": 4000, "author:writes:paper": 2500, "author:affiliated:inst": 600}
USERS = Schema.from_dict(
    {
        "parts": 2,
        "nodes": {"user": {"features": {"x": {"shape": [4]}}}},
        "edges": {"user:knows:user": {"weighted": True}},
    }
)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with asterism.open(tmp_path_factory.mktemp("service")) as client:
        yield client


@pytest.fixture(scope="module")
def dgl(dgl_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmInterpreter]:
    with dgl_env.warm(dgl_python, tmp_path_factory.mktemp("dgl")) as interpreter:
        yield interpreter


def hetero_graph(*, sparse: bool) -> FlatGraph:
    return generate(
        SCHEMA,
        nodes=NODES,
        edges=EDGES,
        seed=11,
        sparse=sparse,
        space="sparse" if sparse else "dense",
    )


def users() -> FlatGraph:
    return generate(
        USERS, nodes={"user": 500}, edges={"user:knows:user": 3000}, seed=12, space="users"
    )


def load_in_dgl(python: WarmInterpreter, config: Path, folder: Path) -> Path:
    """Return the results of `load_partition` for every part, with DGL's assertions enabled."""
    dump = folder / "dump"
    dump.mkdir()
    dgl_env.run(python, dgl_env.SCRIPTS / "load_parts.py", config, dump, home=folder)
    return dump


@pytest.mark.parametrize(
    ("sparse", "assign", "parts", "hops", "formats"),
    [
        (True, "random", 4, 1, ("coo",)),
        (True, "metis", 3, 1, ("coo", "csr", "csc")),
        (False, "metis", 2, 2, ("csc",)),
        (False, "random", 1, 1, ("coo",)),
    ],
)
def test_dgl_loads_every_node_edge_and_feature_of_every_part(
    tmp_path: Path,
    dgl: WarmInterpreter,
    sparse: bool,
    assign: str,
    parts: int,
    hops: int,
    formats: tuple[str, ...],
) -> None:
    graph = hetero_graph(sparse=sparse)
    report = export.dgl(
        graph, tmp_path / "out", parts=parts, assign=assign, seed=1, halo_hops=hops, formats=formats
    )
    assert_partition(
        read_dump(report.config, load_in_dgl(dgl, report.config, tmp_path)), graph, hops=hops
    )


def test_dgl_loads_a_graph_without_types(tmp_path: Path, dgl: WarmInterpreter) -> None:
    graph = users()
    report = export.dgl(graph, tmp_path / "out", parts=3, homogeneous=True)
    written = read_dump(report.config, load_in_dgl(dgl, report.config, tmp_path))
    assert_partition(written, graph, names={"_N": "user", "_N:_E:_N": "user:knows:user"})


def test_dgl_loads_features_of_every_dtype_of_nodes_and_of_edges(
    tmp_path: Path, dgl: WarmInterpreter
) -> None:
    columns = {f"f_{dtype}": {"dtype": dtype, "shape": [2]} for dtype in DTYPES}
    schema = Schema.from_dict(
        {
            "parts": 2,
            "nodes": {"user": {"features": columns}},
            "edges": {"user:knows:user": {"features": columns}},
        }
    )
    graph = generate(
        schema, nodes={"user": 60}, edges={"user:knows:user": 300}, seed=12, space="users"
    )
    report = export.dgl(graph, tmp_path / "out", parts=3, assign="ldg")
    written = read_dump(report.config, load_in_dgl(dgl, report.config, tmp_path))
    written_dtypes = {"bool": "uint8", "uint16": "int32", "uint32": "int64", "uint64": "int64"}
    expected_dtypes = {f"f_{dtype}": written_dtypes.get(dtype, dtype) for dtype in DTYPES}
    for frame in ("nfeat", "efeat"):
        for part in written.parts:
            assert {
                name.split("|")[2]: values.dtype.name
                for name, values in part.items()
                if name.startswith(frame)
            } == expected_dtypes
    widened = {
        kind: dataclasses.replace(
            rows, features={n: v.astype(expected_dtypes[n]) for n, v in rows.features.items()}
        )
        for kind, rows in graph.nodes.items()
    }
    edges = {
        kind: dataclasses.replace(
            rows, features={n: v.astype(expected_dtypes[n]) for n, v in rows.features.items()}
        )
        for kind, rows in graph.edges.items()
    }
    assert_partition(written, dataclasses.replace(graph, nodes=widened, edges=edges))


def test_dgl_loads_a_graph_published_by_a_service(
    tmp_path: Path, dgl: WarmInterpreter, client: Client
) -> None:
    graph, flat = publish(client, hetero_graph(sparse=True))
    report = export.dgl(graph, tmp_path / "out", parts=3, assign="metis", seed=1)
    assert report.version == client.versions("sparse")[-1].version
    assert_partition(read_dump(report.config, load_in_dgl(dgl, report.config, tmp_path)), flat)


def test_dgl_loads_a_graph_after_deletions(
    tmp_path: Path, dgl: WarmInterpreter, client: Client
) -> None:
    graph, flat = publish(client, dataclasses.replace(users(), space="thinned"))
    deleted = np.arange(0, 500, 7)
    graph.delete_nodes(deleted, "user")
    graph.build()
    report = export.dgl(graph, tmp_path / "out", parts=2)
    assert_partition(
        read_dump(report.config, load_in_dgl(dgl, report.config, tmp_path)),
        flat.without_nodes("user", deleted),
    )


@pytest.mark.parametrize(("parts", "assign"), [(2, "random"), (4, "metis")])
def test_dgl_servers_serve_and_sample_a_published_graph(
    tmp_path: Path, shared: Path, dgl: WarmInterpreter, client: Client, parts: int, assign: str
) -> None:
    graph, flat = publish(
        client, dataclasses.replace(hetero_graph(sparse=False), space=f"served{parts}")
    )
    report = export.dgl(graph, tmp_path / "out", parts=parts, assign=assign, seed=2)
    assert report.warnings == ()
    write_input(flat, tmp_path / "input.npz")
    script = shared / "dgl/check_distributed.py"
    out = dgl_env.run(
        dgl,
        script,
        report.config,
        tmp_path / "input.npz",
        "--weight",
        "weight",
        home=tmp_path,
    )
    assert out.splitlines()[-1].startswith(f"ok: {parts} parts, {sum(NODES.values())} nodes")


def test_dgls_server_of_one_part_serves_a_graph_without_types(
    tmp_path: Path, shared: Path, dgl: WarmInterpreter
) -> None:
    flat = users()
    report = export.dgl(flat, tmp_path / "out", parts=1, homogeneous=True)
    write_input(flat, tmp_path / "input.npz", names={"user": "_N", "user:knows:user": "_N:_E:_N"})
    script = shared / "dgl/check_distributed.py"
    out = dgl_env.run(
        dgl,
        script,
        report.config,
        tmp_path / "input.npz",
        "--weight",
        "weight",
        home=tmp_path,
    )
    assert "standalone" in out.splitlines()[-1]


def test_metis_cuts_no_more_edges_than_in_dgl(tmp_path: Path, dgl: WarmInterpreter) -> None:
    schema, nodes = (
        Schema.from_dict({"nodes": {"user": {}}, "edges": {"user:knows:user": {}}}),
        10_000,
    )
    ours, folders = [], [tmp_path / f"{seed}" for seed in range(5)]
    for seed, folder in enumerate(folders):
        folder.mkdir()
        src, dst = communities(nodes, 100_000, seed=seed)
        for name, values in (("src", src), ("dst", dst), ("nodes", np.array(nodes))):
            np.save(folder / f"{name}.npy", values)
        graph = FlatGraph(
            schema=schema,
            nodes={"user": FlatNodes(ids=np.arange(nodes), weights=np.ones(nodes, np.float32))},
            edges={
                "user:knows:user": FlatEdges(
                    src=src,
                    dst=dst,
                    eids=np.arange(len(src)),
                    weights=np.ones(len(src), np.float32),
                )
            },
        )
        ours.append(export.dgl(graph, folder / "out", parts=4, assign="metis").edge_cut)
    theirs = json.loads(
        dgl_env.run(dgl, dgl_env.SCRIPTS / "metis_cut.py", 4, *folders, home=tmp_path).splitlines()[
            -1
        ]
    )
    assert np.mean(ours) <= 1.02 * np.mean(theirs)
    assert min(ours) > 0


def test_dgls_servers_serve_parts_that_trainers_share(
    tmp_path: Path, shared: Path, dgl: WarmInterpreter
) -> None:
    flat = dataclasses.replace(hetero_graph(sparse=False), space="shared")
    report = export.dgl(
        flat, tmp_path / "out", parts=2, assign="fennel", num_trainers_per_machine=2, passes=2
    )
    assert_partition(
        read_dump(report.config, load_in_dgl(dgl, report.config, tmp_path)), flat, trainers=2
    )
    write_input(flat, tmp_path / "input.npz")
    script = shared / "dgl/check_distributed.py"
    out = dgl_env.run(
        dgl,
        script,
        report.config,
        tmp_path / "input.npz",
        "--weight",
        "weight",
        home=tmp_path,
    )
    assert out.splitlines()[-1].startswith(f"ok: 2 parts, {sum(NODES.values())} nodes")
