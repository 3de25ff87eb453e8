"""Tests of fingerprints, of metad's seals, and of admissions at a storaged.

Fingerprints do not depend on order and load id, and differ after any change.
"""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kit.metad import InProcessMetad

from asterism_daemonkit.rpc.call_context import CallContext
from asterism_model import load_fingerprints
from asterism_model.load_fingerprints import FingerprintMismatch, LoadFingerprint, PartFingerprint
from asterism_model.schema import NodeType, Schema
from asterism_proto.errors import Conflict, Corrupt, InvalidRequest, Unavailable
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from storaged.load_write_admission import Admission, Admissions, RegisteredChunk
from storaged.store import block_store, keys
from storaged.store.block_store import FAMILIES, Block, BlockStore
from storaged.store.memory_engine import MemoryEngine

SCHEMA = Schema(node_types=(NodeType(name="a", weighted=True),), parts=1)
HANG_S = 600.0


def store_of(writes: list[tuple[int, list[int]]], load_id: int = 3) -> BlockStore:
    store = BlockStore(MemoryEngine(FAMILIES), SCHEMA)
    for chunk, ids in writes:
        store.write(
            [
                Block(
                    load_id=load_id,
                    chunk=chunk,
                    kind=block_store.NODES,
                    type_id=0,
                    part=0,
                    arrays={"ids": np.array(ids, np.int64)},
                )
            ]
        )
    return store


WRITES = st.lists(
    st.tuples(st.integers(0, 5), st.lists(st.integers(0, 50), min_size=1, max_size=5)),
    min_size=1,
    max_size=6,
    unique_by=lambda w: w[0],
)


@settings(deadline=None, max_examples=60)
@given(WRITES, st.randoms(), st.integers(0, 4), st.integers(0, 50))
def test_fingerprint_depends_only_on_content(
    writes: list[tuple[int, list[int]]], random: object, index: int, new_id: int
) -> None:
    """Fingerprints are equal for another order, another load id and after replays.

    They differ if one id changes, or a chunk is added or removed.
    """
    part_fingerprints = store_of(writes).fingerprints(3)
    shuffled = sorted(writes, key=lambda _: random.random())  # type: ignore[attr-defined]
    assert store_of(shuffled + writes).fingerprints(3) == part_fingerprints
    assert store_of(writes, load_id=9).fingerprints(9) == part_fingerprints
    assert store_of(writes).fingerprints(3, {(0, block_store.NODES, 0)}) == part_fingerprints
    assert store_of(writes).fingerprints(4) == {}
    assert sum(len(ids) for _, ids in writes) == part_fingerprints[0].rows
    chunk, ids = writes[index % len(writes)]
    changed = [*ids[:-1], new_id if new_id != ids[-1] else 51]
    assert (
        store_of(
            [*(write for write in writes if write[0] != chunk), (chunk, changed)]
        ).fingerprints(3)
        != part_fingerprints
    )
    assert (
        store_of([write for write in writes if write[0] != chunk]).fingerprints(3)
        != part_fingerprints
    )
    assert store_of([*writes, (6, [1])]).fingerprints(3) != part_fingerprints
    expected = LoadFingerprint(load_id=3, commit=1, is_known=True, parts=part_fingerprints)
    assert LoadFingerprint.from_dict(expected.to_dict()) == expected
    assert PartFingerprint.from_proto(part_fingerprints[0].to_proto()) == part_fingerprints[0]
    assert store_of(writes).verify(0, [expected]) == 0


def test_mismatch_names_load_partition_and_difference() -> None:
    store = store_of([(0, [1, 2]), (1, [3])])
    fingerprint = LoadFingerprint(load_id=3, commit=7, is_known=True, parts=store.fingerprints(3))
    assert store.verify(0, [fingerprint]) == 0
    store.write(
        [
            Block(
                load_id=3,
                chunk=2,
                kind=block_store.NODES,
                type_id=0,
                part=0,
                arrays={"ids": np.array([9])},
            )
        ]
    )
    with pytest.raises(
        FingerprintMismatch,
        match=(
            r"load 3 \(commit 7\), partition 0: expected 2 blocks, 3 rows.* found 3 blocks, "
            r"4 rows"
        ),
    ):
        store.verify(0, [fingerprint])
    with pytest.raises(FingerprintMismatch, match="expected no blocks, as committed"):
        store.verify(0, [replace(fingerprint, parts={})])
    with pytest.raises(FingerprintMismatch, match=r"partition 0: expected .* found no blocks"):
        store_of([]).verify(0, [fingerprint])
    assert store.verify(0, [replace(fingerprint, is_known=False)]) == 1  # an earlier release


