"""Tests of loads through the handlers over the memory store.

They cover chunks, edge ids, resumption and commits.
"""

from __future__ import annotations

import pytest
from tests.kit.metad import InProcessMetad, edge_chunk, node_chunk

from asterism_proto.errors import Conflict, Corrupt, InvalidRequest, NotFound
from asterism_proto.v1 import metad_pb2 as metad_pb


@pytest.fixture
def metad() -> InProcessMetad:
    metad = InProcessMetad()
    for uuid in ("s2", "s1", "s3"):
        metad.heartbeat(uuid)
    return metad


def test_edge_ids_follow_chunk_order_per_type_across_loads(metad: InProcessMetad) -> None:
    metad.create()
    load = metad.begin()
    chunks = metad.register(
        load, node_chunk(0, 5), edge_chunk(1, 10), edge_chunk(2, 7, type_id=1), edge_chunk(3, 4)
    )
    assert [chunk.first_edge_id for chunk in chunks] == [0, 0, 0, 10]
    assert (
        metad.register(metad.begin(), edge_chunk(0, 1), edge_chunk(1, 1, type_id=1))[
            0
        ].first_edge_id
        == 14
    )
    assert (
        metad.register(metad.begin(), edge_chunk(0, 1), edge_chunk(1, 1, type_id=1))[
            1
        ].first_edge_id
        == 8
    )


def test_same_chunk_keeps_its_base_and_reports_if_written(metad: InProcessMetad) -> None:
    metad.create()
    load = metad.begin()
    first = metad.register(load, edge_chunk(0), edge_chunk(1))
    again = metad.register(load, edge_chunk(0), edge_chunk(1), written=[1])
    assert [chunk.first_edge_id for chunk in again] == [chunk.first_edge_id for chunk in first]
    assert [chunk.written for chunk in again] == [False, True]
    assert [chunk.written for chunk in metad.register(load, edge_chunk(1))] == [True]


def test_registered_chunk_refuses_other_content(metad: InProcessMetad) -> None:
    """An interrupted chunk may have blocks in partitions that other content would not touch."""
    metad.create()
    load = metad.begin()
    metad.register(load, edge_chunk(0), edge_chunk(1), written=[0])
    for index in (0, 1):
        for other in (
            edge_chunk(index, digest="other"),
            edge_chunk(index, rows=11),
            node_chunk(index),
            edge_chunk(index, type_id=1),
        ):
            with pytest.raises(
                Conflict, match=rf"chunk {index} .* the source has changed since; abandon the load"
            ):
                metad.register(load, other)
    assert [
        chunk.first_edge_id
        for chunk in metad.register(load, edge_chunk(0), edge_chunk(1), edge_chunk(2))
    ] == [0, 10, 20]


def test_refused_call_registers_no_chunk(metad: InProcessMetad) -> None:
    metad.create()
    load = metad.begin()
    with pytest.raises(InvalidRequest, match="chunk 1: edge type 2"):
        metad.register(load, edge_chunk(0), edge_chunk(1, type_id=2))
    with pytest.raises(InvalidRequest, match="chunk 7 of load 1 is reported as written"):
        metad.register(load, edge_chunk(0), written=[7])
    assert list(metad.ask("get_load", metad_pb.LoadRequest(load_id=1)).chunks) == []
    assert metad.register(load, edge_chunk(0))[0].first_edge_id == 0


@pytest.mark.parametrize(
    ("chunk", "words"),
    [
        (metad_pb.Chunk(index=4, type_id=0, rows=1, digest="d"), "chunk 4: element 0"),
        (node_chunk(4, type_id=2), "chunk 4: node type 2"),
        (edge_chunk(4, rows=-1), "chunk 4: rows=-1"),
        (edge_chunk(4, digest=""), "chunk 4: expected a digest"),
        (edge_chunk(4, rows=1 << 62), "exceed the limit of 2\\^62"),
    ],
)
def test_invalid_chunk_is_refused_with_its_number(
    metad: InProcessMetad, chunk: metad_pb.Chunk, words: str
) -> None:
    metad.create()
    with pytest.raises(InvalidRequest, match=words):
        metad.register(metad.begin(), chunk)


