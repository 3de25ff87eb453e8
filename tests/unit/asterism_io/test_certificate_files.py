"""Tests of TLS options: unusable files and what is said of them, reloading of changed files."""

from __future__ import annotations

import datetime
import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.kit.certificates import Authority, Certificate

from asterism_io.certificate_files import FileReloader, check_certificate, subject_name
from asterism_io.client_tls import TlsClient
from asterism_io.tls_options import TlsOptions
from asterism_proto.errors import InvalidRequest

DAY = datetime.timedelta(days=1)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def certificate(authority: Authority) -> Certificate:
    return authority.issue("host")


def message_of(**files: Path | str) -> str:
    with pytest.raises(InvalidRequest) as raised:
        TlsClient(TlsOptions(**{name: str(value) for name, value in files.items()}))
    return raised.value.message


def test_missing_and_malformed_files_are_named(
    authority: Authority, certificate: Certificate
) -> None:
    cert, key = certificate.cert, certificate.key
    missing = key.with_name("none.pem")
    assert message_of(ca=missing) == (
        f"tls_ca={str(missing)!r}: expected a readable file (no such file or directory)"
    )
    assert message_of(ca=key) == (
        f"tls_ca={str(key)!r}: expected certificates of authorities in PEM form"
    )
    assert message_of(cert=cert) == (
        f"tls_cert={str(cert)!r}: expected tls_key with it; give both files"
    )
    assert message_of(key=key) == (
        f"tls_key={str(key)!r}: expected tls_cert with it; give both files"
    )
    assert message_of(cert=key, key=key) == (
        f"tls_cert={str(key)!r}: expected a certificate in PEM form"
    )
    assert message_of(cert=cert, key=cert) == (
        f"tls_key={str(cert)!r}: expected a private key in PEM form"
    )
    damaged = cert.with_name("damaged.pem")
    damaged.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    assert message_of(cert=damaged, key=key).startswith(
        f"tls_cert={str(damaged)!r}: expected a certificate and its key in PEM form"
    )


def test_the_key_of_another_certificate_is_refused(
    authority: Authority, certificate: Certificate
) -> None:
    other = authority.issue("other")
    assert message_of(cert=certificate.cert, key=other.key) == (
        f"tls_key={str(other.key)!r}: expected the key of the certificate in "
        f"{str(certificate.cert)!r}; it belongs to another one"
    )


def test_an_encrypted_key_asks_for_no_passphrase(
    authority: Authority, certificate: Certificate
) -> None:
    encrypted = authority.encrypt(certificate)
    assert message_of(cert=certificate.cert, key=encrypted).startswith(
        f"tls_key={str(encrypted)!r}: expected a key without a passphrase"
    )


@pytest.mark.parametrize(
    ("starts", "ends", "reason"),
    [(-9 * DAY, -DAY, "certificate has expired"), (DAY, 9 * DAY, "certificate is not yet valid")],
)
def test_a_certificate_out_of_its_time_says_so(
    authority: Authority, starts: datetime.timedelta, ends: datetime.timedelta, reason: str
) -> None:
    files = authority.issue("untimely", starts=starts, ends=ends)
    assert message_of(cert=files.cert, key=files.key) == (
        f"tls_cert={str(files.cert)!r}: expected a certificate that is valid now ({reason}); renew "
        "it, or set the clock of this host"
    )


def test_a_certificate_for_clients_only_serves_no_port(authority: Authority) -> None:
    files = authority.issue("client-only", usages=["client"])
    cert, key = str(files.cert), str(files.key)
    check_certificate(cert, key, name="tls_cert", purposes=["client"])
    with pytest.raises(InvalidRequest, match=r"expected a certificate for a server.*serverAuth"):
        check_certificate(cert, key, name="tls_cert", purposes=["server"])
    files = authority.issue("server-only", usages=["server"])
    cert, key = str(files.cert), str(files.key)
    check_certificate(cert, key, name="tls_cert", purposes=["server"])
    with pytest.raises(InvalidRequest, match=r"expected a certificate for a client.*clientAuth"):
        check_certificate(cert, key, name="tls_cert", purposes=["server", "client"])


def test_the_name_of_a_certificate_is_its_first(authority: Authority) -> None:
    files = authority.issue("named", names=["a.example", "b.example"])
    assert subject_name(str(files.cert), str(files.key)) == "a.example"


def test_files_are_loaded_again_after_a_change_only(tmp_path: Path) -> None:
    file, loads = tmp_path / "file", []
    file.write_text("one")

    def load() -> str:
        loads.append(file.read_text())
        return loads[-1]

    files = FileReloader([str(file), ""], load)
    assert [files.current(), files.current()] == [("one", 0), ("one", 0)]
    replace(file, "two")
    assert [files.current(), files.current()] == [("two", 1), ("two", 1)]
    assert loads == ["one", "two"]


def test_files_are_looked_at_after_an_interval(tmp_path: Path) -> None:
    file, now = tmp_path / "file", [100.0]
    file.write_text("one")
    files = FileReloader([str(file)], file.read_text, interval_s=5, clock=lambda: now[0])
    replace(file, "two")
    for now_s, content in ((104.9, "one"), (105.0, "two")):
        now[0] = now_s
        assert files.current()[0] == content
    replace(file, "three")
    now[0] = 50.0  # a clock that is set back
    assert files.current()[0] == "three"


def test_changed_rights_of_a_file_are_noticed(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("one")
    files = FileReloader([str(file)], lambda: file.stat().st_mode & 0o777)
    for mode in (0o600, 0o640):
        file.chmod(mode)
        assert files.current()[0] == mode


def test_an_unusable_new_file_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "file"
    file.write_text("one")
    files = FileReloader([str(file)], refuse_bad(file))
    with caplog.at_level(logging.WARNING):
        replace(file, "bad")
        assert [files.current() for _ in range(3)] == [("one", 0)] * 3
        file.unlink()
        assert [files.current() for _ in range(3)] == [("one", 0)] * 3
    assert [record.message for record in caplog.records] == ["certificates_not_reloaded"] * 2
    file.write_text("two")
    assert files.current() == ("two", 1)


def replace(file: Path, text: str) -> None:
    replacement = file.with_name("replacement")
    replacement.write_text(text)
    replacement.replace(file)


def refuse_bad(file: Path) -> Callable[[], str]:
    def load() -> str:
        if not file.exists() or file.read_text() == "bad":
            raise InvalidRequest("file: bad")
        return file.read_text()

    return load
