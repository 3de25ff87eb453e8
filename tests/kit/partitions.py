"""Checks of exported partitions against their graph, for our readers and for DGL's."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.export.dgl_graph_files import read_graphs
from asterism.export.dgl_tensor_files import read_tensors
from tests.kit.flat_graph import FlatEdges, FlatGraph

Arrays = Mapping[str, NDArray[Any]]
"""Arrays of one partition: src, dst, ndata/*, edata/*, nfeat

*, efeat

*.
"""


@dataclass(frozen=True, kw_only=True)
class WrittenPartition:
    """A partition configuration, and the content of its partitions as returned by a reader."""

    folder: Path
    config: Mapping[str, Any]
    parts: Sequence[Arrays]

    def original_ids(self, letter: str) -> dict[str, NDArray[np.int64]]:
        """Return the stored ids by type-wise id, for each node (n) or edge (e) type."""
        part_tensors = [
            read_tensors(self.folder / f"part{part}/orig_{letter}ids.dgl")
            for part in range(len(self.parts))
        ]
        return {
            kind: np.concatenate([each[kind] for each in part_tensors])
            for kind in self.config["ntypes" if letter == "n" else "etypes"]
        }


def read_partition(config: Path) -> WrittenPartition:
    """Read a partition with our own readers."""
    content = json.loads(config.read_text())
    parts = []
    for part in range(content["num_parts"]):
        part_files = content[f"part-{part}"]
        (graph,) = read_graphs(config.parent / part_files["part_graph"]).graphs
        coo = graph.relations[0].coo
        assert coo is not None
        assert coo.rows == coo.cols == graph.num_nodes[0]
        arrays = {"src": coo.row.array(), "dst": coo.col.array()}
        arrays |= {f"ndata/{name}": column.array() for name, column in graph.ndata[0].items()}
        arrays |= {f"edata/{name}": column.array() for name, column in graph.edata[0].items()}
        arrays |= {
            f"nfeat/{name}".replace("/", "|"): values
            for name, values in read_tensors(config.parent / part_files["node_feats"]).items()
        }
        arrays |= {
            f"efeat/{name}".replace("/", "|"): values
            for name, values in read_tensors(config.parent / part_files["edge_feats"]).items()
        }
        parts.append(arrays)
    return WrittenPartition(folder=config.parent, config=content, parts=parts)


def read_dump(config: Path, folder: Path) -> WrittenPartition:
    """Read a partition as loaded by DGL, from the output of `tests/kit/dgl/load_parts.py`."""
    content = json.loads(config.read_text())
    parts = [dict(np.load(folder / f"part{part}.npz")) for part in range(content["num_parts"])]
    return WrittenPartition(folder=config.parent, config=content, parts=parts)


def write_input(
    graph: FlatGraph, path: Path, *, weight: str = "weight", names: Mapping[str, str] | None = None
) -> None:
    """Write a graph of dense ids in the input format of `check_distributed.py`.

    ``names`` maps the schema's names to written ones.
    """
    label_names, content = names or {}, {}
    for node_type in graph.schema.node_types:
        nodes, label = graph.nodes[node_type.name], label_names.get(node_type.name, node_type.name)
        order = np.argsort(nodes.ids)
        content[f"num_nodes/{label}"] = np.array(len(order))
        columns = {**nodes.features, **({weight: nodes.weights} if node_type.weighted else {})}
        content |= {f"ndata/{label}/{name}": values[order] for name, values in columns.items()}
    for edge_type in graph.schema.edge_types:
        edges, label = graph.edges[edge_type.name], label_names.get(edge_type.name, edge_type.name)
        order = np.argsort(edges.eids)
        content |= {f"edges/{label}/src": edges.src[order], f"edges/{label}/dst": edges.dst[order]}
        columns = {**edges.features, **({weight: edges.weights} if edge_type.weighted else {})}
        content |= {f"edata/{label}/{name}": values[order] for name, values in columns.items()}
    np.savez(path, **content)


@dataclass(frozen=True, kw_only=True)
class IdRanges:
    """Id ranges of all nodes, or of all edges, by partition and type."""

    kinds: list[str]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]

    @classmethod
    def from_config(cls, config: Mapping[str, Any], element: str) -> IdRanges:
        ids = config[f"{element[0]}types"]
        kinds = sorted(ids, key=ids.get)
        assert [ids[kind] for kind in kinds] == list(range(len(kinds)))
        spans = np.array([config[f"{element}_map"][kind] for kind in kinds], np.int64).reshape(
            len(kinds), config["num_parts"], 2
        )
        starts, ends = spans[..., 0].T, spans[..., 1].T
        np.testing.assert_array_equal(
            starts.reshape(-1), np.concatenate([[0], ends.reshape(-1)[:-1]])
        )
        assert ends[-1, -1] == config[f"num_{element}s"]
        return cls(kinds=kinds, starts=starts, ends=ends)

    def locate(
        self, gids: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return the partition, type and type-wise id of global ids."""
        positions = np.searchsorted(self.ends.reshape(-1), gids, side="right")
        part, kind = np.divmod(positions, len(self.kinds))
        before = np.concatenate(
            [np.zeros((1, len(self.kinds)), np.int64), np.cumsum(self.ends - self.starts, axis=0)]
        )[:-1]
        return part, kind, before[part, kind] + gids - self.starts[part, kind]


def assert_partition(
    written: WrittenPartition,
    graph: FlatGraph,
    *,
    hops: int = 1,
    weight: str = "weight",
    names: Mapping[str, str] | None = None,
    trainers: int = 1,
) -> None:
    """Assert that a partition has this graph, each node and edge once, in DGL's layout.

    ``names`` maps written names to the schema's, where they differ. With several ``trainers`` per
    partition, the assignment to trainers is checked.
    """
    nodes, edges = (
        IdRanges.from_config(written.config, "node"),
        IdRanges.from_config(written.config, "edge"),
    )
    schema_names = names or {}
    nids, eids = written.original_ids("n"), written.original_ids("e")
    for kind in nodes.kinds:
        np.testing.assert_array_equal(
            np.sort(nids[kind]), np.sort(graph.nodes[schema_names.get(kind, kind)].ids)
        )
    for kind in edges.kinds:
        np.testing.assert_array_equal(
            np.sort(eids[kind]), np.sort(graph.edges[schema_names.get(kind, kind)].eids)
        )
    homogeneous = len(nodes.kinds) == len(edges.kinds) == 1
    edges_by_kind = [(kind, graph.edges[schema_names.get(kind, kind)]) for kind in edges.kinds]
    required_edges = _expected_edges(written, edges_by_kind, eids, nids, nodes, edges, hops)
    for part, arrays in enumerate(written.parts):
        _assert_frame(
            arrays,
            part,
            nodes,
            "node",
            several_parts=len(written.parts) > 1,
            heterogeneous=not homogeneous,
        )
        _assert_frame(
            arrays,
            part,
            edges,
            "edge",
            several_parts=False,
            heterogeneous=not homogeneous or len(written.parts) == 1,
        )
        gid = arrays["ndata/_ID"]
        src, dst, eid = gid[arrays["src"]], gid[arrays["dst"]], arrays["edata/_ID"]
        assert {int(e) for e in eid} == required_edges[part]
        inner_nodes = nodes.ends[part, -1] - nodes.starts[part, 0]
        np.testing.assert_array_equal(arrays["dst"] < inner_nodes, arrays["edata/inner_edge"] != 0)
        assert set(np.unique(np.concatenate([arrays["src"], arrays["dst"]]))) >= set(
            range(inner_nodes, len(gid))
        ), "a HALO node without an edge"
        _assert_ends(src, dst, eid, edges_by_kind, eids, nids, nodes, edges)
        if trainers > 1:
            arrays = _drop_trainer_ids(arrays, part, nodes, edges, trainers)
        _assert_features(arrays, part, written, graph, nids, nodes, "nfeat", weight, schema_names)
        _assert_features(arrays, part, written, graph, eids, edges, "efeat", weight, schema_names)


def _expected_edges(
    written: WrittenPartition,
    edges_by_kind: list[tuple[str, FlatEdges]],
    eids: Mapping[str, NDArray[np.int64]],
    nids: Mapping[str, NDArray[np.int64]],
    nodes: IdRanges,
    edges: IdRanges,
    hops: int,
) -> list[set[int]]:
    """Return the global ids of the edges that each partition must have, by a slow method."""
    ends: list[tuple[int, int, int]] = []  # edge gid, source gid, destination gid
    for kind, flat in edges_by_kind:
        kind_index = edges.kinds.index(kind)
        row = {int(eid): i for i, eid in enumerate(flat.eids)}
        names = kind.split(":")
        src_of, dst_of = (_gid_of(nodes, nids, name) for name in (names[0], names[2]))
        typewise = 0
        for part in range(len(written.parts)):
            for gid in range(edges.starts[part, kind_index], edges.ends[part, kind_index]):
                i = row[int(eids[kind][typewise])]
                ends.append((gid, src_of[int(flat.src[i])], dst_of[int(flat.dst[i])]))
                typewise += 1
    edges_of_parts = []
    for part in range(len(written.parts)):
        owned_nodes = set(range(nodes.starts[part, 0], nodes.ends[part, -1]))
        part_edges = {gid for gid, src, dst in ends if src in owned_nodes or dst in owned_nodes}
        frontier, seen = (
            {src for _, src, dst in ends if dst in owned_nodes} - owned_nodes,
            set(owned_nodes),
        )
        for _ in range(hops - 1):
            part_edges |= {gid for gid, _, dst in ends if dst in frontier}
            seen |= frontier
            frontier = {src for _, src, dst in ends if dst in frontier} - seen
        edges_of_parts.append(part_edges)
    return edges_of_parts


def _gid_of(nodes: IdRanges, nids: Mapping[str, NDArray[np.int64]], kind: str) -> dict[int, int]:
    kind_index = nodes.kinds.index(kind)
    gids = np.concatenate(
        [
            np.arange(a, b)
            for a, b in zip(nodes.starts[:, kind_index], nodes.ends[:, kind_index], strict=True)
        ]
    )
    return dict(zip(nids[kind].tolist(), gids.tolist(), strict=True))


def _assert_frame(
    arrays: Arrays,
    part: int,
    space: IdRanges,
    element: str,
    *,
    several_parts: bool,
    heterogeneous: bool,
) -> None:
    frame = f"{element[0]}data"
    gid, low, high = arrays[f"{frame}/_ID"], int(space.starts[part, 0]), int(space.ends[part, -1])
    assert gid.dtype == np.int64
    np.testing.assert_array_equal(gid[: high - low], np.arange(low, high))
    halo_ids = gid[high - low :]
    assert (np.diff(halo_ids) > 0).all()
    assert not ((halo_ids >= low) & (halo_ids < high)).any()
    inner_flags = arrays[f"{frame}/inner_{element}"]
    assert inner_flags.dtype == np.uint8
    np.testing.assert_array_equal(inner_flags, np.arange(len(gid)) < high - low)
    owner, kind, _ = space.locate(gid)
    if several_parts:
        assert arrays[f"{frame}/part_id"].dtype == np.int64
        np.testing.assert_array_equal(arrays[f"{frame}/part_id"], owner)
    if heterogeneous:
        assert arrays[f"{frame}/_TYPE"].dtype == np.int32
        np.testing.assert_array_equal(arrays[f"{frame}/_TYPE"], kind)


def _assert_ends(
    src: NDArray[np.int64],
    dst: NDArray[np.int64],
    eid: NDArray[np.int64],
    edges_by_kind: list[tuple[str, FlatEdges]],
    eids: Mapping[str, NDArray[np.int64]],
    nids: Mapping[str, NDArray[np.int64]],
    nodes: IdRanges,
    edges: IdRanges,
) -> None:
    """Assert that each stored edge joins the original nodes of the input's edge."""
    _, kinds, typewise = edges.locate(eid)
    for kind_index, (kind, flat) in enumerate(edges_by_kind):
        of_kind = kinds == kind_index
        order = np.argsort(flat.eids)
        rows = order[np.searchsorted(flat.eids[order], eids[kind][typewise[of_kind]])]
        for gids, node_kind, expected in (
            (src[of_kind], kind.split(":")[0], flat.src[rows]),
            (dst[of_kind], kind.split(":")[2], flat.dst[rows]),
        ):
            _, node_kinds, node_typewise = nodes.locate(gids)
            assert (node_kinds == nodes.kinds.index(node_kind)).all()
            np.testing.assert_array_equal(nids[node_kind][node_typewise], expected)


def _drop_trainer_ids(
    arrays: Arrays, part: int, nodes: IdRanges, edges: IdRanges, trainers: int
) -> Arrays:
    """Return the partition without its trainer ids.

    A node's trainer must belong to the partition; an edge's trainer is that of its destination.
    """
    node_trainers = np.concatenate([arrays[f"nfeat|{kind}|trainer_id"] for kind in nodes.kinds])
    edge_trainers = np.concatenate([arrays[f"efeat|{kind}|trainer_id"] for kind in edges.kinds])
    assert node_trainers.dtype == edge_trainers.dtype == np.int64
    np.testing.assert_array_equal(node_trainers // trainers, part)
    np.testing.assert_array_equal(edge_trainers, node_trainers[arrays["dst"][: len(edge_trainers)]])
    return {name: values for name, values in arrays.items() if not name.endswith("|trainer_id")}


def _assert_features(
    arrays: Arrays,
    part: int,
    written: WrittenPartition,
    graph: FlatGraph,
    original: Mapping[str, NDArray[np.int64]],
    space: IdRanges,
    frame: str,
    weight: str,
    schema_names: Mapping[str, str],
) -> None:
    expected_columns = {}
    for kind_index, kind in enumerate(space.kinds):
        flat_rows: Any = (graph.nodes if frame == "nfeat" else graph.edges)[
            schema_names.get(kind, kind)
        ]
        ids = flat_rows.ids if frame == "nfeat" else flat_rows.eids
        counts = space.ends[:, kind_index] - space.starts[:, kind_index]
        part_ids = original[kind][counts[:part].sum() : counts[: part + 1].sum()]
        order = np.argsort(ids)
        rows = order[np.searchsorted(ids[order], part_ids)]
        types = graph.schema.node_types if frame == "nfeat" else graph.schema.edge_types
        columns = dict(flat_rows.features)
        if next(t for t in types if t.name == schema_names.get(kind, kind)).weighted:
            columns[weight] = flat_rows.weights
        for name, values in columns.items():
            expected = values[rows]
            expected_columns[f"{frame}|{kind}|{name}"] = (
                expected.astype(np.uint8) if expected.dtype == np.bool_ else expected
            )
    actual = {name: values for name, values in arrays.items() if name.startswith(f"{frame}|")}
    assert set(actual) == set(expected_columns)
    for name, values in expected_columns.items():
        assert actual[name].dtype == values.dtype, name
        np.testing.assert_array_equal(actual[name], values, err_msg=name)
