"""Partitions equal to those of DGL's own tools.

Given the assignment that DGL wrote, our partitions have the same content.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.kit.flat_graph import FlatEdges, FlatGraph, FlatNodes
from tests.kit.partitions import IdRanges

from asterism import export
from asterism.export.dgl_graph_files import DglGraph, read_graphs
from asterism.export.dgl_tensor_files import read_tensors
from asterism.export.partitioning.assignment_files import assignment_lines, partition_meta
from asterism_model.schema import Schema
from asterism_model.schema.features import RESERVED_NAMES

DGL_PARTITIONS = (
    *(
        "homo_random_1",
        "homo_random_2",
        "homo_random_4",
        "homo_metis_1",
        "homo_metis_2",
        "homo_metis_4",
    ),
    *("homo_random_2_csc", "homo_random_2_cooccsccsr", "homo_random_2_hops2"),
    *(
        "hetero_random_1",
        "hetero_random_2",
        "hetero_random_2_csc",
        "hetero_metis_1",
        "hetero_metis_2",
        "hetero_metis_4",
    ),
)

Features = dict[tuple[str, str, int], tuple[str, Any]]
"""Map of (type, feature, original id) to (dtype, value)."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """A partition in the ids of the input: every node and edge has its id as a feature."""

    nodes: list[tuple[str, int]]
    """Owned nodes. The order within a type is the writer's choice."""
    halo: set[tuple[str, int]]
    edges: set[tuple[str, int, tuple[str, int], tuple[str, int], bool]]
    """Tuples (type, id, source, destination, owned by this partition)."""
    features: Features
    graph: DglGraph


def read_input(path: Path) -> FlatGraph:
    """Return the input graph of a reference data set."""
    arrays = dict(np.load(path))
    ntypes = [name.split("/")[1] for name in arrays if name.startswith("num_nodes/")]
    etypes = [name.split("/")[1] for name in arrays if name.endswith("/src")]

    def features(frame: str, kind: str) -> dict[str, NDArray[Any]]:
        # Some names are reserved in a space.
        return {
            name.split("/")[2] + "_" * (name.split("/")[2] in RESERVED_NAMES): values
            for name, values in arrays.items()
            if name.startswith(f"{frame}/{kind}/")
        }

    def declared(frame: str, kind: str) -> dict[str, Any]:
        return {
            name: {"dtype": values.dtype.name, "shape": list(values.shape[1:])}
            for name, values in features(frame, kind).items()
        }

    return FlatGraph(
        schema=Schema.from_dict(
            {
                "parts": 2,
                "nodes": {kind: {"features": declared("ndata", kind)} for kind in ntypes},
                "edges": {kind: {"features": declared("edata", kind)} for kind in etypes},
            }
        ),
        nodes={
            kind: FlatNodes(
                ids=np.arange(n), weights=np.ones(n, np.float32), features=features("ndata", kind)
            )
            for kind in ntypes
            for n in [int(arrays[f"num_nodes/{kind}"])]
        },
        edges={
            kind: FlatEdges(
                src=src,
                dst=dst,
                eids=np.arange(len(src)),
                weights=np.ones(len(src), np.float32),
                features=features("edata", kind),
            )
            for kind in etypes
            for src, dst in [(arrays[f"edges/{kind}/src"], arrays[f"edges/{kind}/dst"])]
        },
    )


