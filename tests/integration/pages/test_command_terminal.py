"""The command at a terminal: confirmation, interruption, hosts that are offline, 80 columns."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.kit import zygote
from tests.kit.cluster import LocalCluster
from tests.kit.proxy import CuttableProxy
from tests.kit.terminal import Terminal
from tests.kit.waiting import HANG_S, wait_until

from asterism.cli.exit_codes import ExitCode

SCHEMA = {
    "parts": 4,
    "direction": "both",
    "nodes": {"user": {}, "item": {"weighted": True, "features": {"price": "float32"}}},
    "edges": {"user:buys:item": {"weighted": True}},
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(storageds=2, folder=tmp_path_factory.mktemp("terminal")) as running:
        client = running.client(timeout_s=HANG_S)
        client.create_space("shop", SCHEMA)
        shop, ids = client.graph("shop"), np.arange(200)
        shop.upsert_nodes(ids, "user")
        prices = {"price": np.full(200, 26.79, np.float32)}
        shop.upsert_nodes(ids, "item", weights=ids + 1.0, features=prices)
        shop.upsert_edges(ids, ids[::-1], "buys", weights=ids + 1.0)
        shop.build(timeout_s=HANG_S)
        yield running


def spaces(cluster: LocalCluster) -> set[str]:
    return {info.name for info in cluster.client().spaces()}


def write_source(folder: Path, schema: str = "") -> Path:
    (folder / "papers.csv").write_text("id,year\n1,1999\n2,none\n")
    file = folder / "papers.yaml"
    file.write_text("nodes:\n  paper: {files: papers.csv, id: id, features: {year: int64}}\n")
    return file


def test_drop_asks_at_a_terminal(cluster: LocalCluster, tmp_path: Path) -> None:
    cluster.client().create_space("big", {"nodes": {"n": {}}})
    for answer, code, remains in (
        ("n\r", ExitCode.FAILED, True),
        ("\x04", ExitCode.FAILED, True),
        ("\x03", ExitCode.INTERRUPTED, True),
        ("y\r", ExitCode.DONE, False),
    ):
        arguments = ("--address", cluster.addresses, "space", "drop", "big")
        with Terminal(*arguments, home=tmp_path, cold=code == ExitCode.DONE) as terminal:
            terminal.wait_for_text(r"Drop the space 'big' with all its data\? \[y/N\]")
            terminal.type(answer)
            assert terminal.wait_exit_code() == code
            if code == ExitCode.FAILED:
                assert "space big is not dropped" in terminal.text
        assert ("big" in spaces(cluster)) == remains


def test_drop_without_a_terminal_needs_yes(cluster: LocalCluster) -> None:
    arguments = ("--address", cluster.addresses, "space", "drop", "shop")
    completed = zygote.run("asterism.cli", *arguments)  # its standard input is the null device
    assert (completed.returncode, completed.stdout) == (ExitCode.USAGE, "")
    assert completed.stderr == (
        "asterism: --yes: expected this option, because there is no terminal to ask at; add --yes\n"
    )
    assert "shop" in spaces(cluster)


def test_a_failed_first_load_leaves_no_space(cluster: LocalCluster, tmp_path: Path) -> None:
    source = write_source(tmp_path)
    arguments = ("--address", cluster.addresses, "load", "papers", str(source), "--create")
    completed = zygote.run("asterism.cli", *arguments)
    assert completed.returncode == ExitCode.USAGE
    assert completed.stderr.startswith("asterism: papers.csv")
    assert "--on-bad-rows skip" in completed.stderr
    assert "on_bad_rows" not in completed.stderr
    assert "papers" not in spaces(cluster)
    completed = zygote.run(
        "asterism.cli", *arguments, "--on-bad-rows", "skip", "--rejects", str(tmp_path / "r.csv")
    )
    assert completed.returncode == ExitCode.DONE, completed.stderr
    completed = zygote.run("asterism.cli", *arguments, "--direction", "both")
    assert completed.returncode == ExitCode.CONFLICT
    assert "direction is out, not both" in completed.stderr


def test_an_interrupted_load_says_that_it_resumes(cluster: LocalCluster, tmp_path: Path) -> None:
    (tmp_path / "papers.csv").write_text("id,year\n1,1999\n2,2001\n")
    (tmp_path / "papers.yaml").write_text(
        "nodes:\n  paper: {files: papers.csv, id: id, features: {year: int64}}\n"
    )
    line = CuttableProxy(cluster["graphd-0"].address)
    arguments = ("load", "stopped", str(tmp_path / "papers.yaml"))
    cluster.client().create_space("stopped", {"nodes": {"paper": {"features": {"year": "int64"}}}})
    try:
        line.blocked = {"back"}
        with Terminal(
            "--address", line.address, "--timeout", "300", *arguments, home=tmp_path
        ) as terminal:
            wait_until(lambda: line.forwarded_bytes > 100, "the load has begun")
            terminal.type("\x03")
            assert terminal.wait_exit_code() == ExitCode.INTERRUPTED
            assert (
                "asterism: interrupted; what was loaded is kept: run the same command"
                in terminal.text
            )
    finally:
        line.close()
    completed = zygote.run("asterism.cli", "--address", cluster.addresses, *arguments)
    assert (completed.returncode, completed.stderr) == (ExitCode.DONE, "")
    assert "loaded 2 nodes" in completed.stdout


def test_a_service_that_does_not_answer_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with Terminal("--address", address, "--timeout", "600", "status", home=tmp_path) as shown:
            shown.wait_for_text(rf"waiting for {address}: \d+ s")
            shown.type("\x03")
            assert shown.wait_exit_code() == ExitCode.INTERRUPTED
            assert shown.text.rstrip().endswith("asterism: interrupted")


@pytest.mark.parametrize(
    "arguments",
    [
        ("status",),
        ("space", "list"),
        ("space", "describe", "shop"),
        ("job", "list"),
        ("job", "show", "1"),
    ],
    ids=" ".join,
)
def test_tables_fit_80_columns_and_pipes_have_all(
    arguments: tuple[str, ...], cluster: LocalCluster, tmp_path: Path
) -> None:
    with Terminal(
        "--address", cluster.addresses, *arguments, home=tmp_path, columns=80
    ) as terminal:
        assert terminal.wait_exit_code() == ExitCode.DONE
        lines = terminal.text.splitlines()
    assert max(map(len, lines)) <= 80
    piped = zygote.run("asterism.cli", "--address", cluster.addresses, *arguments).stdout
    assert "not shown" not in piped
    assert "\x1b" not in piped
    assert "…" not in piped


def test_the_self_test_is_readable_at_80_columns(cluster: LocalCluster, tmp_path: Path) -> None:
    arguments = ("verify", "shop", "--draws", "2000", "--seed", "3", "--alpha", "1e-9")
    with Terminal(
        "--address", cluster.addresses, *arguments, home=tmp_path, columns=80
    ) as terminal:
        assert terminal.wait_exit_code() == ExitCode.DONE
        lines = terminal.text.splitlines()
    tests = [line for line in lines if line.endswith("ok")]
    assert len(tests) > 5
    assert max(map(len, tests)) <= 80
    assert re.search(r"not shown at 80 columns: .*; a pipe and --json have all", "\n".join(lines))
    piped = zygote.run("asterism.cli", "--address", cluster.addresses, *arguments).stdout
    assert "draws follow their weights: " in piped


def test_a_wait_names_an_offline_host_and_says_how_to_resume(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    client = cluster.client(timeout_s=HANG_S)
    client.graph("shop").upsert_nodes([1000], "user")
    offline = cluster["storaged-1"].address
    cluster.kill("storaged-1")
    with Terminal(
        "--address", cluster.addresses, "job", "submit", "shop", "--wait", home=tmp_path
    ) as terminal:
        terminal.wait_for_text(rf"waits for {re.escape(offline)} \(offline\)")
        terminal.type("\x03")
        assert terminal.wait_exit_code() == ExitCode.INTERRUPTED
        interrupted = re.search(
            r"asterism: interrupted; job (\d+) continues: `asterism --address \S+ job wait \1` "
            r"waits for it, `asterism --address \S+ job stop \1` stops it",
            terminal.text,
        )
    assert interrupted is not None
    job = interrupted[1]
    completed = zygote.run(
        "asterism.cli", "--address", cluster.addresses, "job", "wait", job, "--total-timeout", "6"
    )
    assert completed.returncode == ExitCode.TIMEOUT
    assert f"waits for {offline} (offline)" in completed.stderr
    assert f"--total-timeout=6: job {job} has not ended" in completed.stderr
    assert f"job {job} continues" in completed.stderr
    cluster.restart("storaged-1")
    completed = zygote.run("asterism.cli", "--address", cluster.addresses, "job", "wait", job)
    assert (completed.returncode, completed.stderr.count("Traceback")) == (ExitCode.DONE, 0)
