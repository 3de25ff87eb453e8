"""`asterism serve` with TLS and access control, on an address that other hosts reach."""

from __future__ import annotations

import json
import signal
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.kit.certificates import Authority
from tests.kit.waiting import HANG_S, wait_until

import asterism
from asterism import Client
from asterism.cli.app import run
from asterism.cli.exit_codes import ExitCode
from asterism_access.audit_log import AuditRecord, read_audit_log
from asterism_access.credentials.cluster_key import ClusterKey, create_key_file
from asterism_proto.errors import Forbidden, InvalidRequest, Unauthenticated, Unavailable
from asterism_standalone.app import Standalone
from asterism_standalone.settings import StandaloneSettings

REFUSAL = (
    "--listen='0.0.0.0:9': expected an address of the loopback interface, as this one can be "
    "reached from other hosts without TLS and access control; set --tls-cert, --tls-key and "
    "--cluster-key-file, or permit it with --insecure (ASTERISM_INSECURE=true)"
)


@dataclass(frozen=True)
class Served:
    """A served folder."""

    port: int
    http_port: int
    ca: str
    key: ClusterKey
    folder: Path

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def connect(self, credential: str | None) -> Client:
        return asterism.connect(self.address, tls=self.ca, api_key=credential, timeout_s=HANG_S)

    def root(self) -> str:
        return self.key.root_ticket(HANG_S)

    def text(self, path: str) -> str:
        """Return the text of a reply over HTTPS."""
        context = ssl.create_default_context(cafile=self.ca)
        url = f"https://127.0.0.1:{self.http_port}{path}"
        with urllib.request.urlopen(url, timeout=HANG_S, context=context) as reply:
            return str(reply.read().decode())

    def get(self, path: str, credential: str = "", body: object = None) -> tuple[int, Any]:
        """Return the status and the JSON of a reply over HTTPS."""
        request = urllib.request.Request(f"https://127.0.0.1:{self.http_port}{path}")
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("content-type", "application/json")
        if credential:
            request.add_header("authorization", f"Bearer {credential}")
        context = ssl.create_default_context(cafile=self.ca)
        try:
            with urllib.request.urlopen(request, timeout=HANG_S, context=context) as reply:
                return reply.status, json.load(reply)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    authority = Authority(folder)
    files = authority.issue("host")
    create_key_file(folder / "cluster.key")
    arguments = ["serve", folder / "graph", "--json", "--cluster-key-file", folder / "cluster.key"]
    arguments += ["--listen", "0.0.0.0:0", "--http-listen", "0.0.0.0:0"]
    arguments += ["--audit-file", folder / "audit.jsonl", "--setting", "http_connections=200"]
    arguments += ["--tls-cert", files.cert, "--tls-key", files.key]
    with (folder / "serve.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "asterism.cli", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        assert process.stdout is not None
        startup = json.loads(process.stdout.readline() or "{}")
        assert startup, (folder / "serve.log").read_text()
        port, http_port = (
            int(startup[name].rpartition(":")[2]) for name in ("address", "http_address")
        )
        served = Served(
            port, http_port, str(authority.file), ClusterKey(str(folder / "cluster.key")), folder
        )
        with served.connect(served.root()) as client:
            for name in ("shop", "bank"):
                client.create_space(name, {"parts": 1, "nodes": {"n": {"weighted": True}}})
                load = client.begin_load(name, source="ten nodes")
                load.write_nodes(0, "n", np.arange(10), weights=np.ones(10))
                load.commit()
            job = client.wait(client.submit_job("shop").job_id, timeout_s=HANG_S)
            assert job.state == "FINISHED", job.cause
        yield served
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(HANG_S) == 0
        assert process.stdout is not None
        process.stdout.close()


def test_a_client_without_a_key_is_refused(served: Served) -> None:
    for credential in (None, "ak_AAAAAAAAAAAA_" + "A" * 43):
        with served.connect(credential) as client, pytest.raises(Unauthenticated):
            client.spaces()


def test_a_client_without_tls_is_refused(served: Served) -> None:
    with (
        asterism.connect(served.address, timeout_s=HANG_S) as client,
        pytest.raises(Unavailable, match="speaks TLS"),
    ):
        client.spaces()


def test_roles_of_a_key_hold_over_tls(served: Served) -> None:
    with served.connect(served.root()) as root:
        root.grant("rita", "shop", "reader")
        key = root.create_api_key("rita")
    assert key.secret
    with served.connect(key.secret) as client:
        assert [space.name for space in client.spaces()] == ["shop"]
        assert len(client.graph("shop").sample_nodes(3, "n", seed=1).nodes) == 3
        with pytest.raises(Forbidden, match="space='bank': not found, or 'rita' has no role"):
            client.graph("bank").sample_nodes(3, "n", seed=1)
        with pytest.raises(Forbidden, match="expected the role writer"):
            client.begin_load("shop", source="x")
        with pytest.raises(Forbidden):
            client.create_space("mine", {"nodes": {"n": {}}})
        with served.connect(served.root()) as root:
            root.revoke_api_key(key.key_id)
        with pytest.raises(Unauthenticated, match="revoked"):
            client.spaces()


def test_http_and_pages_check_roles_and_probes_are_open(served: Served) -> None:
    with served.connect(served.root()) as root:
        root.grant("hana", "shop", "reader")
        key = root.create_api_key("hana").secret
    assert key
    assert served.get("/readyz") == (200, {"ready": True, "missing": []})
    for path in ("/status", "/flags", "/ui/api/spaces", "/api/v1/spaces", "/api/v1/jobs"):
        assert served.get(path)[0] == 401
        status, document = served.get(path, key)
        assert status == 200
        assert "bank" not in json.dumps(document)
    for path in ("/api/v1/spaces/bank", "/ui/api/spaces/bank", "/ui/api/logs"):
        assert served.get(path, key)[0] == 403
    assert served.get("/status", served.root())[1]["insecure"] == []


def test_serve_records_changes_over_grpc_and_http(served: Served) -> None:
    root = served.root()
    assert served.get("/flags", root)[1]["http_connections"] == 200
    schema = {"parts": 1, "nodes": {"n": {}}}
    created = served.get("/api/v1/spaces", root, {"name": "over_http", "schema": schema})
    assert created[0] == 201, created
    with served.connect(root) as client:
        client.create_space("over_grpc", schema)
        client.drop_space("over_grpc")
        client.drop_space("over_http")
    assert served.get("/status", "nonsense")[0] == 401
    log = served.folder / "audit.jsonl"

    def outcomes(method: str) -> dict[str, str]:
        return {
            record.space: record.outcome
            for record in read_audit_log(log)
            if isinstance(record, AuditRecord) and record.method == method
        }

    wait_until(lambda: len(outcomes("CreateSpace")) >= 4, "both changes are recorded")
    assert outcomes("CreateSpace").items() >= {"over_grpc": "OK", "over_http": "OK"}.items()
    wait_until(lambda: outcomes("GET /status") == {"": "Unauthenticated"}, "so is the refusal")
    metrics = served.text("/metrics")
    assert 'asterism_credentials_refused_total{daemon="standalone",port="http"' in metrics


def test_a_service_reads_no_variables_of_daemons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (
        ("METAD_AUDIT_FILE", "/nowhere/audit.jsonl"),
        ("METAD_KEEP_VERSIONS", "7"),
        ("STORAGED_CONCURRENT_TASKS", "a few"),
        ("GRAPHD_SESSION_S", "soon"),
    ):
        monkeypatch.setenv(f"ASTERISM_{name}", value)
    service = Standalone(tmp_path / "data", compile_ahead=False)
    try:
        assert service._metad.settings.keep_versions == 2
    finally:
        service.stop()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--setting", "http_connections"], "--setting='http_connections': expected NAME=VALUE"),
        (["--setting", "http_connections=0"], "http_connections='0': expected a value greater"),
        (["--setting", "no_such=1"], "no_such='1': there is no such setting"),
        (
            ["--token-issuer", "https://issuer"],
            "--token-issuer='https://issuer': expected --cluster-key-file with it",
        ),
    ],
)
def test_serve_refuses_wrong_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    folder = tmp_path / "data"
    assert run(["serve", str(folder), *options]) == ExitCode.USAGE
    assert message in capsys.readouterr().err
    assert not folder.exists()


