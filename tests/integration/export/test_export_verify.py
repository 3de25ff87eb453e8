"""Verification of exports.

A correct export has no problems. Each kind of planted damage is found, although the digests are
updated to match the damaged files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.kit.flat_graph import FlatGraph, generate

from asterism import export
from asterism.export.dgl_graph_files import DglGraph, GraphFile, read_graphs, write_graphs
from asterism.export.dgl_tensor_files import ArrayStream, read_tensors, write_tensors
from asterism.export.export_reader import ExportedGraph
from asterism_model.schema import Schema
from asterism_proto.errors import NotFound

SCHEMA = Schema.from_dict(
    {
        "parts": 3,
        "nodes": {
            "paper": {"features": {"feat": {"dtype": "float32", "shape": [3]}, "mask": "bool"}},
            "author": {"weighted": True, "features": {"h": {"dtype": "float64", "shape": [2, 2]}}},
        },
        "edges": {
            "paper:cites:paper": {
                "weighted": True,
                "features": {"y": {"dtype": "int64", "shape": [2]}},
            },
            "author:writes:paper": {"weighted": True},
        },
    }
)
USERS = Schema.from_dict(
    {
        "parts": 2,
        "nodes": {"user": {"features": {"x": {"shape": [2]}}}},
        "edges": {"user:knows:user": {"weighted": True}},
    }
)


def hetero_graph() -> FlatGraph:
    return generate(
        SCHEMA,
        nodes={"paper": 60, "author": 30},
        edges={"paper:cites:paper": 260, "author:writes:paper": 150},
        seed=1,
        sparse=True,
    )


@pytest.mark.parametrize(
    "options",
    [
        {"parts": 1},
        {"parts": 4, "formats": ("coo", "csr", "csc")},
        {"parts": 3, "halo_hops": 2, "assign": "metis", "formats": ("csc",)},
        {"parts": 3, "halo_hops": 3, "num_trainers_per_machine": 2},
        {"parts": 2, "weight": None},
    ],
    ids=str,
)
def test_an_export_has_no_problem(tmp_path: Path, options: dict[str, Any]) -> None:
    report = export.dgl(hetero_graph(), tmp_path / "out", **options)
    result = export.verify(tmp_path / "out")
    assert result.problems == ()
    assert (result.parts, result.nodes, result.edges) == (
        options["parts"],
        report.nodes,
        report.edges,
    )


def test_a_graph_without_types_has_no_problem(tmp_path: Path) -> None:
    users = generate(USERS, nodes={"user": 50}, edges={"user:knows:user": 200}, seed=2)
    export.dgl(users, tmp_path / "out", parts=3, homogeneous=True)
    assert export.verify(tmp_path / "out").ok


def test_small_partitions_are_opened_once_for_all_halos(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Larger ones are opened one at a time, once for every hop of each partition."""
    out, opened = tmp_path / "out", []

    def counted(path: Path) -> GraphFile:
        opened.append(path)
        return read_graphs(path)

    export.dgl(hetero_graph(), out, parts=3, halo_hops=2)
    exported = ExportedGraph.open(out, json.loads((out / "manifest.json").read_text()))
    monkeypatch.setattr("asterism.export.export_reader.read_graphs", counted)
    required = exported.required_halo_edges()
    assert len(opened) == 3
    monkeypatch.setattr("asterism.export.export_reader._MAX_OPENED_EDGES", 409)
    assert exported.required_halo_edges() == required
    assert len(opened) == 3 + 3 * (1 + 2 * 3)


def test_folder_without_an_export_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"no manifest\.json"):
        export.verify(tmp_path)


# -- damage ----------------------------------------------------------------------------------------


@pytest.fixture
def out(tmp_path: Path) -> Path:
    export.dgl(hetero_graph(), tmp_path / "out", parts=3, seed=4)
    return tmp_path / "out"


def update_digests(out: Path) -> None:
    """Update the sizes and digests in the manifest, so that only the content shows damage."""
    manifest = json.loads((out / "manifest.json").read_text())
    for path in list(manifest["files"]):
        content = (out / path).read_bytes()
        manifest["files"][path] = {
            "bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
        }
    (out / "manifest.json").write_text(json.dumps(manifest))


def problem_text(out: Path) -> str:
    return "\n".join(export.verify(out).problems)


def edit_json(out: Path, change: Callable[[dict[str, Any]], None], name: str = "flat.json") -> None:
    content = json.loads((out / name).read_text())
    change(content)
    (out / name).write_text(json.dumps(content))


