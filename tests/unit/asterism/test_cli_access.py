"""Tests of `asterism access` against a server of the methods of access control."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kit.access_server import AccessServer, access_server

from asterism.cli import access
from asterism.cli.app import run
from asterism.cli.exit_codes import ExitCode
from asterism.records import ApiKey
from asterism.transport.credentials import ENVIRONMENT
from asterism_access.credentials.cluster_key import ClusterKey, create_key_file
from asterism_access.credentials.tickets import TicketKind
from asterism_access.roles import Role
from asterism_proto.errors import Forbidden, Unauthenticated

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (*ENVIRONMENT.values(), "ASTERISM_ADDRESS"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def server() -> Iterator[AccessServer]:
    with access_server() as running:
        yield running


def lines_of(server: AccessServer, *words: str, capsys: Captured) -> list[str]:
    assert run(["--address", server.address, "access", *words]) == ExitCode.DONE
    out, err = capsys.readouterr()
    assert err == ""
    return out.splitlines()


def test_create_key_prints_the_secret_once(server: AccessServer, capsys: Captured) -> None:
    description, secret = lines_of(server, "create-key", "alice", capsys=capsys)
    (key_id,) = server.keys
    assert description.startswith(f"key {key_id} of alice, no end; ")
    assert secret.startswith(f"ak_{key_id}_")
    assert not any(secret in line for line in lines_of(server, "list-keys", capsys=capsys))


def test_create_key_quiet_prints_the_secret_alone(server: AccessServer, capsys: Captured) -> None:
    (secret,) = lines_of(server, "create-key", "alice", "--quiet", capsys=capsys)
    assert secret.startswith(f"ak_{next(iter(server.keys))}_")


def test_create_key_prints_one_json_document(server: AccessServer, capsys: Captured) -> None:
    words = ("create-key", "alice", "--expires-days", "0.5", "--description", "ci", "--json")
    document = json.loads("\n".join(lines_of(server, *words, capsys=capsys)))
    assert document["secret"].startswith(f"ak_{document['key_id']}_")
    assert document["expires_ms"] - document["created_ms"] == 43_200_000
    assert (document["principal"], document["description"]) == ("alice", "ci")
    listed = json.loads("".join(lines_of(server, "list-keys", "--json", capsys=capsys)))
    assert "secret" not in listed[0]


def test_list_keys_shows_their_states(server: AccessServer, capsys: Captured) -> None:
    lines_of(server, "create-key", "alice", capsys=capsys)
    lines_of(server, "create-key", "bob", capsys=capsys)
    revoked = next(iter(server.keys))
    assert lines_of(server, "revoke-key", revoked, capsys=capsys) == [
        f"key {revoked} of alice is revoked"
    ]
    table = "\n".join(lines_of(server, "list-keys", capsys=capsys))
    assert table.count("revoked") == table.count("valid") == 1
    only_bob = "\n".join(lines_of(server, "list-keys", "--principal", "bob", capsys=capsys))
    assert only_bob.count("bob") == 1
    assert "alice" not in only_bob


@pytest.mark.parametrize(
    ("expires_ms", "revoked_ms", "state"),
    [(0, 0, "valid"), (10, 0, "valid"), (9, 0, "expired"), (9, 3, "revoked")],
)
def test_state_of_a_key(expires_ms: int, revoked_ms: int, state: str) -> None:
    key = ApiKey(
        key_id="k",
        principal="p",
        description="",
        created_ms=1,
        expires_ms=expires_ms,
        revoked_ms=revoked_ms,
    )
    assert access._key_state(key, now_ms=9) == state


def test_roles_are_granted_listed_and_revoked(server: AccessServer, capsys: Captured) -> None:
    assert lines_of(server, "grant", "alice", "shop", "reader", capsys=capsys) == [
        "alice has the role reader in space shop"
    ]
    assert lines_of(server, "grant", "ops", "*", "admin", capsys=capsys) == [
        "ops has the role admin in every space"
    ]
    listed = lines_of(server, "grants", "--space", "shop", "--json", capsys=capsys)
    assert json.loads(listed[0]) == [{"principal": "alice", "space": "shop", "role": "reader"}]
    assert lines_of(server, "revoke", "alice", "shop", capsys=capsys) == [
        "alice has no role of its own in space shop"
    ]
    assert "alice" not in "\n".join(lines_of(server, "grants", capsys=capsys))


def test_revoke_shows_the_notice_of_the_service(server: AccessServer, capsys: Captured) -> None:
    lines_of(server, "grant", "ops", "*", "admin", capsys=capsys)
    assert run(["--address", server.address, "access", "revoke", "ops", "*"]) == ExitCode.DONE
    out, err = capsys.readouterr()
    assert out == "ops has no role of its own in every space\n"
    assert err == "note: run bootstrap\n"


def test_an_unknown_role_is_refused(server: AccessServer, capsys: Captured) -> None:
    words = ["--address", server.address, "access", "grant", "alice", "shop", "owner"]
    assert run(words) == ExitCode.USAGE
    assert capsys.readouterr().err.startswith("asterism: role='owner': expected reader")


def test_limits_are_set_listed_and_removed(server: AccessServer, capsys: Captured) -> None:
    words = ("set-limits", "alice", "--space", "shop", "--calls-per-s", "2.5", "--jobs", "3")
    assert "2.5" in "\n".join(lines_of(server, *words, capsys=capsys))
    (row,) = json.loads("".join(lines_of(server, "limits", "--json", capsys=capsys)))
    assert (row["principal"], row["space"], row["calls_per_s"], row["jobs"], row["pins"]) == (
        ("alice", "shop", 2.5, 3, 0)
    )
    removed = ("set-limits", "alice", "--space", "shop", "--remove")
    assert lines_of(server, *removed, capsys=capsys) == [
        "alice has no limits of its own in space shop"
    ]
    assert server.limits == {}


@pytest.mark.parametrize("options", [[], ["--remove", "--pins", "1"]])
def test_set_limits_needs_a_limit_or_remove(options: list[str], capsys: Captured) -> None:
    assert run(["access", "set-limits", "alice", *options]) == ExitCode.USAGE
    assert "expected at least one limit, or --remove alone" in capsys.readouterr().err


def test_a_limit_below_zero_names_its_option(capsys: Captured) -> None:
    assert run(["access", "set-limits", "alice", "--rows-per-s", "-1"]) == ExitCode.USAGE
    assert capsys.readouterr().err.startswith("asterism: --rows-per-s=-1.0: expected 0 to")


def test_an_expiry_of_zero_names_its_option(server: AccessServer, capsys: Captured) -> None:
    words = ["--address", server.address, "access", "create-key", "a", "--expires-days", "0"]
    assert run(words) == ExitCode.USAGE
    assert "--expires-days=0.0: expected above 0" in capsys.readouterr().err


def test_the_key_file_gives_the_key_of_every_call(
    server: AccessServer, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "key"
    file.write_text("from-file\n")
    monkeypatch.setenv(ENVIRONMENT["key"], "from-variable")
    lines_of(server, "grants", capsys=capsys)
    lines_of(server, "grants", "--api-key-file", str(file), capsys=capsys)
    assert server.authorizations == ["Bearer from-variable", "Bearer from-file"]


def test_a_missing_key_file_names_its_option(capsys: Captured) -> None:
    assert run(["--api-key-file", "/none", "access", "grants"]) == ExitCode.USAGE
    assert "--api-key-file='/none': expected a readable file" in capsys.readouterr().err


@pytest.mark.parametrize("error", [Unauthenticated("api_key: revoked"), Forbidden("no role")])
def test_refused_calls_have_an_exit_code(
    error: Exception, server: AccessServer, capsys: Captured
) -> None:
    def refuse() -> None:
        raise error

    server.before = refuse
    assert run(["--address", server.address, "access", "grants"]) == ExitCode.FORBIDDEN
    assert capsys.readouterr().err == f"asterism: {error}\n"


def test_an_exposed_key_is_one_line_of_warning(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENVIRONMENT["key"], "s3cret")
    run(["--address", "192.0.2.1:1", "--timeout", "0.001", "access", "grants"])
    first, *rest = capsys.readouterr().err.splitlines()
    assert first.startswith("warning: ASTERISM_API_KEY: sent without TLS to 192.0.2.1:1, so ")
    assert len(rest) == 1
    assert "s3cret" not in first + rest[0]


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.key"
    create_key_file(path)
    return path


def test_bootstrap_signs_a_ticket_of_one_hour(key_file: Path, capsys: Captured) -> None:
    words = ["access", "bootstrap", "--cluster-key-file", str(key_file), "--principal", "ada"]
    assert run([*words, "--quiet"]) == ExitCode.DONE
    (text,) = capsys.readouterr().out.splitlines()
    ticket = ClusterKey(str(key_file)).verify(text)
    assert (ticket.name, ticket.kind, ticket.roles) == ("ada", TicketKind.ROOT, {"*": Role.ADMIN})
    assert 3500 < ticket.expires_s - time.time() <= 3601
    assert run([*words, "--json"]) == ExitCode.DONE
    document = json.loads(capsys.readouterr().out)
    assert ClusterKey(str(key_file)).verify(document["secret"]).name == "ada"


def test_bootstrap_refuses_a_file_that_others_read(key_file: Path, capsys: Captured) -> None:
    key_file.chmod(0o644)
    assert run(["access", "bootstrap", "--cluster-key-file", str(key_file)]) == ExitCode.USAGE
    err = capsys.readouterr().err
    assert err.startswith(f"asterism: --cluster-key-file={str(key_file)!r}: expected a file that")
    assert err.count("\n") == 1


def test_bootstrap_without_the_server_names_the_extra(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "asterism_access.credentials.cluster_key", None)
    assert run(["access", "bootstrap", "--cluster-key-file", "k"]) == ExitCode.FAILED
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("asterism: asterism access bootstrap: packages are missing; pip install")
    assert "asterism-graph[server]" in line
