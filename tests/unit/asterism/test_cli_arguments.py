"""Tests of global options, before or after a command, and of exit codes."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from enum import IntEnum
from pathlib import Path

import numpy as np
import pytest

from asterism.cli import exit_codes, export_options
from asterism.cli.app import app, run
from asterism.cli.exit_codes import ExitCode, exit_code_of
from asterism.cli.global_options import command_word, hoist_global_options
from asterism.cli.option_values import parse_step
from asterism.cli.output import to_json_value
from asterism.cli.sample.commands import parse_hop
from asterism.cli.sample.hgt import parse_counts
from asterism.cli.spaces import read_schema
from asterism.cli.status import readiness_problems
from asterism.export.partitioning import assignment_methods
from asterism.records.catalog import Host, SpaceInfo
from asterism.records.samples import NodeSample
from asterism_model.schema import NodeType, Schema
from asterism_proto import errors


@pytest.mark.parametrize(
    ("typed", "understood"),
    [
        (["space", "list", "--json"], ["--json", "space", "list"]),
        (["space", "list", "--address", "a:1"], ["--address", "a:1", "space", "list"]),
        (["status", "--timeout=3", "--path", "x"], ["--timeout=3", "--path", "x", "status"]),
        (["--json", "load", "shop", "x"], ["--json", "load", "shop", "x"]),
        (["space", "drop", "--", "--json"], ["space", "drop", "--", "--json"]),
        (["status", "--address"], ["--address", "status"]),
        (["status", "--addressed"], ["status", "--addressed"]),
    ],
)
def test_a_global_option_counts_wherever_it_stands(typed: list[str], understood: list[str]) -> None:
    assert hoist_global_options(typed) == understood


@pytest.mark.parametrize("cls", errors.ALL)
def test_every_error_has_an_exit_code_that_is_not_success(cls: type[errors.AsterismError]) -> None:
    assert exit_code_of(cls("m")) not in (ExitCode.DONE, ExitCode.INTERRUPTED)
    assert cls in exit_codes._BY_ERROR


def test_the_table_of_exit_codes_lists_each_code() -> None:
    documented = {
        int(code) for code in re.findall(r"^ *(\d+) {2,}\w", exit_codes.__doc__ or "", re.MULTILINE)
    }
    assert documented == {code.value for code in ExitCode}


@pytest.mark.parametrize(
    ("typed", "expected_text"),
    [
        (["frobnicate"], "frobnicate"),
        (["space", "list", "--frob"], "--frob"),
        (["space", "create", "shop", "no-such-file.yaml"], "no-such-file.yaml"),
        (["job", "show", "seven"], "JOB='seven'"),
        (["sample", "fanout", "shop", "1", "--hop", "user:buys:item"], "--hop='user:buys:item'"),
        (
            ["sample", "negatives", "shop", "17,3", "23"],
            "pairs='17,3 23': expected only sources, such as 17 23, or only pairs",
        ),
        (["sample", "negatives", "shop", "1,2,3"], "pairs='1,2,3': expected only sources"),
        (["sample", "negatives", "shop", "1,"], "pair='1,': expected nodes separated by commas"),
        (
            ["sample", "walk", "shop", "1", "--step", "a", "--metapath", "a2b"],
            "--step='a': expected either --step or --metapath, found both; remove --metapath='a2b'",
        ),
        (
            ["sample", "subgraph", "shop", "1", "--fanout", "3,-2"],
            "--fanout='3,-2': expected integers of at least -1",
        ),
        (["sample", "adjacency", "shop", "--rows", "1", "--cols", ""], "--cols=''"),
        (["sample", "top", "shop", "1", "-k", "0"], "-k"),
        (["load", "shop", ".", "--parts", "3"], "--create"),
        (["load", "shop", ".", "--weight", "item"], "--weight='item'"),
        (["load", "shop", ".", "--rejects", "x"], "--on-bad-rows"),
        (
            [
                "export",
                "dgl",
                "--space",
                "s",
                "--out",
                "o",
                "--parts",
                "2",
                "--assign",
                "no-such-assignment",
            ],
            "no-such-assignment",
        ),
        (
            [
                "export",
                "assignment",
                "--space",
                "s",
                "--out",
                "o",
                "--parts",
                "2",
                "--balance-by",
                "item",
            ],
            "--balance-by='item'",
        ),
        (
            [
                "export",
                "assignment",
                "--space",
                "s",
                "--out",
                "o",
                "--parts",
                "2",
                "--balance-by",
                "item=no.npy",
            ],
            "no.npy",
        ),
        (
            [
                "export",
                "dgl",
                "--space",
                "s",
                "--out",
                "o",
                "--parts",
                "2",
                "--no-balance-ntypes",
                "--balance-by",
                "a=b",
            ],
            "--no-balance-ntypes",
        ),
        (
            ["status", "--path", "x", "--address", "a:1"],
            "--path='x': expected either --address or --path, found both; remove --address='a:1'",
        ),
        (["status", "--path", ""], "--path='': expected a folder; '.' is the current one"),
        (["status", "--path="], "--path='': expected a folder"),
        (["--timeout", "3", "--path=", "status"], "--path='': expected a folder"),
        (["status", "--timeout", "0"], "--timeout"),
        (["status", "--address", "nonsense:port"], "nonsense:port"),
    ],
)
def test_usage_error_is_one_line_that_names_the_cause(
    typed: list[str], expected_text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(typed) == ExitCode.USAGE
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("asterism: ")
    assert expected_text in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("typed", "word"),
    [
        (["--path", "load", "--json", "--timeout=3", "space", "list"], "space"),
        (["--address=a:1"], ""),
        (["--path"], ""),
        (["--version"], "--version"),
        ([], ""),
    ],
)
def test_the_command_is_the_word_after_global_options(typed: list[str], word: str) -> None:
    assert command_word(typed) == word


def test_one_command_is_built_and_all_remain(capsys: pytest.CaptureFixture[str]) -> None:
    names = [command.name for command in app.registered_commands]
    assert run(["completion", "bash"]) == ExitCode.DONE
    assert [command.name for command in app.registered_commands] == names
    assert run(["sampl", "nodes"]) == ExitCode.USAGE
    assert "sample" in capsys.readouterr().err, "the suggestion has another command"


def test_unreachable_address_is_exit_code_4_and_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["status", "--address", "127.0.0.1:1", "--timeout", "1", "--json"]) in (
        ExitCode.UNAVAILABLE,
        ExitCode.TIMEOUT,
    )
    out, err = capsys.readouterr()
    assert out == ""
    assert "127.0.0.1:1" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "command",
    [
        *(
            [],
            ["serve"],
            ["load"],
            ["status"],
            ["space", "create"],
            ["job", "submit"],
            ["export", "dgl"],
        ),
        *(["export", name] for name in ("assignment", "dispatch", "verify")),
        *(
            ["sample", name]
            for name in (
                "nodes",
                "edges",
                "neighbors",
                "fanout",
                "like",
                "negatives",
                "labels",
                "walk",
                "pairs",
                "subgraph",
            )
        ),
        *(["sample", name] for name in ("layer", "adjacency", "top", "all", "degrees", "graphs")),
    ],
)
def test_every_command_has_help(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*command, "--help"]) == ExitCode.DONE
    out = capsys.readouterr().out
    assert "Usage: asterism" in out
    assert "xample" in out or command == []


class Colour(IntEnum):
    RED = 1


def test_records_become_plain_json() -> None:
    sample = NodeSample(nodes=np.array([3, 1]), types=np.array([0, 0], np.int32), seed=9, version=2)
    assert json.loads(json.dumps(to_json_value(sample))) == {
        "nodes": [3, 1],
        "types": [0, 0],
        "probabilities": None,
        "seed": 9,
        "version": 2,
        "token": "",
    }
    assert to_json_value(Colour.RED) == "RED"
    assert to_json_value({"a": (1, None, Path("x"))}) == {"a": [1, None, "x"]}


def test_bytes_are_text_in_json_and_non_utf8_is_escaped() -> None:
    assert to_json_value((b"benzene", b"\xff\x01", "é".encode())) == ["benzene", "\\xff\x01", "é"]


def test_the_methods_of_the_command_are_those_of_exports() -> None:
    assert export_options.METHODS == assignment_methods.METHODS


def test_a_step_is_types_or_a_star() -> None:
    assert parse_step("buys,views") == ["buys", "views"]
    assert parse_step("*") is None
    with pytest.raises(errors.InvalidRequest, match="--step='buys,'"):
        parse_step("buys,")


def test_a_hop_is_types_and_a_count() -> None:
    assert parse_hop("user:buys:item=5") == (["user:buys:item"], 5)
    assert parse_hop("buys,views=3") == (["buys", "views"], 3)


def test_counts_are_of_all_node_types_or_of_each() -> None:
    assert parse_counts(["8,4"]) == [8, 4]
    assert parse_counts(["user=8,4", "item=0,2"]) == {"user": [8, 4], "item": [0, 2]}
    for invalid in (["user=8", "4"], ["user=8", "user=4"], ["=3"], ["user=x"], ["user=-1"], ["3,"]):
        with pytest.raises(errors.InvalidRequest, match="--count"):
            parse_counts(invalid)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", '{"nodes": {"user": {}}, "parts": 2}'),
        ("a.yaml", "parts: 2\nnodes:\n  user: {}\n"),
    ],
)
def test_a_schema_file_is_yaml_or_json(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert read_schema(tmp_path / name) == Schema(node_types=(NodeType(name="user"),), parts=2)


@pytest.mark.parametrize(
    ("name", "text", "expected_text"),
    [
        ("a.json", "{", "not JSON"),
        ("a.yaml", "a: [", "not YAML"),
        ("a.yaml", "- 1", "mapping"),
        ("a.yaml", "nodes: {user: {}}\npartz: 3", "partz"),
        ("a.yaml", "nodes: {user: {}}\nedges: {'user:to:item': {}}", "item"),
    ],
)
def test_a_wrong_schema_file_is_refused_by_name(
    tmp_path: Path, name: str, text: str, expected_text: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(errors.InvalidRequest, match=expected_text) as excinfo:
        read_schema(tmp_path / name)
    assert name in excinfo.value.message


def host(uuid: str, *, online: bool) -> Host:
    return Host(
        uuid=uuid,
        role="STORAGED",
        address=f"{uuid}:9779",
        http_address="",
        online=online,
        last_heartbeat_ms=0,
        parts=2,
        free_bytes=0,
    )


def test_a_host_has_its_last_heartbeat_under_the_deprecated_name_too() -> None:
    record = replace(host("a", online=True), last_heartbeat_ms=7)
    assert record.last_beat_ms == 7
    fields = to_json_value(record)
    assert (fields["last_heartbeat_ms"], fields["last_beat_ms"]) == (7, 7)
    assert "DEPRECATED_NAMES" not in fields


def test_the_service_is_ready_when_every_part_has_a_host_online() -> None:
    schema = Schema(node_types=(NodeType(name="user"),), parts=2)
    space = SpaceInfo(
        name="shop", space_id=1, schema=schema, version=0, created_ms=0, hosts=(("a",), ("b",))
    )
    assert readiness_problems([host("a", online=True), host("b", online=True)], [space]) == []
    problems = readiness_problems([host("a", online=True), host("b", online=False)], [space])
    assert "storaged b:9779 is offline" in problems
    assert "space shop: 1 of 2 partitions have no host online" in problems
    assert readiness_problems([], [space]) == []  # state of a folder that is opened for reading