def edge_ends(graph: DglGraph) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return sources and destinations by edge id, from any sparse format of the graph."""
    (relation,) = graph.relations
    if relation.coo is not None:
        return relation.coo.row.array(), relation.coo.col.array()
    matrix = relation.csc or relation.csr
    assert matrix is not None
    by_row, other = (
        np.repeat(np.arange(matrix.rows), np.diff(matrix.indptr.array())),
        matrix.indices.array(),
    )
    ends = np.empty(len(by_row), np.int64), np.empty(len(by_row), np.int64)
    ends[0][matrix.data.array()], ends[1][matrix.data.array()] = by_row, other
    return ends if matrix is relation.csr else ends[::-1]


def read_partition(config: Path) -> list[Part]:
    """Return every partition of an export."""
    content: Mapping[str, Any] = json.loads(config.read_text())
    nodes, edges = IdRanges.from_config(content, "node"), IdRanges.from_config(content, "edge")
    files = [
        {key: config.parent / path for key, path in content[f"part-{part}"].items()}
        for part in range(content["num_parts"])
    ]
    frames = [
        tuple(
            {
                key.rstrip("_"): values
                for key, values in read_tensors(paths[f"{what}_feats"]).items()
            }
            for what in ("node", "edge")
        )
        for paths in files
    ]
    ids = [
        {
            kind: np.concatenate([frame[index][f"{kind}/{name}"] for frame in frames])
            for kind in space.kinds
        }
        for index, (space, name) in enumerate(((nodes, "nid"), (edges, "eid")))
    ]

    def original_ids(space: IdRanges, gids: NDArray[np.int64]) -> list[tuple[str, int]]:
        _, kinds, typewise = space.locate(gids)
        ids_by_type = ids[0 if space is nodes else 1]
        return [
            (space.kinds[k], int(ids_by_type[space.kinds[k]][i]))
            for k, i in zip(kinds.tolist(), typewise.tolist(), strict=True)
        ]

    parts = []
    for part, part_files in enumerate(files):
        (graph,) = read_graphs(part_files["part_graph"]).graphs
        local = original_ids(nodes, graph.ndata[0]["_ID"].array())
        src, dst = edge_ends(graph)
        inner = graph.edata[0]["inner_edge"].array()
        local_edges = original_ids(edges, graph.edata[0]["_ID"].array())
        features: Features = {}
        for frame, name in zip(frames[part], ("nid", "eid"), strict=True):
            for key, values in frame.items():
                kind, feature = key.split("/")
                features |= {
                    (kind, feature, i): (values.dtype.name, value.tolist())
                    for i, value in zip(frame[f"{kind}/{name}"].tolist(), values, strict=True)
                }
        own_count = int(graph.ndata[0]["inner_node"].array().sum())
        parts.append(
            Part(
                nodes=local[:own_count],
                halo=set(local[own_count:]),
                edges={
                    (*local_edges[i], local[src[i]], local[dst[i]], bool(inner[i]))
                    for i in range(len(local_edges))
                },
                features=features,
                graph=graph,
            )
        )
    return parts


def write_assignment(theirs: list[Part], graph: FlatGraph, folder: Path) -> Path:
    """Write the assignment of the given partitions and return its folder."""
    folder.mkdir()
    owners = {kind: np.full(len(nodes.ids), -1, np.int32) for kind, nodes in graph.nodes.items()}
    for part, each in enumerate(theirs):
        for kind, node in each.nodes:
            owners[kind][node] = part
    for kind, each in owners.items():
        (folder / f"{kind}.txt").write_bytes(b"".join(assignment_lines(each)))
    (folder / "partition_meta.json").write_bytes(partition_meta(len(theirs), "given"))
    return folder


@pytest.mark.parametrize("name", DGL_PARTITIONS)
def test_export_reproduces_dgl_partition_graph_output(
    tmp_path: Path, shared: Path, name: str
) -> None:
    truth = shared / "dgl/truth/dgl-2.1.0"
    graph, config = (
        read_input(truth / f"{name.split('_')[0]}_input.npz"),
        truth / name / f"{name}.json",
    )
    theirs, expected = read_partition(config), json.loads(config.read_text())
    relation = theirs[0].graph.relations[0]
    formats = [layout for layout in ("coo", "csr", "csc") if getattr(relation, layout) is not None]
    report = export.dgl(
        graph,
        tmp_path / "out",
        parts=len(theirs),
        assign=write_assignment(theirs, graph, tmp_path / "assigned"),
        halo_hops=2 if name.endswith("hops2") else 1,
        formats=formats,
        graph_name=name,
    )
    actual = json.loads(report.config.read_text())
    assert {
        key: value for key, value in actual.items() if key not in ("part_method", "halo_hops")
    } == {key: value for key, value in expected.items() if key not in ("part_method", "halo_hops")}
    for ours, other in zip(read_partition(report.config), theirs, strict=True):
        assert sorted(ours.nodes) == sorted(other.nodes)
        assert ours.halo == other.halo
        assert ours.edges == other.edges
        assert ours.features == other.features
        assert {key: column.dtype for key, column in ours.graph.ndata[0].items()} == {
            key: c.dtype for key, c in other.graph.ndata[0].items()
        }
        assert {key: column.dtype for key, column in ours.graph.edata[0].items()} == {
            key: c.dtype for key, c in other.graph.edata[0].items()
        }
        mine, yours = ours.graph.relations[0], other.graph.relations[0]
        assert [getattr(mine, layout) is None for layout in ("coo", "csr", "csc")] == [
            getattr(yours, layout) is None for layout in ("coo", "csr", "csc")
        ]


@pytest.mark.parametrize("which", ["homo", "hetero"])
def test_export_reproduces_dgl_dispatch_pipeline_output(
    tmp_path: Path, shared: Path, which: str
) -> None:
    truth = shared / "dgl/truth"
    graph, config = (
        read_input(truth / f"dgl-2.1.0/{which}_input.npz"),
        truth / f"dispatch-2.1.0/out_{which}/metadata.json",
    )
    theirs, expected = read_partition(config), json.loads(config.read_text())
    report = export.dgl(
        graph,
        tmp_path / "out",
        parts=2,
        assign=truth / f"dispatch-2.1.0/assign_{which}",
        graph_name=expected["graph_name"],
    )
    actual = json.loads(report.config.read_text())
    for key in ("num_nodes", "num_edges", "num_parts", "node_map", "edge_map", "ntypes", "etypes"):
        assert actual[key] == expected[key], key
    for part, (ours, other) in enumerate(zip(read_partition(report.config), theirs, strict=True)):
        assert sorted(ours.nodes) == sorted(other.nodes)
        # DGL's partitions lack the edges that leave them, so its out-degrees do not count these.
        assert {edge for edge in ours.edges if edge[-1]} == other.edges
        assert ours.features == other.features
        for name in ("orig_nids.dgl", "orig_eids.dgl"):
            mine, yours = (
                read_tensors(path.parent / f"part{part}" / name) for path in (report.config, config)
            )
            assert {kind: sorted(ids.tolist()) for kind, ids in mine.items()} == {
                kind: sorted(ids.tolist()) for kind, ids in yours.items()
            }
