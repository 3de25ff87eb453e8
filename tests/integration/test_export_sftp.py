"""Parts brought to machines by SFTP: each its own, whole, and looked at there."""

from __future__ import annotations

import hashlib
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.integration.test_export_resumed import graph, manifest
from tests.kit.sftp import PASSWORD, SftpServer
from tests.kit.waiting import HANG_S

from asterism import export
from asterism_proto import places
from asterism_proto.errors import Corrupt, Unavailable


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The address of a machine, and what its disk is here."""
    (root := tmp_path / "disk").mkdir()
    with SftpServer(root) as server:
        yield f"sftp://me:{PASSWORD}@127.0.0.1:{server.port}", root
        from fsspec.implementations.sftp import SFTPFileSystem

        for made in SFTPFileSystem._cache.values():
            made.client.close()
        SFTPFileSystem.clear_instance_cache()


def hosts(tmp_path: Path, machine: str) -> tuple[str, Path]:
    """A template of addresses, and the file that has its machines."""
    (tmp_path / "ip_config.txt").write_text("127.0.0.1\n")
    return machine.replace("127.0.0.1", "{host}") + "/data/shop", tmp_path / "ip_config.txt"


def test_a_machine_gets_its_parts_by_sftp_and_they_are_verified_there(tmp_path: Path, machine: tuple[str, Path]) -> None:
    address, machines = hosts(tmp_path, machine[0])
    report = export.dgl(graph(), address, parts=2, ip_config=machines, scratch=tmp_path / "scratch")
    assert PASSWORD not in str(report)
    export.dgl(graph(), tmp_path / "here", parts=2)
    there = machine[1] / "data/shop"
    for path, told in manifest(tmp_path / "here")["files"].items():
        if path.startswith("part"):
            assert hashlib.sha256((there / path).read_bytes()).hexdigest() == told["sha256"]
    assert json.loads((there / "manifest.json").read_text())["dispatched"] == [0, 1]
    found = export.verify(address, ip_config=machines)
    assert (found.problems, found.verified) == ((), (0, 1))
    assert not export.dispatch(tmp_path / "here", address, ip_config=machines).places[0].copied
    (there / "part1/graph.dgl").write_bytes(b"torn")
    assert any("part1/graph.dgl" in problem for problem in export.verify(address, ip_config=machines).problems)


def test_what_was_cut_off_by_sftp_is_under_no_name_and_gone_on_with(tmp_path: Path, machine: tuple[str, Path]) -> None:
    address, machines = hosts(tmp_path, machine[0])
    export.dgl(graph(), tmp_path / "here", parts=2)
    torn = tmp_path / "here/part1/graph.dgl"
    content = torn.read_bytes()
    torn.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(Exception, match=r"part1/graph\.dgl"):
        export.dispatch(tmp_path / "here", address, ip_config=machines)
    there = machine[1] / "data/shop"
    assert not (there / "part1/graph.dgl").exists()
    assert not (there / "manifest.json").exists()
    torn.write_bytes(content)
    export.dispatch(tmp_path / "here", address, ip_config=machines)
    assert export.verify(address, ip_config=machines).ok
    assert not list(there.rglob("*.making"))


def test_a_machine_that_does_not_know_us_or_answers_not_at_all_is_told_without_the_password(tmp_path: Path, machine: tuple[str, Path]) -> None:
    export.dgl(graph(), tmp_path / "here", parts=2)
    for address in (machine[0].replace(PASSWORD, "wrongword"), f"sftp://me:{PASSWORD}@127.0.0.1:1"):
        with pytest.raises(Unavailable) as refused:
            export.dispatch(tmp_path / "here", address + "/data/{part}")
        assert "wrongword" not in str(refused.value)
        assert PASSWORD not in str(refused.value)


@pytest.mark.parametrize("accepts", [True, False], ids=["that accepts and is silent", "that does not even accept"])
def test_a_machine_is_given_up_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, accepts: bool) -> None:
    monkeypatch.setattr(places, "_CONNECT_S", 0.5)
    with ExitStack() as held, socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(16 if accepts else 0)
        if not accepts:  # a full queue of a listener drops whoever comes next, as a host behind a firewall does
            for _ in range(4):
                waiting = held.enter_context(socket.socket())
                waiting.setblocking(False)
                waiting.connect_ex(silent.getsockname())
        with pytest.raises(Unavailable, match="can not be reached"):
            places.Place(f"sftp://me:{PASSWORD}@127.0.0.1:{silent.getsockname()[1]}/data")


def test_a_machine_that_falls_silent_in_the_middle_of_a_file_is_given_up_in_time(machine: tuple[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    place = places.Place(machine[0] + "/data", timeout_s=0.5)
    file = place.put("one", b"1" * 100)
    assert place.read("one") == b"1" * 100
    go_on = threading.Event()
    monkeypatch.setattr("tests.kit.sftp._Files.open", lambda *_: go_on.wait(HANG_S))
    with pytest.raises(Unavailable, match="data/one: "):
        place.whole(file)
    go_on.set()


def test_what_is_damaged_is_called_what_it_is(tmp_path: Path) -> None:
    for what in ("backup", "export"):
        place = places.Place(f"file://{tmp_path}", what=what)
        file = place.put("one", b"whole")
        (tmp_path / "one").write_bytes(b"other")
        with pytest.raises(Corrupt, match=f"one: 5 bytes that are not the 5 that were written; the {what} is damaged"):
            place.whole(file)
        (tmp_path / "one").unlink()
        with pytest.raises(Corrupt, match=f"one: missing; the {what} is damaged"):
            place.whole(file)
