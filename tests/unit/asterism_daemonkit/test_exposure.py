"""Tests of the rule that ports which other hosts reach need TLS and access control."""

from __future__ import annotations

import logging
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.kit.certificates import Authority
from tests.kit.waiting import HANG_S

from asterism_access.credentials.cluster_key import create_key_file
from asterism_daemonkit.exposure import (
    INSECURE_VARIABLE,
    insecure_addresses,
    is_loopback,
    log_insecure,
)
from asterism_daemonkit.settings import DaemonSettings
from asterism_proto.errors import InvalidRequest
from graphd.settings import GraphdSettings
from metad.settings import MetadSettings
from storaged.settings import StoragedSettings

DAEMONS = [MetadSettings, StoragedSettings, GraphdSettings]
REFUSAL = (
    "listen='0.0.0.0:9': expected an address of the loopback interface, as this one can be reached "
    "from other hosts without TLS and access control; set tls_cert, tls_key and "
    "cluster_key_file, or permit it with --insecure (ASTERISM_INSECURE=true)"
)


@dataclass(frozen=True)
class Protection:
    insecure: bool = False
    tls_cert: str = ""
    cluster_key_file: str = ""


@pytest.fixture(autouse=True)
def no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(INSECURE_VARIABLE, raising=False)


@pytest.fixture
def secured(tmp_path: Path) -> list[str]:
    """Return flags with usable certificates and a key of the cluster."""
    files = Authority(tmp_path).issue("daemon")
    create_key_file(tmp_path / "cluster.key")
    return [
        *("--tls-cert", str(files.cert), "--tls-key", str(files.key)),
        *("--cluster-key-file", str(tmp_path / "cluster.key")),
    ]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "[::1]", "localhost", "127.1"])
def test_loopback_needs_nothing(host: str) -> None:
    assert is_loopback(f"{host}:9")
    assert insecure_addresses({"listen": f"{host}:9", "stream_listen": ""}, Protection()) == []


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "[::]", "0", "10.0.0.1", "10.1", "[fe80::1]", "[::ffff:127.0.0.1]", "a..b"]
)
def test_other_addresses_and_names_are_refused(host: str) -> None:
    assert not is_loopback(f"{host}:9")
    with pytest.raises(InvalidRequest, match=r"^http_listen="):
        insecure_addresses({"listen": "localhost:1", "http_listen": f"{host}:9"}, Protection())


def test_the_refusal_names_setting_address_and_remedies() -> None:
    with pytest.raises(InvalidRequest) as raised:
        insecure_addresses({"listen": "0.0.0.0:9"}, Protection())
    assert raised.value.message == REFUSAL


@pytest.mark.parametrize(
    ("protection", "lacks", "remedy"),
    [
        (Protection(tls_cert="a.pem"), "without access control;", "set cluster_key_file, or"),
        (Protection(cluster_key_file="a.key"), "without TLS;", "set tls_cert and tls_key, or"),
    ],
)
def test_one_of_both_is_not_enough(protection: Protection, lacks: str, remedy: str) -> None:
    with pytest.raises(InvalidRequest, match=f"{lacks} {remedy}"):
        insecure_addresses({"listen": "[::]:9"}, protection)


def test_both_together_or_insecure_suffice(caplog: pytest.LogCaptureFixture) -> None:
    addresses = {"listen": "0.0.0.0:9", "http_listen": "127.0.0.1:9"}
    both = Protection(tls_cert="a.pem", cluster_key_file="a.key")
    log_insecure(insecure_addresses(addresses, both), both)
    assert caplog.records == []
    permitted = Protection(insecure=True)
    with caplog.at_level(logging.WARNING):
        log_insecure(insecure_addresses(addresses, permitted), permitted)
    (record,) = caplog.records
    assert (record.levelname, record.getMessage()) == ("WARNING", "ports_insecure")
    assert vars(record)["addresses"] == "0.0.0.0:9"
    assert (vars(record)["tls"], vars(record)["access_control"]) == (False, False)


@pytest.mark.parametrize("cls", DAEMONS)
@pytest.mark.parametrize("flag", ["--listen", "--http-listen"])
def test_every_daemon_refuses_exposed_ports(
    cls: type[DaemonSettings], flag: str, secured: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cls.read([]).insecure_addresses() == []
    exposed = [flag, "0.0.0.0:9"]
    for arguments in (exposed, [*exposed, *secured[:4]], [*exposed, *secured[4:]]):
        with pytest.raises(InvalidRequest, match=r"--insecure \(ASTERISM_INSECURE=true\)"):
            cls.read(arguments)
    assert cls.read([*exposed, *secured]).insecure_addresses() == []
    assert "0.0.0.0:9" in cls.read([*exposed, "--insecure"]).insecure_addresses()
    monkeypatch.setenv(INSECURE_VARIABLE, "true")
    assert cls.read(exposed).insecure
    with pytest.raises(InvalidRequest):
        cls.read([*exposed, "--no-insecure"])


def test_a_daemons_own_variable_outranks_the_shared_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(INSECURE_VARIABLE, "true")
    monkeypatch.setenv("ASTERISM_GRAPHD_INSECURE", "false")
    assert MetadSettings.read([]).insecure
    assert not GraphdSettings.read([]).insecure


def test_the_binary_endpoint_listens_where_grpc_does() -> None:
    settings = StoragedSettings(listen="10.0.0.7:9779")
    assert settings.stream_address() == "10.0.0.7:0"
    assert StoragedSettings(listen="[::1]:1", stream_listen=":2").stream_address() == "[::1]:2"
    assert StoragedSettings(stream_listen="").stream_address() == ""
    with pytest.raises(InvalidRequest, match=r"^stream_listen='0\.0\.0\.0:9'"):
        StoragedSettings.read(["--stream-listen", "0.0.0.0:9"])
    with pytest.raises(InvalidRequest, match=r"^stream_listen=':x'.*expected host:port"):
        StoragedSettings.read(["--stream-listen", ":x"])


@pytest.mark.parametrize("daemon", ["metad", "storaged", "graphd"])
def test_a_daemon_that_refuses_exits_with_status_2(daemon: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", daemon, "--listen", "0.0.0.0:9", "--data", str(tmp_path / "data")],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert (done.returncode, done.stderr.strip()) == (2, f"{daemon}: {REFUSAL}")
    assert not (tmp_path / "data").exists()
