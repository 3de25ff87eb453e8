"""Euler's JSON in a space.

It gives the same graph as direct writes. It is loaded once, and bad rows fail the load or are
skipped, by call and by command.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.kit import euler_graph, zygote

import asterism
from asterism import Client, Graph, ingest
from asterism.euler import Euler


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with asterism.open(tmp_path_factory.mktemp("euler-loading")) as opened:
        yield opened


@pytest.fixture(scope="module")
def by_hand(client: Client) -> Graph:
    return euler_graph.write(client, "by-hand")


def write_json(folder: Path, document: dict[str, Any]) -> Path:
    (folder / "graph.json").write_text(json.dumps(document, indent=1))
    return folder


def plain(column: Any) -> Any:
    """Return a feature column as lists, one list per row."""
    if isinstance(column, tuple):
        return [
            column[1][start:stop].tolist()
            for start, stop in zip(column[0][:-1], column[0][1:], strict=True)
        ]
    return np.asarray(column).tolist()


def content(graph: Graph) -> dict[str, list[Any]]:
    """Return all content of a graph except edge ids, which depend on the order of writes."""
    rows_by_type: dict[str, list[Any]] = {}
    for node_type in graph.schema.node_types:
        names = [feature.name for feature in node_type.features]
        for nodes in graph.scan_nodes(node_type.name, names):
            rows = zip(
                nodes.ids.tolist(),
                nodes.weights.tolist(),
                *(plain(nodes.features[name]) for name in names),
                strict=True,
            )
            rows_by_type.setdefault(node_type.name, []).extend(rows)
    for edge_type in graph.schema.edge_types:
        names = [feature.name for feature in edge_type.features]
        for edges in graph.scan_edges(edge_type.name, names):
            rows = zip(
                edges.src.tolist(),
                edges.dst.tolist(),
                edges.weights.tolist(),
                *(plain(edges.features[name]) for name in names),
                strict=True,
            )
            rows_by_type.setdefault(edge_type.name, []).extend(rows)
    return {name: sorted(rows, key=repr) for name, rows in rows_by_type.items()}


def test_a_loaded_graph_equals_the_one_written_by_hand(
    client: Client, by_hand: Graph, tmp_path: Path
) -> None:
    folder, reports = write_json(tmp_path, euler_graph.as_json()), []
    report = ingest.load(
        client,
        "loaded",
        folder,
        schema=ingest.schema_of(folder),
        chunk_rows=4,
        progress=reports.append,
    )
    assert (report.nodes, report.edges, report.rejected, report.already) == (6, 12, 0, False)
    assert (reports[-1].rows_done, reports[-1].rows_total) == (18, 18)
    assert (
        0
        < reports[-1].bytes_done
        <= reports[-1].bytes_total
        == (folder / "graph.json").stat().st_size
    )
    loaded = client.graph("loaded")
    loaded.build()
    assert content(loaded) == content(by_hand)
    assert sum(map(len, content(loaded).values())) == 18
    assert ingest.load(client, "loaded", folder, chunk_rows=4).already
    loaded_sample, written_sample = (
        Euler(graph).sample_neighbor([1, 6], ["0", "1"], 50, seed=1) for graph in (loaded, by_hand)
    )
    assert [column.tolist() for column in loaded_sample] == [
        column.tolist() for column in written_sample
    ]
    assert Euler(loaded).get_graph_by_label(["3"]).values.tolist() == [3]


def test_euler_1_blocks_load_like_euler_2_json(client: Client, tmp_path: Path) -> None:
    document = euler_graph.as_json()
    for row in [*document["nodes"], *document["edges"]]:
        for feature in row["features"]:
            feature["name"] = euler_graph.NUMBERED_NAMES[feature["name"]]
    contents = {}
    for space in ("of-2", "of-1"):
        (folder := tmp_path / space).mkdir()
        write_json(folder, document)
        if space == "of-1":
            (folder / "graph.json").write_text(
                "".join(json.dumps(block) + "\n" for block in euler_graph.as_blocks())
            )
            (folder / "meta.json").write_text(json.dumps(euler_graph.META))
        report = ingest.load(client, space, folder, schema=ingest.schema_of(folder))
        assert (report.nodes, report.edges, report.rejected) == (6, 12, 0)
        client.graph(space).build()
        contents[space] = content(client.graph(space))
    assert contents["of-1"] == contents["of-2"]
    # The meta file numbers the types. Without it they are numbered by first appearance.
    assert [
        [t.name for t in client.graph(space).schema.node_types] for space in ("of-2", "of-1")
    ] == [["_1", "_0"], ["_0", "_1"]]


def test_a_bad_row_ends_a_load_or_is_listed_with_file_and_line(
    client: Client, tmp_path: Path
) -> None:
    document = euler_graph.as_json()
    document["nodes"][1]["weight"] = -2.0
    document["edges"][5]["src"] = 99
    folder = write_json(tmp_path, document)
    lines = (folder / "graph.json").read_text().splitlines()
    schema = ingest.schema_of(folder)
    with pytest.raises(
        asterism.InvalidRequest,
        match=r"graph\.json, row \d+, column 'weight', value '-2\.0': a weight is not negative",
    ):
        ingest.load(client, "sieved", folder, schema=schema)
    report = ingest.load(client, "sieved", folder, on_bad_rows="skip", rejects=tmp_path / "bad.csv")
    with (tmp_path / "bad.csv").open() as file:
        rows = list(csv.DictReader(file))
    # Node 2 is left out, and so are the edges at it.
    assert (report.nodes, report.edges, report.rejected) == (5, 7, len(rows)) == (5, 7, 6)
    assert (rows[0]["file"], rows[0]["column"], rows[0]["value"]) == (
        "graph.json",
        "weight",
        "-2.0",
    )
    assert sorted((row["value"], row["column"]) for row in rows[1:]) == [
        ("2", "dst"),
        ("2", "dst"),
        ("2", "src"),
        ("2", "src"),
        ("99", "src"),
    ]
    for row in rows:
        assert f'"{row["column"]}": {row["value"]}' in "".join(
            lines[int(row["row"]) - 1 :][:60]
        ).replace("\n", "")
    graph = client.graph("sieved")
    graph.build()
    assert graph.neighbors([1], None).nodes.tolist() == [4, 3]


def test_the_command_loads_an_euler_folder_or_file(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    document = euler_graph.as_json()
    write_json(folder, document)
    (folder / "euler.meta").write_bytes(euler_graph.meta(document, ["0", "1"], ["1", "0"]))
    options = ("--path", tmp_path / "db", "--json")
    command = ("asterism.cli", *options, "load", "g", folder / "graph.json", "--create")
    completed = zygote.run(*command, "--build")
    assert completed.returncode == 0, completed.stderr + completed.stdout
    assert json.loads(completed.stdout)["load"]["edges"] == 12
    with asterism.open(tmp_path / "db", space="g", mode="r") as graph:
        tf_euler = Euler(graph)
        assert tf_euler.get_node_type_id(["0", "1"]).tolist() == [0, 1], "as euler.meta has them"
        assert tf_euler.get_edge_type_id(["0", "1"]).tolist() == [1, 0]
        assert tf_euler.get_node_type([2, 1]).tolist() == [0, 1]
