"""No request to a storaged's port changes a committed load.

No invalid data enters an open load.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from tests.kit.cluster import LocalCluster
from tests.kit.waiting import HANG_S, wait_until

from asterism import Client
from asterism_daemonkit.rpc.grpc_client import RemoteTransport
from asterism_daemonkit.rpc.tcp_client import GREETING, MAGIC, REQUEST, method_id, receive
from asterism_model.block_validation import PIECES_PER_CHUNK
from asterism_model.schema import Schema
from asterism_proto import framing
from asterism_proto.errors import (
    AsterismError,
    Conflict,
    InvalidRequest,
    NotFound,
    Stale,
    Unavailable,
)
from asterism_proto.framing import Frame
from asterism_proto.methods import CATALOG, STORE
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from storaged.paths import DataPaths
from storaged.store import block_store as blocks
from storaged.store.block_store import Block, BlockStore

PARTS, NODES = 4, 1000
SCHEMA: dict[str, Any] = {
    "parts": PARTS,
    "direction": "both",
    "nodes": {
        "n": {
            "weighted": True,
            "features": {"x": "int64", "l": {"kind": "ragged", "dtype": "int64"}},
        }
    },
    "edges": {"n:to:n": {"weighted": True}},
}
IDS = np.arange(NODES)


class Intruder:
    """Client that sends handmade frames to the daemons' ports."""

    def __init__(self, cluster: LocalCluster, client: Client, space: str) -> None:
        self.cluster, self.client, self.space = cluster, client, space
        self.metad = RemoteTransport(cluster["metad"].address)
        self.storageds = {
            host.uuid: RemoteTransport(host.address)
            for host in client.hosts()
            if host.role == "STORAGED"
        }
        self.description: Any = self.metad.call(
            CATALOG["describe_space"], metad_pb.SpaceRequest(space=space), 10
        )
        self.owners = [part.hosts[0] for part in self.description.parts]

    def write(
        self,
        load_id: int,
        part: int,
        sections: dict[str, Any],
        *,
        kind: int = storaged_pb.NODES,
        chunk: int = 0,
        **head: Any,
    ) -> Any:
        """Write rows to a partition."""
        section_arrays = {name: np.asarray(array) for name, array in sections.items()}
        rows = len(next(iter(section_arrays.values())))
        fields = {
            "space_id": self.description.space_id,
            "load_id": load_id,
            "kind": kind,
            "chunk": chunk,
            "parts": [part],
            **head,
        }
        frame = Frame(
            storaged_pb.WriteBlocksRequest(**fields),
            {"offsets": np.array([0, rows]), **section_arrays},
        )
        return self.storageds[self.owners[part]].call(STORE["write_blocks"], frame, 20)

    def seal(self, load_id: int, part: int, seal_number: int = 0) -> metad_pb.HostSeal:
        """Seal a load at the owner of a partition."""
        host = self.owners[part]
        head = storaged_pb.SealLoadRequest(
            space_id=self.description.space_id, load_id=load_id, number=seal_number
        )
        reply: Any = self.storageds[host].call(STORE["seal_load"], Frame(head), 20)
        return metad_pb.HostSeal(host=host, number=reply.head.number, parts=reply.head.parts)

    def write_open(self, load_id: int, part: int, sections: dict[str, Any], **head: Any) -> None:
        """Write rows of an open load, once the storaged knows the space and metad."""

        def try_write() -> bool:
            try:
                self.write(load_id, part, sections, **head)
            except (Stale, Unavailable):
                return False
            return True

        wait_until(try_write, "an open load takes a write")

    def commit_at(self, daemon: str, load_id: int, *seals: metad_pb.HostSeal) -> metad_pb.Load:
        """Request a commit from graphd, as a client does, or directly from metad."""
        request = metad_pb.CommitLoadRequest(
            load_id=load_id, space=self.space, written=[0], seals=seals
        )
        with closing(RemoteTransport(self.cluster[daemon].address)) as transport:
            reply = transport.call(CATALOG["commit_load"], request, 60)
        assert isinstance(reply, metad_pb.Load)
        return reply

    def get_load(self, load_id: int) -> metad_pb.Load:
        """Return the load as the catalog records it."""
        load = self.metad.call(CATALOG["get_load"], metad_pb.LoadRequest(load_id=load_id), 10)
        assert isinstance(load, metad_pb.Load)
        return load

    def begin(self, rows: int = NODES) -> int:
        """Begin a load with one registered, unwritten chunk of nodes; return its id."""
        load: Any = self.metad.call(
            CATALOG["begin_load"],
            metad_pb.BeginLoadRequest(space=self.space, source="intruder"),
            10,
        )
        chunk = metad_pb.Chunk(index=0, element=common_pb.NODE, type_id=0, rows=rows, digest="d")
        self.metad.call(
            CATALOG["register_chunks"],
            metad_pb.RegisterChunksRequest(load_id=load.load_id, chunks=[chunk]),
            10,
        )
        return int(load.load_id)

    def close(self) -> None:
        for transport in (self.metad, *self.storageds.values()):
            transport.close()


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(storageds=2, graphds=1) as running:
        yield running


