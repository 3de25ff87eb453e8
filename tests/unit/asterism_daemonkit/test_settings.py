from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.kit.certificates import Authority

from asterism_access.credentials.cluster_key import create_key_file
from asterism_daemonkit.listening import split_address
from asterism_daemonkit.settings import DaemonSettings
from asterism_proto.errors import InvalidRequest


def test_flags_override_defaults() -> None:
    settings = DaemonSettings.read(
        ["--listen", "127.0.0.1:3", "--log-json", "--heartbeat-interval-s", "0.5"]
    )
    assert (settings.listen, settings.log_json, settings.heartbeat_interval_s) == (
        "127.0.0.1:3",
        True,
        0.5,
    )


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["--listen", "nowhere"], "nowhere"),
        (
            ["--heartbeat-interval-s", "0"],
            "^heartbeat_interval_s='0': expected a value greater than 0.05$",
        ),
        (["--grpc-workers", "many"], "^grpc_workers='many': expected a valid integer, unable to"),
    ],
)
def test_a_wrong_setting_is_named_with_its_value(flags: list[str], named: str) -> None:
    with pytest.raises(InvalidRequest, match=named):
        DaemonSettings.read(flags)


@pytest.mark.parametrize("address", ["", "host", ":1", "host:", "host:x", "host:65536", "host:-1"])
def test_an_address_is_a_host_and_a_port(address: str) -> None:
    with pytest.raises(InvalidRequest, match="expected host:port"):
        split_address(address)


def test_reachable_address_is_the_advertised_or_a_local_one() -> None:
    assert DaemonSettings(listen="0.0.0.0:0").advertised_address(7) == "127.0.0.1:7"
    assert DaemonSettings(listen="10.0.0.1:0").advertised_address(7) == "10.0.0.1:7"
    assert DaemonSettings(listen="0.0.0.0:0", advertise="me:9").advertised_address(7) == "me:9"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--tls-cert", "a.pem"], "tls_cert='a.pem': expected tls_key with it"),
        (["--tls-key", "a.key"], "tls_key='a.key': expected tls_cert with it"),
        (["--tls-ca", "ca.pem"], "tls_ca='ca.pem': expected tls_cert and tls_key with it"),
        (
            ["--tls-client-auth", "required"],
            "tls_client_auth='required': expected tls_ca, the authorities of clients' certificates",
        ),
        (
            ["--tls-client-auth", "some"],
            "tls_client_auth='some': expected 'none' or 'required'",
        ),
    ],
)
def test_settings_of_tls_are_given_together(flags: list[str], message: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        DaemonSettings.read(flags)
    assert raised.value.message == message


def test_flags_show_files_of_tls_not_their_content(tmp_path: Path) -> None:
    files = Authority(tmp_path).issue("daemon")
    settings = DaemonSettings.read(["--tls-cert", str(files.cert), "--tls-key", str(files.key)])
    assert settings.tls() is not None
    assert settings.flags()["tls_key"] == str(files.key)
    assert "PRIVATE" not in str(settings.flags())
    assert DaemonSettings.read([]).tls() is None


def test_an_issuer_needs_the_extra_that_verifies_tokens(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for module in ("asterism_access.credentials.oidc_tokens", "asterism_access.credentials.jwks"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, "jwt", None)
    create_key_file(tmp_path / "cluster.key")
    settings = DaemonSettings(
        cluster_key_file=str(tmp_path / "cluster.key"),
        token_issuer="https://login.example.com",
        token_audience="asterism",
    )
    with pytest.raises(InvalidRequest, match=r"pip install 'asterism-graph\[oidc\]'"):
        settings.access_control("graphd")


def test_help_describes_settings_of_all_base_classes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        DaemonSettings.read(["--help"])
    assert stopped.value.code == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "host:port of the gRPC server; port 0 picks a free one." in shown
    assert "Connections that the HTTP port accepts at a time." in shown  # ConnectionSettings
    assert "Seconds between two heartbeats to metad." in shown
