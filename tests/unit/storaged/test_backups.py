"""Tests of backups without a network.

Addresses hide their secrets, manifests and streams detect changes, and the catalog restores
records.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from tests.kit.metad import InProcessMetad, edge_chunk

from asterism_io.remote_storage import RemoteFolder, StoredFile, redact
from asterism_model.backup_manifest import BackupManifest, PartManifest
from asterism_model.schema import NodeType, Schema
from asterism_proto.errors import Conflict, Corrupt, InvalidRequest, NotFound, NotReady
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from storaged.backup.blocks import decode_stream, encode_stream
from storaged.store import block_store
from storaged.store.block_store import FAMILIES, Block, BlockStore
from storaged.store.memory_engine import MemoryEngine

SCHEMA = Schema(node_types=(NodeType(name="a"),), parts=2)


# Addresses and records.


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("s3://bucket/folder", "s3://bucket/folder"),
        ("s3://key:hunter2@bucket/folder", "s3://***@bucket/folder"),
        ("cannot open ftp://me:hunter2@host/x: refused", "cannot open ftp://***@host/x: refused"),
        ("abfs://c@account/x?sv=1&sig=hunter2&x=2", "abfs://***@account/x?sv=1&sig=***&x=2"),
        ("http://host/x?access_token=hunter2", "http://host/x?access_token=***"),
        ("s3://key:hun/ter+2@bucket/folder: refused", "s3://***@bucket/folder: refused"),
        ("file:///srv/backups/me@home", "file:///srv/backups/me@home"),
    ],
)
def test_displayed_address_has_no_secret(address: str, shown: str) -> None:
    assert redact(address) == shown
    assert redact(shown) == shown


def test_unsupported_address_is_refused_without_its_secret() -> None:
    # A secret may contain slashes. Object stores take the text before the @ for a bucket's name;
    # memory behaves alike.
    for address in (
        "nosuch://me:hunter2@host/x",
        "nosuch://me:hun/hunter2@host/x",
        "memory://me:hun/hunter2@host/x",
    ):
        with pytest.raises(InvalidRequest) as excinfo:
            RemoteFolder(address)
        assert "hun" not in excinfo.value.message


@pytest.mark.parametrize("kind", ["file", "memory"])
def test_files_round_trip_and_altered_ones_are_corrupt(kind: str, tmp_path: Path) -> None:
    remote_folder = RemoteFolder(
        f"file://{tmp_path}/deep/er" if kind == "file" else "memory://test-backups/deep"
    )
    pieces = [b"a" * 1000, b"", b"b" * 3_000_000]
    file = remote_folder.write("parts/p00000/x.bin", pieces)
    assert (file.bytes, remote_folder.size("parts/p00000/x.bin")) == (3_001_000, 3_001_000)
    assert b"".join(remote_folder.read_pieces(file)) == b"".join(pieces)
    with pytest.raises(Corrupt, match=r"parts/p00000/x\.bin"):
        list(remote_folder.read_pieces(dataclasses.replace(file, sha256="0" * 64)))
    with pytest.raises(Corrupt, match=r"parts/y\.bin: missing"):
        list(remote_folder.read_pieces(dataclasses.replace(file, path="parts/y.bin")))
    small = remote_folder.put("small", b"content")
    assert remote_folder.read_file(small) == remote_folder.read("small") == b"content"
    assert remote_folder.size("nothing") is None
    with pytest.raises(NotFound, match="nothing"):
        remote_folder.read("nothing")


def test_records_round_trip_and_torn_ones_are_refused() -> None:
    files = (
        StoredFile(path="catalog.pb", bytes=3, sha256="ab"),
        StoredFile(path="parts/p00001/image/x", bytes=4, sha256="cd"),
    )
    record = BackupManifest(
        space="s", version=3, digest="d", watermark=7, parts=2, created_ms=1, files=files
    )
    part = PartManifest(part=1, watermark=7, image="i", files=files[1:])
    assert BackupManifest.from_bytes(record.to_bytes()) == record
    assert PartManifest.from_bytes(part.to_bytes()) == part
    assert record.files_of_part(1) == [files[1]]
    for torn in (record.to_bytes()[:-5], b"[]", record.to_bytes().replace(b'"cut"', b'"cud"')):
        with pytest.raises(Corrupt):
            BackupManifest.from_bytes(torn)
    with pytest.raises(InvalidRequest, match="format 2"):
        BackupManifest.from_bytes(record.to_bytes().replace(b'"format": 1', b'"format": 2'))
    with pytest.raises(Corrupt, match="below the folder"):
        BackupManifest.from_bytes(record.to_bytes().replace(b"catalog.pb", b"../etc/secret"))


# Blocks.


def filled_store() -> BlockStore:
    store = BlockStore(MemoryEngine(FAMILIES), SCHEMA)
    for load, part in ((3, 0), (3, 1), (5, 0), (9, 0)):
        arrays = {
            "ids": load * 1000 + part + 2 * np.arange(400),
            "f:x": np.full((400, 900), load, np.float32),
        }
        store.write(
            [
                Block(
                    load_id=load,
                    chunk=2,
                    kind=block_store.NODES,
                    type_id=0,
                    part=part,
                    arrays=arrays,
                )
            ]
        )
    store.write(
        [
            Block(
                load_id=5,
                chunk=3,
                kind=block_store.NODE_DELETES,
                type_id=0,
                part=0,
                arrays={"ids": np.array([3002])},
            )
        ]
    )
    return store


def test_blocks_move_under_new_load_ids_without_later_loads() -> None:
    source, commits = filled_store(), {3: 1, 5: 2}
    rows, size = source.rows_and_bytes(0, commits)
    assert rows == 400 * 2 * 2 + 1  # ids, and features with their own ids
    stream = list(encode_stream(source.stored_values(0, commits), commits))
    assert size < sum(map(len, stream)) < 2 * size
    target = BlockStore(MemoryEngine(FAMILIES), SCHEMA)
    for _ in range(2):  # a second attempt changes nothing
        target.import_values(decode_stream(stream, {1: 70, 2: 60}, 0))
    for kinds in ((block_store.NODES,), (block_store.NODE_DELETES,), (block_store.NODES | 0x80,)):
        source_blocks = [source.read(ref) for ref in source.refs(0, kinds, 0, (3, 5))]
        target_blocks = [target.read(ref) for ref in target.refs(0, kinds, 0, (70, 60))]
        assert len(source_blocks) == len(target_blocks) > 0
        for a, b in zip(source_blocks, target_blocks, strict=True):
            assert {name: (v.dtype, v.tolist()) for name, v in a.items()} == {
                name: (v.dtype, v.tolist()) for name, v in b.items()
            }
    assert target.exists(0, np.array([3000, 3002, 5000, 9000]), 0, (70, 60)).tolist() == [
        1,
        0,
        1,
        0,
    ]
    assert target.rows_and_bytes(1, {70: 1, 60: 2}) == (0, 0)


def test_truncated_altered_or_foreign_stream_is_refused() -> None:
    source, commits = filled_store(), {3: 1, 5: 2}
    stream_bytes = b"".join(encode_stream(source.stored_values(0, commits), commits))
    target = BlockStore(MemoryEngine(FAMILIES), SCHEMA)
    altered = bytearray(stream_bytes)
    altered[len(stream_bytes) // 2] ^= 1
    for pieces, loads, part in (
        ([stream_bytes[:-1]], {1: 7, 2: 8}, 0),
        ([stream_bytes[: len(stream_bytes) // 3]], {1: 7, 2: 8}, 0),
        ([stream_bytes, b"more"], {1: 7, 2: 8}, 0),
        ([bytes(altered)], {1: 7, 2: 8}, 0),
        ([stream_bytes], {1: 7}, 0),
        ([stream_bytes], {1: 7, 2: 8}, 1),
    ):
        with pytest.raises(Corrupt):
            target.import_values(decode_stream(pieces, loads, part))


# The catalog.


def build_space(desk: InProcessMetad) -> common_pb.Manifest:
    """Create a space with two committed loads of ten edges each; publish the first one."""
    for uuid in ("s1", "s2"):
        desk.heartbeat(uuid)
    desk.create()
    for key in ("first", "second"):
        load = desk.begin(resume_key=key, source=f"{key}.csv")
        desk.ask(
            "register_chunks",
            metad_pb.RegisterChunksRequest(
                load_id=load.load_id, chunks=[edge_chunk(0, 10)], written=[0]
            ),
        )
        desk.ask("commit_load", metad_pb.CommitLoadRequest(load_id=load.load_id))
        if key == "first":
            desk.submit()
            desk.build("s1", "s2")
    manifest: common_pb.Manifest = desk.ask("get_manifest", metad_pb.ManifestRequest(space="graph"))
    return manifest


def export_record(desk: InProcessMetad) -> metad_pb.SpaceRecord:
    record: metad_pb.SpaceRecord = desk.ask(
        "export_space", metad_pb.ExportSpaceRequest(space="graph")
    )
    return record


def desk_from_record(record: metad_pb.SpaceRecord) -> InProcessMetad:
    """Return another metad, with its own ids, that restored a record."""
    desk = InProcessMetad(uuid="m2", allowed_addresses="*")
    desk.heartbeat("t1")
    desk.create("other")
    desk.begin("other")
    desk.ask("import_space", metad_pb.ImportSpaceRequest(name="copy", record=record))
    return desk


SHA = "0" * 64


def submit(desk: InProcessMetad, kind: str = "restore") -> common_pb.Job:
    options = {"from": "sftp://key:hunter2@host/x", "sha256": SHA} if kind == "restore" else {}
    job: common_pb.Job = desk.ask(
        "submit_job", metad_pb.SubmitJobRequest(space="copy", kind=kind, options=options)
    )
    return job


def test_record_has_the_loads_of_its_version_and_used_ids() -> None:
    desk = InProcessMetad(allowed_addresses="*")
    manifest = build_space(desk)
    record = export_record(desk)
    assert [(load.resume_key, load.commit, len(load.chunks)) for load in record.loads] == [
        ("first", 1, 1)
    ]
    assert (record.manifest.digest, record.last_commit, list(record.next_edge_ids)) == (
        manifest.digest,
        2,
        [20, 0],
    )


def test_imported_space_accepts_only_its_restore_then_continues() -> None:
    source = InProcessMetad(allowed_addresses="*")
    manifest = build_space(source)
    desk = desk_from_record(export_record(source))
    with pytest.raises(NotReady, match="being restored to version 1"):
        desk.begin("copy")
    for kind in ("build", "compact"):
        with pytest.raises(NotReady, match="being restored"):
            submit(desk, kind)
    with pytest.raises(InvalidRequest, match="'sha256' is missing"):
        desk.ask(
            "submit_job",
            metad_pb.SubmitJobRequest(space="copy", kind="restore", options={"from": "s3://b/x"}),
        )
    job = submit(desk)
    assert "hunter2" not in str(job)
    assert "hunter2" not in str(desk.ask("list_jobs", metad_pb.ListJobsRequest()))
    desk = InProcessMetad(desk.store, uuid="m2", allowed_addresses="*")  # killed: no state is lost
    desk.heartbeat("t1", incarnation=2)
    (assignment,) = desk.poll("t1", incarnation=2).task_assignments
    assert (assignment.options["from"], list(assignment.commits), assignment.manifest.digest) == (
        "sftp://key:hunter2@host/x",
        [1],
        manifest.digest,
    )
    desk.heartbeat(
        "t1",
        metad_pb.TaskReport(
            task_id=assignment.task_id,
            attempt=assignment.attempt,
            state=common_pb.FINISHED,
            totals=manifest.totals,
            images=manifest.images,
        ),
        incarnation=2,
    )
    restored_manifest = desk.ask("get_manifest", metad_pb.ManifestRequest(space="copy"))
    assert (
        restored_manifest.digest,
        restored_manifest.version,
        restored_manifest.watermark,
        restored_manifest.created_ms,
    ) == (manifest.digest, 1, 1, manifest.created_ms)
    assert (
        restored_manifest.space_id,
        restored_manifest.job_id,
        restored_manifest.origin_space_id,
        restored_manifest.origin_job_id,
    ) == (2, job.job_id, 1, manifest.job_id)
    record = desk.ask("export_space", metad_pb.ExportSpaceRequest(space="copy"))
    assert record.manifest == manifest
    known_load = desk.begin("copy", resume_key="first", source="first.csv")
    assert (known_load.state, known_load.commit, known_load.chunks[0].rows) == (
        metad_pb.COMMITTED,
        1,
        10,
    )
    load = desk.begin("copy")
    chunks = desk.ask(
        "register_chunks",
        metad_pb.RegisterChunksRequest(
            load_id=load.load_id, chunks=[edge_chunk(0, 5)], written=[0]
        ),
    ).chunks
    assert (load.load_id, chunks[0].first_edge_id) == (known_load.load_id + 1, 20)
    assert desk.ask("commit_load", metad_pb.CommitLoadRequest(load_id=load.load_id)).commit == 3
    with pytest.raises(Conflict, match="is not a new space for a restore"):
        submit(desk)
    assert submit(desk, "build").watermark == 3


def test_failure_cause_is_stored_without_address_secrets(caplog: pytest.LogCaptureFixture) -> None:
    source = InProcessMetad(allowed_addresses="*")
    build_space(source)
    job = source.ask(
        "submit_job",
        metad_pb.SubmitJobRequest(
            space="graph", kind="backup", options={"to": "sftp://key:hunter2@host/x"}
        ),
    )
    for uuid in ("s1", "s2"):
        for assignment in source.poll(uuid).task_assignments:
            cause = f"{assignment.options['to']}/parts: refused"
            source.heartbeat(
                uuid,
                metad_pb.TaskReport(
                    task_id=assignment.task_id,
                    attempt=assignment.attempt,
                    state=common_pb.FAILED,
                    cause=cause,
                    permanent=True,
                ),
            )
    failed_job = source.job(job.job_id)
    assert failed_job.ending == common_pb.FAILED
    assert "sftp://***@host/x/parts: refused" in failed_job.cause
    assert "hunter2" not in str(failed_job) + "".join(
        str(vars(record)) for record in caplog.records
    )
    assert any("refused" in str(vars(record)) for record in caplog.records)


def test_import_may_be_repeated_while_the_space_is_pending() -> None:
    source = InProcessMetad(allowed_addresses="*")
    build_space(source)
    record = export_record(source)
    desk = desk_from_record(record)
    repeated = desk.ask("import_space", metad_pb.ImportSpaceRequest(name="copy", record=record))
    assert repeated.space_id == 2
    with pytest.raises(Conflict, match="exists already"):
        desk.ask("import_space", metad_pb.ImportSpaceRequest(name="other", record=record))
    desk.ask("drop_space", metad_pb.DropSpaceRequest(space="copy"))
    assert (
        desk.ask("import_space", metad_pb.ImportSpaceRequest(name="copy", record=record)).space_id
        == 3
    )
    assert not list(desk.store.range(b"1/restore/" + b"%020d" % 2))


def test_inconsistent_record_is_refused() -> None:
    source = InProcessMetad(allowed_addresses="*")
    build_space(source)
    for corrupt, error in (
        (lambda r: setattr(r.manifest, "watermark", 9), Corrupt),
        (lambda r: setattr(r.loads[0], "commit", 2), InvalidRequest),
        (lambda r: setattr(r, "last_commit", 0), InvalidRequest),
        (lambda r: r.next_edge_ids.pop(), InvalidRequest),
        (lambda r: setattr(r.loads[0], "state", metad_pb.OPEN), InvalidRequest),
    ):
        record = export_record(source)
        corrupt(record)
        with pytest.raises(error):
            desk_from_record(record)
