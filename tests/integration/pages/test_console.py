"""The console at a real terminal, and in scripts: from files, pipes and the command line."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.kit.proxy import CuttableProxy
from tests.kit.terminal import Terminal
from tests.kit.waiting import HANG_S, wait_until

import asterism
from asterism.cli import app
from asterism.cli.exit_codes import ExitCode
from asterism_standalone.app import Standalone

SCHEMA = {
    "direction": "both",
    "nodes": {
        "user": {},
        "item": {
            "weighted": True,
            "features": {"price": "float32", "title": {"kind": "bytes"}, "vector": {"shape": [2]}},
        },
    },
    "edges": {"user:buys:item": {"weighted": True}},
}


def fill(client: asterism.Client) -> None:
    client.create_space("shop", SCHEMA)
    shop, ids = client.graph("shop"), np.arange(200)
    shop.upsert_nodes(ids[:20], "user")
    titles = [f'item "{i}", \t\x1b[31mred' if i == 7 else f"item {i}" for i in ids]
    features = {"price": ids / 2, "title": titles, "vector": np.stack([ids, -ids], axis=1)}
    shop.upsert_nodes(ids, "item", weights=ids + 1.0, features=features)
    shop.upsert_edges(ids % 20, ids, "buys", weights=ids + 1.0)
    shop.build(timeout_s=HANG_S)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    service = Standalone(tmp_path_factory.mktemp("console") / "graphs")
    try:
        service.start()
        endpoints = service.open_ports(listen="127.0.0.1:0", http_listen="127.0.0.1:0")
        with asterism.connect(endpoints.address, timeout_s=HANG_S) as client:
            fill(client)
        yield endpoints.address
    finally:
        service.stop()


@pytest.fixture
def terminal(address: str, tmp_path: Path) -> Iterator[Terminal]:
    with Terminal("--address", address, "console", "shop", home=tmp_path) as opened:
        opened.wait_for_text(r"Asterism at .*\nshop>$")
        yield opened


def run(*arguments: str, stdin_text: str = "", code: ExitCode = ExitCode.DONE) -> tuple[str, str]:
    """Run the console as a script in this process; return its output and its errors."""
    out, errors, original_stdin = io.StringIO(), io.StringIO(), sys.stdin
    sys.stdin = io.StringIO(stdin_text)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            exit_code = app.run(arguments)
    finally:
        sys.stdin = original_stdin
    assert exit_code == code, out.getvalue() + errors.getvalue()
    return out.getvalue(), errors.getvalue()


def test_statements_span_lines_and_report_time_version_and_seed(terminal: Terminal) -> None:
    terminal.type("sample 3 vertices on item # a comment;\r")
    terminal.wait_for_text(r"\.\.\.>$")
    terminal.type("yield id, price\r")
    terminal.wait_for_text(r"\.\.\.>$")
    terminal.type("seed 7;\r")
    shown = terminal.wait_for_text(
        r"(?s)id +price.*3 rows, [\d.]+ ms \([\d.]+ ms in the service\), version 1, seed "
        r"7\n.*shop>$"
    )
    rows = re.findall(r"^ +(\d+) +([\d.]+) *$", shown, re.MULTILINE)
    assert len(rows) == 3
    assert all(float(price) == int(i) / 2 for i, price in rows)
    terminal.type("SHOW SPACES\r\r")  # an empty line also ends a statement
    terminal.wait_for_text(r"(?s)tags.*shop.*shop>$")
    terminal.type(":timing off\r")
    terminal.wait_for_text(r"shop>$")
    terminal.type("SHOW SPACES; USE shop;\r")
    assert " ms" not in terminal.wait_for_text(r"(?s)tags.*shop>$")
    terminal.type("\x04")
    assert terminal.wait_exit_code() == 0


def test_an_error_shows_its_caret_and_the_console_continues(terminal: Terminal) -> None:
    terminal.type("SAMPLE 3 VERTICES ON itm;\r")
    terminal.wait_for_text(
        r"line 1, column 22: no node type 'itm'.*\n.*SAMPLE 3 VERTICES ON itm\n {23}\^\n.*shop>$"
    )
    assert "\x1b[31m" in terminal.raw
    terminal.type(":nonsense\r")
    terminal.wait_for_text(r":nonsense: there is no such command; :help has all of them\n.*shop>$")
    terminal.type(":use nowhere\r")
    terminal.wait_for_text(r"nowhere.*\n.*shop>$")
    terminal.type("FETCH PROP ON item 7 YIELD title;\r")
    shown = terminal.wait_for_text(r'item "7".*')
    assert r"\t\x1b[31mred" in shown  # text from the data must not color the terminal
    terminal.type(":quit\r")
    assert terminal.wait_exit_code() == 0


def test_drop_asks_and_help_needs_no_colon(terminal: Terminal, address: str) -> None:
    with asterism.connect(address, timeout_s=HANG_S) as client:
        client.create_space("dropped", {"nodes": {"n": {}}}, if_not_exists=True)
    terminal.type("DROP SPACE dropped;\r")
    terminal.wait_for_text(r"Drop the space 'dropped' with all its data\? \[y/N\]")
    terminal.type("n\r")
    terminal.wait_for_text(r"space dropped is not dropped\n.*shop>$")
    terminal.type("DROP SPACE dropped;\r")
    terminal.wait_for_text(r"\[y/N\]")
    terminal.type("\x03")
    terminal.wait_for_text(r"cancelled\n.*shop>$")
    with asterism.connect(address, timeout_s=HANG_S) as client:
        assert "dropped" in {info.name for info in client.spaces()}
    terminal.type("DROP SPACE dropped;\r")
    terminal.wait_for_text(r"\[y/N\]")
    terminal.type("y\r")
    terminal.wait_for_text(r"done, .*\n.*shop>$")
    with asterism.connect(address, timeout_s=HANG_S) as client:
        assert "dropped" not in {info.name for info in client.spaces()}
    terminal.type("help\r")
    terminal.wait_for_text(
        r"(?s):export csv\|json\|parquet FILE .*SAMPLE 5 VERTICES ON item.*shop>$"
    )
    terminal.type("SAMPL 3 VERTICES ON item;\r")
    terminal.wait_for_text(r"line 1, column 1: .*\n.*\n {2}\^\n +did you mean SAMPLE\?\n.*shop>$")
    terminal.type("\x04")
    assert terminal.wait_exit_code() == 0


def test_keys_typed_while_a_statement_runs_reach_the_prompt(
    terminal: Terminal, tmp_path: Path
) -> None:
    script = tmp_path / "slow.ngql"
    os.mkfifo(script)
    terminal.type(f":source {script}\r")
    with script.open("w") as file:  # opens once the console reads it, and so between its prompts
        terminal.type("SHOW EDGES;\r")
        file.write("SHOW TAGS;\n")
    results = terminal.wait_for_text(r"(?s).*item.*buys.*shop>$")
    assert "SHOW EDGES" not in results.partition("item")[0]  # no echo among the results
    terminal.type(f":source {script}\r")
    with script.open("w") as file:
        terminal.type("\x04")
        file.write("SHOW TAGS;\n")
    terminal.wait_for_text("item")
    assert terminal.wait_exit_code() == 0


def test_carets_point_at_the_edge_type_that_does_not_fit(address: str) -> None:
    statement = "GO FROM 7 ON item OVER buys YIELD id"
    arguments = ("--address", address, "console", "shop", "-e", f"SHOW TAGS; {statement}")
    _, errors = run(*arguments, code=ExitCode.USAGE)
    column = f"SHOW TAGS; {statement}".index("buys") + 1
    assert errors.startswith(f"asterism: -e:1: column {column}: ")
    caret = errors.splitlines()[-1]
    assert caret.index("^") - 2 == statement.index("buys")


def test_keywords_and_live_schema_names_complete_in_colours(
    terminal: Terminal, address: str
) -> None:
    blue = "\x1b[0;34;1m"
    terminal.type("SAMPL")
    terminal.wait_for_text("SAMPLE")
    assert blue not in terminal.raw
    terminal.type("\t 5 VERTICES ON it")
    terminal.wait_for_text(r"item +node|item +type")
    assert f"{blue}SAMPLE" in terminal.raw
    terminal.type("\t YIELD pri")
    terminal.wait_for_text(r"price +feature")
    terminal.type("\t SEED 3;\r\r")
    terminal.wait_for_text(r"(?s)price.*5 rows")
    with asterism.connect(address, timeout_s=HANG_S) as client:
        client.create_space(
            "made_meanwhile", {"nodes": {"person": {}}, "edges": {}}, if_not_exists=True
        )
    terminal.type("CREATE SPACE another (parts = 1) TAG thing;\r")
    terminal.wait_for_text(r"shop>$")
    terminal.type("USE made")

    def is_offered() -> bool:  # after a later key: names are fetched while the user types
        with contextlib.suppress(AssertionError):
            terminal.wait_for_text(r"made_meanwhile", seconds=0.5)
            return True
        terminal.type("\x7fe")
        return False

    wait_until(is_offered, "the new space is offered")
    terminal.type("\t;\r\r")
    terminal.wait_for_text(r"made_meanwhile>$")
    terminal.type("\x04")
    assert terminal.wait_exit_code() == 0


def test_ctrl_c_cancels_input_and_statement_not_the_session(address: str, tmp_path: Path) -> None:
    line = CuttableProxy(address)
    try:
        with Terminal(
            "--address", line.address, "--timeout", "300", "console", "shop", home=tmp_path
        ) as terminal:
            terminal.wait_for_text(r"shop>$")
            terminal.type(":param many = [1, 2, 3]\r")
            terminal.wait_for_text(r"shop>$")
            terminal.type("SAMPLE never mind\x03")
            terminal.wait_for_text(r"\n.*shop>$")
            line.blocked = {"back"}
            before = line.forwarded_bytes
            terminal.type("FETCH PROP ON item $many YIELD id, price;\r")
            terminal.wait_for_text(r"price;")
            wait_until(  # more than a ping
                lambda: line.forwarded_bytes >= before + 100, "the statement is on its way"
            )
            with pytest.raises(AssertionError, match="no 'price;"):
                terminal.wait_for_text(r"price;\n.*shop>$", seconds=1.5)
            terminal.type("\x03")
            terminal.wait_for_text(r"cancelled\n.*shop>$")
            line.blocked = set()
            terminal.type("FETCH PROP ON item $many YIELD id, price;\r")
            terminal.wait_for_text(r"(?s)3 +1\.5.*3 rows.*shop>$")
            terminal.type("\x04")
            assert terminal.wait_exit_code() == 0
    finally:
        line.close()


def test_the_next_statement_connects_again_after_a_drop(address: str, tmp_path: Path) -> None:
    line = CuttableProxy(address)
    try:
        with Terminal("--address", line.address, "console", "shop", home=tmp_path) as terminal:
            terminal.wait_for_text(r"shop>$")
            line.close()
            for _ in range(2):
                terminal.type("FETCH PROP ON item 3 YIELD price;\r")
                shown = terminal.wait_for_text(r"(?s)price;\n.*shop>$")
                (sentence,) = re.findall(r"^not connected: .*$", shown, re.MULTILINE)
                assert re.fullmatch(
                    rf"not connected: no answer from graphd at {line.address}( \(.*\))?; "
                    "the next statement connects again",
                    sentence,
                )
                assert "running there" not in shown
            line = CuttableProxy(address, listen_port=int(line.address.rpartition(":")[2]))
            terminal.type("FETCH PROP ON item 3 YIELD price;\r")
            terminal.wait_for_text(r"(?s)1\.5.*1 row,.*shop>$")
            terminal.type("\x04")
            assert terminal.wait_exit_code() == 0
    finally:
        line.close()


def test_history_omits_secrets_and_lines_that_start_with_a_blank(
    address: str, tmp_path: Path
) -> None:
    state = tmp_path / ".local/state/asterism/history"
    with Terminal("--address", address, "console", "shop", home=tmp_path) as terminal:
        terminal.wait_for_text(r"shop>$")
        for command in (":params", ':param password = "hunter2"', " :timing off", ":language ngql"):
            terminal.type(f"{command}\r")
            terminal.wait_for_text(r"\n.*shop>$")
        terminal.type("\x04")
        assert terminal.wait_exit_code() == 0
    assert [line[1:] for line in state.read_text().splitlines() if line.startswith("+")] == [
        ":params",
        ":language ngql",
    ]
    assert stat.S_IMODE(state.stat().st_mode) == 0o600
    with Terminal("--address", address, "console", "shop", home=tmp_path) as terminal:
        terminal.wait_for_text(r"shop>$")
        terminal.type("\x1b[A")
        terminal.wait_for_text(r":language ngql")
        terminal.type("\x03")
        terminal.wait_for_text(r"shop>$")
        terminal.type("\x04")
        assert terminal.wait_exit_code() == 0
    before = state.read_bytes()
    with Terminal(
        "--address", address, "console", "shop", "--no-history", home=tmp_path
    ) as terminal:
        terminal.wait_for_text(r"shop>$")
        terminal.type(":params\r")
        terminal.wait_for_text(r"\n.*shop>$")
        terminal.type("exit\r")
        assert terminal.wait_exit_code() == 0
    assert state.read_bytes() == before


def test_an_unreachable_server_is_reported_at_startup(tmp_path: Path) -> None:
    with Terminal(
        "--address", "127.0.0.1:1", "--timeout", "3", "console", home=tmp_path
    ) as terminal:
        assert terminal.wait_exit_code() == ExitCode.UNAVAILABLE
        assert "no answer from graphd at 127.0.0.1:1" in terminal.text


def test_results_are_exported_to_files_unchanged(address: str, tmp_path: Path) -> None:
    statement = "FETCH PROP ON item 7, 8 YIELD id, price, title, vector"
    script = "".join(
        f"{statement};\n:export {form} {tmp_path}/out.{form}\n"
        for form in ("csv", "json", "parquet")
    )
    out, _ = run("--address", address, "console", "shop", stdin_text=script)
    assert out.count("2 rows in ") == 3
    seven = 'item "7", \t\x1b[31mred'
    with (tmp_path / "out.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [
            ["id", "price", "title", "vector"],
            ["7", "3.5", seven, "[7.0, -7.0]"],
            ["8", "4.0", "item 8", "[8.0, -8.0]"],
        ]
    assert json.loads((tmp_path / "out.json").read_text()) == [
        {"id": 7, "price": 3.5, "title": seven, "vector": [7.0, -7.0]},
        {"id": 8, "price": 4.0, "title": "item 8", "vector": [8.0, -8.0]},
    ]
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.column("id").to_pylist() == [7, 8]
    assert table.column("vector").to_pylist() == [[7.0, -7.0], [8.0, -8.0]]
    _, errors = run(
        "--address",
        address,
        "console",
        "shop",
        "-e",
        f"{statement}; :export xml {tmp_path}/x",
        code=ExitCode.USAGE,
    )
    assert errors
    _, errors = run(
        "--address", address, "console", "shop", stdin_text=":export csv x\n", code=ExitCode.USAGE
    )
    assert errors == "asterism: <stdin>:1: :export writes the last result, and there was none yet\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "out.csv",
        "out.json",
        "out.parquet",
    ]


def test_a_script_stops_at_its_first_error_with_file_and_line(address: str, tmp_path: Path) -> None:
    script = tmp_path / "nightly.ngql"
    script.write_text(
        "SHOW SPACES;\n\n# the next one\nSAMPLE 2 VERTICES\n  ON unknown;\nSAMPLE 1 VERTICES "
        "ON user YIELD id;\n"
    )
    out, errors = run(
        "--address",
        address,
        "console",
        "shop",
        "-f",
        str(script),
        "--format",
        "csv",
        code=ExitCode.NOT_FOUND,
    )
    assert out.splitlines()[0].startswith("name,")
    assert errors.splitlines()[0].startswith(
        f"asterism: {script}:5: column 6: no node type 'unknown'"
    )
    assert "\nid\n" not in out
    out, _ = run(
        "--address",
        address,
        "console",
        "shop",
        "-f",
        str(script),
        "--format",
        "csv",
        "--keep-going",
        code=ExitCode.NOT_FOUND,
    )
    assert re.search(r"^id\n\d+\n\Z", out, re.MULTILINE)
    (tmp_path / "outer.ngql").write_text(f":param n = 2\n:source {script}\n")
    _, errors = run(
        "--address",
        address,
        "console",
        "shop",
        "-f",
        str(tmp_path / "outer.ngql"),
        code=ExitCode.NOT_FOUND,
    )
    assert errors.startswith(f"asterism: {script}:5: ")
    (tmp_path / "self.ngql").write_text(f":source {tmp_path}/self.ngql\n")
    _, errors = run(
        "--address", address, "console", "-f", str(tmp_path / "self.ngql"), code=ExitCode.USAGE
    )
    assert "does one source itself?" in errors
    _, errors = run(
        "--address", address, "console", "-f", str(tmp_path / "gone.ngql"), code=ExitCode.FAILED
    )
    assert "gone.ngql" in errors
    (tmp_path / "latin.ngql").write_bytes(b"SHOW SPACES; # caf\xe9\n")
    _, errors = run(
        "--address", address, "console", "-f", str(tmp_path / "latin.ngql"), code=ExitCode.USAGE
    )
    assert "latin.ngql: not a text of UTF-8: byte 0xe9" in errors
    _, errors = run(
        "--address", address, "console", "-e", "SAMPLE 'never closed", code=ExitCode.USAGE
    )
    assert errors.startswith("asterism: -e:1: column 21: found the end inside a string")


@pytest.mark.parametrize("form", ["table", "csv", "tsv", "json"])
def test_a_pipe_gets_results_and_nothing_else(address: str, form: str) -> None:
    script = ":param ids = [7, 8]\nUSE shop; FETCH PROP ON item $ids YIELD id, title"
    command = [
        sys.executable,
        "-m",
        "asterism.cli",
        "--address",
        address,
        "console",
        "--format",
        form,
    ]
    completed = subprocess.run(
        command, input=script, capture_output=True, text=True, timeout=HANG_S, check=True
    )
    out = completed.stdout
    assert completed.stderr == ""
    seven = 'item "7", \t\x1b[31mred'
    if form == "csv":
        assert list(csv.reader(out.splitlines())) == [
            ["id", "title"],
            ["7", seven],
            ["8", "item 8"],
        ]
    elif form == "tsv":
        assert out == 'id\ttitle\n7\titem "7", \\t\x1b[31mred\n8\titem 8\n'
    elif form == "json":
        use, fetched = map(json.loads, out.splitlines())
        assert use["space"] == "shop"
        assert (fetched["columns"], fetched["rows"], fetched["version"]) == (
            ["id", "title"],
            [[7, seven], [8, "item 8"]],
            1,
        )
        json_lines = run("--json", "--address", address, "console", stdin_text=script)[
            0
        ].splitlines()
        assert json.loads(json_lines[1])["rows"] == fetched["rows"]
    else:
        assert "\x1b" not in out
        assert re.search(r"7 +item \"7\", \\t\\x1b\[31mred *\n +8 +item 8 *\n", out)


def test_a_folder_is_queried_without_a_server_even_while_open(tmp_path: Path) -> None:
    folder = tmp_path / "graphs"
    with asterism.open(folder) as client:
        fill(client)
        out, errors = run(
            "--path",
            str(folder),
            "console",
            "shop",
            "-e",
            "SAMPLE 2 VERTICES ON item YIELD id SEED 5",
            "--format",
            "csv",
        )
        assert "is open in another process" in " ".join(errors.split())
    reopened_out, errors = run(
        "--path",
        str(folder),
        "console",
        "shop",
        "-e",
        "SAMPLE 2 VERTICES ON item YIELD id SEED 5",
        "--format",
        "csv",
    )
    assert reopened_out == out
    assert len(out.splitlines()) == 3
    assert errors == ""
