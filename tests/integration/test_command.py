"""The asterism command, from a schema file to partitions on disk: as people type it, and as scripts read it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from asterism import connect
from asterism.cli.exits import ExitCode
from asterism.formats import generate

SHOP = generate.Shop(users=300, items=80, categories=5, clicks=2000, buys=600, follows=500, seed=3)
LIMIT_S = 180


class Command:
    """Runs the command on a service that is served from a folder, in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.source = generate.write_dgl(SHOP, folder / "files")
        arguments = ["serve", str(folder / "graph"), "--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0", "--json"]
        self.log = (folder / "serve.log").open("w")
        self.server = subprocess.Popen([sys.executable, "-m", "asterism.cli", *arguments], stdout=subprocess.PIPE, stderr=self.log, text=True)
        assert self.server.stdout is not None
        self.told = json.loads(self.server.stdout.readline())
        self.address: str = self.told["address"]

    def __call__(self, *arguments: object, expect: ExitCode = ExitCode.DONE) -> Any:
        """The JSON document of a command; of one that fails, the line that it says."""
        command = [sys.executable, "-m", "asterism.cli", "--address", self.address, "--json", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        assert done.returncode == expect, done.stderr + done.stdout
        if expect not in (ExitCode.DONE, ExitCode.FAILED):
            assert done.stdout == ""
            assert done.stderr.startswith("asterism: ")
            assert done.stderr.count("\n") == 1
            return done.stderr
        return json.loads(done.stdout)

    def close(self) -> int:
        """Stop the server with SIGTERM, and give its exit status."""
        if self.server.poll() is None:
            self.server.send_signal(signal.SIGTERM)
        status = self.server.wait(30)
        if self.server.stdout is not None:
            self.server.stdout.close()
        self.log.close()
        return status


@pytest.fixture(scope="module")
def asterism(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    command = Command(tmp_path_factory.mktemp("command"))
    loaded = command("load", "shop", command.source, "--create", "--parts", 4, "--direction", "both", "--build")
    assert loaded["job"]["state"] == "FINISHED"
    assert loaded["load"]["edges"] == sum(SHOP.edges.values())
    yield command
    assert command.close() == 0


def test_a_served_folder_says_where_it_is_reached(asterism: Command) -> None:
    with urllib.request.urlopen(f"http://{asterism.told['http_address']}/readyz", timeout=10) as answer:
        assert answer.status == 200
    status = asterism("status")
    assert status["ready"] is True
    assert [space["name"] for space in status["spaces"]] == ["shop"]


def test_a_space_is_described_with_what_its_version_holds(asterism: Command) -> None:
    told = asterism("space", "describe", "shop")
    assert (told["space"]["schema"]["parts"], told["space"]["schema"]["direction"]) == (4, "both")
    assert sum(s["count"] for s in told["current"]["totals"] if s["element"] == "NODE") == sum(SHOP.nodes.values())


def test_spaces_are_made_from_a_file_listed_and_dropped(asterism: Command, tmp_path: Path) -> None:
    file = tmp_path / "schema.json"
    file.write_text('{"parts": 2, "nodes": {"paper": {"features": {"year": "int64"}}}, "edges": {"paper:cites:paper": {}}}')
    assert asterism("space", "create", "papers", file)["name"] == "papers"
    assert asterism("space", "create", "papers", file, "--if-not-exists")["name"] == "papers"
    assert "papers" in asterism("space", "create", "papers", file, expect=ExitCode.CONFLICT)
    assert {space["name"] for space in asterism("space", "list")} == {"papers", "shop"}
    assert asterism("space", "drop", "papers", "--yes") == {"dropped": "papers"}
    assert "papers" in asterism("space", "describe", "papers", expect=ExitCode.NOT_FOUND)


def test_draws_repeat_with_their_seed(asterism: Command) -> None:
    nodes = asterism("sample", "nodes", "shop", "-n", 7, "--type", "item", "--seed", 5)
    assert len(nodes["nodes"]) == 7
    assert nodes == asterism("sample", "nodes", "shop", "-n", 7, "--type", "item", "--seed", nodes["seed"], "--at", nodes["version"])
    edges = asterism("sample", "edges", "shop", "-n", 4, "--type", "buys", "--uniform", "--distinct")
    assert len(set(edges["edge_ids"])) == 4
    near = asterism("sample", "neighbors", "shop", 1, 2, "--type", "clicks", "-n", 3)
    assert [len(row) for row in near["nodes"]] == [3, 3]
    far = asterism("sample", "fanout", "shop", 1, 2, "--hop", "follows=3", "--hop", "clicks,buys=2")
    assert [len(hop["nodes"]) for hop in far["hops"]] == [6, 12]


def test_draws_come_with_their_probabilities_where_these_are_asked_for(asterism: Command) -> None:
    assert asterism("sample", "nodes", "shop", "-n", 3)["probabilities"] is None
    nodes = asterism("sample", "nodes", "shop", "-n", 40, "--type", "item", "--uniform", "--distinct", "--probabilities")
    assert nodes["probabilities"] == [1 / (80 - k) for k in range(40)]
    edges = asterism("sample", "edges", "shop", "-n", 3, "--type", "buys", "--probabilities")
    shares = [p / weight for p, weight in zip(edges["probabilities"], edges["weights"], strict=True)]
    assert shares == pytest.approx([shares[0]] * 3, rel=1e-14)
    near = asterism("sample", "neighbors", "shop", 1, 2, "--type", "clicks", "-n", 2, "--uniform", "--probabilities")
    far = asterism("sample", "fanout", "shop", 1, 2, "--hop", "clicks=2", "--uniform", "--probabilities", "--seed", near["seed"])
    assert [p for row in near["probabilities"] for p in row] == far["hops"][0]["probabilities"]


def test_every_kind_of_job_is_asked_for_by_its_options(asterism: Command, tmp_path: Path) -> None:
    audit = asterism("job", "submit", "shop", "--kind", "audit", "--at", 1, "--wait")
    assert (audit["state"], audit["target_version"], audit["version"]) == ("FINISHED", 1, 0)
    assert {found["element"] for task in audit["tasks"] for found in task["result"]["audit"]} == {"NODE", "EDGE"}
    export = asterism("job", "submit", "shop", "--kind", "export-tables", "--option", "format=csv", "--option", f"to=file://{tmp_path}/t", "--wait")
    assert export["options"] == {"format": "csv", "to": f"file://{tmp_path}/t"}
    (result,) = [task["result"] for task in export["tasks"]]
    assert sorted(file["path"] for file in result["files"]) == sorted(path.name for path in tmp_path.glob("t/*/*.csv"))
    assert asterism("job", "submit", "shop", "--kind", "compact", "--wait")["tasks"][0]["result"]["bytes_after"] > 0
    assert "KEY=VALUE" in asterism("job", "submit", "shop", "--kind", "export-tables", "--option", "csv", expect=ExitCode.USAGE)
    assert "'format'" in asterism("job", "submit", "shop", "--option", "format=csv", expect=ExitCode.USAGE)
    assert "baking" in asterism("job", "submit", "shop", "--kind", "baking", expect=ExitCode.USAGE)
    assert "version 77" in asterism("job", "submit", "shop", "--kind", "audit", "--at", 77, expect=ExitCode.NOT_FOUND)


def test_jobs_are_submitted_watched_and_listed(asterism: Command) -> None:
    job = asterism("job", "submit", "shop", "--wait")
    assert (job["state"], job["kind"]) == ("FINISHED", "build")
    assert asterism("job", "show", job["job_id"])["version"] == job["version"]
    assert asterism("job", "wait", job["job_id"])["state"] == "FINISHED"
    listed = asterism("job", "list", "--space", "shop", "--state", "finished")
    assert listed[0]["job_id"] == job["job_id"]
    assert "987654" in asterism("job", "show", 987654, expect=ExitCode.NOT_FOUND)
    assert "DREAMING" in asterism("job", "list", "--state", "dreaming", expect=ExitCode.USAGE)


def test_versions_are_listed_with_who_holds_them(asterism: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")  # a terminal that cuts nothing off
    with connect(asterism.address, space="shop").pin(owner="a trainer"):
        newest, *_ = asterism("space", "versions", "shop")
        assert [(pin["owner"], pin["version"]) for pin in newest["pins"]] == [("a trainer", newest["version"])]
        command = [sys.executable, "-m", "asterism.cli", "space", "versions", "shop", "--address", asterism.address]
        shown = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=True).stdout
        assert "a trainer until 20" in shown
    assert asterism("space", "versions", "shop")[0]["pins"] == []
    assert "nope" in asterism("space", "versions", "nope", expect=ExitCode.NOT_FOUND)


def test_partitions_are_exported(asterism: Command, tmp_path: Path) -> None:
    report = asterism("export", "dgl", "--space", "shop", "--parts", 2, "--out", tmp_path / "out")
    assert json.loads(Path(report["config"]).read_text())["num_parts"] == 2
    assert sum(sum(part["nodes"].values()) for part in report["parts"]) == sum(SHOP.nodes.values())
    asterism("export", "dgl", "--space", "shop", "--parts", 2, "--out", tmp_path / "out", expect=ExitCode.CONFLICT)


def test_what_is_not_there_or_not_right_has_its_exit_code(asterism: Command, tmp_path: Path) -> None:
    assert "nope" in asterism("sample", "nodes", "nope", expect=ExitCode.NOT_FOUND)
    assert "nope" in asterism("sample", "nodes", "shop", "--type", "nope", expect=ExitCode.NOT_FOUND)
    assert "99" in asterism("sample", "nodes", "shop", "--at", 99, expect=ExitCode.NOT_FOUND)
    assert "-7" in asterism("sample", "neighbors", "shop", "--type", "clicks", "--", -7, expect=ExitCode.USAGE)
    (tmp_path / "empty").mkdir()
    assert "metadata.json" in asterism("load", "shop", tmp_path / "empty", expect=ExitCode.USAGE)


def test_a_folder_that_is_not_there_is_made_by_no_command_that_reads_or_needs_a_space(tmp_path: Path) -> None:
    nowhere, empty = tmp_path / "nowhere", tmp_path / "empty"
    empty.mkdir()
    for folder, told, arguments in (
        (nowhere, "there is no such folder", ("space", "describe", "shop")),
        (nowhere, "there is no such folder", ("job", "submit", "shop")),
        (empty, "there are no graphs in it", ("status",)),
    ):
        command = [sys.executable, "-m", "asterism.cli", *arguments, "--path", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        assert (done.returncode, done.stdout) == (ExitCode.NOT_FOUND, "")
        assert f"{folder}: {told}" in done.stderr
    assert not nowhere.exists()
    assert list(empty.iterdir()) == []


def test_what_people_read_names_what_was_drawn(asterism: Command) -> None:
    command = [sys.executable, "-m", "asterism.cli", "sample", "edges", "shop", "-n", "3", "--type", "buys", "--address", asterism.address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=True)
    assert done.stdout.count("user:buys:item") == 3
    assert "--seed" in done.stderr


def test_what_a_served_folder_has_published_is_read_beside_its_server_which_alone_writes(asterism: Command) -> None:
    def at_folder(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "asterism.cli", *map(str, arguments), "--path", asterism.told["path"]]
        return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)

    told = at_folder("sample", "nodes", "shop", "-n", 3, "--type", "item", "--seed", 5)
    assert (told.returncode, told.stdout.count("item")) == (0, 3)
    assert "is open in another process; this is what it had published" in " ".join(told.stderr.split())
    status = at_folder("status", "--json")
    assert (status.returncode, json.loads(status.stdout)["ready"], status.stderr) == (0, True, "")
    assert [space["name"] for space in json.loads(at_folder("space", "list", "--json").stdout)] == ["shop"]
    assert json.loads(at_folder("space", "describe", "shop", "--json").stdout)["current"]["version"] >= 1
    for writing in (("load", "shop", asterism.source), ("job", "submit", "shop"), ("space", "drop", "shop", "--yes")):
        refused = at_folder(*writing)
        assert refused.returncode == ExitCode.CONFLICT, refused.stderr
        assert "is open in another process" in refused.stderr
