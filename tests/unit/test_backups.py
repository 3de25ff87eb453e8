"""Backups without a network: addresses keep their secrets, records and streams notice what is altered, the catalog what it may."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from tests.kit.metad import Desk, edges

from asterism_proto.backups import PartRecord, Record
from asterism_proto.errors import Conflict, Corrupt, InvalidRequest, NotFound, NotReady
from asterism_proto.places import File, Place, redacted
from asterism_proto.schema import NodeType, Schema
from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.v1 import metad_pb2 as mpb
from storaged.archive.blocks import packed, unpacked
from storaged.store import graph
from storaged.store.graph import FAMILIES, Block, GraphStore
from storaged.store.memory import MemoryEngine

SCHEMA = Schema(node_types=(NodeType(name="a"),), parts=2)


# Addresses and records.


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("s3://bucket/folder", "s3://bucket/folder"),
        ("s3://key:hunter2@bucket/folder", "s3://***@bucket/folder"),
        ("can not open ftp://me:hunter2@host/x: refused", "can not open ftp://***@host/x: refused"),
        ("abfs://c@account/x?sv=1&sig=hunter2&x=2", "abfs://***@account/x?sv=1&sig=***&x=2"),
        ("http://host/x?access_token=hunter2", "http://host/x?access_token=***"),
        ("s3://key:hun/ter+2@bucket/folder: refused", "s3://***@bucket/folder: refused"),
        ("file:///srv/backups/me@home", "file:///srv/backups/me@home"),
    ],
)
def test_what_is_shown_of_an_address_has_no_secret(address: str, shown: str) -> None:
    assert redacted(address) == shown
    assert redacted(shown) == shown


def test_an_address_of_no_protocol_or_of_one_that_is_not_installed_is_refused_without_its_secret() -> None:
    # A secret may have slashes in it. Object stores take what is before the @ for a bucket's name; memory does as they do.
    for address in ("nosuch://me:hunter2@host/x", "nosuch://me:hun/hunter2@host/x", "memory://me:hun/hunter2@host/x"):
        with pytest.raises(InvalidRequest) as refused:
            Place(address)
        assert "hun" not in refused.value.message


@pytest.mark.parametrize("kind", ["file", "memory"])
def test_files_are_read_as_they_were_written_or_not_at_all(kind: str, tmp_path: Path) -> None:
    place = Place(f"file://{tmp_path}/deep/er" if kind == "file" else "memory://test-backups/deep")
    pieces = [b"a" * 1000, b"", b"b" * 3_000_000]
    file = place.write("parts/p00000/x.bin", pieces)
    assert (file.bytes, place.size("parts/p00000/x.bin")) == (3_001_000, 3_001_000)
    assert b"".join(place.pieces(file)) == b"".join(pieces)
    with pytest.raises(Corrupt, match=r"parts/p00000/x\.bin"):
        list(place.pieces(dataclasses.replace(file, sha256="0" * 64)))
    with pytest.raises(Corrupt, match=r"parts/y\.bin: missing"):
        list(place.pieces(dataclasses.replace(file, path="parts/y.bin")))
    small = place.put("small", b"content")
    assert place.whole(small) == place.read("small") == b"content"
    assert place.size("nothing") is None
    with pytest.raises(NotFound, match="nothing"):
        place.read("nothing")


def test_records_are_read_as_they_were_written_and_refused_when_torn() -> None:
    files = (File(path="catalog.pb", bytes=3, sha256="ab"), File(path="parts/p00001/image/x", bytes=4, sha256="cd"))
    record = Record(space="s", version=3, digest="d", cut=7, parts=2, created_ms=1, files=files)
    part = PartRecord(part=1, cut=7, image="i", files=files[1:])
    assert Record.of(record.to_bytes()) == record
    assert PartRecord.of(part.to_bytes()) == part
    assert record.of_part(1) == [files[1]]
    for torn in (record.to_bytes()[:-5], b"[]", record.to_bytes().replace(b'"cut"', b'"cud"')):
        with pytest.raises(Corrupt):
            Record.of(torn)
    with pytest.raises(InvalidRequest, match="format 2"):
        Record.of(record.to_bytes().replace(b'"format": 1', b'"format": 2'))
    with pytest.raises(Corrupt, match="below the folder"):
        Record.of(record.to_bytes().replace(b"catalog.pb", b"../etc/secret"))


# Blocks.


def filled() -> GraphStore:
    store = GraphStore(MemoryEngine(FAMILIES), SCHEMA)
    for load, part in ((3, 0), (3, 1), (5, 0), (9, 0)):
        arrays = {"ids": load * 1000 + part + 2 * np.arange(400), "f:x": np.full((400, 900), load, np.float32)}
        store.write([Block(load_id=load, chunk=2, kind=graph.NODES, type_id=0, part=part, arrays=arrays)])
    store.write([Block(load_id=5, chunk=3, kind=graph.NODE_DELETES, type_id=0, part=0, arrays={"ids": np.array([3002])})])
    return store


def test_blocks_go_to_another_store_under_the_ids_of_its_loads_and_leave_later_loads_behind() -> None:
    source, commits = filled(), {3: 1, 5: 2}
    rows, size = source.extent(0, commits)
    assert rows == 400 * 2 * 2 + 1  # ids, and features beside ids of their own
    stream = list(packed(source.kept(0, commits), commits))
    assert size < sum(map(len, stream)) < 2 * size
    target = GraphStore(MemoryEngine(FAMILIES), SCHEMA)
    for _ in range(2):  # a second attempt changes nothing
        target.adopt(unpacked(stream, {1: 70, 2: 60}, 0))
    for kinds in ((graph.NODES,), (graph.NODE_DELETES,), (graph.NODES | 0x80,)):
        there = [source.read(ref) for ref in source.refs(0, kinds, 0, (3, 5))]
        here = [target.read(ref) for ref in target.refs(0, kinds, 0, (70, 60))]
        assert len(there) == len(here) > 0
        for a, b in zip(there, here, strict=True):
            assert {name: (v.dtype, v.tolist()) for name, v in a.items()} == {name: (v.dtype, v.tolist()) for name, v in b.items()}
    assert target.exists(0, np.array([3000, 3002, 5000, 9000]), 0, (70, 60)).tolist() == [1, 0, 1, 0]
    assert target.extent(1, {70: 1, 60: 2}) == (0, 0)


def test_a_stream_that_is_cut_off_altered_or_of_another_part_is_refused() -> None:
    source, commits = filled(), {3: 1, 5: 2}
    whole = b"".join(packed(source.kept(0, commits), commits))
    target = GraphStore(MemoryEngine(FAMILIES), SCHEMA)
    altered = bytearray(whole)
    altered[len(whole) // 2] ^= 1
    for pieces, loads, part in (
        ([whole[:-1]], {1: 7, 2: 8}, 0),
        ([whole[: len(whole) // 3]], {1: 7, 2: 8}, 0),
        ([whole, b"more"], {1: 7, 2: 8}, 0),
        ([bytes(altered)], {1: 7, 2: 8}, 0),
        ([whole], {1: 7}, 0),
        ([whole], {1: 7, 2: 8}, 1),
    ):
        with pytest.raises(Corrupt):
            target.adopt(unpacked(pieces, loads, part))


# The catalog.


def built(desk: Desk) -> pb.Manifest:
    """A space with two committed loads of ten edges each, the first of them published."""
    for uuid in ("s1", "s2"):
        desk.beat(uuid)
    desk.create()
    for key in ("first", "second"):
        load = desk.begin(resume_key=key, source=f"{key}.csv")
        desk.ask("register_chunks", mpb.RegisterChunksRequest(load_id=load.load_id, chunks=[edges(0, 10)], written=[0]))
        desk.ask("commit_load", mpb.CommitLoadRequest(load_id=load.load_id))
        if key == "first":
            desk.submit()
            desk.build("s1", "s2")
    manifest: pb.Manifest = desk.ask("get_manifest", mpb.ManifestRequest(space="graph"))
    return manifest


def record_of(desk: Desk) -> mpb.SpaceRecord:
    record: mpb.SpaceRecord = desk.ask("export_space", mpb.ExportSpaceRequest(space="graph"))
    return record


def restored(record: mpb.SpaceRecord) -> Desk:
    """Another metad, with ids of its own, that was given a record."""
    desk = Desk(uuid="m2", allowed_addresses="*")
    desk.beat("t1")
    desk.create("other")
    desk.begin("other")
    desk.ask("import_space", mpb.ImportSpaceRequest(name="copy", record=record))
    return desk


SHA = "0" * 64


def submit(desk: Desk, kind: str = "restore") -> pb.Job:
    options = {"from": "sftp://key:hunter2@host/x", "sha256": SHA} if kind == "restore" else {}
    job: pb.Job = desk.ask("submit_job", mpb.SubmitJobRequest(space="copy", kind=kind, options=options))
    return job


def test_a_record_has_what_the_version_shows_and_numbers_that_are_not_given_again() -> None:
    desk = Desk(allowed_addresses="*")
    manifest = built(desk)
    record = record_of(desk)
    assert [(load.resume_key, load.commit, len(load.chunks)) for load in record.loads] == [("first", 1, 1)]
    assert (record.manifest.digest, record.last_commit, list(record.next_edge_ids)) == (manifest.digest, 2, [20, 0])


def test_a_space_made_of_a_record_takes_nothing_but_its_restore_and_then_goes_on_where_the_record_was() -> None:
    source = Desk(allowed_addresses="*")
    manifest = built(source)
    desk = restored(record_of(source))
    with pytest.raises(NotReady, match="being restored to version 1"):
        desk.begin("copy")
    for kind in ("build", "compact"):
        with pytest.raises(NotReady, match="being restored"):
            submit(desk, kind)
    with pytest.raises(InvalidRequest, match="'sha256' is missing"):
        desk.ask("submit_job", mpb.SubmitJobRequest(space="copy", kind="restore", options={"from": "s3://b/x"}))
    job = submit(desk)
    assert "hunter2" not in str(job)
    assert "hunter2" not in str(desk.ask("list_jobs", mpb.ListJobsRequest()))
    desk = Desk(desk.store, uuid="m2", allowed_addresses="*")  # killed: nothing is forgotten
    desk.beat("t1", incarnation=2)
    (order,) = desk.poll("t1", incarnation=2).orders
    assert (order.options["from"], list(order.commits), order.manifest.digest) == ("sftp://key:hunter2@host/x", [1], manifest.digest)
    desk.beat(
        "t1",
        mpb.TaskReport(task_id=order.task_id, attempt=order.attempt, state=pb.FINISHED, totals=manifest.totals, images=manifest.images),
        incarnation=2,
    )
    found = desk.ask("get_manifest", mpb.ManifestRequest(space="copy"))
    assert (found.digest, found.version, found.cut, found.created_ms) == (manifest.digest, 1, 1, manifest.created_ms)
    assert (found.space_id, found.job_id, found.origin_space_id, found.origin_job_id) == (2, job.job_id, 1, manifest.job_id)
    again = desk.ask("export_space", mpb.ExportSpaceRequest(space="copy"))
    assert again.manifest == manifest
    known = desk.begin("copy", resume_key="first", source="first.csv")
    assert (known.state, known.commit, known.chunks[0].rows) == (mpb.COMMITTED, 1, 10)
    load = desk.begin("copy")
    chunks = desk.ask("register_chunks", mpb.RegisterChunksRequest(load_id=load.load_id, chunks=[edges(0, 5)], written=[0])).chunks
    assert (load.load_id, chunks[0].base) == (known.load_id + 1, 20)
    assert desk.ask("commit_load", mpb.CommitLoadRequest(load_id=load.load_id)).commit == 3
    with pytest.raises(Conflict, match="waits for no data"):
        submit(desk)
    assert submit(desk, "build").cut == 3


def test_what_a_storaged_says_of_an_address_is_kept_without_its_secret(caplog: pytest.LogCaptureFixture) -> None:
    source = Desk(allowed_addresses="*")
    built(source)
    job = source.ask("submit_job", mpb.SubmitJobRequest(space="graph", kind="backup", options={"to": "sftp://key:hunter2@host/x"}))
    for uuid in ("s1", "s2"):
        for order in source.poll(uuid).orders:
            cause = f"{order.options['to']}/parts: refused"
            source.beat(uuid, mpb.TaskReport(task_id=order.task_id, attempt=order.attempt, state=pb.FAILED, cause=cause, permanent=True))
    told = source.job(job.job_id)
    assert told.ending == pb.FAILED
    assert "sftp://***@host/x/parts: refused" in told.cause
    assert "hunter2" not in str(told) + "".join(str(vars(record)) for record in caplog.records)
    assert any("refused" in str(vars(record)) for record in caplog.records)


def test_a_record_is_taken_once_under_a_name_and_again_only_while_the_space_waits() -> None:
    source = Desk(allowed_addresses="*")
    built(source)
    record = record_of(source)
    desk = restored(record)
    again = desk.ask("import_space", mpb.ImportSpaceRequest(name="copy", record=record))
    assert again.space_id == 2
    with pytest.raises(Conflict, match="exists already"):
        desk.ask("import_space", mpb.ImportSpaceRequest(name="other", record=record))
    desk.ask("drop_space", mpb.DropSpaceRequest(space="copy"))
    assert desk.ask("import_space", mpb.ImportSpaceRequest(name="copy", record=record)).space_id == 3
    assert not list(desk.store.range(b"1/restore/" + b"%020d" % 2))


def test_a_record_that_does_not_fit_together_is_refused() -> None:
    source = Desk(allowed_addresses="*")
    built(source)
    for spoil, error in (
        (lambda r: setattr(r.manifest, "cut", 9), Corrupt),
        (lambda r: setattr(r.loads[0], "commit", 2), InvalidRequest),
        (lambda r: setattr(r, "last_commit", 0), InvalidRequest),
        (lambda r: r.next_edge_ids.pop(), InvalidRequest),
        (lambda r: setattr(r.loads[0], "state", mpb.OPEN), InvalidRequest),
    ):
        record = record_of(source)
        spoil(record)
        with pytest.raises(error):
            restored(record)