def test_the_command_sends_the_key(
    served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ticket = tmp_path / "root.ticket"
    ticket.write_text(served.root())
    options = ["--address", served.address, "--tls-ca", served.ca, "--json"]
    assert run([*options, "space", "list"]) == ExitCode.FORBIDDEN
    assert "Unauthenticated" in capsys.readouterr().err
    assert run([*options, "--api-key-file", str(ticket), "space", "list"]) == ExitCode.DONE
    spaces = json.loads(capsys.readouterr().out)
    assert {space["name"] for space in spaces} == {"bank", "shop"}


def test_serve_refuses_ports_that_other_hosts_reach(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "data"
    assert run(["serve", str(folder), "--listen", "0.0.0.0:9"]) == ExitCode.USAGE
    assert REFUSAL in capsys.readouterr().err
    assert not folder.exists()


def test_an_insecure_service_says_so_in_its_status(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"^cluster_key_file=.*none\.key"):
        Standalone(tmp_path / "data", StandaloneSettings(cluster_key_file="none.key"))
    service = Standalone(tmp_path / "data", StandaloneSettings(insecure=True), compile_ahead=False)
    try:
        endpoints = service.open_ports(listen="0.0.0.0:0", http_listen="[::1]:0")
        url = f"http://{endpoints.http_address}/status"
        with urllib.request.urlopen(url, timeout=HANG_S) as reply:
            assert json.load(reply)["insecure"] == ["0.0.0.0:0"]
    finally:
        service.stop()
    exposed = Standalone(tmp_path / "data", compile_ahead=False)
    try:
        with pytest.raises(InvalidRequest, match=r"^http_listen='\[::\]:0': expected an address"):
            exposed.open_ports(listen="127.0.0.1:0", http_listen="[::]:0")
    finally:
        exposed.stop()
