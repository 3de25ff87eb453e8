"""Loads, asked through the handlers over the memory store: chunks, edge ids, resumption, commits."""

from __future__ import annotations

import pytest
from tests.kit.metad import Desk, edges, nodes

from asterism_proto.errors import Conflict, InvalidRequest, NotFound
from asterism_proto.v1 import metad_pb2 as mpb


@pytest.fixture
def desk() -> Desk:
    desk = Desk()
    for uuid in ("s2", "s1", "s3"):
        desk.beat(uuid)
    return desk


def test_edge_ids_are_given_in_the_order_of_chunks_per_edge_type_and_go_on_over_loads(desk: Desk) -> None:
    desk.create()
    load = desk.begin()
    given = desk.register(load, nodes(0, 5), edges(1, 10), edges(2, 7, type_id=1), edges(3, 4))
    assert [chunk.base for chunk in given] == [0, 0, 0, 10]
    assert desk.register(desk.begin(), edges(0, 1), edges(1, 1, type_id=1))[0].base == 14
    assert desk.register(desk.begin(), edges(0, 1), edges(1, 1, type_id=1))[1].base == 8


def test_the_same_chunk_again_gives_the_same_base_and_says_whether_it_is_written(desk: Desk) -> None:
    desk.create()
    load = desk.begin()
    first = desk.register(load, edges(0), edges(1))
    again = desk.register(load, edges(0), edges(1), written=[1])
    assert [chunk.base for chunk in again] == [chunk.base for chunk in first]
    assert [chunk.written for chunk in again] == [False, True]
    assert [chunk.written for chunk in desk.register(load, edges(1))] == [True]


def test_a_registered_chunk_does_not_take_another_content_written_or_not(desk: Desk) -> None:
    """Blocks of a chunk that was cut off may lie at parts that the other content would not touch."""
    desk.create()
    load = desk.begin()
    desk.register(load, edges(0), edges(1), written=[0])
    for index in (0, 1):
        for other in (edges(index, digest="other"), edges(index, rows=11), nodes(index), edges(index, type_id=1)):
            with pytest.raises(Conflict, match=rf"chunk {index} .* the source has changed since; abandon the load"):
                desk.register(load, other)
    assert [chunk.base for chunk in desk.register(load, edges(0), edges(1), edges(2))] == [0, 10, 20]


def test_a_refused_call_registers_nothing_of_it(desk: Desk) -> None:
    desk.create()
    load = desk.begin()
    with pytest.raises(InvalidRequest, match="chunk 1: edge type 2"):
        desk.register(load, edges(0), edges(1, type_id=2))
    with pytest.raises(InvalidRequest, match="chunk 7 of load 1 is said to be written"):
        desk.register(load, edges(0), written=[7])
    assert list(desk.ask("get_load", mpb.LoadRequest(load_id=1)).chunks) == []
    assert desk.register(load, edges(0))[0].base == 0


@pytest.mark.parametrize(
    ("chunk", "words"),
    [
        (mpb.Chunk(index=4, type_id=0, rows=1, digest="d"), "chunk 4: element 0"),
        (nodes(4, type_id=2), "chunk 4: node type 2"),
        (edges(4, rows=-1), "chunk 4: -1 rows"),
        (edges(4, digest=""), "chunk 4: its digest is empty"),
        (edges(4, rows=1 << 62), "pass 2\\^62"),
    ],
)
def test_a_chunk_that_makes_no_sense_is_refused_with_its_number(desk: Desk, chunk: mpb.Chunk, words: str) -> None:
    desk.create()
    with pytest.raises(InvalidRequest, match=words):
        desk.register(desk.begin(), chunk)


def test_a_load_is_resumed_by_its_key_in_its_space_while_it_is_open(desk: Desk) -> None:
    desk.create()
    desk.create("other")
    load = desk.begin(resume_key="papers.csv")
    desk.register(load, edges(0), edges(1), written=[0])
    resumed = desk.begin(resume_key="papers.csv")
    assert resumed.load_id == load.load_id
    assert [(chunk.index, chunk.written) for chunk in resumed.chunks] == [(0, True), (1, False)]
    assert desk.begin("other", resume_key="papers.csv").load_id != load.load_id
    assert desk.begin(resume_key="").load_id != desk.begin(resume_key="").load_id
    desk.commit(load, 1)
    assert desk.begin(resume_key="papers.csv", source="changed").load_id != load.load_id


