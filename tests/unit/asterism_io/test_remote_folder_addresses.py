"""Tests of addresses that daemons open: their canonical form, and the allow-list."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.kit.metad import InProcessMetad, finished_report

from asterism.cli.serve import allowed_addresses
from asterism_io.remote_folder_addresses import AllowedAddresses, parse_address
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from metad.settings import MetadSettings
from storaged.settings import StoragedSettings

ROOTS = "file:///srv/exports, s3://bucket/prefix, sftp://backup@host:2222/data, sftp://open/"

ALLOWED = {
    "file:///srv/exports": "file:///srv/exports",
    "file:/srv/exports/a": "file:///srv/exports/a",
    "local:///srv/exports/a/": "file:///srv/exports/a",
    "FILE:////srv//exports/./a/../b": "file:///srv/exports/b",
    "file:///srv/exports/..b/c d": "file:///srv/exports/..b/c d",
    "s3://bucket/prefix": "s3://bucket/prefix",
    "s3a://bucket//prefix//x/": "s3://bucket/prefix/x",
    "sftp://backup@host:2222/data/x": "sftp://backup@host:2222/data/x",
    "ssh://backup:hunter2@HOST:2222/data/x": "sftp://backup:hunter2@host:2222/data/x",
    "sftp://me@open:22/x": "sftp://me@open/x",
}

HOSTILE = [
    "",
    "/srv/exports",
    "folder",
    "file://",
    "file:///",
    "file://srv/exports",
    "file:srv/exports",
    "file://~/exports",
    "file:///~/exports",
    "file:///etc",
    "file:///srv",
    "file:///srv/exportsX",
    "file:///srv/exports/..",
    "file:///srv/exports/../etc",
    "file:///srv/exports/../../../etc/passwd",
    "file:///srv/exports/%2e%2e/etc",
    "file:///srv/exports/%2E%2E%2Fetc",
    "file:///srv/exports/a%00b",
    "file:///srv/exports\\..\\etc",
    "file:///srv/exports/a\x00b",
    "file:///srv/exports/a\nb",
    "file:///srv/exports/a\u202eb",
    "file:///srv/exports/" + "a" * 2000,
    "local://srv/exports",
    "memory://x",
    "memory://srv/exports",
    "ftp://host/srv/exports",
    "http://host/x",
    "https://host/x",
    "data:text/plain,x",
    "gs://bucket/prefix",
    "abfs://bucket/prefix",
    "hdfs://host/x",
    "github://owner:repo@main/x",
    "dask://x",
    "reference://x",
    "dir://x::file:///srv/exports",
    "simplecache::file:///srv/exports",
    "filecache::s3://bucket/prefix",
    "zip://x::file:///srv/exports/a.zip",
    "zip://x::s3://bucket/prefix/a.zip",
    "file:///srv/exports::memory://x",
    "nosuchstore://bucket/folder",
    "my.plugin+x://bucket/folder",
    "s3:bucket/prefix",
    "s3://",
    "s3:///prefix",
    "s3://bucket",
    "s3://bucket/prefixed",
    "s3://bucket/other",
    "s3://other/prefix",
    "s3://bucket/prefix/../other",
    "s3://bucket/./prefix",
    "s3://bucket/prefix?versionId=1",
    "s3://bucket/prefix#x",
    "s3://key:hunter2@bucket/prefix",
    "s3://key:hun/ter2@bucket/prefix",
    "s3://bucket:80/prefix",
    "sftp://host:2222/data",
    "sftp://other@host:2222/data",
    "sftp://backup@host/data",
    "sftp://backup@host:2222/database",
    "sftp://backup@host:2222/data/../etc",
    "sftp://backup@host:0/data",
    "sftp://backup@host:99999/data",
    "sftp://backup@host:２２/data",
    "sftp://@open/x",
    "sftp://open",
    "sftp://[::1/x",
    "sftp://open@evil/x",
    "sftp://backup@host:2222@evil/data",
]


@pytest.mark.parametrize(("text", "canonical"), ALLOWED.items())
def test_an_allowed_address_is_canonical(text: str, canonical: str) -> None:
    allowed = AllowedAddresses.parse(ROOTS, daemon="metad")
    assert str(allowed.check("to", text)) == canonical
    assert str(allowed.check("to", canonical)) == canonical


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_address_is_refused_without_secrets(text: str) -> None:
    with pytest.raises(InvalidRequest, match=r"^to=") as excinfo:
        AllowedAddresses.parse(ROOTS, daemon="metad").check("to", text)
    assert "hunter2" not in excinfo.value.message
    assert "ter2" not in excinfo.value.message


def test_a_refusal_names_address_folders_and_setting() -> None:
    with pytest.raises(InvalidRequest) as excinfo:
        AllowedAddresses.parse("file:///srv/exports, sftp://host/data", daemon="metad").check(
            "to", "sftp://me:hunter2@host/etc"
        )
    assert excinfo.value.message == (
        "to=sftp://***@host/etc: expected an address below one of file:///srv/exports, "
        "sftp://host/data, "
        "as listed in the setting allowed_addresses of metad"
    )
    with pytest.raises(
        InvalidRequest, match="setting allowed_addresses of storaged, which is empty"
    ):
        AllowedAddresses.parse("", daemon="storaged").check("from", "file:///srv/exports")


@pytest.mark.parametrize(
    "text",
    [
        text
        for text in HOSTILE
        if "::" in text or text.partition(":")[0] in ("memory", "ftp", "http", "gs", "dask", "data")
    ],
)
def test_no_setting_allows_another_protocol(text: str) -> None:
    with pytest.raises(InvalidRequest):
        AllowedAddresses.parse("*", daemon="metad").check("to", text)
    for settings in (MetadSettings, StoragedSettings):
        with pytest.raises(InvalidRequest, match="allowed_addresses="):
            settings(allowed_addresses=text)


def test_star_allows_everything_except_the_data_folder(tmp_path: Path) -> None:
    exports = tmp_path / "data/exports"
    allowed = AllowedAddresses.parse(
        "*", daemon="storaged", exports=exports, reserved=tmp_path / "data"
    )
    for text in ("s3://any/x", "sftp://any/x", f"file://{tmp_path}/out", f"file://{exports}/x"):
        assert str(allowed.check("to", text)) == text
    (tmp_path / "link").symlink_to(tmp_path / "data")
    for text in (
        f"file://{tmp_path}/data",
        f"file://{tmp_path}/data/spaces/1",
        f"file://{exports}/../spaces",
        f"file://{tmp_path}/link/spaces",
    ):
        with pytest.raises(InvalidRequest, match="outside of the data folder of this storaged"):
            allowed.check("to", text)


def test_a_job_writes_nothing_into_the_folder_of_its_process(tmp_path: Path) -> None:
    allowed = replace(
        AllowedAddresses.parse("*", daemon="metad", reserved=tmp_path / "data/metad"),
        host_folder=tmp_path / "data",
    )
    for text in (f"file://{tmp_path}/data", f"file://{tmp_path}/data/backups/1"):
        with pytest.raises(InvalidRequest, match=r"^to=.*outside of the data folder .*/data, whi"):
            allowed.check("to", text)
        assert str(allowed.check("from", text)) == text, "an older backup can be restored"
    for text in (f"file://{tmp_path}/data2", f"file://{tmp_path}", "s3://bucket/data"):
        assert str(allowed.check("to", text)) == text


def test_a_symbolic_link_does_not_lead_out_of_an_allowed_folder(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (root / "out").symlink_to(outside)
    (root / "in").symlink_to(root / "folder")
    (tmp_path / "named").symlink_to(root)
    (tmp_path / "back").symlink_to(root / "folder")
    allowed = AllowedAddresses.parse(f"file://{root}", daemon="storaged")
    assert str(allowed.check("to", f"file://{root}/in/x").resolved()) == f"file://{root}/folder/x"
    for path in (f"{root}/out", f"{root}/out/x", f"{root}/in/../../outside", f"{tmp_path}/back/x"):
        with pytest.raises(InvalidRequest, match="expected an address below"):
            allowed.check("to", f"file://{path}")
    by_link = AllowedAddresses.parse(f"file://{tmp_path}/named", daemon="storaged")
    assert str(by_link.check("to", f"file://{tmp_path}/named/x").resolved()) == f"file://{root}/x"


def test_storaged_allows_only_its_own_exports_by_default(tmp_path: Path) -> None:
    allowed = StoragedSettings(data=tmp_path).addresses()
    assert (
        str(allowed.check("to", f"file://{tmp_path}/exports/a")) == f"file://{tmp_path}/exports/a"
    )
    for text in (
        f"file://{tmp_path}/out",
        f"file://{tmp_path}/exports/../spaces",
        f"file://{tmp_path.parent}",
    ):
        with pytest.raises(InvalidRequest, match="allowed_addresses of storaged, which is empty"):
            allowed.check("to", text)
    (tmp_path / "exports").mkdir()
    (tmp_path / "exports/link").symlink_to(tmp_path)
    with pytest.raises(InvalidRequest):
        allowed.check("to", f"file://{tmp_path}/exports/link/x")


def test_secrets_are_not_part_of_an_allow_list() -> None:
    with pytest.raises(InvalidRequest, match="without a password") as excinfo:
        MetadSettings(allowed_addresses="sftp://me:hunter2@host/data")
    assert "hunter2" not in excinfo.value.message


# Jobs.


def desk_with_version(**settings: object) -> InProcessMetad:
    desk = InProcessMetad(**settings)
    desk.heartbeat("s1")
    desk.create()
    desk.load()
    desk.submit()
    desk.build("s1")
    return desk


def submit(desk: InProcessMetad, kind: str, **options: str) -> object:
    return desk.ask(
        "submit_job", metad_pb.SubmitJobRequest(space="graph", kind=kind, options=options)
    )


@pytest.mark.parametrize("kind", ["backup", "restore", "export-tables"])
def test_hostile_address_creates_no_job(kind: str) -> None:
    desk = desk_with_version(allowed_addresses=ROOTS)
    job_count = len(desk.ask("list_jobs", metad_pb.ListJobsRequest()).jobs)
    key = "from" if kind == "restore" else "to"
    required_options = {"sha256": "0" * 64} if kind == "restore" else {}
    for text in HOSTILE:
        with pytest.raises(InvalidRequest, match=rf"^{key}="):
            submit(desk, kind, **{key: text}, **required_options)
    for text in HOSTILE:
        if text:
            with pytest.raises(InvalidRequest, match=r"^from="):
                desk.ask(
                    "import_space",
                    metad_pb.ImportSpaceRequest(
                        name="copy", record=export_record(desk), address=text
                    ),
                )
    assert len(desk.ask("list_jobs", metad_pb.ListJobsRequest()).jobs) == job_count
    assert [space.name for space in desk.ask("list_spaces", common_pb.Empty()).spaces] == ["graph"]


def export_record(desk: InProcessMetad) -> metad_pb.SpaceRecord:
    record: metad_pb.SpaceRecord = desk.ask(
        "export_space", metad_pb.ExportSpaceRequest(space="graph")
    )
    return record


def test_job_address_is_denied_by_default_and_canonical() -> None:
    desk = desk_with_version()
    with pytest.raises(InvalidRequest, match="allowed_addresses of metad, which is empty"):
        submit(desk, "export-tables", to="file:///srv/exports")
    assert submit(desk, "export-tables")
    desk = desk_with_version(allowed_addresses=ROOTS)
    first, second = (
        desk.ask(
            "submit_job",
            metad_pb.SubmitJobRequest(space="graph", kind="backup", options={"to": to}),
        )
        for to in ("file:/srv/exports//a/", "local:///srv/exports/a")
    )
    assert (first.job_id, dict(first.options)) == (second.job_id, {"to": "file:///srv/exports/a"})
    (assignment,) = desk.poll("s1").task_assignments
    assert assignment.options["to"] == "file:///srv/exports/a"
    desk.heartbeat("s1", finished_report(assignment))


@pytest.mark.parametrize(
    ("given", "listen", "http_listen", "names", "setting"),
    [
        ([], "127.0.0.1:9669", "localhost:0", [], "file:///"),
        ([], "[::1]:9669", "127.1.2.3:0", [], "file:///"),
        ([], "0.0.0.0:9669", "127.0.0.1:0", [], ""),
        ([], "127.0.0.1:9669", "[::]:0", [], ""),
        ([], "127.0.0.1:9669", "graph.example.com:0", [], ""),
        ([], "127.0.0.1:9669", "127.0.0.1:0", ["graph.example.com"], ""),
        (["s3://bucket", "*"], "127.0.0.1:9669", "127.0.0.1:0", [], "s3://bucket,*"),
    ],
)
def test_a_served_folder_allows_local_folders_on_loopback(
    given: list[str], listen: str, http_listen: str, names: list[str], setting: str
) -> None:
    assert (
        allowed_addresses(given, listen=listen, http_listen=http_listen, http_names=names)
        == setting
    )


def test_an_address_names_its_field() -> None:
    with pytest.raises(InvalidRequest, match=r"^here='x': expected a protocol"):
        parse_address("x", field="here")