def test_invalid_records_and_ids_are_corrupt() -> None:
    engine = MemoryEngine(FAMILIES)
    store = BlockStore(engine, SCHEMA)
    block = Block(
        load_id=3,
        chunk=0,
        kind=block_store.NODES,
        type_id=0,
        part=0,
        arrays={"ids": np.array([-4000, 1])},
    )
    store.write([block])
    with pytest.raises(
        Corrupt, match=r"block 0 of load 3, chunk 0 \(partition 0, .*: it has ids from -4000 to 1"
    ):
        store.refs(0, (block_store.NODES,), 0, (3,))
    [(raw, record)] = engine.scan(keys.INDEX, b"", None)
    for invalid in (b"", record[:-1], record + b"x"):
        engine.write([(keys.INDEX, raw, invalid)])
        with pytest.raises(Corrupt, match="its record has"):
            store.refs(0, (block_store.NODES,), 0, (3,))


def test_hosts_that_disagree_or_send_no_checksum_are_refused() -> None:
    valid = PartFingerprint(part=1, blocks=1, rows=2, size=3, checksum=4).to_proto()
    with pytest.raises(InvalidRequest, match="expected 16"):
        PartFingerprint.from_proto(common_pb.PartFingerprint(part=1, checksum=b"short"))
    assert load_fingerprints.check_fingerprints(1, {}, []) == 0
    desk = InProcessMetad()
    load, host = begin_load(desk)
    desk.register(load, written=[0])
    conflicting = common_pb.PartFingerprint(
        part=1, blocks=9, rows=2, bytes=3, checksum=valid.checksum
    )
    with pytest.raises(Corrupt, match="partition 1: host b has"):
        commit(
            desk,
            load,
            metad_pb.HostSeal(host=host, number=admit(desk, load, host).number, parts=[valid]),
            metad_pb.HostSeal(host="b", parts=[conflicting]),
        )


# Seals by metad.


def begin_load(desk: InProcessMetad) -> tuple[metad_pb.Load, str]:
    """Begin a load with one chunk of two nodes, in a space of one storaged."""
    desk.heartbeat("a")
    desk.create()
    load = desk.begin()
    desk.register(
        load, metad_pb.Chunk(index=0, element=common_pb.NODE, type_id=0, rows=2, digest="d")
    )
    return load, "a"


def admit(
    desk: InProcessMetad, load: metad_pb.Load, host: str, *, chunk: int = 0, space_id: int = 1
) -> metad_pb.AdmitLoadReply:
    request = metad_pb.AdmitLoadRequest(
        uuid=host, space_id=space_id, load_id=load.load_id, chunk=chunk
    )
    reply: metad_pb.AdmitLoadReply = desk.report("admit_load", request)
    return reply


def commit(desk: InProcessMetad, load: metad_pb.Load, *seals: metad_pb.HostSeal) -> metad_pb.Load:
    reply: metad_pb.Load = desk.ask(
        "commit_load", metad_pb.CommitLoadRequest(load_id=load.load_id, seals=seals)
    )
    return reply


def test_a_load_is_committed_once_every_admission_is_sealed() -> None:
    desk = InProcessMetad()
    load, host = begin_load(desk)
    first = admit(desk, load, host)
    assert first.first_admission
    assert (first.chunk.rows, first.chunk.digest) == (2, "d")
    desk.register(load, written=[0])
    fingerprint = PartFingerprint(part=2, blocks=1, rows=2, size=40, checksum=7).to_proto()
    for seals in (
        (),
        (metad_pb.HostSeal(host=host, number=first.number - 1),),
        (metad_pb.HostSeal(host="other", number=first.number),),
    ):
        pending = commit(desk, load, *seals)
        assert (pending.state, list(pending.unsealed_hosts), pending.seal_number) == (
            metad_pb.OPEN,
            [host],
            first.number,
        )
    second = admit(desk, load, host)
    assert not second.first_admission
    assert (
        commit(
            desk, load, metad_pb.HostSeal(host=host, number=first.number, parts=[fingerprint])
        ).state
        == metad_pb.OPEN
    )
    finished = commit(
        desk, load, metad_pb.HostSeal(host=host, number=second.number, parts=[fingerprint])
    )
    assert (finished.state, finished.fingerprinted, list(finished.fingerprint)) == (
        metad_pb.COMMITTED,
        True,
        [fingerprint],
    )
    assert commit(desk, load).fingerprint == finished.fingerprint  # a repeated request
    with pytest.raises(
        Conflict, match=r"load 1 is committed \(number 1\) and accepts no more writes"
    ):
        admit(desk, load, host)
    fingerprint_list: metad_pb.FingerprintList = desk.report(
        "list_fingerprints",
        metad_pb.ListFingerprintsRequest(space_id=1, watermark=1, parts=[0, 1, 2]),
    )
    assert [
        (entry.load_id, entry.commit, entry.fingerprinted, list(entry.parts))
        for entry in fingerprint_list.loads
    ] == [(1, 1, True, [fingerprint])]
    assert not fingerprint_list.next_after
    assert (
        not desk.report(
            "list_fingerprints",
            metad_pb.ListFingerprintsRequest(space_id=1, watermark=1, parts=[0]),
        )
        .loads[0]
        .parts
    )
    assert not desk.report(
        "list_fingerprints", metad_pb.ListFingerprintsRequest(space_id=1, watermark=1, after=1)
    ).loads