@pytest.fixture
def client(cluster: LocalCluster) -> Iterator[Client]:
    with cluster.client(timeout_s=60) as connected:
        yield connected


def weights(client: Client, space: str) -> list[float]:
    return np.asarray(client.graph(space).node_features(IDS, ["weight"], "n")["weight"]).tolist()


def digests(cluster: LocalCluster, space: str, version: int) -> dict[int, str]:
    """Return the digest of each partition's image."""
    with closing(RemoteTransport(cluster["metad"].address)) as metad:
        manifest: Any = metad.call(
            CATALOG["get_manifest"], metad_pb.ManifestRequest(space=space, version=version), 10
        )
    return {image.part: image.digest for image in manifest.images}


def create_loaded_space(client: Client, space: str) -> int:
    """Build a space of weighted nodes and edges; return the id of its load."""
    client.create_space(space, SCHEMA)
    load = client.begin_load(space, source="truth")
    load.write_nodes(0, "n", IDS, weights=IDS + 1, features={"x": IDS})
    load.write_edges(1, "to", IDS, (IDS + 1) % NODES, weights=np.ones(NODES))
    load.commit()
    assert run_job(client, space).state == "FINISHED"
    return load.load_id


def run_job(client: Client, space: str, kind: str = "build", **options: str) -> Any:
    return client.wait(client.submit_job(space, kind, options=options).job_id, timeout_s=HANG_S)


def test_a_committed_load_is_not_written_again(cluster: LocalCluster, client: Client) -> None:
    """Try to replace a committed load's weights, before and after restarts and without metad."""
    load_id = create_loaded_space(client, "attack")
    before = weights(client, "attack")
    with closing(Intruder(cluster, client, "attack")) as intruder:

        def assert_refused(error: type[AsterismError], message: str) -> None:
            for part in range(PARTS):
                part_ids = IDS[part == IDS % PARTS]
                with pytest.raises(error, match=message):
                    intruder.write(
                        load_id,
                        part,
                        {"ids": part_ids, "weight": np.zeros(len(part_ids), np.float32)},
                    )
            with pytest.raises(error, match=message):
                intruder.write(load_id, 1, {"ids": np.zeros(0, np.int64)})
            with pytest.raises(error, match=message):
                intruder.write(
                    load_id,
                    0,
                    {"ids": [4]},
                    kind=storaged_pb.NODE_DELETES,
                    chunk=7 * PIECES_PER_CHUNK,
                )
            with pytest.raises(error, match=message):
                intruder.write(load_id, 0, {"ids": [4]}, kind=storaged_pb.NODE_REVIVALS)

        assert_refused(Conflict, f"load {load_id} is committed")
        assert intruder.seal(load_id, 0, 1).number >= 1
        assert_refused(Conflict, f"load {load_id} is committed")
        with pytest.raises(NotFound, match="load 999 does not exist"):
            intruder.write(999, 0, {"ids": [4]})
        cluster.kill("metad")
        for name in ("storaged-0", "storaged-1"):
            cluster.kill(name)
        cluster["storaged-0"].start()
        cluster["storaged-1"].start()
        # Without metad they do not serve, or cannot check the load. Either way they refuse.
        for part in range(PARTS):
            with pytest.raises(AsterismError):
                intruder.write(load_id, part, {"ids": [part]})
        cluster.restart("metad")
        assert_refused(Conflict, f"load {load_id} is committed")
    assert run_job(client, "attack", link="no").state == "FINISHED"
    first, second = (digests(cluster, "attack", version) for version in (1, 2))
    assert first == second
    assert len(first) == PARTS
    assert weights(client, "attack") == before
    assert run_job(client, "attack", "audit").state == "FINISHED"


