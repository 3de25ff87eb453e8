"""Fingerprints: independent of order and load id, different after any change; what metad asks of seals; admissions."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kit.metad import Desk

from asterism_proto import fingerprints
from asterism_proto.errors import Conflict, Corrupt, InvalidRequest, Unavailable
from asterism_proto.fingerprints import FingerprintMismatch, LoadFingerprint, PartFingerprint
from asterism_proto.schema import NodeType, Schema
from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.v1 import metad_pb2 as mpb
from daemonkit.calls import Call
from storaged.admission import Admission, Admissions, Chunk
from storaged.store import graph, keys
from storaged.store.graph import FAMILIES, Block, GraphStore
from storaged.store.memory import MemoryEngine

SCHEMA = Schema(node_types=(NodeType(name="a", weighted=True),), parts=1)
HANG_S = 600.0


def store_of(writes: list[tuple[int, list[int]]], load_id: int = 3) -> GraphStore:
    store = GraphStore(MemoryEngine(FAMILIES), SCHEMA)
    for chunk, ids in writes:
        store.write([Block(load_id=load_id, chunk=chunk, kind=graph.NODES, type_id=0, part=0, arrays={"ids": np.array(ids, np.int64)})])
    return store


WRITES = st.lists(
    st.tuples(st.integers(0, 5), st.lists(st.integers(0, 50), min_size=1, max_size=5)), min_size=1, max_size=6, unique_by=lambda w: w[0]
)


@settings(deadline=None, max_examples=60)
@given(WRITES, st.randoms(), st.integers(0, 4), st.integers(0, 50))
def test_a_fingerprint_tells_content_and_nothing_else(writes: list[tuple[int, list[int]]], random: object, at: int, other: int) -> None:
    """Equal for another order, another load id and after replays; different once one id is, or a chunk is there or gone."""
    found = store_of(writes).fingerprints(3)
    shuffled = sorted(writes, key=lambda _: random.random())  # type: ignore[attr-defined]
    assert store_of(shuffled + writes).fingerprints(3) == found
    assert store_of(writes, load_id=9).fingerprints(9) == found
    assert store_of(writes).fingerprints(3, {(0, graph.NODES, 0)}) == found
    assert store_of(writes).fingerprints(4) == {}
    assert sum(len(ids) for _, ids in writes) == found[0].rows
    chunk, ids = writes[at % len(writes)]
    changed = [*ids[:-1], other if other != ids[-1] else 51]
    assert store_of([*(write for write in writes if write[0] != chunk), (chunk, changed)]).fingerprints(3) != found
    assert store_of([write for write in writes if write[0] != chunk]).fingerprints(3) != found
    assert store_of([*writes, (6, [1])]).fingerprints(3) != found
    expected = LoadFingerprint(load_id=3, commit=1, known=True, parts=found)
    assert LoadFingerprint.from_dict(expected.to_dict()) == expected
    assert PartFingerprint.from_proto(found[0].to_proto()) == found[0]
    assert store_of(writes).verify(0, [expected]) == 0


def test_a_mismatch_names_the_load_the_partition_and_what_differs() -> None:
    store = store_of([(0, [1, 2]), (1, [3])])
    known = LoadFingerprint(load_id=3, commit=7, known=True, parts=store.fingerprints(3))
    assert store.verify(0, [known]) == 0
    store.write([Block(load_id=3, chunk=2, kind=graph.NODES, type_id=0, part=0, arrays={"ids": np.array([9])})])
    with pytest.raises(FingerprintMismatch, match=r"load 3 \(commit 7\), partition 0: expected 2 blocks, 3 rows.* found 3 blocks, 4 rows"):
        store.verify(0, [known])
    with pytest.raises(FingerprintMismatch, match="expected no blocks, as committed"):
        store.verify(0, [replace(known, parts={})])
    with pytest.raises(FingerprintMismatch, match=r"partition 0: expected .* found no blocks"):
        store_of([]).verify(0, [known])
    assert store.verify(0, [replace(known, known=False)]) == 1  # of a release before


def test_records_and_ids_that_cannot_be_are_corrupt() -> None:
    engine = MemoryEngine(FAMILIES)
    store = GraphStore(engine, SCHEMA)
    block = Block(load_id=3, chunk=0, kind=graph.NODES, type_id=0, part=0, arrays={"ids": np.array([-4000, 1])})
    store.write([block])
    with pytest.raises(Corrupt, match=r"block 0 of load 3, chunk 0 \(partition 0, .*: it holds ids from -4000 to 1"):
        store.refs(0, (graph.NODES,), 0, (3,))
    [(raw, record)] = engine.scan(keys.INDEX, b"", None)
    for short in (b"", record[:-1], record + b"x"):
        engine.write([(keys.INDEX, raw, short)])
        with pytest.raises(Corrupt, match="its record has"):
            store.refs(0, (graph.NODES,), 0, (3,))


def test_hosts_that_disagree_or_send_no_checksum_are_refused() -> None:
    whole = PartFingerprint(part=1, blocks=1, rows=2, size=3, checksum=4).to_proto()
    with pytest.raises(InvalidRequest, match="expected 16"):
        PartFingerprint.from_proto(pb.PartFingerprint(part=1, checksum=b"short"))
    assert fingerprints.check(1, {}, []) == 0
    desk = Desk()
    load, host = opened(desk)
    desk.register(load, written=[0])
    other = pb.PartFingerprint(part=1, blocks=9, rows=2, bytes=3, checksum=whole.checksum)
    with pytest.raises(Corrupt, match="partition 1: host b holds"):
        committed(desk, load, mpb.HostSeal(host=host, number=admitted(desk, load, host).number, parts=[whole]), mpb.HostSeal(host="b", parts=[other]))


# What metad asks of seals.


def opened(desk: Desk) -> tuple[mpb.Load, str]:
    """A load with one chunk of two nodes, in a space of one storaged."""
    desk.beat("a")
    desk.create()
    load = desk.begin()
    desk.register(load, mpb.Chunk(index=0, element=pb.NODE, type_id=0, rows=2, digest="d"))
    return load, "a"


def admitted(desk: Desk, load: mpb.Load, host: str, *, chunk: int = 0, space_id: int = 1) -> mpb.AdmitLoadReply:
    request = mpb.AdmitLoadRequest(uuid=host, space_id=space_id, load_id=load.load_id, chunk=chunk)
    reply: mpb.AdmitLoadReply = desk.report("admit_load", request)
    return reply


def committed(desk: Desk, load: mpb.Load, *seals: mpb.HostSeal) -> mpb.Load:
    reply: mpb.Load = desk.ask("commit_load", mpb.CommitLoadRequest(load_id=load.load_id, seals=seals))
    return reply


def test_a_load_is_committed_once_every_admission_is_sealed() -> None:
    desk = Desk()
    load, host = opened(desk)
    first = admitted(desk, load, host)
    assert first.first
    assert (first.chunk.rows, first.chunk.digest) == (2, "d")
    desk.register(load, written=[0])
    fingerprint = PartFingerprint(part=2, blocks=1, rows=2, size=40, checksum=7).to_proto()
    for seals in ((), (mpb.HostSeal(host=host, number=first.number - 1),), (mpb.HostSeal(host="other", number=first.number),)):
        left = committed(desk, load, *seals)
        assert (left.state, list(left.unsealed), left.seal) == (mpb.OPEN, [host], first.number)
    second = admitted(desk, load, host)
    assert not second.first
    assert committed(desk, load, mpb.HostSeal(host=host, number=first.number, parts=[fingerprint])).state == mpb.OPEN
    done = committed(desk, load, mpb.HostSeal(host=host, number=second.number, parts=[fingerprint]))
    assert (done.state, done.fingerprinted, list(done.fingerprint)) == (mpb.COMMITTED, True, [fingerprint])
    assert committed(desk, load).fingerprint == done.fingerprint  # asked again
    with pytest.raises(Conflict, match=r"load 1 is committed \(number 1\) and takes no more writes"):
        admitted(desk, load, host)
    listed: mpb.FingerprintList = desk.report("list_fingerprints", mpb.ListFingerprintsRequest(space_id=1, cut=1, parts=[0, 1, 2]))
    assert [(each.load_id, each.commit, each.fingerprinted, list(each.parts)) for each in listed.loads] == [(1, 1, True, [fingerprint])]
    assert not listed.next_after
    assert not desk.report("list_fingerprints", mpb.ListFingerprintsRequest(space_id=1, cut=1, parts=[0])).loads[0].parts
    assert not desk.report("list_fingerprints", mpb.ListFingerprintsRequest(space_id=1, cut=1, after=1)).loads


def test_only_an_open_load_of_the_space_and_a_registered_chunk_are_admitted() -> None:
    desk = Desk()
    load, host = opened(desk)
    with pytest.raises(Conflict, match="of space 1, not of space 2"):
        admitted(desk, load, host, space_id=2)
    with pytest.raises(InvalidRequest, match="chunk 4 of load 1 was never registered"):
        admitted(desk, load, host, chunk=4)
    with pytest.raises(InvalidRequest, match="host stranger: it holds no partition"):
        admitted(desk, load, "stranger")
    desk.ask("abandon_load", mpb.LoadRequest(load_id=load.load_id))
    with pytest.raises(Conflict, match="abandoned"):
        admitted(desk, load, host)


def test_after_a_restart_of_metad_every_host_is_sealed_anew() -> None:
    desk = Desk()
    load, host = opened(desk)
    before = admitted(desk, load, host)
    desk.register(load, written=[0])
    desk = Desk(desk.store, now_ms=desk.now_ms)  # another process on the same catalog
    left = committed(desk, load, mpb.HostSeal(host=host, number=before.number))
    assert (left.state, list(left.unsealed)) == (mpb.OPEN, [host])
    assert left.seal > before.number
    assert committed(desk, load, mpb.HostSeal(host=host, number=left.seal)).state == mpb.COMMITTED


# Admissions at a storaged.

CHUNK = Chunk(nodes=True, type_id=0, rows=9, base=0)
NONE: set[tuple[int, int, int]] = set()


class Metad:
    """Grants and counts admissions until it is stopped."""

    def __init__(self) -> None:
        self.number = 0
        self.committed = False

    def admit(self, space_id: int, load_id: int, chunk: int, timeout_s: float) -> Admission:
        if self.committed:
            raise Conflict("committed")
        self.number += 1
        return Admission(number=self.number, first=self.number == 1, chunk=CHUNK)


def test_a_load_is_admitted_once_until_it_is_sealed() -> None:
    metad, call = Metad(), Call.within(HANG_S)
    admissions = Admissions(metad.admit)
    for _ in range(3):
        with admissions.writing(1, 5, 0, {(0, 1, 0)}, call) as chunk:
            assert chunk == CHUNK
    assert metad.number == 1
    with admissions.sealing(1, 5, 0, call) as sealed:
        assert (sealed.number, sealed.written, sealed.extents) == (1, True, frozenset({(0, 1, 0)}))
    with admissions.writing(1, 5, 0, {(1, 1, 0)}, call):
        assert metad.number == 2
    with admissions.sealing(1, 5, 99, call) as sealed:
        assert (sealed.number, sealed.extents) == (99, frozenset({(0, 1, 0), (1, 1, 0)}))
    with pytest.raises(Unavailable, match="being committed"), admissions.writing(1, 5, 0, NONE, call):
        metad.number = -1_000  # admissions from before the seal never count
    metad.committed = True
    with pytest.raises(Conflict), admissions.writing(1, 5, 0, NONE, call):
        pass
    with admissions.sealing(1, 6, 0, call) as sealed:
        assert (sealed.number, sealed.written) == (0, False)


def test_a_seal_waits_for_writes_under_way() -> None:
    metad, call = Metad(), Call.within(HANG_S)
    admissions = Admissions(metad.admit)
    order: list[str] = []
    inside, go_on = threading.Event(), threading.Event()

    def write() -> None:
        with admissions.writing(1, 5, 0, NONE, call):
            inside.set()
            go_on.wait(HANG_S)
            order.append("written")

    def seal() -> None:
        with admissions.sealing(1, 5, 0, call):
            order.append("sealed")

    threads = [threading.Thread(target=write), threading.Thread(target=seal)]
    threads[0].start()
    inside.wait(HANG_S)
    threads[1].start()
    go_on.set()
    for thread in threads:
        thread.join(HANG_S)
    assert order == ["written", "sealed"]


def test_what_metad_does_not_confirm_is_not_written() -> None:
    def away(space_id: int, load_id: int, chunk: int, timeout_s: float) -> Admission:
        raise Unavailable("metad does not answer")

    admissions = Admissions(away)
    with pytest.raises(Unavailable), admissions.writing(1, 5, 0, NONE, Call.within(HANG_S)):
        pytest.fail("written")
