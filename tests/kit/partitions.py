"""What a partition on disk must hold, given the graph that it was made from: one check for our readers and for DGL's."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.export.dgl_files import read_tensors
from asterism.export.dgl_graphs import read_graphs
from tests.kit.flat_graph import FlatEdges, FlatGraph

Arrays = Mapping[str, NDArray[Any]]
"""A part: src, dst, ndata/*, edata/*, nfeat|*, efeat|*."""


@dataclass(frozen=True, kw_only=True)
class Written:
    """A configuration, and the content of its parts as some reader gave it."""

    folder: Path
    config: Mapping[str, Any]
    parts: Sequence[Arrays]

    def original(self, letter: str) -> dict[str, NDArray[np.int64]]:
        """The stored ids by type-wise id, for each node (n) or edge (e) type."""
        found = [read_tensors(self.folder / f"part{part}/orig_{letter}ids.dgl") for part in range(len(self.parts))]
        return {kind: np.concatenate([each[kind] for each in found]) for kind in self.config["ntypes" if letter == "n" else "etypes"]}


def read_by_hand(config: Path) -> Written:
    """A partition through our own readers."""
    content = json.loads(config.read_text())
    parts = []
    for part in range(content["num_parts"]):
        where = content[f"part-{part}"]
        (graph,) = read_graphs(config.parent / where["part_graph"]).graphs
        coo = graph.relations[0].coo
        assert coo is not None
        assert coo.rows == coo.cols == graph.num_nodes[0]
        arrays = {"src": coo.row.array(), "dst": coo.col.array()}
        arrays |= {f"ndata/{name}": column.array() for name, column in graph.ndata[0].items()}
        arrays |= {f"edata/{name}": column.array() for name, column in graph.edata[0].items()}
        arrays |= {f"nfeat/{name}".replace("/", "|"): values for name, values in read_tensors(config.parent / where["node_feats"]).items()}
        arrays |= {f"efeat/{name}".replace("/", "|"): values for name, values in read_tensors(config.parent / where["edge_feats"]).items()}
        parts.append(arrays)
    return Written(folder=config.parent, config=content, parts=parts)


def read_dump(config: Path, folder: Path) -> Written:
    """A partition as DGL itself loaded it, from what `tests/kit/dgl/load_parts.py` left."""
    content = json.loads(config.read_text())
    parts = [dict(np.load(folder / f"part{part}.npz")) for part in range(content["num_parts"])]
    return Written(folder=config.parent, config=content, parts=parts)


def write_input(graph: FlatGraph, path: Path, *, weight: str = "weight", names: Mapping[str, str] | None = None) -> None:
    """Write a graph of dense ids as `check_distributed.py` takes its input; ``names`` maps the schema's to written ones."""
    written, content = names or {}, {}
    for node_type in graph.schema.node_types:
        nodes, label = graph.nodes[node_type.name], written.get(node_type.name, node_type.name)
        order = np.argsort(nodes.ids)
        content[f"num_nodes/{label}"] = np.array(len(order))
        columns = {**nodes.features, **({weight: nodes.weights} if node_type.weighted else {})}
        content |= {f"ndata/{label}/{name}": values[order] for name, values in columns.items()}
    for edge_type in graph.schema.edge_types:
        edges, label = graph.edges[edge_type.name], written.get(edge_type.name, edge_type.name)
        order = np.argsort(edges.eids)
        content |= {f"edges/{label}/src": edges.src[order], f"edges/{label}/dst": edges.dst[order]}
        columns = {**edges.features, **({weight: edges.weights} if edge_type.weighted else {})}
        content |= {f"edata/{label}/{name}": values[order] for name, values in columns.items()}
    np.savez(path, **content)


@dataclass(frozen=True, kw_only=True)
class Space:
    """The ids of all nodes, or of all edges: ranges by part and type."""

    kinds: list[str]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]

    @classmethod
    def of(cls, config: Mapping[str, Any], what: str) -> Space:
        ids = config[f"{what[0]}types"]
        kinds = sorted(ids, key=ids.get)
        assert [ids[kind] for kind in kinds] == list(range(len(kinds)))
        spans = np.array([config[f"{what}_map"][kind] for kind in kinds], np.int64).reshape(len(kinds), config["num_parts"], 2)
        starts, ends = spans[..., 0].T, spans[..., 1].T
        np.testing.assert_array_equal(starts.reshape(-1), np.concatenate([[0], ends.reshape(-1)[:-1]]))
        assert ends[-1, -1] == config[f"num_{what}s"]
        return cls(kinds=kinds, starts=starts, ends=ends)

    def locate(self, gids: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Part, type and type-wise id of global ids."""
        at = np.searchsorted(self.ends.reshape(-1), gids, side="right")
        part, kind = np.divmod(at, len(self.kinds))
        before = np.concatenate([np.zeros((1, len(self.kinds)), np.int64), np.cumsum(self.ends - self.starts, axis=0)])[:-1]
        return part, kind, before[part, kind] + gids - self.starts[part, kind]


def check(
    written: Written, graph: FlatGraph, *, hops: int = 1, weight: str = "weight", names: Mapping[str, str] | None = None, trainers: int = 1
) -> None:
    """Assert that a partition holds this graph, each node and edge once, where and how DGL wants it.

    ``names`` maps written names to the schema's, where they differ. With several ``trainers`` to a part, theirs are looked at.
    """
    nodes, edges = Space.of(written.config, "node"), Space.of(written.config, "edge")
    stored = names or {}
    nids, eids = written.original("n"), written.original("e")
    for kind in nodes.kinds:
        np.testing.assert_array_equal(np.sort(nids[kind]), np.sort(graph.nodes[stored.get(kind, kind)].ids))
    for kind in edges.kinds:
        np.testing.assert_array_equal(np.sort(eids[kind]), np.sort(graph.edges[stored.get(kind, kind)].eids))
    homogeneous = len(nodes.kinds) == len(edges.kinds) == 1
    everything = [(kind, graph.edges[stored.get(kind, kind)]) for kind in edges.kinds]
    held = _held(written, everything, eids, nids, nodes, edges, hops)
    for part, arrays in enumerate(written.parts):
        _check_frame(arrays, part, nodes, "node", many=len(written.parts) > 1, typed=not homogeneous)
        _check_frame(arrays, part, edges, "edge", many=False, typed=not homogeneous or len(written.parts) == 1)
        gid = arrays["ndata/_ID"]
        src, dst, eid = gid[arrays["src"]], gid[arrays["dst"]], arrays["edata/_ID"]
        assert {int(e) for e in eid} == held[part]
        inner_nodes = nodes.ends[part, -1] - nodes.starts[part, 0]
        np.testing.assert_array_equal(arrays["dst"] < inner_nodes, arrays["edata/inner_edge"] != 0)
        assert set(np.unique(np.concatenate([arrays["src"], arrays["dst"]]))) >= set(range(inner_nodes, len(gid))), "a HALO node without an edge"
        _check_ends(src, dst, eid, everything, eids, nids, nodes, edges)
        if trainers > 1:
            arrays = _without_trainers(arrays, part, nodes, edges, trainers)
        _check_features(arrays, part, written, graph, nids, nodes, "nfeat", weight, stored)
        _check_features(arrays, part, written, graph, eids, edges, "efeat", weight, stored)


def _held(
    written: Written,
    everything: list[tuple[str, FlatEdges]],
    eids: Mapping[str, NDArray[np.int64]],
    nids: Mapping[str, NDArray[np.int64]],
    nodes: Space,
    edges: Space,
    hops: int,
) -> list[set[int]]:
    """The global ids of the edges that each part must hold, found the slow way."""
    ends: list[tuple[int, int, int]] = []  # gid, source's gid, destination's gid
    for kind, flat in everything:
        place = edges.kinds.index(kind)
        row = {int(eid): i for i, eid in enumerate(flat.eids)}
        names = kind.split(":")
        src_of, dst_of = (_gid_of(nodes, nids, name) for name in (names[0], names[2]))
        typewise = 0
        for part in range(len(written.parts)):
            for gid in range(edges.starts[part, place], edges.ends[part, place]):
                i = row[int(eids[kind][typewise])]
                ends.append((gid, src_of[int(flat.src[i])], dst_of[int(flat.dst[i])]))
                typewise += 1
    found = []
    for part in range(len(written.parts)):
        own = set(range(nodes.starts[part, 0], nodes.ends[part, -1]))
        held = {gid for gid, src, dst in ends if src in own or dst in own}
        frontier, seen = {src for _, src, dst in ends if dst in own} - own, set(own)
        for _ in range(hops - 1):
            held |= {gid for gid, _, dst in ends if dst in frontier}
            seen |= frontier
            frontier = {src for _, src, dst in ends if dst in frontier} - seen
        found.append(held)
    return found


def _gid_of(nodes: Space, nids: Mapping[str, NDArray[np.int64]], kind: str) -> dict[int, int]:
    place = nodes.kinds.index(kind)
    gids = np.concatenate([np.arange(a, b) for a, b in zip(nodes.starts[:, place], nodes.ends[:, place], strict=True)])
    return dict(zip(nids[kind].tolist(), gids.tolist(), strict=True))


def _check_frame(arrays: Arrays, part: int, space: Space, what: str, *, many: bool, typed: bool) -> None:
    frame = f"{what[0]}data"
    gid, low, high = arrays[f"{frame}/_ID"], int(space.starts[part, 0]), int(space.ends[part, -1])
    assert gid.dtype == np.int64
    np.testing.assert_array_equal(gid[: high - low], np.arange(low, high))
    beside = gid[high - low :]
    assert (np.diff(beside) > 0).all()
    assert not ((beside >= low) & (beside < high)).any()
    inner = arrays[f"{frame}/inner_{what}"]
    assert inner.dtype == np.uint8
    np.testing.assert_array_equal(inner, np.arange(len(gid)) < high - low)
    owner, kind, _ = space.locate(gid)
    if many:
        assert arrays[f"{frame}/part_id"].dtype == np.int64
        np.testing.assert_array_equal(arrays[f"{frame}/part_id"], owner)
    if typed:
        assert arrays[f"{frame}/_TYPE"].dtype == np.int32
        np.testing.assert_array_equal(arrays[f"{frame}/_TYPE"], kind)


def _check_ends(
    src: NDArray[np.int64],
    dst: NDArray[np.int64],
    eid: NDArray[np.int64],
    everything: list[tuple[str, FlatEdges]],
    eids: Mapping[str, NDArray[np.int64]],
    nids: Mapping[str, NDArray[np.int64]],
    nodes: Space,
    edges: Space,
) -> None:
    """Each stored edge joins, by original ids and types, what the input's edge joins."""
    _, kinds, typewise = edges.locate(eid)
    for place, (kind, flat) in enumerate(everything):
        mine = kinds == place
        order = np.argsort(flat.eids)
        rows = order[np.searchsorted(flat.eids[order], eids[kind][typewise[mine]])]
        for gids, node_kind, wanted in ((src[mine], kind.split(":")[0], flat.src[rows]), (dst[mine], kind.split(":")[2], flat.dst[rows])):
            _, node_kinds, node_typewise = nodes.locate(gids)
            assert (node_kinds == nodes.kinds.index(node_kind)).all()
            np.testing.assert_array_equal(nids[node_kind][node_typewise], wanted)


def _without_trainers(arrays: Arrays, part: int, nodes: Space, edges: Space, trainers: int) -> Arrays:
    """The part less its trainers, who are of this part, and an edge's its destination's."""
    of_node = np.concatenate([arrays[f"nfeat|{kind}|trainer_id"] for kind in nodes.kinds])
    of_edge = np.concatenate([arrays[f"efeat|{kind}|trainer_id"] for kind in edges.kinds])
    assert of_node.dtype == of_edge.dtype == np.int64
    np.testing.assert_array_equal(of_node // trainers, part)
    np.testing.assert_array_equal(of_edge, of_node[arrays["dst"][: len(of_edge)]])
    return {name: values for name, values in arrays.items() if not name.endswith("|trainer_id")}


def _check_features(
    arrays: Arrays,
    part: int,
    written: Written,
    graph: FlatGraph,
    original: Mapping[str, NDArray[np.int64]],
    space: Space,
    frame: str,
    weight: str,
    stored: Mapping[str, str],
) -> None:
    wanted = {}
    for place, kind in enumerate(space.kinds):
        held: Any = (graph.nodes if frame == "nfeat" else graph.edges)[stored.get(kind, kind)]
        ids = held.ids if frame == "nfeat" else held.eids
        counts = space.ends[:, place] - space.starts[:, place]
        mine = original[kind][counts[:part].sum() : counts[: part + 1].sum()]
        order = np.argsort(ids)
        rows = order[np.searchsorted(ids[order], mine)]
        types = graph.schema.node_types if frame == "nfeat" else graph.schema.edge_types
        columns = dict(held.features)
        if next(t for t in types if t.name == stored.get(kind, kind)).weighted:
            columns[weight] = held.weights
        for name, values in columns.items():
            expected = values[rows]
            wanted[f"{frame}|{kind}|{name}"] = expected.astype(np.uint8) if expected.dtype == np.bool_ else expected
    found = {name: values for name, values in arrays.items() if name.startswith(f"{frame}|")}
    assert set(found) == set(wanted)
    for name, values in wanted.items():
        assert found[name].dtype == values.dtype, name
        np.testing.assert_array_equal(found[name], values, err_msg=name)