def test_only_open_loads_and_registered_chunks_are_admitted() -> None:
    desk = InProcessMetad()
    load, host = begin_load(desk)
    with pytest.raises(Conflict, match="to space 1, not to space 2"):
        admit(desk, load, host, space_id=2)
    with pytest.raises(InvalidRequest, match="chunk 4 of load 1 was never registered"):
        admit(desk, load, host, chunk=4)
    with pytest.raises(InvalidRequest, match="host stranger: expected a host with partitions"):
        admit(desk, load, "stranger")
    desk.ask("abandon_load", metad_pb.LoadRequest(load_id=load.load_id))
    with pytest.raises(Conflict, match="abandoned"):
        admit(desk, load, host)


def test_metad_restart_requires_a_new_seal_of_every_host() -> None:
    desk = InProcessMetad()
    load, host = begin_load(desk)
    admission = admit(desk, load, host)
    desk.register(load, written=[0])
    desk = InProcessMetad(desk.store, now_ms=desk.now_ms)  # another process on the same catalog
    pending = commit(desk, load, metad_pb.HostSeal(host=host, number=admission.number))
    assert (pending.state, list(pending.unsealed_hosts)) == (metad_pb.OPEN, [host])
    assert pending.seal_number > admission.number
    assert (
        commit(desk, load, metad_pb.HostSeal(host=host, number=pending.seal_number)).state
        == metad_pb.COMMITTED
    )


# Admissions at a storaged.

CHUNK = RegisteredChunk(is_nodes=True, type_id=0, rows=9, first_edge_id=0)
NONE: set[tuple[int, int, int]] = set()


class FakeMetad:
    """Grants and counts admissions until it is stopped."""

    def __init__(self) -> None:
        self.number = 0
        self.committed = False

    def admit(self, space_id: int, load_id: int, chunk: int, timeout_s: float) -> Admission:
        if self.committed:
            raise Conflict("committed")
        self.number += 1
        return Admission(number=self.number, is_first=self.number == 1, chunk=CHUNK)


def test_a_load_is_admitted_once_until_it_is_sealed() -> None:
    metad, call = FakeMetad(), CallContext.with_timeout(HANG_S)
    admissions = Admissions(metad.admit)
    for _ in range(3):
        with admissions.admit_write(1, 5, 0, {(0, 1, 0)}, call) as chunk:
            assert chunk == CHUNK
    assert metad.number == 1
    with admissions.seal(1, 5, 0, call) as seal:
        assert (seal.number, seal.has_writes, seal.extents) == (1, True, frozenset({(0, 1, 0)}))
    with admissions.admit_write(1, 5, 0, {(1, 1, 0)}, call):
        assert metad.number == 2
    with admissions.seal(1, 5, 99, call) as seal:
        assert (seal.number, seal.extents) == (99, frozenset({(0, 1, 0), (1, 1, 0)}))
    with (
        pytest.raises(Unavailable, match="being committed"),
        admissions.admit_write(1, 5, 0, NONE, call),
    ):
        metad.number = -1_000  # admissions from before the seal never count
    metad.committed = True
    with pytest.raises(Conflict), admissions.admit_write(1, 5, 0, NONE, call):
        pass
    with admissions.seal(1, 6, 0, call) as seal:
        assert (seal.number, seal.has_writes) == (0, False)


def test_a_seal_waits_for_writes_under_way() -> None:
    metad, call = FakeMetad(), CallContext.with_timeout(HANG_S)
    admissions = Admissions(metad.admit)
    order: list[str] = []
    write_started, release_write = threading.Event(), threading.Event()

    def write() -> None:
        with admissions.admit_write(1, 5, 0, NONE, call):
            write_started.set()
            release_write.wait(HANG_S)
            order.append("written")

    def seal() -> None:
        with admissions.seal(1, 5, 0, call):
            order.append("sealed")

    threads = [threading.Thread(target=write), threading.Thread(target=seal)]
    threads[0].start()
    write_started.wait(HANG_S)
    threads[1].start()
    release_write.set()
    for thread in threads:
        thread.join(HANG_S)
    assert order == ["written", "sealed"]


def test_unconfirmed_admission_writes_nothing() -> None:
    def refuse_admission(space_id: int, load_id: int, chunk: int, timeout_s: float) -> Admission:
        raise Unavailable("metad does not answer")

    admissions = Admissions(refuse_admission)
    with (
        pytest.raises(Unavailable),
        admissions.admit_write(1, 5, 0, NONE, CallContext.with_timeout(HANG_S)),
    ):
        pytest.fail("written")
