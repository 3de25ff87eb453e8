"""Every entry point refuses names, ids and texts with a lone surrogate.

The error is InvalidRequest with the argument and the position.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asterism
from asterism import aio
from asterism.cli.app import run
from asterism.cli.exit_codes import ExitCode
from asterism_proto.errors import InvalidRequest

WRONG = "ab\ud800"
SCHEMA = {
    "ids": "string",
    "parts": 2,
    "nodes": {"user": {"weighted": True, "features": {"age": "int64", "note": {"kind": "bytes"}}}},
    "edges": {"user:knows:user": {}},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[asterism.Client]:
    with asterism.open(folder) as opened:
        opened.create_space("g", SCHEMA)
        graph = opened.graph("g")
        graph.upsert_nodes(["a", "b"], "user", weights=[1.0, 2.0])
        graph.upsert_edges(["a"], ["b"], "knows")
        graph.build(timeout_s=300)
        yield opened


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the same space, open in no process."""
    folder = tmp_path_factory.mktemp("stored")
    with asterism.open(folder) as opened:
        opened.create_space("g", SCHEMA)
        opened.graph("g").upsert_nodes(["a"], "user")
    return folder


def _query(client: asterism.Client, parameters: dict[str, Any]) -> object:
    return client.query("USE g; SAMPLE 1 NEIGHBORS FROM $a OVER knows YIELD src", parameters)


def _pin(client: asterism.Client) -> None:
    with client.graph("g").pin(owner=WRONG):
        pass


CALLS: dict[str, tuple[Callable[[asterism.Client], object], str]] = {
    "create a space": (lambda c: c.create_space(WRONG, {"nodes": {"n": {}}}), "name="),
    "describe": (lambda c: c.describe(WRONG), "name="),
    "drop": (lambda c: c.drop_space(WRONG), "name="),
    "graph": (lambda c: c.graph(WRONG), "name="),
    "versions": (lambda c: c.versions(WRONG), "space="),
    "manifest": (lambda c: c.manifest(WRONG), "space="),
    "load": (lambda c: c.begin_load("g", source=WRONG), "source="),
    "resume": (lambda c: c.begin_load("g", resume_key=WRONG), "resume_key="),
    "job": (lambda c: c.submit_job("g", kind=WRONG), "kind="),
    "options": (
        lambda c: c.submit_job("g", kind="index", options={"type": WRONG}),
        r"options\['type'\]=",
    ),
    "jobs": (lambda c: c.jobs(WRONG), "space="),
    "pin": (_pin, "owner="),
    "backup": (lambda c: c.backup("g", f"file:///{WRONG}"), "address="),
    "restore": (lambda c: c.restore(f"file:///{WRONG}", "h"), "address="),
    "weight": (lambda c: c.graph("g").sample_nodes(1, "user", weight=WRONG), "weight="),
    "where": (lambda c: c.graph("g").sample_edges(1, "knows", where=f"age > {WRONG}"), "where="),
    "explain": (lambda c: c.graph("g").explain.sample_nodes(1, "user", where=WRONG), "where="),
    "scan": (lambda c: list(c.graph("g").scan_nodes("user", weight=WRONG)), "weight="),
    "neighbors": (
        lambda c: c.graph("g").sample_neighbors(["a", WRONG], "knows", 1),
        r"nodes\[1\]=",
    ),
    "array of ids": (
        lambda c: c.graph("g").sample_neighbors(np.array(["a", WRONG]), "knows", 1),
        r"nodes\[1\]=",
    ),
    "ids": (lambda c: c.graph("g").node_ids(["a", WRONG]), r"names\[1\]="),
    "find": (lambda c: c.graph("g").find_nodes([WRONG], "user"), r"ids\[0\]="),
    "upsert nodes": (lambda c: c.graph("g").upsert_nodes([WRONG], "user"), r"ids\[0\]="),
    "upsert edges": (lambda c: c.graph("g").upsert_edges(["a"], [WRONG], "knows"), r"dst\[0\]="),
    "delete": (lambda c: c.graph("g").delete_nodes([WRONG], "user"), r"ids\[0\]="),
    "feature": (
        lambda c: c.graph("g").upsert_nodes(["a"], "user", features={"note": [WRONG]}),
        r"features\['note'\]\[0\]=",
    ),
    "statement": (lambda c: c.query(f"SHOW {WRONG}"), "statement="),
    "space of a statement": (lambda c: c.query("SHOW SPACES", space=WRONG), "space="),
    "parameter": (lambda c: _query(c, {"a": WRONG}), r"parameters\['a'\]="),
    "list parameter": (lambda c: _query(c, {"a": ["a", WRONG]}), r"parameters\['a'\]\[1\]="),
    "name of a parameter": (lambda c: _query(c, {WRONG: 1}), "parameters: key="),
    "open": (lambda _: asterism.open(f"/tmp/{WRONG}"), "path="),
    "connect": (lambda _: asterism.connect(f"{WRONG}:1"), "addresses="),
}


@pytest.mark.parametrize("call", CALLS)
def test_python_calls_name_the_argument_and_the_position(
    client: asterism.Client, call: str
) -> None:
    function, argument = CALLS[call]
    with pytest.raises(InvalidRequest, match=rf"^{argument}.*position \d+, '\\ud800'"):
        function(client)


def test_awaited_calls_name_the_argument(client: asterism.Client) -> None:
    async def describe() -> None:
        async with aio.connect("127.0.0.1:1") as awaited:
            await awaited.describe(WRONG)

    with pytest.raises(InvalidRequest, match="name="):
        asyncio.run(describe())


@pytest.mark.parametrize(
    ("words", "place"),
    [
        (["space", "describe", WRONG], "name="),
        (["job", "submit", "g", "--kind", WRONG], "kind="),
        (["sample", "nodes", "g", "--where", WRONG], "where="),
        (["sample", "neighbors", "g", "a", WRONG, "--type", "knows"], "nodes[1]="),
    ],
)
def test_commands_end_with_wrong_usage(
    stored: Path, words: list[str], place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["--path", str(stored), *words]) == ExitCode.USAGE
    error_output = capsys.readouterr().err
    assert place in error_output
    assert "lone surrogate" in " ".join(error_output.split())