INVALID_WRITES: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"ids": [0, -1]}, {}, r"ids\[1\] = -1"),
    ({"ids": [0, -500]}, {}, r"ids\[1\] = -500"),
    ({"ids": [0, -4000]}, {}, r"ids\[1\] = -4000"),
    ({"ids": [0, 2**63 - 1]}, {}, r"ids\[1\] = 9223372036854775807"),
    ({"ids": [0, 5]}, {}, r"ids\[1\] = 5: expected a row of partition 0, found one of partition 1"),
    ({"ids": [0], "weight": np.float32([np.nan])}, {}, r"weight\[0\] = nan"),
    ({"ids": [0], "weight": np.float32([-2])}, {}, r"weight\[0\] = -2"),
    ({"ids": [0], "weight": np.float32([np.inf])}, {}, r"weight\[0\] = inf"),
    ({"ids": [0], "weight": np.float64([1])}, {}, "found float64"),
    ({"ids": [0], "weight": np.ones(2, np.float32)}, {}, "2 entries: expected 1"),
    ({"ids": [0], "f:x": np.zeros(1, np.int32)}, {}, r"expected int64 .* found int32"),
    (
        {"ids": [0], "f:x": np.zeros((1, 2), np.int64)},
        {},
        r"expected shape \[1\] .* found \[1, 2\]",
    ),
    ({"ids": [0], "f:y": np.zeros(1)}, {}, "section 'f:y'"),
    ({"ids": [0, 4], "f:l.indptr": [0, 2, 1], "f:l.values": [1]}, {}, r"indptr\[2\] = 1 after 2"),
    ({"ids": [0, 4], "f:l.indptr": [0, 1, 2], "f:l.values": [1]}, {}, r"indptr\[2\] = 2"),
    ({"ids": [0]}, {"kind": 77}, "kind=77"),
    ({"ids": [0]}, {"type_id": 3}, "type_id=3: expected a node type"),
    ({"ids": [0]}, {"parts": [9]}, "parts=9: expected a partition"),
    ({"ids": [0]}, {"chunk": PIECES_PER_CHUNK}, "chunk 1 of load .* was never registered"),
    (
        {"src": [0], "dst": [1], "eid": [0]},
        {"kind": storaged_pb.OUT_EDGES},
        "expected rows of node type 0, as registered, found OUT_EDGES",
    ),
    (
        {"ids": 4 * np.arange(NODES + 1)},
        {},
        "expected at most 1000 rows, as registered, found 1001",
    ),
]


def test_nothing_invalid_enters_an_open_load(cluster: LocalCluster, client: Client) -> None:
    create_loaded_space(client, "invalid")
    before = weights(client, "invalid")
    with closing(Intruder(cluster, client, "invalid")) as intruder:
        load_id = intruder.begin()
        for sections, head, message in INVALID_WRITES:
            with pytest.raises(InvalidRequest, match=message):
                intruder.write(load_id, 0, sections, **head)
        edges = client.begin_load("invalid", source="edges")
        edges.write_edges(0, "to", [0], [1], weights=[2])
        for eid in (NODES - 1, NODES + 1, 2**40):
            with pytest.raises(
                InvalidRequest,
                match=rf"eid\[0\] = {eid}: expected 1000 to 1000, the edge ids of chunk 0",
            ):
                intruder.write(
                    edges.load_id,
                    0,
                    {"src": [0], "dst": [1], "eid": [eid]},
                    kind=storaged_pb.OUT_EDGES,
                )
        edges.abandon()
        assert_binary_endpoint_refuses_writes(intruder, load_id)
        assert intruder.commit_at("graphd-0", load_id).state == metad_pb.COMMITTED
        assert intruder.get_load(load_id).fingerprinted
        assert not intruder.get_load(load_id).fingerprint  # nothing was written
    assert run_job(client, "invalid").state == "FINISHED"
    assert weights(client, "invalid") == before


