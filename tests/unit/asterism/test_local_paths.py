"""Tests of the files and folders that callers name: ``~``, and values that name none."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from asterism import TlsOptions, export
from asterism.calls.clusters import Clusters
from asterism.cli.console.results import _atomic_replacement
from asterism.cli.export_options import parse_method
from asterism.export.dispatch_to_machines import collect_export, read_hosts, staging_folder
from asterism.export.lifecycle import MANIFEST, ExportTarget
from asterism.local_paths import local_path
from asterism.transport.credentials import CredentialFile
from asterism.transport.tls import ENVIRONMENT, tls_options
from asterism_io.remote_storage import absolute_address
from asterism_proto.errors import InvalidRequest, NotFound


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the home folder of the user, beside an empty current folder."""
    for name in ("home", "here"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def stored_export(folder: Path, parts: int = 2) -> Path:
    """Write a finished export with one file in each partition."""
    folder.mkdir()
    files = {}
    for name in ("shop.json", *(f"part{part}/node_feat.dgl" for part in range(parts))):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"")
        # SHA-256 of nothing
        files[name] = {
            "bytes": 0,
            "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        }
    manifest = {"parts": parts, "config": "shop.json", "files": files}
    (folder / MANIFEST).write_text(json.dumps(manifest))
    return folder


def test_partitions_are_dispatched_from_and_to_the_home_folder(home: Path) -> None:
    stored_export(home / "partitions")
    report = export.dispatch("~/partitions", "~/machine{part}")
    assert [place.files for place in report.places] == [2, 2]
    assert sorted(path.name for path in home.iterdir()) == ["machine0", "machine1", "partitions"]
    assert list(Path.cwd().iterdir()) == []
    with (
        pytest.raises(NotFound, match=f"^{home}/machine0/manifest.json: expected an export"),
        collect_export("~/machine{part}"),
    ):
        pass


def test_machines_and_unfinished_files_are_in_the_home_folder(home: Path) -> None:
    (home / "ip_config.txt").write_text("alpha\nbeta\n")
    assert read_hosts("~/ip_config.txt") == ("alpha", "beta")
    options = {"ip_config": "~/ip_config.txt", "scratch": "~/scratch", "resume": False}
    with staging_folder("{host}/{part}", 2, **options) as folder:  # type: ignore[arg-type]
        assert folder.parent == home / "scratch"
        folder.mkdir(parents=True)
    target = ExportTarget.parse("~/out")
    assert target.working_folder("~/scratch").parent == home / "scratch"
    assert target.working_folder(None) == home / "out.partial"


def test_read_folders_are_in_the_home_folder(home: Path) -> None:
    (home / "assigned").mkdir()
    assert parse_method("~/assigned") == home / "assigned"
    readers: list[Callable[[], object]] = [
        lambda: Clusters.in_folder("~/assigned"),
        lambda: export.read_names("~/assigned", 0, "n"),
    ]
    for read in readers:
        with pytest.raises(NotFound, match=f"^{home}/assigned/"):
            read()


def test_files_of_a_connection_are_in_the_home_folder(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ENVIRONMENT.values():
        monkeypatch.delenv(variable, raising=False)
    assert tls_options("~/ca.pem") == TlsOptions(ca=f"{home}/ca.pem")
    options = TlsOptions(ca="system", cert="~/me.pem", key="~/me.key", server_name="~")
    assert tls_options(options) == TlsOptions(
        ca="system", cert=f"{home}/me.pem", key=f"{home}/me.key", server_name="~"
    )
    monkeypatch.setenv(ENVIRONMENT["ca"], "~/ours.pem")
    assert tls_options(None) == TlsOptions(ca=f"{home}/ours.pem")
    (home / "key").write_text("secret\n")
    assert CredentialFile("~/key")() == "secret"


def test_an_address_without_a_protocol_is_a_folder(home: Path) -> None:
    assert absolute_address("~/backup") == f"file://{home}/backup"
    assert absolute_address(Path("~")) == f"file://{home}"
    assert absolute_address("backup") == f"file://{Path.cwd()}/backup"
    assert absolute_address("s3://bucket/~/backup/") == "s3://bucket/~/backup"


def test_the_home_of_an_unknown_user_is_a_plain_name(home: Path) -> None:
    name = "~no-such-user/x"
    assert local_path("out", name) == Path(name)
    assert absolute_address(name) == f"file://{Path.cwd()}/{name}"
    Path("~no-such-user").mkdir()
    with _atomic_replacement(Path(name)) as file:
        file.write(b"x")
    assert Path(name).read_bytes() == b"x"


ODD = ["", "a\0b", b"x", None, 7]


@pytest.mark.parametrize("value", ODD)
def test_a_value_that_names_no_path_is_refused(home: Path, value: object) -> None:
    stored_export(home / "partitions")
    entries: dict[str, Callable[[], object]] = {
        "path": lambda: local_path("path", value),
        "folder": lambda: export.read_names(value, 0, "n"),  # type: ignore[arg-type]
        "clusters": lambda: Clusters.in_folder(value),  # type: ignore[arg-type]
        "source": lambda: export.dispatch(value, "{part}"),  # type: ignore[arg-type]
        "ip_config": lambda: read_hosts(value),  # type: ignore[arg-type]
        "address": lambda: absolute_address(value),  # type: ignore[arg-type]
    }
    if value is not None:
        entries["scratch"] = lambda: ExportTarget.parse("out").working_folder(
            value  # type: ignore[arg-type]
        )
    for name, call in entries.items():
        with pytest.raises(InvalidRequest, match=f"^{name}=.*: expected a (folder|file)"):
            call()
    with pytest.raises(InvalidRequest, match=r"^address=.*: expected \{part\}"):
        export.dispatch(home / "partitions", value)  # type: ignore[arg-type]
    assert list(Path.cwd().iterdir()) == []


def test_a_file_of_machines_that_is_no_text_is_refused(home: Path) -> None:
    (home / "binary").write_bytes(b"\xff\xfe\x00")
    for path in (home, home / "binary"):
        with pytest.raises(InvalidRequest, match=r"^ip_config=.*: expected a readable text file"):
            read_hosts(path)
