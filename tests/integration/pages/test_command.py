"""The asterism command, from a schema file to partitions on disk.

Output is checked in both forms: for people and for scripts.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.kit import zygote
from tests.kit.waiting import HANG_S

from asterism import connect
from asterism.cli.exit_codes import ExitCode
from asterism.cli.output import to_json_value
from asterism.formats import generate

SHOP = generate.Shop(users=300, items=80, categories=5, clicks=2000, buys=600, follows=500, seed=3)
LIMIT_S = HANG_S


class Command:
    """Runner for the command against a service that serves a folder in its own process."""

    def __init__(self, folder: Path) -> None:
        self.source = generate.write_dgl(SHOP, folder / "files")
        arguments = [
            "serve",
            str(folder / "graph"),
            "--listen",
            "127.0.0.1:0",
            "--http-listen",
            "127.0.0.1:0",
            "--json",
        ]
        self.log = (folder / "serve.log").open("w")
        self.server = subprocess.Popen(
            [sys.executable, "-m", "asterism.cli", *arguments],
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
        )
        assert self.server.stdout is not None
        self.startup = json.loads(self.server.stdout.readline())
        self.address: str = self.startup["address"]

    def __call__(self, *arguments: object, expect: ExitCode = ExitCode.DONE) -> Any:
        """Run a command; return its JSON document, or the message of its error."""
        completed = zygote.run(
            "asterism.cli", "--address", self.address, "--json", *map(str, arguments)
        )
        assert completed.returncode == expect, completed.stderr + completed.stdout
        if expect not in (ExitCode.DONE, ExitCode.FAILED):
            assert completed.stdout == ""
            (line,) = completed.stderr.splitlines()
            error = json.loads(line)
            assert error["exit_code"] == expect
            return error["message"]
        return json.loads(completed.stdout)

    def text(self, *arguments: object) -> str:
        """Run a command; return its output for people."""
        completed = zygote.run("asterism.cli", "--address", self.address, *map(str, arguments))
        assert completed.returncode == ExitCode.DONE, completed.stderr
        return completed.stdout

    def close(self) -> int:
        """Stop the server with SIGTERM and return its exit status."""
        if self.server.poll() is None:
            self.server.send_signal(signal.SIGTERM)
        status = self.server.wait(HANG_S)
        if self.server.stdout is not None:
            self.server.stdout.close()
        self.log.close()
        return status


@pytest.fixture(scope="module")
def asterism(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    command = Command(tmp_path_factory.mktemp("command"))
    loaded = command(
        "load", "shop", command.source, "--create", "--parts", 4, "--direction", "both", "--build"
    )
    assert loaded["job"]["state"] == "FINISHED"
    assert loaded["load"]["edges"] == sum(SHOP.edges.values())
    yield command
    assert command.close() == 0


def test_a_served_folder_reports_its_addresses(asterism: Command) -> None:
    with urllib.request.urlopen(
        f"http://{asterism.startup['http_address']}/readyz", timeout=HANG_S
    ) as answer:
        assert answer.status == 200
    status = asterism("status")
    assert status["ready"] is True
    assert [space["name"] for space in status["spaces"]] == ["shop"]


def test_a_space_is_described_with_its_current_version(asterism: Command) -> None:
    description = asterism("space", "describe", "shop")
    assert (
        description["space"]["schema"]["parts"],
        description["space"]["schema"]["direction"],
    ) == (4, "both")
    assert sum(
        s["count"] for s in description["current"]["totals"] if s["element"] == "NODE"
    ) == sum(SHOP.nodes.values())


def test_spaces_are_created_from_a_file_listed_and_dropped(
    asterism: Command, tmp_path: Path
) -> None:
    file = tmp_path / "schema.json"
    file.write_text(
        '{"parts": 2, "nodes": {"paper": {"features": {"year": "int64"}}}, '
        '"edges": {"paper:cites:paper": {}}}'
    )
    assert asterism("space", "create", "papers", file)["name"] == "papers"
    assert asterism("space", "create", "papers", file, "--if-not-exists")["name"] == "papers"
    assert "papers" in asterism("space", "create", "papers", file, expect=ExitCode.CONFLICT)
    assert {space["name"] for space in asterism("space", "list")} == {"papers", "shop"}
    assert asterism("space", "drop", "papers", "--yes") == {"dropped": "papers"}
    assert "papers" in asterism("space", "describe", "papers", expect=ExitCode.NOT_FOUND)
    dropped = asterism.text("space", "drop", "papers", "--if-exists")
    assert dropped == "space papers does not exist\n"


def test_draws_repeat_with_their_seed(asterism: Command) -> None:
    nodes = asterism("sample", "nodes", "shop", "-n", 7, "--type", "item", "--seed", 5)
    assert len(nodes["nodes"]) == 7
    assert nodes == asterism(
        "sample",
        "nodes",
        "shop",
        "-n",
        7,
        "--type",
        "item",
        "--seed",
        nodes["seed"],
        "--graph-version",
        nodes["version"],
    )
    edges = asterism(
        "sample", "edges", "shop", "-n", 4, "--type", "buys", "--uniform", "--no-replace"
    )
    assert len(set(edges["edge_ids"])) == 4
    neighbors = asterism("sample", "neighbors", "shop", 1, 2, "--type", "clicks", "-n", 3)
    assert [len(row) for row in neighbors["nodes"]] == [3, 3]
    fanout = asterism(
        "sample", "fanout", "shop", 1, 2, "--hop", "follows=3", "--hop", "clicks,buys=2"
    )
    assert [len(hop["nodes"]) for hop in fanout["hops"]] == [6, 12]


def test_samples_have_probabilities_on_request(asterism: Command) -> None:
    assert asterism("sample", "nodes", "shop", "-n", 3)["probabilities"] is None
    nodes = asterism(
        "sample",
        "nodes",
        "shop",
        "-n",
        40,
        "--type",
        "item",
        "--uniform",
        "--no-replace",
        "--probabilities",
    )
    assert nodes["probabilities"] == [1 / (80 - k) for k in range(40)]
    edges = asterism("sample", "edges", "shop", "-n", 3, "--type", "buys", "--probabilities")
    shares = [
        p / float(np.float32(weight))  # printed with its shortest digits
        for p, weight in zip(edges["probabilities"], edges["weights"], strict=True)
    ]
    assert shares == pytest.approx([shares[0]] * 3, rel=1e-14)
    neighbors = asterism(
        "sample",
        "neighbors",
        "shop",
        1,
        2,
        "--type",
        "clicks",
        "-n",
        2,
        "--uniform",
        "--probabilities",
    )
    fanout = asterism(
        "sample",
        "fanout",
        "shop",
        1,
        2,
        "--hop",
        "clicks=2",
        "--uniform",
        "--probabilities",
        "--seed",
        neighbors["seed"],
    )
    assert [p for row in neighbors["probabilities"] for p in row] == fanout["hops"][0][
        "probabilities"
    ]


def test_times_of_a_space_without_any_are_refused_with_the_type(asterism: Command) -> None:
    command = ("sample", "neighbors", "shop", 1, 2, "--type", "clicks")
    assert "user:clicks:item" in asterism(*command, "--seed-time", 7, expect=ExitCode.USAGE)
    assert "'soon': expected a number" in asterism(
        *command, "--seed-time", "soon", expect=ExitCode.USAGE
    )
    assert "--strategy='last': expected --seed-time too" in asterism(
        *command, "--strategy", "last", expect=ExitCode.USAGE
    )
    assert "none of them has times" in asterism(
        "sample",
        "subgraph",
        "shop",
        1,
        "--fanout",
        2,
        "--type",
        "clicks",
        "--seed-time",
        0.5,
        expect=ExitCode.USAGE,
    )


def test_until_limits_the_edges_of_a_sample(asterism: Command, tmp_path: Path) -> None:
    edges = {"n:e:n": {"weighted": True, "features": {"when": "int64"}, "time": "when"}}
    with connect(asterism.address) as client:
        client.create_space("timed", {"nodes": {"n": {}}, "edges": edges, "direction": "both"})
        graph = client.graph("timed")
        graph.upsert_nodes([0, 1, 2, 3], "n")
        graph.upsert_edges([0, 0, 0], [1, 2, 3], "e", features={"when": [5, 7, 9]})
        graph.build(timeout_s=HANG_S)
    command = ("sample", "neighbors", "timed", 0, "--type", "e", "-n", 3, "--seed-time", 7)
    assert asterism(*command, "--strategy", "last")["times"] == [[7, 5, 0]]
    assert asterism(*command, "--strategy", "last", "--strict")["nodes"] == [[1, -1, -1]]
    assert sorted(asterism(*command, "--no-replace")["nodes"][0]) == [-1, 1, 2]
    assert asterism("sample", "subgraph", "timed", 0, "--fanout", 3, "--seed-time", 7.5)[
        "times"
    ] == {"n:e:n": [5, 7]}
    asterism("space", "drop", "timed", "--yes")


def test_every_operator_gives_what_the_client_gives(asterism: Command) -> None:
    graph, seed_options = connect(asterism.address, space="shop"), ("--seed", 11)

    def same(found: Any, record: Any) -> None:
        expected = to_json_value(record)
        assert {name: value for name, value in found.items() if name != "token"} == {
            name: expected[name] for name in expected if name != "token"
        }

    type_options = ("--type", "clicks", "--type", "buys")
    edge_types = ["clicks", "buys"]
    like = asterism(
        "sample",
        "like",
        "shop",
        3,
        4,
        "-n",
        3,
        "--node-type",
        "item",
        "--probabilities",
        *seed_options,
    )
    same(like, graph.sample_nodes_like([3, 4], 3, ntype="item", probabilities=True, seed=11))
    negatives = asterism(
        "sample",
        "negatives",
        "shop",
        "1,5",
        "2,6",
        "-n",
        4,
        "--type",
        "item",
        "--exclude",
        "clicks",
        "--probabilities",
        *seed_options,
    )
    neighbors = graph.neighbors([1, 2], "clicks")
    same(
        negatives,
        graph.sample_negatives(
            [[1, 5], [2, 6]], 4, "item", exclude=neighbors, probabilities=True, seed=11
        ),
    )
    shared = asterism(
        "sample",
        "negatives",
        "shop",
        1,
        2,
        "-n",
        9,
        "--type",
        "item",
        "--shared",
        "--uniform",
        *seed_options,
    )
    same(shared, graph.sample_negatives([1, 2], 9, "item", shared=True, weighted=False, seed=11))
    walk = asterism(
        "sample",
        "walk",
        "shop",
        1,
        2,
        "--step",
        "follows",
        "--step",
        "*",
        "--length",
        3,
        "-p",
        0.5,
        "-q",
        2,
        "--restart",
        0.1,
        *seed_options,
    )
    same(walk, graph.random_walk([1, 2], ["follows", None], 3, p=0.5, q=2.0, restart=0.1, seed=11))
    meta = asterism(
        "sample",
        "walk",
        "shop",
        1,
        2,
        "--metapath",
        "user2follows2user",
        "--length",
        3,
        "--walks",
        4,
        "--first-step",
        "distinct",
        *seed_options,
    )
    same(meta, graph.random_walk([1, 2], ["follows"], 3, walks=4, first_step="distinct", seed=11))
    visits = asterism(
        "sample",
        "pinsage",
        "shop",
        1,
        2,
        "--metapath",
        "user2follows2user",
        "-n",
        3,
        "--walks",
        9,
        "--termination",
        0.2,
        *seed_options,
    )
    same(visits, graph.sample_pinsage([1, 2], ["follows"], 3, walks=9, termination=0.2, seed=11))
    pairs = asterism(
        "sample",
        "pairs",
        "shop",
        "user2follows2user",
        "--length",
        3,
        "--negatives",
        2,
        "--batch-size",
        8,
        "--batches",
        2,
        *seed_options,
    )
    batches = graph.walk_pairs("user2follows2user", 3, negatives=2, batch_size=8, seed=11)
    for entry, batch in zip(pairs, batches, strict=False):
        assert (entry["pairs"], entry["negatives"]) == (
            batch.pairs.tolist(),
            to_json_value(batch.negatives),
        )
    assert len(pairs) == 2
    sub = asterism(
        "sample",
        "subgraph",
        "shop",
        1,
        2,
        "--fanout",
        "3,-1",
        *type_options,
        "--direction",
        "out",
        "--node-type",
        "user",
        *seed_options,
    )
    same(sub, graph.sample_subgraph([1, 2], [3, -1], edge_types, ntype="user", seed=11))
    ego = asterism(
        "sample",
        "ego",
        "shop",
        1,
        2,
        "--fanout",
        "3,2",
        "--type",
        "follows",
        "--induced-type",
        "follows",
        "--uniform",
        *seed_options,
    )
    same(ego, graph.sample_ego_subgraphs([1, 2], [3, 2], "follows", weighted=False, seed=11))
    induced = asterism("sample", "induced", "shop", *range(9), "--type", "follows")
    same(induced, graph.induced_subgraph(list(range(9)), "follows", weights=True))
    labor = asterism(
        "sample",
        "labor",
        "shop",
        1,
        2,
        "--fanout",
        "3,-1",
        *type_options,
        "--importance",
        -1,
        "--layer-dependency",
        "--node-type",
        "user",
        *seed_options,
    )
    same(
        labor,
        graph.sample_labor(
            [1, 2], [3, -1], edge_types, importance=-1, layer_dependency=True, ntype="user", seed=11
        ),
    )
    counts = ("--count", "user=3,2", "--count", "item=4,0")
    layers = asterism(
        "sample",
        "hgt",
        "shop",
        1,
        2,
        *counts,
        *type_options,
        "--node-type",
        "user",
        "--induced-type",
        "buys",
        "--uniform",
        *seed_options,
    )
    same(
        layers,
        graph.sample_hgt(
            [1, 2],
            {"user": [3, 2], "item": [4, 0]},
            edge_types,
            among="buys",
            ntype="user",
            weighted=False,
            seed=11,
        ),
    )
    layer = asterism(
        "sample",
        "layer",
        "shop",
        1,
        2,
        3,
        "-n",
        6,
        *type_options,
        "--measure",
        "squares",
        "--no-replace",
        *seed_options,
    )
    same(
        layer,
        graph.sample_layer([1, 2, 3], edge_types, 6, measure="squares", replace=False, seed=11),
    )
    adjacency = asterism(
        "sample",
        "adjacency",
        "shop",
        "--rows",
        "1,2",
        "--cols",
        ",".join(map(str, range(80))),
        "--type",
        "buys",
    )
    same(adjacency, graph.adjacency([1, 2], list(range(80)), "buys", edge_ids=True))
    same(
        asterism("sample", "top", "shop", 1, 2, *type_options, "-k", 3),
        graph.top_k_neighbors([1, 2], edge_types, 3, edge_ids=True),
    )
    same(
        asterism("sample", "all", "shop", 1, 2, *type_options, "--sort", "weight"),
        graph.neighbors([1, 2], edge_types, sort="weight"),
    )
    ranks = asterism(
        "sample",
        "pagerank",
        "shop",
        1,
        2,
        "--type",
        "follows",
        "-k",
        4,
        "--epsilon",
        0.001,
        "--uniform",
    )
    same(ranks, graph.personalized_pagerank([1, 2], "follows", 4, epsilon=0.001, weighted=False))
    degrees = asterism("sample", "degrees", "shop", 1, 2, *type_options, "--weight", "weight")
    assert (degrees["types"], degrees["degrees"]) == (
        edge_types,
        graph.degrees([1, 2], edge_types, weight="weight").tolist(),
    )
    filtered = asterism(
        "sample",
        "nodes",
        "shop",
        "-n",
        9,
        "--type",
        "item",
        "--where",
        "id between 7 and 30 and weight > 0",
        *seed_options,
    )
    same(
        filtered, graph.sample_nodes(9, "item", where="id between 7 and 30 and weight > 0", seed=11)
    )
    assert all(7 <= node <= 30 for node in filtered["nodes"])
    heavy = asterism("sample", "top", "shop", 1, 2, *type_options, "-k", 3, "--where", "dst > 5")
    same(heavy, graph.top_k_neighbors([1, 2], edge_types, 3, where="dst > 5", edge_ids=True))
    entry = asterism(
        "sample",
        "walk",
        "shop",
        1,
        2,
        "--step",
        "follows",
        "--length",
        3,
        "--explain",
        *seed_options,
    )
    assert {one["method"] for one in entry["storage_requests"]} == {"walk"}
    assert (
        to_json_value(graph.replay(entry["token"], [1, 2]))["nodes"]
        == to_json_value(graph.random_walk([1, 2], ["follows"], 3, seed=11))["nodes"]
    )
    for entry, message in (
        (("sample", "like", "shop", 10**12, "--node-type", "nope"), "nope"),
        (("sample", "walk", "shop", 1, "--metapath", "user2eats2item"), "expected an edge type"),
        (("sample", "nodes", "shop", "--where", "weight >"), "character 9: found the end"),
    ):
        assert message in asterism(
            *entry, expect=ExitCode.NOT_FOUND if message == "nope" else ExitCode.USAGE
        )


def test_graph_labels_are_written_as_text(asterism: Command) -> None:
    client = connect(asterism.address)
    client.create_space(
        "molecules", {"nodes": {"atom": {"features": {"of": "bytes"}, "graph_label": "of"}}}
    )
    molecules = client.graph("molecules")
    molecules.upsert_nodes([1, 2, 3], "atom", features={"of": ["benzene", "benzene", "toluene"]})
    molecules.build()
    samples = asterism("sample", "labels", "molecules", "-n", 50, "--seed", 3)
    assert set(samples["labels"]) == {"benzene", "toluene"}
    assert asterism("sample", "graphs", "molecules", "toluene", "none", "benzene")["nodes"] == [
        3,
        1,
        2,
    ]
    assert "graph_label" in asterism("sample", "labels", "shop", expect=ExitCode.USAGE)
    client.drop_space("molecules")


def test_every_kind_of_job_is_submitted_with_its_options(asterism: Command, tmp_path: Path) -> None:
    audit = asterism("job", "submit", "shop", "--kind", "audit", "--graph-version", 1, "--wait")
    assert (audit["state"], audit["target_version"], audit["version"]) == ("FINISHED", 1, 0)
    assert {entry["element"] for task in audit["tasks"] for entry in task["result"]["audit"]} == {
        "NODE",
        "EDGE",
    }
    export = asterism(
        "job",
        "submit",
        "shop",
        "--kind",
        "export-tables",
        "--option",
        "format=csv",
        "--option",
        f"to=file://{tmp_path}/t",
        "--wait",
    )
    assert export["options"] == {"format": "csv", "to": f"file://{tmp_path}/t"}
    (result,) = [task["result"] for task in export["tasks"]]
    assert sorted(file["path"] for file in result["files"]) == sorted(
        path.name for path in tmp_path.glob("t/*/*.csv")
    )
    assert (
        asterism("job", "submit", "shop", "--kind", "compact", "--wait")["tasks"][0]["result"][
            "bytes_after"
        ]
        > 0
    )
    assert "KEY=VALUE" in asterism(
        "job", "submit", "shop", "--kind", "export-tables", "--option", "csv", expect=ExitCode.USAGE
    )
    assert "'format'" in asterism(
        "job", "submit", "shop", "--option", "format=csv", expect=ExitCode.USAGE
    )
    assert "baking" in asterism("job", "submit", "shop", "--kind", "baking", expect=ExitCode.USAGE)
    assert "version 77" in asterism(
        "job", "submit", "shop", "--kind", "audit", "--graph-version", 77, expect=ExitCode.NOT_FOUND
    )


def test_jobs_are_submitted_watched_and_listed(asterism: Command) -> None:
    job = asterism("job", "submit", "shop", "--wait")
    assert (job["state"], job["kind"]) == ("FINISHED", "build")
    assert asterism("job", "show", job["job_id"])["version"] == job["version"]
    assert asterism("job", "wait", job["job_id"])["state"] == "FINISHED"
    listed = asterism("job", "list", "--space", "shop", "--state", "finished")
    assert listed[0]["job_id"] == job["job_id"]
    shown = asterism.text("job", "show", job["job_id"])
    assert "in this process: built units" in shown
    assert job["tasks"][0]["host"][:12] not in shown
    assert "987654" in asterism("job", "show", 987654, expect=ExitCode.NOT_FOUND)
    assert "DREAMING" in asterism("job", "list", "--state", "dreaming", expect=ExitCode.USAGE)


def test_versions_are_listed_with_their_pins(
    asterism: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")  # wide enough that no column is cut
    with connect(asterism.address, space="shop").pin(owner="a trainer"):
        newest, *_ = asterism("space", "versions", "shop")
        assert [(pin["owner"], pin["version"]) for pin in newest["pins"]] == [
            ("a trainer", newest["version"])
        ]
        command = ("asterism.cli", "space", "versions", "shop", "--address", asterism.address)
        output = zygote.run(*command).stdout
        assert "a trainer until 20" in output
    assert asterism("space", "versions", "shop")[0]["pins"] == []
    assert "nope" in asterism("space", "versions", "nope", expect=ExitCode.NOT_FOUND)


def test_partitions_are_exported(asterism: Command, tmp_path: Path) -> None:
    report = asterism("export", "dgl", "--space", "shop", "--parts", 2, "--out", tmp_path / "out")
    assert json.loads(Path(report["config"]).read_text())["num_parts"] == 2
    assert sum(sum(part["nodes"].values()) for part in report["parts"]) == sum(SHOP.nodes.values())
    asterism(
        "export",
        "dgl",
        "--space",
        "shop",
        "--parts",
        2,
        "--out",
        tmp_path / "out",
        expect=ExitCode.CONFLICT,
    )
    resumed = asterism(
        "export",
        "dgl",
        "--space",
        "shop",
        "--parts",
        2,
        "--out",
        tmp_path / "out",
        "--resume",
        "--workers",
        2,
        "--memory-limit",
        64,
    )
    assert resumed["parts"] == report["parts"]
    assert asterism("export", "verify", tmp_path / "out")["problems"] == []
    asterism("export", "pyg", tmp_path / "out", tmp_path / "pyg")
    assert json.loads((tmp_path / "pyg/META.json").read_text())["num_parts"] == 2
    chunks = asterism("export", "chunks", "--space", "shop", "--out", tmp_path / "chunks")
    assert chunks["nodes"] == sum(SHOP.nodes.values())
    with (tmp_path / "out/part0/graph.dgl").open("ab") as file:
        file.write(b"x")
    asterism("export", "verify", tmp_path / "out", expect=ExitCode.FAILED)
    asterism("export", "verify", tmp_path / "none", expect=ExitCode.NOT_FOUND)
    asterism(
        "export",
        "dgl",
        "--space",
        "shop",
        "--parts",
        2,
        "--out",
        tmp_path / "x",
        "--fanout",
        "2",
        expect=ExitCode.USAGE,
    )


def test_an_assignment_is_written_exported_and_dispatched(
    asterism: Command, tmp_path: Path
) -> None:
    space_options = ("--space", "shop", "--parts", 2)
    assignment = asterism(
        "export",
        "assignment",
        *space_options,
        "--assign",
        "ldg",
        "--passes",
        2,
        "--balance-edges",
        "--out",
        tmp_path / "given",
    )
    assert {kind: sum(counts) for kind, counts in assignment["nodes"].items()} == dict(SHOP.nodes)
    report = asterism(
        "export",
        "dgl",
        *space_options,
        "--assign",
        tmp_path / "given",
        "--format",
        "csc",
        "--weight",
        "",
        "--out",
        tmp_path / "out",
    )
    assert [part["nodes"] for part in report["parts"]] == [
        {kind: counts[part] for kind, counts in assignment["nodes"].items()} for part in range(2)
    ]
    (tmp_path / "ip_config.txt").write_text("one\ntwo\n")
    dispatched = asterism(
        "export",
        "dispatch",
        tmp_path / "out",
        f"{tmp_path}/{{host}}/data",
        "--ip-config",
        tmp_path / "ip_config.txt",
    )
    assert [(entry["parts"], entry["copied"]) for entry in dispatched["places"]] == [
        ([0], True),
        ([1], True),
    ]
    assert (tmp_path / "two/data/part1/graph.dgl").read_bytes() == (
        tmp_path / "out/part1/graph.dgl"
    ).read_bytes()
    options = (
        "--num-trainers-per-machine",
        2,
        "--assign",
        "fennel",
        "--out",
        f"{tmp_path}/at/{{part}}",
        "--scratch",
        tmp_path,
    )
    asterism("export", "dgl", *space_options, *options)
    assert (tmp_path / "at/1/shop.json").is_file()


def test_missing_and_invalid_input_have_their_exit_codes(asterism: Command, tmp_path: Path) -> None:
    assert "nope" in asterism("sample", "nodes", "nope", expect=ExitCode.NOT_FOUND)
    assert "nope" in asterism(
        "sample", "nodes", "shop", "--type", "nope", expect=ExitCode.NOT_FOUND
    )
    assert "99" in asterism(
        "sample", "nodes", "shop", "--graph-version", 99, expect=ExitCode.NOT_FOUND
    )
    assert "-7" in asterism(
        "sample", "neighbors", "shop", "--type", "clicks", "--", -7, expect=ExitCode.USAGE
    )
    (tmp_path / "empty").mkdir()
    assert "metadata.json" in asterism("load", "shop", tmp_path / "empty", expect=ExitCode.USAGE)


def test_reading_commands_never_create_a_missing_folder(tmp_path: Path) -> None:
    nowhere, empty = tmp_path / "nowhere", tmp_path / "empty"
    empty.mkdir()
    for folder, message, arguments in (
        (nowhere, "no such folder", ("space", "describe", "shop")),
        (nowhere, "no such folder", ("job", "submit", "shop")),
        (empty, "there are no graphs in it", ("status",)),
    ):
        completed = zygote.run("asterism.cli", *arguments, "--path", str(folder))
        assert (completed.returncode, completed.stdout) == (ExitCode.NOT_FOUND, "")
        assert f"{folder}: {message}" in completed.stderr
    assert not nowhere.exists()
    assert list(empty.iterdir()) == []


def test_a_file_in_the_place_of_a_folder_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "papers.csv"
    file.write_text("id\n")
    completed = zygote.run("asterism.cli", "space", "list", "--path", str(file))
    assert completed.returncode == ExitCode.USAGE
    assert f"--path='{file}': expected a folder, found a file" in completed.stderr


def test_text_output_names_the_sampled_type(asterism: Command) -> None:
    command = [
        sys.executable,
        "-m",
        "asterism.cli",
        "sample",
        "edges",
        "shop",
        "-n",
        "3",
        "--type",
        "buys",
        "--address",
        asterism.address,
    ]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=True)
    assert completed.stdout.count("user:buys:item") == 3
    assert "--seed" in completed.stderr


@pytest.mark.parametrize(
    ("typed", "expected_text"),
    [
        ("like shop 3 --node-type item -n 2", "nodes of the same type"),
        ("negatives shop 1,5 -n 2 --type item", "1,5"),
        ("walk shop 1 --step follows --length 2", "start path"),
        ("pairs shop user2follows2user --length 2 --negatives 1", "user2follows2user"),
        ("subgraph shop 1 --fanout 2 --type follows", "hop 1"),
        ("ego shop 1 --fanout 2 --type follows", "ego subgraphs"),
        (
            "hgt shop 1 --count user=2,1 --count item=2,0 --node-type user",
            "type seeds layer 1 layer 2 total",
        ),
        ("induced shop 0 1 2 3 4 --type follows", "destination"),
        ("layer shop 1 2 --type buys -n 2", "incoming edges"),
        ("adjacency shop --rows 1,2 --cols 1,2,3 --type buys", "edge id"),
        ("top shop 1 --type buys -k 2", "heaviest neighbors"),
        ("all shop 1 --type buys", "neighbor (weight)"),
        ("degrees shop 1 --type buys", "buys"),
        ("nodes shop -n 3 --type item --explain", "shares of the samples"),
        ("layer shop 1 2 --type buys -n 2 --explain", "requests to storageds: 1 rounds"),
    ],
)
def test_text_output_of_the_other_operators(
    asterism: Command, typed: str, expected_text: str
) -> None:
    output = asterism.text("sample", *typed.split())
    assert expected_text in " ".join(output.split())


def test_commands_read_a_served_folder_but_cannot_write_it(asterism: Command) -> None:
    def run_at_folder(*arguments: object) -> subprocess.CompletedProcess[str]:
        return zygote.run("asterism.cli", *map(str, arguments), "--path", asterism.startup["path"])

    completed = run_at_folder("sample", "nodes", "shop", "-n", 3, "--type", "item", "--seed", 5)
    assert (completed.returncode, completed.stdout.count("item")) == (0, 3)
    assert "is open in another process; this is what it had published" in " ".join(
        completed.stderr.split()
    )
    status = run_at_folder("status", "--json")
    assert (status.returncode, json.loads(status.stdout)["ready"], status.stderr) == (0, True, "")
    assert [
        space["name"] for space in json.loads(run_at_folder("space", "list", "--json").stdout)
    ] == ["shop"]
    assert (
        json.loads(run_at_folder("space", "describe", "shop", "--json").stdout)["current"][
            "version"
        ]
        >= 1
    )
    for write_command in (
        ("load", "shop", asterism.source),
        ("job", "submit", "shop"),
        ("space", "drop", "shop", "--yes"),
    ):
        refused = run_at_folder(*write_command)
        assert refused.returncode == ExitCode.CONFLICT, refused.stderr
        assert "is open in another process" in refused.stderr
