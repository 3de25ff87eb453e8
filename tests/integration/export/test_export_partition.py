"""Exports of a graph of flat arrays, read back by our own readers, and refused exports."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.kit.flat_graph import VERSION, FlatEdges, FlatGraph, FlatNodes, generate
from tests.kit.partitions import assert_partition, read_partition

from asterism import export
from asterism.export.dgl_graph_files import read_graphs
from asterism.export.dgl_tensor_files import read_tensors
from asterism_model.schema import Schema
from asterism_proto.errors import Conflict, Corrupt, InvalidRequest, NotFound

SCHEMA = Schema.from_dict(
    {
        "parts": 3,
        "nodes": {
            "paper": {
                "features": {
                    "feat": {"dtype": "float32", "shape": [3]},
                    "year": "int32",
                    "mask": "bool",
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
NODES = {"paper": 60, "author": 30, "inst": 12}
EDGES = {"paper:cites:paper": 260, "author:writes:paper": 150, "author:affiliated:inst": 40}
USERS = Schema.from_dict(
    {
        "parts": 2,
        "nodes": {"user": {"features": {"x": {"shape": [2]}}}},
        "edges": {"user:knows:user": {"weighted": True, "features": {"t": "int16"}}},
    }
)


def hetero_graph(*, sparse: bool = False, seed: int = 1) -> FlatGraph:
    return generate(SCHEMA, nodes=NODES, edges=EDGES, seed=seed, sparse=sparse)


def users(n: int = 50, m: int = 200) -> FlatGraph:
    return generate(USERS, nodes={"user": n}, edges={"user:knows:user": m}, seed=2, space="users")


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("assign", ["random", "metis"])
@pytest.mark.parametrize("parts", [1, 2, 4])
@pytest.mark.parametrize("hops", [1, 2, 3])
def test_every_node_edge_and_feature_is_in_its_part_once(
    tmp_path: Path, sparse: bool, assign: str, parts: int, hops: int
) -> None:
    graph = hetero_graph(sparse=sparse)
    report = export.dgl(graph, tmp_path / "out", parts=parts, assign=assign, seed=3, halo_hops=hops)
    assert_partition(read_partition(report.config), graph, hops=hops)
    assert (report.nodes, report.edges, report.version) == (
        sum(NODES.values()),
        sum(EDGES.values()),
        VERSION,
    )
    assert report.warnings == ()


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("homogeneous", [False, True])
def test_a_graph_of_one_node_type_and_one_edge_type(
    tmp_path: Path, parts: int, homogeneous: bool
) -> None:
    graph = users()
    report = export.dgl(graph, tmp_path / "out", parts=parts, homogeneous=homogeneous, weight="w")
    names = {"_N": "user", "_N:_E:_N": "user:knows:user"} if homogeneous else {}
    written = read_partition(report.config)
    assert list(written.config["ntypes"]) == (["_N"] if homogeneous else ["user"])
    assert_partition(written, graph, weight="w", names=names)


def test_nodes_are_ordered_by_id_and_edges_by_destination(tmp_path: Path) -> None:
    graph = hetero_graph(sparse=True)
    written = read_partition(export.dgl(graph, tmp_path / "out", parts=3).config)
    for part, arrays in enumerate(written.parts):
        for ids in read_tensors(tmp_path / f"out/part{part}/orig_nids.dgl").values():
            assert (np.diff(ids) > 0).all()
        is_own = arrays["edata/inner_edge"] == 1
        key = arrays["edata/_TYPE"][is_own].astype(np.int64) << 32 | arrays["dst"][is_own]
        assert (np.diff(key) >= 0).all()


def test_all_original_ids_are_listed_next_to_the_parts(tmp_path: Path) -> None:
    written = read_partition(
        export.dgl(hetero_graph(sparse=True), tmp_path / "out", parts=3).config
    )
    for folder, letter in (("node_ids", "n"), ("edge_ids", "e")):
        for kind, ids in written.original_ids(letter).items():
            np.testing.assert_array_equal(
                np.load(tmp_path / f"out/{folder}/{kind}.npy", mmap_mode="r"), ids
            )


def test_csr_and_csc_hold_the_same_edges_as_coo(tmp_path: Path) -> None:
    graph = hetero_graph()
    export.dgl(graph, tmp_path / "out", parts=2, formats=("coo", "csr", "csc"))
    for part in range(2):
        (written_graph,) = read_graphs(tmp_path / f"out/part{part}/graph.dgl").graphs
        (relation,) = written_graph.relations
        assert relation.coo is not None
        assert relation.csr is not None
        assert relation.csc is not None
        src, dst = relation.coo.row.array(), relation.coo.col.array()
        for matrix, ends, others in ((relation.csr, src, dst), (relation.csc, dst, src)):
            eid = matrix.data.array()
            np.testing.assert_array_equal(
                np.repeat(np.arange(matrix.rows), np.diff(matrix.indptr.array())), ends[eid]
            )
            np.testing.assert_array_equal(matrix.indices.array(), others[eid])
            np.testing.assert_array_equal(np.sort(eid), np.arange(len(src)))


def test_bytes_are_equal_for_equal_seeds_only(tmp_path: Path) -> None:
    def digests(name: str, seed: int) -> dict[str, Any]:
        export.dgl(hetero_graph(), tmp_path / name, parts=3, seed=seed)
        return dict(json.loads((tmp_path / name / "manifest.json").read_text())["files"])

    assert digests("a", 1) == digests("b", 1)
    assert digests("c", 2) != digests("a2", 1)


def test_manifest_has_size_and_digest_of_every_file(tmp_path: Path) -> None:
    report = export.dgl(hetero_graph(), tmp_path / "out", parts=2, seed=9, graph_name="g")
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    files = {
        str(p.relative_to(tmp_path / "out")): p
        for p in (tmp_path / "out").rglob("*")
        if p.is_file() and p.name != "manifest.json"
    }
    assert set(manifest["files"]) == set(files)
    for name, path in files.items():
        content = path.read_bytes()
        assert manifest["files"][name] == {
            "bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
        }
    assert (manifest["version"], manifest["seed"], manifest["assign"], manifest["config"]) == (
        VERSION,
        9,
        "random",
        "g.json",
    )
    assert sum(manifest["nodes"]["paper"]) == NODES["paper"]
    assert manifest["edge_cut"] == report.edge_cut > 0


def test_the_edge_cut_is_the_edges_between_parts(tmp_path: Path) -> None:
    report = export.dgl(hetero_graph(), tmp_path / "out", parts=4)
    written = read_partition(report.config)
    cut_edges = sum(
        int((arrays["ndata/part_id"][arrays["src"]] != part)[arrays["edata/inner_edge"] == 1].sum())
        for part, arrays in enumerate(written.parts)
    )
    assert report.edge_cut == cut_edges == sum(part.outer_edges for part in report.parts)


def test_assignment_folder_decides_node_parts(tmp_path: Path) -> None:
    graph, generator = hetero_graph(sparse=True), np.random.default_rng(5)
    owners_by_type = {name: generator.integers(0, 3, n) for name, n in NODES.items()}
    (tmp_path / "parts").mkdir()
    for name, owners in owners_by_type.items():
        np.savetxt(tmp_path / f"parts/{name}.txt", owners, fmt="%d")
    (tmp_path / "parts/partition_meta.json").write_text(
        '{"version": "1.0.0", "num_parts": 3, "algo_name": "metis"}'
    )
    written = read_partition(
        export.dgl(graph, tmp_path / "out", parts=3, assign=tmp_path / "parts").config
    )
    assert_partition(written, graph)
    assert written.config["part_method"] == "metis"
    for part in range(3):
        for name, ids in read_tensors(tmp_path / f"out/part{part}/orig_nids.dgl").items():
            np.testing.assert_array_equal(
                ids, np.sort(graph.nodes[name].ids)[owners_by_type[name] == part]
            )


def test_batches_of_any_size_make_the_same_export(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export.dgl(hetero_graph(), tmp_path / "large", parts=3)
    monkeypatch.setattr("asterism.export.export_schema._BATCH_ROWS", 7)
    monkeypatch.setattr("asterism.export.scratch_files.PIECE_BYTES", 64)
    monkeypatch.setattr("asterism.export.halo_parts._STEP", 5)
    export.dgl(hetero_graph(), tmp_path / "small", parts=3)
    assert (tmp_path / "large/manifest.json").read_bytes() == (
        tmp_path / "small/manifest.json"
    ).read_bytes()


def test_progress_reaches_the_end_of_every_phase(tmp_path: Path) -> None:
    progress: dict[str, tuple[int, int | None]] = {}
    export.dgl(
        hetero_graph(),
        tmp_path / "out",
        parts=2,
        assign="metis",
        progress=lambda phase, done, total: progress.update({phase: (done, total)}),
    )
    assert [phase.split(",")[0] for phase in progress] == [
        "node ids",
        "edges to assign by",
        "METIS",
        "node features",
        "edges",
        "edge features",
        "graphs",
    ]
    assert all(total in (None, done) for done, total in progress.values())
    assert progress["edges"][0] == sum(EDGES.values())


# -- warnings --------------------------------------------------------------------------------------


def star_graph(nodes: int, edges: int) -> FlatGraph:
    """Return a graph with all edges leading to the first node."""
    return FlatGraph(
        schema=USERS,
        nodes={
            "user": FlatNodes(
                ids=np.arange(nodes),
                weights=np.ones(nodes, np.float32),
                features={"x": np.zeros((nodes, 2), np.float32)},
            )
        },
        edges={
            "user:knows:user": FlatEdges(
                src=np.arange(edges) % nodes,
                dst=np.zeros(edges, np.int64),
                eids=np.arange(edges),
                weights=np.ones(edges, np.float32),
                features={"t": np.zeros(edges, np.int16)},
            )
        },
    )


def test_every_part_gets_a_node_while_there_are_enough(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # An earlier logging configuration in this process may have disabled loggers that it did not
    # know.
    monkeypatch.setattr(logging.getLogger("asterism.export"), "disabled", False)
    with caplog.at_level(logging.WARNING, "asterism.export"):
        report = export.dgl(star_graph(9, 5), tmp_path / "out", parts=8)
    assert all(part.nodes["user"] >= 1 for part in report.parts)
    assert any("moved" in warning for warning in report.warnings)
    assert {record.getMessage() for record in caplog.records} == set(report.warnings)


def test_parts_without_nodes_or_edges_are_warned_about(tmp_path: Path) -> None:
    graph = star_graph(2, 3)
    report = export.dgl(graph, tmp_path / "out", parts=4)
    assert_partition(read_partition(report.config), graph)
    warnings = "\n".join(report.warnings)
    assert "2 nodes cannot give each of 4 parts one" in warnings
    assert warnings.count("has no node of type user") == 2
    assert "own no edge of type user:knows:user" in warnings
    assert warnings.count("owns no edge:") == 3


def test_empty_type_is_written_and_gives_a_warning(tmp_path: Path) -> None:
    graph = generate(
        SCHEMA, nodes=NODES | {"inst": 0}, edges=EDGES | {"author:affiliated:inst": 0}, seed=1
    )
    report = export.dgl(graph, tmp_path / "out", parts=2)
    assert_partition(read_partition(report.config), graph)
    assert report.warnings == (
        "node type inst has no nodes",
        "edge type author:affiliated:inst has no edges",
    )


# -- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"parts": 0}, "parts=0"),
        ({"parts": 1 << 16}, "parts=65536"),
        ({"parts": 2, "halo_hops": 0}, "halo_hops=0"),
        ({"parts": 2, "assign": "magic"}, "magic"),
        ({"parts": 2, "formats": ["coo", "xyz"]}, "xyz"),
        ({"parts": 2, "formats": []}, "formats"),
        ({"parts": 2, "objective": "speed"}, "speed"),
        ({"parts": 2, "graph_name": "a/b"}, "a/b"),
        ({"parts": 2, "graph_name": "manifest"}, "manifest"),
        (
            {"parts": 2, "homogeneous": True},
            "expected one node type and one edge type, the space has 3",
        ),
        ({"parts": 2, "weight": "y"}, "'y'"),
    ],
)
def test_invalid_option_is_refused_and_leaves_no_files(
    tmp_path: Path, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(InvalidRequest, match=words):
        export.dgl(hetero_graph(), tmp_path / "out", **options)
    assert list(tmp_path.iterdir()) == []


def test_a_graph_without_nodes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="expected nodes to export"):
        export.dgl(users(0, 0), tmp_path / "out", parts=2)
    assert list(tmp_path.iterdir()) == []


def test_missing_version_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="version 3"):
        export.dgl(users(), tmp_path / "out", parts=2, version=3)


def test_a_folder_that_is_not_empty_is_replaced_only_on_request(tmp_path: Path) -> None:
    out = tmp_path / "out"
    export.dgl(users(), out, parts=2)
    (out / "mine").write_text("x")
    with pytest.raises(Conflict, match="overwrite"):
        export.dgl(users(), out, parts=3)
    assert (out / "mine").exists()
    export.dgl(users(), out, parts=3, overwrite=True)
    assert (out / "part2").is_dir()
    assert not (out / "mine").exists()
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize("name", ["mine", "manifest.json"])
def test_a_folder_with_other_files_is_never_replaced(tmp_path: Path, name: str) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / name).write_text('{"name": "a web page"}')
    with pytest.raises(Conflict, match="found other files; pass another folder"):
        export.dgl(users(), out, parts=2, overwrite=True)
    assert [path.name for path in out.iterdir()] == [name]
    assert list(tmp_path.iterdir()) == [out]


def test_empty_folder_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    export.dgl(users(), tmp_path / "out", parts=2)
    assert (tmp_path / "out/users.json").exists()


class BrokenEdgesGraph(FlatGraph):
    """A graph that fails while its edges are read."""

    def scan_edges(self, *arguments: Any, **options: Any) -> Iterator[Any]:
        yield next(super().scan_edges(*arguments, **options))
        raise ConnectionError("gone")


def test_failed_export_keeps_the_previous_one(tmp_path: Path) -> None:
    out, graph = tmp_path / "out", users()
    export.dgl(graph, out, parts=2)
    before = (out / "manifest.json").read_bytes()
    with pytest.raises(ConnectionError):
        export.dgl(
            BrokenEdgesGraph(schema=graph.schema, nodes=graph.nodes, edges=graph.edges),
            out,
            parts=3,
            overwrite=True,
        )
    assert (out / "manifest.json").read_bytes() == before
    assert list(tmp_path.iterdir()) == [out]


def test_edge_to_a_missing_node_is_corrupt(tmp_path: Path) -> None:
    graph = star_graph(5, 4)
    graph.edges["user:knows:user"].dst[2] = 77
    with pytest.raises(Corrupt, match="77"):
        export.dgl(graph, tmp_path / "out", parts=2)


def test_a_node_that_comes_twice_is_corrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the two rows are in different pieces of the scratch file."""
    monkeypatch.setattr("asterism.export.scratch_files.PIECE_BYTES", 8)
    graph = users()
    nodes = graph.nodes["user"]
    twice = replace(nodes, ids=np.where(nodes.ids == 7, 8, nodes.ids))
    with pytest.raises(Corrupt, match="gives user 8 twice"):
        export.dgl(replace(graph, nodes={"user": twice}), tmp_path / "out", parts=2)


def test_a_number_beyond_int64_is_refused(tmp_path: Path) -> None:
    schema = Schema.from_dict(
        {"nodes": {"user": {"features": {"x": "uint64"}}}, "edges": {"user:knows:user": {}}}
    )
    graph = generate(schema, nodes={"user": 2}, edges={"user:knows:user": 2}, seed=1)
    graph.nodes["user"].features["x"][1] = 1 << 63
    with pytest.raises(InvalidRequest, match=str(1 << 63)):
        export.dgl(graph, tmp_path / "out", parts=1)