def assert_binary_endpoint_refuses_writes(intruder: Intruder, load_id: int) -> None:
    """Check that the binary endpoint does not serve WriteBlocks, for any frame."""
    transport = intruder.storageds[intruder.owners[0]]
    endpoint: Any = transport.call(
        STORE["find_binary_endpoint"], storaged_pb.FindBinaryEndpointRequest(), 10
    )
    head = storaged_pb.WriteBlocksRequest(
        space_id=intruder.description.space_id, load_id=load_id, kind=storaged_pb.NODES, parts=[0]
    )
    body = b"".join(
        bytes(piece)
        for piece in framing.encode_pieces(
            Frame(head, {"offsets": np.array([0, 1]), "ids": np.array([4])}), envelope=False
        )
    )
    with socket.create_connection(
        (transport.address.rpartition(":")[0], endpoint.port), timeout=HANG_S
    ) as caller:
        caller.sendall(GREETING.pack(MAGIC, 0, endpoint.handshake_key))
        receive(caller, GREETING.size, time.monotonic() + HANG_S)
        caller.sendall(
            REQUEST.pack(MAGIC, method_id(STORE["write_blocks"].path), 10**7, len(body)) + body
        )
        magic, status, length = (
            int.from_bytes(bytes(receive(caller, size, time.monotonic() + HANG_S)), "little")
            for size in (4, 4, 8)
        )
        assert (magic, status) == (MAGIC, 1)
        assert bytes(receive(caller, length, time.monotonic() + HANG_S)).startswith(b"NotFound")


