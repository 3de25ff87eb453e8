"""Tests of the health of the cluster and the use of its disks, as the overview shows them."""

from __future__ import annotations

from typing import Any

from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from graphd.pages import views
from graphd.pages.health import cluster_health, disk_rows, memory_rows, space_usage

SPACES = [
    common_pb.Space(
        space_id=1,
        name="shop",
        parts=[common_pb.PartHosts(hosts=[uuid]) for uuid in ("s0", "s1", "s0", "s1")],
    )
]


def storaged(uuid: str, *, online: bool = True, disk: str = "", **fields: Any) -> metad_pb.Host:
    resources = metad_pb.HostResources(
        disk_id=disk,
        disk_total_bytes=1000,
        spaces=[metad_pb.SpaceUsage(space_id=1, bytes=10)],
    )
    return metad_pb.Host(
        uuid=uuid,
        role=metad_pb.STORAGED,
        address=f"{uuid}:9779",
        online=online,
        resources=resources if disk else None,
        **{"parts": 2, "free_bytes": 600, "held_bytes": 40, **fields},
    )


def graphd(*, online: bool = True) -> metad_pb.Host:
    return metad_pb.Host(uuid="g", role=metad_pb.GRAPHD, address="g:9669", online=online)


def health(*hosts: metad_pb.Host, missing: tuple[str, ...] = (), fault: str = "") -> views.Health:
    return cluster_health(hosts, SPACES, daemon="graphd", missing=missing, catalog_fault=fault)


def test_a_cluster_with_every_partition_online_is_green() -> None:
    found = health(storaged("s0"), storaged("s1"), graphd())
    assert found.level == "green"
    assert found.sentence == (
        "ready: 2 storageds and 1 graphd are online; all 4 partitions of 1 space have a host online"
    )


def test_an_offline_storaged_is_red_and_names_its_partitions() -> None:
    found = health(storaged("s0"), storaged("s1", online=False), graphd())
    assert found.level == "red"
    assert found.sentence == (
        "not ready: storaged s1:9779 is offline; space shop: 2 of 4 partitions have no host online"
    )
    assert [(one.space, one.count, one.parts, one.which) for one in found.offline] == [
        ("shop", 2, 4, "1, 3")
    ]


def test_a_fault_of_the_catalog_comes_first() -> None:
    found = health(storaged("s0"), storaged("s1", online=False), fault="the catalog is a copy")
    assert found.level == "red"
    assert found.sentence.startswith("not ready: the catalog is a copy; storaged s1:9779")


def test_what_needs_attention_is_amber() -> None:
    found = health(
        storaged("s0"),
        storaged("s1"),
        graphd(online=False),
        missing=("kernels are being compiled",),
    )
    assert found.level == "amber"
    assert found.sentence == (
        "ready, but this graphd: kernels are being compiled; graphd g:9669 is offline"
    )


def test_a_disk_that_is_nearly_full_is_amber() -> None:
    found = health(storaged("s0", disk="d", free_bytes=50), storaged("s1"))
    assert found.level == "amber"
    assert found.sentence == "ready, but the disk of s0:9779 is 95% full"


def test_a_shared_disk_counts_once() -> None:
    hosts = [
        storaged("s0", disk="d", last_heartbeat_ms=1, free_bytes=610),
        storaged("s1", disk="d", last_heartbeat_ms=2, free_bytes=600),
        storaged("s2", disk="e", free_bytes=300),
        storaged("old", free_bytes=7),
        graphd(),
    ]
    rows = [(disk.hosts, disk.held_bytes, disk.free_bytes) for disk in disk_rows(hosts)]
    assert rows == [
        (["old:9779"], 40, 7),
        (["s0:9779", "s1:9779"], 80, 600),
        (["s2:9779"], 40, 300),
    ]


def test_the_disk_use_of_a_space_adds_up_over_storageds() -> None:
    assert space_usage([storaged("s0", disk="d"), storaged("s1", disk="d"), graphd()]) == {1: 20}


def test_disks_above_85_percent_are_nearly_full() -> None:
    def is_nearly_full(**fields: int) -> bool:
        (row,) = disk_rows([storaged("s0", disk="d", **fields)])
        return row.nearly_full

    assert is_nearly_full(free_bytes=149)
    assert not is_nearly_full(free_bytes=150)
    assert not disk_rows([storaged("s0", free_bytes=0)])[0].nearly_full, "it reports no size"


def test_memory_is_of_online_daemons_fullest_first() -> None:
    def host(uuid: str, used: int, total: int = 1000, *, online: bool = True) -> metad_pb.Host:
        found = storaged(uuid, online=online, disk="d")
        found.resources.memory_bytes, found.resources.memory_total_bytes = used, total
        return found

    server = metad_pb.Host(uuid="g", role=metad_pb.GRAPHD, address="g:9669", online=True)
    server.resources.memory_bytes = 5  # the size of its memory is unknown
    hosts = [
        host("s0", 850),
        host("s1", 851),
        host("s2", 990, online=False),
        graphd(),  # of an earlier release: it reports nothing
        host("s3", 20),
        server,
    ]
    rows = memory_rows(hosts, limit=10)
    assert [(row.address, row.used_bytes, row.nearly_full) for row in rows] == [
        ("s1:9779", 851, True),
        ("s0:9779", 850, False),
        ("s3:9779", 20, False),
        ("g:9669", 5, False),
    ]
    assert [row.role for row in rows] == ["storaged", "storaged", "storaged", "graphd"]
    assert [row.address for row in memory_rows(hosts, limit=2)] == ["s1:9779", "s0:9779"]


def test_daemons_of_one_process_share_a_row_of_memory() -> None:
    hosts = [
        metad_pb.Host(
            uuid=uuid,
            role=role,
            address="standalone:0",
            online=True,
            resources=metad_pb.HostResources(memory_bytes=30, memory_total_bytes=100),
        )
        for uuid, role in (("s", metad_pb.STORAGED), ("g", metad_pb.GRAPHD))
    ]
    assert [(row.role, row.address, row.used_bytes) for row in memory_rows(hosts, limit=10)] == [
        ("all", "in this process", 30)
    ]
