"""Tests of the clients' argument ``tls``: its forms, the environment, and pickled clients."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from tests.kit.certificates import Authority

import asterism
from asterism import TlsOptions
from asterism.transport.grpc import GrpcTransport
from asterism.transport.tls import ENVIRONMENT, tls_options
from asterism_proto.errors import InvalidRequest


@pytest.fixture(autouse=True)
def empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ENVIRONMENT.values():
        monkeypatch.delenv(variable, raising=False)


def test_tls_takes_a_file_true_or_options(tmp_path: Path) -> None:
    options = TlsOptions(ca="ca.pem", cert="me.pem", key="me.key")
    assert tls_options(options) is options
    assert tls_options(tmp_path / "ca.pem") == TlsOptions(ca=str(tmp_path / "ca.pem"))
    assert tls_options("ca.pem") == TlsOptions(ca="ca.pem")
    assert tls_options(True) == TlsOptions(ca="system")
    assert tls_options(False) is None
    assert tls_options(None) is None


@pytest.mark.parametrize("value", [3, "", b"ca.pem", {"ca": "ca.pem"}])
def test_another_value_of_tls_is_refused(value: object) -> None:
    with pytest.raises(InvalidRequest, match=r"^tls=.*: expected True, a file of"):
        asterism.connect("localhost:1", tls=value)  # type: ignore[call-overload]


def test_the_environment_applies_unless_tls_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    for field, variable in ENVIRONMENT.items():
        monkeypatch.setenv(variable, f"the-{field}")
    assert tls_options(None) == TlsOptions(
        ca="the-ca", cert="the-cert", key="the-key", server_name="the-server_name"
    )
    assert tls_options(False) is None
    assert tls_options("mine.pem") == TlsOptions(ca="mine.pem")


def test_a_missing_file_is_an_error_when_connecting(tmp_path: Path) -> None:
    missing = str(tmp_path / "none.pem")
    with pytest.raises(InvalidRequest, match=r"^tls_ca=.*expected a readable file"):
        asterism.connect("localhost:1", tls=missing)


def test_a_pickled_client_keeps_its_tls(tmp_path: Path) -> None:
    files = Authority(tmp_path).issue("client")
    options = TlsOptions(
        ca=str(tmp_path / "ca.pem"), cert=str(files.cert), key=str(files.key), server_name="host"
    )
    transport = GrpcTransport("localhost:1", tls=options)
    copy = pickle.loads(pickle.dumps(transport))
    assert copy._tls.options == options
    assert pickle.loads(pickle.dumps(GrpcTransport("localhost:1")))._tls is None


def test_system_authorities_are_accepted() -> None:
    asterism.connect("localhost:1", tls=True).close()
    assert tls_options(True) == TlsOptions(ca="system")