def test_open_load_is_resumed_by_key_within_its_space(metad: InProcessMetad) -> None:
    metad.create()
    metad.create("other")
    load = metad.begin(resume_key="papers.csv")
    metad.register(load, edge_chunk(0), edge_chunk(1), written=[0])
    resumed = metad.begin(resume_key="papers.csv")
    assert resumed.load_id == load.load_id
    assert [(chunk.index, chunk.written) for chunk in resumed.chunks] == [(0, True), (1, False)]
    assert metad.begin("other", resume_key="papers.csv").load_id != load.load_id
    assert metad.begin(resume_key="").load_id != metad.begin(resume_key="").load_id
    metad.commit(load, 1)
    assert metad.begin(resume_key="papers.csv", source="changed").load_id != load.load_id


def test_committed_load_is_found_by_key_and_source(metad: InProcessMetad) -> None:
    metad.create()
    metad.create("other")
    load = metad.begin(resume_key="papers.csv", source="12 rows")
    metad.register(load, edge_chunk(0), written=[0])
    commit = metad.commit(load).commit
    for instance in (metad, InProcessMetad(metad.store)):
        resumed = instance.begin(resume_key="papers.csv", source="12 rows")
        assert (resumed.load_id, resumed.state, resumed.commit) == (
            load.load_id,
            metad_pb.COMMITTED,
            commit,
        )
        assert [chunk.written for chunk in resumed.chunks] == [True]
        assert instance.commit(resumed).commit == commit
    assert metad.begin("other", resume_key="papers.csv", source="12 rows").load_id != load.load_id
    for key, source in (("", "12 rows"), ("papers.csv", "13 rows"), ("paper.csv", "12 rows")):
        fresh = metad.begin(resume_key=key, source=source)
        assert (fresh.load_id != load.load_id, fresh.state) == (True, metad_pb.OPEN)
    assert metad.begin(resume_key="papers.csv", source="12 rows").load_id == load.load_id, (
        "another source under way hides what is committed"
    )
    metad.ask("drop_space", metad_pb.DropSpaceRequest(space="graph"))
    metad.create()
    assert metad.begin(resume_key="papers.csv", source="12 rows").state == metad_pb.OPEN


def test_resumed_load_is_committed_under_its_latest_source(metad: InProcessMetad) -> None:
    metad.create()
    load = metad.begin(resume_key="papers.csv", source="before")
    assert metad.begin(resume_key="papers.csv", source="after").load_id == load.load_id
    metad.commit(load)
    restarted = InProcessMetad(metad.store)
    assert restarted.begin(resume_key="papers.csv", source="after").load_id == load.load_id
    assert restarted.begin(resume_key="papers.csv", source="before").load_id != load.load_id


def test_abandoned_load_is_not_resumed(metad: InProcessMetad) -> None:
    metad.create()
    load = metad.begin(resume_key="papers.csv")
    metad.ask("abandon_load", metad_pb.LoadRequest(load_id=load.load_id))
    assert metad.begin(resume_key="papers.csv").load_id != load.load_id


def test_commit_names_first_unwritten_chunk_and_numbers_grow(metad: InProcessMetad) -> None:
    metad.create()
    metad.create("other")
    load = metad.begin()
    metad.register(load, edge_chunk(0), edge_chunk(5), edge_chunk(3), written=[0])
    with pytest.raises(InvalidRequest, match="have not written chunk 3 yet"):
        metad.commit(load, 5)
    assert metad.commit(load, 3, 5).commit == 1
    assert metad.commit(load).commit == 1
    assert (metad.load(), metad.load("other"), metad.load()) == (2, 1, 3)


def test_load_stays_open_until_later_deletes_are_settled(metad: InProcessMetad) -> None:
    metad.create()
    first, second, third = (metad.begin().load_id for _ in range(3))

    def commit(instance: InProcessMetad, load_id: int, **fields: int | bool) -> metad_pb.Load:
        reply: metad_pb.Load = instance.ask(
            "commit_load", metad_pb.CommitLoadRequest(load_id=load_id, **fields)
        )
        return reply

    assert commit(metad, first, deletes=True).commit == 1
    for instance in (metad, InProcessMetad(metad.store)):
        unsettled = commit(instance, second)
        assert (unsettled.state, unsettled.commit) == (metad_pb.OPEN, 0)
    assert commit(metad, second, resolved_commit=1).commit == 2
    assert commit(metad, third, resolved_commit=1).commit == 3