def test_a_committed_load_is_found_again_by_its_key_and_source_in_its_space_and_by_the_next_start(desk: Desk) -> None:
    desk.create()
    desk.create("other")
    load = desk.begin(resume_key="papers.csv", source="12 rows")
    desk.register(load, edges(0), written=[0])
    commit = desk.commit(load).commit
    for one in (desk, Desk(desk.store)):
        found = one.begin(resume_key="papers.csv", source="12 rows")
        assert (found.load_id, found.state, found.commit) == (load.load_id, mpb.COMMITTED, commit)
        assert [chunk.written for chunk in found.chunks] == [True]
        assert one.commit(found).commit == commit
    assert desk.begin("other", resume_key="papers.csv", source="12 rows").load_id != load.load_id
    for key, source in (("", "12 rows"), ("papers.csv", "13 rows"), ("paper.csv", "12 rows")):
        fresh = desk.begin(resume_key=key, source=source)
        assert (fresh.load_id != load.load_id, fresh.state) == (True, mpb.OPEN)
    assert desk.begin(resume_key="papers.csv", source="12 rows").load_id == load.load_id, "another source under way hides what is committed"
    desk.ask("drop_space", mpb.DropSpaceRequest(space="graph"))
    desk.create()
    assert desk.begin(resume_key="papers.csv", source="12 rows").state == mpb.OPEN


def test_a_load_that_is_resumed_from_another_source_is_committed_as_that_of_the_other(desk: Desk) -> None:
    desk.create()
    load = desk.begin(resume_key="papers.csv", source="before")
    assert desk.begin(resume_key="papers.csv", source="after").load_id == load.load_id
    desk.commit(load)
    late = Desk(desk.store)
    assert late.begin(resume_key="papers.csv", source="after").load_id == load.load_id
    assert late.begin(resume_key="papers.csv", source="before").load_id != load.load_id


def test_an_abandoned_load_is_not_found_again(desk: Desk) -> None:
    desk.create()
    load = desk.begin(resume_key="papers.csv")
    desk.ask("abandon_load", mpb.LoadRequest(load_id=load.load_id))
    assert desk.begin(resume_key="papers.csv").load_id != load.load_id


def test_a_commit_names_the_first_chunk_that_is_missing_and_its_number_grows(desk: Desk) -> None:
    desk.create()
    desk.create("other")
    load = desk.begin()
    desk.register(load, edges(0), edges(5), edges(3), written=[0])
    with pytest.raises(InvalidRequest, match="chunk 3 is not yet written"):
        desk.commit(load, 5)
    assert desk.commit(load, 3, 5).commit == 1
    assert desk.commit(load).commit == 1
    assert (desk.load(), desk.load("other"), desk.load()) == (2, 1, 3)


def test_a_load_stays_open_while_nodes_were_deleted_after_the_commit_that_it_settled(desk: Desk) -> None:
    desk.create()
    first, second, third = (desk.begin().load_id for _ in range(3))

    def commit(at: Desk, load_id: int, **more: int | bool) -> mpb.Load:
        reply: mpb.Load = at.ask("commit_load", mpb.CommitLoadRequest(load_id=load_id, **more))
        return reply

    assert commit(desk, first, deletes=True).commit == 1
    for one in (desk, Desk(desk.store)):
        unsettled = commit(one, second)
        assert (unsettled.state, unsettled.commit) == (mpb.OPEN, 0)
    assert commit(desk, second, settled=1).commit == 2
    assert commit(desk, third, settled=1).commit == 3


def test_a_committed_load_takes_no_more_chunks_and_is_not_abandoned(desk: Desk) -> None:
    desk.create()
    load = desk.begin()
    desk.register(load, edges(0), written=[0])
    desk.commit(load)
    assert desk.register(load, edges(0))[0].written
    with pytest.raises(Conflict, match="is committed"):
        desk.register(load, edges(1))
    with pytest.raises(Conflict, match="can not be abandoned"):
        desk.ask("abandon_load", mpb.LoadRequest(load_id=load.load_id))


def test_an_abandoned_load_is_told_to_storageds_and_is_over(desk: Desk) -> None:
    desk.create()
    load, kept = desk.begin(), desk.begin()
    desk.register(load, edges(0))
    before = desk.poll("s1")
    assert list(before.open_loads) == [load.load_id, kept.load_id]
    for _ in range(2):
        assert desk.ask("abandon_load", mpb.LoadRequest(load_id=load.load_id)).state == mpb.ABANDONED
    after = desk.poll("s1", known=before.revision, wait_s=5)
    assert (list(after.open_loads), list(after.abandoned_loads)) == ([kept.load_id], [load.load_id])
    for call in (lambda: desk.register(load, edges(0)), lambda: desk.commit(load)):
        with pytest.raises(Conflict, match="is abandoned"):
            call()


@pytest.mark.parametrize("load_id", [0, 7])
def test_a_load_that_is_not_there_is_refused_with_the_newest(desk: Desk, load_id: int) -> None:
    desk.create()
    desk.begin()
    with pytest.raises(NotFound, match=f"load {load_id} does not exist; the newest is 1"):
        desk.ask("get_load", mpb.LoadRequest(load_id=load_id))
