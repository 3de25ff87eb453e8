"""An object store with a certificate of a private authority, named by an option."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kit.certificates import Authority
from tests.kit.objects import ObjectStore

from asterism_io.remote_storage import RemoteFolder
from asterism_proto.errors import InvalidRequest, Unavailable
from storaged.settings import StoragedSettings


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def address(authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with ObjectStore(tmp_path, authority) as store:
        monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)
        for name, value in store.environment.items():
            monkeypatch.setenv(name, value)
        yield f"{store.address}/backup"


def test_files_travel_by_https_with_the_named_authority(
    address: str, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = RemoteFolder(address, s3_ca=str(authority.file))
    file = folder.put("part.bin", b"content")
    assert folder.read_file(file) == b"content"
    other = str(Authority(tmp_path / "other").file)
    for s3_ca in ("", other):
        with pytest.raises(Unavailable) as refused:
            RemoteFolder(f"{address}/other", s3_ca=s3_ca, timeout_s=29).put("part.bin", b"content")
        assert re.fullmatch(
            rf"{address}/other/part\.bin: certificate verify failed: [^;]*(issuer|signed|"
            r"signature)[^;]*; set s3_ca of the storageds, or AWS_CA_BUNDLE in the environment, to "
            r"a PEM file of the authorities that signed it",
            refused.value.message,
        ), refused.value.message
    monkeypatch.setenv("AWS_CA_BUNDLE", str(authority.file))
    assert RemoteFolder(f"{address}/third").put("part.bin", b"content").bytes == 7


def test_a_wrong_file_of_authorities_is_named(authority: Authority, tmp_path: Path) -> None:
    missing = str(tmp_path / "none.pem")
    with pytest.raises(InvalidRequest, match=r"^s3_ca=.*expected a readable file"):
        RemoteFolder("s3://bucket/backup", s3_ca=missing)
    with pytest.raises(InvalidRequest, match=r"^s3_ca=.*expected a readable file"):
        StoragedSettings.read(["--s3-ca", missing])
    settings = StoragedSettings.read(["--s3-ca", str(authority.file)])
    assert settings.s3_ca == str(authority.file)


def test_a_certificate_for_another_host_is_reported(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "ca.pem"  # fsspec keeps a connection per file
    copy.write_bytes(authority.file.read_bytes())
    with ObjectStore(tmp_path, authority, ["127.0.0.1"]) as store:
        for name, value in store.environment.items():
            monkeypatch.setenv(name, value.replace("127.0.0.1", "localhost"))
        folder = RemoteFolder(f"{store.address}/backup", s3_ca=str(copy))
        with pytest.raises(
            Unavailable, match=r"verify failed: .*mismatch.*; check the names and dates"
        ):
            folder.put("part.bin", b"content")