def test_committed_load_refuses_chunks_and_abandonment(metad: InProcessMetad) -> None:
    metad.create()
    load = metad.begin()
    metad.register(load, edge_chunk(0), written=[0])
    metad.commit(load)
    assert metad.register(load, edge_chunk(0))[0].written
    with pytest.raises(Conflict, match="is committed"):
        metad.register(load, edge_chunk(1))
    with pytest.raises(Conflict, match="cannot be abandoned"):
        metad.ask("abandon_load", metad_pb.LoadRequest(load_id=load.load_id))


def test_abandoned_load_is_announced_and_closed(metad: InProcessMetad) -> None:
    metad.create()
    load, open_load = metad.begin(), metad.begin()
    metad.register(load, edge_chunk(0))
    before = metad.poll("s1")
    assert list(before.open_loads) == [load.load_id, open_load.load_id]
    for _ in range(2):
        assert (
            metad.ask("abandon_load", metad_pb.LoadRequest(load_id=load.load_id)).state
            == metad_pb.ABANDONED
        )
    after = metad.poll("s1", known_revision=before.revision, wait_s=5)
    assert (list(after.open_loads), list(after.abandoned_loads)) == (
        [open_load.load_id],
        [load.load_id],
    )
    for call in (lambda: metad.register(load, edge_chunk(0)), lambda: metad.commit(load)):
        with pytest.raises(Conflict, match="is abandoned"):
            call()


@pytest.mark.parametrize("load_id", [0, 7])
def test_unknown_load_is_refused_with_the_newest_id(metad: InProcessMetad, load_id: int) -> None:
    metad.create()
    metad.begin()
    with pytest.raises(NotFound, match=f"load {load_id} does not exist; the newest is 1"):
        metad.ask("get_load", metad_pb.LoadRequest(load_id=load_id))


def admit(metad: InProcessMetad, load: metad_pb.Load, host: str, **fields: int) -> int:
    """Admit a host to write chunk 0 of a load; return the number of the admission."""
    request = metad_pb.AdmitLoadRequest(
        uuid=host, load_id=load.load_id, **{"space_id": 1, "chunk": 0, **fields}
    )
    return int(metad.report("admit_load", request).number)


def test_hosts_are_admitted_to_registered_chunks_of_their_space(metad: InProcessMetad) -> None:
    metad.create()
    load = metad.begin()
    metad.register(load, edge_chunk(0))
    assert admit(metad, load, "s2") < admit(metad, load, "s1")
    with pytest.raises(Conflict, match=r"load 1.*space"):
        admit(metad, load, "s1", space_id=2)
    with pytest.raises(InvalidRequest, match="chunk 1 of load 1"):
        admit(metad, load, "s1", chunk=1)


def test_load_is_committed_once_the_last_admission_is_sealed(metad: InProcessMetad) -> None:
    metad.create()
    load = metad.begin()
    metad.register(load, edge_chunk(0), written=[0])
    first = admit(metad, load, "s1")
    last = admit(metad, load, "s1")
    for number, state in ((first, metad_pb.OPEN), (last, metad_pb.COMMITTED)):
        request = metad_pb.CommitLoadRequest(load_id=load.load_id)
        request.seals.add(host="s1", number=number)
        assert metad.ask("commit_load", request).state == state


def test_different_blocks_of_one_partition_are_not_committed(metad: InProcessMetad) -> None:
    metad.create()
    load = metad.begin()
    metad.register(load, edge_chunk(0), written=[0])
    request = metad_pb.CommitLoadRequest(load_id=load.load_id)
    for blocks, host in enumerate(("s1", "s2"), 1):
        seal = request.seals.add(host=host, number=admit(metad, load, host))
        seal.parts.add(part=3, blocks=blocks, checksum=bytes(16))
    with pytest.raises(Corrupt, match="load 1, partition 3"):
        metad.ask("commit_load", request)


def test_commits_are_listed_after_the_known_one(metad: InProcessMetad) -> None:
    metad.create()
    for _ in range(3):
        metad.load()
    requests = [metad_pb.ListCommitsRequest(space="graph", after=after) for after in range(4)]
    assert [list(metad.ask("list_commits", request).commits) for request in requests] == [
        [1, 2, 3],
        [2, 3],
        [3],
        [],
    ]