def edit_tensors(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    tensors = {name: np.array(values) for name, values in read_tensors(path).items()}
    change(tensors)
    with path.open("wb") as file:
        write_tensors(
            file, {name: ArrayStream.from_array(values) for name, values in tensors.items()}
        )


def edit_graph(path: Path, change: Callable[[DglGraph], DglGraph]) -> None:
    (graph,) = read_graphs(path).graphs
    changed = GraphFile(graphs=(change(graph),))
    temporary = path.with_name("making")
    with temporary.open("wb") as file:
        write_graphs(file, changed)
    temporary.rename(path)


def data_edit(
    change: Callable[[dict[str, Any]], None], which: str
) -> Callable[[DglGraph], DglGraph]:
    """Return a damage that changes a graph's node or edge data."""

    def apply(graph: DglGraph) -> DglGraph:
        frame: dict[str, Any] = {
            name: np.array(column.array()) for name, column in getattr(graph, which)[0].items()
        }
        change(frame)
        return replace(
            graph,
            **{which: ({name: ArrayStream.from_array(values) for name, values in frame.items()},)},
        )

    return apply


def ends_edit(
    change: Callable[[Any, Any, DglGraph], tuple[Any, Any]],
) -> Callable[[DglGraph], DglGraph]:
    """Return a damage that changes the ends of edges."""

    def apply(graph: DglGraph) -> DglGraph:
        (relation,) = graph.relations
        coo = relation.coo
        assert coo is not None
        src, dst = change(np.array(coo.row.array()), np.array(coo.col.array()), graph)
        return replace(
            graph,
            relations=(
                replace(
                    relation,
                    coo=replace(
                        coo, row=ArrayStream.from_array(src), col=ArrayStream.from_array(dst)
                    ),
                ),
            ),
        )

    return apply


def swap_rows(array: Any, a: int = 0, b: int = 1) -> None:
    array[[a, b]] = array[[b, a]]


def value_edit(name: str, index: int, value: int) -> Callable[[dict[str, Any]], None]:
    def change(frame: dict[str, Any]) -> None:
        frame[name][index] = value

    return change


def drop_last_outer_edge(graph: DglGraph) -> DglGraph:
    """Return the graph without its last outer edge; the edge's node stays."""
    (relation,) = graph.relations
    assert relation.coo is not None
    row, col = relation.coo.row.array(), relation.coo.col.array()
    candidates = [
        i
        for i in range(len(row) - 1, -1, -1)
        if np.count_nonzero(row == row[i]) > 1 and np.count_nonzero(col == col[i]) > 1
    ]
    dropped = next(i for i in candidates if graph.edata[0]["inner_edge"].array()[i] == 0)
    keep = np.arange(len(row)) != dropped
    shorter: Mapping[str, ArrayStream] = {
        name: ArrayStream.from_array(np.array(column.array())[keep])
        for name, column in graph.edata[0].items()
    }
    changed = replace(
        relation,
        coo=replace(
            relation.coo,
            row=ArrayStream.from_array(row[keep]),
            col=ArrayStream.from_array(col[keep]),
        ),
    )
    return replace(graph, relations=(changed,), edata=(shorter,))


def exchange_ends_of_outer_edges(src: Any, dst: Any, graph: DglGraph) -> tuple[Any, Any]:
    """Return the ends of edges with other destinations at the outer ones, of the same nodes."""
    outer = np.flatnonzero(graph.edata[0]["inner_edge"].array() == 0)
    dst[outer] = np.roll(dst[outer], 1)
    return src, dst


def give_node_two_owners(out: Path) -> None:
    """Give a node two owners: replace an id of part 0 by one of part 1 in each list."""
    other = read_tensors(out / "part1/orig_nids.dgl")["paper"][0]
    edit_tensors(out / "part0/orig_nids.dgl", value_edit("paper", 0, int(other)))
    ids = np.load(out / "node_ids/paper.npy")
    ids[0] = other
    np.save(out / "node_ids/paper.npy", ids)


DAMAGE: dict[str, tuple[Callable[[Path], None], str]] = {
    "a node that two parts own": (give_node_two_owners, "paper: the ids, each once"),
    "an id map that disagrees": (
        lambda out: edit_tensors(out / "part0/orig_nids.dgl", lambda t: swap_rows(t["author"])),
        "not those of the list",
    ),
    "a list of edge ids in another order": (
        lambda out: edit_tensors(
            out / "part1/orig_eids.dgl", lambda t: swap_rows(t["paper:cites:paper"])
        ),
        "not those of",
    ),
    "rows of a feature swapped": (
        lambda out: edit_tensors(out / "part2/node_feat.dgl", lambda t: swap_rows(t["paper/feat"])),
        "paper: the rows of 'feat'",
    ),
    "one bit of a feature": (
        lambda out: edit_tensors(
            out / "part0/edge_feat.dgl",
            lambda t: t["paper:cites:paper/y"].__setitem__(
                (0, 0), t["paper:cites:paper/y"][0, 0] ^ 1
            ),
        ),
        "paper:cites:paper: the rows of 'y'",
    ),
    "a feature of another dtype": (
        lambda out: edit_tensors(
            out / "part0/node_feat.dgl",
            lambda t: t.update({"paper/feat": t["paper/feat"].astype(np.float64)}),
        ),
        "paper/feat is float64",
    ),
    "a feature that is missing": (
        lambda out: edit_tensors(out / "part0/node_feat.dgl", lambda t: t.pop("author/h")),
        "features",
    ),
    "a row of a feature that is missing": (
        lambda out: edit_tensors(
            out / "part0/node_feat.dgl", lambda t: t.update({"author/h": t["author/h"][1:]})
        ),
        "author/h is float64",
    ),
    "an outer edge that is missing": (
        lambda out: edit_graph(out / "part1/graph.dgl", drop_last_outer_edge),
        "HALO",
    ),
    "an outer edge into another node": (
        lambda out: edit_graph(out / "part1/graph.dgl", ends_edit(exchange_ends_of_outer_edges)),
        "they are not the same ones",
    ),
    "an edge from another node": (
        lambda out: edit_graph(
            out / "part0/graph.dgl", ends_edit(lambda src, dst, graph: (np.roll(src, 1), dst))
        ),
        "what they join",
    ),
    "an edge into a node of another part": (
        lambda out: edit_graph(
            out / "part0/graph.dgl",
            ends_edit(
                lambda src, dst, graph: (
                    src,
                    np.where(np.arange(len(dst)) == 0, graph.num_nodes[0] - 1, dst),
                )
            ),
        ),
        "not just those that it owns",
    ),
    "an owner of a HALO node": (
        lambda out: edit_graph(
            out / "part0/graph.dgl", data_edit(value_edit("part_id", -1, 0), "ndata")
        ),
        "part_id",
    ),
    "a flag of a node": (
        lambda out: edit_graph(
            out / "part0/graph.dgl", data_edit(value_edit("inner_node", 0, 0), "ndata")
        ),
        "inner_node",
    ),
    "a flag of an edge": (
        lambda out: edit_graph(
            out / "part0/graph.dgl", data_edit(value_edit("inner_edge", -1, 1), "edata")
        ),
        "inner_edge",
    ),
    "a type of an edge": (
        lambda out: edit_graph(
            out / "part0/graph.dgl", data_edit(value_edit("_TYPE", 0, 1), "edata")
        ),
        "_TYPE",
    ),
    "global ids out of order": (
        lambda out: edit_graph(
            out / "part0/graph.dgl", data_edit(lambda f: swap_rows(f["_ID"]), "ndata")
        ),
        "in order",
    ),
    "a range of the configuration": (
        lambda out: edit_json(
            out,
            lambda c: c["node_map"]["paper"][0].__setitem__(1, c["node_map"]["paper"][0][1] - 1),
        ),
        "node_map of paper",
    ),
    "a total of the configuration": (
        lambda out: edit_json(out, lambda c: c.update(num_edges=c["num_edges"] + 1)),
        "num_edges",
    ),
    "a torn file": (
        lambda out: (out / "part1/graph.dgl").write_bytes(
            (out / "part1/graph.dgl").read_bytes()[:-40]
        ),
        "cannot be read",
    ),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_found_even_where_digests_match(out: Path, kind: str) -> None:
    plant, message = DAMAGE[kind]
    plant(out)
    update_digests(out)
    problems = problem_text(out)
    assert message in problems
    assert "sha256" not in problems


def test_flipped_byte_is_found_in_every_file(out: Path) -> None:
    for path in sorted(json.loads((out / "manifest.json").read_text())["files"]):
        content = (out / path).read_bytes()
        index = len(content) - 1
        (out / path).write_bytes(content[:index] + bytes([content[index] ^ 1]))
        assert f"{path}: {len(content)} bytes of sha256" in problem_text(out)
        (out / path).write_bytes(content)
    assert export.verify(out).ok


def test_missing_and_extra_files_are_found(out: Path) -> None:
    (out / "part1/node_feat.dgl").rename(out / "part1/other")
    problems = problem_text(out)
    assert "part1/node_feat.dgl: missing" in problems
    assert "part1/other: not a file of this export" in problems
