"""String ids loaded from files and objects, in samples, exports and command output.

Killed loads are included.
"""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.kit import zygote
from tests.kit.cluster import LocalCluster
from tests.kit.shared import ROOT, shared_or_skip

import asterism
from asterism import Client, Graph, export, ingest
from asterism.export.dgl_tensor_files import read_tensors
from asterism.formats import open_source
from asterism_proto.errors import InvalidRequest, NotFound

SHOP: dict[str, Any] = {
    "ids": "string",
    "nodes": {"user": {}, "item": {}},
    "edges": {"user:buys:item": {}, "user:follows:user": {}},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("embedded")


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[Client]:
    with asterism.open(folder) as client:
        yield client


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(storageds=3, graphds=1) as running:
        yield running


@pytest.fixture(scope="module")
def shop(client: Client) -> Graph:
    client.create_space(
        "shop",
        {
            "ids": "string",
            "direction": "both",
            "nodes": {"user": {}, "item": {}},
            "edges": {"user:buys:item": {}, "user:follows:user": {}},
        },
    )
    graph = client.graph("shop")
    graph.upsert_nodes(["Zoë", "user-3", "7"], "user")
    graph.upsert_nodes(["apple", "pear", "plum"], "item")
    graph.upsert_edges(["Zoë", "Zoë", "user-3"], ["apple", "pear", "plum"], "buys")
    graph.upsert_edges(["Zoë", "user-3"], ["7", "Zoë"], "follows")
    graph.build()
    return graph


@pytest.fixture(scope="module")
def airports(client: Client, tmp_path_factory: pytest.TempPathFactory) -> Graph:
    folder, source = (
        shared_or_skip("data", "openflights"),
        ROOT / "examples" / "schemas" / "airports.yaml",
    )
    rejects = tmp_path_factory.mktemp("rejects") / "rejects.csv"
    schema = open_source(source, root=folder).schema
    report = ingest.load(
        client, "airports", source, schema=schema, root=folder, on_bad_rows="skip", rejects=rejects
    )
    with rejects.open(newline="", encoding="utf-8") as file:
        reasons = Counter(row["reason"] for row in csv.DictReader(file))
    assert report.rejected == reasons.total()
    assert set(reasons) >= {"the id is missing", "there is no such node of type 'airport'"}
    client.graph("airports").build()
    return client.graph("airports")


def read_table(name: str) -> list[list[str]]:
    with (shared_or_skip("data", "openflights") / name).open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_the_worlds_airports_are_known_by_their_codes(airports: Graph) -> None:
    codes = {row[4]: row for row in read_table("airports.dat") if row[4] not in ("\\N", "")}
    assert airports.manifest().count("NODE", 0) == len(codes)
    names = airports.node_names(
        np.concatenate([batch.ids for batch in airports.scan_nodes("airport")]), "airport"
    )
    assert set(names.tolist()) == set(codes)
    routes = Counter(
        (row[2], row[4]) for row in read_table("routes.dat") if row[2] in codes and row[4] in codes
    )
    loaded_routes: Counter[tuple[str, str]] = Counter()
    for batch in airports.scan_edges("route"):
        ends = (airports.node_names(ids, "airport").tolist() for ids in (batch.src, batch.dst))
        loaded_routes.update(
            dict(zip(zip(*ends, strict=True), batch.weights.astype(int).tolist(), strict=True))
        )
    assert loaded_routes == routes
    neighbors = airports.neighbors(["SFO"], "route")
    assert set(airports.node_names(neighbors.nodes, "airport").tolist()) == {
        dst for src, dst in routes if src == "SFO"
    }
    altitudes = airports.node_features(["SFO", "DEN"], "altitude", "airport")["altitude"]
    assert altitudes.tolist() == [int(codes[code][8]) for code in ("SFO", "DEN")]
    country = airports.node_names(airports.neighbors(["ZRH"], "in").nodes, "country")
    assert country.tolist() == ["Switzerland"]


def test_export_contains_and_verifies_string_ids(airports: Graph, tmp_path: Path) -> None:
    report = export.dgl(airports, tmp_path / "out", parts=3, assign="random", seed=1)
    assert not any("'id'" in warning for warning in report.warnings)
    verification = export.verify(tmp_path / "out")
    assert verification.ok, verification.problems
    codes = []
    for part in range(3):
        ids = read_tensors(tmp_path / "out" / f"part{part}" / "orig_nids.dgl")["airport"]
        names = export.read_names(tmp_path / "out", part, "airport")
        np.testing.assert_array_equal(names, airports.node_names(np.asarray(ids), "airport"))
        codes += names.tolist()
    assert sorted(codes) == sorted({row[4] for row in read_table("airports.dat")} - {"\\N", ""})
    with pytest.raises(NotFound, match="no node type 'plane'"):
        export.read_names(tmp_path / "out", 0, "plane")
    damaged = tmp_path / "out" / "part1" / "orig_names.dgl"
    data = damaged.read_bytes()
    offset = data.index(
        b"".join(name.encode() for name in export.read_names(tmp_path / "out", 1, "airport")[:20])
    )
    damaged.write_bytes(data[:offset] + b"QQQ" + data[offset + 3 :])
    assert any(
        "is not the one that its id is of" in problem
        for problem in export.verify(tmp_path / "out").problems
    )
    export.chunks(airports, tmp_path / "chunks")
    exported_ids = np.load(tmp_path / "chunks" / "node_ids" / "airport.npy")
    ends, text = (
        np.load(tmp_path / "chunks" / "node_names" / f"airport.{half}.npy")
        for half in ("indptr", "utf8")
    )
    assert [bytes(text[a:b]).decode() for a, b in pairwise(ends)] == airports.node_names(
        exported_ids, "airport"
    ).tolist()
    sample = export.sampled(
        airports, ["SFO", "ZRH"], [3], ntype="airport", etypes="route", direction="out"
    )
    export.dgl(sample, tmp_path / "sample", parts=1, homogeneous=False)
    assert {"SFO", "ZRH"} <= set(export.read_names(tmp_path / "sample", 0, "airport").tolist())
    assert export.verify(tmp_path / "sample").ok


def test_objects_keep_their_labels_where_ids_are_strings(client: Client) -> None:
    networkx, igraph = pytest.importorskip("networkx"), pytest.importorskip("igraph")
    friends = networkx.Graph([("ann", "bob"), ("bob", "Çem")])
    assert dict(client.load_graph("club", friends, ids="string", build=True).names) == {}
    club = client.graph("club")
    assert sorted(club.node_names(club.neighbors(["bob"], "edge").nodes).tolist()) == ["ann", "Çem"]
    client.load_graph(
        "club", networkx.Graph([("dan", "ann")]), build=True
    )  # strings, because the space exists with string ids
    assert sorted(club.node_names(club.neighbors(["ann"], "edge").nodes).tolist()) == ["bob", "dan"]
    with pytest.raises(InvalidRequest, match="expected a string or an integer"):
        client.load_graph("tuples", networkx.Graph([((1, 2), (3, 4))]), ids="string")
    chain = igraph.Graph.TupleList([("x", "y"), ("y", "z")], directed=True)
    client.load_graph("made", chain, ids="string", build=True)
    assert client.graph("made").node_names(
        client.graph("made").neighbors(["x", "y"], "edge").nodes
    ).tolist() == ["y", "z"]
    orders = pd.DataFrame({"src": ["ann", "bob"], "dst": [7, 9]})
    client.load_graph(
        "orders", {("user", "buys", "item"): orders}, ids="string", salt=4, build=True
    )
    orders_graph = client.graph("orders")
    assert (
        orders_graph.schema.salt,
        orders_graph.node_names(
            orders_graph.neighbors(["ann", "bob"], "buys").nodes, "item"
        ).tolist(),
    ) == (4, ["7", "9"])
    # A salt without string ids is refused before anything is created.
    for name, ids, message in (
        ("unsalted", "per_type", "salt=4 with ids='per_type': expected 0"),
        ("orders", "string", "salt=5: expected 4, the salt of the existing space 'orders'"),
        (
            "numbered",
            "per_type",
            "salt=4: expected 0, because ids are 'per_type', of the existing space 'numbered'",
        ),
    ):
        if name == "numbered":
            client.create_space(
                "numbered", {"nodes": {"user": {}, "item": {}}, "edges": {"user:buys:item": {}}}
            )
        with pytest.raises(InvalidRequest, match=message):
            client.load_graph(
                name, {("user", "buys", "item"): orders}, ids=ids, salt=5 if name == "orders" else 4
            )
    assert "unsalted" not in {space.name for space in client.spaces()}
    assert client.load_graph("orders", {("user", "buys", "item"): orders}, salt=4).edges == 2


def test_command_accepts_and_prints_string_ids(shop: Graph, folder: Path) -> None:
    def run(*arguments: str) -> Any:
        command = ("asterism.cli", "--path", folder, "--json", "sample", *arguments)
        completed = zygote.run(*command)
        assert completed.returncode == 0, completed.stderr
        return json.loads(completed.stdout)

    sampled = run("neighbors", "shop", "Zoë", "user-3", "--type", "buys", "-n", "3", "--seed", "5")[
        "nodes"
    ]
    expected = shop.sample_neighbors(["Zoë", "user-3"], "buys", 3, seed=5).nodes
    assert sampled == shop.node_names(expected, "item").tolist()
    subgraph = run("subgraph", "shop", "Zoë", "--fanout", "2", "--type", "follows", "--seed", "5")
    assert subgraph["nodes"]["user"][0] == "Zoë"


def test_interrupted_load_of_strings_resumes(client: Client, tmp_path: Path) -> None:
    names = [f"node-{i:04d}" for i in range(1000)]
    (tmp_path / "nodes.csv").write_text("id\n" + "\n".join(names) + "\n")
    (tmp_path / "edges.csv").write_text("a,b\n" + "".join(f"{a},{b}\n" for a, b in pairwise(names)))
    (tmp_path / "schema.yaml").write_text(
        "ids: string\nnodes: {n: {files: nodes.csv, id: id}, m: {}}\nedges: {n:on:m: {files: "
        "edges.csv, src: a, dst: b, missing: create}}\n"
    )
    progress_rows: list[int] = []

    def interrupt(progress: ingest.LoadProgress) -> None:
        progress_rows.append(progress.rows_done)
        if len(progress_rows) == 12:
            raise KeyboardInterrupt

    schema = open_source(tmp_path / "schema.yaml").schema
    with pytest.raises(KeyboardInterrupt):
        ingest.load(
            client,
            "cut-off",
            tmp_path / "schema.yaml",
            schema=schema,
            chunk_rows=100,
            progress=interrupt,
        )
    report = ingest.load(client, "cut-off", tmp_path / "schema.yaml", chunk_rows=100)
    assert (report.nodes, report.edges) == (1000, 999)
    graph = client.graph("cut-off")
    graph.build()
    for kind, expected in (("n", names), ("m", names[1:])):
        ids = np.concatenate([batch.ids for batch in graph.scan_nodes(kind)])
        assert sorted(graph.node_names(ids, kind).tolist()) == expected
    assert graph.node_names(graph.neighbors(["node-0007"], "on").nodes, "m").tolist() == [
        "node-0008"
    ]


@pytest.mark.slow
def test_killed_load_of_strings_resumes_without_duplicates(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    rng, names = np.random.default_rng(2), [f"node-{i:05d}" for i in range(6000)]
    (tmp_path / "nodes.csv").write_text("id\n" + "\n".join(names) + "\n")
    (tmp_path / "edges.csv").write_text(
        "a,b\n" + "".join(f"{a},{b}\n" for a, b in rng.choice(names, (30_000, 2)))
    )
    schema = tmp_path / "schema.yaml"
    schema.write_text(
        "ids: string\nnodes: {n: {files: nodes.csv, id: id}, m: {}}\nedges:\n  n:to:n: "
        "{files: edges.csv, src: a, dst: b}\n"
        "  n:on:m: {files: edges.csv, src: a, dst: b, missing: create}\n"
    )
    with cluster.client() as client:
        for space in ("whole", "killed"):
            client.create_space(space, open_source(schema).schema)
        ingest.load(client, "whole", schema, chunk_rows=256)
        command = [
            sys.executable,
            "-m",
            "asterism.cli",
            "--address",
            cluster.addresses,
            "--json",
            "load",
            "killed",
            str(schema),
            "--chunk-rows",
            "256",
        ]
        kills = 0
        for wait_s in (1.5, 2.0, 2.5, 60.0):
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            try:
                process.communicate(timeout=wait_s)
                break
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.communicate()
                kills += 1
        assert (process.returncode, kills >= 1) == (0, True)
        graphs = [client.graph(space) for space in ("whole", "killed")]
        for graph in graphs:
            graph.build()
        assert graphs[0].node_names(
            np.concatenate([b.ids for b in graphs[1].scan_nodes("n")]), "n"
        ).size == len(names)
        for kind in ("n", "m"):
            uninterrupted, killed = (
                [
                    (batch.ids.tolist(), *map(bytes, batch.features["id"]))
                    for batch in graph.scan_nodes(kind, ["id"])
                ]
                for graph in graphs
            )
            assert uninterrupted == killed
        for kind in ("to", "on"):
            uninterrupted_edges, killed_edges = (
                np.concatenate(
                    [np.stack((b.src, b.dst, b.edge_ids)) for b in graph.scan_edges(kind)], axis=1
                )
                for graph in graphs
            )
            np.testing.assert_array_equal(uninterrupted_edges, killed_edges)
