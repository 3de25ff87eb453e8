"""Tests of readiness: which hosts and partitions are unavailable."""

from __future__ import annotations

from asterism_model.readiness import HostPresence, offline_partitions, readiness_problems


def host(uuid: str, *, online: bool, parts: int = 2, role: str = "storaged") -> HostPresence:
    return HostPresence(uuid=uuid, role=role, address=f"{uuid}:9779", online=online, parts=parts)


SPACES = {"shop": [["a"], ["b"], ["b", "a"]], "papers": [["a"], ["a"]]}


def test_every_offline_host_and_partition_is_named() -> None:
    hosts = [host("a", online=True), host("b", online=False)]
    assert readiness_problems(hosts, SPACES) == [
        "storaged b:9779 is offline",
        "space shop: 1 of 3 partitions have no host online",
    ]
    assert offline_partitions(hosts, SPACES) == {"shop": [1]}


def test_a_host_without_partitions_may_be_offline() -> None:
    hosts = [host("a", online=True), host("b", online=True), host("c", online=False, parts=0)]
    assert readiness_problems(hosts, SPACES) == []


def test_a_folder_that_is_opened_read_only_is_ready() -> None:
    assert readiness_problems([], SPACES) == []