def test_a_late_write_is_in_the_fingerprint_or_refused(
    cluster: LocalCluster, client: Client
) -> None:
    """Race writers against commits sent directly to metad.

    Acknowledged writes are in the load, refused ones are not.
    """
    client.create_space("race", SCHEMA)
    with closing(Intruder(cluster, client, "race")) as intruder:
        for part in range(PARTS):  # so that both storageds know the space
            intruder.write_open(first_id := intruder.begin(), part, {"ids": [part]})
        intruder.commit_at("graphd-0", first_id)
    for _ in range(4):
        with closing(Intruder(cluster, client, "race")) as intruder:
            load_id = intruder.begin()
            acknowledged, refused, failures = list[int](), list[int](), list[str]()
            started = threading.Event()

            def run(writer: int, intruder: Intruder = intruder, load_id: int = load_id) -> None:
                for i in range(PIECES_PER_CHUNK // PARTS):
                    node = load_id * 10_000 + (i * PARTS + writer) * PARTS + writer
                    try:
                        intruder.write(
                            load_id, node % PARTS, {"ids": [node]}, chunk=i * PARTS + writer
                        )
                        acknowledged.append(node)  # noqa: B023 - joined below
                    except (Conflict, Unavailable):  # committed, or about to be
                        refused.append(node)  # noqa: B023
                        return
                    except AsterismError as error:
                        failures.append(error.message)  # noqa: B023
                        return
                    finally:
                        started.set()  # noqa: B023

            threads = [threading.Thread(target=run, args=(writer,)) for writer in range(PARTS)]
            for thread in threads:
                thread.start()
            started.wait(HANG_S)
            committed = intruder.commit_at("graphd-0", load_id)
            for thread in threads:
                thread.join(HANG_S)
            assert not failures
            assert committed.state == metad_pb.COMMITTED
            load = intruder.get_load(load_id)
            assert load.fingerprinted
            assert sum(part.rows for part in load.fingerprint) == len(acknowledged)
        assert run_job(client, "race").state == "FINISHED"
        graph = client.graph("race")
        stored = {
            int(node)
            for batch in graph.scan_nodes("n")
            for node in batch.ids
            if node // 10_000 == load_id
        }
        assert stored == set(acknowledged)
        assert not stored & set(refused)


@pytest.mark.parametrize("victim", ["storaged", "metad", "graphd"])
def test_a_commit_is_retried_after_a_kill_following_its_seal(
    cluster: LocalCluster, client: Client, victim: str
) -> None:
    space = f"killed_{victim}"
    client.create_space(space, SCHEMA)
    with closing(Intruder(cluster, client, space)) as intruder:
        load_id = intruder.begin()
        intruder.write_open(load_id, 1, {"ids": [1]})
        seal = intruder.seal(load_id, 1)
        if victim == "graphd":  # it sealed, and never requested the commit
            cluster.kill("graphd-0")
            cluster.restart("graphd-0")
        elif victim == "metad":
            cluster.kill("metad")
            cluster.restart("metad")
        else:
            name = next(
                name
                for name, daemon in cluster.daemons.items()
                if daemon.address == intruder.storageds[seal.host].address
            )
            cluster.kill(name)
            cluster.restart(name)
        # The load is still open. A further write is accepted and makes the earlier seal invalid.
        intruder.write_open(load_id, 1, {"ids": [5]}, chunk=1)
        stale = intruder.commit_at("metad", load_id, seal)
        assert stale.state == metad_pb.OPEN
        assert seal.host in stale.unsealed_hosts
        assert intruder.seal(load_id, 1, stale.seal_number).parts[0].rows == 2
        assert intruder.commit_at("graphd-0", load_id).state == metad_pb.COMMITTED
        with pytest.raises(Conflict, match="is committed"):
            intruder.write(load_id, 1, {"ids": [9]}, chunk=2)
    assert run_job(client, space).state == "FINISHED"
    assert [int(node) for batch in client.graph(space).scan_nodes("n") for node in batch.ids] == [
        1,
        5,
    ]


def test_blocks_that_were_changed_on_disk_fail_builds_and_audits(
    cluster: LocalCluster, client: Client
) -> None:
    load_id = create_loaded_space(client, "tampered")
    schema = Schema.from_dict(SCHEMA)
    with closing(Intruder(cluster, client, "tampered")) as intruder:
        space_id, owner = (
            intruder.description.space_id,
            intruder.storageds[intruder.owners[1]].address,
        )
    name = next(name for name, daemon in cluster.daemons.items() if daemon.address == owner)
    cluster.kill(name)
    folder = DataPaths(cluster.folder_of(name)).graph(space_id)
    offline = BlockStore.open(folder, schema)
    [ref] = offline.refs(1, (blocks.NODES,), 0, [load_id])
    sections = offline.read(ref)
    sections["weight"] = sections["weight"][
        ::-1
    ].copy()  # the same rows and bytes, with a valid checksum
    extra = Block(
        load_id=load_id,
        chunk=99,
        kind=blocks.NODES,
        type_id=0,
        part=1,
        arrays={"ids": np.array([100_001])},
    )
    for change, message in (
        (
            Block(load_id=load_id, chunk=0, kind=blocks.NODES, type_id=0, part=1, arrays=sections),
            "checksum",
        ),
        (extra, "blocks"),
    ):
        offline.write([change])
        offline.close()
        cluster.restart(name)
        for kind, options in (("build", {"link": "no"}), ("audit", {})):
            failed = run_job(client, "tampered", kind, **options)
            assert failed.state == "FAILED"
            assert f"Corrupt: load {load_id} (commit 1), partition 1: " in failed.cause
            assert message in failed.cause
        assert client.describe("tampered").version == 1
        cluster.kill(name)
        offline = BlockStore.open(folder, schema)
    offline.close()
    cluster.restart(name)


def test_invalid_ids_of_an_older_release_fail_only_the_build(
    cluster: LocalCluster, client: Client
) -> None:
    """Plant blocks that a release before validation accepted, in a load without a fingerprint.

    The build names the load, the partition and the id.
    """
    client.create_space("older", SCHEMA)
    with closing(Intruder(cluster, client, "older")) as intruder:
        load_id = intruder.begin()
        space_id, owner = (
            intruder.description.space_id,
            intruder.storageds[intruder.owners[1]].address,
        )
        name = next(name for name, daemon in cluster.daemons.items() if daemon.address == owner)
        cluster.kill(name)
        offline = BlockStore.open(
            DataPaths(cluster.folder_of(name)).graph(space_id), Schema.from_dict(SCHEMA)
        )
        framing = {
            "src": np.array([1]),
            "dst": np.array([-4000]),
            "eid": np.array([0]),
            "weight": np.ones(1, np.float32),
        }
        offline.write(
            [
                Block(
                    load_id=load_id,
                    chunk=0,
                    kind=blocks.OUT_EDGES,
                    type_id=0,
                    part=1,
                    arrays=framing,
                )
            ]
        )
        offline.write(
            [
                Block(
                    load_id=load_id,
                    chunk=0,
                    kind=blocks.NODES,
                    type_id=0,
                    part=1,
                    arrays={"ids": np.array([1, 5])},
                )
            ]
        )
        offline.close()
        cluster.restart(name)
        # A restarted metad does not know the writers, so it seals the load on every host.
        cluster.kill("metad")
        cluster.restart("metad")
        assert intruder.commit_at("graphd-0", load_id).state == metad_pb.COMMITTED
    failed = run_job(client, "older")
    assert failed.state == "FAILED"
    assert f"Corrupt: block 0 of load {load_id}, chunk 0 (partition 1, " in failed.cause
    assert "dst[0] = -4000" in failed.cause
